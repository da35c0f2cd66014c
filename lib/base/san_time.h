/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Time in the protocol: nanoseconds in a uint64_t from any fixed origin, always passed in by the
 * caller. Neither the core nor any layer below it reads a clock.
 */

#include <stdbool.h>
#include <stdint.h>

#define SAN_NS_PER_US  1000ULL
#define SAN_NS_PER_MS  1000000ULL
#define SAN_NS_PER_S   1000000000ULL
#define SAN_TIME_NEVER UINT64_MAX

static inline uint64_t
san_time_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/**
 * A rate limit in one word, a clock that each token advances: it may not pass the present, and is
 * at most a burst behind it. Take a token: at most one per *each_ns*, and up to *burst* at once
 * after silence.
 */
static inline bool
san_rate_take(uint64_t *taken_ns, uint64_t each_ns, uint32_t burst, uint64_t now_ns)
{
	uint64_t window_ns = each_ns * burst;

	if (*taken_ns + window_ns < now_ns)
		*taken_ns = now_ns - window_ns;
	if (*taken_ns + each_ns > now_ns)
		return false;
	*taken_ns += each_ns;
	return true;
}
