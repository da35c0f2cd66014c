/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kind of transaction between two cores, on a clean link and on a bad one. */

#include <errno.h>

#include "pair.h"
#include "unit.h"

#define LEN (300 * 1000) /* bytes: several windows, no multiple of the MTU */

static void
run_wr(struct pair *p, enum rtsan_wr_opcode op, uint32_t len, uint8_t flags)
{
	struct san_ulp_wr wr;
	struct san_ulp_wc wc;

	world_wr(&wr, op, p->a, len, (uint64_t)(uintptr_t)p->b, p->kb, 42, flags);
	wr.imm = 0xfeedbeef;
	world_post(p->w, p->qa, &wr);
	assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
	assert_int_equal(wc.wr_id, 42);
}

static void
push(struct pair *p, uint32_t len, uint8_t way)
{
	/* RT-10, RT-11 */
	world_pattern(p->a, len, way);
	memset(p->b, 0xff, LEN);
	run_wr(p, RTSAN_WR_PUSH, len, way);
	assert_true(world_pattern_ok(p->b, len, way));
	if (len < LEN)
		assert_int_equal(p->b[len], 0xff);
}

static void
send_recv(struct pair *p, uint32_t len, uint8_t way)
{
	struct san_ulp_wc wc;

	world_pattern(p->a, len, way);
	memset(p->b, 0xff, LEN);
	world_post_recv(p->w, p->qb, p->b, LEN, 77);
	run_wr(p, RTSAN_WR_SEND, len, way);
	assert_int_equal(pair_wait(p, false, true, &wc), SAN_ST_OK);
	assert_int_equal(wc.op, RTSAN_WC_RECV);
	assert_int_equal(wc.byte_len, len);
	assert_int_equal(wc.wr_id, 77);
	assert_true(world_pattern_ok(p->b, len, way));
}

static void
push_imm(struct pair *p, uint32_t len, uint8_t way)
{
	struct san_ulp_wc wc;

	memset(p->b, 0xff, LEN);
	world_post_recv(p->w, p->qb, NULL, 0, 78);
	run_wr(p, RTSAN_WR_PUSH_IMM, len, way);
	assert_int_equal(pair_wait(p, false, true, &wc), SAN_ST_OK);
	assert_int_equal(wc.op, RTSAN_WC_RECV_PUSH_IMM);
	assert_true(wc.has_imm);
	assert_int_equal(wc.imm, 0xfeedbeef);
	assert_int_equal(wc.byte_len, len);
	assert_true(world_pattern_ok(p->b, len, way));
}

static void
each_kind(struct pair *p, uint32_t len)
{
	static const uint8_t ways[] = {0, RTSAN_WR_SOLICITED, RTSAN_WR_UNSOLICITED};
	unsigned int i;

	for (i = 0; i < RTE_DIM(ways); i++) {
		push(p, len, ways[i]);
		send_recv(p, len, ways[i]);
		push_imm(p, len, ways[i]);
	}
	/* RT-11: pull */
	world_pattern(p->b, len, 9);
	memset(p->a, 0xff, LEN);
	run_wr(p, RTSAN_WR_PULL, len, 0);
	assert_true(world_pattern_ok(p->a, len, 9));
}

static void
atomics(struct pair *p)
{
	struct san_ulp_wr wr;
	struct san_ulp_wc wc;
	uint64_t *word = (uint64_t *)p->b, old = 0;

	/* RT-30 */
	*word = 1000;
	world_wr(&wr, RTSAN_WR_FETCH_ADD, &old, 8, (uint64_t)(uintptr_t)word, p->kb, 1, 0);
	wr.operand = 5;
	world_post(p->w, p->qa, &wr);
	assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
	assert_int_equal(old, 1000);
	assert_int_equal(*word, 1005);
	world_wr(&wr, RTSAN_WR_CMP_SWAP, &old, 8, (uint64_t)(uintptr_t)word, p->kb, 2, 0);
	wr.operand = 1005;
	wr.swap = 7;
	world_post(p->w, p->qa, &wr);
	assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
	assert_int_equal(old, 1005);
	assert_int_equal(*word, 7);
}

static void
all_kinds(const struct world_conf *conf, bool ordered)
{
	static const uint32_t sizes[] = {0, 1, 4, 8, 63, 1000,
					 1372, 1376, 1400, 8191, 8192, 100001};
	struct pair p;
	unsigned int i;

	pair_open(&p, conf, ordered, LEN);
	for (i = 0; i < RTE_DIM(sizes); i++)
		each_kind(&p, sizes[i]);
	each_kind(&p, LEN);
	atomics(&p);
	pair_close(&p);
}

UNIT_CASE(sim_basic__clean_ordered)
{
	struct world_conf conf;

	world_conf_default(&conf);
	all_kinds(&conf, true);
}

UNIT_CASE(sim_basic__clean_unordered_v6)
{
	struct world_conf conf;

	world_conf_default(&conf);
	conf.ipv6 = true; /* RT-31 */
	all_kinds(&conf, false);
}

UNIT_CASE(sim_basic__bad_ordered)
{
	struct world_conf conf;

	world_conf_bad_link(&conf, 3);
	all_kinds(&conf, true);
}

UNIT_CASE(sim_basic__bad_unordered)
{
	struct world_conf conf;

	world_conf_bad_link(&conf, 4);
	all_kinds(&conf, false);
}

UNIT_CASE(sim_basic__mtu_1024_to_9000)
{
	static const uint16_t mtus[] = {1024, 1280, 1499, 4096, 9000};
	struct world_conf conf;
	struct pair p;
	unsigned int i;

	for (i = 0; i < RTE_DIM(mtus); i++) { /* RT-31 */
		world_conf_bad_link(&conf, 10 + i);
		conf.mtu = mtus[i];
		pair_open(&p, &conf, true, LEN);
		assert_true(pair_conn(&p, true)->mtu + SAN_WIRE_OVERHEAD_V4 <= mtus[i]);
		each_kind(&p, LEN);
		pair_close(&p);
	}
}

UNIT_CASE(sim_basic__same_seed_same_run)
{
	struct world_conf conf;
	uint64_t hash[2];
	struct pair p;
	int i;

	for (i = 0; i < 2; i++) { /* RULE-18 */
		world_conf_bad_link(&conf, 99);
		pair_open(&p, &conf, true, LEN);
		/* addresses differ between runs: only kinds that carry none */
		send_recv(&p, 50000, 0);
		hash[i] = p.w->hash;
		pair_close(&p);
	}
	assert_int_equal(hash[0], hash[1]);
}

/* A request is accepted once, however long the connection has been open since. */
UNIT_CASE(sim_basic__accepted_once)
{
	struct san_cm_param param;
	struct world_conf conf;
	struct pair p;
	uint32_t i;

	world_conf_default(&conf);
	world_param_default(&param);
	pair_open(&p, &conf, true, LEN);
	push(&p, LEN, 0);
	i = world_qp_create(p.w, 1);
	assert_int_equal(san_core_conn_accept(p.w->node[1].core, p.w->node[1].request.request,
					      p.w->qp[i].qp, &param, p.w->now_ns),
			 -ENOENT);
	push(&p, LEN, 0);
	pair_close(&p);
}

static int
add_priority_tag(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	uint32_t *nb_tagged = arg;

	(void)w;
	(void)from;
	(void)to;
	m->vlan_tci = 5 << 13; /* priority 5, VLAN 0 */
	*nb_tagged += rte_vlan_insert(&m) == 0;
	return 1;
}

/* What comes with a priority tag, ARP and requests to connect included, is as without. (RT-38) */
UNIT_CASE(sim_basic__priority_tagged)
{
	struct san_cm_param param;
	uint32_t nb_tagged = 0;
	struct world_conf conf;
	struct world *w;
	uint32_t qa, qb;

	world_conf_default(&conf);
	world_param_default(&param);
	w = world_create(&conf);
	w->filter = add_priority_tag;
	w->filter_arg = &nb_tagged;
	world_connect(w, 0, 1, &param, &param, &qa, &qb);
	world_disconnect(w, qa, qb);
	assert_in_range(nb_tagged, 6, 1000);
	world_destroy(w);
}
