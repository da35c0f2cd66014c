/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The ID of a request at the device is its place in its queue. So a completion shows how far the
 * device has come, and releases all places before it. Therefore some unsignaled requests are
 * signaled at the device (verbs_qp.c); their completions are not reported to the program.
 *
 * The device's queue has room for all requests that its queue pairs can have in flight, so it never
 * overruns. Completions that are taken from the device outside of a poll are kept here, and so are
 * completions of streams.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs_priv.h"

#define HARVEST 32                 /* completions taken at once */
#define MARKS   (32 * VERBS_MARKS) /* room for marks in a new queue */

/* ---- meaning of a completion, as in the table of doc/providers.md ---- */

/* Others: RTSAN_WC_INVALID. */
static const uint8_t statuses[] = {
	[IBV_WC_RNR_RETRY_EXC_ERR] = RTSAN_WC_RNR_RETRY_EXC,
	[IBV_WC_REM_ACCESS_ERR] = RTSAN_WC_REM_ACCESS,
	[IBV_WC_REM_INV_REQ_ERR] = RTSAN_WC_REM_REFUSED,
	[IBV_WC_REM_OP_ERR] = RTSAN_WC_REM_RESOURCE,
	[IBV_WC_REM_ABORT_ERR] = RTSAN_WC_ABORTED,
	[IBV_WC_RETRY_EXC_ERR] = RTSAN_WC_RETRY_EXC,
	[IBV_WC_RESP_TIMEOUT_ERR] = RTSAN_WC_RETRY_EXC,
	[IBV_WC_LOC_LEN_ERR] = RTSAN_WC_LOC_LENGTH,
	[IBV_WC_WR_FLUSH_ERR] = RTSAN_WC_FLUSHED,
};

static uint8_t
status_of(enum ibv_wc_status status, uint8_t op)
{
	if (status == IBV_WC_SUCCESS)
		return RTSAN_WC_SUCCESS;
	/* the peer's device has refused the request as invalid */
	if (status == IBV_WC_REM_INV_REQ_ERR && san_wr_is_atomic(op))
		return RTSAN_WC_REM_ALIGN;
	if (status == IBV_WC_REM_INV_REQ_ERR && san_wr_takes_recv(op))
		return RTSAN_WC_REM_LENGTH;
	if (status < sizeof(statuses) && statuses[status] != 0)
		return statuses[status];
	return RTSAN_WC_INVALID;
}

static const uint8_t ops[] = {
	[RTSAN_WR_SEND] = RTSAN_WC_SEND,
	[RTSAN_WR_PUSH] = RTSAN_WC_PUSH,
	[RTSAN_WR_PUSH_IMM] = RTSAN_WC_PUSH,
	[RTSAN_WR_PULL] = RTSAN_WC_PULL,
	[RTSAN_WR_FETCH_ADD] = RTSAN_WC_ATOMIC,
	[RTSAN_WR_CMP_SWAP] = RTSAN_WC_ATOMIC,
	[RTSAN_WR_SEND_IMM] = RTSAN_WC_SEND,
};

/* Deregister memory of one request. */
static void
end_temps(struct verbs_qp *q, uint32_t slot)
{
	struct ibv_mr **temps = q->temps;
	uint32_t i;

	for (i = slot * RTSAN_SGE_MAX; temps != NULL && i < (slot + 1) * RTSAN_SGE_MAX; i++)
		if (temps[i] != NULL) {
			ibv_dereg_mr(temps[i]);
			temps[i] = NULL;
		}
}

/* Release the places of sends before place *to*. */
static void
free_sends(struct verbs_qp *q, uint32_t to)
{
	uint32_t at = atomic_load_explicit(&q->wq->sq_head, memory_order_relaxed);

	for (; q->temps != NULL && at != to; at++)
		end_temps(q, at & (q->sq_depth - 1));
	atomic_store_explicit(&q->wq->sq_head, to, memory_order_release);
}

/* False: no completion is wanted. */
static bool
verbs_cq_fill_sent(struct verbs_qp *q, uint32_t at, uint8_t status, struct san_ulp_wc *to)
{
	const struct san_ulp_wr *e = &q->sqe[at & (q->sq_depth - 1)];
	bool wants = status != 0 || (e->flags & RTSAN_WR_SIGNALED) != 0;

	*to = (struct san_ulp_wc){
		.wr_id = e->wr_id,
		.qp = atomic_load(&q->qpn),
		.byte_len = status == 0 ? e->length : 0,
		.op = ops[e->op],
		.status = status,
	};
	free_sends(q, at + 1);
	return wants;
}

static void
verbs_cq_fill_received(struct verbs_qp *q, uint32_t at, uint8_t status, const struct ibv_wc *wc,
		       struct san_ulp_wc *to)
{
	uint32_t slot = at & (q->rq_depth - 1);
	const struct san_ulp_recv *e = &q->rqe[slot];

	*to = (struct san_ulp_wc){
		.wr_id = e->wr_id,
		.qp = atomic_load(&q->qpn),
		.byte_len = status == 0 && wc != NULL ? wc->byte_len : 0,
		.op = RTSAN_WC_RECV,
		.status = status,
	};
	if (status == 0 && wc != NULL && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		to->op = RTSAN_WC_RECV_PUSH_IMM;
	if (status == 0 && wc != NULL && (wc->wc_flags & IBV_WC_WITH_IMM) != 0) {
		to->has_imm = true;
		to->imm = ntohl(wc->imm_data);
	}
	end_temps(q, q->sq_depth + slot);
	atomic_store_explicit(&q->wq->rq_head, at + 1, memory_order_release);
}

/* False: the completion is not reported, or belongs to an earlier connection. */
static bool
verbs_cq_translate_wc(const struct verbs_cq *cq, const struct ibv_wc *wc, struct san_ulp_wc *to)
{
	struct verbs_qp *q = &cq->ctx->qps[VERBS_ID_INDEX(wc->wr_id)];
	bool is_recv = VERBS_ID_IS_RECV(wc->wr_id), is_mark = (wc->wr_id & VERBS_MARK) != 0;
	uint32_t head, at;
	uint8_t status;

	if (VERBS_ID(q, 0, 0) != VERBS_ID_OF(wc->wr_id) || q->wq == NULL)
		return false;
	/* the connection was never established: posted work stays for the next one */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && !atomic_load(&q->was_up))
		return false;
	/* the place whose lower bits are those of the ID */
	head = atomic_load(is_recv ? &q->wq->rq_head : &q->wq->sq_head);
	at = head + (((uint32_t)wc->wr_id - head) & VERBS_PLACE);
	status = status_of(wc->status, is_recv || is_mark ? 0 : q->sqe[at & (q->sq_depth - 1)].op);
	if (status != RTSAN_WC_SUCCESS && status != RTSAN_WC_FLUSHED)
		san_verbs_end_fail(q, status);
	if (is_recv) {
		verbs_cq_fill_received(q, at, status, wc, to);
		return true;
	}
	if (is_mark) {
		/* it is the last one, or the connection has ended (see san_verbs_cq_settle()) */
		if (status == RTSAN_WC_SUCCESS &&
		    (int32_t)(q->mark_at - head) > 0)
			free_sends(q, q->mark_at);
		atomic_fetch_sub(&q->marks, 1);
		return false;
	}
	if (status == RTSAN_WC_FLUSHED && atomic_load(&q->blame) != 0)
		status = atomic_exchange(&q->blame, 0);
	return verbs_cq_fill_sent(q, at, status, to);
}

/* ---- kept completions, under the lock ---- */

/* The next entry to write; the caller increments nb_kept when it is valid. NULL: no room. */
static struct san_ulp_wc *
verbs_cq_place(struct verbs_cq *cq)
{
	if (cq->nb_kept == cq->depth)
		return NULL;
	return &cq->kept[(cq->kept_head + cq->nb_kept) % cq->depth];
}

static bool
verbs_cq_harvest_one(struct verbs_cq *cq)
{
	struct san_ulp_wc *to;
	struct ibv_wc wc;

	while ((to = verbs_cq_place(cq)) != NULL) {
		if (ibv_poll_cq(cq->cq, 1, &wc) != 1)
			return true;
		cq->nb_kept += verbs_cq_translate_wc(cq, &wc, to);
	}
	return false;
}

/* Wake a thread that waits to poll. */
static void
verbs_cq_wake_waiter(struct verbs_cq *cq)
{
	if (cq->is_armed && cq->nb_kept != 0) {
		cq->is_armed = false;
		eventfd_write(cq->wake_fd, 1);
	}
}

static int
poll_kept(struct verbs_cq *cq, struct san_ulp_wc *wc, int n)
{
	int i;

	for (i = 0; i < n && cq->nb_kept != 0; i++) {
		wc[i] = cq->kept[cq->kept_head];
		if (++cq->kept_head == cq->depth)
			cq->kept_head = 0;
		cq->nb_kept--;
	}
	if (i > 0 && cq->has_waiter) {
		cq->has_waiter = false;
		atomic_store(&cq->ctx->has_room, true);
		san_verbs_thread_kick(cq->ctx);
	}
	return i;
}

bool
san_verbs_cq_harvest(struct verbs_cq *cq)
{
	bool all;
	SAN_LOCKED(&cq->lock);

	all = verbs_cq_harvest_one(cq);
	verbs_cq_wake_waiter(cq);
	return all;
}

bool
san_verbs_cq_give(struct verbs_cq *cq, const struct san_ulp_wc *wc)
{
	struct san_ulp_wc *to;
	SAN_LOCKED(&cq->lock);

	to = verbs_cq_place(cq);
	if (to == NULL) {
		cq->has_waiter = true;
		return false;
	}
	*to = *wc;
	cq->nb_kept++;
	verbs_cq_wake_waiter(cq);
	return true;
}

int
san_verbs_cq_poll(void *arg, struct san_ulp_wc *wc, int n)
{
	struct ibv_wc got[HARVEST];
	struct verbs_cq *cq = arg;
	int i, nb, want, done;
	SAN_LOCKED(&cq->lock);

	done = poll_kept(cq, wc, n);
	while (done < n) {
		want = MIN(n - done, HARVEST);
		nb = ibv_poll_cq(cq->cq, want, got);
		for (i = 0; i < nb; i++)
			done += verbs_cq_translate_wc(cq, &got[i], &wc[done]);
		if (nb < want)
			break;
	}
	return done;
}

/* ---- ends of connections ---- */

/* Lock in order of address: another queue pair may have the same two queues in reverse. */
static void
lock_both(const struct verbs_qp *q)
{
	struct verbs_cq *a = q->send_cq, *b = q->recv_cq;

	pthread_mutex_lock(&(a < b ? a : b)->lock);
	if (a != b)
		pthread_mutex_lock(&(a < b ? b : a)->lock);
}

static void
unlock_both(const struct verbs_qp *q)
{
	if (q->recv_cq != q->send_cq)
		pthread_mutex_unlock(&q->recv_cq->lock);
	pthread_mutex_unlock(&q->send_cq->lock);
}

void
san_verbs_cq_forget(struct verbs_qp *q)
{
	lock_both(q);
	q->epoch++;
	unlock_both(q);
}

void
san_verbs_cq_settle(struct verbs_qp *q)
{
	SAN_LOCKED(&q->send_cq->lock);

	free_sends(q, q->sq_posted);
}

static bool
flush_sends(struct verbs_qp *q)
{
	struct verbs_cq *cq = q->send_cq;
	uint32_t at = atomic_load(&q->wq->sq_head), tail = atomic_load(&q->wq->sq_tail);
	struct san_ulp_wc *to;
	uint8_t blame;

	for (; at != tail && (to = verbs_cq_place(cq)) != NULL; at++) {
		if (at == q->sq_posted) {
			blame = q->blame_send;
			q->blame_send = 0;
		} else {
			blame = atomic_exchange(&q->blame, 0);
		}
		verbs_cq_fill_sent(q, at, blame != 0 ? blame : RTSAN_WC_FLUSHED, to);
		cq->nb_kept++;
	}
	q->sq_posted = at;
	return at == tail;
}

static bool
verbs_cq_flush_recvs(struct verbs_qp *q)
{
	struct verbs_cq *cq = q->recv_cq;
	uint32_t at = atomic_load(&q->wq->rq_head), tail = atomic_load(&q->wq->rq_tail);
	struct san_ulp_wc *to;

	for (; at != tail && (to = verbs_cq_place(cq)) != NULL; at++) {
		verbs_cq_fill_received(q, at, q->blame_recv != 0 ? q->blame_recv : RTSAN_WC_FLUSHED,
				       NULL, to);
		q->blame_recv = 0;
		cq->nb_kept++;
	}
	q->rq_posted = at;
	return at == tail;
}

bool
san_verbs_cq_flush(struct verbs_qp *q)
{
	bool all;

	lock_both(q);
	all = flush_sends(q);
	all = verbs_cq_flush_recvs(q) && all;
	verbs_cq_wake_waiter(q->send_cq);
	verbs_cq_wake_waiter(q->recv_cq);
	unlock_both(q);
	return all;
}

/* ---- create, destroy ---- */

int
san_verbs_cq_join(struct verbs_cq *cq, uint32_t n)
{
	struct san_ulp_wc *kept;
	uint32_t need;
	int rc;
	SAN_LOCKED(&cq->lock);

	need = cq->used + n;
	if (need > cq->depth) {
		kept = calloc(need, sizeof(*kept));
		rc = kept == NULL ? ENOMEM : ibv_resize_cq(cq->cq, (int)need);
		if (rc != 0) {
			free(kept);
			return cq->ctx->host->fail(-rc, "completion queue for %u: %s: %s", need,
						   cq->ctx->device, strerror(rc));
		}
		cq->nb_kept = (uint32_t)poll_kept(cq, kept, (int)cq->nb_kept);
		cq->kept_head = 0;
		cq->depth = need;
		free(cq->kept);
		cq->kept = kept;
	}
	cq->used = need;
	cq->users++;
	return 0;
}

void
san_verbs_cq_leave(struct verbs_cq *cq, uint32_t n)
{
	SAN_LOCKED(&cq->lock);

	cq->used -= n;
	cq->users--;
}

static void
verbs_cq_release(struct verbs_cq *cq)
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

/* What programs wait for. */
static int
verbs_cq_make_fd(struct verbs_cq *cq)
{
	struct epoll_event ev = {.events = EPOLLIN};

	cq->fd = epoll_create1(EPOLL_CLOEXEC);
	if (cq->fd >= 0)
		cq->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cq->wake_fd >= 0)
		cq->channel = ibv_create_comp_channel(cq->ctx->dev);
	if (cq->channel == NULL || fcntl(cq->channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
	    epoll_ctl(cq->fd, EPOLL_CTL_ADD, cq->channel->fd, &ev) != 0)
		return -1;
	return epoll_ctl(cq->fd, EPOLL_CTL_ADD, cq->wake_fd, &ev);
}

int
san_verbs_cq_make(struct verbs_ctx *ctx, uint32_t depth, const struct verbs_qp *stream,
		  struct verbs_cq **out)
{
	struct verbs_cq *cq = calloc(1, sizeof(*cq));
	int rc;

	if (cq == NULL)
		return -ENOMEM;
	cq->ctx = ctx;
	cq->depth = depth;
	cq->fd = cq->wake_fd = -1;
	pthread_mutex_init(&cq->lock, NULL);
	cq->kept = calloc(depth, sizeof(*cq->kept));
	if (cq->kept != NULL && stream != NULL)
		cq->cq = ibv_create_cq(ctx->dev, (int)depth, (void *)(uintptr_t)stream->index,
				       ctx->channel, 0);
	else if (cq->kept != NULL && verbs_cq_make_fd(cq) == 0)
		cq->cq = ibv_create_cq(ctx->dev, (int)depth, NULL, cq->channel, 0);
	if (cq->cq != NULL) {
		*out = cq;
		return 0;
	}
	rc = -errno;
	verbs_cq_release(cq);
	return rc;
}

int
san_verbs_cq_create(void *priv, uint32_t depth, void **out)
{
	struct verbs_ctx *ctx = priv;
	/* not every device can resize a queue, so it has room for marks of some queue pairs */
	uint32_t most = (uint32_t)ctx->attr.max_cqe;
	struct verbs_cq *cq;
	int rc = san_verbs_cq_make(ctx, MIN(depth + MARKS, most), NULL, &cq);

	if (rc != 0)
		return ctx->host->fail(rc, "completion queue: %s: %s", ctx->device, strerror(-rc));
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->cqs, cq, link);
	pthread_mutex_unlock(&ctx->lock);
	*out = cq;
	return 0;
}

int
san_verbs_cq_destroy(void *priv, void *arg)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_cq *cq = arg;

	if (cq->users != 0)
		return -EBUSY;
	if (cq->fd >= 0) {
		pthread_mutex_lock(&ctx->lock);
		LIST_REMOVE(cq, link);
		pthread_mutex_unlock(&ctx->lock);
	}
	verbs_cq_release(cq);
	return 0;
}

/* ---- waiting ---- */

int
san_verbs_cq_fd(void *priv, void *arg)
{
	return ((const struct verbs_cq *)arg)->fd;
}

int
san_verbs_cq_arm(void *priv, void *arg)
{
	const struct verbs_ctx *ctx = priv;
	struct verbs_cq *cq = arg;
	struct ibv_cq *which;
	eventfd_t value;
	void *context;
	SAN_LOCKED(&cq->lock);

	eventfd_read(cq->wake_fd, &value);
	while (ibv_get_cq_event(cq->channel, &which, &context) == 0)
		ibv_ack_cq_events(which, 1);
	if (cq->nb_kept == 0) {
		ibv_req_notify_cq(cq->cq, 0);
		verbs_cq_harvest_one(cq);
	}
	cq->is_armed = cq->nb_kept == 0;
	if (!cq->is_armed)
		return 1;
	return atomic_load(&ctx->is_lost) ? -EIO : 0;
}
