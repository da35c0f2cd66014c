/* SPDX-License-Identifier: BSD-3-Clause */

/* Hosts whose lcores get a small share of a CPU. (RT-7, RT-24) */

#include "pair.h"

#define LEN     65536
#define RUN_NS  (3 * SAN_NS_PER_MS)
#define AWAY_NS (47 * SAN_NS_PER_MS)
#define SEC     SAN_NS_PER_S
#define ALARM   2 /* host without a core: its events end steps of the world at their time */

static void
open_pair(void)
{
	pair.conf.nb_nodes = 3;
	pair_open(LEN);
	world_node_kill(pair.w, ALARM);
	pair_post(true, RTSAN_WR_PUSH, 0, 100, 0, 0); /* gives an RTT sample */
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
}

static void
run_for(uint64_t ns)
{
	struct sim_event alarm = {.at_ns = pair.w->now_ns + ns, .obj = ALARM};

	san_sim_event_push(&pair.w->net.events, &alarm);
	world_run_for(pair.w, ns);
}

static void
leave(uint32_t node, uint64_t ns)
{
	pair.w->node[node].paused_until_ns = pair.w->now_ns + ns;
	san_core_pdl(pair.w->node[node].core)->away_ns += ns;
}

/* Host 0 runs for 3 ms of every 50 ms. */
static void
run_slices(uint64_t ns)
{
	uint64_t end_ns = pair.w->now_ns + ns;

	while (pair.w->now_ns < end_ns && !pair.w->qp[pair.qa].disconnected) {
		leave(0, AWAY_NS);
		run_for(AWAY_NS);
		run_for(RUN_NS);
	}
}

/*
 * The peer's program does not poll for half a minute, because it gets as little of a CPU. That is
 * some two seconds of work. With and without data in flight.
 */
PAIR_CASE(sim_busy__peer_works)
{
	for (uint32_t has_data = 0; has_data < 2; has_data++) {
		open_pair();
		if (has_data)
			pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		leave(1, 30 * SEC);
		run_slices(31 * SEC);
		assert_false(pair.w->qp[pair.qa].disconnected);
		assert_false(pair.w->qp[pair.qb].disconnected);
		if (!has_data)
			pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		assert_int_equal(pair_wait(true, false), SAN_ST_OK);
		pair_close();
	}
}

/* Two hosts run by turns, and never at the same time, for a minute. */
PAIR_CASE(sim_busy__by_turns)
{
	open_pair();
	for (uint32_t i = 0; i < 600; i++) {
		pair_post(true, RTSAN_WR_PUSH, 0, LEN, i, 0);
		leave(i & 1, AWAY_NS + RUN_NS);
		run_for(RUN_NS);
		leave(!(i & 1), AWAY_NS);
		run_for(AWAY_NS);
		while (world_wait(pair.w, pair.qa, false, &pair.wc, 0))
			assert_int_equal(pair.wc.status, SAN_ST_OK);
	}
	assert_false(pair.w->qp[pair.qa].disconnected);
	assert_false(pair.w->qp[pair.qb].disconnected);
}

/* A dead peer of a busy host is found in bounded time: 1/16 of its absence counts. */
PAIR_CASE(sim_busy__dead_peer)
{
	uint64_t start_ns;

	for (uint32_t has_data = 0; has_data < 2; has_data++) {
		open_pair();
		world_node_kill(pair.w, 1);
		if (has_data)
			pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		start_ns = pair.w->now_ns;
		run_slices(200 * SEC);
		assert_true(pair.w->qp[pair.qa].disconnected);
		assert_int_equal(pair.w->qp[pair.qa].reason, RTSAN_R_TIMEOUT);
		/* 5 s of silence that count, at 3/50 + 47/50/16 of the time */
		assert_in_range(pair.w->now_ns - start_ns, 40 * SEC, 46 * SEC);
		if (has_data)
			assert_int_equal(pair_wait(true, false), RTSAN_WC_RETRY_EXC);
		pair_close();
	}
}

/* A pause of less than half of the silence excuses nothing. */
PAIR_CASE(sim_busy__one_pause)
{
	uint64_t start_ns;

	open_pair();
	world_node_kill(pair.w, 1);
	start_ns = pair.w->now_ns;
	run_for(2 * SEC); /* the silence has begun */
	leave(0, 2 * SEC);
	while (!pair.w->qp[pair.qa].disconnected)
		run_for(SEC);
	/* an idle second, five PROBEs, and the pause at most */
	assert_in_range(pair.w->now_ns - start_ns, 6 * SEC, 9 * SEC);
}
