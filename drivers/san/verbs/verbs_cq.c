/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A request's place in its queue is its name at the device: a completion says how far the device
 * is, and frees all places before it. Requests that want no completion ask for one now and then
 * for that reason (verbs_qp.c), which nobody else sees.
 *
 * The device's queue has room for all that its queue pairs can have under way, so it never
 * overruns. What was taken from there for another reason than a poll is kept here.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs_priv.h"

/* ---- what a completion means ---- */

static uint8_t
status_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return RTSAN_WC_SUCCESS;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return RTSAN_WC_RNR_RETRY_EXC;
	case IBV_WC_REM_ACCESS_ERR: /* devices do not say which of key, bounds and rights */
		return RTSAN_WC_REM_RIGHTS;
	case IBV_WC_REM_INV_REQ_ERR:
		return RTSAN_WC_REM_LENGTH;
	case IBV_WC_REM_OP_ERR:
		return RTSAN_WC_REM_RESOURCE;
	case IBV_WC_REM_ABORT_ERR:
		return RTSAN_WC_ABORTED;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return RTSAN_WC_RETRY_EXC;
	case IBV_WC_LOC_LEN_ERR:
		return RTSAN_WC_LOC_LENGTH;
	case IBV_WC_WR_FLUSH_ERR:
		return RTSAN_WC_FLUSHED;
	default:
		return RTSAN_WC_INVALID;
	}
}

static uint8_t
reason_of(uint8_t status)
{
	return status == RTSAN_WC_RETRY_EXC ? RTSAN_R_TIMEOUT : RTSAN_R_NONE;
}

static uint8_t
op_of(uint8_t op)
{
	switch (op) {
	case SAN_WR_SEND:
		return SAN_WC_SEND;
	case SAN_WR_PUSH:
	case SAN_WR_PUSH_IMM:
		return SAN_WC_PUSH;
	case SAN_WR_PULL:
		return SAN_WC_PULL;
	default:
		return SAN_WC_ATOMIC;
	}
}

/* The connection ends by that: who polls does not do it, as it takes time. */
static void
note_failure(struct verbs_qp *q, uint8_t status)
{
	if (status == RTSAN_WC_SUCCESS || status == RTSAN_WC_FLUSHED)
		return;
	if (!atomic_exchange(&q->failed, true)) {
		q->reason = reason_of(status);
		verbs_conn_kick(q->ctx);
	}
}

static bool
sent(struct verbs_qp *q, uint32_t at, uint8_t status, struct san_ulp_wc *to)
{
	const struct san_ulp_wr *e = &q->sqe[at & (q->sq_depth - 1)];
	bool wants = status != 0 || (e->flags & SAN_WR_SIGNALED) != 0;

	*to = (struct san_ulp_wc){
		.wr_id = e->wr_id,
		.qp = q->qpn,
		.byte_len = status == 0 ? e->length : 0,
		.op = op_of(e->op),
		.status = status,
	};
	atomic_store_explicit(&q->wq->sq_head, at + 1, memory_order_release);
	return wants;
}

static void
received(struct verbs_qp *q, uint32_t at, uint8_t status, const struct ibv_wc *wc,
	 struct san_ulp_wc *to)
{
	const struct san_ulp_recv *e = &q->rqe[at & (q->rq_depth - 1)];

	*to = (struct san_ulp_wc){
		.wr_id = e->wr_id,
		.qp = q->qpn,
		.byte_len = status == 0 && wc != NULL ? wc->byte_len : 0,
		.op = SAN_WC_RECV,
		.status = status,
	};
	if (status == 0 && wc != NULL && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		to->op = SAN_WC_RECV_PUSH_IMM;
	if (status == 0 && wc != NULL && (wc->wc_flags & IBV_WC_WITH_IMM) != 0) {
		to->has_imm = true;
		to->imm = ntohl(wc->imm_data);
	}
	atomic_store_explicit(&q->wq->rq_head, at + 1, memory_order_release);
}

/* False: nobody is to hear of it, or it is of one that has gone. */
static bool
translate(const struct verbs_cq *cq, const struct ibv_wc *wc, struct san_ulp_wc *to)
{
	struct verbs_qp *q = &cq->ctx->qps[VERBS_ID_INDEX(wc->wr_id)];
	uint8_t status = status_of(wc->status);
	uint32_t at = (uint32_t)wc->wr_id;

	if (VERBS_ID(q->qpn, 0, 0) != VERBS_ID_OF(wc->wr_id))
		return false;
	note_failure(q, status);
	if (!VERBS_ID_IS_RECV(wc->wr_id))
		return sent(q, at, status, to);
	received(q, at, status, wc, to);
	return true;
}

/* ---- what is kept ---- */

static bool
has_place(const struct verbs_cq *cq)
{
	return cq->kept_tail - cq->kept_head < cq->depth;
}

static struct san_ulp_wc *
place(struct verbs_cq *cq)
{
	return &cq->kept[cq->kept_tail % cq->depth];
}

void
verbs_cq_harvest(struct verbs_cq *cq)
{
	struct ibv_wc wc;

	while (has_place(cq) && ibv_poll_cq(cq->cq, 1, &wc) == 1)
		if (translate(cq, &wc, place(cq)))
			cq->kept_tail++;
}

static int
poll_kept(struct verbs_cq *cq, struct san_ulp_wc *wc, int n)
{
	int i;

	for (i = 0; i < n && cq->kept_head != cq->kept_tail; i++)
		wc[i] = cq->kept[cq->kept_head++ % cq->depth];
	return i;
}

int
verbs_cq_poll(void *arg, struct san_ulp_wc *wc, int n)
{
	struct ibv_wc got[VERBS_HARVEST];
	struct verbs_cq *cq = arg;
	int i, nb, done;

	pthread_mutex_lock(&cq->lock);
	done = poll_kept(cq, wc, n);
	while (done < n) {
		nb = ibv_poll_cq(cq->cq, n - done < VERBS_HARVEST ? n - done : VERBS_HARVEST, got);
		for (i = 0; i < nb; i++)
			done += translate(cq, &got[i], &wc[done]);
		if (nb < VERBS_HARVEST)
			break;
	}
	pthread_mutex_unlock(&cq->lock);
	return done;
}

/* What the device never had, or gave back by ending. False: not all of it had a place. */
static bool
flush_sends(struct verbs_qp *q)
{
	struct verbs_cq *cq = q->send_cq;
	uint32_t at = atomic_load(&q->wq->sq_head), tail = atomic_load(&q->wq->sq_tail);

	for (; at != tail && has_place(cq); at++) {
		sent(q, at, RTSAN_WC_FLUSHED, place(cq));
		cq->kept_tail++;
	}
	q->sq_posted = at;
	return at == tail;
}

static bool
flush_recvs(struct verbs_qp *q)
{
	struct verbs_cq *cq = q->recv_cq;
	uint32_t at = atomic_load(&q->wq->rq_head), tail = atomic_load(&q->wq->rq_tail);

	for (; at != tail && has_place(cq); at++) {
		received(q, at, RTSAN_WC_FLUSHED, NULL, place(cq));
		cq->kept_tail++;
	}
	q->rq_posted = at;
	return at == tail;
}

static bool
flush(struct verbs_cq *cq, struct verbs_qp *q, bool (*fn)(struct verbs_qp *q))
{
	bool all;

	pthread_mutex_lock(&cq->lock);
	verbs_cq_harvest(cq);
	all = fn(q);
	pthread_mutex_unlock(&cq->lock);
	eventfd_write(cq->wake_fd, 1);
	return all;
}

bool
verbs_cq_flush(struct verbs_qp *q)
{
	bool all = flush(q->send_cq, q, flush_sends);

	return flush(q->recv_cq, q, flush_recvs) && all;
}

/* ---- come and go ---- */

int
verbs_cq_reserve(struct verbs_cq *cq, int32_t n)
{
	struct san_ulp_wc *kept;
	uint32_t need, count;
	int rc = 0;

	pthread_mutex_lock(&cq->lock);
	need = cq->used + (uint32_t)n;
	if (need > cq->depth) {
		count = cq->kept_tail - cq->kept_head;
		kept = calloc(need, sizeof(*kept));
		rc = kept == NULL ? ENOMEM : ibv_resize_cq(cq->cq, (int)need);
		if (rc == 0) {
			poll_kept(cq, kept, (int)count);
			free(cq->kept);
			cq->kept = kept;
			cq->kept_head = 0;
			cq->kept_tail = count;
			cq->depth = need;
		} else {
			free(kept);
		}
	}
	if (rc == 0)
		cq->used = need;
	pthread_mutex_unlock(&cq->lock);
	return rc == 0 ? 0 : cq->ctx->host->fail(-rc, "completion queue for %u: %s: %s", need, cq->ctx->device, strerror(rc));
}

static int
watch(int epoll, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.fd = fd}};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
}

static void
release(struct verbs_cq *cq)
{
	if (cq->cq != NULL)
		ibv_destroy_cq(cq->cq);
	if (cq->channel != NULL)
		ibv_destroy_comp_channel(cq->channel);
	if (cq->wake_fd >= 0)
		close(cq->wake_fd);
	if (cq->fd >= 0)
		close(cq->fd);
	pthread_mutex_destroy(&cq->lock);
	free(cq->kept);
	free(cq);
}

int
verbs_cq_create(void *priv, uint32_t depth, void **out)
{
	struct verbs_cq *cq = calloc(1, sizeof(*cq));
	struct verbs_ctx *ctx = priv;
	int err;

	if (cq == NULL)
		return -ENOMEM;
	cq->ctx = ctx;
	cq->depth = depth;
	pthread_mutex_init(&cq->lock, NULL);
	cq->kept = calloc(depth, sizeof(*cq->kept));
	cq->fd = epoll_create1(EPOLL_CLOEXEC);
	cq->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	cq->channel = ibv_create_comp_channel(ctx->dev);
	if (cq->channel != NULL)
		cq->cq = ibv_create_cq(ctx->dev, (int)depth, cq, cq->channel, 0);
	if (cq->kept == NULL || cq->cq == NULL ||
	    fcntl(cq->channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
	    watch(cq->fd, cq->channel->fd) != 0 || watch(cq->fd, cq->wake_fd) != 0) {
		err = errno;
		release(cq);
		return ctx->host->fail(-err, "completion queue: %s: %s", ctx->device,
				       strerror(err));
	}
	*out = cq;
	return 0;
}

int
verbs_cq_destroy(void *priv, void *arg)
{
	struct verbs_cq *cq = arg;

	(void)priv;
	if (cq->used != 0)
		return cq->ctx->host->fail(-EBUSY, "completion queue: a queue pair uses it");
	release(cq);
	return 0;
}

/* ---- waiting ---- */

int
verbs_cq_fd(void *priv, void *arg)
{
	(void)priv;
	return ((const struct verbs_cq *)arg)->fd;
}

int
verbs_cq_arm(void *priv, void *arg)
{
	const struct verbs_ctx *ctx = priv;
	struct verbs_cq *cq = arg;
	eventfd_t value;
	struct ibv_cq *which;
	void *context;
	bool has;

	eventfd_read(cq->wake_fd, &value);
	while (ibv_get_cq_event(cq->channel, &which, &context) == 0)
		ibv_ack_cq_events(which, 1);
	pthread_mutex_lock(&cq->lock);
	ibv_req_notify_cq(cq->cq, 0);
	verbs_cq_harvest(cq);
	has = cq->kept_head != cq->kept_tail;
	pthread_mutex_unlock(&cq->lock);
	return has ? 1 : atomic_load(&ctx->is_gone) ? -EIO :
						      0;
}
