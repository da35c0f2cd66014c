/* SPDX-License-Identifier: BSD-3-Clause */

/* Turns TCP sockets of the kernel into streams, at connect() and accept(). (UDP-1, UDP-2) */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "sock_priv.h"

#define NS_PER_MS  1000000ll
#define NS_PER_S   1000000000ll
#define CONNECTION "a connection is the kernel's"
#define HISTORY    64
#define SHORT_MAX  4
#define LISTENER   "a listener stays with the kernel alone"

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
san_sock_tcp_conn_closed(const struct fd_sock *f)
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
san_sock_tcp_conn_connect(int fd, struct fd_sock *f, const struct sockaddr *sa, socklen_t len)
{
	struct shmq_req req = {0};
	struct sockaddr_storage local;
	struct sock_change change;
	enum sock_action action;
	struct shmq_rep rep = {0};
	int shadow, rc, was = errno;
	bool up;

	if (san_sock_box_is_closed() || !read_peer(f, sa, len, &req) ||
	    !san_sock_carry_is_wanted(fd, f, san_sock_carry_bound_to(fd, &local), sa, &action) ||
	    !may_reach(req.sock.peer) ||
	    is_short(f, req.sock.peer, req.sock.peer_port) || !san_sock_hooks_connect(f, sa, len)) {
		errno = was;
		return -EINPROGRESS;
	}
	rc = san_sock_attach_ask(SHMQ_SOCK_CONNECT, fd, &req, &rep, &shadow);
	if (rc != 0) {
		san_sock_conf_info(CONNECTION, rep.text);
		errno = was;
		return rc == -EALREADY ? -EADDRNOTAVAIL : -EINPROGRESS;
	}
	rc = san_sock_carry_map(f, shadow);
	up = rc == 0 && comes_up(f, shadow) && san_sock_owner_change_begin(&change, f);
	if (up) {
		san_sock_opt_times(fd, shadow);
		san_sock_opt_stream(fd, f);
		san_sock_carry_replace(f, shadow);
		san_sock_owner_change_end(&change);
	} else if (rc == 0) {
		san_sock_conf_info(CONNECTION,
				   "no carried listener there, or no daemon at the peer");
		REAL(munmap, f->shm, f->bytes);
		f->shm = NULL;
	}
	REAL(close, shadow);
	errno = was;
	return up ? 0 : -EINPROGRESS;
}

/* ---- listen ---- */

void
san_sock_tcp_conn_listen(int fd, struct fd_sock *f)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	enum sock_action action;
	struct shmq_req req = {0};
	struct shmq_rep rep;
	int lease, rc, i, was = errno;

	if (san_sock_box_is_closed() || atomic_load(&f->lease) >= 0 ||
	    REAL(getsockname, fd, (struct sockaddr *)&local, &len) != 0 ||
	    !san_sock_carry_is_wanted(fd, f, (struct sockaddr *)&local, NULL, &action)) {
		errno = was;
		return;
	}
	rc = san_sock_attach_ask(SHMQ_SOCK_LISTEN, fd, &req, &rep, &lease);
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
	errno = was;
}

/* Once a second: if the daemon that had the listener has ended, offer it to the next one. */
static void
offer_again(int fd, struct fd_sock *f)
{
	int64_t at = atomic_load_explicit(&f->retry_s, memory_order_relaxed), s;
	int lease = atomic_load(&f->lease);
	char byte;

	if (at == 0)
		return; /* no daemon had it */
	s = san_sock_time_ns(CLOCK_MONOTONIC_COARSE) / NS_PER_S;
	if (s < at || !atomic_compare_exchange_strong(&f->retry_s, &at, s + 1))
		return;
	if (lease >= 0) {
		if (REAL(syscall, SYS_recvfrom, lease, &byte, 1, MSG_DONTWAIT | MSG_PEEK, NULL,
			 NULL) != 0 ||
		    !atomic_compare_exchange_strong(&f->lease, &lease, -1))
			return;
		san_sock_own_close(lease);
		atomic_store(&f->waits, false);
	}
	san_sock_tcp_conn_listen(fd, f);
}

void
san_sock_tcp_conn_wait(int fd, struct fd_sock *f)
{
	int lease, was = errno;

	if (san_sock_box_is_closed())
		return;
	if (atomic_load(&f->is_foreign) && atomic_exchange(&f->is_foreign, false))
		san_sock_tcp_conn_listen(fd, f);
	offer_again(fd, f);
	lease = atomic_load(&f->lease);
	if (lease < 0 || atomic_load(&f->waits))
		return;
	if (san_sock_attach() == 0 && REAL(send, lease, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		atomic_store(&f->waits, true);
	errno = was;
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

static int
take_place(int fd, int domain)
{
	struct shmq_req req = {0};
	struct shmq_rep rep;
	struct fd_sock *f;
	int shadow, rc;

	rc = san_sock_attach_ask(SHMQ_SOCK_ACCEPT, fd, &req, &rep, &shadow);
	if (rc != 0)
		return rc;
	san_sock_fd_track(fd, domain, false);
	f = san_sock_fd_get(fd);
	rc = f == NULL ? -ENFILE : san_sock_carry_map(f, shadow);
	if (rc == 0) {
		san_sock_opt_times(fd, shadow);
		san_sock_opt_stream(fd, f);
		san_sock_carry_replace(f, shadow);
	}
	REAL(close, shadow);
	if (f != NULL)
		san_sock_fd_put(f);
	return rc;
}

void
san_sock_tcp_conn_accepted(int fd, struct sockaddr *sa, socklen_t *len, socklen_t room)
{
	struct sockaddr_storage ss;
	socklen_t bytes = sizeof(ss);
	struct fd_sock *f;
	int was = errno;

	if (REAL(getpeername, fd, (struct sockaddr *)&ss, &bytes) == 0 && is_token(&ss) &&
	    take_place(fd, ss.ss_family) == 0 && sa != NULL && len != NULL &&
	    (f = san_sock_fd_get(fd)) != NULL) {
		*len = room;
		san_sock_tcp_name_of(f, true, sa, len);
		san_sock_fd_put(f);
	}
	errno = was;
}
