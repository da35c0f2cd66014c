/* SPDX-License-Identifier: BSD-3-Clause */

#include "wire_check.h"
#include "wire_pack.h"

/*
 * Order of the checks: first those needed to find the ICRC, then the ICRC, then the RT headers. So
 * a packet damaged on the wire counts as SAN_DROP_ICRC. SAN_DROP_VERSION, _RESERVED and _FIELD mean
 * that a peer really sent it.
 *
 * headers_at() makes sure that bytes are there before they are read.
 */

#define FRAG_OFFSET RTE_IPV4_HDR_OFFSET_MASK

/** Make *n* bytes contiguous by taking them from the following segments. */
static __rte_noinline bool
pull_up(struct rte_mbuf *m, uint16_t n)
{
	struct rte_mbuf *seg;
	uint16_t part;

	/* Writing after the data of an mbuf requires that it is not shared. */
	if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1)
		return false;
	if (m->data_off + n > m->buf_len) {
		/* No room after the data: move the data to the start. */
		if (n > m->buf_len)
			return false;
		memmove(m->buf_addr, rte_pktmbuf_mtod(m, void *), m->data_len);
		m->data_off = 0;
	}
	while (m->data_len < n) {
		seg = m->next;
		if (rte_mbuf_refcnt_read(seg) != 1)
			return false;
		part = RTE_MIN((uint16_t)(n - m->data_len), seg->data_len);
		memcpy(rte_pktmbuf_mtod_offset(m, char *, m->data_len),
		       rte_pktmbuf_mtod(seg, char *), part);
		m->data_len += part;
		seg->data_len -= part;
		seg->data_off += part;
		if (seg->data_len == 0) {
			m->next = seg->next;
			m->nb_segs--;
			rte_pktmbuf_free_seg(seg);
		}
	}
	return true;
}

/** Make sure that the first *n* bytes of the frame are there and contiguous. */
static inline enum san_drop
headers_at(struct rte_mbuf *m, uint16_t n)
{
	if (likely(rte_pktmbuf_data_len(m) >= n))
		return SAN_DROP_NONE;
	if (rte_pktmbuf_pkt_len(m) < n)
		return SAN_DROP_SHORT;
	return pull_up(m, n) ? SAN_DROP_NONE : SAN_DROP_SPLIT_HEADER;
}

/** NONE if the packet may be for this host. A later fragment has no port: inet handles it. */
static inline enum san_drop
claim_v4(struct rte_mbuf *m, uint16_t udp_port)
{
	const struct wire_front_v4 *f;
	rte_be16_t port;
	size_t port_at;
	uint16_t ihl;
	enum san_drop drop;

	drop = headers_at(m, offsetof(struct wire_front_v4, udp));
	if (drop != SAN_DROP_NONE)
		return drop;
	f = rte_pktmbuf_mtod(m, const struct wire_front_v4 *);
	ihl = (f->ip.version_ihl & RTE_IPV4_HDR_IHL_MASK) * RTE_IPV4_IHL_MULTIPLIER;
	if (f->ip.version_ihl >> 4 != IPVERSION || ihl < sizeof(f->ip))
		return SAN_DROP_IP_HEADER;
	if (f->ip.next_proto_id != IPPROTO_UDP ||
	    (rte_be_to_cpu_16(f->ip.fragment_offset) & FRAG_OFFSET) != 0)
		return SAN_DROP_NOT_OURS;
	drop = headers_at(m, (uint16_t)(sizeof(f->eth) + ihl + sizeof(f->udp)));
	if (drop != SAN_DROP_NONE)
		return drop;
	port_at = sizeof(f->eth) + ihl + offsetof(struct rte_udp_hdr, dst_port);
	memcpy(&port, rte_pktmbuf_mtod_offset(m, const char *, port_at), sizeof(port));
	return port == rte_cpu_to_be_16(udp_port) ? SAN_DROP_NONE : SAN_DROP_NOT_OURS;
}

static inline enum san_drop
parse_v4(struct rte_mbuf *m, uint16_t udp_port, struct san_wire_pkt *p, uint32_t *len)
{
	const struct wire_front_v4 *f;
	enum san_drop drop;

	drop = claim_v4(m, udp_port);
	if (drop != SAN_DROP_NONE)
		return drop;
	drop = san_wire_check_v4(m, rte_pktmbuf_mtod(m, const struct wire_front_v4 *), len);
	if (drop != SAN_DROP_NONE)
		return drop;
	drop = headers_at(m, sizeof(*f));
	if (drop != SAN_DROP_NONE)
		return drop;
	f = rte_pktmbuf_mtod(m, const struct wire_front_v4 *);
	p->ce = (f->ip.type_of_service & IP_ECN_CE) == IP_ECN_CE;
	p->src_port = rte_be_to_cpu_16(f->udp.src_port);
	san_wire_ip_from_v4(&p->src, &f->ip.src_addr);
	san_wire_ip_from_v4(&p->dst, &f->ip.dst_addr);
	return SAN_DROP_NONE;
}

static inline enum san_drop
parse_v6(struct rte_mbuf *m, uint16_t udp_port, struct san_wire_pkt *p, uint32_t *len)
{
	const struct wire_front_v6 *f;
	enum san_drop drop;

	drop = headers_at(m, offsetof(struct wire_front_v6, udp));
	if (drop != SAN_DROP_NONE)
		return drop;
	f = rte_pktmbuf_mtod(m, const struct wire_front_v6 *);
	if (rte_be_to_cpu_32(f->ip.vtc_flow) >> 28 != 6)
		return SAN_DROP_IP_HEADER;
	/* This includes extension headers: MLD has one, our packets have none. */
	if (f->ip.proto != IPPROTO_UDP)
		return SAN_DROP_NOT_OURS;
	drop = headers_at(m, offsetof(struct wire_front_v6, bth));
	if (drop != SAN_DROP_NONE)
		return drop;
	f = rte_pktmbuf_mtod(m, const struct wire_front_v6 *);
	if (f->udp.dst_port != rte_cpu_to_be_16(udp_port))
		return SAN_DROP_NOT_OURS;
	memcpy(p->src.b, &f->ip.src_addr, sizeof(p->src.b));
	memcpy(p->dst.b, &f->ip.dst_addr, sizeof(p->dst.b));
	/* An IPv4 address in IPv6 form could be taken for that of an IPv4 peer. */
	if (san_wire_ip_is_v4(&p->src) || san_wire_ip_is_v4(&p->dst))
		return SAN_DROP_IP_HEADER;
	drop = san_wire_check_v6(m, f, len);
	if (drop != SAN_DROP_NONE)
		return drop;
	p->v6 = true;
	p->ce = (rte_be_to_cpu_32(f->ip.vtc_flow) >> 20 & IP_ECN_CE) == IP_ECN_CE;
	p->src_port = rte_be_to_cpu_16(f->udp.src_port);
	return headers_at(m, sizeof(*f));
}

static inline enum san_drop
parse_bth(struct rte_mbuf *m, struct san_wire_pkt *p, uint32_t len)
{
	const struct wire_bth *bth;
	uint16_t front, hdr_len;
	enum san_drop drop;

	front = p->v6 ? offsetof(struct wire_front_v6, bth) : offsetof(struct wire_front_v4, bth);
	bth = rte_pktmbuf_mtod_offset(m, const struct wire_bth *, front);
	drop = san_wire_check_bth(bth);
	if (drop != SAN_DROP_NONE)
		return drop;
	san_wire_check_get_bth(bth, p);
	hdr_len = san_wire_op_hdr_len(p->op, p->v6);
	if (len < (uint32_t)hdr_len + WIRE_ICRC_LEN)
		return SAN_DROP_SHORT;
	p->payload_off = hdr_len;
	drop = san_wire_check_payload(bth, len, p);
	return drop != SAN_DROP_NONE ? drop : headers_at(m, hdr_len);
}

static inline bool
is_rsvd_zero(const uint8_t rsvd[3])
{
	return (rsvd[0] | rsvd[1] | rsvd[2]) == 0;
}

static inline enum san_drop
parse_atomic_req(const struct wire_atomic_req *x, struct san_wire_pkt *p)
{
	if (!is_rsvd_zero(x->rsvd))
		return SAN_DROP_RESERVED;
	p->status = x->op;
	p->key = rte_be_to_cpu_32(x->key);
	p->addr = rte_be_to_cpu_64(x->addr);
	if (p->status != SAN_ATOMIC_FETCH_ADD && p->status != SAN_ATOMIC_CMP_SWAP)
		return SAN_DROP_FIELD;
	return SAN_DROP_NONE;
}

static inline enum san_drop
parse_result(const struct wire_result *x, struct san_wire_pkt *p)
{
	if (!is_rsvd_zero(x->rsvd))
		return SAN_DROP_RESERVED;
	p->status = x->status;
	if (p->status >= SAN_ST_MAX)
		return SAN_DROP_FIELD;
	return san_wire_check_parse_offset(x->offset, p, SAN_WIRE_LENGTH_MAX);
}

/* ---- packed messages (RT-34) ---- */

/* Check one message within the *left* bytes at *off*. *len*: its length. */
static enum san_drop
check_msg(const struct rte_mbuf *m, uint32_t off, uint32_t left, uint32_t *len)
{
	static const uint8_t zero[3];
	struct wire_msg copy;
	uint8_t bytes[sizeof(zero)];
	const struct wire_msg *x;
	uint32_t length, pad;

	if (left < offsetof(struct wire_msg, key))
		return SAN_DROP_FIELD;
	x = rte_pktmbuf_read(m, off, offsetof(struct wire_msg, key), &copy);
	if (x->rsvd != 0)
		return SAN_DROP_RESERVED;
	if (x->kind > SAN_KIND_SEND_IMM)
		return SAN_DROP_FIELD;
	length = rte_be_to_cpu_16(x->length);
	*len = san_wire_pack_len(x->kind, length);
	if (*len > left)
		return SAN_DROP_FIELD;
	pad = -length & 3;
	if (pad != 0 && memcmp(rte_pktmbuf_read(m, off + *len - pad, pad, bytes), zero, pad) != 0)
		return SAN_DROP_RESERVED;
	return SAN_DROP_NONE;
}

enum san_drop
san_wire_pack_check(const struct rte_mbuf *m, const struct san_wire_pkt *p)
{
	uint32_t off = p->payload_off, left = p->payload_len;
	uint32_t i, len;

	for (i = 0; i < p->length; i++) {
		enum san_drop drop = check_msg(m, off, left, &len);

		if (drop != SAN_DROP_NONE)
			return drop;
		off += len;
		left -= len;
	}
	return left == 0 ? SAN_DROP_NONE : SAN_DROP_FIELD;
}

static inline enum san_drop
parse_packed(const struct rte_mbuf *m, const struct wire_code *x, struct san_wire_pkt *p)
{
	if (!is_rsvd_zero(x->rsvd))
		return SAN_DROP_RESERVED;
	p->length = x->code;
	if (p->length < SAN_WIRE_PACK_MIN || p->length > SAN_WIRE_PACK_MAX)
		return SAN_DROP_FIELD;
	/* A packet in pieces is checked when it is complete. */
	return p->flags & SAN_F_PIECE ? SAN_DROP_NONE : san_wire_pack_check(m, p);
}

static inline enum san_drop
parse_resync(const struct wire_code *x, struct san_wire_pkt *p)
{
	if (!is_rsvd_zero(x->rsvd))
		return SAN_DROP_RESERVED;
	p->status = x->code;
	return p->status <= SAN_RESYNC_ABORT ? SAN_DROP_NONE : SAN_DROP_FIELD;
}

static inline enum san_drop
parse_nack(const struct wire_nack *x, struct san_wire_pkt *p)
{
	if (!is_rsvd_zero(x->rsvd))
		return SAN_DROP_RESERVED;
	p->nack_psn = rte_be_to_cpu_32(x->psn);
	p->status = x->code;
	p->delay_us = rte_be_to_cpu_32(x->delay_us);
	if (p->status == SAN_ST_OK || p->status >= SAN_ST_MAX)
		return SAN_DROP_FIELD;
	if ((p->flags & SAN_F_UNPACK) &&
	    (p->status != SAN_ST_RNR || (p->flags & SAN_F_WIN_DATA) == 0))
		return SAN_DROP_FIELD;
	return SAN_DROP_NONE;
}

static enum san_drop
parse_ack(const struct rte_mbuf *m, const struct wire_ack *x, const struct san_wire_pkt *p,
	  struct san_wire_ack *ack)
{
	uint8_t copy[(SAN_WIRE_REQ_WORDS + 2 * SAN_WIRE_DATA_WORDS) * sizeof(uint64_t)];
	const uint8_t *words;
	enum san_drop drop = san_wire_check_parse_ack(x, p, ack);

	if (drop != SAN_DROP_NONE)
		return drop;
	/* Read as many words of the bitmaps as were sent. */
	words = rte_pktmbuf_read(m, p->payload_off, p->payload_len, copy);
	words += san_wire_copy_words(ack->req, words, ack->nb_req);
	words += san_wire_copy_words(ack->data_acked, words, ack->nb_data);
	san_wire_copy_words(ack->data_rcvd, words, ack->nb_data);
	return SAN_DROP_NONE;
}

static inline enum san_drop
parse_ext(const struct rte_mbuf *m, const void *ext, struct san_wire_pkt *p,
	  struct san_wire_ack *ack)
{
	enum san_drop drop;

	switch (p->op) {
	case SAN_OP_PUSH_SLCTD_REQ:
		p->ssn = rte_be_to_cpu_32(((const struct wire_push *)ext)->number);
		return san_wire_check_parse_remote(ext, p);
	case SAN_OP_PULL_REQ:
		return san_wire_check_parse_remote(ext, p);
	case SAN_OP_ATOMIC_REQ:
		return parse_atomic_req(ext, p);
	case SAN_OP_PUSH_GRNT:
		p->ssn = rte_be_to_cpu_32(((const struct wire_grnt *)ext)->ssn);
		return parse_result(&((const struct wire_grnt *)ext)->result, p);
	case SAN_OP_PUSH_SLCTD_DATA:
		return san_wire_check_parse_offset(((const struct wire_slctd_data *)ext)->offset, p,
						   SAN_WIRE_LENGTH_MAX);
	case SAN_OP_PUSH_UNSLCTD_DATA:
		drop = san_wire_check_parse_remote(ext, p);
		if (drop != SAN_DROP_NONE)
			return drop;
		return san_wire_check_parse_offset(((const struct wire_push *)ext)->number, p,
						   p->length);
	case SAN_OP_PULL_DATA:
		return parse_result(ext, p);
	case SAN_OP_PUSH_PACKED:
		return parse_packed(m, ext, p);
	case SAN_OP_ACK:
		return parse_ack(m, ext, p, ack);
	case SAN_OP_NACK:
		return parse_nack(ext, p);
	case SAN_OP_RESYNC:
		return parse_resync(ext, p);
	default: /* CM and PROBE have none */
		return SAN_DROP_NONE;
	}
}

/**
 * Parse a piece of a longer payload. The further checks apply to the whole payload, except for the
 * messages of a packed packet. *len* returns the bytes of the piece. (RT-37)
 */
static __rte_noinline enum san_drop
parse_piece(struct rte_mbuf *m, struct san_wire_pkt *p, uint16_t *len)
{
	const struct wire_piece *x;
	enum san_drop drop;

	if (p->payload_len <= sizeof(*x))
		return SAN_DROP_FIELD;
	drop = headers_at(m, p->payload_off + sizeof(*x));
	if (drop != SAN_DROP_NONE)
		return drop;
	x = rte_pktmbuf_mtod_offset(m, const struct wire_piece *, p->payload_off);
	*len = p->payload_len - (uint16_t)sizeof(*x);
	p->payload_off += sizeof(*x);
	p->payload_len = rte_be_to_cpu_16(x->length);
	p->whole_len = p->payload_len;
	p->piece_off = rte_be_to_cpu_16(x->offset);
	return *len < p->whole_len && p->piece_off <= p->whole_len - *len ? SAN_DROP_NONE :
									    SAN_DROP_FIELD;
}

/** Parse what follows the BTH. */
static inline enum san_drop
parse_body(struct rte_mbuf *m, struct san_wire_pkt *p, struct san_wire_ack *ack)
{
	uint32_t front = p->v6 ? sizeof(struct wire_front_v6) : sizeof(struct wire_front_v4);
	const struct wire_rt *rt = rte_pktmbuf_mtod_offset(m, const struct wire_rt *, front);
	static const uint8_t zero[WIRE_CNP_LEN];
	enum san_drop drop;
	uint16_t piece_len;

	if (unlikely(p->op == SAN_OP_CNP)) {
		if (p->payload_len != 0)
			return SAN_DROP_FIELD;
		return memcmp(rt, zero, sizeof(zero)) == 0 ? SAN_DROP_NONE : SAN_DROP_RESERVED;
	}
	drop = san_wire_check_parse_rt(rt, p);
	if (drop != SAN_DROP_NONE)
		return drop;
	if (unlikely(p->flags & SAN_F_PIECE)) {
		drop = parse_piece(m, p, &piece_len);
		if (drop != SAN_DROP_NONE)
			return drop;
	}
	drop = san_wire_check_type(p);
	if (drop != SAN_DROP_NONE)
		return drop;
	drop = parse_ext(m, rt + 1, p, ack);
	if (unlikely(p->flags & SAN_F_PIECE))
		p->payload_len = piece_len;
	return drop;
}

__rte_noinline void
san_wire_parse_trim(struct rte_mbuf *m, uint32_t len)
{
	struct rte_mbuf *seg = m;
	uint16_t nb_segs = 1;
	uint32_t left = len;

	while (left > seg->data_len) {
		left -= seg->data_len;
		seg = seg->next;
		nb_segs++;
	}
	seg->data_len = (uint16_t)left;
	rte_pktmbuf_free(seg->next);
	seg->next = NULL;
	m->nb_segs = nb_segs;
	m->pkt_len = len;
}

enum san_drop
san_wire_parse(struct rte_mbuf *m, uint16_t udp_port, struct san_wire_pkt *p,
	       struct san_wire_ack *ack)
{
	const struct wire_eth *eth;
	uint32_t len;
	enum san_drop drop;

	/* Clear it in two parts: each is short enough for a few vector stores instead of a loop. */
	memset(p, 0, offsetof(struct san_wire_pkt, addr));
	memset(&p->addr, 0, sizeof(*p) - offsetof(struct san_wire_pkt, addr));
	drop = headers_at(m, sizeof(*eth));
	if (drop != SAN_DROP_NONE)
		return drop;
	eth = rte_pktmbuf_mtod(m, const struct wire_eth *);
	memcpy(p->src_mac.addr_bytes, eth->src, sizeof(eth->src));
	if (eth->type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		drop = parse_v4(m, udp_port, p, &len);
	else if (eth->type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		drop = parse_v6(m, udp_port, p, &len);
	else
		return SAN_DROP_NOT_OURS;
	if (drop != SAN_DROP_NONE)
		return drop;
	drop = parse_bth(m, p, len);
	if (drop != SAN_DROP_NONE)
		return drop;
	drop = san_wire_check_tail(m, p, len);
	if (drop != SAN_DROP_NONE)
		return drop;
	drop = parse_body(m, p, ack);
	if (drop == SAN_DROP_NONE && unlikely(rte_pktmbuf_pkt_len(m) != len))
		san_wire_parse_trim(m, len); /* the rest is Ethernet padding */
	return drop;
}
