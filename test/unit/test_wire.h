/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Fixtures of the tests of lib/wire: samples as packets, and what the parser returns for them.
 */

#include "san_prng.h"
#include "test_eal.h"
#include "unit.h"
#include "wire_priv.h"
#include "wire_sample.h"

static struct san_wire_pkt got; /* by the last parse() */
static struct san_wire_ack got_ack;

static inline enum san_drop
parse(struct rte_mbuf *m)
{
	return san_wire_parse(m, SAN_WIRE_PORT, &got, &got_ack);
}

/** The sample *name*, built and sealed. */
static inline struct rte_mbuf *
sample(const char *name, bool v6)
{
	return wire_sample_build(test_pool(), wire_sample_get(name), v6);
}

static inline uint8_t *
byte_at(struct rte_mbuf *m, uint32_t off)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, off);
}

/** No case leaks an mbuf. */
static inline void
teardown(void)
{
	assert_int_equal(rte_mempool_in_use_count(test_pool()), 0);
}
