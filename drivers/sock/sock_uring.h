/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_URING_H
#define SOCK_URING_H

/**
 * @file
 * What a program asks for by io_uring the library does not see: its sockets are the kernel's.
 * (UDP-11)
 */

#include <stdbool.h>

#define SOCK_BY_URING "its program uses io_uring"

/** Has the process a ring, or the library that makes them? */
bool sock_uses_uring(void);

#endif /* SOCK_URING_H */
