/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The send buffer: sends are copied, so that they complete at once, and are sent from there
 * (AFC-14, AFC-26).
 */

#include "test_stream.h"

/* No memory for the copy: all or nothing, and it is reported (AFC-20). */
ST_TEST(copy_aside__no_memory)
{
	conf[0].send_buffer = 1 << 20;
	st_start();
	from->max_mem = from->mem;
	st_send_settle(from, LARGE);
	assert_int_equal(st_sent_as(from, RTSAN_WC_NO_BUFFERS), 0);
	assert_int_equal(st_of(from)->nb_msgs, 0);
}

/* A copy completes at once, and the next one may be posted while it is sent; bounded. */
ST_TEST(copy_aside__within_its_bound)
{
	conf[0].send_buffer = 128 * KB;
	st_start();
	st_send(from, 60 * KB);
	pair_pump(&pair);
	assert_int_equal(st_sent(from), 60 * KB);
	st_send(from, 60 * KB);
	pair_pump(&pair);
	assert_int_equal(st_sent(from), 60 * KB);
	st_send(from, 60 * KB); /* no room for this one */
	pair_pump(&pair);
	assert_false(st_has(from, RTSAN_WC_SEND));
	st_settle();
	for (uint32_t i = 0; i < 3; i++) {
		st_recv_flags(to, 60 * KB, RTSAN_RECV_WAITALL);
		st_settle_got(60 * KB);
	}
	assert_int_equal(st_sent(from), 60 * KB);
	/* around the end of the buffer, repeatedly */
	for (uint32_t i = 0; i < 20; i++)
		st_large(50001);
}

/* The application owns its memory again: changes to it are not sent. */
ST_TEST(copy_aside__memory_is_free)
{
	uint8_t mine[20000];

	conf[0].send_buffer = 128 * KB;
	st_start();
	memcpy(mine, st_of(from)->src, sizeof(mine));
	assert_int_equal(pair_post_send(from, 0, mine, sizeof(mine), 0), 1);
	pair_pump(&pair);
	assert_int_equal(st_sent(from), sizeof(mine));
	memset(mine, 0, sizeof(mine));
	st_get(sizeof(mine));
}

/* A long send is copied in steps, so that others get turns; it completes when all is copied. */
ST_TEST(copy_aside__bit_by_bit)
{
	conf[0].send_buffer = 1 << 20;
	st_start();
	pair.budget = 64 * KB;
	st_send(from, 320 * KB);
	assert_true(pair_pump_one(from));
	for (uint32_t i = 1; i < 5; i++) {
		assert_false(st_has(from, RTSAN_WC_SEND));
		/* meanwhile it cannot be cancelled, and a scan does not wait for it */
		pair_ctl(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
		pair.now_ns += 2 * conf[0].scan_ns;
		san_stream_tick(from->s, pair.now_ns);
		assert_true(pair_pump_one(from));
	}
	assert_int_equal(st_sent(from), 320 * KB);
	assert_int_equal(st_stats(from).nb_fallbacks, 0);
	st_recv_flags(to, 320 * KB, RTSAN_RECV_WAITALL);
	st_settle_got(320 * KB);
	for (uint32_t i = 0; i < 5; i++)
		st_large(300 * KB + 1);
}

/* The same for many short ones, and for their messages. */
ST_TEST(copy_waiting__bit_by_bit)
{
	conf[0].nb_send = 100;
	st_start();
	pair.budget = 4000;
	for (uint32_t i = 0; i < 16; i++)
		st_send(from, 1000);
	assert_true(pair_pump_one(from));
	assert_true(from->nb_req < 5);
	st_settle();
	st_read(to, 16000, 16000);
}

/* Without a send buffer a send completes when it is sent (AFC-14). */
ST_OPEN(copy_aside__off)
{
	st_send_settle(from, LARGE);
	assert_false(st_has(from, RTSAN_WC_SEND));
}

/* Without credit, data waits in the send buffer, if there is one (AFC-14). */
ST_TEST(copy_waiting__without_credit)
{
	conf[1].send_buffer = 8 * KB;
	raw_start();
	RAW_PUT(raw_msg(0), sm.pr = 1);
	for (uint32_t i = 0; i < 9; i++)
		st_send(to, 1000);
	raw_run();
	assert_int_equal(st_said_data(to), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(st_sent(to), 1000);
	assert_false(st_has(to, RTSAN_WC_SEND)); /* no room for the ninth */
}

/* Data behind the end is never sent, so it is not copied: a completion would say it was. */
ST_TEST(copy_waiting__not_behind_the_end)
{
	struct san_ulp_wc wc = {0};

	conf[1].send_buffer = 8 * KB;
	raw_start();
	RAW_PUT(raw_msg(0), sm.pr = 1);
	pair_ctl(to, 1, SAN_WR_SHUTDOWN, 0, 0);
	raw_send(1000);
	assert_false(st_has(to, RTSAN_WC_SEND));
	raw_put(raw_msg(0));
	assert_true(st_take(to, RTSAN_WC_STREAM_SHUTDOWN, &wc));
	assert_int_equal(st_sent_as(to, RTSAN_WC_SHUTDOWN), 0);
	assert_int_equal(st_said_data(to), 0);
}

/* Copied data belongs to the session, and is sent. */
ST_TEST(cancel__not_what_was_copied)
{
	conf[0].send_buffer = 128 * KB;
	st_start();
	st_send_settle(from, LARGE);
	pair_ctl(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	st_recv(to, LARGE);
	st_finish(LARGE);
}
