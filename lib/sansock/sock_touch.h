/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_TOUCH_H
#define SOCK_TOUCH_H

/**
 * @file
 * Checks whether pointers that a program passes are accessible. If not, a call on a carried socket
 * returns EFAULT, as the kernel does. (UDP-9)
 *
 * A page that was found good is remembered, so no system call is made in the steady state (UDP-8).
 * Pages are forgotten when the program calls munmap(), mprotect() or mremap(). What the C library
 * itself unmaps, for free() or for a thread's stack, is not noticed.
 */

#include <stdbool.h>
#include <stddef.h>

/** Whether some of these bytes can't be read. False if *len* is 0. */
bool san_sock_touch_is_bad(const void *p, size_t len);
/** Whether some of these bytes can't be written. They keep their values. */
bool san_sock_touch_is_bad_out(const void *p, size_t len);
/** Call it before or after memory is unmapped or protected. */
void san_sock_touch_forget(void);

#endif /* SOCK_TOUCH_H */
