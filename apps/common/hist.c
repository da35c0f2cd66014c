/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>

#include "hist.h"

static uint32_t
hist_bucket_of(uint64_t ns)
{
	uint32_t power, step;

	if (ns < HIST_STEPS)
		return (uint32_t)ns;
	power = 63 - (uint32_t)__builtin_clzll(ns) - HIST_STEP_BITS;
	step = (uint32_t)(ns >> power) - HIST_STEPS;
	/* values below HIST_STEPS are of power 0; each further power has as many buckets */
	return (power + 1) * HIST_STEPS + step;
}

/* Largest value of a bucket. That of the last bucket wraps to UINT64_MAX, which is correct. */
static uint64_t
bucket_top(uint32_t bucket)
{
	uint32_t power = bucket / HIST_STEPS, step = bucket % HIST_STEPS;

	if (power == 0)
		return step;
	return ((uint64_t)(HIST_STEPS + step + 1) << (power - 1)) - 1;
}

void
san_hist_add(struct hist *h, uint64_t ns)
{
	if (h->count++ == 0 || ns < h->min_ns)
		h->min_ns = ns;
	h->sum_ns += ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
	h->bucket[hist_bucket_of(ns)]++;
}

uint64_t
san_hist_percentile(const struct hist *h, uint32_t per_10000)
{
	uint64_t rank, seen = 0;
	uint32_t i;

	if (h->count == 0)
		return 0;
	rank = (h->count * per_10000 + 9999) / 10000;
	if (rank == 0)
		rank = 1;
	for (i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			break;
	}
	return bucket_top(i) < h->max_ns ? bucket_top(i) : h->max_ns;
}

void
san_hist_summarize(const struct hist *h, struct hist_summary *out)
{
	out->count = h->count;
	out->mean_ns = h->count ? h->sum_ns / h->count : 0;
	out->min_ns = h->min_ns;
	out->p50_ns = san_hist_percentile(h, 5000);
	out->p90_ns = san_hist_percentile(h, 9000);
	out->p99_ns = san_hist_percentile(h, 9900);
	out->p999_ns = san_hist_percentile(h, 9990);
	out->max_ns = h->max_ns;
}

void
san_hist_print(const struct hist *h, FILE *f)
{
	uint64_t below = 0, n;
	uint32_t power, i;

	fprintf(f, "%14s %12s %9s\n", "up to ns", "samples", "share");
	for (power = 0; power < HIST_POWERS; power++) {
		n = 0;
		for (i = 0; i < HIST_STEPS; i++)
			n += h->bucket[power * HIST_STEPS + i];
		if (n == 0)
			continue;
		below += n;
		fprintf(f, "%14" PRIu64 " %12" PRIu64 " %8.4f%%\n",
			bucket_top((power + 1) * HIST_STEPS - 1), n,
			100.0 * (double)below / (double)h->count);
	}
	fprintf(f, "%14s %12" PRIu64 "\n", "all", h->count);
}
