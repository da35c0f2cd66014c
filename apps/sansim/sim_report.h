/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

/**
 * @file
 * Results of a run: figures as text and JSON, time series.
 */

#include "sim_world.h"

/** Jain's index of the initiators' bytes during the measurement, in millionths. */
uint32_t san_sim_report_jain(const struct sim_world *w);
/** Print one page of figures. */
void san_sim_report_text(const struct sim_world *w, FILE *out);
/** Print all figures as one JSON object; sansim(1) describes the keys. */
void san_sim_report_json(const struct sim_world *w, FILE *out);
/** Add the counters of an engine. */
void san_sim_report_engine(struct sim_engine_sums *s, struct san_core *core);
/** Take the links' counters now, for the report. */
void san_sim_report_links(struct sim_world *w);
/** Print a line of the time series; the header first. */
void san_sim_report_series(struct sim_world *w);

#endif /* SIM_REPORT_H */
