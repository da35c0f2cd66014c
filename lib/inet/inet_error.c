/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ICMP and ICMPv6 errors: received ones about our datagrams, and sent ones for datagrams that no
 * socket receives (RFC 792, RFC 1122 3.2.2, RFC 4443). (UDP-3, RT-31)
 *
 * Errors are unauthenticated. One is accepted if the packet that it quotes can be ours: from our
 * address, UDP, and the first fragment if it is one. The layer above checks that a socket has these
 * ports: no path MTU is lowered until it calls san_inet_path_narrow().
 */

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

#include <rte_udp.h>

#include "inet_priv.h"

#define ICMP_LEN 8u

/** How the kernel's sockets report an error. */
struct meaning {
	int err;
	bool hard; /* permanent */
};

static const struct meaning unreachable_v4[] = {
	{ENETUNREACH, false},
	{EHOSTUNREACH, false},
	{ENOPROTOOPT, true},
	{ECONNREFUSED, true},
	{EMSGSIZE, true},
	{EOPNOTSUPP, false},
	{ENETUNREACH, true},
	{EHOSTDOWN, true},
	{ENONET, true},
	{ENETUNREACH, true},
	{EHOSTUNREACH, true},
	{ENETUNREACH, false},
	{EHOSTUNREACH, false},
	{EHOSTUNREACH, true},
	{EHOSTUNREACH, true},
	{EHOSTUNREACH, true},
};

static const struct meaning unreachable_v6[] = {
	{ENETUNREACH, false},
	{EACCES, true},
	{EHOSTUNREACH, false},
	{EHOSTUNREACH, false},
	{ECONNREFUSED, true},
	{EACCES, true},
	{EACCES, true},
};

/** Types of errors, of IPv4 and of IPv6: the meanings of their first codes, and of the others. */
static const struct {
	struct meaning other;
	const struct meaning *codes;
	uint8_t nb_codes;
} kinds[2][ICMP_PARAMETERPROB + 1] = {
	{
		[ICMP_DEST_UNREACH] =
			{{EHOSTUNREACH, false}, unreachable_v4, RTE_DIM(unreachable_v4)},
		[ICMP_TIME_EXCEEDED] = {.other = {EHOSTUNREACH, false}},
		[ICMP_PARAMETERPROB] = {.other = {EPROTO, true}},
	},
	{
		[ICMP6_DST_UNREACH] = {{EPROTO, true}, unreachable_v6, RTE_DIM(unreachable_v6)},
		[ICMP6_PACKET_TOO_BIG] = {.other = {EMSGSIZE, true}},
		[ICMP6_TIME_EXCEEDED] = {.other = {EHOSTUNREACH, false}},
		[ICMP6_PARAM_PROB] = {.other = {EPROTO, true}},
	},
};

/* ---- receiving ---- */

/** The packet that an error quotes. */
struct quote {
	struct san_inet_dgram d;
	struct rte_udp_hdr udp;
	uint32_t len; /* of the IP packet as sent */
};

/** Read the start of a packet of *len* bytes at *off*. False: not a datagram. */
static bool
read_v4(const struct rte_mbuf *m, uint32_t off, uint32_t len, struct quote *q)
{
	struct rte_ipv4_hdr ip;
	uint32_t n;

	if (len < sizeof(ip) || !san_inet_ip_copy(m, off, sizeof(ip), &ip))
		return false;
	n = rte_ipv4_hdr_len(&ip);
	if (ip.version_ihl >> 4 != IPVERSION || n < sizeof(ip) || len < n + sizeof(q->udp) ||
	    ip.next_proto_id != IPPROTO_UDP ||
	    (ip.fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)) != 0)
		return false;
	san_wire_ip_from_v4(&q->d.src, &ip.src_addr);
	san_wire_ip_from_v4(&q->d.dst, &ip.dst_addr);
	q->len = rte_be_to_cpu_16(ip.total_length);
	q->d.df = (ip.fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG)) != 0;
	return san_inet_ip_copy(m, off + n, sizeof(q->udp), &q->udp);
}

/** Likewise; we send only one kind of extension header. */
static bool
read_v6(const struct rte_mbuf *m, uint32_t off, uint32_t len, struct quote *q)
{
	struct rte_ipv6_fragment_ext frag;
	struct rte_ipv6_hdr ip;
	uint32_t n = sizeof(ip);

	if (len < sizeof(ip) || !san_inet_ip_copy(m, off, sizeof(ip), &ip) ||
	    rte_be_to_cpu_32(ip.vtc_flow) >> 28 != 6)
		return false;
	if (ip.proto == IPPROTO_FRAGMENT) {
		if (len < n + sizeof(frag) || !san_inet_ip_copy(m, off + n, sizeof(frag), &frag) ||
		    RTE_IPV6_GET_FO(rte_be_to_cpu_16(frag.frag_data)) != 0)
			return false;
		ip.proto = frag.next_header;
		n += (uint32_t)sizeof(frag);
	}
	if (ip.proto != IPPROTO_UDP || len < n + sizeof(q->udp))
		return false;
	memcpy(q->d.src.b, &ip.src_addr, sizeof(q->d.src.b));
	memcpy(q->d.dst.b, &ip.dst_addr, sizeof(q->d.dst.b));
	q->len = rte_be_to_cpu_16(ip.payload_len) + INET_V6_LEN;
	q->d.df = true;
	return !san_wire_ip_is_v4(&q->d.src) && !san_wire_ip_is_v4(&q->d.dst) &&
		san_inet_ip_copy(m, off + n, sizeof(q->udp), &q->udp);
}

/** Set the reported path MTU. False: it contradicts the packet that was too long. */
static bool
too_big(struct san_inet_result *r, const struct quote *q, uint32_t mtu)
{
	static const uint16_t plateaus[] = {32000, 17914, 8166, 4352, 2002, 1492, 1006, 0};
	unsigned int i = 0;

	/* The next plateau, if a router does not report the MTU (RFC 1191, 7.1). */
	if (mtu == 0 && san_wire_ip_is_v4(&q->d.dst)) {
		while (plateaus[i] != 0 && plateaus[i] >= q->len)
			i++;
		mtu = plateaus[i] != 0 ? plateaus[i] : INET_PATH_MIN_V4;
	}
	/* Every IPv6 link carries 1280 bytes: a lower value is invalid (RFC 8201, 4). */
	if (mtu >= q->len || !q->d.df || (!san_wire_ip_is_v4(&q->d.dst) && mtu < INET_PATH_MIN_V6))
		return false;
	r->mtu = (uint16_t)RTE_MIN(mtu, (uint32_t)UINT16_MAX);
	return true;
}

/** err 0: it is not an error. */
static struct meaning
meaning_of(bool v4, uint8_t type, uint8_t code)
{
	if (type >= RTE_DIM(kinds[0]))
		return (struct meaning){0};
	return code < kinds[!v4][type].nb_codes ? kinds[!v4][type].codes[code] :
						  kinds[!v4][type].other;
}

enum san_drop
san_inet_error_rx(struct san_inet *in, const struct inet_rx *rx, const uint8_t icmp[8])
{
	bool v4 = san_wire_ip_is_v4(&rx->d.dst);
	uint32_t off = rx->off + ICMP_LEN, len = rx->len - ICMP_LEN;
	uint32_t mtu = (uint32_t)icmp[6] << 8 | icmp[7];
	struct san_inet_result *r = rx->r;
	struct meaning x = meaning_of(v4, icmp[0], icmp[1]);
	struct quote q = {0};

	if (x.err == 0 || !san_inet_is_unicast(&rx->d.src) ||
	    !(v4 ? read_v4(rx->m, off, len, &q) : read_v6(rx->m, off, len, &q)))
		return SAN_DROP_INET_UNWANTED;
	/* There must be no error about a packet to several hosts. */
	if (!san_inet_route_is_local(in, &q.d.src) || !san_inet_is_unicast(&q.d.dst) ||
	    san_inet_route_is_broadcast(in, &q.d.dst) ||
	    rte_be_to_cpu_16(q.udp.dgram_len) < sizeof(q.udp))
		return SAN_DROP_INET_UNWANTED;
	if (!v4)
		mtu |= (uint32_t)icmp[4] << 24 | (uint32_t)icmp[5] << 16;
	if (x.err == EMSGSIZE && !too_big(r, &q, mtu))
		return SAN_DROP_INET_UNWANTED;
	r->what = SAN_INET_ERROR;
	r->ip = rx->d.src;
	r->d = q.d;
	r->d.sport = rte_be_to_cpu_16(q.udp.src_port);
	r->d.dport = rte_be_to_cpu_16(q.udp.dst_port);
	r->err = x.err;
	r->hard = x.hard;
	r->type = icmp[0];
	r->code = icmp[1];
	return SAN_DROP_NONE;
}

/* ---- sending ---- */

/**
 * Number of bytes to quote of a datagram with *whole* bytes of IP and *hdr* bytes of headers. The
 * error must be short enough for every host (RFC 1812 4.3.2.3, RFC 4443 2.4), and not longer than
 * the datagram, whose source may be forged (RT-36). The headers are always quoted, so that the
 * sender can find its socket (RFC 1122 3.2.2).
 */
static uint32_t
quote_len(bool v4, uint32_t whole, uint32_t hdr)
{
	uint32_t own = (v4 ? INET_V4_LEN : INET_V6_LEN) + ICMP_LEN;
	uint32_t max = (v4 ? INET_MTU_MIN : INET_PATH_MIN_V6) - own;

	return RTE_MIN(whole > own + hdr ? whole - own : hdr, max);
}

void
san_inet_error_refuse(struct san_inet *in, const struct san_inet_result *r, uint64_t now_ns)
{
	bool v4 = san_wire_ip_is_v4(&r->d.dst);
	uint32_t off = INET_ETH_LEN + san_inet_hdr_len(&r->d.dst);
	uint32_t len = quote_len(v4, r->off + r->len - INET_ETH_LEN, r->off - INET_ETH_LEN);
	struct rte_ether_hdr old, *eth;
	struct rte_mbuf *m;
	uint8_t *icmp;

	if (r->what != SAN_INET_UDP || r->d.group ||
	    !san_inet_ip_copy(r->m, 0, sizeof(old), &old) ||
	    rte_is_multicast_ether_addr(&old.dst_addr) ||
	    !san_inet_may_answer(in, INET_ANSWER_ERROR, &r->d.src, now_ns))
		return;
	m = san_inet_out_copy(in, r->m, INET_ETH_LEN, len, off + ICMP_LEN);
	if (m == NULL)
		return;
	eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	eth->dst_addr = old.src_addr;
	eth->src_addr = in->conf.mac;
	eth->ether_type = old.ether_type;
	icmp = rte_pktmbuf_mtod_offset(m, uint8_t *, off);
	memset(icmp, 0, ICMP_LEN);
	icmp[0] = v4 ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH;
	icmp[1] = v4 ? ICMP_PORT_UNREACH : ICMP6_DST_UNREACH_NOPORT;
	san_inet_ip_finish(m, &(struct inet_ip_out){
				      .src = &r->d.dst,
				      .dst = &r->d.src,
				      .len = ICMP_LEN + len,
				      .proto = v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6,
				      .hops = INET_HOPS_OUT,
				      .tos = v4 ? INET_TOS_CONTROL : 0,
			      });
	san_inet_out_add(in, m);
}
