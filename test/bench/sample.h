/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Round-trip times of a baseline, kept one by one: exact percentiles, and no
 * arithmetic in the measured loop.
 */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_MAX (1u << 23)

struct sample {
	uint32_t *value;
	uint32_t count;
};

static inline int
sample_init(struct sample *s)
{
	s->count = 0;
	s->value = malloc(SAMPLE_MAX * sizeof(*s->value));
	if (s->value == NULL)
		return -1;
	memset(s->value, 0xff, SAMPLE_MAX * sizeof(*s->value)); /* no page faults later */
	return 0;
}

/** Returns 0 when there is no room for another one. */
static inline int
sample_add(struct sample *s, uint64_t value)
{
	s->value[s->count++] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	return s->count < SAMPLE_MAX;
}

static inline int
sample_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/** Half of them are below; there is one at least. They are in order then. */
static inline uint32_t
sample_median(struct sample *s)
{
	qsort(s->value, s->count, sizeof(*s->value), sample_compare);
	return s->value[s->count / 2];
}

/** Print as JSON; *per_us* values are a microsecond. Releases the samples. */
static inline int
sample_report(struct sample *s, double per_us, double seconds)
{
	if (s->count == 0) {
		fprintf(stderr, "no round trip was measured\n");
		return -1;
	}
	sample_median(s);
	printf("{\"count\": %" PRIu32 ", \"seconds\": %.3f, \"p50_us\": %.3f, \"p99_us\": %.3f}\n",
	       s->count, seconds, s->value[s->count / 2] / per_us,
	       s->value[s->count - 1 - s->count / 100] / per_us);
	free(s->value);
	return 0;
}
