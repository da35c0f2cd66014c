/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * There is one interrupt thread and there may be several ports, so they hold it together: who
 * finds it held comes in, and when one wants it let go all leave. If each held it for itself,
 * one port's packets would wait for another one's silence.
 */

#include "engine_gate.h"

#include <errno.h>
#include <semaphore.h>
#include <stddef.h>

#include <rte_alarm.h>

#include "san_time.h"

#define IDLE_NS   (10 * SAN_NS_PER_MS) /* silence after which the thread is let go */
#define SHARED_NS (20 * SAN_NS_PER_MS) /* likewise, where others have to leave for it */
#define DOWN_NS   (2 * SAN_NS_PER_MS)  /* without a link: a peer that comes asks several times */
#define HELD_NS   (1 * SAN_NS_PER_S)   /* and even without: other things wait for it, too */
/* For so long: an alarm that is due at once would be run before what else waits. */
#define FREE_US 100

enum gate_turn {
	GATE_FREE = 0, /* the thread does what it likes */
	GATE_ASKED,    /* and will be held soon */
	GATE_HELD,
	GATE_LEAVING, /* held for those that are still in; nobody comes in */
};

/* The turn, and how many gates are in. */
#define TURN_MASK 3u
#define ONE_IN    4u

static _Atomic uint32_t state;
static sem_t go;
static uint32_t nb_users; /* of whoever opens and closes ports: one at a time */

/* In the interrupt thread. */
static void
hold(void *arg)
{
	uint32_t asked = GATE_ASKED;

	(void)arg;
	if (!atomic_compare_exchange_strong(&state, &asked, GATE_HELD))
		return; /* nobody wants it any more */
	while (sem_wait(&go) != 0 && errno == EINTR)
		;
}

static void
ask(void)
{
	uint32_t is_free = GATE_FREE;

	if (!atomic_compare_exchange_strong(&state, &is_free, GATE_ASKED))
		return; /* another one has */
	if (rte_eal_alarm_set(FREE_US, hold, NULL) != 0)
		atomic_store(&state, GATE_FREE);
}

/* *now* was the state a moment ago. */
static bool
come_in(struct san_engine_gate *g, uint32_t now, uint64_t now_ns)
{
	if (!atomic_compare_exchange_strong(&state, &now, now + ONE_IN))
		return false; /* others came or left: next round */
	g->held = true;
	g->traffic_ns = g->since_ns = now_ns;
	return true;
}

/* All have to leave, *nb* of those that are in have; the last one lets the thread go. */
static void
let_go(uint32_t nb)
{
	uint32_t now = atomic_load(&state), in, next;

	do {
		/* without *nb* somebody else may have been faster */
		if ((now & TURN_MASK) != GATE_HELD && (now & TURN_MASK) != GATE_LEAVING)
			return;
		in = (now & ~TURN_MASK) - nb;
		next = in == 0 ? (uint32_t)GATE_FREE : in | GATE_LEAVING;
	} while (!atomic_compare_exchange_weak(&state, &now, next));
	if (in == 0)
		sem_post(&go);
}

static void
leave(struct san_engine_gate *g)
{
	if (atomic_exchange(&g->held, false))
		let_go(ONE_IN);
}

void
san_engine_gate_init(struct san_engine_gate *g, bool used)
{
	g->used = used;
	g->traffic_ns = g->since_ns = 0;
	atomic_init(&g->held, false);
	if (used && nb_users++ == 0)
		sem_init(&go, 0, 0);
}

void
san_engine_gate_fini(struct san_engine_gate *g)
{
	if (!g->used)
		return;
	g->used = false;
	leave(g);
	if (--nb_users != 0)
		return;
	if (atomic_exchange(&state, GATE_FREE) == GATE_HELD)
		sem_post(&go);
	/* waits for one that runs: it finds that nobody wants it */
	rte_eal_alarm_cancel(hold, NULL);
	sem_destroy(&go);
}

/* May it stay in? */
static bool
may_stay(const struct san_engine_gate *g, uint32_t now, uint64_t now_ns)
{
	bool is_alone = (now & ~TURN_MASK) == ONE_IN;

	return (now & TURN_MASK) == GATE_HELD &&
		now_ns - g->traffic_ns < (is_alone ? IDLE_NS : SHARED_NS) &&
		now_ns - g->since_ns < HELD_NS;
}

/* The thread is held for other ports, and this one has no link. */
static void
make_way(struct san_engine_gate *g, uint32_t now, uint64_t now_ns)
{
	if ((now & TURN_MASK) != GATE_HELD)
		g->since_ns = now_ns;
	else if (now_ns - g->since_ns >= DOWN_NS)
		let_go(0);
}

bool
san_engine_gate_pass(struct san_engine_gate *g, bool is_up, uint64_t now_ns)
{
	uint32_t now;

	if (!g->used)
		return true;
	now = atomic_load(&state);
	if (g->held) {
		if (may_stay(g, now, now_ns))
			return true;
		leave(g);
		return false;
	}
	/* without a link there is nothing to send to, and a peer may come */
	if (is_up && (now & TURN_MASK) == GATE_HELD)
		return come_in(g, now, now_ns);
	if (is_up && now == GATE_FREE)
		ask();
	if (!is_up)
		make_way(g, now, now_ns);
	return false;
}
