/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_rtsan.h"

TEST(rtsan_qp_create__arguments)
{
	struct rtsan_qp_attr attr = {0};
	struct rtsan_cq *cq;
	struct rtsan_qp *qp, *sharer;
	struct rtsan_recv_wr recv = {0};

	assert_int_equal(rtsan_cq_create(ctx, 16, &cq), 0);
	assert_error(rtsan_qp_create(ctx, NULL, &qp), -EINVAL, "send_cq");
	attr.send_cq = cq;
	assert_error(rtsan_qp_create(ctx, &attr, &qp), -EINVAL, "recv_cq");
	attr.recv_cq = cq;
	attr.sq_depth = 65;
	assert_error(rtsan_qp_create(ctx, &attr, &qp), -EINVAL, "at most 64");
	attr.sq_depth = 9;
	attr.rq_depth = 64;
	attr.context = &attr;
	assert_int_equal(rtsan_qp_create(ctx, &attr, &qp), 0);
	assert_int_equal(fake->qp_req[qp->qpn].qp.sq_depth, 16);
	assert_int_equal(fake->qp_req[qp->qpn].qp.rq_depth, 64);
	assert_ptr_equal(rtsan_qp_context(qp), &attr);
	attr.recv_from = qp;
	assert_error(rtsan_qp_create(ctx, &attr, &qp), -EOPNOTSUPP, "recv_from");
	ctx->caps.has_recv_from = true;
	assert_int_equal(rtsan_qp_create(ctx, &attr, &sharer), 0);
	assert_true(fake->qp_req[sharer->qpn].qp.shares_recvs);
	assert_int_equal(fake->qp_req[sharer->qpn].qp.recv_from, qp->qpn);
	assert_error(rtsan_post_recv(sharer, &recv, 1), -EINVAL, "of another queue pair");
	attr.recv_from = sharer;
	assert_error(rtsan_qp_create(ctx, &attr, &qp), -EINVAL, "recv_from");
	attr.recv_from = NULL;
	fake->qp_rc = -ENOSPC;
	assert_error(rtsan_qp_create(ctx, &attr, &qp), -ENOSPC, "queue pair");
	rtsan_qp_destroy(NULL);
}

/* RT-10, RT-12, RT-30: each malformed request is refused and named, and nothing is posted. */
TEST(rtsan_post_send__malformed)
{
	static uint8_t buf[RTSAN_INLINE_MAX + 1];
	struct rtsan_sge sge[RTSAN_SGE_MAX + 1] = {
		{.addr = buf, .length = 8},
		{.addr = buf, .length = 1u << 31},
		{.addr = NULL, .length = 1},
		{.addr = buf, .length = 1, .lkey = 0x12345},
		{.addr = buf, .length = RTSAN_INLINE_MAX + 1},
	};
	const struct {
		struct rtsan_send_wr wr;
		const char *text;
	} cases[] = {
		{{.opcode = 0}, "opcode 0"},
		{{.opcode = RTSAN_WR_SEND_IMM + 1}, "opcode 8"},
		{{.opcode = RTSAN_WR_SEND, .flags = 0x10}, "flags 0x10"},
		{{.opcode = RTSAN_WR_PUSH, .flags = RTSAN_WR_SOLICITED | RTSAN_WR_UNSOLICITED},
		 "solicited and unsolicited"},
		{{.opcode = RTSAN_WR_SEND, .nb_sge = RTSAN_SGE_MAX + 1, .sge = sge}, "at most 4"},
		{{.opcode = RTSAN_WR_SEND, .nb_sge = 1}, "no sge"},
		{{.opcode = RTSAN_WR_SEND, .nb_sge = 2, .sge = sge}, "2147483656 bytes"},
		{{.opcode = RTSAN_WR_SEND, .nb_sge = 1, .sge = &sge[2]}, "sge[0]: no address"},
		{{.opcode = RTSAN_WR_SEND, .nb_sge = 1, .sge = &sge[3]}, "no region has this lkey"},
		{{.opcode = RTSAN_WR_SEND, .flags = RTSAN_WR_INLINE, .nb_sge = 1, .sge = &sge[4]},
		 "65 bytes inline"},
		{{.opcode = RTSAN_WR_SEND, .flags = RTSAN_WR_INLINE, .nb_sge = 1, .sge = &sge[2]},
		 "no address"},
		{{.opcode = RTSAN_WR_PULL, .flags = RTSAN_WR_INLINE, .nb_sge = 1, .sge = sge},
		 "for sends and pushes"},
		{{.opcode = RTSAN_WR_FETCH_ADD, .nb_sge = 0}, "returns 8 bytes"},
		{{.opcode = RTSAN_WR_CMP_SWAP, .nb_sge = 1, .sge = &sge[4]}, "returns 8 bytes"},
	};
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_error(rtsan_post_send(qp, &cases[i].wr, 1), -EINVAL, cases[i].text);
	ctx->caps.max_msg = 9; /* two elements of eight have more */
	sge[1].length = 8;
	assert_error(rtsan_post_send(qp, &cases[6].wr, 1), -EINVAL, "16 bytes, at most 9");
	ctx->caps.max_msg = RTSAN_LENGTH_MAX;
	assert_error(rtsan_post_send(qp, NULL, 1), -EINVAL, "nothing");
	assert_error(rtsan_post_send(qp, &cases[0].wr, 0), -EINVAL, "nothing");
	assert_int_equal(qp->wq.wq->sq_tail, 0);
	assert_int_equal(fake->nb_doorbells, 0);
}

TEST(rtsan_post_send__every_field)
{
	static uint8_t a[10], b[20];
	struct rtsan_sge sge[2] = {{.addr = a, .length = 10}, {.addr = b, .length = 20}};
	struct rtsan_send_wr wr = {
		.wr_id = 1,
		.opcode = RTSAN_WR_PUSH_IMM,
		.flags = RTSAN_WR_SIGNALED | RTSAN_WR_SOLICITED,
		.nb_sge = 2,
		.imm = 3,
		.sge = sge,
		.remote_addr = 4,
		.rkey = 5,
	};
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);
	const struct san_ulp_wr *e = &qp->wq.wq->sqe[0];

	assert_int_equal(rtsan_post_send(qp, &wr, 1), 1);
	assert_int_equal(qp->wq.wq->sq_tail, 1);
	assert_int_equal(e->wr_id, 1);
	assert_int_equal(e->op, RTSAN_WR_PUSH_IMM);
	assert_int_equal(e->flags, RTSAN_WR_SIGNALED | RTSAN_WR_SOLICITED);
	assert_int_equal(e->nb_sge, 2);
	assert_int_equal(e->inline_len, 0);
	assert_int_equal(e->length, 30);
	assert_int_equal(e->imm, 3);
	assert_int_equal(e->remote_addr, 4);
	assert_int_equal(e->rkey, 5);
	assert_ptr_equal(e->sge[1].addr, b);
	assert_int_equal(e->sge[1].length, 20);
	assert_int_equal(fake->nb_doorbells, 1);
	/* an atomic */
	sge[0].length = 8;
	wr = (struct rtsan_send_wr){
		.opcode = RTSAN_WR_CMP_SWAP, .nb_sge = 1, .sge = sge, .operand = 6, .swap = 7};
	assert_int_equal(rtsan_post_send(qp, &wr, 1), 1);
	assert_int_equal(e[1].op, RTSAN_WR_CMP_SWAP);
	assert_int_equal(e[1].operand, 6);
	assert_int_equal(e[1].swap, 7);
}

/* Inline data is copied at once, part by part; its memory is free on return. */
TEST(rtsan_post_send__inline)
{
	char a[] = "abc", b[] = "defgh";
	struct rtsan_sge sge[3] = {{.addr = a, .length = 3, .lkey = 99},
				   {.addr = NULL, .length = 0},
				   {.addr = b, .length = 5}};
	struct rtsan_send_wr wr = {.opcode = RTSAN_WR_SEND,
				   .flags = RTSAN_WR_INLINE,
				   .nb_sge = 3,
				   .sge = sge};
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);

	assert_int_equal(rtsan_post_send(qp, &wr, 1), 1);
	memset(a, 'x', sizeof(a));
	memset(b, 'x', sizeof(b));
	assert_int_equal(qp->wq.wq->sqe[0].inline_len, 8);
	assert_int_equal(qp->wq.wq->sqe[0].nb_sge, 0);
	assert_memory_equal(qp->wq.wq->sqe[0].data, "abcdefgh", 8);
}

TEST(rtsan_post_send__full_and_wrapping)
{
	struct rtsan_send_wr wr[10] = {{0}};
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);
	uint64_t expect = 0;

	for (int i = 0; i < 10; i++)
		wr[i].opcode = RTSAN_WR_SEND;
	for (uint32_t round = 0; round < 20; round++) {
		for (int i = 0; i < 10; i++)
			wr[i].wr_id = expect + (uint64_t)i;
		assert_int_equal(rtsan_post_send(qp, wr, 3), 3);
		assert_int_equal(rtsan_post_send(qp, &wr[3], 7), 5);
		assert_int_equal(rtsan_post_send(qp, &wr[8], 1), 0);
		assert_int_equal(qp->wq.wq->sq_tail - qp->wq.wq->sq_head, 8);
		for (int i = 0; i < 8; i++)
			assert_true(qp->wq.wq->sqe[(round * 8 + (uint32_t)i) & 7].wr_id ==
				    expect++);
		qp->wq.wq->sq_head += 8;
	}
	/* the requests before a malformed one are posted */
	wr[2].opcode = 99;
	assert_int_equal(rtsan_post_send(qp, wr, 5), 2);
	assert_int_equal(rtsan_post_send(qp, &wr[2], 1), -EINVAL);
}

TEST(rtsan_post__ended)
{
	struct rtsan_send_wr wr = {.opcode = RTSAN_WR_SEND};
	struct rtsan_recv_wr recv = {0};
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);
	struct rtsan_event ev;

	fake->ev[0] = (struct shmq_event){.type = RTSAN_EV_DISCONNECTED, .qp = qp->qpn};
	fake->nb_ev = 1;
	/* until the end is reported it may post, and gets completions */
	assert_int_equal(rtsan_post_send(qp, &wr, 1), 1);
	assert_int_equal(rtsan_event_poll(ctx, &ev), 1);
	assert_error(rtsan_post_send(qp, &wr, 1), -ENOTCONN, "ended");
	assert_error(rtsan_post_recv(qp, &recv, 1), -ENOTCONN, "ended");
	assert_int_equal(rtsan_connect(qp, "10.0.0.1", 1, NULL), 0);
	assert_int_equal(rtsan_post_send(qp, &wr, 1), 1);
}

TEST(rtsan_post_recv__fields_and_errors)
{
	static uint8_t buf[10];
	struct rtsan_sge sge = {.addr = buf, .length = 10};
	struct rtsan_recv_wr wr = {.wr_id = 5, .sge = &sge, .nb_sge = 1};
	struct rtsan_qp *qp = test_rtsan_qp(2, NULL);

	assert_int_equal(rtsan_post_recv(qp, &wr, 1), 1);
	assert_int_equal(qp->wq.rqe[0].wr_id, 5);
	assert_int_equal(qp->wq.rqe[0].nb_sge, 1);
	assert_ptr_equal(qp->wq.rqe[0].sge[0].addr, buf);
	wr.nb_sge = 5;
	assert_error(rtsan_post_recv(qp, &wr, 1), -EINVAL, "at most 4");
	wr.nb_sge = 1;
	sge.lkey = 7;
	assert_error(rtsan_post_recv(qp, &wr, 1), -EINVAL, "lkey 0x7");
	sge.lkey = 0;
	assert_int_equal(rtsan_post_recv(qp, &wr, 1), 1);
	assert_int_equal(rtsan_post_recv(qp, &wr, 1), 0);
	assert_error(rtsan_post_recv(qp, NULL, 1), -EINVAL, "nothing");
}
