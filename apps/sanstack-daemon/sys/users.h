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

/** Read the subordinate user IDs; without a file each user ID counts for itself. */
void san_users_read(const char *path);
/** The user that *uid* is subordinate to, or *uid*. It implies no access rights. */
uid_t san_users_owner(uid_t uid);
/**
 * Check that a user with *own* of *max* places, of which *all* are taken, may have one more. A user
 * may take three quarters of what others leave, at least one place. A sixteenth is reserved for
 * root.
 */
bool san_users_may(uid_t owner, uint32_t own, uint32_t all, uint32_t max);

#endif /* DAEMON_USERS_H */
