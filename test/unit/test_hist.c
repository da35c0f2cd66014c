/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "hist.h"
#include "san_prng.h"

static struct hist hist;

static void
setup(void)
{
	memset(&hist, 0, sizeof(hist));
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The value whose rank is that share of n, rounded up. */
static uint64_t
exact(const uint64_t *sorted, uint64_t n, uint32_t per_10000)
{
	uint64_t rank = (n * per_10000 + 9999) / 10000;

	return sorted[rank > 0 ? rank - 1 : 0];
}

UNIT_FIXTURE(.setup = setup);

UNIT_CASE(san_hist_summarize__empty)
{
	static const struct hist_summary none;
	struct hist_summary s;

	san_hist_add(&hist, 5);
	memset(&hist, 0, sizeof(hist));
	san_hist_summarize(&hist, &s);
	assert_memory_equal(&s, &none, sizeof(s));
	assert_true(san_hist_percentile(&hist, 10000) == 0);
}

UNIT_CASE(san_hist_add__below_64_exact)
{
	for (uint32_t i = 1; i <= 50; i++)
		san_hist_add(&hist, i);
	for (uint32_t i = 1; i <= 50; i++)
		assert_true(san_hist_percentile(&hist, i * 200) == i);
	assert_true(san_hist_percentile(&hist, 0) == 1);
}

/* Every power of two and its neighbours, below one largest value. */
UNIT_CASE(san_hist_add__right_within_a_64th)
{
	for (uint32_t bit = 1; bit < 64; bit++) {
		for (int step = -1; step <= 1; step++) {
			uint64_t ns = (1ULL << bit) + (uint64_t)step;
			uint64_t got;

			memset(&hist, 0, sizeof(hist));
			san_hist_add(&hist, ns);
			san_hist_add(&hist, UINT64_MAX);
			got = san_hist_percentile(&hist, 5000);
			assert_true(got >= ns);
			assert_true(got - ns <= ns / 64);
		}
	}
}

UNIT_CASE(san_hist_add__largest_value)
{
	struct hist_summary s;

	san_hist_add(&hist, UINT64_MAX);
	san_hist_summarize(&hist, &s);
	assert_true(s.min_ns == UINT64_MAX && s.mean_ns == UINT64_MAX);
	assert_true(s.p50_ns == UINT64_MAX && s.max_ns == UINT64_MAX);
	assert_true(hist.bucket[HIST_BUCKETS - 1] == 1);
}

UNIT_CASE(san_hist_percentile__like_a_sorted_list)
{
	enum {
		NB = 10000
	};
	static const uint32_t shares[] = {0, 1, 50, 2500, 5000, 9000, 9900, 9990, 9999, 10000};
	static uint64_t ns[NB];
	struct san_prng g;

	san_prng_seed(&g, 2);
	for (size_t i = 0; i < NB; i++) {
		/* From nanoseconds to seconds, each order of magnitude equally often. */
		ns[i] = san_prng_u64(&g) >> (34 + san_prng_below(&g, 30));
		san_hist_add(&hist, ns[i]);
	}
	qsort(ns, NB, sizeof(ns[0]), compare);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		uint64_t want = exact(ns, NB, shares[i]);
		uint64_t got = san_hist_percentile(&hist, shares[i]);

		assert_true(got >= want);
		assert_true(got - want <= want / 64);
	}
	assert_true(san_hist_percentile(&hist, 10000) == ns[NB - 1]);
	assert_true(san_hist_percentile(&hist, 20000) == ns[NB - 1]);
}

UNIT_CASE(san_hist_summarize__every_figure)
{
	struct hist_summary s;

	for (uint32_t i = 1; i <= 1000; i++)
		san_hist_add(&hist, i);
	san_hist_summarize(&hist, &s);
	assert_true(s.count == 1000);
	assert_true(s.mean_ns == 500); /* 500.5 */
	assert_true(s.min_ns == 1 && s.max_ns == 1000);
	/* Upper ends of steps of 4 and of 8. */
	assert_true(s.p50_ns == 503 && s.p90_ns == 903 && s.p99_ns == 991 && s.p999_ns == 999);
}

UNIT_CASE(san_hist_print__a_line_per_power)
{
	char *text = NULL;
	size_t len;
	FILE *f;

	san_hist_add(&hist, 0);
	san_hist_add(&hist, 63);
	san_hist_add(&hist, 64);
	san_hist_add(&hist, 1000);
	f = open_memstream(&text, &len);
	assert_non_null(f);
	san_hist_print(&hist, f);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text,
			    "      up to ns      samples     share\n"
			    "            63            2  50.0000%\n"
			    "           127            1  75.0000%\n"
			    "          1023            1 100.0000%\n"
			    "           all            4\n");
	free(text);
}
