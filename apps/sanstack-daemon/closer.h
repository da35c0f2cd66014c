/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_CLOSER_H
#define DAEMON_CLOSER_H

/**
 * @file
 * Descriptors that others passed to us, and whose close() may take as long as they like: a TCP
 * socket that lingers, a file of their own FUSE mount. Threads close them, each user has one.
 * (SYS-5)
 */

#include <stdint.h>
#include <sys/types.h>

#define CLOSER_EACH 32 /**< of one user that may wait: meanwhile none of its requests is read */

/** *fd*, which came from *uid*, is closed: at once if that can't take long. */
void closer_put(int fd, uid_t uid);
/** How many of *uid* wait. */
uint32_t closer_waiting(uid_t uid);

#endif /* DAEMON_CLOSER_H */
