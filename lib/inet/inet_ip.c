/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every frame that is not the transport's: its destination, and the payload of IP. (RT-31, SYS-1,
 * UDP-3)
 *
 * Every field is read only inside the frame. Options and extension headers are skipped if a
 * supported protocol may follow.
 */

#include <netinet/ip6.h>
#include <stddef.h>

#include "inet_priv.h"

#define V4_HDR_MAX 60
#define EXT_MAX    4   /* IPv6 extension headers: one more than may follow each other */
#define EXT_LEN    256 /* most bytes of one */

uint32_t
san_inet_ip_id(struct san_inet *in, const struct san_ip *dst)
{
	return in->ids[san_inet_hash(dst, in->hash_seed) % INET_IDS]++;
}

/**
 * Internet checksum, not inverted, of *len* bytes at *off*; 0: not all of them exist.
 * (rte_raw_cksum_mbuf() of DPDK 22.11 is wrong if a segment starts at an odd offset.)
 */
static uint16_t
ip_sum(const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	uint32_t done = 0, n, sum = 0;

	for (; m != NULL && off >= m->data_len; m = m->next)
		off -= m->data_len;
	for (; m != NULL && done < len; m = m->next) {
		uint16_t part;

		n = RTE_MIN(m->data_len - off, len - done);
		part = rte_raw_cksum(rte_pktmbuf_mtod_offset(m, const void *, off), n);
		sum += done & 1 ? rte_bswap16(part) : part;
		done += n;
		off = 0;
	}
	if (done < len)
		return 0;
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

uint16_t
san_inet_ip_cksum(const struct rte_mbuf *m, uint32_t off, uint32_t len, const struct san_ip *src,
		  const struct san_ip *dst, uint8_t proto)
{
	uint32_t n = san_wire_ip_is_v4(dst) ? 4 : 16, sum = ip_sum(m, off, len);

	if (proto == IPPROTO_ICMP || proto == IPPROTO_IGMP)
		return (uint16_t)sum;
	sum += (uint32_t)rte_raw_cksum(san_inet_raw(src), n) +
		rte_raw_cksum(san_inet_raw(dst), n) + rte_cpu_to_be_16((uint16_t)len) +
		rte_cpu_to_be_16(proto);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

bool
san_inet_ip_copy(const struct rte_mbuf *m, uint32_t off, uint32_t len, void *to)
{
	const void *data = rte_pktmbuf_read(m, off, len, to);

	if (data == NULL)
		return false;
	if (data != to)
		memcpy(to, data, len);
	return true;
}

/* The options of a packet that each router is to look at (RFC 2113, RFC 2711). */
static const uint8_t alert_v4[] = {0x94, 4, 0, 0};
static const uint8_t alert_v6[] = {IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0};

static uint32_t
options_len(const struct inet_ip_out *x)
{
	return !x->alert ? 0 : san_wire_ip_is_v4(x->dst) ? sizeof(alert_v4) :
							   sizeof(alert_v6);
}

void *
san_inet_ip_put(void *hdr, const struct inet_ip_out *x)
{
	uint32_t nb_opt = options_len(x);
	struct rte_ipv4_hdr *v4 = hdr;
	struct rte_ipv6_hdr *v6 = hdr;

	if (!san_wire_ip_is_v4(x->dst)) {
		v6->vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)x->tos << 20);
		v6->payload_len = rte_cpu_to_be_16((uint16_t)(nb_opt + x->len));
		v6->proto = x->alert ? IPPROTO_HOPOPTS : x->proto;
		v6->hop_limits = x->hops;
		memcpy(&v6->src_addr, x->src->b, sizeof(v6->src_addr));
		memcpy(&v6->dst_addr, x->dst->b, sizeof(v6->dst_addr));
		memcpy(v6 + 1, alert_v6, nb_opt);
		return (uint8_t *)(v6 + 1) + nb_opt;
	}
	v4->version_ihl = (uint8_t)(RTE_IPV4_VHL_DEF + nb_opt / 4);
	v4->type_of_service = x->tos;
	v4->total_length = rte_cpu_to_be_16((uint16_t)(INET_V4_LEN + nb_opt + x->len));
	v4->packet_id = rte_cpu_to_be_16(x->id);
	v4->fragment_offset = x->df ? RTE_BE16(RTE_IPV4_HDR_DF_FLAG) : 0;
	v4->time_to_live = x->hops;
	v4->next_proto_id = x->proto;
	memcpy(&v4->src_addr, san_inet_raw(x->src), sizeof(v4->src_addr));
	memcpy(&v4->dst_addr, san_inet_raw(x->dst), sizeof(v4->dst_addr));
	memcpy(v4 + 1, alert_v4, nb_opt);
	v4->hdr_checksum = 0;
	v4->hdr_checksum = rte_ipv4_cksum(v4);
	return (uint8_t *)(v4 + 1) + nb_opt;
}

void
san_inet_ip_finish(struct rte_mbuf *m, const struct inet_ip_out *x)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t *msg = san_inet_ip_put(frame + INET_ETH_LEN, x);
	uint16_t sum;

	memset(msg + 2, 0, sizeof(sum));
	sum = (uint16_t)~san_inet_ip_cksum(m, (uint32_t)(msg - frame), x->len, x->src, x->dst,
					   x->proto);
	memcpy(msg + 2, &sum, sizeof(sum));
}

void
san_inet_ip_send(struct san_inet *in, const struct rte_ether_addr *mac,
		 const struct inet_ip_out *x, const void *msg)
{
	uint32_t hdr = san_inet_hdr_len(x->dst) + options_len(x);
	struct rte_mbuf *m = san_inet_out_frame(in, san_inet_ether_type(x->dst), hdr + x->len);
	struct rte_ether_hdr *eth;

	if (m == NULL)
		return; /* requests and reports are repeated */
	eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	if (mac != NULL)
		eth->dst_addr = *mac;
	else
		san_inet_route_group_mac(x->dst, &eth->dst_addr);
	memcpy((uint8_t *)(eth + 1) + hdr, msg, x->len);
	san_inet_ip_finish(m, x);
	san_inet_out_add(in, m);
}

/** True if another host sends with our address: answers would go to that host, or loop. */
static bool
is_forged(const struct san_inet *in, const struct inet_rx *rx)
{
	return !rte_is_same_ether_addr(&rx->eth.src_addr, &in->conf.mac) &&
		san_inet_route_is_local(in, &rx->d.src);
}

/* ---- IPv4 ---- */

/** Only options that forward the packet elsewhere matter to a host. */
static enum san_drop
check_options(const uint8_t *opt, uint32_t len)
{
	while (len != 0 && *opt != IPOPT_EOL) {
		uint32_t n = 1;

		if (*opt != IPOPT_NOP) {
			if (len < 2 || opt[1] < 2 || opt[1] > len)
				return SAN_DROP_INET_MALFORMED;
			if (*opt == IPOPT_LSRR || *opt == IPOPT_SSRR)
				return SAN_DROP_INET_UNWANTED;
			n = opt[1];
		}
		opt += n;
		len -= n;
	}
	return SAN_DROP_NONE;
}

static bool
is_for_us_v4(const struct san_inet *in, const struct inet_rx *rx)
{
	if (!rx->d.group)
		return san_inet_route_is_local(in, &rx->d.dst);
	if (rx->proto == IPPROTO_IGMP && san_inet_group_is_received(in, &rx->d.dst))
		return true;
	/* Answering every broadcast or multicast would amplify floods. */
	return (rx->proto == IPPROTO_UDP || rx->proto == IPPROTO_IGMP) &&
		(!san_inet_is_group(&rx->d.dst) || san_inet_group_is_member(in, &rx->d.dst));
}

/** Verify the header in *hdr*, of *len* bytes. */
static enum san_drop
inet_ip_check_v4(const struct san_inet *in, const struct inet_rx *rx, const uint8_t *hdr,
		 uint32_t len)
{
	bool igmp = rx->proto == IPPROTO_IGMP;

	if (len != sizeof(struct rte_ipv4_hdr) && rx->proto != IPPROTO_UDP && !igmp)
		return SAN_DROP_INET_UNWANTED;
	if (rte_raw_cksum(hdr, len) != 0xffff || is_forged(in, rx) ||
	    san_inet_route_is_broadcast(in, &rx->d.src))
		return SAN_DROP_INET_MALFORMED;
	/* A switch that queries groups may have no address (RFC 4541). */
	if (!san_inet_is_unicast(&rx->d.src) && !(igmp && san_inet_is_any(&rx->d.src)))
		return SAN_DROP_INET_MALFORMED;
	return check_options(hdr + sizeof(struct rte_ipv4_hdr),
			     len - (uint32_t)sizeof(struct rte_ipv4_hdr));
}

/**
 * True for a copy of a packet that this host's kernel sent to a group through the shared device.
 * Readers here get it from the kernel, if the sender wants that (IP_MULTICAST_LOOP).
 */
static bool
is_echo(const struct san_inet *in, const struct inet_rx *rx)
{
	return rx->d.group && rte_is_same_ether_addr(&rx->eth.src_addr, &in->conf.mac);
}

static enum san_drop
rx_v4(struct san_inet *in, struct inet_rx *rx)
{
	uint8_t hdr[V4_HDR_MAX];
	struct rte_ipv4_hdr ip;
	uint32_t total, len;
	enum san_drop drop;

	if (!san_inet_ip_copy(rx->m, INET_ETH_LEN, sizeof(ip), &ip))
		return SAN_DROP_INET_MALFORMED;
	len = rte_ipv4_hdr_len(&ip);
	total = rte_be_to_cpu_16(ip.total_length);
	if (ip.version_ihl >> 4 != IPVERSION || len < sizeof(ip) || total < len ||
	    INET_ETH_LEN + total > rte_pktmbuf_pkt_len(rx->m) ||
	    !san_inet_ip_copy(rx->m, INET_ETH_LEN, len, hdr))
		return SAN_DROP_INET_MALFORMED;
	san_wire_ip_from_v4(&rx->d.src, &ip.src_addr);
	san_wire_ip_from_v4(&rx->d.dst, &ip.dst_addr);
	rx->d.group = san_inet_is_group(&rx->d.dst) || san_inet_route_is_broadcast(in, &rx->d.dst);
	rx->proto = ip.next_proto_id;
	rx->d.hops = ip.time_to_live;
	rx->d.tos = ip.type_of_service;
	rx->off = INET_ETH_LEN + len;
	rx->len = total - len;
	if (!is_for_us_v4(in, rx))
		return SAN_DROP_NOT_FOR_US;
	drop = inet_ip_check_v4(in, rx, hdr, len);
	if (drop != SAN_DROP_NONE)
		return drop;
	/* as Linux, which drops TCP; not as RFC 1122, 3.3.6 */
	if (!rx->d.group && rx->proto != IPPROTO_UDP &&
	    rte_is_multicast_ether_addr(&rx->eth.dst_addr))
		return SAN_DROP_INET_UNWANTED;
	if ((ip.fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK | RTE_IPV4_HDR_MF_FLAG)) != 0) {
		drop = san_inet_whole_rx_v4(in, rx, &ip);
		if (drop != SAN_DROP_NONE || rx->m == NULL)
			return drop;
	}
	if (rx->proto == IPPROTO_UDP)
		return is_echo(in, rx) ? SAN_DROP_NOT_FOR_US : san_inet_udp_rx(rx);
	if (rx->proto == IPPROTO_IGMP)
		return rx->whole ? SAN_DROP_INET_UNWANTED : san_inet_report_rx(in, rx);
	return rx->proto == IPPROTO_ICMP ? san_inet_icmp_rx(in, rx) : SAN_DROP_INET_UNWANTED;
}

/* ---- IPv6 ---- */

/** Skip the header of options at rx->off. */
static enum san_drop
skip_options(struct inet_rx *rx)
{
	uint8_t b[EXT_LEN];
	uint32_t i = 2, len;

	if (rx->len < 8 || !san_inet_ip_copy(rx->m, rx->off, 2, b))
		return SAN_DROP_INET_MALFORMED;
	len = (b[1] + 1u) * 8;
	if (len > rx->len)
		return SAN_DROP_INET_MALFORMED;
	if (len > sizeof(b))
		return SAN_DROP_INET_UNWANTED;
	if (!san_inet_ip_copy(rx->m, rx->off, len, b))
		return SAN_DROP_INET_MALFORMED;
	while (i < len) {
		if (b[i] == IP6OPT_PAD1) {
			i++;
			continue;
		}
		if (i + 2 > len || i + 2u + b[i + 1] > len)
			return SAN_DROP_INET_MALFORMED;
		if (IP6OPT_TYPE(b[i]) != IP6OPT_TYPE_SKIP)
			return SAN_DROP_INET_UNWANTED;
		i += 2u + b[i + 1];
	}
	rx->proto = b[0];
	rx->proto_at = rx->off;
	rx->off += len;
	rx->len -= len;
	return SAN_DROP_NONE;
}

/** Skip all extension headers. A fragment may complete a packet: rx->m is NULL if it does not. */
static enum san_drop
skip_headers(struct san_inet *in, struct inet_rx *rx)
{
	enum san_drop drop;
	uint32_t i;

	for (i = 0; i < EXT_MAX; i++) {
		if (rx->proto != IPPROTO_HOPOPTS && rx->proto != IPPROTO_DSTOPTS &&
		    rx->proto != IPPROTO_FRAGMENT)
			return SAN_DROP_NONE;
		/* The header for every router must be first. */
		if (rx->proto == IPPROTO_HOPOPTS && i != 0)
			return SAN_DROP_INET_MALFORMED;
		if (rx->proto == IPPROTO_FRAGMENT)
			drop = san_inet_whole_rx_v6(in, rx);
		else
			drop = skip_options(rx);
		if (drop != SAN_DROP_NONE || rx->m == NULL)
			return drop;
	}
	return SAN_DROP_INET_UNWANTED;
}

static enum san_drop
take_v6(struct san_inet *in, struct inet_rx *rx)
{
	enum san_drop drop = skip_headers(in, rx);

	if (drop != SAN_DROP_NONE || rx->m == NULL)
		return drop;
	if (rx->proto == IPPROTO_ICMPV6)
		return san_inet_icmp_rx(in, rx);
	if (rx->proto != IPPROTO_UDP)
		return SAN_DROP_INET_UNWANTED;
	if ((rx->d.group && !san_inet_group_is_member(in, &rx->d.dst)) || is_echo(in, rx))
		return SAN_DROP_NOT_FOR_US;
	if (!san_inet_is_unicast(&rx->d.src) || is_forged(in, rx))
		return SAN_DROP_INET_MALFORMED;
	return san_inet_udp_rx(rx);
}

static enum san_drop
rx_v6(struct san_inet *in, struct inet_rx *rx)
{
	struct rte_ipv6_hdr ip;
	uint32_t vtc_flow;

	if (!san_inet_ip_copy(rx->m, INET_ETH_LEN, sizeof(ip), &ip))
		return SAN_DROP_INET_MALFORMED;
	vtc_flow = rte_be_to_cpu_32(ip.vtc_flow);
	rx->off = INET_ETH_LEN + (uint32_t)sizeof(ip);
	rx->len = rte_be_to_cpu_16(ip.payload_len);
	if (vtc_flow >> 28 != 6 || rx->off + rx->len > rte_pktmbuf_pkt_len(rx->m))
		return SAN_DROP_INET_MALFORMED;
	memcpy(rx->d.src.b, &ip.src_addr, sizeof(rx->d.src.b));
	memcpy(rx->d.dst.b, &ip.dst_addr, sizeof(rx->d.dst.b));
	/* A v4-mapped address could be taken for an IPv4 neighbour. */
	if (rx->d.src.b[0] == 0xff || san_wire_ip_is_v4(&rx->d.src) ||
	    san_wire_ip_is_v4(&rx->d.dst))
		return SAN_DROP_INET_MALFORMED;
	rx->d.group = san_inet_is_group(&rx->d.dst);
	rx->proto = ip.proto;
	rx->proto_at = INET_ETH_LEN + (uint32_t)offsetof(struct rte_ipv6_hdr, proto);
	rx->d.hops = ip.hop_limits;
	rx->d.tos = (uint8_t)(vtc_flow >> 20);
	if (!san_inet_route_is_local(in, &rx->d.dst) && !san_inet_group_is_received(in, &rx->d.dst))
		return SAN_DROP_NOT_FOR_US;
	return take_v6(in, rx);
}

/* ---- any frame ---- */

static enum san_drop
rx_frame(struct san_inet *in, struct inet_rx *rx)
{
	if (!san_inet_ip_copy(rx->m, 0, sizeof(rx->eth), &rx->eth))
		return SAN_DROP_INET_MALFORMED;
	if (!rte_is_same_ether_addr(&rx->eth.dst_addr, &in->conf.mac) &&
	    !rte_is_multicast_ether_addr(&rx->eth.dst_addr))
		return SAN_DROP_NOT_FOR_US;
	switch (rx->eth.ether_type) {
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return san_inet_arp_rx(in, rx);
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		return rx_v4(in, rx);
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		return rx_v6(in, rx);
	default:
		return SAN_DROP_INET_UNWANTED;
	}
}

enum san_drop
san_inet_ip_rx(struct san_inet *in, struct rte_mbuf *m, uint64_t now_ns, struct san_inet_result *r)
{
	struct inet_rx rx = {.m = m, .now_ns = now_ns, .r = r};
	enum san_drop drop;

	memset(r, 0, sizeof(*r));
	drop = rx_frame(in, &rx);
	if (r->what == SAN_INET_UDP)
		r->m = rx.m;
	else
		rte_pktmbuf_free(rx.m);
	return drop;
}
