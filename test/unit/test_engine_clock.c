/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "unit.h"
#include "engine_clock.h"

/* SYS-1: one reading per loop; it agrees with the system's clock and never runs backwards. */
UNIT_CASE(san_engine_clock_now__agrees_with_monotonic)
{
	struct san_engine_clock c = {0};
	uint64_t start, before, after, t, last = 0;

	san_engine_clock_init(&c);
	start = san_engine_clock_monotonic();
	do {
		before = san_engine_clock_monotonic();
		t = san_engine_clock_now(&c);
		after = san_engine_clock_monotonic();
		assert_true(t >= last);
		/* 0.1 % of the elapsed time, and the duration of a reading */
		assert_true(t + (after - start) / 1000 + 20000 >= before);
		assert_true(t <= after + (after - start) / 1000 + 20000);
		last = t;
	} while (after < start + 200 * SAN_NS_PER_MS);
}

UNIT_CASE(san_engine_clock_now__never_back)
{
	struct san_engine_clock c = {.is_tsc = true, .mult = 1u << 31, .tsc0 = rte_rdtsc()};
	uint64_t first;

	c.last_ns = c.ns0 = SAN_NS_PER_S;
	first = san_engine_clock_now(&c);
	c.tsc0 = rte_rdtsc();
	assert_true(san_engine_clock_now(&c) >= first);
	first = san_engine_clock_now(&c);
	/* as on a CPU whose counter is behind */
	c.tsc0 = rte_rdtsc() + 1000000000;
	assert_true(san_engine_clock_now(&c) == first);
}

/* After a long idle time the product exceeds 64 bits. */
UNIT_CASE(san_engine_clock_now__long_idle)
{
	struct san_engine_clock c = {.is_tsc = true, .mult = 1u << 31};
	uint64_t ticks = 3ULL << 40, ns;

	c.tsc0 = rte_rdtsc() - ticks;
	ns = san_engine_clock_now(&c);
	assert_true(ns >= ticks / 2 && ns < ticks / 2 + SAN_NS_PER_S);
}

UNIT_CASE(san_engine_clock_now__without_tsc)
{
	struct san_engine_clock c = {.is_tsc = false};
	uint64_t before = san_engine_clock_monotonic();

	assert_true(san_engine_clock_now(&c) >= before);
}
