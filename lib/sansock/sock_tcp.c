/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>

#include "sock_priv.h"

#define CONNECTION     "a connection is the kernel's"
#define HISTORY        64
#define SHORT_MAX      4
#define LISTENER       "a listener stays with the kernel alone"
#define LINGER_STEPS_S 1000 /* checks per second */
#define LINGER_STEP_NS (1000000000 / LINGER_STEPS_S)
#define LAST_STEPS     20 /* until the daemon has seen whether it was the last descriptor */

/* ---- to send ---- */

/* Copy *len* bytes behind byte *skip* of *msg* to *at* in *ring*, or from there. 0 or -EFAULT. */
static int
tcp_copy(uint8_t *ring, uint32_t size, uint32_t at, const struct msghdr *msg, size_t skip,
	 uint32_t len, bool sends)
{
	uint32_t off = at & (size - 1), first = len < size - off ? len : size - off;
	size_t done = san_sock_ring_copy(msg, skip, ring + off, first, sends);

	if (done == first)
		done += san_sock_ring_copy(msg, skip + first, ring, len - first, sends);
	return done == len ? 0 : -EFAULT;
}

/* Copy as much as there is room for. 0: no room; -EFAULT; -EDEADLK: see san_sock_lock(). */
static ssize_t
sock_tcp_put_bytes(struct fd_sock *f, const struct msghdr *msg, size_t skip, size_t left)
{
	struct san_sock_shm *shm = f->shm;
	uint32_t tail, used, len, key;
	ssize_t rc = 0;

	if (san_sock_lock(&shm->tx_lock, false, &key) < 0)
		return -EDEADLK;
	tail = atomic_load_explicit(&shm->tx_tail, memory_order_relaxed);
	/* pairs with the release of the lcore: the place is free */
	used = tail - atomic_load_explicit(&shm->tx_head, memory_order_acquire);
	if (used < f->tx_bytes) {
		len = f->tx_bytes - used < left ? f->tx_bytes - used : (uint32_t)left;
		rc = tcp_copy(san_sock_shm_tx_ring(shm, f->rx_bytes), f->tx_bytes, tail, msg, skip,
			      len, true);
		if (rc == 0 && san_sock_ring_publish(&shm->tx_tail, tail, tail + len))
			rc = len;
	}
	san_sock_lock_unlock(&shm->tx_lock, key);
	return rc;
}

/* 0: go on; or errno. The error stays if bytes are *done*, which the call returns instead. */
static int
sock_tcp_check_send(struct fd_sock *f, ssize_t done)
{
	struct san_sock_shm *shm = f->shm;
	int err = 0;

	if (atomic_load_explicit(&shm->error, memory_order_relaxed) != 0)
		err = done != 0 ? EPIPE : san_sock_ring_take_error(f);
	/* an accepted stream may be connected a little later */
	if (err == 0 &&
	    (atomic_load_explicit(&shm->orphaned, memory_order_relaxed) != 0 ||
	     atomic_load_explicit(&shm->state, memory_order_relaxed) > SAN_SOCK_UP ||
	     (atomic_load_explicit(&shm->shut, memory_order_relaxed) & (SHUT_WR + 1)) != 0))
		err = EPIPE;
	return err;
}

/* Check flags and control messages: a stream carries none of them. 0 or errno. */
static int
check_message(const struct msghdr *msg, int flags)
{
	struct msghdr copy = *msg; /* the macros take a pointer to a mutable one */
	struct cmsghdr *c;

	if ((flags & MSG_OOB) != 0)
		return EOPNOTSUPP;
	if ((flags & MSG_FASTOPEN) != 0)
		return EISCONN;
	if (msg->msg_controllen == 0)
		return 0;
	if (san_sock_touch_is_bad(msg->msg_control, msg->msg_controllen))
		return EFAULT;
	for (c = CMSG_FIRSTHDR(&copy); c != NULL; c = CMSG_NXTHDR(&copy, c))
		if (san_sock_ring_is_cmsg_bad(&copy, c) ||
		    (c->cmsg_level == SOL_SOCKET && c->cmsg_type != SCM_RIGHTS &&
		     c->cmsg_type != SCM_CREDENTIALS))
			return EINVAL;
	return 0;
}

ssize_t
san_sock_tcp_send(int fd, struct fd_sock *f, const struct msghdr *msg, int flags)
{
	ssize_t len = san_sock_ring_length(msg), done = 0, n;
	int err = 0;

	if (len < 0)
		return san_sock_real_fail((int)-len);
	err = check_message(msg, flags);
	if (err != 0)
		return san_sock_real_fail(err);
	if (f->is_stdio)
		san_sock_ring_wait_pair(fd, f);
	if (san_sock_tcp_unsent(f) != 0)
		san_sock_ring_is_deserted(fd, f); /* a live lcore takes what is there */
	while ((done < len || len == 0) && (err = sock_tcp_check_send(f, done)) == 0 && len != 0) {
		n = sock_tcp_put_bytes(f, msg, (size_t)done, (size_t)(len - done));
		if (n > 0) {
			done += n;
			san_sock_attach_doorbell(f);
			continue;
		}
		err = n == -EFAULT ? EFAULT : n < 0 ? EAGAIN :
						      san_sock_ring_wait_room(fd, f, flags);
		if (err == ENETDOWN) /* the end of the daemon resets a stream */
			err = sock_tcp_check_send(f, done);
		if (err != 0)
			break;
	}
	if (done > 0 && err == 0)
		san_sock_ring_note_filled(fd, f);
	if (done > 0 || err == 0)
		return done;
	if (err == EPIPE && (flags & MSG_NOSIGNAL) == 0)
		pthread_kill(pthread_self(), SIGPIPE);
	return san_sock_real_fail(err);
}

/* ---- to receive ---- */

/* Take what is there, under the lock. 0: nothing; -EFAULT. */
static ssize_t
sock_tcp_take_locked(struct fd_sock *f, const struct msghdr *msg, size_t skip, size_t left,
		     int flags)
{
	struct san_sock_shm *shm = f->shm;
	uint32_t head = atomic_load_explicit(&shm->rx_head, memory_order_relaxed);
	/* pairs with the release of the lcore */
	uint32_t n = atomic_load_explicit(&shm->rx_tail, memory_order_acquire) - head;

	n = n < f->rx_bytes ? n : f->rx_bytes;
	n = n < left ? n : (uint32_t)left;
	if ((flags & MSG_TRUNC) == 0 &&
	    tcp_copy(san_sock_shm_rx_ring(shm), f->rx_bytes, head, msg, skip, n, false) != 0)
		return -EFAULT;
	if (n == 0 || (flags & MSG_PEEK) != 0)
		return n;
	if (!san_sock_ring_publish(&shm->rx_head, head, head + n))
		return 0;
	/* pairs with the lcore's fence before it waits for room */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&f->shm->rx_waits, memory_order_relaxed) != 0)
		san_sock_attach_doorbell(f);
	return n;
}

/* Returns bytes, 0 at the end, -EAGAIN, or -errno. */
static ssize_t
sock_tcp_take_bytes(int fd, struct fd_sock *f, const struct msghdr *msg, size_t skip, size_t left,
		    int flags)
{
	struct san_sock_shm *shm = f->shm;
	uint32_t key;
	bool ended;
	int err = 0;
	ssize_t n;

	if (!san_sock_ring_has_something(shm) &&
	    atomic_load_explicit(&shm->mirrored, memory_order_relaxed) == 0 &&
	    !san_sock_ring_is_deserted(fd, f))
		return -EAGAIN;
	if (!san_sock_ring_lock_rx(f, &key))
		return -EDEADLK;
	/* read before the tail: nothing comes behind it */
	ended = atomic_load_explicit(&shm->fin, memory_order_acquire) != 0 ||
		(atomic_load(&shm->shut) & (SHUT_RD + 1)) != 0;
	n = sock_tcp_take_locked(f, msg, skip, left, flags);
	/* a reset behind the peer's end leaves EPIPE to senders and SO_ERROR */
	if (n == 0 && left != 0 && skip == 0 && atomic_load(&shm->error) != 0 &&
	    atomic_load(&shm->error) != EPIPE)
		err = san_sock_ring_take_error(f);
	san_sock_ring_unmirror(fd, f);
	san_sock_lock_unlock(&f->shm->rx_lock, key);
	if (n != 0 || left == 0)
		return n;
	if (err != 0)
		return -err;
	/* if this call returns bytes, the next one returns the error */
	if (skip != 0 && atomic_load(&shm->error) != 0)
		return 0;
	return ended || atomic_load(&shm->orphaned) != 0 ? 0 : -EAGAIN;
}

/* Wait until *len* bytes can be peeked at, or recv() would return with less. */
static void
wait_to_peek(int fd, struct fd_sock *f, size_t len)
{
	/* the lcore posts no receive for the last quarter until the program reads */
	uint32_t most = f->rx_bytes - f->rx_bytes / 4, seen;
	uint32_t nb = len < most ? (uint32_t)len : most;

	while ((seen = (uint32_t)san_sock_tcp_unread(f)) < nb &&
	       !san_sock_ring_has_more(f->shm, UINT32_MAX) &&
	       san_sock_ring_wait_more(fd, f, seen) == 0)
		;
	san_sock_attach_doorbell(f);
}

ssize_t
san_sock_tcp_recv(int fd, struct fd_sock *f, struct msghdr *msg, int flags)
{
	bool waits = (flags & MSG_DONTWAIT) == 0 && atomic_load(&f->shm->nonblock) == 0;
	bool all = (flags & MSG_WAITALL) != 0, peeks = (flags & MSG_PEEK) != 0;
	ssize_t len = san_sock_ring_length(msg), done = 0, n;
	int err = 0;

	if (len < 0)
		return san_sock_real_fail((int)-len);
	if ((flags & MSG_ERRQUEUE) != 0)
		return san_sock_real_fail(EAGAIN);
	if ((flags & MSG_OOB) != 0)
		return san_sock_real_fail(EINVAL);
	msg->msg_flags = 0;
	msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	while (err == 0) {
		n = sock_tcp_take_bytes(fd, f, msg, (size_t)done, (size_t)(len - done), flags);
		if (n == 0)
			break;
		if (n > 0) {
			if (all && peeks && waits && n < len) {
				wait_to_peek(fd, f, (size_t)len);
				n = sock_tcp_take_bytes(fd, f, msg, 0, (size_t)len, flags);
			}
			done += n > 0 ? n : 0;
			if (!all || peeks || done == len)
				break;
		} else if (n != -EAGAIN || !waits) {
			/* the interrupted call has the lock, and its bytes */
			err = n == -EDEADLK ? EAGAIN : (int)-n;
		} else {
			err = san_sock_ring_wait_something(fd, f);
		}
	}
	return done > 0 || err == 0 ? done : san_sock_real_fail(err);
}

/* ---- state ---- */

int
san_sock_tcp_shutdown(int fd, struct fd_sock *f, int how)
{
	if (atomic_load(&f->shm->state) > SAN_SOCK_UP)
		return san_sock_real_fail(ENOTCONN);
	if (how != SHUT_WR)
		atomic_fetch_or(&f->shm->shut, SHUT_RD + 1);
	if (how != SHUT_RD)
		san_sock_ring_wait_pair(fd, f);
	atomic_fetch_or(&f->shm->shut, (uint32_t)how + 1);
	san_sock_attach_doorbell(f);
	return 0;
}

/* A daemon sets *closing* when the last descriptor is closed; it has LAST_STEPS for that. */
void
san_sock_tcp_linger(struct fd_sock *f)
{
	uint64_t steps = atomic_load(&f->shm->linger), step;
	const struct timespec ts = {.tv_nsec = LINGER_STEP_NS};

	if (steps <= 1) /* 0: no SO_LINGER; 1: no time */
		return;
	steps = (steps - 1) * LINGER_STEPS_S;
	for (step = 0; step < steps && san_sock_tcp_unsent(f) != 0 &&
	     atomic_load(&f->shm->orphaned) == 0 &&
	     (step < LAST_STEPS || atomic_load(&f->shm->closing) != 0);
	     step++)
		nanosleep(&ts, NULL);
}

int
san_sock_tcp_state(const struct fd_sock *f)
{
	const struct san_sock_shm *shm = f->shm;
	uint32_t state = atomic_load(&shm->state);
	bool ended = atomic_load(&shm->fin) != 0;
	bool shut = (atomic_load(&shm->shut) & (SHUT_WR + 1)) != 0;

	if (state == SAN_SOCK_CONNECTING)
		return TCP_SYN_SENT;
	if (state > SAN_SOCK_UP || atomic_load(&shm->orphaned) != 0)
		return TCP_CLOSE;
	if (ended && shut)
		return san_sock_tcp_unsent(f) != 0 ? TCP_LAST_ACK : TCP_CLOSE;
	if (ended)
		return TCP_CLOSE_WAIT;
	if (shut)
		return san_sock_tcp_unsent(f) != 0 ? TCP_FIN_WAIT1 : TCP_FIN_WAIT2;
	return TCP_ESTABLISHED;
}

/* Also when it is not connected any more. */
static int
tcp_name_of(const struct fd_sock *f, bool peer, struct sockaddr *sa, socklen_t *len)
{
	const struct san_sock_addr *a = peer ? &f->shm->peer : &f->shm->local;
	struct sockaddr_storage ss;
	socklen_t bytes = san_sock_route_name(f->domain, a->ip, a->port, &ss), some;

	if (san_sock_touch_is_bad_out(len, sizeof(*len)))
		return san_sock_real_fail(EFAULT);
	if ((int)*len < 0)
		return san_sock_real_fail(EINVAL);
	some = bytes < *len ? bytes : *len;
	if (san_sock_touch_is_bad_out(sa, some))
		return san_sock_real_fail(EFAULT);
	memcpy(sa, &ss, some);
	*len = bytes;
	return 0;
}

int
san_sock_tcp_name(const struct fd_sock *f, bool peer, struct sockaddr *sa, socklen_t *len)
{
	if (peer && san_sock_tcp_state(f) == TCP_CLOSE)
		return san_sock_real_fail(ENOTCONN);
	return tcp_name_of(f, peer, sa, len);
}

int
san_sock_tcp_unread(const struct fd_sock *f)
{
	return (int)(atomic_load(&f->shm->rx_tail) - atomic_load(&f->shm->rx_head));
}

int
san_sock_tcp_unsent(const struct fd_sock *f)
{
	return (int)(atomic_load(&f->shm->tx_tail) - atomic_load(&f->shm->tx_head));
}

/* ---- short connections ---- */

/*
 * To set up a carried connection takes some ms, which one with few calls does not regain. So
 * addresses to which this process made SHORT_MAX such connections in a row get further ones of the
 * kernel, until one has more calls. (UDP-13)
 */
static struct {
	_Atomic uint64_t to; /* hash of address and port */
	_Atomic uint32_t nb_short;
} history[HISTORY];

/* True if the kernel should have the connection of *f* to there. */
static bool
is_short(struct fd_sock *f, const uint8_t ip[16], uint16_t service)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t w[2], to;
	uint32_t at;

	memcpy(w, ip, sizeof(w));
	to = ((w[0] * odd ^ w[1]) * odd ^ service) * odd;
	at = (uint32_t)(to >> 32) % HISTORY;
	f->place = at + 1;
	f->nb_calls = 0;
	if (atomic_exchange(&history[at].to, to) != to)
		atomic_store(&history[at].nb_short, 0);
	return atomic_load(&history[at].nb_short) >= SHORT_MAX;
}

void
san_sock_tcp_closed(const struct fd_sock *f)
{
	if (f->place == 0 || san_sock_fd_next(f, 0) >= 0)
		return;
	if (f->nb_calls >= san_sock_conf()->short_calls)
		atomic_store(&history[f->place - 1].nb_short, 0);
	else if (!atomic_load(&f->carried) || f->shm->if_index != 0) /* the kernel can have it */
		atomic_fetch_add(&history[f->place - 1].nb_short, 1);
}

/* ---- connect ---- */

/* False: not an address that can be carried. */
static bool
read_peer(const struct fd_sock *f, const struct sockaddr *sa, socklen_t len, struct shmq_req *req)
{
	socklen_t need = f->domain == AF_INET ? sizeof(struct sockaddr_in) :
						sizeof(struct sockaddr_in6);

	if (san_sock_touch_is_bad(sa, len) || len < need || sa->sa_family != f->domain)
		return false;
	san_sock_read_name(sa, req->sock.peer, &req->sock.peer_port);
	return true;
}

/* Whether the peer's daemon accepts the stream within the probe time. */
static bool
comes_up(struct fd_sock *f, int shadow)
{
	int64_t wait_ns = san_sock_conf()->probe_ms * NS_PER_MS, left_ns;
	int64_t until_ns = san_sock_time_ns(CLOCK_MONOTONIC) + wait_ns;
	struct pollfd p = {.fd = shadow, .events = POLLIN};
	uint32_t state;

	atomic_fetch_add(&f->shm->armed, 1);
	/* pairs with the fence of san_sock_mirror() (AFC-19) */
	atomic_thread_fence(memory_order_seq_cst);
	while ((state = atomic_load_explicit(&f->shm->state, memory_order_acquire)) ==
		       SAN_SOCK_CONNECTING &&
	       (left_ns = until_ns - san_sock_time_ns(CLOCK_MONOTONIC)) > 0)
		if (REAL(poll, &p, 1, (int)(left_ns / NS_PER_MS) + 1) < 0 && errno != EINTR)
			break;
	atomic_fetch_sub(&f->shm->armed, 1);
	return state == SAN_SOCK_UP;
}

/* Whether the daemon carries TCP and its port reaches *ip*. Otherwise the reason is logged. */
static bool
may_reach(const uint8_t ip[16])
{
	const char *why = san_sock_attach_why_not_reached(ip);
	char text[SHMQ_TEXT + INET6_ADDRSTRLEN], name[INET6_ADDRSTRLEN];
	bool is_v4 = san_sock_is_v4(ip);

	if (why == NULL && san_sock_attach_carries_tcp())
		return true;
	if (why == NULL) {
		why = SHMQ_NO_TCP;
	} else if (san_sock_attach() == 0) {
		inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? ip + 12 : ip, name, sizeof(name));
		snprintf(text, sizeof(text), "%s %s", name, why);
		why = text;
	}
	san_sock_conf_info(CONNECTION, why);
	return false;
}

int
san_sock_tcp_connect(int fd, struct fd_sock *f, const struct sockaddr *sa, socklen_t len)
{
	struct shmq_req req = {0};
	struct sockaddr_storage local;
	struct sock_change change;
	struct shmq_rep rep;
	int shadow, rc;
	bool up;
	KEEP_ERRNO;

	if (san_sock_box_is_closed() || !read_peer(f, sa, len, &req) ||
	    san_sock_carry_how(fd, f, san_sock_carry_bound_to(fd, &local), sa) == SOCK_KERNEL ||
	    !may_reach(req.sock.peer) || is_short(f, req.sock.peer, req.sock.peer_port) ||
	    !san_sock_hooks_connect(f, sa, len))
		return -EINPROGRESS;
	rc = san_sock_attach_ask(SHMQ_SOCK_CONNECT, fd, &req, &rep, &shadow);
	if (rc != 0) {
		san_sock_conf_info(CONNECTION, rep.text);
		return rc == -EALREADY ? -EADDRNOTAVAIL : -EINPROGRESS;
	}
	rc = san_sock_carry_map(f, shadow);
	up = rc == 0 && comes_up(f, shadow) && san_sock_owner_change_begin(&change, f);
	if (up) {
		san_sock_carry_replace(f, shadow);
		san_sock_owner_change_end(&change);
	} else if (rc == 0) {
		san_sock_conf_info(CONNECTION,
				   "no carried listener there, or no daemon at the peer");
		REAL(munmap, f->shm, f->bytes);
		f->shm = NULL;
	}
	REAL(close, shadow);
	return up ? 0 : -EINPROGRESS;
}

/* ---- listen ---- */

void
san_sock_tcp_listen(int fd, struct fd_sock *f)
{
	struct sockaddr_storage local;
	struct shmq_rep rep;
	int lease, rc, i;
	KEEP_ERRNO;

	if (san_sock_box_is_closed() || atomic_load(&f->lease) >= 0 ||
	    san_sock_carry_how(fd, f, san_sock_carry_bound_to(fd, &local), NULL) == SOCK_KERNEL)
		return;
	rc = san_sock_attach_ask(SHMQ_SOCK_LISTEN, fd, NULL, &rep, &lease);
	if (rc == 0) {
		atomic_store(&f->lease, san_sock_own(lease, &f->lease));
		atomic_store(&f->retry_s, 1);
	} else if (atomic_load(&f->retry_s) != 0 || !san_sock_attach_carries_tcp()) {
		san_sock_conf_info(LISTENER, rep.text);
	} else {
		san_sock_conf_error(LISTENER, rep.text);
	}
	/* while the daemon has its copy open, our close() would not end the kernel's listener */
	for (i = 0; i < SOCK_SETTLE_STEPS && rc == 0 && san_sock_carry_is_ending(SHMQ_SOCK_CLOSED);
	     i++)
		;
}

/* If the daemon that had the listener has ended, offer it to the next one. */
static void
offer_again(int fd, struct fd_sock *f)
{
	int lease = atomic_load(&f->lease);
	char byte;

	if (lease >= 0) {
		if (REAL(syscall, SYS_recvfrom, lease, &byte, 1, MSG_DONTWAIT | MSG_PEEK, NULL,
			 NULL) != 0 ||
		    !atomic_compare_exchange_strong(&f->lease, &lease, -1))
			return;
		san_sock_own_close(lease);
		atomic_store(&f->waits, false);
	}
	san_sock_tcp_listen(fd, f);
}

void
san_sock_tcp_wait(int fd, struct fd_sock *f)
{
	int lease;
	KEEP_ERRNO;

	if (san_sock_box_is_closed())
		return;
	if (atomic_load(&f->is_foreign) && atomic_exchange(&f->is_foreign, false))
		san_sock_tcp_listen(fd, f);
	if (san_sock_carry_is_due(f))
		offer_again(fd, f);
	lease = atomic_load(&f->lease);
	if (lease < 0 || atomic_load(&f->waits))
		return;
	if (san_sock_attach() == 0 && REAL(send, lease, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		atomic_store(&f->waits, true);
}

/* ---- accept ---- */

static bool
is_token(const struct sockaddr_storage *ss)
{
	uint16_t service;
	uint8_t ip[16];
	uint32_t v4;

	san_sock_read_name(ss, ip, &service);
	memcpy(&v4, ip + 12, sizeof(v4));
	return (ss->ss_family == AF_INET || ss->ss_family == AF_INET6) && san_sock_is_v4(ip) &&
		(ntohl(v4) & ~SHMQ_TOKEN_MASK) == SHMQ_TOKEN_NET;
}

void
san_sock_tcp_accepted(int fd, struct sockaddr *sa, socklen_t *len, socklen_t room)
{
	struct sockaddr_storage ss;
	socklen_t bytes = sizeof(ss);
	HELD struct fd_sock *f = NULL;
	int shadow;
	KEEP_ERRNO;

	if (REAL(getpeername, fd, (struct sockaddr *)&ss, &bytes) != 0 || !is_token(&ss) ||
	    san_sock_attach_ask(SHMQ_SOCK_ACCEPT, fd, NULL, NULL, &shadow) != 0)
		return;
	san_sock_fd_track(fd, ss.ss_family, false, NULL);
	f = san_sock_fd_get(fd);
	if (f != NULL && san_sock_carry_map(f, shadow) == 0) {
		san_sock_carry_replace(f, shadow);
		if (sa != NULL && len != NULL) {
			*len = room;
			tcp_name_of(f, true, sa, len);
		}
	}
	REAL(close, shadow);
}
