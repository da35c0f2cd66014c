/* SPDX-License-Identifier: BSD-3-Clause */

/* Larger message buffers, requested and granted or not. (AFC-18) */

#include "test_stream.h"

#define SEND 3000 /* too long for a message, too short to be large */
#define WANT (SEND + SAN_SM_HDR)

/* *n* sends of that size, read at once. */
static void
fragmented(uint32_t n)
{
	while (n-- > 0) {
		st_send_settle(from, SEND);
		st_read(to, SEND, SEND);
		assert_int_equal(st_sent(from), SEND);
	}
}

/* After so many fragmentations, for the largest size sent; then none is fragmented (AFC-18). */
ST_TEST(count__asks)
{
	conf[0].frags = 5;
	st_start();
	fragmented(4);
	assert_int_equal(st_said(from, SAN_SM_RESIZE), 0);
	fragmented(1);
	assert_int_equal(st_said(from, SAN_SM_RESIZE), 1);
	assert_int_equal(st_msg(from, SAN_SM_RESIZE)->rep.resize, WANT);
	assert_int_equal(st_msg(to, SAN_SM_RESIZED)->rep.resized.bytes, WANT);
	assert_int_equal(st_stats(to).nb_resizes, 1);
	/* the posted buffers are used first */
	fragmented(32);
	assert_int_equal(st_view(from).peer_msg_size, WANT);
	assert_int_equal(st_view(to).msg_size, WANT);
	st_forget_msgs();
	fragmented(5);
	assert_int_equal(st_said_data(from), 5);
	assert_int_equal(st_said(from, SAN_SM_RESIZE), 0);
}

/* Large sends count if they are sent in messages, which then grow up to the large size. */
ST_TEST(count__large_in_messages)
{
	conf[0].frags = 5;
	st_start();
	for (uint32_t i = 0; i < 10; i++)
		st_small(64 * KB);
	assert_int_equal(st_said(from, SAN_SM_RESIZE), 1);
	assert_int_equal(st_msg(from, SAN_SM_RESIZE)->rep.resize,
			 st_view(from).threshold - 1 + SAN_SM_HDR);
}

/* They do not count when they are written or read. */
ST_TEST(count__not_for_direct)
{
	conf[0].frags = 1;
	st_start();
	for (uint32_t i = 0; i < 10; i++)
		st_large(64 * KB);
	assert_int_equal(st_said(from, SAN_SM_RESIZE), 0);
}

/* The size may be fixed, on either side (AFC-18). */
ST_TEST(count__fixed_size_here)
{
	conf[0].msg_max = conf[0].msg_size;
	st_start();
	fragmented(20);
	assert_int_equal(st_said(from, SAN_SM_RESIZE), 0);
}

ST_TEST(hear__fixed_size_there)
{
	conf[1].msg_max = conf[1].msg_size;
	st_start();
	fragmented(8);
	assert_int_equal(st_msg(to, SAN_SM_RESIZED)->rep.resized.bytes, 1536);
	assert_int_equal(st_stats(to).nb_resizes_refused, 1);
	fragmented(40);
	assert_int_equal(st_view(from).peer_msg_size, 1536);
}

/* Without memory the answer is the old size, and everything continues as before (AFC-18). */
ST_OPEN(hear__no_memory)
{
	to->max_mem = to->mem;
	fragmented(8);
	assert_int_equal(st_msg(to, SAN_SM_RESIZED)->rep.resized.bytes, 1536);
	assert_int_equal(st_stats(to).nb_resizes_refused, 1);
	fragmented(40);
	/* it may be requested again, and there is memory now */
	to->max_mem = SIZE_MAX;
	fragmented(60);
	assert_int_equal(st_view(from).peer_msg_size, WANT);
}

/* The sender has no memory itself: it continues with its own size. */
ST_OPEN(run__no_memory_here)
{
	from->max_mem = from->mem;
	fragmented(60);
	assert_int_equal(st_view(from).peer_msg_size, 1536);
	assert_true(st_stats(to).nb_resizes >= 1);
}

/* Old buffers are replaced as they complete; messages grow with the first new one (AFC-18). */
ST_TEST(hear__as_they_complete)
{
	uint32_t after;

	conf[1].nb_recv = 4;
	raw_start();
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.rep.resize = 4000);
	assert_int_equal(st_msg(to, SAN_SM_RESIZED)->rep.resized.bytes, 4000);
	/* posted at the time of the request: those before it, and three more */
	after = st_msg(to, SAN_SM_RESIZED)->rep.resized.after;
	assert_int_equal(after, raw.seq - 1 + 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(to->recv_len[to->recv_head % PAIR_REQS], 1536);
		raw_put(raw_msg(0));
	}
	assert_int_equal(to->recv_len[to->recv_head % PAIR_REQS], 4000);
}

/* The requester's long messages begin behind that number, not before (AFC-18). */
ST_TEST(run__behind_the_old_ones)
{
	conf[1].frags = 1;
	raw_start();
	raw_send(SEND);
	RAW_PUT(raw_msg(SAN_SM_RESIZED),
		sm.rep.resized.bytes = st_msg(to, SAN_SM_RESIZE)->rep.resize,
		sm.rep.resized.after = raw.lrsq + 4);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(st_view(to).peer_msg_size, 1536);
		st_forget_msgs();
		raw_send(SEND);
		assert_int_equal(st_said_data(to), 2);
		raw_put(raw_msg(0));
	}
	assert_int_equal(st_view(to).peer_msg_size, WANT);
	st_forget_msgs();
	raw_send(SEND);
	assert_int_equal(st_said_data(to), 1);
}

/* No more than the limit. */
ST_TEST(hear__more_than_the_limit)
{
	conf[1].msg_max = 5000;
	raw_start();
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.rep.resize = UINT32_MAX);
	assert_int_equal(st_msg(to, SAN_SM_RESIZED)->rep.resized.bytes, 5000);
}

ST_TEST(resized__more_than_asked_for)
{
	conf[1].frags = 1;
	raw_start();
	raw_send(SEND);
	RAW_PUT(raw_msg(SAN_SM_RESIZED), sm.rep.resized.bytes = conf[1].msg_max + 1);
	assert_non_null(san_stream_fault(to->s));
}

/* Without a request the size stays. */
ST_RAW(resized__unasked)
{
	RAW_PUT(raw_msg(SAN_SM_RESIZED), sm.rep.resized.bytes = 4000);
	assert_int_equal(st_view(to).peer_msg_size, 1536);
	assert_null(san_stream_fault(to->s));
}

/* The sender's own buffers are long enough. */
ST_TEST(run__own_are_long_enough)
{
	size_t mem;

	conf[0].msg_size = 4000;
	st_start();
	mem = from->mem;
	fragmented(60);
	assert_int_equal(st_view(from).peer_msg_size, WANT);
	assert_int_equal(from->mem, mem);
}

/* ---- crossing requests (AFC-18) ---- */

/* The session requests, and before the answer its peer requests, too. */
static void
cross(bool accepts)
{
	conf[1].frags = 1;
	raw.accepts = accepts;
	raw_start();
	raw_send(SEND);
	assert_int_equal(st_said(to, SAN_SM_RESIZE), 1);
	st_forget_msgs();
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.rep.resize = 2000);
}

/* The accepting side ignores it: its own request is answered. */
ST_TEST(cross__accepting_side)
{
	cross(false);
	assert_int_equal(st_said(to, SAN_SM_RESIZED), 0);
	assert_int_equal(st_view(to).msg_size, 1536);
	RAW_PUT(raw_msg(SAN_SM_RESIZED), sm.rep.resized.bytes = WANT,
		sm.rep.resized.after = raw.lrsq);
	assert_int_equal(st_view(to).peer_msg_size, WANT);
	/* now it is the other one's turn */
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.rep.resize = 2000);
	assert_int_equal(st_msg(to, SAN_SM_RESIZED)->rep.resized.bytes, 2000);
}

/* The connecting side answers, and may request again. */
ST_TEST(cross__connecting_side)
{
	cross(true);
	assert_int_equal(st_msg(to, SAN_SM_RESIZED)->rep.resized.bytes, 2000);
	assert_int_equal(st_said(to, SAN_SM_RESIZE), 0);
	raw_send(SEND);
	assert_int_equal(st_said(to, SAN_SM_RESIZE), 1);
}

/* Two sessions, in both directions at once: both sizes are granted. */
ST_OPEN(cross__both_get_theirs)
{
	for (uint32_t i = 0; i < 100; i++) {
		st_send(from, SEND);
		st_send_settle(to, SEND - 500);
		st_read(to, SEND, SEND);
		st_read(from, SEND - 500, SEND);
		assert_int_equal(st_sent(from) + st_sent(to), 2 * SEND - 500);
	}
	assert_true(st_view(from).peer_msg_size >= WANT);
	assert_true(st_view(to).peer_msg_size >= WANT - 500);
}
