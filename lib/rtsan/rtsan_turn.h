/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_TURN_H
#define RTSAN_TURN_H

/**
 * @file
 * Several threads wait for different things at one place that only one thread may check. One of
 * them checks for all, and the others sleep until it has taken something or stops. (AFC-19)
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct rtsan_turn {
	pthread_mutex_t lock; /**< also protects what *take* changes and *done* reads */
	pthread_cond_t seen;
	bool busy; /**< a thread is checking */
};

struct rtsan_turn_ops {
	bool (*done)(const void *what);
	/** Take and distribute what is there; with the lock. 0, -EIO. */
	int (*take)(void *of);
	/** Sleep until there may be something; without the lock. As rtsan_cq_wait(). */
	int (*sleep)(void *of, int timeout_ms);
};

/** 0 or a positive errno of pthread. */
int rtsan_turn_init(struct rtsan_turn *t);
void rtsan_turn_fini(struct rtsan_turn *t);
/**
 * Wait until *what* is done. Called with the lock, which is released while asleep.
 *
 * @param end_ms
 *   As rtsan_turn_now_ms(); -1: no limit.
 * @return
 *   0; -EAGAIN: not in time; or an error of *take* or *sleep*.
 */
int rtsan_turn_wait(struct rtsan_turn *t, const struct rtsan_turn_ops *ops, void *of,
		    const void *what, int64_t end_ms);

int64_t rtsan_turn_now_ms(void);
/** Time at which *timeout_ms* from now is over; -1: never. */
int64_t rtsan_turn_end_ms(int timeout_ms);
/** Time left until then, as poll(2) expects it. */
int rtsan_turn_left_ms(int64_t end_ms);

#endif /* RTSAN_TURN_H */
