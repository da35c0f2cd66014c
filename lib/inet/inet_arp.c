/* SPDX-License-Identifier: BSD-3-Clause */

/* ARP over Ethernet for IPv4: requests, replies, learning (RFC 826). (RT-31) */

#include <rte_arp.h>

#include "inet_priv.h"

static void
put_arp(struct san_inet *in, const struct rte_ether_addr *to, uint16_t op,
	const struct san_ip *sip, const struct san_ip *tip)
{
	struct rte_mbuf *m =
		san_inet_out_frame(in, RTE_BE16(RTE_ETHER_TYPE_ARP), sizeof(struct rte_arp_hdr));
	struct rte_ether_hdr *eth;
	struct rte_arp_hdr *arp;

	if (m == NULL)
		return; /* both sides repeat their requests */
	eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	eth->dst_addr = *to;
	arp = (struct rte_arp_hdr *)(eth + 1);
	arp->arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER);
	arp->arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	arp->arp_hlen = RTE_ETHER_ADDR_LEN;
	arp->arp_plen = sizeof(arp->arp_data.arp_sip);
	arp->arp_opcode = rte_cpu_to_be_16(op);
	arp->arp_data.arp_sha = in->conf.mac;
	memset(&arp->arp_data.arp_tha, 0, sizeof(arp->arp_data.arp_tha));
	if (op == RTE_ARP_OP_REPLY)
		arp->arp_data.arp_tha = *to;
	memcpy(&arp->arp_data.arp_sip, sip->b + INET_V4_OFF, sizeof(arp->arp_data.arp_sip));
	memcpy(&arp->arp_data.arp_tip, tip->b + INET_V4_OFF, sizeof(arp->arp_data.arp_tip));
	san_inet_out_add(in, m);
}

void
san_inet_arp_ask(struct san_inet *in, const struct san_ip *src, const struct san_ip *target,
		 const struct rte_ether_addr *mac)
{
	static const struct rte_ether_addr everybody = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

	put_arp(in, mac != NULL ? mac : &everybody, RTE_ARP_OP_REQUEST, src, target);
}

enum san_drop
san_inet_arp_rx(struct san_inet *in, const struct inet_rx *rx)
{
	struct inet_claim claim = {.override = true};
	struct rte_arp_hdr arp;
	struct san_ip target;

	if (!san_inet_ip_copy(rx->m, INET_ETH_LEN, sizeof(arp), &arp) ||
	    arp.arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) ||
	    arp.arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
	    arp.arp_hlen != RTE_ETHER_ADDR_LEN || arp.arp_plen != sizeof(rte_be32_t))
		return SAN_DROP_INET_MALFORMED;
	if (arp.arp_opcode != RTE_BE16(RTE_ARP_OP_REQUEST) &&
	    arp.arp_opcode != RTE_BE16(RTE_ARP_OP_REPLY))
		return SAN_DROP_INET_UNWANTED;
	san_wire_ip_from_v4(&claim.ip, &arp.arp_data.arp_sip);
	san_wire_ip_from_v4(&target, &arp.arp_data.arp_tip);
	claim.mac = arp.arp_data.arp_sha;
	if (san_inet_route_claimed(in, &claim.ip, &claim.mac, rx->now_ns))
		return SAN_DROP_NONE;
	/* A host that requests our address will be talked to: store it, as the RFC says. */
	claim.create = arp.arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST) &&
		san_inet_route_is_local(in, &target);
	san_inet_neigh_learn(in, rx, &claim);
	if (!claim.create)
		return SAN_DROP_NONE;
	if (!rte_is_valid_assigned_ether_addr(&claim.mac))
		return SAN_DROP_INET_MALFORMED;
	if (san_inet_may_answer(in, INET_ANSWER_NEIGH, &claim.ip, rx->now_ns))
		put_arp(in, &claim.mac, RTE_ARP_OP_REPLY, &target, &claim.ip);
	return SAN_DROP_NONE;
}
