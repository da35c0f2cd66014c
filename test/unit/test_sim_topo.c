/* SPDX-License-Identifier: BSD-3-Clause */

/* Topologies: all hosts reach each other, over the existing paths. */

#include "test_sim.h"

#define PORTS 64
#define LEN   200

struct shape {
	const char *type, *hosts, *leaves, *spines;
	uint32_t nb_switches;
};

static const struct shape shapes[] = {
	{"pair", "2", "2", "2", 0},
	{"star", "2", "2", "2", 1},
	{"star", "7", "2", "2", 1},
	{"dumbbell", "2", "2", "2", 2},
	{"dumbbell", "5", "2", "2", 2},
	{"dumbbell", "8", "2", "2", 2},
	{"leaf-spine", "2", "1", "1", 2},
	{"leaf-spine", "2", "2", "3", 5},
	{"leaf-spine", "6", "1", "2", 3},
	{"leaf-spine", "7", "3", "2", 5},
	{"leaf-spine", "6", "5", "2", 7},
	{"leaf-spine", "5", "5", "3", 8},
	{"leaf-spine", "16", "4", "4", 8},
};

static struct sim_world *
network(const struct shape *s, const char *more)
{
	char words[5][64];

	snprintf(words[0], sizeof(words[0]), "topology.type=%s", s->type);
	snprintf(words[1], sizeof(words[1]), "topology.hosts=%s", s->hosts);
	snprintf(words[2], sizeof(words[2]), "topology.leaves=%s", s->leaves);
	snprintf(words[3], sizeof(words[3]), "topology.spines=%s", s->spines);
	return test_sim_network(WORDS(words[0], words[1], words[2], words[3], more));
}

/* ---- structure ---- */

NET_CASE(san_sim_topo_create__links_both_ways)
{
	UNIT_EACH(r, shapes) {
		struct sim_world *w = network(r, NULL);

		for (uint32_t i = 0; i < w->nb_links; i++) {
			const struct sim_link *l = &w->links[i], *back = &w->links[i ^ 1];
			bool at_host = l->from < w->nb_hosts || l->to < w->nb_hosts;

			assert_int_equal(l->id, i);
			assert_true(l->from < w->nb_hosts + r->nb_switches);
			assert_int_equal(l->from, back->to);
			assert_int_equal(l->to, back->from);
			assert_int_not_equal(l->from, l->to);
			assert_ptr_equal(l->conf, at_host ? &w->conf.edge : &w->conf.core);
			for (uint32_t k = 0; k < i; k++)
				assert_true(w->links[k].from != l->from || w->links[k].to != l->to);
		}
		for (uint32_t i = 0; i < w->nb_hosts; i++)
			assert_int_equal(san_sim_topo_uplink(w, i)->from, i);
		test_sim_network_free();
	}
}

/* Cables of 1, 1, 2, 4, 8 us; those between switches are as long as they were. */
NET_CASE(san_sim_topo_create__doubling)
{
	struct shape shape = {"dumbbell", "5", "2", "2"};
	struct sim_world *w = network(&shape, "link.doubling=on");

	for (uint32_t i = 0; i < w->nb_links; i++)
		assert_true(w->links[i].conf->delay_ns + w->links[i].more_ns ==
			    (i < 4 || i >= 10 ? 1000 : 1000u << (i / 2 - 1)));
}

/* ---- forwarding ---- */

/* Send from a host; where it arrives, over how many links; the spine, if there is one. */
static uint32_t
walk(struct sim_world *w, uint32_t from, struct rte_mbuf *m, uint32_t *hops, uint32_t *spine)
{
	struct sim_link *l;

	*hops = 0;
	*spine = UINT32_MAX;
	test_sim_send(w, san_sim_topo_uplink(w, from), m);
	while ((m = test_sim_arrival(w, &l)) != NULL) {
		(*hops)++;
		assert_true(*hops < 10);
		if (l->to < w->nb_hosts) {
			rte_pktmbuf_free(m);
			return l->to;
		}
		if (l->to >= w->nb_hosts + w->conf.topo.leaves)
			*spine = l->to - w->nb_hosts - w->conf.topo.leaves;
		san_sim_topo_arrive(w, l, m);
	}
	return UINT32_MAX;
}

static uint32_t
expected_hops(const struct sim_world *w, uint32_t from, uint32_t to)
{
	const struct sim_topo_conf *t = &w->conf.topo;
	uint32_t edges = t->type == SIM_TOPO_DUMBBELL ? 2 : t->leaves;
	uint32_t each = (t->hosts + edges - 1) / edges;

	if (t->type == SIM_TOPO_PAIR)
		return 1;
	if (t->type == SIM_TOPO_STAR || from / each == to / each)
		return 2;
	return t->type == SIM_TOPO_DUMBBELL ? 3 : 4;
}

static void
everybody_reaches_everybody(struct sim_world *w)
{
	uint32_t hops, spine;

	for (uint32_t from = 0; from < w->nb_hosts; from++) {
		for (uint32_t to = 0; to < w->nb_hosts; to++) {
			if (from == to)
				continue;
			for (uint32_t port = 0; port < 4; port++) {
				struct rte_mbuf *m =
					test_sim_frame(w, from, to, (uint16_t)(50000 + port), LEN);

				assert_int_equal(walk(w, from, m, &hops, &spine), to);
				assert_int_equal(hops, expected_hops(w, from, to));
			}
		}
	}
}

NET_CASE(san_sim_topo_arrive__everybody_reaches_everybody)
{
	UNIT_EACH(r, shapes) {
		struct sim_world *w = network(r, NULL);

		everybody_reaches_everybody(w);
		test_sim_network_free();
		w = network(r, "host.ipv6=yes");
		everybody_reaches_everybody(w);
		test_sim_network_free();
	}
}

/* A neighbour request reaches only the host that is asked for. */
NET_CASE(san_sim_topo_arrive__arp)
{
	struct sim_world *w = network(&(struct shape){"leaf-spine", "7", "3", "2"}, NULL);
	uint32_t hops, spine;

	for (uint32_t to = 1; to < w->nb_hosts; to++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(w->net.pool);
		struct rte_ether_hdr *eth =
			(void *)rte_pktmbuf_append(m, sizeof(*eth) + sizeof(struct rte_arp_hdr));
		struct rte_arp_hdr *arp = (void *)(eth + 1);
		struct san_ip ip;

		memset(eth, 0, m->data_len);
		memset(&eth->dst_addr, 0xff, sizeof(eth->dst_addr));
		eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP);
		san_sim_core_ip(&ip, to, w->conf.host.ipv6);
		memcpy(&arp->arp_data.arp_tip, &ip.b[12], sizeof(arp->arp_data.arp_tip));
		assert_int_equal(walk(w, 0, m, &hops, &spine), to);
	}
}

NET_CASE(san_sim_topo_arrive__neighbour_solicitation)
{
	struct sim_world *w = network(&(struct shape){"star", "7", "2", "2"}, "host.ipv6=yes");
	uint32_t hops, spine;

	for (uint32_t to = 1; to < w->nb_hosts; to++) {
		struct rte_mbuf *m = test_sim_frame(w, 0, to, 0, 14 + 40 + 24 + 8);
		struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
		struct san_ip ip;

		memcpy(&eth->dst_addr, "\x33\x33\xff\0\0", sizeof(eth->dst_addr) - 1);
		san_sim_core_ip(&ip, to, w->conf.host.ipv6);
		memcpy((uint8_t *)(eth + 1) + sizeof(struct rte_ipv6_hdr) + 8, ip.b, sizeof(ip.b));
		assert_int_equal(walk(w, 0, m, &hops, &spine), to);
	}
}

/* A corrupted address belongs to no host, and the packet is dropped. */
NET_CASE(san_sim_topo_arrive__nobodys_packets)
{
	struct sim_world *w = network(&(struct shape){"leaf-spine", "7", "3", "2"}, NULL);
	uint32_t hops, spine;
	struct rte_mbuf *m;

	assert_int_equal(walk(w, 0, test_sim_frame(w, 0, 7, 1, LEN), &hops, &spine), UINT32_MAX);
	assert_int_equal(walk(w, 0, test_sim_frame(w, 0, UINT32_MAX, 1, LEN), &hops, &spine),
			 UINT32_MAX);
	/* whichever bit it is, it arrives somewhere or nowhere, and is freed */
	for (uint32_t bit = 0; bit < 60 * 8; bit++) {
		m = test_sim_frame(w, 0, 6, 1, 60);
		rte_pktmbuf_mtod(m, uint8_t *)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		walk(w, 0, m, &hops, &spine);
	}
}

/* ---- ECMP ---- */

static void
ports_over_spines(struct sim_world *w, uint32_t from, uint32_t to)
{
	uint32_t used[4] = {0}, port, again, hops, spine, first;

	for (port = 0; port < PORTS; port++) {
		first = UINT32_MAX;
		for (again = 0; again < 3; again++) {
			uint16_t len = (uint16_t)(LEN + 64 * again); /* not its length */
			struct rte_mbuf *m =
				test_sim_frame(w, from, to, (uint16_t)(50000 + port), len);

			assert_int_equal(walk(w, from, m, &hops, &spine), to);
			assert_true(spine < 4);
			assert_true(first == UINT32_MAX || first == spine);
			first = spine;
		}
		used[first]++;
	}
	for (spine = 0; spine < 4; spine++)
		assert_in_range(used[spine], PORTS / 16, PORTS / 2);
}

NET_CASE(san_sim_topo_arrive__flows_over_spines)
{
	static const struct shape shape = {"leaf-spine", "8", "2", "4"};
	struct sim_world *w = network(&shape, NULL);

	ports_over_spines(w, 0, 4);
	ports_over_spines(w, 4, 0);
	ports_over_spines(w, 3, 7);
	w = network(&shape, "host.ipv6=yes");
	ports_over_spines(w, 0, 4);
}

/* ---- places ---- */

/* Links of a place as "from-to", in order. */
static void
assert_place(struct sim_world *w, const char *where, const char *want)
{
	char got[512] = "";
	struct sim_link *l;
	uint32_t i = 0;

	assert_true(san_sim_topo_is_place(w, where));
	while ((l = san_sim_topo_match(w, where, &i)) != NULL)
		snprintf(&got[strlen(got)], sizeof(got) - strlen(got), " %u-%u", l->from, l->to);
	FAIL_IF(strcmp(got, want) != 0, "%s is%s, not%s", where, got, want);
}

NET_CASE(san_sim_topo_match__places)
{
	struct sim_world *w = network(&(struct shape){"pair", "2", "2", "2"}, NULL);

	assert_place(w, "all", " 0-1 1-0");
	assert_place(w, "host:0", " 0-1 1-0");
	assert_place(w, "host:0:up", " 0-1");
	assert_place(w, "host:0:down", " 1-0");
	w = network(&(struct shape){"star", "3", "2", "2"}, NULL);
	assert_place(w, "all", " 0-3 3-0 1-3 3-1 2-3 3-2");
	assert_place(w, "host:2", " 2-3 3-2");
	assert_place(w, "host:2:up", " 2-3");
	assert_place(w, "host:2:down", " 3-2");
	w = network(&(struct shape){"dumbbell", "2", "2", "2"}, NULL);
	assert_place(w, "all", " 0-2 2-0 1-3 3-1 2-3 3-2");
	assert_place(w, "trunk", " 2-3 3-2");
	assert_place(w, "trunk:up", " 2-3");
	assert_place(w, "trunk:down", " 3-2");
	w = network(&(struct shape){"leaf-spine", "2", "2", "2"}, NULL);
	assert_place(w, "all", " 0-2 2-0 1-3 3-1 2-4 4-2 2-5 5-2 3-4 4-3 3-5 5-3");
	assert_place(w, "host:1:down", " 3-1");
	assert_place(w, "spine:0", " 2-4 4-2 3-4 4-3");
	assert_place(w, "spine:1:up", " 5-2 5-3");
	assert_place(w, "spine:1:down", " 2-5 3-5");
}

NET_CASE(san_sim_topo_match__no_places)
{
	static const char *const wrong[] = {"", "al", "all2", "ALL", "host", "host:", "host:9",
					    "host:x", "host:1x", "host:-1", "host:1:sideways",
					    "host:1:up:up", "host:1:upp", "host:4294967296",
					    "nobody", ":up", "spine", "spine:2", "spine:0x",
					    "spine:0:left", "trunk", "trunk:up", "leaf:0", "0-2"};
	struct sim_world *w = network(&(struct shape){"leaf-spine", "4", "2", "2"}, NULL);
	uint32_t n;

	UNIT_EACH(r, wrong) {
		FAIL_IF(san_sim_topo_is_place(w, *r), "\"%s\" is a place", *r);
		n = 0;
		assert_null(san_sim_topo_match(w, *r, &n));
	}
	w = network(&(struct shape){"dumbbell", "4", "2", "2"}, NULL);
	assert_false(san_sim_topo_is_place(w, "spine:0"));
	assert_false(san_sim_topo_is_place(w, "trunks"));
	assert_false(san_sim_topo_is_place(w, "trunk:0"));
	w = network(&(struct shape){"star", "4", "2", "2"}, NULL);
	assert_false(san_sim_topo_is_place(w, "spine:0"));
	assert_false(san_sim_topo_is_place(w, "trunk"));
}
