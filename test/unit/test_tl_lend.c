/* SPDX-License-Identifier: BSD-3-Clause */

/* One incast budget of several lcores: never exceeded, and each gets a share. */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "san_prng.h"
#include "tl_priv.h"

#define NB    4
#define TOTAL 16000
#define SHARE (TOTAL / NB)
#define LEAST (SHARE / 4)
#define MANY  200 /* rounds: more than any of the tests takes */

static struct san_tl_lend lend;
static struct san_tl *tl[NB];

static void
setup(void)
{
	san_tl_lend_init(&lend, TOTAL, NB);
	for (uint32_t i = 0; i < NB; i++) {
		tl[i] = calloc(1, sizeof(*tl[i]));
		tl[i]->conf.lend = &lend;
		san_tl_lend_join(tl[i]);
	}
}

static void
teardown(void)
{
	for (uint32_t i = 0; i < NB; i++) {
		san_tl_lend_leave(tl[i]);
		free(tl[i]);
	}
	assert_true(atomic_load(&lend.free_bytes) == lend.total_bytes);
	assert_int_equal(atomic_load(&lend.claims), 0);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

static void
check_sum(void)
{
	uint32_t sum = atomic_load(&lend.free_bytes);

	for (uint32_t i = 0; i < NB; i++) {
		sum += tl[i]->budget_bytes;
		assert_true(tl[i]->budget_used <= tl[i]->budget_bytes);
		assert_true(tl[i]->budget_bytes >= LEAST);
		assert_true(tl[i]->limit_bytes <= tl[i]->budget_bytes);
	}
	assert_int_equal(sum, TOTAL);
}

/* *waits*: bit i for lcore i. */
static void
rounds(uint32_t n, uint32_t waits)
{
	while (n-- > 0) {
		for (uint32_t i = 0; i < NB; i++) {
			san_tl_lend_tick(tl[i], (waits & 1u << i) != 0);
			check_sum();
		}
	}
}

UNIT_CASE(init__everybody_has_a_share)
{
	struct san_tl_lend l;

	for (uint32_t i = 0; i < NB; i++) {
		assert_int_equal(tl[i]->budget_bytes, SHARE);
		assert_int_equal(tl[i]->limit_bytes, SHARE);
	}
	check_sum();
	san_tl_lend_init(&l, 1, 16); /* less than a byte each */
	assert_int_equal(l.share_bytes, 1);
	assert_int_equal(l.total_bytes, 16);
	assert_int_equal(l.least_bytes, 1);
	san_tl_lend_init(&l, 5000, 3);
	assert_int_equal(atomic_load(&l.free_bytes), 5000);
}

/* Without a waiting lcore nothing moves. */
UNIT_CASE(tick__nobody_waits)
{
	rounds(MANY, 0);
	assert_int_equal(atomic_load(&lend.claims), 0);
	for (uint32_t i = 0; i < NB; i++)
		assert_int_equal(tl[i]->budget_bytes, SHARE);
}

UNIT_CASE(tick__the_idle_lend)
{
	rounds(MANY, 1);
	assert_int_equal(tl[0]->budget_bytes, TOTAL - (NB - 1) * LEAST);
	assert_int_equal(tl[0]->limit_bytes, tl[0]->budget_bytes);
	assert_true(tl[1]->stats.nb_budget_returned > 0);
	/* it keeps that until another lcore needs some, even when it does not wait any more */
	rounds(MANY, 0);
	assert_int_equal(tl[0]->budget_bytes, TOTAL - (NB - 1) * LEAST);
	assert_int_equal(atomic_load(&lend.claims), 0);
	rounds(MANY, 4);
	assert_int_equal(tl[0]->budget_bytes, LEAST);
	assert_int_equal(tl[2]->budget_bytes, TOTAL - (NB - 1) * LEAST);
}

/* An lcore that waits gets a share as it is returned, though the other one would use it. */
UNIT_CASE(tick__a_share_comes_back)
{
	bool was_short;

	rounds(MANY, 1);
	tl[0]->budget_used = tl[0]->budget_bytes;
	for (uint32_t i = 0; i < MANY; i++) {
		was_short = tl[1]->claim != 0 && tl[1]->budget_bytes < SHARE;
		rounds(1, 3);
		if (was_short)
			assert_true(tl[0]->limit_bytes <= SHARE);
		/* some is placed, and granted again up to the limit */
		tl[0]->budget_used -= RTE_MIN(tl[0]->budget_used, 1000u);
		tl[0]->budget_used = RTE_MAX(tl[0]->budget_used, tl[0]->limit_bytes);
	}
	assert_true(tl[1]->budget_bytes >= SHARE);
	assert_true(tl[0]->budget_bytes >= SHARE);
	tl[0]->budget_used = 0;
}

/* Beside pulls a quarter is kept for grants, which would otherwise wait for pulls. */
UNIT_CASE(tick__keeps_a_quarter_beside_pulls)
{
	struct san_tl_host host = {0};
	const struct san_tl_conn tc = {.host = &host};

	for (uint32_t pulled = 1; pulled <= 3 * (SHARE / 4); pulled += 7) {
		san_tl_lend_tick(tl[0], false);
		tl[0]->budget_used = tl[0]->pulled_used = pulled;
		rounds(MANY, 2);
		assert_true(tl[0]->budget_bytes - RTE_MAX(tl[0]->budget_bytes / 4, 1u) >= pulled);
		assert_true(san_tl_admit_pull_room(tl[0], &tc) <= tl[0]->budget_bytes - pulled);
		tl[0]->budget_used = tl[0]->pulled_used = 0;
		rounds(MANY, 1);
	}
}

/* ---- lcores in threads ---- */

#define THREAD_ROUNDS 100000

static _Atomic uint32_t in_use; /* in use by all, counted separately */
static _Atomic uint32_t worst;
static _Atomic int nb_left;

static void
use(struct san_tl *t, int64_t bytes)
{
	uint32_t now;

	t->budget_used = (uint32_t)(t->budget_used + bytes);
	if (bytes > 0) {
		now = atomic_fetch_add(&in_use, (uint32_t)bytes) + (uint32_t)bytes;
		if (now > atomic_load(&worst))
			atomic_store(&worst, now);
	} else {
		atomic_fetch_sub(&in_use, (uint32_t)-bytes);
	}
}

static void *
lcore(void *arg)
{
	struct san_tl *t = arg;
	struct san_prng prng;
	uint32_t room, wants = 0;

	san_prng_seed(&prng, (uint64_t)(uintptr_t)arg);
	for (uint32_t i = 0; i < THREAD_ROUNDS; i++) {
		if (i % 1000 == 0) /* busy for a while, idle for a while */
			wants = san_prng_below(&prng, 2) * 3000;
		if (t->budget_used != 0)
			use(t, -(int64_t)san_prng_below(&prng, t->budget_used + 1));
		room = t->limit_bytes > t->budget_used ? t->limit_bytes - t->budget_used : 0;
		san_tl_lend_tick(t, room < wants);
		room = t->limit_bytes > t->budget_used ? t->limit_bytes - t->budget_used : 0;
		use(t, RTE_MIN(room, wants));
		if (t->budget_used > t->budget_bytes || t->budget_bytes < LEAST)
			return arg;
		if (i % 64 == 0)
			sched_yield();
	}
	use(t, -(int64_t)t->budget_used);
	atomic_fetch_sub(&nb_left, 1);
	while (atomic_load(&nb_left) != 0) /* an lcore keeps running */
		san_tl_lend_tick(t, false);
	return NULL;
}

/* RT-13: whatever the lcores do in parallel, together they never exceed the budget. */
UNIT_CASE(tick__from_several_threads)
{
	pthread_t threads[NB];
	void *failed;

	atomic_store(&in_use, 0);
	atomic_store(&worst, 0);
	atomic_store(&nb_left, NB);
	for (uint32_t i = 0; i < NB; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, lcore, tl[i]), 0);
	for (uint32_t i = 0; i < NB; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	check_sum();
	assert_int_equal(atomic_load(&in_use), 0);
	assert_in_range(atomic_load(&worst), SHARE, TOTAL);
}
