/* SPDX-License-Identifier: BSD-3-Clause */

/* States of a session: created, connected, over, parked, orphaned. (AFC-1, AFC-4, AFC-15) */

#include "test_stream.h"

/* ---- created ---- */

#define END_OF_VALUES UINT64_MAX
#define VALUES(...)                        \
	{                                  \
		__VA_ARGS__, END_OF_VALUES \
	}
#define NONE VALUES(END_OF_VALUES)
#define ROW(field, good, bad)                                                                     \
	{                                                                                         \
		offsetof(struct san_stream_conf, field), sizeof(conf[0].field), #field, good, bad \
	}

static const struct {
	size_t at, size;
	const char *field;
	uint64_t good[4], bad[4];
} conf_rows[] = {
	ROW(sq_depth, VALUES(4096), VALUES(0, 100, 8192)),
	ROW(rq_depth, VALUES(1), VALUES(0, 3, 8192)),
	ROW(threshold, VALUES(0, 256, 65536), VALUES(255, 65537)),
	ROW(msg_size, VALUES(512, 8192), VALUES(511, 8193)),
	ROW(msg_max, VALUES(1536, 65536), VALUES(1535, 65537)),
	ROW(nb_recv, VALUES(4, 1024), VALUES(3, 1025)),
	ROW(nb_store, VALUES(2), VALUES(1, 1025)),
	ROW(nb_send, VALUES(2), VALUES(1, 1025)),
	ROW(t2, VALUES(2, 30), VALUES(1, 31)),
	ROW(t1, VALUES(2, 32), VALUES(1, 33)),
	ROW(mode, VALUES(SAN_SM_SMALL_LARGE, SAN_STREAM_ADAPTIVE), VALUES(SAN_SM_MODES)),
	ROW(read, VALUES(RTSAN_STREAM_READ_ALWAYS), VALUES(3)),
	ROW(learn, VALUES(1), VALUES(0)),
	ROW(scans, VALUES(255), VALUES(0)),
	ROW(scan_ns, VALUES(1), VALUES(0)),
	ROW(send_buffer, VALUES(1024, 1u << 30), VALUES(1000, 1u << 31)),
	ROW(hold_ns, VALUES(0), NONE),
	ROW(gather_ns, VALUES(0), NONE),
	ROW(frags, VALUES(0), NONE),
};

/* Each bound, from both sides; fewer than T2 + 2 buffers are refused, and T2 of 1 (AFC-15). */
ST_TEST(conf_check__table)
{
	struct san_stream_conf c;
	struct san_stream *s;
	const uint64_t *v;

	san_stream_conf_default(&c);
	assert_null(san_stream_conf_check(&c));
	UNIT_EACH(row, conf_rows) {
		for (v = row->good; *v != END_OF_VALUES; v++) {
			san_stream_conf_default(&c);
			memcpy((uint8_t *)&c + row->at, v, row->size);
			FAIL_IF(san_stream_conf_check(&c) != NULL, "%s of %lu", row->field, *v);
		}
		for (v = row->bad; *v != END_OF_VALUES; v++) {
			san_stream_conf_default(&c);
			memcpy((uint8_t *)&c + row->at, v, row->size);
			FAIL_IF(san_stream_conf_check(&c) == NULL, "%s of %lu", row->field, *v);
			assert_int_equal(san_stream_create(&c, &pair_ops, to, &s), -EINVAL);
		}
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

	conf[0].frags = 1;
	conf[0].send_buffer = 64 * KB;
	conf[0].msg_max = 3000 + SAN_SM_HDR;
	st_start();
	at_first = from->mem;
	assert_true(san_stream_bytes_max(&conf[0]) ==
		    2 * at_first + nb * (2 * conf[0].msg_max - conf[0].msg_size) + 64 * KB);
	for (uint32_t i = 0; i < 60; i++) {
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
	uint32_t send;

	for (uint32_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		st_setup_open();
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
counted_post(void *arg, struct san_ulp_wr *wr)
{
	nb_sends += wr->op == RTSAN_WR_SEND;
	return pair_post(arg, wr);
}

/* Live restart: afterwards the new functions are called. */
ST_OPEN(resume__new_functions)
{
	struct san_stream_ops ops = pair_ops;

	ops.post = counted_post;
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
	raw_recv(LARGE);
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
	conf[1].send_buffer = 256 * KB;
	st_start();
	st_send(to, LARGE);
	pair_ctl(to, 1, SAN_WR_SHUTDOWN, 0, 0);
	st_send(from, 500);
	st_ctl_settle(to, 2, SAN_WR_WAIT, RTSAN_STREAM_URGENT, 0);
	assert_true(san_stream_orphan(to->s));
	assert_int_equal(st_view(to).nb_unread_bytes, 0);
	for (uint32_t i = 0; i < 100; i++) { /* more than may be unread */
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
	raw_recv(LARGE);
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
