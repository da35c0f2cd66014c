/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ICMP of both families: echo replies here, errors in inet_error.c, neighbours in inet_nd.c.
 * (RT-31, SYS-1)
 *
 * A reply is a copy of the request with rewritten headers, all of them in the first segment of the
 * copy.
 */

#include <errno.h>

#include <rte_common.h>

#include "inet_priv.h"

#define ICMP6_INFORMS      128 /* lower types are errors */
#define MLD_FIRST          130
#define MLD_LAST           132
#define ICMP6_ECHO_REQUEST 128
#define ICMP6_ECHO_REPLY   129
#define ECN_BITS           0x03

/** Send to the source of the request, in fragments if it is long. */
static enum san_drop
icmp_reply_echo(struct san_inet *in, const struct inet_rx *rx, struct rte_mbuf *m)
{
	const struct inet_hop hop = {.mac = rx->eth.src_addr};

	switch (san_inet_frag_out(in, m, &hop,
				  san_inet_path_mtu(in, &rx->src, rx->now_ns))) {
	case 0:
		return SAN_DROP_NONE;
	case -ENOMEM:
		return SAN_DROP_NO_MBUF;
	default:
		return SAN_DROP_TX_FULL;
	}
}

/** Copy the first *len* bytes, *hdr_len* of them contiguous, and address the copy to the sender. */
static struct rte_mbuf *
copy_frame(struct san_inet *in, const struct inet_rx *rx, uint32_t hdr_len, uint32_t len)
{
	struct rte_ether_hdr *eth;
	struct rte_mbuf *m;

	m = san_inet_out_copy(in, rx->m, 0, len, 0);
	if (m == NULL)
		return NULL;
	if (rte_pktmbuf_data_len(m) < hdr_len) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	eth->src_addr = in->conf.mac;
	return m;
}

static enum san_drop
echo_reply_v4(struct san_inet *in, const struct inet_rx *rx)
{
	struct rte_icmp_hdr *icmp;
	struct rte_ipv4_hdr *out;
	struct rte_mbuf *m;

	m = copy_frame(in, rx, rx->off + (uint32_t)sizeof(*icmp), rx->off + rx->len);
	if (m == NULL)
		return SAN_DROP_NO_MBUF;
	out = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, INET_ETH_LEN);
	memcpy(&out->src_addr, san_inet_raw(&rx->dst), sizeof(out->src_addr));
	memcpy(&out->dst_addr, san_inet_raw(&rx->src), sizeof(out->dst_addr));
	out->type_of_service &= (uint8_t)~ECN_BITS;
	out->packet_id = rte_cpu_to_be_16((uint16_t)san_inet_ip_id(in, &rx->src));
	out->fragment_offset = 0;
	out->time_to_live = INET_HOPS_OUT;
	out->hdr_checksum = 0;
	out->hdr_checksum = rte_ipv4_cksum(out);
	icmp = (struct rte_icmp_hdr *)(out + 1);
	icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (uint16_t)~san_inet_ip_sum(m, rx->off, rx->len);
	return icmp_reply_echo(in, rx, m);
}

enum san_drop
san_inet_icmp_rx(struct san_inet *in, const struct inet_rx *rx)
{
	struct rte_icmp_hdr icmp;

	if (rx->len < sizeof(icmp) || !san_inet_ip_copy(rx->m, rx->off, sizeof(icmp), &icmp) ||
	    san_inet_ip_sum(rx->m, rx->off, rx->len) != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	if (icmp.icmp_type != RTE_IP_ICMP_ECHO_REQUEST)
		return san_inet_error_rx(in, rx, (const uint8_t *)&icmp);
	if (icmp.icmp_code != 0)
		return SAN_DROP_INET_UNWANTED;
	if (!san_inet_may_answer(in, INET_ANSWER_ECHO, &rx->src, rx->now_ns))
		return SAN_DROP_NONE;
	return echo_reply_v4(in, rx);
}

static enum san_drop
echo_reply_v6(struct san_inet *in, const struct inet_rx *rx)
{
	struct rte_icmp_hdr *icmp;
	struct rte_ipv6_hdr *out;
	struct rte_mbuf *m;

	m = copy_frame(in, rx, rx->off + (uint32_t)sizeof(*icmp), rx->off + rx->len);
	if (m == NULL)
		return SAN_DROP_NO_MBUF;
	out = rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, INET_ETH_LEN);
	memcpy(out->src_addr, rx->dst.b, sizeof(out->src_addr));
	memcpy(out->dst_addr, rx->src.b, sizeof(out->dst_addr));
	out->vtc_flow &= ~RTE_BE32((uint32_t)ECN_BITS << 20);
	out->hop_limits = INET_HOPS_OUT;
	icmp = (struct rte_icmp_hdr *)(out + 1);
	icmp->icmp_type = ICMP6_ECHO_REPLY;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (uint16_t)~san_inet_ip_cksum(m, rx->off, rx->len, &rx->dst, &rx->src,
							INET_PROTO_V6);
	return icmp_reply_echo(in, rx, m);
}

enum san_drop
san_inet_icmp_rx_v6(struct san_inet *in, const struct inet_rx *rx)
{
	struct rte_icmp_hdr icmp;

	if (rx->len < sizeof(icmp) || !san_inet_ip_copy(rx->m, rx->off, sizeof(icmp), &icmp) ||
	    san_inet_ip_cksum(rx->m, rx->off, rx->len, &rx->src, &rx->dst, INET_PROTO_V6) != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	if (icmp.icmp_type < ICMP6_INFORMS)
		return rx->group ? SAN_DROP_INET_UNWANTED :
				   san_inet_error_rx(in, rx, (const uint8_t *)&icmp);
	if (icmp.icmp_type >= MLD_FIRST && icmp.icmp_type <= MLD_LAST)
		return rx->whole ? SAN_DROP_INET_UNWANTED : san_inet_mld_rx(in, rx);
	if (icmp.icmp_type != ICMP6_ECHO_REQUEST)
		return rx->whole ? SAN_DROP_INET_UNWANTED : /* RFC 6980 */
				   san_inet_nd_rx(in, rx, icmp.icmp_type);
	if (icmp.icmp_code != 0 || !san_inet_is_unicast(&rx->src))
		return SAN_DROP_INET_MALFORMED;
	/* an echo request with extension headers is not answered */
	if (rx->group || rte_is_multicast_ether_addr(&rx->eth.dst_addr) ||
	    rx->off != INET_ETH_LEN + sizeof(struct rte_ipv6_hdr))
		return SAN_DROP_INET_UNWANTED;
	if (!san_inet_may_answer(in, INET_ANSWER_ECHO, &rx->src, rx->now_ns))
		return SAN_DROP_NONE;
	return echo_reply_v6(in, rx);
}
