/* SPDX-License-Identifier: BSD-3-Clause */

/* A neighbour table that other hosts have filled. (RT-36; inet_neigh.c) */

#include "test_inet.h"

#include <rte_cycles.h>

/* Cycles of a request from an unknown host, while the table is full with *max* hosts. */
static uint64_t
cost_of_new(uint32_t max)
{
	uint64_t start, least = UINT64_MAX;
	uint32_t who = 0;

	test_inet_conf();
	assert_int_equal(san_inet_addr_parse("10.0.0.1/8", &conf.addrs[0]), 0);
	conf.max_neighbours = max;
	test_inet_start();
	inet_make_arp(&f, 1, inet_peer_mac, "10.0.0.2", "10.0.0.1");
	for (uint32_t i = 0; i < max / 16 + 200; i++) {
		start = rte_rdtsc();
		for (uint32_t k = 0; k < 16; k++) {
			who++;
			f.b[29] = (uint8_t)(1 + (who >> 16));
			f.b[30] = (uint8_t)(who >> 8);
			f.b[31] = (uint8_t)who;
			inet_host_rx(&h, &f);
		}
		if (i > max / 16)
			least = RTE_MIN(least, rte_rdtsc() - start);
		h.now_ns += SAN_NS_PER_MS;
		drain();
	}
	return least / 16;
}

/* A full table costs as much as an empty one: nothing is searched. (RT-36) */
UNIT_CASE_OWN(table__costs_the_same_when_full, NULL, teardown)
{
	uint64_t small, large;

	small = cost_of_new(16);
	large = cost_of_new(1u << 16);
	/* cache misses make it slower, but a search would be a thousand times slower */
	if (large > 20 * small)
		fail_msg("of 16: %u cycles; of 65,536: %u", (unsigned int)small,
			 (unsigned int)large);
}

/*
 * A host that fills the table cannot put many hosts on one chain, because it does not know the
 * secret of the hash. (RT-36)
 */
UNIT_CASE_OWN(table__chains_are_short, NULL, teardown)
{
	struct san_ip ip = inet_ip("10.1.0.0");
	const struct inet_neigh *e;
	uint32_t n;

	test_inet_conf();
	assert_int_equal(san_inet_addr_parse("10.0.0.1/8", &conf.addrs[0]), 0);
	test_inet_start();
	for (uint32_t i = 0; i < conf.max_neighbours; i++) {
		memcpy(&ip.b[13], &i, 3);
		ip.b[15] |= 2;
		san_inet_route_resolve(h.in, &ip, false, h.now_ns, &(struct rte_ether_addr){{0}});
		drain();
	}
	for (uint32_t i = 0; i <= h.in->bucket_mask; i++) {
		n = 0;
		LIST_FOREACH(e, &h.in->buckets[i], in_bucket)
			n++;
		assert_in_range(n, 0, 9);
	}
}
