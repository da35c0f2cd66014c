/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Latency histogram, log-linear: 64 steps per power of two, so the error of a percentile is at most
 * 1.6 % for any value. (SYS-3)
 */

#include <stdint.h>
#include <stdio.h>

#define HIST_STEP_BITS 6
#define HIST_STEPS     (1u << HIST_STEP_BITS)
#define HIST_POWERS    (64 - HIST_STEP_BITS + 1) /**< covers uint64_t */
#define HIST_BUCKETS   (HIST_STEPS * HIST_POWERS)

/** Zeros: no sample. */
struct hist {
	uint64_t count;
	uint64_t sum_ns; /**< wraps after 584 years */
	uint64_t min_ns;
	uint64_t max_ns;
	uint64_t bucket[HIST_BUCKETS];
};

/** Values of one line of a report. All are 0 without samples. */
struct hist_summary {
	uint64_t count;
	uint64_t mean_ns, min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};

void san_hist_add(struct hist *h, uint64_t ns);
/** Smallest value that *per_10000* ten-thousandths of the samples don't exceed; 0: no sample. */
uint64_t san_hist_percentile(const struct hist *h, uint32_t per_10000);
void san_hist_summarize(const struct hist *h, struct hist_summary *out);
/** Print the buckets in use, one power of two per line. */
void san_hist_print(const struct hist *h, FILE *f);
