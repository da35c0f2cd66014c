/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_H
#define DAEMON_HELPER_H

/**
 * @file
 * Helpers: processes that make the system calls on what programs pass. Such a call may block for
 * as long as a hostile program likes, and kill -9 does not end it; so the daemon itself makes none.
 * It never receives a descriptor of a program but memory that a helper has checked: messages that
 * carry descriptors it leaves in their socket, and a helper fetches them. Each user has one helper,
 * so who blocks it blocks only itself; there are HELPERS_MAX of them at most. A helper has no
 * descriptor, mapping or lock of the daemon's but its two channels. Only the daemon's main thread
 * uses this. (SYS-6)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helper_msg.h"

#define HELPERS_MAX    64
#define HELPER_LATE_NS 2000000000u /**< without an answer for so long a helper is late */

struct harden_user;
struct helper;

/** What the daemon does with what helpers say. */
struct helper_ops {
	/** An answer, or HELPER_CHANGED; *fd* came with it, or is -1, and is the callee's. */
	void (*heard)(void *ctx, struct helper *h, const struct helper_msg *m, int fd);
	/** A datagram of a carried socket. */
	void (*dgram)(void *ctx, const struct helper_dgram *d, const void *data, uint32_t len);
	/** The process has ended; *h* is invalid afterwards. */
	void (*gone)(void *ctx, struct helper *h);
};

/**
 * Fork the process that forks helpers. First of all: before threads, before anything is open that a
 * helper must not have, and before rights are dropped, which it does by itself.
 *
 * @return
 *   0 or -errno.
 */
int helpers_fork(const struct harden_user *user, bool seccomp);
/** A descriptor that is readable when helpers_serve() has something to do; or -errno. */
int helpers_open(const struct helper_ops *ops, void *ctx);
/** What helpers have said. */
void helpers_serve(void);
/** What waits for its time; when to call again. */
uint64_t helpers_step(uint64_t now_ns);

/** False: somebody has killed the process that forks them, and there are none any more. */
bool helpers_are_there(void);
uid_t helper_uid(const struct helper *h);
/** The user's; a new one, if it has none. NULL: too many users have one, or no memory. */
struct helper *helper_of(uid_t uid);
/**
 * Ask. The answer comes by helper_ops.
 *
 * @param fd
 *   Goes with the question, or -1; stays the caller's.
 * @return
 *   0; -ENOMEM, -EMFILE: it is not asked.
 */
int helper_ask(struct helper *h, const struct helper_msg *m, int fd);
/** Close a handle, which nothing else names any more. */
void helper_close(struct helper *h, int32_t handle);
/** A datagram goes out by a carried socket; it may be lost. */
void helper_send(struct helper *h, const struct helper_dgram *d, const void *data, size_t len);
/** It has not answered for HELPER_LATE_NS. */
bool helper_is_late(const struct helper *h, uint64_t now_ns);

/** The user has no application any more: its helper ends as soon as it has nothing to do. */
void helpers_leave(uid_t uid);
/** Does the user's helper have something to close yet? */
bool helpers_are_closing(uid_t uid);
/** Have the user's helper close a descriptor of ours whose close() may take long. */
void helpers_close(int fd, uid_t uid);
/**
 * Close a socket of ours, at the other end of which is *uid*; if descriptors lie in it unread, as
 * helpers_close() does. After shmq_peek_init() only.
 */
void helpers_hang_up(int sock, uid_t uid);

#endif /* DAEMON_HELPER_H */
