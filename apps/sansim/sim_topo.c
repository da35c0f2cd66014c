/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Topology and forwarding. Links are numbered so that none has to be searched: host h sends on 2h
 * and receives on 2h + 1 (a pair shares one cable). Those between switches follow, two per cable.
 */

#include <rte_arp.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "sim_world.h"

#define DOUBLE_MAX 20u /* longest cable, log2 of link.delay */
#define ND_TARGET  8   /* offset of the target in a solicitation, after the ICMPv6 header */

/* ---- building ---- */

static void
add_link(struct sim_world *w, const struct sim_link_conf *conf, uint32_t from, uint32_t to)
{
	struct sim_link *l = &w->links[w->nb_links];

	san_sim_link_init(l, w->nb_links++, conf);
	l->from = from;
	l->to = to;
	/* a host's loop limits its queue (sim_host.c), without drops */
	if (from < w->nb_hosts)
		l->buffer_bytes = UINT32_MAX;
}

static void
add_cable(struct sim_world *w, const struct sim_link_conf *conf, uint32_t a, uint32_t b)
{
	add_link(w, conf, a, b);
	add_link(w, conf, b, a);
}

/* Index of the switch to which a host is connected. */
static uint32_t
edge_of(const struct sim_world *w, uint32_t host)
{
	const struct sim_topo_conf *t = &w->conf.topo;
	uint32_t edges = t->type == SIM_TOPO_DUMBBELL ? 2 : t->leaves;

	return t->type == SIM_TOPO_STAR ? 0 : host / ((w->nb_hosts + edges - 1) / edges);
}

int
san_sim_topo_create(struct sim_world *w)
{
	const struct sim_topo_conf *t = &w->conf.topo;
	uint32_t i, k, first = t->hosts;

	w->nb_hosts = t->hosts;
	w->links = calloc(2 * (t->hosts + 1 + (size_t)t->leaves * t->spines), sizeof(*w->links));
	if (w->links == NULL)
		return -ENOMEM;
	if (t->type == SIM_TOPO_PAIR) {
		add_cable(w, &w->conf.edge, 0, 1);
		return 0;
	}
	for (i = 0; i < t->hosts; i++) {
		add_cable(w, &w->conf.edge, i, first + edge_of(w, i));
		if (t->doubling && i > 1)
			w->links[2 * i].more_ns = w->links[2 * i + 1].more_ns =
				w->conf.edge.delay_ns * ((1u << RTE_MIN(i - 1, DOUBLE_MAX)) - 1);
	}
	if (t->type == SIM_TOPO_DUMBBELL)
		add_cable(w, &w->conf.core, first, first + 1);
	if (t->type == SIM_TOPO_LEAF_SPINE)
		for (i = 0; i < t->leaves; i++)
			for (k = 0; k < t->spines; k++)
				add_cable(w, &w->conf.core, first + i, first + t->leaves + k);
	return 0;
}

struct sim_link *
san_sim_topo_uplink(struct sim_world *w, uint32_t host)
{
	return &w->links[w->conf.topo.type == SIM_TOPO_PAIR ? host : 2 * host];
}

/* ---- forwarding ---- */

/*
 * The host that a packet is for. A neighbor request goes only to the host that it names, like in
 * fabrics that suppress floods, so thousands of hosts need no copies.
 */
static uint32_t
topo_destination_of(const struct sim_world *w, const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const uint8_t *ip = (const uint8_t *)(eth + 1);
	uint32_t id;

	if (!rte_is_multicast_ether_addr(&eth->dst_addr)) {
		memcpy(&id, &eth->dst_addr.addr_bytes[2], sizeof(id));
		return rte_be_to_cpu_32(id);
	}
	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP)) {
		id = ((const struct rte_arp_hdr *)(const void *)ip)->arp_data.arp_tip;
		return (rte_be_to_cpu_32(id) & 0xffffff) - 1;
	}
	if (m->data_len < sizeof(*eth) + sizeof(struct rte_ipv6_hdr) + ND_TARGET + 16)
		return w->nb_hosts;
	memcpy(&id, ip + sizeof(struct rte_ipv6_hdr) + ND_TARGET + 12, sizeof(id));
	return rte_be_to_cpu_32(id) - 1;
}

/* Choose one of the equal paths from *sw* to *host* by the packet's flow. */
static struct sim_link *
topo_next_link(struct sim_world *w, uint32_t sw, uint32_t host, const struct rte_mbuf *m)
{
	const struct sim_topo_conf *t = &w->conf.topo;
	uint32_t own = sw - w->nb_hosts, want = edge_of(w, host);
	uint32_t trunks = 2 * w->nb_hosts;

	if (own == want)
		return &w->links[2 * host + 1];
	if (t->type == SIM_TOPO_DUMBBELL)
		return &w->links[trunks + own];
	if (own >= t->leaves) /* a spine: forward to the host's leaf */
		return &w->links[trunks + 2 * (want * t->spines + own - t->leaves) + 1];
	return &w->links[trunks + 2 * (own * t->spines + san_sim_pkt_flow(m) % t->spines)];
}

void
san_sim_topo_arrive(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m)
{
	uint32_t host;

	if (l->to < w->nb_hosts) {
		san_sim_host_rx(w, &w->hosts[l->to], m);
		return;
	}
	host = topo_destination_of(w, m); /* of a corrupted packet it may be any host */
	if (host >= w->nb_hosts) {
		rte_pktmbuf_free(m);
		return;
	}
	san_sim_link_send(&w->net, topo_next_link(w, l->to, host, m), m, w->now_ns);
}

/* ---- places ---- */

struct sim_link *
san_sim_topo_match(struct sim_world *w, const char *where, uint32_t *i)
{
	const struct sim_topo_conf *t = &w->conf.topo;
	struct sim_place p;

	if (!san_sim_conf_place(where, &p))
		return NULL;

	const struct {
		bool exists;
		uint32_t node; /* its host or switch, unless it is all */
	} places[] = {
		[SIM_PLACE_ALL] = {true, 0},
		[SIM_PLACE_HOST] = {p.id < w->nb_hosts, p.id},
		[SIM_PLACE_SPINE] = {t->type == SIM_TOPO_LEAF_SPINE && p.id < t->spines,
				     w->nb_hosts + t->leaves + p.id},
		[SIM_PLACE_TRUNK] = {t->type == SIM_TOPO_DUMBBELL, w->nb_hosts},
	};
	uint32_t node = places[p.kind].node;

	while (places[p.kind].exists && *i < w->nb_links) {
		struct sim_link *l = &w->links[(*i)++];

		if (p.kind == SIM_PLACE_TRUNK && (l->from < w->nb_hosts || l->to < w->nb_hosts))
			continue;
		if (p.kind == SIM_PLACE_ALL || (p.from && l->from == node) ||
		    (p.to && l->to == node))
			return l;
	}
	return NULL;
}

bool
san_sim_topo_is_place(struct sim_world *w, const char *where)
{
	uint32_t i = 0;

	return san_sim_topo_match(w, where, &i) != NULL;
}
