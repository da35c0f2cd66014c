/* SPDX-License-Identifier: BSD-3-Clause */

/* MAC addresses that change during open connections: a peer's, and our own. (RT-38) */

#include "core_priv.h"

/* Shorter silences are caused by congestion and loss: the neighbour entry stays valid. */
#define SILENT_NS (100 * SAN_NS_PER_MS)

static __rte_noinline void
ask_again(struct san_core *core, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct rte_ether_addr mac;

	if (rte_is_zero_ether_addr(&c->path.dst_mac)) /* cm is requesting it */
		return;
	core->inet_deadline_ns = 0;
	if (san_inet_route_resolve_again(core->inet, &c->path.dst, now_ns, &mac) == 0)
		c->path.dst_mac = mac;
}

/*
 * A silent peer, or the gateway to it, may have another MAC address: its IP address may have moved
 * to another machine. The neighbour table is asked only then, so packets cost nothing more.
 */
void
san_core_mac_follow_peer(struct san_core *core, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (now_ns >= c->last_rx_ns + SILENT_NS && c->state != SAN_CONN_FREE)
		ask_again(core, c, now_ns);
}

/*
 * A peer may not be silent although its MAC address changed: if only the peer sends, it receives
 * none of our ACKs. Then it sends PROBEs and duplicates from a MAC address other than the one we
 * send to. A router may do that, too, so the address is verified and not just taken over.
 */
void
san_core_mac_follow_deaf(struct san_core *core, struct san_pdl_conn *c, const struct rte_mbuf *m,
			 uint64_t now_ns)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	if (!rte_is_same_ether_addr(&eth->src_addr, &c->path.dst_mac))
		ask_again(core, c, now_ns);
}

void
san_core_mac_set(struct san_core *core, const struct rte_ether_addr *mac, bool announce)
{
	const struct rte_ether_addr old = core->conf.inet.mac;

	core->conf.inet.mac = core->conf.cm.path.src_mac = *mac;
	san_pdl_set_mac(core->pdl, &old, mac);
	san_cm_set_mac(core->cm, mac);
	san_inet_own_set_mac(core->inet, mac, announce);
	core->inet_deadline_ns = 0;
}
