/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Modes: learnt, kept and left; the path of data in each mode; and the order in which the
 * application receives and sends. (AFC-6 ... AFC-9, AFC-11, AFC-22)
 */

#include "test_stream.h"

/* Bytes sent by each path since the last call. */
static struct san_stream_bytes
moved(void)
{
	static struct san_stream_bytes before;
	struct san_stream_bytes now = st_stats(from).tx, d = now;

	if (now.message + now.write + now.read >= before.message + before.write + before.read) {
		d.message -= before.message;
		d.write -= before.write;
		d.read -= before.read;
	}
	before = now;
	return d;
}

/* Three alike in a row reach the mode, two do not (AFC-6). */
static void
three_reach(void (*transfer)(uint32_t len), uint8_t mode)
{
	struct san_stream_view v;

	st_start();
	transfer(LARGE);
	transfer(LARGE);
	assert_int_equal(st_view(from).mode, SAN_SM_DISCOVERY);
	transfer(LARGE);
	v = st_view(from);
	assert_int_equal(v.mode, mode);
	assert_int_equal(v.nb_change, 1);
	assert_int_equal(v.change[0].to, mode);
	assert_int_equal(v.change[0].why, SAN_STREAM_WHY_LEARNT);
	moved();
	st_forget_msgs();
}

/* The sender writes, and sends a mode message when it enters the mode (AFC-7, AFC-22). */
ST_TEST(learn__large)
{
	struct san_stream_bytes d;

	three_reach(st_large, SAN_SM_LARGE_RECV);
	assert_int_equal(st_view(to).peer_mode, SAN_SM_LARGE_RECV);
	st_recv_settle(to, LARGE);
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
	assert_int_equal(st_of(from)->nb_msgs, 0); /* the sender is passive */
	st_send_settle(from, LARGE);
	assert_int_equal(st_received(to), LARGE);
	d = moved();
	assert_int_equal(d.write, LARGE);
	assert_int_equal(d.message + d.read, 0);
	assert_int_equal(st_of(from)->nb_msgs, 1);
	assert_int_equal(st_of(from)->msg[0].flags, SAN_SM_WDONE);
	assert_int_equal(st_said(from, SAN_SM_NOTICE) + st_said(from, SAN_SM_OFFER), 0);
}

/* The receiver reads, behind an initial portion (AFC-8). */
ST_TEST(learn__small_large_by_read)
{
	struct san_stream_bytes d;

	three_reach(st_after, SAN_SM_SMALL_LARGE);
	st_after(LARGE);
	d = moved();
	assert_int_equal(st_said(from, SAN_SM_OFFER | SAN_SM_INITIAL), 1);
	assert_int_equal(st_said(to, SAN_SM_RDONE), 1);
	assert_int_equal(st_said(to, SAN_SM_ADV), 0);
	assert_int_equal(d.read, LARGE - d.message);
	assert_int_equal(d.message, st_msg(from, SAN_SM_OFFER)->len);
	assert_int_equal(d.write, 0);
}

/* Without remote read, or if it is disabled: advertisements and writes (AFC-8). */
static void
small_large_by_write(bool can_read, uint8_t read)
{
	struct san_stream_bytes d;

	pair_ops.caps.can_read = can_read;
	conf[0].read = read;
	three_reach(st_after, SAN_SM_SMALL_LARGE);
	st_after(LARGE);
	d = moved();
	assert_int_equal(st_said(from, SAN_SM_NOTICE | SAN_SM_INITIAL), 1);
	assert_int_equal(st_said(from, SAN_SM_OFFER), 0);
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
	assert_true(st_msg(to, SAN_SM_ADV)->adv[0].after);
	assert_int_equal(d.write, LARGE - d.message);
	assert_int_equal(d.read, 0);
	assert_int_equal(st_view(from).mode, SAN_SM_SMALL_LARGE);
}

/* A late receiver without a notice posts directly: it does not wait for data (AFC-5, AFC-22). */
ST_OPEN(learn__late_is_direct)
{
	for (uint32_t i = 0; i < 3; i++) {
		st_send_settle(from, 64 * KB);
		st_recv(to, 64 * KB);
		st_finish(64 * KB);
	}
	assert_int_equal(st_view(from).mode, SAN_SM_LARGE_RECV);
}

/* The receives of the initial portion count, too (AFC-22). */
ST_OPEN(learn__told_by_the_beginning)
{
	for (uint32_t i = 0; i < 3; i++) {
		st_send_settle(from, 64 * KB);
		st_get(16);
		st_recv_settle(to, 64 * KB);
		assert_int_equal(st_received(to), 64 * KB - 16);
		assert_int_equal(st_sent(from), 64 * KB);
	}
	assert_int_equal(st_view(from).mode, SAN_SM_SMALL_LARGE);
}

ST_TEST(learn__small_large_without_read)
{
	small_large_by_write(false, RTSAN_STREAM_READ_AUTO);
}

ST_TEST(learn__small_large_read_never)
{
	small_large_by_write(true, RTSAN_STREAM_READ_NEVER);
}

/* Everything in messages, and no notice any more (AFC-9). */
ST_TEST(learn__small)
{
	struct san_stream_bytes d;

	three_reach(st_small, SAN_SM_SMALL_RECV);
	st_small(LARGE);
	d = moved();
	assert_int_equal(d.message, LARGE);
	assert_int_equal(st_said(from, SAN_SM_NOTICE) + st_said(from, SAN_SM_OFFER), 0);
	assert_int_equal(st_said(to, SAN_SM_SMALL) + st_said(to, SAN_SM_ADV), 0);
	assert_int_equal(st_said(from, SAN_SM_LARGE), st_said_data(from));
}

/* Another class restarts the count (AFC-6). */
ST_OPEN(learn__another_resets)
{
	st_large(LARGE);
	st_large(LARGE);
	st_after(LARGE);
	st_large(LARGE);
	st_large(LARGE);
	assert_int_equal(st_view(from).mode, SAN_SM_DISCOVERY);
	st_large(LARGE);
	assert_int_equal(st_view(from).mode, SAN_SM_LARGE_RECV);
}

/* Small sends use messages, do not count and change no mode (AFC-6, AFC-7, AFC-8). */
static void
small_sends_between(void (*transfer)(uint32_t len), uint8_t mode)
{
	st_start();
	for (uint32_t i = 0; i < 6; i++) {
		transfer(LARGE);
		st_send_settle(from, 200);
		st_read(to, 200, 200);
		assert_int_equal(st_sent(from), 200);
		assert_int_equal(st_view(from).mode, i < 2 ? SAN_SM_DISCOVERY : mode);
	}
	assert_int_equal(st_view(from).nb_change, 1);
}

ST_TEST(learn__small_sends_between_large)
{
	small_sends_between(st_large, SAN_SM_LARGE_RECV);
}

ST_TEST(learn__small_sends_between_small_large)
{
	small_sends_between(st_after, SAN_SM_SMALL_LARGE);
}

ST_TEST(learn__small_sends_between_small)
{
	small_sends_between(st_small, SAN_SM_SMALL_RECV);
}

/* `learn` is configurable (AFC-6). */
ST_TEST(learn__as_many_as_asked_for)
{
	conf[0].learn = 1;
	st_start();
	st_large(LARGE);
	assert_int_equal(st_view(from).mode, SAN_SM_LARGE_RECV);
}

/* The first large transfer that deviates ends each mode (AFC-22). */
ST_TEST(leave__at_the_first_other)
{
	static const struct {
		void (*learn)(uint32_t len), (*other)(uint32_t len);
		uint8_t mode, why;
		bool can_read;
	} rows[] = {
		{st_large, st_small, SAN_SM_LARGE_RECV, SAN_STREAM_WHY_SMALL, true},
		{st_after, st_large, SAN_SM_SMALL_LARGE, SAN_STREAM_WHY_CLASS, true},
		{st_after, st_small, SAN_SM_SMALL_LARGE, SAN_STREAM_WHY_CLASS, true},
		{st_after, st_large, SAN_SM_SMALL_LARGE, SAN_STREAM_WHY_CLASS, false},
		{st_after, st_small, SAN_SM_SMALL_LARGE, SAN_STREAM_WHY_CLASS, false},
		{st_small, st_large, SAN_SM_SMALL_RECV, SAN_STREAM_WHY_LARGE, true},
		{st_small, st_after, SAN_SM_SMALL_RECV, SAN_STREAM_WHY_LARGE, true},
	};
	struct san_stream_view v;

	UNIT_EACH(row, rows) {
		st_setup();
		pair_ops.caps.can_read = row->can_read;
		st_start();
		st_learn(row->learn, row->mode);
		if (row->why == SAN_STREAM_WHY_SMALL) {
			/* a small one is posted before, so the sender need not wait for one */
			st_recv(to, 1000);
			st_wait(MS);
			st_send_settle(from, LARGE);
			assert_int_equal(st_received(to), 1000);
			st_read(to, LARGE - 1000, 1000);
		} else {
			row->other(LARGE);
		}
		v = st_view(from);
		assert_int_equal(v.mode, SAN_SM_DISCOVERY);
		assert_int_equal(v.nb_change, 2);
		assert_int_equal(v.change[1].from, row->mode);
		assert_int_equal(v.change[1].why, row->why);
	}
}

/* From large: an application that waits for data has no buffer posted (AFC-22). */
ST_LARGE(leave__large_by_waiting)
{
	pair_ctl(to, 1, SAN_WR_WAIT, RTSAN_STREAM_READABLE, 0);
	st_wait(MS);
	assert_int_equal(st_said(to, SAN_SM_SMALL), 1);
	assert_int_equal(st_msg(to, SAN_SM_SMALL)->rep.small_id, 0);
	st_send_settle(from, LARGE);
	assert_true(st_has(to, RTSAN_WC_STREAM_WAIT));
	assert_int_equal(st_view(from).mode, SAN_SM_DISCOVERY);
	assert_int_equal(st_view(from).change[1].why, SAN_STREAM_WHY_SMALL);
	st_read(to, LARGE, LARGE);
}

/* A configured mode stays, whatever the class (AFC-6). */
ST_TEST(leave__not_what_was_chosen)
{
	static void (*const transfers[])(uint32_t len) = {st_large, st_after, st_small};

	for (uint32_t mode = SAN_SM_DISCOVERY; mode < SAN_SM_MODES; mode++) {
		st_setup();
		conf[0].mode = (uint8_t)mode;
		st_start();
		for (uint32_t i = 0; i < 9; i++) {
			if (mode == SAN_SM_LARGE_RECV && i % 3 != 0)
				continue; /* would wait for the scan */
			transfers[i % 3](LARGE);
		}
		assert_int_equal(st_view(from).mode, mode);
		assert_int_equal(st_view(from).nb_change, 0);
	}
}

/* Reads in large receive mode, if always enabled (AFC-10). */
ST_TEST(way__read_always)
{
	struct san_stream_bytes d;

	conf[0].read = RTSAN_STREAM_READ_ALWAYS;
	three_reach(st_large, SAN_SM_LARGE_RECV);
	st_send_settle(from, LARGE);
	assert_int_equal(st_said(from, SAN_SM_OFFER), 1);
	st_get(LARGE);
	assert_int_equal(st_said(to, SAN_SM_ADV), 0);
	d = moved();
	assert_int_equal(d.read, LARGE - d.message);
	assert_int_equal(d.write, 0);
}

/* Configured large, and the application waits for data: the sender sends a notice (AFC-22). */
ST_TEST(way__large_by_choice_and_waiting)
{
	conf[0].mode = SAN_SM_LARGE_RECV;
	st_start();
	pair_ctl(to, 1, SAN_WR_WAIT, RTSAN_STREAM_READABLE, 0);
	st_wait(MS);
	st_send_settle(from, LARGE);
	assert_int_equal(st_said(from, SAN_SM_NOTICE), 1);
	assert_true(st_has(to, RTSAN_WC_STREAM_WAIT));
	assert_int_equal(st_view(from).mode, SAN_SM_LARGE_RECV);
	st_recv(to, LARGE);
	st_finish(LARGE);
}

/* Large receive mode is reported at once: the sender may have nothing else to send (AFC-22). */
ST_OPEN(way__mode_message)
{
	st_ctl_settle(from, 1, SAN_WR_OPTION, SAN_STREAM_OPT_MODE, SAN_SM_LARGE_RECV);
	assert_int_equal(st_of(from)->nb_msgs, 1);
	assert_int_equal(st_of(from)->msg[0].flags, 0);
	assert_int_equal(st_view(to).peer_mode, SAN_SM_LARGE_RECV);
	st_recv_settle(to, LARGE);
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
	/* other modes are sent with the next header */
	st_ctl_settle(from, 1, SAN_WR_OPTION, SAN_STREAM_OPT_MODE, SAN_SM_SMALL_RECV);
	assert_int_equal(st_of(from)->nb_msgs, 1);
}

/* ---- advertisements in data messages (AFC-11) ---- */

/* One round of an application that posts, asks and gets; settled, at one time. */
static void
ask(void)
{
	st_recv_settle(to, LARGE);
	st_send_settle(to, 100);
	st_read(from, 100, 100);
	st_send(from, LARGE);
	st_finish(LARGE);
}

/* Receive-send: the advertisement waits for the small send and shares its message (AFC-11). */
ST_OPEN(ride__receive_send)
{
	for (uint32_t i = 0; i < 4; i++)
		ask();
	st_forget_msgs();
	ask();
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
	assert_int_equal(st_msg(to, SAN_SM_ADV)->len, 100);
	assert_true(st_stats(to).nb_advertisements_piggybacked > 0);
}

/* Held in vain: after the time limit it is sent by itself (AFC-11). */
ST_OPEN(ride__hold_ends)
{
	for (uint32_t i = 0; i < 4; i++)
		ask();
	st_forget_msgs();
	st_recv(to, LARGE);
	st_wait(conf[1].hold_ns - 1);
	assert_int_equal(st_said(to, SAN_SM_ADV), 0);
	st_wait(1);
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
	assert_int_equal(st_msg(to, SAN_SM_ADV)->len, 0);
}

/* 0: never held (AFC-11). */
ST_TEST(ride__hold_off)
{
	conf[1].hold_ns = 0;
	st_start();
	for (uint32_t i = 0; i < 4; i++)
		ask();
	st_forget_msgs();
	st_recv_settle(to, LARGE);
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
}

/* One round of an application that gets, answers and then posts; its answer is sent. */
static void
answer(void)
{
	st_send_settle(from, LARGE);
	assert_int_equal(st_received(to), LARGE);
	assert_int_equal(st_sent(from), LARGE);
	st_send_settle(to, 100);
	st_recv_settle(to, LARGE);
	st_read(from, 100, 100);
}

/* Send-receive: the small send waits for the receive and carries its advertisement (AFC-11). */
ST_OPEN(ride__send_receive)
{
	st_recv_settle(to, LARGE);
	for (uint32_t i = 0; i < 3; i++) {
		answer();
		st_wait(MS);
	}
	st_forget_msgs();
	st_send_settle(from, LARGE);
	assert_int_equal(st_received(to), LARGE);
	st_send_settle(to, 100);
	assert_int_equal(st_said_data(to), 0); /* it waits */
	st_recv_settle(to, LARGE);
	assert_int_equal(st_said_data(to), 1);
	assert_int_equal(st_msg(to, SAN_SM_ADV)->len, 100);
}

ST_OPEN(ride__gather_ends)
{
	st_recv_settle(to, LARGE);
	for (uint32_t i = 0; i < 3; i++) {
		answer();
		st_wait(MS);
	}
	st_send_settle(from, LARGE);
	assert_int_equal(st_received(to), LARGE);
	st_forget_msgs();
	st_send(to, 100);
	st_wait(conf[1].gather_ns - 1);
	assert_int_equal(st_said_data(to), 0);
	st_wait(1);
	assert_int_equal(st_said_data(to), 1);
}

ST_TEST(ride__gather_off)
{
	conf[1].gather_ns = 0;
	st_start();
	st_recv_settle(to, LARGE);
	for (uint32_t i = 0; i < 3; i++)
		answer();
	st_send_settle(from, LARGE);
	assert_int_equal(st_received(to), LARGE);
	st_forget_msgs();
	st_send_settle(to, 100);
	assert_int_equal(st_said_data(to), 1);
}
