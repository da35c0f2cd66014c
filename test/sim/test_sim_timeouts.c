/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections of carried sockets survive a silence as TCP does. (UDP-12) */

#include "pair.h"

#define LEN   65536
#define OUT_S 20
#define MS    SAN_NS_PER_MS
#define SEC   SAN_NS_PER_S

static const struct san_sock_timeouts as_tcp = {.timeout_ms = OUT_S * 1000};
static bool is_cut;

static int
cut(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	return is_cut ? 0 : 1;
}

static void
open_pair(const struct san_sock_timeouts *timeouts)
{
	pair.param.keepalive_ms = 1000;
	pair_open(LEN);
	is_cut = false;
	pair.w->filter = cut;
	for (uint32_t i = 0; i < 2; i++)
		san_core_conn_set_timeouts(pair.w->node[i].core,
					   pair.w->qp[i == 0 ? pair.qa : pair.qb].qp, timeouts,
					   pair.w->now_ns);
	pair_post(true, RTSAN_WR_PUSH, 0, 100, 0, 0); /* gives an RTT sample */
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
}

static bool
is_up(void)
{
	return !pair.w->qp[pair.qa].disconnected && !pair.w->qp[pair.qb].disconnected;
}

/* With data in flight in both directions: it continues as soon as the link is back. */
PAIR_CASE(sim_timeouts__link_down)
{
	uint64_t back_ns;

	open_pair(&as_tcp);
	is_cut = true;
	world_pattern(pair.a, LEN / 2, 1);
	pair_post(true, RTSAN_WR_PUSH, 0, LEN / 2, 1, 0);
	pair_post(false, RTSAN_WR_PUSH, LEN / 2, LEN / 2, 2, 0);
	world_run_for(pair.w, 18 * SEC);
	assert_true(is_up());
	is_cut = false;
	back_ns = pair.w->now_ns;
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	assert_int_equal(pair_wait(false, false), SAN_ST_OK);
	assert_true(world_pattern_ok(pair.b, LEN / 2, 1));
	/* one more timeout of each end: the longest one with its jitter, twice */
	assert_in_range(pair.w->now_ns - back_ns, 0, 2 * SEC);
}

/* Without data, both ends wait forever; and silence before there was data does not count. */
PAIR_CASE(sim_timeouts__idle)
{
	open_pair(&as_tcp);
	is_cut = true;
	world_run_for(pair.w, 100 * SEC);
	assert_true(is_up());
	pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	world_run_for(pair.w, 18 * SEC);
	assert_true(is_up());
	is_cut = false;
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
}

/* A silence of weeks ago is not part of this one, although the clock's low bits repeat. */
PAIR_CASE(sim_timeouts__old_silence)
{
	static const uint32_t stalled_ms[] = {0, 1000, 1u << 30, INT32_MAX, 1u << 31, UINT32_MAX};
	struct san_pdl *pdl;

	for (uint32_t i = 0; i < sizeof(stalled_ms) / sizeof(stalled_ms[0]); i++) {
		open_pair(&as_tcp);
		pdl = san_core_pdl(pair.w->node[0].core);
		for (uint32_t k = 0; k < pdl->conf.max_conns; k++)
			pdl->conns[k].stalled_ms = stalled_ms[i];
		is_cut = true;
		pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		world_run_for(pair.w, 15 * SEC);
		assert_true(is_up());
		is_cut = false;
		assert_int_equal(pair_wait(true, false), SAN_ST_OK);
		pair_close();
	}
}

/* Unanswered probes do not end a connection; an answered one reports a restart. */
PAIR_CASE(sim_timeouts__rare_probes)
{
	const struct san_sock_timeouts rare = {
		.timeout_ms = OUT_S * 1000, .idle_ms = 30000, .every_ms = 30000};

	open_pair(&rare);
	is_cut = true;
	world_run_for(pair.w, 1000 * SEC);
	assert_true(is_up());
	world_node_kill(pair.w, 1);
	world_node_start(pair.w, 1);
	is_cut = false;
	world_run_for(pair.w, 31 * SEC);
	assert_true(pair.w->qp[pair.qa].disconnected);
	assert_int_equal(pair.w->qp[pair.qa].reason, RTSAN_R_STALE);
	pair.w->qp[pair.qb].send_cq = NULL; /* died with its process */
	pair.kb = world_mr(pair.w, 1, pair.b, LEN, PAIR_ALL);
}

/* TCP_USER_TIMEOUT: a long one, and one that is shorter than the transport's own retries. */
PAIR_CASE(sim_timeouts__ends)
{
	static const uint32_t seconds[] = {OUT_S, 2};
	struct san_sock_timeouts timeouts = {.timeout_ms = 0};
	uint64_t at_ns;

	for (uint32_t i = 0; i < 2; i++) {
		timeouts.timeout_ms = seconds[i] * 1000;
		open_pair(&timeouts);
		is_cut = true;
		at_ns = pair.w->now_ns;
		pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		assert_true(world_wait(pair.w, pair.qa, false, &pair.wc, 2 * OUT_S * SEC));
		assert_int_equal(pair.wc.status, RTSAN_WC_RETRY_EXC);
		assert_in_range(pair.w->now_ns - at_ns, seconds[i] * SEC, seconds[i] * SEC + SEC);
		is_cut = false;
		/* the other end, without data in flight, detects the end when it sends */
		pair_post(false, RTSAN_WR_PUSH, 0, 100, 2, 0);
		assert_int_not_equal(pair_wait(false, false), SAN_ST_OK);
		pair_close();
	}
}

/* SO_KEEPALIVE: ends after *idle_ms* and *probes* unanswered probes. */
PAIR_CASE(sim_timeouts__keepalive)
{
	const struct san_sock_timeouts keeps = {
		.timeout_ms = 900000, .idle_ms = 20000, .every_ms = 5000, .probes = 3};

	open_pair(&keeps);
	world_run_for(pair.w, 100 * SEC);
	assert_true(is_up()); /* probes are answered */
	is_cut = true;
	world_run_for(pair.w, 14 * SEC); /* at least three times 5 s */
	assert_true(is_up());
	world_run_for(pair.w, 22 * SEC); /* and at most 20 s before that */
	assert_true(pair.w->qp[pair.qa].disconnected && pair.w->qp[pair.qb].disconnected);
	is_cut = false;
	world_run_for(pair.w, 2 * SEC);
}

/* No keepalive probes while data is in flight, as in TCP. */
PAIR_CASE(sim_timeouts__keepalive_waits_for_data)
{
	const struct san_sock_timeouts keeps = {
		.timeout_ms = 900000, .idle_ms = 2000, .every_ms = 1000, .probes = 3};

	open_pair(&keeps);
	pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	pair_post(false, RTSAN_WR_PUSH, 0, LEN, 2, 0);
	is_cut = true;
	world_run_for(pair.w, 100 * SEC);
	assert_true(is_up());
	is_cut = false;
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	assert_int_equal(pair_wait(false, false), SAN_ST_OK);
}

/* A long timeout is for a peer that may return. A restarted peer reports that it does not. */
PAIR_CASE(sim_timeouts__peer_restarts)
{
	open_pair(&as_tcp);
	world_node_kill(pair.w, 1);
	pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	world_run_for(pair.w, 10 * SEC);
	assert_false(pair.w->qp[pair.qa].disconnected);
	world_node_start(pair.w, 1);
	assert_int_not_equal(pair_wait(true, false), SAN_ST_OK);
	world_run_for(pair.w, SEC);
	assert_int_equal(pair.w->qp[pair.qa].reason, RTSAN_R_STALE);
	pair.w->qp[pair.qb].send_cq = NULL; /* died with its process */
	pair.kb = world_mr(pair.w, 1, pair.b, LEN, PAIR_ALL);
}
