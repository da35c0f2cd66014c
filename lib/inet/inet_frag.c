/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets that are longer than their path takes: into fragments, and whole again (RFC 791,
 * RFC 8200 4.5). (UDP-3)
 *
 * rte_ip_frag puts them together: a table of fixed size for each family, time in nanoseconds.
 * As Debian builds it a packet is at most RTE_LIBRTE_IP_FRAG_MAX_FRAG (8) fragments. Fragments
 * that overlap, or come twice, take their packet with them (RFC 5722). What it takes for
 * granted is checked here before. Each of our own fragments is one mbuf: not every port knows
 * chains.
 *
 * Timer: once a second while there may be packets that wait for the rest.
 */

#define ALLOW_EXPERIMENTAL_API /* to let go of what has waited too long */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_ip_frag.h>

#include "inet_priv.h"
#include "san_time.h"

#define WAIT_V4_NS     (30 * SAN_NS_PER_S)
#define WAIT_V6_NS     (60 * SAN_NS_PER_S)
#define LOOK_NS        SAN_NS_PER_S
#define CROWDED_NS     SAN_NS_PER_S
#define BUCKET_ENTRIES 4
#define V4_LEN         ((uint32_t)sizeof(struct rte_ipv4_hdr))
#define V6_LEN         ((uint32_t)sizeof(struct rte_ipv6_hdr))
#define FRAG_LEN       ((uint32_t)sizeof(struct rte_ipv6_fragment_ext))

static const uint64_t wait_ns[2] = {WAIT_V4_NS, WAIT_V6_NS};

int
san_inet_frag_create(struct san_inet *in)
{
	uint32_t n = rte_align32pow2(in->conf.max_partial);

	in->frag_id = (uint32_t)san_prng_u64(&in->prng);
	in->frag_ns = SAN_TIME_NEVER;
	if (n == 0)
		return 0;
	in->death = calloc(1, sizeof(*in->death));
	in->partial[0] = rte_ip_frag_table_create(n, BUCKET_ENTRIES, in->conf.max_partial,
						  wait_ns[0], SOCKET_ID_ANY);
	in->partial[1] = rte_ip_frag_table_create(n, BUCKET_ENTRIES, in->conf.max_partial,
						  wait_ns[1], SOCKET_ID_ANY);
	return in->death != NULL && in->partial[0] != NULL && in->partial[1] != NULL ? 0 : -ENOMEM;
}

void
san_inet_frag_destroy(struct san_inet *in)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(in->partial); i++)
		if (in->partial[i] != NULL)
			rte_ip_frag_table_destroy(in->partial[i]);
	free(in->death);
}

/* ---- out ---- */

/** Bytes of a fragment that is not the last. */
static uint32_t
step_of(bool v4, uint16_t mtu)
{
	return (mtu - (v4 ? V4_LEN : V6_LEN + FRAG_LEN)) & ~7u;
}

uint32_t
san_inet_nb_frags(bool v4, uint32_t len, uint16_t mtu)
{
	uint32_t ip_len = v4 ? V4_LEN : V6_LEN, step = step_of(v4, mtu);

	return len <= mtu ? 1 : (len - ip_len + step - 1) / step;
}

static void
put_v4(struct rte_ipv4_hdr *ip, uint32_t at, uint32_t n, bool more)
{
	ip->total_length = rte_cpu_to_be_16((uint16_t)(V4_LEN + n));
	ip->fragment_offset =
		rte_cpu_to_be_16((uint16_t)(at / 8 | (more ? RTE_IPV4_HDR_MF_FLAG : 0)));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static void
put_v6(struct rte_ipv6_hdr *ip, uint32_t at, uint32_t n, bool more, uint32_t id)
{
	struct rte_ipv6_fragment_ext *frag = (struct rte_ipv6_fragment_ext *)(ip + 1);

	frag->next_header = ip->proto;
	frag->reserved = 0;
	frag->frag_data = rte_cpu_to_be_16((uint16_t)(at | more));
	frag->id = rte_cpu_to_be_32(id);
	ip->proto = INET_PROTO_FRAG;
	ip->payload_len = rte_cpu_to_be_16((uint16_t)(FRAG_LEN + n));
}

/** *m*, for *mtu* too long, in pieces; 0: no mbuf. It stays. */
static uint32_t
split(struct san_inet *in, const struct rte_mbuf *m, uint16_t mtu, struct rte_mbuf **out)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	bool v4 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4);
	uint32_t hdr = INET_ETH_LEN + (v4 ? V4_LEN : V6_LEN), step = step_of(v4, mtu);
	uint32_t len = rte_pktmbuf_pkt_len(m) - hdr, id = in->frag_id++, at, n, k = 0;
	struct rte_mbuf *f;

	for (at = 0; at < len; at += step) {
		n = RTE_MIN(len - at, step);
		f = k < INET_NB_FRAGS ?
			san_inet_out_copy(in, m, hdr + at, n, hdr + (v4 ? 0 : FRAG_LEN)) :
			NULL;
		if (f == NULL) {
			rte_pktmbuf_free_bulk(out, k);
			return 0;
		}
		memcpy(rte_pktmbuf_mtod(f, void *), eth, hdr);
		if (v4)
			put_v4(rte_pktmbuf_mtod_offset(f, void *, INET_ETH_LEN), at, n,
			       at + n < len);
		else
			put_v6(rte_pktmbuf_mtod_offset(f, void *, INET_ETH_LEN), at, n,
			       at + n < len, id);
		out[k++] = f;
	}
	return k;
}

int
san_inet_out_packet(struct san_inet *in, struct rte_mbuf *m, const struct inet_hop *hop,
		    uint16_t mtu)
{
	struct rte_mbuf *f[INET_NB_FRAGS] = {m};
	uint32_t i, n = 1;

	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->dst_addr = hop->mac;
	if (rte_pktmbuf_pkt_len(m) - INET_ETH_LEN > mtu) {
		n = split(in, m, mtu, f);
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

/* ---- in ---- */

/** In one mbuf, without what is behind the packet: rte_ip_frag adds up what it has. */
static bool
tidy(struct san_inet *in, struct inet_rx *rx)
{
	uint32_t len = rx->off + rx->len;
	struct rte_mbuf *m = rx->m;

	if (m->nb_segs != 1) {
		rx->m = rte_pktmbuf_copy(m, in->conf.pool, 0, len);
		rte_pktmbuf_free(m);
		m = rx->m;
		if (m == NULL || rte_pktmbuf_data_len(m) < rx->off)
			return false;
	}
	m->tx_offload = 0;
	m->l2_len = INET_ETH_LEN;
	m->l3_len = rx->off - INET_ETH_LEN;
	return rte_pktmbuf_trim(m, (uint16_t)(rte_pktmbuf_pkt_len(m) - len)) == 0;
}

static void
bury(struct san_inet *in)
{
	/* what it gave up is counted and freed */
	in->drops[SAN_DROP_INET_FRAG] += in->death->cnt;
	rte_ip_frag_free_death_row(in->death, 0);
}

/**
 * Fragments are together in moments, if at all. When the last one found no room, what has waited
 * for longer makes room: else few lone fragments would keep everybody's out for a minute.
 */
static void
make_room(struct san_inet *in, uint32_t i, uint64_t now_ns)
{
	if (!in->is_crowded[i])
		return;
	in->is_crowded[i] = false;
	rte_ip_frag_table_del_expired_entries(in->partial[i], in->death,
					      now_ns + wait_ns[i] - CROWDED_NS);
	bury(in);
}

static enum san_drop
check(struct san_inet *in, struct inet_rx *rx, uint32_t at, bool more)
{
	if (in->conf.max_partial == 0)
		return SAN_DROP_INET_UNWANTED;
	if (rx->len == 0 || (more && rx->len % 8 != 0) ||
	    at + rx->len > UINT16_MAX - (san_ip_is_v4(&rx->dst) ? V4_LEN : 0))
		return SAN_DROP_INET_MALFORMED;
	if (!tidy(in, rx))
		return SAN_DROP_NO_MBUF;
	in->frag_ns = san_time_min(in->frag_ns, rx->now_ns + LOOK_NS);
	in->frag_until_ns = rx->now_ns + WAIT_V6_NS + LOOK_NS;
	return SAN_DROP_NONE;
}

enum san_drop
san_inet_frag_rx_v4(struct san_inet *in, struct inet_rx *rx, uint16_t fragment_offset)
{
	enum san_drop drop = check(in, rx, (fragment_offset & RTE_IPV4_HDR_OFFSET_MASK) * 8u,
				   (fragment_offset & RTE_IPV4_HDR_MF_FLAG) != 0);
	struct rte_ipv4_hdr *ip;

	if (drop != SAN_DROP_NONE)
		return drop;
	ip = rte_pktmbuf_mtod_offset(rx->m, struct rte_ipv4_hdr *, INET_ETH_LEN);
	make_room(in, 0, rx->now_ns);
	rx->m = rte_ipv4_frag_reassemble_packet(in->partial[0], in->death, rx->m, rx->now_ns, ip);
	in->is_crowded[0] = in->death->cnt != 0;
	bury(in);
	if (rx->m == NULL)
		return SAN_DROP_NONE;
	/* the headers are the first fragment's */
	ip = rte_pktmbuf_mtod_offset(rx->m, struct rte_ipv4_hdr *, INET_ETH_LEN);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	rx->off = INET_ETH_LEN + rte_ipv4_hdr_len(ip);
	rx->len = rte_be_to_cpu_16(ip->total_length) - rte_ipv4_hdr_len(ip);
	rx->proto = ip->next_proto_id;
	rx->hops = ip->time_to_live;
	rx->tos = ip->type_of_service;
	rx->whole = true;
	return SAN_DROP_NONE;
}

/** One that is alone needs no others (RFC 6946). */
static enum san_drop
skip_frag(struct inet_rx *rx, const struct rte_ipv6_fragment_ext *frag)
{
	rx->proto = frag->next_header;
	rx->off += FRAG_LEN;
	rx->len -= FRAG_LEN;
	rx->whole = true;
	return SAN_DROP_NONE;
}

enum san_drop
san_inet_frag_rx_v6(struct san_inet *in, struct inet_rx *rx)
{
	struct rte_ipv6_fragment_ext frag;
	struct rte_ipv6_hdr *ip;
	enum san_drop drop;
	uint16_t data;

	if (rx->whole || rx->len < FRAG_LEN || !san_inet_copy(rx->m, rx->off, FRAG_LEN, &frag))
		return SAN_DROP_INET_MALFORMED;
	data = rte_be_to_cpu_16(frag.frag_data);
	if (RTE_IPV6_GET_FO(data) == 0 && !RTE_IPV6_GET_MF(data))
		return skip_frag(rx, &frag);
	/* rte_ip_frag knows no other headers in front of it */
	if (rx->off != INET_ETH_LEN + V6_LEN)
		return SAN_DROP_INET_UNWANTED;
	rx->off += FRAG_LEN;
	rx->len -= FRAG_LEN;
	drop = check(in, rx, RTE_IPV6_GET_FO(data) * 8u, RTE_IPV6_GET_MF(data));
	if (drop != SAN_DROP_NONE)
		return drop;
	ip = rte_pktmbuf_mtod_offset(rx->m, struct rte_ipv6_hdr *, INET_ETH_LEN);
	make_room(in, 1, rx->now_ns);
	rx->m = rte_ipv6_frag_reassemble_packet(in->partial[1], in->death, rx->m, rx->now_ns, ip,
						(struct rte_ipv6_fragment_ext *)(ip + 1));
	in->is_crowded[1] = in->death->cnt != 0;
	bury(in);
	if (rx->m == NULL)
		return SAN_DROP_NONE;
	ip = rte_pktmbuf_mtod_offset(rx->m, struct rte_ipv6_hdr *, INET_ETH_LEN);
	rx->off = INET_ETH_LEN + V6_LEN;
	rx->len = rte_be_to_cpu_16(ip->payload_len);
	rx->proto = ip->proto;
	rx->hops = ip->hop_limits;
	rx->tos = (uint8_t)(rte_be_to_cpu_32(ip->vtc_flow) >> 20);
	rx->whole = true;
	return SAN_DROP_NONE;
}

uint64_t
san_inet_frag_tick(struct san_inet *in, uint64_t now_ns)
{
	uint32_t i;

	if (now_ns < in->frag_ns)
		return in->frag_ns;
	for (i = 0; i < RTE_DIM(in->partial); i++) {
		do {
			bury(in);
			rte_ip_frag_table_del_expired_entries(in->partial[i], in->death, now_ns);
		} while (in->death->cnt != 0);
	}
	in->frag_ns = now_ns < in->frag_until_ns ? now_ns + LOOK_NS : SAN_TIME_NEVER;
	return in->frag_ns;
}
