/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The SNB of RT-4: a ring of bits addressed by sequence number. The bit of PSN p is at p mod the
 * size of the ring, so sliding the base never moves a bit. The code that slides the base clears the
 * bits that it passes. The size is a power of two, so addresses stay right when PSNs wrap at 2^32.
 *
 * A narrow ring has 32 bits in the eight bytes of the struct: enough for a window with little
 * outstanding, as most are at any time. A wide ring has 1,024 bits in words that its owner lends.
 * Zeroed memory is an empty narrow ring.
 */

#include <stdbool.h>
#include <stdint.h>

#define SAN_BITMAP_BITS   1024 /**< of a wide ring */
#define SAN_BITMAP_WORDS  (SAN_BITMAP_BITS / 64)
#define SAN_BITMAP_NARROW 32 /**< bits of a narrow ring */

struct san_bitmap {
	uint64_t v; /**< wide: address of the words + 1; narrow: the bits, in the upper half */
};

static inline uint32_t
san_bitmap_slot(uint32_t seq)
{
	return seq & (SAN_BITMAP_BITS - 1);
}

static inline bool
san_bitmap_is_wide(const struct san_bitmap *b)
{
	return (b->v & 1) != 0;
}

/** Size of the ring. */
static inline uint32_t
san_bitmap_bits(const struct san_bitmap *b)
{
	return san_bitmap_is_wide(b) ? SAN_BITMAP_BITS : SAN_BITMAP_NARROW;
}

static inline uint64_t *
san_bitmap_words(const struct san_bitmap *b)
{
	return (uint64_t *)(uintptr_t)(b->v - 1);
}

/** Mask of the bit in a narrow ring. */
static inline uint64_t
san_bitmap_narrow_bit(uint32_t seq)
{
	return 1ULL << (SAN_BITMAP_NARROW + (seq & (SAN_BITMAP_NARROW - 1)));
}

static inline bool
san_bitmap_test(const struct san_bitmap *b, uint32_t seq)
{
	uint32_t s = san_bitmap_slot(seq);

	if (!san_bitmap_is_wide(b))
		return (b->v & san_bitmap_narrow_bit(seq)) != 0;
	return (san_bitmap_words(b)[s >> 6] >> (s & 63)) & 1;
}

static inline void
san_bitmap_set(struct san_bitmap *b, uint32_t seq)
{
	uint32_t s = san_bitmap_slot(seq);

	if (san_bitmap_is_wide(b))
		san_bitmap_words(b)[s >> 6] |= 1ULL << (s & 63);
	else
		b->v |= san_bitmap_narrow_bit(seq);
}

static inline void
san_bitmap_clear(struct san_bitmap *b, uint32_t seq)
{
	uint32_t s = san_bitmap_slot(seq);

	if (san_bitmap_is_wide(b))
		san_bitmap_words(b)[s >> 6] &= ~(1ULL << (s & 63));
	else
		b->v &= ~san_bitmap_narrow_bit(seq);
}

/** 64 bits from *seq* on, lowest first, as an ACK carries them; of a narrow ring 32, then zeros. */
static inline uint64_t
san_bitmap_get64(const struct san_bitmap *b, uint32_t seq)
{
	uint32_t s = san_bitmap_slot(seq);
	uint32_t shift = s & 63;
	const uint64_t *w = san_bitmap_words(b);
	uint64_t low;

	if (!san_bitmap_is_wide(b)) {
		uint32_t v = (uint32_t)(b->v >> SAN_BITMAP_NARROW);

		return v >> (s & 31) | v << (-s & 31);
	}
	low = w[s >> 6] >> shift;
	if (shift == 0)
		return low;
	return low | w[((s >> 6) + 1) & (SAN_BITMAP_WORDS - 1)] << (64 - shift);
}

/** Make the ring wide, with *words*, SAN_BITMAP_WORDS zeros. Its window begins at *base*. */
static inline void
san_bitmap_widen(struct san_bitmap *b, uint64_t *words, uint32_t base)
{
	uint64_t bits = san_bitmap_get64(b, base);

	b->v = (uintptr_t)words | 1;
	for (; bits != 0; bits &= bits - 1)
		san_bitmap_set(b, base + (uint32_t)__builtin_ctzll(bits));
}

/** Make the empty ring narrow. Returns the words, which are zeros. */
static inline uint64_t *
san_bitmap_narrow(struct san_bitmap *b)
{
	uint64_t *words = san_bitmap_words(b);

	b->v = 0;
	return words;
}

/** Bits of a narrow ring that correspond to *bits* from *seq* on. */
static inline uint64_t
san_bitmap_narrow_bits(uint32_t seq, uint64_t bits)
{
	uint32_t v = (uint32_t)bits, shift = seq & (SAN_BITMAP_NARROW - 1);

	return (uint64_t)(v << shift | v >> (-shift & (SAN_BITMAP_NARROW - 1)))
		<< SAN_BITMAP_NARROW;
}

/** Set the bits from *seq* on that are set in *bits*; a narrow ring uses 32 of them. */
static inline void
san_bitmap_or64(struct san_bitmap *b, uint32_t seq, uint64_t bits)
{
	uint32_t s = san_bitmap_slot(seq);
	uint32_t shift = s & 63;
	uint64_t *w = san_bitmap_words(b);

	if (!san_bitmap_is_wide(b)) {
		b->v |= san_bitmap_narrow_bits(seq, bits);
		return;
	}
	w[s >> 6] |= bits << shift;
	if (shift != 0)
		w[((s >> 6) + 1) & (SAN_BITMAP_WORDS - 1)] |= bits >> (64 - shift);
}

/** Clear the bits from *seq* on that are set in *bits*. */
static inline void
san_bitmap_andnot64(struct san_bitmap *b, uint32_t seq, uint64_t bits)
{
	uint32_t s = san_bitmap_slot(seq);
	uint32_t shift = s & 63;
	uint64_t *w = san_bitmap_words(b);

	if (!san_bitmap_is_wide(b)) {
		b->v &= ~san_bitmap_narrow_bits(seq, bits);
		return;
	}
	w[s >> 6] &= ~(bits << shift);
	if (shift != 0)
		w[((s >> 6) + 1) & (SAN_BITMAP_WORDS - 1)] &= ~(bits >> (64 - shift));
}

/** Mask of the lowest *n* bits of a word; all bits if *n* is larger. */
static inline uint64_t
san_bitmap_mask64(uint32_t n)
{
	return n >= 64 ? UINT64_MAX : (1ULL << n) - 1;
}

/** Clear *n* bits from *seq* on. */
static inline void
san_bitmap_clear_range(struct san_bitmap *b, uint32_t seq, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i += 64)
		san_bitmap_andnot64(b, seq + i, san_bitmap_mask64(n - i));
}

/** Offset of the first bit in [seq, seq + max) that is set once inverted by *flip*, or *max*. */
static inline uint32_t
san_bitmap_first(const struct san_bitmap *b, uint32_t seq, uint32_t max, uint64_t flip)
{
	uint32_t n = 0;

	while (n < max) {
		uint64_t v = san_bitmap_get64(b, seq + n) ^ flip;

		if (v != 0) {
			n += (uint32_t)__builtin_ctzll(v);
			break;
		}
		n += 64;
	}
	return n < max ? n : max;
}

/** Number of consecutive set bits from *seq* on, at most *max*. */
static inline uint32_t
san_bitmap_leading_ones(const struct san_bitmap *b, uint32_t seq, uint32_t max)
{
	return san_bitmap_first(b, seq, max, UINT64_MAX);
}

/** Offset of the first set bit in [seq, seq + max), or *max* if there is none. */
static inline uint32_t
san_bitmap_first_one(const struct san_bitmap *b, uint32_t seq, uint32_t max)
{
	return san_bitmap_first(b, seq, max, 0);
}
