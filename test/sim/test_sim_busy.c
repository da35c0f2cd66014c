/* SPDX-License-Identifier: BSD-3-Clause */

/* Hosts whose lcores get a small share of a CPU. (RT-7, RT-24) */

#include "unit.h"

#include "pair.h"

#define LEN     65536
#define RUN_NS  (3 * SAN_NS_PER_MS)
#define AWAY_NS (47 * SAN_NS_PER_MS)
#define SEC     SAN_NS_PER_S
#define ALARM   2 /* host without a core: its events end steps of the world at their time */

static void
open_pair(struct pair *p)
{
	struct san_cm_param param;
	struct world_conf conf;
	struct san_ulp_wc wc;

	world_conf_default(&conf);
	conf.nb_nodes = 3;
	world_param_default(&param);
	pair_open_param(p, &conf, &param, &param, LEN);
	world_node_kill(p->w, ALARM);
	pair_post(p, true, RTSAN_WR_PUSH, 0, 100, 0, 0); /* gives an RTT sample */
	assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
}

static void
run_for(struct pair *p, uint64_t ns)
{
	struct sim_event alarm = {.at_ns = p->w->now_ns + ns, .obj = ALARM};

	san_sim_event_push(&p->w->net.events, &alarm);
	world_run_for(p->w, ns);
}

static void
leave(struct pair *p, uint32_t node, uint64_t ns)
{
	p->w->node[node].paused_until_ns = p->w->now_ns + ns;
	san_core_pdl(p->w->node[node].core)->away_ns += ns;
}

/* Host 0 runs for 3 ms of every 50 ms. */
static void
run_slices(struct pair *p, uint64_t ns)
{
	uint64_t end_ns = p->w->now_ns + ns;

	while (p->w->now_ns < end_ns && !p->w->qp[p->qa].disconnected) {
		leave(p, 0, AWAY_NS);
		run_for(p, AWAY_NS);
		run_for(p, RUN_NS);
	}
}

/*
 * The peer's program does not poll for half a minute, because it gets as little of a CPU. That is
 * some two seconds of work. With and without data in flight.
 */
UNIT_CASE(sim_busy__peer_works)
{
	struct san_ulp_wc wc;
	struct pair p;
	uint32_t has_data;

	for (has_data = 0; has_data < 2; has_data++) {
		open_pair(&p);
		if (has_data)
			pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		leave(&p, 1, 30 * SEC);
		run_slices(&p, 31 * SEC);
		assert_false(p.w->qp[p.qa].disconnected);
		assert_false(p.w->qp[p.qb].disconnected);
		if (!has_data)
			pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
		pair_close(&p);
	}
}

/* Two hosts run by turns, and never at the same time, for a minute. */
UNIT_CASE(sim_busy__by_turns)
{
	struct san_ulp_wc wc;
	struct pair p;
	uint32_t i;

	open_pair(&p);
	for (i = 0; i < 600; i++) {
		pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, i, 0);
		leave(&p, i & 1, AWAY_NS + RUN_NS);
		run_for(&p, RUN_NS);
		leave(&p, !(i & 1), AWAY_NS);
		run_for(&p, AWAY_NS);
		while (world_wait(p.w, p.qa, false, &wc, 0))
			assert_int_equal(wc.status, SAN_ST_OK);
	}
	assert_false(p.w->qp[p.qa].disconnected);
	assert_false(p.w->qp[p.qb].disconnected);
	pair_close(&p);
}

/* A dead peer of a busy host is found in bounded time: 1/16 of its absence counts. */
UNIT_CASE(sim_busy__dead_peer)
{
	struct san_ulp_wc wc;
	uint64_t start_ns;
	struct pair p;
	uint32_t has_data;

	for (has_data = 0; has_data < 2; has_data++) {
		open_pair(&p);
		world_node_kill(p.w, 1);
		if (has_data)
			pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		start_ns = p.w->now_ns;
		run_slices(&p, 200 * SEC);
		assert_true(p.w->qp[p.qa].disconnected);
		assert_int_equal(p.w->qp[p.qa].reason, RTSAN_R_TIMEOUT);
		/* 5 s of silence that count, at 3/50 + 47/50/16 of the time */
		assert_in_range(p.w->now_ns - start_ns, 40 * SEC, 46 * SEC);
		if (has_data)
			assert_int_equal(pair_wait(&p, true, false, &wc), RTSAN_WC_RETRY_EXC);
		pair_close(&p);
	}
}

/* A pause of less than half of the silence excuses nothing. */
UNIT_CASE(sim_busy__one_pause)
{
	uint64_t start_ns;
	struct pair p;

	open_pair(&p);
	world_node_kill(p.w, 1);
	start_ns = p.w->now_ns;
	run_for(&p, 2 * SEC); /* the silence has begun */
	leave(&p, 0, 2 * SEC);
	while (!p.w->qp[p.qa].disconnected)
		run_for(&p, SEC);
	/* an idle second, five PROBEs, and the pause at most */
	assert_in_range(p.w->now_ns - start_ns, 6 * SEC, 9 * SEC);
	pair_close(&p);
}
