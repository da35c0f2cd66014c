/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Connections are the connection manager's (rdma_cm), over whose private data our own lies: which
 * service, whether for a stream, what the program says. A service is any number; the manager's
 * ports are few, so a port is made of it, and the number itself goes along.
 *
 * One thread per context takes the manager's events and does what takes time. A connection that
 * ends gives back all that was posted before its program hears of it.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs_priv.h"

#define HELLO_MAGIC   0x53414e31u /* "SAN1" */
#define HELLO_STREAM  0x1
#define RESOLVE_MS    2000
#define TICK_MS       5  /* while something ends */
#define ACK_TIMEOUT   14 /* 67 ms: see the code in the InfiniBand specification */
#define RETRIES       7
#define RNR_RETRIES   7 /* for ever */
#define FIRST_PORT    1024
#define NB_PORTS      64000
#define CONSUMER_SAYS 28 /* why a connection was refused: by a program */
#define NO_SERVICE    8

/* Before a program's private data; in network byte order. */
struct hello {
	uint32_t magic;
	uint8_t version, flags, reason;
	uint8_t private_len;
	uint32_t service[2];
	uint8_t private_data[RTSAN_PRIVATE_MAX];
};

static uint16_t
port_of(uint64_t service)
{
	uint64_t mixed = service * 0x9e3779b97f4a7c15ull;

	return (uint16_t)(FIRST_PORT + (mixed >> 32) % NB_PORTS);
}

static uint8_t
fill_hello(struct hello *h, uint64_t service, uint8_t reason, const void *data, uint16_t len)
{
	*h = (struct hello){
		.magic = htonl(HELLO_MAGIC),
		.version = 1,
		.reason = reason,
		.private_len = (uint8_t)len,
		.service = {htonl((uint32_t)(service >> 32)), htonl((uint32_t)service)},
	};
	if (len != 0)
		memcpy(h->private_data, data, len);
	return (uint8_t)(sizeof(*h) - sizeof(h->private_data) + len);
}

/* The manager may have put zeros behind it. False: it is none of ours. */
static bool
read_hello(const struct rdma_cm_event *ev, struct hello *h)
{
	const struct rdma_conn_param *p = &ev->param.conn;
	size_t least = sizeof(*h) - sizeof(h->private_data);

	memset(h, 0, sizeof(*h));
	if (p->private_data == NULL || p->private_data_len < least)
		return false;
	memcpy(h, p->private_data,
	       p->private_data_len < sizeof(*h) ? p->private_data_len : sizeof(*h));
	return ntohl(h->magic) == HELLO_MAGIC && h->version == 1 &&
		h->private_len <= RTSAN_PRIVATE_MAX && h->private_len + least <= p->private_data_len;
}

static uint64_t
hello_service(const struct hello *h)
{
	return (uint64_t)ntohl(h->service[0]) << 32 | ntohl(h->service[1]);
}

/* ---- events ---- */

static void
fill_peer(struct rtsan_event *ev, struct rdma_cm_id *id)
{
	const struct sockaddr *sa = rdma_get_peer_addr(id);

	if (sa != NULL)
		getnameinfo(sa,
			    sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
						       sizeof(struct sockaddr_in6),
			    ev->peer, sizeof(ev->peer), NULL, 0, NI_NUMERICHOST);
}

/* Under the context's lock. Without memory it is lost, and said so. */
static void
put_event(struct verbs_ctx *ctx, const struct rtsan_provider_event *from)
{
	struct verbs_event *e = malloc(sizeof(*e));

	if (e == NULL)
		return;
	e->ev = *from;
	STAILQ_INSERT_TAIL(&ctx->events, e, link);
	if (ctx->is_armed)
		eventfd_write(ctx->event_fd, 1);
	ctx->is_armed = false;
}

static void
tell(struct verbs_qp *q, uint8_t type, uint8_t reason, const struct hello *h)
{
	struct rtsan_provider_event ev = {
		.ev = {.type = type, .reason = reason},
		.qp = q->qpn,
	};

	if (q->id != NULL)
		fill_peer(&ev.ev, q->id);
	if (h != NULL) {
		ev.ev.private_len = h->private_len;
		memcpy(ev.ev.private_data, h->private_data, h->private_len);
	}
	pthread_mutex_lock(&q->ctx->lock);
	put_event(q->ctx, &ev);
	pthread_mutex_unlock(&q->ctx->lock);
}

int
verbs_conn_event_poll(void *priv, struct rtsan_provider_event *ev)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_event *e;

	pthread_mutex_lock(&ctx->lock);
	e = STAILQ_FIRST(&ctx->events);
	if (e != NULL)
		STAILQ_REMOVE_HEAD(&ctx->events, link);
	pthread_mutex_unlock(&ctx->lock);
	if (e == NULL)
		return atomic_load(&ctx->is_gone) ? -EIO : 0;
	*ev = e->ev;
	free(e);
	return 1;
}

int
verbs_conn_event_fd(void *priv)
{
	return ((const struct verbs_ctx *)priv)->event_fd;
}

int
verbs_conn_event_arm(void *priv)
{
	struct verbs_ctx *ctx = priv;
	eventfd_t value;
	bool has;

	eventfd_read(ctx->event_fd, &value);
	pthread_mutex_lock(&ctx->lock);
	has = !STAILQ_EMPTY(&ctx->events);
	ctx->is_armed = !has;
	pthread_mutex_unlock(&ctx->lock);
	return has ? 1 : atomic_load(&ctx->is_gone) ? -EIO :
						      0;
}

void
verbs_conn_kick(struct verbs_ctx *ctx)
{
	eventfd_write(ctx->kick_fd, 1);
}

/* ---- ends; under the lock of the queue pair ---- */

/* The device's queue pair and all that it has goes. */
static void
leave(struct verbs_qp *q)
{
	if (q->id == NULL)
		return;
	if (q->id->qp != NULL)
		rdma_destroy_qp(q->id);
	rdma_destroy_id(q->id);
	q->id = NULL;
}

/* It ended, or never was: what is posted comes back, then its program hears of it. */
static void
finish(struct verbs_qp *q, uint8_t type, uint8_t reason, const struct hello *h)
{
	q->state = VERBS_ENDING;
	if (q->id != NULL && q->id->qp != NULL) {
		struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

		ibv_modify_qp(q->id->qp, &error, IBV_QP_STATE);
	}
	q->last_type = type;
	q->last_reason = reason;
	q->last_len = h != NULL ? h->private_len : 0;
	if (h != NULL)
		memcpy(q->last_data, h->private_data, h->private_len);
	verbs_conn_kick(q->ctx);
}

/* The device has given back what it had. False: not all of it has a place. */
static bool
bury(struct verbs_qp *q)
{
	struct hello last = {.private_len = (uint8_t)q->last_len};

	memcpy(last.private_data, q->last_data, q->last_len);
	if (q->last_type == RTSAN_EV_DISCONNECTED) {
		if (q->id != NULL && q->id->qp != NULL)
			rdma_destroy_qp(q->id);
		if (!verbs_cq_flush(q))
			return false;
	}
	tell(q, q->last_type, q->last_reason, &last);
	leave(q);
	q->state = VERBS_IDLE;
	q->sq_posted = atomic_load(&q->wq->sq_head);
	q->rq_posted = atomic_load(&q->wq->rq_head);
	atomic_store(&q->failed, false);
	q->reason = RTSAN_R_NONE;
	return true;
}

void
verbs_conn_drop(struct verbs_qp *q)
{
	pthread_mutex_lock(&q->lock);
	if (q->id != NULL && q->was_up)
		rdma_disconnect(q->id);
	leave(q);
	q->state = VERBS_IDLE;
	pthread_mutex_unlock(&q->lock);
}

int
verbs_conn_disconnect(void *priv, uint32_t qpn)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_qp *q = verbs_qp_find(ctx, qpn);
	int rc = 0;

	if (q == NULL)
		return -EINVAL;
	pthread_mutex_lock(&q->lock);
	if (q->state == VERBS_UP)
		q->state = VERBS_DRAINING;
	else if (q->state == VERBS_RESOLVING || q->state == VERBS_CONNECTING)
		finish(q, RTSAN_EV_DISCONNECTED, RTSAN_R_NONE, NULL);
	else if (q->state == VERBS_IDLE)
		rc = -ENOTCONN;
	pthread_mutex_unlock(&q->lock);
	verbs_conn_kick(ctx);
	return rc;
}

/* ---- connect, accept ---- */

static int
check_param(const struct verbs_ctx *ctx, const struct rtsan_conn_param *param, uint16_t most)
{
	if (param != NULL && param->private_len > most)
		return ctx->host->fail(-EMSGSIZE, "private data: %u bytes, verbs carries %u",
				       param->private_len, most);
	if (param != NULL && param->pkey != 0 && param->pkey != 0xffff)
		return ctx->host->fail(-EOPNOTSUPP,
				       "partition 0x%x: verbs has the device's default one only",
				       param->pkey);
	return 0;
}

static void
take_param(struct verbs_qp *q, const struct rtsan_conn_param *param)
{
	q->private_len = param != NULL ? param->private_len : 0;
	if (q->private_len != 0)
		memcpy(q->private_data, param->private_data, q->private_len);
	q->reason = RTSAN_R_NONE;
	q->was_up = q->has_asked = false;
	atomic_store(&q->failed, false);
}

static int
make_device_qp(struct verbs_qp *q)
{
	struct ibv_qp_init_attr init = {
		.qp_context = q,
		.send_cq = q->send_cq->cq,
		.recv_cq = q->recv_cq->cq,
		.cap = {
			.max_send_wr = q->sq_depth + 1, /* see verbs_qp_ask() */
			.max_recv_wr = q->rq_depth,
			.max_send_sge = SAN_ULP_SGE_MAX,
			.max_recv_sge = SAN_ULP_SGE_MAX,
			.max_inline_data = q->ctx->max_inline,
		},
		.qp_type = IBV_QPT_RC,
	};

	if (rdma_create_qp(q->id, q->ctx->pd, &init) != 0)
		return -errno;
	verbs_qp_post(q); /* receives, before the peer can send */
	return 0;
}

static void
fill_conn(const struct verbs_qp *q, const struct hello *h, uint8_t len, struct rdma_conn_param *p)
{
	uint8_t reads = (uint8_t)(q->ctx->attr.max_qp_rd_atom < 16 ? q->ctx->attr.max_qp_rd_atom :
								     16);

	*p = (struct rdma_conn_param){
		.private_data = h,
		.private_data_len = len,
		.responder_resources = reads,
		.initiator_depth = reads,
		.retry_count = RETRIES,
		.rnr_retry_count = RNR_RETRIES,
	};
}

static int
to_sockaddr(const char *text, uint16_t port, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return 0;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
}

static int
resolve(struct verbs_qp *q, const char *peer)
{
	uint8_t timeout = ACK_TIMEOUT;
	struct verbs_ctx *ctx = q->ctx;
	struct sockaddr_storage to, from;
	bool has_from = ctx->ip[0] != '\0' && to_sockaddr(ctx->ip, 0, &from) == 0;

	if (to_sockaddr(peer, port_of(q->service), &to) != 0)
		return ctx->host->fail(-EINVAL, "connect: \"%s\" is not an address", peer);
	if (has_from && from.ss_family != to.ss_family)
		return ctx->host->fail(-EADDRNOTAVAIL, "connect: no address of the family of %s",
				       peer);
	if (rdma_create_id(ctx->cm, &q->id, q, RDMA_PS_TCP) != 0)
		return ctx->host->fail(-errno, "connect: %s", strerror(errno));
	rdma_set_option(q->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			sizeof(timeout));
	if (rdma_resolve_addr(q->id, has_from ? (struct sockaddr *)&from : NULL,
			      (struct sockaddr *)&to, RESOLVE_MS) == 0)
		return 0;
	return ctx->host->fail(errno == ENODEV ? -ENETUNREACH : -errno, "connect: %s: %s", peer,
			       strerror(errno));
}

int
verbs_conn_connect(void *priv, uint32_t qpn, const char *peer, uint64_t service,
		   const struct rtsan_conn_param *param)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_qp *q = verbs_qp_find(ctx, qpn);
	int rc = check_param(ctx, param, VERBS_PRIVATE);

	if (q == NULL)
		return -EINVAL;
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&q->lock);
	if (q->state != VERBS_IDLE) {
		rc = ctx->host->fail(-EISCONN, "connect: it has a connection");
	} else {
		take_param(q, param);
		q->service = service;
		rc = resolve(q, peer);
		if (rc == 0)
			q->state = VERBS_RESOLVING;
		else
			leave(q);
	}
	pthread_mutex_unlock(&q->lock);
	return rc;
}

/* The request's place is free again. */
static struct rdma_cm_id *
take_request(struct verbs_ctx *ctx, uint64_t request)
{
	struct verbs_request *r = &ctx->requests[request % VERBS_REQUESTS];
	struct rdma_cm_id *id;

	pthread_mutex_lock(&ctx->lock);
	id = r->gen == request / VERBS_REQUESTS ? r->id : NULL;
	if (id != NULL)
		r->id = NULL;
	pthread_mutex_unlock(&ctx->lock);
	return id;
}

int
verbs_conn_accept(void *priv, uint64_t request, uint32_t qpn, const struct rtsan_conn_param *param)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_qp *q = verbs_qp_find(ctx, qpn);
	int rc = check_param(ctx, param, RTSAN_PRIVATE_MAX);
	struct rdma_conn_param conn;
	struct hello h;

	if (q == NULL)
		return -EINVAL;
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&q->lock);
	if (q->state != VERBS_IDLE) {
		rc = ctx->host->fail(-EISCONN, "accept: it has a connection");
	} else if ((q->id = take_request(ctx, request)) == NULL) {
		rc = ctx->host->fail(-ENOENT, "accept: the request is gone");
	} else {
		take_param(q, param);
		q->id->context = q;
		fill_conn(q, &h, fill_hello(&h, 0, 0, q->private_data, q->private_len), &conn);
		rc = make_device_qp(q);
		if (rc == 0 && rdma_accept(q->id, &conn) != 0)
			rc = -errno;
		if (rc == 0) {
			q->state = VERBS_CONNECTING;
		} else {
			leave(q);
			rc = ctx->host->fail(rc, "accept: %s: %s", ctx->device, strerror(-rc));
		}
	}
	pthread_mutex_unlock(&q->lock);
	return rc;
}

int
verbs_conn_reject(void *priv, uint64_t request, const void *data, uint16_t len)
{
	struct verbs_ctx *ctx = priv;
	struct rdma_cm_id *id;
	struct hello h;

	id = take_request(ctx, request);
	if (id == NULL)
		return ctx->host->fail(-ENOENT, "reject: the request is gone");
	rdma_reject(id, &h, fill_hello(&h, 0, RTSAN_R_REFUSED, data, len));
	rdma_destroy_id(id);
	return 0;
}

/* ---- listen ---- */

int
verbs_conn_listen(void *priv, uint64_t service, uint16_t pkey, uint16_t backlog, uint32_t cookie)
{
	struct verbs_listener *l = calloc(1, sizeof(*l));
	struct verbs_ctx *ctx = priv;
	struct sockaddr_storage at;
	int rc = 0;

	if (l == NULL)
		return -ENOMEM;
	if (pkey != 0 && pkey != 0xffff)
		rc = ctx->host->fail(-EOPNOTSUPP,
				     "partition 0x%x: verbs has the device's default one only",
				     pkey);
	else if (to_sockaddr(ctx->ip[0] != '\0' ? ctx->ip : "0.0.0.0", port_of(service), &at) !=
			 0 ||
		 rdma_create_id(ctx->cm, &l->id, l, RDMA_PS_TCP) != 0 ||
		 rdma_bind_addr(l->id, (struct sockaddr *)&at) != 0 ||
		 rdma_listen(l->id, backlog) != 0)
		rc = ctx->host->fail(-errno, "listen: service %llu (port %u of rdma_cm): %s",
				     (unsigned long long)service, port_of(service),
				     strerror(errno));
	if (rc != 0) {
		if (l->id != NULL)
			rdma_destroy_id(l->id);
		free(l);
		return rc;
	}
	l->service = service;
	l->cookie = cookie;
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->listeners, l, link);
	pthread_mutex_unlock(&ctx->lock);
	return 0;
}

void
verbs_conn_unlisten(void *priv, uint64_t service, uint16_t pkey)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_listener *l;

	(void)pkey;
	pthread_mutex_lock(&ctx->lock);
	LIST_FOREACH(l, &ctx->listeners, link) {
		if (l->service == service)
			break;
	}
	if (l != NULL)
		LIST_REMOVE(l, link);
	pthread_mutex_unlock(&ctx->lock);
	if (l == NULL)
		return;
	rdma_destroy_id(l->id);
	free(l);
}

/* ---- the manager's events, in the thread ---- */

/* False: it is refused. */
static bool
requested(struct verbs_ctx *ctx, const struct rdma_cm_event *cm)
{
	struct rtsan_provider_event ev = {
		.ev = {.type = RTSAN_EV_CONNECT_REQUEST},
		.qp = SAN_QPN_NONE,
	};
	struct verbs_request *r = NULL;
	const struct verbs_listener *l;
	struct hello h;
	uint32_t i;

	if (!read_hello(cm, &h))
		return false;
	pthread_mutex_lock(&ctx->lock);
	LIST_FOREACH(l, &ctx->listeners, link) {
		if (l->id == cm->listen_id && l->service == hello_service(&h))
			break;
	}
	for (i = 0; l != NULL && i < VERBS_REQUESTS && r == NULL; i++)
		if (ctx->requests[i].id == NULL)
			r = &ctx->requests[i];
	if (r != NULL) {
		r->id = cm->id;
		r->gen++;
		ev.listener = l->cookie;
		ev.ev.request = (uint64_t)r->gen * VERBS_REQUESTS + (uint64_t)(r - ctx->requests);
		ev.ev.stream = (h.flags & HELLO_STREAM) != 0;
		ev.ev.private_len = h.private_len;
		memcpy(ev.ev.private_data, h.private_data, h.private_len);
		fill_peer(&ev.ev, cm->id);
		put_event(ctx, &ev);
	}
	pthread_mutex_unlock(&ctx->lock);
	return r != NULL;
}

static void
on_request(struct verbs_ctx *ctx, const struct rdma_cm_event *cm)
{
	struct hello h;

	cm->id->context = NULL;
	if (requested(ctx, cm))
		return;
	rdma_reject(cm->id, &h, fill_hello(&h, 0, RTSAN_R_NO_LISTENER, NULL, 0));
	rdma_destroy_id(cm->id);
}

/* One that nobody has accepted gave up. */
static void
on_lost_request(struct verbs_ctx *ctx, struct rdma_cm_id *id)
{
	uint32_t i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < VERBS_REQUESTS; i++)
		if (ctx->requests[i].id == id)
			ctx->requests[i].id = NULL;
	pthread_mutex_unlock(&ctx->lock);
}

static void
on_route(struct verbs_qp *q)
{
	struct rdma_conn_param conn;
	struct hello h;
	int rc;

	if (strcmp(ibv_get_device_name(q->id->verbs->device), q->ctx->device) != 0) {
		finish(q, RTSAN_EV_UNREACHABLE, RTSAN_R_NONE, NULL);
		return;
	}
	fill_conn(q, &h, fill_hello(&h, q->service, 0, q->private_data, q->private_len), &conn);
	rc = make_device_qp(q);
	if (rc == 0 && rdma_connect(q->id, &conn) != 0)
		rc = -errno;
	if (rc == 0)
		q->state = VERBS_CONNECTING;
	else
		finish(q, RTSAN_EV_UNREACHABLE, RTSAN_R_RESOURCES, NULL);
}

static void
on_rejected(struct verbs_qp *q, const struct rdma_cm_event *cm)
{
	uint8_t reason = RTSAN_R_NO_LISTENER;
	struct hello h = {.private_len = 0};

	if (cm->status == CONSUMER_SAYS && read_hello(cm, &h))
		reason = h.reason;
	else if (cm->status != NO_SERVICE)
		reason = RTSAN_R_PARAMETER;
	finish(q, RTSAN_EV_REJECTED, reason, &h);
}

static void
on_up(struct verbs_qp *q, const struct rdma_cm_event *cm)
{
	struct hello h;

	q->state = VERBS_UP;
	q->was_up = true;
	tell(q, RTSAN_EV_ESTABLISHED, RTSAN_R_NONE, read_hello(cm, &h) ? &h : NULL);
	verbs_qp_post(q);
}

static void
on_event(struct verbs_qp *q, const struct rdma_cm_event *cm)
{
	switch (cm->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(q->id, RESOLVE_MS) != 0)
			finish(q, RTSAN_EV_UNREACHABLE, RTSAN_R_NONE, NULL);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		on_route(q);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		finish(q, RTSAN_EV_UNREACHABLE, RTSAN_R_TIMEOUT, NULL);
		break;
	case RDMA_CM_EVENT_REJECTED:
		on_rejected(q, cm);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		on_up(q, cm);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (q->state != VERBS_ENDING)
			finish(q, RTSAN_EV_DISCONNECTED, q->reason, NULL);
		break;
	default:
		break;
	}
}

/* ---- the thread ---- */

static void
take_cm_event(struct verbs_ctx *ctx)
{
	struct rdma_cm_event *cm, copy;
	uint8_t data[256];
	struct verbs_qp *q;

	if (rdma_get_cm_event(ctx->cm, &cm) != 0)
		return;
	/* an id can't be destroyed before its events are acknowledged, and ends do that */
	copy = *cm;
	if (cm->param.conn.private_data != NULL && cm->param.conn.private_data_len != 0) {
		memcpy(data, cm->param.conn.private_data, cm->param.conn.private_data_len);
		copy.param.conn.private_data = data;
	}
	rdma_ack_cm_event(cm);
	if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		on_request(ctx, &copy);
		return;
	}
	q = copy.id->context;
	if (q == NULL) {
		on_lost_request(ctx, copy.id);
		return;
	}
	pthread_mutex_lock(&q->lock);
	if (q->id == copy.id)
		on_event(q, &copy);
	pthread_mutex_unlock(&q->lock);
}

/* What was posted is done first. Who polls may not take what the device says of that: we do. */
static void
drain(struct verbs_qp *q)
{
	pthread_mutex_lock(&q->send_cq->lock);
	verbs_cq_harvest(q->send_cq);
	pthread_mutex_unlock(&q->send_cq->lock);
	if (!verbs_qp_is_empty(q)) {
		verbs_qp_ask(q);
		return;
	}
	rdma_disconnect(q->id);
	finish(q, RTSAN_EV_DISCONNECTED, RTSAN_R_NONE, NULL);
}

/* True: it wants to be looked at again soon. */
static bool
look_after(struct verbs_qp *q)
{
	bool again = false;

	pthread_mutex_lock(&q->lock);
	if (q->qpn != SAN_QPN_NONE) {
		if (atomic_load(&q->failed) && q->state != VERBS_IDLE && q->state != VERBS_ENDING) {
			if (q->was_up)
				rdma_disconnect(q->id);
			finish(q, RTSAN_EV_DISCONNECTED, q->reason, NULL);
		}
		if (q->state == VERBS_DRAINING)
			drain(q);
		if (q->state == VERBS_ENDING)
			again = !bury(q);
		again = again || q->state == VERBS_DRAINING;
	}
	pthread_mutex_unlock(&q->lock);
	return again;
}

void *
verbs_conn_run(void *arg)
{
	struct verbs_ctx *ctx = arg;
	struct pollfd fds[2] = {
		{.fd = ctx->cm->fd, .events = POLLIN},
		{.fd = ctx->kick_fd, .events = POLLIN},
	};
	bool again = false;
	eventfd_t value;
	uint32_t i;

	while (!atomic_load(&ctx->is_over)) {
		poll(fds, 2, again ? TICK_MS : -1);
		if ((fds[0].revents & POLLIN) != 0)
			take_cm_event(ctx);
		eventfd_read(ctx->kick_fd, &value);
		again = false;
		for (i = 0; i < VERBS_QPS; i++)
			again |= ctx->qps[i].qpn != SAN_QPN_NONE && look_after(&ctx->qps[i]);
	}
	return NULL;
}
