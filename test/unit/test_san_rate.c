/* SPDX-License-Identifier: BSD-3-Clause */

/* A rate limit in one word. (RT-36; san_time.h) */

#include "unit.h"
#include "san_time.h"

#define EACH  (10 * SAN_NS_PER_US)
#define BURST 100

static uint64_t taken_ns;

static bool
take(uint64_t now_ns)
{
	return san_rate_take(&taken_ns, EACH, BURST, now_ns);
}

UNIT_CASE(san_rate_take__burst)
{
	uint64_t now_ns = SAN_NS_PER_S;

	taken_ns = 0;
	for (uint32_t i = 0; i < BURST; i++)
		assert_true(take(now_ns));
	assert_false(take(now_ns));
	/* one every 10 us */
	assert_false(take(now_ns + 9999));
	assert_true(take(now_ns + 10000));
	assert_false(take(now_ns + 10000));
	/* time that runs backwards adds nothing */
	assert_false(take(now_ns));
	assert_false(take(now_ns + 19999));
	assert_true(take(now_ns + 20000));
	/* and a long rest no more than a burst */
	now_ns += 3600 * SAN_NS_PER_S;
	for (uint32_t i = 0; i < BURST; i++)
		assert_true(take(now_ns));
	assert_false(take(now_ns));
	/* nothing overflows */
	now_ns += 1ULL << 62;
	for (uint32_t i = 0; i < BURST; i++)
		assert_true(take(now_ns));
	assert_false(take(now_ns));
}

/* With the smallest steps nothing is lost by rounding. */
UNIT_CASE(san_rate_take__small_steps)
{
	uint64_t now_ns = SAN_NS_PER_S;
	uint32_t n = 0;

	taken_ns = 0;
	while (take(now_ns))
		;
	for (uint32_t i = 0; i < 1000000; i++)
		n += take(++now_ns);
	assert_int_equal(n, 100);
}
