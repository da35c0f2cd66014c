/* SPDX-License-Identifier: BSD-3-Clause */

/* epoll_wait(): sock_eset.c says how. */

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <time.h>

#include "sock_attach.h"
#include "sock_conf.h"
#include "sock_epoll.h"
#include "sock_eset.h"
#include "sock_real.h"
#include "sock_tcp.h"
#include "sock_udp.h"

#define NS_PER_MS 1000000ll
#define PATIENCE  60 /* seconds, or tries if it is we who have the lock */

/* ---- what there is ---- */

/* What may be asked for; errors are told unasked. */
#define ASKED ((uint32_t)EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLRDNORM | EPOLLWRNORM)

#define ROOM ((uint32_t)EPOLLOUT | EPOLLWRNORM)

/* Some of its readiness may be news to the kernel (*is_told*), but none to the program. */
static uint32_t
look(const struct sock_eitem *it, bool is_told)
{
	struct sock_file *f = atomic_load(&it->f);
	short wanted = (short)(it->events & ASKED);

	return (uint16_t)(f->is_udp ? sock_udp_poll(it->fd, f, wanted, is_told) :
				      sock_tcp_poll(it->fd, f, wanted, is_told));
}

/* Sockets that are ready, up to *max*; the next ones are first then. */
static int
scan(struct sock_eset *s, struct epoll_event *ev, int max)
{
	struct sock_eitem *it;
	uint32_t is;
	int n = 0;

	for (SOCK_ESET_EACH(s, it)) {
		if (n == max)
			break;
		is = it->is_out ? 0 : look(it, false);
		if (is == 0)
			continue;
		ev[n++] = (struct epoll_event){is, {.u64 = it->data}};
	}
	/* others get their turn: it goes to the front of those that come behind it */
	if (it != NULL)
		sock_eset_first(s, it);
	return n;
}

/*
 * Of *n* events of the kernel's, those that are not ours; of ours, with *keeps*, what is true of
 * them. Their number.
 */
static int
translate(const struct sock_eset *s, struct epoll_event *ev, int n, bool keeps)
{
	const struct sock_eitem *it;
	uint32_t is;
	int i, to = 0;

	for (i = 0; i < n; i++) {
		if (!sock_eset_is_cookie(ev[i].data.u64)) {
			ev[to++] = ev[i];
			continue;
		}
		it = sock_eset_item(s, ev[i].data.u64 & 0xffff);
		if (it == NULL || it->is_out)
			continue; /* it is not in it any more; or a parent's, or a child's */
		is = look(it, (ev[i].events & ~ROOM) != 0);
		if (keeps && is != 0)
			ev[to++] = (struct epoll_event){is, {.u64 = it->data}};
	}
	return to;
}

/* ---- epoll_wait ---- */

/** A call. */
struct wait {
	struct sock_eset *set;
	int epfd;
	struct epoll_event *ev;
	int max;
	int64_t until_ns; /**< INT64_MAX: for ever; 0: not at all */
	const sigset_t *mask;
	bool is_locked;
	uint32_t key; /**< of the set's lock, which the call has while it looks */
};

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 * NS_PER_MS + ts.tv_nsec;
}

static void
unlock(struct wait *w)
{
	if (w->is_locked)
		sock_unlock(&w->set->lock, w->key);
	w->is_locked = false;
}

static bool
is_over(const struct wait *w)
{
	return w->until_ns != INT64_MAX && (w->until_ns == 0 || now_ns() >= w->until_ns);
}

static int
left_ms(const struct wait *w)
{
	int64_t ms;

	if (w->until_ns == INT64_MAX)
		return -1;
	ms = w->until_ns == 0 ? 0 : (w->until_ns - now_ns() + NS_PER_MS - 1) / NS_PER_MS;
	return ms < 0 ? 0 : ms > INT_MAX ? INT_MAX :
					   (int)ms;
}

/* False: the set has gone, or we interrupted who has the lock. */
static bool
lock_again(struct wait *w)
{
	int i;

	/* who has it may be kept from going on, on a busy machine */
	for (i = 0; i < PATIENCE && !w->is_locked && sock_eset_of(w->epfd) == w->set; i++)
		w->is_locked = sock_lock(&w->set->lock, false, &w->key) >= 0;
	if (w->is_locked && sock_eset_of(w->epfd) == w->set)
		return true;
	unlock(w);
	errno = EBADF;
	return false;
}

/* The kernel waits, and tells of each. */
static int
wait_as_everybody(struct wait *w)
{
	int n;

	do {
		unlock(w);
		n = REAL(epoll_pwait)(w->epfd, w->ev, w->max, left_ms(w), w->mask);
		if (n <= 0)
			return n;
		if (!lock_again(w))
			return -1;
		n = translate(w->set, w->ev, n, true);
	} while (n == 0 && !is_over(w));
	return n;
}

/* What is ready, of ours and of the kernel's. */
static int
look_at_all(struct wait *w)
{
	int n = scan(w->set, w->ev, w->max), others;

	if (n == w->max || (n == 0 && w->until_ns != 0))
		return n;
	others = REAL(epoll_pwait)(w->epfd, w->ev + n, w->max - n, 0, n != 0 ? NULL : w->mask);
	if (others < 0)
		return n != 0 ? n : others;
	return n + translate(w->set, w->ev + n, others, false);
}

/* For a while. */
static int
spin(struct wait *w)
{
	int64_t until_ns = now_ns() + sock_conf_spin_us() * 1000ll;
	int n = 0;

	do {
		if (sock_yields()) {
			unlock(w);
			sched_yield();
			if (!lock_again(w))
				return -1;
		}
		n = scan(w->set, w->ev, w->max);
	} while (n == 0 && now_ns() < until_ns);
	return n;
}

/* Until something of ours or of the kernel's comes. */
static int
sleep_alone(struct wait *w)
{
	struct sock_eset *s = w->set;
	int n, err;

	sock_eset_tell_kernel(s);
	sock_eset_fall_asleep(s);
	n = scan(s, w->ev, w->max);
	if (n != 0) {
		sock_eset_wake(s);
		return n;
	}
	atomic_store(&s->is_waited, true);
	unlock(w);
	n = REAL(epoll_pwait)(w->epfd, w->ev, w->max, left_ms(w), w->mask);
	err = errno;
	if (!lock_again(w))
		return -1;
	sock_eset_wake(s);
	errno = err;
	if (n > 0)
		n = translate(s, w->ev, n, false);
	return n < 0 ? n : n + scan(s, w->ev + n, w->max - n);
}

static int
wait_alone(struct wait *w)
{
	int n = look_at_all(w);

	while (n == 0 && !is_over(w)) {
		if (atomic_load(&w->set->is_everybody))
			return wait_as_everybody(w);
		n = spin(w);
		if (n == 0)
			n = sleep_alone(w);
	}
	return n;
}

int
sock_epoll_wait(int epfd, struct epoll_event *ev, int max, int64_t timeout_ns,
		const sigset_t *mask)
{
	struct wait w = {
		.set = sock_eset_of(epfd),
		.epfd = epfd,
		.ev = ev,
		.max = max,
		.until_ns = timeout_ns == 0 ? 0 : INT64_MAX,
		.mask = mask,
	};
	int n, err;

	if (w.set == NULL || max <= 0 || sock_is_bad(ev, sizeof(*ev)) ||
	    !lock_again(&w))
		return -2;
	if (timeout_ns > 0)
		w.until_ns = now_ns() + timeout_ns;
	if (atomic_load(&w.set->is_waited))
		sock_eset_be_everybody(w.set);
	n = atomic_load(&w.set->is_everybody) ? wait_as_everybody(&w) : wait_alone(&w);
	err = errno;
	unlock(&w);
	errno = err;
	return n;
}
