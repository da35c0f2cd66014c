/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory regions. A key is a place here and, above it, the device's own key for the peer cannot
 * be chosen: so what we call a region is what the device calls it for the peer, and where it
 * stands here is looked up by that, when something is posted. (SYS-4)
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs_priv.h"

#define MASK (2 * VERBS_MRS - 1)

static uint32_t
first_place(uint32_t key)
{
	return (key * 0x9e3779b1u) >> 8 & MASK;
}

struct ibv_mr *
verbs_mr_find(const struct verbs_ctx *ctx, uint32_t key)
{
	uint32_t at = first_place(key), i;
	struct ibv_mr *mr;

	for (i = 0; i <= MASK; i++, at = (at + 1) & MASK) {
		mr = atomic_load_explicit(&ctx->mrs[at].mr, memory_order_acquire);
		if (mr == NULL)
			return NULL;
		if (mr != VERBS_MR_GONE && ctx->mrs[at].key == key)
			return mr;
	}
	return NULL;
}

int
verbs_mr_add(void *priv, struct rtsan_provider_mr *conf)
{
	struct verbs_ctx *ctx = priv;
	int access = IBV_ACCESS_LOCAL_WRITE, err;
	struct ibv_mr *mr, *is;
	uint32_t at;

	if ((conf->access & RTSAN_REMOTE_PUSH) != 0)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if ((conf->access & RTSAN_REMOTE_PULL) != 0)
		access |= IBV_ACCESS_REMOTE_READ;
	if ((conf->access & RTSAN_REMOTE_ATOMIC) != 0)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	pthread_mutex_lock(&ctx->lock);
	if (ctx->nb_mrs == VERBS_MRS) {
		pthread_mutex_unlock(&ctx->lock);
		return ctx->host->fail(-ENOSPC, "region: there are %u already", VERBS_MRS);
	}
	mr = ibv_reg_mr(ctx->pd, conf->addr, conf->length, access);
	err = errno;
	if (mr == NULL) {
		pthread_mutex_unlock(&ctx->lock);
		return ctx->host->fail(-err, "region of %zu bytes: %s: %s%s", conf->length,
				       ctx->device, strerror(err),
				       err == ENOMEM ? " (see ulimit -l)" : "");
	}
	at = first_place(mr->rkey);
	while ((is = atomic_load(&ctx->mrs[at].mr)) != NULL && is != VERBS_MR_GONE)
		at = (at + 1) & MASK;
	ctx->mrs[at].key = mr->rkey;
	atomic_store_explicit(&ctx->mrs[at].mr, mr, memory_order_release);
	ctx->nb_mrs++;
	pthread_mutex_unlock(&ctx->lock);
	conf->key = mr->rkey;
	return 0;
}

/* Does posted work of *q* name it? */
static bool
names(struct verbs_qp *q, uint32_t key)
{
	uint32_t at, tail, i;
	bool does = false;

	pthread_mutex_lock(&q->lock);
	if (q->qpn != SAN_QPN_NONE) {
		tail = atomic_load(&q->wq->sq_tail);
		for (at = atomic_load(&q->wq->sq_head); at != tail; at++) {
			const struct san_ulp_wr *e = &q->sqe[at & (q->sq_depth - 1)];

			for (i = 0; i < e->nb_sge; i++)
				does |= e->sge[i].key == key;
		}
		tail = atomic_load(&q->wq->rq_tail);
		for (at = atomic_load(&q->wq->rq_head); at != tail; at++) {
			const struct san_ulp_recv *e = &q->rqe[at & (q->rq_depth - 1)];

			for (i = 0; i < e->nb_sge; i++)
				does |= e->sge[i].key == key;
		}
	}
	pthread_mutex_unlock(&q->lock);
	return does;
}

int
verbs_mr_del(void *priv, uint32_t key)
{
	struct verbs_ctx *ctx = priv;
	struct ibv_mr *mr;
	uint32_t at, i;

	for (i = 0; i < VERBS_QPS; i++)
		if (names(&ctx->qps[i], key))
			return ctx->host->fail(-EBUSY, "region: posted work names it");
	pthread_mutex_lock(&ctx->lock);
	mr = verbs_mr_find(ctx, key);
	for (at = first_place(key); mr != NULL && atomic_load(&ctx->mrs[at].mr) != mr;)
		at = (at + 1) & MASK;
	if (mr != NULL) {
		atomic_store(&ctx->mrs[at].mr, VERBS_MR_GONE);
		ctx->nb_mrs--;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (mr == NULL)
		return ctx->host->fail(-EINVAL, "region: there is no key 0x%x", key);
	return -ibv_dereg_mr(mr);
}
