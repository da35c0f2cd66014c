/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Shares of a pool, and how long a part may be held (RT-35).
 *
 * A peer host has a share of each pool, whatever its number of connections: doc/deadlock.md.
 *
 * Parts in use are in a list with the one checked longest ago first. When the pool is exhausted,
 * the first few are checked. A holder without progress for SAN_HOLD_MAX_NS is stale: its connection
 * ends, and its part is released. A check is O(1), however many are in use. A peer that is silent
 * for a minute keeps what it holds.
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
#define SAN_SHARE_LEAST   2 /**< parts for each host: a slow connection does not stop the others */
#define SAN_SHARES        8 /**< divisor of what is left */

/**
 * Parts of a pool that *nb_users* share with *nb* of them at a time: with spare ones for hosts that
 * come when the others are taken.
 */
static inline uint32_t
san_holders_nb_parts(uint32_t nb_users, uint32_t nb)
{
	return nb_users > nb ? nb + (nb + SAN_SHARES - 1) / SAN_SHARES : nb;
}

/**
 * True if a host that has *own* parts of a pool may take one of the *left* free ones. Where hosts
 * compete, and it has its first ones, it must have less than an eighth of what is left. So each
 * silent host keeps less than the one before. Where none compete, the *spare* ones stay free.
 */
static inline bool
san_holders_may_take(bool compete, uint32_t own, uint32_t left, uint32_t spare)
{
	if (own < SAN_SHARE_LEAST)
		return left != 0;
	return compete ? own * SAN_SHARES < left : left > spare;
}

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
