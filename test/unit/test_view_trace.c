/* SPDX-License-Identifier: BSD-3-Clause */

#include <malloc.h>

#include "unit.h"
#include "view_trace.h"

#define TIMES 2000

/* Without tracing there is no cost, however often an lcore sleeps. */
UNIT_CASE(san_trace_sleep__costs_no_memory)
{
	size_t before;

	san_trace_sleep(0, 1);
	before = mallinfo2().uordblks;
	for (size_t i = 0; i < TIMES; i++)
		san_trace_sleep(0, i);
	assert_int_equal(mallinfo2().uordblks, before);
}
