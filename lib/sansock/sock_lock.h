/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_LOCK_H
#define SOCK_LOCK_H

/**
 * @file
 * A lock in memory that several programs share, of which none can rely on the others. A wait is
 * bounded, whatever is written there. (UDP-7, SYS-5)
 */

#include <stdbool.h>
#include <stdint.h>

#include "sock_shm.h"

/** A result of san_sock_lock(): the last owner has died, or has not released the lock in time. */
#define SOCK_LOCK_TAKEN 1

/**
 * Take *l*.
 *
 * @param takes
 *   Take it also from an owner that lives but does not release it in time. Only for uses in which
 *   that owner notices, before it does harm, that it has lost the lock.
 * @param key
 *   For san_sock_lock_unlock().
 * @return
 *   0; SOCK_LOCK_TAKEN; -EDEADLK: this thread holds it, in the call that a signal handler
 *   interrupted, or a thread that lives holds it for too long.
 */
int san_sock_lock(struct san_sock_lock *l, bool takes, uint32_t *key);
/**
 * Take *l*, and wait for a living owner up to a minute. False: it still holds the lock, or it is
 * this thread, in the call that a signal handler interrupted.
 */
bool san_sock_lock_wait(struct san_sock_lock *l, uint32_t *key);
void san_sock_lock_unlock(struct san_sock_lock *l, uint32_t key);
/** Look up this thread and process now, so that the first lock needs no system call. */
void san_sock_lock_attach(void);
/** Number of the calling thread; not 0. */
uint32_t san_sock_lock_thread(void);
/** In the child, after fork(): the numbers have changed. */
void san_sock_lock_detach(void);

#endif /* SOCK_LOCK_H */
