/* SPDX-License-Identifier: BSD-3-Clause */

#include "tl_pair.h"

#define NEVER  SAN_SOLICIT_NEVER
#define ALWAYS SAN_SOLICIT_ALWAYS

static void
open_with(uint16_t req_win, uint16_t data_win, uint16_t msg_limit, uint16_t n)
{
	struct tl_link l = pair_link(true);

	l.req_win = req_win;
	l.data_win = data_win;
	l.msg_limit = msg_limit;
	l.n = n;
	pair_open(&l, NULL);
}

UNIT_FIXTURE(.teardown = pair_close);

static enum san_hold
hold(void)
{
	enum san_hold h = san_tl_hold(pair.h[0].tl, pair.c[0], pair.now);

	/* the query changes nothing */
	san_tl_check(pair.h[0].tl);
	san_pdl_check(pair.h[0].pdl);
	assert_int_equal(san_tl_hold(pair.h[0].tl, pair.c[0], pair.now), h);
	return h;
}

static void
push(uint32_t nb, uint8_t solicit, uint32_t length)
{
	static uint64_t cookie;

	while (nb-- > 0)
		assert_int_equal(pair_push(cookie++ % 16, SAN_KIND_PUSH, solicit, length), 0);
}

/* From nothing to do, through packets to send and to be acknowledged, to nothing. */
UNIT_CASE(san_tl_hold__one_push)
{
	open_with(16, 64, 64, 64);
	assert_int_equal(hold(), SAN_HOLD_APPLICATION);
	push(1, NEVER, 100);
	assert_int_equal(hold(), SAN_HOLD_NONE);
	pair_tx(0);
	assert_int_equal(hold(), SAN_HOLD_ANSWER);
	pair_rx(1, 0);
	pair_settle();
	assert_int_equal(hold(), SAN_HOLD_APPLICATION);
	pair_pull(1, 100);
	assert_int_equal(hold(), SAN_HOLD_NONE);
	san_pdl_conn_close(pair.h[0].pdl, pair.c[0]);
	assert_int_equal(hold(), SAN_HOLD_SETUP);
}

/* The peer has no receive: that stays the reason while the request is repeated. */
UNIT_CASE(san_tl_hold__receiver)
{
	open_with(16, 64, 64, 64);
	assert_int_equal(pair_push(0, SAN_KIND_SEND, NEVER, 100), 0);
	pair_xfer(0);
	pair_xfer(1);
	assert_int_equal(hold(), SAN_HOLD_RECEIVER);
	pair_xfer(0);
	pair_xfer(1);
	pair_wait(101 * SAN_NS_PER_US);
	assert_int_equal(hold(), SAN_HOLD_RECEIVER);
	pair_tx(0); /* repeated, not answered */
	assert_int_equal(hold(), SAN_HOLD_RECEIVER);
	pair.f[1].nb_recvs = 1;
	pair_settle();
	assert_int_equal(hold(), SAN_HOLD_APPLICATION);
}

UNIT_CASE(san_tl_hold__grant)
{
	open_with(16, 64, 64, 64);
	push(1, ALWAYS, 3000);
	assert_int_equal(hold(), SAN_HOLD_NONE); /* the request */
	pair_tx(0);
	assert_int_equal(hold(), SAN_HOLD_GRANT);
	pair_rx(1, 0);
	pair_xfer(1);
	assert_int_equal(hold(), SAN_HOLD_NONE);
	pair_settle();
	assert_int_equal(hold(), SAN_HOLD_APPLICATION);
}

UNIT_CASE(san_tl_hold__limits_of_transactions)
{
	const struct san_tl_req req = {.type = SAN_TL_PUSH, .length = 10, .key = 77};

	open_with(16, 64, 2, 4);
	push(4, NEVER, 100);
	pair_tx(0);
	assert_int_equal(hold(), SAN_HOLD_MESSAGES);
	assert_int_not_equal(pair_submit(0, &req), 0);
	pair.c[0]->pcb.msg_limit = 64;
	san_tl_initiator_admit(pair.h[0].tl, pair.c[0]);
	san_pdl_sched_kick(pair.h[0].pdl, pair.c[0]);
	pair_tx(0);
	assert_int_equal(hold(), SAN_HOLD_TRANSACTIONS);
	pair_settle();
}

/* The reasons of packet delivery for a connection with work. */
UNIT_CASE(san_pdl_hold__each)
{
	struct san_pdl_conn *c;

	open_with(16, 4, 64, 64);
	c = pair.c[0];
	push(8, NEVER, 1000);
	assert_int_equal(hold(), SAN_HOLD_NONE);
	c->cc.window = SAN_CC_ONE / 2;
	c->pace_ns = pair.now + 1;
	assert_int_equal(hold(), SAN_HOLD_PACE);
	pair.now++;
	assert_int_equal(hold(), SAN_HOLD_NONE);
	c->cc.window = 2 * SAN_CC_ONE;
	pair_tx(0);
	assert_int_equal(hold(), SAN_HOLD_CONGESTION);
	c->cc.window = 64 * SAN_CC_ONE;
	c->pcb.first_win = 3;
	assert_int_equal(hold(), SAN_HOLD_VIRTUAL);
	c->pcb.first_win = 65;
	san_pdl_sched_kick(pair.h[0].pdl, c);
	assert_int_equal(hold(), SAN_HOLD_NONE);
	pair_tx(0);
	/* the request window has room, but there are no requests: data waits for its own window */
	assert_int_equal(san_pdl_win_tx_room(&c->tx[SAN_WIN_DATA]), 0);
	assert_int_equal(hold(), SAN_HOLD_WINDOW);
	pair_settle();
	assert_int_equal(hold(), SAN_HOLD_APPLICATION);
}
