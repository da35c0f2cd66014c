/* SPDX-License-Identifier: BSD-3-Clause */

/* RT-26: a connection with open requests makes progress while its path works. */

#include <inttypes.h>

#include "sim_check.h"

static void
progress_sample(struct sim_world *w, void *state)
{
	uint32_t i;

	(void)state;
	if (w->nb_blocking != 0)
		return;
	for (i = 0; i < w->load->nb_sides; i++) {
		const struct sim_side *s = &w->load->sides[i];
		uint64_t since = RTE_MAX(s->last_ns, w->unblocked_ns);

		if (s->innocent && s->nb_posted != s->nb_done && s->state == SIM_SIDE_UP &&
		    w->now_ns > since + w->conf.run.stall_ns)
			san_sim_world_fail(w, "progress",
					   "side %u: of %" PRIu64
					   " requests none is done for %" PRIu64 " ms",
					   i, s->nb_posted - s->nb_done,
					   (uint64_t)((w->now_ns - since) / SAN_NS_PER_MS));
	}
}

static void
progress_settled(struct sim_world *w, void *state)
{
	(void)state;
	if (w->conf.run.silence_max_ns != 0 && w->longest_silence_ns > w->conf.run.silence_max_ns)
		san_sim_world_fail(w, "progress", "side %u stood still for %" PRIu64 " us",
				   w->silent_side,
				   (uint64_t)(w->longest_silence_ns / SAN_NS_PER_US));
}

const struct sim_checker sim_check_progress = {
	.sample = progress_sample,
	.settled = progress_settled,
};
