/* SPDX-License-Identifier: BSD-3-Clause */

/* The view of a session for operators. */

#include "test_stream.h"

ST_TEST(names__all)
{
	assert_string_equal(san_stream_show_mode_name(SAN_SM_LARGE_RECV), "large");
	assert_string_equal(san_stream_show_why_name(SAN_STREAM_WHY_SCAN), "nothing posted");
	for (uint32_t i = 0; i < SAN_SM_MODES; i++)
		assert_string_not_equal(san_stream_show_mode_name((uint8_t)i), "unknown");
	for (uint32_t i = 0; i < SAN_STREAM_WHYS; i++)
		assert_string_not_equal(san_stream_show_why_name((uint8_t)i), "unknown");
	assert_string_equal(san_stream_show_mode_name(SAN_SM_MODES), "unknown");
	assert_string_equal(san_stream_show_why_name(SAN_STREAM_WHYS), "unknown");
}

ST_TEST(view__of_each_side)
{
	struct san_stream_view v;

	conf[1].msg_size = 2048;
	st_start_large();
	st_recv(to, LARGE);
	st_recv_flags(to, 10, RTSAN_RECV_WAITALL);
	st_settle();
	v = st_view(from);
	assert_int_equal(v.mode, SAN_SM_LARGE_RECV);
	assert_int_equal(v.peer_mode, SAN_SM_DISCOVERY);
	assert_int_equal(v.msg_size, 1536);
	assert_int_equal(v.peer_msg_size, 2048);
	assert_int_equal(v.nb_advs, 1);
	assert_in_range(v.credit, 2, 32);
	v = st_view(to);
	assert_int_equal(v.peer_mode, SAN_SM_LARGE_RECV);
	assert_int_equal(v.nb_recvs, 2);
	assert_int_equal(v.stats.rx.write + v.stats.rx.message, 3 * LARGE);
	st_send_settle(to, LARGE);
	assert_int_equal(st_view(to).nb_sends, 1);
	st_ctl_settle(from, 1, SAN_WR_SHUTDOWN, 0, 0);
	pair_end_now(from, RTSAN_WC_FLUSHED);
	assert_int_equal(st_view(from).credit, 0);
}

/* The last changes of mode, oldest first, with time and reason. */
ST_TEST(view__changes)
{
	struct san_stream_view v;

	conf[0].learn = 1;
	st_start();
	for (uint32_t i = 0; i < SAN_STREAM_EVENTS; i++) {
		st_after(LARGE);
		st_wait(MS);
		st_large(LARGE);
		st_wait(MS);
	}
	v = st_view(from);
	assert_int_equal(v.nb_change, SAN_STREAM_EVENTS);
	for (uint32_t i = 1; i < v.nb_change; i++) {
		assert_int_equal(v.change[i].from, v.change[i - 1].to);
		assert_true(v.change[i].at_ns > v.change[i - 1].at_ns);
	}
}

/* A region cannot be removed while posted work uses it. */
ST_OPEN(names_key__of_posted_work)
{
	struct st_side *side = st_of(to);
	struct san_ulp_wr wr = {.op = RTSAN_WR_SEND, .nb_sge = 2, .length = LARGE + 10};
	struct san_ulp_recv r = {.nb_sge = 1};

	assert_false(san_stream_show_names_key(to->s, 7));
	wr.sge[0] = (struct rtsan_sge){.addr = side->src, .length = 10, .lkey = 6};
	wr.sge[1] = (struct rtsan_sge){.addr = side->src + 10, .length = LARGE, .lkey = 7};
	side->src_used = LARGE + 10;
	assert_int_equal(san_stream_post_send(to->s, &wr, 1), 1);
	r.sge[0] = (struct rtsan_sge){.addr = side->dst, .length = 100, .lkey = 8};
	assert_int_equal(san_stream_recv_post(to->s, &r, 1), 1);
	st_settle();
	assert_true(san_stream_show_names_key(to->s, 6));
	assert_true(san_stream_show_names_key(to->s, 7));
	assert_true(san_stream_show_names_key(to->s, 8));
	assert_false(san_stream_show_names_key(to->s, 9));
	st_read(from, LARGE + 10, LARGE + 10);
	st_send_settle(from, 50);
	assert_false(san_stream_show_names_key(to->s, 6));
	assert_false(san_stream_show_names_key(to->s, 7));
	assert_false(san_stream_show_names_key(to->s, 8));
}

/* A copy belongs to the session: its region may be removed. */
ST_TEST(names_key__copied)
{
	struct san_ulp_wr wr = {.op = RTSAN_WR_SEND, .nb_sge = 1, .length = LARGE};

	conf[0].send_buffer = 128 * KB;
	st_start();
	wr.sge[0] = (struct rtsan_sge){.addr = st_of(from)->src, .length = LARGE, .lkey = 6};
	assert_int_equal(san_stream_post_send(from->s, &wr, 1), 1);
	assert_true(san_stream_show_names_key(from->s, 6));
	pair_pump(&pair);
	assert_false(san_stream_show_names_key(from->s, 6));
}
