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
	if (raw_make_qp(&a, &qa, DEPTH) != 0 || raw_make_qp(&b, &qb, DEPTH) != 0)
		raw_die("queue pair");
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
		if (mem[i] != c)
			raw_die("%s: byte %zu is %u, not %d", what, i, mem[i], c);
}

static uint8_t
status_of(enum rtsan_wr_opcode op)
{
	const uint32_t len = op == RTSAN_WR_FETCH_ADD ? 8 : LEN;
	struct san_ulp_wr wr = {
		.op = op,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.remote_addr = RAW_BASE,
		.rkey = b.key,
		.length = len,
		.sge = {{(void *)(uintptr_t)RAW_BASE, len, a.key}},
	};
	struct san_ulp_wc wc;

	raw_post(&qa, &wr);
	if (!raw_wc(&qa, &wc))
		raw_die("operation %d: no completion", op);
	return wc.status;
}

/* The peer listens in one partition, and the request is for the other. */
static void
connect_across(uint16_t pkey_a, uint16_t pkey_b)
{
	struct shmq_event ev;

	make_qps(pkey_a, pkey_b);
	if (raw_listen(&b, SERVICE + 1 + pkey_b) != 0)
		raw_die("listen");
	if (raw_connect(&qa, peer, SERVICE + 1 + pkey_b) != 0)
		raw_die("connect");
	ev = raw_wait_event(&a, RAW_REJECTED);
	if (ev.reason != REASON_PKEY)
		raw_die("from 0x%x to 0x%x: reason %u", pkey_a, pkey_b, ev.reason);
	usleep(QUIET_US);
	if (raw_event(&b, &ev))
		raw_die("from 0x%x to 0x%x: event %u", pkey_a, pkey_b, ev.type);
	end_qps();
}

/* A connection in the other partition: sends arrive, and regions cannot be accessed. */
static void
reach_across(uint16_t other)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL,
						   RTSAN_WR_FETCH_ADD};
	struct san_ulp_recv r = {
		.nb_sge = 1,
		.sge = {{(void *)(uintptr_t)RAW_BASE, LEN, b.key}},
	};
	struct san_ulp_wc wc;
	uint8_t status;

	make_qps(other, other);
	raw_pair(&qa, &qb, peer, SERVICE);
	memset(a.region, 'a', REGION);
	memset(b.region, 'b', REGION);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		status = status_of(ops[i]);
		if (status != BAD_KEY)
			raw_die("operation %d: status %u", ops[i], status);
	}
	must_hold(a.region, REGION, 'a', "pulled");
	must_hold(b.region, REGION, 'b', "pushed");
	raw_post_recv(&qb, &r);
	if (status_of(RTSAN_WR_SEND) != 0 || !raw_wc(&qb, &wc) || wc.byte_len != LEN)
		raw_die("send");
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
	if (status_of(RTSAN_WR_PULL) != 0)
		raw_die("pull");
	must_hold(a.region, LEN, 'b', "pull");
	memset(a.region, 'a', REGION);
	if (status_of(RTSAN_WR_PUSH) != 0)
		raw_die("push");
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
