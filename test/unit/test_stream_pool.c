/* SPDX-License-Identifier: BSD-3-Clause */

/* Message buffers: one pool to receive and one to send, of one size or two. (AFC-18, AFC-27) */

#include "test_stream.h"

/* All memory for messages is allocated at the start (AFC-27). */
ST_TEST(init__with_the_session)
{
	size_t mem;

	st_start();
	mem = to->mem;
	assert_true(mem >= (conf[1].nb_recv + conf[1].nb_store + conf[1].nb_send) *
			    (size_t)conf[1].msg_size);
	from->max_mem = from->mem;
	to->max_mem = to->mem;
	st_large(64 * KB);
	st_small(64 * KB);
	assert_int_equal(to->mem, mem);
}

/* Always as many receives as the peer has credit for: a message is replaced at once (AFC-27). */
ST_OPEN(post__always_as_many)
{
	for (uint32_t i = 0; i < conf[1].nb_store; i++) {
		assert_int_equal(to->recv_tail - to->recv_head, conf[1].nb_recv);
		st_send_settle(from, 100);
	}
	assert_int_equal(to->recv_tail - to->recv_head, conf[1].nb_recv);
}

static uint32_t nb_refused;

static int
refuse(void *arg, uint64_t cookie, void *buf, uint32_t len)
{
	nb_refused++;
	return -EAGAIN;
}

/* The provider accepts no more receives: only the credit shrinks. */
ST_OPEN(post__provider_is_full)
{
	struct san_stream_ops ops = pair_ops;

	ops.recv = refuse;
	nb_refused = 0;
	san_stream_resume(to->s, &ops, to);
	st_send_settle(from, 100);
	st_read(to, 100, 100);
	assert_true(nb_refused > 0);
	assert_int_equal(to->recv_tail - to->recv_head, conf[1].nb_recv - 1);
	san_stream_resume(to->s, &pair_ops, to);
	st_settle();
	assert_int_equal(to->recv_tail - to->recv_head, conf[1].nb_recv);
}

/* The old memory is freed with its last buffer, lent or unread (AFC-18). */
ST_TEST(resize__old_memory_goes_with_its_last)
{
	size_t small, both;

	conf[1].nb_recv = 4;
	raw_start();
	small = to->mem;
	RAW_PUT(raw_msg(0), sm.len = 10); /* unread */
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.rep.resize = 4000);
	both = to->mem;
	assert_int_equal(both - small, (4 + conf[1].nb_store) * 4000);
	for (uint32_t i = 0; i < 10; i++)
		raw_put(raw_msg(0));
	assert_int_equal(to->mem, both);
	raw_recv(10);
	assert_int_equal(st_received(to), 10);
	assert_int_equal(to->mem, both - (4 + conf[1].nb_store) * (size_t)conf[1].msg_size);
}

/* No third size before the first one is freed: the answer is the current size. */
ST_RAW(resize__one_at_a_time)
{
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.rep.resize = 3000);
	st_forget_msgs();
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.rep.resize = 4000);
	assert_int_equal(st_msg(to, SAN_SM_RESIZED)->rep.resized.bytes, 3000);
	assert_int_equal(st_stats(to).nb_resizes_refused, 1);
}

/* The session may end during a resize: st_teardown() finds leaks. */
ST_RAW(resize__ends_in_the_middle)
{
	RAW_PUT(raw_msg(SAN_SM_RESIZE), sm.rep.resize = 3000);
	pair_end_now(to, RTSAN_WC_FLUSHED);
	san_stream_show_check(to->s);
}
