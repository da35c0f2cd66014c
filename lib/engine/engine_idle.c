/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What an lcore does when it finds nothing to do (design, section 6). Polling
 * alone is right for a CPU of its own; where lcores share one, a loop that never
 * gives way holds up the very peer it waits for.
 */

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_pause.h>

#include "engine_priv.h"

#define EMPTY_ROUNDS 64 /* before giving way: a reply over a fast link comes sooner */

static const char *const names[] = {
	[SAN_IDLE_AUTO] = "auto",
	[SAN_IDLE_POLL] = "poll",
	[SAN_IDLE_PAUSE] = "pause",
	[SAN_IDLE_YIELD] = "yield",
	[SAN_IDLE_SLEEP] = "sleep",
};
static_assert(RTE_DIM(names) == SAN_IDLE_MAX, "a policy has no name");

const char *
san_engine_idle_name(uint8_t policy)
{
	return policy < SAN_IDLE_MAX ? names[policy] : "unknown";
}

/* Do our lcores share CPUs, or outnumber them? */
static bool
is_shared(void)
{
	rte_cpuset_t all, own;
	unsigned int lcore;

	CPU_ZERO(&all);
	RTE_LCORE_FOREACH(lcore) {
		own = rte_lcore_cpuset(lcore);
		CPU_OR(&all, &all, &own);
	}
	return (unsigned int)CPU_COUNT(&all) < rte_lcore_count() ||
		(unsigned int)sysconf(_SC_NPROCESSORS_ONLN) < rte_lcore_count();
}

uint8_t
san_engine_idle_choose(uint8_t policy)
{
	if (policy != SAN_IDLE_AUTO)
		return policy;
	return is_shared() ? SAN_IDLE_YIELD : SAN_IDLE_POLL;
}

/* Until something is due, but short: nobody wakes us when a packet comes. */
static void
sleep_until_due(struct san_engine *e)
{
	uint64_t max_ns = e->port->conf.sleep_max_us * SAN_NS_PER_US;
	uint64_t due_ns = san_core_deadline_ns(e->core);
	struct timespec ts = {0};

	due_ns = san_time_min(due_ns, san_engine_impair_deadline_ns(&e->impair_tx));
	due_ns = san_time_min(due_ns, san_engine_impair_deadline_ns(&e->impair_rx));
	if (due_ns <= e->now_ns)
		return;
	ts.tv_nsec = (long)san_time_min(due_ns - e->now_ns, max_ns);
	san_engine_trace_sleep(e->id, (uint64_t)ts.tv_nsec);
	nanosleep(&ts, NULL);
	e->stats.nb_sleeps++;
}

void
san_engine_idle_after(struct san_engine *e, uint32_t work)
{
	if (work != 0) {
		e->idle_loops = 0;
		return;
	}
	e->stats.nb_idle_loops++;
	if (e->port->idle == SAN_IDLE_PAUSE)
		rte_pause();
	if (e->idle_loops < EMPTY_ROUNDS) {
		e->idle_loops++;
		return;
	}
	if (e->port->idle == SAN_IDLE_YIELD)
		sched_yield();
	else if (e->port->idle == SAN_IDLE_SLEEP && e->nb_again == 0 && e->nb_backlog == 0)
		sleep_until_due(e);
}
