/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "unit.h"
#include "san_bitmap.h"

/* RT-3, RT-4: positions where a word, the ring or the number itself wraps. */
static const uint32_t bases[] = {0, 1, 63, 64, 960, 1000, 1023, 1024, 0x7fffffff, 0xfffffc00,
				 0xffffffc1, 0xffffffff};

static uint64_t words[SAN_BITMAP_WORDS];

/* A wide ring, all bits 0 or 1. */
static struct san_bitmap
wide(bool ones)
{
	struct san_bitmap b = {0};

	memset(words, 0, sizeof(words));
	san_bitmap_widen(&b, words, 0);
	memset(words, ones ? 0xff : 0, sizeof(words));
	return b;
}

UNIT_CASE(san_bitmap_slot__continues_over_wrap)
{
	assert_int_equal(san_bitmap_slot(0xffffffff), SAN_BITMAP_BITS - 1);
	assert_int_equal(san_bitmap_slot(0), 0);
	assert_int_equal(san_bitmap_slot(SAN_BITMAP_BITS), 0);
}

UNIT_CASE(san_bitmap_set__touches_one_bit)
{
	struct san_bitmap b;

	UNIT_EACH(base, bases) {
		b = wide(false);
		san_bitmap_set(&b, *base);
		for (uint32_t i = 0; i < SAN_BITMAP_BITS; i++)
			assert_int_equal(san_bitmap_test(&b, *base + i), i == 0);
	}
}

UNIT_CASE(san_bitmap_clear__touches_one_bit)
{
	struct san_bitmap b;

	UNIT_EACH(base, bases) {
		b = wide(true);
		san_bitmap_clear(&b, *base);
		for (uint32_t i = 0; i < SAN_BITMAP_BITS; i++)
			assert_int_equal(san_bitmap_test(&b, *base + i), i != 0);
	}
}

UNIT_CASE(san_bitmap_get64__lowest_bit_first)
{
	struct san_bitmap b;

	UNIT_EACH(base, bases) {
		b = wide(false);
		san_bitmap_set(&b, *base);
		san_bitmap_set(&b, *base + 5);
		san_bitmap_set(&b, *base + 63);
		san_bitmap_set(&b, *base + 64);
		san_bitmap_set(&b, *base - 1);
		assert_true(san_bitmap_get64(&b, *base) == (1ULL << 63 | 1ULL << 5 | 1));
	}
}

UNIT_CASE(san_bitmap_leading_ones__stops_at_hole)
{
	static const uint32_t lengths[] = {0, 1, 63, 64, 65, 128, 500, 1023};
	struct san_bitmap b;
	uint32_t i;

	UNIT_EACH(base, bases) {
		UNIT_EACH(length, lengths) {
			b = wide(true);
			san_bitmap_clear(&b, *base + *length);
			i = san_bitmap_leading_ones(&b, *base, SAN_BITMAP_BITS);
			assert_int_equal(i, *length);
		}
	}
}

UNIT_CASE(san_bitmap_leading_ones__stops_at_max)
{
	struct san_bitmap b = wide(true);

	assert_int_equal(san_bitmap_leading_ones(&b, 0xffffffff, 0), 0);
	assert_int_equal(san_bitmap_leading_ones(&b, 0xffffffff, 70), 70);
	assert_int_equal(san_bitmap_leading_ones(&b, 7, SAN_BITMAP_BITS), SAN_BITMAP_BITS);
}

UNIT_CASE(san_bitmap_first_one__finds_and_stops_at_max)
{
	struct san_bitmap b;

	UNIT_EACH(base, bases) {
		b = wide(false);
		assert_int_equal(san_bitmap_first_one(&b, *base, 300), 300);
		san_bitmap_set(&b, *base + 200);
		assert_int_equal(san_bitmap_first_one(&b, *base, 300), 200);
		assert_int_equal(san_bitmap_first_one(&b, *base, 200), 200);
		assert_int_equal(san_bitmap_first_one(&b, *base, 201), 200);
		assert_int_equal(san_bitmap_first_one(&b, *base, 100), 100);
		assert_int_equal(san_bitmap_first_one(&b, *base + 200, 1), 0);
	}
}

/* Eight bytes, all zero at first, are a ring of 32. */
UNIT_CASE(san_bitmap_set__narrow)
{
	UNIT_EACH(base, bases) {
		struct san_bitmap b = {0};

		assert_false(san_bitmap_is_wide(&b));
		assert_int_equal(san_bitmap_bits(&b), SAN_BITMAP_NARROW);
		san_bitmap_set(&b, *base);
		for (uint32_t i = 0; i < SAN_BITMAP_NARROW; i++)
			assert_int_equal(san_bitmap_test(&b, *base + i), i == 0);
		san_bitmap_set(&b, *base + 31);
		assert_true(san_bitmap_get64(&b, *base) == 0x80000001);
		assert_int_equal(san_bitmap_leading_ones(&b, *base, 32), 1);
		assert_int_equal(san_bitmap_first_one(&b, *base + 1, 31), 30);
		for (uint32_t i = 0; i < SAN_BITMAP_NARROW; i++)
			san_bitmap_set(&b, *base + i);
		assert_int_equal(san_bitmap_leading_ones(&b, *base, 32), 32);
		assert_false(san_bitmap_is_wide(&b));
		for (uint32_t i = 0; i < SAN_BITMAP_NARROW; i++)
			san_bitmap_clear(&b, *base + i);
		assert_true(b.v == 0);
	}
}

UNIT_CASE(san_bitmap_widen__keeps_the_bits)
{
	UNIT_EACH(base, bases) {
		struct san_bitmap b = {0};

		san_bitmap_set(&b, *base);
		san_bitmap_set(&b, *base + 17);
		san_bitmap_set(&b, *base + 31);
		memset(words, 0, sizeof(words));
		san_bitmap_widen(&b, words, *base);
		assert_int_equal(san_bitmap_bits(&b), SAN_BITMAP_BITS);
		for (uint32_t i = 0; i < SAN_BITMAP_BITS; i++)
			assert_int_equal(san_bitmap_test(&b, *base + i),
					 i == 0 || i == 17 || i == 31);
	}
}

/* A word of a narrow ring has 32 bits, and wraps with the ring. */
UNIT_CASE(san_bitmap_or64__narrow)
{
	UNIT_EACH(base, bases) {
		struct san_bitmap b = {0};

		san_bitmap_or64(&b, *base, 0x80000021);
		assert_false(san_bitmap_is_wide(&b));
		for (uint32_t i = 0; i < SAN_BITMAP_NARROW; i++)
			assert_int_equal(san_bitmap_test(&b, *base + i),
					 i == 0 || i == 5 || i == 31);
		san_bitmap_or64(&b, *base + 5, 3); /* set bits stay set */
		assert_true(san_bitmap_get64(&b, *base) == 0x80000061);
		san_bitmap_andnot64(&b, *base, 0x80000001);
		assert_true(san_bitmap_get64(&b, *base) == 0x60);
	}
}

UNIT_CASE(san_bitmap_clear_range__ends_within_a_word)
{
	static const uint32_t lengths[] = {0, 1, 31, 32, 63, 64, 65, 130, 1000, 1024};

	UNIT_EACH(base, bases) {
		UNIT_EACH(length, lengths) {
			struct san_bitmap b = wide(true);
			struct san_bitmap narrow = {0};

			san_bitmap_clear_range(&b, *base, *length);
			for (uint32_t i = 0; i < SAN_BITMAP_BITS; i++)
				assert_int_equal(san_bitmap_test(&b, *base + i), i >= *length);
			if (*length > SAN_BITMAP_NARROW)
				continue;
			san_bitmap_or64(&narrow, 0, UINT32_MAX);
			san_bitmap_clear_range(&narrow, *base, *length);
			for (uint32_t i = 0; i < SAN_BITMAP_NARROW; i++)
				assert_int_equal(san_bitmap_test(&narrow, *base + i), i >= *length);
		}
	}
}

UNIT_CASE(san_bitmap_narrow__gives_the_words_back)
{
	struct san_bitmap b = wide(false);

	assert_ptr_equal(san_bitmap_narrow(&b), words);
	assert_false(san_bitmap_is_wide(&b));
	assert_true(san_bitmap_get64(&b, 7) == 0);
}
