/* SPDX-License-Identifier: BSD-3-Clause */

/* The fields that identify a packet's owner, read before any check. (SYS-1) */

#include "test_wire.h"

UNIT_FIXTURE(.teardown = teardown);

/* A packet of *s* with another destination CID; the ICRC does not matter here. */
static struct rte_mbuf *
build(const struct wire_sample *s, bool v6)
{
	struct rte_mbuf *m = wire_sample_build(test_pool(), s, v6);

	assert_non_null(m);
	return m;
}

UNIT_CASE(peek__cid_of_every_type)
{
	struct san_wire_peek peek;
	struct rte_mbuf *m;

	UNIT_EACH(s, wire_samples) {
		for (unsigned int v6 = 0; v6 < 2; v6++) {
			m = build(s, v6);
			assert_true(san_wire_peek(m, SAN_WIRE_PORT, &peek));
			assert_int_equal(peek.cid, s->op == SAN_OP_CM ? SAN_WIRE_CID_CM : 0xabcdef);
			assert_int_equal(peek.cm_msg, s->cm_msg);
			if (s->op == SAN_OP_CM)
				assert_int_equal(peek.cm_cid, 0x313233);
			assert_false(san_wire_peek(m, SAN_WIRE_PORT + 1, &peek));
			assert_false(san_wire_peek_is_neigh(m));
			rte_pktmbuf_free(m);
		}
	}
}

/* REQ without and with cookie are one attempt; another xid, CID or peer is another one. */
UNIT_CASE(peek__attempt)
{
	struct rte_mbuf *m = build(wire_sample_get("cm_req"), false);
	struct rte_mbuf *again = build(wire_sample_get("cm_req_cookie"), false);
	const uint16_t cm = rte_pktmbuf_data_len(m) - 164 - 4;
	const uint16_t other[] = {26 + 3, cm + 4 + 3, cm + 8 + 3}; /* address, xid, CID */
	struct san_wire_peek a, b;

	assert_true(san_wire_peek(m, SAN_WIRE_PORT, &a));
	assert_true(san_wire_peek(again, SAN_WIRE_PORT, &b));
	assert_int_equal(a.cm_attempt, b.cm_attempt);
	UNIT_EACH(r, other) {
		uint8_t *at = byte_at(again, *r);

		*at ^= 1;
		assert_true(san_wire_peek(again, SAN_WIRE_PORT, &b));
		assert_int_not_equal(a.cm_attempt, b.cm_attempt);
		*at ^= 1;
	}
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(again);
}

/* Nothing beyond the packet is read; a truncated message has no CID. */
UNIT_CASE(peek__any_length)
{
	struct rte_mbuf *m, *cut;
	struct san_wire_peek peek;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		m = build(wire_sample_get("cm_rep"), v6);
		for (uint16_t len = 0; len < rte_pktmbuf_data_len(m); len++) {
			cut = test_eal_exact(test_pool(), rte_pktmbuf_mtod(m, void *), len);
			assert_int_equal(san_wire_peek(cut, SAN_WIRE_PORT, &peek),
					 len >= (v6 ? 74 : 54));
			if (len >= (v6 ? 74 : 54))
				assert_int_equal(peek.cm_msg,
						 len >= rte_pktmbuf_data_len(m) - 4 ? SAN_CM_REP :
							 len == (v6 ? 106 : 86)     ? SAN_CM_RESET :
										      0);
			assert_false(san_wire_peek_is_neigh(cut));
			rte_pktmbuf_free(cut);
		}
		rte_pktmbuf_free(m);
	}
}

UNIT_CASE(is_neigh__arp_and_nd)
{
	uint8_t frame[64] = {[12] = 0x08, [13] = 0x06};
	struct rte_mbuf *m = test_eal_exact(test_pool(), frame, 14);

	assert_true(san_wire_peek_is_neigh(m));
	rte_pktmbuf_free(m);
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[20] = 58;
	for (unsigned int type = 128; type < 138; type++) {
		frame[54] = (uint8_t)type;
		m = test_eal_exact(test_pool(), frame, 55);
		assert_int_equal(san_wire_peek_is_neigh(m), type == 135 || type == 136);
		rte_pktmbuf_free(m);
		m = test_eal_exact(test_pool(), frame, 54);
		assert_false(san_wire_peek_is_neigh(m));
		rte_pktmbuf_free(m);
	}
}
