/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAT_H
#define LAT_H

/**
 * @file
 * Latency histogram, log-linear: 32 steps per power of two, so that every
 * percentile is right within 3 % from 1 ns to 18 minutes. (SYS-3)
 */

#include <stdint.h>
#include <stdio.h>

#define LAT_STEP_BITS 5
#define LAT_STEPS     (1u << LAT_STEP_BITS)
#define LAT_POWERS    36 /**< 2^40 ns and more all land in the last bucket */
#define LAT_BUCKETS   (LAT_STEPS * LAT_POWERS)

struct lat {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t min_ns, max_ns;
	uint64_t bucket[LAT_BUCKETS];
};

/** What one line of a report says. */
struct lat_summary {
	uint64_t count;
	uint64_t mean_ns, min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};

void lat_reset(struct lat *lat);
void lat_add(struct lat *lat, uint64_t ns);
void lat_merge(struct lat *lat, const struct lat *other);
/** Smallest value that *per_10000* ten-thousandths of all samples don't exceed; 0: no sample. */
uint64_t lat_percentile(const struct lat *lat, uint32_t per_10000);
void lat_summarize(const struct lat *lat, struct lat_summary *out);
/** Print the buckets in use, one power of two per line. */
void lat_print(const struct lat *lat, FILE *f);

#endif /* LAT_H */
