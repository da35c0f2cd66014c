/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_SWARM_H
#define SIM_SWARM_H

/**
 * @file
 * Many short runs of scenarios drawn from seeds. Each worker process does run
 * after run; one that dies is a failed run, and is replaced. A failed run is
 * shrunk: made again with less, as long as the same checker still fails.
 */

#include "sim_conf.h"

struct sim_swarm_conf {
	uint64_t seed;    /**< of the first run; the next has the next */
	uint64_t nb_runs; /**< 0: until the time is over */
	uint64_t seconds; /**< of real time; 0: until the runs are over */
	uint32_t nb_workers;
	bool shrink;
	const char *program; /**< for the command line that repeats a run */
};

/** What many runs amount to. */
struct sim_swarm_sum {
	uint64_t nb_runs, nb_failed, nb_events, nb_faults, nb_ops, nb_broken;
	uint64_t hash; /**< sum of the runs' trace hashes: in whatever order they ran */
};

/** The scenario of a seed: always the same one. */
void sim_swarm_draw(uint64_t seed, struct sim_conf *conf);
/**
 * One run in a process of its own. 0: passed, or not a scenario; -EIO: it failed;
 * -EINVAL: it could not be built, a place of a fault is none; another -errno: there
 * is no process for it. What is in *why*.
 */
int sim_swarm_try(const struct sim_conf *conf, struct sim_swarm_sum *sum, char *why, size_t len);
/** Make a failing scenario smaller while it fails as it did first: *why*. */
void sim_swarm_shrink(struct sim_conf *conf, const char *why);
/** As INI, and in its first line, a comment, *why* it fails. */
void sim_swarm_print(const struct sim_conf *conf, const char *why, FILE *out);
/** The campaign; number of runs that failed, or of workers that could not begin. */
uint64_t sim_swarm_run(const struct sim_swarm_conf *conf);

#endif /* SIM_SWARM_H */
