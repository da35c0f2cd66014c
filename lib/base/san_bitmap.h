/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_BITMAP_H
#define SAN_BITMAP_H

/**
 * @file
 * The SNB of RT-4: a ring of bits addressed by sequence number. Bit of PSN p
 * lies at p mod SAN_BITMAP_BITS, so that sliding the base never moves a bit;
 * whoever slides clears what falls out. The ring is a power of two, so the
 * address stays right when PSNs wrap at 2^32.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SAN_BITMAP_BITS  1024
#define SAN_BITMAP_WORDS (SAN_BITMAP_BITS / 64)

struct san_bitmap {
	uint64_t w[SAN_BITMAP_WORDS];
};

static inline uint32_t
san_bitmap_slot(uint32_t seq)
{
	return seq & (SAN_BITMAP_BITS - 1);
}

static inline void
san_bitmap_zero(struct san_bitmap *b)
{
	memset(b, 0, sizeof(*b));
}

static inline bool
san_bitmap_test(const struct san_bitmap *b, uint32_t seq)
{
	uint32_t s = san_bitmap_slot(seq);

	return (b->w[s >> 6] >> (s & 63)) & 1;
}

static inline void
san_bitmap_set(struct san_bitmap *b, uint32_t seq)
{
	uint32_t s = san_bitmap_slot(seq);

	b->w[s >> 6] |= 1ULL << (s & 63);
}

static inline void
san_bitmap_clear(struct san_bitmap *b, uint32_t seq)
{
	uint32_t s = san_bitmap_slot(seq);

	b->w[s >> 6] &= ~(1ULL << (s & 63));
}

/** 64 bits from *seq* on, lowest bit first: how a bitmap travels in an ACK. */
static inline uint64_t
san_bitmap_get64(const struct san_bitmap *b, uint32_t seq)
{
	uint32_t s = san_bitmap_slot(seq);
	uint32_t shift = s & 63;
	uint64_t low = b->w[s >> 6] >> shift;

	if (shift == 0)
		return low;
	return low | b->w[((s >> 6) + 1) & (SAN_BITMAP_WORDS - 1)] << (64 - shift);
}

/** Set those of the 64 bits from *seq* on that are set in *bits*. */
static inline void
san_bitmap_or64(struct san_bitmap *b, uint32_t seq, uint64_t bits)
{
	uint32_t s = san_bitmap_slot(seq);
	uint32_t shift = s & 63;

	b->w[s >> 6] |= bits << shift;
	if (shift != 0)
		b->w[((s >> 6) + 1) & (SAN_BITMAP_WORDS - 1)] |= bits >> (64 - shift);
}

/** Clear them. */
static inline void
san_bitmap_andnot64(struct san_bitmap *b, uint32_t seq, uint64_t bits)
{
	uint32_t s = san_bitmap_slot(seq);
	uint32_t shift = s & 63;

	b->w[s >> 6] &= ~(bits << shift);
	if (shift != 0)
		b->w[((s >> 6) + 1) & (SAN_BITMAP_WORDS - 1)] &= ~(bits >> (64 - shift));
}

/** The lowest *n* bits of a word, all if there are fewer. */
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

/** Number of set bits without a gap from *seq* on, at most *max*. */
static inline uint32_t
san_bitmap_leading_ones(const struct san_bitmap *b, uint32_t seq, uint32_t max)
{
	uint32_t n = 0;

	while (n < max) {
		uint64_t inv = ~san_bitmap_get64(b, seq + n);

		if (inv != 0) {
			n += (uint32_t)__builtin_ctzll(inv);
			break;
		}
		n += 64;
	}
	return n < max ? n : max;
}

/** Offset of the first set bit in [seq, seq + max), or *max* if there is none. */
static inline uint32_t
san_bitmap_first_one(const struct san_bitmap *b, uint32_t seq, uint32_t max)
{
	uint32_t n = 0;

	while (n < max) {
		uint64_t v = san_bitmap_get64(b, seq + n);

		if (v != 0) {
			n += (uint32_t)__builtin_ctzll(v);
			break;
		}
		n += 64;
	}
	return n < max ? n : max;
}

#endif /* SAN_BITMAP_H */
