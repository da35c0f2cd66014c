/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Go-back-N, what selective recovery is compared with: whole cores deliver
 * everything once, in order, with its bytes; only the way losses are made good differs.
 */

#include "pair.h"
#include "san_prng.h"

#define NB    96    /* operations per side */
#define CHUNK 20000 /* bytes per operation at most */
#define LEN   ((uint64_t)2 * NB * CHUNK)

/* 32 credits and a fixed timeout of 5 ms, as eRPC has them. */
static void
tune(struct san_core_conf *conf, uint32_t node, void *arg)
{
	const enum san_pdl_recovery *recovery = arg;

	(void)node;
	conf->pdl.recovery = (uint8_t)*recovery;
	conf->pdl.cc = &san_pdl_cc_fixed;
	conf->pdl.cc_conf.window_init = 32 * SAN_CC_ONE;
	conf->pdl.rto_init_ns = 5 * SAN_NS_PER_MS;
	conf->pdl.rto_min_ns = 5 * SAN_NS_PER_MS;
	conf->pdl.rto_max_ns = 5 * SAN_NS_PER_MS;
}

static void
lossy(struct world_conf *conf, enum san_pdl_recovery *recovery, uint64_t seed)
{
	world_conf_default(conf);
	conf->seed = seed;
	conf->link.mbps = 10000;
	conf->link.drop_ppm = 20000;
	conf->link.reorder_ppm = 50000;
	conf->tune = tune;
	conf->tune_arg = recovery;
}

/* One operation: its region is the same at both ends. */
struct op {
	enum san_ulp_op op;
	uint32_t len;
	uint8_t way;
};

struct side {
	struct op op[NB];
	uint8_t *own, *other; /* its regions, here and there */
	uint32_t nb_done, nb_rcvd;
};

static bool
is_atomic(enum san_ulp_op op)
{
	return op == SAN_WR_FETCH_ADD || op == SAN_WR_CMP_SWAP;
}

static bool
takes_receive(enum san_ulp_op op)
{
	return op == SAN_WR_SEND || op == SAN_WR_PUSH_IMM;
}

static uint64_t
mark(const struct side *s, uint32_t i)
{
	return s->op[i].len * 1000ULL + i;
}

static void
draw(struct side *s, struct san_prng *g, bool ordered)
{
	static const enum san_ulp_op ops[] = {SAN_WR_PUSH, SAN_WR_PULL, SAN_WR_FETCH_ADD,
					      SAN_WR_CMP_SWAP, SAN_WR_SEND, SAN_WR_PUSH_IMM};
	static const uint8_t ways[] = {0, SAN_WR_SOLICITED, SAN_WR_UNSOLICITED};
	uint32_t i;

	for (i = 0; i < NB; i++) {
		struct op *o = &s->op[i];
		uint8_t *src;

		/* which receive takes which send is promised on ordered connections only */
		o->op = ops[san_prng_below(g, ordered ? 6 : 4)];
		o->len = is_atomic(o->op) ? 8 : 1 + san_prng_below(g, CHUNK);
		o->way = is_atomic(o->op) || o->op == SAN_WR_PULL ? 0 : ways[san_prng_below(g, 3)];
		src = (o->op == SAN_WR_PULL ? s->other : s->own) + i * CHUNK;
		if (is_atomic(o->op))
			*(uint64_t *)(s->other + i * CHUNK) = mark(s, i);
		else
			world_pattern(src, o->len, mark(s, i));
	}
}

static void
post(struct pair *p, struct side *s, bool from_a)
{
	uint32_t i;

	for (i = 0; i < NB; i++) {
		struct op *o = &s->op[i];

		if (o->op == SAN_WR_SEND)
			world_post_recv(p->w, from_a ? p->qb : p->qa, s->other + i * CHUNK, CHUNK,
					i);
		else if (o->op == SAN_WR_PUSH_IMM)
			world_post_recv(p->w, from_a ? p->qb : p->qa, NULL, 0, i);
	}
	for (i = 0; i < NB; i++) {
		struct op *o = &s->op[i];
		struct san_ulp_wr wr;

		world_wr(&wr, o->op, s->own + i * CHUNK, o->len,
			 (uint64_t)(uintptr_t)(s->other + i * CHUNK), from_a ? p->kb : p->ka, i,
			 o->way);
		wr.imm = i;
		wr.operand = o->op == SAN_WR_CMP_SWAP ? mark(s, i) : 5;
		wr.swap = 7;
		world_post(p->w, from_a ? p->qa : p->qb, &wr);
	}
}

/* Each receive by its turn, with the bytes that were sent for it. */
static void
check_receive(struct side *s, const struct san_ulp_wc *wc)
{
	const struct op *o;

	while (!takes_receive(s->op[s->nb_rcvd].op))
		s->nb_rcvd++;
	o = &s->op[s->nb_rcvd];
	assert_int_equal(wc->status, SAN_ST_OK);
	assert_int_equal(wc->wr_id, s->nb_rcvd);
	assert_int_equal(wc->byte_len, o->len);
	if (o->op == SAN_WR_PUSH_IMM)
		assert_int_equal(wc->imm, s->nb_rcvd);
	assert_true(world_pattern_ok(s->other + s->nb_rcvd * CHUNK, o->len, mark(s, s->nb_rcvd)));
	s->nb_rcvd++;
}

static void
poll_side(struct pair *p, struct side *s, bool from_a, bool ordered)
{
	struct world_qp *own = &p->w->qp[from_a ? p->qa : p->qb];
	struct world_qp *other = &p->w->qp[from_a ? p->qb : p->qa];
	struct san_ulp_wc wc;

	while (san_ulp_cq_poll(own->send_cq, &wc, 1) == 1) {
		assert_int_equal(wc.status, SAN_ST_OK);
		if (ordered)
			assert_int_equal(wc.wr_id, s->nb_done);
		s->nb_done++;
	}
	while (san_ulp_cq_poll(other->recv_cq, &wc, 1) == 1)
		check_receive(s, &wc);
}

/* Everything happened, exactly once. */
static void
check_all(struct side *s)
{
	uint32_t i;

	assert_int_equal(s->nb_done, NB);
	for (; s->nb_rcvd < NB; s->nb_rcvd++)
		assert_false(takes_receive(s->op[s->nb_rcvd].op));
	for (i = 0; i < NB; i++) {
		const uint8_t *own = s->own + i * CHUNK, *other = s->other + i * CHUNK;
		const struct op *o = &s->op[i];

		if (is_atomic(o->op)) {
			assert_int_equal(*(const uint64_t *)own, mark(s, i));
			assert_int_equal(*(const uint64_t *)other,
					 o->op == SAN_WR_CMP_SWAP ? 7 : mark(s, i) + 5);
		} else {
			assert_true(world_pattern_ok(own, o->len, mark(s, i)));
			assert_true(world_pattern_ok(other, o->len, mark(s, i)));
		}
	}
}

/* Both sides at once; returns how long it took. */
static uint64_t
mix(struct pair *p, bool ordered)
{
	static struct side side[2];
	struct san_prng g;
	uint64_t start;

	memset(side, 0, sizeof(side));
	side[0].own = p->a;
	side[0].other = p->b;
	side[1].own = p->b + LEN / 2;
	side[1].other = p->a + LEN / 2;
	san_prng_seed(&g, 5);
	draw(&side[0], &g, ordered);
	draw(&side[1], &g, ordered);
	start = p->w->now_ns;
	post(p, &side[0], true);
	post(p, &side[1], false);
	while (side[0].nb_done < NB || side[1].nb_done < NB) {
		assert_true(p->w->now_ns < start + PAIR_LIMIT);
		world_step(p->w);
		poll_side(p, &side[0], true, ordered);
		poll_side(p, &side[1], false, ordered);
	}
	start = p->w->now_ns - start;
	world_run_for(p->w, SAN_NS_PER_S); /* nothing comes twice */
	poll_side(p, &side[0], true, ordered);
	poll_side(p, &side[1], false, ordered);
	check_all(&side[0]);
	check_all(&side[1]);
	return start;
}

/* What only one of the two ways has; by both nodes. */
static void
check_way(struct pair *p, enum san_pdl_recovery recovery)
{
	uint64_t nb_early = 0, nb_rtx = 0, nb_rto = 0, nb_order = 0;
	uint64_t drops[SAN_DROP_MAX];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		const struct san_pdl_stats *stats = &san_core_pdl(p->w->node[i].core)->stats;

		san_core_drops(p->w->node[i].core, drops);
		nb_early += stats->nb_early + stats->nb_tlp;
		nb_rtx += stats->nb_rtx;
		nb_rto += stats->nb_rto;
		nb_order += drops[SAN_DROP_ORDER];
		assert_int_equal(stats->nb_failed, 0);
	}
	assert_true(nb_rtx > 10);
	if (recovery == SAN_RECOVER_GO_BACK_N) {
		assert_int_equal(nb_early, 0);
		assert_true(nb_rto > 10 && nb_order > 10);
	} else {
		assert_true(nb_early > 10);
		assert_int_equal(nb_order, 0);
	}
}

static uint64_t
run(enum san_pdl_recovery recovery, uint64_t seed, bool ordered)
{
	struct world_conf conf;
	struct pair p;
	uint64_t took;

	lossy(&conf, &recovery, seed);
	pair_open(&p, &conf, ordered, LEN);
	took = mix(&p, ordered);
	check_way(&p, recovery);
	pair_close(&p);
	return took;
}

static void
sim_gbn__every_kind_both_ways(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 3; seed++) {
		run(SAN_RECOVER_GO_BACK_N, seed, true);
		run(SAN_RECOVER_GO_BACK_N, seed, false);
	}
}

/* The same work over the same link: what early recovery is good for (RT-22). */
static void
sim_gbn__selective_is_faster(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 11; seed <= 13; seed++) {
		uint64_t gbn = run(SAN_RECOVER_GO_BACK_N, seed, true);
		uint64_t sel = run(SAN_RECOVER_SELECTIVE, seed, true);

		print_message("# seed %lu: go-back-N %lu us, selective %lu us\n", seed, gbn / 1000,
			      sel / 1000);
		assert_true(gbn > 2 * sel);
	}
}

/* Whatever the link does, the target's tl sees each PSN in order: it never holds anything. */
static void
sim_gbn__tl_sees_no_gap(void **state)
{
	enum san_pdl_recovery recovery = SAN_RECOVER_GO_BACK_N;
	struct world_conf conf;
	struct san_ulp_wc wc;
	const struct san_tl *tl;
	uint32_t i, nb_done = 0;
	struct pair p;
	uint64_t end;

	(void)state;
	lossy(&conf, &recovery, 21);
	pair_open(&p, &conf, true, LEN);
	tl = san_core_tl(p.w->node[1].core);
	for (i = 0; i < NB; i++)
		pair_post(&p, true, SAN_WR_PUSH, i * CHUNK, CHUNK, i, SAN_WR_UNSOLICITED);
	end = p.w->now_ns + PAIR_LIMIT;
	while (nb_done < NB) {
		assert_true(p.w->now_ns < end);
		world_step(p.w);
		assert_int_equal(tl->nb_held, 0);
		while (san_ulp_cq_poll(p.w->qp[p.qa].send_cq, &wc, 1) == 1) {
			assert_int_equal(wc.status, SAN_ST_OK);
			assert_int_equal(wc.wr_id, nb_done++);
		}
	}
	assert_int_equal(tl->cam.nb_inserts, 0); /* RT-19 */
	check_way(&p, recovery);
	pair_close(&p);
}

static void
tune_scarce(struct san_core_conf *conf, uint32_t node, void *arg)
{
	(void)node;
	(void)arg;
	conf->pdl.recovery = SAN_RECOVER_GO_BACK_N;
	conf->tl.max_rxns = 1; /* raised to what the connections claim */
}

/*
 * Requests are refused for lack of records, which only pull data frees: with room for
 * one packet, what stands behind a refused request must not take it.
 */
static void
sim_gbn__refused_requests_leave_room(void **state)
{
	struct san_cm_param param;
	struct world_conf conf;
	struct san_ulp_wc wc;
	struct pair p;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < 8; i++) {
		world_conf_bad_link(&conf, 11 + i);
		conf.max_conns = 1;
		conf.tune = tune_scarce;
		world_param_default(&param);
		param.data_win = param.first_win = 2;
		pair_open_param(&p, &conf, &param, &param, 3 * CHUNK);
		for (k = 0; k < 12; k++)
			pair_post(&p, k % 2 == 0, SAN_WR_PULL, 0, CHUNK, k, 0);
		pair_post(&p, true, SAN_WR_PUSH, CHUNK, CHUNK, k, SAN_WR_UNSOLICITED);
		pair_post(&p, false, SAN_WR_PUSH, 2 * CHUNK, CHUNK, k, SAN_WR_UNSOLICITED);
		for (k = 0; k < 14; k++)
			assert_int_equal(pair_wait(&p, k % 2 == 0, false, &wc), SAN_ST_OK);
		pair_close(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_gbn__every_kind_both_ways),
		cmocka_unit_test(sim_gbn__selective_is_faster),
		cmocka_unit_test(sim_gbn__tl_sees_no_gap),
		cmocka_unit_test(sim_gbn__refused_requests_leave_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
