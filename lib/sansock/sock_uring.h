/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_URING_H
#define SOCK_URING_H

/**
 * @file
 * The library does not see requests by io_uring, so sockets of a program that uses it are the
 * kernel's. (UDP-11)
 */

#include <stdbool.h>

#define SOCK_BY_URING "its program uses io_uring"

/** Whether the process has a ring, or the library that creates rings. */
bool san_sock_uring_is_used(void);

#endif /* SOCK_URING_H */
