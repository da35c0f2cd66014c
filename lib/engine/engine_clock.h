/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Nanoseconds from the time stamp counter, calibrated against CLOCK_MONOTONIC at the start. Where
 * the counter stops or changes its rate, CLOCK_MONOTONIC itself. Never runs backwards, even if the
 * counters of CPUs differ.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include "san_time.h"

struct san_engine_clock {
	bool is_tsc;
	uint32_t mult; /**< ns per tick, 0.32 fixed point, so counters below 1 GHz are not usable */
	uint64_t tsc0;
	uint64_t ns0;
	uint64_t last_ns;
};

static inline uint64_t
san_engine_clock_monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SAN_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/** Calibrate; takes some milliseconds. */
void san_engine_clock_init(struct san_engine_clock *c);

/** The current time; called once per round. */
static inline uint64_t
san_engine_clock_now(struct san_engine_clock *c)
{
	uint64_t d, ns;

	if (likely(c->is_tsc)) {
		d = rte_rdtsc() - c->tsc0;
		if (unlikely((int64_t)d < 0)) /* the counter of another CPU is a little behind */
			return c->last_ns;
		/* in two halves, because the full product would overflow */
		ns = c->ns0 + (d >> 32) * c->mult + ((d & UINT32_MAX) * c->mult >> 32);
	} else {
		ns = san_engine_clock_monotonic();
	}
	if (ns > c->last_ns)
		c->last_ns = ns;
	return c->last_ns;
}
