/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SANDBOX_H
#define DAEMON_SANDBOX_H

/**
 * @file
 * The system calls that the daemon can make once it serves, and its helpers. (SYS-5)
 */

#include <stddef.h>

/** Which process it is that has no other calls. */
enum sandbox_of {
	SANDBOX_DAEMON,
	SANDBOX_FORKER, /**< of helpers */
	SANDBOX_HELPER,
};

/** All threads, from now on and for ever. -errno with what is wrong in *err*. */
int sandbox_enter(enum sandbox_of who, char *err, size_t err_len);

#endif /* DAEMON_SANDBOX_H */
