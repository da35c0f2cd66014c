/* SPDX-License-Identifier: BSD-3-Clause */

/* Waits, cancels, the urgent byte, loans, options. (AFC-1, AFC-19, AFC-27) */

#include "test_stream.h"

/* The events with which the wait completed; 0: it did not. */
static uint32_t
waited(struct pair_end *e, uint64_t id)
{
	struct san_ulp_wc wc = {0};

	if (!st_take(e, RTSAN_WC_STREAM_WAIT, &wc))
		return 0;
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, 0);
	assert_true(wc.has_imm);
	return wc.imm;
}

static void
wait_for(struct pair_end *e, uint64_t id, uint32_t events)
{
	assert_int_equal(pair_ctl(e, id, SAN_WR_WAIT, events, 0), 1);
}

/* Without a wait, events complete nothing, so no thread is woken (AFC-19). */
ST_OPEN(wait__nobody)
{
	struct san_ulp_wc wc = {0};

	st_send_flags(from, 100, RTSAN_WR_OOB);
	st_ctl_settle(from, 1, SAN_WR_SHUTDOWN, 0, 0);
	assert_false(pair_poll(to, &wc));
	pair_end_now(to, RTSAN_WC_FLUSHED);
	assert_false(pair_poll(to, &wc));
}

/* Each event, when it happens, and not before (AFC-19). */
ST_OPEN(wait__each_kind)
{
	wait_for(to, 1, RTSAN_STREAM_READABLE);
	wait_for(to, 2, RTSAN_STREAM_URGENT);
	wait_for(to, 3, RTSAN_STREAM_ENDED);
	st_settle();
	assert_int_equal(waited(to, 1), 0);
	st_send_settle(from, 10);
	assert_int_equal(waited(to, 1), RTSAN_STREAM_READABLE);
	assert_int_equal(waited(to, 0), 0);
	st_send_flags(from, 1, RTSAN_WR_OOB);
	st_settle();
	assert_int_equal(waited(to, 2), RTSAN_STREAM_URGENT);
	assert_int_equal(waited(to, 0), 0);
	pair_end_now(to, RTSAN_WC_FLUSHED);
	assert_int_equal(waited(to, 3), RTSAN_STREAM_ENDED);
}

/* If the condition holds already, the wait completes at once (AFC-19). */
ST_OPEN(wait__at_once)
{
	struct san_ulp_wc wc = {0};

	st_send_settle(from, 70);
	wait_for(to, 1, RTSAN_STREAM_READABLE | RTSAN_STREAM_URGENT);
	wait_for(to, 2, RTSAN_STREAM_WRITABLE);
	st_settle();
	assert_true(st_take(to, RTSAN_WC_STREAM_WAIT, &wc));
	assert_int_equal(wc.imm, RTSAN_STREAM_READABLE);
	assert_int_equal(wc.byte_len, 70); /* number of bytes */
	assert_int_equal(waited(to, 2), RTSAN_STREAM_WRITABLE);
}

/* An event completes all waits for it, in order, and none twice (AFC-19). */
ST_OPEN(wait__all_in_order)
{
	for (uint64_t id = 1; id <= 5; id++)
		wait_for(to, id, id == 3 ? RTSAN_STREAM_URGENT : RTSAN_STREAM_READABLE);
	st_send_settle(from, 10);
	for (uint64_t id = 1; id <= 5; id++)
		if (id != 3)
			assert_int_equal(waited(to, id), RTSAN_STREAM_READABLE);
	st_send_settle(from, 10);
	assert_int_equal(waited(to, 0), 0);
	assert_int_equal(to->s->nb_waits, 1);
}

/* Writable: was blocked by flow control, and is not any more (AFC-19). */
ST_RAW(wait__writable)
{
	RAW_PUT(raw_msg(0), sm.pr = 1);
	wait_for(to, 1, RTSAN_STREAM_WRITABLE);
	raw_run();
	assert_int_equal(waited(to, 1), 0);
	raw_put(raw_msg(0));
	assert_int_equal(waited(to, 1), RTSAN_STREAM_WRITABLE);
}

/* Not while the peer has no room for unread data: the next send would have to wait. */
ST_TEST(wait__writable_with_room)
{
	conf[1].nb_store = 4;
	conf[1].t2 = 2;
	st_start();
	for (uint32_t i = 0; i < 4; i++)
		st_send_settle(from, 1000);
	wait_for(from, 1, RTSAN_STREAM_WRITABLE);
	st_settle();
	assert_int_equal(waited(from, 1), 0);
	st_read(to, 4000, 4000);
	assert_int_equal(waited(from, 1), RTSAN_STREAM_WRITABLE);
}

/* Not before the peer's count is known, nor while a send waits for a buffer. */
ST_TEST(wait__writable_behind_a_send)
{
	pair_create(&pair, &conf[0], &conf[1]);
	wait_for(from, 1, RTSAN_STREAM_WRITABLE);
	pair_pump(&pair);
	assert_int_equal(waited(from, 1), 0);
	pair_open(&pair);
	st_settle();
	assert_int_equal(waited(from, 1), RTSAN_STREAM_WRITABLE);
	st_send(from, LARGE);
	wait_for(from, 2, RTSAN_STREAM_WRITABLE);
	st_settle();
	assert_int_equal(waited(from, 2), 0);
	st_read(to, LARGE, LARGE);
	assert_int_equal(waited(from, 2), RTSAN_STREAM_WRITABLE);
}

/* The end is readable: a receive would complete. */
ST_OPEN(wait__readable_at_the_end)
{
	wait_for(to, 1, RTSAN_STREAM_READABLE);
	st_ctl_settle(from, 1, SAN_WR_SHUTDOWN, 0, 0);
	assert_int_equal(waited(to, 1), RTSAN_STREAM_READABLE);
}

/* The number of waits of a stream is limited; a further one is refused, not lost. */
ST_OPEN(wait__too_many)
{
	struct san_ulp_wc wc = {0};

	for (uint32_t i = 0; i <= SAN_STREAM_WAIT_MAX; i++)
		wait_for(to, i, RTSAN_STREAM_URGENT);
	assert_true(st_take(to, RTSAN_WC_STREAM_WAIT, &wc));
	assert_int_equal(wc.wr_id, SAN_STREAM_WAIT_MAX);
	assert_int_equal(wc.status, RTSAN_WC_NO_BUFFERS);
	assert_false(st_has(to, RTSAN_WC_STREAM_WAIT));
}

/* Cancelled waits complete as such, and a later event completes none (AFC-19). */
ST_OPEN(cancel__waits)
{
	wait_for(to, 1, RTSAN_STREAM_READABLE);
	wait_for(to, 2, RTSAN_STREAM_URGENT);
	pair_ctl(to, 9, SAN_WR_CANCEL, RTSAN_STREAM_WAITS, 0);
	assert_int_equal(st_took(to, RTSAN_WC_STREAM_WAIT).status, RTSAN_WC_CANCELLED);
	assert_int_equal(st_took(to, RTSAN_WC_STREAM_WAIT).wr_id, 2);
	assert_int_equal(st_took(to, RTSAN_WC_STREAM_CANCEL).wr_id, 9);
	st_send_settle(from, 10);
	assert_false(st_has(to, RTSAN_WC_STREAM_WAIT));
}

/* If completions are not polled, no more work is taken, and nothing is overwritten. */
ST_OPEN(post__nobody_takes)
{
	struct san_ulp_wc wc = {0};
	uint32_t taken = 0;

	for (uint32_t i = 0; i < 8; i++)
		wait_for(to, i, RTSAN_STREAM_URGENT);
	for (uint32_t i = 0; i < 200; i++)
		taken += pair_ctl(to, 100 + i, SAN_WR_CANCEL, 0, 0);
	assert_in_range(taken, 8, STREAM_DONES - 8);
	pair_end_now(to, RTSAN_WC_FLUSHED); /* all waits complete */
	for (uint32_t i = 0; i < taken; i++) {
		assert_true(pair_poll(to, &wc));
		assert_int_equal(wc.wr_id, 100 + i);
	}
	for (uint32_t i = 0; i < 8; i++) {
		assert_true(pair_poll(to, &wc));
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(pair_ctl(to, 1, SAN_WR_CANCEL, 0, 0), 1);
}

/* ---- the urgent byte (AFC-1) ---- */

static uint8_t
urgent(struct pair_end *e, uint8_t status)
{
	struct san_ulp_wc wc = {0};

	assert_int_equal(pair_ctl(e, 5, SAN_WR_URGENT, 0, 0), 1);
	assert_true(st_take(e, RTSAN_WC_STREAM_URGENT, &wc));
	assert_int_equal(wc.status, status);
	return (uint8_t)wc.imm;
}

/* It is not part of the stream, it is taken once, and no receive passes its place. */
ST_OPEN(urgent__beside_the_stream)
{
	uint8_t bytes[] = {1, 2, 3, 4, 5, 6}, got[10];

	urgent(to, RTSAN_WC_INVALID);
	pair_post_send(from, 1, bytes, 3, RTSAN_WR_OOB);
	st_settle();
	pair_post_send(from, 2, bytes + 3, 3, 0);
	st_settle();
	assert_int_equal(st_sent(from), 3);
	assert_int_equal(st_said(from, SAN_SM_URGENT), 1);
	assert_int_equal(st_msg(from, SAN_SM_URGENT)->rep.urgent, 2);
	assert_int_equal(urgent(to, 0), 3);
	urgent(to, RTSAN_WC_INVALID);
	pair_post_recv(to, 1, got, 10, 0);
	pair_post_recv(to, 2, got + 2, 8, 0);
	st_settle();
	assert_int_equal(st_took(to, RTSAN_WC_RECV).byte_len, 2);
	assert_int_equal(st_took(to, RTSAN_WC_RECV).byte_len, 3);
	assert_memory_equal(got, ((uint8_t[]){1, 2, 4, 5, 6}), 5);
}

/* A peek does not pass it either. */
ST_OPEN(urgent__peek)
{
	uint8_t bytes[] = {1, 2, 3, 4, 5, 6}, got[10];

	pair_post_send(from, 1, bytes, 3, RTSAN_WR_OOB);
	st_settle();
	pair_post_send(from, 2, bytes + 3, 3, 0);
	st_settle();
	pair_post_recv(to, 1, got, 10, RTSAN_RECV_PEEK);
	st_settle();
	assert_int_equal(st_took(to, RTSAN_WC_RECV).byte_len, 2);
}

/* It is announced before the data in front of it is sent. */
ST_OPEN(urgent__announced_first)
{
	st_send_settle(from, LARGE);
	st_of(from)->src[LARGE] = 77;
	st_send_flags(from, 1, RTSAN_WR_OOB);
	wait_for(to, 1, RTSAN_STREAM_URGENT);
	st_settle();
	assert_int_equal(waited(to, 1), RTSAN_STREAM_URGENT);
	urgent(to, RTSAN_WC_AGAIN); /* it is announced */
	st_read(to, LARGE, LARGE);
	assert_int_equal(urgent(to, 0), 77);
}

/* ---- loans ---- */

/* Lend the next bytes; returns the number of the loan, and the length. */
static uint32_t
borrow_some(uint32_t at, uint32_t *len)
{
	struct san_ulp_wc wc = {0};

	assert_int_equal(pair_post_recv(to, 7, NULL, 0, RTSAN_RECV_LOAN), 1);
	st_settle();
	assert_true(st_take(to, RTSAN_WC_RECV, &wc));
	assert_int_equal(wc.status, 0);
	*len = wc.byte_len;
	assert_ptr_equal(wc.loan, san_stream_recv_loan(to->s, wc.imm));
	assert_memory_equal(wc.loan, st_of(from)->src + at, *len);
	return wc.imm;
}

static uint32_t
borrow(uint32_t at, uint32_t len)
{
	uint32_t some, loan = borrow_some(at, &some);

	assert_int_equal(some, len);
	return loan;
}

static void
give_back(uint32_t loan, uint8_t status)
{
	struct san_ulp_wc wc = {0};

	assert_int_equal(pair_ctl(to, 11, SAN_WR_GIVE_BACK, loan, 0), 1);
	assert_true(st_take(to, RTSAN_WC_STREAM_GIVE_BACK, &wc));
	assert_int_equal(wc.wr_id, 11);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.imm, loan);
	assert_null(wc.loan);
}

/* In any order, each once; then its room is the peer's again. (AFC-1, AFC-27) */
ST_TEST(give_back__by_request)
{
	uint32_t loan[4];

	conf[1].nb_store = conf[1].nb_recv = 4;
	st_start();
	for (uint32_t i = 0; i < 5; i++)
		st_send_settle(from, 1000);
	for (uint32_t i = 0; i < 4; i++)
		loan[i] = borrow(1000 * i, 1000);
	assert_int_equal(st_said_data(from), 4);
	assert_true(san_stream_recv_has_lent(to->s));
	for (uint32_t i = 4; i-- > 0;)
		give_back(loan[i], 0);
	assert_false(san_stream_recv_has_lent(to->s));
	give_back(loan[0], RTSAN_WC_INVALID);
	give_back(0, RTSAN_WC_INVALID);
	give_back(UINT32_MAX, RTSAN_WC_INVALID);
	st_settle();
	assert_int_equal(st_said_data(from), 5);
	give_back(borrow(4000, 1000), 0);
}

/* However many are lent, the sender is notified of the other room. (AFC-27) */
ST_TEST(give_back__room_beside)
{
	uint32_t at, len, i, loan[7];

	for (uint32_t held = 1; held < 8; held++) {
		st_setup();
		conf[1].nb_store = conf[1].nb_recv = 8;
		conf[1].t2 = 6;
		st_start();
		for (i = 0; i < 40; i++)
			st_send_settle(from, 1000);
		for (i = at = 0; i < held; i++, at += len)
			loan[i] = borrow_some(at, &len);
		for (; at < 40000; at += len)
			give_back(borrow_some(at, &len), 0);
		for (i = 0; i < held; i++)
			give_back(loan[i], 0);
		san_stream_show_check(to->s);
	}
}

/* After the end of the connection, data can still be read. */
ST_OPEN(give_back__after_the_end)
{
	uint32_t first, second;
	struct san_ulp_wc wc = {0};

	st_send_settle(from, 1000);
	first = borrow(0, 1000);
	st_send_settle(from, 500);
	pair_end_now(to, RTSAN_WC_FLUSHED);
	assert_memory_equal(san_stream_recv_loan(to->s, first), st_of(from)->src, 1000);
	/* nor data that was received and not yet lent */
	assert_int_equal(pair_post_recv(to, 7, NULL, 0, RTSAN_RECV_LOAN), 1);
	pair_pump_one(to);
	assert_true(st_take(to, RTSAN_WC_RECV, &wc));
	second = wc.imm;
	assert_memory_equal(wc.loan, st_of(from)->src + 1000, 500);
	assert_int_equal(pair_post_recv(to, 8, NULL, 0, RTSAN_RECV_LOAN), 1);
	pair_pump_one(to);
	assert_true(st_take(to, RTSAN_WC_RECV, &wc));
	assert_int_equal(wc.status, RTSAN_WC_FLUSHED);
	assert_false(wc.has_imm);
	assert_null(wc.loan);
	assert_memory_equal(san_stream_recv_loan(to->s, first), st_of(from)->src, 1000);
	give_back(second, 0);
	give_back(first, 0);
	san_stream_show_check(to->s);
}

/* An orphan reads no more. */
ST_OPEN(give_back__by_an_orphan)
{
	uint32_t loan;

	st_send_settle(from, 1000);
	loan = borrow(0, 1000);
	assert_true(san_stream_orphan(to->s));
	assert_null(san_stream_recv_loan(to->s, loan));
	assert_false(san_stream_recv_has_lent(to->s));
	san_stream_show_check(to->s);
}

/* ---- options ---- */

ST_TEST(option__values)
{
	static const struct {
		uint32_t option;
		uint64_t value;
		uint8_t status;
	} rows[] = {
		{SAN_STREAM_OPT_MODE, SAN_SM_SMALL_LARGE, 0},
		{SAN_STREAM_OPT_MODE, SAN_SM_MODES, RTSAN_WC_INVALID},
		{SAN_STREAM_OPT_MODE, 256, RTSAN_WC_INVALID},
		{SAN_STREAM_OPT_MODE, SAN_STREAM_ADAPTIVE, 0},
		{SAN_STREAM_OPT_READ, RTSAN_STREAM_READ_ALWAYS, 0},
		{SAN_STREAM_OPT_READ, RTSAN_STREAM_READ_ALWAYS + 1, RTSAN_WC_INVALID},
		{SAN_STREAM_OPT_HOLD_NS, 0, 0},
		{SAN_STREAM_OPT_GATHER_NS, UINT64_MAX, 0},
		{0, 0, RTSAN_WC_INVALID},
		{99, 0, RTSAN_WC_INVALID},
	};
	struct san_ulp_wc wc = {0};

	st_start();
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pair_ctl(from, i, SAN_WR_OPTION, rows[i].option, rows[i].value);
		assert_true(st_take(from, RTSAN_WC_STREAM_OPTION, &wc));
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, rows[i].status);
		assert_int_equal(wc.imm, rows[i].option);
	}
}

/* From the next transfer on; learning continues from that mode. */
ST_OPEN(option__mode)
{
	pair_ctl(from, 1, SAN_WR_OPTION, SAN_STREAM_OPT_MODE, SAN_SM_SMALL_RECV);
	st_large(LARGE);
	assert_int_equal(st_stats(from).tx.message, LARGE);
	assert_int_equal(st_view(from).mode, SAN_SM_SMALL_RECV);
	pair_ctl(from, 1, SAN_WR_OPTION, SAN_STREAM_OPT_MODE, SAN_STREAM_ADAPTIVE);
	st_learn(st_large, SAN_SM_LARGE_RECV);
	/* setting it again changes nothing */
	pair_ctl(from, 1, SAN_WR_OPTION, SAN_STREAM_OPT_MODE, SAN_STREAM_ADAPTIVE);
	assert_int_equal(st_view(from).mode, SAN_SM_LARGE_RECV);
}
