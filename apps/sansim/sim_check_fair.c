/* SPDX-License-Identifier: BSD-3-Clause */

/* Jain's index over the connections' bytes during the measurement. */

#include "sim_check.h"
#include "sim_report.h"

static void
fair_settled(struct sim_world *w, void *state)
{
	uint32_t jain = san_sim_report_jain(w);

	(void)state;
	if (w->conf.run.jain_min_ppm != 0 && jain < w->conf.run.jain_min_ppm)
		san_sim_world_fail(w, "fair", "Jain's index is %u millionths, asked for are %u",
				   jain, w->conf.run.jain_min_ppm);
}

const struct sim_checker sim_check_fair = {
	.settled = fair_settled,
};
