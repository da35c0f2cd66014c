/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_LOCK_H
#define SOCK_LOCK_H

/**
 * @file
 * A lock in memory that several programs have, of which none can rely on the others: who waits
 * does so for a bounded time, whatever is written there. (UDP-7, SYS-5)
 */

#include <stdbool.h>
#include <stdint.h>

#include "sock_shm.h"

/** A result of sock_lock(): it was somebody's who has died with it, or has not given it back. */
#define SOCK_LOCK_TAKEN 1

/**
 * Have *l*.
 *
 * @param takes
 *   Also from one that is known to live, if he does not give it back for long: right where he
 *   finds out in time that it is not his any more.
 * @param key
 *   For sock_unlock().
 * @return
 *   0; SOCK_LOCK_TAKEN; -EDEADLK: this thread has it, in the call that a signal handler
 *   interrupted, or somebody does who lives and keeps it.
 */
int sock_lock(struct san_sock_lock *l, bool takes, uint32_t *key);
/** Likewise, as long as who has it lives: false only in a signal handler that interrupted him. */
bool sock_lock_wait(struct san_sock_lock *l, uint32_t *key);
void sock_unlock(struct san_sock_lock *l, uint32_t key);
/** Ask the kernel now who we are, and not when the first lock is taken. */
void sock_lock_attach(void);
/** Number of the thread that calls; not 0. */
uint32_t sock_lock_thread(void);
/** In the child, after fork(): it is somebody else. */
void sock_lock_detach(void);

#endif /* SOCK_LOCK_H */
