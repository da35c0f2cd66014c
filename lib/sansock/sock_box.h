/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_BOX_H
#define SOCK_BOX_H

/**
 * @file
 * A process that confines itself by a filter of system calls (seccomp). What it has carried stays
 * carried, by read(), write() and poll() of its descriptors alone. Nothing else is carried any
 * more, and the daemon is not asked. Its children are confined, too. (UDP-11)
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

extern _Atomic bool sock_box_is_closed;

/** True if the process is confined. */
static inline bool
san_sock_box_is_closed(void)
{
	return __builtin_expect(atomic_load_explicit(&sock_box_is_closed, memory_order_relaxed), 0);
}

/**
 * Receive one byte without waiting; no cancellation point.
 *
 * @return
 *   1; 0: the other end is closed; -1: nothing is there.
 */
long san_sock_box_recv(int fd, bool peeks);
/** Send one message without waiting; no cancellation point. As send(). */
long san_sock_box_send(int fd, const void *data, size_t len);

#endif /* SOCK_BOX_H */
