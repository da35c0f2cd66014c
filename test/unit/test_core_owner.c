/* SPDX-License-Identifier: BSD-3-Clause */

/* Several lcores on one port: each packet has one owner, or is for all. (SYS-1, ARCH-4) */

#include "unit.h"
#include "core.h"
#include "test_eal.h"
#include "wire_sample.h"

#define CID(lcore) ((uint32_t)(lcore) << SAN_CID_LCORE_SHIFT | 0x1234)

static void
teardown(void)
{
	assert_int_equal(rte_mempool_in_use_count(test_pool()), 0);
}

UNIT_FIXTURE(.teardown = teardown);

static uint32_t
owner_of(struct rte_mbuf *m, uint32_t nb_lcores)
{
	uint32_t owner = san_core_owner(m, SAN_WIRE_PORT, nb_lcores);

	rte_pktmbuf_free(m);
	return owner;
}

static struct rte_mbuf *
probe_to(uint32_t cid, bool v6)
{
	struct san_wire_pkt p = wire_sample_pkt(wire_sample_get("probe"));
	struct san_wire_path path = wire_sample_path(v6);
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool());

	p.dcid = cid;
	san_wire_build(m, &path, &p);
	san_wire_icrc_seal(m);
	return m;
}

static struct rte_mbuf *
message(const struct san_wire_cm *cm)
{
	struct san_wire_pkt p = wire_sample_pkt(wire_sample_get("cm_req"));
	struct san_wire_path path = wire_sample_path(false);
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool());

	san_wire_cm_build(m, &path, &p, cm);
	san_wire_icrc_seal(m);
	return m;
}

UNIT_CASE(owner__by_cid)
{
	for (uint32_t lcore = 0; lcore < 16; lcore++) {
		assert_int_equal(owner_of(probe_to(CID(lcore), false), 16), lcore);
		assert_int_equal(owner_of(probe_to(CID(lcore), true), 16), lcore);
		/* without an owner it is for the first lcore */
		assert_int_equal(owner_of(probe_to(CID(lcore), false), 5), lcore < 5 ? lcore : 0);
	}
}

/* A priority tag (VLAN 0) is ignored, another tag is not. (RT-38) */
UNIT_CASE(owner__behind_a_tag)
{
	struct rte_mbuf *m = probe_to(CID(3), false);
	uint32_t len = rte_pktmbuf_pkt_len(m);

	m->vlan_tci = 5 << 13 | 1 << 12;
	assert_int_equal(rte_vlan_insert(&m), 0);
	assert_int_equal(san_core_owner(m, SAN_WIRE_PORT, 16), 3);
	assert_int_equal(rte_pktmbuf_pkt_len(m), len);
	assert_int_equal(owner_of(m, 16), 3);
	m = probe_to(CID(3), false);
	m->vlan_tci = 5 << 13 | 7;
	assert_int_equal(rte_vlan_insert(&m), 0);
	assert_int_equal(san_core_owner(m, SAN_WIRE_PORT, 16), 0);
	assert_int_equal(rte_pktmbuf_pkt_len(m), len + RTE_VLAN_HLEN);
	rte_pktmbuf_free(m);
}

/* All messages except REQs contain a CID of the receiver. */
UNIT_CASE(owner__by_the_cid_in_a_message)
{
	static const uint8_t msgs[] = {SAN_CM_COOKIE, SAN_CM_REP, SAN_CM_RTU,
				       SAN_CM_REJ, SAN_CM_DREQ, SAN_CM_DREP};
	struct san_wire_cm cm = wire_sample_cm(wire_sample_get("cm_rep"));

	for (unsigned int i = 0; i < RTE_DIM(msgs); i++) {
		cm.msg = msgs[i];
		cm.dst_cid = CID(i);
		assert_int_equal(owner_of(message(&cm), 6), i);
		cm.dst_cid = CID(6);
		assert_int_equal(owner_of(message(&cm), 6), 0);
	}
	cm.msg = SAN_CM_RESET;
	assert_int_equal(owner_of(message(&cm), 6), SAN_OWNER_ALL);
}

/* Every copy of a REQ is for the same lcore, and REQs spread over all of them. */
UNIT_CASE(owner__of_requests)
{
	struct san_wire_cm cm = wire_sample_cm(wire_sample_get("cm_req"));
	uint32_t nb[4] = {0}, owner, i;

	for (i = 0; i < 4000; i++) {
		cm.xid = i * 77;
		cm.flags &= (uint8_t)~SAN_CM_F_COOKIE;
		owner = owner_of(message(&cm), 4);
		assert_true(owner < 4);
		nb[owner]++;
		cm.flags |= SAN_CM_F_COOKIE;
		assert_int_equal(owner_of(message(&cm), 4), owner);
	}
	for (i = 0; i < 4; i++)
		assert_in_range(nb[i], 850, 1150);
}

UNIT_CASE(owner__of_what_is_not_ours)
{
	uint8_t frame[60] = {[12] = 0x08, [13] = 0x06};

	assert_int_equal(owner_of(test_eal_exact(test_pool(), frame, 42), 3), SAN_OWNER_ALL);
	frame[13] = 0;
	assert_int_equal(owner_of(test_eal_exact(test_pool(), frame, 60), 3), 0);
	assert_int_equal(owner_of(test_eal_exact(test_pool(), frame, 0), 3), 0);
}
