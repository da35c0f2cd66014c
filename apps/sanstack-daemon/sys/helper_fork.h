/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_FORK_H
#define DAEMON_HELPER_FORK_H

/** @file The process that forks helpers: small, without rights, started first. (SYS-6) */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct harden_user;

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

#endif /* DAEMON_HELPER_FORK_H */
