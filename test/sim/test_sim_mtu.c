/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Paths whose MTU is smaller than that of both ends (RT-31, RT-37). Nothing waits for the search,
 * the largest working size is used, and a path that becomes narrower or wider ends no connection.
 * Every byte is placed once, in whatever packets it came.
 */

#include "pair.h"

#define LEN     (1000 * 1000)
#define BOTH    (9000 - SAN_WIRE_OVERHEAD_V4)
#define BEGIN   (1500 - SAN_WIRE_OVERHEAD_V4)
#define BOTH_V6 (9000 - SAN_WIRE_OVERHEAD_V6)
#define MTU_MID 4200

/* Hosts with MTU *mtu* and a path with *path_mtu* between them, 100 Gb/s. */
static void
open_path(uint16_t mtu, uint16_t path_mtu, bool ipv6)
{
	pair.conf.mtu = mtu;
	pair.conf.ipv6 = ipv6;
	pair.conf.link.mtu = path_mtu;
	pair.conf.link.mbps = 100000;
	pair_open(LEN);
	world_pattern(pair.a, LEN, 1);
}

static struct san_pdl *
pdl_of(uint32_t node)
{
	return san_core_pdl(pair.w->node[node].core);
}

/* Time until a push or pull has placed its bytes. */
static uint64_t
move(enum rtsan_wr_opcode op, uint32_t len)
{
	uint64_t start = pair.w->now_ns;

	memset(op == RTSAN_WR_PULL ? pair.a : pair.b, 0, len);
	if (op == RTSAN_WR_PULL)
		world_pattern(pair.b, len, 1);
	pair_do(true, op, 0, len, 1, RTSAN_WR_SIGNALED);
	assert_true(world_pattern_ok(op == RTSAN_WR_PULL ? pair.a : pair.b, len, 1));
	return pair.w->now_ns - start;
}

/* Data flows at once, and as fast as between hosts that know the MTU: the search costs no time. */
PAIR_CASE(sim_mtu__narrow_path)
{
	static const struct {
		enum rtsan_wr_opcode op;
		bool ipv6;
	} runs[] = {{RTSAN_WR_PUSH, false}, {RTSAN_WR_PULL, false}, {RTSAN_WR_PUSH, true}};
	uint64_t narrow_ns, known_ns;

	UNIT_EACH(r, runs) {
		open_path(1500, 1500, r->ipv6);
		known_ns = move(r->op, LEN);
		pair_close();
		open_path(9000, 1500, r->ipv6);
		narrow_ns = move(r->op, LEN);
		assert_true(narrow_ns <= known_ns + known_ns / 20);
		world_run_for(pair.w, 100 * SAN_NS_PER_MS);
		assert_true(pair.w->node[0].nb_lost + pair.w->node[1].nb_lost > 0);
		assert_true(move(r->op, LEN) <= known_ns + known_ns / 20);
		assert_true(pair_conn(true)->mtu <= BEGIN);
		assert_true(pair_conn(false)->mtu <= BEGIN);
		assert_int_equal(pdl_of(0)->stats.nb_rto + pdl_of(1)->stats.nb_rto, 0);
		pair_close();
	}
}

/* A wide path: long packets are used a few round trips after the full ones start the search. */
PAIR_CASE(sim_mtu__wide_path)
{
	uint64_t rtt_ns, nb_pkts;

	for (int v6 = 0; v6 < 2; v6++) {
		uint16_t both = v6 ? BOTH_V6 : BOTH;

		open_path(9000, 9000, v6);
		rtt_ns = move(RTSAN_WR_PUSH, 64);
		assert_true(pair_conn(true)->mtu < both); /* not probed yet */
		pair_post(true, RTSAN_WR_PUSH, 0, LEN, 2, 0);
		world_run_for(pair.w, 20 * rtt_ns);
		assert_int_equal(pair_conn(true)->mtu, both);
		assert_int_equal(pair_wait(true, false), SAN_ST_OK);
		nb_pkts = pair_conn(true)->nb_tx_pkts;
		move(RTSAN_WR_PUSH, LEN);
		assert_in_range(pair_conn(true)->nb_tx_pkts - nb_pkts, LEN / both, LEN / both + 40);
		/* the other direction probes for itself */
		assert_true(pair_conn(false)->mtu < both);
		move(RTSAN_WR_PULL, LEN);
		assert_int_equal(pair_conn(false)->mtu, both);
		pair_close();
	}
}

PAIR_CASE(sim_mtu__between)
{
	open_path(9000, MTU_MID, false);
	move(RTSAN_WR_PUSH, LEN);
	world_run_for(pair.w, 100 * SAN_NS_PER_MS);
	assert_int_equal(pair_conn(true)->mtu, 4096 - SAN_WIRE_OVERHEAD_V4);
	move(RTSAN_WR_PUSH, LEN);
	assert_int_equal(pdl_of(0)->stats.nb_rto, 0);
}

/* A path a few bytes narrower than the ends, as a tunnel is: the longest packets must fit, too. */
PAIR_CASE(sim_mtu__a_little_narrow)
{
	static const uint16_t paths[] = {8999, 8985, 8981, 8980, 4095, 4077};

	for (unsigned int i = 0; i < RTE_DIM(paths); i++) {
		open_path(9000, paths[i], (i & 1) != 0);
		move(RTSAN_WR_PUSH, LEN);
		world_run_for(pair.w, 100 * SAN_NS_PER_MS);
		pdl_of(0)->stats.nb_rto = 0;
		move(RTSAN_WR_PUSH, LEN);
		assert_int_equal(pdl_of(0)->stats.nb_rto, 0);
		pair_close();
	}
}

/* Lost PROBEs alone are no proof that the length is too large. */
PAIR_CASE(sim_mtu__wide_and_bad)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		world_conf_bad_link(&pair.conf, seed);
		pair.conf.mtu = 9000;
		pair.param.ordered = seed & 1;
		pair_open(LEN);
		world_pattern(pair.a, LEN, 1);
		move(RTSAN_WR_PUSH, LEN);
		world_run_for(pair.w, 100 * SAN_NS_PER_MS);
		assert_int_equal(pair_conn(true)->mtu, BOTH);
		pair_close();
	}
}

/* A peer that stops for a while must not cost the connection its long packets. */
PAIR_CASE(sim_mtu__peer_stalls)
{
	open_path(9000, 0, false);
	pdl_of(0)->conf.pmtu_after = 1;
	move(RTSAN_WR_PUSH, 64);
	pair.w->node[1].link.down = true;
	pair_post(true, RTSAN_WR_PUSH, 0, 4 * BEGIN, 2, 0);
	world_run_for(pair.w, 50 * SAN_NS_PER_MS);
	assert_true(pair_conn(true)->mtu <= BEGIN);
	pair.w->node[1].link.down = false;
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	move(RTSAN_WR_PUSH, 4 * BEGIN);
	world_run_for(pair.w, 300 * SAN_NS_PER_MS);
	assert_int_equal(pair_conn(true)->mtu, BOTH);
}

static const enum rtsan_wr_opcode both_ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL};

static void
set_path(uint16_t mtu)
{
	pair.w->node[0].link.mtu = mtu;
	pair.w->node[1].link.mtu = mtu;
}

/* Narrower than any Ethernet from the first packet on: data flows in both directions. */
PAIR_CASE(sim_mtu__narrow_from_the_start)
{
	static const uint16_t hosts[] = {1500, 9000}, paths[] = {1400, 1280};

	for (unsigned int i = 0; i < 16; i++) {
		open_path(hosts[i & 1], paths[i >> 1 & 1], (i & 4) != 0);
		assert_true(move(both_ops[i >> 3], LEN) < 100 * SAN_NS_PER_MS);
		move(both_ops[i >> 3], 3000);
		move(both_ops[(i >> 3) ^ 1], LEN);
		assert_false(pair.w->qp[pair.qa].disconnected);
		pair_close();
	}
}

#define NB_WORK 10

/* Work of *len* bytes each; meanwhile the path becomes narrow, and then wide again. */
static void
work_while_narrow(enum rtsan_wr_opcode op, uint32_t len, uint16_t wide, bool early)
{
	uint64_t start_ns = pair.w->now_ns;

	memset(op == RTSAN_WR_PULL ? pair.a : pair.b, 0, LEN);
	world_pattern(op == RTSAN_WR_PULL ? pair.b : pair.a, LEN, 1);
	for (unsigned int k = 0; k < NB_WORK; k++)
		pair_post(true, op, k * len, len, k, 0);
	if (!early)
		world_run_for(pair.w, 10 * SAN_NS_PER_US);
	set_path(1300);
	for (unsigned int k = 0; k < NB_WORK; k++) {
		assert_int_equal(pair_wait(true, false), SAN_ST_OK);
		if (k == NB_WORK / 2)
			set_path(wide);
	}
	assert_true(world_pattern_ok(op == RTSAN_WR_PULL ? pair.a : pair.b, NB_WORK * (uint64_t)len,
				     1));
	assert_true(pair.w->now_ns - start_ns < 500 * SAN_NS_PER_MS);
	assert_false(pair.w->qp[pair.qa].disconnected);
}

/* RT-37: it costs only the time of the detection. */
PAIR_CASE(sim_mtu__path_becomes_narrow)
{
	static const uint16_t wides[] = {1500, 9000};
	static const uint32_t lens[] = {4000, 90000}; /* unsolicited and solicited pushes */
	enum rtsan_wr_opcode op;
	bool early;

	for (unsigned int i = 0; i < 64; i += UNIT_EVERY) {
		op = both_ops[i >> 3 & 1];
		early = (i & 32) != 0;
		pair.conf.mtu = wides[i & 1];
		pair.conf.ipv6 = (i & 2) != 0;
		pair.conf.link.mbps = 100000;
		pair.param.ordered = (i & 4) != 0;
		pair_open(LEN);
		set_path(pair.conf.mtu);
		world_pattern(pair.a, LEN, 1);
		move(op, LEN);
		for (unsigned int k = 0; k < 3; k++) /* again and again */
			work_while_narrow(op, lens[i >> 4 & 1], pair.conf.mtu, early);
		if (early)
			assert_true(pdl_of(op == RTSAN_WR_PULL)->stats.nb_pieces_tx > 0);
		pair_close();
	}
}

/* Small sends in packed packets: each is received once, in order. */
PAIR_CASE(sim_mtu__narrow_and_packed)
{
	uint32_t n = 200;

	open_path(9000, 9000, false);
	move(RTSAN_WR_PUSH, LEN);
	for (uint32_t k = 0; k < n; k++)
		world_post_recv(pair.w, pair.qb, pair.b + k * 100, 100, k);
	set_path(1300);
	for (uint32_t k = 0; k < n; k++)
		pair_post(true, RTSAN_WR_SEND, k * 100, 100, k, 0);
	for (uint32_t k = 0; k < n; k++) {
		pair_wait_for(false, true, SAN_ST_OK, k);
		assert_int_equal(pair.wc.byte_len, 100);
	}
	assert_true(world_pattern_ok(pair.b, n * 100, 1));
	assert_true(pdl_of(0)->stats.nb_pieces_tx > 0);
}

/* Pieces are lost, duplicated and reordered like other packets. */
PAIR_CASE(sim_mtu__narrow_and_bad)
{
	for (uint64_t seed = 1; seed <= 40; seed += UNIT_EVERY) {
		world_conf_bad_link(&pair.conf, seed);
		pair.conf.mtu = 9000;
		pair.conf.link.mtu = 9000;
		pair.param.ordered = seed & 1;
		pair_open(LEN);
		world_pattern(pair.a, LEN, 1);
		move(RTSAN_WR_PUSH, LEN);
		world_run_for(pair.w, 100 * SAN_NS_PER_MS);
		set_path(1300);
		move(both_ops[seed >> 1 & 1], LEN);
		set_path(4096);
		move(both_ops[seed >> 2 & 1], LEN);
		assert_false(pair.w->qp[pair.qa].disconnected);
		pair_close();
	}
}

/* Narrower than every path must be: the connection ends with the reason. */
PAIR_CASE(sim_mtu__too_narrow)
{
	UNIT_EACH(both_op, both_ops) {
		open_path(9000, 9000, false);
		move(*both_op, LEN);
		set_path(1000);
		pair_post(true, *both_op, 0, LEN, 1, 0);
		assert_int_not_equal(pair_wait(true, false), SAN_ST_OK);
		world_run_for(pair.w, SAN_NS_PER_S);
		assert_true(pair.w->qp[pair.qa].disconnected && pair.w->qp[pair.qb].disconnected);
		assert_int_equal(pair.w->qp[pair.qa].reason, RTSAN_R_PATH_MTU);
		assert_int_equal(pair.w->qp[pair.qb].reason, RTSAN_R_PATH_MTU);
		pair_close();
	}
}

/* Short messages are not affected. */
PAIR_CASE(sim_mtu__narrow_and_short)
{
	open_path(9000, 9000, false);
	move(RTSAN_WR_PUSH, LEN);
	pair.w->node[1].link.mtu = 1500;
	for (int i = 0; i < 100; i++) {
		move(RTSAN_WR_PUSH, BEGIN - 100);
		world_run_for(pair.w, 100 * SAN_NS_PER_MS);
	}
}
