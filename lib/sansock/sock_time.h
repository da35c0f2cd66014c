/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_TIME_H
#define SOCK_TIME_H

/** @file Clocks, for what waits or is valid for a while. */

#include <stdint.h>
#include <time.h>

static inline int64_t
san_sock_time_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

#endif /* SOCK_TIME_H */
