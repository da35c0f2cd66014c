/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_TOUCH_H
#define SOCK_TOUCH_H

/**
 * @file
 * Is what a program passes memory? The kernel says EFAULT if not, and so does a call on a carried
 * socket. (UDP-9)
 *
 * A page that was found good is remembered, so no system call is made in the steady state (UDP-8).
 * Pages are forgotten when the program calls munmap(), mprotect() or mremap(). What the C library
 * unmaps itself, for free() or a thread's stack, is not noticed.
 */

#include <stdbool.h>
#include <stddef.h>

/** Can these bytes not be read? Of none they can. */
bool sock_is_bad(const void *p, size_t len);
/** Can these bytes not be written? They keep what they have. */
bool sock_is_bad_out(const void *p, size_t len);
/** Memory is about to be unmapped or protected, or has been. */
void sock_touch_forget(void);

#endif /* SOCK_TOUCH_H */
