/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_ROOM_H
#define SOCK_ROOM_H

/**
 * @file
 * Memory for one call. A thread may have a stack of 16 KiB, and a signal handler must not call
 * malloc(): buffers that are too large for a stack come from here. (UDP-1)
 */

#include <stddef.h>

/** Largest size that the pool serves; larger ones are mapped. */
#define SOCK_ROOM_BYTES 65536

struct sock_room {
	void *mem; /**< NULL: out of memory */
	size_t bytes;
};

/** Take *bytes*. May be called by any thread, also in signal handlers. */
void san_sock_room_take(struct sock_room *room, size_t bytes);
/** Release a struct sock_room. Its type suits pthread_cleanup_push(). */
void san_sock_room_give(void *room);
/** In a child of fork(): release what other threads of the parent had taken. */
void san_sock_room_begin_child(void);

#endif /* SOCK_ROOM_H */
