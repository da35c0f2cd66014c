/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What refused, received, acknowledged and finished mean for later packets: a refused packet leaves
 * no trace (RT-32, RT-33), a held packet or one that waits for the ULP may still be refused
 * (RT-18), and nothing happens twice (RT-30).
 */

#include "pair.h"

#define LEN (1 << 16)

/* ---- RT-32: never issued, or finished ---- */

struct forge {
	uint32_t from;
	uint8_t op;
	uint32_t rsn_off, ssn_off; /* added to the genuine values */
	bool hold;                 /* keep the copy instead of delivering it first */
	struct rte_mbuf *copy;     /* payload */
	struct san_wire_pkt p;
	struct rte_ether_addr mac;
};

static void
deliver_forged(struct world *w, struct forge *f)
{
	struct san_wire_path path = {
		.dst_mac = f->mac,
		.src = f->p.src,
		.dst = f->p.dst,
		.src_port = f->p.src_port,
		.dst_port = SAN_WIRE_PORT,
	};

	san_wire_build(f->copy, &path, &f->p);
	san_wire_icrc_seal(f->copy);
	san_core_rx_burst(w->node[1 - f->from].core, &f->copy, 1, w->now_ns);
}

/* Deliver a forged copy of the first packet of its kind before the packet itself. */
static int
forge_first(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct forge *f = arg;
	struct san_wire_ack ack;

	if (f->copy != NULL || from != f->from ||
	    san_wire_parse(m, SAN_WIRE_PORT, &f->p, &ack) != SAN_DROP_NONE || f->p.op != f->op)
		return 1;
	f->mac = rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->dst_addr;
	f->copy = f->p.payload_len != 0 ?
		rte_pktmbuf_copy(m, w->pool, f->p.payload_off, f->p.payload_len) :
		rte_pktmbuf_alloc(w->pool);
	assert_non_null(f->copy);
	f->p.rsn += f->rsn_off;
	f->p.ssn += f->ssn_off;
	if (!f->hold)
		deliver_forged(w, f);
	return 1;
}

/* The bit stays clear: the genuine packet of this PSN is no duplicate, and nothing is resent. */
static void
refused_leaves_bit_clear(struct forge f, enum san_drop want)
{
	uint64_t drops[SAN_DROP_MAX];

	pair_open(LEN);
	pair_filter(forge_first, &f);
	world_pattern(pair.a, LEN, 1);
	pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1,
		  f.op == SAN_OP_PUSH_UNSLCTD_DATA ? RTSAN_WR_UNSOLICITED : RTSAN_WR_SOLICITED);
	pair_do(true, RTSAN_WR_PULL, 0, 1000, 2, 0);
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	assert_non_null(f.copy);
	assert_true(world_pattern_ok(pair.b, LEN, 1));
	san_core_drops(pair.w->node[1 - f.from].core, drops);
	assert_int_equal(drops[want], 1);
	assert_int_equal(drops[SAN_DROP_DUPLICATE] + drops[SAN_DROP_OLD], 0);
	assert_int_equal(san_core_pdl(pair.w->node[f.from].core)->stats.nb_rtx, 0);
	pair_close();
}

PAIR_CASE(sim_verdict__never_issued_leaves_the_bit_clear)
{
	const uint32_t far = 1000; /* no transaction is so far ahead */

	refused_leaves_bit_clear((struct forge){.op = SAN_OP_PUSH_UNSLCTD_DATA, .rsn_off = far},
				 SAN_DROP_RSN);
	refused_leaves_bit_clear((struct forge){.op = SAN_OP_PUSH_SLCTD_REQ, .rsn_off = far},
				 SAN_DROP_RSN);
	refused_leaves_bit_clear((struct forge){.op = SAN_OP_PULL_REQ, .rsn_off = far},
				 SAN_DROP_RSN);
	refused_leaves_bit_clear((struct forge){.op = SAN_OP_PUSH_SLCTD_REQ, .ssn_off = far},
				 SAN_DROP_SSN);
	/* RT-21: grants and pull data that were never requested */
	refused_leaves_bit_clear((struct forge){.from = 1, .op = SAN_OP_PUSH_GRNT, .ssn_off = 1},
				 SAN_DROP_SSN);
	refused_leaves_bit_clear((struct forge){.from = 1, .op = SAN_OP_PUSH_GRNT, .rsn_off = far},
				 SAN_DROP_RSN);
	refused_leaves_bit_clear((struct forge){.from = 1, .op = SAN_OP_PULL_DATA, .rsn_off = far},
				 SAN_DROP_RSN);
}

PAIR_CASE(sim_verdict__finished_is_acknowledged_and_discarded)
{
	struct forge f = {.op = SAN_OP_PUSH_UNSLCTD_DATA, .hold = true};
	uint64_t drops[SAN_DROP_MAX];
	uint32_t base;

	pair_open(LEN);
	pair_filter(forge_first, &f);
	memset(pair.a, 0x55, LEN);
	pair_do(true, RTSAN_WR_PUSH, 0, 1000, 1, RTSAN_WR_UNSOLICITED);
	world_run_for(pair.w, SAN_NS_PER_MS);
	memset(pair.b, 0, LEN);
	base = pair_conn(false)->rx[SAN_WIN_DATA].base;
	f.p.psn = base; /* a PSN inside the window */
	deliver_forged(pair.w, &f);
	san_core_drops(pair.w->node[1].core, drops);
	assert_int_equal(drops[SAN_DROP_FINISHED], 1);
	assert_int_equal(san_core_tl(pair.w->node[1].core)->stats.nb_finished_data, 1);
	assert_int_equal(pair_conn(false)->rx[SAN_WIN_DATA].base, base + 1);
	assert_int_equal(pair.b[0], 0);
}

/* ---- RT-18: an acknowledged packet stays acknowledged ---- */

/* Loses matching packets until *stop* is set. */
struct lose {
	bool stop;
	bool by_offset; /* true: the packet at offset 0; false: every packet of the first RSN */
	bool armed;
	uint32_t rsn, nb;
};

static int
lose_some(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct lose *l = arg;
	struct san_wire_pkt pkt;

	if (l->stop || from != 0 || !world_parse(m, &pkt) || pkt.op != SAN_OP_PUSH_UNSLCTD_DATA)
		return 1;
	if (!l->armed)
		l->rsn = pkt.rsn;
	l->armed = true;
	if (pkt.rsn != l->rsn || (l->by_offset && pkt.offset != 0))
		return 1;
	l->nb++;
	return 0;
}

/* LAST has arrived and waits; then the rest is refused, and the refusal is the result. */
PAIR_CASE(sim_verdict__last_waits_for_the_ulp_ack)
{
	for (int ordered = 0; ordered < 2; ordered++) {
		struct lose l = {.by_offset = true};

		pair.param.ordered = ordered;
		pair_open(LEN);
		pair_filter(lose_some, &l);
		pair_post(true, RTSAN_WR_PUSH, 0, 5000, 1, RTSAN_WR_UNSOLICITED);
		assert_false(world_wait(pair.w, pair.qa, false, &pair.wc, 2 * SAN_NS_PER_MS));
		assert_true(l.nb > 0);
		world_mr_del(pair.w, 1, pair.kb);
		l.stop = true;
		assert_int_not_equal(pair_wait(true, false), SAN_ST_OK);
		assert_true(pair.wc.status == SAN_ST_REVOKED || pair.wc.status == SAN_ST_ACCESS);
		pair.kb = world_mr(pair.w, 1, pair.b, LEN, PAIR_ALL);
		pair_close();
	}
}

/* A packet held behind a lower RSN is not decided yet, and may still be refused. */
PAIR_CASE(sim_verdict__held_is_not_acknowledged)
{
	struct lose l = {.by_offset = false};
	struct san_ulp_wr wr;

	pair_open(LEN);
	pair_filter(lose_some, &l);
	world_post_recv(pair.w, pair.qb, pair.b, 100, 1);
	pair_post(true, RTSAN_WR_PUSH, 0, 1000, 0, RTSAN_WR_UNSOLICITED);
	world_wr(&wr, RTSAN_WR_PUSH, pair.a, 1000, (uint64_t)(uintptr_t)pair.b,
		 pair.kb ^ 0x40000000, 1, 0);
	world_post(pair.w, pair.qa, &wr);
	pair_post(true, RTSAN_WR_SEND, 0, 1000, 2, 0);
	pair_post(true, RTSAN_WR_PUSH, 0, 1000, 3, 0);
	assert_false(world_wait(pair.w, pair.qa, false, &pair.wc, 2 * SAN_NS_PER_MS));
	assert_true(san_core_tl(pair.w->node[1].core)->nb_held >= 3);
	l.stop = true;
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	assert_int_equal(pair_wait(true, false), SAN_ST_ACCESS);
	assert_int_equal(pair_wait(true, false), SAN_ST_LENGTH);
	pair_wait_for(true, false, SAN_ST_OK, 3);
}

/* ---- RT-26; RULE-8: a full reorder buffer takes the head of the line ---- */

static void
tune_held(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->tl.max_held = 8; /* half of them for a host */
	conf->tl.max_held_conn = 4;
}

PAIR_CASE(sim_verdict__full_reorder_buffer_takes_the_head)
{
	struct lose l = {.by_offset = false};
	const struct san_tl *tl;

	pair.conf.tune = tune_held;
	pair_open(LEN);
	tl = san_core_tl(pair.w->node[1].core);
	pair_filter(lose_some, &l);
	for (uint32_t i = 0; i < 20; i++)
		pair_post(true, RTSAN_WR_PUSH, 0, 4000, i, RTSAN_WR_UNSOLICITED);
	assert_false(world_wait(pair.w, pair.qa, false, &pair.wc, 2 * SAN_NS_PER_MS));
	assert_int_equal(tl->nb_held, 4);
	assert_true(tl->stats.nb_red_zone > 0);
	l.stop = true;
	for (uint32_t i = 0; i < 20; i++)
		world_wait_ok(pair.w, pair.qa, false, &pair.wc, 50 * SAN_NS_PER_MS);
}

/* ---- RT-30 ---- */

PAIR_CASE(sim_verdict__atomics_happen_once)
{
	struct san_ulp_wr wr;
	uint64_t *old, *word;

	for (uint32_t ordered = 0; ordered < 2; ordered++) {
		world_conf_bad_link(&pair.conf, 50 + ordered);
		pair.conf.link.drop_ppm = 200000;
		pair.param.ordered = ordered;
		pair_open(LEN);
		old = (uint64_t *)pair.a;
		word = (uint64_t *)pair.b;
		for (uint32_t i = 0; i < 100; i++) {
			world_wr(&wr, RTSAN_WR_FETCH_ADD, &old[i], 8, (uint64_t)(uintptr_t)word,
				 pair.kb, i, 0);
			wr.operand = 1;
			world_post(pair.w, pair.qa, &wr);
		}
		pair_done(true, 100);
		assert_int_equal(*word, 100);
		for (uint32_t i = 0; ordered && i < 100; i++)
			assert_int_equal(old[i], i);
		assert_true(san_core_pdl(pair.w->node[1].core)->stats.nb_rtx > 0);
		pair_close();
	}
}
