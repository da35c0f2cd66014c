/* SPDX-License-Identifier: BSD-3-Clause */

/* Each doorbell is reported once, whichever lcore reads it, and none is lost. (SYS-2) */

#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "san_doorbells.h"

#define MAX 10000 /* queue pairs: three words of the summary */

static struct san_doorbells *doorbells;
static uint32_t cursor, rang[MAX];

static void
setup(void)
{
	doorbells = aligned_alloc(64, san_doorbells_bytes(MAX));
	memset(doorbells, 0, san_doorbells_bytes(MAX));
	cursor = 0;
}

static void
teardown(void)
{
	free(doorbells);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

UNIT_CASE(san_doorbells_take__each_once)
{
	static const uint32_t who[] = {0, 63, 64, 4095, 4096, 9999};

	assert_int_equal(san_doorbells_take(doorbells, MAX, &cursor, rang, MAX), 0);
	for (uint32_t i = 0; i < 6; i++) {
		san_doorbells_ring(doorbells, who[i]);
		san_doorbells_ring(doorbells, who[i]);
	}
	assert_int_equal(san_doorbells_take(doorbells, MAX, &cursor, rang, MAX), 6);
	assert_memory_equal(rang, who, sizeof(who));
	assert_int_equal(san_doorbells_take(doorbells, MAX, &cursor, rang, MAX), 0);
}

/* With all doorbells rung all the time and little room, each is reported in turn. */
UNIT_CASE(san_doorbells_take__in_turn)
{
	static uint32_t told[MAX];
	uint32_t n;

	memset(told, 0, sizeof(told));
	for (uint32_t round = 0; round < 3 * MAX / 64; round++) {
		for (uint32_t i = 0; i < MAX; i++)
			san_doorbells_ring(doorbells, i);
		n = san_doorbells_take(doorbells, MAX, &cursor, rang, 100);
		assert_in_range(n, 1, 100);
		for (uint32_t i = 0; i < n; i++)
			told[rang[i]]++;
	}
	for (uint32_t i = 0; i < MAX; i++)
		assert_in_range(told[i], 2, 4);
}

/* Bits of an application beyond its queue pairs index no table (SYS-5). */
UNIT_CASE(san_doorbells_take__beyond)
{
	for (uint32_t i = 0; i < SAN_DOORBELLS_WORDS / 64; i++)
		atomic_store(&doorbells->summary[i], UINT64_MAX);
	atomic_store(&doorbells->words[0], UINT64_MAX);
	assert_int_equal(san_doorbells_take(doorbells, 10, &cursor, rang, 64), 64);
	assert_int_equal(rang[63], 63);
	assert_int_equal(san_doorbells_take(doorbells, 10, &cursor, rang, 64), 0);
	assert_true(atomic_load(&doorbells->summary[0]) == 0);
}

/* ---- from threads ---- */

#define THREADS 3
#define RINGS   20000

static _Atomic uint32_t posted[MAX];

static void *
ring(void *arg)
{
	uint32_t at = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < RINGS; i++) {
		at = (at * 1103515245 + 12345) % 200;
		atomic_fetch_add_explicit(&posted[at], 1, memory_order_relaxed);
		san_doorbells_ring(doorbells, at);
	}
	return NULL;
}

/* Entries posted before the doorbell are seen after it: at the end, all of them. */
UNIT_CASE(san_doorbells_ring__from_threads)
{
	static uint32_t seen[MAX];
	uint32_t n, sum = 0;
	pthread_t t[THREADS];

	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ring, (void *)(uintptr_t)(i + 1)), 0);
	while (sum < THREADS * RINGS) {
		n = san_doorbells_take(doorbells, MAX, &cursor, rang, 64);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t now = atomic_load_explicit(&posted[rang[i]], memory_order_relaxed);

			sum += now - seen[rang[i]];
			seen[rang[i]] = now;
		}
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	/* an entry posted during a visit rings again without need */
	while (san_doorbells_take(doorbells, MAX, &cursor, rang, 64) != 0)
		;
}
