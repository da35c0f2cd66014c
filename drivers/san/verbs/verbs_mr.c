/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory regions. What the device calls a region for the peer cannot be chosen, so that is its
 * key here, too; and by that the region is looked up when something is posted. (SYS-4)
 */

#include <errno.h>
#include <string.h>

#include "verbs_priv.h"

#define MASK (2 * VERBS_MRS - 1)

static uint32_t
first_place(uint32_t key)
{
	return (key * 0x9e3779b1u) >> 8 & MASK;
}

/* Of the region that is called *key*; MASK + 1: there is none. Takes no lock. */
static uint32_t
place_of(const struct verbs_ctx *ctx, uint32_t key, struct ibv_mr **mr)
{
	uint32_t at = first_place(key), i;

	for (i = 0; i <= MASK; i++, at = (at + 1) & MASK) {
		*mr = atomic_load_explicit(&ctx->mrs[at].mr, memory_order_acquire);
		if (*mr == NULL)
			break;
		if (*mr != VERBS_MR_GONE && ctx->mrs[at].key == key)
			return at;
	}
	*mr = NULL;
	return MASK + 1;
}

struct ibv_mr *
verbs_mr_find(const struct verbs_ctx *ctx, uint32_t key)
{
	struct ibv_mr *mr;

	place_of(ctx, key, &mr);
	return mr;
}

/* Under the lock. False: no place. */
static bool
place(struct verbs_ctx *ctx, struct ibv_mr *mr)
{
	uint32_t at = first_place(mr->rkey);
	struct ibv_mr *is;

	if (ctx->nb_mrs == VERBS_MRS)
		return false;
	while ((is = atomic_load(&ctx->mrs[at].mr)) != NULL && is != VERBS_MR_GONE)
		at = (at + 1) & MASK;
	ctx->mrs[at].key = mr->rkey;
	atomic_store_explicit(&ctx->mrs[at].mr, mr, memory_order_release);
	ctx->nb_mrs++;
	return true;
}

/* Under the lock. A search may end there if it ends right behind. */
static void
clear(struct verbs_ctx *ctx, uint32_t at)
{
	atomic_store(&ctx->mrs[at].mr, VERBS_MR_GONE);
	ctx->nb_mrs--;
	while (atomic_load(&ctx->mrs[(at + 1) & MASK].mr) == NULL &&
	       atomic_load(&ctx->mrs[at].mr) == VERBS_MR_GONE) {
		atomic_store(&ctx->mrs[at].mr, NULL);
		at = (at - 1) & MASK;
	}
}

int
verbs_mr_register(struct verbs_ctx *ctx, void *addr, size_t length, int access, uint32_t *key)
{
	struct ibv_mr *mr = ibv_reg_mr(ctx->pd, addr, length, access);
	bool has_place;

	if (mr == NULL)
		return -errno;
	pthread_mutex_lock(&ctx->mr_lock);
	has_place = place(ctx, mr);
	pthread_mutex_unlock(&ctx->mr_lock);
	if (!has_place) {
		ibv_dereg_mr(mr);
		return -ENOSPC;
	}
	*key = mr->rkey;
	return 0;
}

int
verbs_mr_forget(struct verbs_ctx *ctx, uint32_t key)
{
	struct ibv_mr *mr;
	uint32_t at;

	pthread_mutex_lock(&ctx->mr_lock);
	at = place_of(ctx, key, &mr);
	if (mr != NULL)
		clear(ctx, at);
	pthread_mutex_unlock(&ctx->mr_lock);
	return mr != NULL ? -ibv_dereg_mr(mr) : -EINVAL;
}

/* ---- those of programs ---- */

int
verbs_mr_add(void *priv, struct rtsan_provider_mr *conf)
{
	struct verbs_ctx *ctx = priv;
	int access = IBV_ACCESS_LOCAL_WRITE, rc;

	if ((conf->access & RTSAN_REMOTE_PUSH) != 0)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if ((conf->access & RTSAN_REMOTE_PULL) != 0)
		access |= IBV_ACCESS_REMOTE_READ;
	if ((conf->access & RTSAN_REMOTE_ATOMIC) != 0)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	rc = verbs_mr_register(ctx, conf->addr, conf->length, access, &conf->key);
	if (rc == -ENOSPC)
		return ctx->host->fail(rc, "region: there are %u already", VERBS_MRS);
	if (rc != 0)
		return ctx->host->fail(rc, "region of %zu bytes: %s: %s%s", conf->length,
				       ctx->device, strerror(-rc),
				       rc == -ENOMEM ? " (see ulimit -l)" : "");
	return 0;
}

bool
verbs_mr_names(const struct san_ulp_sge *sge, uint32_t n, uint32_t key)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (sge[i].key == key && sge[i].len != 0)
			return true;
	return false;
}

/* Does posted work of *q* name it? */
static bool
is_named(struct verbs_qp *q, uint32_t key)
{
	uint32_t at, tail;
	bool is = false;

	pthread_mutex_lock(&q->lock);
	if (atomic_load(&q->qpn) != SAN_QPN_NONE && q->stream != NULL) {
		is = verbs_stream_names(q->stream, key);
	} else if (atomic_load(&q->qpn) != SAN_QPN_NONE) {
		tail = atomic_load(&q->wq->sq_tail);
		for (at = atomic_load(&q->wq->sq_head); at != tail && !is; at++) {
			const struct san_ulp_wr *e = &q->sqe[at & (q->sq_depth - 1)];

			if ((e->flags & SAN_WR_INLINE) == 0)
				is = verbs_mr_names(e->sge, e->nb_sge, key);
		}
		tail = atomic_load(&q->wq->rq_tail);
		for (at = atomic_load(&q->wq->rq_head); at != tail && !is; at++) {
			const struct san_ulp_recv *e = &q->rqe[at & (q->rq_depth - 1)];

			is = verbs_mr_names(e->sge, e->nb_sge, key);
		}
	}
	pthread_mutex_unlock(&q->lock);
	return is;
}

int
verbs_mr_del(void *priv, uint32_t key)
{
	struct verbs_ctx *ctx = priv;
	uint32_t i;
	int rc;

	for (i = 0; i < VERBS_QPS; i++)
		if (atomic_load(&ctx->qps[i].qpn) != SAN_QPN_NONE && is_named(&ctx->qps[i], key))
			return ctx->host->fail(-EBUSY, "region: posted work names it");
	rc = verbs_mr_forget(ctx, key);
	return rc == -EINVAL ? ctx->host->fail(rc, "region: there is no key 0x%x", key) : rc;
}
