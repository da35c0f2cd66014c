/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Which lcore a packet may belong to, before it is parsed. Everything read here may be wrong or
 * forged; the lcore that gets the packet checks it. (SYS-1)
 */

#include <netinet/icmp6.h>
#include <netinet/in.h>

#include <rte_icmp.h>

#include "wire_priv.h"

#define VID_MASK 0xfff /* of a tag, besides priority and drop eligibility */

static uint32_t
wire_peek_mix_hash(uint32_t h, uint32_t word)
{
	h = (h ^ word) * 0x9e3779b1u;
	return h ^ h >> 15;
}

static uint32_t
mix_address(const uint8_t *addr, uint32_t len)
{
	uint32_t i, word, h = 0;

	for (i = 0; i < len; i += (uint32_t)sizeof(word)) {
		memcpy(&word, addr + i, sizeof(word));
		h = wire_peek_mix_hash(h, word);
	}
	return h;
}

static void
peek_cm(const struct rte_mbuf *m, const struct wire_bth *bth, uint32_t names_hash,
	struct san_wire_peek *out)
{
	const uint8_t *at = (const uint8_t *)((const struct wire_rt *)(bth + 1) + 1);
	const uint8_t *end = rte_pktmbuf_mtod_offset(m, const uint8_t *, rte_pktmbuf_data_len(m));
	struct san_wire_cm cm; /* in network order */

	if (at + sizeof(rte_le32_t) == end) /* only the ICRC follows: no payload */
		out->cm_msg = SAN_CM_RESET;
	if (at + SAN_WIRE_CM_LEN > end)
		return;
	memcpy(&cm, at, SAN_WIRE_CM_LEN);
	out->cm_msg = cm.msg;
	out->cm_cid = rte_be_to_cpu_32(cm.dst_cid);
	out->cm_attempt = wire_peek_mix_hash(wire_peek_mix_hash(names_hash, cm.src_cid), cm.xid);
}

bool
san_wire_peek(const struct rte_mbuf *m, uint16_t udp_port, struct san_wire_peek *out)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct wire_front_v4 *v4 = (const void *)eth;
	const struct wire_front_v6 *v6 = (const void *)eth;
	const struct rte_udp_hdr *udp;
	const struct wire_bth *bth;
	bool is_v4;

	is_v4 = rte_pktmbuf_data_len(m) >= sizeof(*v4) &&
		eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) &&
		v4->ip.version_ihl == RTE_IPV4_VHL_DEF && v4->ip.next_proto_id == IPPROTO_UDP;
	if (!is_v4 &&
	    !(rte_pktmbuf_data_len(m) >= sizeof(*v6) &&
	      eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) &&
	      v6->ip.proto == IPPROTO_UDP))
		return false;
	udp = is_v4 ? &v4->udp : &v6->udp;
	bth = is_v4 ? &v4->bth : &v6->bth;
	if (udp->dst_port != rte_cpu_to_be_16(udp_port))
		return false;
	out->cid = san_wire_bth_cid(bth);
	out->cm_msg = 0;
	if (unlikely(out->cid == SAN_WIRE_CID_CM) && bth->opcode == SAN_OP_CM)
		peek_cm(m, bth,
			is_v4 ? mix_address((const uint8_t *)&v4->ip.src_addr, 4) :
				mix_address((const uint8_t *)&v6->ip.src_addr, 16),
			out);
	return true;
}

bool
san_wire_peek_is_neigh(const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv6_hdr *ip = (const void *)(eth + 1);
	const uint8_t *type = (const uint8_t *)(ip + 1);

	if (rte_pktmbuf_data_len(m) < sizeof(*eth))
		return false;
	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP))
		return true;
	return rte_pktmbuf_data_len(m) > sizeof(*eth) + sizeof(*ip) &&
		eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) &&
		ip->proto == IPPROTO_ICMPV6 &&
		(*type == ND_NEIGHBOR_SOLICIT || *type == ND_NEIGHBOR_ADVERT);
}

bool
san_wire_peek_untag(struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_vlan_hdr *tag = (const void *)(eth + 1);

	if (rte_pktmbuf_data_len(m) < sizeof(*eth) + sizeof(*tag) ||
	    eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_VLAN) ||
	    (tag->vlan_tci & RTE_BE16(VID_MASK)) != 0)
		return false;
	return rte_vlan_strip(m) == 0;
}
