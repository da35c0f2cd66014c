/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Simulated networks for tests: scenarios from words, a network without programs, and frames to
 * send through it.
 */

#include <errno.h>

#include <rte_arp.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#define TEST_EAL_MB "512"
#include "test_eal.h"

#include "sim_world.h"
#include "unit.h"

#define TEST_SIM_MBUFS    8191
#define TEST_SIM_ROOM     2048
#define TEST_SIM_NETWORKS 8

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/** The default scenario with these words ("section.key=value", NULL at the end), checked. */
static inline void
test_sim_conf(struct sim_conf *conf, const char *const *words)
{
	char err[512];

	san_sim_conf_default(conf);
	for (; *words != NULL; words++)
		FAIL_IF(san_sim_conf_set(conf, *words, err, sizeof(err)) != 0, "%s", err);
	FAIL_IF(san_sim_conf_rules_check(conf, err, sizeof(err)) != 0, "%s", err);
}

static struct sim_world *test_sim_networks[TEST_SIM_NETWORKS]; /* not freed yet */
static unsigned int test_sim_nb_networks;

/** Links and switches of a scenario; frames that reach a host are freed there. */
static inline struct sim_world *
test_sim_network(const char *const *words)
{
	struct sim_world *w = calloc(1, sizeof(*w));
	static unsigned int nb_pools; /* a pool left by a failed test does not collide */
	char name[RTE_MEMPOOL_NAMESIZE];

	assert_non_null(w);
	test_sim_conf(&w->conf, words);
	san_sim_link_net_init(&w->net, w->conf.run.seed);
	assert_int_equal(san_sim_topo_create(w), 0);
	w->hosts = calloc(w->nb_hosts, sizeof(*w->hosts));
	assert_non_null(w->hosts);
	snprintf(name, sizeof(name), "network%u", nb_pools++);
	w->net.pool = test_eal_pool(name, TEST_SIM_MBUFS, TEST_SIM_ROOM);
	assert_true(test_sim_nb_networks < TEST_SIM_NETWORKS);
	test_sim_networks[test_sim_nb_networks++] = w;
	return w;
}

/** Free the newest network. Asserts that every mbuf was returned. */
static inline void
test_sim_network_free(void)
{
	struct sim_world *w = test_sim_networks[--test_sim_nb_networks];

	san_sim_link_net_fini(&w->net);
	assert_int_equal(rte_mempool_in_use_count(w->net.pool), 0);
	rte_mempool_free(w->net.pool);
	free(w->hosts);
	free(w->links);
	free(w);
}

static inline void
test_sim_free_networks(void)
{
	while (test_sim_nb_networks > 0)
		test_sim_network_free();
}

/** A case whose networks are freed behind it. */
#define NET_CASE(name) UNIT_CASE_OWN(name, NULL, test_sim_free_networks)

/** A valid UDP datagram between hosts, of *len* bytes with all headers. */
static inline struct rte_mbuf *
test_sim_frame(struct sim_world *w, uint32_t from, uint32_t to, uint16_t port, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->net.pool);
	struct rte_ether_hdr *eth;
	struct rte_udp_hdr *udp;
	struct san_ip src, dst;
	uint32_t id = rte_cpu_to_be_32(to);

	assert_non_null(m);
	eth = (void *)rte_pktmbuf_append(m, len);
	assert_non_null(eth);
	for (uint16_t i = 0; i < len; i++)
		((uint8_t *)eth)[i] = (uint8_t)(i * 7 + port);
	memset(eth, 0, sizeof(*eth) + sizeof(struct rte_ipv6_hdr) + sizeof(*udp));
	eth->src_addr.addr_bytes[0] = eth->dst_addr.addr_bytes[0] = 2;
	memcpy(&eth->dst_addr.addr_bytes[2], &id, sizeof(id));
	san_sim_core_ip(&src, from, w->conf.host.ipv6);
	san_sim_core_ip(&dst, to, w->conf.host.ipv6);
	if (w->conf.host.ipv6) {
		struct rte_ipv6_hdr *ip = (void *)(eth + 1);

		eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
		ip->vtc_flow = rte_cpu_to_be_32(6u << 28 | 2u << 20);
		ip->payload_len = rte_cpu_to_be_16((uint16_t)(len - sizeof(*eth) - sizeof(*ip)));
		ip->proto = 17;
		ip->hop_limits = 64;
		memcpy(&ip->src_addr, src.b, sizeof(ip->src_addr));
		memcpy(&ip->dst_addr, dst.b, sizeof(ip->dst_addr));
		udp = (void *)(ip + 1);
	} else {
		struct rte_ipv4_hdr *ip = (void *)(eth + 1);

		eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
		ip->version_ihl = 0x45;
		ip->type_of_service = 2;
		ip->total_length = rte_cpu_to_be_16((uint16_t)(len - sizeof(*eth)));
		ip->time_to_live = 64;
		ip->next_proto_id = 17;
		memcpy(&ip->src_addr, &src.b[12], sizeof(ip->src_addr));
		memcpy(&ip->dst_addr, &dst.b[12], sizeof(ip->dst_addr));
		ip->hdr_checksum = rte_ipv4_cksum(ip);
		udp = (void *)(ip + 1);
	}
	udp->src_port = rte_cpu_to_be_16(port);
	udp->dst_port = rte_cpu_to_be_16(4791);
	return m;
}

/** Queue a packet. The link owns it. */
static inline void
test_sim_send(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m)
{
	san_sim_link_send(&w->net, l, m, w->now_ns);
}

/** The next packet at the end of a link, and when; NULL: none. The caller frees it. */
static inline struct rte_mbuf *
test_sim_arrival(struct sim_world *w, struct sim_link **l)
{
	struct sim_event ev;

	if (!san_sim_event_pop(&w->net.events, &ev))
		return NULL;
	assert_int_equal(ev.kind, SIM_EV_ARRIVE);
	assert_true(ev.at_ns >= w->now_ns);
	w->now_ns = ev.at_ns;
	*l = &w->links[ev.obj];
	return ev.arg;
}

/* ---- whole worlds ---- */

/** A world with its programs; every invariant is checked after every round. Starts EAL. */
static inline void
test_sim_world(struct sim_world **w, const char *const *words)
{
	static const struct sim_watch no_watch;
	struct sim_conf conf;

	test_sim_conf(&conf, words);
	conf.run.check_every = 1;
	assert_int_equal(san_sim_world_create(&conf, &no_watch, w), 0);
}

static inline void
test_sim_assert_fine(const struct sim_world *w)
{
	FAIL_IF(w->failed, "%s", w->why);
}

/** Asserts that the checker of this name has failed with this text. */
static inline void
test_sim_assert_fails(const struct sim_world *w, const char *check, const char *text)
{
	size_t len = strlen(check);

	FAIL_IF(!w->failed, "%s does not notice", check);
	if (strncmp(w->why, check, len) != 0 || w->why[len] != ':' || strstr(w->why, text) == NULL)
		fail_msg("\"%s\" is not of %s, \"%s\"", w->why, check, text);
}
