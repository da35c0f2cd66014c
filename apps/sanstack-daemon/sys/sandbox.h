/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SANDBOX_H
#define DAEMON_SANDBOX_H

/**
 * @file
 * The system calls that the daemon may make once it serves, and those of its helpers. (SYS-5)
 */

#include <stddef.h>

/** The process whose calls are allowed. */
enum sandbox_role {
	SANDBOX_DAEMON,
	SANDBOX_FORKER, /**< forks the helpers */
	SANDBOX_HELPER,
};

/** Restrict all threads, permanently. -errno with a text in *err*. */
int san_sandbox_enter(enum sandbox_role role, char *err, size_t err_len);

#endif /* DAEMON_SANDBOX_H */
