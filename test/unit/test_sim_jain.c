/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "unit.h"
#include "sim_world.h"

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

UNIT_CASE(san_sim_report_jain_ppm__nothing)
{
	static const uint64_t zero[3];

	assert_int_equal(san_sim_report_jain_ppm(NULL, 0), 0);
	assert_int_equal(san_sim_report_jain_ppm(zero, DIM(zero)), 0);
}

UNIT_CASE(san_sim_report_jain_ppm__by_hand)
{
	static const struct {
		uint64_t x[4];
		uint32_t n, ppm;
	} table[] = {
		{{1}, 1, 1000000},
		{{UINT64_MAX}, 1, 1000000},
		{{5, 5, 5, 5}, 4, 1000000},
		{{7, 0, 0, 0}, 4, 250000},
		{{7, 7, 0, 0}, 4, 500000},
		{{1, 3}, 2, 800000},             /* 16 / (2 * 10) */
		{{1, 2, 3}, 3, 857142},          /* 36 / (3 * 14) */
		{{1, 2, 3, 4}, 4, 833333},       /* 100 / (4 * 30) */
		{{1000001, 1000000}, 2, 999999}, /* almost fair is not rounded to fair */
		{{1ULL << 50, 3ULL << 50}, 2, 800000},
		{{UINT64_MAX, 0}, 2, 500000},
		{{UINT64_MAX, UINT64_MAX, UINT64_MAX, 0}, 4, 750000},
		{{1ULL << 63, 1}, 2, 500000},
	};

	for (size_t i = 0; i < DIM(table); i++)
		assert_int_equal(san_sim_report_jain_ppm(table[i].x, table[i].n), table[i].ppm);
}

UNIT_CASE(san_sim_report_jain_ppm__many_large_values)
{
	enum {
		NB = 100000
	};
	uint64_t *x = malloc(NB * sizeof(*x));

	assert_non_null(x);
	for (uint32_t i = 0; i < NB; i++)
		x[i] = 1ULL << 50;
	assert_int_equal(san_sim_report_jain_ppm(x, NB), 1000000);
	for (uint32_t i = 0; i < NB; i++)
		x[i] = i % 2 == 0 ? UINT64_MAX : 0;
	assert_int_equal(san_sim_report_jain_ppm(x, NB), 500000);
	/* 0 .. n - 1: 3 (n - 1) / (2 (2 n - 1)) */
	for (uint32_t i = 0; i < NB; i++)
		x[i] = (uint64_t)i << 33;
	assert_in_range(san_sim_report_jain_ppm(x, NB), 749995, 749997);
	free(x);
}
