/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_SIM_ONE_H
#define TEST_SIM_ONE_H

/**
 * @file
 * One world per test, and what its checkers report.
 */

#include "test_sim.h"

#include "sim_check.h"
#include "unit.h"

#define MS         SAN_NS_PER_MS
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct sim_world *w;

static inline int
setup(void **state)
{
	(void)state;
	test_eal_init();
	w = NULL;
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	if (w != NULL)
		san_sim_world_destroy(w);
	return 0;
}

/* Two hosts, one connection; sides 0 and 1. No checker has failed. */
static inline void
world(const char *const *words)
{
	test_sim_world(&w, words);
}

static inline void
assert_fails(const char *check, const char *text)
{
	test_sim_assert_fails(w, check, text);
}

static inline void
assert_fine(void)
{
	test_sim_assert_fine(w);
}

static inline struct sim_side *
side(uint32_t id)
{
	return &w->load->sides[id];
}

#define SIM_CASE(name) UNIT_CASE_WITH(name, setup, teardown)

#endif /* TEST_SIM_ONE_H */
