/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages, sent and received: the first one, order, combined messages, invalid messages. */

#include "test_stream.h"

/* ---- the first one (AFC-2) ---- */

/* Both announce how many messages they can receive; before that nothing is sent. */
ST_TEST(msg_check_hello__nothing_before_it)
{
	raw_open();
	assert_int_equal(st_of(to)->nb_msgs, 1);
	assert_int_equal(st_of(to)->msg[0].flags, SAN_SM_HELLO | SAN_SM_ACCEPTOR);
	assert_int_equal(st_of(to)->msg[0].pr, conf[1].nb_recv);
	assert_int_equal(st_of(to)->msg[0].hello.nb_store, conf[1].nb_store);
	assert_int_equal(st_of(to)->msg[0].hello.msg_size, conf[1].msg_size);
	assert_int_equal(st_of(to)->msg[0].hello.threshold, 4096);
	st_send(to, 100);
	st_send(to, 3000);
	pair_ctl(to, 1, SAN_WR_SHUTDOWN, 0, 0);
	raw_recv(LARGE);
	assert_int_equal(st_of(to)->nb_msgs, 1);
	assert_false(st_has(to, RTSAN_WC_SEND));
	raw_put(raw_hello());
	/* earlier work of the application completes, in order */
	assert_int_equal(st_said_data(to), 3);
	assert_int_equal(st_sent(to), 100);
	assert_int_equal(st_sent(to), 3000);
	assert_true(st_has(to, RTSAN_WC_STREAM_SHUTDOWN));
}

/* Receives are posted before the connection is up. */
ST_TEST(msg_check_hello__buffers_before_it)
{
	pair_create(&pair, &conf[0], &conf[1]);
	assert_int_equal(to->recv_tail, 0);
	pair_pump(&pair);
	assert_int_equal(to->recv_tail, conf[1].nb_recv);
	assert_int_equal(to->nb_req, 0);
}

/* Sent by both at the same time. */
ST_TEST(msg_check_hello__early_data_of_both)
{
	pair_create(&pair, &conf[0], &conf[1]);
	st_send(from, 100);
	st_send(to, LARGE);
	st_recv(to, 200);
	pair_open(&pair);
	st_settle();
	assert_int_equal(st_of(from)->msg[0].flags, SAN_SM_HELLO);
	assert_int_equal(st_received(to), 100);
	st_read(from, LARGE, LARGE);
}

ST_TEST(msg_check_hello__not_possible)
{
#define REFUSED(change)                                   \
	do {                                              \
		st_setup();                               \
		raw_open();                               \
		RAW_PUT(raw_hello(), change);             \
		assert_false(to->s->hello_rcvd);          \
		assert_non_null(san_stream_fault(to->s)); \
	} while (0)
	REFUSED(sm.flags = 0);
	REFUSED(sm.pr = 1); /* the initial credit is at least 2 (AFC-14) */
	REFUSED(sm.hello.msg_size = SAN_STREAM_MSG_MIN - 1);
	REFUSED(sm.hello.nb_store = 1);
	REFUSED(sm.hello.nb_adv = 0);
	REFUSED(sm.flags |= SAN_SM_ACCEPTOR);
#undef REFUSED
}

ST_RAW(msg_check_hello__twice)
{
	raw_put(raw_hello());
	assert_non_null(san_stream_fault(to->s));
}

/* ---- order (AFC-17) ---- */

/* Messages that overtake others wait for them. */
ST_RAW(receive__overtaken)
{
	static const uint32_t order[] = {3, 1, 2, 0};
	struct san_sm m[4];

	for (uint32_t i = 0; i < 4; i++) {
		m[i] = raw_msg(0);
		m[i].len = 100;
	}
	/* delivered in this order: the bytes are in stream order */
	UNIT_EACH(i, order) {
		assert_int_equal(st_view(to).nb_unread_bytes, 0);
		st_of(from)->src_used = 100 * *i;
		raw_put(m[*i]);
	}
	assert_int_equal(st_stats(to).nb_messages_held, 3);
	st_of(from)->src_used = 400;
	raw_recv(400);
	assert_int_equal(st_received(to), 400);
}

/* In any order of arrival the stream is the same. */
ST_TEST(receive__any_order)
{
	pair_ops.caps.ordered = false;
	pair.reorder = 8;
	st_start();
	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < 3; k++)
			st_send(from, 1400);
		pair_pump(&pair);
		st_settle();
		st_read(to, 3 * 1400, 3000);
		while (st_has(from, RTSAN_WC_SEND))
			st_sent(from);
	}
	assert_true(st_stats(to).nb_messages_held > 10);
}

ST_TEST(receive__number_out_of_bounds)
{
	/* beyond what was received, and beyond what could be in flight */
	static const int32_t offs[] = {-1, -1000, 32 + 32, INT32_MIN};

	UNIT_EACH(off, offs) {
		st_setup_raw();
		RAW_PUT(raw_msg(0), sm.seq += (uint32_t)*off);
		assert_non_null(san_stream_fault(to->s));
	}
}

ST_RAW(receive__number_twice)
{
	struct san_sm m = raw_msg(0);

	m.seq += 3;
	raw_put(m);
	assert_null(san_stream_fault(to->s));
	raw_put(m);
	assert_non_null(san_stream_fault(to->s));
}

/* ---- invalid messages ---- */

ST_RAW(receive__no_message)
{
	static const uint8_t zeros[100];

	raw_put_bytes(zeros, sizeof(zeros));
	assert_non_null(san_stream_fault(to->s));
}

/* The length that the provider reports is checked, too. */
ST_RAW(receive__longer_than_its_buffer)
{
	pair_done(to, to->recv_cookie[to->recv_head++ % PAIR_REQS], 0, 1 << 20);
	raw_run();
	assert_non_null(san_stream_fault(to->s));
}

/* Counts in a header only grow, and not beyond what was sent (AFC-14, AFC-27). */
ST_TEST(receive__counts)
{
	static const struct {
		int32_t lrsq, nb_freed;
	} rows[] = {{1, 0}, {0, 1}, {-3, 0}, {0, -1}, {-100, 0}};

	UNIT_EACH(row, rows) {
		st_setup_raw();
		raw_send(100);
		raw_send(100);
		raw_put(raw_msg(0)); /* everything is acknowledged */
		assert_null(san_stream_fault(to->s));
		RAW_PUT(raw_msg(0), sm.lrsq += (uint32_t)row->lrsq,
			sm.nb_freed += (uint32_t)row->nb_freed);
		assert_non_null(san_stream_fault(to->s));
	}
}

/* More unread messages than there is room for (AFC-27). */
ST_TEST(receive__more_than_there_is_room_for)
{
	conf[1].nb_store = 8;
	conf[1].nb_recv = 16;
	raw_start();
	for (uint32_t i = 0; i < 9; i++) {
		assert_null(san_stream_fault(to->s));
		RAW_PUT(raw_msg(0), sm.len = 10);
	}
	assert_non_null(san_stream_fault(to->s));
}

ST_RAW(receive__behind_the_end)
{
	RAW_PUT(raw_msg(SAN_SM_FIN), sm.len = 10);
	assert_null(san_stream_fault(to->s));
	RAW_PUT(raw_msg(0), sm.len = 10);
	assert_non_null(san_stream_fault(to->s));
}

/* After a fault nothing is received or sent: the owner ends the connection. */
ST_RAW(fault__is_the_end)
{
	uint32_t said;

	raw_put(raw_hello());
	said = st_of(to)->nb_msgs;
	st_send(to, 100);
	st_recv(to, 100);
	RAW_PUT(raw_msg(0), sm.len = 10);
	assert_int_equal(st_of(to)->nb_msgs, said);
	assert_int_equal(st_view(to).nb_unread_bytes, 0);
	assert_true(san_stream_deadline_ns(to->s) == UINT64_MAX);
	pair_end_now(to, RTSAN_WC_FLUSHED);
	assert_int_equal(st_sent_as(to, RTSAN_WC_PROTOCOL), 0);
	assert_int_equal(st_received_as(to, RTSAN_WC_PROTOCOL), 0);
}

/* ---- combined messages ---- */

/* All parts are combined into one message, with the data. */
ST_LARGE(msg_build__all_in_one)
{
	const struct san_sm *m;

	st_recv_settle(to, LARGE);
	st_forget_msgs();
	st_send(from, LARGE);
	st_send(from, 100);
	st_ctl_settle(from, 1, SAN_WR_SHUTDOWN, 0, 0);
	assert_int_equal(st_of(from)->nb_msgs, 1);
	m = st_msg(from, SAN_SM_WDONE | SAN_SM_FIN);
	assert_int_equal(m->len, 100);
	assert_int_equal(m->wdone[0].bytes, LARGE);
	assert_int_equal(st_received(to), LARGE);
	st_read(to, 100, 100);
}
