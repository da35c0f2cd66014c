/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_cpuflags.h>

#include "engine_clock.h"

#define CALIBRATE_NS (10 * SAN_NS_PER_MS)
#define TRIES        8

/* Read both clocks at the same moment: the attempt with the shortest time in between is used. */
static void
engine_clock_read_both(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX, before, after, t;
	int i;

	for (i = 0; i < TRIES; i++) {
		before = san_engine_clock_monotonic();
		t = rte_rdtsc_precise();
		after = san_engine_clock_monotonic();
		if (after - before < best) {
			best = after - before;
			*tsc = t;
			*ns = before + (after - before) / 2;
		}
	}
}

void
san_engine_clock_init(struct san_engine_clock *c)
{
	uint64_t tsc1 = 0, ns1 = 0, ticks, ns;

	c->tsc0 = 0;
	c->ns0 = 0;
	c->mult = 0;
	c->is_tsc = rte_cpu_get_flag_enabled(RTE_CPUFLAG_INVTSC) == 1;
	engine_clock_read_both(&c->tsc0, &c->ns0);
	c->last_ns = c->ns0;
	if (!c->is_tsc)
		return;
	while (san_engine_clock_monotonic() < c->ns0 + CALIBRATE_NS)
		rte_pause();
	engine_clock_read_both(&tsc1, &ns1);
	ticks = tsc1 - c->tsc0;
	ns = ns1 - c->ns0;
	if (ticks <= ns || ns >> 32 != 0) { /* below 1 GHz, or interrupted for seconds */
		c->is_tsc = false;
		return;
	}
	c->mult = (uint32_t)((ns << 32) / ticks);
}
