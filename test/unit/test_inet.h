/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file One host per test, and the pools of its mbufs. A test that leaks an mbuf fails. */

#include "unit.h"

#include <errno.h>

#include "inet_host.h"

#define MS SAN_NS_PER_MS

/** Mbufs of the pool; a test that needs more defines it before. */
#ifndef TEST_INET_MBUFS
#define TEST_INET_MBUFS 255
#endif

static struct rte_mempool *pool, *small_pool; /* small: mbufs that most packets do not fit in */
static struct inet_host h;
static struct san_inet_conf conf; /* changed by a test before it starts the host */
static struct inet_frame f, out;

/** The host ends, if it runs, and has the default configuration. Creates the pools once. */
static inline void
test_inet_conf(void)
{
	if (pool == NULL) {
		pool = test_eal_pool("inet", TEST_INET_MBUFS, 2048);
		small_pool = test_eal_pool("inet_small", 63, 128);
	}
	san_inet_destroy(h.in);
	h.in = NULL;
	inet_host_conf(pool, &conf);
}

static inline void
test_inet_start(void)
{
	inet_host_init(&h, pool, &conf);
}

static inline void
teardown(void)
{
	san_inet_destroy(h.in);
	h.in = NULL;
	assert_int_equal(rte_mempool_in_use_count(pool) + rte_mempool_in_use_count(small_pool), 0);
}

/** Take all that the host sends. Returns the number of frames. */
static inline uint32_t
drain(void)
{
	uint32_t n = 0;

	while (inet_host_tx(&h, &out))
		n++;
	return n;
}

static inline void
assert_tx(void)
{
	assert_true(inet_host_tx(&h, &out));
}

static inline void
assert_no_tx(void)
{
	assert_false(inet_host_tx(&h, &out));
}

/** The host receives *f* with this result. */
static inline void
assert_rx(enum san_drop want)
{
	assert_int_equal(inet_host_rx(&h, &f), want);
}

/** ... and sends nothing. */
static inline void
assert_silent(enum san_drop want)
{
	assert_rx(want);
	assert_no_tx();
}

/** The host receives *f*, and sends *out*. */
static inline void
assert_answered(void)
{
	assert_rx(SAN_DROP_NONE);
	assert_tx();
}

/** The checksum of *f*, whose IPv4 header has *len* bytes. */
static inline void
seal_ip(uint32_t len)
{
	inet_set16(f.b + 24, 0);
	inet_set16(f.b + 24, inet_sum(f.b + 14, len, 0));
}

static struct rte_mbuf *taken[TEST_INET_MBUFS];
static uint32_t nb_taken;

/** Leave no mbuf in the pool. */
static inline void
take_mbufs(void)
{
	while (nb_taken < TEST_INET_MBUFS && (taken[nb_taken] = rte_pktmbuf_alloc(pool)) != NULL)
		nb_taken++;
}

/** Return at most *n* of them. */
static inline void
give_mbufs(uint32_t n)
{
	for (; n > 0 && nb_taken > 0; n--)
		rte_pktmbuf_free(taken[--nb_taken]);
}

/** An ARP answer of *who* arrives. */
static inline void
answer(const char *who, const uint8_t mac[6])
{
	inet_make_arp(&f, 2, mac, who, "10.0.0.1");
	assert_rx(SAN_DROP_NONE);
}

static inline int
resolve(const char *text, struct rte_ether_addr *mac)
{
	struct san_ip ip = inet_ip(text);

	return san_inet_route_resolve(h.in, &ip, false, h.now_ns, mac);
}

static inline int
resolves(const char *text)
{
	struct rte_ether_addr mac;

	return resolve(text, &mac);
}

/** *text* is a neighbour with the MAC address *want*. */
static inline void
assert_at(const char *text, const uint8_t want[6])
{
	struct rte_ether_addr mac;

	assert_int_equal(resolve(text, &mac), 0);
	assert_memory_equal(&mac, want, 6);
}

/** The text of address *i* behind *prefix*, until the next call. */
static inline const char *
numbered(const char *prefix, unsigned int i)
{
	static char text[32];

	snprintf(text, sizeof(text), "%s%u", prefix, i);
	return text;
}

static inline int
join(const char *text)
{
	struct san_ip ip = inet_ip(text);

	return san_inet_group_join(h.in, &ip, h.now_ns);
}

static inline int
leave(const char *text)
{
	struct san_ip ip = inet_ip(text);

	return san_inet_group_leave(h.in, &ip, h.now_ns);
}

/** A case of a file that has a setup(), which starts the host. */
#define INET_CASE(name) UNIT_CASE_OWN(name, setup, teardown)
