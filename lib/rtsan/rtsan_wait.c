/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sleeping until there are completions or events. Both follow one pattern: arm, check, sleep on a
 * descriptor, check again; and if several threads wait, one of them checks for all (AFC-19).
 */

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "rtsan_priv.h"

#define MS_PER_S  1000
#define NS_PER_MS 1000000

/* ---- one thread checks for all ---- */

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * MS_PER_S + ts.tv_nsec / NS_PER_MS;
}

int64_t
rtsan_turn_end_ms(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
}

int
rtsan_turn_left_ms(int64_t end_ms)
{
	int64_t left;

	if (end_ms < 0)
		return -1;
	left = end_ms - now_ms();
	if (left < 0)
		return 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

void
rtsan_turn_init(struct rtsan_turn *t)
{
	pthread_condattr_t attr;

	/* none of these can fail on Linux */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->seen, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&t->lock, NULL);
	t->busy = false;
}

void
rtsan_turn_fini(struct rtsan_turn *t)
{
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->seen);
}

static int
turn_look_once(struct rtsan_turn *t, const struct rtsan_turn_ops *ops, void *of, int64_t end_ms)
{
	int rc, taken;

	t->busy = true;
	pthread_mutex_unlock(&t->lock);
	rc = ops->sleep(of, rtsan_turn_left_ms(end_ms));
	pthread_mutex_lock(&t->lock);
	t->busy = false;
	taken = ops->take(of);
	/* Another waiting thread must check from now on, if we stop. */
	pthread_cond_broadcast(&t->seen);
	if (taken < 0)
		return taken;
	return rc < 0 && rc != -EINTR ? rc : 0;
}

int
rtsan_turn_wait(struct rtsan_turn *t, const struct rtsan_turn_ops *ops, void *of,
		const void *what, int64_t end_ms)
{
	const struct timespec ts = {
		.tv_sec = end_ms / MS_PER_S,
		.tv_nsec = end_ms % MS_PER_S * NS_PER_MS,
	};
	int rc = t->busy ? 0 : ops->take(of);

	while (rc == 0 && !ops->done(what)) {
		if (rtsan_turn_left_ms(end_ms) == 0)
			return -EAGAIN;
		if (t->busy && end_ms < 0) /* wait while another thread checks */
			pthread_cond_wait(&t->seen, &t->lock);
		else if (t->busy)
			pthread_cond_timedwait(&t->seen, &t->lock, &ts);
		else
			rc = turn_look_once(t, ops, of, end_ms);
	}
	return ops->done(what) ? 0 : rc;
}

/* ---- arm, check, sleep ---- */

static int
wait_rc_of_arm(int rc)
{
	return rc == -EIO ? rtsan_fail(rc, "the port has failed") : rtsan_fail_else(rc, "wait");
}

/* *fd* is -ENOTSUP if nothing arrives unless this thread drives the port; or another error. */
static int
wait_until(struct rtsan_ctx *ctx, int fd, int (*arm)(void *of), void *of, int timeout_ms)
{
	int64_t end_ms = rtsan_turn_end_ms(timeout_ms);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc;

	if (fd < 0 && fd != -ENOTSUP)
		return fd;
	for (;;) {
		rc = arm(of);
		if (rc != 0)
			return wait_rc_of_arm(rc);
		if (rtsan_turn_left_ms(end_ms) == 0)
			return 0;
		if (fd >= 0 && poll(&p, 1, rtsan_turn_left_ms(end_ms)) < 0)
			return wait_rc_of_arm(-errno);
		if (fd < 0 && ctx->ops->progress(ctx->priv) == 0)
			sched_yield();
	}
}

/* ---- completions ---- */

int
rtsan_cq_fd(struct rtsan_cq *cq)
{
	rtsan_error_clear();
	return rtsan_fail_else(cq->ctx->ops->cq_fd(cq->ctx->priv, cq->priv),
			       "descriptor of a completion queue");
}

/* Without a descriptor it only reports whether there are completions. */
static int
arm_cq(void *of)
{
	struct rtsan_cq *cq = of;

	return cq->ctx->ops->cq_arm(cq->ctx->priv, cq->priv);
}

int
rtsan_cq_arm(struct rtsan_cq *cq)
{
	int fd = rtsan_cq_fd(cq);

	return fd < 0 ? fd : wait_rc_of_arm(arm_cq(cq));
}

int
rtsan_cq_wait(struct rtsan_cq *cq, int timeout_ms)
{
	return wait_until(cq->ctx, rtsan_cq_fd(cq), arm_cq, cq, timeout_ms);
}

/* ---- events ---- */

int
rtsan_event_fd(struct rtsan_ctx *ctx)
{
	SAN_LOCKED(&ctx->lock);

	rtsan_error_clear();
	return rtsan_fail_else(ctx->ops->event_fd(ctx->priv), "descriptor of events");
}

static int
arm_event(void *of)
{
	struct rtsan_ctx *ctx = of;
	SAN_LOCKED(&ctx->lock);

	return ctx->ops->event_arm(ctx->priv);
}

/* Events kept for the application count, too. */
static int
arm_all(void *of)
{
	struct rtsan_ctx *ctx = of;
	SAN_LOCKED(&ctx->events.lock);

	return STAILQ_EMPTY(&ctx->kept) ? arm_event(ctx) : 1;
}

int
rtsan_event_arm(struct rtsan_ctx *ctx)
{
	int fd = rtsan_event_fd(ctx);

	return fd < 0 ? fd : wait_rc_of_arm(arm_all(ctx));
}

int
rtsan_event_wait(struct rtsan_ctx *ctx, int timeout_ms)
{
	return wait_until(ctx, rtsan_event_fd(ctx), arm_all, ctx, timeout_ms);
}

int
rtsan_event_sleep(struct rtsan_ctx *ctx, int timeout_ms)
{
	return wait_until(ctx, rtsan_event_fd(ctx), arm_event, ctx, timeout_ms);
}
