/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UDP datagrams, received and sent (RFC 768, RFC 8200 8.1). Checksums are computed and checked in
 * software, so they are right with any port. (UDP-3)
 */

#include <errno.h>

#include <rte_udp.h>

#include "inet_priv.h"

#define UDP_LEN ((uint32_t)sizeof(struct rte_udp_hdr))

/*
 * ---- receiving ----
 */

enum san_drop
san_inet_udp_rx(const struct inet_rx *rx)
{
	struct san_inet_result *r = rx->r;
	struct rte_udp_hdr udp;
	uint32_t len;
	uint16_t sum;

	if (rx->len < UDP_LEN || !san_inet_ip_copy(rx->m, rx->off, UDP_LEN, &udp))
		return SAN_DROP_INET_MALFORMED;
	len = rte_be_to_cpu_16(udp.dgram_len);
	if (len < UDP_LEN || len > rx->len)
		return SAN_DROP_INET_MALFORMED;
	/* 0 means no checksum in IPv4. IPv6 has no header checksum, so UDP must have one. */
	if (udp.dgram_cksum == 0 && !san_wire_ip_is_v4(&rx->dst))
		return SAN_DROP_INET_MALFORMED;
	sum = san_inet_ip_cksum(rx->m, rx->off, len, &rx->src, &rx->dst, INET_PROTO_UDP);
	if (udp.dgram_cksum != 0 && sum != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	r->what = SAN_INET_UDP;
	r->d.src = rx->src;
	r->d.dst = rx->dst;
	r->d.sport = rte_be_to_cpu_16(udp.src_port);
	r->d.dport = rte_be_to_cpu_16(udp.dst_port);
	r->d.hops = rx->hops;
	r->d.tos = rx->tos;
	r->d.group = rx->group;
	r->off = rx->off + UDP_LEN;
	r->len = len - UDP_LEN;
	return SAN_DROP_NONE;
}

/*
 * ---- sending ----
 */

/** A datagram to be sent. */
struct udp_out {
	const struct san_inet_dgram *d;
	struct san_ip src;
	uint32_t ip_len; /* of the IP header */
	uint32_t len;    /* of the UDP header and what follows */
	uint8_t hops;
};

static int
check_addrs(const struct san_inet *in, struct udp_out *x)
{
	const struct san_inet_dgram *d = x->d;
	const struct san_inet_addr *a;
	bool on_link;

	if (!san_inet_is_any(&d->src)) {
		x->src = d->src;
		return san_wire_ip_is_v4(&d->src) == san_wire_ip_is_v4(&d->dst) &&
				san_inet_route_is_local(in, &d->src) ?
			0 :
			-EADDRNOTAVAIL;
	}
	if (!san_inet_is_group(&d->dst) && !san_inet_route_is_broadcast(in, &d->dst))
		return san_inet_route_source(in, &d->dst, &x->src);
	a = san_inet_route_best_source(in, &d->dst, &on_link);
	if (a == NULL)
		return -EADDRNOTAVAIL;
	x->src = a->ip;
	return 0;
}

static int
check_len(struct udp_out *x, const struct iovec *iov, uint32_t nb_iov)
{
	bool v4 = san_wire_ip_is_v4(&x->d->dst);
	uint32_t i;

	x->ip_len = v4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	x->len = UDP_LEN;
	for (i = 0; i < nb_iov; i++) {
		if (iov[i].iov_len > UINT16_MAX)
			return -EMSGSIZE;
		x->len += (uint32_t)iov[i].iov_len;
		/* the limit includes the IPv4 header, but not the IPv6 header */
		if (x->len + (v4 ? x->ip_len : 0) > UINT16_MAX)
			return -EMSGSIZE;
	}
	return 0;
}

/** Append a copy of *n* bytes, in further mbufs if needed. */
static bool
inet_udp_append_data(struct san_inet *in, struct rte_mbuf *m, struct rte_mbuf **last,
		     const uint8_t *data, size_t n)
{
	while (n > 0) {
		uint16_t k = (uint16_t)RTE_MIN(n, (size_t)rte_pktmbuf_tailroom(*last));
		struct rte_mbuf *more;

		if (k == 0) {
			more = san_inet_out_alloc(in);
			if (more == NULL)
				return false;
			(*last)->next = more;
			*last = more;
			m->nb_segs++;
			continue;
		}
		memcpy(rte_pktmbuf_mtod_offset(*last, void *, (*last)->data_len), data, k);
		(*last)->data_len += k;
		m->pkt_len += k;
		data += k;
		n -= k;
	}
	return true;
}

static struct rte_mbuf *
inet_udp_build_dgram(struct san_inet *in, const struct udp_out *x, const struct iovec *iov,
		     uint32_t nb_iov)
{
	bool v4 = san_wire_ip_is_v4(&x->d->dst);
	uint32_t i, off = INET_ETH_LEN + x->ip_len;
	struct rte_mbuf *m = san_inet_out_frame(in, san_inet_ether_type(&x->d->dst),
						x->ip_len + UDP_LEN);
	struct rte_mbuf *last = m;
	struct rte_udp_hdr *udp;
	uint16_t sum;

	if (m == NULL)
		return NULL;
	for (i = 0; i < nb_iov; i++) {
		if (!inet_udp_append_data(in, m, &last, iov[i].iov_base, iov[i].iov_len)) {
			rte_pktmbuf_free(m);
			return NULL;
		}
	}
	san_inet_ip_put(rte_pktmbuf_mtod_offset(m, void *, INET_ETH_LEN),
			&(struct inet_ip_out){
				.src = &x->src,
				.dst = &x->d->dst,
				.len = x->len,
				.proto = INET_PROTO_UDP,
				.hops = x->hops,
				.tos = x->d->tos,
				.id = v4 ? (uint16_t)san_inet_ip_id(in, &x->d->dst) : 0,
				.df = x->d->df,
			});
	udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, off);
	udp->src_port = rte_cpu_to_be_16(x->d->sport);
	udp->dst_port = rte_cpu_to_be_16(x->d->dport);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)x->len);
	udp->dgram_cksum = 0;
	sum = (uint16_t)~san_inet_ip_cksum(m, off, x->len, &x->src, &x->d->dst, INET_PROTO_UDP);
	/* 0 would mean that there is no checksum. */
	udp->dgram_cksum = sum != 0 ? sum : 0xffff;
	return m;
}

int
san_inet_udp_send(struct san_inet *in, const struct san_inet_dgram *d, const struct iovec *iov,
		  uint32_t nb_iov, uint64_t now_ns)
{
	struct udp_out x = {.d = d};
	struct inet_hop hop;
	struct rte_mbuf *m;
	uint16_t mtu;
	int rc;

	x.hops = d->hops != 0 ? d->hops : san_inet_is_group(&d->dst) ? 1 :
								       INET_HOPS_OUT;
	rc = check_addrs(in, &x);
	if (rc == 0)
		rc = check_len(&x, iov, nb_iov);
	if (rc != 0)
		return rc;
	mtu = d->probe ? in->conf.mtu : san_inet_path_mtu(in, &d->dst, now_ns);
	if (d->df && x.ip_len + x.len > mtu)
		return -EMSGSIZE;
	if (san_inet_out_room(in) <
	    san_inet_frag_count(san_wire_ip_is_v4(&d->dst), x.ip_len + x.len, mtu))
		return -EAGAIN;
	rc = san_inet_route_hop(in, &d->dst, now_ns, &hop);
	if (rc != 0 && rc != -EAGAIN)
		return rc;
	m = inet_udp_build_dgram(in, &x, iov, nb_iov);
	return m != NULL ? san_inet_frag_out(in, m, &hop, mtu) : -ENOMEM;
}
