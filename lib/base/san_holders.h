/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_HOLDERS_H
#define SAN_HOLDERS_H

/**
 * @file
 * Parts of a pool that are in use, in a line: the one looked at longest ago is first (RT-35). When
 * the pool is used up, the first few are looked at. One without progress for SAN_HOLD_MAX_NS is
 * stale: its connection ends, and what that held is for others. A look takes O(1), however many are
 * in use. A peer that is silent for a minute keeps what it has.
 *
 * Thread rule: a line belongs to one lcore.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "san_time.h"

#define SAN_HOLD_MAX_NS   (120 * SAN_NS_PER_S)
#define SAN_HOLDERS_LOOKS 8 /**< when the pool is found used up */

struct san_holder {
	TAILQ_ENTRY(san_holder)
	link;
	uint64_t since_ns; /**< when its mark was first seen to be what it is; 0: never seen */
	uint32_t mark;     /**< any number that changes with progress */
};
TAILQ_HEAD(san_holders, san_holder);

/** It is in use now. TAILQ_REMOVE() takes it out. */
static inline void
san_holder_enter(struct san_holders *line, struct san_holder *h)
{
	h->since_ns = 0;
	TAILQ_INSERT_TAIL(line, h, link);
}

/** Look at one in the line, which goes to its end: has *mark* been the same for too long? */
static inline bool
san_holder_is_stale(struct san_holders *line, struct san_holder *h, uint32_t mark, uint64_t now_ns)
{
	bool moved = h->since_ns == 0 || mark != h->mark;

	TAILQ_REMOVE(line, h, link);
	TAILQ_INSERT_TAIL(line, h, link);
	if (!moved)
		return now_ns - h->since_ns >= SAN_HOLD_MAX_NS;
	h->mark = mark;
	h->since_ns = now_ns;
	return false;
}

#endif /* SAN_HOLDERS_H */
