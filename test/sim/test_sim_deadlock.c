/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RT-26: no deadlock with any amount of buffers above the minimum, whatever is lost. The proof is
 * in doc/deadlock.md; these tests try to break it.
 */

#include "pair.h"
#include "san_prng.h"

#define CHUNK 20000 /* bytes per operation: solicited by default, several packets */

/* Both sides post a random mix of operations at once; everything completes, in order if ordered. */
static void
mixed_both_ways(uint32_t nb_ops, uint64_t seed, bool ordered)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_SEND, RTSAN_WR_PUSH, RTSAN_WR_PULL,
						   RTSAN_WR_PUSH_IMM};
	struct san_prng g;
	uint64_t next[2] = {0, 0};

	san_prng_seed(&g, seed);
	for (uint32_t side = 0; side < 2; side++)
		for (uint32_t i = 0; i < nb_ops; i++)
			world_post_recv(pair.w, side ? pair.qa : pair.qb, pair.a + CHUNK, CHUNK, i);
	for (uint32_t i = 0; i < nb_ops; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			static const uint8_t ways[] = {0, RTSAN_WR_SOLICITED, RTSAN_WR_UNSOLICITED};

			pair_post(side, ops[san_prng_below(&g, RTE_DIM(ops))], 0,
				  san_prng_below(&g, CHUNK), i, ways[san_prng_below(&g, 3)]);
		}
	}
	for (uint32_t i = 0; i < nb_ops; i++) {
		for (uint32_t side = 0; side < 2; side++) {
			assert_int_equal(pair_wait(side, false), SAN_ST_OK);
			if (ordered) /* RT-14: completions in posting order */
				assert_int_equal(pair.wc.wr_id, next[side]++);
		}
	}
}

static void
small_windows(uint16_t win, bool bad, bool ordered)
{
	world_conf_default(&pair.conf);
	if (bad)
		world_conf_bad_link(&pair.conf, win);
	world_param_default(&pair.param);
	pair.param.ordered = ordered;
	pair.param.req_win = win;
	pair.param.data_win = win;
	pair.param.first_win = win;
	pair_open(3 * CHUNK);
	mixed_both_ways(60, win, ordered);
	pair_close();
}

PAIR_CASE(sim_deadlock__window_of_two_both_ways)
{
	small_windows(2, false, true);
	small_windows(2, true, true);
	small_windows(2, false, false);
	small_windows(2, true, false);
}

PAIR_CASE(sim_deadlock__mixes_on_a_bad_link)
{
	small_windows(64, true, true);
	small_windows(64, true, false);
}

static void
tune_minimum(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->tl.max_txns = 4;
	conf->tl.max_rxns = 3 * conf->pdl.max_conns + 2;
	conf->tl.max_held = 8;
	conf->tl.max_held_conn = 4;
	conf->tl.budget_bytes = 4096;
	conf->tl.expired_bytes = 4096;
	conf->tl.grant_bytes = 2048;
	conf->pdl.budget_pkts = 4;
}

PAIR_CASE(sim_deadlock__minimum_pools)
{
	for (int bad = 0; bad < 2; bad++) {
		world_conf_default(&pair.conf);
		if (bad)
			world_conf_bad_link(&pair.conf, 5);
		pair.conf.max_conns = 2;
		pair.conf.tune = tune_minimum;
		pair_open(3 * CHUNK);
		mixed_both_ways(40, 77, true);
		pair_close();
	}
}

static void
tune_one_record(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->tl.max_txns = 1;
	conf->ulp.pull_piece = 1000;
}

/*
 * A pull in pieces fails while its next piece waits for the only record. It does not need the
 * record any more, so the other connection must get it.
 */
PAIR_CASE(sim_deadlock__record_for_a_piece_that_is_off)
{
	struct san_ulp_wr wr;
	uint32_t qa, qb;

	pair.conf.max_conns = 2;
	pair.conf.tune = tune_one_record;
	pair_open(CHUNK);
	world_connect(pair.w, 0, 1, &pair.param, &pair.param, &qa, &qb);
	world_wr(&wr, RTSAN_WR_PULL, pair.a, 3000, (uint64_t)(uintptr_t)pair.b, pair.kb + 1, 1, 0);
	world_post(pair.w, pair.qa, &wr);
	world_wr(&wr, RTSAN_WR_PUSH, pair.a, 10, (uint64_t)(uintptr_t)pair.b, pair.kb, 2, 0);
	world_post(pair.w, qa, &wr);
	world_wait_ok(pair.w, qa, false, &pair.wc, SAN_NS_PER_S);
	assert_true(world_wait(pair.w, pair.qa, false, &pair.wc, 0));
	assert_int_not_equal(pair.wc.status, SAN_ST_OK);
	/* and it can get the record again when it has work */
	pair_do(true, RTSAN_WR_PUSH, 0, 10, 3, 0);
	world_disconnect(pair.w, qa, qb);
}

static void
tune_claims_only(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->tl.max_rxns = 1; /* raised to the number of records that the connections claim */
}

/*
 * RT-26: the pulls of both sides wait for records, that is until pull data is acknowledged. Pushes
 * behind them must not fill the window that the pull data needs.
 */
PAIR_CASE(sim_deadlock__pushes_behind_pulls_both_ways)
{
	static const uint16_t wins[] = {2, 8, 64};
	unsigned int k;

	for (unsigned int i = 0; i < 2 * RTE_DIM(wins); i++) {
		world_conf_default(&pair.conf);
		if (i & 1)
			world_conf_bad_link(&pair.conf, 11 + i);
		pair.conf.max_conns = 1;
		pair.conf.tune = tune_claims_only;
		world_param_default(&pair.param);
		pair.param.relaxed = i == 2;
		pair.param.data_win = pair.param.first_win = wins[i / 2];
		pair_open(3 * CHUNK);
		for (k = 0; k < 6; k++) {
			pair_post(true, RTSAN_WR_PULL, 0, CHUNK, k, 0);
			pair_post(false, RTSAN_WR_PULL, 0, CHUNK, k, 0);
		}
		pair_post(true, RTSAN_WR_PUSH, CHUNK, CHUNK, k, RTSAN_WR_UNSOLICITED);
		pair_post(false, RTSAN_WR_PUSH, 2 * CHUNK, CHUNK, k, RTSAN_WR_UNSOLICITED);
		for (unsigned int side = 0; side < 2; side++)
			for (k = 0; k < 7; k++)
				assert_int_equal(pair_wait(side == 0, false), SAN_ST_OK);
		pair_close();
	}
}

/* Until the argument is true. */
static int
drop_pull_data(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	const bool *stop = arg;
	struct san_wire_pkt pkt;

	return *stop || !world_parse(m, &pkt) || pkt.op != SAN_OP_PULL_DATA;
}

/* RT-26: a connection that opens while others use all shared records gets its own. */
PAIR_CASE(sim_deadlock__opens_when_records_are_scarce)
{
	struct san_ulp_wr wr;
	uint32_t qa, qb;
	bool stop = false;

	pair.conf.max_conns = 2;
	pair.conf.tune = tune_claims_only;
	pair_open(CHUNK);
	pair_filter(drop_pull_data, &stop);
	for (uint32_t k = 0; k < 8; k++)
		pair_post(true, RTSAN_WR_PULL, 0, 100, k, 0);
	world_run_for(pair.w, 10 * SAN_NS_PER_MS);
	world_connect(pair.w, 0, 1, &pair.param, &pair.param, &qa, &qb);
	world_wr(&wr, RTSAN_WR_PULL, pair.a, 100, (uint64_t)(uintptr_t)pair.b, pair.kb, 99, 0);
	world_post(pair.w, qa, &wr);
	world_run_for(pair.w, 10 * SAN_NS_PER_MS);
	stop = true;
	world_wait_ok(pair.w, qa, false, &pair.wc, PAIR_LIMIT);
	pair_done(true, 8);
	world_disconnect(pair.w, qa, qb);
}

/* RT-23, RULE-4: a send waits for a receive that is posted after the other direction is done. */
PAIR_CASE(sim_deadlock__no_receive_until_own_push_done)
{
	static const uint8_t ways[] = {RTSAN_WR_UNSOLICITED, RTSAN_WR_SOLICITED};

	UNIT_EACH(way, ways) {
		pair_open(3 * CHUNK);
		for (unsigned int k = 0; k < 20; k++)
			pair_post(true, RTSAN_WR_SEND, 0, CHUNK, k, *way);
		world_run_for(pair.w, 5 * SAN_NS_PER_MS);
		pair_post(false, RTSAN_WR_PUSH, 0, CHUNK, 1, *way);
		pair_do(false, RTSAN_WR_PULL, 0, CHUNK, 2, 0);
		assert_int_equal(pair_wait(false, false), SAN_ST_OK);
		for (unsigned int k = 0; k < 20; k++)
			world_post_recv(pair.w, pair.qb, pair.b, CHUNK, k);
		for (unsigned int k = 0; k < 20; k++) {
			pair_wait_for(true, false, SAN_ST_OK, k);
			pair_wait_for(false, true, SAN_ST_OK, k);
			assert_int_equal(pair.wc.byte_len, CHUNK);
		}
		pair_close();
	}
}

/* Drops the first copy of every distinct packet of one kind. */
struct drop_once {
	uint8_t op;
	uint32_t nb, seen[65536];
};

static int
drop_first_of_kind(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct drop_once *d = arg;
	struct san_wire_pkt pkt;
	uint32_t id;

	if (!world_parse(m, &pkt) || pkt.op != d->op)
		return 1;
	/* an ACK is identified by its contents, other packets by their number */
	id = pkt.op == SAN_OP_ACK     ? pkt.data_ebsn * 31 + pkt.req_ebsn :
		pkt.op == SAN_OP_NACK ? pkt.nack_psn * 31 + pkt.round :
					pkt.psn;
	id = id * 2 + to;
	for (uint32_t i = 0; i < d->nb; i++)
		if (d->seen[i] == id)
			return 1;
	d->seen[d->nb++ % RTE_DIM(d->seen)] = id;
	return 0;
}

/* RT-20: each packet of one kind is lost once; still everything happens exactly once. */
static void
lost_once(uint8_t op, bool ordered)
{
	struct drop_once *d = calloc(1, sizeof(*d));

	d->op = op;
	pair.param.ordered = ordered;
	pair_open(3 * CHUNK);
	pair_filter(drop_first_of_kind, d);
	/* sends that find no receive at first, to cause NACKs */
	for (unsigned int k = 0; k < 5; k++)
		pair_post(true, RTSAN_WR_SEND, 0, 3000, k, RTSAN_WR_UNSOLICITED);
	world_run_for(pair.w, 3 * SAN_NS_PER_MS);
	for (unsigned int k = 0; k < 5; k++)
		world_post_recv(pair.w, pair.qb, pair.b, CHUNK, 1000 + k);
	pair_done(true, 5);
	for (unsigned int k = 0; k < 30; k++) /* in packed packets */
		pair_post(true, RTSAN_WR_PUSH, 0, 100, k, RTSAN_WR_UNSOLICITED);
	pair_done(true, 30);
	mixed_both_ways(30, op, ordered);
	FAIL_IF(d->nb == 0, "no packet of type %#x", op);
	pair_close();
	free(d);
}

PAIR_CASE(sim_deadlock__each_packet_lost_once)
{
	static const uint8_t ops[] = {SAN_OP_ACK, SAN_OP_PUSH_GRNT, SAN_OP_NACK, SAN_OP_RESYNC,
				      SAN_OP_PULL_DATA, SAN_OP_PUSH_SLCTD_REQ, SAN_OP_PULL_REQ,
				      SAN_OP_PUSH_SLCTD_DATA, SAN_OP_PUSH_UNSLCTD_DATA,
				      SAN_OP_PUSH_PACKED};

	UNIT_EACH(op, ops) {
		lost_once(*op, true);
		if (*op != SAN_OP_NACK && *op != SAN_OP_RESYNC)
			lost_once(*op, false);
	}
}

PAIR_CASE(sim_deadlock__2gib_through_64_packets)
{
	pair.conf.mtu = 9000;
	pair.param.data_win = 64;
	pair.param.first_win = 64;
	pair_open(SAN_WIRE_LENGTH_MAX);
	pair.w->check = false;
	world_pattern(pair.a, pair.len, 3);
	pair_do(true, RTSAN_WR_PUSH, 0, SAN_WIRE_LENGTH_MAX, 1, 0);
	assert_int_equal(memcmp(pair.a, pair.b, pair.len), 0);
	memset(pair.a, 0, pair.len);
	pair_do(true, RTSAN_WR_PULL, 0, SAN_WIRE_LENGTH_MAX, 2, 0);
	assert_int_equal(memcmp(pair.a, pair.b, pair.len), 0);
}
