/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Queue pairs, their states, and the connections that they make themselves.
 *
 * DESIGN NOTES
 *
 * Programs exchange numbers and addresses by a way of their own, then modify both queue pairs to
 * RTR. Of the two, the one with the higher (GID, number) then connects to the process of the other,
 * which the number names, and the other accepts when it is at RTR itself. The private data carries
 * both numbers. Posted work waits for the connection, so a program need not know of it.
 *
 * The connection is RTSAN_ENDING: a refused request ends it, as RDMA devices have it. That the peer
 * has ended is no event of an RC queue pair: it stays as it is until a send fails.
 */

#include <arpa/inet.h>
#include <time.h>

#include "sv_priv.h"

#define SERVICE 0x76657262000000ull /* "verb" */
#define RNR_MS  UINT16_MAX          /* no end, as rnr_retry 7 */
#define END_S   1                   /* that the end of a connection may take */

/** Parameters of the private data. */
struct hello {
	uint32_t dest, src; /**< big endian */
};
static_assert(sizeof(struct hello) == SV_HELLO_LEN, "SV_HELLO_LEN");

uint64_t
san_sv_service(uint32_t number)
{
	return SERVICE << 8 | number;
}

struct sv_qp *
san_sv_qp_find(const struct sv_device *dev, uint32_t qp_num)
{
	struct sv_qp *q = dev->qps[qp_num % SV_QPS];

	return q != NULL && q->ibv.qp_num == qp_num ? q : NULL;
}

/* ---- the end of a connection ---- */

void
san_sv_qp_fail(struct sv_qp *q, enum ibv_wc_status status)
{
	struct sv_cq *recv_cq = (struct sv_cq *)q->ibv.recv_cq;
	SAN_LOCKED(&q->lock);

	/* what librtsan has flushed already is older than what is completed here */
	pthread_mutex_lock(&recv_cq->lock);
	san_sv_cq_move(recv_cq);
	q->ibv.state = IBV_QPS_ERR;
	pthread_mutex_unlock(&recv_cq->lock);
	if (q->ibv.qp_type == IBV_QPT_UD)
		san_sv_ud_end(q);
	if (q->link == SV_LINK_UP)
		rtsan_disconnect(q->rt);
	if (q->link == SV_LINK_UP || q->link == SV_LINK_WAITS)
		return; /* an event comes when librtsan has flushed the rest */
	san_sv_cqs_lock(q);
	san_sv_complete(q->ibv.send_cq, q, &q->early_sends, status);
	san_sv_complete(&recv_cq->ibv, q, &q->late_recvs, IBV_WC_WR_FLUSH_ERR);
	san_sv_complete(&recv_cq->ibv, q, &q->early_recvs, IBV_WC_WR_FLUSH_ERR);
	san_sv_cqs_unlock(q);
	if (q->ibv.srq != NULL && !q->is_last)
		san_sv_async(q->ibv.context, IBV_EVENT_QP_LAST_WQE_REACHED, q);
	q->is_last = true;
}

/* ---- connections ---- */

static void
drop_request(struct sv_device *dev, uint32_t i)
{
	dev->nb_requests--;
	memmove(&dev->requests[i], &dev->requests[i + 1],
		(dev->nb_requests - i) * sizeof(dev->requests[0]));
}

/* Accept the waiting request for *q* from the peer that its program has named, if there is one. */
static void
accept_request(struct sv_device *dev, struct sv_qp *q)
{
	struct rtsan_conn_param param = {.rnr_ms = RNR_MS};
	struct rtsan_qp *rt = q->mirror != NULL ? q->mirror : q->rt;
	uint32_t i;

	for (i = 0; i < dev->nb_requests; i++) {
		struct sv_request *r = &dev->requests[i];

		if (r->dest != q->ibv.qp_num || r->src != q->attr.dest_qp_num ||
		    memcmp(&r->gid, &q->attr.ah_attr.grh.dgid, sizeof(r->gid)) != 0)
			continue;
		if (rtsan_accept(dev->rt, r->request, rt, &param) == 0)
			q->link = SV_LINK_WAITS;
		drop_request(dev, i--);
		if (q->link == SV_LINK_WAITS)
			return;
	}
}

int
san_sv_qp_connect(struct sv_qp *q, const union ibv_gid *gid, uint64_t service,
		  const struct rtsan_conn_param *param)
{
	int rc = san_sv_connect(q->rt, gid, service, param);

	if (rc == 0)
		q->link = SV_LINK_WAITS;
	return rc;
}

static int
connect_to_peer(struct sv_qp *q)
{
	struct hello hello = {htonl(q->attr.dest_qp_num), htonl(q->ibv.qp_num)};
	struct rtsan_conn_param param = {
		.order = RTSAN_ENDING,
		.rnr_ms = RNR_MS,
		.private_data = &hello,
		.private_len = sizeof(hello),
	};

	return san_sv_explain(san_sv_qp_connect(q, &q->attr.ah_attr.grh.dgid,
						san_sv_service(q->attr.dest_qp_num >> SV_QP_BITS),
						&param),
			      "ibv_modify_qp() to RTR");
}

static int
connect_or_accept(struct sv_device *dev, struct sv_qp *q)
{
	int order = memcmp(&dev->gids[q->attr.ah_attr.grh.sgid_index],
			   &q->attr.ah_attr.grh.dgid, sizeof(union ibv_gid));
	int rc = 0;

	if (order == 0)
		order = (q->ibv.qp_num > q->attr.dest_qp_num) -
			(q->ibv.qp_num < q->attr.dest_qp_num);
	if (order == 0) /* it is connected to itself */
		rc = san_sv_rt_create(q, &q->end, 1, 1, q->rt, &q->mirror);
	if (order < 0)
		accept_request(dev, q);
	else if (rc == 0)
		rc = connect_to_peer(q);
	if (rc != 0) {
		rtsan_qp_destroy(q->mirror);
		q->mirror = NULL;
	}
	return rc;
}

static void
on_request(struct sv_device *dev, const struct rtsan_event *ev)
{
	const struct hello *hello = (const struct hello *)ev->private_data;
	struct sv_request *r;
	struct sv_qp *q;

	if (ev->private_len != sizeof(*hello)) {
		san_sv_ud_request(dev, ev);
		return;
	}
	if (dev->nb_requests == SV_REQUESTS) { /* the oldest one's program has likely ended */
		rtsan_reject(dev->rt, dev->requests[0].request, NULL, 0);
		drop_request(dev, 0);
	}
	r = &dev->requests[dev->nb_requests++];
	*r = (struct sv_request){ev->request, ntohl(hello->dest), ntohl(hello->src)};
	san_sv_gid(ev->peer, &r->gid);
	q = san_sv_qp_find(dev, r->dest);
	if (q != NULL && (q->link == SV_LINK_NONE || q->mirror != NULL) &&
	    (q->ibv.state == IBV_QPS_RTR || q->ibv.state == IBV_QPS_RTS))
		accept_request(dev, q);
}

static void
set_link(struct sv_qp *q, enum sv_link link)
{
	struct sv_device *dev = san_sv_device(q->ibv.context);
	SAN_LOCKED(&q->lock);

	q->link = link;
	if (link == SV_LINK_UP) /* librtsan completes what was posted before */
		q->early_sends.nb = q->early_recvs.nb = 0;
	pthread_cond_broadcast(&dev->ended);
}

static void
end_link(struct sv_qp *q, bool was_up)
{
	set_link(q, SV_LINK_ENDED);
	if (q->ibv.state == IBV_QPS_ERR)
		san_sv_qp_fail(q, IBV_WC_WR_FLUSH_ERR);
	else if (!was_up && q->ibv.state != IBV_QPS_RESET)
		san_sv_qp_fail(q, IBV_WC_RETRY_EXC_ERR);
}

void
san_sv_qp_fail_all(struct sv_device *dev)
{
	const struct rtsan_event ev = {.type = RTSAN_EV_DISCONNECTED};
	uint32_t i;

	for (i = 0; i < SV_QPS; i++) {
		struct sv_qp *q = dev->qps[i];

		if (q == NULL || q->link == SV_LINK_ENDED)
			continue;
		if (q->id != NULL && q->link != SV_LINK_NONE)
			san_sv_cm_qp_event(q, &ev);
		end_link(q, false);
	}
}

void
san_sv_qp_event(struct sv_device *dev, const struct rtsan_event *ev)
{
	bool is_up = ev->type == RTSAN_EV_ESTABLISHED;
	struct sv_end *end;
	struct sv_qp *q;

	if (ev->type == RTSAN_EV_CONNECT_REQUEST) {
		if (!san_sv_cm_request(dev, ev))
			on_request(dev, ev);
		return;
	}
	end = rtsan_qp_context(ev->qp);
	q = end->q;
	if (q->ibv.qp_type == IBV_QPT_UD) {
		san_sv_ud_event(end, ev);
		return;
	}
	if (ev->qp == q->mirror)
		return;
	if (is_up && q->ibv.state == IBV_QPS_ERR) { /* the program has ended it meanwhile */
		set_link(q, SV_LINK_UP);
		rtsan_disconnect(q->rt);
		return;
	}
	if (q->id != NULL)
		san_sv_cm_qp_event(q, ev);
	if (is_up)
		set_link(q, SV_LINK_UP);
	else
		end_link(q, ev->type == RTSAN_EV_DISCONNECTED);
}

/* ---- creation ---- */

static int
check_init(const struct sv_device *dev, const struct ibv_qp_init_attr_ex *a)
{
	const struct rtsan_caps *caps = &dev->caps;

	if (a->qp_type == IBV_QPT_UD ? a->srq != NULL || !caps->has_recv_from :
				       a->qp_type != IBV_QPT_RC)
		return san_sv_refuse(-EOPNOTSUPP, "no such queue pairs here");
	if (a->send_cq == NULL || a->recv_cq == NULL || a->cap.max_send_wr > caps->max_wr ||
	    a->cap.max_recv_wr > caps->max_wr || a->cap.max_send_sge > SV_SGES ||
	    a->cap.max_recv_sge > caps->max_sge || a->cap.max_inline_data > SV_INLINE)
		return san_sv_refuse(-EINVAL, "more than ibv_query_device() says, or no CQ");
	return 0;
}

int
san_sv_rt_create(struct sv_qp *q, struct sv_end *end, uint32_t sq_depth, uint32_t rq_depth,
		 struct rtsan_qp *recv_from, struct rtsan_qp **rt)
{
	struct rtsan_qp_attr attr = {
		.send_cq = ((struct sv_cq *)q->ibv.send_cq)->rt,
		.recv_cq = ((struct sv_cq *)q->ibv.recv_cq)->rt,
		.sq_depth = sq_depth,
		.rq_depth = rq_depth,
		.context = end,
		.recv_from = q->ibv.srq != NULL ? ((struct sv_srq *)q->ibv.srq)->rt : recv_from,
	};

	return rtsan_qp_create(san_sv_device(q->ibv.context)->rt, &attr, rt);
}

/*
 * Create what librtsan has of *q*, without a connection. A send without a completion keeps its
 * place until the peer has acknowledged it. A program knows of its end by the peer's answer, which
 * may arrive before: there are more places than it asks for.
 */
static int
create_rt(struct sv_device *dev, struct sv_qp *q)
{
	uint32_t sends = q->init.cap.max_send_wr + SV_BURST;

	q->link = SV_LINK_NONE;
	q->is_failing = q->is_last = false;
	return san_sv_rt_create(q, &q->end, sends < dev->caps.max_wr ? sends : dev->caps.max_wr,
				q->init.cap.max_recv_wr, NULL, &q->rt);
}

/* Destroy it; nobody takes its completions meanwhile. */
static void
destroy_rt(struct sv_qp *q)
{
	san_sv_cqs_lock(q);
	q->ibv.state = IBV_QPS_RESET;
	san_sv_cqs_unlock(q);
	pthread_mutex_lock(&q->lock);
	san_sv_ud_end(q);
	pthread_mutex_unlock(&q->lock);
	san_sv_cqs_lock(q);
	san_sv_cq_move((struct sv_cq *)q->ibv.recv_cq); /* receives of an SRQ that it has taken */
	rtsan_qp_destroy(q->mirror);
	rtsan_qp_destroy(q->rt);
	q->rt = q->mirror = NULL;
	if (q->bounce != NULL)
		rtsan_mr_dereg(q->bounce);
	q->bounce = NULL;
	q->nb_bounced = 0;
	q->early_sends.nb = q->early_recvs.nb = q->late_recvs.nb = 0;
	san_sv_cq_forget((struct sv_cq *)q->ibv.send_cq, q->ibv.qp_num);
	san_sv_cq_forget((struct sv_cq *)q->ibv.recv_cq, q->ibv.qp_num);
	san_sv_cqs_unlock(q);
}

static void
qp_free(struct sv_qp *q)
{
	free(q->early_sends.list);
	free(q->early_recvs.list);
	free(q->late_recvs.list);
	free(q->staged);
	free(q->staged_sges);
	free(q->staged_bytes);
	free(q->staged_dests);
	free(q->sends.slot);
	free(q->recvs.slot);
	free(q);
}

/* Give *q* a place and its number; with the lock of the device. 0 or -ENOSPC. */
static int
choose_place(struct sv_device *dev, struct sv_qp *q)
{
	uint32_t i, place;

	for (i = 0; i < SV_QPS; i++) {
		place = (dev->qp_next + i) % SV_QPS;
		if (dev->qps[place] != NULL)
			continue;
		dev->qp_next = place + 1;
		dev->qps[place] = q;
		q->ibv.qp_num = dev->number << SV_QP_BITS | place;
		return 0;
	}
	return -ENOSPC;
}

struct ibv_qp *
san_sv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
	struct sv_device *dev = san_sv_device(context);
	int rc = check_init(dev, a);
	struct sv_qp *q = rc == 0 ? calloc(1, sizeof(*q)) : NULL;

	if (q == NULL) {
		san_sv_result(rc != 0 ? rc : -ENOMEM, "ibv_create_qp()");
		return NULL;
	}
	memcpy(&q->init, a, sizeof(q->init));
	if (a->srq != NULL)
		q->init.cap.max_recv_wr = 1;
	if (q->init.cap.max_inline_data < dev->caps.max_inline)
		q->init.cap.max_inline_data = dev->caps.max_inline;
	a->cap = q->init.cap;
	q->ibv.context = context;
	q->ibv.qp_context = a->qp_context;
	q->ibv.pd = a->pd;
	q->ibv.send_cq = a->send_cq;
	q->ibv.recv_cq = a->recv_cq;
	q->ibv.srq = a->srq;
	q->ibv.qp_type = a->qp_type;
	q->ibv.state = IBV_QPS_RESET;
	q->blocks_self = (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 &&
		(a->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) != 0;
	q->end.q = q;
	pthread_mutex_init(&q->lock, NULL);
	SAN_LOCKED(&dev->lock);
	rc = (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 ? san_sv_wr_init(q) : 0;
	if (rc == 0 && a->qp_type == IBV_QPT_UD)
		rc = san_sv_ud_init(q);
	if (rc == 0)
		rc = create_rt(dev, q);
	if (rc == 0)
		rc = choose_place(dev, q);
	if (rc == 0 && a->srq != NULL)
		((struct sv_srq *)a->srq)->nb_qps++;
	if (rc == 0)
		return &q->ibv;
	rtsan_qp_destroy(q->rt);
	qp_free(q);
	san_sv_result(rc, "ibv_create_qp()");
	return NULL;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex all = {.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
	struct ibv_qp *qp;

	SV_ELSE_NEXT(san_sv_device(pd->context), ibv_create_qp, pd, attr);
	memcpy(&all, attr, sizeof(*attr));
	qp = san_sv_create_qp_ex(pd->context, &all);
	attr->cap = all.cap;
	return qp;
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct sv_qp *q = (struct sv_qp *)qp;

	SV_ELSE_NEXT(san_sv_device(qp->context), ibv_qp_to_qp_ex, qp);
	return q->staged != NULL ? &q->ex : NULL;
}

/*
 * End the connection of *q* in order, so that its peer learns what has arrived here: rtsan's
 * destruction would not wait for that. With the lock of the device, which is released meanwhile.
 */
static void
end_connection(struct sv_device *dev, struct sv_qp *q)
{
	struct timespec until;

	if (q->link != SV_LINK_UP)
		return;
	rtsan_disconnect(q->rt);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_S;
	while (q->link == SV_LINK_UP && !dev->has_failed &&
	       pthread_cond_timedwait(&dev->ended, &dev->lock, &until) == 0)
		;
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	struct sv_device *dev = san_sv_device(qp->context);
	struct sv_qp *q = (struct sv_qp *)qp;

	SV_ELSE_NEXT(dev, ibv_destroy_qp, qp);
	pthread_mutex_lock(&dev->lock);
	end_connection(dev, q);
	san_sv_ud_drain(dev, q);
	if (q->id != NULL)
		san_sv_cm_forget_qp(q);
	dev->qps[qp->qp_num % SV_QPS] = NULL;
	san_sv_group_end(q);
	destroy_rt(q);
	if (qp->srq != NULL)
		((struct sv_srq *)qp->srq)->nb_qps--;
	san_sv_mr_retry(dev);
	pthread_mutex_unlock(&dev->lock);
	san_sv_async_forget(qp->context, q);
	qp_free(q);
	return 0;
}

/* ---- states ---- */

/** What must and may be set by a change of the state (InfiniBand's table 92). */
static const struct {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int must, may;
} changes[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
		 IBV_QP_PATH_MIG_STATE},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE},
	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

int
san_sv_qp_mask(enum ibv_qp_type type, enum ibv_qp_state to)
{
	int mask = IBV_QP_STATE;
	size_t i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i].type == type && changes[i].to == to)
			mask |= changes[i].must;
	return mask;
}

static bool
is_allowed(const struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
	size_t i;

	mask &= ~IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask == 0;
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i].type == qp->qp_type && changes[i].from == qp->state &&
		    changes[i].to == to)
			return (mask & changes[i].must) == changes[i].must &&
				(mask & ~(changes[i].must | changes[i].may)) == 0;
	return false;
}

/* Store what *mask* names. */
static void
keep_attr(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	static const struct {
		int mask;
		size_t at, bytes;
	} parts[] = {
#define PART(mask, member) \
	{mask, offsetof(struct ibv_qp_attr, member), sizeof(((struct ibv_qp_attr *)0)->member)}
		PART(IBV_QP_ACCESS_FLAGS, qp_access_flags),
		PART(IBV_QP_PKEY_INDEX, pkey_index),
		PART(IBV_QP_PORT, port_num),
		PART(IBV_QP_QKEY, qkey),
		PART(IBV_QP_AV, ah_attr),
		PART(IBV_QP_PATH_MTU, path_mtu),
		PART(IBV_QP_TIMEOUT, timeout),
		PART(IBV_QP_RETRY_CNT, retry_cnt),
		PART(IBV_QP_RNR_RETRY, rnr_retry),
		PART(IBV_QP_RQ_PSN, rq_psn),
		PART(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic),
		PART(IBV_QP_MIN_RNR_TIMER, min_rnr_timer),
		PART(IBV_QP_SQ_PSN, sq_psn),
		PART(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
		PART(IBV_QP_DEST_QPN, dest_qp_num),
#undef PART
	};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if ((mask & parts[i].mask) != 0)
			memcpy((char *)to + parts[i].at, (const char *)from + parts[i].at,
			       parts[i].bytes);
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct sv_device *dev = san_sv_device(qp->context);
	struct sv_qp *q = (struct sv_qp *)qp;
	enum ibv_qp_state from = qp->state;
	enum ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
	int rc = 0;

	SV_ELSE_NEXT(dev, ibv_modify_qp, qp, attr, mask);
	SAN_LOCKED(&dev->lock);
	if (((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state != from) ||
	    !is_allowed(qp, to, mask) ||
	    ((mask & IBV_QP_PORT) != 0 && attr->port_num != SV_PORT) ||
	    ((mask & IBV_QP_PKEY_INDEX) != 0 && attr->pkey_index != 0))
		return -san_sv_explain(
			san_sv_refuse(-EINVAL, "not with this state, mask, port or P_Key"),
			"ibv_modify_qp()");
	keep_attr(&q->attr, attr, mask);
	if ((mask & IBV_QP_AV) != 0 && san_sv_way(dev, &q->attr.ah_attr) != 0)
		return EINVAL;
	if (to == IBV_QPS_ERR) {
		san_sv_qp_fail(q, IBV_WC_WR_FLUSH_ERR);
	} else if (to == IBV_QPS_RESET && from != IBV_QPS_RESET) {
		end_connection(dev, q);
		destroy_rt(q);
		san_sv_mr_retry(dev);
		rc = create_rt(dev, q);
	} else if (to == IBV_QPS_RTR && qp->qp_type == IBV_QPT_RC && !san_sv_cm_has_qp(dev, q)) {
		qp->state = to; /* a request may be accepted from now on */
		rc = connect_or_accept(dev, q);
	}
	qp->state = rc == 0 ? to : from;
	return -rc;
}

int
ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	const struct sv_qp *q = (const struct sv_qp *)qp;

	SV_ELSE_NEXT(san_sv_device(qp->context), ibv_query_qp, qp, attr, mask, init);
	*attr = q->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->cap = q->init.cap;
	*init = q->init;
	return 0;
}
