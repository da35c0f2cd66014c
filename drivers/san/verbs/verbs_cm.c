/* SPDX-License-Identifier: BSD-3-Clause */

/* Events of the connection manager, in the provider's thread. (SYS-4) */

#include "verbs_priv.h"

#define ROUND         64 /* events before others have their turn */
#define READS_ALL     255
#define CONSUMER_SAYS 28 /* status of a rejection by the peer's program */
#define NO_SERVICE    8
#define STALE         10
#define STALE_MAX     8  /* most attempts with another number */
#define RNR_TIMER     12 /* 0.64 ms before a peer without a receive here tries again */

/* Copy of an event. The event is acknowledged at once: rdma_destroy_id() would wait for that. */
struct cm_event {
	struct rdma_cm_event ev;
	uint8_t data[256];
	size_t len;
};

/* A peer of another library sends its private data without a header. */
static enum rtsan_reason
verbs_cm_read_hello(const struct verbs_ctx *ctx, const struct cm_event *e, struct verbs_hello *h)
{
	if (!ctx->is_plain)
		return san_verbs_hello_decode(e->data, e->len, h);
	san_verbs_hello_init(h, 0, e->data,
			     e->len < RTSAN_PRIVATE_MAX ? (uint16_t)e->len : RTSAN_PRIVATE_MAX);
	return RTSAN_R_NONE;
}

/* ---- requests ---- */

/* False: its first half is not there. */
static bool
add_half(struct verbs_ctx *ctx, struct verbs_hello *h, struct rdma_cm_id *id)
{
	char peer[RTSAN_ADDRESS_MAX];
	struct verbs_half *half;
	uint32_t i;

	san_verbs_end_peer_text(id, peer);
	for (i = 0; i < VERBS_HALVES; i++) {
		half = &ctx->halves[i];
		if (half->hello.token != h->token || h->token == 0 ||
		    half->hello.service != h->service || strcmp(half->peer, peer) != 0)
			continue;
		memcpy(h->data, half->hello.data, VERBS_HELLO_HALF);
		half->hello.token = 0;
		return true;
	}
	return false;
}

/* Read the request into *h*. RTSAN_R_NONE, also for a first half; or why it is refused. */
static enum rtsan_reason
read_request(struct verbs_ctx *ctx, const struct cm_event *e, struct verbs_hello *h)
{
	enum rtsan_reason reason = verbs_cm_read_hello(ctx, e, h);
	struct verbs_half *half;

	if (reason != RTSAN_R_NONE)
		return reason;
	/*
	 * Replaces the oldest one. A peer that sends only first halves can so keep others from
	 * connecting with long private data, but not with short.
	 */
	if ((h->flags & VERBS_HELLO_FIRST) != 0) {
		half = &ctx->halves[ctx->next_half++ % VERBS_HALVES];
		half->hello = *h;
		san_verbs_end_peer_text(e->ev.id, half->peer);
	}
	if ((h->flags & VERBS_HELLO_REST) != 0 && !add_half(ctx, h, e->ev.id))
		return RTSAN_R_PARAMETER;
	return RTSAN_R_NONE;
}

static enum rtsan_reason
keep_request(struct verbs_ctx *ctx, const struct cm_event *e, const struct verbs_hello *h)
{
	struct shmq_event *ev;
	struct verbs_request *r = NULL;
	struct verbs_listener *l;
	uint32_t i;
	SAN_LOCKED(&ctx->lock);

	LIST_FOREACH(l, &ctx->listeners, link)
		if (l->id == e->ev.listen_id && (ctx->is_plain || l->service == h->service))
			break;
	if (l == NULL)
		return RTSAN_R_NO_LISTENER;
	for (i = 0; i < VERBS_REQUESTS && r == NULL; i++)
		if (ctx->requests[i].id == NULL)
			r = &ctx->requests[i];
	if (r == NULL || l->waiting == l->backlog)
		return RTSAN_R_BACKLOG;
	l->waiting++;
	r->id = e->ev.id;
	r->listener = l;
	r->gen++;
	r->reads_in = e->ev.param.conn.initiator_depth;
	r->reads_out = e->ev.param.conn.responder_resources;
	ev = &r->event.ev;
	*ev = (struct shmq_event){
		.type = RTSAN_EV_CONNECT_REQUEST,
		.request = (uint64_t)r->gen * VERBS_REQUESTS + (uint64_t)(r - ctx->requests),
		.stream = (h->flags & VERBS_HELLO_STREAM) != 0,
		.private_len = h->len,
		.qp = SAN_QPN_NONE,
		.listener = l->cookie,
	};
	memcpy(ev->private_data, h->data, h->len);
	san_verbs_end_peer_text(e->ev.id, ev->peer);
	san_verbs_conn_put(ctx, &r->event);
	return RTSAN_R_NONE;
}

static void
verbs_cm_on_request(struct verbs_ctx *ctx, const struct cm_event *e)
{
	enum rtsan_reason reason = RTSAN_R_NO_LISTENER;
	struct verbs_hello h;

	e->ev.id->context = NULL;
	if (e->ev.id->verbs == ctx->dev)
		reason = read_request(ctx, e, &h);
	if (reason == RTSAN_R_NONE && (h.flags & VERBS_HELLO_FIRST) != 0) {
		/* this reason makes the peer send the other half */
		san_verbs_conn_refuse(ctx, e->ev.id, VERBS_HELLO_MORE, NULL, 0);
		return;
	}
	if (reason == RTSAN_R_NONE)
		reason = keep_request(ctx, e, &h);
	if (reason != RTSAN_R_NONE)
		san_verbs_conn_refuse(ctx, e->ev.id, reason, NULL, 0);
}

/*
 * A listener ends with its device. If a request ends before a queue pair has accepted it, the
 * kernel reports nothing: accepting it fails.
 */
static void
on_unowned(struct verbs_ctx *ctx, struct rdma_cm_id *id)
{
	struct verbs_listener *l;

	pthread_mutex_lock(&ctx->lock);
	LIST_FOREACH(l, &ctx->listeners, link)
		if (l->id == id)
			break;
	if (l != NULL)
		l->id = NULL;
	pthread_mutex_unlock(&ctx->lock);
	if (l != NULL)
		san_verbs_thread_retire(ctx, id, false);
}

/* ---- connections, under the lock of the queue pair ---- */

/*
 * Whether the connection is requested again: a first half was refused as expected; or the peer
 * believes that our number is in use, because it has not noticed the end of the earlier connection.
 */
static bool
asks_again(struct verbs_qp *q, int status, uint8_t reason)
{
	if (status == STALE && ++q->nb_stale > STALE_MAX)
		return false;
	if (status != STALE && (q->half != VERBS_HELLO_FIRST || reason != VERBS_HELLO_MORE))
		return false;
	san_verbs_end_leave(q);
	if (reason == VERBS_HELLO_MORE)
		q->half = VERBS_HELLO_REST;
	q->state = VERBS_RESOLVING;
	return san_verbs_conn_resolve(q) == 0;
}

static void
verbs_cm_ask_device(struct verbs_qp *q)
{
	uint8_t buf[VERBS_HELLO_MAX];
	struct rdma_conn_param conn = {.private_data = buf};
	struct verbs_hello h;
	int rc;

	san_verbs_hello_init(&h, q->service, q->private_data, q->private_len);
	h.flags = q->half | (q->stream != NULL ? VERBS_HELLO_STREAM : 0);
	h.token = q->token;
	conn.private_data_len = san_verbs_conn_encode(q->ctx, &h, buf);
	san_verbs_conn_param(q->ctx, READS_ALL, READS_ALL, &conn);
	q->state = VERBS_CONNECTING;
	rc = san_verbs_qp_make(q);
	if (q->half != VERBS_HELLO_FIRST)
		/* receives first: the peer may send as soon as it is connected */
		san_verbs_qp_post(q);
	if (rc != 0)
		san_verbs_end_begin(q, RTSAN_EV_UNREACHABLE, RTSAN_R_RESOURCES, NULL);
	else if (rdma_connect(q->id, &conn) != 0)
		san_verbs_end_begin(q, RTSAN_EV_UNREACHABLE, RTSAN_R_NONE, NULL);
}

static void
on_rejected(struct verbs_qp *q, const struct cm_event *e)
{
	uint8_t reason = e->ev.status == NO_SERVICE ? RTSAN_R_NO_LISTENER :
		e->ev.status == STALE               ? RTSAN_R_STALE :
						      RTSAN_R_PARAMETER;
	struct verbs_hello h;

	san_verbs_hello_init(&h, 0, NULL, 0);
	if (e->ev.status == CONSUMER_SAYS &&
	    verbs_cm_read_hello(q->ctx, e, &h) == RTSAN_R_NONE)
		reason = q->ctx->is_plain ? RTSAN_R_REFUSED : h.reason;
	if (asks_again(q, e->ev.status, reason))
		return;
	if (reason == RTSAN_R_NONE || reason > RTSAN_R_MALFORMED) /* not a reason of a peer */
		reason = RTSAN_R_PARAMETER;
	san_verbs_end_begin(q, RTSAN_EV_REJECTED, reason, &h);
}

static void
verbs_cm_on_up(struct verbs_qp *q, const struct cm_event *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = RNR_TIMER};
	struct verbs_hello h;

	/* the connection manager's timer is 0.5 s, which each late receive would cost */
	ibv_modify_qp(q->id->qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
	q->state = VERBS_UP;
	atomic_store(&q->was_up, true);
	verbs_cm_read_hello(q->ctx, e, &h); /* a malformed answer counts as empty */
	san_verbs_end_tell_up(q, &h);
	if (q->stream != NULL)
		san_verbs_stream_opened(q);
	san_verbs_qp_post(q);
	san_verbs_thread_look(q);
}

static void
verbs_cm_on_event(struct verbs_qp *q, const struct cm_event *e)
{
	if (q->state == VERBS_ENDING)
		return;
	switch (e->ev.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(q->id, VERBS_RESOLVE_MS) != 0)
			san_verbs_end_begin(q, RTSAN_EV_UNREACHABLE, RTSAN_R_NONE, NULL);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (q->id->verbs == q->ctx->dev)
			verbs_cm_ask_device(q);
		else /* the route uses another device */
			san_verbs_end_begin(q, RTSAN_EV_UNREACHABLE, RTSAN_R_NONE, NULL);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		san_verbs_end_begin(q, RTSAN_EV_UNREACHABLE, RTSAN_R_TIMEOUT, NULL);
		break;
	case RDMA_CM_EVENT_REJECTED:
		on_rejected(q, e);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (q->state == VERBS_CONNECTING)
			verbs_cm_on_up(q, e);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		san_verbs_end_begin(q, RTSAN_EV_DISCONNECTED, RTSAN_R_NONE, NULL);
		break;
	default:
		break;
	}
}

/* ---- all events ---- */

static bool
verbs_cm_take_event(struct verbs_ctx *ctx, struct cm_event *e)
{
	struct rdma_cm_event *cm;
	const struct rdma_conn_param *p;
	SAN_LOCKED(&ctx->cm_lock);

	if (rdma_get_cm_event(ctx->cm, &cm) != 0)
		return false;
	e->ev = *cm;
	e->len = 0;
	p = &cm->param.conn;
	if ((cm->event == RDMA_CM_EVENT_CONNECT_REQUEST || cm->event == RDMA_CM_EVENT_REJECTED ||
	     cm->event == RDMA_CM_EVENT_ESTABLISHED) &&
	    p->private_data != NULL) {
		e->len = p->private_data_len;
		memcpy(e->data, p->private_data, e->len);
	}
	rdma_ack_cm_event(cm);
	return true;
}

void
san_verbs_cm_run(struct verbs_ctx *ctx)
{
	struct cm_event e;
	struct verbs_qp *q;
	int i;

	/* a flood of requests must not keep others waiting */
	for (i = 0; i < ROUND && verbs_cm_take_event(ctx, &e); i++) {
		if (e.ev.event == RDMA_CM_EVENT_ADDR_CHANGE ||
		    e.ev.event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
			continue; /* the connection continues, or ended long ago */
		if (e.ev.event == RDMA_CM_EVENT_DEVICE_REMOVAL && e.ev.id->verbs == ctx->dev)
			san_verbs_ctx_fail(ctx->dev);
		if (e.ev.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			verbs_cm_on_request(ctx, &e);
			continue;
		}
		/* a thread that accepts a request changes the context under the lock */
		pthread_mutex_lock(&ctx->lock);
		q = e.ev.id->context;
		pthread_mutex_unlock(&ctx->lock);
		if (q == NULL) {
			on_unowned(ctx, e.ev.id);
			continue;
		}
		pthread_mutex_lock(&q->lock);
		if (q->id == e.ev.id)
			verbs_cm_on_event(q, &e);
		pthread_mutex_unlock(&q->lock);
	}
}
