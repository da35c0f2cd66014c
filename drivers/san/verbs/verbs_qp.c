/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Queue pairs and posting. librtsan, or a stream's session, writes requests into a ring of the
 * queue pair. They are given to the device at once if there is a connection, otherwise when there
 * is one. A place is free when the device has completed its request. (SYS-4)
 */

#include <arpa/inet.h>

#include "verbs_priv.h"

#define BURST 16 /* requests that are given to the device together */

/* ---- create, destroy ---- */

int
san_verbs_qp_make_queues(struct verbs_qp *q)
{
	size_t bytes = san_wr_wq_bytes(q->sq_depth, q->rq_depth);
	struct san_wq *wq = san_mem_aligned(NULL, bytes);
	int rc;

	if (wq == NULL)
		return -ENOMEM;
	/* for inline data in the ring */
	q->ring = ibv_reg_mr(q->ctx->pd, wq, bytes, 0);
	if (q->ring == NULL) {
		rc = -errno;
		free(wq);
		return rc;
	}
	q->wq = wq;
	q->sqe = wq->sqe;
	q->rqe = (struct san_ulp_recv *)(q->sqe + q->sq_depth);
	return 0;
}

void
san_verbs_qp_end_queues(struct verbs_qp *q)
{
	uint32_t i, n = (q->sq_depth + q->rq_depth) * RTSAN_SGE_MAX;

	for (i = 0; q->temps != NULL && i < n; i++)
		if (q->temps[i] != NULL)
			ibv_dereg_mr(q->temps[i]);
	free(q->temps);
	q->temps = NULL;
	if (q->ring != NULL)
		ibv_dereg_mr(q->ring);
	q->ring = NULL;
	free(q->wq);
	q->wq = NULL;
}

/* Under the lock. The rings are the program's, or those of its stream's session. */
static int
verbs_qp_fill_conf(struct verbs_qp *q, struct rtsan_provider_qp *conf)
{
	int rc;

	q->send_cq = conf->send_cq;
	q->recv_cq = conf->recv_cq;
	q->sq_depth = conf->req->qp.sq_depth;
	q->rq_depth = conf->req->qp.rq_depth;
	q->sq_posted = q->rq_posted = 0;
	q->state = VERBS_IDLE;
	q->armed_ns = SAN_TIME_NEVER;
	atomic_store(&q->failed, 0);
	if (conf->req->qp.is_stream)
		return san_verbs_stream_create(q, conf);
	rc = san_verbs_qp_make_queues(q);
	conf->wq = q->wq;
	return rc;
}

int
san_verbs_qp_create(void *priv, struct rtsan_provider_qp *conf)
{
	const struct shmq_qp *qp = &conf->req->qp;
	/* a stream's requests complete in a queue of its own */
	uint32_t nb_sends = qp->is_stream ? 0 : qp->sq_depth + VERBS_MARKS;
	uint32_t nb_recvs = qp->is_stream ? 0 : qp->rq_depth;
	struct verbs_ctx *ctx = priv;
	uint32_t i, most = (uint32_t)MIN(ctx->attr.max_qp, VERBS_QPS);
	struct verbs_qp *q = NULL;
	int rc;

	if (atomic_load(&ctx->is_lost))
		return ctx->host->fail(-EIO, "queue pair: %s has failed", ctx->device);
	if (qp->is_stream && ctx->is_plain)
		return ctx->host->fail(-EOPNOTSUPP, "queue pair: with plain there are no streams");
	pthread_mutex_lock(&ctx->lock);
	/* the search begins behind the last one, so numbers are not reused at once */
	for (i = 0; i < most && q == NULL; i++) {
		q = &ctx->qps[ctx->next_qp++ % most];
		if (atomic_load(&q->qpn) != SAN_QPN_NONE)
			q = NULL;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (q == NULL)
		return ctx->host->fail(-ENOSPC, "queue pair: all of %s are in use", ctx->device);
	rc = san_verbs_cq_join(conf->send_cq, nb_sends);
	if (rc != 0)
		return rc;
	rc = san_verbs_cq_join(conf->recv_cq, nb_recvs);
	if (rc != 0) {
		san_verbs_cq_leave(conf->send_cq, nb_sends);
		return rc;
	}
	pthread_mutex_lock(&q->lock);
	rc = verbs_qp_fill_conf(q, conf);
	if (rc == 0) {
		q->gen++;
		conf->qp = q->index | (q->gen & 0x7fff) << SAN_QPN_INDEX_BITS;
		atomic_store(&q->qpn, conf->qp);
		if (q->stream != NULL)
			san_verbs_thread_look(q);
	}
	pthread_mutex_unlock(&q->lock);
	if (rc == 0)
		return 0;
	san_verbs_cq_leave(conf->send_cq, nb_sends);
	san_verbs_cq_leave(conf->recv_cq, nb_recvs);
	if (rc == -EINVAL) /* the text of a wrong stream attribute is set already */
		return rc;
	return ctx->host->fail(rc, "queue pair: %s: %s%s", ctx->device, strerror(-rc),
			       rc == -ENOMEM ? " (see ulimit -l)" : "");
}

void
san_verbs_qp_free(struct verbs_qp *q)
{
	struct verbs_ctx *ctx = q->ctx;
	int i;

	san_verbs_end_drop(q);
	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < 2; i++)
		if (q->events[i].is_queued) {
			STAILQ_REMOVE(&ctx->events, &q->events[i], verbs_event, link);
			q->events[i].is_queued = false;
		}
	pthread_mutex_unlock(&ctx->lock);
	san_verbs_cq_forget(q);
	if (q->stream != NULL) {
		san_verbs_stream_destroy(q); /* also leaves the program's completion queues */
	} else {
		san_verbs_cq_leave(q->send_cq, q->sq_depth + VERBS_MARKS);
		san_verbs_cq_leave(q->recv_cq, q->rq_depth);
	}
	san_verbs_qp_end_queues(q);
	atomic_store(&q->qpn, SAN_QPN_NONE);
}

void
san_verbs_qp_destroy(void *priv, uint32_t qpn)
{
	struct verbs_qp *q = san_verbs_qp_of(priv, qpn);
	SAN_LOCKED(&q->lock);

	if (q->stream == NULL || !san_verbs_stream_orphan(q))
		san_verbs_qp_free(q);
}

/* ---- the device's queue pair ---- */

static int
try_make(struct verbs_qp *q)
{
	struct ibv_qp_init_attr init = {
		.qp_context = q,
		.send_cq = q->send_cq->cq,
		.recv_cq = q->recv_cq->cq,
		.cap = {
			.max_send_wr = q->sq_depth + VERBS_MARKS,
			.max_recv_wr = q->rq_depth,
			.max_send_sge = q->ctx->max_sge,
			.max_recv_sge = q->ctx->max_sge,
			.max_inline_data = q->max_inline,
		},
		.qp_type = IBV_QPT_RC,
	};

	return rdma_create_qp(q->id, q->ctx->pd, &init) == 0 ? 0 : -errno;
}

/*
 * A device does not report its limit of inline data beforehand. So half as much is tried until it
 * succeeds. Longer data is sent from the ring.
 */
int
san_verbs_qp_make(struct verbs_qp *q)
{
	int rc;

	q->max_inline = atomic_load(&q->ctx->max_inline);
	pthread_mutex_lock(&q->ctx->cm_lock);
	rc = try_make(q);
	while (rc != 0 && q->max_inline > 0) {
		q->max_inline /= 2;
		rc = try_make(q);
	}
	pthread_mutex_unlock(&q->ctx->cm_lock);
	if (rc == 0)
		atomic_store(&q->ctx->max_inline, q->max_inline);
	san_verbs_cq_forget(q);
	q->sq_posted = atomic_load(&q->wq->sq_head);
	q->rq_posted = atomic_load(&q->wq->rq_head);
	atomic_store(&q->marks, 0);
	return rc;
}

void
san_verbs_qp_unmake(struct verbs_qp *q)
{
	if (!san_verbs_qp_is_made(q))
		return;
	pthread_mutex_lock(&q->ctx->cm_lock);
	rdma_destroy_qp(q->id);
	pthread_mutex_unlock(&q->ctx->cm_lock);
	san_verbs_cq_forget(q);
	/* some devices leave completions, which would occupy room there */
	san_verbs_cq_harvest(q->send_cq);
	san_verbs_cq_harvest(q->recv_cq);
}

/* ---- posting ---- */

static const struct ibv_mr *
region_of(struct verbs_qp *q, const struct rtsan_sge *from, bool is_target, uint32_t temp)
{
	const struct ibv_mr *mr = NULL;

	if (from->lkey != 0)
		return san_verbs_mr_find(q->ctx, from->lkey);
	if (q->stream != NULL)
		mr = san_verbs_stream_find(q->stream, from->addr);
	if (mr == NULL && q->temps == NULL)
		q->temps = calloc((q->sq_depth + q->rq_depth) * RTSAN_SGE_MAX, sizeof(*q->temps));
	if (mr != NULL || q->temps == NULL)
		return mr;
	/* until the request is done; it may be there from a connection that was not established */
	if (q->temps[temp] == NULL)
		q->temps[temp] = ibv_reg_mr(q->ctx->pd, from->addr, from->length,
					    is_target ? IBV_ACCESS_LOCAL_WRITE : 0);
	return q->temps[temp];
}

/*
 * *slot*: of the request, counted over both queues. False: an element is in no region, and its
 * memory could not be registered.
 */
static bool
verbs_qp_fill_sges(struct verbs_qp *q, struct ibv_sge *to, const struct rtsan_sge *from,
		   uint32_t n, bool is_target, uint32_t slot)
{
	const struct ibv_mr *mr;
	uint32_t i;

	for (i = 0; i < n; i++) {
		to[i] = (struct ibv_sge){.addr = (uintptr_t)from[i].addr, .length = from[i].length};
		if (from[i].length == 0)
			continue;
		mr = region_of(q, &from[i], is_target, slot * RTSAN_SGE_MAX + i);
		if (mr == NULL)
			return false;
		to[i].lkey = mr->lkey;
	}
	return true;
}

static void
fill_op(struct ibv_send_wr *w, const struct san_ulp_wr *e)
{
	static const enum ibv_wr_opcode ops[] = {
		[RTSAN_WR_SEND] = IBV_WR_SEND,
		[RTSAN_WR_PUSH] = IBV_WR_RDMA_WRITE,
		[RTSAN_WR_PUSH_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[RTSAN_WR_PULL] = IBV_WR_RDMA_READ,
		[RTSAN_WR_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[RTSAN_WR_CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[RTSAN_WR_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	};

	w->opcode = ops[e->op];
	w->imm_data = htonl(e->imm);
	if (!san_wr_is_atomic(e->op)) {
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
verbs_qp_fill_send(struct verbs_qp *q, struct ibv_send_wr *w, struct ibv_sge *sge, uint32_t at)
{
	uint32_t every = q->sq_depth > 4 ? q->sq_depth / 4 : 1, slot = at & (q->sq_depth - 1);
	const struct san_ulp_wr *e = &q->sqe[slot];

	*w = (struct ibv_send_wr){
		.wr_id = VERBS_ID(q, 0, at & VERBS_PLACE),
		.sg_list = sge,
		.num_sge = e->nb_sge,
	};
	fill_op(w, e);
	/* places must be released, also those of unsignaled requests */
	if ((e->flags & RTSAN_WR_SIGNALED) != 0 || at % every == every - 1)
		w->send_flags |= IBV_SEND_SIGNALED;
	if ((e->flags & RTSAN_WR_INLINE) == 0)
		return verbs_qp_fill_sges(q, sge, e->sge, e->nb_sge, e->op >= RTSAN_WR_PULL, slot);
	w->num_sge = e->inline_len != 0;
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)e->data,
		.length = e->inline_len,
		.lkey = q->ring->lkey,
	};
	if (e->inline_len <= q->max_inline)
		w->send_flags |= IBV_SEND_INLINE;
	return true;
}

/* A request can't be posted, which ends the connection. True: this is the first failure. */
static bool
verbs_qp_fail_post(struct verbs_qp *q, uint8_t status)
{
	san_verbs_cq_harvest(q->send_cq); /* failed requests have a more precise status */
	return san_verbs_end_fail(q, status);
}

static void
verbs_qp_post_sends(struct verbs_qp *q)
{
	struct ibv_send_wr w[BURST], *bad = NULL;
	struct ibv_sge sge[BURST][RTSAN_SGE_MAX];
	bool is_good = true, is_posted = true;
	const struct san_ulp_wr *e;
	uint32_t tail, n, i;
	uint8_t status;

	while (is_good && is_posted) {
		/* pairs with the release of the thread that posts */
		tail = atomic_load_explicit(&q->wq->sq_tail, memory_order_acquire);
		if (tail == q->sq_posted)
			return;
		n = MIN(tail - q->sq_posted, BURST);
		for (i = 0; i < n; i++) {
			is_good = verbs_qp_fill_send(q, &w[i], sge[i], q->sq_posted + i);
			if (!is_good)
				break;
			w[i].next = NULL;
			if (i > 0)
				w[i - 1].next = &w[i];
		}
		is_posted = i == 0 || ibv_post_send(q->id->qp, w, &bad) == 0;
		/* some devices' libraries take all and report an error without *bad* */
		q->sq_posted += is_posted || bad == NULL ? i : (uint32_t)(bad - w);
	}
	/* the first request that the device never had gets the status */
	status = is_good ? RTSAN_WC_INVALID : RTSAN_WC_NO_BUFFERS;
	e = &q->sqe[q->sq_posted & (q->sq_depth - 1)];
	if (e->op >= RTSAN_WR_FETCH_ADD && e->remote_addr % SAN_ULP_ATOMIC_LEN != 0)
		status = RTSAN_WC_REM_ALIGN; /* at other devices the peer refuses it */
	if (verbs_qp_fail_post(q, status))
		q->blame_send = status;
}

static void
verbs_qp_post_recvs(struct verbs_qp *q)
{
	struct ibv_sge sge[RTSAN_SGE_MAX];
	const struct san_ulp_recv *e;
	struct ibv_recv_wr w, *bad;
	uint32_t slot, tail = atomic_load_explicit(&q->wq->rq_tail, memory_order_acquire);

	for (; q->rq_posted != tail; q->rq_posted++) {
		slot = q->rq_posted & (q->rq_depth - 1);
		e = &q->rqe[slot];
		w = (struct ibv_recv_wr){
			.wr_id = VERBS_ID(q, 1, q->rq_posted & VERBS_PLACE),
			.sg_list = sge,
			.num_sge = e->nb_sge,
		};
		if (!verbs_qp_fill_sges(q, sge, e->sge, e->nb_sge, true, q->sq_depth + slot)) {
			if (verbs_qp_fail_post(q, RTSAN_WC_NO_BUFFERS))
				q->blame_recv = RTSAN_WC_NO_BUFFERS;
			return;
		}
		if (ibv_post_recv(q->id->qp, &w, &bad) != 0) {
			verbs_qp_fail_post(q, RTSAN_WC_INVALID);
			return;
		}
	}
}

void
san_verbs_qp_post(struct verbs_qp *q)
{
	if (q->state == VERBS_ENDED)
		san_verbs_thread_look(q);
	if (!san_verbs_qp_is_made(q) || q->state == VERBS_ENDING || atomic_load(&q->failed) != 0)
		return;
	verbs_qp_post_recvs(q);
	if (q->state == VERBS_UP || q->state == VERBS_DRAINING)
		verbs_qp_post_sends(q);
}

bool
san_verbs_qp_mark(struct verbs_qp *q)
{
	struct ibv_send_wr w = {
		.wr_id = VERBS_ID(q, 0, VERBS_MARK),
		.opcode = IBV_WR_RDMA_WRITE, /* of 0 bytes */
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	/* one at a time; a second one only while the connection ends */
	if (atomic_load(&q->marks) == (q->state == VERBS_ENDING ? VERBS_MARKS : 1))
		return false;
	if (q->state != VERBS_ENDING)
		q->mark_at = q->sq_posted;
	atomic_fetch_add(&q->marks, 1);
	if (ibv_post_send(q->id->qp, &w, &bad) == 0)
		return true;
	atomic_fetch_sub(&q->marks, 1);
	return false;
}

void
san_verbs_qp_doorbell(void *priv, uint32_t qpn)
{
	struct verbs_qp *q = san_verbs_qp_of(priv, qpn);
	SAN_LOCKED(&q->lock);

	if (q->stream == NULL)
		san_verbs_qp_post(q);
	else if (san_verbs_stream_work(q, san_verbs_now_ns()) < q->armed_ns)
		san_verbs_thread_look(q);
}
