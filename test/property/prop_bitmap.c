/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The ring bitmap under a sliding window against an array of bool (RT-3, RT-4),
 * starting just below 2^32 in every second run.
 */

#include "prop.h"

#include <stdbool.h>

#include "san_bitmap.h"

#define NB_STEPS 500

static struct san_bitmap real;
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
	uint32_t i;

	for (i = 0; i < 64 && from + i < SAN_BITMAP_BITS; i++)
		PROP_CHECK(((word >> i) & 1) == model[from + i]);
}

static void
change_word(struct san_prng *g, uint32_t base, uint32_t at)
{
	uint64_t bits = san_prng_u64(g) & san_bitmap_mask64(SAN_BITMAP_BITS - at);
	bool set = san_prng_below(g, 2) == 0;
	uint32_t i;

	if (set)
		san_bitmap_or64(&real, base + at, bits);
	else
		san_bitmap_andnot64(&real, base + at, bits);
	for (i = 0; i < 64 && at + i < SAN_BITMAP_BITS; i++)
		if ((bits >> i) & 1)
			model[at + i] = set;
}

static void
step(struct san_prng *g, uint32_t *base)
{
	uint32_t at = san_prng_below(g, SAN_BITMAP_BITS);
	uint32_t n;

	switch (san_prng_below(g, 7)) {
	case 6:
		change_word(g, *base, at);
		break;
	case 0:
		san_bitmap_clear(&real, *base + at);
		model[at] = false;
		break;
	case 1: /* a run, as in-order traffic makes them */
		for (n = san_prng_below(g, 200); n > 0 && at < SAN_BITMAP_BITS; n--, at++) {
			san_bitmap_set(&real, *base + at);
			model[at] = true;
		}
		break;
	case 2:
		slide(base, san_bitmap_leading_ones(&real, *base, SAN_BITMAP_BITS));
		break;
	case 3:
		slide(base, san_prng_below(g, 130));
		break;
	default:
		san_bitmap_set(&real, *base + at);
		model[at] = true;
		break;
	}
}

static void
run(uint64_t seed)
{
	struct san_prng g;
	uint32_t base, i;

	san_prng_seed(&g, seed);
	san_bitmap_zero(&real);
	memset(model, 0, sizeof(model));
	base = (uint32_t)san_prng_u64(&g);
	if (seed & 1)
		base |= 0xfffff000;
	for (i = 0; i < NB_STEPS; i++) {
		uint32_t from = san_prng_below(&g, SAN_BITMAP_BITS);
		uint32_t k = san_prng_below(&g, SAN_BITMAP_BITS);

		step(&g, &base);
		PROP_CHECK(san_bitmap_test(&real, base + k) == model[k]);
		check_searches(base, from, san_prng_below(&g, SAN_BITMAP_BITS - from + 1));
		check_searches(base, 0, SAN_BITMAP_BITS);
		check_word(base, from);
	}
}

PROP_MAIN("ring bitmap equals array", run)
