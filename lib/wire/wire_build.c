/* SPDX-License-Identifier: BSD-3-Clause */

#include "san_assert.h"
#include "wire_priv.h"

#define HOP_LIMIT 64
#define IP_ECT0   0x02

static_assert(sizeof(struct wire_front_v6) == sizeof(((struct san_wire_tmpl *)0)->front), "front");
static_assert(sizeof(struct wire_rt) == sizeof(((struct san_wire_tmpl *)0)->rt), "rt");

/* Sum of an IPv4 header without its length, from the path: faster than reading back the stores. */
static inline uint32_t
ipv4_sum(const struct san_wire_path *path, uint32_t src, uint32_t dst)
{
	uint32_t sum = rte_cpu_to_be_16(0x4500 | (uint16_t)(path->dscp << 2 | IP_ECT0));

	sum += rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
	sum += rte_cpu_to_be_16(HOP_LIMIT << 8 | IPPROTO_UDP);
	sum += (src & 0xffff) + (src >> 16);
	return sum + (dst & 0xffff) + (dst >> 16);
}

static inline void
put_eth(struct wire_eth *eth, const struct san_wire_path *path, uint16_t type)
{
	memcpy(eth->dst, path->dst_mac.addr_bytes, sizeof(eth->dst));
	memcpy(eth->src, path->src_mac.addr_bytes, sizeof(eth->src));
	eth->type = rte_cpu_to_be_16(type);
}

static inline void
put_udp(struct rte_udp_hdr *udp, const struct san_wire_path *path)
{
	udp->src_port = rte_cpu_to_be_16(path->src_port);
	udp->dst_port = rte_cpu_to_be_16(path->dst_port);
	udp->dgram_cksum = 0;
}

/** @return the BTH, which is not written yet. */
static inline struct wire_bth *
put_front_v4(struct san_wire_tmpl *t, const struct san_wire_path *path)
{
	struct wire_front_v4 *f = (struct wire_front_v4 *)t->front;
	uint32_t src, dst;

	memcpy(&src, path->src.b + WIRE_V4_OFFSET, sizeof(src));
	memcpy(&dst, path->dst.b + WIRE_V4_OFFSET, sizeof(dst));
	put_eth(&f->eth, path, RTE_ETHER_TYPE_IPV4);
	f->ip.version_ihl = RTE_IPV4_VHL_DEF;
	f->ip.type_of_service = (uint8_t)(path->dscp << 2 | IP_ECT0);
	f->ip.packet_id = 0; /* never fragmented, so it has no meaning (RFC 6864) */
	f->ip.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
	f->ip.time_to_live = HOP_LIMIT;
	f->ip.next_proto_id = IPPROTO_UDP;
	f->ip.src_addr = src;
	f->ip.dst_addr = dst;
	put_udp(&f->udp, path);
	t->ipv4_sum = ipv4_sum(path, src, dst);
	return &f->bth;
}

static inline struct wire_bth *
put_front_v6(struct san_wire_tmpl *t, const struct san_wire_path *path)
{
	struct wire_front_v6 *f = (struct wire_front_v6 *)t->front;
	uint32_t tc = (uint32_t)(path->dscp << 2 | IP_ECT0);

	put_eth(&f->eth, path, RTE_ETHER_TYPE_IPV6);
	/* The flow label identifies the path too, for switches that do not read ports. */
	f->ip.vtc_flow = rte_cpu_to_be_32(6u << 28 | tc << 20 | path->src_port);
	f->ip.proto = IPPROTO_UDP;
	f->ip.hop_limits = HOP_LIMIT;
	memcpy(&f->ip.src_addr, path->src.b, sizeof(f->ip.src_addr));
	memcpy(&f->ip.dst_addr, path->dst.b, sizeof(f->ip.dst_addr));
	put_udp(&f->udp, path);
	return &f->bth;
}

static inline void
put_remote(struct wire_remote *x, const struct san_wire_pkt *p)
{
	x->length = rte_cpu_to_be_32(p->length);
	x->key = rte_cpu_to_be_32(p->key);
	x->addr = rte_cpu_to_be_64(p->addr);
}

static inline void
put_result(struct wire_result *x, const struct san_wire_pkt *p)
{
	*x = (struct wire_result){.offset = rte_cpu_to_be_32(p->offset), .status = p->status};
}

/** Write the extended header, except that of an ACK, which is not in *p*. */
static inline void
put_ext(void *ext, const struct san_wire_pkt *p)
{
	switch (p->op) {
	case SAN_OP_PUSH_SLCTD_REQ:
		put_remote(ext, p);
		((struct wire_push *)ext)->number = rte_cpu_to_be_32(p->ssn);
		break;
	case SAN_OP_PULL_REQ:
		put_remote(ext, p);
		break;
	case SAN_OP_ATOMIC_REQ:
		*(struct wire_atomic_req *)ext = (struct wire_atomic_req){
			.op = p->status,
			.key = rte_cpu_to_be_32(p->key),
			.addr = rte_cpu_to_be_64(p->addr),
		};
		break;
	case SAN_OP_PUSH_GRNT:
		((struct wire_grnt *)ext)->ssn = rte_cpu_to_be_32(p->ssn);
		put_result(&((struct wire_grnt *)ext)->result, p);
		break;
	case SAN_OP_PUSH_SLCTD_DATA:
		((struct wire_slctd_data *)ext)->offset = rte_cpu_to_be_32(p->offset);
		break;
	case SAN_OP_PUSH_UNSLCTD_DATA:
		put_remote(ext, p);
		((struct wire_push *)ext)->number = rte_cpu_to_be_32(p->offset);
		break;
	case SAN_OP_PULL_DATA:
		put_result(ext, p);
		break;
	case SAN_OP_PUSH_PACKED:
		*(struct wire_code *)ext = (struct wire_code){.code = (uint8_t)p->length};
		break;
	case SAN_OP_RESYNC:
		*(struct wire_code *)ext = (struct wire_code){.code = p->status};
		break;
	case SAN_OP_NACK:
		*(struct wire_nack *)ext = (struct wire_nack){
			.psn = rte_cpu_to_be_32(p->nack_psn),
			.code = p->status,
			.delay_us = rte_cpu_to_be_32(p->delay_us),
		};
		break;
	default: /* CM and PROBE have none */
		break;
	}
}

/**
 * Add padding and space for the ICRC after the payload, and *hdr_len* bytes for headers before it.
 * @return the start of the headers.
 */
static inline char *
put_around(struct rte_mbuf *m, uint16_t hdr_len, uint32_t pad)
{
	char *payload = rte_pktmbuf_mtod(m, char *), *tail = payload + m->data_len;
	static const uint8_t zero[WIRE_ICRC_LEN];

	SAN_ASSERT(m->nb_segs == 1 && hdr_len != 0 && rte_pktmbuf_headroom(m) >= hdr_len &&
		   rte_pktmbuf_tailroom(m) >= pad + WIRE_ICRC_LEN);
	SAN_ASSERT(m->data_len + hdr_len + pad + WIRE_ICRC_LEN <= UINT16_MAX);
	/* These four bytes include the ICRC, so that the store has a fixed size. */
	memcpy(tail, zero, WIRE_ICRC_LEN);
	memcpy(tail + pad, zero, WIRE_ICRC_LEN);
	m->data_off -= hdr_len;
	m->data_len += (uint16_t)(hdr_len + pad + WIRE_ICRC_LEN);
	m->pkt_len = m->data_len;
	return payload - hdr_len;
}

void
san_wire_build_tmpl_init(struct san_wire_tmpl *t, const struct san_wire_path *path,
			 const struct san_wire_pkt *p)
{
	struct wire_rt *rt = (struct wire_rt *)t->rt;
	struct wire_bth *bth;

	t->v6 = !san_wire_ip_is_v4(&path->src);
	bth = t->v6 ? put_front_v6(t, path) : put_front_v4(t, path);
	bth->pkey = rte_cpu_to_be_16(p->pkey);
	bth->resv8a = 0;
	san_wire_bth_put24(bth->dqp, p->dcid);
	rt->version = SAN_WIRE_VERSION << WIRE_RT_VERSION_SHIFT;
	rt->tag = rte_cpu_to_be_32(p->tag);
	rt->req_ebsn = rte_cpu_to_be_32(p->req_ebsn);
	rt->data_ebsn = rte_cpu_to_be_32(p->data_ebsn);
	rt->cmpl_rsn = rte_cpu_to_be_32(p->cmpl_rsn);
	rt->tx_time = rte_cpu_to_be_32(p->tx_time);
}

/** Write padding and all headers up to the BTH. */
static inline struct wire_bth *
put_front(struct rte_mbuf *m, const struct san_wire_tmpl *t, const struct san_wire_pkt *p)
{
	uint32_t pad = -(uint32_t)m->data_len & 3;
	char *data = put_around(m, san_wire_op_hdr_len(p->op, t->v6), pad);
	uint32_t ip_len = m->data_len - sizeof(struct wire_eth), sum;
	struct wire_front_v4 *v4 = (struct wire_front_v4 *)data;
	struct wire_front_v6 *v6 = (struct wire_front_v6 *)data;
	struct wire_bth *bth;

	if (t->v6) {
		memcpy(v6, t->front, sizeof(*v6));
		v6->udp.dgram_len = rte_cpu_to_be_16((uint16_t)(ip_len - sizeof(v6->ip)));
		v6->ip.payload_len = v6->udp.dgram_len;
		bth = (struct wire_bth *)(data + offsetof(struct wire_front_v6, bth));
	} else {
		memcpy(v4, t->front, sizeof(*v4));
		v4->ip.total_length = rte_cpu_to_be_16((uint16_t)ip_len);
		sum = t->ipv4_sum + v4->ip.total_length;
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		v4->ip.hdr_checksum = (rte_be16_t)~sum;
		v4->udp.dgram_len = rte_cpu_to_be_16((uint16_t)(ip_len - sizeof(v4->ip)));
		bth = (struct wire_bth *)(data + offsetof(struct wire_front_v4, bth));
	}
	bth->opcode = p->op;
	bth->bits = (uint8_t)(pad << WIRE_BTH_PAD_SHIFT);
	bth->ackreq = p->ackreq ? WIRE_BTH_ACKREQ : 0;
	san_wire_bth_put24(bth->psn, p->psn);
	return bth;
}

/** Write all headers but the extended one. @return its place. */
static inline void *
put_headers(struct rte_mbuf *m, const struct san_wire_tmpl *t, const struct san_wire_pkt *p)
{
	struct wire_rt *rt = (struct wire_rt *)(put_front(m, t, p) + 1);

	memcpy(rt, t->rt, sizeof(*rt));
	rt->flags = p->flags;
	rt->psn_hi = (uint8_t)(p->psn >> 24);
	rt->round = p->round;
	rt->rsn = rte_cpu_to_be_32(p->rsn);
	return rt + 1;
}

void
san_wire_build_next(struct rte_mbuf *m, const struct san_wire_tmpl *t,
		    const struct san_wire_pkt *p)
{
	SAN_ASSERT(p->op != SAN_OP_ACK && p->op != SAN_OP_CNP);
	put_ext(put_headers(m, t, p), p);
}

void
san_wire_build_ask_ack(struct rte_mbuf *m)
{
	struct wire_front_v4 *v4 = rte_pktmbuf_mtod(m, struct wire_front_v4 *);
	struct wire_front_v6 *v6 = rte_pktmbuf_mtod(m, struct wire_front_v6 *);

	if (v4->eth.type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		v4->bth.ackreq = WIRE_BTH_ACKREQ;
	else
		v6->bth.ackreq = WIRE_BTH_ACKREQ;
}

void
san_wire_build_cut(struct rte_mbuf *m, struct san_wire_pkt *p, uint16_t from, uint16_t len)
{
	struct wire_piece x = {
		.offset = rte_cpu_to_be_16(from),
		.length = rte_cpu_to_be_16(rte_pktmbuf_data_len(m)),
	};
	uint16_t behind = rte_pktmbuf_data_len(m) - from - len;
	char *data;

	SAN_ASSERT(m->nb_segs == 1 && from + len <= rte_pktmbuf_data_len(m));
	rte_pktmbuf_trim(m, behind);
	rte_pktmbuf_adj(m, from);
	data = rte_pktmbuf_prepend(m, sizeof(x));
	SAN_VERIFY(data != NULL);
	memcpy(data, &x, sizeof(x));
	p->flags |= SAN_F_PIECE;
}

void
san_wire_build(struct rte_mbuf *m, const struct san_wire_path *path, const struct san_wire_pkt *p)
{
	struct san_wire_tmpl t;
	struct wire_bth *bth;

	san_wire_build_tmpl_init(&t, path, p);
	if (likely(p->op != SAN_OP_CNP)) {
		san_wire_build_next(m, &t, p);
		return;
	}
	/* As in RoCEv2: the bytes after the BTH are reserved. */
	bth = put_front(m, &t, p);
	bth->resv8a = WIRE_BTH_BECN;
	memset(bth + 1, 0, WIRE_CNP_LEN);
}

void
san_wire_build_ack(struct rte_mbuf *m, const struct san_wire_path *path,
		   const struct san_wire_pkt *p, const struct san_wire_ack *ack)
{
	uint16_t len = (uint16_t)((ack->nb_req + 2 * ack->nb_data) * sizeof(uint64_t));
	uint8_t *to = san_wire_payload(m, len);
	struct san_wire_tmpl t;
	struct wire_ack *x;

	SAN_ASSERT(p->op == SAN_OP_ACK && to != NULL);
	SAN_ASSERT(ack->nb_req <= SAN_WIRE_REQ_WORDS && ack->nb_data <= SAN_WIRE_DATA_WORDS);
	to += san_wire_copy_words(to, ack->req, ack->nb_req);
	to += san_wire_copy_words(to, ack->data_acked, ack->nb_data);
	san_wire_copy_words(to, ack->data_rcvd, ack->nb_data);

	san_wire_build_tmpl_init(&t, path, p);
	x = put_headers(m, &t, p);
	x->serial = rte_cpu_to_be_32(ack->serial);
	x->echo_tx = rte_cpu_to_be_32(ack->echo_tx);
	x->echo_rx = rte_cpu_to_be_32(ack->echo_rx);
	x->ecn_count = rte_cpu_to_be_16(ack->ecn_count);
	x->rx_level = rte_cpu_to_be_16(ack->rx_level);
	x->first_win = rte_cpu_to_be_16(ack->first_win);
	x->bits = (uint8_t)(ack->nb_req << WIRE_ACK_NB_REQ_SHIFT | (ack->oow & WIRE_ACK_OOW));
	x->nb_data = ack->nb_data;
}
