/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

static struct san_pdl *pdl;
static struct san_pdl_conn *c[4];

static void
setup(void)
{
	struct san_pdl_conf conf = pair_conf();

	conf.nb_owners = 2;

	pair_open(&pair, &conf, 16, 64);
	pdl = pair.pdl[0];
	c[0] = pair.c[0];
	for (int i = 1; i < 4; i++) {
		pair_connect(&pair, 16, 64);
		c[i] = pair.c[0];
	}
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

UNIT_CASE(san_pdl_sched_kick__once_in_order)
{
	assert_false(san_pdl_sched_has_work(pdl));
	for (int i = 0; i < 3; i++) {
		san_pdl_sched_kick(pdl, c[2 - i]);
		san_pdl_sched_kick(pdl, c[2]); /* no effect if it is in the list */
	}
	assert_true(san_pdl_sched_has_work(pdl));
	san_pdl_check(pdl);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(san_pdl_sched_next(pdl), c[2 - i]);
	assert_null(san_pdl_sched_next(pdl));
}

UNIT_CASE(san_pdl_sched_kick__only_what_can_send)
{
	c[0]->failed = true;
	san_pdl_sched_kick(pdl, c[0]);
	san_pdl_conn_close(pdl, c[1]);
	san_pdl_sched_kick(pdl, c[1]);
	assert_null(san_pdl_sched_next(pdl));
}

/* RULE-9: a visit that ends because of its quantum moves to the end of the queue. */
UNIT_CASE(san_pdl_sched_end__round_robin)
{
	for (int i = 0; i < 4; i++)
		san_pdl_sched_kick(pdl, c[i]);
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < 4; i++) {
			assert_ptr_equal(san_pdl_sched_next(pdl), c[i]);
			san_pdl_sched_end(pdl, c[i], true);
		}
	}
	for (int i = 0; i < 4; i++)
		san_pdl_sched_end(pdl, san_pdl_sched_next(pdl), false);
	assert_null(san_pdl_sched_next(pdl));
}

/* Visit as long as there is work; returns what each owner has sent. */
static void
send_all(uint64_t sent[2], const uint32_t len[2], int visits)
{
	struct san_pdl_conn *v;

	sent[0] = sent[1] = 0;
	while (visits-- > 0) {
		v = san_pdl_sched_next(pdl);
		for (uint16_t n = 0; n < pdl->conf.quantum; n++)
			san_pdl_sched_sent(pdl, v, 1, len[v->owner], pair.now);
		sent[v->owner] += (uint64_t)pdl->conf.quantum * len[v->owner];
		san_pdl_sched_end(pdl, v, true);
	}
	san_pdl_check(pdl);
}

/* Packets of express are accounted and timed like others. */
UNIT_CASE(san_pdl_tx_express_sent__as_others)
{
	struct san_pdl_entry *x, e = {.op = SAN_OP_PUSH_UNSLCTD_DATA, .len = 100};
	struct san_pdl_room room;
	int32_t credit[2];

	c[1]->owner = 1;
	for (int i = 0; i < 2; i++) {
		credit[i] = pdl->owners[i].credit;
		san_pdl_tx_room(pdl, c[i], pair.now, &room);
	}
	for (int i = 0; i < 2; i++) {
		san_pdl_tx_assign(pdl, c[0], &e, pair.now);
		x = san_pdl_tx_express_assign(pdl, c[1]);
		x->op = e.op;
		x->len = e.len;
	}
	san_pdl_tx_express_sent(pdl, c[1], 2, 200, e.len, pair.now);
	san_pdl_check(pdl);
	assert_int_equal(credit[1] - pdl->owners[1].credit, credit[0] - pdl->owners[0].credit);
	assert_int_equal(c[1]->pcb.inflight, c[0]->pcb.inflight);
	assert_true(c[1]->rtx_deadline_ns != SAN_TIME_NEVER);
	for (int i = 0; i < 2; i++) {
		x = san_pdl_win_tx_entry(c[1]->txb, SAN_WIN_DATA, c[1]->tx[SAN_WIN_DATA].base + i);
		assert_int_equal(x->sent_ts, (uint32_t)pair.now);
		assert_int_equal(x->state, SAN_ENT_SENT);
		assert_int_equal(x->due, san_pdl_tick(c[1]->rtx_deadline_ns));
	}
}

static bool
is_even(const uint64_t sent[2])
{
	return sent[0] * 5 < sent[1] * 6 && sent[1] * 5 < sent[0] * 6; /* headers count */
}

/* Owners share the link evenly, by bytes, however many connections each has (SYS-5). */
UNIT_CASE(san_pdl_sched_next__owners_take_turns)
{
	static const uint32_t same[2] = {1000, 1000}, longer[2] = {8000, 1000}, small[2] = {64, 64};
	uint64_t sent[2];

	c[3]->owner = 1;
	for (int i = 0; i < 4; i++)
		san_pdl_sched_kick(pdl, c[i]);
	send_all(sent, same, 1000);
	assert_true(is_even(sent));
	send_all(sent, longer, 1000);
	assert_true(is_even(sent));
	send_all(sent, small, 1000); /* several visits a turn, of one connection or of three */
	assert_true(is_even(sent));
	/* turns are not saved up: an owner that returns has one turn */
	while (san_pdl_sched_next(pdl) != NULL)
		;
	san_pdl_sched_kick(pdl, c[0]);
	send_all(sent, same, 1000);
	san_pdl_sched_kick(pdl, c[3]);
	send_all(sent, same, 1000);
	assert_true(is_even(sent));
	/* and connections take turns within an owner */
	for (int i = 0; i < 3; i++) {
		san_pdl_sched_kick(pdl, c[i]);
		assert_true(c[i]->in_ready);
	}
	/* a connection that ends removes its owner from the queue */
	san_pdl_conn_del(pdl, c[3]);
	san_pdl_check(pdl);
	assert_non_null(san_pdl_sched_next(pdl));
	c[3] = NULL;
}

/* Above one packet nothing is paced; below, packets are rtt / window apart. */
UNIT_CASE(san_pdl_sched_paced__below_one_packet)
{
	san_pdl_rtt_sample(&c[0]->rtt, &pdl->conf, 30000, 0, UINT32_MAX);
	c[0]->cc.window = SAN_CC_ONE;
	san_pdl_sched_sent(pdl, c[0], 1, 0, pair.now);
	assert_true(san_pdl_sched_paced(pdl, c[0], pair.now));
	c[0]->cc.window = SAN_CC_ONE / 10;
	san_pdl_sched_sent(pdl, c[0], 1, 0, pair.now);
	assert_false(san_pdl_sched_paced(pdl, c[0], pair.now + 290000));
	assert_true(c[0]->pace_wait && san_wheel_timer_is_armed(&c[0]->timer));
	assert_true(san_pdl_sched_paced(pdl, c[0], pair.now + 300100));
	/* the host's window counts as well */
	c[0]->cc.window = 4 * SAN_CC_ONE;
	assert_true(san_pdl_sched_paced(pdl, c[0], pair.now));
	c[0]->cc.host_window = SAN_CC_ONE / 2;
	assert_false(san_pdl_sched_paced(pdl, c[0], pair.now));
}

/* On a long path a tiny window must not look like silence. */
UNIT_CASE(san_pdl_sched_paced__long_path)
{
	san_pdl_rtt_sample(&c[0]->rtt, &pdl->conf, 40 * SAN_NS_PER_MS, 0, UINT32_MAX);
	c[0]->cc.window = SAN_CC_ONE / 100;
	san_pdl_sched_sent(pdl, c[0], 1, 0, pair.now);
	assert_false(san_pdl_sched_paced(pdl, c[0], pair.now + 99 * SAN_NS_PER_MS));
	assert_true(san_pdl_sched_paced(pdl, c[0], pair.now + 100 * SAN_NS_PER_MS));
}
