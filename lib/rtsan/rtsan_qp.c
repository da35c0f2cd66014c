/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Posting: a work request is checked here, once, and written directly into its entry of the ring
 * that the lcore reads. Then the doorbell is rung once per call. No code after the ring checks
 * pointers of an application again. (SYS-2, RT-10)
 */

#include "rtsan_priv.h"

#define DEPTH_DEFAULT 128
#define FLAGS_ALL \
	(RTSAN_WR_SIGNALED | RTSAN_WR_INLINE | RTSAN_WR_SOLICITED | RTSAN_WR_UNSOLICITED)
#define FLAGS_STREAM (RTSAN_WR_SIGNALED | RTSAN_WR_INLINE | RTSAN_WR_OOB)
#define FLAGS_LOAN   (RTSAN_RECV_LOAN | RTSAN_RECV_DONTWAIT)
#define FLAGS_RECV   (FLAGS_LOAN | RTSAN_RECV_PEEK | RTSAN_RECV_WAITALL)

/* ---- create, destroy ---- */

/*
 * The pointer is read first and written first. So a reader that gets the pointer of a new queue
 * pair cannot get the number of the old one.
 */
struct rtsan_qp *
rtsan_qp_find(const struct rtsan_ctx *ctx, uint32_t qpn)
{
	struct rtsan_qp_place *place = &ctx->qps[SAN_QPN_INDEX(qpn)];
	struct rtsan_qp *qp;

	if (SAN_QPN_INDEX(qpn) >= ctx->caps.max_qps)
		return NULL;
	qp = atomic_load(&place->qp);
	return atomic_load(&place->qpn) == qpn ? qp : NULL;
}

static int
check_recv_from(const struct rtsan_ctx *ctx, const struct rtsan_qp_attr *attr)
{
	const struct rtsan_qp *from = attr->recv_from;

	if (from == NULL)
		return 0;
	if (!ctx->caps.has_recv_from)
		return rtsan_fail(-EOPNOTSUPP, "queue pair: the provider has no recv_from");
	if (from->ctx != ctx || from->is_stream || from->shares_recvs || attr->stream != NULL)
		return rtsan_fail(-EINVAL, "queue pair: recv_from is of another context, a stream, "
					   "for a stream, or has a recv_from itself");
	return 0;
}

int
rtsan_qp_create(struct rtsan_ctx *ctx, const struct rtsan_qp_attr *attr, struct rtsan_qp **out)
{
	struct shmq_req req = {.type = SHMQ_QP_CREATE};
	struct rtsan_provider_qp conf = {.req = &req};
	struct rtsan_qp *qp;
	int rc;
	SAN_LOCKED(&ctx->lock);

	if (attr == NULL || attr->send_cq == NULL || attr->recv_cq == NULL)
		return rtsan_fail(-EINVAL, "queue pair: needs a send_cq and a recv_cq");
	if (attr->send_cq->ctx != ctx || attr->recv_cq->ctx != ctx)
		return rtsan_fail(-EINVAL, "queue pair: completion queue of another context");
	if (attr->sq_depth > ctx->caps.max_wr || attr->rq_depth > ctx->caps.max_wr)
		return rtsan_fail(-EINVAL, "queue pair: depths %u, %u, at most %u", attr->sq_depth,
				  attr->rq_depth, ctx->caps.max_wr);
	rc = check_recv_from(ctx, attr);
	if (rc != 0)
		return rc;
	req.qp.sq_depth = san_spsc_size(attr->sq_depth != 0 ? attr->sq_depth : DEPTH_DEFAULT);
	req.qp.rq_depth = san_spsc_size(attr->rq_depth != 0 ? attr->rq_depth : DEPTH_DEFAULT);
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return rtsan_fail(-ENOMEM, "queue pair: no memory");
	qp->ctx = ctx;
	qp->context = attr->context;
	qp->is_stream = attr->stream != NULL;
	qp->shares_recvs = attr->recv_from != NULL;
	req.qp.shares_recvs = qp->shares_recvs;
	req.qp.recv_from = qp->shares_recvs ? attr->recv_from->qpn : 0;
	req.qp.is_stream = qp->is_stream;
	if (qp->is_stream)
		req.qp.stream = *attr->stream;
	conf.send_cq = attr->send_cq->priv;
	conf.recv_cq = attr->recv_cq->priv;
	rtsan_error_clear();
	rc = ctx->ops->qp_create(ctx->priv, &conf);
	if (rc != 0) {
		free(qp);
		return rtsan_fail_else(rc, "queue pair");
	}
	qp->qpn = conf.qp;
	san_wr_wq_prod_init(&qp->wq, conf.wq, req.qp.sq_depth, req.qp.rq_depth);
	atomic_store(&ctx->qps[SAN_QPN_INDEX(qp->qpn)].qp, qp);
	atomic_store(&ctx->qps[SAN_QPN_INDEX(qp->qpn)].qpn, qp->qpn);
	*out = qp;
	return 0;
}

void
rtsan_qp_destroy(struct rtsan_qp *qp)
{
	struct rtsan_qp_place *place;
	struct rtsan_ctx *ctx;

	if (qp == NULL)
		return;
	ctx = qp->ctx;
	pthread_mutex_lock(&ctx->lock);
	place = &ctx->qps[SAN_QPN_INDEX(qp->qpn)];
	atomic_store(&place->qpn, SAN_QPN_NONE);
	atomic_store(&place->qp, NULL);
	ctx->ops->qp_destroy(ctx->priv, qp->qpn);
	pthread_mutex_unlock(&ctx->lock);
	free(qp);
}

void *
rtsan_qp_context(const struct rtsan_qp *qp)
{
	return qp->context;
}

/* ---- posting ---- */

/* Inline data is copied now: it needs an address, but no region. *is_inline* is a constant. */
static inline int
check_sges(const struct rtsan_qp *qp, const struct rtsan_sge *sge, uint8_t nb_sge, bool is_inline,
	   uint64_t *length)
{
	uint32_t max_sge = is_inline ? RTSAN_SGE_MAX : qp->ctx->caps.max_sge;
	const char *why;
	uint8_t i;

	*length = 0;
	if (nb_sge > max_sge)
		return rtsan_fail(-EINVAL, "nb_sge %u, at most %u", nb_sge, max_sge);
	if (nb_sge != 0 && sge == NULL)
		return rtsan_fail(-EINVAL, "nb_sge %u, but no sge", nb_sge);
	for (i = 0; i < nb_sge; i++) {
		*length += sge[i].length;
		if (sge[i].length != 0 && sge[i].addr == NULL)
			return rtsan_fail(-EINVAL, "sge[%u]: no address", i);
		if (!is_inline &&
		    rtsan_mr_check(qp->ctx, sge[i].addr, sge[i].length, sge[i].lkey, &why) != 0)
			return rtsan_fail(-EINVAL, "sge[%u]: %p, %u bytes, lkey 0x%x: %s", i,
					  sge[i].addr, sge[i].length, sge[i].lkey, why);
	}
	return 0;
}

static int
qp_check_send(const struct rtsan_qp *qp, const struct rtsan_send_wr *wr, uint64_t *length)
{
	bool atomic = san_wr_is_atomic(wr->opcode);
	bool is_inline = (wr->flags & RTSAN_WR_INLINE) != 0;
	uint64_t max = is_inline ? RTSAN_INLINE_MAX :
		qp->is_stream    ? RTSAN_LENGTH_MAX :
				   qp->ctx->caps.max_msg;
	int rc;

	if (wr->opcode < RTSAN_WR_SEND || wr->opcode > RTSAN_WR_SEND_IMM)
		return rtsan_fail(-EINVAL, "opcode %u is unknown", wr->opcode);
	if (qp->is_stream && wr->opcode != RTSAN_WR_SEND)
		return rtsan_fail(-EINVAL, "opcode %u: a stream only sends", wr->opcode);
	if ((wr->flags & ~(qp->is_stream ? FLAGS_STREAM : FLAGS_ALL)) != 0)
		return rtsan_fail(-EINVAL, "flags 0x%x has unknown bits", wr->flags);
	if ((wr->flags & RTSAN_WR_SOLICITED) != 0 && (wr->flags & RTSAN_WR_UNSOLICITED) != 0)
		return rtsan_fail(-EINVAL, "flags: solicited and unsolicited");
	if (is_inline && !san_wr_is_push(wr->opcode))
		return rtsan_fail(-EINVAL, "RTSAN_WR_INLINE is for sends and pushes");
	rc = is_inline ? check_sges(qp, wr->sge, wr->nb_sge, true, length) :
			 check_sges(qp, wr->sge, wr->nb_sge, false, length);
	if (rc != 0)
		return rc;
	if (*length > max)
		return rtsan_fail(-EINVAL, "%llu bytes%s, at most %llu",
				  (unsigned long long)*length, is_inline ? " inline" : "",
				  (unsigned long long)max);
	if (atomic && !qp->ctx->caps.has_atomic)
		return rtsan_fail(-EOPNOTSUPP, "opcode %u: the provider has no atomics",
				  wr->opcode);
	if (atomic && *length != SAN_ULP_ATOMIC_LEN)
		return rtsan_fail(-EINVAL, "an atomic returns %d bytes, sge has %llu",
				  SAN_ULP_ATOMIC_LEN, (unsigned long long)*length);
	return 0;
}

static void
copy_sges(const struct rtsan_ctx *ctx, struct rtsan_sge *to, const struct rtsan_sge *from,
	  uint8_t nb_sge)
{
	uint8_t i;

	for (i = 0; i < nb_sge; i++) {
		to[i].addr = from[i].addr;
		to[i].length = from[i].length;
		to[i].lkey = rtsan_mr_key(ctx, from[i].lkey);
	}
}

static void
qp_fill_send(const struct rtsan_ctx *ctx, struct san_ulp_wr *e, const struct rtsan_send_wr *wr,
	     uint32_t length)
{
	uint8_t i, at = 0;

	e->wr_id = wr->wr_id;
	e->remote_addr = wr->remote_addr;
	e->rkey = wr->rkey;
	e->imm = wr->imm;
	e->op = wr->opcode;
	e->flags = wr->flags;
	e->length = length;
	if (san_wr_is_atomic(wr->opcode)) {
		e->operand = wr->operand;
		e->swap = wr->swap;
	}
	e->nb_sge = 0;
	e->inline_len = 0;
	if ((wr->flags & RTSAN_WR_INLINE) == 0) {
		e->nb_sge = wr->nb_sge;
		copy_sges(ctx, e->sge, wr->sge, wr->nb_sge);
		return;
	}
	e->inline_len = (uint8_t)length;
	for (i = 0; i < wr->nb_sge; i++) {
		if (wr->sge[i].length != 0) /* an empty element may have no address */
			memcpy(&e->data[at], wr->sge[i].addr, wr->sge[i].length);
		at = (uint8_t)(at + wr->sge[i].length);
	}
}

/* A stream that has ended can still be read. */
static int
qp_check_post(const struct rtsan_qp *qp, const void *wr, int nb_wr)
{
	if (nb_wr <= 0 || wr == NULL)
		return rtsan_fail(-EINVAL, "post: nothing to post");
	if (atomic_load_explicit(&qp->ended, memory_order_relaxed) && !qp->is_stream)
		return rtsan_fail(-ENOTCONN, "post: the connection has ended");
	return 0;
}

int
rtsan_post_send(struct rtsan_qp *qp, const struct rtsan_send_wr *wr, int nb_wr)
{
	struct san_wq_prod *q = &qp->wq;
	uint64_t length = 0;
	uint32_t room;
	int n, rc = qp_check_post(qp, wr, nb_wr);

	if (rc != 0)
		return rc;
	room = san_spsc_room(&q->sq, &q->wq->sq_head);
	for (n = 0; n < nb_wr; n++) {
		rc = qp_check_send(qp, &wr[n], &length);
		if (rc != 0 || (uint32_t)n == room)
			break;
		qp_fill_send(qp->ctx, &q->wq->sqe[(q->sq.tail + (uint32_t)n) & q->sq.mask], &wr[n],
			     (uint32_t)length);
	}
	if (n == 0)
		return rc;
	san_spsc_push(&q->sq, &q->wq->sq_tail, (uint32_t)n);
	qp->ctx->ops->doorbell(qp->ctx->priv, qp->qpn);
	return n;
}

/* Post a request without SGEs. -EAGAIN: the send queue is full. */
static int
qp_post_control(struct rtsan_qp *qp, uint8_t op, uint32_t imm, uint64_t value, uint64_t wr_id)
{
	const struct rtsan_send_wr wr = {
		.wr_id = wr_id,
		.opcode = op,
		.flags = RTSAN_WR_SIGNALED,
		.imm = imm,
		.remote_addr = value,
	};
	struct san_wq_prod *q = &qp->wq;

	if (!qp->is_stream)
		return rtsan_fail(-EINVAL, "stream: the queue pair is none");
	if (san_spsc_room(&q->sq, &q->wq->sq_head) == 0)
		return rtsan_fail(-EAGAIN, "stream: the send queue is full");
	qp_fill_send(qp->ctx, &q->wq->sqe[q->sq.tail & q->sq.mask], &wr, 0);
	san_spsc_push(&q->sq, &q->wq->sq_tail, 1);
	qp->ctx->ops->doorbell(qp->ctx->priv, qp->qpn);
	return 0;
}

static int
check_recv(const struct rtsan_qp *qp, const struct rtsan_recv_wr *wr, uint64_t *length)
{
	if (qp->shares_recvs)
		return rtsan_fail(-EINVAL, "its receives are those of another queue pair");
	if (!qp->is_stream && wr->flags != 0)
		return rtsan_fail(-EINVAL, "receive: flags 0x%x are for streams", wr->flags);
	if ((wr->flags & ~FLAGS_RECV) != 0)
		return rtsan_fail(-EINVAL, "receive: flags 0x%x has unknown bits", wr->flags);
	if ((wr->flags & RTSAN_RECV_LOAN) == 0)
		return check_sges(qp, wr->sge, wr->nb_sge, false, length);
	if (!qp->ctx->caps.has_loan)
		return rtsan_fail(-EOPNOTSUPP, "receive: the provider has no loans");
	if ((wr->flags & ~FLAGS_LOAN) != 0)
		return rtsan_fail(-EINVAL, "receive: flags 0x%x do not go with a loan", wr->flags);
	return wr->nb_sge != 0 ? rtsan_fail(-EINVAL, "receive: a loan has no parts") : 0;
}

int
rtsan_post_recv(struct rtsan_qp *qp, const struct rtsan_recv_wr *wr, int nb_wr)
{
	struct san_wq_prod *q = &qp->wq;
	struct san_ulp_recv *e;
	uint64_t length;
	uint32_t room;
	int n, rc = qp_check_post(qp, wr, nb_wr);

	if (rc != 0)
		return rc;
	room = san_spsc_room(&q->rq, &q->wq->rq_head);
	for (n = 0; n < nb_wr; n++) {
		rc = check_recv(qp, &wr[n], &length);
		if (rc != 0 || (uint32_t)n == room)
			break;
		e = &q->rqe[(q->rq.tail + (uint32_t)n) & q->rq.mask];
		e->wr_id = wr[n].wr_id;
		e->nb_sge = wr[n].nb_sge;
		e->flags = wr[n].flags;
		copy_sges(qp->ctx, e->sge, wr[n].sge, wr[n].nb_sge);
	}
	if (n == 0)
		return rc;
	san_spsc_push(&q->rq, &q->wq->rq_tail, (uint32_t)n);
	qp->ctx->ops->doorbell(qp->ctx->priv, qp->qpn);
	return n;
}

/* ---- requests of streams besides sends and receives: they have no SGEs (AFC-1) ---- */

#define NS_PER_US    1000
#define OPT_ADAPTIVE 0xff /* see enum san_stream_option */

int
rtsan_stream_wait(struct rtsan_qp *qp, uint32_t events, uint64_t wr_id)
{
	return qp_post_control(qp, SAN_WR_WAIT, events, 0, wr_id);
}

int
rtsan_stream_cancel(struct rtsan_qp *qp, uint32_t work, uint64_t wr_id)
{
	return qp_post_control(qp, SAN_WR_CANCEL, work, 0, wr_id);
}

int
rtsan_stream_shutdown(struct rtsan_qp *qp, uint64_t wr_id)
{
	return qp_post_control(qp, SAN_WR_SHUTDOWN, 0, 0, wr_id);
}

int
rtsan_stream_urgent(struct rtsan_qp *qp, uint64_t wr_id)
{
	return qp_post_control(qp, SAN_WR_URGENT, 0, 0, wr_id);
}

int
rtsan_stream_give_back(struct rtsan_qp *qp, uint32_t loan, uint64_t wr_id)
{
	if (qp->is_stream && !qp->ctx->caps.has_loan)
		return rtsan_fail(-EOPNOTSUPP, "stream: the provider has no loans");
	return qp_post_control(qp, SAN_WR_GIVE_BACK, loan, 0, wr_id);
}

int
rtsan_stream_option(struct rtsan_qp *qp, enum rtsan_stream_option option, uint32_t value,
		    uint64_t wr_id)
{
	static const uint32_t option_of[] = {
		[RTSAN_STREAM_OPT_MODE] = SAN_STREAM_OPT_MODE,
		[RTSAN_STREAM_OPT_READ] = SAN_STREAM_OPT_READ,
		[RTSAN_STREAM_OPT_HOLD_US] = SAN_STREAM_OPT_HOLD_NS,
		[RTSAN_STREAM_OPT_GATHER_US] = SAN_STREAM_OPT_GATHER_NS,
	};
	uint64_t inner = value;

	if ((unsigned int)option >= sizeof(option_of) / sizeof(option_of[0]) ||
	    option_of[option] == 0)
		return rtsan_fail(-EINVAL, "stream: option %u is unknown", (unsigned int)option);
	if (option == RTSAN_STREAM_OPT_MODE && value == RTSAN_STREAM_ADAPTIVE)
		inner = OPT_ADAPTIVE;
	if (option >= RTSAN_STREAM_OPT_HOLD_US)
		inner *= NS_PER_US;
	return qp_post_control(qp, SAN_WR_OPTION, option_of[option], inner, wr_id);
}
