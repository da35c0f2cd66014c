/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sleeping until there is something: completions, or events. Both are one pattern: arm, look,
 * sleep on a descriptor, look again (AFC-19).
 */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "rtsan_priv.h"

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* What is left until *end_ms*, as poll() wants it. */
static int
left_ms(int64_t end_ms)
{
	int64_t left;

	if (end_ms < 0)
		return -1;
	left = end_ms - now_ms();
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX :
					       (int)left;
}

/* *fd* is -ENOTSUP where nothing comes unless we drive the port. */
static int
wait_until(struct rtsan_ctx *ctx, int fd, int (*arm)(void *of), void *of, int timeout_ms)
{
	int64_t end_ms = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc;

	for (;;) {
		rc = arm(of);
		if (rc != 0)
			return rc;
		if (left_ms(end_ms) == 0)
			return 0;
		if (fd >= 0 && poll(&p, 1, left_ms(end_ms)) < 0)
			return -errno;
		if (fd < 0 && ctx->ops->progress(ctx->priv) == 0)
			sched_yield();
	}
}

static int
told(int rc)
{
	return rc == -EIO ? rtsan_fail(rc, "the port is gone") : rtsan_fail_else(rc, "wait");
}

/* ---- completions ---- */

int
rtsan_cq_fd(struct rtsan_cq *cq)
{
	rtsan_error_clear();
	return rtsan_fail_else(cq->ctx->ops->cq_fd(cq->ctx->priv, cq->priv),
			       "descriptor of a completion queue");
}

/* Without a descriptor it says no more than whether there is something. */
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

	return fd < 0 ? fd : told(arm_cq(cq));
}

int
rtsan_cq_wait(struct rtsan_cq *cq, int timeout_ms)
{
	int fd = rtsan_cq_fd(cq);

	if (fd < 0 && fd != -ENOTSUP)
		return fd;
	return told(wait_until(cq->ctx, fd, arm_cq, cq, timeout_ms));
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

int
rtsan_event_arm(struct rtsan_ctx *ctx)
{
	int fd = rtsan_event_fd(ctx);

	return fd < 0 ? fd : told(arm_event(ctx));
}

int
rtsan_event_wait(struct rtsan_ctx *ctx, int timeout_ms)
{
	int fd = rtsan_event_fd(ctx);

	if (fd < 0 && fd != -ENOTSUP)
		return fd;
	return told(wait_until(ctx, fd, arm_event, ctx, timeout_ms));
}
