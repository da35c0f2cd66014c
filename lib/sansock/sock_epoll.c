/* SPDX-License-Identifier: BSD-3-Clause */

/* Intercepted functions of epoll(7); sock_eset.c has the design. (UDP-1) */

#include <limits.h>
#include <sched.h>

#include "sock_priv.h"

#define LATE 16 /* calls that find carried sockets ready before the kernel is asked, too */

/* ---- readiness ---- */

/* Events that a program may ask for; POLLERR and POLLHUP are always reported. */
#define ASKED ((uint32_t)EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLRDNORM | EPOLLWRNORM)

#define ROOM ((uint32_t)EPOLLOUT | EPOLLWRNORM)

/* Find up to *max* ready sockets. The next call begins behind the last one found. */
static int
epoll_scan_set(struct sock_eset *s, struct epoll_event *ev, int max)
{
	struct sock_eitem *it;
	uint32_t is, left;
	bool is_reported;
	int n = 0;

	for (left = s->nb; left != 0 && n < max; left--) {
		it = san_sock_eset_item(s, s->first);
		s->first = it->next;
		if (it->is_out || it->is_off)
			continue;
		/* checked before: data that comes in between counts as another edge */
		is_reported = (it->events & EPOLLET) == 0 || san_sock_eset_has_edge(it);
		is = (uint16_t)san_sock_wait_events(it->fd, it->f, (short)(it->events & ASKED),
						    false);
		if (is == 0 || !is_reported)
			continue;
		ev[n++] = (struct epoll_event){is, {.u64 = it->data}};
		it->is_off = (it->events & EPOLLONESHOT) != 0;
	}
	return n;
}

/*
 * Keep only events of other descriptors. Carried sockets of *s*, if it is not NULL, may have been
 * reported for events that are over: remove the cause.
 */
static int
epoll_sift_events(const struct sock_eset *s, struct epoll_event *ev, int n)
{
	const struct sock_eitem *it;
	int i, to = 0;

	for (i = 0; i < n; i++) {
		if (!san_sock_eset_is_cookie(ev[i].data.u64)) {
			ev[to++] = ev[i];
			continue;
		}
		it = s != NULL ? san_sock_eset_item(s, ev[i].data.u64 & 0xffff) : NULL;
		if (it != NULL && !it->is_out && (ev[i].events & ~ROOM) != 0)
			san_sock_wait_events(it->fd, it->f, (short)(it->events & ASKED), true);
	}
	return to;
}

/* ---- epoll_wait ---- */

/** State of one call. */
struct wait {
	struct sock_eset *set;
	int epfd;
	struct epoll_event *ev;
	int max;
	int64_t until_ns; /**< INT64_MAX: no limit; 0: do not wait */
	const sigset_t *mask;
	uint32_t key;  /**< of the set's lock, which the call holds while it checks */
	bool is_given; /**< the kernel has the set now, and the lock is not held */
	bool is_found; /**< a carried socket ended the wait: a longer spin would have seen it */
};

static int
left_ms(const struct wait *w)
{
	struct timespec left;

	if (w->until_ns == INT64_MAX || w->until_ns == 0)
		return w->until_ns == 0 ? 0 : -1;
	left = san_sock_time_left(w->until_ns);
	return left.tv_sec >= INT_MAX / 1000 ?
		INT_MAX :
		(int)(left.tv_sec * 1000 + (left.tv_nsec + NS_PER_MS - 1) / NS_PER_MS);
}

static void
epoll_wait_lock(struct wait *w)
{
	w->is_given = !san_sock_lock_wait(&w->set->lock, &w->key);
	if (w->is_given || san_sock_eset_of(w->epfd) == w->set)
		return;
	san_sock_lock_unlock(&w->set->lock, w->key);
	w->is_given = true;
}

/* By syscall(), without waiting: a thread that is cancelled here would keep the lock. */
static int
epoll_ask_kernel(const struct wait *w, struct epoll_event *ev, int max)
{
	KEEP_ERRNO;
	int n;

	w->set->late = 0;
	n = (int)REAL(syscall, SYS_epoll_pwait, w->epfd, ev, max, 0, NULL, 0);
	return n > 0 ? epoll_sift_events(w->set, ev, n) : 0;
}

/* Poll for as long as earlier waits suggest. Yields if the lcore may need this CPU. */
static int
epoll_wait_spin(struct wait *w, int64_t began_ns)
{
	int64_t until_ns = began_ns + san_spin_ns(&w->set->spin);
	int n;

	if (until_ns > w->until_ns)
		until_ns = w->until_ns;
	do {
		if (san_sock_attach_yields()) {
			san_sock_lock_unlock(&w->set->lock, w->key);
			sched_yield();
			epoll_wait_lock(w);
		}
		n = w->is_given ? 0 : epoll_scan_set(w->set, w->ev, w->max);
	} while (n == 0 && !w->is_given && san_sock_time_ns(CLOCK_MONOTONIC) < until_ns);
	w->is_found = n != 0;
	return n;
}

/* Sleep until a carried socket or another descriptor is ready. */
static int
sleep_in_kernel(struct wait *w)
{
	struct sock_eset *s = w->set;
	int n, ours, others, err;

	san_sock_eset_sync(s);
	san_sock_eset_arm(s, true);
	n = epoll_scan_set(s, w->ev, w->max);
	if (n != 0) {
		w->is_found = true;
		san_sock_eset_arm(s, false);
		return n;
	}
	san_sock_lock_unlock(&w->set->lock, w->key);
	n = REAL(epoll_pwait, w->epfd, w->ev, w->max, left_ms(w), w->mask);
	err = errno;
	epoll_wait_lock(w);
	others = n > 0 ? epoll_sift_events(w->is_given ? NULL : s, w->ev, n) : 0;
	if (!w->is_given) { /* otherwise the kernel reports the sockets again */
		san_sock_eset_arm(s, false);
		s->late = 0;
		ours = epoll_scan_set(s, w->ev + others, w->max - others);
		w->is_found = ours != 0;
		others += ours;
	}
	errno = err;
	return others != 0 ? others : n < 0 ? n :
					      0;
}

static int
wait_alone(struct wait *w)
{
	int64_t began_ns;
	int n = 0;

	/* every LATE calls ask the kernel first: its descriptors must not starve */
	if (++w->set->late == LATE)
		n = epoll_ask_kernel(w, w->ev, (w->max + 1) / 2);
	n += epoll_scan_set(w->set, w->ev + n, w->max - n);
	if (n == 0 && w->until_ns == 0)
		n = epoll_ask_kernel(w, w->ev, w->max);
	while (n == 0 && left_ms(w) != 0 && !w->is_given) {
		began_ns = san_sock_time_ns(CLOCK_MONOTONIC);
		n = w->set->nb != 0 ? epoll_wait_spin(w, began_ns) : 0;
		if (n == 0 && !w->is_given)
			n = sleep_in_kernel(w);
		if (!w->is_given)
			san_sock_ring_learn(&w->set->spin, began_ns, w->is_found);
	}
	return n;
}

/* Whether this call may check the sockets: only one thread may, and not in a child. */
static bool
epoll_wait_is_ours(struct wait *w)
{
	struct sock_eset *s = w->set;
	uint32_t thread = san_sock_lock_thread();

	epoll_wait_lock(w);
	if (w->is_given)
		return false;
	if (s->thread == 0)
		s->thread = thread;
	if (s->thread == thread && !san_sock_eset_is_shared(s))
		return true;
	san_sock_eset_give(s);
	san_sock_lock_unlock(&w->set->lock, w->key);
	return false;
}

/* epoll_wait(). *timeout_ns* below 0: no limit. -2: the set is the kernel's, call its function. */
static int
epoll_wait_set(int epfd, struct epoll_event *ev, int max, int64_t timeout_ns, const sigset_t *mask)
{
	struct wait w = {
		.set = san_sock_eset_make(epfd), /* another thread may add a socket meanwhile */
		.epfd = epfd,
		.ev = ev,
		.max = max,
		.until_ns = timeout_ns == 0 ? 0 : INT64_MAX,
		.mask = mask,
	};
	int n;

	if (w.set == NULL || max <= 0)
		return -2;
	if (san_sock_touch_is_bad_out(ev, sizeof(*ev)))
		return san_sock_real_fail(EFAULT);
	if (!epoll_wait_is_ours(&w)) {
		/* the kernel's events may have our cookies, which the program must not get */
		errno = EINTR;
		return san_sock_eset_of(epfd) == w.set ? -1 : -2;
	}
	if (timeout_ns > 0)
		w.until_ns = san_sock_time_ns(CLOCK_MONOTONIC) + timeout_ns;
	n = wait_alone(&w);
	if (!w.is_given)
		san_sock_lock_unlock(&w.set->lock, w.key);
	if (n == 0 && w.is_given)
		n = REAL(epoll_pwait, epfd, ev, max, left_ms(&w), mask);
	return n;
}

/* ---- intercepted ---- */

static int
end_create(int fd)
{
	if (fd < 0)
		return fd;
	san_sock_fd_forget(fd);
	if (!san_sock_conf_is_idle())
		san_sock_eset_note_new(fd);
	return fd;
}

EXPORT int
epoll_create(int size)
{
	return end_create(REAL(epoll_create, size));
}

EXPORT int
epoll_create1(int flags)
{
	return end_create(REAL(epoll_create1, flags));
}

EXPORT int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	PINNED struct fd_sock *pinned;
	HELD struct fd_sock *f = san_sock_switch_carried(fd, &pinned);
	int rc;

	if (f != NULL) {
		rc = san_sock_eset_ctl(epfd, op, fd, f, ev);
		if (rc == 0) /* for san_sock_carry_return() */
			san_sock_carry_set(f, epfd, fd, op == EPOLL_CTL_DEL ? NULL : ev);
		return rc;
	}
	if (pinned == NULL)
		san_sock_eset_expose(fd);
	rc = REAL(epoll_ctl, epfd, op, fd, ev);
	if (rc == 0 && pinned != NULL) {
		san_sock_tcp_wait(fd, pinned);
		san_sock_carry_set(pinned, epfd, fd, op == EPOLL_CTL_DEL ? NULL : ev);
	}
	return rc;
}

EXPORT int
epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout)
{
	int n = epoll_wait_set(epfd, ev, max, timeout < 0 ? -1 : timeout * NS_PER_MS, NULL);

	return n != -2 ? n : REAL(epoll_wait, epfd, ev, max, timeout);
}

EXPORT int
epoll_pwait(int epfd, struct epoll_event *ev, int max, int timeout, const sigset_t *mask)
{
	int n = epoll_wait_set(epfd, ev, max, timeout < 0 ? -1 : timeout * NS_PER_MS, mask);

	return n != -2 ? n : REAL(epoll_pwait, epfd, ev, max, timeout, mask);
}

EXPORT int
epoll_pwait2(int epfd, struct epoll_event *ev, int max, const struct timespec *timeout,
	     const sigset_t *mask)
{
	int64_t ns = -1;
	int n;

	if (timeout != NULL && !san_sock_wait_is_bad_time(timeout) && timeout->tv_sec < INT32_MAX)
		ns = timeout->tv_sec * NS_PER_S + timeout->tv_nsec;
	n = timeout != NULL && ns < 0 ? -2 : epoll_wait_set(epfd, ev, max, ns, mask);
	return n != -2 ? n : REAL(epoll_pwait2, epfd, ev, max, timeout, mask);
}
