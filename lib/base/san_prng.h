/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Seedable generator (SplitMix64) for jitter, sampling, impairment and tests. Never for keys, tags,
 * cookies or initial PSNs: those use the secret generator that the owner of a core passes in.
 * (RULE-18)
 */

#include <stdint.h>

struct san_prng {
	uint64_t state;
};

static inline void
san_prng_seed(struct san_prng *g, uint64_t seed)
{
	g->state = seed;
}

static inline uint64_t
san_prng_u64(struct san_prng *g)
{
	uint64_t z = (g->state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/** Uniform in [0, bound) without a division; bound 0 gives 0. */
static inline uint32_t
san_prng_below(struct san_prng *g, uint32_t bound)
{
	return (uint32_t)(((san_prng_u64(g) >> 32) * bound) >> 32);
}
