/* SPDX-License-Identifier: BSD-3-Clause */

/* Connection management messages that are refused. (RT-24) */

#include "test_wire.h"

UNIT_FIXTURE(.teardown = teardown);

static const struct {
	const char *sample;
	uint8_t off, value;
	enum san_drop want;
} cm_rows[] = {
	{"cm_req", 0, 0, SAN_DROP_CM_MALFORMED}, /* message */
	{"cm_req", 0, 9, SAN_DROP_CM_MALFORMED},
	{"cm_req", 0, 255, SAN_DROP_CM_MALFORMED},
	{"cm_req", 1, 0x10, SAN_DROP_CM_MALFORMED}, /* flags */
	{"cm_req", 1, 0x81, SAN_DROP_CM_MALFORMED},
	{"cm_req", 1, SAN_CM_F_RELAXED, SAN_DROP_CM_MALFORMED},
	{"cm_req", 1, SAN_CM_F_ORDERED | SAN_CM_F_RELAXED, SAN_DROP_NONE},
	{"cm_req", 1, SAN_CM_F_ENDS, SAN_DROP_CM_MALFORMED},
	{"cm_req", 1, SAN_CM_F_ORDERED | SAN_CM_F_ENDS, SAN_DROP_NONE},
	{"cm_req", 1, SAN_CM_F_ORDER, SAN_DROP_CM_MALFORMED},
	{"cm_req", 1, SAN_CM_F_COOKIE, SAN_DROP_NONE},
	{"cm_cookie", 1, 0, SAN_DROP_CM_MALFORMED},
	{"cm_req_cookie", 1, 0, SAN_DROP_CM_MALFORMED},
	{"cm_rej", 2, 11, SAN_DROP_CM_MALFORMED}, /* reason */
	{"cm_rej", 2, 9, SAN_DROP_NONE},
	{"cm_rep", 3, 9, SAN_DROP_CM_MALFORMED}, /* ports */
	{"cm_rep", 3, 2, SAN_DROP_CM_MALFORMED},
	{"cm_rep", 3, 4, SAN_DROP_CM_MALFORMED},
	{"cm_rep", 84, 0x12, SAN_DROP_NONE},
	{"cm_rep", 84 + 6, 0x12, SAN_DROP_CM_MALFORMED},
	{"cm_rep", 8, 0x01, SAN_DROP_CM_MALFORMED}, /* CIDs of more than 24 bits */
	{"cm_rep", 16, 0x80, SAN_DROP_CM_MALFORMED},
	{"cm_req", 54, 1, SAN_DROP_CM_MALFORMED}, /* private data */
	{"cm_req", 55, 65, SAN_DROP_CM_MALFORMED},
	{"cm_req", 55, 64, SAN_DROP_NONE},
	{"cm_req", 55, 7, SAN_DROP_CM_MALFORMED},
	{"cm_req", 100 + 8, 1, SAN_DROP_CM_MALFORMED},
	{"cm_req", 163, 1, SAN_DROP_CM_MALFORMED},
	{"cm_req", 64, 1, SAN_DROP_CM_MALFORMED}, /* cookie */
	{"cm_req", 83, 1, SAN_DROP_CM_MALFORMED},
	{"cm_req", 36, 0xff, SAN_DROP_NONE},                     /* unknown features */
	{"cm_rep", 39, SAN_CM_FEAT_USER, SAN_DROP_CM_MALFORMED}, /* a user of more than 32 bits */
};

UNIT_CASE(parse_cm__refusals)
{
	struct san_wire_cm cm;
	enum san_drop drop;
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < RTE_DIM(cm_rows); i++) {
		for (unsigned int v6 = 0; v6 < 2; v6++) {
			m = sample(cm_rows[i].sample, v6);
			*byte_at(m, (v6 ? 102 : 82) + cm_rows[i].off) =
				cm_rows[i].value;
			san_wire_icrc_seal(m);
			assert_int_equal(parse(m), SAN_DROP_NONE);
			drop = san_wire_cm_parse(m, &got, &cm);
			if (drop != cm_rows[i].want)
				fail_msg("row %u: %s", i, san_drop_name(drop));
			rte_pktmbuf_free(m);
		}
	}
}

/*
 * With the feature, a REQ has the user in place of the receiver's tag, and a REP in place of the
 * service. Other messages have no user.
 */
UNIT_CASE(parse_cm__user)
{
	static const struct {
		const char *sample;
		uint32_t features, uid, dst_tag;
		uint64_t service;
	} rows[] = {
		{"cm_req", SAN_CM_FEAT_USER, 0x41424344, 0, 0x9192939495969798},
		{"cm_rep", SAN_CM_FEAT_USER, 0x95969798, 0x41424344, 0},
		{"cm_rtu", SAN_CM_FEAT_USER, RTSAN_UID_NONE, 0x41424344, 0x9192939495969798},
		{"cm_req", 0, RTSAN_UID_NONE, 0x41424344, 0x9192939495969798},
	};
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_cm cm, again;
	struct rte_mbuf *m;

	UNIT_EACH(r, rows) {
		unit_row(r->sample);
		m = sample(r->sample, 0);
		*byte_at(m, 82 + 39) = (uint8_t)r->features;
		if (r->service == 0) /* a REP has only the lower half of the service */
			memset(byte_at(m, 82 + 56), 0, 4);
		for (unsigned int turn = 0; turn < 2; turn++) { /* as it came, and built again */
			san_wire_icrc_seal(m);
			assert_int_equal(parse(m), SAN_DROP_NONE);
			assert_int_equal(san_wire_cm_parse(m, &got, &cm), SAN_DROP_NONE);
			assert_int_equal(cm.uid, r->uid);
			assert_int_equal(cm.dst_tag, r->dst_tag);
			assert_true(cm.service == r->service);
			assert_true(turn == 0 || memcmp(&cm, &again, sizeof(cm)) == 0);
			again = cm;
			rte_pktmbuf_free(m);
			m = rte_pktmbuf_alloc(test_pool());
			san_wire_cm_build(m, &path, &got, &cm);
		}
		rte_pktmbuf_free(m);
	}
}

UNIT_CASE(parse_cm__length)
{
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p = wire_sample_pkt(wire_sample_get("cm_rtu"));
	struct san_wire_cm cm;
	struct rte_mbuf *m;

	for (uint16_t len = 0; len < 200; len++) {
		if (len == 164)
			continue;
		m = rte_pktmbuf_alloc(test_pool());
		memset(rte_pktmbuf_append(m, len), 1, len);
		san_wire_build(m, &path, &p);
		san_wire_icrc_seal(m);
		assert_int_equal(parse(m), SAN_DROP_NONE);
		assert_int_equal(san_wire_cm_parse(m, &got, &cm), SAN_DROP_CM_MALFORMED);
		rte_pktmbuf_free(m);
	}
}
