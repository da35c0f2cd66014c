/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kind of transaction between two cores, on a clean link and on a bad one. */

#include <errno.h>

#include "pair.h"

#define LEN (300 * 1000) /* bytes: several windows, no multiple of the MTU */

static void
run_wr(enum rtsan_wr_opcode op, uint32_t len, uint8_t flags)
{
	struct san_ulp_wr wr;

	world_wr(&wr, op, pair.a, len, (uint64_t)(uintptr_t)pair.b, pair.kb, 42, flags);
	wr.imm = 0xfeedbeef;
	world_post(pair.w, pair.qa, &wr);
	pair_wait_for(true, false, SAN_ST_OK, 42);
}

static void
push(uint32_t len, uint8_t way)
{
	/* RT-10, RT-11 */
	world_pattern(pair.a, len, way);
	memset(pair.b, 0xff, LEN);
	run_wr(RTSAN_WR_PUSH, len, way);
	assert_true(world_pattern_ok(pair.b, len, way));
	if (len < LEN)
		assert_int_equal(pair.b[len], 0xff);
}

static void
send_recv(uint32_t len, uint8_t way)
{
	world_pattern(pair.a, len, way);
	memset(pair.b, 0xff, LEN);
	world_post_recv(pair.w, pair.qb, pair.b, LEN, 77);
	run_wr(RTSAN_WR_SEND, len, way);
	assert_int_equal(pair_wait(false, true), SAN_ST_OK);
	assert_int_equal(pair.wc.op, RTSAN_WC_RECV);
	assert_int_equal(pair.wc.byte_len, len);
	assert_int_equal(pair.wc.wr_id, 77);
	assert_true(world_pattern_ok(pair.b, len, way));
}

static void
push_imm(uint32_t len, uint8_t way)
{
	memset(pair.b, 0xff, LEN);
	world_post_recv(pair.w, pair.qb, NULL, 0, 78);
	run_wr(RTSAN_WR_PUSH_IMM, len, way);
	assert_int_equal(pair_wait(false, true), SAN_ST_OK);
	assert_int_equal(pair.wc.op, RTSAN_WC_RECV_PUSH_IMM);
	assert_true(pair.wc.has_imm);
	assert_int_equal(pair.wc.imm, 0xfeedbeef);
	assert_int_equal(pair.wc.byte_len, len);
	assert_true(world_pattern_ok(pair.b, len, way));
}

static void
each_kind(uint32_t len)
{
	static const uint8_t ways[] = {0, RTSAN_WR_SOLICITED, RTSAN_WR_UNSOLICITED};

	UNIT_EACH(way, ways) {
		push(len, *way);
		send_recv(len, *way);
		push_imm(len, *way);
	}
	/* RT-11: pull */
	world_pattern(pair.b, len, 9);
	memset(pair.a, 0xff, LEN);
	run_wr(RTSAN_WR_PULL, len, 0);
	assert_true(world_pattern_ok(pair.a, len, 9));
}

static void
atomics(void)
{
	struct san_ulp_wr wr;
	uint64_t *word = (uint64_t *)pair.b, old = 0;

	/* RT-30 */
	*word = 1000;
	world_wr(&wr, RTSAN_WR_FETCH_ADD, &old, 8, (uint64_t)(uintptr_t)word, pair.kb, 1, 0);
	wr.operand = 5;
	world_post(pair.w, pair.qa, &wr);
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	assert_int_equal(old, 1000);
	assert_int_equal(*word, 1005);
	world_wr(&wr, RTSAN_WR_CMP_SWAP, &old, 8, (uint64_t)(uintptr_t)word, pair.kb, 2, 0);
	wr.operand = 1005;
	wr.swap = 7;
	world_post(pair.w, pair.qa, &wr);
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	assert_int_equal(old, 1005);
	assert_int_equal(*word, 7);
}

static void
all_kinds(bool ordered)
{
	static const uint32_t sizes[] = {0, 1, 4, 8, 63, 1000,
					 1372, 1376, 1400, 8191, 8192, 100001};

	pair.param.ordered = ordered;
	pair_open(LEN);
	UNIT_EACH(size, sizes)
		each_kind(*size);
	each_kind(LEN);
	atomics();
	pair_close();
}

PAIR_CASE(sim_basic__clean_ordered)
{
	all_kinds(true);
}

PAIR_CASE(sim_basic__clean_unordered_v6)
{
	pair.conf.ipv6 = true; /* RT-31 */
	all_kinds(false);
}

PAIR_CASE(sim_basic__bad_ordered)
{
	world_conf_bad_link(&pair.conf, 3);
	all_kinds(true);
}

PAIR_CASE(sim_basic__bad_unordered)
{
	world_conf_bad_link(&pair.conf, 4);
	all_kinds(false);
}

PAIR_CASE(sim_basic__mtu_1024_to_9000)
{
	static const uint16_t mtus[] = {1024, 1280, 1499, 4096, 9000};

	for (unsigned int i = 0; i < RTE_DIM(mtus); i++) { /* RT-31 */
		world_conf_bad_link(&pair.conf, 10 + i);
		pair.conf.mtu = mtus[i];
		pair_open(LEN);
		assert_true(pair_conn(true)->mtu + SAN_WIRE_OVERHEAD_V4 <= mtus[i]);
		each_kind(LEN);
		pair_close();
	}
}

PAIR_CASE(sim_basic__same_seed_same_run)
{
	uint64_t hash[2];

	for (int i = 0; i < 2; i++) { /* RULE-18 */
		world_conf_bad_link(&pair.conf, 99);
		pair_open(LEN);
		/* addresses differ between runs: only kinds that carry none */
		send_recv(50000, 0);
		hash[i] = pair.w->hash;
		pair_close();
	}
	assert_int_equal(hash[0], hash[1]);
}

/* A request is accepted once, however long the connection has been open since. */
PAIR_CASE(sim_basic__accepted_once)
{
	uint32_t i;

	pair_open(LEN);
	push(LEN, 0);
	i = world_qp_create(pair.w, 1);
	assert_int_equal(san_core_conn_accept(pair.w->node[1].core, pair.w->node[1].request.request,
					      pair.w->qp[i].qp, &pair.param, pair.w->now_ns),
			 -ENOENT);
	push(LEN, 0);
}

static int
add_priority_tag(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	uint32_t *nb_tagged = arg;

	m->vlan_tci = 5 << 13; /* priority 5, VLAN 0 */
	*nb_tagged += rte_vlan_insert(&m) == 0;
	return 1;
}

/* What comes with a priority tag, ARP and requests to connect included, is as without. (RT-38) */
PAIR_CASE(sim_basic__priority_tagged)
{
	uint32_t nb_tagged = 0;
	uint32_t qa, qb;
	struct world *w = world_create(&pair.conf);

	w->filter = add_priority_tag;
	w->filter_arg = &nb_tagged;
	world_connect(w, 0, 1, &pair.param, &pair.param, &qa, &qb);
	world_disconnect(w, qa, qb);
	assert_in_range(nb_tagged, 6, 1000);
	world_destroy(w);
}
