/* SPDX-License-Identifier: BSD-3-Clause */

#include <limits.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "sock_priv.h"

#define PAIR_STEPS    10000 /* 1 s */
#define ASIDE_STEP_NS 100000
#define BYTE_TRIES    20 /* of some 100 ns each, until a byte that is being written arrives */

#define CHECK_NS       1000000000 /* the descriptor is checked that often */
#define EMPTY_NOTIFIED 4          /* and at these reads without data while waiters are armed */

/* ---- locks ---- */

/*
 * If the owner of the lock died, it left the ring between two steps, which is a valid state. It may
 * have read the mirror's byte without clearing *mirrored*. Clear it, so that the lcore may write
 * another byte. If that owner is alive after all, its step fails, because the ring has changed.
 */
bool
san_sock_ring_lock_rx(struct fd_sock *f, uint32_t *key)
{
	int rc = san_sock_lock(&f->shm->rx_lock, true, key);

	if (rc == SOCK_LOCK_TAKEN) {
		atomic_store(&f->shm->mirrored, 0);
		san_sock_attach_doorbell(f);
	}
	return rc >= 0; /* < 0: a signal handler has interrupted this thread's own call */
}

/* ---- waiting ---- */

int
san_sock_ring_take_error(struct fd_sock *f)
{
	f->nb_errors++;
	return (int)atomic_exchange(&f->shm->error, 0);
}

/* The daemon has ended, which resets a stream unless its end was received. */
static void
sock_ring_daemon_lost(struct san_sock_shm *shm)
{
	if (atomic_exchange(&shm->orphaned, 1) == 0 && shm->type == SOCK_STREAM)
		atomic_store(&shm->error, ECONNRESET);
}

/* The pair's other end is closed: the stream or the daemon has ended. */
static void
sock_ring_pair_closed(int fd, struct san_sock_shm *shm)
{
	struct pollfd p = {.fd = fd};

	if (atomic_load(&shm->fin) != 0)
		return;
	/* after our shutdown() the stream has ended for reading, but may still send */
	if ((atomic_load(&shm->shut) & (SHUT_RD + 1)) == 0 ||
	    (REAL(poll, &p, 1, 0) > 0 && (p.revents & POLLHUP) != 0))
		sock_ring_daemon_lost(shm);
}

bool
san_sock_ring_is_deserted(int fd, struct fd_sock *f)
{
	bool is_notified = atomic_load_explicit(&f->shm->armed, memory_order_relaxed) != 0;
	int64_t now_ns = san_sock_time_ns(CLOCK_MONOTONIC_COARSE);
	long n;

	if ((!is_notified || ++f->nb_empty % EMPTY_NOTIFIED != 0) &&
	    now_ns - atomic_load_explicit(&f->checked_ns, memory_order_relaxed) < CHECK_NS)
		return false;
	atomic_store_explicit(&f->checked_ns, now_ns, memory_order_relaxed);
	fd = san_sock_fd_number(fd, f);
	n = san_sock_box_recv(fd, true);
	if (n == 0)
		sock_ring_pair_closed(fd, f->shm);
	else if (n > 0) /* the byte arrived after its data had been read */
		san_sock_ring_settle(fd, f, true);
	return n == 0;
}

void
san_sock_ring_learn(struct san_spin *s, int64_t began_ns, bool is_over)
{
	int64_t took_ns = san_sock_time_ns(CLOCK_MONOTONIC) - began_ns;

	san_spin_learn(s, is_over ? (uint64_t)took_ns : UINT64_MAX,
		       san_sock_conf()->spin_us * 1000);
}

/* Poll for data or for room, at most for the time in *s*. */
static bool
sock_ring_spin(const struct fd_sock *f, const struct san_spin *s, bool to_send, int64_t began_ns)
{
	if (san_sock_box_is_closed())
		return false; /* it may not be allowed to yield */
	do {
		if (to_send ? san_sock_shm_has_room(f->shm, f->tx_bytes) :
			      san_sock_ring_has_something(f->shm))
			return true;
		if (san_sock_attach_yields())
			sched_yield();
	} while (san_sock_time_ns(CLOCK_MONOTONIC) < began_ns + san_spin_ns(s));
	return false;
}

static void
sock_ring_disarm(_Atomic uint32_t **armed)
{
	atomic_fetch_sub(*armed, 1);
}

/* A confined program reads the mirror's byte. If others wait, too, they get another one. */
static void
sock_ring_byte_was_read(struct fd_sock *f)
{
	uint32_t key;

	if (!san_sock_ring_lock_rx(f, &key))
		return;
	atomic_store(&f->shm->mirrored, SAN_SOCK_UNNOTIFIED);
	san_sock_lock_unlock(&f->shm->rx_lock, key);
	if (atomic_load(&f->shm->armed) != 0)
		san_sock_attach_doorbell(f);
}

/*
 * Sleep in a blocking read of the armed descriptor. The kernel then applies SO_RCVTIMEO, signals,
 * SA_RESTART and cancellation as in recv(). 2: there is something beyond *seen*; 1: a byte came,
 * which is taken if *takes*; 0: the pair is closed; or -errno.
 */
static int
sleep_armed(int fd, struct fd_sock *f, uint32_t seen, bool takes)
{
	/* it is disarmed also if the thread is cancelled */
	__attribute__((cleanup(sock_ring_disarm))) _Atomic uint32_t *armed = &f->shm->armed;
	char byte;
	long n;

	/* pairs with the fence of san_sock_mirror() (AFC-19) */
	atomic_thread_fence(memory_order_seq_cst);
	if (san_sock_ring_has_more(f->shm, seen))
		return 2;
	fd = san_sock_fd_number(fd, f);
	n = takes ? REAL(read, fd, &byte, 1) : REAL(recv, fd, &byte, 1, MSG_PEEK);
	if (n == 0)
		sock_ring_pair_closed(fd, f->shm);
	return n < 0 ? -errno : (int)n;
}

int
san_sock_ring_wait_something(int fd, struct fd_sock *f)
{
	int64_t began_ns = san_sock_time_ns(CLOCK_MONOTONIC);
	bool is_confined = san_sock_box_is_closed();
	int rc;

	if (sock_ring_spin(f, &f->rx_spin, false, began_ns)) {
		san_sock_ring_learn(&f->rx_spin, began_ns, true);
		return 0;
	}
	atomic_fetch_add(&f->shm->armed, 1);
	rc = sleep_armed(fd, f, 0, is_confined);
	san_sock_ring_learn(&f->rx_spin, began_ns, rc >= 0);
	if (rc == 1 && is_confined)
		sock_ring_byte_was_read(f);
	else if (rc > 0 && !san_sock_ring_has_something(f->shm))
		/* the data has been read, or the byte arrived late */
		san_sock_ring_settle(fd, f, true);
	return rc < 0 ? -rc : 0;
}

/* Send the message of a waiter for room, with *len* bytes. 0 or errno. */
static int
send_mark(int fd, struct fd_sock *f, size_t len, int flags)
{
	static const uint8_t full[SAN_SOCK_FULL] = SAN_SOCK_MARK;
	ssize_t n;

	fd = san_sock_fd_number(fd, f);
	if ((flags & MSG_DONTWAIT) != 0) /* locks may be held: no cancellation point */
		n = san_sock_box_send(fd, full, len);
	else
		n = san_sock_box_is_closed() ? REAL(write, fd, full, len) :
					       REAL(send, fd, full, len, MSG_NOSIGNAL);
	if (n >= 0)
		return 0;
	if (errno != EPIPE && errno != ECONNRESET)
		return errno;
	sock_ring_daemon_lost(f->shm);
	return ENETDOWN;
}

/*
 * There is no room: fill the pair, so that the kernel does not report it writable (see sock_shm.h).
 * 0 or errno.
 */
static int
sock_ring_fill_pair(int fd, struct fd_sock *f)
{
	int err;

	atomic_store(&f->shm->full, 1);
	san_sock_attach_doorbell(f); /* for a program that was killed before its doorbell */
	err = send_mark(fd, f, SAN_SOCK_FULL, MSG_DONTWAIT);
	return err == EAGAIN ? 0 : err; /* the pair is full already */
}

int
san_sock_ring_wait_room(int fd, struct fd_sock *f, int flags)
{
	bool waits = (flags & MSG_DONTWAIT) == 0 && atomic_load(&f->shm->nonblock) == 0;
	int64_t began_ns = waits ? san_sock_time_ns(CLOCK_MONOTONIC) : 0;
	int err;

	if (waits && sock_ring_spin(f, &f->tx_spin, true, began_ns)) {
		san_sock_ring_learn(&f->tx_spin, began_ns, true);
		return 0;
	}
	f->nb_refused++;
	err = sock_ring_fill_pair(fd, f);
	if (err != 0 || !waits)
		return err != 0 ? err : EAGAIN;
	/* the kernel applies SO_SNDTIMEO, signals and cancellation to this sleep */
	err = send_mark(fd, f, SAN_SOCK_NUDGE, 0);
	san_sock_ring_learn(&f->tx_spin, began_ns, err == 0);
	return err;
}

void
san_sock_ring_note_filled(int fd, struct fd_sock *f)
{
	struct san_sock_shm *shm = f->shm;

	if (atomic_load_explicit(&shm->armed, memory_order_relaxed) != 0 &&
	    atomic_load(&shm->tx_tail) - atomic_load(&shm->tx_head) == f->tx_bytes)
		san_sock_ring_is_writable(fd, f);
}

bool
san_sock_ring_is_writable(int fd, struct fd_sock *f)
{
	KEEP_ERRNO;

	if (san_sock_shm_has_room(f->shm, f->tx_bytes))
		return true;
	sock_ring_fill_pair(fd, f); /* then the kernel does not report it writable */
	return false;
}

/* A waiter's mark may stay in the pair for longer. */
void
san_sock_ring_wait_pair(int fd, const struct fd_sock *f)
{
	const struct timespec step = {.tv_nsec = ASIDE_STEP_NS};
	int tries, left = 0;

	if (san_sock_box_is_closed())
		return; /* it may not be allowed to ask, and uses the library alone */
	for (tries = 0; tries < PAIR_STEPS && atomic_load(&f->shm->full) == 0; tries++) {
		if (REAL(ioctl, fd, SIOCOUTQ, &left) != 0 || left == 0)
			return;
		nanosleep(&step, NULL);
	}
}

/*
 * Read the mirror's bytes, not by recv(): it would be a cancellation point, and the thread holds a
 * lock. san_sock_ring_settle() reads a byte that arrives later.
 */
static void
sock_ring_take_wakeup(int fd, struct fd_sock *f)
{
	struct san_sock_shm *shm = f->shm;
	uint32_t nb = 0, tries;
	long n = -1;

	fd = san_sock_fd_number(fd, f);
	/* the first byte may be on its way */
	for (tries = 0; tries < BYTE_TRIES && nb == 0 && n != 0; tries++)
		do {
			n = san_sock_box_recv(fd, false);
			nb += n > 0;
			/* without edges there is only one */
		} while (n > 0 && atomic_load_explicit(&shm->edges, memory_order_relaxed) != 0);
	if (n == 0)
		sock_ring_pair_closed(fd, shm);
}

/*
 * The mirror's byte was for data that has arrived before. Withdraw it first, so that each new burst
 * brings another byte.
 */
int
san_sock_ring_wait_more(int fd, struct fd_sock *f, uint32_t seen)
{
	uint32_t key;
	int rc;

	atomic_store(&f->shm->edges, 1);
	atomic_fetch_add(&f->shm->armed, 1);
	if (san_sock_ring_lock_rx(f, &key)) {
		sock_ring_take_wakeup(fd, f);
		atomic_store(&f->shm->mirrored, SAN_SOCK_UNNOTIFIED);
		san_sock_lock_unlock(&f->shm->rx_lock, key);
	}
	rc = sleep_armed(fd, f, seen, false);
	return rc < 0 ? -rc : 0;
}

void
san_sock_ring_unmirror(int fd, struct fd_sock *f)
{
	struct san_sock_shm *shm = f->shm;
	uint32_t state = SAN_SOCK_TO_NOTIFY;

	if (atomic_load_explicit(&shm->mirrored, memory_order_relaxed) == SAN_SOCK_UNNOTIFIED ||
	    san_sock_ring_has_something(shm))
		return;
	if (!atomic_compare_exchange_strong(&shm->mirrored, &state, SAN_SOCK_UNNOTIFIED)) {
		sock_ring_take_wakeup(fd, f);
		atomic_store(&shm->mirrored, SAN_SOCK_UNNOTIFIED);
	}
	atomic_thread_fence(memory_order_seq_cst);
	if (san_sock_ring_has_something(shm))
		san_sock_attach_doorbell(f);
}

void
san_sock_ring_settle(int fd, struct fd_sock *f, bool is_notified)
{
	uint32_t key;

	if (atomic_load_explicit(&f->shm->mirrored, memory_order_relaxed) == 0 && !is_notified)
		return;
	if (!san_sock_ring_lock_rx(f, &key))
		return;
	/* the byte of an edge arrived after its data was read */
	if (is_notified && atomic_load(&f->shm->mirrored) == SAN_SOCK_UNNOTIFIED &&
	    !san_sock_ring_has_something(f->shm))
		sock_ring_take_wakeup(fd, f);
	san_sock_ring_unmirror(fd, f);
	san_sock_lock_unlock(&f->shm->rx_lock, key);
}

void
san_sock_ring_arm(struct fd_sock *f, uint32_t events, bool is_new)
{
	struct san_sock_shm *shm = f->shm;

	if ((events & EPOLLET) != 0)
		atomic_store(&shm->edges, 1);
	if (is_new || atomic_load(&shm->armed) == 0) {
		/* a byte of an earlier wait would be reported for ever */
		san_sock_ring_settle(san_sock_fd_next(f, 0), f, true);
		atomic_fetch_add(&shm->armed, 1);
	}
	/* pairs with the fence of san_sock_mirror() (AFC-19) */
	atomic_thread_fence(memory_order_seq_cst);
	if (san_sock_ring_has_something(shm))
		san_sock_attach_doorbell(f);
}

/* ---- buffers ---- */

ssize_t
san_sock_ring_length(const struct msghdr *msg)
{
	size_t i, sum = 0;

	if (msg->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	if (san_sock_touch_is_bad(msg->msg_iov, msg->msg_iovlen * sizeof(*msg->msg_iov)))
		return -EFAULT;
	for (i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len > SSIZE_MAX - sum)
			return -EINVAL;
		sum += msg->msg_iov[i].iov_len;
	}
	return (ssize_t)sum;
}

size_t
san_sock_ring_copy(const struct msghdr *msg, size_t skip, void *mem, size_t len, bool sends)
{
	size_t i, n, at = 0;
	uint8_t *part;

	for (i = 0; i < msg->msg_iovlen && at < len; i++) {
		const struct iovec *v = &msg->msg_iov[i];

		if (skip >= v->iov_len) {
			skip -= v->iov_len;
			continue;
		}
		part = (uint8_t *)v->iov_base + skip;
		n = v->iov_len - skip < len - at ? v->iov_len - skip : len - at;
		if (sends ? san_sock_touch_is_bad(part, n) : san_sock_touch_is_bad_out(part, n))
			break;
		if (sends)
			memcpy((uint8_t *)mem + at, part, n);
		else
			memcpy(part, (uint8_t *)mem + at, n);
		at += n;
		skip = 0;
	}
	return at;
}
