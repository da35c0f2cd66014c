/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_IMPAIR_H
#define ENGINE_IMPAIR_H

/**
 * @file
 * Artificial link faults: a stage before transmission and one after reception. The same seed and
 * the same packets give the same faults.
 *
 * It is not an ethdev callback, because when a TX callback drops packets the caller frees them a
 * second time.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "san_prng.h"

#define SAN_IMPAIR_ALWAYS (1ULL << 32) /**< probability 1 */

struct san_engine_impair_conf {
	/** Probabilities in units of 2^-32. */
	uint64_t drop, duplicate, reorder, corrupt, ecn;
	uint64_t delay_ns; /**< added to every packet */
	uint64_t seed;
};

struct san_engine_impair_stats {
	uint64_t nb_dropped;
	uint64_t nb_duplicated;
	uint64_t nb_reordered;
	uint64_t nb_corrupted;
	uint64_t nb_marked;
	uint64_t nb_overflow; /**< dropped because too many packets were delayed */
};

/** A delayed packet. */
struct san_engine_impair_held {
	uint64_t release_ns;
	uint64_t seq; /**< order of arrival, for equal times */
	struct rte_mbuf *m;
};

struct san_engine_impair {
	struct san_engine_impair_conf conf;
	struct san_prng prng;
	bool on;
	uint32_t nb_held, max_held;
	struct san_engine_impair_held *held; /**< heap: earliest first */
	uint64_t seq;
	struct san_engine_impair_stats stats;
};

/** Initialise, switched off, with room for *max_held* delayed packets. -ENOMEM. */
int san_engine_impair_init(struct san_engine_impair *im, uint32_t max_held);
/** Free the delayed packets and all memory. */
void san_engine_impair_fini(struct san_engine_impair *im);
/** Set the faults. NULL: off; delayed packets still come out in time. -EINVAL. */
int san_engine_impair_set(struct san_engine_impair *im, const struct san_engine_impair_conf *conf);

/** Whether san_engine_impair_run() must be called. */
static inline bool
san_engine_impair_is_on(const struct san_engine_impair *im)
{
	return im->on || im->nb_held != 0;
}

/**
 * Take *n* packets in, and return those that are due, at most *max*. The stage owns packets that go
 * in, the caller those that come out.
 */
uint16_t san_engine_impair_run(struct san_engine_impair *im, struct rte_mbuf **in, uint16_t n,
			       struct rte_mbuf **out, uint16_t max, uint64_t now_ns);
/** When the next packet is due; SAN_TIME_NEVER: none is delayed. */
uint64_t san_engine_impair_deadline_ns(const struct san_engine_impair *im);

#endif /* ENGINE_IMPAIR_H */
