/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * poll() and select(), with descriptors of which some are carried. If only carried ones are polled
 * and one is ready, the kernel is not asked. Otherwise the kernel waits, for their stand-ins, too.
 * (UDP-1, AFC-19)
 */

#include <limits.h>
#include <sys/param.h>
#include <sys/time.h>

#include "sock_priv.h"

#define SHORT_NS 20000000ll
#define FEW      32 /* descriptors of a call that need no extra memory */

/*
 * True if *fd* is carried or may come to be. A set of ours is given to the kernel, which must
 * report when it is readable.
 */
static bool
concerns_fd(int fd)
{
	HELD struct fd_sock *f = NULL;

	san_sock_eset_expose(fd);
	f = san_sock_fd_get(fd);
	if (f == NULL)
		return false;
	san_sock_tcp_wait(fd, f);
	return atomic_load(&f->carried) || (f->is_udp && !atomic_load(&f->stays));
}

/* ---- readiness ---- */

short
san_sock_wait_events(int fd, struct fd_sock *f, short events, bool is_notified)
{
	struct san_sock_shm *shm = f->shm;
	uint32_t shut = atomic_load(&shm->shut);
	bool is_ended = atomic_load(&shm->fin) != 0 || (shut & (SHUT_RD + 1)) != 0;
	bool is_lost, is_over, is_mute;
	short is = 0;

	if (!san_sock_ring_has_something(shm))
		san_sock_ring_settle(fd, f, is_notified); /* which may find the daemon's end */
	is_lost = atomic_load(&shm->orphaned) != 0;
	/* if a read would continue with the kernel's socket, only POLLIN is reported */
	is_over = atomic_load(&shm->state) > SAN_SOCK_UP ||
		(is_lost &&
		 ((events & (POLLIN | POLLRDNORM)) == 0 || !san_sock_carry_may_return(f)));
	is_mute = is_over || (shut & (SHUT_WR + 1)) != 0;
	if (atomic_load(&shm->rx_tail) != atomic_load(&shm->rx_head) || is_lost || is_ended ||
	    (!f->is_udp && atomic_load(&shm->error) != 0))
		is |= POLLIN | POLLRDNORM;
	if ((events & (POLLOUT | POLLWRNORM)) != 0 && (is_mute || san_sock_ring_is_writable(fd, f)))
		is |= POLLOUT | POLLWRNORM;
	if (is_ended)
		is |= POLLRDHUP;
	is &= events;
	if (atomic_load(&shm->error) != 0 || (is_over && f->is_udp))
		is |= POLLERR;
	if (is_over || (is_ended && is_mute))
		is |= POLLHUP;
	return is;
}

bool
san_sock_wait_is_bad_time(const struct timespec *ts)
{
	return ts != NULL &&
		(san_sock_touch_is_bad(ts, sizeof(*ts)) || ts->tv_sec < 0 || ts->tv_nsec < 0 ||
		 ts->tv_nsec >= 1000000000);
}

/* ---- poll ---- */

/* Whether one of them is carried, or may come to be. */
static int
concerns(const struct pollfd *fds, nfds_t n)
{
	int found = 0;
	nfds_t i;

	/* the kernel returns the error for an invalid array */
	if (san_sock_conf_is_idle() || n > SOCK_FDS ||
	    san_sock_touch_is_bad_out(fds, n * sizeof(*fds)))
		return 0;
	for (i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			found |= concerns_fd(fds[i].fd);
	return found;
}

/* The carried socket, with a reference; NULL: the kernel serves it. */
static struct fd_sock *
sock_wait_file_of(struct pollfd *p)
{
	struct fd_sock *f = p->fd >= 0 ? san_sock_switch_carried_now(p->fd) : NULL;

	/* received datagrams are read before the socket is returned */
	if (f == NULL ||
	    ((p->events & POLLIN) != 0 &&
	     atomic_load(&f->shm->rx_tail) != atomic_load(&f->shm->rx_head)) ||
	    !san_sock_carry_return(p->fd, f))
		return f;
	san_sock_fd_put(f);
	p->revents = 0; /* the end of the daemon is not an event */
	return san_sock_switch_carried_now(p->fd);
}

/*
 * Set the events of the carried ones. *is_notified*: the kernel has set those of all. Returns the
 * number of descriptors with events that were set. *nb_others*: those that the kernel serves.
 */
static int
sock_wait_set_revents(struct pollfd *fds, nfds_t n, bool is_notified, nfds_t *nb_others)
{
	struct fd_sock *f;
	bool is_told;
	int ready = 0;
	nfds_t i;

	*nb_others = 0;
	for (i = 0; i < n; i++) {
		f = sock_wait_file_of(&fds[i]);
		if (f == NULL) {
			*nb_others += fds[i].fd >= 0;
			if (fds[i].fd < 0)
				fds[i].revents = 0;
			ready += is_notified && fds[i].revents != 0;
			continue;
		}
		is_told = is_notified && fds[i].revents != 0;
		fds[i].revents = san_sock_wait_events(fds[i].fd, f, fds[i].events, is_told);
		ready += fds[i].revents != 0;
		san_sock_fd_put(f);
	}
	return ready;
}

/*
 * A file that a call waits for: where its waits are counted, and the events of the program. For a
 * stream, the kernel is also asked for POLLRDHUP, which a reset brings. It cannot report POLLERR
 * and POLLHUP of the socket, because the stand-in does not have them.
 */
struct one {
	struct fd_sock *f;
	_Atomic uint32_t *count;
	struct pollfd *fd;
	short events;
};

struct held {
	nfds_t nb;
	struct one *all;
	struct one few[FEW];
	struct sock_room room;
	bool is_short; /* one of them may come to be carried: look again soon */
};

static void
sock_wait_release_held(struct held *h)
{
	KEEP_ERRNO;

	while (h->nb > 0) {
		h->nb--;
		h->all[h->nb].fd->events = h->all[h->nb].events;
		if (h->all[h->nb].count != NULL)
			san_sock_owner_count_down(h->all[h->nb].count);
		san_sock_fd_put(h->all[h->nb].f);
	}
	if (h->all != h->few)
		san_sock_room_give(&h->room);
}

/* Count a wait for *f*. Returns where, or NULL if it needs no count. */
static _Atomic uint32_t *
sock_wait_count_of(struct fd_sock *f)
{
	if (!atomic_load(&f->stays) && san_sock_owner_pin(f))
		return &f->pins;
	if (!atomic_load(&f->carried))
		return NULL;
	atomic_fetch_add(&f->shm->armed, 1);
	return &f->shm->armed;
}

static int
sock_wait_hold_files(struct held *h, struct pollfd *fds, nfds_t n)
{
	struct fd_sock *f;
	nfds_t i;

	h->nb = 0;
	h->is_short = false;
	h->all = h->few;
	if (n > FEW) {
		h->room = san_sock_room_take(n * sizeof(struct one));
		h->all = h->room.mem;
	}
	if (h->all == NULL)
		return -1;
	for (i = 0; i < n; i++) {
		f = fds[i].fd >= 0 ? san_sock_fd_get(fds[i].fd) : NULL;
		if (f == NULL)
			continue;
		/* without a name its owner is not chosen yet */
		if (f->is_udp && !atomic_load(&f->is_chosen) && !atomic_load(&f->carried)) {
			san_sock_fd_put(f);
			h->is_short = true;
			continue;
		}
		h->all[h->nb++] = (struct one){f, sock_wait_count_of(f), &fds[i], fds[i].events};
		if (!atomic_load(&f->carried))
			continue;
		/* after the end of a stream it would be reported each time */
		if (!f->is_udp && atomic_load(&f->shm->fin) == 0 &&
		    (atomic_load(&f->shm->shut) & (SHUT_RD + 1)) == 0)
			fds[i].events |= POLLRDHUP;
		if (!f->is_udp || (fds[i].events & POLLIN) != 0)
			continue;
		/*
		 * An error must be reported even if the program does not ask for it. The kernel
		 * reports it like data, by POLLIN. With unread data POLLIN would be reported at
		 * once, so the call checks for the error periodically instead.
		 */
		if (atomic_load(&f->shm->rx_tail) == atomic_load(&f->shm->rx_head))
			fds[i].events |= POLLIN;
		else
			h->is_short = true;
	}
	/* pairs with the fence of san_sock_mirror() (AFC-19) */
	atomic_thread_fence(memory_order_seq_cst);
	return 0;
}

/* A confined program may be allowed only the older call. */
static int
sock_wait_kernel(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask)
{
	int64_t ms = -1;

	if (!san_sock_box_is_closed() || mask != NULL)
		return REAL(ppoll, fds, n, ts, mask);
	if (ts != NULL && ts->tv_sec < INT_MAX / 1000)
		ms = ts->tv_sec * 1000 + (ts->tv_nsec + NS_PER_MS - 1) / NS_PER_MS;
	return REAL(poll, fds, n, (int)ms);
}

/* Let the kernel wait until *until_ns*, or until a carried socket is ready or must be checked. */
static int
sock_wait_sleep(struct pollfd *fds, nfds_t n, int64_t until_ns, const sigset_t *mask)
{
	__attribute__((cleanup(sock_wait_release_held))) struct held held;
	struct timespec ts;
	nfds_t others;

	if (sock_wait_hold_files(&held, fds, n) != 0)
		return -1;
	if (sock_wait_set_revents(fds, n, false, &others) != 0)
		until_ns = 0;
	else if (held.is_short)
		until_ns = MIN(until_ns, san_sock_time_ns(CLOCK_MONOTONIC) + SHORT_NS);
	ts = san_sock_time_left(until_ns);
	return sock_wait_kernel(fds, n, until_ns == INT64_MAX ? NULL : &ts, mask);
}

/* ppoll(2) with carried sockets. *timeout* NULL: no limit; *mask* may be NULL. */
static int
wait_poll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	static const struct timespec zero;
	int64_t until_ns = san_sock_time_until(timeout);
	nfds_t others;
	int rc;

	do {
		rc = sock_wait_set_revents(fds, n, false, &others);
		if (rc != 0 && others == 0)
			return rc;
		rc = rc != 0 ? sock_wait_kernel(fds, n, &zero, mask) :
			       sock_wait_sleep(fds, n, until_ns, mask);
		if (rc >= 0)
			rc = sock_wait_set_revents(fds, n, true, &others);
		/* another thread may have read what woke this one */
	} while (rc == 0 && san_sock_time_ns(CLOCK_MONOTONIC) < until_ns);
	return rc;
}

EXPORT int
poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec ts = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000l};

	if (!concerns(fds, n))
		return REAL(poll, fds, n, timeout);
	return wait_poll(fds, n, timeout < 0 ? NULL : &ts, NULL);
}

EXPORT int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	if (san_sock_wait_is_bad_time(timeout) || !concerns(fds, n))
		return REAL(ppoll, fds, n, timeout, mask);
	return wait_poll(fds, n, timeout, mask);
}

EXPORT_CHK(int, poll, (struct pollfd * fds, nfds_t n, int timeout, size_t room),
	   n > room / sizeof(*fds), poll(fds, n, timeout))
EXPORT_CHK(int, ppoll,
	   (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
	    size_t room),
	   n > room / sizeof(*fds), ppoll(fds, n, timeout, mask))

/* ---- select, by poll ---- */

static bool
sock_wait_fd_is_in(int fd, const fd_set *set)
{
	return set != NULL && FD_ISSET(fd, set);
}

/* Bytes of a set that the kernel would read and write. */
static bool
is_bad_set(int n, const fd_set *set)
{
	size_t bits = n < FD_SETSIZE ? (size_t)n : FD_SETSIZE;
	size_t words = (bits + NFDBITS - 1) / NFDBITS;

	return set != NULL && san_sock_touch_is_bad_out(set, words * sizeof(fd_mask));
}

static int
concerns_sets(int n, const fd_set *in, const fd_set *out, const fd_set *except)
{
	int fd, found = 0;

	/* the kernel returns the error for invalid sets */
	if (san_sock_conf_is_idle() || n <= 0 || is_bad_set(n, in) || is_bad_set(n, out) ||
	    is_bad_set(n, except))
		return 0;
	for (fd = 0; fd < n && fd < FD_SETSIZE; fd++)
		if (sock_wait_fd_is_in(fd, in) || sock_wait_fd_is_in(fd, out) ||
		    sock_wait_fd_is_in(fd, except))
			found |= concerns_fd(fd);
	return found;
}

static nfds_t
to_poll(int n, const fd_set *in, const fd_set *out, const fd_set *except, struct pollfd *fds)
{
	nfds_t nb = 0;
	short events;
	int fd;

	for (fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
		events = (short)((sock_wait_fd_is_in(fd, in) ? POLLIN : 0) |
				 (sock_wait_fd_is_in(fd, out) ? POLLOUT : 0) |
				 (sock_wait_fd_is_in(fd, except) ? POLLPRI : 0));
		if (events != 0)
			fds[nb++] = (struct pollfd){.fd = fd, .events = events};
	}
	return nb;
}

static int
sock_wait_mark_fd(fd_set *set, int fd, bool is)
{
	if (!sock_wait_fd_is_in(fd, set))
		return 0;
	if (!is)
		FD_CLR(fd, set);
	return is;
}

/* Convert the events of poll() to the sets of select(). */
static int
mark_all(const struct pollfd *fds, nfds_t nb, fd_set *in, fd_set *out, fd_set *except)
{
	int rc = 0;
	nfds_t i;

	for (i = 0; i < nb; i++)
		if ((fds[i].revents & POLLNVAL) != 0)
			return san_sock_real_fail(EBADF);
	for (i = 0; i < nb; i++) {
		short is = fds[i].revents;

		rc += sock_wait_mark_fd(in, fds[i].fd, (is & (POLLIN | POLLHUP | POLLERR)) != 0);
		rc += sock_wait_mark_fd(out, fds[i].fd, (is & (POLLOUT | POLLERR)) != 0);
		rc += sock_wait_mark_fd(except, fds[i].fd, (is & POLLPRI) != 0);
	}
	return rc;
}

/* pselect(2) with carried sockets. */
static int
wait_select(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
	    const sigset_t *mask)
{
	POOLED struct sock_room room = {NULL, 0};
	struct pollfd few[FEW], *fds = few;
	nfds_t nb;
	int rc;

	if (n > FEW) {
		n = n < FD_SETSIZE ? n : FD_SETSIZE;
		room = san_sock_room_take((size_t)n * sizeof(*fds));
		fds = room.mem;
	}
	if (fds == NULL)
		return -1;
	nb = to_poll(n, in, out, except, fds);
	rc = wait_poll(fds, nb, timeout, mask);
	return rc < 0 ? rc : mark_all(fds, nb, in, out, except);
}

EXPORT int
select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	int64_t until_ns;
	struct timespec ts;
	bool is_bad = timeout != NULL &&
		(san_sock_touch_is_bad(timeout, sizeof(*timeout)) || timeout->tv_sec < 0 ||
		 timeout->tv_usec < 0);
	int rc;

	if (is_bad || !concerns_sets(n, in, out, except))
		return REAL(select, n, in, out, except, timeout);
	if (timeout == NULL)
		return wait_select(n, in, out, except, NULL, NULL);
	TIMEVAL_TO_TIMESPEC(timeout, &ts);
	until_ns = san_sock_time_until(&ts);
	rc = wait_select(n, in, out, except, &ts, NULL);
	if (san_sock_touch_is_bad_out(timeout, sizeof(*timeout)))
		return rc;
	ts = san_sock_time_left(until_ns); /* as Linux does */
	TIMESPEC_TO_TIMEVAL(timeout, &ts);
	return rc;
}

EXPORT int
pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
	const sigset_t *mask)
{
	if (san_sock_wait_is_bad_time(timeout) || !concerns_sets(n, in, out, except))
		return REAL(pselect, n, in, out, except, timeout, mask);
	return wait_select(n, in, out, except, timeout, mask);
}
