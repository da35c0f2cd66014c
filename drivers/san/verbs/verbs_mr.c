/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory regions of programs. Work requests name a region by its index in a table plus one. The key
 * for peers is the device's, which may have none for a region without remote access. (SYS-4)
 */

#include "verbs_priv.h"

#define PAUSES 20 /* of 1 ms each */

struct ibv_mr *
san_verbs_mr_find(const struct verbs_ctx *ctx, uint32_t key)
{
	return atomic_load_explicit(&ctx->mrs[key - 1], memory_order_acquire);
}

int
san_verbs_mr_add(void *priv, const struct shmq_req *req, int fd, struct rtsan_provider_keys *keys)
{
	struct verbs_ctx *ctx = priv;
	const int reads = IBV_ACCESS_REMOTE_READ, local = IBV_ACCESS_LOCAL_WRITE;
	void *addr = (void *)(uintptr_t)req->mr.addr;
	int access = local;
	struct ibv_mr *mr, *none;
	uint32_t i, at;

	if ((req->mr.access & RTSAN_REMOTE_PUSH) != 0)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if ((req->mr.access & RTSAN_REMOTE_PULL) != 0)
		access |= IBV_ACCESS_REMOTE_READ;
	if ((req->mr.access & RTSAN_REMOTE_ATOMIC) != 0)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	mr = ibv_reg_mr(ctx->pd, addr, req->mr.length, access);
	if (mr == NULL && errno == EFAULT && (access & ~reads) == local) /* read-only memory */
		mr = ibv_reg_mr(ctx->pd, addr, req->mr.length, access & reads);
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

enum verbs_naming
san_verbs_mr_named_by(struct san_wq *wq, uint32_t sq_depth, uint32_t rq_depth, uint32_t key)
{
	uint32_t at, tail = atomic_load(&wq->rq_tail);
	enum verbs_naming by = VERBS_NAMED_NOT;
	struct san_wq_cons c;

	san_wr_wq_cons_init(&c, wq, sq_depth, rq_depth);
	for (at = atomic_load(&wq->rq_head); at != tail; at++) {
		const struct san_ulp_recv *e = &c.rqe[at & c.rq.mask];

		if (san_wr_sges_name_key(e->sge, e->nb_sge, key))
			return VERBS_NAMED;
	}
	tail = atomic_load(&wq->sq_tail);
	for (at = atomic_load(&wq->sq_head); at != tail; at++) {
		const struct san_ulp_wr *e = &c.wq->sqe[at & c.sq.mask];

		if ((e->flags & RTSAN_WR_INLINE) != 0 ||
		    !san_wr_sges_name_key(e->sge, e->nb_sge, key))
			continue;
		if ((e->flags & RTSAN_WR_SIGNALED) != 0)
			return VERBS_NAMED;
		by = VERBS_NAMED_SILENTLY;
	}
	return by;
}

/*
 * The program may know from elsewhere that an unsignaled send is done before the device has
 * reported it. A mark behind that send reports it, when the caller asks again.
 */
static enum verbs_naming
verbs_mr_check_key(struct verbs_qp *q, uint32_t key)
{
	enum verbs_naming by;
	SAN_LOCKED(&q->lock);

	if (atomic_load(&q->qpn) == SAN_QPN_NONE)
		return VERBS_NAMED_NOT;
	if (q->stream != NULL)
		return san_verbs_stream_names(q->stream, key) ? VERBS_NAMED : VERBS_NAMED_NOT;
	san_verbs_cq_harvest(q->send_cq);
	by = san_verbs_mr_named_by(q->wq, q->sq_depth, q->rq_depth, key);
	if (by == VERBS_NAMED_SILENTLY && q->state == VERBS_UP)
		san_verbs_qp_mark(q);
	return by;
}

int
san_verbs_mr_del(struct verbs_ctx *ctx, const struct shmq_req *req)
{
	const struct timespec pause = {.tv_nsec = SAN_NS_PER_MS};
	uint32_t i, key = req->id;
	struct ibv_mr *mr = san_verbs_mr_find(ctx, key);
	enum verbs_naming by;
	int k;

	for (i = 0; i < VERBS_QPS; i++) {
		if (atomic_load(&ctx->qps[i].qpn) == SAN_QPN_NONE)
			continue;
		by = verbs_mr_check_key(&ctx->qps[i], key);
		for (k = 0; k < PAUSES && by == VERBS_NAMED_SILENTLY; k++) {
			nanosleep(&pause, NULL);
			by = verbs_mr_check_key(&ctx->qps[i], key);
		}
		if (by != VERBS_NAMED_NOT)
			return -EBUSY;
	}
	atomic_store(&ctx->mrs[key - 1], NULL);
	return -ibv_dereg_mr(mr);
}
