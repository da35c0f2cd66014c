/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The provider's thread: events of the connection manager, of the device and of streams, timers,
 * and work that other threads leave to it. Only this thread destroys IDs of the connection manager,
 * because it knows that it holds no event of one. (SYS-4)
 */

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "verbs_priv.h"

#define ROUND 256 /* streams before others have their turn */

/* ---- requests of other threads ---- */

void
san_verbs_thread_kick(struct verbs_ctx *ctx)
{
	if (!atomic_exchange(&ctx->is_kicked, true))
		eventfd_write(ctx->kick_fd, 1);
}

void
san_verbs_thread_look(struct verbs_qp *q)
{
	struct verbs_ctx *ctx = q->ctx;
	SAN_LOCKED(&ctx->lock);

	if (!q->is_listed)
		STAILQ_INSERT_TAIL(&ctx->todo, q, todo);
	q->is_listed = true;
	san_verbs_thread_kick(ctx);
}

void
san_verbs_thread_retire(struct verbs_ctx *ctx, struct rdma_cm_id *id, bool wait)
{
	struct verbs_retired *r = malloc(sizeof(*r));
	uint64_t nb;
	SAN_LOCKED(&ctx->lock);

	if (r == NULL)
		return; /* it stays allocated until the process ends, without effect */
	r->id = id;
	STAILQ_INSERT_TAIL(&ctx->retired, r, link);
	nb = ++ctx->nb_retired;
	san_verbs_thread_kick(ctx);
	while (wait && ctx->nb_destroyed < nb)
		pthread_cond_wait(&ctx->passed, &ctx->lock);
}

/* ---- rounds ---- */

static void
destroy_retired(struct verbs_ctx *ctx)
{
	struct verbs_retired *r;

	pthread_mutex_lock(&ctx->lock);
	while ((r = STAILQ_FIRST(&ctx->retired)) != NULL) {
		STAILQ_REMOVE_HEAD(&ctx->retired, link);
		pthread_mutex_unlock(&ctx->lock);
		rdma_destroy_id(r->id);
		free(r);
		pthread_mutex_lock(&ctx->lock);
		ctx->nb_destroyed++;
	}
	pthread_cond_broadcast(&ctx->passed);
	pthread_mutex_unlock(&ctx->lock);
}

static void
verbs_thread_serve_qp(struct verbs_qp *q)
{
	uint64_t next_ns = SAN_TIME_NEVER;
	SAN_LOCKED(&q->lock);

	if (atomic_load(&q->qpn) != SAN_QPN_NONE)
		next_ns = san_verbs_end_serve(q, san_verbs_now_ns());
	q->armed_ns = next_ns;
	if (next_ns == SAN_TIME_NEVER)
		san_wheel_cancel(&q->ctx->wheel, &q->timer);
	else
		san_wheel_arm(&q->ctx->wheel, &q->timer, next_ns);
}

/* Those that are listed meanwhile are for the next round; otherwise this one might never end. */
static void
verbs_thread_serve_listed(struct verbs_ctx *ctx)
{
	STAILQ_HEAD(, verbs_qp) now = STAILQ_HEAD_INITIALIZER(now);
	struct verbs_qp *q;

	pthread_mutex_lock(&ctx->lock);
	STAILQ_CONCAT(&now, &ctx->todo);
	while ((q = STAILQ_FIRST(&now)) != NULL) {
		STAILQ_REMOVE_HEAD(&now, todo);
		q->is_listed = false;
		pthread_mutex_unlock(&ctx->lock);
		verbs_thread_serve_qp(q);
		pthread_mutex_lock(&ctx->lock);
	}
	pthread_mutex_unlock(&ctx->lock);
}

/* Look at the streams whose requests have completed. */
static void
take_completions(struct verbs_ctx *ctx)
{
	struct ibv_cq *which;
	struct verbs_qp *q;
	void *context;
	int i;

	for (i = 0; i < ROUND && ibv_get_cq_event(ctx->channel, &which, &context) == 0; i++) {
		q = &ctx->qps[(uintptr_t)context];
		ibv_ack_cq_events(which, 1);
		pthread_mutex_lock(&q->lock);
		if (q->stream != NULL)
			q->stream->is_armed = false;
		pthread_mutex_unlock(&q->lock);
		verbs_thread_serve_qp(q);
	}
}

/* ---- events of the device ---- */

/*
 * Events of the device are shared by all users of it by the connection manager in this process:
 * other contexts, and other libraries, which lose the events that are taken here.
 */
static void
take_device_events(struct verbs_ctx *ctx)
{
	struct ibv_async_event ev;

	while (ibv_get_async_event(ctx->dev, &ev) == 0) {
		switch (ev.event_type) {
		case IBV_EVENT_DEVICE_FATAL:
			san_verbs_ctx_fail(ctx->dev);
			break;
		case IBV_EVENT_QP_FATAL:
		case IBV_EVENT_QP_REQ_ERR:
		case IBV_EVENT_QP_ACCESS_ERR:
			/* failed requests, if any, have a more precise status */
			if (san_verbs_ctx_has_qp(ev.element.qp->qp_context))
				san_verbs_end_fail(ev.element.qp->qp_context, RTSAN_WC_INVALID);
			break;
		case IBV_EVENT_CQ_ERR: /* the queue has lost completions */
			if (san_verbs_ctx_has_cq(ev.element.cq))
				san_verbs_ctx_fail(ev.element.cq->context);
			break;
		default: /* a port may come back; meanwhile connections fail by themselves */
			break;
		}
		ibv_ack_async_event(&ev);
	}
}

/* ---- the thread ---- */

static void
sleep_until(struct verbs_ctx *ctx, uint64_t until_ns)
{
	struct pollfd fds[4] = {
		{.fd = ctx->kick_fd, .events = POLLIN},
		{.fd = ctx->cm->fd, .events = POLLIN},
		{.fd = ctx->channel->fd, .events = POLLIN},
		{.fd = ctx->dev->async_fd, .events = POLLIN},
	};
	uint64_t now_ns = san_verbs_now_ns(), ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec ts = {
		.tv_sec = (time_t)(ns / SAN_NS_PER_S),
		.tv_nsec = (long)(ns % SAN_NS_PER_S),
	};

	if (atomic_load(&ctx->is_lost)) /* the two would be readable all the time */
		fds[2].fd = fds[3].fd = -1;
	ppoll(fds, 4, until_ns == SAN_TIME_NEVER ? NULL : &ts, NULL);
}

static void *
verbs_thread_main(void *arg)
{
	struct verbs_ctx *ctx = arg;
	bool was_lost = false;
	struct san_timer *t;
	eventfd_t value;
	uint32_t i;

	prctl(PR_SET_NAME, "rtsan-verbs");
	prctl(PR_SET_TIMERSLACK, 1UL);
	while (!atomic_load(&ctx->is_over)) {
		sleep_until(ctx, san_wheel_deadline_ns(&ctx->wheel));
		eventfd_read(ctx->kick_fd, &value);
		/* requests from now on are for the next round */
		atomic_store(&ctx->is_kicked, false);
		san_verbs_cm_run(ctx);
		if (!was_lost) {
			take_device_events(ctx);
			take_completions(ctx);
		}
		verbs_thread_serve_listed(ctx);
		while ((t = san_wheel_poll(&ctx->wheel, san_verbs_now_ns())) != NULL)
			verbs_thread_serve_qp(
				(struct verbs_qp *)((char *)t - offsetof(struct verbs_qp, timer)));
		if (atomic_exchange(&ctx->has_room, false) ||
		    (atomic_load(&ctx->is_lost) && !was_lost))
			for (i = 0; i < VERBS_QPS; i++)
				if (atomic_load(&ctx->qps[i].qpn) != SAN_QPN_NONE)
					verbs_thread_serve_qp(&ctx->qps[i]);
		was_lost = atomic_load(&ctx->is_lost);
		destroy_retired(ctx);
	}
	return NULL;
}

int
san_verbs_thread_start(struct verbs_ctx *ctx)
{
	sigset_t all, was;
	int rc;

	san_wheel_init(&ctx->wheel, san_verbs_now_ns());
	ctx->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->kick_fd < 0)
		return -errno;
	/* signals are for the program's threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = pthread_create(&ctx->thread, NULL, verbs_thread_main, ctx);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (rc != 0)
		close(ctx->kick_fd);
	return -rc;
}

void
san_verbs_thread_stop(struct verbs_ctx *ctx)
{
	atomic_store(&ctx->is_over, true);
	san_verbs_thread_kick(ctx);
	pthread_join(ctx->thread, NULL);
	destroy_retired(ctx);
	close(ctx->kick_fd);
}
