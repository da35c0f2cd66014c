/* SPDX-License-Identifier: BSD-3-Clause */

#include <unistd.h>

#include "unit.h"

#include <rte_alarm.h>

#include "engine_priv.h"
#include "san_time.h"
#include "test_eal.h"

#define MS         SAN_NS_PER_MS
#define WATCHDOG_S 10 /* real time, generous */

static struct san_engine_gate gate, other;
static uint64_t now;
static _Atomic int nb_ran;

/* Represents the driver's own work in the interrupt thread. */
static void
probe(void *arg)
{
	atomic_fetch_add(&nb_ran, 1);
}

static void
probe_later(void)
{
	assert_int_equal(rte_eal_alarm_set(1, probe, NULL), 0);
}

static bool
pass(bool is_up)
{
	return san_engine_gate_pass(&gate, is_up, now);
}

/* Run rounds of the lcore until bursts may run. */
static void
wait_held(void)
{
	alarm(WATCHDOG_S);
	while (!pass(true))
		sched_yield();
	alarm(0);
}

static void
wait_ran(int n)
{
	alarm(WATCHDOG_S);
	while (atomic_load(&nb_ran) < n)
		sched_yield();
	alarm(0);
	assert_int_equal(atomic_load(&nb_ran), n);
}

static void
setup(void)
{
	now = 1000 * MS;
	atomic_store(&nb_ran, 0);
	san_engine_gate_init(&gate, true);
}

static void
teardown(void)
{
	san_engine_gate_fini(&gate);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = test_eal_init);

UNIT_CASE(gate_pass__always_if_not_used)
{
	struct san_engine_gate g;

	san_engine_gate_init(&g, false);
	assert_true(san_engine_gate_pass(&g, false, 1));
	san_engine_gate_fini(&g);
}

/* SYS-1: while bursts may run, nothing else runs in the interrupt thread. */
UNIT_CASE(gate_pass__one_or_the_other)
{
	for (int round = 1; round <= 3; round++) {
		wait_held();
		probe_later();
		now += 9 * MS;
		san_engine_gate_traffic(&gate, now);
		now += 9 * MS;
		usleep(20000);
		assert_true(pass(true));
		assert_int_equal(atomic_load(&nb_ran), round - 1);
		now += 1 * MS; /* idle: it is released, and no burst runs before it is held again */
		assert_false(pass(true));
		wait_ran(round);
	}
}

UNIT_CASE(gate_pass__not_held_for_ever)
{
	wait_held();
	for (int i = 1; i < 200; i++) {
		now += 5 * MS;
		san_engine_gate_traffic(&gate, now);
		assert_true(pass(true));
	}
	now += 5 * MS;
	san_engine_gate_traffic(&gate, now);
	assert_false(pass(true));
}

UNIT_CASE(gate_pass__free_without_a_link)
{
	assert_false(pass(false));
	probe_later();
	wait_ran(1);
	/* the link is lost while bursts run: after the idle time there are none */
	wait_held();
	now += 10 * MS;
	assert_false(pass(false));
	assert_false(pass(false));
	probe_later();
	wait_ran(2);
	assert_false(pass(false));
}

UNIT_CASE(gate_fini__frees_the_thread)
{
	for (int i = 0; i < 50; i++) {
		/* asked for, being held, or held */
		if (i % 3 == 0)
			pass(true);
		else if (i % 3 == 1)
			usleep(pass(true) ? 0 : 100);
		else
			wait_held();
		san_engine_gate_fini(&gate);
		probe_later();
		wait_ran(i + 1);
		san_engine_gate_init(&gate, true);
	}
}

/* Run rounds of both lcores until bursts may run on both ports. */
static void
wait_both(void)
{
	alarm(WATCHDOG_S);
	while (!pass(true) || !san_engine_gate_pass(&other, true, now))
		sched_yield();
	alarm(0);
}

/* SYS-1: two ports run bursts at the same time, and both stop before the thread continues. */
UNIT_CASE(gate_pass__together)
{
	int round;

	san_engine_gate_init(&other, true);
	for (round = 1; round <= 3; round++) {
		wait_both();
		probe_later();
		/* the idle gate wants it released, and the busy one leaves, too */
		now += 19 * MS;
		assert_true(pass(true));
		san_engine_gate_traffic(&other, now);
		now += 1 * MS;
		assert_true(san_engine_gate_pass(&other, true, now));
		assert_false(pass(true));
		usleep(20000);
		assert_int_equal(atomic_load(&nb_ran), round - 1);
		assert_false(pass(true));
		assert_false(san_engine_gate_pass(&other, true, now));
		wait_ran(round);
	}
	/* a gate that ends, in or out, does not disturb the other one or leave the thread held */
	wait_both();
	san_engine_gate_fini(&other);
	assert_false(pass(true));
	probe_later();
	wait_ran(round++);
	wait_held();
	now += 10 * MS;
	assert_false(pass(true));
	probe_later();
	wait_ran(round);
}

/* A port without a link soon takes the thread from a busy one, because its peer may connect. */
UNIT_CASE(gate_pass__way_for_a_peer)
{
	san_engine_gate_init(&other, true);
	assert_false(san_engine_gate_pass(&other, false, now));
	wait_held();
	assert_false(san_engine_gate_pass(&other, false, now));
	probe_later();
	now += 1 * MS;
	san_engine_gate_traffic(&gate, now);
	assert_false(san_engine_gate_pass(&other, false, now));
	assert_true(pass(true));
	now += 1 * MS;
	assert_false(san_engine_gate_pass(&other, false, now));
	assert_false(pass(true));
	wait_ran(1);
	san_engine_gate_fini(&other);
}
