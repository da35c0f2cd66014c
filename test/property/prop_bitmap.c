/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The ring bitmap under a sliding window against an array of bool (RT-3, RT-4),
 * starting just below 2^32 in every second run. Narrow at first, then wide with
 * the same bits, narrow again whenever it is empty.
 */

#include "prop.h"

#include <stdbool.h>

#include "san_bitmap.h"

#define NB_STEPS 500

static struct san_bitmap real;
static uint64_t words[SAN_BITMAP_WORDS];
static uint32_t size;               /* of the ring: narrow until a random step widens it */
static bool model[SAN_BITMAP_BITS]; /* model[i] is the bit of base + i */

static void
slide(uint32_t *base, uint32_t n)
{
	san_bitmap_clear_range(&real, *base, n);
	*base += n;
	memmove(model, model + n, SAN_BITMAP_BITS - n);
	memset(model + SAN_BITMAP_BITS - n, 0, n);
}

static void
check_searches(uint32_t base, uint32_t from, uint32_t max)
{
	uint32_t ones = 0, zeros = 0;

	while (ones < max && model[from + ones])
		ones++;
	while (zeros < max && !model[from + zeros])
		zeros++;
	PROP_CHECK(san_bitmap_leading_ones(&real, base + from, max) == ones);
	PROP_CHECK(san_bitmap_first_one(&real, base + from, max) == zeros);
}

static void
check_word(uint32_t base, uint32_t from)
{
	uint64_t word = san_bitmap_get64(&real, base + from);

	for (uint32_t i = 0; i < 64 && from + i < size; i++)
		PROP_CHECK(((word >> i) & 1) == model[from + i]);
}

static void
change_word(struct san_prng *g, uint32_t base, uint32_t at)
{
	uint64_t bits = san_prng_u64(g) & san_bitmap_mask64(size - at);
	bool set = san_prng_below(g, 2) == 0;

	if (set)
		san_bitmap_or64(&real, base + at, bits);
	else
		san_bitmap_andnot64(&real, base + at, bits);
	for (uint32_t i = 0; i < 64 && at + i < size; i++)
		if ((bits >> i) & 1)
			model[at + i] = set;
}

static void
step(struct san_prng *g, uint32_t *base)
{
	uint32_t at = san_prng_below(g, size);

	switch (san_prng_below(g, 7)) {
	case 6:
		change_word(g, *base, at);
		break;
	case 0:
		san_bitmap_clear(&real, *base + at);
		model[at] = false;
		break;
	case 1: /* a run, as in-order traffic makes them */
		for (uint32_t n = san_prng_below(g, 200); n > 0 && at < size; n--, at++) {
			san_bitmap_set(&real, *base + at);
			model[at] = true;
		}
		break;
	case 2:
		slide(base, san_bitmap_leading_ones(&real, *base, size));
		break;
	case 3:
		slide(base, san_prng_below(g, size == SAN_BITMAP_BITS ? 130 : size));
		break;
	default:
		san_bitmap_set(&real, *base + at);
		model[at] = true;
		break;
	}
}

static void
resize(struct san_prng *g, uint32_t base)
{
	if (size == SAN_BITMAP_NARROW && san_prng_below(g, 50) == 0) {
		san_bitmap_widen(&real, words, base);
		size = SAN_BITMAP_BITS;
	} else if (size == SAN_BITMAP_BITS && san_prng_below(g, 20) == 0) {
		slide(&base, SAN_BITMAP_BITS);
		PROP_CHECK(san_bitmap_narrow(&real) == words);
		size = SAN_BITMAP_NARROW;
	}
	PROP_CHECK(san_bitmap_bits(&real) == size);
}

static void
run(uint64_t seed)
{
	struct san_prng g;
	uint32_t base;

	san_prng_seed(&g, seed);
	memset(&real, 0, sizeof(real));
	memset(words, 0, sizeof(words));
	size = SAN_BITMAP_NARROW;
	memset(model, 0, sizeof(model));
	base = (uint32_t)san_prng_u64(&g);
	if (seed & 1)
		base |= 0xfffff000;
	for (uint32_t i = 0; i < NB_STEPS; i++) {
		uint32_t from, k;

		resize(&g, base);
		from = san_prng_below(&g, size);
		k = san_prng_below(&g, size);
		step(&g, &base);
		PROP_CHECK(san_bitmap_test(&real, base + k) == model[k]);
		check_searches(base, from, san_prng_below(&g, size - from + 1));
		check_searches(base, 0, size);
		check_word(base, from);
	}
}

PROP_MAIN("ring bitmap equals array", run)
