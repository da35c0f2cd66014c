/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_PRIV_H
#define SOCK_PRIV_H

/** @file Small things that the files of this folder share. */

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>

#include "rules.h"

struct fd_sock;
struct san_sock_rec;
struct shmq_ctl;

/* ---- clocks, for what waits or is valid for a while ---- */

static inline int64_t
san_sock_time_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* ---- sock_conf.c: settings and rules of sansock.conf(5) for this process (UDP-2) ---- */

const struct sock_settings *san_sock_conf(void);
/** Whether there are no rules. */
bool san_sock_conf_is_idle(void);
/** Whether a rule refuses something: then the address of each datagram is checked. */
bool san_sock_conf_may_drop(void);
/**
 * The action for a socket. Either address may be NULL: not known yet. *is_logged*: log the decision
 * if the setting says so.
 */
enum sock_action san_sock_conf_action(int proto, bool is_v6only, const struct sockaddr *local,
				      const struct sockaddr *remote, bool is_logged);
/** Log, at level info, what was done with a socket against its rule. */
void san_sock_conf_info(const char *what, const char *why);
/** Log an error, unless logging is off. */
void san_sock_conf_error(const char *what, const char *why);

/*
 * ---- sock_own.c: descriptors of the library itself, which the program does not know ----
 *
 * They have high numbers, and the program can neither close nor replace them. (UDP-1)
 */

/**
 * Make *fd*, which may be -1, a descriptor of the library, and move it to a high number.
 *
 * @param holder
 *   Where its number is kept, or will be. It is updated there if the program wants the number.
 * @return
 *   The new number.
 */
int san_sock_own(int fd, _Atomic int *holder);
/** Duplicate *fd* for the library; -1: no number is free, or few are left for the program. */
int san_sock_own_dup(int fd, _Atomic int *holder);
/** Close a descriptor of the library; -1: do nothing. */
void san_sock_own_close(int fd);
bool san_sock_own_is(int fd);
/** The kernel has given *fd* to the program: a call not intercepted has closed the library's. */
void san_sock_own_lost(int fd);
/** The program wants the number *fd*: move the library's descriptor away. */
void san_sock_own_make_way(int fd);
/** close_range(2) for all descriptors except the library's. */
int san_sock_own_close_others(unsigned int first, unsigned int last, int flags);

/*
 * ---- sock_room.c: memory for one call ----
 *
 * A thread may have a stack of 16 KiB, and a signal handler must not call malloc(): buffers that
 * are too large for a stack come from here. (UDP-1)
 */

/** Largest size that the pool serves; larger ones are mapped. */
#define SOCK_ROOM_BYTES 65536

struct sock_room {
	void *mem; /**< NULL: out of memory */
	size_t bytes;
};

/** Take *bytes*. May be called by any thread, also in signal handlers. */
void san_sock_room_take(struct sock_room *room, size_t bytes);
/** Release a struct sock_room. Its type suits pthread_cleanup_push(). */
void san_sock_room_give(void *room);
/** In a child of fork(): release what other threads of the parent had taken. */
void san_sock_room_begin_child(void);

/*
 * ---- sock_box.c: a process that confines itself by a filter of system calls (seccomp) ----
 *
 * What it has carried stays carried, by read(), write() and poll() of its descriptors alone.
 * Nothing else is carried any more, and the daemon is not asked. Its children are confined, too.
 * (UDP-11)
 */

extern _Atomic bool sock_box_is_closed;

/** True if the process is confined. */
static inline bool
san_sock_box_is_closed(void)
{
	return __builtin_expect(atomic_load_explicit(&sock_box_is_closed, memory_order_relaxed), 0);
}

/**
 * Receive one byte without waiting; no cancellation point.
 *
 * @return
 *   1; 0: the other end is closed; -1: nothing is there.
 */
long san_sock_box_recv(int fd, bool peeks);
/** Send one message without waiting; no cancellation point. As send(). */
long san_sock_box_send(int fd, const void *data, size_t len);

/* ---- sock_uring.c: the library does not see requests by io_uring (UDP-11) ---- */

#define SOCK_BY_URING "its program uses io_uring"

/** Whether the process has a ring, or the library that creates rings. */
bool san_sock_uring_is_used(void);

/* ---- sock_route.c: the kernel's routes (UDP-4) ---- */

/**
 * Whether the kernel's routes leave *ip* to the port.
 *
 * @param is_on_link
 *   *ip* is on the port's own link, and not behind a router.
 */
bool san_sock_route_is_ports(const struct shmq_ctl *ctl, const uint8_t ip[16], bool is_on_link);

/*
 * ---- sock_hooks.c: checks that the kernel would make by calling others ----
 *
 * Security modules, Landlock, hooks of control groups for connect() and sendto(). They are called
 * for carried sockets, too; a connection for which that is impossible is left to the kernel.
 * (UDP-9, SYS-7)
 */

/**
 * Whether the program may connect the TCP socket *f* to *sa*. No packet is sent. False: it may not,
 * or the check is not possible; the kernel's connect() decides.
 */
bool san_sock_hooks_connect(const struct fd_sock *f, const struct sockaddr *sa, socklen_t len);
/** Whether *f* may send to *to*, as in *rec*; checked once per address. 0 or errno. */
int san_sock_hooks_send(const struct fd_sock *f, const struct san_sock_rec *rec,
			const struct sockaddr *to, socklen_t len);

/*
 * ---- sock_wait.c: waiting for several descriptors, of which some are carried ----
 *
 * If only carried ones are polled and one is ready, the kernel is not asked. Otherwise the kernel
 * waits, for their stand-ins, too. (AFC-19)
 */

/** ppoll(2). *timeout* NULL: no limit; *mask* may be NULL. */
int san_sock_wait_poll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask);
/** Whether one of them is carried, or may come to be. */
int san_sock_wait_concerns(const struct pollfd *fds, nfds_t n);
/** pselect(2). *timeout* NULL: no limit; *mask* may be NULL. */
int san_sock_wait_select(int n, fd_set *in, fd_set *out, fd_set *except,
			 const struct timespec *timeout, const sigset_t *mask);
int san_sock_wait_concerns_sets(int n, const fd_set *in, const fd_set *out, const fd_set *except);

#endif /* SOCK_PRIV_H */
