/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_RATE_H
#define SAN_RATE_H

/**
 * @file
 * A rate limit in one word: a clock that each token advances. It may not pass the present, and is
 * at most a burst behind it.
 */

#include <stdbool.h>
#include <stdint.h>

/** Take a token: at most one per *each_ns*, and up to *burst* at once after silence. */
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
