/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Streams of rtsan_stream.h: connections. Events belong to the context: a thread that waits for one
 * takes them all, passes those of streams to them, and keeps the others for rtsan_event_poll().
 */

#include <unistd.h>

#include "rtsan_priv.h"

#define DEPTH    32 /* of its queues: a call has one request in progress */
#define SLICE_MS 100
#define BOUNCE   (512 * 1024) /* bytes of the region for copies, both directions */

/* ---- create, destroy ---- */

int
rtsan_stream_create(struct rtsan_ctx *ctx, const struct rtsan_stream_attr *attr,
		    struct rtsan_stream **out)
{
	static const struct rtsan_stream_attr defaults;
	struct rtsan_stream *s = calloc(1, sizeof(*s));
	struct rtsan_qp_attr qp = {
		.sq_depth = DEPTH,
		.rq_depth = DEPTH,
		.stream = attr != NULL ? attr : &defaults,
		.context = s,
	};
	int rc;

	if (s == NULL)
		return rtsan_fail(-ENOMEM, "stream: no memory");
	rtsan_turn_init(&s->turn);
	pthread_mutex_init(&s->rd, NULL);
	pthread_mutex_init(&s->wr, NULL);
	s->ctx = ctx;
	s->doorbell = -1;
	atomic_init(&s->timeout_ms, -1);
	rc = rtsan_cq_create(ctx, 2 * DEPTH, &s->cq);
	if (rc == 0) {
		qp.send_cq = qp.recv_cq = s->cq;
		rc = rtsan_qp_create(ctx, &qp, &s->qp);
	}
	if (rc == 0) {
		s->qp->sync = s;
		rc = ctx->caps.has_mr_reg ? 0 : rtsan_mr_alloc(ctx, BOUNCE, 0, &s->mr);
	}
	if (rc != 0)
		rtsan_stream_destroy(s);
	else
		*out = s;
	return rc;
}

void
rtsan_stream_destroy(struct rtsan_stream *s)
{
	/* In this order no object refers to a freed one. */
	rtsan_qp_destroy(s->qp);
	if (s->cq != NULL)
		rtsan_cq_destroy(s->cq);
	if (s->mr != NULL)
		rtsan_mr_dereg(s->mr);
	if (s->doorbell >= 0)
		close(s->doorbell);
	pthread_mutex_destroy(&s->rd);
	pthread_mutex_destroy(&s->wr);
	rtsan_turn_fini(&s->turn);
	free(s);
}

void
rtsan_stream_set_timeout(struct rtsan_stream *s, int timeout_ms)
{
	atomic_store(&s->timeout_ms, timeout_ms);
}

/* ---- events ---- */

static int
sleep_for_events(void *of, int timeout_ms)
{
	/* Another thread of the application that waits for events may consume our wake-up. */
	if (timeout_ms < 0 || timeout_ms > SLICE_MS)
		timeout_ms = SLICE_MS;
	return rtsan_event_sleep(of, timeout_ms);
}

static bool
has_event(const void *what)
{
	return ((const struct rtsan_stream *)what)->event != 0;
}

static bool
stream_setup_has_ended(const void *what)
{
	const struct rtsan_stream *s = what;

	return s->event != 0 && s->event != RTSAN_EV_ESTABLISHED;
}

static bool
stream_setup_has_request(const void *what)
{
	return ((const struct rtsan_listener *)what)->nb_requests != 0;
}

static int
wait_event(struct rtsan_ctx *ctx, bool (*done)(const void *), const void *what, int64_t end_ms)
{
	const struct rtsan_turn_ops ops = {
		.done = done, .take = rtsan_event_share, .sleep = sleep_for_events};
	SAN_LOCKED(&ctx->events.lock);

	return rtsan_turn_wait(&ctx->events, &ops, ctx, what, end_ms);
}

bool
rtsan_stream_on_event(const struct rtsan_event *ev)
{
	struct rtsan_listener *l = ev->listener;

	if (ev->type == RTSAN_EV_CONNECT_REQUEST) {
		if (!ev->stream || !l->is_sync || l->nb_requests == RTSAN_REQUESTS)
			return false;
		l->requests[(l->first_request + l->nb_requests++) % RTSAN_REQUESTS] = ev->request;
		return true;
	}
	if (ev->qp->sync == NULL)
		return false;
	ev->qp->sync->event = ev->type;
	ev->qp->sync->reason = ev->reason;
	return true;
}

/* ---- connect, accept, close ---- */

/* Wait for the connection, unless *rc*, of the call that has begun it, is an error. */
static int
stream_setup_begun(struct rtsan_stream *s, int rc, int64_t end_ms, struct rtsan_stream **out)
{
	static const int rc_of[] = {
		[RTSAN_EV_ESTABLISHED] = 0,
		[RTSAN_EV_REJECTED] = -ECONNREFUSED,
		[RTSAN_EV_UNREACHABLE] = -EHOSTUNREACH,
		[RTSAN_EV_DISCONNECTED] = -ECONNABORTED,
	};

	if (rc == 0) {
		rc = wait_event(s->ctx, has_event, s, end_ms);
		if (rc == 0)
			rc = rc_of[s->event];
		if (rc == -EAGAIN)
			rtsan_fail(rc, "stream: no connection in time");
		else if (rc != 0 && rc != -EIO)
			rtsan_fail(rc, "stream: no connection: %s",
				   s->event == RTSAN_EV_UNREACHABLE ?
					   "no answer" :
					   rtsan_reason_text(s->reason));
	}
	if (rc != 0)
		rtsan_stream_destroy(s);
	else
		*out = s;
	return rc;
}

int
rtsan_stream_connect(struct rtsan_ctx *ctx, const char *peer, uint64_t service,
		     const struct rtsan_stream_attr *attr, int timeout_ms,
		     struct rtsan_stream **out)
{
	int64_t end_ms = rtsan_turn_end_ms(timeout_ms);
	struct rtsan_stream *s;
	int rc;

	rc = rtsan_stream_create(ctx, attr, &s);
	if (rc != 0)
		return rc;
	return stream_setup_begun(s, rtsan_connect(s->qp, peer, service, NULL), end_ms, out);
}

int
rtsan_stream_accept(struct rtsan_listener *l, const struct rtsan_stream_attr *attr,
		    int timeout_ms, struct rtsan_stream **out)
{
	int64_t end_ms = rtsan_turn_end_ms(timeout_ms);
	struct rtsan_stream *s;
	uint64_t request;
	int rc;

	/* From now on requests for streams belong to these calls, also those kept before. */
	atomic_store(&l->is_sync, true);
	rtsan_event_recall(l->ctx);
	rc = wait_event(l->ctx, stream_setup_has_request, l, end_ms);
	if (rc == -EAGAIN)
		return rtsan_fail(rc, "stream: no request came in time");
	if (rc != 0)
		return rc;
	rc = rtsan_stream_create(l->ctx, attr, &s);
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&l->ctx->events.lock);
	request = l->requests[l->first_request];
	l->first_request = (l->first_request + 1) % RTSAN_REQUESTS;
	l->nb_requests--;
	pthread_mutex_unlock(&l->ctx->events.lock);
	rc = rtsan_accept(l->ctx, request, s->qp, NULL);
	if (rc == -ENOENT)
		rc = rtsan_fail(-ECONNABORTED, "stream: the peer gave up");
	return stream_setup_begun(s, rc, end_ms, out);
}

int
rtsan_stream_close(struct rtsan_stream *s, int timeout_ms)
{
	int64_t end_ms = rtsan_turn_end_ms(timeout_ms);
	int rc;

	/* It may have ended already: then its event is here, or will arrive without this. */
	rtsan_disconnect(s->qp);
	rc = wait_event(s->ctx, stream_setup_has_ended, s, end_ms);
	if (rc == -EAGAIN)
		rtsan_fail(rc, "stream: the peer has not received everything in time");
	if (rc == 0 && s->reason != RTSAN_R_NONE)
		rc = rtsan_fail(s->reason == RTSAN_R_TIMEOUT ? -ETIMEDOUT : -ECONNRESET,
				"stream: %s", rtsan_reason_text(s->reason));
	rtsan_stream_destroy(s);
	return rc;
}
