/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets longer than their path MTU are sent in fragments (RFC 791, RFC 8200 4.5). Each fragment
 * is one mbuf, because not every port supports chains. (UDP-3)
 */

#include "inet_priv.h"

/** Payload bytes of a fragment that is not the last. */
static uint32_t
inet_frag_step_of(bool v4, uint16_t mtu)
{
	return (mtu - (v4 ? INET_V4_LEN : INET_V6_LEN + INET_FRAG_LEN)) & ~7u;
}

uint32_t
san_inet_frag_count(bool v4, uint32_t len, uint16_t mtu)
{
	uint32_t ip_len = v4 ? INET_V4_LEN : INET_V6_LEN, step = inet_frag_step_of(v4, mtu);

	return len <= mtu ? 1 : (len - ip_len + step - 1) / step;
}

/**
 * Split *m*, which is longer than *mtu*, and keep it; returns the number of fragments, 0: no mbuf.
 */
static uint32_t
inet_frag_split_pkt(struct san_inet *in, const struct rte_mbuf *m, uint16_t mtu,
		    struct rte_mbuf **out)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	bool v4 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4);
	uint32_t hdr = INET_ETH_LEN + (v4 ? INET_V4_LEN : INET_V6_LEN);
	uint32_t step = inet_frag_step_of(v4, mtu);
	uint32_t len = rte_pktmbuf_pkt_len(m) - hdr, id = 0, at, n, k = 0;
	struct rte_ipv6_fragment_ext *frag;
	struct rte_ipv4_hdr *ip4;
	struct rte_ipv6_hdr *ip6;
	struct rte_mbuf *f;
	struct san_ip dst;
	bool more;

	if (!v4) {
		memcpy(dst.b, &((const struct rte_ipv6_hdr *)(eth + 1))->dst_addr, sizeof(dst.b));
		id = san_inet_ip_id(in, &dst);
	}
	for (at = 0; at < len; at += step) {
		n = RTE_MIN(len - at, step);
		f = k < INET_NB_FRAGS ?
			san_inet_out_copy(in, m, hdr + at, n, hdr + (v4 ? 0 : INET_FRAG_LEN)) :
			NULL;
		if (f == NULL) {
			rte_pktmbuf_free_bulk(out, k);
			return 0;
		}
		memcpy(rte_pktmbuf_mtod(f, void *), eth, hdr);
		more = at + n < len;
		if (v4) {
			ip4 = rte_pktmbuf_mtod_offset(f, struct rte_ipv4_hdr *, INET_ETH_LEN);
			ip4->total_length = rte_cpu_to_be_16((uint16_t)(INET_V4_LEN + n));
			ip4->fragment_offset = rte_cpu_to_be_16(
				(uint16_t)(at / 8 | (more ? RTE_IPV4_HDR_MF_FLAG : 0)));
			ip4->hdr_checksum = 0;
			ip4->hdr_checksum = rte_ipv4_cksum(ip4);
		} else {
			ip6 = rte_pktmbuf_mtod_offset(f, struct rte_ipv6_hdr *, INET_ETH_LEN);
			frag = (struct rte_ipv6_fragment_ext *)(ip6 + 1);
			frag->next_header = ip6->proto;
			frag->reserved = 0;
			frag->frag_data = rte_cpu_to_be_16((uint16_t)(at | more));
			frag->id = rte_cpu_to_be_32(id);
			ip6->proto = IPPROTO_FRAGMENT;
			ip6->payload_len = rte_cpu_to_be_16((uint16_t)(INET_FRAG_LEN + n));
		}
		out[k++] = f;
	}
	return k;
}

int
san_inet_frag_out(struct san_inet *in, struct rte_mbuf *m, const struct inet_hop *hop, uint16_t mtu)
{
	struct rte_mbuf *f[INET_NB_FRAGS] = {m};
	uint32_t i, n = 1;

	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->dst_addr = hop->mac;
	if (rte_pktmbuf_pkt_len(m) - INET_ETH_LEN > mtu) {
		n = inet_frag_split_pkt(in, m, mtu, f);
		rte_pktmbuf_free(m);
		if (n == 0)
			return -ENOMEM;
	}
	if (hop->neigh != NULL ? san_inet_neigh_wait(in, hop->neigh, f, n) :
				 san_inet_out_room(in) >= n) {
		for (i = 0; hop->neigh == NULL && i < n; i++)
			san_inet_out_add(in, f[i]);
		return 0;
	}
	rte_pktmbuf_free_bulk(f, n);
	return -EAGAIN;
}
