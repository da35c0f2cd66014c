/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UDP datagrams, received and sent (RFC 768, RFC 8200 8.1). Checksums are computed and checked in
 * software, so they are right with any port. (UDP-3)
 */

#include <rte_udp.h>

#include "inet_priv.h"

#define UDP_LEN ((uint32_t)sizeof(struct rte_udp_hdr))

/* ---- receiving ---- */

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
	if (udp.dgram_cksum == 0 && !san_wire_ip_is_v4(&rx->d.dst))
		return SAN_DROP_INET_MALFORMED;
	sum = san_inet_ip_cksum(rx->m, rx->off, len, &rx->d.src, &rx->d.dst, IPPROTO_UDP);
	if (udp.dgram_cksum != 0 && sum != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	r->what = SAN_INET_UDP;
	r->d = rx->d;
	r->d.sport = rte_be_to_cpu_16(udp.src_port);
	r->d.dport = rte_be_to_cpu_16(udp.dst_port);
	r->off = rx->off + UDP_LEN;
	r->len = len - UDP_LEN;
	return SAN_DROP_NONE;
}

/* ---- sending ---- */

/** Find the source address *src* of *d*. */
static int
udp_source(const struct san_inet *in, const struct san_inet_dgram *d, struct san_ip *src)
{
	const struct san_inet_addr *a;

	*src = d->src;
	if (!san_inet_is_any(src))
		return san_wire_ip_is_v4(src) == san_wire_ip_is_v4(&d->dst) &&
				san_inet_route_is_local(in, src) ?
			0 :
			-EADDRNOTAVAIL;
	if (!san_inet_is_group(&d->dst) && !san_inet_route_is_broadcast(in, &d->dst))
		return san_inet_route_source(in, &d->dst, src);
	a = san_inet_route_best_source(in, &d->dst);
	if (a == NULL)
		return -EADDRNOTAVAIL;
	*src = a->ip;
	return 0;
}

/** Add up the UDP header and the data to x->len. */
static int
udp_add_up(struct inet_ip_out *x, const struct iovec *iov, uint32_t nb_iov)
{
	/* the limit includes the IPv4 header, but not the IPv6 header */
	uint32_t most = UINT16_MAX - (san_wire_ip_is_v4(x->dst) ? INET_V4_LEN : 0), i;

	x->len = UDP_LEN;
	for (i = 0; i < nb_iov; i++) {
		if (iov[i].iov_len > most - x->len)
			return -EMSGSIZE;
		x->len += (uint32_t)iov[i].iov_len;
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
inet_udp_build_dgram(struct san_inet *in, const struct san_inet_dgram *d, struct inet_ip_out *x,
		     const struct iovec *iov, uint32_t nb_iov)
{
	uint32_t i, hdr = san_inet_hdr_len(x->dst);
	struct rte_mbuf *m = san_inet_out_frame(in, san_inet_ether_type(x->dst), hdr + UDP_LEN);
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
	x->id = san_wire_ip_is_v4(x->dst) ? (uint16_t)san_inet_ip_id(in, x->dst) : 0;
	udp = san_inet_ip_put(rte_pktmbuf_mtod_offset(m, void *, INET_ETH_LEN), x);
	udp->src_port = rte_cpu_to_be_16(d->sport);
	udp->dst_port = rte_cpu_to_be_16(d->dport);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)x->len);
	udp->dgram_cksum = 0;
	sum = (uint16_t)~san_inet_ip_cksum(m, INET_ETH_LEN + hdr, x->len, x->src, x->dst, x->proto);
	/* 0 would mean that there is no checksum. */
	udp->dgram_cksum = sum != 0 ? sum : 0xffff;
	return m;
}

int
san_inet_udp_send(struct san_inet *in, const struct san_inet_dgram *d, const struct iovec *iov,
		  uint32_t nb_iov, uint64_t now_ns)
{
	struct san_ip src;
	struct inet_ip_out x = {
		.src = &src,
		.dst = &d->dst,
		.proto = IPPROTO_UDP,
		.hops = d->hops != 0 ? d->hops : san_inet_is_group(&d->dst) ? 1 :
									      INET_HOPS_OUT,
		.tos = d->tos,
		.df = d->df,
	};
	struct inet_hop hop;
	struct rte_mbuf *m;
	uint32_t len;
	uint16_t mtu;
	int rc;

	rc = udp_source(in, d, &src);
	if (rc == 0)
		rc = udp_add_up(&x, iov, nb_iov);
	if (rc != 0)
		return rc;
	len = san_inet_hdr_len(&d->dst) + x.len;
	mtu = d->probe ? in->conf.mtu : san_inet_path_mtu(in, &d->dst, now_ns);
	if (d->df && len > mtu)
		return -EMSGSIZE;
	if (san_inet_out_room(in) < san_inet_frag_count(san_wire_ip_is_v4(&d->dst), len, mtu))
		return -EAGAIN;
	rc = san_inet_route_hop(in, &d->dst, now_ns, &hop);
	if (rc != 0 && rc != -EAGAIN)
		return rc;
	m = inet_udp_build_dgram(in, d, &x, iov, nb_iov);
	return m != NULL ? san_inet_frag_out(in, m, &hop, mtu) : -ENOMEM;
}
