/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_RATE_H
#define SAN_RATE_H

/**
 * @file
 * A rate limit in one word: a clock that each taking advances. It may not pass now, and is not
 * behind by more than a burst.
 */

#include <stdbool.h>
#include <stdint.h>

/** Take one? Not more than one in *each_ns*, after silence *burst* at once. */
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

#endif /* SAN_RATE_H */
