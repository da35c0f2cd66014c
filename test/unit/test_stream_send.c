/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sends: in messages or directly, combined or one by one, copied or in place, cancelled, ended.
 * (AFC-3, AFC-4, AFC-14, AFC-20, AFC-21, AFC-25, AFC-26, AFC-28)
 */

#include "test_stream.h"

/* ---- small ones ---- */

/* A header and the payload in one message (AFC-3). */
ST_OPEN(small__in_one_message)
{
	const struct san_sm *m;

	st_send(from, 300);
	pair_pump(&pair);
	assert_int_equal(st_sent(from), 300);
	st_settle();
	m = st_of(from)->msg;
	assert_int_equal(st_of(from)->nb_msgs, 1);
	assert_int_equal(m->flags, 0);
	assert_int_equal(m->len, 300);
	st_read(to, 300, 300);
}

/* Sends posted together share a message. */
ST_OPEN(small__together)
{
	for (uint32_t i = 0; i < 5; i++)
		st_send(from, 300);
	st_settle();
	assert_int_equal(st_of(from)->nb_msgs, 1);
	assert_int_equal(st_of(from)->msg[0].len, 1500);
	st_read(to, 1500, 1500);
}

/* The payload may be inline in the request. */
ST_TEST(small__inlined)
{
	struct san_ulp_wr wr = {
		.op = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED | RTSAN_WR_INLINE,
		.length = 40,
		.inline_len = 40,
	};

	st_start();
	memcpy(wr.data, st_of(from)->src, 40);
	assert_int_equal(san_stream_post_send(from->s, &wr, 1), 1);
	memset(wr.data, 0, sizeof(wr.data));
	st_settle();
	st_read(to, 40, 40);
}

/* An empty send completes, and sends nothing. */
ST_OPEN(small__empty)
{
	st_send_settle(from, 0);
	assert_int_equal(st_sent(from), 0);
	assert_int_equal(st_of(from)->nb_msgs, 0);
}

/* An unsignaled send completes only if it has failed. */
ST_OPEN(small__unsignaled)
{
	struct san_ulp_wr wr = {.op = RTSAN_WR_SEND, .nb_sge = 1, .length = 100};

	wr.sge[0] = (struct rtsan_sge){.addr = st_of(from)->src, .length = 100};
	st_of(from)->src_used = 100;
	assert_int_equal(san_stream_post_send(from->s, &wr, 1), 1);
	st_send_settle(from, 100);
	assert_int_equal(st_sent(from), 100);
	assert_false(st_has(from, RTSAN_WC_SEND));
	pair_end_now(from, RTSAN_WC_FLUSHED);
	assert_int_equal(san_stream_post_send(from->s, &wr, 1), 1);
	pair_pump_one(from);
	assert_int_equal(st_sent_as(from, RTSAN_WC_FLUSHED), 0);
}

/* The threshold is the provider's or configured; of both sides the larger one counts (AFC-4). */
ST_TEST(threshold__from_where)
{
	static const struct {
		uint32_t caps, a, b, both;
	} rows[] = {
		{4096, 0, 0, 4096},
		{2048, 0, 0, 2048},
		{4096, 1000, 0, 4096},
		{4096, 0, 9000, 9000},
		{4096, 500, 700, 700},
	};

	UNIT_EACH(row, rows) {
		st_setup();
		pair_ops.caps.threshold = row->caps;
		conf[0].threshold = row->a;
		conf[1].threshold = row->b;
		st_start();
		assert_int_equal(st_view(from).threshold, row->both);
		assert_int_equal(st_view(to).threshold, row->both);
		st_send_settle(from, row->both - 1);
		st_read(to, row->both - 1, row->both);
		assert_int_equal(st_said(from, SAN_SM_NOTICE), 0);
		st_send_settle(from, row->both);
		assert_int_equal(st_said(from, SAN_SM_NOTICE), 1);
		st_read(to, row->both, row->both);
	}
}

/* No message is as long as a large send, so it fits into any advertised set (AFC-12). */
ST_TEST(message__never_large)
{
	conf[0].threshold = conf[1].threshold = 600;
	st_start();
	for (uint32_t i = 0; i < 6; i++)
		st_send(from, 500);
	st_settle();
	for (uint32_t i = 0; i < st_of(from)->nb_msgs; i++)
		assert_true(st_of(from)->msg[i].len < 600);
	st_read(to, 3000, 3000);
}

/* ---- the provider ---- */

/* The provider has room for one request at a time: nothing is lost, and the order stays. */
ST_TEST(post__provider_is_full)
{
	from->max_req = to->max_req = 1;
	st_start();
	for (uint32_t i = 0; i < 4; i++) {
		st_large(LARGE);
		st_after(LARGE);
		st_send_settle(from, 3000);
		st_read(to, 3000, 3000);
		assert_int_equal(st_sent(from), 3000);
	}
	assert_true(st_stats(from).tx.write > 0);
}

/* All messages are in flight: counted, and it continues when one completes. */
ST_TEST(post__no_message_is_left)
{
	conf[0].nb_send = 2;
	st_start();
	for (uint32_t i = 0; i < 6; i++)
		st_send(from, 1400);
	pair_pump(&pair);
	assert_int_equal(from->nb_req, 2);
	assert_int_equal(st_stats(from).nb_stalls_buffers, 1);
	st_settle();
	st_read(to, 6 * 1400, 1400);
}

/* The queue is as long as requested. */
ST_TEST(post__queue_is_full)
{
	conf[0].sq_depth = conf[1].rq_depth = 4;
	st_start();
	for (uint32_t i = 0; i < 4; i++) {
		st_send(from, LARGE);
		st_recv(to, 10);
	}
	assert_int_equal(pair_post_send(from, 9, st_of(from)->src, 10, 0), 0);
	assert_int_equal(pair_post_recv(to, 9, st_of(to)->dst, 10, 0), 0);
}

/* ---- memory (AFC-20) ---- */

/* Memory to write from, or to read: not registered, nothing sent, and the send fails. */
static void
no_buffers(uint8_t mode)
{
	conf[0].mode = mode;
	st_start();
	from->no_local = true;
	from->max_regs = 0;
	st_send(from, LARGE);
	st_send_settle(from, 100);
	assert_int_equal(st_sent_as(from, RTSAN_WC_NO_BUFFERS), 0);
	assert_int_equal(st_sent(from), 100);
	assert_int_equal(st_stats(from).nb_no_buffers, 1);
	assert_int_equal(st_said_data(from), 1); /* nothing is half sent */
	/* the stream continues: with memory the next one is sent */
	from->no_local = false;
	from->max_regs = PAIR_REGS;
	st_of(to)->at = LARGE;
	st_read(to, 100, 100);
	st_send_settle(from, LARGE);
	st_get(LARGE);
}

ST_TEST(stream_send_prepare__no_memory_to_write_from)
{
	no_buffers(SAN_SM_DISCOVERY);
}

ST_TEST(stream_send_prepare__no_memory_to_offer)
{
	no_buffers(SAN_SM_SMALL_LARGE);
}

/* If one of several pieces cannot be registered, none is (AFC-20). */
ST_TEST(stream_send_prepare__one_piece_of_three)
{
	struct san_ulp_wr wr = {.op = RTSAN_WR_SEND, .nb_sge = 3, .length = 30000};

	conf[0].mode = SAN_SM_SMALL_LARGE;
	st_start();
	from->max_regs = 2;
	for (uint32_t i = 0; i < 3; i++)
		wr.sge[i] = (struct rtsan_sge){.addr = st_of(from)->src, .length = 10000};
	assert_int_equal(san_stream_post_send(from->s, &wr, 1), 1);
	st_settle();
	assert_int_equal(st_sent_as(from, RTSAN_WC_NO_BUFFERS), 0);
	assert_int_equal(from->nb_regs, 0);
}

/* ---- order (AFC-25) ---- */

/* If sends may overtake writes, the done message waits for their results (AFC-25). */
ST_TEST(write__done_behind_the_result)
{
	pair_ops.caps.ordered = false;
	st_start_large();
	st_recv_settle(to, LARGE);
	st_send(from, LARGE);
	st_send(from, 100); /* later message data is behind it, too */
	pair_pump(&pair);
	assert_int_equal(from->nb_req, 1);
	assert_int_equal(from->req[0].op, RTSAN_WR_PUSH);
	pair_step(from);
	assert_int_equal(st_of(from)->nb_msgs, 0);
	st_settle_got(LARGE);
	assert_int_equal(st_of(from)->msg[0].flags & SAN_SM_WDONE, SAN_SM_WDONE);
	st_read(to, 100, 100);
}

/* If they may not, it is posted right behind them. */
ST_LARGE(write__done_in_order)
{
	st_recv_settle(to, LARGE);
	st_send(from, LARGE);
	pair_pump(&pair);
	assert_int_equal(from->nb_req, 2);
	assert_int_equal(from->req[1].op, RTSAN_WR_SEND);
	assert_false(st_has(from, RTSAN_WC_SEND)); /* its memory is still in use */
	st_settle();
	assert_int_equal(st_sent(from), LARGE);
}

/* Direct and message data, mixed, with messages that overtake: the stream stays in order. */
ST_TEST(write__mixed_unordered)
{
	pair_ops.caps.ordered = false;
	pair.reorder = 4;
	st_start();
	for (uint32_t i = 0; i < 40; i++) {
		st_send(from, i % 3 == 0 ? LARGE / 4 : 700);
		if (i % 5 == 4)
			st_read(to, st_of(from)->src_used - st_of(to)->at, 20000);
		while (st_has(from, RTSAN_WC_SEND))
			st_sent(from);
	}
	assert_true(st_stats(from).tx.write + st_stats(from).tx.read > 0);
}

/* A failed write is the peer's fault: it advertised memory that cannot be written. */
ST_TEST(written__fails)
{
	pair_ops.caps.ordered = false;
	raw_start();
	raw.status = 1;
	raw_put(raw_adv(1, LARGE));
	raw_send(LARGE);
	assert_int_equal(raw.nb_access, 1);
	assert_non_null(san_stream_fault(to->s));
	assert_int_equal(st_said(to, SAN_SM_WDONE), 0);
}

/*
 * A send that was about to begin without a buffer gets one when the provider has no room for the
 * write: the buffer is used, whatever was planned before (AFC-10).
 */
ST_TEST(write__not_what_was_planned)
{
	conf[1].mode = SAN_SM_LARGE_RECV;
	conf[1].read = RTSAN_STREAM_READ_ALWAYS;
	raw_start();
	RAW_PUT(raw_msg(0), sm.pr = 1);
	raw_send(LARGE);
	to->max_req = 0;
	raw_put(raw_adv(1, LARGE));
	to->max_req = PAIR_REQS;
	raw_run();
	assert_int_equal(st_said(to, SAN_SM_INITIAL), 0);
	assert_int_equal(raw.nb_access, 1);
	assert_int_equal(st_msg(to, SAN_SM_WDONE)->wdone[0].bytes, LARGE);
	assert_int_equal(st_sent(to), LARGE);
}

/* The peer is notified in order, and posts new buffers before the results of the writes. */
ST_TEST(written__long_after_it_was_told)
{
	uint64_t writes[3 * STREAM_WDONES];
	uint32_t nb = 0, id = 0;

	conf[1].mode = SAN_SM_LARGE_RECV;
	raw_start();
	while (nb < 3 * STREAM_WDONES) {
		st_of(to)->src_used = 0;
		st_send(to, LARGE);
		to->max_req = 0; /* requests wait until they are executed below */
		raw_put(raw_adv(++id, LARGE));
		to->max_req = PAIR_REQS;
		for (pair_pump_one(to); to->nb_req > 0; pair_pump_one(to)) {
			const struct pair_req r = to->req[0];

			memmove(&to->req[0], &to->req[1], --to->nb_req * sizeof(r));
			if (r.op == RTSAN_WR_PUSH) {
				writes[nb++] = r.cookie;
				continue;
			}
			raw.lrsq++;
			pair_done(to, r.cookie, 0, 0);
		}
	}
	assert_false(st_has(to, RTSAN_WC_SEND));
	for (uint32_t i = 0; i < nb; i++)
		pair_done(to, writes[i], 0, 0);
	for (uint32_t i = 0; i < nb; i++)
		assert_int_equal(st_sent(to), LARGE);
}

/* A set of three pieces takes three writes, and the provider has room for one (AFC-21). */
static void
pieces_one_by_one(void)
{
	struct san_ulp_recv r = {.nb_sge = 3};

	st_start_large();
	from->max_req = 1;
	for (uint32_t i = 0; i < 3; i++)
		r.sge[i] = (struct rtsan_sge){.addr = st_of(to)->dst + 10000 * i, .length = 10000};
	st_of(to)->recv[st_of(to)->recv_tail % ST_RECVS].buf = st_of(to)->dst;
	st_of(to)->recv[st_of(to)->recv_tail % ST_RECVS].flags = 0;
	r.wr_id = st_of(to)->recv_tail++;
	assert_int_equal(san_stream_recv_post(to->s, &r, 1), 1);
	st_settle();
	st_send(from, 30000);
	pair_pump(&pair);
	assert_int_equal(from->nb_req, 1);
}

ST_TEST(write__provider_is_full)
{
	pieces_one_by_one();
	st_settle_got(30000);
	assert_int_equal(st_sent(from), 30000);
	assert_int_equal(st_said(from, SAN_SM_WDONE), 1);
}

/* Cancelled in the middle of a set: both sides agree how far it was written (AFC-28). */
ST_TEST(cancel__in_the_middle_of_a_set)
{
	pieces_one_by_one();
	st_ctl_settle(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	assert_int_equal(st_sent_as(from, RTSAN_WC_CANCELLED), 10000);
	assert_int_equal(st_received(to), 10000);
}

/* The set is withdrawn in the middle: the written bytes count (AFC-28). */
ST_TEST(cancel__of_the_set_in_the_middle)
{
	pieces_one_by_one();
	pair_ctl(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
	pair_pump(&pair);
	pair_step(to);
	st_settle_got(10000);
	assert_int_equal(to->nb_regs, 0);
	st_get(20000);
	assert_int_equal(st_sent(from), 30000);
}

/* ---- cancelled, ended ---- */

/* A send that has not begun is cancelled at once; earlier ones are sent. */
ST_LARGE(cancel__not_begun)
{
	st_send_settle(from, LARGE);
	assert_false(st_has(from, RTSAN_WC_SEND));
	st_ctl_settle(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	assert_int_equal(st_sent_as(from, RTSAN_WC_CANCELLED), 0);
	st_of(from)->src_used -= LARGE;
	st_large(LARGE);
}

/* The same without a connection: its memory is returned, too (AFC-2). */
ST_TEST(cancel__before_the_hello)
{
	raw_open();
	raw_send(100);
	pair_ctl(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	raw_run();
	assert_int_equal(st_sent_as(to, RTSAN_WC_CANCELLED), 0);
	st_of(to)->src_used = 0;
	st_send(to, 200);
	raw_put(raw_hello());
	assert_int_equal(st_sent(to), 200);
}

/* An announced urgent byte cannot be cancelled; but no call has to wait for it. */
ST_TEST(cancel__not_the_urgent_byte)
{
	uint8_t byte = 'u';
	struct san_ulp_wr wr = {
		.op = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED | RTSAN_WR_INLINE | RTSAN_WR_OOB,
		.length = 1,
		.inline_len = 1,
	};

	raw_start();
	RAW_PUT(raw_msg(0), sm.pr = 1);
	memcpy(wr.data, &byte, 1);
	assert_int_equal(san_stream_post_send(to->s, &wr, 1), 1);
	st_send(to, 100);
	pair_ctl(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	raw_run();
	assert_int_equal(st_sent(to), 1);
	assert_false(st_has(to, RTSAN_WC_SEND)); /* in order */
	raw_put(raw_msg(0));
	assert_int_equal(st_said(to, SAN_SM_URGENT_BYTE), 1);
	assert_int_equal(st_sent_as(to, RTSAN_WC_CANCELLED), 0);
	assert_false(st_has(to, RTSAN_WC_SEND));
	/* behind the end it was never announced, and fails */
	pair_ctl(to, 2, SAN_WR_SHUTDOWN, 0, 0);
	RAW_PUT(raw_msg(0), sm.pr = 1);
	assert_int_equal(san_stream_post_send(to->s, &wr, 1), 1);
	pair_ctl(to, 3, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	raw_run();
	raw_put(raw_msg(0));
	assert_int_equal(st_sent_as(to, RTSAN_WC_SHUTDOWN), 0);
}

/* Half of it is written: that is reported, and the stream continues behind it (AFC-28). */
ST_LARGE(cancel__partly_written)
{
	st_recv_settle(to, 10000);
	st_send_settle(from, LARGE);
	assert_int_equal(st_received(to), 10000);
	st_ctl_settle(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	assert_int_equal(st_sent_as(from, RTSAN_WC_CANCELLED), 10000);
	st_of(from)->src_used -= LARGE - 10000;
	st_send_settle(from, 100);
	st_read(to, 100, 100);
}

/* The end of the stream cannot be cancelled either: the peer waits for it. */
ST_LARGE(cancel__not_the_end)
{
	st_send(from, LARGE);
	st_ctl_settle(from, 7, SAN_WR_SHUTDOWN, 0, 0);
	st_ctl_settle(from, 8, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	assert_int_equal(st_sent_as(from, RTSAN_WC_CANCELLED), 0);
	assert_int_equal(st_took(from, RTSAN_WC_STREAM_SHUTDOWN).status, 0);
	assert_true(to->s->rx.fin);
	assert_true(san_stream_is_drained(from->s));
}

/* Behind the end nothing is sent. */
ST_OPEN(end__nothing_behind_it)
{
	st_send(from, 100);
	pair_ctl(from, 7, SAN_WR_SHUTDOWN, 0, 0);
	st_send_settle(from, 100);
	assert_int_equal(st_sent(from), 100);
	assert_int_equal(st_took(from, RTSAN_WC_STREAM_SHUTDOWN).wr_id, 7);
	assert_int_equal(st_sent_as(from, RTSAN_WC_SHUTDOWN), 0);
	assert_int_equal(st_msg(from, SAN_SM_FIN)->len, 100); /* it shares the message */
	st_recv(to, 100);
	st_get(100);
	assert_int_equal(st_received(to), 0);
}
