/* SPDX-License-Identifier: BSD-3-Clause */

/* Every drop reason of the parser, and what it must accept. (RT-3, RT-21, RT-31, ARCH-3) */

#include "test_wire.h"

UNIT_FIXTURE(.teardown = teardown);

enum base {
	ETH,
	IP,
	UDP,
	BTH,
	RT,
	EXT,
	PAY
};

static uint16_t
offset_of(enum base base, uint8_t op, bool v6)
{
	static const uint16_t v4_at[] = {0, 14, 34, 42, 54, 82};
	static const uint16_t v6_at[] = {0, 14, 54, 62, 74, 102};

	if (base == PAY)
		return san_wire_op_hdr_len(op, v6);
	return v6 ? v6_at[base] : v4_at[base];
}

static void
fix_cksum(struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);

	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

/** Parse a copy of *m* in a buffer of exactly its size, and free both. */
static enum san_drop
parse_exact(struct rte_mbuf *m)
{
	struct rte_mbuf *exact = test_eal_exact(test_pool(), rte_pktmbuf_mtod(m, char *),
						rte_pktmbuf_data_len(m));
	enum san_drop drop;

	exact->ol_flags |= m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
	drop = parse(exact);
	rte_pktmbuf_free(exact);
	rte_pktmbuf_free(m);
	return drop;
}

#define V4    0x01
#define V6    0x02
#define BOTH  (V4 | V6)
#define CKSUM 0x04 /* correct the IPv4 header checksum */
#define SEAL  0x08 /* correct the ICRC */

/* One byte changed: (byte & keep) | set. */
struct refusal {
	const char *sample;
	uint8_t how;
	enum base base;
	uint8_t off, keep, set;
	enum san_drop want;
};

static const struct refusal refusals[] = {
	/* handled by inet */
	{"probe", BOTH, ETH, 13, 0, 0x06, SAN_DROP_NOT_OURS}, /* ARP, and 0x8606 */
	{"probe", BOTH, ETH, 12, 0, 0x81, SAN_DROP_NOT_OURS}, /* VLAN */
	{"probe", V4 | CKSUM, IP, 9, 0, 6, SAN_DROP_NOT_OURS},
	{"probe", V6, IP, 6, 0, 6, SAN_DROP_NOT_OURS},
	{"probe", V6, IP, 6, 0, 0, SAN_DROP_NOT_OURS},            /* hop-by-hop options */
	{"probe", V6, IP, 6, 0, 44, SAN_DROP_NOT_OURS},           /* fragment */
	{"probe", V4 | CKSUM, IP, 7, 0xff, 1, SAN_DROP_NOT_OURS}, /* later fragment */
	{"probe", BOTH, UDP, 3, 0, 0xb8, SAN_DROP_NOT_OURS},      /* port 4792 */
	/* IPv4 header */
	{"probe", V4 | CKSUM, IP, 0, 0x0f, 0x50, SAN_DROP_IP_HEADER},
	{"probe", V4, IP, 0, 0xf0, 0x04, SAN_DROP_IP_HEADER},
	{"probe", V4, IP, 0, 0xf0, 0x00, SAN_DROP_IP_HEADER},
	{"probe", V4 | CKSUM, IP, 6, 0xff, 0x20, SAN_DROP_IP_HEADER}, /* more fragments */
	{"probe", V4 | CKSUM, IP, 6, 0xff, 0x80, SAN_DROP_IP_HEADER}, /* reserved */
	{"probe", V4, IP, 10, 0xfe, 0x01, SAN_DROP_IP_CHECKSUM},
	{"probe", V4, IP, 11, 0, 0, SAN_DROP_IP_CHECKSUM},
	{"probe", V4, IP, 8, 0, 63, SAN_DROP_IP_CHECKSUM},
	{"probe", V4 | CKSUM, IP, 3, 0, 73, SAN_DROP_SHORT}, /* one byte more than the packet has */
	{"probe", V4 | CKSUM, IP, 2, 0, 0xff, SAN_DROP_SHORT},
	{"probe", V4 | CKSUM, IP, 3, 0, 19, SAN_DROP_SHORT},
	{"probe", V4 | CKSUM, IP, 3, 0, 71, SAN_DROP_UDP_LENGTH}, /* the UDP length exceeds IP */
	/* IPv6 header */
	{"probe", V6, IP, 0, 0x0f, 0x40, SAN_DROP_IP_HEADER},
	{"probe", V6, IP, 5, 0, 53, SAN_DROP_SHORT},
	{"probe", V6, IP, 4, 0, 0xff, SAN_DROP_SHORT},
	{"probe", V6, IP, 5, 0, 51, SAN_DROP_UDP_LENGTH},
	{"probe", V6, IP, 5, 0, 0, SAN_DROP_UDP_LENGTH},
	/* UDP */
	{"probe", BOTH, UDP, 5, 0, 51, SAN_DROP_UDP_LENGTH},
	{"probe", BOTH, UDP, 5, 0, 53, SAN_DROP_UDP_LENGTH},
	{"probe", BOTH, UDP, 5, 0, 0, SAN_DROP_UDP_LENGTH},
	{"probe", BOTH, UDP, 4, 0, 0xff, SAN_DROP_UDP_LENGTH},
	/* BTH: checked before the ICRC, which would be at another place */
	{"probe", BOTH | SEAL, BTH, 1, 0xff, 0x01, SAN_DROP_BTH},
	{"probe", BOTH | SEAL, BTH, 1, 0xff, 0x08, SAN_DROP_BTH},
	{"cnp", BOTH | SEAL, BTH, 1, 0xff, 0x01, SAN_DROP_BTH},
	{"probe", BOTH | SEAL, BTH, 1, 0xff, 0x80, SAN_DROP_BTH}, /* SE */
	{"probe", BOTH | SEAL, BTH, 1, 0xff, 0x40, SAN_DROP_BTH}, /* MigReq */
	{"probe", BOTH | SEAL, BTH, 1, 0xff, 0x10, SAN_DROP_BTH}, /* padding without payload */
	{"push_unslctd_data_empty", BOTH | SEAL, BTH, 1, 0xff, 0x30, SAN_DROP_BTH},
	{"probe", BOTH, BTH, 4, 0, 0x80, SAN_DROP_BTH}, /* FECN */
	{"probe", BOTH, BTH, 4, 0, 0x40, SAN_DROP_BTH}, /* BECN */
	{"probe", BOTH, BTH, 4, 0, 0x01, SAN_DROP_BTH},
	{"cnp", BOTH, BTH, 4, 0xff, 0x01, SAN_DROP_BTH},
	{"probe", BOTH | SEAL, BTH, 8, 0xff, 0x01, SAN_DROP_BTH},
	{"probe", BOTH | SEAL, BTH, 8, 0xff, 0x40, SAN_DROP_BTH},
	{"probe", BOTH | SEAL, BTH, 0, 0, 0xcd, SAN_DROP_OPCODE},
	{"probe", BOTH | SEAL, BTH, 0, 0, 0x04, SAN_DROP_OPCODE},
	{"probe", BOTH | SEAL, BTH, 0, 0, SAN_OP_PULL_REQ, SAN_DROP_SHORT},
	{"probe", BOTH | SEAL, BTH, 0, 0, SAN_OP_RESYNC, SAN_DROP_SHORT},
	{"resync_req", BOTH | SEAL, BTH, 0, 0, SAN_OP_PULL_DATA, SAN_DROP_SHORT},
	/* ICRC: first what it covers, then the field itself */
	{"probe", BOTH, BTH, 3, 0, 0x24, SAN_DROP_ICRC},
	{"probe", BOTH, BTH, 7, 0, 0xee, SAN_DROP_ICRC},
	{"probe", BOTH, UDP, 0, 0, 0xc1, SAN_DROP_ICRC},
	{"probe", V4 | CKSUM, IP, 15, 0, 9, SAN_DROP_ICRC},
	{"probe", V4 | CKSUM, IP, 4, 0, 9, SAN_DROP_ICRC},
	{"probe", V6, IP, 23, 0, 9, SAN_DROP_ICRC},
	{"probe", BOTH, RT, 0, 0, 0x20, SAN_DROP_ICRC},
	{"pull_data", BOTH, PAY, 200, 0, 1, SAN_DROP_ICRC},
	{"probe", BOTH, PAY, 0, 0, 1, SAN_DROP_ICRC},
	{"probe", BOTH, PAY, 3, 0, 1, SAN_DROP_ICRC},
	/* RT header */
	{"probe", BOTH | SEAL, RT, 0, 0, 0x00, SAN_DROP_VERSION},
	{"probe", BOTH | SEAL, RT, 0, 0, 0x20, SAN_DROP_VERSION},
	{"probe", BOTH | SEAL, RT, 0, 0, 0x90, SAN_DROP_VERSION},
	{"probe", BOTH | SEAL, RT, 0, 0, 0x11, SAN_DROP_RESERVED},
	{"probe", BOTH | SEAL, RT, 0, 0, 0x18, SAN_DROP_RESERVED},
	/* reserved bytes */
	{"push_packed", BOTH | SEAL, EXT, 1, 0, 1, SAN_DROP_RESERVED},
	{"push_packed", BOTH | SEAL, EXT, 3, 0, 1, SAN_DROP_RESERVED},
	{"push_packed", BOTH | SEAL, PAY, 1, 0, 1, SAN_DROP_RESERVED}, /* of a message */
	{"push_packed", BOTH | SEAL, PAY, 37, 0, 0x80, SAN_DROP_RESERVED},
	{"push_packed", BOTH | SEAL, PAY, 9, 0, 1, SAN_DROP_RESERVED}, /* padding of a message */
	{"push_packed", BOTH | SEAL, PAY, 11, 0, 1, SAN_DROP_RESERVED},
	{"push_packed", BOTH | SEAL, PAY, 58, 0, 1, SAN_DROP_RESERVED},
	{"atomic_add", BOTH | SEAL, EXT, 1, 0, 1, SAN_DROP_RESERVED},
	{"atomic_add", BOTH | SEAL, EXT, 2, 0, 1, SAN_DROP_RESERVED},
	{"atomic_add", BOTH | SEAL, EXT, 3, 0, 1, SAN_DROP_RESERVED},
	{"push_grnt", BOTH | SEAL, EXT, 9, 0, 1, SAN_DROP_RESERVED},
	{"push_grnt", BOTH | SEAL, EXT, 11, 0, 0x80, SAN_DROP_RESERVED},
	{"pull_data", BOTH | SEAL, EXT, 5, 0, 1, SAN_DROP_RESERVED},
	{"pull_data", BOTH | SEAL, EXT, 7, 0, 1, SAN_DROP_RESERVED},
	{"resync_req", BOTH | SEAL, EXT, 1, 0, 1, SAN_DROP_RESERVED},
	{"resync_req", BOTH | SEAL, EXT, 3, 0, 1, SAN_DROP_RESERVED},
	{"nack_rnr", BOTH | SEAL, EXT, 5, 0, 1, SAN_DROP_RESERVED},
	{"nack_rnr", BOTH | SEAL, EXT, 7, 0, 1, SAN_DROP_RESERVED},
	{"ack_bare", BOTH | SEAL, EXT, 18, 0xff, 0x20, SAN_DROP_RESERVED},
	{"ack_bare", BOTH | SEAL, EXT, 18, 0xff, 0x80, SAN_DROP_RESERVED},
	{"cnp", BOTH | SEAL, BTH, 12, 0, 1, SAN_DROP_RESERVED},
	{"cnp", BOTH | SEAL, BTH, 27, 0, 1, SAN_DROP_RESERVED},
	{"push_slctd_data_last", BOTH | SEAL, PAY, 61, 0, 1, SAN_DROP_RESERVED}, /* padding */
	{"push_slctd_data_last", BOTH | SEAL, PAY, 63, 0, 1, SAN_DROP_RESERVED},
	{"pull_data_last", BOTH | SEAL, PAY, 1, 0, 1, SAN_DROP_RESERVED},
	/* values */
	{"push_slctd_req", BOTH | SEAL, EXT, 3, 0, 1, SAN_DROP_FIELD}, /* 2 GiB and 1 */
	{"pull_req", BOTH | SEAL, EXT, 0, 0, 0x81, SAN_DROP_FIELD},
	{"pull_req", BOTH | SEAL, EXT, 0, 0, 0xc0, SAN_DROP_FIELD},
	{"push_unslctd_data", BOTH | SEAL, EXT, 0, 0, 0xff, SAN_DROP_FIELD},
	{"push_unslctd_data", BOTH | SEAL, EXT, 16, 0, 0x13, SAN_DROP_FIELD}, /* offset */
	{"push_unslctd_data", BOTH | SEAL, EXT, 16, 0, 0xff, SAN_DROP_FIELD},
	{"push_unslctd_data_send", BOTH | SEAL, EXT, 3, 0, 61, SAN_DROP_FIELD},
	{"push_unslctd_data_send", BOTH | SEAL, EXT, 19, 0, 1, SAN_DROP_FIELD},
	{"push_unslctd_data_imm", BOTH | SEAL, EXT, 3, 0, 15, SAN_DROP_FIELD},
	{"push_unslctd_data_imm", BOTH | SEAL, RT, 1, 0, 0x08, SAN_DROP_FIELD}, /* not LAST */
	{"push_slctd_data", BOTH | SEAL, EXT, 0, 0, 0x80, SAN_DROP_FIELD},
	{"push_slctd_data_imm", BOTH | SEAL, EXT, 3, 0, 1, SAN_DROP_FIELD},
	{"pull_data", BOTH | SEAL, EXT, 0, 0, 0x80, SAN_DROP_FIELD},
	{"push_grnt", BOTH | SEAL, EXT, 4, 0, 0x80, SAN_DROP_FIELD},
	{"pull_data_last", BOTH | SEAL, RT, 1, 0, 0x09, SAN_DROP_FIELD}, /* KIND */
	{"push_packed", BOTH | SEAL, EXT, 0, 0, 0, SAN_DROP_FIELD},
	{"push_packed", BOTH | SEAL, EXT, 0, 0, 1, SAN_DROP_FIELD},
	{"push_packed", BOTH | SEAL, EXT, 0, 0, 3, SAN_DROP_FIELD}, /* one message too many */
	{"push_packed", BOTH | SEAL, EXT, 0, 0, 5, SAN_DROP_FIELD}, /* one is missing */
	{"push_packed_empty", BOTH | SEAL, EXT, 0, 0, 65, SAN_DROP_FIELD},
	{"push_packed_empty", BOTH | SEAL, EXT, 0, 0, 255, SAN_DROP_FIELD},
	{"push_packed", BOTH | SEAL, PAY, 0, 0, 4, SAN_DROP_FIELD},         /* kind */
	{"push_packed_empty", BOTH | SEAL, PAY, 252, 0, 0, SAN_DROP_FIELD}, /* header too long */
	{"push_packed_empty", BOTH | SEAL, PAY, 252, 0, 2, SAN_DROP_FIELD}, /* likewise */
	{"push_packed", BOTH | SEAL, PAY, 39, 0, 17, SAN_DROP_FIELD},       /* beyond the packet */
	{"push_packed", BOTH | SEAL, PAY, 38, 0, 0xff, SAN_DROP_FIELD},     /* likewise */
	{"nack_unpack", BOTH | SEAL, EXT, 4, 0, SAN_ST_RESOURCE, SAN_DROP_FIELD},
	{"nack_unpack", BOTH | SEAL, RT, 1, 0, 0x10, SAN_DROP_FIELD}, /* a request */
	{"ack_bare", BOTH | SEAL, EXT, 18, 0, 0x04, SAN_DROP_FIELD},  /* a word missing */
	{"ack_bare", BOTH | SEAL, EXT, 19, 0, 1, SAN_DROP_FIELD},
	{"ack_small", BOTH | SEAL, EXT, 19, 0, 0, SAN_DROP_FIELD},       /* words too many */
	{"ack_small", BOTH | SEAL, EXT, 18, 0xe3, 0x14, SAN_DROP_FIELD}, /* 5 words */
	{"ack_full", BOTH | SEAL, EXT, 19, 0, 17, SAN_DROP_FIELD},
	{"ack_full", BOTH | SEAL, EXT, 19, 0, 255, SAN_DROP_FIELD},
	{"ack_bare", BOTH | SEAL, EXT, 14, 0, 0x03, SAN_DROP_FIELD}, /* level 1006 */
	{"cm_req", BOTH | SEAL, BTH, 7, 0, 2, SAN_DROP_FIELD},       /* not the CM's CID */
	/* accepted: bits that may change in the network, or are undefined in a CNP */
	{"probe", V4 | CKSUM, IP, 8, 0, 1, SAN_DROP_NONE},
	{"probe", V4 | CKSUM, IP, 1, 0, 0xff, SAN_DROP_NONE},
	{"probe", V4 | CKSUM | SEAL, IP, 6, 0, 0, SAN_DROP_NONE}, /* no DF */
	{"probe", V6, IP, 1, 0, 0xff, SAN_DROP_NONE},
	{"probe", V6, IP, 3, 0, 0x55, SAN_DROP_NONE},
	{"probe", V6, IP, 7, 0, 1, SAN_DROP_NONE},
	{"probe", BOTH, UDP, 6, 0, 0x12, SAN_DROP_NONE},
	{"cnp", BOTH, BTH, 4, 0, 0xc0, SAN_DROP_NONE},
	{"cnp", BOTH, BTH, 4, 0, 0x00, SAN_DROP_NONE},
	{"cnp", BOTH | SEAL, BTH, 1, 0xff, 0xc0, SAN_DROP_NONE},
	{"cnp", BOTH | SEAL, BTH, 9, 0, 0x55, SAN_DROP_NONE},
	{"push_unslctd_data_imm", BOTH | SEAL, RT, 0, 0, 0x10, SAN_DROP_NONE},
	{"ack_bare", BOTH | SEAL, EXT, 14, 0, 0x00, SAN_DROP_NONE},
};

static void
try_refusal(const struct refusal *r, bool v6)
{
	const struct wire_sample *s = wire_sample_get(r->sample);
	struct rte_mbuf *m = wire_sample_build(test_pool(), s, v6);
	uint8_t *at = byte_at(m, offset_of(r->base, s->op, v6) + r->off);
	enum san_drop drop;

	*at = (uint8_t)((*at & r->keep) | r->set);
	if ((r->how & CKSUM) && !v6)
		fix_cksum(m);
	if (r->how & SEAL)
		san_wire_icrc_seal(m);
	drop = parse_exact(m);
	if (drop != r->want)
		fail_msg("row %u (%s, v%d, byte %u of header %d): %s, not %s",
			 (unsigned int)(r - refusals), r->sample, v6 ? 6 : 4, r->off, r->base,
			 san_drop_name(drop), san_drop_name(r->want));
}

/* RT-37: a piece has a part of the payload, not all, none or more. Every split is accepted. */
UNIT_CASE(parse__pieces)
{
	static const struct {
		uint16_t off, whole, len;
		enum san_drop want;
	} rows[] = {
		{0, 100, 60, SAN_DROP_NONE},
		{40, 100, 60, SAN_DROP_NONE},
		{0, 61, 60, SAN_DROP_NONE},
		{0, 60, 60, SAN_DROP_FIELD},
		{0, 0, 60, SAN_DROP_FIELD},
		{41, 100, 60, SAN_DROP_FIELD},
		{65535, 100, 60, SAN_DROP_FIELD},
		{65535, 65535, 60, SAN_DROP_FIELD},
		{0, 100, 0, SAN_DROP_FIELD},
		{0, 201, 60, SAN_DROP_FIELD}, /* beyond the length of the push */
		{0, 200, 60, SAN_DROP_NONE},
	};
	struct wire_sample s = *wire_sample_get("push_unslctd_data");
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p;
	struct rte_mbuf *m;
	uint8_t *data;

	s.length = 200;
	s.offset = 0;
	s.flags = SAN_F_PIECE;
	UNIT_EACH(r, rows) {
		m = rte_pktmbuf_alloc(test_pool());
		data = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(4 + r->len));
		data[0] = (uint8_t)(r->off >> 8);
		data[1] = (uint8_t)r->off;
		data[2] = (uint8_t)(r->whole >> 8);
		data[3] = (uint8_t)r->whole;
		memset(data + 4, 0, r->len);
		p = wire_sample_pkt(&s);
		san_wire_build(m, &path, &p);
		san_wire_icrc_seal(m);
		assert_int_equal(parse_exact(m), r->want);
	}
}

UNIT_CASE(parse__refusals) /* RT-21 */
{
	UNIT_EACH(r, refusals) {
		if (r->how & V4)
			try_refusal(r, false);
		if (r->how & V6)
			try_refusal(r, true);
	}
}

/* Cut at any length, a packet is short, and nothing behind its end is read. */
UNIT_CASE(parse__every_length_is_short)
{
	struct rte_mbuf *m, *exact;

	UNIT_EACH(r, wire_samples) {
		for (unsigned int v6 = 0; v6 < 2; v6++) {
			m = wire_sample_build(test_pool(), r, v6);
			for (uint16_t len = 0; len < rte_pktmbuf_data_len(m); len++) {
				exact = test_eal_exact(test_pool(), byte_at(m, 0), len);
				assert_int_equal(parse(exact), SAN_DROP_SHORT);
				rte_pktmbuf_free(exact);
			}
			rte_pktmbuf_free(m);
		}
	}
}

/* Opcode and headers of another type, with valid length and ICRC: reads stay in bounds. */
UNIT_CASE(parse__every_opcode_on_every_length)
{
	struct san_wire_path path = wire_sample_path(true);
	struct san_wire_pkt p = {.op = SAN_OP_PROBE};
	unsigned int known, hdr_len;
	enum san_drop drop;
	struct rte_mbuf *m;

	for (unsigned int op = 0; op < 256; op++) {
		known = (op >= 0xc0 && op <= 0xcc) || op == 0x81;
		for (unsigned int len = 0; len <= 48; len++) {
			m = rte_pktmbuf_alloc(test_pool());
			memset(rte_pktmbuf_append(m, (uint16_t)len), 0, len);
			san_wire_build(m, &path, &p);
			*byte_at(m, 62) = (uint8_t)op;
			san_wire_icrc_seal(m);
			drop = parse_exact(m);
			assert_int_equal(drop == SAN_DROP_OPCODE, !known);
			hdr_len = san_wire_op_hdr_len((uint8_t)op, true);
			if (known && RTE_ALIGN_CEIL(len, 4) + 74 + 28 < hdr_len)
				assert_int_equal(drop, SAN_DROP_SHORT);
		}
	}
}

/* A length that is not a multiple of four is not ours, whatever the pad count is. */
UNIT_CASE(parse__unpadded)
{
	struct rte_mbuf *m;
	uint8_t *data;

	for (unsigned int cut = 1; cut < 4; cut++) {
		for (unsigned int pad = 0; pad < 4; pad++) {
			m = sample("push_slctd_data", false);
			rte_pktmbuf_trim(m, (uint16_t)cut);
			data = rte_pktmbuf_mtod(m, uint8_t *);
			data[17] = (uint8_t)(data[17] - cut);
			data[39] = (uint8_t)(data[39] - cut);
			data[43] = (uint8_t)(pad << 4);
			fix_cksum(m);
			san_wire_icrc_seal(m);
			assert_int_equal(parse_exact(m), SAN_DROP_BTH);
		}
	}
}

/* Valid flags of each type, written by hand. */
static const uint8_t flags_of[] = {
	[SAN_OP_PUSH_SLCTD_REQ - 0xc0] = 0x0c,
	[SAN_OP_PULL_REQ - 0xc0] = 0,
	[SAN_OP_ATOMIC_REQ - 0xc0] = 0,
	[SAN_OP_PUSH_GRNT - 0xc0] = 0,
	[SAN_OP_PUSH_SLCTD_DATA - 0xc0] = 0x2d,
	[SAN_OP_PUSH_UNSLCTD_DATA - 0xc0] = 0x2d,
	[SAN_OP_PULL_DATA - 0xc0] = 0x21,
	[SAN_OP_ACK - 0xc0] = 0,
	[SAN_OP_NACK - 0xc0] = 0x12,
	[SAN_OP_RESYNC - 0xc0] = 0x02,
	[SAN_OP_CM - 0xc0] = 0,
	[SAN_OP_PROBE - 0xc0] = 0,
	[SAN_OP_PUSH_PACKED - 0xc0] = 0x20};

/* Whether the payload of the sample begins like that of a piece. */
static bool
is_like_a_piece(const struct wire_sample *s)
{
	uint8_t x[2048];

	wire_sample_payload(s, x);
	return s->payload > 4 && s->payload - 4 < (x[2] << 8 | x[3]) &&
		(x[0] << 8 | x[1]) + s->payload - 4 <= (x[2] << 8 | x[3]);
}

UNIT_CASE(parse__every_flag_of_every_type)
{
	unsigned int allowed;
	enum san_drop want;
	struct rte_mbuf *m;

	UNIT_EACH(s, wire_samples) {
		/* a payload that is valid for all kinds, so that only the flags decide */
		if (s->op == SAN_OP_CNP || (s->flags & SAN_F_KIND) || s->payload == 0)
			continue;
		allowed = flags_of[s->op - 0xc0];
		for (unsigned int flags = 0; flags < 256; flags++) {
			m = wire_sample_build(test_pool(), s, false);
			*byte_at(m, 55) = (uint8_t)flags;
			san_wire_icrc_seal(m);
			want = SAN_DROP_NONE;
			if (flags > 0x3f)
				want = SAN_DROP_RESERVED;
			else if ((flags & ~allowed) != 0)
				want = SAN_DROP_FIELD;
			else if ((flags & SAN_F_PIECE) && !is_like_a_piece(s))
				want = SAN_DROP_FIELD;
			assert_int_equal(parse_exact(m), want);
		}
	}
}

UNIT_CASE(parse__flags_of_types_without_payload)
{
	static const char *const names[] = {"push_slctd_req", "pull_req", "push_grnt", "ack_bare",
					    "nack_rnr", "resync_req", "cm_req", "probe"};
	const struct wire_sample *s;
	enum san_drop want;
	struct rte_mbuf *m;

	UNIT_EACH(r, names) {
		s = wire_sample_get(*r);
		for (unsigned int flags = 0; flags < 64; flags++) {
			m = wire_sample_build(test_pool(), s, true);
			*byte_at(m, 75) = (uint8_t)flags;
			san_wire_icrc_seal(m);
			want = (flags & ~flags_of[s->op - 0xc0]) != 0 ?
				SAN_DROP_FIELD :
				SAN_DROP_NONE;
			/* a packed packet cannot be a request */
			if (s->op == SAN_OP_NACK && flags == 0x10)
				want = SAN_DROP_FIELD;
			assert_int_equal(parse_exact(m), want);
		}
	}
}

static const struct {
	const char *name;
	uint8_t off; /* in the extended header */
	uint8_t first, last;
} status_rows[] = {
	{"push_grnt", 8, 0, 10},
	{"pull_data", 4, 0, 10},
	{"nack_rnr", 4, 1, 10},
	{"resync_req", 0, 0, 1},
	{"atomic_add", 0, 1, 2},
};

UNIT_CASE(parse__every_status)
{
	enum san_drop drop;
	struct rte_mbuf *m;

	UNIT_EACH(r, status_rows) {
		unit_row(r->name);
		for (unsigned int v = 0; v < 256; v++) {
			m = sample(r->name, false);
			*byte_at(m, 82 + r->off) = (uint8_t)v;
			san_wire_icrc_seal(m);
			drop = parse_exact(m);
			if (v < r->first || v > r->last) {
				assert_int_equal(drop, SAN_DROP_FIELD);
				continue;
			}
			assert_int_equal(drop, SAN_DROP_NONE);
			assert_int_equal(got.status, v);
		}
	}
}

/* Types with a payload of fixed length, and with an immediate. */
UNIT_CASE(parse__payload_of_type)
{
	static const struct {
		const char *name;
		uint16_t min, max;
	} rows[] = {
		{"push_slctd_req", 0, 0},
		{"pull_req", 0, 0},
		{"atomic_add", 16, 16},
		{"push_grnt", 0, 0},
		{"nack_rnr", 0, 0},
		{"resync_req", 0, 0},
		{"cnp", 0, 0},
		{"probe", 0, 32},
		{"pull_data_last", 0, 32},
		{"push_slctd_data", 0, 32},
		{"push_slctd_data_imm", 4, 4},
		{"push_unslctd_data_imm", 4, 20},
	};
	struct san_wire_path path = wire_sample_path(true);
	struct san_wire_pkt p;
	struct rte_mbuf *m;

	UNIT_EACH(r, rows) {
		unit_row(r->name);
		for (unsigned int len = 0; len <= 32; len++) {
			bool fits = len >= r->min && len <= r->max;

			p = wire_sample_pkt(wire_sample_get(r->name));
			m = rte_pktmbuf_alloc(test_pool());
			memset(rte_pktmbuf_append(m, (uint16_t)len), 1, len);
			san_wire_build(m, &path, &p);
			san_wire_icrc_seal(m);
			assert_int_equal(parse_exact(m), fits ? SAN_DROP_NONE : SAN_DROP_FIELD);
		}
	}
}

UNIT_CASE(parse__mapped_address_over_v6)
{
	static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, 10, 1, 2, 3};
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < 2; i++) {
		m = sample("probe", true);
		memcpy(rte_pktmbuf_mtod_offset(m, char *, 14 + 8 + 16 * i), mapped, 16);
		san_wire_icrc_seal(m);
		assert_int_equal(parse_exact(m), SAN_DROP_IP_HEADER);
	}
}

/* IP options move the UDP header: refused on our port, handled by inet on any other. */
UNIT_CASE(parse__ipv4_options)
{
	struct rte_mbuf *m;
	uint8_t *data;

	for (unsigned int ours = 0; ours < 2; ours++) {
		m = sample("probe", false);
		data = (uint8_t *)rte_pktmbuf_prepend(m, 4);
		if (data == NULL)
			abort();
		memmove(data, data + 4, 34);
		memset(data + 34, 1, 4); /* no operation */
		data[14] = 0x46;
		data[17] = (uint8_t)(data[17] + 4);
		if (!ours)
			data[34 + 4 + 3]++;
		fix_cksum(m);
		assert_int_equal(parse_exact(m), ours ? SAN_DROP_IP_HEADER : SAN_DROP_NOT_OURS);
	}
}

UNIT_CASE(parse__ce_mark)
{
	struct rte_mbuf *m;
	uint8_t *data;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		for (unsigned int ecn = 0; ecn < 4; ecn++) {
			m = sample("probe", v6);
			data = rte_pktmbuf_mtod(m, uint8_t *);
			if (v6) {
				data[15] = (uint8_t)((data[15] & 0xcf) | ecn << 4);
			} else {
				data[15] = (uint8_t)((data[15] & 0xfc) | ecn);
				fix_cksum(m);
			}
			/* a mark set in the network keeps the ICRC valid */
			assert_int_equal(parse_exact(m), SAN_DROP_NONE);
			assert_int_equal(got.ce, ecn == 3);
		}
	}
}

UNIT_CASE(parse__checksum_offload)
{
	struct rte_mbuf *m = sample("probe", false);

	rte_pktmbuf_mtod(m, uint8_t *)[24] ^= 0xff;
	m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	assert_int_equal(parse_exact(m), SAN_DROP_NONE);
	m = sample("probe", false);
	rte_pktmbuf_mtod(m, uint8_t *)[24] ^= 0xff;
	m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_BAD;
	assert_int_equal(parse_exact(m), SAN_DROP_IP_CHECKSUM);
}

/* Our own sum of the header compared with DPDK's, for any addresses. */
UNIT_CASE(parse__ipv4_checksum)
{
	struct san_prng g;
	struct rte_mbuf *m;
	uint64_t word;
	uint8_t *ip;

	san_prng_seed(&g, 11);
	for (uint32_t i = 0; i < 20000; i++) {
		m = sample("probe", false);
		ip = byte_at(m, 14);
		word = i < 4 ? 0 - (uint64_t)(i & 1) : san_prng_u64(&g);
		memcpy(ip + 12, &word, sizeof(word));
		fix_cksum(m);
		if (i & 1)
			ip[10 + (i >> 1 & 1)] ^= (uint8_t)(1u << san_prng_below(&g, 8));
		/* the ICRC was made for other addresses */
		assert_int_equal(parse_exact(m), i & 1 ? SAN_DROP_IP_CHECKSUM : SAN_DROP_ICRC);
	}
}

UNIT_CASE(parse__another_port)
{
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p = wire_sample_pkt(wire_sample_get("probe"));
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool());

	path.dst_port = 5000;
	san_wire_build(m, &path, &p);
	san_wire_icrc_seal(m);
	assert_int_equal(parse(m), SAN_DROP_NOT_OURS);
	assert_int_equal(san_wire_parse(m, 5000, &got, &got_ack), SAN_DROP_NONE);
	rte_pktmbuf_free(m);
}
