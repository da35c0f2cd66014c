/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Copies a file to the other side, by pushes into its memory or by sends into its receives, and
 * compares checksums.
 *
 *	filecopy server SPEC FILE
 *	filecopy client SPEC PEER FILE push|send
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ex.h"

#define CHUNK (256 * 1024)
#define LAST  UINT64_MAX /* wr_id of the receive for the answer, or for the final message */

struct offer { /* private data of the connection request, client to server */
	uint64_t size;
	uint64_t by_send;
};

struct place { /* private data of the answer, server to client */
	uint64_t addr;
	uint64_t rkey;
};

static uint64_t
nb_chunks(uint64_t size)
{
	return (size + CHUNK - 1) / CHUNK;
}

static struct rtsan_sge
chunk(const struct rtsan_mr *mr, uint64_t size, uint64_t i)
{
	return ex_sge(mr, i * CHUNK, size - i * CHUNK < CHUNK ? size - i * CHUNK : CHUNK);
}

static void
write_all(struct ex *ex, const char *file, const uint8_t *data, uint64_t size)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	uint64_t done = 0;
	ssize_t n;

	for (; fd >= 0 && done < size; done += (uint64_t)n) {
		n = write(fd, data + done, size - done);
		if (n <= 0)
			break;
	}
	if (fd < 0 || done < size || close(fd) != 0)
		ex_die(ex, "%s: can't be written", file);
}

/* ---- server ---- */

static void
server(struct ex *ex, const char *file)
{
	struct rtsan_mr *mr, *answer = ex_alloc(ex, sizeof(uint64_t), 0);
	uint64_t *sum = rtsan_mr_addr(answer), n, next = 0;
	struct rtsan_sge sge = ex_sge(answer, 0, sizeof(*sum));
	struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_SEND, .sge = &sge, .nb_sge = 1};
	struct offer offer;
	struct place place;
	struct rtsan_wc wc;

	ex_listen(ex);
	memcpy(&offer, ex->ev.private_data, sizeof(offer));
	mr = ex_alloc(ex, offer.size != 0 ? offer.size : 1, RTSAN_REMOTE_PUSH);
	place.addr = (uintptr_t)rtsan_mr_addr(mr);
	place.rkey = rtsan_mr_rkey(mr);
	/* receives are consumed in order, so each chunk has a fixed place */
	n = offer.by_send != 0 ? nb_chunks(offer.size) : 0;
	for (; next < n && next < EX_DEPTH - 1; next++)
		ex_post_recv(ex, next, chunk(mr, offer.size, next));
	if (next == n)
		ex_post_recv(ex, LAST, ex_sge(answer, 0, 0));
	ex_accept(ex, &place, sizeof(place));
	for (ex_wait(ex, &wc); wc.wr_id != LAST; ex_wait(ex, &wc)) {
		if (next < n)
			ex_post_recv(ex, next, chunk(mr, offer.size, next));
		else if (next == n)
			ex_post_recv(ex, LAST, ex_sge(answer, 0, 0));
		next++;
	}
	write_all(ex, file, rtsan_mr_addr(mr), offer.size);
	*sum = ex_checksum(rtsan_mr_addr(mr), offer.size);
	/*
	 * the client disconnects when it has the answer, whose completion may come later or not at
	 * all
	 */
	ex_post_send(ex, &wr);
	ex_wait_disconnect(ex);
	printf("filecopy: %s: %llu bytes\n", file, (unsigned long long)offer.size);
}

/* ---- client ---- */

static struct rtsan_mr *
read_file(struct ex *ex, const char *file, uint64_t *size)
{
	int fd = open(file, O_RDONLY);
	struct rtsan_mr *mr;
	struct stat st;
	uint64_t done = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) != 0)
		ex_die(ex, "%s: can't be read", file);
	*size = (uint64_t)st.st_size;
	mr = ex_alloc(ex, *size != 0 ? *size : 1, 0);
	for (; done < *size; done += (uint64_t)n) {
		n = read(fd, (uint8_t *)rtsan_mr_addr(mr) + done, *size - done);
		if (n <= 0)
			ex_die(ex, "%s: can't be read", file);
	}
	close(fd);
	return mr;
}

/* At most half of the queue is in flight. The last chunk and every 16th request a completion. */
static void
send_chunks(struct ex *ex, const struct rtsan_mr *mr, const struct offer *offer,
	    const struct place *place)
{
	uint64_t n = nb_chunks(offer->size), i, done = 0;
	struct rtsan_sge sge;
	struct rtsan_send_wr wr = {
		.opcode = offer->by_send != 0 ? RTSAN_WR_SEND : RTSAN_WR_PUSH,
		.rkey = (uint32_t)place->rkey,
		.sge = &sge,
		.nb_sge = 1,
	};
	struct rtsan_wc wc;

	for (i = 0; i < n; i++) {
		sge = chunk(mr, offer->size, i);
		wr.wr_id = i + 1;
		wr.remote_addr = place->addr + i * CHUNK;
		wr.flags = i + 1 == n || i % 16 == 15 ? RTSAN_WR_SIGNALED : 0;
		ex_post_send(ex, &wr);
		for (; i + 1 - done > EX_DEPTH / 2; done = wc.wr_id)
			ex_wait(ex, &wc);
	}
	for (; done < n; done = wc.wr_id)
		ex_wait(ex, &wc);
}

static void
client(struct ex *ex, const char *peer, const char *file, bool by_send)
{
	struct offer offer = {.by_send = by_send};
	struct rtsan_mr *mr = read_file(ex, file, &offer.size);
	struct rtsan_mr *answer = ex_alloc(ex, sizeof(uint64_t), 0);
	struct rtsan_send_wr end = {.opcode = RTSAN_WR_PUSH_IMM, .imm = 1};
	uint64_t *sum = rtsan_mr_addr(answer), start;
	struct place place;
	struct rtsan_wc wc;

	ex_post_recv(ex, LAST, ex_sge(answer, 0, sizeof(*sum)));
	ex_connect(ex, peer, &offer, sizeof(offer));
	memcpy(&place, ex->ev.private_data, sizeof(place));
	start = ex_now_ns();
	send_chunks(ex, mr, &offer, &place);
	end.remote_addr = place.addr;
	end.rkey = (uint32_t)place.rkey;
	ex_post_send(ex, &end); /* ordered: executed after everything before it */
	ex_wait(ex, &wc);
	if (wc.wr_id != LAST || *sum != ex_checksum(rtsan_mr_addr(mr), offer.size))
		ex_die(ex, "%s: the copy differs", file);
	printf("filecopy: %llu bytes by %s, checksum %016llx, %.2f ms\n",
	       (unsigned long long)offer.size, by_send ? "send" : "push",
	       (unsigned long long)*sum, (double)(ex_now_ns() - start) / 1e6);
	ex_disconnect(ex);
}

int
main(int argc, char **argv)
{
	struct ex ex = {.name = "filecopy"};

	if (argc == 4 && strcmp(argv[1], "server") == 0) {
		ex_open(&ex, "filecopy", argv[2]);
		server(&ex, argv[3]);
	} else if (argc == 6 && strcmp(argv[1], "client") == 0 &&
		   (strcmp(argv[5], "push") == 0 || strcmp(argv[5], "send") == 0)) {
		ex_open(&ex, "filecopy", argv[2]);
		client(&ex, argv[3], argv[4], argv[5][0] == 's');
	} else {
		fprintf(stderr, "usage: filecopy server SPEC FILE | "
				"client SPEC PEER FILE push|send\n");
		return 2;
	}
	ex_close(&ex);
	return 0;
}
