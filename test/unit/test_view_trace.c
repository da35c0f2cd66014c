/* SPDX-License-Identifier: BSD-3-Clause */

#include <malloc.h>

#include "unit.h"
#include "view_trace.h"

#define TIMES 2000

/* Without tracing there is no cost, however often an lcore sleeps. */
static void
san_trace_sleep__costs_no_memory(void **state)
{
	size_t before, i;

	(void)state;
	san_trace_sleep(0, 1);
	before = mallinfo2().uordblks;
	for (i = 0; i < TIMES; i++)
		san_trace_sleep(0, i);
	assert_int_equal(mallinfo2().uordblks, before);
}

UNIT_TEST(test_view_trace)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(san_trace_sleep__costs_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
