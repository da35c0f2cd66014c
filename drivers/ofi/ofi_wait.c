/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sleeping. A waiter's descriptor is an epoll set: what the transport offers, and an eventfd that
 * other threads write when they make the waiter's progress.
 */

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ofi_priv.h"

int64_t
san_ofi_wait_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int
wait_watch(const struct ofi_wait *w, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (fd < 0)
		return fd;
	return epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

static int
wait_watch_lane(const struct ofi_wait *w, struct ofi_lane *lane)
{
	if (lane->fd < 0)
		lane->fd = rtsan_cq_fd(lane->cq);
	return wait_watch(w, lane->fd);
}

/* FI_EP_RDM accepts connections in calls that wait for completions. */
static bool
wait_has_events(const struct ofi_wait *w)
{
	return w->for_events || w->ctx->has_rdm;
}

int
san_ofi_wait_add_events(struct ofi_ctx *ctx)
{
	struct ofi_wait *w;
	int rc = 0;

	if (ctx->has_rdm)
		return 0;
	LIST_FOREACH(w, &ctx->waits, link) {
		if (rc != 0 || w->for_events || ctx->drive != NULL)
			continue;
		rc = wait_watch(w, rtsan_event_fd(ctx->san));
		san_ofi_wait_wake(w);
	}
	ctx->has_rdm = rc == 0;
	return rc;
}

int
san_ofi_wait_add_lane(struct ofi_ctx *ctx, struct ofi_lane *lane)
{
	struct ofi_wait *w;
	int rc = 0;

	LIST_FOREACH(w, &ctx->waits, link) {
		if (rc != 0 || w->for_events || ctx->drive != NULL)
			continue;
		rc = wait_watch_lane(w, lane);
		san_ofi_wait_wake(w); /* it has not armed this one */
	}
	return rc;
}

int
san_ofi_wait_init(struct ofi_wait *w, struct ofi_ctx *ctx, enum fi_wait_obj obj, bool for_events)
{
	bool is_driven = ctx->drive != NULL; /* its thread makes the progress that writes evfd */
	struct ofi_lane *lane;
	int rc;

	*w = (struct ofi_wait){
		.ctx = ctx, .obj = obj, .epfd = -1, .evfd = -1, .for_events = for_events};
	if (obj != FI_WAIT_NONE && obj != FI_WAIT_UNSPEC && obj != FI_WAIT_FD &&
	    obj != FI_WAIT_YIELD) {
		OFI_INFO(FI_LOG_CORE, "wait object %d is not supported\n", obj);
		return -FI_ENOSYS;
	}
	if (obj == FI_WAIT_NONE)
		return 0;
	if (obj == FI_WAIT_UNSPEC) /* rxm asks which one it is */
		w->obj = FI_WAIT_FD;
	w->epfd = epoll_create1(EPOLL_CLOEXEC);
	w->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = w->epfd < 0 || w->evfd < 0 ? -errno : wait_watch(w, w->evfd);
	if (rc == 0 && !is_driven && wait_has_events(w))
		rc = wait_watch(w, rtsan_event_fd(ctx->san));
	SLIST_FOREACH(lane, &ctx->lanes, link)
		if (rc == 0 && !is_driven && !for_events)
			rc = wait_watch_lane(w, lane);
	LIST_INSERT_HEAD(&ctx->waits, w, link);
	if (rc != 0)
		san_ofi_wait_fini(w);
	return rc;
}

void
san_ofi_wait_fini(struct ofi_wait *w)
{
	if (w->obj == FI_WAIT_NONE)
		return;
	LIST_REMOVE(w, link);
	if (w->epfd >= 0)
		close(w->epfd);
	if (w->evfd >= 0)
		close(w->evfd);
}

void
san_ofi_wait_wake(struct ofi_wait *w)
{
	if (!w->armed)
		return;
	w->armed = false;
	eventfd_write(w->evfd, 1);
}

/* 0; 1: there are completions or events; or -errno. */
static int
wait_arm_transport(struct ofi_wait *w)
{
	struct ofi_lane *lane;
	int rc = 0;

	if (w->ctx->drive != NULL) {
		san_ofi_drive_wake(w->ctx);
		return 0;
	}
	if (wait_has_events(w))
		rc = rtsan_event_arm(w->ctx->san);
	if (rc == 1 && !w->for_events)
		san_ofi_progress_events(w->ctx);
	if (rc != 0 || w->for_events)
		return rc;
	SLIST_FOREACH(lane, &w->ctx->lanes, link) {
		rc = rtsan_cq_arm(lane->cq);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int
san_ofi_wait_arm(struct ofi_wait *w)
{
	struct ofi_wait *other;
	eventfd_t n;
	int rc;

	if (w->obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	if (san_ofi_progress_retry(w->ctx))
		return -FI_EAGAIN;
	eventfd_read(w->evfd, &n);
	rc = wait_arm_transport(w);
	if (rc == 1) /* some queues are disarmed now, for other waiters as well */
		LIST_FOREACH(other, &w->ctx->waits, link)
			san_ofi_wait_wake(other);
	if (rc != 0)
		return rc == 1 ? -FI_EAGAIN : rc;
	w->armed = true;
	return 0;
}

int
san_ofi_wait_sleep(struct ofi_wait *w, int timeout_ms)
{
	struct pollfd p = {.fd = w->epfd, .events = POLLIN};
	int rc;

	w->sleepers++;
	san_ofi_ctx_unlock();
	rc = poll(&p, 1, timeout_ms);
	san_ofi_ctx_lock();
	w->sleepers--;
	w->armed = false;
	return rc < 0 ? -FI_EAGAIN : 0;
}

void
san_ofi_wait_leave(struct ofi_wait *w)
{
	if (w->sleepers != 0)
		eventfd_write(w->evfd, 1);
}

int
san_ofi_wait_control(struct ofi_wait *w, int command, void *arg)
{
	if (arg == NULL)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = w->obj;
		return 0;
	}
	if (command != FI_GETWAIT)
		return -FI_ENOSYS;
	if (w->obj != FI_WAIT_FD)
		return -FI_ENODATA;
	*(int *)arg = w->epfd;
	return 0;
}
