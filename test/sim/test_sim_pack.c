/* SPDX-License-Identifier: BSD-3-Clause */
/* Small requests posted together share packets, and behave the same otherwise (RT-34). */

#include "pair.h"

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
	struct san_wire_pkt pkt;
	struct san_wire_ack ack;

	if (san_wire_parse(copy, SAN_WIRE_PORT, &pkt, &ack) == SAN_DROP_NONE) {
		s->nb_packed += from == 0 && pkt.op == SAN_OP_PUSH_PACKED;
		s->nb_alone += from == 0 && pkt.op == SAN_OP_PUSH_UNSLCTD_DATA;
		s->nb_unpack += pkt.op == SAN_OP_NACK && (pkt.flags & SAN_F_UNPACK);
	}
	rte_pktmbuf_free(copy);
	return 1;
}

/* Post *n* requests of SIZE bytes at once: sends, pushes and pushes with immediate in turn. */
static void
post_batch(uint32_t first, uint32_t n, uint32_t bad)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_SEND, RTSAN_WR_PUSH, RTSAN_WR_PUSH_IMM};
	struct san_ulp_wr wr[BATCH];
	uint32_t at;

	for (uint32_t i = 0; i < n; i++) {
		at = (first + i) * SIZE % LEN;
		world_pattern(pair.a + at, SIZE, first + i);
		world_wr(&wr[i], ops[(first + i) % 3], pair.a + at, SIZE,
			 (uint64_t)(uintptr_t)(pair.b + at), pair.kb + (i == bad), first + i, 0);
		wr[i].imm = first + i;
	}
	assert_int_equal(san_core_post(pair.w->node[0].core, pair.w->qp[pair.qa].qp, wr, n,
				       pair.w->now_ns),
			 n);
}

/* Receives for sends and pushes with immediate, each with its own place. */
static void
post_recvs(uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++)
		if (i % 3 != 1)
			world_post_recv(pair.w, pair.qb, pair.b + i * SIZE % LEN, SIZE, i);
}

static void
collect(uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++) {
		pair_wait_for(true, false, SAN_ST_OK, i);
		if (i % 3 != 1) {
			pair_wait_for(false, true, SAN_ST_OK, i);
			assert_int_equal(pair.wc.byte_len, SIZE);
			assert_int_equal(pair.wc.has_imm, i % 3 == 2);
			assert_true(i % 3 != 2 || pair.wc.imm == i);
		}
		assert_true(world_pattern_ok(pair.b + i * SIZE % LEN, SIZE, i));
	}
}

static void
open_seen(bool ordered, struct seen *s)
{
	pair.param.ordered = ordered;
	pair_open(LEN);
	memset(s, 0, sizeof(*s));
	pair_filter(look, s);
}

PAIR_CASE(sim_pack__sixteen_in_one)
{
	struct seen s;

	pair.conf.mtu = 4096;
	for (int ordered = 0; ordered < 2; ordered++) {
		open_seen(ordered, &s);
		post_recvs(0, 2 * BATCH);
		post_batch(0, BATCH, UINT32_MAX);
		collect(0, BATCH);
		assert_int_equal(s.nb_packed, 1);
		assert_int_equal(s.nb_alone, 0);
		post_batch(BATCH, 1, UINT32_MAX); /* one request does not wait */
		collect(BATCH, 1);
		assert_int_equal(s.nb_packed, 1);
		assert_int_equal(s.nb_alone, 1);
		pair_close();
	}
}

/* With loss, duplicates, reordering and corruption: exactly once and in order. */
PAIR_CASE(sim_pack__bad_link)
{
	struct seen s;

	for (uint32_t seed = 1; seed <= 6; seed++) {
		world_conf_bad_link(&pair.conf, seed);
		pair.conf.ipv6 = seed % 2;
		open_seen(true, &s);
		post_recvs(0, 9 * BATCH);
		for (uint32_t i = 0; i < 9; i++)
			post_batch(i * BATCH, BATCH, UINT32_MAX);
		collect(0, 9 * BATCH);
		assert_true(s.nb_packed >= 9);
		pair_close();
	}
}

static void
tune_features(struct san_core_conf *conf, uint32_t node, void *arg)
{
	if (node == *(uint32_t *)arg)
		conf->cm.features = 0;
}

/* Either side can disable it. */
PAIR_CASE(sim_pack__one_side_does_not)
{
	struct seen s;
	uint32_t node;

	pair.conf.tune = tune_features;
	pair.conf.tune_arg = &node;
	for (node = 0; node < 2; node++) {
		open_seen(true, &s);
		post_recvs(0, BATCH);
		post_batch(0, BATCH, UINT32_MAX);
		collect(0, BATCH);
		assert_int_equal(s.nb_packed, 0);
		assert_int_equal(s.nb_alone, BATCH);
		pair_close();
	}
}

PAIR_CASE(sim_pack__missing_receive)
{
	struct seen s;

	open_seen(true, &s);
	post_recvs(0, 9);
	post_batch(0, BATCH, UINT32_MAX);
	collect(0, 9); /* as far as there are receives */
	assert_int_equal(s.nb_unpack, 1);
	post_recvs(9, BATCH - 9);
	collect(9, BATCH - 9);
	assert_int_equal(s.nb_packed, 1);
}

/* The completion queue is full until the application polls it. */
PAIR_CASE(sim_pack__full_cq)
{
	struct seen s;

	pair.conf.rq_depth = 8; /* 16 completions */
	open_seen(true, &s);
	for (uint32_t i = 0; i < 18; i += 6) { /* 4 receives each */
		post_recvs(i, 6);
		post_batch(i, 6, UINT32_MAX);
		world_run_for(pair.w, SAN_NS_PER_MS);
	}
	post_recvs(18, 12);
	post_batch(18, 12, UINT32_MAX); /* 4 of them have room in the queue */
	world_run_for(pair.w, SAN_NS_PER_MS);
	assert_int_equal(s.nb_unpack, 1);
	collect(0, 30);
}

/* RT-27: a wrong key in the middle; a send that is longer than its receive. */
PAIR_CASE(sim_pack__one_is_wrong)
{
	struct seen s;

	open_seen(true, &s);
	post_recvs(0, 9);
	post_batch(0, 9, 4);
	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(pair_wait(true, false), i == 4 ? SAN_ST_ACCESS : SAN_ST_OK);
		assert_int_equal(pair.wc.wr_id, i);
	}
	assert_int_equal(s.nb_unpack, 1);
	assert_int_equal(san_core_tl(pair.w->node[1].core)->stats.nb_refused, 1);
	for (uint32_t i = 0; i < 9; i++)
		if (i % 3 != 1)
			assert_int_equal(pair_wait(false, true), SAN_ST_OK);
	/* the third receive, for a send, is too short: only that send fails */
	for (uint32_t i = 9; i < 18; i++)
		if (i % 3 != 1)
			world_post_recv(pair.w, pair.qb, pair.b + i * SIZE, SIZE - (i == 12), i);
	post_batch(9, 9, UINT32_MAX);
	for (uint32_t i = 9; i < 18; i++)
		assert_int_equal(pair_wait(true, false), i == 12 ? SAN_ST_LENGTH : SAN_ST_OK);
	for (uint32_t i = 9; i < 18; i++) {
		if (i % 3 == 1)
			continue;
		assert_int_equal(pair_wait(false, true), i == 12 ? RTSAN_WC_LOC_LENGTH : SAN_ST_OK);
		assert_int_equal(pair.wc.wr_id, i);
	}
	assert_int_equal(s.nb_unpack, 2);
}

/* An unsignaled request, and one that ends a run, complete as they do alone. */
PAIR_CASE(sim_pack__pulls_between)
{
	struct seen s;

	open_seen(true, &s);
	for (uint32_t i = 0; i < 12; i++)
		pair_post(true, i % 4 == 3 ? RTSAN_WR_PULL : RTSAN_WR_PUSH, i * SIZE, SIZE, i, 0);
	for (uint32_t i = 0; i < 12; i++)
		pair_wait_for(true, false, SAN_ST_OK, i);
	assert_int_equal(s.nb_packed, 3);
	assert_int_equal(s.nb_alone, 0);
}
