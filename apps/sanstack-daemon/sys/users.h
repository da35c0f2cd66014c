/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_USERS_H
#define DAEMON_USERS_H

/**
 * @file
 * Which user IDs count as one user, and each user's share of a limit. Without this a user with
 * subordinate user IDs (subuid(5)) could take 65,536 shares. (SYS-9)
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBUID "/etc/subuid"
/** The user that all programs of user 0 count as that are not shown to be root of this host. */
#define USERS_UNPROVED ((uid_t)-2)

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
bool san_users_may(uid_t owner, uint32_t own, uint32_t all, uint32_t max);

#endif /* DAEMON_USERS_H */
