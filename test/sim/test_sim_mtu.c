/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Paths that take less than both ends (RT-31): nothing waits for the search, what
 * gets through is used, and a path that becomes narrower ends the connection with
 * the reason.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "unit.h"

#define LEN     (1000 * 1000)
#define BOTH    (9000 - SAN_WIRE_OVERHEAD_V4)
#define BEGIN   (1500 - SAN_WIRE_OVERHEAD_V4)
#define BOTH_V6 (9000 - SAN_WIRE_OVERHEAD_V6)
#define MTU_MID 4200

/* Hosts of *mtu*, a path of *path_mtu* between them, 100 Gb/s. */
static void
open_path(struct pair *p, uint16_t mtu, uint16_t path_mtu, bool ipv6)
{
	struct world_conf conf;

	world_conf_default(&conf);
	conf.mtu = mtu;
	conf.ipv6 = ipv6;
	conf.link.mtu = path_mtu;
	conf.link.mbps = 100000;
	pair_open(p, &conf, true, LEN);
	world_pattern(p->a, LEN, 1);
}

static struct san_pdl *
pdl_of(const struct pair *p, uint32_t node)
{
	return san_core_pdl(p->w->node[node].core);
}

/* How long a push or pull takes until its bytes are there. */
static uint64_t
move(struct pair *p, enum san_ulp_op op, uint32_t len)
{
	uint64_t start = p->w->now_ns;
	struct san_ulp_wc wc;

	memset(op == SAN_WR_PULL ? p->a : p->b, 0, len);
	if (op == SAN_WR_PULL)
		world_pattern(p->b, len, 1);
	pair_post(p, true, op, 0, len, 1, SAN_WR_SIGNALED);
	assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
	assert_true(world_pattern_ok(op == SAN_WR_PULL ? p->a : p->b, len, 1));
	return p->w->now_ns - start;
}

/* Bytes move at once and as fast as between hosts that know: the search costs them nothing. */
static void
sim_mtu__narrow_path(void **state)
{
	static const struct {
		enum san_ulp_op op;
		bool ipv6;
	} runs[] = {{SAN_WR_PUSH, false}, {SAN_WR_PULL, false}, {SAN_WR_PUSH, true}};
	uint64_t narrow_ns, known_ns;
	struct pair p;
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(runs); i++) {
		open_path(&p, 1500, 1500, runs[i].ipv6);
		known_ns = move(&p, runs[i].op, LEN);
		pair_close(&p);
		open_path(&p, 9000, 1500, runs[i].ipv6);
		narrow_ns = move(&p, runs[i].op, LEN);
		assert_true(narrow_ns <= known_ns + known_ns / 20);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
		assert_true(p.w->node[0].nb_lost + p.w->node[1].nb_lost > 0);
		assert_true(move(&p, runs[i].op, LEN) <= known_ns + known_ns / 20);
		assert_true(pair_conn(&p, true)->mtu <= BEGIN);
		assert_true(pair_conn(&p, false)->mtu <= BEGIN);
		assert_int_equal(pdl_of(&p, 0)->stats.nb_rto + pdl_of(&p, 1)->stats.nb_rto, 0);
		pair_close(&p);
	}
}

/* A clean path: long packets within a few round trips of the full ones that start the search. */
static void
sim_mtu__wide_path(void **state)
{
	struct pair p;
	uint64_t rtt_ns, nb_pkts;
	struct san_ulp_wc wc;
	int v6;

	(void)state;
	for (v6 = 0; v6 < 2; v6++) {
		uint16_t both = v6 ? BOTH_V6 : BOTH;

		open_path(&p, 9000, 9000, v6);
		rtt_ns = move(&p, SAN_WR_PUSH, 64);
		assert_true(pair_conn(&p, true)->mtu < both); /* nobody asked yet */
		pair_post(&p, true, SAN_WR_PUSH, 0, LEN, 2, 0);
		world_run_for(p.w, 20 * rtt_ns);
		assert_int_equal(pair_conn(&p, true)->mtu, both);
		assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
		nb_pkts = pair_conn(&p, true)->nb_tx_pkts;
		move(&p, SAN_WR_PUSH, LEN);
		assert_in_range(pair_conn(&p, true)->nb_tx_pkts - nb_pkts, LEN / both,
				LEN / both + 40);
		/* the other direction asks for itself */
		assert_true(pair_conn(&p, false)->mtu < both);
		move(&p, SAN_WR_PULL, LEN);
		assert_int_equal(pair_conn(&p, false)->mtu, both);
		pair_close(&p);
	}
}

static void
sim_mtu__between(void **state)
{
	struct pair p;

	(void)state;
	open_path(&p, 9000, MTU_MID, false);
	move(&p, SAN_WR_PUSH, LEN);
	world_run_for(p.w, 100 * SAN_NS_PER_MS);
	assert_int_equal(pair_conn(&p, true)->mtu, 4096 - SAN_WIRE_OVERHEAD_V4);
	move(&p, SAN_WR_PUSH, LEN);
	assert_int_equal(pdl_of(&p, 0)->stats.nb_rto, 0);
	pair_close(&p);
}

/* A tunnel's few bytes less than the ends have: the longest packets of all must fit, too. */
static void
sim_mtu__a_little_narrow(void **state)
{
	static const uint16_t paths[] = {8999, 8985, 8981, 8980, 4095, 4077};
	struct pair p;
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(paths); i++) {
		open_path(&p, 9000, paths[i], (i & 1) != 0);
		move(&p, SAN_WR_PUSH, LEN);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
		pdl_of(&p, 0)->stats.nb_rto = 0;
		move(&p, SAN_WR_PUSH, LEN);
		assert_int_equal(pdl_of(&p, 0)->stats.nb_rto, 0);
		pair_close(&p);
	}
}

/* PROBEs get lost like anything else: that is no verdict on their length. */
static void
sim_mtu__wide_and_bad(void **state)
{
	struct world_conf conf;
	struct pair p;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 20; seed++) {
		world_conf_bad_link(&conf, seed);
		conf.mtu = 9000;
		pair_open(&p, &conf, seed & 1, LEN);
		world_pattern(p.a, LEN, 1);
		move(&p, SAN_WR_PUSH, LEN);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
		assert_int_equal(pair_conn(&p, true)->mtu, BOTH);
		pair_close(&p);
	}
}

/* A peer that stops for a while must not cost the connection its long packets. */
static void
sim_mtu__peer_stalls(void **state)
{
	struct san_ulp_wc wc;
	struct pair p;

	(void)state;
	open_path(&p, 9000, 0, false);
	pdl_of(&p, 0)->conf.pmtu_after = 1;
	move(&p, SAN_WR_PUSH, 64);
	p.w->node[1].link.down = true;
	pair_post(&p, true, SAN_WR_PUSH, 0, 4 * BEGIN, 2, 0);
	world_run_for(p.w, 50 * SAN_NS_PER_MS);
	assert_true(pair_conn(&p, true)->mtu <= BEGIN);
	p.w->node[1].link.down = false;
	assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
	world_run_for(p.w, 300 * SAN_NS_PER_MS);
	assert_int_equal(pair_conn(&p, true)->mtu, BOTH);
	pair_close(&p);
}

/*
 * The path becomes narrow under an open connection. All of its work completes, in a
 * bounded time and both sides know why; a new connection gets through.
 */
static void
sim_mtu__path_becomes_narrow(void **state)
{
	static const enum san_ulp_op ops[] = {SAN_WR_PUSH, SAN_WR_PULL};
	const struct san_pdl *pdl;
	struct san_ulp_wc wc;
	struct pair p;
	uint64_t start;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < RTE_DIM(ops); i++) {
		open_path(&p, 9000, 9000, false);
		move(&p, ops[i], LEN);
		assert_int_equal(pair_conn(&p, ops[i] == SAN_WR_PUSH)->mtu, BOTH);
		p.w->node[0].link.mtu = 1500;
		p.w->node[1].link.mtu = 1500;
		start = p.w->now_ns;
		for (k = 0; k < 10; k++)
			pair_post(&p, true, ops[i], 0, LEN, k, 0);
		for (k = 0; k < 10; k++)
			assert_int_not_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
		pdl = pdl_of(&p, 0);
		/* RT-7: every timeout at its longest */
		assert_true(p.w->now_ns - start <
			    (pdl->conf.max_retries + 1) * (pdl->conf.rto_max_ns * 11 / 10));
		world_run_for(p.w, SAN_NS_PER_S);
		assert_true(p.w->qp[p.qa].disconnected && p.w->qp[p.qb].disconnected);
		assert_int_equal(p.w->qp[p.qa].reason, SAN_CM_R_PATH_MTU);
		assert_int_equal(p.w->qp[p.qb].reason, SAN_CM_R_PATH_MTU);
		world_connect(p.w, 0, 1, &p.w->node[0].param, &p.w->node[1].param, &p.qa, &p.qb);
		move(&p, ops[i], LEN);
		pair_close(&p);
	}
}

/* Short messages never notice. */
static void
sim_mtu__narrow_and_short(void **state)
{
	struct pair p;
	int i;

	(void)state;
	open_path(&p, 9000, 9000, false);
	move(&p, SAN_WR_PUSH, LEN);
	p.w->node[1].link.mtu = 1500;
	for (i = 0; i < 100; i++) {
		move(&p, SAN_WR_PUSH, BEGIN - 100);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
	}
	pair_close(&p);
}

UNIT_TEST(test_sim_mtu)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_mtu__narrow_path),
		cmocka_unit_test(sim_mtu__wide_path),
		cmocka_unit_test(sim_mtu__between),
		cmocka_unit_test(sim_mtu__a_little_narrow),
		cmocka_unit_test(sim_mtu__wide_and_bad),
		cmocka_unit_test(sim_mtu__peer_stalls),
		cmocka_unit_test(sim_mtu__path_becomes_narrow),
		cmocka_unit_test(sim_mtu__narrow_and_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
