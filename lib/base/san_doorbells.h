/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Doorbells: one bit per queue pair with new entries, set by any thread of the application and
 * taken by the lcore. A summary has one bit per word of 64, so that the lcore sees in one look that
 * no doorbell was rung. (SYS-2)
 *
 * Bits are used instead of a ring of numbers because many threads ring doorbells. A producer of a
 * ring that stops between reserving an entry and filling it blocks all others, and one in another
 * process could do so forever (SYS-5).
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "san_line.h"

#define SAN_DOORBELLS_MAX   (1u << 16) /* queue pairs */
#define SAN_DOORBELLS_WORDS (SAN_DOORBELLS_MAX / 64)

struct san_doorbells {
	_Alignas(SAN_LINE) _Atomic uint32_t asleep; /**< the lcore sleeps */
	/** Summary of *words*. */
	_Alignas(SAN_LINE) _Atomic uint64_t summary[SAN_DOORBELLS_WORDS / 64];
	/** One bit per queue pair; san_doorbells_bytes() gives the size. */
	_Atomic uint64_t words[];
};

/** Bytes for *max_qps* queue pairs, whole cache lines; zeros are a valid start. */
static inline size_t
san_doorbells_bytes(uint32_t max_qps)
{
	size_t bytes = sizeof(struct san_doorbells) + (max_qps + 63) / 64 * sizeof(uint64_t);

	return (bytes + SAN_LINE - 1) & ~(size_t)(SAN_LINE - 1);
}

/** Ring for queue pair *index*, whose entries are pushed. True: the caller must wake the lcore. */
static inline bool
san_doorbells_ring(struct san_doorbells *b, uint32_t index)
{
	/* Pairs with the exchange in san_doorbells_take(): its reader sees the entries. */
	if (atomic_fetch_or(&b->words[index / 64], 1ull << index % 64) == 0)
		atomic_fetch_or(&b->summary[index / 4096], 1ull << index / 64 % 64);
	/* Pairs with san_doorbells_set_asleep(): it sees our bit, or we see that it sleeps. */
	return atomic_load(&b->asleep) != 0;
}

/** Called by the lcore. Before it sleeps, after a full fence, it checks its doorbells again. */
static inline void
san_doorbells_set_asleep(struct san_doorbells *b, bool asleep)
{
	atomic_store_explicit(&b->asleep, asleep, memory_order_relaxed);
}

/** Called by the lcore: true if a doorbell was rung. *max_qps* as in san_doorbells_take(). */
static inline bool
san_doorbells_have_rung(const struct san_doorbells *b, uint32_t max_qps)
{
	uint64_t any = 0;
	uint32_t i;

	for (i = 0; i * 4096 < max_qps; i++)
		any |= atomic_load_explicit(&b->summary[i], memory_order_relaxed);
	return any != 0;
}

/**
 * Called by the lcore: take the queue pairs whose doorbells were rung, in turn. At least one word's
 * worth, if any was rung, and no more than fit.
 *
 * @param cursor
 *   Where to begin; kept from call to call.
 * @param out
 *   At most *max* indices, which is at least 64. They are below *max_qps* rounded up to 64.
 */
static inline uint32_t
san_doorbells_take(struct san_doorbells *b, uint32_t max_qps, uint32_t *cursor, uint32_t *out,
		   uint32_t max)
{
	uint32_t nb_words = (max_qps + 63) / 64, nb_top = (nb_words + 63) / 64;
	uint32_t top = *cursor / 64, word, i, n = 0;
	uint64_t bits, pending, from = ~0ull << *cursor % 64;

	/* The part of the first summary word before the cursor is scanned last. */
	for (i = 0; i <= nb_top; i++, top = top + 1 < nb_top ? top + 1 : 0, from = ~0ull) {
		bits = atomic_load_explicit(&b->summary[top], memory_order_relaxed) & from;
		for (; bits != 0; bits &= bits - 1) {
			word = top * 64 + (uint32_t)__builtin_ctzll(bits);
			if (n + 64 > max) {
				*cursor = word;
				return n;
			}
			atomic_fetch_and(&b->summary[top], ~(bits & -bits));
			pending = word < nb_words ? atomic_exchange(&b->words[word], 0) : 0;
			for (; pending != 0; pending &= pending - 1)
				out[n++] = word * 64 + (uint32_t)__builtin_ctzll(pending);
		}
	}
	return n;
}
