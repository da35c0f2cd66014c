/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_FORK_H
#define DAEMON_HELPER_FORK_H

/** @file The process that forks helpers: small, without rights, forked first of all. (SYS-6) */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct harden_user;

/** Fork it. Returns our end of its socket, or -errno. */
int helper_fork_init(const struct harden_user *user, bool seccomp);
/** Have it fork a helper of *uid*. 0, with our ends of the helper's channels, or -errno. */
int helper_fork(int forker, uid_t uid, int *control, int *data);
#define HELPER_CLOSE_MAX 128

/**
 * Have *fds*, which stay the caller's, closed by a process that ends with them: such a process does
 * not wait for sockets that linger. At most HELPER_CLOSE_MAX. 0; -EAGAIN: not now; or -errno.
 */
int helper_fork_close(int forker, const int *fds, uint32_t nb);

#endif /* DAEMON_HELPER_FORK_H */
