/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_H
#define DAEMON_HELPER_H

/**
 * @file
 * Helpers: processes that make the system calls on what programs pass. Such a call may block for
 * as long as a hostile program likes, and kill -9 does not end it; so the daemon itself makes none.
 * It never receives a descriptor of a program but memory that a helper has checked. It leaves a
 * message that carries descriptors in its socket, and a helper fetches it. Each user has one
 * helper, so a user that blocks it blocks requests of its own programs only. There are HELPERS_MAX
 * of them at most. A helper has no mapping or lock of the daemon's, and of its descriptors only the
 * two channels and the socket of a message that it fetches. Thread rule: the main thread. (SYS-6)
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
	/** An answer, or HELPER_CHANGED. *fd* came with it, or is -1; it is the callee's. */
	void (*heard)(void *ctx, struct helper *h, const struct helper_msg *m, int fd);
	/** A datagram of a carried socket. */
	void (*dgram)(void *ctx, const struct helper_dgram *d, const void *data, uint32_t len);
	/**
	 * The process has ended, without being told to; *h* is invalid afterwards. *has_begun*: it
	 * may have fetched messages; else it has not even begun.
	 */
	void (*gone)(void *ctx, struct helper *h, bool has_begun);
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

/** How many there are. */
uint32_t helpers_nb(void);
/** False: somebody has killed the process that forks them, and there are none any more. */
bool helpers_are_there(void);
uid_t helper_uid(const struct helper *h);
/**
 * The user's; a new one, if it has none.
 *
 * @param has_app
 *   The user has an application: the helper stays until helpers_leave().
 * @return
 *   NULL: not now, because too many users have one, the last one is about to end, or there is no
 *   memory; try again.
 */
struct helper *helper_of(uid_t uid, bool has_app);
/**
 * Ask. The answer comes by helper_ops.
 *
 * @param fd
 *   Goes with the question, or -1; stays the caller's.
 * @return
 *   0; -ENOMEM, -EMFILE, -ETOOMANYREFS: it is not asked.
 */
int helper_ask(struct helper *h, const struct helper_msg *m, int fd);
/** Close a handle, which nothing else names any more. */
void helper_close(struct helper *h, int32_t handle);
/** A datagram goes out by a carried socket; it may be lost. */
void helper_send(struct helper *h, const struct helper_dgram *d, const void *data, size_t len);
/** It has not answered for HELPER_LATE_NS. */
bool helper_is_late(const struct helper *h, uint64_t now_ns);

/** The user has no application any more: its helper ends when it has nothing to do. */
void helpers_leave(uid_t uid);
/** Does the user's helper have something to close yet? */
bool helpers_are_closing(uid_t uid);
/** Have a descriptor of ours closed elsewhere, because close() may take long. */
void helpers_close(int fd);
/**
 * Close a socket of ours; if descriptors lie in it unread, as helpers_close() does. After
 * shmq_peek_init() only.
 */
void helpers_hang_up(int sock);

#endif /* DAEMON_HELPER_H */
