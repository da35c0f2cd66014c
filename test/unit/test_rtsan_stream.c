/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls of rtsan_stream.h that must not wait, over a provider that completes nothing by itself. The
 * rest, with an engine, is tested in e2e/streams.c. (AFC-1)
 */

#include "test_rtsan.h"

/* The peer does not read: the end waits for it, and no call does. */
TEST(rtsan_stream_shutdown_write__does_not_wait)
{
	struct rtsan_stream *s;
	struct san_wq *wq;
	uint8_t byte = 0;

	assert_int_equal(rtsan_stream_create(ctx, NULL, &s), 0);
	wq = s->qp->wq.wq;
	pthread_mutex_lock(&s->wr); /* of a write that waits */
	assert_int_equal(rtsan_stream_shutdown_write(s), 0);
	pthread_mutex_unlock(&s->wr);
	assert_int_equal(wq->sq_tail, 1);
	assert_int_equal(s->qp->wq.wq->sqe[0].op, SAN_WR_SHUTDOWN);
	assert_int_equal(fake->nb_progress, 1);
	/* once is enough */
	assert_int_equal(rtsan_stream_shutdown_write(s), 0);
	assert_error(rtsan_stream_write(s, "x", 1), -EPIPE, "shut");
	assert_error(rtsan_stream_send_urgent(s, 'x'), -EPIPE, "shut");
	assert_int_equal(wq->sq_tail, 1);
	/* its late completion does not matter to other calls */
	fake->wc[0] = (struct san_ulp_wc){
		.wr_id = s->qp->wq.wq->sqe[0].wr_id,
		.qp = s->qp->qpn,
		.op = RTSAN_WC_STREAM_SHUTDOWN,
		.status = RTSAN_WC_FLUSHED,
	};
	fake->wc[1] = (struct san_ulp_wc){
		.wr_id = (uintptr_t)&s->ctl,
		.qp = s->qp->qpn,
		.op = RTSAN_WC_STREAM_URGENT,
		.imm = '!',
	};
	fake->nb_wc = 2;
	assert_int_equal(rtsan_stream_recv_urgent(s, &byte), 0);
	assert_int_equal(byte, '!');
	rtsan_stream_destroy(s);
}

TEST(rtsan_stream_shutdown_write__port_gone)
{
	struct rtsan_stream *s;

	assert_int_equal(rtsan_stream_create(ctx, NULL, &s), 0);
	fake->progress_rc = -EIO;
	assert_error(rtsan_stream_shutdown_write(s), -EIO, "failed");
	fake->progress_rc = 0;
	rtsan_stream_destroy(s);
}

/* The lcore has the buffer: without a descriptor to sleep on the call still waits. */
TEST(rtsan_stream_read__no_descriptor)
{
	struct rtsan_stream *s;
	char buf[8];

	assert_int_equal(rtsan_stream_create(ctx, NULL, &s), 0);
	fake->wc[0] = (struct san_ulp_wc){
		.wr_id = (uintptr_t)&s->read,
		.qp = s->qp->qpn,
		.op = RTSAN_WC_RECV,
		.byte_len = 3,
	};
	fake->wc_at_fd = 1;
	fake->cq_fd_rc = -EMFILE;
	assert_int_equal(rtsan_stream_read(s, buf, sizeof(buf), 0), 3);
	assert_false(s->read.posted);
	rtsan_stream_destroy(s);
}
