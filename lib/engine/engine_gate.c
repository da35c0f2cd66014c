/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine_gate.h"

#include <errno.h>

#include <rte_alarm.h>

#include "san_time.h"

#define IDLE_NS (10 * SAN_NS_PER_MS) /* silence after which the thread is let go */
#define HELD_NS (1 * SAN_NS_PER_S)   /* and even without: other things wait for it, too */
/* For so long: an alarm that is due at once would be run before what else waits. */
#define FREE_US 100

enum gate_turn {
	GATE_FREE = 0, /* the thread does what it likes */
	GATE_ASKED,    /* and will be held soon */
	GATE_HELD,
};

/* In the interrupt thread. */
static void
hold(void *arg)
{
	struct san_engine_gate *g = arg;
	int asked = GATE_ASKED;

	if (!atomic_compare_exchange_strong(&g->turn, &asked, GATE_HELD))
		return; /* nobody wants it any more */
	while (sem_wait(&g->go) != 0 && errno == EINTR)
		;
}

static void
let_go(struct san_engine_gate *g)
{
	g->held = false;
	if (atomic_exchange(&g->turn, GATE_FREE) == GATE_HELD)
		sem_post(&g->go);
}

static void
ask(struct san_engine_gate *g)
{
	atomic_store(&g->turn, GATE_ASKED);
	if (rte_eal_alarm_set(FREE_US, hold, g) != 0)
		atomic_store(&g->turn, GATE_FREE);
}

void
san_engine_gate_init(struct san_engine_gate *g, bool used)
{
	g->used = used;
	g->held = false;
	atomic_init(&g->turn, GATE_FREE);
	g->traffic_ns = 0;
	if (used)
		sem_init(&g->go, 0, 0);
}

void
san_engine_gate_fini(struct san_engine_gate *g)
{
	if (!g->used)
		return;
	let_go(g);
	/* waits for one that runs: it finds that nobody wants it */
	rte_eal_alarm_cancel(hold, g);
	sem_destroy(&g->go);
	g->used = false;
}

bool
san_engine_gate_pass(struct san_engine_gate *g, bool is_up, uint64_t now_ns)
{
	if (!g->used)
		return true;
	switch (atomic_load(&g->turn)) {
	case GATE_HELD:
		if (!g->held)
			g->traffic_ns = g->since_ns = now_ns;
		g->held = true;
		if (now_ns - g->traffic_ns < IDLE_NS && now_ns - g->since_ns < HELD_NS)
			return true;
		let_go(g);
		break;
	case GATE_FREE:
		/* without a link there is nothing to send to, and a peer may come */
		if (is_up)
			ask(g);
		break;
	default:
		break;
	}
	return false;
}
