/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_USERS_H
#define DAEMON_USERS_H

/**
 * @file
 * Which users count as one, and what share of a limit each may have. A user that has subordinate
 * user numbers (subuid(5)) could otherwise take 65,536 shares. (SYS-9)
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBUID "/etc/subuid"

/** Read the file of subordinate user numbers; without one each user counts for itself. */
void users_read(const char *path);
/** The user that *uid* is subordinate to, or itself. Says nothing about rights. */
uid_t users_owner(uid_t uid);
/**
 * May a user that has *own* of *max* places, of which *all* are taken, have one more? It may have
 * three quarters of those that others leave, at least one; a sixteenth is left for root.
 */
bool users_may(uid_t owner, uint32_t own, uint32_t all, uint32_t max);

#endif /* DAEMON_USERS_H */
