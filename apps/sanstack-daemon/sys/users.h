/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Which user IDs count as one user, and each user's share of a limit. Without this a user with
 * subordinate user IDs (subuid(5)) could take 65,536 shares. All that programs take is counted
 * here, by user. Thread rule: the main thread. (SYS-9)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBUID      "/etc/subuid"
#define USERS_PORTS 8 /**< ports of the daemon */
/** The user that all programs of user 0 count as that are not shown to be root of this host. */
#define USERS_UNPROVED ((uid_t)-2)

/** What programs take. */
enum users_place {
	USERS_UNATTACHED, /**< connections to the daemon without a hello */
	USERS_APPS,
	USERS_QPS, /**< queue pairs, and those of carried streams */
	USERS_CONNS,
	USERS_CQS,
	USERS_MRS,
	USERS_BYTES,     /**< memory of regions and queues */
	USERS_LISTENERS, /**< services, and carried sockets that listen */
	USERS_SOCKS,
	USERS_SOCK_BYTES, /**< memory of carried sockets */
	USERS_GROUPS,     /**< multicast groups */
	USERS_FDS,        /**< descriptors of the daemon; counted with what has them */
	USERS_PLACES
};

/** Places that a user asks for. */
struct users_want {
	enum users_place what;
	uid_t owner;
	uint16_t port;
	uint64_t nb, max;     /**< wanted, and all that exist */
	uint64_t own, others; /**< in use, beside those that san_users_count() knows */
};

/** Look up a user by name, or by the number of one without a name. Thread rule: any thread. */
bool san_users_find(const char *name, uid_t *uid);
/**
 * Read the subordinate user IDs; without a file each user ID counts for itself. *path* is kept. For
 * the thread that calls the other functions.
 */
void san_users_read(const char *path);
/**
 * If the file has changed, let a thread read it again; until it has, the earlier content counts.
 * Cheap: it looks ten times a second at most.
 */
void san_users_follow(uint64_t now_ns);
/**
 * The user that *uid* is subordinate to, or *uid*. It implies no access rights. *is_root*: the
 * program is root of this host; see san_shmq_is_root().
 */
uid_t san_users_owner(uid_t uid, bool is_root);
/**
 * Check that a user with *own* of *max* places, of which *all* are taken, may have one more. A user
 * may take three quarters of what others leave, at least one place. A sixteenth is reserved for
 * root.
 */
bool san_users_may(uid_t owner, uint64_t own, uint64_t all, uint64_t max);
/**
 * Check that a user may have more places. -ENOSPC: refused, *why* is the text; -EALREADY: refused,
 * and nothing has changed since the last refusal.
 */
int san_users_check(const struct users_want *w, char *why, size_t len);
/** Count *change* places, and the descriptors that they need. -ENOMEM: for a user with none. */
int san_users_count(uint16_t port, uid_t owner, enum users_place what, int64_t change);
/** Number of places that are counted for *owner*; NULL: for all users. */
uint64_t san_users_nb(uint16_t port, const uid_t *owner, enum users_place what);
/** Descriptors that *nb* places need. */
uint64_t san_users_fds(enum users_place what, uint64_t nb);
