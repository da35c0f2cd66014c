/* SPDX-License-Identifier: BSD-3-Clause */

/* Intercepted functions that wait. (UDP-1) */

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <bsd/sys/time.h>
#include <time.h>

#include "sock_carry.h"
#include "sock_epoll.h"
#include "sock_priv.h"
#include "sock_real.h"
#include "sock_switch.h"
#include "sock_tcp.h"

/* An invalid time is left to the kernel, which returns the error. */
static bool
is_bad_time(const struct timespec *ts)
{
	return ts != NULL &&
		(san_sock_touch_is_bad(ts, sizeof(*ts)) || ts->tv_sec < 0 || ts->tv_nsec < 0 ||
		 ts->tv_nsec >= 1000000000);
}

EXPORT int
poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec ts = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000l};

	if (!san_sock_wait_concerns(fds, n))
		return REAL(poll, fds, n, timeout);
	return san_sock_wait_poll(fds, n, timeout < 0 ? NULL : &ts, NULL);
}

EXPORT int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	if (is_bad_time(timeout) || !san_sock_wait_concerns(fds, n))
		return REAL(ppoll, fds, n, timeout, mask);
	return san_sock_wait_poll(fds, n, timeout, mask);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
EXPORT int
__poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	if (n > room / sizeof(*fds))
		__builtin_trap();
	return poll(fds, n, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask, size_t room);
EXPORT int
__ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
	    size_t room)
{
	if (n > room / sizeof(*fds))
		__builtin_trap();
	return ppoll(fds, n, timeout, mask);
}

EXPORT int
select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct timespec ts, began, now;
	bool is_bad = timeout != NULL &&
		(san_sock_touch_is_bad(timeout, sizeof(*timeout)) || timeout->tv_sec < 0 ||
		 timeout->tv_usec < 0);
	int rc;

	if (is_bad || !san_sock_wait_concerns_sets(n, in, out, except))
		return REAL(select, n, in, out, except, timeout);
	if (timeout == NULL)
		return san_sock_wait_select(n, in, out, except, NULL, NULL);
	TIMEVAL_TO_TIMESPEC(timeout, &ts);
	clock_gettime(CLOCK_MONOTONIC, &began);
	rc = san_sock_wait_select(n, in, out, except, &ts, NULL);
	if (san_sock_touch_is_bad_out(timeout, sizeof(*timeout)))
		return rc;
	clock_gettime(CLOCK_MONOTONIC, &now); /* what is left, as Linux does */
	timespecsub(&now, &began, &now);
	if (timespeccmp(&now, &ts, >=))
		timespecclear(&ts);
	else
		timespecsub(&ts, &now, &ts);
	TIMESPEC_TO_TIMEVAL(timeout, &ts);
	return rc;
}

EXPORT int
pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
	const sigset_t *mask)
{
	if (is_bad_time(timeout) || !san_sock_wait_concerns_sets(n, in, out, except))
		return REAL(pselect, n, in, out, except, timeout, mask);
	return san_sock_wait_select(n, in, out, except, timeout, mask);
}

static int
sock_switch_wait_made_epoll(int fd)
{
	if (fd < 0)
		return fd;
	san_sock_fd_forget(fd);
	if (!san_sock_conf_is_idle())
		san_sock_eset_made(fd);
	return fd;
}

EXPORT int
epoll_create(int size)
{
	return sock_switch_wait_made_epoll(REAL(epoll_create, size));
}

EXPORT int
epoll_create1(int flags)
{
	return sock_switch_wait_made_epoll(REAL(epoll_create1, flags));
}

EXPORT int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	struct fd_sock *pinned, *f = san_sock_switch_carried(fd, &pinned);
	int rc;

	if (f != NULL) {
		rc = san_sock_eset_ctl(epfd, op, fd, f, ev);
		if (rc == 0) /* for san_sock_carry_return() */
			san_sock_carry_set(f, epfd, fd, op == EPOLL_CTL_DEL ? NULL : ev);
		san_sock_fd_put(f);
		return rc;
	}
	if (pinned == NULL)
		san_sock_eset_expose(fd);
	rc = REAL(epoll_ctl, epfd, op, fd, ev);
	if (rc == 0 && pinned != NULL) {
		san_sock_tcp_conn_wait(fd, pinned);
		san_sock_carry_set(pinned, epfd, fd, op == EPOLL_CTL_DEL ? NULL : ev);
	}
	san_sock_owner_unpin(pinned);
	return rc;
}

EXPORT int
epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout)
{
	int n = san_sock_epoll_wait(epfd, ev, max, timeout < 0 ? -1 : timeout * 1000000ll, NULL);

	return n != -2 ? n : REAL(epoll_wait, epfd, ev, max, timeout);
}

EXPORT int
epoll_pwait(int epfd, struct epoll_event *ev, int max, int timeout, const sigset_t *mask)
{
	int n = san_sock_epoll_wait(epfd, ev, max, timeout < 0 ? -1 : timeout * 1000000ll, mask);

	return n != -2 ? n : REAL(epoll_pwait, epfd, ev, max, timeout, mask);
}

EXPORT int
epoll_pwait2(int epfd, struct epoll_event *ev, int max, const struct timespec *timeout,
	     const sigset_t *mask)
{
	int64_t ns = -1;
	int n;

	if (timeout != NULL && !is_bad_time(timeout) && timeout->tv_sec < INT32_MAX)
		ns = timeout->tv_sec * 1000000000ll + timeout->tv_nsec;
	n = timeout != NULL && ns < 0 ? -2 : san_sock_epoll_wait(epfd, ev, max, ns, mask);
	return n != -2 ? n : REAL(epoll_pwait2, epfd, ev, max, timeout, mask);
}
