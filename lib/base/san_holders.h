/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_HOLDERS_H
#define SAN_HOLDERS_H

/**
 * @file
 * Parts of a pool in use, in a list with the one checked longest ago first (RT-35). When the pool
 * is exhausted, the first few are checked. A holder without progress for SAN_HOLD_MAX_NS is stale:
 * its connection ends, and its part is released. A check is O(1), however many are in use. A peer
 * that is silent for a minute keeps what it holds.
 *
 * Thread rule: a list belongs to one lcore.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "san_time.h"

#define SAN_HOLD_MAX_NS   (120 * SAN_NS_PER_S)
#define SAN_HOLDERS_LOOKS 8 /**< checks each time the pool is exhausted */

struct san_holder {
	TAILQ_ENTRY(san_holder) link;
	uint64_t since_ns; /**< when *mark* was first seen unchanged; 0: not seen */
	uint32_t mark;     /**< any number that changes with progress */
};
TAILQ_HEAD(san_holders, san_holder);

/** Add a part that is now in use. TAILQ_REMOVE() takes it out. */
static inline void
san_holders_enter(struct san_holders *line, struct san_holder *h)
{
	h->since_ns = 0;
	TAILQ_INSERT_TAIL(line, h, link);
}

/** Check one holder and move it to the end: true if *mark* has not changed for too long. */
static inline bool
san_holders_is_stale(struct san_holders *line, struct san_holder *h, uint32_t mark, uint64_t now_ns)
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
