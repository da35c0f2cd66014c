/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_TURN_H
#define RTSAN_TURN_H

/**
 * @file
 * Several threads wait at one place where only one may look, each for something else: one of them
 * looks, for all, and the others sleep until he has seen something, or stops. (AFC-19)
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct rtsan_turn {
	pthread_mutex_t lock; /**< also of whatever *take* changes and *done* reads */
	pthread_cond_t seen;
	bool busy; /**< somebody looks */
};

struct rtsan_turn_ops {
	bool (*done)(const void *what);
	/** Look, and share out what is there; with the lock. 0, -EIO. */
	int (*take)(void *of);
	/** Sleep until there may be something; without the lock. As rtsan_cq_wait(). */
	int (*sleep)(void *of, int timeout_ms);
};

/** 0 or a positive errno of pthread's. */
int rtsan_turn_init(struct rtsan_turn *t);
void rtsan_turn_fini(struct rtsan_turn *t);
/**
 * With the lock, which is not held while asleep: until *what* is done.
 *
 * @param end_ms
 *   Of rtsan_turn_now_ms(); -1: for ever.
 * @return
 *   0; -EAGAIN: not in time; or what *take* and *sleep* say.
 */
int rtsan_turn_wait(struct rtsan_turn *t, const struct rtsan_turn_ops *ops, void *of,
		    const void *what, int64_t end_ms);

int64_t rtsan_turn_now_ms(void);
/** When *timeout_ms* from now is over; -1: never. */
int64_t rtsan_turn_end_ms(int timeout_ms);
/** What is left until then, as poll(2) wants it. */
int rtsan_turn_left_ms(int64_t end_ms);

#endif /* RTSAN_TURN_H */
