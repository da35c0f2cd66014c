/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file A lock that is released at the end of a block, on every way out of it. */

#include <pthread.h>

static inline pthread_mutex_t *
san_lock_take(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	return lock;
}

static inline void
san_lock_release(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

/** Hold *lock* from here to the end of the block. A returned value is computed with it. */
#define SAN_LOCKED(lock)                                   \
	__attribute__((cleanup(san_lock_release), unused)) \
	pthread_mutex_t *locked = san_lock_take(lock)
