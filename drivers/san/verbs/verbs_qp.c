/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Queue pairs, and what is posted to them. librtsan has checked it and has written it into a ring
 * of the queue pair's; from there it goes to the device at once if there is a connection, else
 * when there is one. A place is free when the device has done what was there. (SYS-4)
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

#define BURST 16 /* requests that go to the device together */

struct verbs_qp *
verbs_qp_find(const struct verbs_ctx *ctx, uint32_t qpn)
{
	struct verbs_qp *q = &ctx->qps[SAN_QPN_INDEX(qpn)];

	return SAN_QPN_INDEX(qpn) < VERBS_QPS && q->qpn == qpn ? q : NULL;
}

/* ---- come and go ---- */

/* A free one; its number is another one each time. */
static struct verbs_qp *
take(struct verbs_ctx *ctx)
{
	struct verbs_qp *q;
	uint32_t i;

	for (i = 0; i < VERBS_QPS; i++) {
		q = &ctx->qps[ctx->next_qp++ % VERBS_QPS];
		if (q->qpn == SAN_QPN_NONE)
			return q;
	}
	return NULL;
}

static int
make_queues(struct verbs_qp *q)
{
	size_t bytes = san_wq_bytes(q->sq_depth, q->rq_depth);

	q->wq = aligned_alloc(64, bytes);
	if (q->wq == NULL)
		return -ENOMEM;
	memset(q->wq, 0, bytes);
	q->sqe = (struct san_ulp_wr *)(q->wq + 1);
	q->rqe = (struct san_ulp_recv *)(q->sqe + q->sq_depth);
	/* what is inline lies there */
	q->ring = ibv_reg_mr(q->ctx->pd, q->wq, bytes, 0);
	return q->ring != NULL ? 0 : -errno;
}

static void
end_queues(struct verbs_qp *q)
{
	if (q->ring != NULL)
		ibv_dereg_mr(q->ring);
	free(q->wq);
	q->ring = NULL;
	q->wq = NULL;
}

int
verbs_qp_create(void *priv, struct rtsan_provider_qp *conf)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_qp *q;
	int rc;

	if (conf->stream != NULL)
		return ctx->host->fail(-EOPNOTSUPP, "queue pair: verbs has no streams yet");
	pthread_mutex_lock(&ctx->lock);
	q = take(ctx);
	pthread_mutex_unlock(&ctx->lock);
	if (q == NULL)
		return ctx->host->fail(-ENOSPC, "queue pair: there are %u already", VERBS_QPS);
	q->ctx = ctx;
	q->send_cq = conf->send_cq;
	q->recv_cq = conf->recv_cq;
	q->sq_depth = conf->sq_depth;
	q->rq_depth = conf->rq_depth;
	q->sq_posted = q->rq_posted = 0;
	q->state = VERBS_IDLE;
	q->id = NULL;
	rc = verbs_cq_reserve(q->send_cq, (int32_t)q->sq_depth);
	if (rc != 0)
		return rc;
	rc = verbs_cq_reserve(q->recv_cq, (int32_t)q->rq_depth);
	if (rc != 0) {
		verbs_cq_reserve(q->send_cq, -(int32_t)q->sq_depth);
		return rc;
	}
	rc = make_queues(q);
	if (rc != 0) {
		end_queues(q);
		verbs_cq_reserve(q->send_cq, -(int32_t)q->sq_depth);
		verbs_cq_reserve(q->recv_cq, -(int32_t)q->rq_depth);
		return ctx->host->fail(rc, "queue pair: %s: %s", ctx->device, strerror(-rc));
	}
	pthread_mutex_lock(&q->lock);
	q->gen++;
	q->qpn = (uint32_t)(q - ctx->qps) | (q->gen & 0x7fff) << SAN_QPN_INDEX_BITS;
	pthread_mutex_unlock(&q->lock);
	conf->qp = q->qpn;
	conf->wq = q->wq;
	return 0;
}

/* Nobody finds it by a completion any more when both locks have been had. */
void
verbs_qp_destroy(void *priv, uint32_t qpn)
{
	struct verbs_qp *q = verbs_qp_find(priv, qpn);

	if (q == NULL)
		return;
	verbs_conn_drop(q);
	pthread_mutex_lock(&q->lock);
	pthread_mutex_lock(&q->send_cq->lock);
	if (q->recv_cq != q->send_cq)
		pthread_mutex_lock(&q->recv_cq->lock);
	q->qpn = SAN_QPN_NONE;
	if (q->recv_cq != q->send_cq)
		pthread_mutex_unlock(&q->recv_cq->lock);
	pthread_mutex_unlock(&q->send_cq->lock);
	verbs_cq_reserve(q->send_cq, -(int32_t)q->sq_depth);
	verbs_cq_reserve(q->recv_cq, -(int32_t)q->rq_depth);
	end_queues(q);
	pthread_mutex_unlock(&q->lock);
}

bool
verbs_qp_is_empty(const struct verbs_qp *q)
{
	return atomic_load(&q->wq->sq_head) == atomic_load(&q->wq->sq_tail);
}

/* ---- posting ---- */

/* False: one of them is in no region. */
static bool
fill_sges(const struct verbs_qp *q, struct ibv_sge *to, const struct san_ulp_sge *from, uint32_t n)
{
	const struct ibv_mr *mr;
	uint32_t i;

	for (i = 0; i < n; i++) {
		mr = from[i].len != 0 ? verbs_mr_find(q->ctx, from[i].key) : NULL;
		if (from[i].len != 0 && mr == NULL)
			return false;
		to[i] = (struct ibv_sge){
			.addr = (uintptr_t)from[i].addr,
			.length = from[i].len,
			.lkey = mr != NULL ? mr->lkey : 0,
		};
	}
	return true;
}

static void
fill_op(struct ibv_send_wr *w, const struct san_ulp_wr *e)
{
	static const enum ibv_wr_opcode ops[] = {
		[SAN_WR_SEND] = IBV_WR_SEND,
		[SAN_WR_PUSH] = IBV_WR_RDMA_WRITE,
		[SAN_WR_PUSH_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[SAN_WR_PULL] = IBV_WR_RDMA_READ,
		[SAN_WR_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[SAN_WR_CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};

	w->opcode = ops[e->op];
	w->imm_data = htonl(e->imm);
	if (e->op < SAN_WR_FETCH_ADD) {
		w->wr.rdma.remote_addr = e->remote_addr;
		w->wr.rdma.rkey = e->rkey;
		return;
	}
	w->wr.atomic.remote_addr = e->remote_addr;
	w->wr.atomic.rkey = e->rkey;
	w->wr.atomic.compare_add = e->operand;
	w->wr.atomic.swap = e->swap;
}

static bool
fill_send(const struct verbs_qp *q, struct ibv_send_wr *w, struct ibv_sge *sge, uint32_t at)
{
	const struct san_ulp_wr *e = &q->sqe[at & (q->sq_depth - 1)];
	uint32_t every = q->sq_depth > 4 ? q->sq_depth / 4 : 1;

	*w = (struct ibv_send_wr){
		.wr_id = VERBS_ID(q->qpn, 0, at),
		.sg_list = sge,
		.num_sge = e->nb_sge,
	};
	fill_op(w, e);
	/* places must come back, also of those who want to hear nothing */
	if ((e->flags & SAN_WR_SIGNALED) != 0 || at % every == every - 1)
		w->send_flags |= IBV_SEND_SIGNALED;
	if ((e->flags & SAN_WR_INLINE) == 0)
		return fill_sges(q, sge, e->sge, e->nb_sge);
	w->num_sge = e->inline_len != 0;
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)e->data,
		.length = e->inline_len,
		.lkey = q->ring->lkey,
	};
	if (e->inline_len <= q->ctx->max_inline)
		w->send_flags |= IBV_SEND_INLINE;
	return true;
}

static void
post_sends(struct verbs_qp *q)
{
	struct ibv_send_wr w[BURST], *bad;
	struct ibv_sge sge[BURST][SAN_ULP_SGE_MAX];
	uint32_t tail, n, i;

	/* pairs with the release of who posts: they are written */
	while ((tail = atomic_load_explicit(&q->wq->sq_tail, memory_order_acquire)) !=
	       q->sq_posted) {
		n = tail - q->sq_posted < BURST ? tail - q->sq_posted : BURST;
		for (i = 0; i < n; i++) {
			if (!fill_send(q, &w[i], sge[i], q->sq_posted + i)) {
				atomic_store(&q->failed, true);
				q->reason = RTSAN_R_MALFORMED;
				verbs_conn_kick(q->ctx);
				return;
			}
			w[i].next = i + 1 < n ? &w[i + 1] : NULL;
		}
		if (ibv_post_send(q->id->qp, w, &bad) == 0) {
			q->sq_posted += n;
			continue;
		}
		q->sq_posted += (uint32_t)(bad - w);
		return; /* no room, or it is ending: what ends it says so */
	}
}

static void
post_recvs(struct verbs_qp *q)
{
	struct ibv_sge sge[SAN_ULP_SGE_MAX];
	const struct san_ulp_recv *e;
	struct ibv_recv_wr w, *bad;
	uint32_t tail = atomic_load_explicit(&q->wq->rq_tail, memory_order_acquire);

	for (; q->rq_posted != tail; q->rq_posted++) {
		e = &q->rqe[q->rq_posted & (q->rq_depth - 1)];
		w = (struct ibv_recv_wr){
			.wr_id = VERBS_ID(q->qpn, 1, q->rq_posted),
			.sg_list = sge,
			.num_sge = e->nb_sge,
		};
		if (!fill_sges(q, sge, e->sge, e->nb_sge)) {
			atomic_store(&q->failed, true);
			q->reason = RTSAN_R_MALFORMED;
			verbs_conn_kick(q->ctx);
			return;
		}
		if (ibv_post_recv(q->id->qp, &w, &bad) != 0)
			return;
	}
}

void
verbs_qp_post(struct verbs_qp *q)
{
	if (q->id == NULL || q->id->qp == NULL)
		return;
	post_recvs(q);
	if (q->state == VERBS_UP || q->state == VERBS_DRAINING)
		post_sends(q);
}

/* A push of nothing, in the place of the last one: it comes behind that. */
void
verbs_qp_ask(struct verbs_qp *q)
{
	struct ibv_send_wr w = {
				   .wr_id = VERBS_ID(q->qpn, 0, q->sq_posted - 1),
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED,
			   },
			   *bad;

	if (!q->has_asked && q->sq_posted == atomic_load(&q->wq->sq_tail))
		q->has_asked = ibv_post_send(q->id->qp, &w, &bad) == 0;
}

void
verbs_qp_doorbell(void *priv, uint32_t qpn)
{
	struct verbs_qp *q = verbs_qp_find(priv, qpn);

	if (q == NULL)
		return;
	pthread_mutex_lock(&q->lock);
	verbs_qp_post(q);
	pthread_mutex_unlock(&q->lock);
}
