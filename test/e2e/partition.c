/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two applications and two partitions: the port's, which has their regions, and another one. From
 * one partition the other cannot be reached, even with the right key. (RT-29, SYS-5)
 *
 *   partition SOCKET PEER_SOCKET PEER OTHER
 *
 * Exits with 0 if that is so.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "raw_app.h"

#define SERVICE  4712
#define REGION   (1u << 16)
#define DEPTH    16
#define LEN      4096
#define QUIET_US 200000 /* wait for events that must not come */

/* as in rtsan.h */
#define REASON_PKEY 4
#define BAD_KEY     2

static struct raw_app a, b;
static struct raw_qp qa, qb;
static const char *peer;

static void
make_qps(uint16_t pkey_a, uint16_t pkey_b)
{
	a.pkey = pkey_a;
	b.pkey = pkey_b;
	MUST(raw_make_qp(&a, &qa, DEPTH) == 0 && raw_make_qp(&b, &qb, DEPTH) == 0, "queue pair");
}

static void
end_qps(void)
{
	raw_end_qp(&qa);
	raw_end_qp(&qb);
}

static void
must_hold(const uint8_t *mem, size_t len, int c, const char *what)
{
	for (size_t i = 0; i < len; i++)
		MUST(mem[i] == c, "%s: byte %zu is %u, not %d", what, i, mem[i], c);
}

static int
status_of(enum rtsan_wr_opcode op)
{
	struct san_ulp_wr wr = raw_wr(op, &a, &b, op == RTSAN_WR_FETCH_ADD ? 8 : LEN);

	return raw_do(&qa, &wr);
}

/* The peer listens in one partition, and the request is for the other. */
static void
connect_across(uint16_t pkey_a, uint16_t pkey_b)
{
	struct shmq_event ev;

	make_qps(pkey_a, pkey_b);
	MUST(raw_listen(&b, SERVICE + 1 + pkey_b) == 0, "listen");
	MUST(raw_connect(&qa, peer, SERVICE + 1 + pkey_b) == 0, "connect");
	ev = raw_wait_event(&a, RAW_REJECTED);
	MUST(ev.reason == REASON_PKEY, "from 0x%x to 0x%x: reason %u", pkey_a, pkey_b, ev.reason);
	usleep(QUIET_US);
	MUST(!raw_event(&b, &ev), "from 0x%x to 0x%x: event %u", pkey_a, pkey_b, ev.type);
	end_qps();
}

/* A connection in the other partition: sends arrive, and regions cannot be accessed. */
static void
reach_across(uint16_t other)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL,
						   RTSAN_WR_FETCH_ADD};
	struct san_ulp_recv r = {.nb_sge = 1, .sge = {raw_part(&b, 0, LEN)}};
	struct san_ulp_wc wc;
	int status;

	make_qps(other, other);
	raw_pair(&qa, &qb, peer, SERVICE);
	memset(a.region, 'a', REGION);
	memset(b.region, 'b', REGION);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		status = status_of(ops[i]);
		MUST(status == BAD_KEY, "operation %d: status %d", ops[i], status);
	}
	must_hold(a.region, REGION, 'a', "pulled");
	must_hold(b.region, REGION, 'b', "pushed");
	raw_post_recv(&qb, &r);
	MUST(status_of(RTSAN_WR_SEND) == 0 && raw_wc(&qb, &wc) && wc.byte_len == LEN, "send");
	end_qps();
}

/* In the partition of the regions all operations work, so the refusals have the right cause. */
static void
reach(void)
{
	make_qps(0, 0);
	raw_pair(&qa, &qb, peer, SERVICE);
	memset(a.region, 'a', REGION);
	memset(b.region, 'b', REGION);
	MUST(status_of(RTSAN_WR_PULL) == 0, "pull");
	must_hold(a.region, LEN, 'b', "pull");
	memset(a.region, 'a', REGION);
	MUST(status_of(RTSAN_WR_PUSH) == 0, "push");
	must_hold(b.region, LEN, 'a', "push");
	end_qps();
}

int
main(int argc, char **argv)
{
	uint16_t other;

	if (argc != 5)
		return 2;
	peer = argv[3];
	other = (uint16_t)strtoul(argv[4], NULL, 0);
	raw_attach(&a, argv[1]);
	raw_attach(&b, argv[2]);
	raw_add_region(&a, REGION, F_SEAL_SHRINK);
	raw_add_region(&b, REGION, F_SEAL_SHRINK);
	connect_across(0, other);
	connect_across(other, 0);
	reach_across(other);
	reach();
	raw_detach(&a);
	raw_detach(&b);
	return 0;
}
