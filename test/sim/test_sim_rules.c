/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules that are visible on the wire: the order in which numbers are assigned (RT-16, RT-17,
 * RT-26), when a push is solicited (RT-12), which initiators get the incast budget of silent or
 * dead ones (RT-13), what counts as complete (PCB-5), and what limits cost (PCB-4).
 */

#include "crowd.h"
#include "san_seq.h"

#define LEN    (1 << 16)
#define BUDGET (16 * 1024) /* incast budget, so small that a push is granted in steps */

static void
tune_budget(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->tl.budget_bytes = BUDGET;
	conf->tl.expired_bytes = BUDGET;
	conf->tl.grant_bytes = BUDGET / 2;
}

/* ---- numbers, in the order in which they are first sent ---- */

#define PSNS 4096

struct order {
	bool started[SAN_WIN_MAX];
	uint32_t first[SAN_WIN_MAX], next[SAN_WIN_MAX]; /* PSNs of host 0 */
	struct san_wire_pkt sent[SAN_WIN_MAX][PSNS];
	bool any_ssn, any_data, any_grant;
	uint32_t req_rsn, ssn, data_rsn, data_off, grant_psn, grant_ssn, grant_off;
	uint32_t nb_again, nb_grants;
};

static void
check_request(struct order *o, const struct san_wire_pkt *pkt, bool first)
{
	/* RT-17: PSNs ascend in RSN order */
	assert_true(first || san_seq_gt(pkt->rsn, o->req_rsn));
	/* RT-26; RULE-3: before any data of this or a higher RSN */
	assert_true(!o->any_data || san_seq_gt(pkt->rsn, o->data_rsn));
	o->req_rsn = pkt->rsn;
	if (pkt->op != SAN_OP_PUSH_SLCTD_REQ)
		return;
	assert_true(!o->any_ssn || pkt->ssn == o->ssn + 1);
	o->ssn = pkt->ssn;
	o->any_ssn = true;
}

static void
check_data(struct order *o, const struct san_wire_pkt *pkt)
{
	if (pkt->op != SAN_OP_PUSH_SLCTD_DATA && pkt->op != SAN_OP_PUSH_UNSLCTD_DATA &&
	    pkt->op != SAN_OP_PUSH_PACKED)
		return;
	/* RT-16, RT-26: pushes one after the other, in whatever order they were granted */
	assert_true(!o->any_data || san_seq_ge(pkt->rsn, o->data_rsn));
	if (o->any_data && pkt->rsn == o->data_rsn)
		assert_true(pkt->offset > o->data_off);
	o->data_rsn = pkt->op == SAN_OP_PUSH_PACKED ? pkt->rsn + pkt->length - 1 : pkt->rsn;
	o->data_off = pkt->offset;
	o->any_data = true;
}

static void
check_again(struct order *o, enum san_win win, const struct san_wire_pkt *pkt)
{
	const struct san_wire_pkt *e = &o->sent[win][pkt->psn - o->first[win]];

	/* RT-17: the same packet again; the PSN of a finished one may be filled */
	if (pkt->op != SAN_OP_RESYNC)
		assert_true(pkt->op == e->op && pkt->ssn == e->ssn && pkt->offset == e->offset &&
			    pkt->length == e->length);
	assert_true(pkt->rsn == e->rsn);
	o->nb_again++;
}

/* Grants of host 1 come in SSN order, each beyond the last one (RT-16). */
static void
check_grant(struct order *o, const struct san_wire_pkt *pkt)
{
	if (pkt->op != SAN_OP_PUSH_GRNT || (o->any_grant && san_seq_le(pkt->psn, o->grant_psn)))
		return;
	if (o->any_grant) {
		assert_true(san_seq_ge(pkt->ssn, o->grant_ssn));
		assert_true(pkt->ssn != o->grant_ssn || pkt->offset > o->grant_off);
	}
	o->any_grant = true;
	o->grant_psn = pkt->psn;
	o->grant_ssn = pkt->ssn;
	o->grant_off = pkt->offset;
	o->nb_grants++;
}

static int
watch_order(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct order *o = arg;
	struct san_wire_pkt pkt;
	enum san_win win;

	if (!world_parse(m, &pkt))
		return 1;
	if (from == 1)
		check_grant(o, &pkt);
	win = san_pdl_rx_win_of(pkt.op, pkt.flags);
	if (from != 0 || win == SAN_WIN_MAX)
		return 1;
	if (!o->started[win])
		o->first[win] = o->next[win] = pkt.psn;
	if (pkt.psn != o->next[win]) {
		assert_true(san_seq_lt(pkt.psn, o->next[win]));
		check_again(o, win, &pkt);
		return 1;
	}
	if (win == SAN_WIN_REQ)
		check_request(o, &pkt, !o->started[win]);
	else
		check_data(o, &pkt);
	assert_true(o->next[win] - o->first[win] < PSNS);
	o->sent[win][o->next[win]++ - o->first[win]] = pkt;
	o->started[win] = true;
	return 1;
}

static void
ordered_mix(uint64_t seed)
{
	struct order *o = calloc(1, sizeof(*o));

	world_conf_bad_link(&pair.conf, seed);
	pair.conf.tune = tune_budget;
	pair.conf.link.reorder_ppm = 300000;
	/* few, so that requests wait while data could be sent */
	pair.param.req_win = seed & 1 ? 2 : 64;
	pair_open(LEN);
	pair_filter(watch_order, o);
	for (uint32_t i = 0; i < 100; i++)
		pair_post(true, i % 5 == 4 ? RTSAN_WR_PULL : RTSAN_WR_PUSH, 0,
			  500 + 300 * (i % 60), i,
			  i % 3 != 0 ? RTSAN_WR_SOLICITED : RTSAN_WR_UNSOLICITED);
	for (uint32_t i = 0; i < 100; i++)
		pair_wait_for(true, false, SAN_ST_OK, i); /* RT-14 */
	assert_true(o->nb_again > 0 && o->nb_grants > 60);
	pair.w->filter = NULL;
	pair_close();
	free(o);
}

PAIR_CASE(sim_rules__numbers_in_order)
{
	for (uint64_t seed = 40; seed < 46; seed++)
		ordered_mix(seed);
}

/* ---- RT-12: solicited or not ---- */

static bool
goes_solicited(uint32_t len, uint8_t flags, uint8_t level)
{
	const struct san_tl *tl = san_core_tl(pair.w->node[0].core);
	uint64_t before = tl->stats.nb_push_solicited, all = before + tl->stats.nb_push_unsolicited;

	pair_conn(true)->cc.level = level;
	pair_post(true, RTSAN_WR_PUSH, 0, len, 1, flags);
	assert_int_equal(tl->stats.nb_push_solicited + tl->stats.nb_push_unsolicited, all + 1);
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	return tl->stats.nb_push_solicited != before;
}

PAIR_CASE(sim_rules__solicited_from_l_and_c_on)
{
	const struct san_tl_conf *tl;
	uint32_t l;
	uint8_t c;

	pair_open(LEN);
	tl = &san_core_tl(pair.w->node[0].core)->conf;
	l = tl->solicit_len;
	c = tl->solicit_level;
	assert_int_equal(l, 8192); /* the default */
	assert_true(c > 0 && c < 255);
	assert_false(goes_solicited(l - 1, 0, 0));
	assert_true(goes_solicited(l, 0, 0));
	assert_true(goes_solicited(l + 1, 0, 0));
	assert_false(goes_solicited(100, 0, c - 1));
	assert_true(goes_solicited(100, 0, c));
	assert_true(goes_solicited(100, 0, c + 1));
	/* the caller can force both ways */
	assert_true(goes_solicited(1, RTSAN_WR_SOLICITED, 0));
	assert_false(goes_solicited(l + 1, RTSAN_WR_UNSOLICITED, c + 1));
	/* without payload there is nothing to grant */
	assert_false(goes_solicited(0, RTSAN_WR_SOLICITED, 255));
}

/* ---- RT-13: budget of initiators that do not use it ---- */

/* Hosts 1 and 2. */
static void
open_two(void)
{
	pair.conf.nb_nodes = 3;
	pair.conf.tune = tune_budget;
	crowd_open(NULL, LEN, 2 * LEN);
	crowd_connect(1);
	crowd_connect(2);
	world_pattern(crowd.src, LEN, 6);
}

static void
push(uint32_t i)
{
	crowd_post(i, RTSAN_WR_PUSH, i * LEN, LEN, RTSAN_WR_SOLICITED);
}

static bool
budget_is_full(struct world *w, void *arg)
{
	return san_core_tl(w->node[0].core)->budget_used > BUDGET / 2;
}

PAIR_CASE(sim_rules__unused_grants_expire)
{
	const struct san_tl *tl;

	open_two();
	tl = san_core_tl(crowd.w->node[0].core);
	push(0);
	assert_true(world_run_until(crowd.w, budget_is_full, NULL, PAIR_LIMIT));
	crowd.w->node[1].paused_until_ns = crowd.w->now_ns + 20 * SAN_NS_PER_MS;
	push(1);
	/* long before the first one continues */
	crowd_done(1, 10 * SAN_NS_PER_MS);
	assert_true(tl->stats.nb_grants_expired > 0);
	assert_true(tl->expired_used > 0);
	/* expired grants stay valid */
	crowd_done(0, PAIR_LIMIT);
	assert_true(world_pattern_ok(crowd.dst, LEN, 6));
	assert_true(world_pattern_ok(crowd.dst + LEN, LEN, 6));
	assert_int_equal(tl->budget_used + tl->expired_used, 0);
	crowd_close();
}

PAIR_CASE(sim_rules__share_of_the_dead_returns)
{
	const struct san_tl *tl;

	open_two();
	tl = san_core_tl(crowd.w->node[0].core);
	push(0);
	assert_true(world_run_until(crowd.w, budget_is_full, NULL, PAIR_LIMIT));
	world_node_kill(crowd.w, 1);
	world_run_for(crowd.w, 30 * SAN_NS_PER_S);
	assert_true(crowd.w->qp[crowd.q[0] + 1].disconnected); /* RT-24 */
	assert_int_equal(tl->budget_used + tl->expired_used, 0);
	push(1);
	crowd_done(1, PAIR_LIMIT);
	assert_int_equal(tl->budget_used + tl->expired_used, 0);
	crowd_close();
}

/* ---- PCB-5: received is not complete ---- */

#define NB_MSGS 5 /* message limit */

struct hold {
	bool armed, hold;
	uint32_t first_rsn, top_rsn;
};

static int
hold_first_rsn(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct hold *h = arg;
	struct san_wire_pkt pkt;

	if (from != 0 || !world_parse(m, &pkt) || pkt.op != SAN_OP_PUSH_UNSLCTD_DATA)
		return 1;
	if (!h->armed)
		h->first_rsn = h->top_rsn = pkt.rsn;
	h->armed = true;
	h->top_rsn = san_seq_max(h->top_rsn, pkt.rsn);
	return h->hold && pkt.rsn == h->first_rsn ? 0 : 1;
}

PAIR_CASE(sim_rules__received_messages_still_count)
{
	struct hold h = {.hold = true};
	struct san_cm_param pa = pair.param, pb = pair.param;
	const struct san_pdl_conn *c;

	pa.msg_limit = NB_MSGS;
	pair_open_param(&pa, &pb, LEN);
	pair_filter(hold_first_rsn, &h);
	for (uint32_t i = 0; i < 20; i++)
		pair_post(true, RTSAN_WR_PUSH, 0, 1000, i, 0);
	assert_false(world_wait(pair.w, pair.qa, false, &pair.wc, 2 * SAN_NS_PER_MS));
	c = pair_conn(true);
	/* all but one are received, none is complete: no further one may be sent */
	assert_true(c->pcb.inflight <= 1);
	assert_int_equal(san_core_tl(pair.w->node[0].core)->conns[c->slot].nb_msgs, NB_MSGS);
	assert_int_equal(h.top_rsn - h.first_rsn, NB_MSGS - 1);
	h.hold = false;
	pair_done(true, 20);
}

/* ---- PCB-4: the limits do not slow down a single active connection ---- */

#define BIG (16u << 20)

static void
tune_no_limits(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->pdl.budget_pkts = *(bool *)arg ? conf->pdl.budget_pkts : UINT32_MAX / 2;
}

static uint64_t
time_of_push(bool limited)
{
	uint64_t start_ns, took_ns;

	pair.conf.link.mbps = 10000;
	pair.conf.tune = tune_no_limits;
	pair.conf.tune_arg = &limited;
	world_param_default(&pair.param);
	if (!limited) {
		pair.param.first_win = UINT16_MAX;
		pair.param.msg_limit = UINT16_MAX;
	}
	pair_open(BIG);
	pair.w->check = false;
	start_ns = pair.w->now_ns;
	pair_do(true, RTSAN_WR_PUSH, 0, BIG, 1, RTSAN_WR_UNSOLICITED);
	took_ns = pair.w->now_ns - start_ns;
	pair_close();
	return took_ns;
}

PAIR_CASE(sim_rules__limits_cost_one_connection_nothing)
{
	uint64_t with_ns = time_of_push(true), without_ns = time_of_push(false);

	assert_true(without_ns * 100 >= with_ns * 99);
	/* at 10 Gb/s, so that the comparison is not between two slow runs */
	assert_true(with_ns < (uint64_t)BIG * 8 / 8);
}
