/* SPDX-License-Identifier: BSD-3-Clause */

#include <unistd.h>

#include "rtsan_priv.h"

/* Check *param* (or NULL: all defaults) and fill it in. */
static int
conn_take_param(const struct rtsan_ctx *ctx, const struct rtsan_conn_param *param,
		struct shmq_conn *to)
{
	if (param == NULL)
		return 0;
	if (param->order > RTSAN_ENDING)
		return rtsan_fail(-EINVAL, "connection: order %u is unknown", param->order);
	if (param->order == RTSAN_UNORDERED && !ctx->caps.has_unordered)
		return rtsan_fail(-EOPNOTSUPP, "connection: the provider has ordered ones only");
	if (param->private_len > RTSAN_PRIVATE_MAX)
		return rtsan_fail(-EINVAL, "connection: private data of %u bytes, at most %u",
				  param->private_len, RTSAN_PRIVATE_MAX);
	if (param->private_len != 0 && param->private_data == NULL)
		return rtsan_fail(-EINVAL, "connection: private_len %u, but no private_data",
				  param->private_len);
	to->order = param->order;
	to->pkey = param->pkey;
	to->window = param->window;
	to->first_window = param->first_window;
	to->max_txn = param->max_txn;
	to->msg_limit = param->msg_limit;
	to->rnr_ms = param->rnr_ms;
	to->keepalive_ms = param->keepalive_ms;
	to->private_len = param->private_len;
	if (param->private_len != 0)
		memcpy(to->private_data, param->private_data, param->private_len);
	return 0;
}

int
rtsan_listen(struct rtsan_ctx *ctx, uint64_t service, uint16_t pkey, uint16_t backlog,
	     struct rtsan_listener **out)
{
	struct shmq_req req = {
		.type = SHMQ_LISTEN,
		.conn = {.service = service, .pkey = pkey, .backlog = backlog},
	};
	struct rtsan_listener *listener;
	int rc;
	SAN_LOCKED(&ctx->lock);

	if (out == NULL || backlog == 0)
		return rtsan_fail(-EINVAL, "listen: backlog must be at least 1");
	listener = calloc(1, sizeof(*listener));
	if (listener == NULL)
		return rtsan_fail(-ENOMEM, "listen: no memory");
	listener->ctx = ctx;
	listener->service = service;
	listener->pkey = pkey;
	req.id = listener->cookie = ++ctx->listener_cookie;
	rtsan_error_clear();
	rc = ctx->ops->call(ctx->priv, &req);
	if (rc != 0) {
		free(listener);
		return rtsan_fail_else(rc, "listen");
	}
	LIST_INSERT_HEAD(&ctx->listeners, listener, link);
	*out = listener;
	return 0;
}

void
rtsan_listener_destroy(struct rtsan_listener *listener)
{
	struct shmq_req req = {.type = SHMQ_UNLISTEN};
	struct rtsan_ctx *ctx;

	if (listener == NULL)
		return;
	ctx = listener->ctx;
	req.conn.service = listener->service;
	req.conn.pkey = listener->pkey;
	pthread_mutex_lock(&ctx->lock);
	ctx->ops->call(ctx->priv, &req);
	LIST_REMOVE(listener, link);
	pthread_mutex_unlock(&ctx->lock);
	free(listener);
}

/*
 * A queue pair gets its next connection only after the end of the last one was reported, because
 * that event does not identify the connection.
 */
static int
conn_begin_setup(struct rtsan_qp *qp, struct shmq_req *req)
{
	bool was_ended;
	int rc;

	rtsan_error_clear();
	if (atomic_exchange(&qp->busy, true))
		return rtsan_fail(-EISCONN, "the queue pair has a connection, or the event that "
					    "ended it was not polled");
	/* Cleared now: an event may report the end before the provider returns. */
	was_ended = atomic_exchange(&qp->ended, false);
	req->id = qp->qpn;
	req->conn.uid = geteuid();
	rc = qp->ctx->ops->call(qp->ctx->priv, req);
	if (rc != 0) {
		atomic_store(&qp->ended, was_ended);
		atomic_store(&qp->busy, false);
	}
	return rc;
}

int
rtsan_connect(struct rtsan_qp *qp, const char *peer, uint64_t service,
	      const struct rtsan_conn_param *param)
{
	struct shmq_req req = {.type = SHMQ_CONNECT, .conn = {.service = service}};
	int rc = conn_take_param(qp->ctx, param, &req.conn);

	if (rc != 0)
		return rc;
	if (peer == NULL)
		return rtsan_fail(-EINVAL, "connect: no address");
	if (strlen(peer) >= sizeof(req.conn.peer))
		return rtsan_fail(-EINVAL, "connect: \"%s\" is not an address", peer);
	strcpy(req.conn.peer, peer);
	return rtsan_fail_else(conn_begin_setup(qp, &req), "connect");
}

int
rtsan_accept(struct rtsan_ctx *ctx, uint64_t request, struct rtsan_qp *qp,
	     const struct rtsan_conn_param *param)
{
	struct shmq_req req = {.type = SHMQ_ACCEPT, .conn = {.request = request}};
	int rc = conn_take_param(ctx, param, &req.conn);

	if (rc != 0)
		return rc;
	if (qp == NULL || qp->ctx != ctx)
		return rtsan_fail(-EINVAL, "accept: queue pair of another context");
	return rtsan_fail_else(conn_begin_setup(qp, &req), "accept");
}

int
rtsan_reject(struct rtsan_ctx *ctx, uint64_t request, const void *private_data,
	     uint16_t private_len)
{
	struct shmq_req req = {
		.type = SHMQ_REJECT,
		.conn = {.request = request, .private_len = private_len},
	};

	if (private_len > RTSAN_PRIVATE_MAX || (private_len != 0 && private_data == NULL))
		return rtsan_fail(-EINVAL, "reject: private data of %u bytes, at most %u",
				  private_len, RTSAN_PRIVATE_MAX);
	if (private_len != 0)
		memcpy(req.conn.private_data, private_data, private_len);
	rtsan_error_clear();
	return rtsan_fail_else(ctx->ops->call(ctx->priv, &req), "reject");
}

int
rtsan_disconnect(struct rtsan_qp *qp)
{
	struct shmq_req req = {.type = SHMQ_DISCONNECT, .id = qp->qpn};

	rtsan_error_clear();
	return rtsan_fail_else(qp->ctx->ops->call(qp->ctx->priv, &req), "disconnect");
}

/* ---- events ---- */

/* Add the objects. False: they no longer exist, so there is nothing to report. */
static bool
conn_event_resolve(struct rtsan_ctx *ctx, const struct shmq_event *pe, struct rtsan_event *ev)
{
	struct rtsan_listener *listener;
	struct rtsan_qp *qp;

	*ev = (struct rtsan_event){
		.type = pe->type,
		.reason = pe->reason,
		.private_len = pe->private_len,
		.request = pe->request,
		.stream = pe->stream != 0,
		.uid = pe->user != RTSAN_USER_NONE ? pe->uid : RTSAN_UID_NONE,
		.user = pe->user,
		.own_user = pe->own_user != 0,
	};
	memcpy(ev->peer, pe->peer, sizeof(ev->peer));
	memcpy(ev->private_data, pe->private_data, sizeof(ev->private_data));
	if (ev->type == RTSAN_EV_CONNECT_REQUEST) {
		LIST_FOREACH(listener, &ctx->listeners, link)
			if (listener->cookie == pe->listener)
				ev->listener = listener;
		return ev->listener != NULL;
	}
	qp = rtsan_qp_find(ctx, pe->qp);
	if (qp == NULL)
		return false;
	ev->qp = qp;
	if (ev->type == RTSAN_EV_DISCONNECTED)
		atomic_store(&qp->ended, true);
	if (ev->type != RTSAN_EV_ESTABLISHED)
		atomic_store(&qp->busy, false);
	return true;
}

/* True for a queue pair or listener that the application uses as a stream only. With both locks. */
static bool
is_for_stream(struct rtsan_ctx *ctx, const struct shmq_event *pe)
{
	const struct rtsan_qp *qp = rtsan_qp_find(ctx, pe->qp);
	struct rtsan_event ev;

	if (pe->type != RTSAN_EV_CONNECT_REQUEST && (qp == NULL || qp->sync == NULL))
		return false;
	return conn_event_resolve(ctx, pe, &ev) && rtsan_stream_on_event(&ev);
}

int
rtsan_event_share(void *of)
{
	struct rtsan_ctx *ctx = of;
	struct shmq_event pe;
	int rc;
	SAN_LOCKED(&ctx->lock);

	for (;;) {
		if (ctx->spare == NULL)
			ctx->spare = malloc(sizeof(*ctx->spare));
		rc = ctx->spare != NULL ? ctx->ops->event_poll(ctx->priv, &pe) : -ENOMEM;
		if (rc <= 0)
			break;
		if (is_for_stream(ctx, &pe))
			continue;
		ctx->spare->ev = pe;
		STAILQ_INSERT_TAIL(&ctx->kept, ctx->spare, link);
		ctx->spare = NULL;
	}
	if (rc == -ENOMEM)
		return rtsan_fail(rc, "events: no memory");
	return rc < 0 ? rtsan_fail(rc, "the port has failed") : 0;
}

void
rtsan_event_recall(struct rtsan_ctx *ctx)
{
	struct rtsan_kept *k, *next;
	SAN_LOCKED(&ctx->events.lock);

	pthread_mutex_lock(&ctx->lock);
	for (k = STAILQ_FIRST(&ctx->kept); k != NULL; k = next) {
		next = STAILQ_NEXT(k, link);
		if (!is_for_stream(ctx, &k->ev))
			continue;
		STAILQ_REMOVE(&ctx->kept, k, rtsan_kept, link);
		free(k);
	}
	pthread_mutex_unlock(&ctx->lock);
}

int
rtsan_event_poll(struct rtsan_ctx *ctx, struct rtsan_event *ev)
{
	struct shmq_event pe;
	struct rtsan_kept *k;
	bool worked = false;
	int rc;
	SAN_LOCKED(&ctx->events.lock);

	pthread_mutex_lock(&ctx->lock);
	for (;;) {
		k = STAILQ_FIRST(&ctx->kept);
		rc = k != NULL ? 1 : ctx->ops->event_poll(ctx->priv, &pe);
		if (k != NULL) {
			pe = k->ev;
			STAILQ_REMOVE_HEAD(&ctx->kept, link);
			free(k);
		}
		if (rc == 0 && !worked) {
			worked = true;
			if (ctx->ops->progress(ctx->priv) >= 0)
				continue;
			rc = -EIO;
		}
		if (rc <= 0 || (!is_for_stream(ctx, &pe) && conn_event_resolve(ctx, &pe, ev)))
			break;
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc < 0 ? rtsan_fail(rc, "the port has failed") : rc;
}
