/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How quiet a CPU is: the gaps that a loop sees which does nothing but read the
 * clock for MILLISECONDS on the CPU it was bound to. Percentiles above the share
 * of these gaps measure the machine and not the stack.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define GAP_NS 10000

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int
main(int argc, char **argv)
{
	uint64_t duration = (argc > 1 ? (uint64_t)atoi(argv[1]) : 1000) * 1000000u;
	uint64_t begin = now_ns();
	uint64_t last = begin;
	uint64_t longest = 0, gaps = 0, lost = 0;

	for (uint64_t now = begin; now - begin < duration; last = now) {
		now = now_ns();
		if (now - last < GAP_NS)
			continue;
		gaps++;
		lost += now - last;
		if (now - last > longest)
			longest = now - last;
	}
	printf("{\"gaps_per_s\": %.0f, \"longest_us\": %.1f, \"share\": %.5f}\n",
	       (double)gaps * 1e9 / (double)duration, (double)longest / 1e3,
	       (double)lost / (double)duration);
	return 0;
}
