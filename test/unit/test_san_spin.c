/* SPDX-License-Identifier: BSD-3-Clause */

/* How long a wait spins, by what the last ones were like. (UDP-13) */

#include "unit.h"

#include "san_spin.h"

#define US     1000u
#define MAX_NS (100 * US)

UNIT_CASE(san_spin_learn__grows_until_it_is_enough)
{
	struct san_spin s = {0};

	assert_int_equal(san_spin_ns(&s), 0);
	for (int i = 0; i < 3; i++)
		san_spin_learn(&s, 35 * US, MAX_NS);
	assert_int_equal(san_spin_ns(&s), 4 * SAN_SPIN_MIN_NS);
	san_spin_learn(&s, 35 * US, MAX_NS);
	assert_int_equal(san_spin_ns(&s), 4 * SAN_SPIN_MIN_NS);
}

UNIT_CASE(san_spin_learn__never_above_the_limit)
{
	struct san_spin s = {0};

	for (int i = 0; i < 20; i++)
		san_spin_learn(&s, MAX_NS, MAX_NS);
	assert_int_equal(san_spin_ns(&s), MAX_NS);
	san_spin_learn(&s, 0, 20 * US);
	assert_int_equal(san_spin_ns(&s), 20 * US);
	san_spin_learn(&s, 0, 0);
	assert_int_equal(san_spin_ns(&s), 0);
}

/* Silence costs nothing after some waits. */
UNIT_CASE(san_spin_learn__long_waits_end_it)
{
	struct san_spin s = {.ns = MAX_NS};

	san_spin_learn(&s, MAX_NS + 1, MAX_NS);
	assert_int_equal(san_spin_ns(&s), MAX_NS / 2);
	for (int i = 0; i < 3; i++)
		san_spin_learn(&s, MAX_NS + 1, MAX_NS);
	assert_int_equal(san_spin_ns(&s), 0);
}
