/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "unit.h"
#include "san_counters.h"

/* RT-21: every drop reason has its own name, usable in show, telemetry and as a JSON key. */
UNIT_CASE(san_drop_name__all_different)
{
	for (int i = 0; i < SAN_DROP_MAX; i++) {
		const char *name = san_drop_name((enum san_drop)i);

		assert_non_null(name);
		assert_true(strlen(name) > 0 && strlen(name) < 24);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(name, san_drop_name((enum san_drop)k));
	}
}

UNIT_CASE(san_drop_name__stable)
{
	assert_string_equal(san_drop_name(SAN_DROP_NONE), "none");
	assert_string_equal(san_drop_name(SAN_DROP_ICRC), "icrc");
	assert_string_equal(san_drop_name(SAN_DROP_TAG), "tag");
	assert_string_equal(san_drop_name(SAN_DROP_ACK_BEYOND), "ack_beyond");
	assert_string_equal(san_drop_name(SAN_DROP_RED_ZONE), "red_zone");
	assert_string_equal(san_drop_name(SAN_DROP_CM_COOKIE), "cm_cookie");
	assert_string_equal(san_drop_name(SAN_DROP_TX_FULL), "tx_full");
}

UNIT_CASE(san_drop_name__out_of_range)
{
	assert_string_equal(san_drop_name(SAN_DROP_MAX), "unknown");
	assert_string_equal(san_drop_name((enum san_drop) - 1), "unknown");
}
