/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guarantees for programs that poll memory or expect the errors of verbs: the last packet of a push
 * or pull is placed last (RT-39), and nothing is executed after an error (RT-40).
 */

#include "pair.h"

#define LEN 4000 /* three packets */

/* Loses packets of one kind while *hold* is set. */
struct lose {
	uint8_t op;
	uint32_t from, offset;
	bool hold;
	uint32_t nb;
};

static int
lose(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct lose *l = arg;
	struct san_wire_pkt pkt;

	if (!l->hold || from != l->from || !world_parse(m, &pkt) || pkt.op != l->op ||
	    pkt.offset != l->offset)
		return 1;
	l->nb++;
	return 0;
}

struct row {
	const char *name;
	enum rtsan_wr_opcode op;
	uint8_t flags, wire_op;
	bool from_b; /* B sends the data */
};

static const struct row rows[] = {
	{"push", RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, SAN_OP_PUSH_UNSLCTD_DATA, false},
	{"solicited push", RTSAN_WR_PUSH, RTSAN_WR_SOLICITED, SAN_OP_PUSH_SLCTD_DATA, false},
	{"push with immediate", RTSAN_WR_PUSH_IMM, RTSAN_WR_UNSOLICITED, SAN_OP_PUSH_UNSLCTD_DATA,
	 false},
	{"pull", RTSAN_WR_PULL, 0, SAN_OP_PULL_DATA, true},
};

/* Whether the last byte is placed while packet *lost* is missing. */
static bool
shows_last_byte(const struct row *row, bool ordered, bool relaxed, uint32_t lost)
{
	struct lose l = {.op = row->wire_op, .from = row->from_b, .offset = lost, .hold = true};
	const struct san_tl *tl;
	uint8_t *to;
	bool shows;

	pair.param.ordered = ordered;
	pair.param.relaxed = relaxed;
	pair_open(65536);
	pair_filter(lose, &l);
	memset(row->from_b ? pair.b : pair.a, 0x55, LEN);
	to = row->from_b ? pair.a : pair.b;
	world_post_recv(pair.w, pair.qb, pair.b + 8192, 64, 1);
	pair_post(true, row->op, 0, LEN, 7, row->flags);
	assert_false(world_wait(pair.w, pair.qa, false, &pair.wc, 2 * SAN_NS_PER_MS));
	assert_true(l.nb != 0);
	shows = to[LEN - 1] == 0x55;
	assert_int_equal(to[lost], 0);
	/* the missing packet stays away for long: the last one is not held forever (RT-35) */
	world_run_for(pair.w, SAN_NS_PER_S);
	tl = san_core_tl(pair.w->node[row->from_b ? 0 : 1].core);
	assert_true(shows || tl->drops[SAN_DROP_HELD] != 0);
	assert_true(to[LEN - 1] == (shows ? 0x55 : 0));
	l.hold = false;
	pair_wait_for(true, false, SAN_ST_OK, 7);
	assert_int_equal(to[lost], 0x55);
	assert_int_equal(to[LEN - 1], 0x55);
	pair_close();
	return shows;
}

PAIR_CASE(sim_flag__last_byte_last)
{
	UNIT_EACH(row, rows) {
		print_message("%s\n", row->name);
		assert_false(shows_last_byte(row, true, false, 0));
		assert_false(shows_last_byte(row, true, false, 1408));
		/* without this guarantee it is placed at once */
		assert_true(shows_last_byte(row, true, true, 0));
		assert_true(shows_last_byte(row, false, false, 0));
	}
}

/* The connection ends while a last packet is held: the packet is freed. */
PAIR_CASE(sim_flag__end_in_between)
{
	struct lose l = {.offset = 1408, .hold = true};

	UNIT_EACH(row, rows) {
		l.op = row->wire_op;
		l.from = row->from_b;
		pair_open(65536);
		pair_filter(lose, &l);
		world_post_recv(pair.w, pair.qb, pair.b + 8192, 64, 1);
		pair_post(true, row->op, 0, LEN, 7, row->flags);
		world_run_for(pair.w, 2 * SAN_NS_PER_MS);
		san_core_conn_abort(pair.w->node[0].core, pair.w->qp[pair.qa].qp, pair.w->now_ns);
		assert_int_not_equal(pair_wait(true, false), SAN_ST_OK);
		pair.w->filter = NULL;
		pair_wait_end();
		pair_close();
	}
}

/* ---- end on error ---- */

#define NB  40 /* requests; number BAD has a wrong key */
#define BAD 5

static void
post_one(uint32_t i, enum rtsan_wr_opcode op, uint8_t flags)
{
	struct san_ulp_wr wr;

	world_wr(&wr, op, pair.a + i * 64, op == RTSAN_WR_FETCH_ADD ? 8 : 64,
		 (uint64_t)(uintptr_t)(pair.b + i * 64), i == BAD ? pair.kb ^ 0xff : pair.kb, i,
		 flags);
	world_post(pair.w, pair.qa, &wr);
}

/* *refused* is the kind of the request with the wrong key, *later* of all requests behind it. */
static void
ends_on_error(enum rtsan_wr_opcode refused, enum rtsan_wr_opcode later, uint8_t flags, bool ends)
{
	pair.param.ordered = true;
	pair.param.ends = ends;
	pair_open(65536);
	memset(pair.a, 0x55, NB * 64);
	for (uint32_t i = 0; i < NB; i++)
		post_one(i, i == BAD ? refused : i > BAD ? later :
							   RTSAN_WR_PUSH,
			 flags);
	for (uint32_t i = 0; i < NB; i++) {
		pair_wait(true, false);
		assert_int_equal(pair.wc.wr_id, i);
		if (i == BAD)
			assert_int_equal(pair.wc.status, SAN_ST_ACCESS);
		else
			assert_int_equal(pair.wc.status, i > BAD && ends ? RTSAN_WC_FLUSHED : 0);
		if (i < BAD || (!ends && i > BAD && later == RTSAN_WR_PUSH))
			assert_int_equal(pair.b[i * 64], 0x55);
		else if (later != RTSAN_WR_FETCH_ADD || ends)
			assert_int_equal(pair.b[i * 64], 0);
	}
	if (ends) {
		pair_wait_end();
		/* work posted now is flushed, too */
		post_one(0, RTSAN_WR_PUSH, 0);
		assert_int_equal(pair_wait(true, false), RTSAN_WC_FLUSHED);
	}
	pair_close();
}

PAIR_CASE(sim_flag__end_on_error)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL,
						   RTSAN_WR_FETCH_ADD};
	static const uint8_t flags[] = {RTSAN_WR_UNSOLICITED, RTSAN_WR_SOLICITED};

	for (unsigned int i = 0; i < RTE_DIM(ops); i++)
		for (unsigned int k = 0; k < RTE_DIM(ops); k++)
			UNIT_EACH(flag, flags) {
				ends_on_error(ops[i], ops[k], *flag, true);
				ends_on_error(ops[i], ops[k], *flag, false);
			}
}

static bool is_resync_sent;

/* Once the RESYNC is sent, its acknowledgement comes only with a push. */
static int
drop_acks(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct san_wire_pkt pkt;

	if (!world_parse(m, &pkt))
		return 1;
	is_resync_sent |= from == 0 && pkt.op == SAN_OP_RESYNC;
	return from == 0 || !is_resync_sent || pkt.op != SAN_OP_ACK;
}

/*
 * RT-40, RT-42: a push that brings the ACK by which the queue pair ends is refused, by express as
 * well.
 */
PAIR_CASE(sim_flag__not_with_the_end)
{
	bool express[] = {false, true};

	for (uint32_t i = 0; i < RTE_DIM(express); i++) {
		pair.conf.tune = pair_tune_express;
		pair.conf.tune_arg = &express[i];
		pair.param.ends = true;
		pair_open(65536);
		memset(pair.b, 0x55, 8192);
		pair_post(false, RTSAN_WR_PUSH, 0, 64, 1, 0); /* its key is known then */
		assert_int_equal(pair_wait(false, false), SAN_ST_OK);
		is_resync_sent = false;
		pair.w->filter = drop_acks;
		post_one(BAD, RTSAN_WR_PUSH, 0);
		while (!is_resync_sent)
			world_step(pair.w);
		world_run_for(pair.w, 20 * SAN_NS_PER_US);
		pair_post(false, RTSAN_WR_PUSH, 4096, 64, 2, 0);
		assert_int_equal(pair_wait(true, false), SAN_ST_ACCESS);
		world_run_for(pair.w, SAN_NS_PER_MS);
		assert_int_equal(pair.a[4096], 0);
		pair.w->filter = NULL;
		pair_wait_end();
		pair_close();
	}
}
