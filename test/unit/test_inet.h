/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_INET_H
#define TEST_INET_H

/**
 * @file
 * One host per test, and the pools of its mbufs. A test that leaks an mbuf fails.
 */

#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "inet_host.h"

#define MS SAN_NS_PER_MS

/** Mbufs of the pool; a test that needs more defines it before. */
#ifndef TEST_INET_MBUFS
#define TEST_INET_MBUFS 255
#endif

static struct rte_mempool *pool, *small_pool; /* small: mbufs that most packets do not fit in */
static struct inet_host h;
static struct inet_frame f, out;

/** The default configuration of the host. Creates the pools at the first call. */
static inline void
test_inet_conf(struct san_inet_conf *conf)
{
	if (pool == NULL) {
		pool = test_eal_pool("inet", TEST_INET_MBUFS, 2048);
		small_pool = test_eal_pool("inet_small", 63, 128);
	}
	inet_host_conf(pool, conf);
}

static inline int
teardown(void **state)
{
	(void)state;
	san_inet_destroy(h.in);
	return (int)(rte_mempool_in_use_count(pool) + rte_mempool_in_use_count(small_pool));
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

/** An ARP answer of *who* arrives. */
static inline void
answer(const char *who, const uint8_t mac[6])
{
	inet_make_arp(&f, 2, mac, who, "10.0.0.1");
	assert_int_equal(inet_host_rx(&h, &f), SAN_DROP_NONE);
}

static inline int
resolve(const char *text, struct rte_ether_addr *mac)
{
	struct san_ip ip = inet_ip(text);

	return san_inet_route_resolve(h.in, &ip, h.now_ns, mac);
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
#define INET_CASE(name) UNIT_CASE_WITH(name, setup, teardown)

#endif /* TEST_INET_H */
