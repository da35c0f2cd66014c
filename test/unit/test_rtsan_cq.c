/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_rtsan.h"

TEST(rtsan_cq_create__depth)
{
	struct rtsan_cq *cq;

	assert_error(rtsan_cq_create(ctx, 0, &cq), -EINVAL, "1 to 128");
	assert_error(rtsan_cq_create(ctx, 129, &cq), -EINVAL, "depth 129");
	assert_int_equal(rtsan_cq_create(ctx, 128, &cq), 0);
	fake->cq_rc = -ENOSPC;
	assert_error(rtsan_cq_create(ctx, 1, &cq), -ENOSPC, "completion queue");
}

TEST(rtsan_cq_destroy__busy)
{
	struct rtsan_cq *cq;

	assert_int_equal(rtsan_cq_create(ctx, 1, &cq), 0);
	fake->cq_destroy_rc = -EBUSY;
	assert_error(rtsan_cq_destroy(cq), -EBUSY, "uses it");
	fake->cq_destroy_rc = 0;
	assert_int_equal(rtsan_cq_destroy(cq), 0);
}

/* SYS-2: nothing is lost or added between the lcore's entry and the application's. */
TEST(rtsan_cq_poll__every_field)
{
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);
	struct rtsan_wc wc[2];

	fake->wc[0] = (struct san_ulp_wc){
		.wr_id = 0x1122334455667788,
		.qp = qp->qpn,
		.byte_len = 77,
		.imm = 0xdeadbeef,
		.op = RTSAN_WC_RECV_PUSH_IMM,
		.status = RTSAN_WC_FLUSHED,
		.has_imm = true,
	};
	fake->nb_wc = 1;
	assert_int_equal(rtsan_cq_poll(qp_cq, wc, 2), 1);
	assert_true(wc[0].wr_id == 0x1122334455667788);
	assert_ptr_equal(wc[0].qp, qp);
	assert_int_equal(wc[0].byte_len, 77);
	assert_true(wc[0].imm == 0xdeadbeef);
	assert_int_equal(wc[0].opcode, RTSAN_WC_RECV_PUSH_IMM);
	assert_int_equal(wc[0].status, RTSAN_WC_FLUSHED);
	assert_true(wc[0].has_imm);
	assert_int_equal(fake->nb_progress, 0);
}

TEST(rtsan_cq_poll__works_when_empty)
{
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);
	struct rtsan_wc wc;

	assert_int_equal(rtsan_cq_poll(qp_cq, &wc, 1), 0);
	assert_int_equal(fake->nb_progress, 1);
	fake->wc[0].qp = qp->qpn;
	fake->wc_at_progress = 1;
	assert_int_equal(rtsan_cq_poll(qp_cq, &wc, 1), 1);
	assert_int_equal(rtsan_cq_poll(qp_cq, &wc, 0), 0);
	assert_int_equal(rtsan_cq_poll(qp_cq, &wc, -1), 0);
}

TEST(rtsan_cq_poll__queue_pair_destroyed)
{
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);
	struct rtsan_wc wc[4];

	fake->wc[0].qp = qp->qpn;
	/* of an earlier queue pair in the same place */
	fake->wc[1].qp = qp->qpn + (1u << SAN_QPN_INDEX_BITS);
	fake->wc[2].qp = qp->qpn;
	fake->nb_wc = 3;
	assert_int_equal(rtsan_cq_poll(qp_cq, wc, 4), 2);
	fake->nb_wc = 3;
	rtsan_qp_destroy(qp);
	assert_int_equal(rtsan_cq_poll(qp_cq, wc, 4), 0);
}
