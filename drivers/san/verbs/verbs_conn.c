/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Operations on connections; their results are reported by events. Connections are those of the
 * connection manager (rdma_cm). A service is any number, but the manager has few ports. So the port
 * is derived from the service, and the number itself is sent along (verbs_hello.h). (SYS-4, SYS-2)
 */

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "verbs_priv.h"

#define CONNECT_MS   7000 /* deadline to be connected */
#define ACK_TIMEOUT  16   /* 268 ms before a resend (verbs_end.c) */
#define RETRIES      6    /* 7 would mean no limit to Soft-RoCE */
#define RNR_FOREVER  7    /* no limit at the device: verbs_end.c has one */
#define READS_MAX    16
#define FIRST_PORT   1024
#define NB_PORTS     64000
#define KEEPALIVE_MS 1000
#define RNR_MS       10000

/* ---- addresses ---- */

static uint16_t
verbs_conn_tcp_port_of(const struct verbs_ctx *ctx, uint64_t service)
{
	uint64_t mixed = service * 0x9e3779b97f4a7c15ull;

	return (uint16_t)(ctx->is_plain ? service : FIRST_PORT + (mixed >> 32) % NB_PORTS);
}

/* Whether there may be such a listener or connection. *what*: the call. */
static int
check_request(const struct verbs_ctx *ctx, const char *what, const struct shmq_req *req)
{
	uint64_t service = req->conn.service;
	uint16_t pkey = req->conn.pkey;

	if (ctx->is_plain && req->type != SHMQ_ACCEPT && (service == 0 || service > UINT16_MAX))
		return ctx->host->fail(-EINVAL, "service %llu: with plain it is a port, 1 to 65535",
				       (unsigned long long)service);
	if (pkey != 0 && pkey != 0xffff)
		return ctx->host->fail(-EOPNOTSUPP,
				       "partition 0x%x: verbs has the default one only", pkey);
	if (atomic_load(&ctx->is_lost))
		return ctx->host->fail(-EIO, "%s: %s has failed", what, ctx->device);
	return 0;
}

static int
verbs_conn_to_sockaddr(const char *text, uint16_t tcp_port, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	bool is_v6 = strchr(text, ':') != NULL;

	memset(ss, 0, sizeof(*ss));
	ss->ss_family = is_v6 ? AF_INET6 : AF_INET;
	in->sin_port = htons(tcp_port); /* sin6_port is at the same place */
	if (is_v6)
		return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
	return inet_pton(AF_INET, text, &in->sin_addr) == 1 ? 0 : -EINVAL;
}

/* ---- events ---- */

void
san_verbs_conn_put(struct verbs_ctx *ctx, struct verbs_event *e)
{
	if (e->is_queued)
		STAILQ_REMOVE(&ctx->events, e, verbs_event, link);
	STAILQ_INSERT_TAIL(&ctx->events, e, link);
	e->is_queued = true;
	if (ctx->is_armed)
		eventfd_write(ctx->event_fd, 1);
	ctx->is_armed = false;
}

int
san_verbs_conn_event_poll(void *priv, struct shmq_event *ev)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_event *e;
	SAN_LOCKED(&ctx->lock);

	e = STAILQ_FIRST(&ctx->events);
	if (e == NULL)
		return atomic_load(&ctx->is_lost) ? -EIO : 0;
	STAILQ_REMOVE_HEAD(&ctx->events, link);
	e->is_queued = false;
	*ev = e->ev;
	return 1;
}

int
san_verbs_conn_event_fd(void *priv)
{
	return ((const struct verbs_ctx *)priv)->event_fd;
}

int
san_verbs_conn_event_arm(void *priv)
{
	struct verbs_ctx *ctx = priv;
	eventfd_t value;
	SAN_LOCKED(&ctx->lock);

	eventfd_read(ctx->event_fd, &value);
	ctx->is_armed = STAILQ_EMPTY(&ctx->events);
	if (!ctx->is_armed)
		return 1;
	return atomic_load(&ctx->is_lost) ? -EIO : 0;
}

/* ---- private data ---- */

uint8_t
san_verbs_conn_encode(const struct verbs_ctx *ctx, const struct verbs_hello *h, uint8_t *buf)
{
	if (!ctx->is_plain)
		return san_verbs_hello_encode(h, buf);
	memcpy(buf, h->data, h->len);
	return h->len;
}

/* Refuse a request, with private data. */
static void
verbs_conn_send_refusal(const struct verbs_ctx *ctx, struct rdma_cm_id *id, uint8_t reason,
			const void *data, uint16_t len)
{
	uint8_t buf[VERBS_HELLO_MAX];
	struct verbs_hello h;

	san_verbs_hello_init(&h, 0, data, len);
	h.reason = reason;
	rdma_reject(id, buf, san_verbs_conn_encode(ctx, &h, buf));
}

void
san_verbs_conn_refuse(struct verbs_ctx *ctx, struct rdma_cm_id *id, uint8_t reason,
		      const void *data, uint16_t len)
{
	verbs_conn_send_refusal(ctx, id, reason, data, len);
	san_verbs_thread_retire(ctx, id, false);
}

/* ---- both sides, under the lock of the queue pair ---- */

static int
verbs_conn_begin_setup(struct verbs_qp *q, const char *what, const struct shmq_conn *conn,
		       bool is_acceptor)
{
	int rc;

	if (san_verbs_end_is_connected(q))
		return q->ctx->host->fail(-EISCONN, "%s: it has a connection", what);
	rc = q->stream != NULL ? san_verbs_stream_renew(q) : 0;
	if (rc != 0)
		return q->ctx->host->fail(rc, "%s: %s", what, strerror(-rc));
	q->private_len = conn->private_len;
	memcpy(q->private_data, conn->private_data, conn->private_len);
	q->keepalive_ms = conn->keepalive_ms != 0 ? conn->keepalive_ms : KEEPALIVE_MS;
	q->rnr_ms = conn->rnr_ms != 0 ? conn->rnr_ms : RNR_MS;
	if (q->rnr_ms == UINT16_MAX)
		q->rnr_ms = UINT32_MAX; /* no end */
	q->is_acceptor = is_acceptor;
	q->nb_stale = 0;
	q->moved_ns = q->out_ns = 0;
	q->end_ns = san_verbs_now_ns() + CONNECT_MS * SAN_NS_PER_MS;
	atomic_store(&q->failed, 0);
	atomic_store(&q->blame, 0);
	q->blame_send = q->blame_recv = 0;
	atomic_store(&q->was_up, false);
	return 0;
}

void
san_verbs_conn_param(const struct verbs_ctx *ctx, uint8_t reads_in, uint8_t reads_out,
		     struct rdma_conn_param *p)
{
	int in = MIN(ctx->attr.max_qp_rd_atom, READS_MAX);
	int out = MIN(ctx->attr.max_qp_init_rd_atom, READS_MAX);

	p->responder_resources = (uint8_t)MIN(in, reads_in);
	p->initiator_depth = (uint8_t)MIN(out, reads_out);
	p->retry_count = RETRIES;
	p->rnr_retry_count = RNR_FOREVER;
}

/* ---- initiator ---- */

int
san_verbs_conn_resolve(struct verbs_qp *q)
{
	struct verbs_ctx *ctx = q->ctx;
	struct sockaddr_storage from;
	uint8_t timeout = ACK_TIMEOUT;

	verbs_conn_to_sockaddr(ctx->ip, 0, &from);
	if (from.ss_family != q->peer.ss_family)
		return ctx->host->fail(-EADDRNOTAVAIL, "connect: not from %s: see ip=", ctx->ip);
	if (rdma_create_id(ctx->cm, &q->id, q, RDMA_PS_TCP) != 0)
		return ctx->host->fail(-errno, "connect: %s", strerror(errno));
	rdma_set_option(q->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			sizeof(timeout));
	if (rdma_resolve_addr(q->id, (struct sockaddr *)&from, (struct sockaddr *)&q->peer,
			      VERBS_RESOLVE_MS) == 0)
		return 0;
	return ctx->host->fail(errno == ENODEV ? -ENETUNREACH : -errno, "connect: from %s: %s",
			       ctx->ip, strerror(errno));
}

static int
verbs_conn_connect_to(struct verbs_qp *q, const char *peer, uint64_t service)
{
	int rc;

	/* programs of other libraries do not know halves */
	if (q->ctx->is_plain && q->private_len > VERBS_HELLO_ASK)
		return q->ctx->host->fail(-EMSGSIZE, "connect: private data of %u bytes, not %d",
					  q->private_len, VERBS_HELLO_ASK);
	if (verbs_conn_to_sockaddr(peer, verbs_conn_tcp_port_of(q->ctx, service), &q->peer) != 0)
		return q->ctx->host->fail(-EINVAL, "connect: \"%s\" is no address", peer);
	q->service = service;
	q->half = 0;
	if (!q->ctx->is_plain && q->private_len > VERBS_HELLO_ONE) {
		q->half = VERBS_HELLO_FIRST;
		if (getrandom(&q->token, sizeof(q->token), 0) != sizeof(q->token))
			return -errno;
	}
	rc = san_verbs_conn_resolve(q);
	if (rc == 0)
		q->state = VERBS_RESOLVING;
	else
		san_verbs_end_leave(q);
	return rc;
}

/* ---- target ---- */

static struct verbs_request *
verbs_conn_find_request(struct verbs_ctx *ctx, uint64_t request)
{
	struct verbs_request *r = &ctx->requests[request % VERBS_REQUESTS];

	return r->id != NULL && r->gen == request / VERBS_REQUESTS ? r : NULL;
}

/* Release the place of a request, and return its ID to the caller. Under the context's lock. */
static struct rdma_cm_id *
verbs_conn_take(struct verbs_ctx *ctx, struct verbs_request *r)
{
	struct rdma_cm_id *id = r->id;

	if (r->event.is_queued)
		STAILQ_REMOVE(&ctx->events, &r->event, verbs_event, link);
	r->event.is_queued = false;
	r->id = NULL;
	r->listener->waiting--;
	return id;
}

/* Afterwards the ID belongs to *q*. */
static int
take_request(struct verbs_qp *q, uint64_t request, struct rdma_conn_param *conn)
{
	struct verbs_ctx *ctx = q->ctx;
	struct verbs_request *r;
	SAN_LOCKED(&ctx->lock);

	r = verbs_conn_find_request(ctx, request);
	if (r == NULL)
		return ctx->host->fail(-ENOENT, "accept: the request no longer exists");
	if (r->event.ev.stream != (q->stream != NULL))
		return ctx->host->fail(-EPROTOTYPE, "accept: the request is %s a stream",
				       r->event.ev.stream ? "for" : "not for");
	san_verbs_conn_param(ctx, r->reads_in, r->reads_out, conn);
	q->id = verbs_conn_take(ctx, r);
	q->id->context = q;
	return 0;
}

static int
verbs_conn_accept_request(struct verbs_qp *q, uint64_t request)
{
	uint8_t buf[VERBS_HELLO_MAX];
	struct rdma_conn_param conn = {.private_data = buf};
	struct verbs_hello h;
	int rc = take_request(q, request, &conn);

	if (rc != 0)
		return rc;
	san_verbs_hello_init(&h, 0, q->private_data, q->private_len);
	conn.private_data_len = san_verbs_conn_encode(q->ctx, &h, buf);
	q->state = VERBS_CONNECTING;
	rc = san_verbs_qp_make(q);
	san_verbs_qp_post(q); /* receives first: the peer may send as soon as it is connected */
	if (rc == 0 && rdma_accept(q->id, &conn) == 0)
		return 0;
	q->state = VERBS_IDLE;
	if (rc != 0) /* if the request still exists */
		verbs_conn_send_refusal(q->ctx, q->id, RTSAN_R_RESOURCES, NULL, 0);
	san_verbs_end_leave(q);
	if (rc == 0 || rc == -EINVAL) /* the connection manager has noticed it first */
		return q->ctx->host->fail(-ENOENT, "accept: the request no longer exists");
	return q->ctx->host->fail(rc, "accept: %s: %s", q->ctx->device, strerror(-rc));
}

/* SHMQ_CONNECT, SHMQ_ACCEPT. */
static int
do_set_up(struct verbs_ctx *ctx, const struct shmq_req *req)
{
	bool accepts = req->type == SHMQ_ACCEPT;
	const char *what = accepts ? "accept" : "connect";
	struct verbs_qp *q = san_verbs_qp_of(ctx, req->id);
	int rc = check_request(ctx, what, req);
	SAN_LOCKED(&q->lock);

	if (rc == 0)
		rc = verbs_conn_begin_setup(q, what, &req->conn, accepts);
	if (rc != 0)
		return rc;
	rc = accepts ? verbs_conn_accept_request(q, req->conn.request) :
		       verbs_conn_connect_to(q, req->conn.peer, req->conn.service);
	san_verbs_thread_look(q);
	return rc;
}

static int
do_reject(struct verbs_ctx *ctx, const struct shmq_req *req)
{
	struct verbs_request *r;
	struct rdma_cm_id *id = NULL;

	pthread_mutex_lock(&ctx->lock);
	r = verbs_conn_find_request(ctx, req->conn.request);
	if (r != NULL)
		id = verbs_conn_take(ctx, r);
	pthread_mutex_unlock(&ctx->lock);
	if (id == NULL)
		return ctx->host->fail(-ENOENT, "reject: the request no longer exists");
	san_verbs_conn_refuse(ctx, id, RTSAN_R_REFUSED, req->conn.private_data,
			      req->conn.private_len);
	return 0;
}

static int
do_disconnect(struct verbs_ctx *ctx, const struct shmq_req *req)
{
	struct verbs_qp *q = san_verbs_qp_of(ctx, req->id);
	int rc = 0;
	SAN_LOCKED(&q->lock);

	if (q->state == VERBS_UP && q->stream != NULL)
		san_stream_close(q->stream->session);
	else if (q->state == VERBS_UP)
		q->state = VERBS_DRAINING;
	else if (q->state == VERBS_RESOLVING || q->state == VERBS_CONNECTING)
		san_verbs_end_begin(q, RTSAN_EV_DISCONNECTED, RTSAN_R_NONE, NULL);
	else if (!san_verbs_end_is_connected(q))
		rc = -ENOTCONN;
	san_verbs_thread_look(q);
	return rc;
}

/* ---- listen ---- */

static int
do_listen(struct verbs_ctx *ctx, const struct shmq_req *req)
{
	uint16_t port = verbs_conn_tcp_port_of(ctx, req->conn.service);
	int rc = check_request(ctx, "listen", req);
	struct sockaddr_storage at;
	struct verbs_listener *l;

	if (rc != 0)
		return rc;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	*l = (struct verbs_listener){
		.service = req->conn.service,
		.cookie = req->id,
		.backlog = req->conn.backlog,
	};
	verbs_conn_to_sockaddr(ctx->ip, port, &at);
	/* under the lock: its first request must find it */
	pthread_mutex_lock(&ctx->lock);
	if (rdma_create_id(ctx->cm, &l->id, NULL, RDMA_PS_TCP) == 0 &&
	    rdma_bind_addr(l->id, (struct sockaddr *)&at) == 0 &&
	    rdma_listen(l->id, (int)l->backlog) == 0)
		LIST_INSERT_HEAD(&ctx->listeners, l, link);
	else
		rc = ctx->host->fail(-errno, "listen: service %llu (port %u of %s): %s",
				     (unsigned long long)l->service, port, ctx->ip,
				     strerror(errno));
	pthread_mutex_unlock(&ctx->lock);
	if (rc == 0)
		return 0;
	if (l->id != NULL)
		san_verbs_thread_retire(ctx, l->id, true);
	free(l);
	return rc;
}

/* Refuse requests that were not accepted. */
static void
refuse_all(struct verbs_ctx *ctx, const struct verbs_listener *l)
{
	struct rdma_cm_id *id;
	uint32_t i;

	for (i = 0; i < VERBS_REQUESTS; i++) {
		pthread_mutex_lock(&ctx->lock);
		id = ctx->requests[i].id != NULL && ctx->requests[i].listener == l ?
			verbs_conn_take(ctx, &ctx->requests[i]) :
			NULL;
		pthread_mutex_unlock(&ctx->lock);
		if (id != NULL)
			san_verbs_conn_refuse(ctx, id, RTSAN_R_NO_LISTENER, NULL, 0);
	}
}

static int
do_unlisten(struct verbs_ctx *ctx, const struct shmq_req *req)
{
	struct verbs_listener *l;

	pthread_mutex_lock(&ctx->lock);
	LIST_FOREACH(l, &ctx->listeners, link)
		if (l->service == req->conn.service)
			break;
	if (l != NULL)
		LIST_REMOVE(l, link);
	pthread_mutex_unlock(&ctx->lock);
	if (l == NULL)
		return -ENOENT;
	refuse_all(ctx, l);
	if (l->id != NULL)
		san_verbs_thread_retire(ctx, l->id, true);
	free(l);
	return 0;
}

/* ---- records ---- */

int
san_verbs_conn_call(void *priv, const struct shmq_req *req)
{
	static int (*const calls[])(struct verbs_ctx * ctx, const struct shmq_req *req) = {
		[SHMQ_MR_DEL] = san_verbs_mr_del,
		[SHMQ_LISTEN] = do_listen,
		[SHMQ_UNLISTEN] = do_unlisten,
		[SHMQ_CONNECT] = do_set_up,
		[SHMQ_ACCEPT] = do_set_up,
		[SHMQ_REJECT] = do_reject,
		[SHMQ_DISCONNECT] = do_disconnect,
	};

	return calls[req->type](priv, req);
}
