/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every packet type is built, and compared byte by byte or parsed again. (RT-3, RT-29, RT-31,
 * PCB-5)
 */

#include "test_wire.h"

UNIT_FIXTURE(.teardown = teardown);

/** *p* as the parser must return it for a packet on the sample path. */
static void
expect(struct san_wire_pkt *p, bool v6, uint16_t payload_len)
{
	struct san_wire_path path = wire_sample_path(v6);

	p->v6 = v6;
	p->src_port = path.src_port;
	p->payload_off = san_wire_op_hdr_len(p->op, v6);
	p->payload_len = payload_len;
	p->src = path.src;
	p->dst = path.dst;
	p->src_mac = path.src_mac;
}

static void
assert_pkt_equal(const struct san_wire_pkt *a, const struct san_wire_pkt *b)
{
	const char *field = wire_sample_differs(a, b);

	if (field != NULL)
		fail_msg("%s differs", field);
	assert_int_equal(a->src_port, b->src_port);
	assert_int_equal(a->ssn, b->ssn);
	assert_int_equal(a->nack_psn, b->nack_psn);
	assert_int_equal(a->delay_us, b->delay_us);
	assert_int_equal(a->status, b->status);
	assert_memory_equal(&a->src, &b->src, sizeof(a->src));
	assert_memory_equal(&a->dst, &b->dst, sizeof(a->dst));
	assert_memory_equal(&a->src_mac, &b->src_mac, sizeof(a->src_mac));
}

static void
assert_ack_equal(const struct san_wire_ack *a, const struct san_wire_ack *b)
{
	assert_int_equal(a->serial, b->serial);
	assert_int_equal(a->echo_tx, b->echo_tx);
	assert_int_equal(a->echo_rx, b->echo_rx);
	assert_int_equal(a->ecn_count, b->ecn_count);
	assert_int_equal(a->rx_level, b->rx_level);
	assert_int_equal(a->first_win, b->first_win);
	assert_int_equal(a->oow, b->oow);
	assert_int_equal(a->nb_req, b->nb_req);
	assert_int_equal(a->nb_data, b->nb_data);
	assert_memory_equal(a->req, b->req, a->nb_req * sizeof(a->req[0]));
	assert_memory_equal(a->data_acked, b->data_acked, a->nb_data * sizeof(a->req[0]));
	assert_memory_equal(a->data_rcvd, b->data_rcvd, a->nb_data * sizeof(a->req[0]));
}

static void
round_trip(const struct wire_sample *s, bool v6)
{
	struct rte_mbuf *m = wire_sample_build(test_pool(), s, v6);
	struct san_wire_pkt want = wire_sample_pkt(s);
	struct san_wire_ack want_ack = wire_sample_ack(s);
	struct san_wire_cm want_cm = wire_sample_cm(s);
	struct san_wire_cm cm;
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t len = s->payload;
	uint8_t payload[2048];
	size_t cm_size;

	if (s->op == SAN_OP_ACK)
		len = (uint16_t)((s->nb_req + 2 * s->nb_data) * 8);
	if (s->op == SAN_OP_CM)
		len = s->cm_msg == SAN_CM_RESET ? 0 : 164; /* RT-36 */
	/* stale bytes of the result are detected */
	memset(&got, 0xa5, sizeof(got));
	memset(&got_ack, 0xa5, sizeof(got_ack));
	memset(&cm, 0xa5, sizeof(cm));
	assert_int_equal(parse(m), SAN_DROP_NONE);
	expect(&want, v6, len);
	assert_pkt_equal(&got, &want);
	if (s->op == SAN_OP_ACK) {
		assert_ack_equal(&got_ack, &want_ack);
	} else if (s->op == SAN_OP_CM) {
		assert_int_equal(san_wire_cm_parse(m, &got, &cm), SAN_DROP_NONE);
		/* without the padding behind the last member */
		cm_size = offsetof(struct san_wire_cm, private_data) + SAN_WIRE_CM_PRIVATE;
		assert_memory_equal(&cm, &want_cm, cm_size);
	} else {
		wire_sample_payload(s, payload);
		assert_memory_equal(data + got.payload_off, payload, len);
	}
	/* padded to whole words, counted from the BTH */
	assert_int_equal(rte_pktmbuf_pkt_len(m), got.payload_off + RTE_ALIGN_CEIL(len, 4) + 4);
	rte_pktmbuf_free(m);
}

UNIT_CASE(build__round_trip_v4) /* RT-31 */
{
	UNIT_EACH(r, wire_samples)
		round_trip(r, false);
}

UNIT_CASE(build__round_trip_v6) /* RT-31 */
{
	UNIT_EACH(r, wire_samples)
		round_trip(r, true);
}

/* RT-37: pieces of a payload add up to it, and each is within its limits. */
UNIT_CASE(cut__round_trip)
{
	struct wire_sample s = *wire_sample_get("push_unslctd_data");
	struct san_wire_path path;
	struct san_wire_pkt p;
	uint8_t payload[2000];
	struct rte_mbuf *m;
	uint16_t len, max = san_wire_piece_max(san_wire_payload_max(1280, true));

	s.payload = sizeof(payload);
	wire_sample_payload(&s, payload);
	for (unsigned int v6 = 0; v6 < 2; v6++) {
		path = wire_sample_path(v6 != 0);
		for (uint16_t from = 0; from < s.payload; from += len) {
			len = RTE_MIN((uint16_t)(s.payload - from), max);
			m = rte_pktmbuf_alloc(test_pool());
			memcpy(rte_pktmbuf_append(m, s.payload), payload, s.payload);
			p = wire_sample_pkt(&s);
			san_wire_build_cut(m, &p, from, len);
			san_wire_build(m, &path, &p);
			san_wire_icrc_seal(m);
			assert_true(rte_pktmbuf_pkt_len(m) <= 1280 + 14);
			assert_int_equal(parse(m), SAN_DROP_NONE);
			assert_int_equal(got.flags, s.flags | SAN_F_PIECE);
			assert_int_equal(got.offset, s.offset);
			assert_int_equal(got.piece_off, from);
			assert_int_equal(got.whole_len, s.payload);
			assert_int_equal(got.payload_len, len);
			assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *) + got.payload_off,
					    payload + from, len);
			rte_pktmbuf_free(m);
		}
	}
}

/* The layout of doc/wire.md, byte by byte: IPv4, BTH, common header, PUSH_UNSLCTD_DATA. */
UNIT_CASE(build__bytes_of_unslctd_data) /* RT-3, RT-24, RT-29, PCB-5 */
{
	static const uint8_t want[] = {
		/* Ethernet */
		2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa, 0x08, 0x00,
		/* IPv4: DSCP 26 and ECT(0), 156 bytes, DF, TTL 64, UDP */
		0x45, 0x6a, 0, 156, 0, 0, 0x40, 0, 64, 17, 0x21, 0xdf, 10, 1, 2, 3, 10, 1, 2, 4,
		/* UDP, no checksum */
		0xc0, 0xde, 0x12, 0xb7, 0, 136, 0, 0,
		/* BTH: pad count 1, P_Key, resv8a, CID, AckReq, PSN */
		0xc5, 0x10, 0x81, 0x23, 0, 0xab, 0xcd, 0xef, 0x80, 0xdc, 0xba, 0x98,
		/* version, flags, PSN 31..24, round; tag; RSN */
		0x10, 0x00, 0xfe, 0x5a, 0xc1, 0xc2, 0xc3, 0xc4, 0xd1, 0xd2, 0xd3, 0xd4,
		/* request eBSN, data eBSN, completed RSN, tx_time */
		0xe1, 0xe2, 0xe3, 0xe4, 0xf1, 0xf2, 0xf3, 0xf4,
		0xb1, 0xb2, 0xb3, 0xb4, 0xa1, 0xa2, 0xa3, 0xa4,
		/* length, key, address, offset */
		0x12, 0x34, 0x56, 0x78, 0x91, 0x92, 0x93, 0x94,
		0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 1, 2, 3, 4};
	struct rte_mbuf *m = sample("push_unslctd_data", false);
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);

	assert_int_equal(san_wire_op_hdr_len(SAN_OP_PUSH_UNSLCTD_DATA, false), sizeof(want));
	assert_int_equal(rte_ipv4_cksum((const struct rte_ipv4_hdr *)(data + 14)), 0);
	assert_memory_equal(data, want, sizeof(want));
	/* 63 bytes of payload, one of padding */
	assert_int_equal(rte_pktmbuf_pkt_len(m), sizeof(want) + 64 + 4);
	assert_int_equal(data[sizeof(want) + 63], 0);
	rte_pktmbuf_free(m);
}

struct ext_row {
	const char *name;
	uint8_t len, bytes[20];
};

/* Extended headers, byte by byte. */
/* clang-format off */
static const struct ext_row ext_rows[] = {
	{"push_slctd_req_send", 20, {0, 0, 0, 1, 0x91, 0x92, 0x93, 0x94, /* length, key */
				     0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, /* address */
				     0x71, 0x72, 0x73, 0x74}},
	{"pull_req", 16, {0x12, 0x34, 0x56, 0x78, 0x91, 0x92, 0x93, 0x94,
			  0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88}},
	{"atomic_swap", 16, {2, 0, 0, 0, 0x91, 0x92, 0x93, 0x94,
			     0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88}},
	{"push_grnt", 12, {0x71, 0x72, 0x73, 0x74, 1, 2, 3, 4, 0, 0, 0, 0}},
	{"push_grnt_rnr", 12, {0x71, 0x72, 0x73, 0x74, 0, 0, 0, 0, 1, 0, 0, 0}},
	{"push_slctd_data_last", 4, {0, 0, 0x23, 0x45}},
	{"pull_data_revoked", 8, {0, 0, 0, 0, 6, 0, 0, 0}},
	{"ack_small", 20, {0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
			   0x41, 0x42, 0x02, 0xee, 0x51, 0x52, 0x05, 0x01}},
	{"ack_full", 20, {0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
			  0x41, 0x42, 0x02, 0xee, 0x51, 0x52, 0x12, 0x10}},
	{"nack_rnr", 12, {0x61, 0x62, 0x63, 0x64, 1, 0, 0, 0, 0, 5, 0x15, 0x25}},
	{"resync_data_abort", 4, {1, 0, 0, 0}},
	{"probe", 0, {0}},
	{"cm_req", 0, {0}},
};
/* clang-format on */

UNIT_CASE(build__bytes_of_extended_headers)
{
	const struct wire_sample *s;
	struct rte_mbuf *m;
	uint16_t off;

	UNIT_EACH(r, ext_rows) {
		for (unsigned int v6 = 0; v6 < 2; v6++) {
			unit_row(r->name);
			s = wire_sample_get(r->name);
			m = wire_sample_build(test_pool(), s, v6);
			off = v6 ? 74 + 28 : 54 + 28;
			assert_int_equal(san_wire_op_hdr_len(s->op, v6), off + r->len);
			assert_memory_equal(byte_at(m, off), r->bytes, r->len);
			rte_pktmbuf_free(m);
		}
	}
}

UNIT_CASE(build__flags_byte)
{
	const struct wire_sample *s = wire_sample_get("push_unslctd_data_imm");
	struct rte_mbuf *m = wire_sample_build(test_pool(), s, false);

	assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[55], 0x09);
	rte_pktmbuf_free(m);
	m = sample("resync_data_abort", true);
	assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[75], 0x02);
	rte_pktmbuf_free(m);
}

UNIT_CASE(build__bytes_of_v6) /* RT-31 */
{
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa, 0x86, 0xdd,
		/* version 6, traffic class 0x6a, flow label = source port */
		0x66, 0xa0, 0xc0, 0xde, 0, 8 + 12 + 28 + 4, 17, 64,
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3,
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 4,
		0xc0, 0xde, 0x12, 0xb7, 0, 8 + 12 + 28 + 4, 0, 0,
		0xcb, 0x00, 0x81, 0x23, 0, 0xab, 0xcd, 0xef, 0x80, 0xdc, 0xba, 0x98,
		0x10, 0x00, 0xfe, 0x5a};
	struct rte_mbuf *m = sample("probe", true);

	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), want, sizeof(want));
	rte_pktmbuf_free(m);
}

/* RT-36: an answer to an unauthenticated packet is no longer than the shortest packet. */
UNIT_CASE(build__reset_is_short)
{
	struct rte_mbuf *probe, *reset;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		probe = sample("probe", v6);
		reset = sample("cm_reset", v6);
		assert_true(reset->pkt_len <= probe->pkt_len);
		rte_pktmbuf_free(probe);
		rte_pktmbuf_free(reset);
	}
}

UNIT_CASE(build__cnp_is_standard)
{
	static const uint8_t want[12 + 16] = {0x81, 0, 0x81, 0x23, 0x40, 0xab, 0xcd, 0xef};
	struct rte_mbuf *m = sample("cnp", false);

	assert_int_equal(rte_pktmbuf_pkt_len(m), 14 + 20 + 8 + sizeof(want) + 4);
	assert_memory_equal(byte_at(m, 42), want, sizeof(want));
	rte_pktmbuf_free(m);
}

/* At most 92 bytes over IPv4, 112 over IPv6, from IP on and with the ICRC. (RT-31) */
UNIT_CASE(hdr_len__size_budget)
{
	uint16_t most_v4 = 0, most_v6 = 0;

	for (int op = 0; op < 256; op++) {
		most_v4 = RTE_MAX(most_v4, san_wire_op_hdr_len((uint8_t)op, false));
		most_v6 = RTE_MAX(most_v6, san_wire_op_hdr_len((uint8_t)op, true));
	}
	assert_int_equal(most_v4 - 14 + 4, 92);
	assert_int_equal(most_v6 - 14 + 4, 112);
	assert_int_equal(SAN_WIRE_OVERHEAD_V4, 92);
	assert_int_equal(SAN_WIRE_OVERHEAD_V6, 112);
	/* the usual headroom of an mbuf is enough for each of them */
	assert_true(most_v6 <= RTE_PKTMBUF_HEADROOM);
	assert_int_equal(san_wire_op_hdr_len(0x04, false), 0);
	assert_int_equal(san_wire_op_hdr_len(0xcd, true), 0);
}

UNIT_CASE(payload_max__fits_mtu) /* RT-31: 1,024 to 9,000 */
{
	uint32_t n;

	for (uint32_t mtu = 1024; mtu <= 9000; mtu++) {
		for (int v6 = 0; v6 < 2; v6++) {
			n = san_wire_payload_max((uint16_t)mtu, v6);
			assert_int_equal(n % 4, 0);
			assert_in_range(mtu - n - (v6 ? 112 : 92), 0, 3);
		}
	}
	assert_int_equal(san_wire_payload_max(92, false), 0);
	assert_int_equal(san_wire_payload_max(96, false), 4);
	assert_int_equal(san_wire_payload_max(20, true), 0);
}

/* Unused fields of a CM message are zero: no bytes of our memory leak. */
UNIT_CASE(build_cm__unused_is_zero)
{
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p = wire_sample_pkt(wire_sample_get("cm_rep"));
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool());
	struct san_wire_cm cm, got_cm;

	memset(&cm, 0xee, sizeof(cm));
	cm.msg = SAN_CM_REP;
	cm.flags = SAN_CM_F_ORDERED;
	cm.reason = RTSAN_R_NONE;
	cm.nb_ports = 3;
	cm.private_len = 5;
	cm.src_cid = cm.dst_cid = 7;
	san_wire_cm_build(m, &path, &p, &cm);
	san_wire_icrc_seal(m);
	assert_int_equal(parse(m), SAN_DROP_NONE);
	assert_int_equal(san_wire_cm_parse(m, &got, &got_cm), SAN_DROP_NONE);
	for (unsigned int i = 0; i < SAN_WIRE_COOKIE; i++)
		assert_int_equal(got_cm.cookie[i], 0);
	for (unsigned int i = 0; i < SAN_WIRE_CM_PORTS; i++)
		assert_int_equal(got_cm.ports[i], i < 3 ? 0xeeee : 0);
	for (unsigned int i = 0; i < SAN_WIRE_CM_PRIVATE; i++)
		assert_int_equal(got_cm.private_data[i], i < 5 ? 0xee : 0);
	rte_pktmbuf_free(m);
}

/* The header checksum is right for any address, length and DSCP. */
UNIT_CASE(build__ipv4_checksum)
{
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p = wire_sample_pkt(wire_sample_get("probe"));
	const struct rte_ipv4_hdr *ip;
	struct san_prng g;
	struct rte_mbuf *m;
	uint32_t word;

	san_prng_seed(&g, 7);
	for (uint32_t i = 0; i < 20000; i++) {
		m = rte_pktmbuf_alloc(test_pool());
		word = i < 16 ? (i & 1) * UINT32_MAX : (uint32_t)san_prng_u64(&g);
		memcpy(path.src.b + 12, &word, sizeof(word));
		word = i < 16 ? (i >> 1 & 1) * UINT32_MAX : (uint32_t)san_prng_u64(&g);
		memcpy(path.dst.b + 12, &word, sizeof(word));
		path.dscp = (uint8_t)san_prng_below(&g, 64);
		rte_pktmbuf_append(m, (uint16_t)san_prng_below(&g, 1500));
		san_wire_build(m, &path, &p);
		ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, 14);
		assert_int_equal(rte_ipv4_cksum(ip), 0);
		rte_pktmbuf_free(m);
	}
}
