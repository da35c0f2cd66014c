/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program on MPI, for test_ofi.py. Its results depend on the number of ranks alone, so they are
 * the same over each transport. (OFI-1)
 *
 *	ofi_mpi MAX     all cases, messages of up to MAX bytes; prints a digest of each
 *	ofi_mpi loop    collectives without end, until a rank is killed
 *	ofi_mpi think SECONDS    rank 1 computes meanwhile, without a call of MPI
 */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;
static uint64_t digest;

static void
add(const void *data, size_t size)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < size; i++)
		digest = (digest ^ p[i]) * 0x100000001b3ull;
}

/* Fold the digests of all ranks, in their order. */
static void
show(const char *name)
{
	uint64_t all[64];

	MPI_Gather(&digest, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	digest = 0xcbf29ce484222325ull;
	if (rank != 0)
		return;
	for (int i = 0; i < ranks; i++)
		add(&all[i], sizeof(all[i]));
	printf("%s %016llx\n", name, (unsigned long long)digest);
	fflush(stdout);
	digest = 0xcbf29ce484222325ull;
}

static void
fill(uint8_t *p, size_t size, int seed)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)(i * 31 + (size_t)seed * 17 + (i >> 8));
}

static void
point_to_point(size_t max)
{
	uint8_t *out = malloc(max + 1), *in = malloc(max + 1);
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, got;
	MPI_Status status;

	for (size_t size = 0; size <= max; size = size == 0 ? 1 : size * 4 + (size < 64)) {
		fill(out, size, rank);
		MPI_Sendrecv(out, (int)size, MPI_BYTE, next, 1, in, (int)max, MPI_BYTE, last, 1,
			     MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &got);
		add(&got, sizeof(got));
		add(in, (size_t)got);
	}
	free(out);
	free(in);
	show("point to point");
}

/* Many sends before the receives: some arrive unexpected, in other tags' order. */
static void
unexpected(void)
{
	MPI_Request requests[400];
	int values[200], sums[200], i, next = (rank + 1) % ranks,
				       last = (rank + ranks - 1) % ranks;

	for (i = 0; i < 200; i++) {
		values[i] = rank * 1000 + i;
		MPI_Isend(&values[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 199; i >= 0; i--)
		MPI_Irecv(&sums[i], 1, MPI_INT, last, i, MPI_COMM_WORLD, &requests[200 + i]);
	MPI_Waitall(400, requests, MPI_STATUSES_IGNORE);
	add(sums, sizeof(sums));
	show("unexpected");
}

static void
collectives(void)
{
	enum {
		N = 20000
	};
	static int64_t a[N], b[N], all[N * 8];

	for (int i = 0; i < N; i++)
		a[i] = (int64_t)i * (rank + 1);
	MPI_Allreduce(a, b, N, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	add(b, sizeof(b));
	MPI_Bcast(a, N, MPI_INT64_T, ranks - 1, MPI_COMM_WORLD);
	add(a, sizeof(a));
	MPI_Allgather(b, N, MPI_INT64_T, all, N, MPI_INT64_T, MPI_COMM_WORLD);
	add(all, sizeof(*all) * N * (size_t)ranks);
	MPI_Alltoall(a, N / ranks, MPI_INT64_T, b, N / ranks, MPI_INT64_T, MPI_COMM_WORLD);
	add(b, sizeof(*b) * (size_t)(N / ranks * ranks));
	MPI_Barrier(MPI_COMM_WORLD);
	show("collectives");
}

/* Every third column of a matrix. */
static void
derived_types(void)
{
	enum {
		ROWS = 300,
		COLUMNS = 90
	};
	static double m[ROWS][COLUMNS], got[ROWS][COLUMNS];
	MPI_Datatype column;

	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			m[i][j] = i * 1000 + j + rank / 8.0;
	MPI_Type_vector(ROWS * COLUMNS / 3, 1, 3, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);
	MPI_Sendrecv(m, 1, column, (rank + 1) % ranks, 2, got, 1, column,
		     (rank + ranks - 1) % ranks, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Type_free(&column);
	add(got, sizeof(got));
	show("derived types");
}

static void
one_sided(void)
{
	enum {
		N = 50000
	};
	static int window[N], mine[N], back[N];
	MPI_Win win;
	int one = 1, next = (rank + 1) % ranks;

	for (int i = 0; i < N; i++)
		mine[i] = rank * 7 + i;
	MPI_Win_create(window, sizeof(window), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(mine, N, MPI_INT, next, 0, N, MPI_INT, win);
	MPI_Win_fence(0, win);
	MPI_Get(back, N, MPI_INT, next, 0, N, MPI_INT, win);
	MPI_Win_fence(0, win);
	MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(0, win);
	add(window, sizeof(window));
	add(back, sizeof(back));
	MPI_Win_free(&win);
	show("one-sided");
}

/* Ranks in two groups: Open MPI inserts the addresses of the other group a second time. */
static void
intercommunicator(void)
{
	int low = rank < ranks / 2, all[64] = {0};
	MPI_Comm local, inter;

	MPI_Comm_split(MPI_COMM_WORLD, low, rank, &local);
	MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, low ? ranks / 2 : 0, 1, &inter);
	MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, inter);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&local);
	add(all, sizeof(all));
	show("intercommunicator");
}

static void
loop(void)
{
	int64_t a[4000] = {0}, b[4000], rounds;

	for (rounds = 0;; rounds++) {
		MPI_Allreduce(a, b, 4000, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		if (rank == 0 && rounds == 20) {
			printf("looping\n");
			fflush(stdout);
		}
	}
}

/* The others send more than there is room for meanwhile. */
static void
think(int seconds)
{
	enum {
		N = 2000
	};
	static int out[N], in[N];
	static MPI_Request requests[N];
	time_t end = time(NULL) + seconds;

	for (int i = 0; i < N && rank != 1; i++) {
		out[i] = rank * N + i;
		MPI_Isend(&out[i], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[i]);
	}
	while (rank == 1 && time(NULL) < end)
		;
	for (int peer = 0; rank == 1 && peer < ranks; peer++) {
		for (int i = 0; i < N && peer != 1; i++)
			MPI_Recv(&in[i], 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		add(in, sizeof(in));
	}
	if (rank != 1)
		MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
	show("thought");
}

int
main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	digest = 0xcbf29ce484222325ull;
	if (argc == 3) {
		think(atoi(argv[2]));
	} else if (strcmp(argv[1], "loop") == 0) {
		loop();
	} else {
		point_to_point(strtoul(argv[1], NULL, 0));
		unexpected();
		collectives();
		derived_types();
		one_sided();
		intercommunicator();
	}
	MPI_Finalize();
	return 0;
}
