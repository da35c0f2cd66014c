/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_ROOM_H
#define SOCK_ROOM_H

/**
 * @file
 * Memory for one call. A thread of a program may have a stack of 16 KiB, and a signal handler may
 * not call malloc(): what is too large for the one is taken here. (UDP-1)
 */

#include <stddef.h>

/** What fits into a place of the pool. */
#define SOCK_ROOM_BYTES 65536

struct sock_room {
	void *mem; /**< NULL: there was none */
	size_t bytes;
};

/** Take *bytes*. Any thread, signal handlers too. */
void sock_room_take(struct sock_room *room, size_t bytes);
/** Give back a struct sock_room; also for pthread_cleanup_push(). */
void sock_room_give(void *room);
/** In a child of fork(): the calls of the parent's other threads do not go on here. */
void sock_room_begin_child(void);

#endif /* SOCK_ROOM_H */
