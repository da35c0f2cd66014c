/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_SWARM_H
#define SIM_SWARM_H

/**
 * @file
 * Many short runs of scenarios drawn from seeds. Each worker process executes one run after the
 * other. If it dies the run has failed, and the worker is replaced. A failed scenario is shrunk:
 * repeated with less as long as the same checker fails.
 */

#include "sim_conf.h"

struct sim_swarm_conf {
	uint64_t seed;    /**< of the first run; each next run increments it */
	uint64_t nb_runs; /**< 0: until the time is over */
	uint64_t seconds; /**< real time; 0: until all runs are done */
	uint32_t nb_workers;
	bool shrink;
	const char *program; /**< for the command line in reports */
};

/** Sums over many runs. */
struct sim_swarm_sum {
	uint64_t nb_runs, nb_failed, nb_events, nb_faults, nb_ops, nb_broken;
	uint64_t hash; /**< sum of the runs' trace hashes, independent of their order */
};

/** Draw the scenario of a seed, always the same. */
void san_sim_draw_swarm(uint64_t seed, struct sim_conf *conf);
/**
 * Execute one run in a process of its own. 0: passed, or not a scenario; -EIO: failed; -EINVAL: a
 * fault names a place that does not exist; another -errno: no process. *why* has the reason.
 */
int san_sim_swarm_try(const struct sim_conf *conf, struct sim_swarm_sum *sum, char *why,
		      size_t len);
/** Reduce a failing scenario while it fails with the same reason *why*. */
void san_sim_swarm_shrink(struct sim_conf *conf, const char *why);
/** Print as INI, with *why* as a comment in the first line. */
void san_sim_swarm_print(const struct sim_conf *conf, const char *why, FILE *out);
/** Run the campaign. Returns the number of failed runs, or of workers that could not start. */
uint64_t san_sim_swarm_run(const struct sim_swarm_conf *conf);

#endif /* SIM_SWARM_H */
