/* SPDX-License-Identifier: BSD-3-Clause */

#include "tl_pair.h"

#define COMMON 2 /* records that no connection has reserved; in tests of the budget: */
#define MANY   16
#define BUDGET 8000 /* three quarters of it for pulls */
#define CONNS  4

static uint16_t conn[CONNS]; /* of side 0 */

static void
open_wide(uint32_t max_txns, uint32_t max_wide)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conf tl;
	uint16_t slot[2];

	san_tl_conf_default(&tl);
	tl.max_txns = max_txns;
	tl.max_wide = max_wide;
	tl.budget_bytes = BUDGET;
	pair_open(&l, &tl);
	conn[0] = pair.slot[0];
	for (int i = 1; i < CONNS; i++) {
		pair_connect(&l, slot);
		conn[i] = slot[0];
	}
}

static void
setup_scarce(void)
{
	open_wide(1, 1);
}

static void
setup(void)
{
	open_wide(COMMON, CONNS + 1);
}

static void
setup_many(void)
{
	open_wide(MANY, CONNS + 1);
}

UNIT_FIXTURE(.setup = setup, .teardown = pair_close);

static int
submit(int i, uint8_t type, uint32_t length)
{
	const struct san_tl_req req = {.type = type, .length = length, .key = 77};
	int rc = pair_submit_at(0, conn[i], &req);

	san_tl_check(pair.h[0].tl);
	return rc;
}

/* The oldest request of the connection completes, as if a packet had acknowledged it. */
static void
finish_one(int i)
{
	struct san_tl_conn *tc = &pair.h[0].tl->conns[conn[i]];

	san_tl_finish_txn(pair.h[0].tl, tc, san_tl_txn_at(tc, tc->rsn_base), SAN_ST_OK);
	san_tl_check(pair.h[0].tl);
}

/* Requests of connection *i*, one for each character: '+' is accepted, '-' must wait. */
#define assert_asks(i, results)                                                                \
	do {                                                                                   \
		const char *r;                                                                 \
                                                                                               \
		for (r = results; *r != '\0'; r++)                                             \
			assert_int_equal(submit(i, SAN_TL_PUSH, 10), *r == '+' ? 0 : -EAGAIN); \
	} while (0)

/* room() was called this often since the last check, the last time for connection *i*. */
static void
assert_called(uint32_t n, int i)
{
	assert_int_equal(pair.f[0].nb_room, n);
	if (n != 0)
		assert_int_equal(pair.f[0].room_slot, conn[i]);
	pair.f[0].nb_room = 0;
}

/* The oldest request of connection *i* completes, and room() is called: see assert_called(). */
#define assert_finish_calls(i, n, called) \
	do {                              \
		finish_one(i);            \
		assert_called(n, called); \
	} while (0)

/* ---- records ---- */

#define ASK(i) submit(i, SAN_TL_PUSH, 10)

static bool
is_promised(int i)
{
	return (pair.h[0].tl->conns[conn[i]].want & SAN_WANT_PROMISED) != 0;
}

/* Connection 0 has all common records; the others have one each, and wait in order. */
static void
begin_waiting(void)
{
	for (int i = 0; i < 1 + COMMON; i++)
		assert_int_equal(ASK(0), 0);
	for (int i = 1; i < CONNS; i++)
		assert_asks(i, "+-");
	assert_int_equal(pair.h[0].tl->nb_promised, 0);
	assert_called(0, 0);
}

/*
 * RT-26: a connection with nothing outstanding finds a record, although others took all they could.
 */
UNIT_CASE(san_tl_initiator_submit__one_record_each)
{
	struct tl_link l = pair_link(true);
	uint16_t late[2];

	while (ASK(0) == 0)
		;
	assert_int_equal(pair.h[0].tl->conns[conn[0]].nb_txns, 1 + COMMON);
	assert_asks(1, "+");
	assert_asks(2, "+-");
	pair_connect(&l, late); /* one that is opened only now, too */
	conn[1] = late[0];
	assert_int_equal(ASK(1), 0);
}

/* A connection that waits for records continues when its own requests complete. */
UNIT_CASE(san_tl_want_wake_own__its_last_record)
{
	begin_waiting();
	assert_finish_calls(2, 1, 2);
	assert_int_equal(pair.h[0].tl->nb_promised, 0);
	assert_asks(2, "+-"); /* behind the others again */
	assert_finish_calls(0, 1, 1);
}

/* The one that returned it, and a new one, get none: it is for the one that waited longest. */
UNIT_CASE(san_tl_wake__longest_waiting_first)
{
	begin_waiting();
	for (int i = 1; i <= COMMON; i++) {
		assert_finish_calls(0, 1, i);
		assert_int_equal(pair.h[0].tl->nb_promised, 1);
		assert_asks(0, "-");
		assert_asks(i, "+");
		assert_int_equal(pair.h[0].tl->nb_promised, 0);
		assert_int_equal(ASK(i), -EAGAIN);
	}
	/* the one that had none yet, then the one that returned one first */
	assert_finish_calls(1, 1, 3);
	assert_int_equal(ASK(3), 0);
	assert_finish_calls(2, 1, 0);
	assert_int_equal(ASK(0), 0);
}

/* Each free record is for one: two are returned, two are woken, and no other gets one. */
UNIT_CASE(san_tl_wake__as_many_as_records)
{
	begin_waiting();
	assert_finish_calls(0, 1, 1);
	san_tl_tick(pair.h[0].tl, pair.now); /* nothing more is free */
	assert_called(0, 0);
	assert_finish_calls(0, 1, 2);
	assert_int_equal(pair.h[0].tl->nb_promised, 2);
	assert_true(is_promised(1) && is_promised(2));
	assert_asks(3, "-");
	assert_asks(0, "-");
	assert_asks(2, "+-"); /* one was reserved, not two */
	assert_asks(1, "+");
}

/* A connection that ends does not wait any more: its reservation is the next one's. */
UNIT_CASE(san_tl_wake__promise_of_one_that_ends)
{
	begin_waiting();
	assert_finish_calls(0, 1, 1);
	san_tl_conn_close(pair.h[0].tl, conn[2], 66, pair.now); /* it waits without a reservation */
	san_tl_check(pair.h[0].tl);
	assert_called(0, 0);
	san_tl_conn_close(pair.h[0].tl, conn[1], 66, pair.now);
	san_tl_check(pair.h[0].tl);
	assert_called(1, 3);
	assert_true(is_promised(3));
	assert_int_equal(pair.h[0].tl->nb_promised, 1);
	assert_asks(3, "+");
	assert_asks(0, "-");
}

/* The same for one with nothing left to submit, with a reservation or without. */
UNIT_CASE(san_tl_want_end__the_next_ones_turn)
{
	begin_waiting();
	san_tl_want_end(pair.h[0].tl, conn[0]); /* it does not wait */
	assert_called(0, 0);
	finish_one(0);
	san_tl_want_end(pair.h[0].tl, conn[2]);
	assert_called(1, 1);
	san_tl_want_end(pair.h[0].tl, conn[1]);
	san_tl_check(pair.h[0].tl);
	assert_called(1, 3);
	assert_int_equal(pair.h[0].tl->nb_promised, 1);
	assert_asks(3, "+");
	assert_asks(1, "-"); /* it waits like any other */
	assert_finish_calls(3, 1, 1);
	assert_int_equal(ASK(1), 0);
}

/* A reservation that is not needed is the next one's. */
UNIT_CASE(san_tl_initiator_submit__promise_not_needed)
{
	begin_waiting();
	assert_finish_calls(0, 1, 1);
	assert_finish_calls(1, 1, 2); /* its last one: the reserved record becomes its own */
	assert_true(is_promised(2) && is_promised(1));
	assert_int_equal(ASK(1), 0);
	assert_called(0, 0);
	assert_true(is_promised(2) && !is_promised(1));
}

/* ---- budget ---- */

#define PULL(i, n) submit(i, SAN_TL_PULL, n)

/* In turn, whatever the length: a short pull does not always precede a long one. */
UNIT_CASE_IN(san_tl_wake__budget_in_turn, setup_many)
{
	assert_int_equal(PULL(0, 2000), 0);
	assert_int_equal(PULL(0, 2000), 0);
	assert_int_equal(PULL(1, 1500), 0);
	assert_int_equal(PULL(2, 500), 0);
	assert_int_equal(PULL(1, 3000), -EAGAIN);
	assert_int_equal(PULL(2, 100), -EAGAIN);
	assert_finish_calls(0, 0, 0);
	assert_int_equal(PULL(2, 100), -EAGAIN);
	assert_int_equal(PULL(0, 100), -EAGAIN); /* the one that returned it */
	finish_one(2);                           /* it has none now, and need not wait */
	assert_called(1, 2);
	assert_int_equal(PULL(2, 100), 0);
	assert_int_equal(PULL(2, 500), -EAGAIN);
	assert_finish_calls(0, 2, 1);
	assert_int_equal(PULL(1, 3000), 0);
	assert_called(1, 2); /* there is room for the next one */
	assert_int_equal(PULL(2, 500), 0);
	assert_int_equal(PULL(0, 900), 0);
	assert_int_equal(PULL(3, 500), 0);
	assert_int_equal(pair.h[0].tl->pulled_used, 6000);
}

/* Pushes and atomics neither block pulls nor wait for them. */
UNIT_CASE_IN(san_tl_initiator_submit__pushes_pass, setup_many)
{
	assert_int_equal(PULL(0, 6000), 0);
	assert_int_equal(PULL(0, 100), -EAGAIN);
	assert_int_equal(ASK(1), 0);
	assert_int_equal(submit(0, SAN_TL_ATOMIC, 8), 0); /* instead: it does not wait any more */
	assert_int_equal(PULL(1, 100), 0);
	assert_int_equal(pair.h[0].tl->conns[conn[0]].want, 0);
}

/* Longer than the budget: when its own ones are done; meanwhile others may pull. */
UNIT_CASE_IN(san_tl_initiator_submit__longer_than_the_budget, setup_many)
{
	assert_int_equal(PULL(0, 1000), 0);
	assert_int_equal(PULL(0, 6001), -EAGAIN);
	assert_int_equal(PULL(1, 1000), 0);
	assert_int_equal(PULL(1, 1000), 0);
	assert_finish_calls(0, 1, 0);
	assert_int_equal(PULL(0, 6001), 0);
	assert_int_equal(pair.h[0].tl->pulled_used, 6000);
}

/* Silent targets do not delay others: connections that wait for them leave the line. */
UNIT_CASE_IN(san_tl_wake__expired_leave_the_line, setup_many)
{
	assert_int_equal(PULL(0, 3000), 0);
	pair_wait(60 * SAN_NS_PER_US);
	assert_int_equal(PULL(1, 1000), 0);
	assert_int_equal(PULL(2, 2000), 0);
	assert_int_equal(PULL(0, 1000), -EAGAIN);
	assert_int_equal(PULL(1, 3000), -EAGAIN);
	pair_wait(45 * SAN_NS_PER_US); /* the first one's pulls expire, and the tick detects it */
	assert_int_equal(pair.h[0].tl->conns[conn[0]].expired_pulled, 3000);
	assert_int_equal(pair.h[0].tl->conns[conn[0]].want, SAN_WANT_OWN);
	assert_true(pair.f[0].nb_room > 0);
	assert_int_equal(pair.f[0].room_slot, conn[1]);
	assert_int_equal(PULL(1, 3000), 0);
	pair.f[0].nb_room = 0;
	assert_finish_calls(0, 1, 0);
}

/* A connection that waits for budget has its record, so that returned budget is usable. */
UNIT_CASE(san_tl_want__the_record_first)
{
	assert_int_equal(PULL(0, 5700), 0);
	for (int i = 1; i < CONNS; i++)
		assert_int_equal(PULL(i, 100), 0);
	assert_int_equal(PULL(1, 1000), -EAGAIN);
	assert_int_equal(pair.h[0].tl->conns[conn[1]].want, SAN_WANT_BUDGET | SAN_WANT_PROMISED);
	assert_int_equal(ASK(0), 0); /* no common record is left */
	for (int i = 2; i < CONNS; i++) {
		assert_int_equal(PULL(i, 1000), -EAGAIN);
		assert_int_equal(pair.h[0].tl->conns[conn[i]].want, SAN_WANT_RECORD);
	}
	assert_finish_calls(0, 2, 2);
	assert_int_equal(PULL(3, 1000), -EAGAIN);
	assert_int_equal(PULL(2, 1000), -EAGAIN); /* behind the first one */
	assert_called(1, 1);                      /* again */
	assert_int_equal(PULL(1, 1000), 0);
	assert_called(1, 2);
	assert_int_equal(PULL(2, 1000), 0);
}

/* ---- more connections than reservations ---- */

/* RT-26: without a free ring a connection runs one transaction at a time. */
UNIT_CASE_IN(san_tl_initiator_submit__one_at_a_time_without_a_ring, NULL)
{
	struct san_tl *tl;

	open_wide(MANY, 1);
	tl = pair.h[0].tl;
	for (int i = 0; i < 3; i++) {
		assert_asks(0, "+");
		assert_asks(2, "+");
	}
	assert_int_equal(tl->free_rings.nb, 0);
	for (int i = 0; i < 3; i++) {
		assert_asks(1, "+-");
		assert_finish_calls(1, 1, 1);
	}
	assert_asks(1, "+-");
	finish_one(0);
	assert_finish_calls(0, 0, 0);
	assert_finish_calls(0, 1, 1); /* its last one: now the ring is free */
	assert_asks(1, "++");
	assert_true(san_tl_txn_at(&tl->conns[conn[1]], tl->conns[conn[1]].rsn_base) != NULL);
	assert_int_equal(tl->free_rings.nb, 0);
}

/* Without a record of its own, and none free: in order of arrival. */
UNIT_CASE_IN(san_tl_wake__first_in_turn, setup_scarce)
{
	assert_asks(0, "++"); /* the common one */
	assert_asks(1, "-");
	assert_asks(2, "-");
	assert_asks(1, "-"); /* keeps its place */
	assert_finish_calls(0, 1, 1);
	assert_int_equal(ASK(1), 0);
	assert_finish_calls(0, 1, 2);
	assert_asks(2, "+");
	assert_asks(0, "-");
	san_tl_conn_close(pair.h[0].tl, conn[1], SAN_ST_ABORTED, pair.now);
	assert_called(1, 0);
}

/* ... and before those with work outstanding, which would take each free one. */
UNIT_CASE_IN(san_tl_wake__first_before_more, setup_scarce)
{
	assert_asks(0, "++-");
	assert_asks(1, "-");
	assert_finish_calls(0, 1, 1);
	assert_true(is_promised(1));
	assert_asks(0, "-");
	assert_asks(1, "+");
	for (int i = 0; i < 3; i++) {
		assert_finish_calls(1, 1, 0);
		assert_asks(1, "-");
		assert_asks(0, "+-");
		assert_finish_calls(0, 1, 1);
		assert_asks(0, "-");
		assert_asks(1, "+");
	}
}

/* A record reserved for one with nothing outstanding is for the waiting one, not a new one. */
UNIT_CASE_IN(san_tl_wake__first_before_new, setup_scarce)
{
	assert_asks(0, "+");
	assert_asks(1, "+");
	assert_asks(2, "-");
	assert_finish_calls(0, 1, 2);
	assert_asks(0, "-");
	assert_asks(2, "+");
	assert_finish_calls(1, 1, 0);
	san_tl_want_end(pair.h[0].tl, conn[0]); /* it has no work after all */
	san_tl_check(pair.h[0].tl);
	assert_int_equal(ASK(1), 0);
}

/* ---- shares of hosts ---- */

#define SILENT 3 /* connections of a host that acknowledges nothing; the last is of another host */

/* RT-35: a host has an eighth of what is left. The others need not wait for it. */
UNIT_CASE_IN(san_tl_want__share_of_a_host, NULL)
{
	const struct san_tl_host *h;
	struct tl_link l = pair_link(true);
	uint16_t slot[2];

	open_wide(MANY, 1);
	san_tl_conn_close(pair.h[0].tl, conn[SILENT], SAN_ST_ABORTED, pair.now);
	l.net = 1;
	pair_connect(&l, slot);
	conn[SILENT] = slot[0];
	assert_int_equal(pair.h[0].pdl->nb_hosts, 2);
	h = pair.h[0].tl->conns[conn[0]].host;
	for (int i = 0; i < SILENT; i++)
		while (ASK(i) == 0)
			;
	assert_in_range(h->nb_txns, 2, SILENT);
	assert_int_equal(pair.h[0].tl->conns[conn[0]].want, SAN_WANT_SHARE);
	assert_asks(SILENT, "++"); /* more than one, so it has a ring, too */
	assert_called(0, 0);
	assert_finish_calls(0, 1, 0); /* it answers, so that its connection continues */
	assert_asks(0, "+-");
}

/* Wait *ns* in steps, so that each connection is swept. */
static void
sweep(uint64_t ns)
{
	for (uint32_t i = 0; i < 100; i++) {
		pair.now += ns / 100;
		san_tl_tick(pair.h[0].tl, pair.now);
	}
}

/*
 * RT-35: a connection that holds records and makes no progress for two minutes ends, if others wait
 * for records. One that makes progress does not.
 */
UNIT_CASE(san_tl_want_end_stale__no_progress)
{
	struct san_pdl *pdl = pair.h[0].pdl;

	while (ASK(0) == 0)
		;
	san_tl_want_end(pair.h[0].tl, conn[0]);
	sweep(2 * SAN_HOLD_MAX_NS);
	assert_false(pdl->conns[conn[0]].failed); /* no other connection waits */
	assert_asks(1, "+-");
	sweep(SAN_HOLD_MAX_NS - SAN_NS_PER_S);
	assert_false(pdl->conns[conn[0]].failed);
	pdl->conns[conn[1]].tx[SAN_WIN_DATA].base++; /* acknowledged */
	sweep(3 * SAN_NS_PER_S);
	assert_true(pdl->conns[conn[0]].failed);
	assert_false(pdl->conns[conn[1]].failed);
	pdl->conns[conn[1]].tx[SAN_WIN_DATA].base--;
}
