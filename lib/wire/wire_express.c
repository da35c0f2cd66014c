/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Fast parser for the ordinary packets of a known peer: a whole unsolicited push, and an ACK
 * without bitmaps. It makes the checks of the parser (wire_check.h) in one pass. A push similar to
 * the one before it is checked only where they may differ.
 */

#include "wire_check.h"

static inline bool
is_front_v4(const struct rte_mbuf *m, const struct san_wire_path *path, uint16_t udp_port)
{
	const struct wire_front_v4 *f = rte_pktmbuf_mtod(m, const struct wire_front_v4 *);
	uint32_t src, dst, len;

	memcpy(&src, path->dst.b + WIRE_V4_OFFSET, sizeof(src));
	memcpy(&dst, path->src.b + WIRE_V4_OFFSET, sizeof(dst));
	return f->ip.next_proto_id == IPPROTO_UDP && f->ip.src_addr == src &&
		f->ip.dst_addr == dst && san_wire_ip_is_v4(&path->dst) &&
		f->udp.dst_port == rte_cpu_to_be_16(udp_port) &&
		san_wire_check_v4(m, f, &len) == SAN_DROP_NONE && len == rte_pktmbuf_data_len(m);
}

static inline bool
is_front_v6(const struct rte_mbuf *m, const struct san_wire_path *path, uint16_t udp_port)
{
	const struct wire_front_v6 *f = rte_pktmbuf_mtod(m, const struct wire_front_v6 *);
	uint32_t len;

	return rte_be_to_cpu_32(f->ip.vtc_flow) >> 28 == 6 && f->ip.proto == IPPROTO_UDP &&
		!san_wire_ip_is_v4(&path->dst) &&
		memcmp(&f->ip.src_addr, path->dst.b, sizeof(path->dst.b)) == 0 &&
		memcmp(&f->ip.dst_addr, path->src.b, sizeof(path->src.b)) == 0 &&
		f->udp.dst_port == rte_cpu_to_be_16(udp_port) &&
		san_wire_check_v6(m, f, &len) == SAN_DROP_NONE && len == rte_pktmbuf_data_len(m);
}

/** Most other packets differ here, and the check is the cheapest: it comes first. */
static inline bool
wire_express_is(const struct wire_bth *bth, uint8_t op)
{
	const struct wire_rt *rt = (const struct wire_rt *)(bth + 1);

	return bth->opcode == op && (op == SAN_OP_ACK || (rt->flags & SAN_F_LAST) != 0);
}

/**
 * Check all headers but the extended one, which has *ext_len* bytes.
 * @return the BTH; NULL: not of *path*, no ACK or whole push as *op* says, or not exactly one
 *         segment.
 */
static __rte_always_inline const struct wire_bth *
express_front(const struct rte_mbuf *m, const struct san_wire_path *path, uint16_t udp_port,
	      uint8_t op, uint32_t ext_len, struct san_wire_pkt *p)
{
	const struct wire_front_v4 *v4 = rte_pktmbuf_mtod(m, const struct wire_front_v4 *);
	const struct wire_front_v6 *v6 = rte_pktmbuf_mtod(m, const struct wire_front_v6 *);
	uint32_t hdr_len = (uint32_t)(sizeof(*v4) + sizeof(struct wire_rt)) + ext_len;
	uint32_t len = rte_pktmbuf_data_len(m);
	const struct wire_bth *bth = NULL;

	if (m->nb_segs != 1 || len < hdr_len + WIRE_ICRC_LEN)
		return NULL;
	p->v6 = v4->eth.type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	if (likely(!p->v6)) {
		p->ce = (v4->ip.type_of_service & IP_ECN_CE) == IP_ECN_CE;
		p->payload_off = (uint16_t)hdr_len;
		if (wire_express_is(&v4->bth, op) && is_front_v4(m, path, udp_port))
			bth = &v4->bth;
	} else {
		hdr_len += sizeof(*v6) - sizeof(*v4);
		if (v6->eth.type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) ||
		    len < hdr_len + WIRE_ICRC_LEN)
			return NULL;
		p->ce = (rte_be_to_cpu_32(v6->ip.vtc_flow) >> 20 & IP_ECN_CE) == IP_ECN_CE;
		p->payload_off = (uint16_t)hdr_len;
		if (wire_express_is(&v6->bth, op) && is_front_v6(m, path, udp_port))
			bth = &v6->bth;
	}
	if (bth == NULL || san_wire_check_bth(bth) != SAN_DROP_NONE)
		return NULL;
	san_wire_check_get_bth(bth, p);
	return san_wire_check_parse_rt((const struct wire_rt *)(bth + 1), p) == SAN_DROP_NONE ?
		bth :
		NULL;
}

uint32_t
san_wire_express_cid_at(const struct rte_mbuf *m)
{
	const struct wire_front_v4 *v4 = rte_pktmbuf_mtod(m, const struct wire_front_v4 *);
	const struct wire_front_v6 *v6 = rte_pktmbuf_mtod(m, const struct wire_front_v6 *);

	if (rte_pktmbuf_data_len(m) < sizeof(*v6))
		return SAN_WIRE_CID_CM;
	return san_wire_bth_cid(v4->eth.type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ? &v4->bth :
											&v6->bth);
}

/**
 * Parse and check the fields that may differ in packets alike; *p* has the flags. Both functions
 * below take a packet by this one, so neither can be without a check of the other.
 */
static inline bool
express_numbers(const struct wire_bth *bth, uint32_t len, struct san_wire_pkt *p)
{
	const struct wire_rt *rt = (const struct wire_rt *)(bth + 1);
	const struct wire_push *x = (const struct wire_push *)(rt + 1);
	uint64_t length = rte_be_to_cpu_32(x->remote.length);

	p->ackreq = (bth->ackreq & WIRE_BTH_ACKREQ) != 0;
	p->psn = san_wire_bth_psn(bth) | (uint32_t)rt->psn_hi << 24;
	p->rsn = rte_be_to_cpu_32(rt->rsn);
	p->length = (uint32_t)length;
	p->addr = rte_be_to_cpu_64(x->remote.addr);
	/*
	 * The payload is the immediate and all of the data: so the immediate is there, the data
	 * begins at 0 and ends at the length, and no packet reaches the limit of lengths.
	 */
	return san_wire_check_payload(bth, len, p) == SAN_DROP_NONE && x->number == 0 &&
		p->payload_len == length + san_wire_imm_len(p->flags);
}

bool
san_wire_express(const struct rte_mbuf *m, const struct san_wire_path *path, uint16_t udp_port,
		 struct san_wire_pkt *p)
{
	const struct wire_bth *bth = express_front(m, path, udp_port, SAN_OP_PUSH_UNSLCTD_DATA,
						   sizeof(struct wire_push), p);
	const struct wire_rt *rt;

	if (bth == NULL)
		return false;
	rt = (const struct wire_rt *)(bth + 1);
	p->key = rte_be_to_cpu_32(((const struct wire_push *)(rt + 1))->remote.key);
	p->offset = 0;
	return (p->flags & SAN_F_PIECE) == 0 &&
		express_numbers(bth, rte_pktmbuf_data_len(m), p) &&
		san_wire_check_type(p) == SAN_DROP_NONE;
}

static_assert(sizeof(struct wire_front_v6) + sizeof(struct wire_rt) + sizeof(struct wire_ack) +
			      WIRE_ICRC_LEN ==
		      SAN_WIRE_BARE_ACK_MAX,
	      "frame of an ACK");

bool
san_wire_express_ack(struct rte_mbuf *m, const struct san_wire_path *path,
		     uint16_t udp_port, struct san_wire_pkt *p, struct san_wire_ack *ack)
{
	const struct wire_bth *bth =
		express_front(m, path, udp_port, SAN_OP_ACK, sizeof(struct wire_ack), p);
	uint32_t len = rte_pktmbuf_data_len(m);
	const struct wire_rt *rt;

	if (bth == NULL)
		return false;
	rt = (const struct wire_rt *)(bth + 1);
	return san_wire_check_payload(bth, len, p) == SAN_DROP_NONE && p->payload_len == 0 &&
		san_wire_check_type(p) == SAN_DROP_NONE &&
		san_wire_check_parse_ack((const struct wire_ack *)(rt + 1), p, ack) ==
		SAN_DROP_NONE &&
		san_wire_check_tail(m, p, len) == SAN_DROP_NONE;
}

/*
 * Mask of the bits in which packets of a visit are equal, from the Ethernet type on. They differ in
 * lengths, IPv4 header checksum, padding, AckReq, PSN and RSN, and pushes in length and memory
 * address.
 */
#define ALIKE_FROM   offsetof(struct wire_eth, type)
#define SAME_2       0xff, 0xff
#define SAME_4       SAME_2, SAME_2
#define SAME_8       SAME_4, SAME_4
#define FREE_2       0, 0
#define FREE_4       FREE_2, FREE_2
#define ALIKE_TYPE   SAME_2
#define ALIKE_IPV4   SAME_2, FREE_2, SAME_4, SAME_2, FREE_2, SAME_8
#define ALIKE_IPV6   SAME_4, FREE_2, SAME_2, SAME_8, SAME_8, SAME_8, SAME_8
#define ALIKE_UDP    SAME_4, FREE_2, SAME_2
#define ALIKE_BTH_1  0xff, (uint8_t)~WIRE_BTH_PAD, SAME_4, SAME_2
#define ALIKE_BTH_2  (uint8_t) ~WIRE_BTH_ACKREQ, 0, FREE_2
#define ALIKE_RT     SAME_2, 0, 0xff, SAME_4, FREE_4, SAME_8, SAME_8
#define ALIKE_REMOTE FREE_4, SAME_4
#define ALIKE_BEHIND ALIKE_UDP, ALIKE_BTH_1, ALIKE_BTH_2, ALIKE_RT, ALIKE_REMOTE

typedef uint64_t words __attribute__((vector_size(16)));

/* Whole *words*: the shortest packet has as many bytes, including its ICRC. */
static const uint8_t alike_v4[80] = {ALIKE_TYPE, ALIKE_IPV4, ALIKE_BEHIND};
static const uint8_t alike_v6[112] = {ALIKE_TYPE, ALIKE_IPV6, ALIKE_BEHIND};

static inline bool
wire_express_is_alike(const uint8_t *a, const uint8_t *b, const uint8_t *mask, uint32_t len)
{
	words differ = {0}, x, y, m;
	uint32_t i;

	for (i = 0; i < len; i += sizeof(x)) {
		memcpy(&x, a + ALIKE_FROM + i, sizeof(x));
		memcpy(&y, b + ALIKE_FROM + i, sizeof(y));
		memcpy(&m, mask + i, sizeof(m));
		differ |= (x ^ y) & m;
	}
	return (differ[0] | differ[1]) == 0;
}

/**
 * True if the lengths match *len*. The checksum of *last* is right, so that of *f* is if length
 * plus checksum are equal.
 */
static inline bool
is_next_v4(const struct wire_front_v4 *f, const struct wire_front_v4 *last, uint32_t len)
{
	uint32_t x = (uint32_t)f->ip.total_length + f->ip.hdr_checksum;
	uint32_t y = (uint32_t)last->ip.total_length + last->ip.hdr_checksum;

	return f->ip.total_length == rte_cpu_to_be_16((uint16_t)(len - sizeof(f->eth))) &&
		f->udp.dgram_len ==
		rte_cpu_to_be_16((uint16_t)(len - offsetof(struct wire_front_v4, udp))) &&
		(x & UINT16_MAX) + (x >> 16) == (y & UINT16_MAX) + (y >> 16);
}

static inline bool
is_next_v6(const struct wire_front_v6 *f, uint32_t len)
{
	rte_be16_t behind =
		rte_cpu_to_be_16((uint16_t)(len - offsetof(struct wire_front_v6, udp)));

	return f->ip.payload_len == behind && f->udp.dgram_len == behind;
}

bool
san_wire_express_next(const struct rte_mbuf *m, const struct rte_mbuf *last,
		      struct san_wire_pkt *p)
{
	const uint8_t *a = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *b = rte_pktmbuf_mtod(last, const uint8_t *);
	const struct wire_front_v4 *v4 = (const struct wire_front_v4 *)a;
	const struct wire_front_v6 *v6 = (const struct wire_front_v6 *)a;
	uint32_t len = rte_pktmbuf_data_len(m);

	if (m->nb_segs != 1 || len < p->payload_off + (uint32_t)WIRE_ICRC_LEN ||
	    ((m->ol_flags ^ last->ol_flags) & RTE_MBUF_F_RX_IP_CKSUM_MASK) != 0)
		return false;
	if (unlikely(p->v6))
		return wire_express_is_alike(a, b, alike_v6, sizeof(alike_v6)) &&
			is_next_v6(v6, len) && express_numbers(&v6->bth, len, p);
	return wire_express_is_alike(a, b, alike_v4, sizeof(alike_v4)) &&
		is_next_v4(v4, (const struct wire_front_v4 *)b, len) &&
		express_numbers(&v4->bth, len, p);
}

/*
 * Mask of the bits in which packets of data of one solicited push and one visit are equal, if they
 * have the same length. They differ in AckReq, PSN and offset. The shortest has all of *words*.
 */
#define DATA_RT     SAME_2, 0, 0xff, SAME_8, SAME_8, SAME_8
#define DATA_BEHIND SAME_8, SAME_8, ALIKE_BTH_2, DATA_RT
static const uint8_t data_v4[80] = {ALIKE_TYPE, SAME_8, SAME_8, SAME_4, DATA_BEHIND};
static const uint8_t data_v6[96] = {ALIKE_TYPE, SAME_8, SAME_8, SAME_8, SAME_8, SAME_8,
				    DATA_BEHIND};

bool
san_wire_express_data(struct rte_mbuf *m, const struct rte_mbuf *last, struct san_wire_pkt *p)
{
	const uint8_t *a = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *b = rte_pktmbuf_mtod(last, const uint8_t *);
	const struct wire_slctd_data *x =
		(const struct wire_slctd_data *)(a + p->payload_off) - 1;
	const struct wire_rt *rt = (const struct wire_rt *)x - 1;
	const struct wire_bth *bth = (const struct wire_bth *)rt - 1;
	uint32_t len = rte_pktmbuf_data_len(m);

	if ((m->nb_segs | last->nb_segs) != 1 || len != rte_pktmbuf_data_len(last) ||
	    ((m->ol_flags ^ last->ol_flags) & RTE_MBUF_F_RX_IP_CKSUM_MASK) != 0 ||
	    !(unlikely(p->v6) ? wire_express_is_alike(a, b, data_v6, sizeof(data_v6)) :
				wire_express_is_alike(a, b, data_v4, sizeof(data_v4))))
		return false;
	p->ackreq = (bth->ackreq & WIRE_BTH_ACKREQ) != 0;
	p->psn = san_wire_bth_psn(bth) | (uint32_t)rt->psn_hi << 24;
	p->offset = rte_be_to_cpu_32(x->offset);
	return san_wire_check_tail(m, p, len) == SAN_DROP_NONE;
}

bool
san_wire_express_sum(struct rte_mbuf *m, const struct san_wire_pkt *p)
{
	return san_wire_check_tail(m, p, rte_pktmbuf_data_len(m)) == SAN_DROP_NONE;
}
