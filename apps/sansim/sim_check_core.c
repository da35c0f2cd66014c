/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The layers' own checks of their invariants: windows, timers, CAM, queues. They abort on failure.
 */

#include "sim_check.h"

static void
core_round(struct sim_world *w, void *state, struct sim_host *h)
{
	(void)w;
	(void)state;
	san_core_check(h->core);
}

const struct sim_checker sim_check_core = {
	.round = core_round,
};
