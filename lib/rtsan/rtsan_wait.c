/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sleeping until there are completions or events. Both follow one pattern: arm, check, sleep on a
 * descriptor, check again (AFC-19).
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>

#include "rtsan_priv.h"

/* *fd* is -ENOTSUP if nothing arrives unless this thread drives the port. */
static int
wait_until(struct rtsan_ctx *ctx, int fd, int (*arm)(void *of), void *of, int timeout_ms)
{
	int64_t end_ms = rtsan_turn_end_ms(timeout_ms);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc;

	for (;;) {
		rc = arm(of);
		if (rc != 0)
			return rc;
		if (rtsan_turn_left_ms(end_ms) == 0)
			return 0;
		if (fd >= 0 && poll(&p, 1, rtsan_turn_left_ms(end_ms)) < 0)
			return -errno;
		if (fd < 0 && ctx->ops->progress(ctx->priv) == 0)
			sched_yield();
	}
}

static int
wait_rc_of_arm(int rc)
{
	return rc == -EIO ? rtsan_fail(rc, "the port has failed") : rtsan_fail_else(rc, "wait");
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
	int fd = rtsan_cq_fd(cq);

	if (fd < 0 && fd != -ENOTSUP)
		return fd;
	return wait_rc_of_arm(wait_until(cq->ctx, fd, arm_cq, cq, timeout_ms));
}

/* ---- events ---- */

int
rtsan_event_fd(struct rtsan_ctx *ctx)
{
	int fd;

	rtsan_error_clear();
	pthread_mutex_lock(&ctx->lock);
	fd = ctx->ops->event_fd(ctx->priv);
	pthread_mutex_unlock(&ctx->lock);
	return rtsan_fail_else(fd, "descriptor of events");
}

static int
arm_event(void *of)
{
	struct rtsan_ctx *ctx = of;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = ctx->ops->event_arm(ctx->priv);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

/* Events kept for the application count, too. */
static int
arm_all(void *of)
{
	struct rtsan_ctx *ctx = of;
	bool is_empty;

	pthread_mutex_lock(&ctx->events.lock);
	is_empty = STAILQ_EMPTY(&ctx->kept);
	pthread_mutex_unlock(&ctx->events.lock);
	return is_empty ? arm_event(ctx) : 1;
}

int
rtsan_event_arm(struct rtsan_ctx *ctx)
{
	int fd = rtsan_event_fd(ctx);

	return fd < 0 ? fd : wait_rc_of_arm(arm_all(ctx));
}

static int
wait_events(struct rtsan_ctx *ctx, int (*arm)(void *of), int timeout_ms)
{
	int fd = rtsan_event_fd(ctx);

	if (fd < 0 && fd != -ENOTSUP)
		return fd;
	return wait_rc_of_arm(wait_until(ctx, fd, arm, ctx, timeout_ms));
}

int
rtsan_event_wait(struct rtsan_ctx *ctx, int timeout_ms)
{
	return wait_events(ctx, arm_all, timeout_ms);
}

int
rtsan_event_sleep(struct rtsan_ctx *ctx, int timeout_ms)
{
	return wait_events(ctx, arm_event, timeout_ms);
}
