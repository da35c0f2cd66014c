/* SPDX-License-Identifier: BSD-3-Clause */

/* States of a session: created, connected, over, parked, orphaned. (AFC-1, AFC-4, AFC-15) */

#include <errno.h>

#include "test_stream.h"

#define LARGE (64 * KB)

/* ---- created ---- */

#define ROW(field, value, good)                            \
	{                                                  \
		offsetof(struct san_stream_conf, field),   \
			sizeof(conf[0].field), value, good \
	}

static const struct {
	size_t at, size;
	uint64_t value;
	bool good;
} conf_rows[] = {
	ROW(sq_depth, 0, false),
	ROW(sq_depth, 100, false),
	ROW(sq_depth, 4096, true),
	ROW(sq_depth, 8192, false),
	ROW(rq_depth, 0, false),
	ROW(rq_depth, 3, false),
	ROW(rq_depth, 1, true),
	ROW(rq_depth, 8192, false),
	ROW(threshold, 0, true),
	ROW(threshold, 255, false),
	ROW(threshold, 256, true),
	ROW(threshold, 65536, true),
	ROW(threshold, 65537, false),
	ROW(msg_size, 511, false),
	ROW(msg_size, 512, true),
	ROW(msg_size, 8192, true),
	ROW(msg_size, 8193, false),
	ROW(msg_max, 1535, false),
	ROW(msg_max, 1536, true),
	ROW(msg_max, 65536, true),
	ROW(msg_max, 65537, false),
	ROW(nb_recv, 3, false),
	ROW(nb_recv, 4, true),
	ROW(nb_recv, 1024, true),
	ROW(nb_recv, 1025, false),
	ROW(nb_store, 1, false),
	ROW(nb_store, 2, true),
	ROW(nb_store, 1025, false),
	ROW(nb_send, 1, false),
	ROW(nb_send, 2, true),
	ROW(nb_send, 1025, false),
	ROW(t2, 1, false),
	ROW(t2, 2, true),
	ROW(t2, 30, true),
	ROW(t2, 31, false),
	ROW(t1, 1, false),
	ROW(t1, 2, true),
	ROW(t1, 32, true),
	ROW(t1, 33, false),
	ROW(mode, SAN_SM_SMALL_LARGE, true),
	ROW(mode, SAN_SM_MODES, false),
	ROW(mode, SAN_STREAM_ADAPTIVE, true),
	ROW(read, RTSAN_STREAM_READ_ALWAYS, true),
	ROW(read, 3, false),
	ROW(learn, 0, false),
	ROW(learn, 1, true),
	ROW(scans, 0, false),
	ROW(scans, 255, true),
	ROW(scan_ns, 0, false),
	ROW(scan_ns, 1, true),
	ROW(send_buffer, 1000, false),
	ROW(send_buffer, 1024, true),
	ROW(send_buffer, 1u << 30, true),
	ROW(send_buffer, 1u << 31, false),
	ROW(hold_ns, 0, true),
	ROW(gather_ns, 0, true),
	ROW(frags, 0, true),
};

/* Each bound, from both sides; fewer than T2 + 2 buffers are refused, and T2 of 1 (AFC-15). */
ST_TEST(conf_check__table)
{
	struct san_stream_conf c;
	struct san_stream *s;
	uint32_t i;

	for (i = 0; i < sizeof(conf_rows) / sizeof(conf_rows[0]); i++) {
		san_stream_conf_default(&c);
		assert_null(san_stream_conf_check(&c));
		memcpy((uint8_t *)&c + conf_rows[i].at, &conf_rows[i].value, conf_rows[i].size);
		if ((san_stream_conf_check(&c) == NULL) != conf_rows[i].good)
			fail_msg("row %u", i);
		if (!conf_rows[i].good)
			assert_int_equal(san_stream_create(&c, &pair_ops, to, &s), -EINVAL);
	}
}

/* T2 may not exceed the messages that may be unread: otherwise no update would be due. */
ST_TEST(conf_check__store_of_t2)
{
	struct san_stream_conf c;

	san_stream_conf_default(&c);
	c.t2 = 10;
	c.nb_store = 9;
	assert_non_null(san_stream_conf_check(&c));
	c.nb_store = 10;
	assert_null(san_stream_conf_check(&c));
}

/* Allocation may fail at each step; nothing is leaked. */
ST_TEST(create__no_memory)
{
	struct san_stream *s = NULL;
	size_t all;

	assert_int_equal(san_stream_create(&conf[1], &pair_ops, to, &s), 0);
	all = to->mem;
	san_stream_destroy(s);
	for (to->max_mem = 0; to->max_mem < all; to->max_mem += all / 50) {
		assert_int_equal(san_stream_create(&conf[1], &pair_ops, to, &s), -ENOMEM);
		assert_int_equal(to->mem, 0);
	}
	to->max_mem = all;
	assert_int_equal(san_stream_create(&conf[1], &pair_ops, to, &s), 0);
	san_stream_destroy(s);
	san_stream_destroy(NULL);
}

/* This session and the next one, with all tables (SYS-5). */
ST_TEST(bytes_max__fixed_size)
{
	conf[1].msg_max = conf[1].msg_size;
	st_start();
	assert_true(san_stream_bytes_max(&conf[1]) == 2 * to->mem);
}

/* ... with old buffers, larger ones and copies; it never allocates more. */
ST_TEST(bytes_max__grown)
{
	uint64_t nb = (uint64_t)conf[0].nb_recv + conf[0].nb_store + conf[0].nb_send, at_first;
	uint32_t i;

	conf[0].frags = 1;
	conf[0].send_buffer = 64 * KB;
	conf[0].msg_max = 3000 + SAN_SM_HDR;
	st_start();
	at_first = from->mem;
	assert_true(san_stream_bytes_max(&conf[0]) ==
		    2 * at_first + nb * (2 * conf[0].msg_max - conf[0].msg_size) + 64 * KB);
	for (i = 0; i < 60; i++) {
		st_send_settle(from, 3000);
		assert_true(from->mem <= san_stream_bytes_max(&conf[0]) - at_first);
		st_read(to, 3000, 3000);
	}
	assert_true(from->mem > at_first);
}

/* ---- requests that fail ---- */

/* The end of a connection is not a fault of the peer's session; everything else is. */
ST_TEST(on_done__failed)
{
	static const struct {
		uint8_t status;
		bool fault;
	} rows[] = {
		{1, true},
		{RTSAN_WC_LOC_LENGTH, true},
		{RTSAN_WC_FLUSHED, false},
		{RTSAN_WC_RETRY_EXC, false},
	};
	uint32_t i, send;

	for (i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		st_setup(state);
		st_start();
		send = i & 1;
		if (send) {
			st_send(to, 100);
			pair_pump(&pair);
			pair_done(to, to->req[--to->nb_req].cookie, rows[i / 2].status, 0);
		} else {
			pair_done(to, to->recv_cookie[to->recv_head++ % PAIR_REQS],
				  rows[i / 2].status, 0);
		}
		assert_int_equal(san_stream_fault(to->s) != NULL, rows[i / 2].fault);
		san_stream_show_check(to->s);
	}
}

/* ---- over ---- */

/* All posted work completes, with the reason; received data stays readable. */
ST_OPEN(on_over__all_completes)
{
	st_send_settle(from, 100);
	pair_ctl(to, 1, SAN_WR_WAIT, RTSAN_STREAM_URGENT, 0);
	st_send(to, LARGE);
	st_send_settle(to, 100);
	pair_end_now(to, RTSAN_WC_RETRY_EXC);
	assert_int_equal(st_sent_as(to, RTSAN_WC_RETRY_EXC), ST_INNER - 8);
	assert_int_equal(st_sent_as(to, RTSAN_WC_RETRY_EXC), 0);
	assert_true(st_has(to, RTSAN_WC_STREAM_WAIT));
	st_recv(to, 200);
	st_recv(to, 200);
	pair_pump_one(to);
	assert_int_equal(st_received(to), 100);
	assert_int_equal(st_received_as(to, RTSAN_WC_RETRY_EXC), 0);
	st_send(to, 100);
	pair_pump_one(to);
	assert_int_equal(st_sent_as(to, RTSAN_WC_RETRY_EXC), 0);
	assert_int_equal(to->nb_req, 0);
	assert_true(san_stream_is_drained(to->s));
	assert_true(san_stream_deadline_ns(to->s) == UINT64_MAX);
}

/* The peer has no access any more: advertised and offered memory is the application's. */
ST_TEST(on_over__nothing_is_reachable)
{
	conf[1].mode = SAN_SM_SMALL_LARGE;
	st_start_large();
	st_recv(to, LARGE);
	st_send_settle(to, LARGE);
	assert_int_equal(to->nb_regs, 2);
	pair_end_now(to, RTSAN_WC_FLUSHED);
	assert_int_equal(to->nb_regs, 0);
	assert_int_equal(st_received_as(to, RTSAN_WC_FLUSHED), 0);
	st_sent_as(to, RTSAN_WC_FLUSHED);
}

/* After an orderly end a receive returns the end, not an error. */
ST_OPEN(on_over__behind_the_end)
{
	st_send(from, 100);
	st_ctl_settle(from, 1, SAN_WR_SHUTDOWN, 0, 0);
	pair_end_now(to, RTSAN_WC_FLUSHED);
	st_recv(to, 200);
	st_recv(to, 200);
	pair_pump_one(to);
	assert_int_equal(st_received(to), 100);
	assert_int_equal(st_received(to), 0);
}

/* A message for which the provider had no room is dropped with the rest. */
ST_OPEN(on_over__provider_was_full)
{
	to->max_req = 0;
	st_send(to, 100);
	pair_pump(&pair);
	assert_int_equal(to->nb_req, 0);
	pair_end_now(to, RTSAN_WC_FLUSHED);
	san_stream_show_check(to->s);
	assert_true(san_stream_is_drained(to->s));
}

/* The connection never opened. */
ST_TEST(on_over__before_it_opened)
{
	pair_create(&pair, &conf[0], &conf[1]);
	st_send(to, 100);
	st_recv(to, 100);
	pair_pump(&pair);
	pair_end_now(to, RTSAN_WC_RETRY_EXC);
	assert_int_equal(st_sent_as(to, RTSAN_WC_RETRY_EXC), 0);
	assert_int_equal(st_received_as(to, RTSAN_WC_RETRY_EXC), 0);
}

/* ---- reported ---- */

/* Receives are separate from the rest: a queue that is not polled blocks only its own (AFC-1). */
ST_OPEN(peek__each_kind_by_itself)
{
	struct san_ulp_wc wc = {0};

	st_send(from, 100);
	st_recv(to, 100);
	st_send(to, 200);
	st_ctl_settle(to, 9, SAN_WR_CANCEL, 0, 0);
	assert_true(pair_poll_kind(to, false, &wc));
	assert_int_equal(wc.op, RTSAN_WC_STREAM_CANCEL);
	assert_true(pair_poll_kind(to, false, &wc));
	assert_int_equal(wc.op, RTSAN_WC_SEND);
	assert_false(pair_poll_kind(to, false, &wc));
	assert_true(pair_poll_kind(to, true, &wc));
	assert_int_equal(wc.op, RTSAN_WC_RECV);
	assert_false(pair_poll_kind(to, true, &wc));
}

/* ---- time ---- */

/* Without waiters there is no timer. A timer is due at the time it was announced for (AFC-13). */
ST_OPEN(deadline__only_what_waits)
{
	assert_true(san_stream_deadline_ns(from->s) == UINT64_MAX);
	st_large(LARGE);
	assert_true(san_stream_deadline_ns(from->s) == UINT64_MAX);
	assert_true(san_stream_deadline_ns(to->s) == UINT64_MAX);
	st_send_settle(from, LARGE);
	assert_true(san_stream_deadline_ns(from->s) == pair.now_ns + conf[0].scan_ns);
	assert_true(san_stream_deadline_ns(to->s) == UINT64_MAX);
	st_recv_settle(to, LARGE);
	assert_true(san_stream_deadline_ns(from->s) == UINT64_MAX);
}

/* ---- parked ---- */

static uint32_t nb_sends;

static int
counted_send(void *arg, uint64_t cookie, const void *buf, uint32_t len)
{
	nb_sends++;
	return pair_send(arg, cookie, buf, len);
}

/* Live restart: afterwards the new functions are called. */
ST_OPEN(resume__new_functions)
{
	struct san_stream_ops ops = pair_ops;

	ops.send = counted_send;
	nb_sends = 0;
	san_stream_resume(from->s, &ops, from);
	st_large(LARGE);
	assert_int_equal(nb_sends, 2);
	san_stream_resume(from->s, &pair_ops, from);
}

/* Work that is due but blocked waits for what it needs, not for a time in the past. */
ST_RAW(deadline__not_what_is_blocked)
{
	RAW_PUT(raw_large_msg(0), sm.pr = 1);
	st_recv(to, LARGE);
	raw_run();
	assert_int_equal(st_said(to, SAN_SM_ADV), 0);
	assert_true(san_stream_deadline_ns(to->s) > pair.now_ns);
	raw_put(raw_large_msg(0));
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
}

/* Work posted to a connection that never got a hello completes, too. */
ST_TEST(on_over__before_the_hello)
{
	raw_open();
	raw_send(100);
	pair_end_now(to, RTSAN_WC_RETRY_EXC);
	raw_send(200);
	assert_int_equal(st_sent_as(to, RTSAN_WC_RETRY_EXC), 0);
	assert_int_equal(st_sent_as(to, RTSAN_WC_RETRY_EXC), 0);
}

/* ---- orphaned ---- */

/* Buffered data and the end are sent without the application; received data is dropped. */
ST_TEST(orphan__goes_on)
{
	uint32_t i;

	conf[1].send_buffer = 256 * KB;
	st_start();
	st_send(to, LARGE);
	pair_ctl(to, 1, SAN_WR_SHUTDOWN, 0, 0);
	st_send(from, 500);
	st_ctl_settle(to, 2, SAN_WR_WAIT, RTSAN_STREAM_URGENT, 0);
	assert_true(san_stream_orphan(to->s));
	assert_int_equal(st_view(to).nb_unread_bytes, 0);
	for (i = 0; i < 100; i++) { /* more than may be unread */
		st_send_settle(from, 1000);
		while (st_has(from, RTSAN_WC_SEND))
			st_sent(from);
	}
	assert_false(san_stream_is_drained(to->s));
	st_read(from, LARGE, LARGE);
	st_recv_settle(from, 10);
	assert_int_equal(st_received(from), 0);
	assert_true(san_stream_is_drained(to->s));
	assert_false(st_has(to, RTSAN_WC_STREAM_SHUTDOWN) || st_has(to, RTSAN_WC_STREAM_WAIT));
}

/* The peer may have written before it was notified: that is not a fault, and is dropped. */
ST_RAW(orphan__was_written_to)
{
	raw_put(raw_large_msg(0));
	st_recv(to, LARGE);
	raw_run();
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
	assert_true(san_stream_orphan(to->s));
	RAW_PUT(raw_large_msg(SAN_SM_WDONE), sm.nb_wdone = 1,
		sm.wdone[0].id = st_msg(to, SAN_SM_ADV)->adv[0].id, sm.wdone[0].bytes = LARGE);
	assert_null(san_stream_fault(to->s));
}

/* Advertised memory is withdrawn first: the peer must not access memory that is released. */
ST_LARGE(orphan__memory_was_advertised)
{
	st_recv_settle(to, LARGE);
	assert_int_equal(to->nb_regs, 1);
	san_stream_orphan(to->s);
	assert_int_equal(to->nb_regs, 0);
}

/* Its memory is needed: it cannot end without the application, so the owner ends it. */
ST_OPEN(orphan__memory_is_needed)
{
	st_send_settle(to, LARGE);
	assert_false(san_stream_orphan(to->s));
}

ST_TEST(orphan__is_being_read_into)
{
	conf[0].mode = SAN_SM_SMALL_LARGE;
	st_start();
	st_send_settle(from, LARGE);
	st_recv(to, LARGE);
	pair_pump(&pair);
	assert_false(san_stream_orphan(to->s));
}

ST_TEST(orphan__not_connected)
{
	pair_create(&pair, &conf[0], &conf[1]);
	assert_false(san_stream_orphan(to->s));
}
