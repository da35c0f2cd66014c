/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections of carried sockets survive a silence as TCP does. (UDP-12) */

#include "unit.h"

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
	(void)w;
	(void)from;
	(void)to;
	(void)m;
	(void)arg;
	return is_cut ? 0 : 1;
}

static void
set(struct pair *p, const struct san_sock_timeouts *timeouts)
{
	uint32_t q[] = {p->qa, p->qb}, i;

	for (i = 0; i < 2; i++)
		san_core_conn_set_timeouts(p->w->node[i].core, p->w->qp[q[i]].qp, timeouts,
					   p->w->now_ns);
}

static void
open_pair(struct pair *p, const struct san_sock_timeouts *timeouts)
{
	struct san_cm_param param;
	struct world_conf conf;
	struct san_ulp_wc wc;

	world_conf_default(&conf);
	world_param_default(&param);
	param.keepalive_ms = 1000;
	pair_open_param(p, &conf, &param, &param, LEN);
	is_cut = false;
	p->w->filter = cut;
	set(p, timeouts);
	pair_post(p, true, RTSAN_WR_PUSH, 0, 100, 0, 0); /* gives an RTT sample */
	assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
}

static bool
is_up(const struct pair *p)
{
	return !p->w->qp[p->qa].disconnected && !p->w->qp[p->qb].disconnected;
}

/* With data in flight in both directions: it continues as soon as the link is back. */
UNIT_CASE(sim_timeouts__link_down)
{
	struct san_ulp_wc wc;
	uint64_t back_ns;
	struct pair p;

	open_pair(&p, &as_tcp);
	is_cut = true;
	world_pattern(p.a, LEN / 2, 1);
	pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN / 2, 1, 0);
	pair_post(&p, false, RTSAN_WR_PUSH, LEN / 2, LEN / 2, 2, 0);
	world_run_for(p.w, 18 * SEC);
	assert_true(is_up(&p));
	is_cut = false;
	back_ns = p.w->now_ns;
	assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
	assert_int_equal(pair_wait(&p, false, false, &wc), SAN_ST_OK);
	assert_true(world_pattern_ok(p.b, LEN / 2, 1));
	/* one more timeout of each end: the longest one with its jitter, twice */
	assert_in_range(p.w->now_ns - back_ns, 0, 2 * SEC);
	pair_close(&p);
}

/* Without data, both ends wait forever; and silence before there was data does not count. */
UNIT_CASE(sim_timeouts__idle)
{
	struct san_ulp_wc wc;
	struct pair p;

	open_pair(&p, &as_tcp);
	is_cut = true;
	world_run_for(p.w, 100 * SEC);
	assert_true(is_up(&p));
	pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	world_run_for(p.w, 18 * SEC);
	assert_true(is_up(&p));
	is_cut = false;
	assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
	pair_close(&p);
}

/* A silence of weeks ago is not part of this one, although the clock's low bits repeat. */
UNIT_CASE(sim_timeouts__old_silence)
{
	static const uint32_t stalled_ms[] = {0, 1000, 1u << 30, INT32_MAX, 1u << 31, UINT32_MAX};
	struct san_ulp_wc wc;
	struct san_pdl *pdl;
	struct pair p;
	uint32_t i, k;

	for (i = 0; i < sizeof(stalled_ms) / sizeof(stalled_ms[0]); i++) {
		open_pair(&p, &as_tcp);
		pdl = san_core_pdl(p.w->node[0].core);
		for (k = 0; k < pdl->conf.max_conns; k++)
			pdl->conns[k].stalled_ms = stalled_ms[i];
		is_cut = true;
		pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		world_run_for(p.w, 15 * SEC);
		assert_true(is_up(&p));
		is_cut = false;
		assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
		pair_close(&p);
	}
}

/* Unanswered probes do not end a connection; an answered one reports a restart. */
UNIT_CASE(sim_timeouts__rare_probes)
{
	const struct san_sock_timeouts rare = {
		.timeout_ms = OUT_S * 1000, .idle_ms = 30000, .every_ms = 30000};
	struct pair p;

	open_pair(&p, &rare);
	is_cut = true;
	world_run_for(p.w, 1000 * SEC);
	assert_true(is_up(&p));
	world_node_kill(p.w, 1);
	world_node_start(p.w, 1);
	is_cut = false;
	world_run_for(p.w, 31 * SEC);
	assert_true(p.w->qp[p.qa].disconnected);
	assert_int_equal(p.w->qp[p.qa].reason, RTSAN_R_STALE);
	p.w->qp[p.qb].send_cq = NULL; /* died with its process */
	p.kb = world_mr(p.w, 1, p.b, LEN, PAIR_ALL);
	pair_close(&p);
}

/* TCP_USER_TIMEOUT: a long one, and one that is shorter than the transport's own retries. */
UNIT_CASE(sim_timeouts__ends)
{
	static const uint32_t seconds[] = {OUT_S, 2};
	struct san_sock_timeouts timeouts = {.timeout_ms = 0};
	struct san_ulp_wc wc;
	struct pair p;
	uint64_t at_ns;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		timeouts.timeout_ms = seconds[i] * 1000;
		open_pair(&p, &timeouts);
		is_cut = true;
		at_ns = p.w->now_ns;
		pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
		assert_true(world_wait(p.w, p.qa, false, &wc, 2 * OUT_S * SEC));
		assert_int_equal(wc.status, RTSAN_WC_RETRY_EXC);
		assert_in_range(p.w->now_ns - at_ns, seconds[i] * SEC, seconds[i] * SEC + SEC);
		is_cut = false;
		/* the other end, without data in flight, detects the end when it sends */
		pair_post(&p, false, RTSAN_WR_PUSH, 0, 100, 2, 0);
		assert_int_not_equal(pair_wait(&p, false, false, &wc), SAN_ST_OK);
		pair_close(&p);
	}
}

/* SO_KEEPALIVE: ends after *idle_ms* and *probes* unanswered probes. */
UNIT_CASE(sim_timeouts__keepalive)
{
	const struct san_sock_timeouts keeps = {
		.timeout_ms = 900000, .idle_ms = 20000, .every_ms = 5000, .probes = 3};
	struct pair p;

	open_pair(&p, &keeps);
	world_run_for(p.w, 100 * SEC);
	assert_true(is_up(&p)); /* probes are answered */
	is_cut = true;
	world_run_for(p.w, 14 * SEC); /* at least three times 5 s */
	assert_true(is_up(&p));
	world_run_for(p.w, 22 * SEC); /* and at most 20 s before that */
	assert_true(p.w->qp[p.qa].disconnected && p.w->qp[p.qb].disconnected);
	is_cut = false;
	world_run_for(p.w, 2 * SEC);
	pair_close(&p);
}

/* No keepalive probes while data is in flight, as in TCP. */
UNIT_CASE(sim_timeouts__keepalive_waits_for_data)
{
	const struct san_sock_timeouts keeps = {
		.timeout_ms = 900000, .idle_ms = 2000, .every_ms = 1000, .probes = 3};
	struct san_ulp_wc wc;
	struct pair p;

	open_pair(&p, &keeps);
	pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	pair_post(&p, false, RTSAN_WR_PUSH, 0, LEN, 2, 0);
	is_cut = true;
	world_run_for(p.w, 100 * SEC);
	assert_true(is_up(&p));
	is_cut = false;
	assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
	assert_int_equal(pair_wait(&p, false, false, &wc), SAN_ST_OK);
	pair_close(&p);
}

/* A long timeout is for a peer that may return. A restarted peer reports that it does not. */
UNIT_CASE(sim_timeouts__peer_restarts)
{
	struct san_ulp_wc wc;
	struct pair p;

	open_pair(&p, &as_tcp);
	world_node_kill(p.w, 1);
	pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	world_run_for(p.w, 10 * SEC);
	assert_false(p.w->qp[p.qa].disconnected);
	world_node_start(p.w, 1);
	assert_int_not_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
	world_run_for(p.w, SEC);
	assert_int_equal(p.w->qp[p.qa].reason, RTSAN_R_STALE);
	p.w->qp[p.qb].send_cq = NULL; /* died with its process */
	p.kb = world_mr(p.w, 1, p.b, LEN, PAIR_ALL);
	pair_close(&p);
}
