/* SPDX-License-Identifier: BSD-3-Clause */

/* How long a wait spins, by what the last ones were like. (UDP-13) */

#include "unit.h"

#include "san_spin.h"

#define US     1000u
#define MAX_NS (100 * US)

static void
san_spin_learn__grows_until_it_is_enough(void **state)
{
	struct san_spin s = {0};
	int i;

	(void)state;
	assert_int_equal(san_spin_ns(&s), 0);
	for (i = 0; i < 3; i++)
		san_spin_learn(&s, 35 * US, MAX_NS);
	assert_int_equal(san_spin_ns(&s), 4 * SAN_SPIN_MIN_NS);
	san_spin_learn(&s, 35 * US, MAX_NS);
	assert_int_equal(san_spin_ns(&s), 4 * SAN_SPIN_MIN_NS);
}

static void
san_spin_learn__never_above_the_limit(void **state)
{
	struct san_spin s = {0};
	int i;

	(void)state;
	for (i = 0; i < 20; i++)
		san_spin_learn(&s, MAX_NS, MAX_NS);
	assert_int_equal(san_spin_ns(&s), MAX_NS);
	san_spin_learn(&s, 0, 20 * US);
	assert_int_equal(san_spin_ns(&s), 20 * US);
	san_spin_learn(&s, 0, 0);
	assert_int_equal(san_spin_ns(&s), 0);
}

/* Silence costs nothing after some waits. */
static void
san_spin_learn__long_waits_end_it(void **state)
{
	struct san_spin s = {.ns = MAX_NS};
	int i;

	(void)state;
	san_spin_learn(&s, MAX_NS + 1, MAX_NS);
	assert_int_equal(san_spin_ns(&s), MAX_NS / 2);
	for (i = 0; i < 3; i++)
		san_spin_learn(&s, MAX_NS + 1, MAX_NS);
	assert_int_equal(san_spin_ns(&s), 0);
}

UNIT_TEST(test_san_spin)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(san_spin_learn__grows_until_it_is_enough),
		cmocka_unit_test(san_spin_learn__never_above_the_limit),
		cmocka_unit_test(san_spin_learn__long_waits_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
