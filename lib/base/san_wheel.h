/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Timing wheel: O(1) arm and cancel for one timer per connection, with any number of connections.
 * Hierarchical: four levels of 256 slots; level 0 slots are 1.024 us wide (2^10 ns), each higher
 * level is 256 times wider. A timer never fires early; it fires at most one level-0 slot late if
 * the wheel is advanced continuously. Timers of a slot fire in the order of arming (deterministic).
 *
 * Thread rule: belongs to one lcore.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define SAN_WHEEL_LEVELS 4
#define SAN_WHEEL_SLOTS  256
#define SAN_WHEEL_SHIFT  10

/** Embedded in the object that is timed; all zero means not armed. */
struct san_timer {
	TAILQ_ENTRY(san_timer) link; /**< tqe_prev is NULL: not armed */
	uint64_t deadline_ns;
};
TAILQ_HEAD(san_timers, san_timer);

struct san_wheel {
	uint64_t tick; /**< current level-0 tick: now_ns >> SAN_WHEEL_SHIFT */
	uint64_t due;  /**< nothing to do before this tick */
	uint32_t nb_armed;
	struct san_timers slot[SAN_WHEEL_LEVELS][SAN_WHEEL_SLOTS];
	uint64_t occupied[SAN_WHEEL_LEVELS][SAN_WHEEL_SLOTS / 64];
};

void san_wheel_init(struct san_wheel *w, uint64_t now_ns);

static inline bool
san_wheel_timer_is_armed(const struct san_timer *t)
{
	return t->link.tqe_prev != NULL;
}

/** Arm or re-arm for *deadline_ns*; a deadline in the past fires at the next poll. */
void san_wheel_arm(struct san_wheel *w, struct san_timer *t, uint64_t deadline_ns);

/** Cancel; harmless when not armed. */
void san_wheel_cancel(struct san_wheel *w, struct san_timer *t);

/** Slow part of san_wheel_poll(). */
struct san_timer *san_wheel_take(struct san_wheel *w, uint64_t now_ns);

/**
 * Advance to *now_ns* and take out one timer that is due. Call until NULL. The returned timer is
 * disarmed and may be armed again at once.
 */
static inline struct san_timer *
san_wheel_poll(struct san_wheel *w, uint64_t now_ns)
{
	uint64_t tick = now_ns >> SAN_WHEEL_SHIFT;

	if (tick >= w->due)
		return san_wheel_take(w, now_ns);
	if (tick > w->tick)
		w->tick = tick;
	return NULL;
}

/**
 * When to poll next: never later than the earliest deadline (rounded up to its slot);
 * SAN_TIME_NEVER if nothing is armed. It may be earlier than the earliest deadline, but is always
 * later than the last poll.
 */
uint64_t san_wheel_deadline_ns(const struct san_wheel *w);

/** Verify every invariant; aborts if one is violated. For tests. */
void san_wheel_check(const struct san_wheel *w);
