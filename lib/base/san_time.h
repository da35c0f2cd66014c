/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_TIME_H
#define SAN_TIME_H

/**
 * @file
 * Time in the protocol: nanoseconds in a uint64_t from any fixed origin, always passed in by the
 * caller. Neither the core nor any layer below it reads a clock.
 */

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

#endif /* SAN_TIME_H */
