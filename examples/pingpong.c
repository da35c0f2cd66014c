/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sends a number to the server and back, repeatedly.
 *
 *	pingpong [-w] server SPEC
 *	pingpong [-w] client SPEC PEER [ROUNDS]
 *
 * -w: sleep until something arrives, instead of polling.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex.h"

#define ROUNDS 10000
#define TO     0 /* offsets in the region: the number to send, the number received */
#define FROM   8

static void
send_number(struct ex *ex, struct rtsan_mr *mr)
{
	struct rtsan_sge sge = ex_sge(mr, TO, sizeof(uint64_t));
	struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_INLINE, /* copied now; no completion unless it fails */
		.sge = &sge,
		.nb_sge = 1,
	};

	ex_post_send(ex, &wr);
}

static void
server(struct ex *ex)
{
	struct rtsan_mr *mr = ex_alloc(ex, 4096, 0);
	uint64_t *to = rtsan_mr_addr(mr), *from = to + 1, rounds, i;
	struct rtsan_wc wc;

	ex_listen(ex);
	memcpy(&rounds, ex->ev.private_data, sizeof(rounds));
	ex_post_recv(ex, 0, ex_sge(mr, FROM, sizeof(*from)));
	ex_accept(ex, NULL, 0);
	puts("pingpong: connected");
	fflush(stdout);
	for (i = 0; i < rounds; i++) {
		ex_wait(ex, &wc);
		*to = *from;
		ex_post_recv(ex, 0, ex_sge(mr, FROM, sizeof(*from)));
		send_number(ex, mr);
	}
	ex_wait_disconnect(ex);
	printf("pingpong: served %llu round trips\n", (unsigned long long)rounds);
}

static void
client(struct ex *ex, const char *peer, uint64_t rounds)
{
	struct rtsan_mr *mr = ex_alloc(ex, 4096, 0);
	uint64_t *to = rtsan_mr_addr(mr), *from = to + 1, start, i;
	struct rtsan_wc wc;

	ex_connect(ex, peer, &rounds, sizeof(rounds));
	start = ex_now_ns();
	for (i = 0; i < rounds; i++) {
		*to = i * 0x9e3779b97f4a7c15;
		ex_post_recv(ex, i, ex_sge(mr, FROM, sizeof(*from)));
		send_number(ex, mr);
		ex_wait(ex, &wc);
		if (*from != *to)
			ex_die(ex, "round %llu: another number came back", (unsigned long long)i);
	}
	printf("pingpong: %llu round trips, %.2f us each\n", (unsigned long long)rounds,
	       (double)(ex_now_ns() - start) / 1e3 / (double)rounds);
	ex_disconnect(ex);
}

int
main(int argc, char **argv)
{
	struct ex ex = {.name = "pingpong"};

	if (argc > 1 && strcmp(argv[1], "-w") == 0) {
		ex.sleeps = 1;
		argc--;
		argv++;
	}
	if (argc == 3 && strcmp(argv[1], "server") == 0) {
		ex_open(&ex, "pingpong", argv[2]);
		server(&ex);
	} else if ((argc == 4 || (argc == 5 && strtoull(argv[4], NULL, 0) > 0)) &&
		   strcmp(argv[1], "client") == 0) {
		ex_open(&ex, "pingpong", argv[2]);
		client(&ex, argv[3], argc == 5 ? strtoull(argv[4], NULL, 0) : ROUNDS);
	} else {
		fprintf(stderr, "usage: pingpong [-w] server SPEC | client SPEC PEER [ROUNDS]\n");
		return 2;
	}
	ex_close(&ex);
	return 0;
}
