/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_BUSY_H
#define ENGINE_BUSY_H

/**
 * @file
 * How long an lcore works and how long its rounds take, from the clock that each round reads
 * anyway. The duration of a round is known when the next one begins. Only rounds that found work
 * count; sleep and empty polling do not. (SYS-1)
 */

#include <stdbool.h>
#include <stdint.h>

#define ENGINE_HIST 32 /**< bucket i: 2^i to 2^(i+1) ns; the last one: all longer rounds */

struct san_engine_busy {
	uint64_t since_ns; /**< when counting began */
	uint64_t round_ns; /**< when this round began */
	uint64_t busy_ns;
	bool worked; /**< this round, or the last one, found work */
	uint64_t rounds[ENGINE_HIST];
};

static inline uint32_t
san_engine_busy_bucket(uint64_t ns)
{
	uint32_t log2 = 63 - (uint32_t)__builtin_clzll(ns | 1);

	return log2 < ENGINE_HIST ? log2 : ENGINE_HIST - 1;
}

static inline void
san_engine_busy_init(struct san_engine_busy *b, uint64_t now_ns)
{
	*b = (struct san_engine_busy){.since_ns = now_ns, .round_ns = now_ns};
}

/** Call at the beginning of a round. */
static inline void
san_engine_busy_begin(struct san_engine_busy *b, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - b->round_ns;

	b->round_ns = now_ns;
	if (!b->worked)
		return;
	b->busy_ns += took_ns;
	b->rounds[san_engine_busy_bucket(took_ns)]++;
}

/** Call at the end of a round with the amount of *work* it found. */
static inline void
san_engine_busy_end(struct san_engine_busy *b, uint32_t work)
{
	b->worked = work != 0;
}

#endif /* ENGINE_BUSY_H */
