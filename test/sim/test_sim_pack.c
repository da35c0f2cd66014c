/* SPDX-License-Identifier: BSD-3-Clause */
/* Small requests posted together share packets, and behave the same otherwise (RT-34). */

#include "pair.h"
#include "unit.h"

#define SIZE  64
#define BATCH 16
#define LEN   65536

/* Packets sent by node 0. */
struct seen {
	uint32_t nb_packed, nb_alone, nb_unpack;
};

static int
look(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct seen *s = arg;
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);
	struct san_wire_pkt p;
	struct san_wire_ack ack;

	(void)to;
	if (san_wire_parse(copy, SAN_WIRE_PORT, &p, &ack) == SAN_DROP_NONE) {
		s->nb_packed += from == 0 && p.op == SAN_OP_PUSH_PACKED;
		s->nb_alone += from == 0 && p.op == SAN_OP_PUSH_UNSLCTD_DATA;
		s->nb_unpack += p.op == SAN_OP_NACK && (p.flags & SAN_F_UNPACK);
	}
	rte_pktmbuf_free(copy);
	return 1;
}

/* Post *n* requests of SIZE bytes at once: sends, pushes and pushes with immediate in turn. */
static void
post_batch(struct pair *p, uint32_t first, uint32_t n, uint32_t bad)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_SEND, RTSAN_WR_PUSH, RTSAN_WR_PUSH_IMM};
	struct san_ulp_wr wr[BATCH];
	uint32_t i, at;

	for (i = 0; i < n; i++) {
		at = (first + i) * SIZE % LEN;
		world_pattern(p->a + at, SIZE, first + i);
		world_wr(&wr[i], ops[(first + i) % 3], p->a + at, SIZE,
			 (uint64_t)(uintptr_t)(p->b + at), i == bad ? p->kb + 1 : p->kb, first + i,
			 0);
		wr[i].imm = first + i;
	}
	assert_int_equal(san_core_post(p->w->node[0].core, p->w->qp[p->qa].qp, wr, n, p->w->now_ns),
			 n);
}

/* Receives for sends and pushes with immediate, each with its own place. */
static void
post_recvs(struct pair *p, uint32_t first, uint32_t n)
{
	uint32_t i;

	for (i = first; i < first + n; i++)
		if (i % 3 != 1)
			world_post_recv(p->w, p->qb, p->b + i * SIZE % LEN, SIZE, i);
}

static void
collect(struct pair *p, uint32_t first, uint32_t n)
{
	struct san_ulp_wc wc;
	uint32_t i;

	for (i = first; i < first + n; i++) {
		assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
		assert_int_equal(wc.wr_id, i);
		if (i % 3 != 1) {
			assert_int_equal(pair_wait(p, false, true, &wc), SAN_ST_OK);
			assert_int_equal(wc.wr_id, i);
			assert_int_equal(wc.byte_len, SIZE);
			assert_int_equal(wc.has_imm, i % 3 == 2);
			assert_true(i % 3 != 2 || wc.imm == i);
		}
		assert_true(world_pattern_ok(p->b + i * SIZE % LEN, SIZE, i));
	}
}

static void
open_seen(struct pair *p, const struct world_conf *conf, bool ordered, struct seen *s)
{
	pair_open(p, conf, ordered, LEN);
	memset(s, 0, sizeof(*s));
	p->w->filter = look;
	p->w->filter_arg = s;
}

UNIT_CASE(sim_pack__sixteen_in_one)
{
	struct world_conf conf;
	struct seen s;
	struct pair p;
	int ordered;

	world_conf_default(&conf);
	conf.mtu = 4096;
	for (ordered = 0; ordered < 2; ordered++) {
		open_seen(&p, &conf, ordered, &s);
		post_recvs(&p, 0, 2 * BATCH);
		post_batch(&p, 0, BATCH, UINT32_MAX);
		collect(&p, 0, BATCH);
		assert_int_equal(s.nb_packed, 1);
		assert_int_equal(s.nb_alone, 0);
		post_batch(&p, BATCH, 1, UINT32_MAX); /* one request does not wait */
		collect(&p, BATCH, 1);
		assert_int_equal(s.nb_packed, 1);
		assert_int_equal(s.nb_alone, 1);
		pair_close(&p);
	}
}

/* With loss, duplicates, reordering and corruption: exactly once and in order. */
UNIT_CASE(sim_pack__bad_link)
{
	struct world_conf conf;
	struct pair p;
	uint32_t seed, i;
	struct seen s;

	for (seed = 1; seed <= 6; seed++) {
		world_conf_bad_link(&conf, seed);
		conf.ipv6 = seed % 2;
		open_seen(&p, &conf, true, &s);
		post_recvs(&p, 0, 9 * BATCH);
		for (i = 0; i < 9; i++)
			post_batch(&p, i * BATCH, BATCH, UINT32_MAX);
		collect(&p, 0, 9 * BATCH);
		assert_true(s.nb_packed >= 9);
		pair_close(&p);
	}
}

static void
tune_features(struct san_core_conf *conf, uint32_t node, void *arg)
{
	if (node == *(uint32_t *)arg)
		conf->cm.features = 0;
}

/* Either side can disable it. */
UNIT_CASE(sim_pack__one_side_does_not)
{
	struct world_conf conf;
	struct seen s;
	struct pair p;
	uint32_t node;

	world_conf_default(&conf);
	conf.tune = tune_features;
	conf.tune_arg = &node;
	for (node = 0; node < 2; node++) {
		open_seen(&p, &conf, true, &s);
		post_recvs(&p, 0, BATCH);
		post_batch(&p, 0, BATCH, UINT32_MAX);
		collect(&p, 0, BATCH);
		assert_int_equal(s.nb_packed, 0);
		assert_int_equal(s.nb_alone, BATCH);
		pair_close(&p);
	}
}

UNIT_CASE(sim_pack__missing_receive)
{
	struct world_conf conf;
	struct seen s;
	struct pair p;

	world_conf_default(&conf);
	open_seen(&p, &conf, true, &s);
	post_recvs(&p, 0, 9);
	post_batch(&p, 0, BATCH, UINT32_MAX);
	collect(&p, 0, 9); /* as far as there are receives */
	assert_int_equal(s.nb_unpack, 1);
	post_recvs(&p, 9, BATCH - 9);
	collect(&p, 9, BATCH - 9);
	assert_int_equal(s.nb_packed, 1);
	pair_close(&p);
}

/* The completion queue is full until the application polls it. */
UNIT_CASE(sim_pack__full_cq)
{
	struct world_conf conf;
	struct seen s;
	struct pair p;
	uint32_t i;

	world_conf_default(&conf);
	conf.rq_depth = 8; /* 16 completions */
	open_seen(&p, &conf, true, &s);
	for (i = 0; i < 18; i += 6) { /* 4 receives each */
		post_recvs(&p, i, 6);
		post_batch(&p, i, 6, UINT32_MAX);
		world_run_for(p.w, SAN_NS_PER_MS);
	}
	post_recvs(&p, 18, 12);
	post_batch(&p, 18, 12, UINT32_MAX); /* 4 of them have room in the queue */
	world_run_for(p.w, SAN_NS_PER_MS);
	assert_int_equal(s.nb_unpack, 1);
	collect(&p, 0, 30);
	pair_close(&p);
}

/* RT-27: a wrong key in the middle; a send that is longer than its receive. */
UNIT_CASE(sim_pack__one_is_wrong)
{
	struct world_conf conf;
	struct san_ulp_wc wc;
	struct seen s;
	struct pair p;
	uint32_t i;

	world_conf_default(&conf);
	open_seen(&p, &conf, true, &s);
	post_recvs(&p, 0, 9);
	post_batch(&p, 0, 9, 4);
	for (i = 0; i < 9; i++) {
		assert_int_equal(pair_wait(&p, true, false, &wc),
				 i == 4 ? SAN_ST_ACCESS : SAN_ST_OK);
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(s.nb_unpack, 1);
	assert_int_equal(san_core_tl(p.w->node[1].core)->stats.nb_refused, 1);
	for (i = 0; i < 9; i++)
		if (i % 3 != 1)
			assert_int_equal(pair_wait(&p, false, true, &wc), SAN_ST_OK);
	/* the third receive, for a send, is too short: only that send fails */
	for (i = 9; i < 18; i++)
		if (i % 3 != 1)
			world_post_recv(p.w, p.qb, p.b + i * SIZE, i == 12 ? SIZE - 1 : SIZE, i);
	post_batch(&p, 9, 9, UINT32_MAX);
	for (i = 9; i < 18; i++)
		assert_int_equal(pair_wait(&p, true, false, &wc),
				 i == 12 ? SAN_ST_LENGTH : SAN_ST_OK);
	for (i = 9; i < 18; i++) {
		if (i % 3 == 1)
			continue;
		assert_int_equal(pair_wait(&p, false, true, &wc),
				 i == 12 ? RTSAN_WC_LOC_LENGTH : SAN_ST_OK);
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(s.nb_unpack, 2);
	pair_close(&p);
}

/* An unsignaled request, and one that ends a run, complete as they do alone. */
UNIT_CASE(sim_pack__pulls_between)
{
	struct world_conf conf;
	struct san_ulp_wc wc;
	struct pair p;
	struct seen s;
	uint32_t i;

	world_conf_default(&conf);
	open_seen(&p, &conf, true, &s);
	for (i = 0; i < 12; i++)
		pair_post(&p, true, i % 4 == 3 ? RTSAN_WR_PULL : RTSAN_WR_PUSH, i * SIZE, SIZE, i,
			  0);
	for (i = 0; i < 12; i++) {
		assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(s.nb_packed, 3);
	assert_int_equal(s.nb_alone, 0);
	pair_close(&p);
}
