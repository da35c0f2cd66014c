/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A completion channel is an epoll descriptor. Each of its completion queues has two members there:
 * the descriptor by which librtsan wakes, one shot for each ibv_req_notify_cq(), and an eventfd for
 * completions that librtsan does not know of. So a channel is pollable, and no thread forwards.
 *
 * An event is for a completion that comes after ibv_req_notify_cq(): programs rely on it. So that
 * call first moves what librtsan has into *own*, from where completions are taken first.
 *
 * librtsan reserves an entry of a completion queue for each posted request, verbs for none. A queue
 * has room for twice what the program asked for, so that requests without completions find one.
 */

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sv_priv.h"

/* Held while a completion queue leaves its channel, or an event is taken. */
static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;

static const enum ibv_wc_opcode opcodes[] = {
	[RTSAN_WC_SEND] = IBV_WC_SEND,
	[RTSAN_WC_PUSH] = IBV_WC_RDMA_WRITE,
	[RTSAN_WC_PULL] = IBV_WC_RDMA_READ,
	[RTSAN_WC_ATOMIC] = IBV_WC_FETCH_ADD,
	[RTSAN_WC_RECV] = IBV_WC_RECV,
	[RTSAN_WC_RECV_PUSH_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
};

static enum ibv_wc_status
status_of(uint8_t status)
{
	static const enum ibv_wc_status statuses[UINT8_MAX + 1] = {
		[RTSAN_WC_RNR_RETRY_EXC] = IBV_WC_RNR_RETRY_EXC_ERR,
		[RTSAN_WC_REM_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[RTSAN_WC_REM_REVOKED] = IBV_WC_REM_ACCESS_ERR,
		[RTSAN_WC_REM_LENGTH] = IBV_WC_REM_INV_REQ_ERR,
		[RTSAN_WC_REM_ALIGN] = IBV_WC_REM_INV_REQ_ERR,
		[RTSAN_WC_REM_RESOURCE] = IBV_WC_REM_OP_ERR,
		[RTSAN_WC_REM_REFUSED] = IBV_WC_REM_OP_ERR,
		[RTSAN_WC_ABORTED] = IBV_WC_REM_ABORT_ERR,
		[RTSAN_WC_RETRY_EXC] = IBV_WC_RETRY_EXC_ERR,
		[RTSAN_WC_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
		[RTSAN_WC_LOC_LENGTH] = IBV_WC_LOC_LEN_ERR,
	};

	if (status == RTSAN_WC_SUCCESS)
		return IBV_WC_SUCCESS;
	return statuses[status] != 0 ? statuses[status] : IBV_WC_GENERAL_ERR;
}

/* ---- completions ---- */

void
san_sv_works_add(struct sv_works *works, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	if (works->nb == works->max) {
		uint32_t max = works->max != 0 ? works->max * 2 : 64;
		struct sv_work *list = reallocarray(works->list, max, sizeof(*list));

		if (list == NULL)
			return; /* without memory a program gets one completion less */
		works->list = list;
		works->max = max;
	}
	works->list[works->nb++] = (struct sv_work){wr_id, opcode};
}

void
san_sv_cq_forget(struct sv_cq *cq, uint32_t qp_num)
{
	uint32_t i, nb = 0;

	for (i = 0; i < cq->nb_own; i++)
		if (cq->own[i].qp_num != qp_num)
			cq->own[nb++] = cq->own[i];
	cq->nb_own = nb;
}

void
san_sv_cqs_lock(const struct sv_qp *q)
{
	struct sv_cq *a = (struct sv_cq *)q->ibv.send_cq, *b = (struct sv_cq *)q->ibv.recv_cq;

	pthread_mutex_lock(a < b ? &a->lock : &b->lock);
	if (a != b)
		pthread_mutex_lock(a < b ? &b->lock : &a->lock);
}

void
san_sv_cqs_unlock(const struct sv_qp *q)
{
	pthread_mutex_unlock(&((struct sv_cq *)q->ibv.send_cq)->lock);
	if (q->ibv.send_cq != q->ibv.recv_cq)
		pthread_mutex_unlock(&((struct sv_cq *)q->ibv.recv_cq)->lock);
}

/* True if the program gets this completion. */
static bool
convert(const struct rtsan_wc *from, struct ibv_wc *to)
{
	struct sv_end *end = rtsan_qp_context(from->qp);
	struct sv_qp *q = end->q;

	to->wr_id = from->wr_id;
	to->status = status_of(from->status);
	to->opcode = opcodes[from->opcode];
	to->vendor_err = from->status;
	to->byte_len = from->byte_len;
	to->imm_data = htonl(from->imm);
	to->qp_num = q->ibv.qp_num;
	to->src_qp = q->attr.dest_qp_num;
	to->wc_flags = from->has_imm ? IBV_WC_WITH_IMM : 0;
	if (from->opcode >= RTSAN_WC_RECV && q->ibv.srq != NULL)
		san_sv_srq_taken(q->ibv.srq);
	if (q->ibv.qp_type == IBV_QPT_UD)
		return san_sv_ud_convert(end, from, to);
	if (to->status != IBV_WC_WR_FLUSH_ERR || q->ibv.state == IBV_QPS_ERR)
		return true;
	/* The peer has gone. Its program's RC learns of that when it sends. */
	if (from->opcode >= RTSAN_WC_RECV) {
		san_sv_works_add(&q->late_recvs, from->wr_id, IBV_WC_RECV);
		return false;
	}
	if (!q->is_failing)
		to->status = IBV_WC_RETRY_EXC_ERR;
	q->is_failing = true;
	return true;
}

/* Make room for *nb* more completions. False: no memory; the program gets some completions less. */
static bool
make_room(struct sv_cq *cq, uint32_t nb)
{
	uint32_t max = cq->nb_own + nb;
	struct ibv_wc *own;

	if (max <= cq->own_max)
		return true;
	max += SV_BURST;
	own = reallocarray(cq->own, max, sizeof(*own));
	if (own == NULL)
		return false;
	cq->own = own;
	cq->own_max = max;
	return true;
}

void
san_sv_cq_move(struct sv_cq *cq)
{
	struct rtsan_wc got[SV_BURST];
	int i, n;

	while (make_room(cq, SV_BURST) && (n = rtsan_cq_poll(cq->rt, got, SV_BURST)) > 0)
		for (i = 0; i < n; i++)
			cq->nb_own += convert(&got[i], &cq->own[cq->nb_own]);
}

void
san_sv_complete(struct ibv_cq *ibcq, const struct sv_qp *q, struct sv_works *works,
		enum ibv_wc_status status)
{
	struct sv_cq *cq = (struct sv_cq *)ibcq;
	uint32_t i;

	san_sv_cq_move(cq);
	if (works->nb == 0 || !make_room(cq, works->nb))
		return;
	for (i = 0; i < works->nb; i++) {
		cq->own[cq->nb_own++] = (struct ibv_wc){
			.wr_id = works->list[i].wr_id,
			.status = status,
			.opcode = works->list[i].opcode,
			.qp_num = q->ibv.qp_num,
		};
		status = status == IBV_WC_SUCCESS ? status : IBV_WC_WR_FLUSH_ERR;
	}
	works->nb = 0;
	if (cq->is_armed)
		eventfd_write(cq->due_fd, 1);
}

/* Move the queue pairs of failed requests to ERR. They may be destroyed meanwhile. */
static void
fail_qps(struct sv_device *dev, const struct ibv_wc *wc, int nb)
{
	int i;
	SAN_LOCKED(&dev->lock);

	for (i = 0; i < nb; i++) {
		struct sv_qp *q = wc[i].status != IBV_WC_SUCCESS ?
			san_sv_qp_find(dev, wc[i].qp_num) :
			NULL;

		if (q != NULL && q->ibv.qp_type == IBV_QPT_RC && q->ibv.state != IBV_QPS_ERR)
			san_sv_qp_fail(q, IBV_WC_WR_FLUSH_ERR);
	}
}

static int
take(struct sv_cq *cq, struct ibv_wc *wc, int nb)
{
	struct rtsan_wc got[SV_BURST];
	int i, n, out = 0;
	SAN_LOCKED(&cq->lock);

	if (cq->nb_own != 0) {
		out = (int)cq->nb_own < nb ? (int)cq->nb_own : nb;
		memcpy(wc, cq->own, (size_t)out * sizeof(*wc));
		cq->nb_own -= (uint32_t)out;
		memmove(cq->own, cq->own + out, cq->nb_own * sizeof(*wc));
		return out;
	}
	do {
		n = rtsan_cq_poll(cq->rt, got, nb < SV_BURST ? nb : SV_BURST);
		for (i = 0; i < n; i++)
			out += convert(&got[i], &wc[out]);
	} while (n > 0 && out == 0);
	return out;
}

int
san_sv_poll_cq(struct ibv_cq *ibcq, int nb, struct ibv_wc *wc)
{
	int i, n = take((struct sv_cq *)ibcq, wc, nb);
	bool has_failed = false;

	for (i = 0; i < n; i++)
		has_failed |= wc[i].status != IBV_WC_SUCCESS;
	if (has_failed)
		fail_qps(san_sv_device(ibcq->context), wc, n);
	return n;
}

/* ---- completion queues ---- */

static int
set_member(const struct sv_cq *cq, int op, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = (void *)cq};

	return epoll_ctl(cq->ibv.channel->fd, op, fd, &e) == 0 ? 0 : -errno;
}

static int
enter_channel(const struct sv_cq *cq)
{
	int rc = set_member(cq, EPOLL_CTL_ADD, cq->wake_fd, EPOLLONESHOT);

	return rc == 0 ? set_member(cq, EPOLL_CTL_ADD, cq->due_fd, EPOLLIN) : rc;
}

static int
join_channel(struct sv_cq *cq)
{
	cq->due_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cq->due_fd < 0)
		return -errno;
	cq->wake_fd = rtsan_cq_fd(cq->rt);
	if (cq->wake_fd < 0)
		return cq->wake_fd;
	return enter_channel(cq);
}

static void
leave_channel(const struct sv_cq *cq)
{
	SAN_LOCKED(&channels_lock);
	if (cq->wake_fd >= 0)
		set_member(cq, EPOLL_CTL_DEL, cq->wake_fd, 0);
	if (cq->due_fd >= 0)
		set_member(cq, EPOLL_CTL_DEL, cq->due_fd, 0);
}

static void
cq_free(struct sv_cq *cq)
{
	if (cq->due_fd >= 0)
		close(cq->due_fd);
	if (cq->rt != NULL)
		rtsan_cq_destroy(cq->rt);
	free(cq->own);
	free(cq);
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	      struct ibv_comp_channel *channel, int vector)
{
	struct sv_device *dev = san_sv_device(context);
	uint32_t max, depth;
	struct sv_cq *cq;
	int rc;

	SV_ELSE_NEXT(dev, ibv_create_cq, context, cqe, cq_context, channel, vector);
	max = dev->caps.max_wr * 2;
	if (cqe < 1 || (uint32_t)cqe > dev->caps.max_wr || vector != 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return NULL;
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = cqe;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	cq->wake_fd = cq->due_fd = -1;
	depth = (uint32_t)cqe * 2 + SV_BURST;
	rc = rtsan_cq_create(dev->rt, depth < max ? depth : max, &cq->rt);
	if (rc == 0 && channel != NULL)
		rc = join_channel(cq);
	if (rc != 0) {
		if (channel != NULL)
			leave_channel(cq);
		cq_free(cq);
		san_sv_result(rc, "ibv_create_cq()");
		return NULL;
	}
	if (channel != NULL)
		channel->refcnt++;
	return &cq->ibv;
}

int
ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	SV_ELSE_NEXT(san_sv_device(ibcq->context), ibv_resize_cq, ibcq, cqe);
	return cqe <= ibcq->cqe ? 0 : EOPNOTSUPP;
}

int
ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct sv_cq *cq = (struct sv_cq *)ibcq;
	int rc;

	SV_ELSE_NEXT(san_sv_device(ibcq->context), ibv_destroy_cq, ibcq);
	if (ibcq->channel != NULL)
		leave_channel(cq);
	rc = rtsan_cq_destroy(cq->rt);
	if (rc != 0) {
		if (ibcq->channel != NULL)
			enter_channel(cq);
		return -san_sv_explain(rc, "ibv_destroy_cq()");
	}
	cq->rt = NULL;
	pthread_mutex_lock(&ibcq->mutex);
	while (ibcq->comp_events_completed != cq->nb_events)
		pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
	pthread_mutex_unlock(&ibcq->mutex);
	if (ibcq->channel != NULL)
		ibcq->channel->refcnt--;
	cq_free(cq);
	return 0;
}

/* ---- events ---- */

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel;

	SV_ELSE_NEXT(san_sv_device(context), ibv_create_comp_channel, context);
	channel = calloc(1, sizeof(*channel));
	if (channel == NULL)
		return NULL;
	channel->context = context;
	channel->fd = epoll_create1(EPOLL_CLOEXEC);
	if (channel->fd >= 0)
		return channel;
	free(channel);
	return NULL;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	SV_ELSE_NEXT(san_sv_device(channel->context), ibv_destroy_comp_channel, channel);
	if (channel->refcnt != 0)
		return EBUSY;
	close(channel->fd);
	free(channel);
	return 0;
}

/* Solicited or not: all completions wake, of which a program may get more than it asked for. */
int
san_sv_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct sv_cq *cq = (struct sv_cq *)ibcq;
	int rc;

	if (ibcq->channel == NULL)
		return 0;
	SAN_LOCKED(&cq->lock);
	cq->is_armed = true;
	do
		san_sv_cq_move(cq);
	while ((rc = rtsan_cq_arm(cq->rt)) == 1);
	if (rc == 0)
		rc = set_member(cq, EPOLL_CTL_MOD, cq->wake_fd, EPOLLIN | EPOLLONESHOT);
	return -rc;
}

/* Take an event, if there is one that was asked for. No completion queue leaves meanwhile. */
static bool
take_event(struct ibv_comp_channel *channel, struct ibv_cq **out)
{
	bool was_armed = false;
	struct epoll_event e;
	eventfd_t value;
	SAN_LOCKED(&channels_lock);

	while (!was_armed && epoll_wait(channel->fd, &e, 1, 0) == 1) {
		struct sv_cq *cq = e.data.ptr;

		pthread_mutex_lock(&cq->lock);
		was_armed = cq->is_armed;
		cq->is_armed = false;
		eventfd_read(cq->due_fd, &value);
		set_member(cq, EPOLL_CTL_MOD, cq->wake_fd, EPOLLONESHOT);
		cq->nb_events += was_armed;
		pthread_mutex_unlock(&cq->lock);
		*out = &cq->ibv;
	}
	return was_armed;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	SV_ELSE_NEXT(san_sv_device(channel->context), ibv_get_cq_event, channel, cq, cq_context);
	while (!take_event(channel, cq))
		if (san_sv_wait(channel->fd) != 0)
			return -1;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *ibcq, unsigned int nb)
{
	SV_ELSE_NEXT(san_sv_device(ibcq->context), ibv_ack_cq_events, ibcq, nb);
	SAN_LOCKED(&ibcq->mutex);
	ibcq->comp_events_completed += nb;
	pthread_cond_signal(&ibcq->cond);
}
