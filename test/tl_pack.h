/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two transaction sublayers that share packets (RT-34): fixtures and helpers of the
 * tests of packing.
 */

#include "tl_pair.h"

#define NEVER   SAN_SOLICIT_NEVER
#define PACKED  SAN_OP_PUSH_PACKED
#define PUSH(n) assert_int_equal(pair_push(n, SAN_KIND_PUSH, NEVER, 100), 0)
#define SEND(n) assert_int_equal(pair_push(n, SAN_KIND_SEND, NEVER, 100), 0)

static inline void
open_packed(bool ordered, bool relaxed)
{
	struct tl_link l = pair_link(ordered);

	l.relaxed = relaxed;
	l.pack = true;
	l.rnr_ms = 5;
	pair_open(&l, NULL);
}

static inline void
setup_packed(void)
{
	open_packed(true, false);
}

static inline void
setup_packed_unordered(void)
{
	open_packed(false, false);
}

static inline void
setup_packed_relaxed(void)
{
	open_packed(true, true);
}

static inline void
setup_many(void)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conf tl;

	l.pack = true;
	l.n = l.msg_limit = 128;
	l.mtu = 1400;
	san_tl_conf_default(&tl);
	pair_open(&l, &tl);
}

/* A copy of packet *i*, to arrive later. */
static inline struct tl_pkt
keep(uint32_t i)
{
	struct tl_pkt k = pair.out[i];

	k.m = tl_host_copy(&pair.h[0], k.m);
	return k;
}

/* A copy of it arrives at the target. */
static inline enum san_drop
arrive_copy(const struct tl_pkt *k)
{
	struct tl_pkt copy = *k;

	copy.m = tl_host_copy(&pair.h[1], k->m);
	return pair_arrive(1, copy);
}

/* The NACK that the target has to send arrives at the initiator. */
static inline void
xfer_nack(void)
{
	pair_tx(1);
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_NACK, 0)), SAN_DROP_NONE);
}

static inline void
assert_all_done(uint32_t n, uint32_t length)
{
	assert_int_equal(pair.f[1].nb_done, n);
	assert_int_equal(pair.f[0].nb_cmpl, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(pair.f[1].done[i], pair_rsn(i));
		assert_int_equal(pair.f[0].cookie[i], i);
		assert_int_equal(pair.f[0].status[i], SAN_ST_OK);
		assert_true(pair_has_bytes(i, length));
	}
}
