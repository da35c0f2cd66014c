/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Fixtures of the tests of packet delivery: a pair, in which most often side 0 sends data, and side
 * 1 answers.
 */

#include <errno.h>

#include "unit.h"
#include "pdl_pair.h"

static struct pair pair;
static struct pair_pkt k, ack;

/** With the default configuration. */
static inline void
setup_pair(void)
{
	struct san_pdl_conf conf = pair_conf();

	pair_open(&pair, &conf, 16, 64);
}

/** Side 0 requests no ACKs: a test does. */
static inline void
setup_acks(void)
{
	struct san_pdl_conf conf = pair_conf();

	conf.ackreq_window = 0;
	pair_open(&pair, &conf, 16, 64);
}

/** Five retries, and a window that stays. */
static inline void
setup_retries(void)
{
	struct san_pdl_conf conf = pair_conf();

	conf.max_retries = 5;
	conf.cc = SAN_CC_FIXED;
	pair_open(&pair, &conf, 16, 64);
}

static inline void
teardown(void)
{
	pair_close(&pair);
}

/** Side 0 sends it. */
static inline struct pair_pkt
send_op(uint8_t op, uint32_t rsn)
{
	struct pair_pkt d;

	assert_true(pair_send(&pair, 0, op, rsn, &d));
	return d;
}

static inline struct pair_pkt
send_push(uint32_t rsn)
{
	return send_op(SAN_OP_PUSH_UNSLCTD_DATA, rsn);
}

/** Data from side 0 that requests no ACK. */
static inline struct pair_pkt
data(void)
{
	struct pair_pkt d = send_push(1);

	d.p.ackreq = false;
	return d;
}

static inline enum san_drop
arrive(const struct pair_pkt *d, enum san_verdict verdict)
{
	return pair_recv(&pair, 1, d, verdict);
}

static inline void
forget_acked(void)
{
	pair.pdl[0]->nb_acked = 0;
	pair.pdl[1]->nb_acked = 0;
}

/** Deliver everything that side 1 owes to side 0. */
static inline void
report(void)
{
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_true(pair_report(&pair, 1));
	forget_acked();
}

/** A packet of side 0 arrives, and side 0 learns it. */
static inline void
arrive_and_report(const struct pair_pkt *d)
{
	arrive(d, SAN_RX_ACKED);
	report();
}

/** One data packet, delivered and reported at once: side 0 measures a round trip. */
static inline void
exchange(uint64_t rtt_ns)
{
	k = send_push(1);
	pair_pass(&pair, rtt_ns / 2);
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_true(pair_owed(&pair, 1, &ack));
	pair_pass(&pair, rtt_ns / 2);
	assert_int_equal(pair_recv(&pair, 0, &ack, SAN_RX_REFUSED), SAN_DROP_NONE);
	forget_acked();
}

/** Side 0 resends the packet with this PSN, which is *k*. */
#define assert_resent(psn_)                            \
	do {                                           \
		assert_true(pair_again(&pair, 0, &k)); \
		assert_int_equal(k.p.psn, psn_);       \
	} while (0)

/** *side* owes a packet of this kind, which is *d*. */
#define assert_owes(side, d, op_)                       \
	do {                                            \
		assert_true(pair_owed(&pair, side, d)); \
		assert_int_equal((d)->p.op, op_);       \
	} while (0)
