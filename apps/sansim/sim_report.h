/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

/**
 * @file
 * What a run showed: figures for people and for programs, time series.
 */

#include "sim_world.h"

/** Jain's index of the initiating sides' bytes in the measured time, millionths. */
uint32_t sim_report_jain(const struct sim_world *w);
/** One page of figures. */
void sim_report_text(const struct sim_world *w, FILE *out);
/** All of them, as one JSON object; keys are in sansim(1). */
void sim_report_json(const struct sim_world *w, FILE *out);
/** Add what an engine counted. */
void sim_report_engine(struct sim_engine_sums *s, struct san_core *core);
/** What links counted up to now is what is told. */
void sim_report_links(struct sim_world *w);
/** A line of the time series; the first one is the head. */
void sim_report_series(struct sim_world *w);

#endif /* SIM_REPORT_H */
