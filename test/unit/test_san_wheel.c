/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "unit.h"
#include "san_time.h"
#include "san_wheel.h"

#define SLOT_NS (1ULL << SAN_WHEEL_SHIFT)

static struct san_wheel wheel;

static void
setup(void)
{
	san_wheel_init(&wheel, 0);
}

UNIT_FIXTURE(.setup = setup);

UNIT_CASE(san_wheel_init__empty)
{
	san_wheel_init(&wheel, 123456789);
	san_wheel_check(&wheel);
	assert_null(san_wheel_poll(&wheel, 123456789 + SAN_NS_PER_S));
	assert_true(san_wheel_deadline_ns(&wheel) == SAN_TIME_NEVER);
}

/* RT-8: a timer is never early and at most one slot late, on each level. */
UNIT_CASE(san_wheel_arm__never_early_nearly_punctual)
{
	static const uint64_t deadlines[] = {1, SLOT_NS, SLOT_NS + 1, 255 * SLOT_NS, 256 * SLOT_NS,
					     257 * SLOT_NS + 3, 65535 * SLOT_NS, 65536 * SLOT_NS,
					     70000 * SLOT_NS + 1, (1ULL << 24) * SLOT_NS,
					     (1ULL << 31) * SLOT_NS + 99, (1ULL << 32) * SLOT_NS,
					     (5ULL << 32) * SLOT_NS + 7};

	UNIT_EACH(deadline, deadlines) {
		struct san_timer t = {0};
		uint64_t at = *deadline;

		san_wheel_init(&wheel, 0);
		san_wheel_arm(&wheel, &t, at);
		assert_true(san_wheel_timer_is_armed(&t));
		assert_null(san_wheel_poll(&wheel, at - 1));
		san_wheel_check(&wheel);
		assert_ptr_equal(san_wheel_poll(&wheel, at + SLOT_NS - 1), &t);
		assert_false(san_wheel_timer_is_armed(&t));
		assert_null(san_wheel_poll(&wheel, at + SLOT_NS - 1));
		san_wheel_check(&wheel);
	}
}

UNIT_CASE(san_wheel_arm__past_fires_at_next_poll)
{
	struct san_timer t = {0};

	san_wheel_init(&wheel, SAN_NS_PER_S);
	san_wheel_arm(&wheel, &t, 5);
	san_wheel_check(&wheel);
	assert_ptr_equal(san_wheel_poll(&wheel, SAN_NS_PER_S), &t);
	assert_null(san_wheel_poll(&wheel, SAN_NS_PER_S));
}

UNIT_CASE(san_wheel_arm__again_moves_it)
{
	struct san_timer t = {0};

	san_wheel_arm(&wheel, &t, 10 * SLOT_NS);
	san_wheel_arm(&wheel, &t, 1000 * SLOT_NS);
	san_wheel_check(&wheel);
	assert_null(san_wheel_poll(&wheel, 999 * SLOT_NS));
	san_wheel_arm(&wheel, &t, 1001 * SLOT_NS);
	assert_null(san_wheel_poll(&wheel, 1000 * SLOT_NS));
	assert_ptr_equal(san_wheel_poll(&wheel, 1001 * SLOT_NS), &t);
	assert_null(san_wheel_poll(&wheel, SAN_NS_PER_S));
}

/* A new timer may be due before those that were armed before it. */
UNIT_CASE(san_wheel_arm__earlier_than_all_others)
{
	struct san_timer far = {0}, near = {0}, nearest = {0};

	san_wheel_arm(&wheel, &far, 70000 * SLOT_NS);
	assert_null(san_wheel_poll(&wheel, SLOT_NS));
	san_wheel_arm(&wheel, &near, 300 * SLOT_NS);
	san_wheel_arm(&wheel, &nearest, 10 * SLOT_NS);
	san_wheel_check(&wheel);
	assert_null(san_wheel_poll(&wheel, 9 * SLOT_NS));
	assert_ptr_equal(san_wheel_poll(&wheel, 10 * SLOT_NS), &nearest);
	assert_null(san_wheel_poll(&wheel, 299 * SLOT_NS));
	assert_ptr_equal(san_wheel_poll(&wheel, 300 * SLOT_NS), &near);
	assert_null(san_wheel_poll(&wheel, 69999 * SLOT_NS));
	assert_ptr_equal(san_wheel_poll(&wheel, 70000 * SLOT_NS), &far);
}

UNIT_CASE(san_wheel_arm__never_does_not_fire)
{
	struct san_timer t = {0};

	san_wheel_arm(&wheel, &t, SAN_TIME_NEVER);
	san_wheel_check(&wheel);
	assert_null(san_wheel_poll(&wheel, 100000 * SAN_NS_PER_S));
	san_wheel_check(&wheel);
	assert_true(san_wheel_timer_is_armed(&t));
}

UNIT_CASE(san_wheel_cancel__first_middle_last)
{
	struct san_timer t[4];

	for (int victim = 0; victim < 4; victim++) {
		san_wheel_init(&wheel, 0);
		memset(t, 0, sizeof(t));
		for (int i = 0; i < 4; i++)
			san_wheel_arm(&wheel, &t[i], 300 * SLOT_NS);
		san_wheel_cancel(&wheel, &t[victim]);
		san_wheel_check(&wheel);
		assert_false(san_wheel_timer_is_armed(&t[victim]));
		for (int i = 0; i < 4; i++) {
			if (i != victim)
				assert_ptr_equal(san_wheel_poll(&wheel, 300 * SLOT_NS), &t[i]);
		}
		assert_null(san_wheel_poll(&wheel, 300 * SLOT_NS));
	}
}

UNIT_CASE(san_wheel_cancel__not_armed_is_harmless)
{
	struct san_timer t = {0};

	san_wheel_cancel(&wheel, &t);
	san_wheel_arm(&wheel, &t, 1);
	san_wheel_cancel(&wheel, &t);
	san_wheel_cancel(&wheel, &t);
	san_wheel_check(&wheel);
	assert_true(san_wheel_deadline_ns(&wheel) == SAN_TIME_NEVER);
}

UNIT_CASE(san_wheel_poll__arming_order_within_a_slot)
{
	struct san_timer a = {0}, b = {0}, c = {0};
	uint64_t at = 600 * SLOT_NS;

	/* Armed from far away, from nearer, and from the same block: three levels. */
	san_wheel_arm(&wheel, &a, at);
	assert_null(san_wheel_poll(&wheel, 400 * SLOT_NS));
	san_wheel_arm(&wheel, &b, at);
	assert_null(san_wheel_poll(&wheel, 520 * SLOT_NS));
	san_wheel_arm(&wheel, &c, at);
	assert_ptr_equal(san_wheel_poll(&wheel, at), &a);
	assert_ptr_equal(san_wheel_poll(&wheel, at), &b);
	assert_ptr_equal(san_wheel_poll(&wheel, at), &c);
}

UNIT_CASE(san_wheel_poll__earlier_first_after_a_stall)
{
	struct san_timer t[3] = {0};

	san_wheel_arm(&wheel, &t[2], 70000 * SLOT_NS);
	san_wheel_arm(&wheel, &t[0], 3 * SLOT_NS);
	san_wheel_arm(&wheel, &t[1], 900 * SLOT_NS);
	assert_ptr_equal(san_wheel_poll(&wheel, SAN_NS_PER_S), &t[0]);
	assert_ptr_equal(san_wheel_poll(&wheel, SAN_NS_PER_S), &t[1]);
	assert_ptr_equal(san_wheel_poll(&wheel, SAN_NS_PER_S), &t[2]);
	assert_null(san_wheel_poll(&wheel, SAN_NS_PER_S));
}

UNIT_CASE(san_wheel_deadline_ns__exact_when_near)
{
	struct san_timer near = {0}, far = {0};

	san_wheel_arm(&wheel, &far, 5000 * SLOT_NS);
	san_wheel_arm(&wheel, &near, 200 * SLOT_NS - 1);
	assert_true(san_wheel_deadline_ns(&wheel) == 200 * SLOT_NS);
	san_wheel_cancel(&wheel, &near);
	assert_true(san_wheel_deadline_ns(&wheel) <= 5000 * SLOT_NS);
}

/* Sleeping from deadline to deadline reaches the timer in a few steps. */
UNIT_CASE(san_wheel_deadline_ns__always_advances)
{
	struct san_timer t = {0};
	uint64_t at = (3ULL << 32) * SLOT_NS + 12345678 * SLOT_NS;
	uint64_t now = 0;
	int steps = 0;

	san_wheel_arm(&wheel, &t, at);
	while (san_wheel_poll(&wheel, now) == NULL) {
		uint64_t next = san_wheel_deadline_ns(&wheel);

		assert_true(next > now && next <= at);
		now = next;
		assert_true(++steps < 16);
	}
	assert_true(now == at);
}
