/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * bench_mpi MILLISECONDS: two ranks, for bench.py. Rank 0 prints a JSON object: microseconds of an
 * allreduce of 8 bytes, Gb/s of one of 1 MiB, millions of messages of 8 bytes per second from
 * rank 0 to rank 1.
 */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGE  (1u << 20)
#define WORDS  (LARGE / sizeof(int64_t))
#define WINDOW 64
#define BATCH  50

static int rank;
static int64_t out[WORDS], in[WORDS];

static void
allreduce(size_t words)
{
	MPI_Allreduce(out, in, (int)words, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (in[words - 1] != 3)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void
small(void)
{
	allreduce(1);
}

static void
large(void)
{
	allreduce(WORDS);
}

/* Messages in one direction, and one in answer to all of them. */
static void
window(void)
{
	MPI_Request requests[WINDOW];

	for (int i = 0; i < WINDOW; i++) {
		if (rank == 0)
			MPI_Isend(&out[i], 1, MPI_INT64_T, 1, 1, MPI_COMM_WORLD, &requests[i]);
		else
			MPI_Irecv(&in[i], 1, MPI_INT64_T, 0, 1, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	if (rank == 0)
		MPI_Recv(in, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(out, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
}

/* Microseconds of a batch. */
static double
batch(void (*op)(void))
{
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int i = 0; i < BATCH; i++)
		op();
	return (MPI_Wtime() - begin) * 1e6;
}

/* Microseconds of one. Rank 0 says when the time is over. */
static double
measure(void (*op)(void), int ms)
{
	int n = 0, more = 1;
	double us = 0;

	batch(op);
	while (more) {
		us += batch(op);
		n += BATCH;
		more = us < ms * 1e3;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	return us / n;
}

int
main(int argc, char **argv)
{
	double small_us, large_us, window_us;
	int ms;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	ms = argc == 2 ? atoi(argv[1]) : 100;
	for (size_t i = 0; i < WORDS; i++)
		out[i] = rank + 1;
	small_us = measure(small, ms);
	large_us = measure(large, ms);
	window_us = measure(window, ms);
	if (rank == 0)
		printf("{\"us\": %f, \"gbps\": %f, \"mpps\": %f}\n", small_us,
		       LARGE * 8 / large_us / 1e3, WINDOW / window_us);
	MPI_Finalize();
	return 0;
}
