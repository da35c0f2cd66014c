/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The kernel binds and connects first: it makes all checks and reports all errors. Then the daemon
 * receives the kernel's socket. A stand-in, which is one end of a pair of sockets, replaces it at
 * all of its descriptors, and in the epoll sets that contain it.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "sock_priv.h"

#define STAYS          "a socket stays with the kernel"
#define SETTLE_STEP_NS 2000000 /* between two requests to the daemon */

/* ---- epoll sets ---- */

void
san_sock_carry_set(struct fd_sock *f, int epfd, int fd, const struct epoll_event *ev)
{
	struct sock_set *s, *to = NULL;

	for (s = f->sets; s < &f->sets[SOCK_SETS]; s++)
		if ((s->epfd == epfd && s->fd == fd) || (s->epfd < 0 && to == NULL))
			to = s;
	if (to != NULL && ev != NULL)
		*to = (struct sock_set){epfd, fd, ev->events, ev->data.u64};
	else if (to != NULL)
		to->epfd = -1;
}

static void
carry_leave_sets(struct fd_sock *f)
{
	int i;

	for (i = 0; i < SOCK_SETS; i++)
		if (f->sets[i].epfd >= 0 &&
		    REAL(epoll_ctl, f->sets[i].epfd, EPOLL_CTL_DEL, f->sets[i].fd, NULL) != 0)
			f->sets[i].epfd = -1; /* the number has been reused */
}

/* Add *f* to its sets again, as the carried socket or as the kernel's. */
static void
enter_sets(struct fd_sock *f)
{
	const struct sock_set *s;
	struct epoll_event ev;

	for (s = f->sets; s < &f->sets[SOCK_SETS]; s++) {
		ev = (struct epoll_event){s->events, {.u64 = s->data}};
		if (s->epfd >= 0 && atomic_load(&f->carried))
			san_sock_eset_ctl(s->epfd, EPOLL_CTL_ADD, s->fd, f, &ev);
		else if (s->epfd >= 0)
			REAL(epoll_ctl, s->epfd, EPOLL_CTL_ADD, s->fd, &ev);
	}
}

/* ---- memory of a carried socket ---- */

int
san_sock_carry_map(struct fd_sock *f, int shadow)
{
	struct shmq_rep rep;
	bool is_stream;
	void *mem;
	int fd, rc;

	rc = san_sock_attach_ask(SHMQ_SOCK_FIND, shadow, NULL, &rep, &fd);
	if (rc != 0)
		return rc;
	mem = mmap(NULL, rep.sock.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REAL(close, fd);
	if (mem == MAP_FAILED)
		return -ENOMEM;
	if (((const struct san_sock_shm *)mem)->abi != SAN_SOCK_ABI) {
		REAL(munmap, mem, rep.sock.bytes);
		return -EPROTO;
	}
	f->bytes = rep.sock.bytes;
	f->id = rep.sock.id;
	is_stream = rep.sock.type == SOCK_STREAM;
	f->rx_bytes = is_stream ? SAN_SOCK_STREAM_RX_BYTES : SAN_SOCK_RX_BYTES;
	f->tx_bytes = is_stream ? SAN_SOCK_STREAM_TX_BYTES : SAN_SOCK_TX_BYTES;
	f->shm = mem;
	san_sock_lock_attach();
	return 0;
}

/* ---- replace the kernel's socket ---- */

void
san_sock_carry_replace(struct fd_sock *f, int shadow)
{
	int fd = san_sock_fd_next(f, 0), cloexec, flags = REAL(fcntl, fd, F_GETFL);
	struct f_owner_ex owner;

	san_sock_opt_times(fd, shadow);
	if (!f->is_udp)
		san_sock_opt_stream(fd, f);
	REAL(fcntl, shadow, F_SETFL, flags & (O_NONBLOCK | O_ASYNC));
	atomic_store(&f->shm->nonblock, (flags & O_NONBLOCK) != 0);
	if ((flags & O_ASYNC) != 0) {
		if (REAL(fcntl, fd, F_GETOWN_EX, &owner) == 0)
			REAL(fcntl, shadow, F_SETOWN_EX, &owner);
		REAL(fcntl, shadow, F_SETSIG, REAL(fcntl, fd, F_GETSIG));
	}
	carry_leave_sets(f);
	for (; fd >= 0; fd = san_sock_fd_next(f, fd + 1)) {
		cloexec = REAL(fcntl, fd, F_GETFD) & FD_CLOEXEC;
		REAL(dup3, shadow, fd, cloexec != 0 ? O_CLOEXEC : 0);
	}
	san_sock_fd_set_carried(f);
	/* connect() waits for a byte that the program must not see */
	san_sock_ring_settle(san_sock_fd_next(f, 0), f, false);
	if ((flags & O_ASYNC) != 0)
		san_sock_ring_arm(f, EPOLLET, true); /* SIGIO to the owner, once for each burst */
	enter_sets(f);
}

/* What the rules say about *f*. */
static enum sock_action
carry_action(int fd, const struct fd_sock *f, const struct sockaddr *local,
	     const struct sockaddr *remote, bool is_logged)
{
	bool is_v6only = f->domain == AF_INET6 &&
		san_sock_opt_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0) != 0;

	return san_sock_conf_action(f->is_udp ? IPPROTO_UDP : IPPROTO_TCP, is_v6only, local,
				    remote, is_logged);
}

const struct sockaddr *
san_sock_carry_bound_to(int fd, struct sockaddr_storage *ss)
{
	socklen_t len = sizeof(*ss);

	if (REAL(getsockname, fd, (struct sockaddr *)ss, &len) != 0 ||
	    ((const struct sockaddr_in *)ss)->sin_port == 0) /* the same place for IPv6 */
		return NULL;
	return (const struct sockaddr *)ss;
}

bool
san_sock_carry_is_refused(int fd, const struct fd_sock *f, const struct sockaddr *local,
			  const struct sockaddr *remote)
{
	struct sockaddr_storage bound;

	/* an invalid address is left to the kernel, which returns the error */
	if (san_sock_conf_is_idle() || san_sock_box_is_closed() ||
	    (local != NULL && san_sock_touch_is_bad(local, sizeof(*local))) ||
	    (remote != NULL && san_sock_touch_is_bad(remote, sizeof(*remote))))
		return false;
	if (local == NULL && !atomic_load(&f->carried))
		local = san_sock_carry_bound_to(fd, &bound);
	return carry_action(fd, f, local, remote, false) == SOCK_DROP;
}

enum sock_action
san_sock_carry_how(int fd, struct fd_sock *f, const struct sockaddr *local,
		   const struct sockaddr *remote)
{
	enum sock_action action;

	if (san_sock_conf_is_idle() || atomic_load(&f->stays))
		return SOCK_KERNEL;
	action = carry_action(fd, f, local, remote, true);
	if (action != SOCK_CARRY && action != SOCK_BOTH)
		return SOCK_KERNEL;
	if (!san_sock_hooks_has_ring())
		return action;
	san_sock_carry_stay(f, "its program uses io_uring");
	return SOCK_KERNEL;
}

/* The same for a UDP socket, which sends *to* there if it has no peer. */
static enum sock_action
carry_dgram_how(int fd, struct fd_sock *f, const struct sockaddr *to)
{
	struct sockaddr_storage local, remote;
	socklen_t len = sizeof(local);

	if (!f->is_udp || san_sock_conf_is_idle() || atomic_load(&f->stays) ||
	    REAL(getsockname, fd, (struct sockaddr *)&local, &len) != 0)
		return SOCK_KERNEL;
	len = sizeof(remote);
	if (REAL(getpeername, fd, (struct sockaddr *)&remote, &len) == 0)
		to = (struct sockaddr *)&remote;
	else if (to != NULL && san_sock_touch_is_bad(to, sizeof(*to)))
		to = NULL; /* the kernel returns the error */
	return san_sock_carry_how(fd, f, (struct sockaddr *)&local, to);
}

/* Look up the route now, so that the first datagram does not wait for it. */
static void
look_up_peer(const struct fd_sock *f)
{
	if (f->shm->peer.family != 0)
		san_sock_attach_why_not_reached(f->shm->peer.ip);
}

/* Carry *f*, which no call has pinned. 0 or -errno. */
static int
carry_by_daemon(int fd, struct fd_sock *f, enum sock_action action, struct shmq_rep *rep)
{
	struct shmq_req req = {0};
	uint32_t bits = san_sock_opt_bits(fd), i; /* read before the daemon sets further options */
	int shadow, rc;

	req.sock.local_only = action == SOCK_CARRY;
	rc = san_sock_attach_ask(SHMQ_SOCK_CARRY, fd, &req, rep, &shadow);
	if (rc != 0)
		return rc;
	rc = san_sock_carry_map(f, shadow);
	if (rc == 0) {
		atomic_store(&f->shm->options, bits);
		atomic_store(&f->kernel, san_sock_own_dup(fd, &f->kernel));
		san_sock_carry_replace(f, shadow);
		for (i = 0; i < atomic_load(&f->nb_groups); i++)
			san_sock_opt_follow_group(fd, f->groups[i], false);
		look_up_peer(f);
	} else {
		snprintf(rep->text, sizeof(rep->text), "its memory: %s", strerror(-rc));
	}
	REAL(close, shadow);
	return rc;
}

void
san_sock_carry(int fd, struct fd_sock *f, const struct sockaddr *to)
{
	struct sock_change change;
	enum sock_action action;
	struct shmq_rep rep;
	int rc = 0;
	KEEP_ERRNO;

	if (atomic_load(&f->carried))
		return;
	action = carry_dgram_how(fd, f, to);
	if (action != SOCK_KERNEL && !san_sock_owner_change_begin(&change, f)) {
		san_sock_conf_info(STAYS, "another thread waits for it");
	} else if (action != SOCK_KERNEL) {
		if (!atomic_load(&f->carried)) /* another thread may have done it */
			rc = carry_by_daemon(fd, f, action, &rep);
		san_sock_owner_change_end(&change);
	}
	if (rc != 0)
		san_sock_conf_error(STAYS, rep.text);
	atomic_store(&f->is_kernels, !atomic_load(&f->carried) && !san_sock_conf_may_drop());
	san_sock_owner_chosen(f);
}

/* ---- back to the kernel ---- */

/* Put the kernel's socket back at all descriptors of *f*, as a new file. It is not shared yet. */
static struct fd_sock *
replace_back(struct fd_sock *f, bool is_first)
{
	int fd, first = -1, kernel = atomic_load(&f->kernel);
	struct sock_set sets[SOCK_SETS];
	struct fd_sock *now;
	bool cloexec;

	if (is_first)
		san_sock_opt_restore(kernel, f);
	carry_leave_sets(f);
	memcpy(sets, f->sets, sizeof(sets));
	while ((fd = san_sock_fd_next(f, 0)) >= 0) {
		cloexec = (REAL(fcntl, fd, F_GETFD) & FD_CLOEXEC) != 0;
		san_sock_eset_leave(fd);
		REAL(dup3, kernel, fd, cloexec ? O_CLOEXEC : 0);
		if (first < 0)
			san_sock_fd_track(fd, f->domain, f->is_udp, f);
		else
			san_sock_fd_dup(first, fd);
		first = first < 0 ? fd : first;
	}
	now = san_sock_fd_get(first);
	if (now == NULL)
		return NULL;
	memcpy(now->sets, sets, sizeof(sets));
	memcpy(now->groups, f->groups, sizeof(f->groups));
	now->nb_groups = f->nb_groups;
	enter_sets(now);
	return now;
}

/* Whether the file at *fd* is the successor of *f*. */
static bool
is_successor(int fd, const struct fd_sock *f)
{
	HELD struct fd_sock *now = san_sock_fd_get(fd);

	return now != NULL && now != f && now->line == f->line;
}

bool
san_sock_carry_may_return(const struct fd_sock *f)
{
	/*
	 * If the port has no device of the kernel, the kernel would receive no datagrams. If
	 * several processes have the socket, only one of them continues with the kernel's socket.
	 */
	return !san_sock_box_is_closed() && f->is_udp && atomic_load(&f->shm->orphaned) != 0 &&
		atomic_load(&f->kernel) >= 0 &&
		f->shm->if_index != 0 &&
		atomic_load(&f->shm->is_returned) != SAN_SOCK_RETURNED && san_sock_fd_is_us();
}

bool
san_sock_carry_return(int fd, struct fd_sock *f)
{
	uint32_t was_returned = 0;
	HELD struct fd_sock *now = NULL;
	struct sock_change change;
	KEEP_ERRNO;

	if (san_sock_carry_may_return(f) && san_sock_fd_number(fd, f) == fd &&
	    san_sock_owner_change_begin(&change, f)) {
		if (san_sock_fd_number(fd, f) == fd &&
		    (atomic_compare_exchange_strong(&f->shm->is_returned, &was_returned,
						    SAN_SOCK_RETURNED) ||
		     was_returned == SAN_SOCK_GIVEN_BACK))
			now = replace_back(f, was_returned == 0);
		san_sock_owner_change_end(&change);
	}
	san_sock_owner_change_wait(f); /* another thread may be returning it */
	if (now != NULL && was_returned == SAN_SOCK_GIVEN_BACK) {
		san_sock_carry_stay(now, "another process has given it back");
	} else if (now != NULL) {
		atomic_store(&now->retry_s,
			     san_sock_time_ns(CLOCK_MONOTONIC_COARSE) / NS_PER_S + 1);
		san_sock_carry(san_sock_fd_next(now, 0), now, NULL); /* there may be a new daemon */
	}
	return is_successor(fd, f);
}

void
san_sock_carry_stay(struct fd_sock *f, const char *why)
{
	san_sock_conf_info(STAYS, why);
	atomic_store(&f->stays, true);
	atomic_store(&f->is_kernels, !san_sock_conf_may_drop());
	san_sock_owner_chosen(f);
	/* closing the lease ends the daemon's part of a listener */
	san_sock_own_close(atomic_exchange(&f->lease, -1));
}

/* The file at *fd*, which the kernel serves now, with a reference; NULL: nothing has changed. */
static struct fd_sock *
carry_take_back(int fd, struct fd_sock *f)
{
	struct fd_sock *now = NULL;
	struct sock_change change;
	int i;

	if (san_sock_box_is_closed() || san_sock_carry_kernel(fd, f) < 0 || !san_sock_fd_is_us() ||
	    !san_sock_owner_change_begin(&change, f))
		return NULL;
	if (san_sock_fd_number(fd, f) == fd &&
	    atomic_exchange(&f->shm->is_returned, SAN_SOCK_GIVEN_BACK) == 0) {
		/* waiting calls restart with the kernel's socket, as after the daemon's end */
		atomic_store(&f->shm->orphaned, 1);
		REAL(shutdown, fd, SHUT_RDWR);
		/* the daemon must have finished its work on the kernel's socket */
		for (i = 0; i < SOCK_SETTLE_STEPS && san_sock_carry_is_ending(SHMQ_SOCK_SETTLE);
		     i++)
			;
		now = replace_back(f, true);
	}
	san_sock_owner_change_end(&change);
	return now;
}

bool
san_sock_carry_give_back(int fd, struct fd_sock *f, const char *why)
{
	HELD struct fd_sock *now = NULL;
	KEEP_ERRNO;

	if (san_sock_carry_can_give_back(f))
		now = carry_take_back(fd, f);
	if (now != NULL)
		san_sock_carry_stay(now, why);
	return now != NULL || is_successor(fd, f);
}

int
san_sock_carry_disconnect(int fd, struct fd_sock *f)
{
	const struct sockaddr none = {.sa_family = AF_UNSPEC};
	uint32_t linger = atomic_exchange(&f->shm->linger, 1); /* the peer gets a reset */
	HELD struct fd_sock *now = carry_take_back(fd, f);

	if (now == NULL) {
		atomic_store(&f->shm->linger, linger);
		return -1;
	}
	return REAL(connect, fd, &none, sizeof(none));
}

bool
san_sock_carry_is_due(struct fd_sock *f)
{
	int64_t at = atomic_load_explicit(&f->retry_s, memory_order_relaxed);
	int64_t s = at != 0 ? san_sock_time_ns(CLOCK_MONOTONIC_COARSE) / NS_PER_S : 0;

	return at != 0 && s >= at && atomic_compare_exchange_strong(&f->retry_s, &at, s + 1);
}

bool
san_sock_carry_is_ending(enum shmq_type type)
{
	static const struct timespec step = {.tv_nsec = SETTLE_STEP_NS};

	if (san_sock_attach_ask(type, -1, NULL, NULL, NULL) != -EBUSY)
		return false;
	/* a library function would be a cancellation point, which bind() and listen() are not */
	REAL(syscall, SYS_nanosleep, &step, NULL);
	return true;
}

int
san_sock_carry_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	bool is_ending = !san_sock_conf_is_idle();
	int i, rc = REAL(bind, fd, sa, len);

	for (i = 0; i < SOCK_SETTLE_STEPS && is_ending && rc != 0 && errno == EADDRINUSE; i++) {
		is_ending = san_sock_carry_is_ending(SHMQ_SOCK_SETTLE);
		rc = REAL(bind, fd, sa, len);
	}
	return rc;
}

void
san_sock_carry_first(int fd, struct fd_sock *f, const struct sockaddr *to)
{
	const struct sockaddr_storage any = {.ss_family = (sa_family_t)f->domain};
	socklen_t len = f->domain == AF_INET ? sizeof(struct sockaddr_in) :
					       sizeof(struct sockaddr_in6);
	struct sockaddr_storage bound;
	KEEP_ERRNO;

	/* if a rule may refuse a datagram, this is called for each one that the kernel sends */
	if (atomic_load(&f->is_chosen))
		return;
	/* bind it as the kernel does at the first send */
	if (san_sock_carry_bound_to(fd, &bound) == NULL)
		REAL(bind, fd, (const struct sockaddr *)&any, len);
	san_sock_carry(fd, f, to);
}

/* ---- inherited and received sockets ---- */

static bool
stands_for_one(int fd)
{
	struct sockaddr_un peer;
	socklen_t len = sizeof(peer);

	return REAL(getpeername, fd, (struct sockaddr *)&peer, &len) == 0 &&
		peer.sun_family == AF_UNIX &&
		len > offsetof(struct sockaddr_un, sun_path) + 1 + strlen(SAN_SOCK_PEER) &&
		memcmp(peer.sun_path + 1, SAN_SOCK_PEER, strlen(SAN_SOCK_PEER)) == 0;
}

/* The process may accept connections of the listener: san_sock_tcp_wait() reports it. */
static void
adopt_listener(int fd)
{
	HELD struct fd_sock *f = NULL;

	if (san_sock_opt_int(fd, SOL_SOCKET, SO_ACCEPTCONN, 0) != 1 ||
	    san_sock_opt_int(fd, SOL_SOCKET, SO_PROTOCOL, 0) != IPPROTO_TCP)
		return;
	san_sock_fd_track(fd, san_sock_opt_int(fd, SOL_SOCKET, SO_DOMAIN, -1), false, NULL);
	f = san_sock_fd_get(fd);
	if (f != NULL)
		atomic_store(&f->is_foreign, true);
}

void
san_sock_carry_adopt(int fd)
{
	HELD struct fd_sock *f = NULL;
	int rc;
	KEEP_ERRNO;

	san_sock_fd_forget(fd);
	if (san_sock_box_is_closed())
		return;
	if (!stands_for_one(fd)) {
		adopt_listener(fd);
		return;
	}
	san_sock_fd_track(fd, AF_INET, true, NULL);
	f = san_sock_fd_get(fd);
	if (f == NULL)
		return;
	rc = san_sock_carry_map(f, fd);
	if (rc != 0) {
		san_sock_fd_forget(fd);
		san_sock_conf_error("a socket that was inherited can't be used", strerror(-rc));
		return;
	}
	f->domain = f->shm->local.family;
	f->is_udp = f->shm->type == SOCK_DGRAM;
	f->is_stdio = true;
	san_sock_fd_set_carried(f);
}

void
san_sock_carry_adopt_all(void)
{
	struct linux_dirent64 {
		uint64_t ino;
		int64_t off;
		uint16_t len;
		uint8_t type;
		char name[];
	} * d;
	_Alignas(8) char buf[1024];
	long n, at;
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int fd, dir = (int)REAL(syscall, SYS_openat, AT_FDCWD, "/proc/self/fd", flags);

	/* not readdir(), which allocates: the program's malloc() may not be ready */
	while (dir >= 0 && (n = REAL(syscall, SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += d->len) {
			d = (struct linux_dirent64 *)(buf + at);
			fd = atoi(d->name);
			/* adopting one socket creates descriptors of the library */
			if (d->name[0] != '.' && fd != dir && !san_sock_own_is(fd))
				san_sock_carry_adopt(fd);
		}
	}
	if (dir >= 0)
		REAL(close, dir);
}

/* ---- the kernel's socket ---- */

int
san_sock_carry_kernel(int fd, struct fd_sock *f)
{
	int none = -1, kernel = atomic_load(&f->kernel);

	if (kernel >= 0)
		return kernel;
	if (san_sock_attach_ask(SHMQ_SOCK_KERNEL, fd, NULL, NULL, &kernel) != 0)
		return san_sock_real_fail(ENETDOWN);
	kernel = san_sock_own(kernel, &f->kernel);
	if (!atomic_compare_exchange_strong(&f->kernel, &none, kernel)) {
		san_sock_own_close(kernel);
		kernel = none;
	}
	return kernel;
}

void
san_sock_carry_sync(int fd, struct fd_sock *f)
{
	san_sock_attach_ask(SHMQ_SOCK_SYNC, fd, NULL, NULL, NULL);
	look_up_peer(f);
}
