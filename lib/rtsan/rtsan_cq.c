/* SPDX-License-Identifier: BSD-3-Clause */

#include "rtsan_priv.h"

int
rtsan_cq_create(struct rtsan_ctx *ctx, uint32_t depth, struct rtsan_cq **out)
{
	struct rtsan_cq *cq;
	int rc;
	SAN_LOCKED(&ctx->lock);

	if (out == NULL || depth == 0 || depth > 2 * ctx->caps.max_wr)
		return rtsan_fail(-EINVAL, "completion queue: depth %u, 1 to %u", depth,
				  2 * ctx->caps.max_wr);
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return rtsan_fail(-ENOMEM, "completion queue: no memory");
	cq->ctx = ctx;
	rtsan_error_clear();
	rc = ctx->ops->cq_create(ctx->priv, depth, &cq->priv);
	if (rc != 0) {
		free(cq);
		return rtsan_fail_else(rc, "completion queue");
	}
	LIST_INSERT_HEAD(&ctx->cqs, cq, link);
	*out = cq;
	return 0;
}

int
rtsan_cq_destroy(struct rtsan_cq *cq)
{
	struct rtsan_ctx *ctx = cq->ctx;
	int rc;
	SAN_LOCKED(&ctx->lock);

	rc = ctx->ops->cq_destroy(ctx->priv, cq->priv);
	if (rc != 0)
		return rtsan_fail(rc, "completion queue: a queue pair uses it");
	LIST_REMOVE(cq, link);
	free(cq);
	return 0;
}

/*
 * Take one batch. Completions of queue pairs that were destroyed meanwhile are lost, as documented;
 * their numbers are not reused. The table is read without a lock.
 */
static int
cq_take_wcs(struct rtsan_cq *cq, struct rtsan_wc *wc, int n)
{
	const struct rtsan_ctx *ctx = cq->ctx;
	struct san_ulp_wc raw[RTSAN_POLL_MAX];
	int got = ctx->ops->cq_poll(cq->priv, raw, n < RTSAN_POLL_MAX ? n : RTSAN_POLL_MAX);
	int i, k = 0;

	for (i = 0; i < got; i++) {
		struct rtsan_qp *qp = rtsan_qp_find(ctx, raw[i].qp);

		if (qp == NULL)
			continue;
		wc[k].wr_id = raw[i].wr_id;
		wc[k].qp = qp;
		wc[k].byte_len = raw[i].byte_len;
		wc[k].imm = raw[i].imm;
		wc[k].opcode = raw[i].op;
		wc[k].status = raw[i].status;
		wc[k].has_imm = raw[i].has_imm;
		wc[k].loan = raw[i].loan;
		k++;
	}
	return k;
}

int
rtsan_cq_poll(struct rtsan_cq *cq, struct rtsan_wc *wc, int n)
{
	int k, got;

	if (n <= 0)
		return 0;
	k = cq_take_wcs(cq, wc, n);
	if (k == 0) {
		cq->ctx->ops->progress(cq->ctx->priv);
		k = cq_take_wcs(cq, wc, n);
	}
	while (k != 0 && k < n && k % RTSAN_POLL_MAX == 0) {
		got = cq_take_wcs(cq, &wc[k], n - k);
		if (got == 0)
			break;
		k += got;
	}
	return k;
}
