/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every frame that is not the transport's: who it is for, and echo replies of both
 * families. (RT-31, SYS-1)
 *
 * Nothing is believed of a frame but what was read inside it; what is answered is
 * a copy, headers rewritten, all of them in the copy's first segment.
 */

#include <string.h>

#include <rte_common.h>

#include "inet_priv.h"

#define ICMP6_ECHO_REQUEST 128
#define ICMP6_ECHO_REPLY   129
#define IPPROTO_ICMP6      58
#define ECN_BITS           0x03

/** A copy of the first *len* bytes with *hdr_len* of them contiguous, turned to its sender. */
static struct rte_mbuf *
copy_frame(struct san_inet *in, const struct inet_rx *rx, uint32_t hdr_len, uint32_t len)
{
	struct rte_ether_hdr *eth;
	struct rte_mbuf *m;

	if (in->out_tail - in->out_head == INET_OUT_MAX)
		return NULL;
	m = rte_pktmbuf_copy(rx->m, in->conf.pool, 0, len);
	if (m == NULL)
		return NULL;
	if (rte_pktmbuf_data_len(m) < hdr_len) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	/* what the port said of the request is not true of the reply */
	m->ol_flags = 0;
	m->tx_offload = 0;
	eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	eth->dst_addr = rx->eth.src_addr;
	eth->src_addr = in->conf.mac;
	return m;
}

static enum san_drop
echo_reply_v4(struct san_inet *in, const struct inet_rx *rx, const struct rte_ipv4_hdr *ip)
{
	uint32_t off = INET_ETH_LEN + (uint32_t)sizeof(*ip);
	uint32_t len = rte_be_to_cpu_16(ip->total_length) - (uint32_t)sizeof(*ip);
	struct rte_icmp_hdr *icmp;
	struct rte_ipv4_hdr *out;
	struct rte_mbuf *m;
	uint16_t sum;

	m = copy_frame(in, rx, off + (uint32_t)sizeof(*icmp), off + len);
	if (m == NULL)
		return SAN_DROP_NO_MBUF;
	out = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, INET_ETH_LEN);
	out->src_addr = ip->dst_addr;
	out->dst_addr = ip->src_addr;
	out->type_of_service &= (uint8_t)~ECN_BITS;
	out->packet_id = 0;
	out->fragment_offset = 0;
	out->time_to_live = INET_HOPS_OUT;
	out->hdr_checksum = 0;
	out->hdr_checksum = rte_ipv4_cksum(out);
	icmp = (struct rte_icmp_hdr *)(out + 1);
	icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
	icmp->icmp_cksum = 0;
	if (rte_raw_cksum_mbuf(m, off, len, &sum) != 0) {
		rte_pktmbuf_free(m);
		return SAN_DROP_INET_MALFORMED;
	}
	icmp->icmp_cksum = (uint16_t)~sum;
	return san_inet_out_add(in, m);
}

static enum san_drop
rx_icmp_v4(struct san_inet *in, const struct inet_rx *rx, const struct rte_ipv4_hdr *ip)
{
	uint32_t off = INET_ETH_LEN + (uint32_t)sizeof(*ip);
	uint32_t len = rte_be_to_cpu_16(ip->total_length) - (uint32_t)sizeof(*ip);
	const struct rte_icmp_hdr *icmp;
	struct rte_icmp_hdr copy;
	uint16_t sum;

	icmp = len >= sizeof(copy) ? rte_pktmbuf_read(rx->m, off, sizeof(copy), &copy) : NULL;
	if (icmp == NULL || rte_raw_cksum_mbuf(rx->m, off, len, &sum) != 0 || sum != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	if (icmp->icmp_type != RTE_IP_ICMP_ECHO_REQUEST || icmp->icmp_code != 0)
		return SAN_DROP_INET_UNWANTED;
	return echo_reply_v4(in, rx, ip);
}

static enum san_drop
rx_v4(struct san_inet *in, const struct inet_rx *rx)
{
	const struct rte_ipv4_hdr *ip;
	struct rte_ipv4_hdr copy;
	struct san_ip src, dst;
	uint32_t total;

	ip = rte_pktmbuf_read(rx->m, INET_ETH_LEN, sizeof(copy), &copy);
	if (ip == NULL || ip->version_ihl >> 4 != IPVERSION ||
	    rte_ipv4_hdr_len(ip) < sizeof(*ip))
		return SAN_DROP_INET_MALFORMED;
	total = rte_be_to_cpu_16(ip->total_length);
	if (total < rte_ipv4_hdr_len(ip) || INET_ETH_LEN + total > rte_pktmbuf_pkt_len(rx->m))
		return SAN_DROP_INET_MALFORMED;
	inet_from_v4(&src, &ip->src_addr);
	inet_from_v4(&dst, &ip->dst_addr);
	if (!san_inet_is_local(in, &dst))
		return SAN_DROP_NOT_FOR_US;
	/* neither options nor fragments: nothing here needs them */
	if (rte_ipv4_hdr_len(ip) != sizeof(*ip))
		return SAN_DROP_INET_UNWANTED;
	if (rte_ipv4_cksum(ip) != 0 || !inet_is_unicast(&src))
		return SAN_DROP_INET_MALFORMED;
	if ((ip->fragment_offset & RTE_BE16((uint16_t)~RTE_IPV4_HDR_DF_FLAG)) != 0 ||
	    ip->next_proto_id != IPPROTO_ICMP || rte_is_multicast_ether_addr(&rx->eth.dst_addr))
		return SAN_DROP_INET_UNWANTED;
	return rx_icmp_v4(in, rx, ip);
}

static enum san_drop
echo_reply_v6(struct san_inet *in, const struct inet_rx *rx, const struct rte_ipv6_hdr *ip)
{
	uint32_t off = INET_ETH_LEN + (uint32_t)sizeof(*ip);
	uint32_t len = rte_be_to_cpu_16(ip->payload_len);
	struct rte_icmp_hdr *icmp;
	struct rte_ipv6_hdr *out;
	struct rte_mbuf *m;

	m = copy_frame(in, rx, off + (uint32_t)sizeof(*icmp), off + len);
	if (m == NULL)
		return SAN_DROP_NO_MBUF;
	out = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, INET_ETH_LEN);
	memcpy(out->src_addr, ip->dst_addr, sizeof(out->src_addr));
	memcpy(out->dst_addr, ip->src_addr, sizeof(out->dst_addr));
	out->vtc_flow &= ~RTE_BE32((uint32_t)ECN_BITS << 20);
	out->hop_limits = INET_HOPS_OUT;
	icmp = (struct rte_icmp_hdr *)(out + 1);
	icmp->icmp_type = ICMP6_ECHO_REPLY;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (uint16_t)~san_inet_cksum_v6(m, out, off, len);
	return san_inet_out_add(in, m);
}

/** Is *ip* the solicited-node group of one of our addresses, or that of all nodes? */
static bool
is_our_group(const struct san_inet *in, const struct san_ip *ip)
{
	static const uint8_t node[13] = {0xff, 2, [11] = 1, [12] = 0xff};
	static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};
	uint16_t i;

	if (memcmp(ip->b, all_nodes, sizeof(all_nodes)) == 0)
		return true;
	for (i = 0; i < in->conf.nb_addrs; i++) {
		if (memcmp(ip->b, node, sizeof(node)) == 0 &&
		    memcmp(ip->b + 13, in->conf.addrs[i].ip.b + 13, 3) == 0)
			return true;
	}
	return false;
}

static enum san_drop
rx_icmp_v6(struct san_inet *in, const struct inet_rx *rx, const struct rte_ipv6_hdr *ip)
{
	uint32_t off = INET_ETH_LEN + (uint32_t)sizeof(*ip);
	uint32_t len = rte_be_to_cpu_16(ip->payload_len);
	struct rte_icmp_hdr copy;
	const struct rte_icmp_hdr *icmp;
	struct san_ip src;

	icmp = len >= sizeof(copy) ? rte_pktmbuf_read(rx->m, off, sizeof(copy), &copy) : NULL;
	if (icmp == NULL || san_inet_cksum_v6(rx->m, ip, off, len) != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	if (icmp->icmp_type != ICMP6_ECHO_REQUEST)
		return san_inet_nd_rx(in, rx, ip, icmp->icmp_type, len);
	memcpy(src.b, ip->src_addr, sizeof(src.b));
	if (icmp->icmp_code != 0 || !inet_is_unicast(&src))
		return SAN_DROP_INET_MALFORMED;
	if (ip->dst_addr[0] == 0xff || rte_is_multicast_ether_addr(&rx->eth.dst_addr))
		return SAN_DROP_INET_UNWANTED;
	return echo_reply_v6(in, rx, ip);
}

static enum san_drop
rx_v6(struct san_inet *in, const struct inet_rx *rx)
{
	const struct rte_ipv6_hdr *ip;
	struct rte_ipv6_hdr copy;
	struct san_ip src, dst;
	uint32_t end;

	ip = rte_pktmbuf_read(rx->m, INET_ETH_LEN, sizeof(copy), &copy);
	if (ip == NULL || (ip->vtc_flow & RTE_BE32(0xf0000000)) != RTE_BE32(6u << 28))
		return SAN_DROP_INET_MALFORMED;
	end = INET_ETH_LEN + (uint32_t)sizeof(*ip) + rte_be_to_cpu_16(ip->payload_len);
	if (end > rte_pktmbuf_pkt_len(rx->m))
		return SAN_DROP_INET_MALFORMED;
	memcpy(src.b, ip->src_addr, sizeof(src.b));
	memcpy(dst.b, ip->dst_addr, sizeof(dst.b));
	/* an IPv4 address in IPv6 clothes would pass for an IPv4 neighbour */
	if (src.b[0] == 0xff || san_ip_is_v4(&src) || san_ip_is_v4(&dst))
		return SAN_DROP_INET_MALFORMED;
	if (!san_inet_is_local(in, &dst) && !is_our_group(in, &dst))
		return SAN_DROP_NOT_FOR_US;
	if (ip->proto != IPPROTO_ICMP6)
		return SAN_DROP_INET_UNWANTED;
	return rx_icmp_v6(in, rx, ip);
}

enum san_drop
san_inet_rx(struct san_inet *in, struct rte_mbuf *m, uint64_t now_ns, struct san_ip *learned,
	    struct rte_ether_addr *mac)
{
	struct inet_rx rx = {.m = m, .now_ns = now_ns, .learned = learned, .mac = mac};
	struct rte_ether_hdr copy;
	const void *eth;

	if (learned != NULL)
		memset(learned, 0, sizeof(*learned));
	eth = rte_pktmbuf_read(m, 0, sizeof(copy), &copy);
	if (eth == NULL)
		return SAN_DROP_INET_MALFORMED;
	memcpy(&rx.eth, eth, sizeof(rx.eth));
	if (!rte_is_same_ether_addr(&rx.eth.dst_addr, &in->conf.mac) &&
	    !rte_is_multicast_ether_addr(&rx.eth.dst_addr))
		return SAN_DROP_NOT_FOR_US;
	switch (rx.eth.ether_type) {
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return san_inet_arp_rx(in, &rx);
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		return rx_v4(in, &rx);
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		return rx_v6(in, &rx);
	default:
		return SAN_DROP_INET_UNWANTED;
	}
}
