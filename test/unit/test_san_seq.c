/* SPDX-License-Identifier: BSD-3-Clause */

#include "unit.h"
#include "san_seq.h"

/* RT-3: later or earlier is decided mod 2^32. */
static const struct {
	uint32_t a, b;
	int32_t diff;
} table[] = {
	/*  0 */ {0, 0, 0},
	/*  1 */ {1, 0, 1},
	/*  2 */ {0, 1, -1},
	/*  3 */ {0, UINT32_MAX, 1},
	/*  4 */ {UINT32_MAX, 0, -1},
	/*  5 */ {1, UINT32_MAX, 2},
	/*  6 */ {UINT32_MAX, UINT32_MAX, 0},
	/*  7 */ {0x7fffffff, 0, INT32_MAX},
	/*  8 */ {0, 0x7fffffff, -INT32_MAX},
	/*  9 */ {0x80000001, 1, INT32_MIN},
	/* 10 */ {0x80000000, 0x7fffffff, 1},
	/* 11 */ {0x3ff, 0xfffffc00, 0x7ff},
	/* 12 */ {0x00ffffff, 0x01000000, -1},
};

UNIT_CASE(san_seq_diff__table)
{
	UNIT_EACH(r, table)
		assert_int_equal(san_seq_diff(r->a, r->b), r->diff);
}

UNIT_CASE(san_seq_lt__agrees_with_diff)
{
	UNIT_EACH(r, table) {
		assert_int_equal(san_seq_lt(r->a, r->b), r->diff < 0);
		assert_int_equal(san_seq_le(r->a, r->b), r->diff <= 0);
		assert_int_equal(san_seq_gt(r->a, r->b), r->diff > 0);
		assert_int_equal(san_seq_ge(r->a, r->b), r->diff >= 0);
	}
}

UNIT_CASE(san_seq_max__across_wrap)
{
	assert_int_equal(san_seq_max(5, 3), 5);
	assert_int_equal(san_seq_max(3, 5), 5);
	assert_int_equal(san_seq_max(2, 0xfffffff0), 2);
	assert_int_equal(san_seq_max(0xfffffff0, 2), 2);
	assert_int_equal(san_seq_max(7, 7), 7);
}
