/* SPDX-License-Identifier: BSD-3-Clause */
/* Silent and lying peers: what they hold is limited, expires, and leaves enough for other peers. */

#include "crowd.h"
#include "wire.h"

#define MIB (1u << 20)

/* RT-27, RT-35: a wrong key costs a request and its refusal, not a grant's worth of data. */
PAIR_CASE(sim_hostile__wrong_key_is_granted_nothing)
{
	static const uint8_t flags[] = {RTSAN_WR_SOLICITED, 0};
	struct san_ulp_wr wr;
	uint64_t before;

	pair_open(4 * MIB);
	for (uint32_t i = 0; i < RTE_DIM(flags); i++) {
		before = pair.w->node[1].nb_rx;
		world_wr(&wr, RTSAN_WR_PUSH, pair.a, 4 * MIB, (uint64_t)(uintptr_t)pair.b,
			 pair.kb ^ 0x40000000, i, flags[i]);
		world_post(pair.w, pair.qa, &wr);
		assert_int_equal(pair_wait(true, false), SAN_ST_ACCESS);
		assert_int_equal(san_core_tl(pair.w->node[1].core)->stats.nb_grants, 0);
		assert_true(pair.w->node[1].nb_rx - before <= 4);
	}
}

/*
 * A peer that guesses keys. Each attempt is refused in the same way, whether the key is wrong, the
 * range too long or a right missing, and the 64th ends the connection. New connections do not help,
 * because the budget counts for the host. (SYS-5)
 */
PAIR_CASE(sim_hostile__keys_are_not_guessed)
{
	static const uint8_t ops[] = {RTSAN_WR_PULL, RTSAN_WR_PUSH, RTSAN_WR_FETCH_ADD};
	uint64_t b, refused = 0, before = 0;
	struct san_ulp_wr wr;
	uint32_t i;

	pair_open(4096);
	b = (uint64_t)(uintptr_t)pair.b;
	for (uint32_t n = 0; n < 30; n++) {
		for (i = 0; !pair.w->qp[pair.qa].disconnected; i++) {
			bool is_key = i % 2 != 0;

			world_wr(&wr, ops[i % 3], pair.a, 8, is_key ? b + 4096 : b,
				 is_key ? pair.kb : pair.kb ^ (i + 1) << 16, i, 0);
			world_post(pair.w, pair.qa, &wr);
			pair.wc.status = 0;
			pair_wait(true, false);
			assert_true(pair.wc.status == SAN_ST_ACCESS ||
				    pair.wc.status == RTSAN_WC_FLUSHED);
		}
		assert_in_range(i, 64, 66);
		refused = san_ulp_stats(san_core_ulp(pair.w->node[1].core))->nb_bounds_errors;
		if (refused == before)
			break;
		before = refused;
		world_connect(pair.w, 0, 1, &pair.param, &pair.param, &pair.qa, &pair.qb);
	}
	/* half of an hour's budget is there at once; half of the attempts have the key */
	assert_in_range(refused, 1000 / 2 / 2 - 2, 1000 / 2 / 2 + 2);
}

/* ---- many connections that request grants and send nothing ---- */

#define HOSTS  10
#define SILENT (HOSTS + 1) /* the last node: node 0 is the target, then the honest one */
#define HONEST 1           /* connects first */

static bool is_silent; /* they send only requests and first packets */

static int
drop_all_but_first(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct san_wire_pkt pkt;

	if (!is_silent || from < 2 || !world_parse(m, &pkt))
		return 1;
	return pkt.op != SAN_OP_PUSH_SLCTD_DATA &&
		(pkt.op != SAN_OP_PUSH_UNSLCTD_DATA || pkt.offset == 0);
}

static void
tune_hosts(struct san_core_conf *conf, uint32_t node, void *arg)
{
	const uint32_t *per_host = arg;

	conf->pdl.max_retries = 255; /* of the silent nodes, which stay alive */
	if (node != 0)
		conf->pdl.max_conns = conf->cm.max_conns = conf->tl.max_conns = *per_host + 1;
	conf->ulp.max_cqs = 2 * conf->pdl.max_conns + 2;
	/* too few to give each connection a claim of its own */
	conf->tl.max_wide = 256;
	conf->tl.max_rxns = 1; /* no more than what is claimed */
}

/*
 * RT-35: ten hosts with *per_host* silent connections each, then pushes of another host. After
 * *silent_ns* they continue, and nothing was lost for good.
 */
static void
silent_crowd(uint32_t per_host, uint32_t solicited_len, uint64_t silent_ns)
{
	uint32_t n = HOSTS * per_host;

	pair.conf.nb_nodes = SILENT + 1;
	pair.conf.max_conns = n + 1;
	pair.conf.nb_mbufs = 65535;
	pair.conf.sq_depth = pair.conf.rq_depth = 2;
	pair.conf.link.mbps = 10000;
	pair.conf.tune = tune_hosts;
	pair.conf.tune_arg = &per_host;
	crowd_open(drop_all_but_first, MIB, MIB);
	crowd.w->check = false;
	crowd_connect(HONEST);
	is_silent = true;
	for (uint32_t i = 0; i < n; i++)
		crowd_connect(2 + i % HOSTS);
	for (uint32_t i = 1; i <= n; i++)
		crowd_post(i, RTSAN_WR_PUSH, 0, solicited_len, RTSAN_WR_SOLICITED);
	world_run_for(crowd.w, SAN_NS_PER_MS);
	for (uint32_t i = 0; i < 3; i++) {
		crowd_post(0, RTSAN_WR_PUSH, 0, 64 << 10, RTSAN_WR_SOLICITED);
		crowd_done(0, 100 * SAN_NS_PER_MS);
	}
	san_tl_check(san_core_tl(crowd.w->node[0].core));
	world_run_for(crowd.w, silent_ns);
	is_silent = false;
	for (uint32_t i = 1; i <= n; i++)
		crowd_done(i, PAIR_LIMIT);
	assert_int_equal(san_core_tl(crowd.w->node[0].core)->expired_used, 0);
	crowd_close();
}

PAIR_CASE(sim_hostile__silent_connections_stop_nobody)
{
	silent_crowd(200 / UNIT_EVERY, 256 << 10, 0);
}

/* RT-35, with the number of connections it names. */
PAIR_CASE(sim_hostile__ten_thousand_silent_connections)
{
	silent_crowd(1000 / UNIT_EVERY, 64 << 10, 0);
}

/* What expires is what other peers need, not the transaction itself. */
PAIR_CASE(sim_hostile__back_after_a_minute)
{
	silent_crowd(4, MIB, 60 * SAN_NS_PER_S);
}

/* ---- pushes that begin and do not continue ---- */

#define MANY_HOSTS 12
#define HEAD_LEN   16384

static void
tune_heads(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->pdl.max_retries = 255;
	conf->tl.solicit_len = UINT32_MAX;
	conf->tl.max_wide = 8; /* no host gets a share of that */
	conf->tl.max_rxns = 1;
}

/* *to_their_end*: only the end of the connections frees their records. */
static void
silent_heads(bool ordered, uint32_t flags, uint64_t timeout_ns, bool to_their_end)
{
	uint32_t nb_ended = 0;

	pair.conf.nb_nodes = MANY_HOSTS + 2;
	pair.conf.nb_mbufs = 65535;
	pair.conf.link.mbps = 10000;
	pair.conf.tune = tune_heads;
	pair.param.ordered = ordered;
	crowd_open(drop_all_but_first, HEAD_LEN, HEAD_LEN);
	crowd.w->check = false;
	for (uint32_t i = 0; i <= MANY_HOSTS; i++)
		crowd_connect(HONEST + i);
	is_silent = true;
	for (uint32_t i = 1; i <= MANY_HOSTS; i++)
		crowd_post(i, RTSAN_WR_PUSH, 0, HEAD_LEN, flags);
	world_run_for(crowd.w, SAN_NS_PER_MS);
	for (uint32_t i = 0; i < 3; i++) {
		crowd_post(0, RTSAN_WR_PUSH, 0, HEAD_LEN, flags);
		crowd_done(0, timeout_ns);
	}
	san_tl_check(san_core_tl(crowd.w->node[0].core));
	world_run_for(crowd.w, SAN_NS_PER_S);
	is_silent = false;
	for (uint32_t i = 1; i <= MANY_HOSTS; i++) {
		assert_true(world_wait(crowd.w, crowd.q[i], false, &pair.wc, PAIR_LIMIT));
		nb_ended += pair.wc.status != SAN_ST_OK;
	}
	assert_int_equal(nb_ended != 0, to_their_end);
	crowd_close();
}

/* RT-35: pushes of many hosts that begin and do not continue lose their records. */
PAIR_CASE(sim_hostile__heads_that_do_not_go_on)
{
	silent_heads(true, RTSAN_WR_UNSOLICITED, 400 * SAN_NS_PER_MS, false);
	silent_heads(false, RTSAN_WR_UNSOLICITED, 400 * SAN_NS_PER_MS, false);
}

/* RT-35: connections of peers that request grants, answer and send no data are ended. */
PAIR_CASE(sim_hostile__granted_heads_that_do_not_go_on)
{
	silent_heads(true, RTSAN_WR_SOLICITED, SAN_HOLD_MAX_NS + SAN_NS_PER_S, true);
	silent_heads(false, RTSAN_WR_SOLICITED, SAN_HOLD_MAX_NS + SAN_NS_PER_S, true);
}

/* ---- answers that are never acknowledged ---- */

#define PULLERS 200

static bool is_deaf;

static int
drop_acks(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct san_wire_pkt pkt;

	return !is_deaf || from != 2 || !world_parse(m, &pkt) ||
		pkt.op == SAN_OP_PULL_REQ || pkt.op == SAN_OP_ATOMIC_REQ;
}

static void
tune_pullers(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->pdl.max_retries = 255;
	conf->ulp.max_cqs = 2 * conf->pdl.max_conns + 2;
	conf->tl.max_wide = 32;
	conf->tl.max_rxns = 1; /* no more than what is claimed */
}

/* RT-30, RT-35: answers that one host never acknowledges do not occupy all records. */
PAIR_CASE(sim_hostile__answers_never_acknowledged)
{
	static const uint8_t ops[] = {RTSAN_WR_PULL, RTSAN_WR_FETCH_ADD};

	pair.conf.nb_nodes = 3;
	pair.conf.max_conns = PULLERS + 1;
	pair.conf.nb_mbufs = 32768;
	pair.conf.link.mbps = 10000;
	pair.conf.tune = tune_pullers;
	crowd_open(drop_acks, 4096, 4096);
	crowd.w->check = false;
	crowd_connect(HONEST);
	for (uint32_t i = 0; i < PULLERS; i++)
		crowd_connect(2);
	is_deaf = true;
	for (uint32_t i = 0; i < PULLERS; i++)
		crowd_post(1 + i, ops[i % 2], 0, 8, 0);
	world_run_for(crowd.w, SAN_NS_PER_MS);
	for (uint32_t i = 0; i < 4; i++) {
		crowd_post(0, ops[i % 2], 0, 8, 0);
		crowd_done(0, 100 * SAN_NS_PER_MS);
	}
	san_tl_check(san_core_tl(crowd.w->node[0].core));
	is_deaf = false;
	for (uint32_t i = 1; i <= PULLERS; i++)
		crowd_done(i, PAIR_LIMIT);
	crowd_close();
}

/* ---- packets that wait for a missing base ---- */

#define QUIET    5
#define HELD_LEN 2800
#define RATE_LEN 7000

struct base_filter {
	bool on;
	bool mute; /* no packet arrives at all */
	bool seen[QUIET + 2];
	uint32_t dcid[QUIET + 2], rsn[QUIET + 2];
};

/* The first push of each connection of node 2 never arrives. */
static int
drop_bases(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct base_filter *f = arg;
	struct san_wire_pkt pkt;
	uint32_t i;

	if (from != 2 || !f->on)
		return 1;
	if (f->mute)
		return 0;
	if (!world_parse(m, &pkt) || pkt.op != SAN_OP_PUSH_UNSLCTD_DATA)
		return 1;
	for (i = 0; f->seen[i] && f->dcid[i] != pkt.dcid; i++)
		;
	if (!f->seen[i]) {
		f->seen[i] = true;
		f->dcid[i] = pkt.dcid;
		f->rsn[i] = pkt.rsn;
	}
	return pkt.rsn != f->rsn[i];
}

/* Bytes that the honest node pushes within *ns*. */
static uint64_t
push_for(uint64_t ns)
{
	uint64_t end = crowd.w->now_ns + ns, bytes = 0;

	while (crowd.w->now_ns < end) {
		while (crowd_try_post(0, RTSAN_WR_PUSH, 0, RATE_LEN, RTSAN_WR_UNSOLICITED))
			;
		world_step(crowd.w);
		while (san_ulp_cq_poll(crowd.w->qp[crowd.q[0]].send_cq, &pair.wc, 1) == 1) {
			assert_int_equal(pair.wc.status, SAN_ST_OK);
			bytes += RATE_LEN;
		}
	}
	return bytes;
}

static void
tune_quiet(struct san_core_conf *conf, uint32_t node, void *arg)
{
	if (node != 2)
		return;
	conf->pdl.max_retries = 255;
	conf->cm.features = 0; /* no packing, so each push is a packet */
	conf->pdl.cc = SAN_CC_FIXED;
	conf->pdl.cc_conf.window_init = 1024 * SAN_CC_ONE;
}

/*
 * RT-35: packets held for one host are at most half of all, do not slow down another host, and are
 * dropped when the base does not arrive. When the bases arrive, everything completes.
 */
PAIR_CASE(sim_hostile__held_for_bases_that_do_not_come)
{
	uint32_t i, k, posted[QUIET + 1] = {0};
	struct base_filter filter = {.on = true};
	uint64_t before, after;
	struct san_tl *tl;

	pair.conf.nb_nodes = 3;
	pair.conf.nb_mbufs = 65535;
	pair.conf.link.mbps = 10000;
	pair.conf.tune = tune_quiet;
	pair.param.max_txn = pair.param.msg_limit = 256;
	pair.param.data_win = 512;
	pair.param.first_win = 1024;
	crowd_open(drop_bases, RATE_LEN, RATE_LEN);
	crowd.w->check = false;
	crowd.w->filter_arg = &filter;
	tl = san_core_tl(crowd.w->node[0].core);
	crowd_connect(HONEST);
	for (i = 0; i < QUIET; i++)
		crowd_connect(2);
	before = push_for(10 * SAN_NS_PER_MS);
	for (i = 1; i <= QUIET; i++)
		for (k = 0; k < 255; k++)
			posted[i] += crowd_try_post(i, RTSAN_WR_PUSH, 0, HELD_LEN,
						    RTSAN_WR_UNSOLICITED);
	push_for(20 * SAN_NS_PER_MS);
	assert_in_range(tl->nb_held, 512, 1024);
	after = push_for(10 * SAN_NS_PER_MS);
	assert_true(after > before / 10 * 7);
	filter.mute = true;
	world_run_for(crowd.w, 250 * SAN_NS_PER_MS);
	assert_int_equal(tl->nb_held, 0);
	assert_true(tl->drops[SAN_DROP_HELD] >= 512);
	filter.on = false;
	for (i = 1; i <= QUIET; i++)
		for (k = 0; k < posted[i]; k++)
			crowd_done(i, PAIR_LIMIT);
	while (world_wait(crowd.w, crowd.q[0], false, &pair.wc, SAN_NS_PER_MS))
		;
	crowd_close();
}
