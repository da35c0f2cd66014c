/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file One world per test, and what its checkers report. */

#include "test_sim.h"

#define MS SAN_NS_PER_MS

static struct sim_world *w;

static inline void
setup(void)
{
	test_eal_init();
	w = NULL;
}

static inline void
teardown(void)
{
	if (w != NULL)
		san_sim_world_destroy(w);
	w = NULL;
}

/* Two hosts, one connection; sides 0 and 1. No checker has failed. The world before it ends. */
static inline void
world(const char *const *words)
{
	teardown();
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

/* ---- steps of a run ---- */

static inline void
connect_all(void)
{
	while (w->load->nb_up < w->load->nb_sides)
		assert_true(san_sim_world_step(w, 60 * SAN_NS_PER_S));
}

static inline void
run_ns(uint64_t ns)
{
	uint64_t end_ns = w->now_ns + ns;

	while (san_sim_world_step(w, end_ns))
		;
	assert_fine();
}

/* A whole run, with a load that does something. */
static inline void
ran(const char *const *words)
{
	world(words);
	san_sim_world_run(w);
	assert_fine();
	assert_true(w->stats.nb_ops > 0);
}

/* A round of a host's checkers fails. */
static inline void
assert_round_fails(uint32_t host, const char *check, const char *text)
{
	san_sim_check_round(w, &w->hosts[host]);
	assert_fails(check, text);
}

#define SIM_CASE(name) UNIT_CASE_OWN(name, setup, teardown)
