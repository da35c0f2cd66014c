/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_H
#define DAEMON_HELPER_H

/**
 * @file
 * Helpers: processes that make the system calls on descriptors that programs pass. Such a call may
 * block for as long as a hostile program likes, and even SIGKILL does not end it. So the daemon
 * makes no such call and receives no descriptor of a program, except memory that a helper has
 * checked. It leaves a message with descriptors in its socket, and a helper fetches it. Each user
 * has a helper of its own, so a user that blocks it delays only its own programs. There are at most
 * HELPERS_MAX helpers. A helper shares no mapping and no lock with the daemon. Of the daemon's
 * descriptors it has its two channels, and the socket of a message that it fetches. Thread rule:
 * the main thread. (SYS-6)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helper_msg.h"

#define HELPERS_MAX    64
#define HELPER_LATE_NS 2000000000u /**< a helper that has not answered for so long is late */

struct apps;
struct harden_user;
struct helper;

/** Callbacks of the daemon. */
struct helper_ops {
	/** An answer, or HELPER_CHANGED. The callee owns *fd*, which may be -1. */
	void (*on_answer)(struct apps *all, struct helper *h, const struct helper_msg *m, int fd);
	/** A datagram of a carried socket, or an error. */
	void (*dgram)(struct apps *all, const struct helper_dgram *d, const void *data,
		      uint32_t len);
	/**
	 * The process has ended without having been asked to. *h* is invalid afterwards. If
	 * *has_begun* is false it never ran and has fetched no message.
	 */
	void (*ended)(struct apps *all, struct helper *h, bool has_begun);
};

/**
 * Fork the process that forks helpers. Call this first: before threads exist, before descriptors
 * are open that helpers must not have, and before rights are dropped; the process drops its own.
 *
 * @return
 *   0 or -errno.
 */
int san_helper_begin(const struct harden_user *user, bool seccomp);
/** EAL has started: keep the helpers off the CPUs of lcores that poll, if there are others. */
void san_helper_avoid_lcores(void);
/** A descriptor that is readable when san_helper_serve() has work; or -errno. */
int san_helper_open(const struct helper_ops *ops, struct apps *all);
/** Process the messages of helpers. */
void san_helper_serve(void);
/** Send delayed messages and check for late helpers. Returns when to call again. */
uint64_t san_helper_step(uint64_t now_ns);

/** Number of helpers. */
uint32_t san_helper_nb(void);
/** False: the forking process was killed, and no helper can be started any more. */
bool san_helper_are_there(void);
uid_t san_helper_uid(const struct helper *h);
/**
 * Find the helper of *uid*, or start one.
 *
 * @param has_app
 *   The user has an application: the helper stays until san_helper_leave().
 * @return
 *   NULL: try again later. Too many users have a helper, the user's last one is ending, or there
 *   is no memory.
 */
struct helper *san_helper_of(uid_t uid, bool has_app);
/**
 * Ask a question. The answer comes through helper_ops.
 *
 * @param fd
 *   Descriptor to send with it, or -1; stays the caller's.
 * @return
 *   0; -ENOMEM, -EMFILE, -ETOOMANYREFS: it was not sent.
 */
int san_helper_ask(struct helper *h, const struct helper_msg *m, int fd);
/** Close a handle that nothing refers to any more. */
void san_helper_close(struct helper *h, int32_t handle);
/** Send a datagram through a carried socket. It may be lost. */
void san_helper_send(struct helper *h, const struct helper_dgram *d, const void *data, size_t len);
/** True if it has not answered for HELPER_LATE_NS. */
bool san_helper_is_late(const struct helper *h, uint64_t now_ns);

/** The user has no application any more: end its helper once it is idle. */
void san_helper_leave(uid_t uid);
/** True if the user's helper still has something to close. */
bool san_helper_are_closing(uid_t uid);
/** Have another process close a descriptor of the daemon, because close() may block. */
void san_helper_close_fd(int fd);
/**
 * Close a socket of the daemon; through san_helper_close_fd() if unread descriptors lie in it.
 * Needs san_shmq_peek_init().
 */
void san_helper_hang_up(int sock);

/* ---- helper_fork.c: the process that forks helpers, small and without rights ---- */

/** Start it; *pid* is its number. Returns the daemon's end of its socket, or -errno. */
int san_helper_fork_init(const struct harden_user *user, bool seccomp, pid_t *pid);
/** Have it fork a helper of *uid*. 0, with the daemon's ends of the channels, or -errno. */
int san_helper_fork(int forker, uid_t uid, int *control, int *data);
#define HELPER_CLOSE_MAX 128

/**
 * Have *fds*, at most HELPER_CLOSE_MAX, closed by the exit of a new process, which does not block
 * on sockets that linger.
 *
 * @return
 *   A descriptor that the caller closes after *fds*: the process exits only then, so that its
 *   close() is the last one. -EAGAIN: try later; or -errno.
 */
int san_helper_fork_close(int forker, const int *fds, uint32_t nb);

#endif /* DAEMON_HELPER_H */
