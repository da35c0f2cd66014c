/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_rtsan.h"

static const struct rtsan_stream_attr defaults;

static uint8_t buf[8];
static struct rtsan_sge sge = {.addr = buf, .length = sizeof(buf)};

TEST(rtsan_qp_create__stream)
{
	struct rtsan_stream_attr attr = {.msg_size = 2000};
	const struct shmq_req *req = &fake->qp_req[test_rtsan_qp(8, &attr)->qpn];

	assert_true(req->qp.is_stream);
	assert_memory_equal(&req->qp.stream, &attr, sizeof(attr));
	assert_false(fake->qp_req[test_rtsan_qp(8, NULL)->qpn].qp.is_stream);
}

/* Each call is one entry of the send queue, and one doorbell. (AFC-1, AFC-28) */
TEST(rtsan_stream__what_is_posted)
{
	struct rtsan_qp *qp = test_rtsan_qp(8, &defaults);
	const struct san_ulp_wr *e = qp->wq.wq->sqe;
	const struct {
		uint32_t imm;
		uint64_t value;
		uint8_t op;
	} want[] = {
		{RTSAN_STREAM_READABLE | RTSAN_STREAM_URGENT, 0, SAN_WR_WAIT},
		{RTSAN_STREAM_SENDS, 0, SAN_WR_CANCEL},
		{0, 0, SAN_WR_SHUTDOWN},
		{0, 0, SAN_WR_URGENT},
		{SAN_STREAM_OPT_MODE, 0xff, SAN_WR_OPTION},
		{SAN_STREAM_OPT_MODE, 2, SAN_WR_OPTION},
		{SAN_STREAM_OPT_READ, 1, SAN_WR_OPTION},
		{SAN_STREAM_OPT_GATHER_NS, 4000000000000, SAN_WR_OPTION},
	};

	memset(qp->wq.wq->sqe, 0xff, 8 * sizeof(*e));
	assert_int_equal(
		rtsan_stream_wait(qp, RTSAN_STREAM_READABLE | RTSAN_STREAM_URGENT, 100), 0);
	assert_int_equal(rtsan_stream_cancel(qp, RTSAN_STREAM_SENDS, 101), 0);
	assert_int_equal(rtsan_stream_shutdown(qp, 102), 0);
	assert_int_equal(rtsan_stream_urgent(qp, 103), 0);
	assert_int_equal(
		rtsan_stream_option(qp, RTSAN_STREAM_OPT_MODE, RTSAN_STREAM_ADAPTIVE, 104), 0);
	assert_int_equal(
		rtsan_stream_option(qp, RTSAN_STREAM_OPT_MODE, RTSAN_STREAM_LARGE_RECV, 105), 0);
	assert_int_equal(
		rtsan_stream_option(qp, RTSAN_STREAM_OPT_READ, RTSAN_STREAM_READ_NEVER, 106), 0);
	/* 4000 s do not fit into 32 bits of nanoseconds */
	assert_int_equal(
		rtsan_stream_option(qp, RTSAN_STREAM_OPT_GATHER_US, 4000000000u, 107), 0);
	for (uint64_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(e[i].wr_id, 100 + i);
		assert_int_equal(e[i].op, want[i].op);
		assert_int_equal(e[i].imm, want[i].imm);
		assert_int_equal(e[i].remote_addr, want[i].value);
		assert_int_equal(e[i].flags, RTSAN_WR_SIGNALED);
		assert_int_equal(e[i].nb_sge, 0);
		assert_int_equal(e[i].length, 0);
	}
	assert_int_equal(qp->wq.wq->sq_tail, 8);
	assert_int_equal(fake->nb_doorbells, 8);
	assert_error(rtsan_stream_shutdown(qp, 1), -EAGAIN, "full");
	assert_int_equal(qp->wq.wq->sq_tail, 8);
}

TEST(rtsan_stream__refused)
{
	struct rtsan_qp *stream = test_rtsan_qp(8, &defaults);
	struct rtsan_qp *plain = test_rtsan_qp(8, NULL);

	assert_error(rtsan_stream_wait(plain, 1, 0), -EINVAL, "is none");
	assert_error(rtsan_stream_shutdown(plain, 0), -EINVAL, "is none");
	assert_error(rtsan_stream_give_back(plain, 1, 0), -EINVAL, "is none");
	assert_error(rtsan_stream_option(stream, 0, 0, 0), -EINVAL, "option 0");
	assert_error(rtsan_stream_option(stream, RTSAN_STREAM_OPT_GATHER_US + 1, 0, 0), -EINVAL,
		     "option 5");
	assert_int_equal(fake->nb_doorbells, 0);
}

/* Operations of streams are refused for other queue pairs, and the reverse. */
TEST(rtsan_post__by_kind)
{
	struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_OOB,
		.sge = &sge,
		.nb_sge = 1,
	};
	struct rtsan_recv_wr recv = {.sge = &sge, .nb_sge = 1, .flags = RTSAN_RECV_PEEK};
	struct rtsan_qp *stream = test_rtsan_qp(8, &defaults);
	struct rtsan_qp *plain = test_rtsan_qp(8, NULL);

	assert_int_equal(rtsan_post_send(stream, &wr, 1), 1);
	assert_int_equal(stream->wq.wq->sqe[0].flags, RTSAN_WR_OOB);
	assert_error(rtsan_post_send(plain, &wr, 1), -EINVAL, "flags 0x10");
	wr.flags = RTSAN_WR_SOLICITED;
	assert_error(rtsan_post_send(stream, &wr, 1), -EINVAL, "flags 0x4");
	wr.flags = 0;
	wr.opcode = RTSAN_WR_PUSH;
	assert_error(rtsan_post_send(stream, &wr, 1), -EINVAL, "only sends");
	assert_int_equal(rtsan_post_recv(stream, &recv, 1), 1);
	assert_int_equal(stream->wq.rqe[0].flags, RTSAN_RECV_PEEK);
	assert_error(rtsan_post_recv(plain, &recv, 1), -EINVAL, "for streams");
	recv.flags = 0x10;
	assert_error(rtsan_post_recv(stream, &recv, 1), -EINVAL, "unknown bits");
	/* the lcore sees nothing of the previous entry */
	recv.flags = 0;
	memset(plain->wq.rqe, 0xff, sizeof(plain->wq.rqe[0]));
	assert_int_equal(rtsan_post_recv(plain, &recv, 1), 1);
	assert_int_equal(plain->wq.rqe[0].flags, 0);
}

/* Loans: only if the provider has them, without parts, without flags for a buffer. */
TEST(rtsan_post_recv__loan)
{
	struct rtsan_recv_wr recv = {.wr_id = 5, .flags = RTSAN_RECV_LOAN | RTSAN_RECV_DONTWAIT};
	struct rtsan_qp *stream = test_rtsan_qp(8, &defaults);

	assert_error(rtsan_post_recv(stream, &recv, 1), -EOPNOTSUPP, "no loans");
	assert_error(rtsan_stream_give_back(stream, 1, 0), -EOPNOTSUPP, "no loans");
	ctx->caps.has_loan = true;
	assert_int_equal(rtsan_post_recv(stream, &recv, 1), 1);
	assert_int_equal(stream->wq.rqe[0].flags, RTSAN_RECV_LOAN | RTSAN_RECV_DONTWAIT);
	assert_int_equal(stream->wq.rqe[0].nb_sge, 0);
	assert_int_equal(rtsan_stream_give_back(stream, 77, 6), 0);
	assert_int_equal(stream->wq.wq->sqe[0].op, SAN_WR_GIVE_BACK);
	assert_int_equal(stream->wq.wq->sqe[0].imm, 77);
	assert_int_equal(stream->wq.wq->sqe[0].wr_id, 6);
	recv.flags = RTSAN_RECV_LOAN | RTSAN_RECV_PEEK;
	assert_error(rtsan_post_recv(stream, &recv, 1), -EINVAL, "with a loan");
	recv.flags = RTSAN_RECV_LOAN | RTSAN_RECV_WAITALL;
	assert_error(rtsan_post_recv(stream, &recv, 1), -EINVAL, "with a loan");
	recv.flags = RTSAN_RECV_LOAN;
	recv.sge = &sge;
	recv.nb_sge = 1;
	assert_error(rtsan_post_recv(stream, &recv, 1), -EINVAL, "no parts");
}

/* The address is reported, and only for a loan. */
TEST(rtsan_cq_poll__loan)
{
	static const uint8_t bytes[4];
	struct rtsan_qp *stream = test_rtsan_qp(8, &defaults);
	struct rtsan_wc wc[2];

	fake->wc[0] = (struct san_ulp_wc){.qp = stream->qpn, .loan = bytes, .imm = 3};
	fake->wc[1] = (struct san_ulp_wc){.qp = stream->qpn};
	fake->nb_wc = 2;
	memset(wc, 0xff, sizeof(wc));
	assert_int_equal(rtsan_cq_poll(LIST_FIRST(&ctx->cqs), wc, 2), 2);
	assert_ptr_equal(wc[0].loan, bytes);
	assert_int_equal(wc[0].imm, 3);
	assert_null(wc[1].loan);
}

/* Data received before the end can still be read. */
TEST(rtsan_post_recv__after_the_end)
{
	struct rtsan_recv_wr recv = {.sge = &sge, .nb_sge = 1};
	struct rtsan_qp *stream = test_rtsan_qp(8, &defaults);
	struct rtsan_qp *plain = test_rtsan_qp(8, NULL);

	atomic_store(&stream->ended, true);
	atomic_store(&plain->ended, true);
	assert_int_equal(rtsan_post_recv(stream, &recv, 1), 1);
	assert_error(rtsan_post_recv(plain, &recv, 1), -ENOTCONN, "ended");
}
