/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_BELLS_H
#define SAN_BELLS_H

/**
 * @file
 * Which queue pairs have new entries: a bit for each, set by any thread of the
 * application, taken by the lcore; above them a bit for each word of 64, so that the
 * lcore sees with one look that nobody rang. (SYS-2)
 *
 * Bits, and not a ring of numbers, because many threads ring: a ring's producer that
 * stands still between taking its place and filling it holds up all others, and one
 * in another process could do so for ever (SYS-5).
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAN_BELLS_MAX   (1u << 16) /* queue pairs */
#define SAN_BELLS_WORDS (SAN_BELLS_MAX / 64)

struct san_bells {
	_Alignas(64) _Atomic uint32_t asleep;                        /**< 1: who rings wakes it */
	_Alignas(64) _Atomic uint64_t summary[SAN_BELLS_WORDS / 64]; /**< of *words* */
	/** san_bells_bytes() says how many. */
	_Atomic uint64_t words[];
};

/** Memory for *max_qps*, whole cache lines; zeros are a valid start. */
static inline size_t
san_bells_bytes(uint32_t max_qps)
{
	return (sizeof(struct san_bells) + (max_qps + 63) / 64 * sizeof(uint64_t) + 63) &
		~(size_t)63;
}

/** Queue pair *index* has new entries, which are pushed. True: the lcore sleeps, wake it. */
static inline bool
san_bells_ring(struct san_bells *b, uint32_t index)
{
	/* pairs with the exchange in san_bells_take(): whoever takes the bit sees the entries */
	if (atomic_fetch_or(&b->words[index / 64], 1ull << index % 64) == 0)
		atomic_fetch_or(&b->summary[index / 4096], 1ull << index / 64 % 64);
	/* pairs with san_bells_doze(): it sees our bit, or we see that it sleeps */
	return atomic_load(&b->asleep) != 0;
}

/** The lcore: is about to sleep. It looks once more before it does, behind a full fence. */
static inline void
san_bells_doze(struct san_bells *b)
{
	atomic_store_explicit(&b->asleep, 1, memory_order_relaxed);
}

static inline void
san_bells_awake(struct san_bells *b)
{
	atomic_store_explicit(&b->asleep, 0, memory_order_relaxed);
}

/** The lcore: did anybody ring? *max_qps* as in san_bells_take(). */
static inline bool
san_bells_rang(const struct san_bells *b, uint32_t max_qps)
{
	uint64_t any = 0;
	uint32_t i;

	for (i = 0; i * 4096 < max_qps; i++)
		any |= atomic_load_explicit(&b->summary[i], memory_order_relaxed);
	return any != 0;
}

/**
 * The lcore: who rang. At least one word's worth of them if anybody did, and no more than
 * fit; each in its turn.
 *
 * @param cursor
 *   Where to begin; kept from call to call.
 * @param out
 *   At most *max* indices, which is at least 64. They are below *max_qps* rounded up to 64.
 */
uint32_t san_bells_take(struct san_bells *b, uint32_t max_qps, uint32_t *cursor, uint32_t *out,
			uint32_t max);

#endif /* SAN_BELLS_H */
