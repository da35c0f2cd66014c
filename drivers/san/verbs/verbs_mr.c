/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory regions of programs. Work requests name a region by its index in a table plus one. The key
 * for peers is the device's, which may have none for a region without remote access. (SYS-4)
 */

#include <errno.h>
#include <string.h>

#include "verbs_priv.h"

#define PAUSES 20 /* of 1 ms each */

struct ibv_mr *
san_verbs_mr_find(const struct verbs_ctx *ctx, uint32_t key)
{
	return key - 1 < VERBS_MRS ?
		atomic_load_explicit(&ctx->mrs[key - 1], memory_order_acquire) :
		NULL;
}

static struct ibv_mr *
verbs_mr_register(const struct verbs_ctx *ctx, const struct shmq_req *req, int access)
{
	return ibv_reg_mr(ctx->pd, (void *)(uintptr_t)req->mr.addr, req->mr.length, access);
}

int
san_verbs_mr_add(void *priv, const struct shmq_req *req, int fd, struct rtsan_provider_keys *keys)
{
	struct verbs_ctx *ctx = priv;
	const int reads = IBV_ACCESS_REMOTE_READ, local = IBV_ACCESS_LOCAL_WRITE;
	int access = local;
	struct ibv_mr *mr, *none;
	uint32_t i, at;

	(void)fd;
	if ((req->mr.access & RTSAN_REMOTE_PUSH) != 0)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if ((req->mr.access & RTSAN_REMOTE_PULL) != 0)
		access |= IBV_ACCESS_REMOTE_READ;
	if ((req->mr.access & RTSAN_REMOTE_ATOMIC) != 0)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	mr = verbs_mr_register(ctx, req, access);
	if (mr == NULL && errno == EFAULT && (access & ~reads) == local) /* read-only memory */
		mr = verbs_mr_register(ctx, req, access & reads);
	if (mr == NULL)
		return ctx->host->fail(-errno, "region of %llu bytes: %s: %s%s",
				       (unsigned long long)req->mr.length,
				       ctx->device, strerror(errno),
				       errno == ENOMEM ? " (see ulimit -l)" : "");
	keys->rkey = mr->rkey;
	for (i = 0; i < VERBS_MRS; i++) {
		none = NULL;
		at = atomic_fetch_add(&ctx->next_mr, 1) % VERBS_MRS;
		keys->key = at + 1;
		if (atomic_compare_exchange_strong(&ctx->mrs[at], &none, mr))
			return 0;
	}
	ibv_dereg_mr(mr);
	return ctx->host->fail(-ENOSPC, "region: there are %u already", VERBS_MRS);
}

bool
san_verbs_mr_names(const struct rtsan_sge *sge, uint32_t n, uint32_t key)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (sge[i].lkey == key && sge[i].length != 0)
			return true;
	return false;
}

/* By which posted work a region is named. */
enum naming {
	NAMED_NOT,
	NAMED_SILENTLY, /* only by unsignaled sends */
	NAMED,
};

/* Under the queue pair's lock. */
static enum naming
named_by(const struct verbs_qp *q, uint32_t key)
{
	uint32_t at, tail = atomic_load(&q->wq->rq_tail);
	enum naming by = NAMED_NOT;

	for (at = atomic_load(&q->wq->rq_head); at != tail; at++) {
		const struct san_ulp_recv *e = &q->rqe[at & (q->rq_depth - 1)];

		if (san_verbs_mr_names(e->sge, e->nb_sge, key))
			return NAMED;
	}
	tail = atomic_load(&q->wq->sq_tail);
	for (at = atomic_load(&q->wq->sq_head); at != tail; at++) {
		const struct san_ulp_wr *e = &q->sqe[at & (q->sq_depth - 1)];

		if ((e->flags & RTSAN_WR_INLINE) != 0 ||
		    !san_verbs_mr_names(e->sge, e->nb_sge, key))
			continue;
		if ((e->flags & RTSAN_WR_SIGNALED) != 0)
			return NAMED;
		by = NAMED_SILENTLY;
	}
	return by;
}

/*
 * The program may know from elsewhere that an unsignaled send is done before the device has
 * reported it. A mark behind that send reports it, when the caller asks again.
 */
static enum naming
verbs_mr_check_key(struct verbs_qp *q, uint32_t key)
{
	enum naming by = NAMED_NOT;

	pthread_mutex_lock(&q->lock);
	if (atomic_load(&q->qpn) != SAN_QPN_NONE && q->stream != NULL) {
		by = san_verbs_stream_names(q->stream, key) ? NAMED : NAMED_NOT;
	} else if (atomic_load(&q->qpn) != SAN_QPN_NONE) {
		san_verbs_cq_harvest(q->send_cq);
		by = named_by(q, key);
	}
	if (by == NAMED_SILENTLY && q->state == VERBS_UP)
		san_verbs_qp_mark(q);
	pthread_mutex_unlock(&q->lock);
	return by;
}

int
san_verbs_mr_del(struct verbs_ctx *ctx, const struct shmq_req *req)
{
	const struct timespec pause = {.tv_nsec = SAN_NS_PER_MS};
	uint32_t i, key = req->id;
	struct ibv_mr *mr = san_verbs_mr_find(ctx, key);
	enum naming by;
	int k;

	if (mr == NULL)
		return ctx->host->fail(-EINVAL, "region: there is none of that name");
	for (i = 0; i < VERBS_QPS; i++) {
		if (atomic_load(&ctx->qps[i].qpn) == SAN_QPN_NONE)
			continue;
		by = verbs_mr_check_key(&ctx->qps[i], key);
		for (k = 0; k < PAUSES && by == NAMED_SILENTLY; k++) {
			nanosleep(&pause, NULL);
			by = verbs_mr_check_key(&ctx->qps[i], key);
		}
		if (by != NAMED_NOT)
			return ctx->host->fail(-EBUSY, "region: posted work names it");
	}
	atomic_store(&ctx->mrs[key - 1], NULL);
	return -ibv_dereg_mr(mr);
}
