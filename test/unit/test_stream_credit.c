/* SPDX-License-Identifier: BSD-3-Clause */

/* How many messages may be sent, and what returns credit. (AFC-14 ... AFC-16, AFC-27) */

#include "test_stream.h"

/* A header of the peer with *pr* receives, acknowledging all but *lost* messages of ours. */
static void
raw_credit(uint16_t pr, uint32_t lost)
{
	RAW_PUT(raw_msg(0), sm.pr = pr, sm.lrsq -= lost);
}

/* credit := PR - (LSSQ - LRSQ), whatever it was before (AFC-14). */
ST_TEST(hear__recomputed)
{
	static const struct {
		uint16_t pr;
		uint32_t lost; /* of 4 messages */
		uint32_t credit;
	} rows[] = {{32, 4, 28}, {32, 4, 28}, {10, 3, 7}, {40, 2, 38}, {5, 1, 4}, {5, 0, 5}};

	raw_start();
	for (uint32_t i = 0; i < 4; i++)
		raw_send(100);
	UNIT_EACH(row, rows) {
		raw_credit(row->pr, row->lost);
		assert_int_equal(st_view(to).credit, row->credit);
	}
}

/* More in flight than receives are posted: 0, not 4 billion (AFC-14). */
ST_RAW(hear__negative_is_none)
{
	raw_send(100);
	raw_send(100);
	raw_credit(1, 2);
	assert_int_equal(st_view(to).credit, 0);
	st_forget_msgs();
	raw_send(100);
	assert_int_equal(st_of(to)->nb_msgs, 0);
	raw_credit(32, 0);
	assert_int_equal(st_said_data(to), 1);
}

/* An overtaken header has old values (AFC-14, AFC-17). */
ST_RAW(hear__late_header)
{
	struct san_sm late, next;

	late = raw_msg(0);
	next = raw_msg(0);
	late.pr = 3;
	next.pr = 20;
	raw_put(next);
	assert_int_equal(st_view(to).credit, 20);
	raw_put(late);
	assert_int_equal(st_view(to).credit, 20);
	assert_null(san_stream_fault(to->s));
}

/* Message numbers wrap to 0 (AFC-14). */
ST_TEST(hear__wrap)
{
	conf[0].first_seq = conf[1].first_seq = UINT32_MAX - 20;
	conf[0].nb_recv = conf[1].nb_recv = 8;
	conf[0].nb_store = conf[1].nb_store = 8;
	st_start();
	for (uint32_t i = 0; i < 200; i++) {
		st_send(from, 100);
		st_send_settle(to, 100);
		st_read(to, 100, 100);
		st_read(from, 100, 100);
		assert_int_equal(st_sent(from), 100);
		assert_int_equal(st_sent(to), 100);
	}
	assert_true(st_stats(from).nb_tx_messages > 100);
}

/* Without credit nothing is sent, and the waits are counted (AFC-14, AFC-16). */
ST_TEST(left__never_without)
{
	raw_open();
	RAW_PUT(raw_hello(), sm.pr = 4);
	st_forget_msgs();
	for (uint32_t i = 0; i < 20; i++)
		raw_send(1000);
	assert_int_equal(st_view(to).credit, 1);
	assert_int_equal(st_said_data(to), st_of(to)->nb_msgs);
	assert_int_equal(st_said_data(to), 3); /* the last one is reserved for an update */
	assert_int_equal(st_stats(to).nb_stalls_credit, 1);
	raw_credit(4, 0);
	assert_int_equal(st_said_data(to), 6);
	assert_int_equal(st_view(to).credit, 1);
	assert_int_equal(st_stats(to).nb_stalls_credit, 2);
}

/* At credit 1 everything but an update waits: the end, modes, larger buffers (AFC-16). */
ST_RAW(left__last_one_is_reserved)
{
	raw_credit(1, 0);
	pair_ctl(to, 1, SAN_WR_SHUTDOWN, 0, 0);
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.pr = 1, sm.rep.resize = 4096);
	RAW_PUT(raw_msg(SAN_SM_CANCEL), sm.pr = 1);
	assert_int_equal(st_of(to)->nb_msgs, 0);
	raw_credit(32, 0);
	assert_int_equal(st_said(to, SAN_SM_FIN | SAN_SM_RESIZED | SAN_SM_CANCELLED), 1);
}

/* The last credit is used for an update when the peer is about to run out (AFC-15, AFC-16). */
ST_TEST(left__update_takes_the_last)
{
	conf[1].nb_recv = 12; /* T1 4, T2 6 */
	raw_start();
	for (uint32_t i = 0; i < 7; i++)
		raw_credit(1, 0);
	assert_int_equal(st_of(to)->nb_msgs, 0);
	raw_credit(1, 0); /* 3 left, and 12 after the update */
	assert_int_equal(st_of(to)->nb_msgs, 1);
	assert_int_equal(st_said(to, SAN_SM_UPDATE), 1);
	assert_int_equal(st_of(to)->msg[0].pr, 12);
}

/* An update only for room may not use it: both sides could be left without (AFC-16). */
ST_TEST(left__not_for_room)
{
	conf[1].nb_store = 8;
	raw_start();
	for (uint32_t i = 0; i < 8; i++) {
		RAW_PUT(raw_msg(0), sm.pr = 1, sm.len = 10);
		raw_recv(10);
	}
	assert_int_equal(st_of(to)->nb_msgs, 0);
	raw_credit(2, 0);
	assert_int_equal(st_said(to, SAN_SM_UPDATE), 1);
	assert_int_equal(st_of(to)->msg[0].nb_freed, 8);
}

/* Defaults: for 10 buffers 3 and 5, for 12 buffers 4 and 6 (AFC-15). */
ST_TEST(must_update__defaults)
{
	static const struct {
		uint16_t nb, t1, t2;
	} rows[] = {{10, 3, 5}, {12, 4, 6}, {4, 2, 2}, {32, 10, 16}};

	for (uint32_t i = 0; i < 4; i++) {
		conf[0].nb_recv = conf[1].nb_recv = rows[i].nb;
		pair_create(&pair, &conf[0], &conf[1]);
		assert_int_equal(to->s->conf.t1, rows[i].t1);
		assert_int_equal(to->s->conf.t2, rows[i].t2);
		san_stream_destroy(from->s);
		san_stream_destroy(to->s);
	}
	pair_create(&pair, &conf[0], &conf[1]);
}

/* One way, small messages: at most one update per T2 of them, read at once or not (AFC-15). */
static void
one_way(uint32_t behind)
{
	uint32_t unread = 0;
	struct san_stream_stats s;

	conf[0].nb_recv = conf[1].nb_recv = 12;
	conf[0].nb_store = conf[1].nb_store = 12;
	st_start();
	for (uint32_t i = 0; i < 1000; i++) {
		st_send_settle(from, 100);
		while (st_has(from, RTSAN_WC_SEND))
			st_sent(from);
		unread++;
		while (unread > behind) {
			st_read(to, 100, 100);
			unread--;
		}
		st_settle();
	}
	s = st_stats(to);
	assert_true(s.nb_rx_data >= 1000 - 12);
	assert_true(s.nb_updates > 0);
	assert_true(s.nb_updates <= s.nb_rx_data / 6);
	assert_int_equal(st_stats(from).nb_updates, 0); /* and an update is not answered by one */
}

ST_TEST(may_update__prompt_reader)
{
	one_way(0);
}

ST_TEST(may_update__slow_reader)
{
	one_way(4);
}

/* Data in both directions carries all updates: no messages for them (AFC-15). */
ST_OPEN(may_update__both_ways)
{
	for (uint32_t i = 0; i < 300; i++) {
		st_send(from, 100);
		st_send_settle(to, 100);
		st_read(to, 100, 100);
		st_read(from, 100, 100);
		assert_int_equal(st_sent(from), 100);
		assert_int_equal(st_sent(to), 100);
	}
	assert_int_equal(st_stats(from).nb_updates + st_stats(to).nb_updates, 0);
}

/* A message that cannot be delivered yet has not arrived, for the peer, too (AFC-15). */
ST_TEST(must_update__held_messages)
{
	struct san_sm first;

	conf[1].nb_recv = 12;
	raw_start();
	first = raw_msg(0);
	for (uint32_t i = 0; i < 9; i++)
		raw_credit(32, 0);
	/* 12 posted, 9 ahead of the gap: an update would be worthless */
	assert_int_equal(st_of(to)->nb_msgs, 0);
	raw_put(first);
	assert_int_equal(st_said(to, SAN_SM_UPDATE), 1);
	assert_int_equal(st_view(to).peer_credit, 12);
}

/* Both sides have one credit and data: they make progress (AFC-16). */
ST_TEST(both_sides__at_one)
{
	for (uint32_t i = 0; i < 2; i++) {
		conf[i].nb_recv = 4;
		conf[i].nb_store = 64;
		conf[i].nb_send = 64;
	}
	st_start();
	for (uint32_t i = 0; i < 20; i++) {
		st_send(from, 1400);
		st_send(to, 1400);
	}
	/* each spends its credit before it receives anything */
	pair_pump(&pair);
	assert_int_equal(st_view(from).credit, 1);
	assert_int_equal(st_view(to).credit, 1);
	st_settle();
	st_read(to, 20 * 1400, 1400);
	st_read(from, 20 * 1400, 1400);
}

/* Unread messages are bounded by the peer's store, and control messages continue (AFC-27). */
ST_TEST(has_room__bound)
{
	conf[1].nb_store = 5;
	conf[1].nb_recv = 4;
	st_start();
	for (uint32_t i = 0; i < 20; i++)
		st_send_settle(from, 100);
	assert_int_equal(st_said_data(from), 5);
	assert_int_equal(st_view(to).nb_unread_bytes, 500);
	assert_true(st_view(from).credit > 1);
	assert_int_equal(st_stats(from).nb_stalls_store, 1);
	st_read(to, 2000, 100);
}
