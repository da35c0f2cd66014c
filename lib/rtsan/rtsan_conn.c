/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rtsan_priv.h"

static int
check_param(const struct rtsan_ctx *ctx, const struct rtsan_conn_param *param)
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
	return 0;
}

int
rtsan_listen(struct rtsan_ctx *ctx, uint64_t service, uint16_t pkey, uint16_t backlog,
	     struct rtsan_listener **out)
{
	struct rtsan_listener *listener;
	int rc;

	if (out == NULL || backlog == 0)
		return rtsan_fail(-EINVAL, "listen: backlog must be at least 1");
	listener = calloc(1, sizeof(*listener));
	if (listener == NULL)
		return rtsan_fail(-ENOMEM, "listen: no memory");
	listener->ctx = ctx;
	listener->service = service;
	listener->pkey = pkey;
	pthread_mutex_lock(&ctx->lock);
	listener->cookie = ++ctx->listener_cookie;
	rtsan_error_clear();
	rc = ctx->ops->listen(ctx->priv, service, pkey, backlog, listener->cookie);
	if (rc == 0)
		LIST_INSERT_HEAD(&ctx->listeners, listener, link);
	pthread_mutex_unlock(&ctx->lock);
	if (rc != 0) {
		free(listener);
		return rtsan_fail_else(rc, "listen");
	}
	*out = listener;
	return 0;
}

void
rtsan_listener_destroy(struct rtsan_listener *listener)
{
	struct rtsan_ctx *ctx;

	if (listener == NULL)
		return;
	ctx = listener->ctx;
	pthread_mutex_lock(&ctx->lock);
	ctx->ops->unlisten(ctx->priv, listener->service, listener->pkey);
	LIST_REMOVE(listener, link);
	pthread_mutex_unlock(&ctx->lock);
	free(listener);
}

/*
 * A queue pair gets its next connection only after the end of the last one was reported, because
 * that event does not tell which connection it means.
 */
static int
conn_begin_setup(struct rtsan_qp *qp, bool *was_ended)
{
	rtsan_error_clear();
	if (atomic_exchange(&qp->busy, true))
		return rtsan_fail(-EISCONN, "the queue pair has a connection, or the event that "
					    "ended it was not polled");
	/* Cleared now: an event may report the end before the provider returns. */
	*was_ended = atomic_exchange(&qp->ended, false);
	return 0;
}

static int
conn_setup_began(struct rtsan_qp *qp, bool was_ended, int rc)
{
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
	const struct rtsan_provider_ops *ops = qp->ctx->ops;
	int rc = check_param(qp->ctx, param);
	bool was_ended;

	if (rc != 0)
		return rc;
	if (peer == NULL)
		return rtsan_fail(-EINVAL, "connect: no address");
	rc = conn_begin_setup(qp, &was_ended);
	if (rc == 0)
		rc = conn_setup_began(qp, was_ended,
				      ops->connect(qp->ctx->priv, qp->qpn, peer, service, param));
	return rtsan_fail_else(rc, "connect");
}

int
rtsan_accept(struct rtsan_ctx *ctx, uint64_t request, struct rtsan_qp *qp,
	     const struct rtsan_conn_param *param)
{
	int rc = check_param(ctx, param);
	bool was_ended;

	if (rc != 0)
		return rc;
	if (qp == NULL || qp->ctx != ctx)
		return rtsan_fail(-EINVAL, "accept: queue pair of another context");
	rc = conn_begin_setup(qp, &was_ended);
	if (rc == 0)
		rc = conn_setup_began(qp, was_ended,
				      ctx->ops->accept(ctx->priv, request, qp->qpn, param));
	return rtsan_fail_else(rc, "accept");
}

int
rtsan_reject(struct rtsan_ctx *ctx, uint64_t request, const void *private_data,
	     uint16_t private_len)
{
	if (private_len > RTSAN_PRIVATE_MAX || (private_len != 0 && private_data == NULL))
		return rtsan_fail(-EINVAL, "reject: private data of %u bytes, at most %u",
				  private_len, RTSAN_PRIVATE_MAX);
	rtsan_error_clear();
	return rtsan_fail_else(ctx->ops->reject(ctx->priv, request, private_data, private_len),
			       "reject");
}

int
rtsan_disconnect(struct rtsan_qp *qp)
{
	rtsan_error_clear();
	return rtsan_fail_else(qp->ctx->ops->disconnect(qp->ctx->priv, qp->qpn), "disconnect");
}

/* ---- events ---- */

/* Add the objects. False: they no longer exist, so there is nothing to report. */
static bool
conn_event_resolve(struct rtsan_ctx *ctx, const struct rtsan_provider_event *pe,
		   struct rtsan_event *ev)
{
	struct rtsan_listener *listener;
	struct rtsan_qp *qp;

	*ev = pe->ev;
	ev->qp = NULL;
	ev->listener = NULL;
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
	if (ev->type == RTSAN_EV_ESTABLISHED)
		return true;
	if (ev->type == RTSAN_EV_DISCONNECTED)
		atomic_store(&qp->ended, true);
	atomic_store(&qp->busy, false);
	return true;
}

/* True for a queue pair or listener that the application uses as a stream only. With both locks. */
static bool
is_for_stream(struct rtsan_ctx *ctx, const struct rtsan_provider_event *pe)
{
	const struct rtsan_qp *qp = rtsan_qp_find(ctx, pe->qp);
	struct rtsan_event ev;

	if (pe->ev.type != RTSAN_EV_CONNECT_REQUEST && (qp == NULL || qp->sync == NULL))
		return false;
	return conn_event_resolve(ctx, pe, &ev) && rtsan_stream_on_event(&ev);
}

static void
conn_event_keep(struct rtsan_ctx *ctx, const struct rtsan_provider_event *pe)
{
	ctx->spare->ev = *pe;
	STAILQ_INSERT_TAIL(&ctx->kept, ctx->spare, link);
	ctx->spare = NULL;
}

int
rtsan_event_share(struct rtsan_ctx *ctx)
{
	struct rtsan_provider_event pe;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	for (;;) {
		if (ctx->spare == NULL)
			ctx->spare = malloc(sizeof(*ctx->spare));
		rc = ctx->spare != NULL ? ctx->ops->event_poll(ctx->priv, &pe) : -ENOMEM;
		if (rc <= 0)
			break;
		if (!is_for_stream(ctx, &pe))
			conn_event_keep(ctx, &pe);
	}
	pthread_mutex_unlock(&ctx->lock);
	if (rc == -ENOMEM)
		return rtsan_fail(rc, "events: no memory");
	return rc < 0 ? rtsan_fail(rc, "the port has failed") : 0;
}

void
rtsan_event_recall(struct rtsan_ctx *ctx)
{
	struct rtsan_kept *k, *next;

	pthread_mutex_lock(&ctx->events.lock);
	pthread_mutex_lock(&ctx->lock);
	for (k = STAILQ_FIRST(&ctx->kept); k != NULL; k = next) {
		next = STAILQ_NEXT(k, link);
		if (!is_for_stream(ctx, &k->ev))
			continue;
		STAILQ_REMOVE(&ctx->kept, k, rtsan_kept, link);
		free(k);
	}
	pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_unlock(&ctx->events.lock);
}

/* Take a kept event, or a new one: 1, 0 or -EIO. */
static int
conn_event_next(struct rtsan_ctx *ctx, struct rtsan_provider_event *pe)
{
	struct rtsan_kept *k = STAILQ_FIRST(&ctx->kept);

	if (k == NULL)
		return ctx->ops->event_poll(ctx->priv, pe);
	*pe = k->ev;
	STAILQ_REMOVE_HEAD(&ctx->kept, link);
	free(k);
	return 1;
}

int
rtsan_event_poll(struct rtsan_ctx *ctx, struct rtsan_event *ev)
{
	struct rtsan_provider_event pe;
	bool worked = false;
	int rc;

	pthread_mutex_lock(&ctx->events.lock);
	pthread_mutex_lock(&ctx->lock);
	for (;;) {
		rc = conn_event_next(ctx, &pe);
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
	pthread_mutex_unlock(&ctx->events.lock);
	return rc < 0 ? rtsan_fail(rc, "the port has failed") : rc;
}
