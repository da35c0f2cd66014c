/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits that hold at every step: incast budget, PCB windows, message limits, congestion, paths. */

#include "crowd.h"

#define SENDERS 32

static uint64_t
granted_not_received(const struct san_tl *tl)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tl->conf.max_rxns; i++)
		if (tl->rxns[i].state != SAN_RXN_FREE && tl->rxns[i].solicited)
			sum += tl->rxns[i].granted - tl->rxns[i].received;
	return sum;
}

static void
tune_incast(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->tl.budget_bytes = 128 * 1024;
	conf->tl.expired_bytes = 128 * 1024;
}

/* RT-13: many to one through a small switch queue; bounded at every step, and all are served. */
PAIR_CASE(sim_limits__incast)
{
	const uint32_t len = 200000;
	uint64_t end, granted, worst = 0;
	uint32_t done = 0;
	const struct san_tl *tl;

	pair.conf.nb_nodes = SENDERS + 1;
	pair.conf.max_conns = SENDERS;
	pair.conf.nb_mbufs = 32768;
	pair.conf.link.mbps = 10000;
	pair.conf.link.queue_pkts = 300;
	pair.conf.tune = tune_incast;
	crowd_open(NULL, len, (uint64_t)SENDERS * len);
	crowd.w->check = false;
	world_pattern(crowd.src, len, 5);
	for (uint32_t i = 0; i < SENDERS; i++)
		crowd_connect(i + 1);
	for (uint32_t i = 0; i < SENDERS; i++)
		crowd_post(i, RTSAN_WR_PUSH, i * len, len, RTSAN_WR_SOLICITED);
	tl = san_core_tl(crowd.w->node[0].core);
	end = crowd.w->now_ns + PAIR_LIMIT;
	while (done < SENDERS) {
		assert_true(crowd.w->now_ns < end);
		world_step(crowd.w);
		assert_true(tl->budget_used <= 128 * 1024);
		granted = granted_not_received(tl);
		assert_true(granted <= 256 * 1024);
		worst = RTE_MAX(worst, granted);
		for (uint32_t i = 0; i < SENDERS; i++) {
			if (san_ulp_cq_poll(crowd.w->qp[crowd.q[i]].send_cq, &pair.wc, 1) == 1) {
				assert_int_equal(pair.wc.status, SAN_ST_OK);
				done++;
			}
		}
	}
	assert_true(worst > 64 * 1024); /* the budget is really used */
	assert_true(tl->stats.nb_grants_deferred > 0);
	/* and granted in pieces worth a packet, not as small as they are returned */
	assert_in_range(tl->stats.nb_grants, SENDERS, SENDERS * (len / (16 * 1024)));
	/* admission kept the queue from overflowing */
	assert_int_equal(crowd.w->node[0].nb_lost, 0);
	for (uint32_t i = 0; i < SENDERS; i++)
		assert_true(world_pattern_ok(crowd.dst + i * len, len, 5));
	crowd_close();
}

#define LCORES 2

static struct san_tl_lend shared;

static void
tune_shared(struct san_core_conf *conf, uint32_t node, void *arg)
{
	if (node < LCORES)
		conf->tl.lend = &shared;
}

/* Many to one host with two lcores: first to one of them, then also to the other. */
struct lcores_run {
	struct world *w;
	uint32_t qa[SENDERS], done[LCORES];
	uint64_t worst;
};

static void
lcores_step(struct lcores_run *r)
{
	struct san_ulp_wc wc;
	uint64_t used = 0;

	world_step(r->w);
	for (uint32_t i = 0; i < LCORES; i++) {
		const struct san_tl *tl = san_core_tl(r->w->node[i].core);

		used += tl->budget_used;
	}
	assert_true(used <= 128 * 1024);
	r->worst = used > r->worst ? used : r->worst;
	for (uint32_t i = 0; i < SENDERS; i++) {
		if (san_ulp_cq_poll(r->w->qp[r->qa[i]].send_cq, &wc, 1) == 1) {
			assert_int_equal(wc.status, SAN_ST_OK);
			r->done[i % LCORES]++;
		}
	}
}

/* RT-13: several lcores share one budget and lend it to each other; both are served. */
PAIR_CASE(sim_limits__incast_on_two_lcores)
{
	const uint32_t len = 200000, rounds = 4;
	struct lcores_run r = {0};
	uint32_t qb, key[LCORES];
	struct san_ulp_wr wr;
	uint8_t *src, *dst;
	uint64_t end;

	pair.conf.nb_nodes = SENDERS + LCORES;
	pair.conf.max_conns = SENDERS;
	pair.conf.nb_mbufs = 32768;
	pair.conf.link.mbps = 10000;
	pair.conf.tune = tune_shared;
	san_tl_lend_init(&shared, 128 * 1024, LCORES);
	r.w = world_create(&pair.conf);
	r.w->check = false;
	src = malloc(len);
	dst = calloc(SENDERS, len);
	world_pattern(src, len, 5);
	for (uint32_t i = 0; i < LCORES; i++)
		key[i] = world_mr(r.w, i, dst, (uint64_t)SENDERS * len, RTSAN_REMOTE_PUSH);
	for (uint32_t i = 0; i < SENDERS; i++)
		world_connect(r.w, LCORES + i, i % LCORES, &pair.param, &pair.param, &r.qa[i], &qb);
	end = r.w->now_ns + PAIR_LIMIT;
	for (uint32_t k = 0; k < LCORES; k++) {
		for (uint32_t i = k; i < SENDERS * rounds; i += LCORES) {
			world_wr(&wr, RTSAN_WR_PUSH, src, len,
				 (uint64_t)(uintptr_t)(dst + i % SENDERS * len), key[k], i,
				 RTSAN_WR_SOLICITED);
			world_post(r.w, r.qa[i % SENDERS], &wr);
		}
		/* the only active lcore has what the other one does not reserve */
		for (uint32_t i = 0; i < 3000 && k == 0; i++)
			lcores_step(&r);
		if (k == 0)
			assert_true(san_core_tl(r.w->node[0].core)->budget_bytes ==
				    shared.total_bytes - shared.least_bytes);
	}
	while (r.done[0] + r.done[1] < SENDERS * rounds) {
		assert_true(r.w->now_ns < end);
		lcores_step(&r);
		/* the later lcore does not wait until the first one is done */
		if (r.done[0] == SENDERS / LCORES * rounds)
			assert_true(r.done[1] > 0);
	}
	assert_true(r.worst > 96 * 1024);
	assert_true(san_core_tl(r.w->node[0].core)->stats.nb_budget_returned > 0);
	assert_true(san_core_tl(r.w->node[1].core)->stats.nb_budget_returned > 0);
	for (uint32_t i = 0; i < SENDERS; i++)
		assert_true(world_pattern_ok(dst + i * len, len, 5));
	for (uint32_t i = 0; i < SENDERS; i++)
		world_disconnect(r.w, r.qa[i], r.qa[i] + 1);
	for (uint32_t i = 0; i < LCORES; i++)
		world_mr_del(r.w, i, key[i]);
	world_destroy(r.w);
	assert_int_equal(atomic_load(&shared.free_bytes), shared.total_bytes);
	assert_int_equal(atomic_load(&shared.claims), 0);
	free(src);
	free(dst);
}

/* PCB-2, PCB-3, PCB-5: never more packets or messages in flight than the limits. */
PAIR_CASE(sim_limits__virtual_window_and_message_limit)
{
	struct san_cm_param pa = pair.param, pb = pair.param;
	uint32_t nb_done = 0, high_pkts = 0, high_msgs = 0;
	uint64_t end;

	world_conf_bad_link(&pair.conf, 6);
	pa.msg_limit = 5;
	pb.first_win = 11; /* gives a virtual window of 10 */
	pair_open_param(&pa, &pb, 65536);
	for (unsigned int i = 0; i < 100; i++)
		pair_post(true, i % 3 ? RTSAN_WR_PUSH : RTSAN_WR_PULL, 0, 5000, i, 0);
	end = pair.w->now_ns + PAIR_LIMIT;
	while (nb_done < 100) {
		struct san_pdl_conn *c = pair_conn(true);
		struct san_tl_conn *t = &san_core_tl(pair.w->node[0].core)->conns[c->slot];

		assert_true(pair.w->now_ns < end);
		world_step(pair.w);
		assert_true(c->pcb.inflight <= 10);
		assert_true(t->nb_msgs <= 5);
		high_pkts = RTE_MAX(high_pkts, c->pcb.inflight);
		high_msgs = RTE_MAX(high_msgs, t->nb_msgs);
		while (san_ulp_cq_poll(pair.w->qp[pair.qa].send_cq, &pair.wc, 1) == 1) {
			assert_int_equal(pair.wc.status, SAN_ST_OK);
			nb_done++;
		}
	}
	assert_int_equal(high_msgs, 5);
	assert_true(high_pkts >= 9);
}

/* RT-9: delay halves the window and raises the RTO; without it both recover. */
PAIR_CASE(sim_limits__congestion_and_relief)
{
	uint32_t before, during, after;
	uint64_t rto_before, rto_during, rto_after;
	struct san_pdl_conn *c;

	pair.conf.link.mbps = 40000;
	pair.conf.link.delay_ns = 5000;
	pair_open(1 << 20);
	c = pair_conn(true);
	for (uint32_t i = 0; i < 20; i++)
		pair_do(true, RTSAN_WR_PUSH, 0, 200000, i, RTSAN_WR_UNSOLICITED);
	before = san_pdl_cc_window(&c->cc);
	rto_before = c->rtt.rto_ns;
	pair.w->node[1].link.delay_ns = 1000 * SAN_NS_PER_US;
	for (uint32_t i = 0; i < 20; i++)
		pair_do(true, RTSAN_WR_PUSH, 0, 200000, i, RTSAN_WR_UNSOLICITED);
	during = san_pdl_cc_window(&c->cc);
	rto_during = c->rtt.rto_ns;
	pair.w->node[1].link.delay_ns = 5000;
	for (uint32_t i = 0; i < 200; i++)
		pair_do(true, RTSAN_WR_PUSH, 0, 200000, i, RTSAN_WR_UNSOLICITED);
	after = san_pdl_cc_window(&c->cc);
	rto_after = c->rtt.rto_ns;
	assert_true(during * 2 <= before);
	assert_true(rto_during > rto_before);
	assert_true(after >= 2 * during);
	assert_true(rto_after < rto_during);
}

#define PUSH_LEN    100000
#define PUSH_DEPTH  16
#define NB_WARM     20
#define NB_MEASURED 400

/* Payload bits per microsecond in steady state; so much is posted that no loss stalls it. */
static uint64_t
goodput_mbps(void)
{
	uint64_t start_ns = 0;

	for (uint32_t i = 0; i < NB_WARM + NB_MEASURED + PUSH_DEPTH; i++) {
		if (i >= PUSH_DEPTH)
			assert_int_equal(pair_wait(true, false), SAN_ST_OK);
		if (i == NB_WARM + PUSH_DEPTH)
			start_ns = pair.w->now_ns;
		if (i < NB_WARM + NB_MEASURED)
			pair_post(true, RTSAN_WR_PUSH, 0, PUSH_LEN, i, RTSAN_WR_UNSOLICITED);
	}
	return NB_MEASURED * PUSH_LEN * 8000ULL / (pair.w->now_ns - start_ns);
}

static void
tune_link(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->pdl.link_mbps = pair.conf.link.mbps;
}

static void
open_link(uint32_t mbps, uint64_t delay_ns)
{
	pair.conf.link.mbps = mbps;
	pair.conf.link.delay_ns = delay_ns;
	pair.conf.tune = tune_link;
	pair_open(1 << 20);
	pair.w->check = false;
}

/* RT-9: a round trip of 16 target delays is not congestion on a long path, nor on a slow link. */
PAIR_CASE(sim_limits__long_path)
{
	open_link(1000, 200 * SAN_NS_PER_US);
	assert_true(goodput_mbps() > 800);
}

/* RT-9: a path that becomes that long reduces the window, but not forever. */
PAIR_CASE(sim_limits__path_becomes_long)
{
	open_link(1000, 5 * SAN_NS_PER_US);
	assert_true(goodput_mbps() > 800);
	pair.w->node[0].link.delay_ns = 200 * SAN_NS_PER_US;
	pair.w->node[1].link.delay_ns = 200 * SAN_NS_PER_US;
	assert_true(goodput_mbps() > 800);
}

/* RT-22: losses without delay cost little more than the lost packets. */
PAIR_CASE(sim_limits__random_loss)
{
	uint64_t clean, lossy;

	for (uint64_t seed = 1; seed <= 3; seed++) {
		open_link(40000, 5 * SAN_NS_PER_US);
		san_prng_seed(&pair.w->net.prng, seed);
		clean = goodput_mbps();
		pair.w->node[1].link.drop_ppm = 50000;
		lossy = goodput_mbps();
		assert_true(clean > 34000);
		assert_true(lossy * 100 > clean * 85);
		pair_close();
	}
}

/* RT-28: one path (UDP source port) is bad; the connection leaves it. */
static int
drop_port(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	const uint16_t *bad = arg;
	struct san_wire_pkt pkt;

	if (from != 0 || !world_parse(m, &pkt))
		return 1;
	if (pkt.src_port != *bad || pkt.op == SAN_OP_CM)
		return 1;
	return san_prng_below(&w->net.prng, 100) < 60 ? 0 : 1;
}

PAIR_CASE(sim_limits__path_change)
{
	uint16_t bad;

	pair_open(1 << 20);
	bad = pair_conn(true)->path.src_port;
	pair_filter(drop_port, &bad);
	for (unsigned int i = 0; i < 50; i++)
		pair_do(true, RTSAN_WR_PUSH, 0, 100000, i, 0);
	assert_true(san_core_pdl(pair.w->node[0].core)->stats.nb_path_changes > 0);
	assert_int_not_equal(pair_conn(true)->path.src_port, bad);
}

/* RT-22: losses are repaired before the timeout: by the bitmap, at the tail by the probe. */
static int
drop_sometimes(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	uint32_t *n = arg;

	if (from != 0 || m->pkt_len < 500)
		return 1;
	return ++*n % 50 == 0 ? 0 : 1;
}

PAIR_CASE(sim_limits__timeout_is_the_last_resort)
{
	struct san_pdl *pdl;
	uint32_t n = 0;

	pair.conf.link.mbps = 40000;
	pair_open(1 << 20);
	pair_filter(drop_sometimes, &n);
	for (unsigned int i = 0; i < 100; i++)
		pair_do(true, RTSAN_WR_PUSH, 0, 50000 + i, i, RTSAN_WR_UNSOLICITED);
	pdl = san_core_pdl(pair.w->node[0].core);
	assert_true(pdl->stats.nb_fast_rtx > 20);
	assert_true(pdl->stats.nb_tlp > 0);
	assert_true(pdl->stats.nb_rto * 10 < pdl->stats.nb_fast_rtx);
}

/* Without losses and delays nothing is sent twice, whatever is in flight. */
PAIR_CASE(sim_limits__clean_link)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL};
	const struct san_pdl *pdl;

	pair.conf.link.mbps = 10000;
	pair_open(1 << 20);
	for (uint32_t i = 0; i < 400; i++)
		pair_post(i % 4 < 2, ops[i % 2], 0, 3000 * (i % 20), i, 0);
	for (uint32_t i = 0; i < 400; i++)
		assert_int_equal(pair_wait(i % 4 < 2, false), SAN_ST_OK);
	for (uint32_t side = 0; side < 2; side++) {
		pdl = san_core_pdl(pair.w->node[side].core);
		assert_int_equal(pdl->stats.nb_rtx, 0);
		assert_int_equal(pdl->stats.nb_rto + pdl->stats.nb_fast_rtx + pdl->stats.nb_tlp, 0);
	}
}

/*
 * RT-7, RT-22: while an lcore does not get the CPU, nothing is lost. It resends nothing, and its
 * peer only a few packets for each timeout; the connection continues.
 */
PAIR_CASE(sim_limits__silence_is_no_loss)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL};
	/* timeouts begin at 1 ms or more and double, which gives their number */
	static const struct {
		uint64_t ns;
		uint32_t nb_rto;
	} pauses[] = {{50 * SAN_NS_PER_MS, 6}, {300 * SAN_NS_PER_MS, 9}};
	const struct san_pdl_stats *stats[2];

	UNIT_EACH(r, pauses) {
		pair.conf.link.mbps = 10000;
		pair.conf.link.delay_ns = 100 * SAN_NS_PER_US; /* so that much is in flight */
		pair_open(1 << 20);
		for (uint32_t i = 0; i < 100; i++)
			pair_post(i % 4 < 2, ops[i % 2], 0, 100000, i, 0);
		world_run_for(pair.w, 3 * SAN_NS_PER_MS);
		pair.w->node[1].paused_until_ns = pair.w->now_ns + r->ns;
		for (uint32_t i = 0; i < 100; i++)
			assert_int_equal(pair_wait(i % 4 < 2, false), SAN_ST_OK);
		for (uint32_t i = 0; i < 2; i++)
			stats[i] = &san_core_pdl(pair.w->node[i].core)->stats;
		assert_in_range(stats[0]->nb_rtx, r->nb_rto, 16 * r->nb_rto);
		assert_true(stats[0]->nb_rtx <= stats[0]->nb_rto + stats[0]->nb_tlp);
		assert_in_range(stats[0]->nb_tlp, 0, SAN_WIN_MAX * 4);
		assert_int_equal(stats[1]->nb_rtx + stats[1]->nb_rto + stats[1]->nb_tlp, 0);
		pair_close();
	}
}

/* An application that sleeps until the deadline must not miss requests that may be sent now. */
PAIR_CASE(sim_limits__woken_requests_are_work)
{
	struct san_core *core;

	pair.param.max_txn = 1;
	pair_open(4096);
	core = pair.w->node[0].core;
	for (int i = 0; i < 2; i++)
		pair_post(true, RTSAN_WR_PUSH, 0, 100, i, 0);
	world_step(pair.w);
	assert_true(san_core_deadline_ns(core) > pair.w->now_ns);
	san_tl_ulp_room(san_core_ulp(core), pair_conn(true)->slot);
	assert_int_equal(san_core_deadline_ns(core), 0);
	pair_done(true, 2);
}

#define LIVES 250

/*
 * RT-1, RT-24: connections are opened and closed repeatedly, by both ends, far more often in a
 * second than there are slots; none is refused.
 */
PAIR_CASE(sim_limits__connections_without_end)
{
	uint32_t qa, qb;
	struct world *w;
	uint64_t begin;

	pair.conf.max_conns = 2;
	w = world_create(&pair.conf);
	begin = w->now_ns;
	for (uint32_t i = 0; i < LIVES; i++) {
		world_connect(w, 0, 1, &pair.param, &pair.param, &qa, &qb);
		world_disconnect(w, qa, qb);
		world_qp_destroy(w, qa);
		world_qp_destroy(w, qb);
	}
	assert_true(w->now_ns - begin < SAN_NS_PER_S);
	world_destroy(w);
}
