/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * One packet of every type and variety, for the unit tests of lib/wire, the
 * fuzz corpus and the dissector's test: all fields set, most to values that
 * show a wrong offset, byte order or mask.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "wire.h"
#include "wire_pack.h"

#define WIRE_SAMPLE_PSN 0xfedcba98u
#define WIRE_SAMPLE_CID 0xd1d2d3 /* of the packet that a RESET answers */

struct wire_sample {
	const char *name;
	uint8_t op, flags, status;
	uint8_t nb_req;    /**< ACK */
	uint8_t nb_data;   /**< ACK */
	uint8_t cm_msg;    /**< CM */
	uint8_t cm_flags;  /**< CM */
	uint8_t cm_reason; /**< CM */
	uint16_t payload;
	uint32_t length, offset;
};

#define WIRE_SAMPLE_KIND(k) (SAN_KIND_##k << SAN_F_KIND_SHIFT)

/* clang-format off */
static const struct wire_sample wire_samples[] = {
	{"push_slctd_req", SAN_OP_PUSH_SLCTD_REQ, .length = SAN_WIRE_LENGTH_MAX},
	{"push_slctd_req_send", SAN_OP_PUSH_SLCTD_REQ, WIRE_SAMPLE_KIND(SEND), .length = 1},
	{"push_slctd_req_imm", SAN_OP_PUSH_SLCTD_REQ, WIRE_SAMPLE_KIND(PUSH_IMM), .length = 0},
	{"pull_req", SAN_OP_PULL_REQ, .length = 0x12345678},
	{"atomic_add", SAN_OP_ATOMIC_REQ, .status = SAN_ATOMIC_FETCH_ADD, .payload = 16},
	{"atomic_swap", SAN_OP_ATOMIC_REQ, .status = SAN_ATOMIC_CMP_SWAP, .payload = 16},
	{"push_grnt", SAN_OP_PUSH_GRNT, .offset = 0x01020304},
	{"push_grnt_rnr", SAN_OP_PUSH_GRNT, .status = SAN_ST_RNR},
	{"push_slctd_data", SAN_OP_PUSH_SLCTD_DATA, .payload = 64, .offset = 0x01020304},
	{"push_slctd_data_last", SAN_OP_PUSH_SLCTD_DATA, SAN_F_LAST, .payload = 61,
		.offset = 0x2345},
	{"push_slctd_data_imm", SAN_OP_PUSH_SLCTD_DATA,
		SAN_F_LAST | WIRE_SAMPLE_KIND(PUSH_IMM), .payload = 4,
		.offset = SAN_WIRE_LENGTH_MAX},
	{"push_unslctd_data", SAN_OP_PUSH_UNSLCTD_DATA, .payload = 63, .length = 0x12345678,
		.offset = 0x01020304},
	{"push_unslctd_data_empty", SAN_OP_PUSH_UNSLCTD_DATA, SAN_F_LAST},
	{"push_unslctd_data_send", SAN_OP_PUSH_UNSLCTD_DATA,
		SAN_F_LAST | WIRE_SAMPLE_KIND(SEND), .payload = 62, .length = 62},
	{"push_unslctd_data_send_imm", SAN_OP_PUSH_UNSLCTD_DATA,
		SAN_F_LAST | WIRE_SAMPLE_KIND(SEND_IMM), .payload = 20, .length = 16},
	{"push_unslctd_data_imm", SAN_OP_PUSH_UNSLCTD_DATA,
		SAN_F_LAST | WIRE_SAMPLE_KIND(PUSH_IMM), .payload = 20, .length = 16},
	{"pull_data", SAN_OP_PULL_DATA, .payload = 1000, .offset = 0x01020304},
	{"pull_data_last", SAN_OP_PULL_DATA, SAN_F_LAST, .payload = 1},
	{"pull_data_revoked", SAN_OP_PULL_DATA, SAN_F_LAST, .status = SAN_ST_REVOKED},
	{"ack_bare", SAN_OP_ACK},
	{"ack_small", SAN_OP_ACK, .nb_req = 1, .nb_data = 1},
	{"ack_full", SAN_OP_ACK, .nb_req = SAN_WIRE_REQ_WORDS, .nb_data = SAN_WIRE_DATA_WORDS},
	{"nack_rnr", SAN_OP_NACK, .status = SAN_ST_RNR},
	{"nack_aborted", SAN_OP_NACK, .status = SAN_ST_ABORTED},
	{"nack_unpack", SAN_OP_NACK, SAN_F_WIN_DATA | SAN_F_UNPACK, .status = SAN_ST_RNR},
	{"resync_req", SAN_OP_RESYNC, .status = SAN_RESYNC_FILL},
	{"resync_data_abort", SAN_OP_RESYNC, SAN_F_WIN_DATA, .status = SAN_RESYNC_ABORT},
	{"cm_req", SAN_OP_CM, .cm_msg = SAN_CM_REQ, .cm_flags = SAN_CM_F_ORDERED},
	{"cm_cookie", SAN_OP_CM, .cm_msg = SAN_CM_COOKIE, .cm_flags = SAN_CM_F_COOKIE},
	{"cm_req_cookie", SAN_OP_CM, .cm_msg = SAN_CM_REQ, .cm_flags = 0x07},
	{"cm_rep", SAN_OP_CM, .cm_msg = SAN_CM_REP},
	{"cm_rtu", SAN_OP_CM, .cm_msg = SAN_CM_RTU},
	{"cm_rej", SAN_OP_CM, .cm_msg = SAN_CM_REJ, .cm_reason = RTSAN_R_BACKLOG},
	{"cm_dreq", SAN_OP_CM, .cm_msg = SAN_CM_DREQ, .cm_reason = RTSAN_R_TIMEOUT},
	{"cm_drep", SAN_OP_CM, .cm_msg = SAN_CM_DREP},
	{"cm_reset", SAN_OP_CM, .cm_msg = SAN_CM_RESET, .cm_reason = RTSAN_R_STALE},
	{"probe", SAN_OP_PROBE},
	{"probe_long", SAN_OP_PROBE, .payload = 1200},
	{"push_packed", SAN_OP_PUSH_PACKED, .payload = 72, .length = 4},
	{"push_packed_empty", SAN_OP_PUSH_PACKED, .payload = 256, .length = SAN_WIRE_PACK_MAX},
	{"cnp", SAN_OP_CNP},
};
/* clang-format on */

static inline const struct wire_sample *
wire_sample_get(const char *name)
{
	for (unsigned int i = 0; i < RTE_DIM(wire_samples); i++) {
		if (strcmp(wire_samples[i].name, name) == 0)
			return &wire_samples[i];
	}
	fprintf(stderr, "no sample %s\n", name);
	abort();
}

/** 10.1.2.3 to 10.1.2.4, or fd00::1:2:3 to fd00::1:2:4. */
static inline struct san_wire_path
wire_sample_path(bool v6)
{
	struct san_wire_path path = {
		.src_mac = {{0x02, 0x00, 0x00, 0x00, 0x00, 0x0a}},
		.dst_mac = {{0x02, 0x00, 0x00, 0x00, 0x00, 0x0b}},
		.src_port = 0xc0de,
		.dst_port = SAN_WIRE_PORT,
		.dscp = 26};
	static const uint8_t v4_src[16] = {[10] = 0xff, [11] = 0xff, 10, 1, 2, 3};
	static const uint8_t v6_src[16] = {0xfd, [11] = 1, [13] = 2, [15] = 3};

	memcpy(path.src.b, v6 ? v6_src : v4_src, sizeof(path.src.b));
	path.dst = path.src;
	path.dst.b[15] = 4;
	return path;
}

/** Those fields of *s* that its type carries; the others stay zero. */
static inline struct san_wire_pkt
wire_sample_pkt(const struct wire_sample *s)
{
	struct san_wire_pkt p = {
		.op = s->op,
		.pkey = 0x8123,
		.dcid = s->op == SAN_OP_CM ? SAN_WIRE_CID_CM : 0xabcdef,
	};
	uint8_t op = s->op;

	if (op == SAN_OP_CNP)
		return p;
	p.flags = s->flags;
	p.round = 0x5a;
	p.ackreq = true;
	p.tag = 0xc1c2c3c4;
	p.psn = WIRE_SAMPLE_PSN;
	p.rsn = s->cm_msg == SAN_CM_RESET ? WIRE_SAMPLE_CID : 0xd1d2d3d4;
	p.req_ebsn = 0xe1e2e3e4;
	p.data_ebsn = 0xf1f2f3f4;
	p.cmpl_rsn = 0xb1b2b3b4;
	p.tx_time = 0xa1a2a3a4;
	p.status = s->status;
	p.length = s->length;
	p.offset = s->offset;
	if (op <= SAN_OP_ATOMIC_REQ || op == SAN_OP_PUSH_UNSLCTD_DATA) {
		p.key = 0x91929394;
		p.addr = 0x8182838485868788;
	}
	if (op == SAN_OP_PUSH_SLCTD_REQ || op == SAN_OP_PUSH_GRNT)
		p.ssn = 0x71727374;
	if (op == SAN_OP_NACK) {
		p.nack_psn = 0x61626364;
		p.delay_us = 0x00051525;
	}
	return p;
}

static inline struct san_wire_ack
wire_sample_ack(const struct wire_sample *s)
{
	struct san_wire_ack ack = {
		.serial = 0x11121314,
		.echo_tx = 0x21222324,
		.echo_rx = 0x31323334,
		.ecn_count = 0x4142,
		.rx_level = 750,
		.first_win = 0x5152,
		.oow = s->nb_req == 1 ? SAN_OOW_REQ : SAN_OOW_DATA,
		.nb_req = s->nb_req,
		.nb_data = s->nb_data,
	};

	for (unsigned int i = 0; i < s->nb_req; i++)
		ack.req[i] = 0x0102030405060700 + i;
	for (unsigned int i = 0; i < s->nb_data; i++) {
		ack.data_acked[i] = 0x1112131415161700 + i;
		ack.data_rcvd[i] = ack.data_acked[i] | 0x8080808080808080;
	}
	return ack;
}

static inline struct san_wire_cm
wire_sample_cm(const struct wire_sample *s)
{
	struct san_wire_cm cm = {
		.msg = s->cm_msg,
		.flags = s->cm_flags,
		.reason = s->cm_reason,
		.nb_ports = s->cm_msg % (SAN_WIRE_CM_PORTS + 1),
		.xid = 0x01020304,
		.src_cid = 0x111213,
		.src_tag = 0x21222324,
		.dst_cid = 0x313233,
		.dst_tag = 0x41424344,
		.req_psn = 0x51525354,
		.data_psn = 0x61626364,
		.first_rsn = 0x71727374,
		.features = 0x81828380,
		.mtu = 0x0a0b,
		.req_win = 0x0c0d,
		.data_win = 0x0e0f,
		.first_win = 0x1a1b,
		.max_txn = 0x1c1d,
		.rnr_ms = 0x1e1f,
		.keepalive_ms = 0x2a2b,
		.private_len = s->cm_msg * 8,
		.service = 0x9192939495969798,
		.uid = RTSAN_UID_NONE,
	};

	if (s->cm_msg == SAN_CM_RESET) /* it is in the common header */
		return (struct san_wire_cm){
			.msg = SAN_CM_RESET,
			.reason = RTSAN_R_STALE,
			.src_cid = WIRE_SAMPLE_CID,
			.src_tag = 0xb1b2b3b4,
			.data_psn = WIRE_SAMPLE_PSN,
		};
	for (unsigned int i = 0; i < SAN_WIRE_COOKIE && (cm.flags & SAN_CM_F_COOKIE); i++)
		cm.cookie[i] = (uint8_t)(0xb0 + i);
	for (unsigned int i = 0; i < cm.nb_ports; i++)
		cm.ports[i] = (uint16_t)(0xc000 + i);
	for (unsigned int i = 0; i < cm.private_len; i++)
		cm.private_data[i] = (uint8_t)(0x40 + i);
	return cm;
}

static inline uint8_t
wire_sample_byte(uint32_t i)
{
	return (uint8_t)(i * 7 + 1);
}

/** Messages of push_packed: one of each kind. The other sample has nothing but empty sends. */
static const struct san_wire_msg wire_sample_msgs[] = {
	{.kind = SAN_KIND_SEND, .length = 5},
	{.kind = SAN_KIND_PUSH, .length = 8, .key = 0x91929394, .addr = 0x8182838485868788},
	{.kind = SAN_KIND_PUSH_IMM,
	 .length = 2,
	 .key = 0xa1a2a3a4,
	 .addr = 0xb1b2b3b4b5b6b7b8,
	 .imm = 0x51525354},
	{.kind = SAN_KIND_SEND_IMM, .length = 3, .imm = 0x61626364},
};

/** The s->payload bytes of payload. */
static inline void
wire_sample_payload(const struct wire_sample *s, uint8_t *to)
{
	static const struct san_wire_msg empty = {.kind = SAN_KIND_SEND};
	const struct san_wire_msg *msg;
	uint8_t *data;

	for (uint32_t i = 0; i < s->payload && s->op != SAN_OP_PUSH_PACKED; i++)
		to[i] = wire_sample_byte(i);
	for (uint32_t i = 0; i < s->length && s->op == SAN_OP_PUSH_PACKED; i++) {
		msg = s->length == RTE_DIM(wire_sample_msgs) ? &wire_sample_msgs[i] : &empty;
		data = san_wire_pack_put(to, msg);
		for (uint32_t k = 0; k < msg->length; k++)
			data[k] = wire_sample_byte(k);
		to += san_wire_pack_len(msg->kind, msg->length);
	}
}

/** A field of packets with data that differs, NULL: none. */
static inline const char *
wire_sample_differs(const struct san_wire_pkt *a, const struct san_wire_pkt *b)
{
#define SAME(field)               \
	if (a->field != b->field) \
	return #field
	SAME(op);
	SAME(flags);
	SAME(round);
	SAME(ackreq);
	SAME(ce);
	SAME(v6);
	SAME(pkey);
	SAME(payload_off);
	SAME(payload_len);
	SAME(dcid);
	SAME(tag);
	SAME(psn);
	SAME(rsn);
	SAME(req_ebsn);
	SAME(data_ebsn);
	SAME(cmpl_rsn);
	SAME(tx_time);
	SAME(addr);
	SAME(key);
	SAME(length);
	SAME(offset);
#undef SAME
	return NULL;
}

/** The whole packet, sealed; NULL without mbufs. */
static inline struct rte_mbuf *
wire_sample_build(struct rte_mempool *pool, const struct wire_sample *s, bool v6)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct san_wire_path path = wire_sample_path(v6);
	struct san_wire_pkt p = wire_sample_pkt(s);
	struct san_wire_ack ack = wire_sample_ack(s);
	struct san_wire_cm cm = wire_sample_cm(s);
	uint8_t *payload;

	if (m == NULL)
		return NULL;
	if (s->op == SAN_OP_ACK) {
		san_wire_build_ack(m, &path, &p, &ack);
	} else if (s->op == SAN_OP_CM) {
		san_wire_cm_build(m, &path, &p, &cm);
	} else {
		payload = (uint8_t *)rte_pktmbuf_append(m, s->payload);
		wire_sample_payload(s, payload);
		san_wire_build(m, &path, &p);
	}
	san_wire_icrc_seal(m);
	return m;
}
