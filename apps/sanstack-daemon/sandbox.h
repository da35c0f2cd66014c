/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SANDBOX_H
#define DAEMON_SANDBOX_H

/**
 * @file
 * The system calls that the daemon can make once it serves. (SYS-5)
 */

#include <stddef.h>

/** All threads, from now on and for ever. -errno with what is wrong in *err*. */
int sandbox_enter(char *err, size_t err_len);

#endif /* DAEMON_SANDBOX_H */
