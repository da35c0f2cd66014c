/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Paths whose MTU is smaller than that of both ends (RT-31, RT-37). Nothing waits for the search,
 * the largest working size is used, and a path that becomes narrower or wider ends no connection.
 * Every byte is placed once, in whatever packets it came.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "unit.h"

#define LEN     (1000 * 1000)
#define BOTH    (9000 - SAN_WIRE_OVERHEAD_V4)
#define BEGIN   (1500 - SAN_WIRE_OVERHEAD_V4)
#define BOTH_V6 (9000 - SAN_WIRE_OVERHEAD_V6)
#define MTU_MID 4200

/* Hosts with MTU *mtu* and a path with *path_mtu* between them, 100 Gb/s. */
static void
open_path(struct pair *p, uint16_t mtu, uint16_t path_mtu, bool ipv6)
{
	struct world_conf conf;

	world_conf_default(&conf);
	conf.mtu = mtu;
	conf.ipv6 = ipv6;
	conf.link.mtu = path_mtu;
	conf.link.mbps = 100000;
	pair_open(p, &conf, true, LEN);
	world_pattern(p->a, LEN, 1);
}

static struct san_pdl *
pdl_of(const struct pair *p, uint32_t node)
{
	return san_core_pdl(p->w->node[node].core);
}

/* Time until a push or pull has placed its bytes. */
static uint64_t
move(struct pair *p, enum rtsan_wr_opcode op, uint32_t len)
{
	uint64_t start = p->w->now_ns;
	struct san_ulp_wc wc;

	memset(op == RTSAN_WR_PULL ? p->a : p->b, 0, len);
	if (op == RTSAN_WR_PULL)
		world_pattern(p->b, len, 1);
	pair_post(p, true, op, 0, len, 1, RTSAN_WR_SIGNALED);
	assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
	assert_true(world_pattern_ok(op == RTSAN_WR_PULL ? p->a : p->b, len, 1));
	return p->w->now_ns - start;
}

/* Data flows at once, and as fast as between hosts that know the MTU: the search costs no time. */
UNIT_CASE(sim_mtu__narrow_path)
{
	static const struct {
		enum rtsan_wr_opcode op;
		bool ipv6;
	} runs[] = {{RTSAN_WR_PUSH, false}, {RTSAN_WR_PULL, false}, {RTSAN_WR_PUSH, true}};
	uint64_t narrow_ns, known_ns;
	struct pair p;
	unsigned int i;

	for (i = 0; i < RTE_DIM(runs); i++) {
		open_path(&p, 1500, 1500, runs[i].ipv6);
		known_ns = move(&p, runs[i].op, LEN);
		pair_close(&p);
		open_path(&p, 9000, 1500, runs[i].ipv6);
		narrow_ns = move(&p, runs[i].op, LEN);
		assert_true(narrow_ns <= known_ns + known_ns / 20);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
		assert_true(p.w->node[0].nb_lost + p.w->node[1].nb_lost > 0);
		assert_true(move(&p, runs[i].op, LEN) <= known_ns + known_ns / 20);
		assert_true(pair_conn(&p, true)->mtu <= BEGIN);
		assert_true(pair_conn(&p, false)->mtu <= BEGIN);
		assert_int_equal(pdl_of(&p, 0)->stats.nb_rto + pdl_of(&p, 1)->stats.nb_rto, 0);
		pair_close(&p);
	}
}

/* A wide path: long packets are used a few round trips after the full ones start the search. */
UNIT_CASE(sim_mtu__wide_path)
{
	struct pair p;
	uint64_t rtt_ns, nb_pkts;
	struct san_ulp_wc wc;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		uint16_t both = v6 ? BOTH_V6 : BOTH;

		open_path(&p, 9000, 9000, v6);
		rtt_ns = move(&p, RTSAN_WR_PUSH, 64);
		assert_true(pair_conn(&p, true)->mtu < both); /* not probed yet */
		pair_post(&p, true, RTSAN_WR_PUSH, 0, LEN, 2, 0);
		world_run_for(p.w, 20 * rtt_ns);
		assert_int_equal(pair_conn(&p, true)->mtu, both);
		assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
		nb_pkts = pair_conn(&p, true)->nb_tx_pkts;
		move(&p, RTSAN_WR_PUSH, LEN);
		assert_in_range(pair_conn(&p, true)->nb_tx_pkts - nb_pkts, LEN / both,
				LEN / both + 40);
		/* the other direction probes for itself */
		assert_true(pair_conn(&p, false)->mtu < both);
		move(&p, RTSAN_WR_PULL, LEN);
		assert_int_equal(pair_conn(&p, false)->mtu, both);
		pair_close(&p);
	}
}

UNIT_CASE(sim_mtu__between)
{
	struct pair p;

	open_path(&p, 9000, MTU_MID, false);
	move(&p, RTSAN_WR_PUSH, LEN);
	world_run_for(p.w, 100 * SAN_NS_PER_MS);
	assert_int_equal(pair_conn(&p, true)->mtu, 4096 - SAN_WIRE_OVERHEAD_V4);
	move(&p, RTSAN_WR_PUSH, LEN);
	assert_int_equal(pdl_of(&p, 0)->stats.nb_rto, 0);
	pair_close(&p);
}

/* A path a few bytes narrower than the ends, as a tunnel is: the longest packets must fit, too. */
UNIT_CASE(sim_mtu__a_little_narrow)
{
	static const uint16_t paths[] = {8999, 8985, 8981, 8980, 4095, 4077};
	struct pair p;
	unsigned int i;

	for (i = 0; i < RTE_DIM(paths); i++) {
		open_path(&p, 9000, paths[i], (i & 1) != 0);
		move(&p, RTSAN_WR_PUSH, LEN);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
		pdl_of(&p, 0)->stats.nb_rto = 0;
		move(&p, RTSAN_WR_PUSH, LEN);
		assert_int_equal(pdl_of(&p, 0)->stats.nb_rto, 0);
		pair_close(&p);
	}
}

/* Lost PROBEs alone are no proof that the length is too large. */
UNIT_CASE(sim_mtu__wide_and_bad)
{
	struct world_conf conf;
	struct pair p;
	uint64_t seed;

	for (seed = 1; seed <= 20; seed++) {
		world_conf_bad_link(&conf, seed);
		conf.mtu = 9000;
		pair_open(&p, &conf, seed & 1, LEN);
		world_pattern(p.a, LEN, 1);
		move(&p, RTSAN_WR_PUSH, LEN);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
		assert_int_equal(pair_conn(&p, true)->mtu, BOTH);
		pair_close(&p);
	}
}

/* A peer that stops for a while must not cost the connection its long packets. */
UNIT_CASE(sim_mtu__peer_stalls)
{
	struct san_ulp_wc wc;
	struct pair p;

	open_path(&p, 9000, 0, false);
	pdl_of(&p, 0)->conf.pmtu_after = 1;
	move(&p, RTSAN_WR_PUSH, 64);
	p.w->node[1].link.down = true;
	pair_post(&p, true, RTSAN_WR_PUSH, 0, 4 * BEGIN, 2, 0);
	world_run_for(p.w, 50 * SAN_NS_PER_MS);
	assert_true(pair_conn(&p, true)->mtu <= BEGIN);
	p.w->node[1].link.down = false;
	assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
	move(&p, RTSAN_WR_PUSH, 4 * BEGIN);
	world_run_for(p.w, 300 * SAN_NS_PER_MS);
	assert_int_equal(pair_conn(&p, true)->mtu, BOTH);
	pair_close(&p);
}

static const enum rtsan_wr_opcode both_ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL};

static void
set_path(struct pair *p, uint16_t mtu)
{
	p->w->node[0].link.mtu = mtu;
	p->w->node[1].link.mtu = mtu;
}

/* Narrower than any Ethernet from the first packet on: data flows in both directions. */
UNIT_CASE(sim_mtu__narrow_from_the_start)
{
	static const uint16_t hosts[] = {1500, 9000}, paths[] = {1400, 1280};
	unsigned int i;
	struct pair p;

	for (i = 0; i < 16; i++) {
		open_path(&p, hosts[i & 1], paths[i >> 1 & 1], (i & 4) != 0);
		assert_true(move(&p, both_ops[i >> 3], LEN) < 100 * SAN_NS_PER_MS);
		move(&p, both_ops[i >> 3], 3000);
		move(&p, both_ops[(i >> 3) ^ 1], LEN);
		assert_false(p.w->qp[p.qa].disconnected);
		pair_close(&p);
	}
}

#define NB_WORK 10

/* Work of *len* bytes each; meanwhile the path becomes narrow, and then wide again. */
static void
work_while_narrow(struct pair *p, enum rtsan_wr_opcode op, uint32_t len, uint16_t wide, bool early)
{
	uint64_t start_ns = p->w->now_ns;
	struct san_ulp_wc wc;
	unsigned int k;

	memset(op == RTSAN_WR_PULL ? p->a : p->b, 0, LEN);
	world_pattern(op == RTSAN_WR_PULL ? p->b : p->a, LEN, 1);
	for (k = 0; k < NB_WORK; k++)
		pair_post(p, true, op, k * len, len, k, 0);
	if (!early)
		world_run_for(p->w, 10 * SAN_NS_PER_US);
	set_path(p, 1300);
	for (k = 0; k < NB_WORK; k++) {
		assert_int_equal(pair_wait(p, true, false, &wc), SAN_ST_OK);
		if (k == NB_WORK / 2)
			set_path(p, wide);
	}
	assert_true(world_pattern_ok(op == RTSAN_WR_PULL ? p->a : p->b, NB_WORK * (uint64_t)len,
				     1));
	assert_true(p->w->now_ns - start_ns < 500 * SAN_NS_PER_MS);
	assert_false(p->w->qp[p->qa].disconnected);
}

/* RT-37: it costs only the time of the detection. */
UNIT_CASE(sim_mtu__path_becomes_narrow)
{
	static const uint16_t wides[] = {1500, 9000};
	static const uint32_t lens[] = {4000, 90000}; /* unsolicited and solicited pushes */
	struct world_conf conf;
	enum rtsan_wr_opcode op;
	unsigned int i, k;
	struct pair p;
	bool early;

	for (i = 0; i < 64; i += UNIT_EVERY) {
		op = both_ops[i >> 3 & 1];
		early = (i & 32) != 0;
		world_conf_default(&conf);
		conf.mtu = wides[i & 1];
		conf.ipv6 = (i & 2) != 0;
		conf.link.mbps = 100000;
		pair_open(&p, &conf, (i & 4) != 0, LEN);
		set_path(&p, conf.mtu);
		world_pattern(p.a, LEN, 1);
		move(&p, op, LEN);
		for (k = 0; k < 3; k++) /* again and again */
			work_while_narrow(&p, op, lens[i >> 4 & 1], conf.mtu, early);
		if (early)
			assert_true(pdl_of(&p, op == RTSAN_WR_PULL)->stats.nb_pieces_tx > 0);
		pair_close(&p);
	}
}

/* Small sends in packed packets: each is received once, in order. */
UNIT_CASE(sim_mtu__narrow_and_packed)
{
	struct san_ulp_wc wc;
	struct pair p;
	uint32_t k, n = 200;

	open_path(&p, 9000, 9000, false);
	move(&p, RTSAN_WR_PUSH, LEN);
	for (k = 0; k < n; k++)
		world_post_recv(p.w, p.qb, p.b + k * 100, 100, k);
	set_path(&p, 1300);
	for (k = 0; k < n; k++)
		pair_post(&p, true, RTSAN_WR_SEND, k * 100, 100, k, 0);
	for (k = 0; k < n; k++) {
		assert_int_equal(pair_wait(&p, false, true, &wc), SAN_ST_OK);
		assert_int_equal(wc.wr_id, k);
		assert_int_equal(wc.byte_len, 100);
	}
	assert_true(world_pattern_ok(p.b, n * 100, 1));
	assert_true(pdl_of(&p, 0)->stats.nb_pieces_tx > 0);
	pair_close(&p);
}

/* Pieces are lost, duplicated and reordered like other packets. */
UNIT_CASE(sim_mtu__narrow_and_bad)
{
	struct world_conf conf;
	struct pair p;
	uint64_t seed;

	for (seed = 1; seed <= 40; seed += UNIT_EVERY) {
		world_conf_bad_link(&conf, seed);
		conf.mtu = 9000;
		conf.link.mtu = 9000;
		pair_open(&p, &conf, seed & 1, LEN);
		world_pattern(p.a, LEN, 1);
		move(&p, RTSAN_WR_PUSH, LEN);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
		set_path(&p, 1300);
		move(&p, both_ops[seed >> 1 & 1], LEN);
		set_path(&p, 4096);
		move(&p, both_ops[seed >> 2 & 1], LEN);
		assert_false(p.w->qp[p.qa].disconnected);
		pair_close(&p);
	}
}

/* Narrower than every path must be: the connection ends with the reason. */
UNIT_CASE(sim_mtu__too_narrow)
{
	struct san_ulp_wc wc;
	struct pair p;
	unsigned int i;

	for (i = 0; i < RTE_DIM(both_ops); i++) {
		open_path(&p, 9000, 9000, false);
		move(&p, both_ops[i], LEN);
		set_path(&p, 1000);
		pair_post(&p, true, both_ops[i], 0, LEN, 1, 0);
		assert_int_not_equal(pair_wait(&p, true, false, &wc), SAN_ST_OK);
		world_run_for(p.w, SAN_NS_PER_S);
		assert_true(p.w->qp[p.qa].disconnected && p.w->qp[p.qb].disconnected);
		assert_int_equal(p.w->qp[p.qa].reason, RTSAN_R_PATH_MTU);
		assert_int_equal(p.w->qp[p.qb].reason, RTSAN_R_PATH_MTU);
		pair_close(&p);
	}
}

/* Short messages are not affected. */
UNIT_CASE(sim_mtu__narrow_and_short)
{
	struct pair p;
	int i;

	open_path(&p, 9000, 9000, false);
	move(&p, RTSAN_WR_PUSH, LEN);
	p.w->node[1].link.mtu = 1500;
	for (i = 0; i < 100; i++) {
		move(&p, RTSAN_WR_PUSH, BEGIN - 100);
		world_run_for(p.w, 100 * SAN_NS_PER_MS);
	}
	pair_close(&p);
}
