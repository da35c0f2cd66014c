/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_PDL_ACK_H
#define TEST_PDL_ACK_H

/**
 * @file
 * For the tests of ACKs: a pair in which side 0 sends data without requesting ACKs, and side 1
 * answers.
 */

#include "unit.h"
#include "pdl_pair.h"

static struct pair pair;
static struct pair_pkt k, ack;

static inline void
setup(void)
{
	struct san_pdl_conf conf = pair_conf();

	conf.ackreq_window = 0; /* a test requests ACKs itself */
	pair_open(&pair, &conf, 16, 64);
}

static inline void
teardown(void)
{
	pair_close(&pair);
}

/* Data from side 0 that requests no ACK. */
static inline struct pair_pkt
data(void)
{
	struct pair_pkt d;

	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &d));
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

#endif /* TEST_PDL_ACK_H */
