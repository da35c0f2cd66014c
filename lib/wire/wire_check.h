/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Checks shared by the parser and express (wire_express.c). They read nothing before the caller has
 * made sure that it is there.
 */

#include <string.h>

#include "wire_priv.h"

#define IP_ECN_CE    0x03
#define FRAG_ALLOWED RTE_IPV4_HDR_DF_FLAG

/** Without options the sum needs no loop. */
static inline bool
san_wire_check_ipv4_cksum(const wire_ipv4 *ip)
{
	uint32_t words[sizeof(*ip) / sizeof(uint32_t)];
	uint64_t sum;

	memcpy(words, ip, sizeof(words));
	sum = (uint64_t)words[0] + words[1] + words[2] + words[3] + words[4];
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return sum == UINT16_MAX;
}

static inline bool
san_wire_check_udp_len(const struct rte_udp_hdr *udp, uint32_t len)
{
	return rte_be_to_cpu_16(udp->dgram_len) == len &&
		len >= sizeof(*udp) + sizeof(struct wire_bth) + WIRE_ICRC_LEN;
}

/** Check IPv4 and UDP header of a datagram to our port. *len*: its end in the frame. */
static inline enum san_drop
san_wire_check_v4(const struct rte_mbuf *m, const struct wire_front_v4 *f, uint32_t *len)
{
	uint16_t frag = rte_be_to_cpu_16(f->ip.fragment_offset);
	uint32_t total = rte_be_to_cpu_16(f->ip.total_length);
	uint64_t cksum = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;

	if (f->ip.version_ihl != RTE_IPV4_VHL_DEF || (frag & ~FRAG_ALLOWED) != 0)
		return SAN_DROP_IP_HEADER;
	if (total < sizeof(f->ip) || sizeof(f->eth) + total > rte_pktmbuf_pkt_len(m))
		return SAN_DROP_SHORT;
	if (cksum != RTE_MBUF_F_RX_IP_CKSUM_GOOD && !san_wire_check_ipv4_cksum(&f->ip))
		return SAN_DROP_IP_CHECKSUM;
	if (!san_wire_check_udp_len(&f->udp, total - (uint32_t)sizeof(f->ip)))
		return SAN_DROP_UDP_LENGTH;
	*len = sizeof(f->eth) + total;
	return SAN_DROP_NONE;
}

/** Check IPv6 and UDP header of a datagram to our port. *len*: its end in the frame. */
static inline enum san_drop
san_wire_check_v6(const struct rte_mbuf *m, const struct wire_front_v6 *f, uint32_t *len)
{
	uint32_t plen = rte_be_to_cpu_16(f->ip.payload_len);

	*len = offsetof(struct wire_front_v6, udp) + plen;
	if (*len > rte_pktmbuf_pkt_len(m))
		return SAN_DROP_SHORT;
	return san_wire_check_udp_len(&f->udp, plen) ? SAN_DROP_NONE : SAN_DROP_UDP_LENGTH;
}

/**
 * Check the BTH against its packet type. A CNP comes from another implementation: fields that
 * InfiniBand leaves open (SE, M, F, B, PSN) are not checked there.
 */
static inline enum san_drop
san_wire_check_bth(const struct wire_bth *bth)
{
	uint8_t zero_bits = WIRE_BTH_SE | WIRE_BTH_MIGREQ;
	uint8_t zero_resv8a = 0xff;

	if ((bth->bits & WIRE_BTH_TVER) != 0)
		return SAN_DROP_BTH;
	if (san_wire_op_get(bth->opcode) == NULL) {
		if (bth->opcode != SAN_OP_CNP)
			return SAN_DROP_OPCODE;
		zero_bits = 0;
		zero_resv8a ^= WIRE_BTH_FECN | WIRE_BTH_BECN;
	}
	if ((bth->bits & zero_bits) != 0 || (bth->resv8a & zero_resv8a) != 0 ||
	    (bth->ackreq & ~WIRE_BTH_ACKREQ) != 0)
		return SAN_DROP_BTH;
	return SAN_DROP_NONE;
}

static inline void
san_wire_check_get_bth(const struct wire_bth *bth, struct san_wire_pkt *p)
{
	p->op = bth->opcode;
	p->pkey = rte_be_to_cpu_16(bth->pkey);
	p->dcid = san_wire_bth_cid(bth);
	if (p->op == SAN_OP_CNP)
		return;
	p->ackreq = (bth->ackreq & WIRE_BTH_ACKREQ) != 0;
	p->psn = san_wire_bth_psn(bth);
}

/**
 * Payload and padding fill what the headers leave of *len* exactly, in words of four bytes.
 * p->payload_off is set, and within *len*.
 */
static inline enum san_drop
san_wire_check_payload(const struct wire_bth *bth, uint32_t len, struct san_wire_pkt *p)
{
	uint32_t pad = (bth->bits & WIRE_BTH_PAD) >> WIRE_BTH_PAD_SHIFT;

	len -= p->payload_off + WIRE_ICRC_LEN;
	if (len % 4 != 0 || len < pad)
		return SAN_DROP_BTH;
	p->payload_len = (uint16_t)(len - pad);
	return SAN_DROP_NONE;
}

/** Check the ICRC and the padding before it. */
static inline enum san_drop
san_wire_check_tail(struct rte_mbuf *m, const struct san_wire_pkt *p, uint32_t len)
{
	uint32_t pad = len - WIRE_ICRC_LEN - p->payload_off - p->payload_len;
	static const uint8_t zero[3];
	uint8_t copy[SAN_WIRE_TAIL_MAX];
	const uint8_t *tail;
	rte_le32_t icrc;

	tail = rte_pktmbuf_read(m, len - WIRE_ICRC_LEN - pad, pad + WIRE_ICRC_LEN, copy);
	memcpy(&icrc, tail + pad, sizeof(icrc));
	if (rte_le_to_cpu_32(icrc) != san_wire_icrc(m, p->v6, len - WIRE_ICRC_LEN))
		return SAN_DROP_ICRC;
	if (unlikely(pad != 0) && memcmp(tail, zero, pad) != 0)
		return SAN_DROP_RESERVED;
	return SAN_DROP_NONE;
}

static inline enum san_drop
san_wire_check_parse_rt(const struct wire_rt *rt, struct san_wire_pkt *p)
{
	if (rt->version >> WIRE_RT_VERSION_SHIFT != SAN_WIRE_VERSION)
		return SAN_DROP_VERSION;
	if ((rt->version & WIRE_RT_RESERVED) != 0 || (rt->flags & ~SAN_F_ALL) != 0)
		return SAN_DROP_RESERVED;
	p->flags = rt->flags;
	p->round = rt->round;
	p->psn |= (uint32_t)rt->psn_hi << 24;
	p->tag = rte_be_to_cpu_32(rt->tag);
	p->rsn = rte_be_to_cpu_32(rt->rsn);
	p->req_ebsn = rte_be_to_cpu_32(rt->req_ebsn);
	p->data_ebsn = rte_be_to_cpu_32(rt->data_ebsn);
	p->cmpl_rsn = rte_be_to_cpu_32(rt->cmpl_rsn);
	p->tx_time = rte_be_to_cpu_32(rt->tx_time);
	return SAN_DROP_NONE;
}

/** Check flags, kind, payload length and CID against the packet type. */
static inline enum san_drop
san_wire_check_type(const struct san_wire_pkt *p)
{
	const struct wire_op *desc = san_wire_op_get(p->op);

	if ((p->flags & ~desc->flags) != 0)
		return SAN_DROP_FIELD;
	if (desc->payload != WIRE_ANY_LEN && p->payload_len != desc->payload)
		return SAN_DROP_FIELD;
	/* Only CM packets go to that CID: another one would be answered like a CM packet. */
	if ((p->op == SAN_OP_CM) != (p->dcid == SAN_WIRE_CID_CM))
		return SAN_DROP_FIELD;
	return SAN_DROP_NONE;
}

static inline enum san_drop
san_wire_check_parse_remote(const struct wire_remote *x, struct san_wire_pkt *p)
{
	p->length = rte_be_to_cpu_32(x->length);
	p->key = rte_be_to_cpu_32(x->key);
	p->addr = rte_be_to_cpu_64(x->addr);
	return p->length <= SAN_WIRE_LENGTH_MAX ? SAN_DROP_NONE : SAN_DROP_FIELD;
}

/** All of an ACK but its bitmaps, which are the payload. */
static inline enum san_drop
san_wire_check_parse_ack(const struct wire_ack *x, const struct san_wire_pkt *p,
			 struct san_wire_ack *ack)
{
	if ((x->bits & WIRE_ACK_BITS_RESERVED) != 0)
		return SAN_DROP_RESERVED;
	ack->serial = rte_be_to_cpu_32(x->serial);
	ack->echo_tx = rte_be_to_cpu_32(x->echo_tx);
	ack->echo_rx = rte_be_to_cpu_32(x->echo_rx);
	ack->ecn_count = rte_be_to_cpu_16(x->ecn_count);
	ack->rx_level = rte_be_to_cpu_16(x->rx_level);
	ack->first_win = rte_be_to_cpu_16(x->first_win);
	ack->oow = x->bits & WIRE_ACK_OOW;
	ack->nb_req = (x->bits & WIRE_ACK_NB_REQ) >> WIRE_ACK_NB_REQ_SHIFT;
	ack->nb_data = x->nb_data;
	if (ack->nb_req > SAN_WIRE_REQ_WORDS || ack->nb_data > SAN_WIRE_DATA_WORDS ||
	    ack->rx_level > WIRE_ACK_LEVEL_MAX)
		return SAN_DROP_FIELD;
	return p->payload_len == (ack->nb_req + 2u * ack->nb_data) * sizeof(uint64_t) ?
		SAN_DROP_NONE :
		SAN_DROP_FIELD;
}

/** The payload has its immediate, and the data is within *length*; nothing here can wrap. */
static inline enum san_drop
san_wire_check_parse_offset(rte_be32_t offset, struct san_wire_pkt *p, uint32_t length)
{
	uint32_t imm_len = san_wire_imm_len(p->flags);

	p->offset = rte_be_to_cpu_32(offset);
	if (p->payload_len < imm_len || (uint64_t)p->offset + p->payload_len - imm_len > length)
		return SAN_DROP_FIELD;
	return SAN_DROP_NONE;
}
