/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ICMP of both families: echo replies here, errors in inet_error.c, neighbours in inet_nd.c.
 * (RT-31, SYS-1)
 *
 * A reply is a copy of the request with rewritten headers, all of them in the first segment of the
 * copy.
 */

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

#include "inet_priv.h"

/** Answer an echo request, in fragments if the reply is long. */
static enum san_drop
icmp_reply_echo(struct san_inet *in, const struct inet_rx *rx)
{
	const struct inet_hop hop = {.mac = rx->eth.src_addr};
	struct rte_mbuf *m = san_inet_out_copy(in, rx->m, 0, rx->off + rx->len, 0);
	bool v4 = san_wire_ip_is_v4(&rx->d.dst);

	if (m == NULL)
		return SAN_DROP_NO_MBUF;
	if (rte_pktmbuf_data_len(m) < rx->off + sizeof(struct rte_icmp_hdr)) {
		rte_pktmbuf_free(m);
		return SAN_DROP_NO_MBUF;
	}
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->src_addr = in->conf.mac;
	*rte_pktmbuf_mtod_offset(m, uint8_t *, rx->off) =
		v4 ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY;
	san_inet_ip_finish(m, &(struct inet_ip_out){
				      .src = &rx->d.dst,
				      .dst = &rx->d.src,
				      .len = rx->len,
				      .proto = rx->proto,
				      .hops = INET_HOPS_OUT,
				      .tos = rx->d.tos & (uint8_t)~IPTOS_ECN_MASK,
				      .id = v4 ? (uint16_t)san_inet_ip_id(in, &rx->d.src) : 0,
			      });
	switch (san_inet_frag_out(in, m, &hop, san_inet_path_mtu(in, &rx->d.src, rx->now_ns))) {
	case 0:
		return SAN_DROP_NONE;
	case -ENOMEM:
		return SAN_DROP_NO_MBUF;
	default:
		return SAN_DROP_TX_FULL;
	}
}

enum san_drop
san_inet_icmp_rx(struct san_inet *in, const struct inet_rx *rx)
{
	bool v4 = san_wire_ip_is_v4(&rx->d.dst), is_error;
	struct rte_icmp_hdr icmp;

	if (rx->len < sizeof(icmp) || !san_inet_ip_copy(rx->m, rx->off, sizeof(icmp), &icmp) ||
	    san_inet_ip_cksum(rx->m, rx->off, rx->len, &rx->d.src, &rx->d.dst, rx->proto) != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	if (icmp.icmp_type != (v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST)) {
		is_error = (icmp.icmp_type & ICMP6_INFOMSG_MASK) == 0;
		if (!v4 && (is_error ? rx->d.group : rx->whole))
			return SAN_DROP_INET_UNWANTED; /* whole: RFC 6980 */
		if (v4 || is_error)
			return san_inet_error_rx(in, rx, (const uint8_t *)&icmp);
		if (icmp.icmp_type >= MLD_LISTENER_QUERY &&
		    icmp.icmp_type <= MLD_LISTENER_REDUCTION)
			return san_inet_report_rx(in, rx);
		return san_inet_nd_rx(in, rx, icmp.icmp_type);
	}
	if (icmp.icmp_code != 0)
		return v4 ? SAN_DROP_INET_UNWANTED : SAN_DROP_INET_MALFORMED;
	if (!san_inet_is_unicast(&rx->d.src))
		return SAN_DROP_INET_MALFORMED;
	/* an echo request with extension headers is not answered */
	if (rx->d.group || rte_is_multicast_ether_addr(&rx->eth.dst_addr) ||
	    rx->off != INET_ETH_LEN + san_inet_hdr_len(&rx->d.dst))
		return SAN_DROP_INET_UNWANTED;
	if (!san_inet_may_answer(in, INET_ANSWER_ECHO, &rx->d.src, rx->now_ns))
		return SAN_DROP_NONE;
	return icmp_reply_echo(in, rx);
}
