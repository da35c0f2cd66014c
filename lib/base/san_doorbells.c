/* SPDX-License-Identifier: BSD-3-Clause */

#include "san_doorbells.h"

uint32_t
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
