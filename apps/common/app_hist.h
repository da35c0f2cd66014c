/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APP_HIST_H
#define APP_HIST_H

/**
 * @file
 * Latency histogram, log-linear: 64 steps per power of two, so the error of a percentile is at most
 * 1.6 % for any value. (SYS-3)
 */

#include <stdint.h>
#include <stdio.h>

#define APP_HIST_STEP_BITS 6
#define APP_HIST_STEPS     (1u << APP_HIST_STEP_BITS)
#define APP_HIST_POWERS    (64 - APP_HIST_STEP_BITS + 1) /**< covers uint64_t */
#define APP_HIST_BUCKETS   (APP_HIST_STEPS * APP_HIST_POWERS)

struct app_hist {
	uint64_t count;
	uint64_t sum_ns; /**< wraps after 584 years */
	uint64_t min_ns; /**< UINT64_MAX: no sample */
	uint64_t max_ns;
	uint64_t bucket[APP_HIST_BUCKETS];
};

/** Values of one line of a report. All are 0 without samples. */
struct app_hist_summary {
	uint64_t count;
	uint64_t mean_ns, min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};

/** Reset the histogram; required before its first use. */
void app_hist_reset(struct app_hist *h);
void app_hist_add(struct app_hist *h, uint64_t ns);
/**
 * Smallest value that at least *per_10000* ten-thousandths of the samples don't exceed; 0: no
 * sample.
 */
uint64_t app_hist_percentile(const struct app_hist *h, uint32_t per_10000);
void app_hist_summarize(const struct app_hist *h, struct app_hist_summary *out);
/** Print the buckets in use, one power of two per line. */
void app_hist_print(const struct app_hist *h, FILE *f);

#endif /* APP_HIST_H */
