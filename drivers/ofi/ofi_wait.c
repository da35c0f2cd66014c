/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What threads sleep on. A waiter's descriptor is an epoll set: what the transport offers, and an
 * eventfd that other threads write when they make the waiter's progress.
 */

#include <errno.h>
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

void
san_ofi_wait_wake(struct ofi_wait *w)
{
	if (!w->armed)
		return;
	w->armed = false;
	eventfd_write(w->evfd, 1);
}

void
san_ofi_wait_wake_all(struct ofi_ctx *ctx)
{
	struct ofi_wait *w;

	LIST_FOREACH(w, &ctx->waits, link)
		san_ofi_wait_wake(w);
}

/* ---- what is watched ---- */

static int
wait_watch(const struct ofi_wait *w, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (fd < 0)
		return fd;
	return epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

/* Watch a lane, or if *lane* is NULL events of connections. */
static int
wait_watch_transport(const struct ofi_wait *w, const struct ofi_lane *lane)
{
	return wait_watch(w, lane != NULL ? rtsan_cq_fd(lane->cq) : rtsan_event_fd(w->ctx->san));
}

/* FI_EP_RDM accepts connections in calls that wait for completions. */
bool
san_ofi_wait_has_events(const struct ofi_wait *w)
{
	return w->for_events || w->ctx->has_rdm;
}

int
san_ofi_wait_add(struct ofi_ctx *ctx, struct ofi_lane *lane)
{
	struct ofi_wait *w;
	int rc = 0;

	LIST_FOREACH(w, &ctx->waits, link) {
		if (rc != 0 || w->for_events || ctx->is_driven)
			continue;
		rc = wait_watch_transport(w, lane);
		san_ofi_wait_wake(w); /* it has not armed this one */
	}
	return rc;
}

/* ---- init, fini ---- */

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

int
san_ofi_wait_init(struct ofi_wait *w, struct ofi_ctx *ctx, enum fi_wait_obj obj, bool for_events)
{
	bool is_driven = ctx->is_driven; /* its thread makes the progress that writes evfd */
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
	if (rc == 0 && !is_driven && san_ofi_wait_has_events(w))
		rc = wait_watch_transport(w, NULL);
	SLIST_FOREACH(lane, &ctx->lanes, link)
		if (rc == 0 && !is_driven && !for_events)
			rc = wait_watch_transport(w, lane);
	LIST_INSERT_HEAD(&ctx->waits, w, link);
	if (rc != 0)
		san_ofi_wait_fini(w);
	return rc;
}
