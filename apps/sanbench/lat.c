/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <string.h>

#include "lat.h"

static uint32_t
bucket_of(uint64_t ns)
{
	uint32_t power, step;

	if (ns < LAT_STEPS)
		return (uint32_t)ns;
	power = 63 - (uint32_t)__builtin_clzll(ns) - LAT_STEP_BITS;
	step = (uint32_t)(ns >> power) - LAT_STEPS;
	/* Values below LAT_STEPS fill power 0; each later power has LAT_STEPS buckets. */
	if (power + 1 >= LAT_POWERS)
		return LAT_BUCKETS - 1;
	return (power + 1) * LAT_STEPS + step;
}

/* Largest value that lands in the bucket. */
static uint64_t
bucket_top(uint32_t bucket)
{
	uint32_t power = bucket / LAT_STEPS, step = bucket % LAT_STEPS;

	if (power == 0)
		return step;
	return ((uint64_t)(LAT_STEPS + step + 1) << (power - 1)) - 1;
}

void
lat_reset(struct lat *lat)
{
	memset(lat, 0, sizeof(*lat));
	lat->min_ns = UINT64_MAX;
}

void
lat_add(struct lat *lat, uint64_t ns)
{
	lat->count++;
	lat->sum_ns += ns;
	if (ns < lat->min_ns)
		lat->min_ns = ns;
	if (ns > lat->max_ns)
		lat->max_ns = ns;
	lat->bucket[bucket_of(ns)]++;
}

void
lat_merge(struct lat *lat, const struct lat *other)
{
	uint32_t i;

	lat->count += other->count;
	lat->sum_ns += other->sum_ns;
	if (other->min_ns < lat->min_ns)
		lat->min_ns = other->min_ns;
	if (other->max_ns > lat->max_ns)
		lat->max_ns = other->max_ns;
	for (i = 0; i < LAT_BUCKETS; i++)
		lat->bucket[i] += other->bucket[i];
}

uint64_t
lat_percentile(const struct lat *lat, uint32_t per_10000)
{
	uint64_t rank = (lat->count * per_10000 + 9999) / 10000, seen = 0;
	uint32_t i;

	if (lat->count == 0)
		return 0;
	if (rank == 0)
		rank = 1;
	for (i = 0; i < LAT_BUCKETS; i++) {
		seen += lat->bucket[i];
		if (seen >= rank)
			break;
	}
	return bucket_top(i) < lat->max_ns ? bucket_top(i) : lat->max_ns;
}

void
lat_summarize(const struct lat *lat, struct lat_summary *out)
{
	out->count = lat->count;
	out->mean_ns = lat->count ? lat->sum_ns / lat->count : 0;
	out->min_ns = lat->count ? lat->min_ns : 0;
	out->p50_ns = lat_percentile(lat, 5000);
	out->p90_ns = lat_percentile(lat, 9000);
	out->p99_ns = lat_percentile(lat, 9900);
	out->p999_ns = lat_percentile(lat, 9990);
	out->max_ns = lat->max_ns;
}

void
lat_print(const struct lat *lat, FILE *f)
{
	uint64_t below = 0, n;
	uint32_t power, i;

	fprintf(f, "%14s %12s %9s\n", "up to ns", "samples", "share");
	for (power = 0; power < LAT_POWERS; power++) {
		n = 0;
		for (i = 0; i < LAT_STEPS; i++)
			n += lat->bucket[power * LAT_STEPS + i];
		if (n == 0)
			continue;
		below += n;
		fprintf(f, "%14" PRIu64 " %12" PRIu64 " %8.4f%%\n",
			bucket_top((power + 1) * LAT_STEPS - 1), n,
			100.0 * (double)below / (double)lat->count);
	}
	fprintf(f, "%14s %12" PRIu64 "\n", "all", lat->count);
}
