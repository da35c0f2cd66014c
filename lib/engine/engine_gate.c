/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bursts and EAL's interrupt thread take turns. Some drivers need it, because their control channel
 * removes rings during a burst: memif (DPDK 22.11) unmaps them in that thread as soon as the peer's
 * process has ended.
 *
 * An alarm of the gate holds the thread while bursts run. After an idle time, in which the peer may
 * have ended or want to connect, the thread is released for a moment. No port with a gate runs a
 * burst in that moment, because there is one such thread for all. The lcore never waits.
 *
 * There may be several ports. So the gates of all ports hold the thread together: a gate that finds
 * it held joins, and all leave when one wants it released. If each port held it alone, the packets
 * of one port would wait until another port is idle.
 */

#include <semaphore.h>
#include <stddef.h>

#include <rte_alarm.h>

#include "engine_priv.h"

#define IDLE_NS   (10 * SAN_NS_PER_MS) /* a gate leaves after this time without traffic */
#define SHARED_NS (20 * SAN_NS_PER_MS) /* the same, if other gates have to leave with it */
#define DOWN_NS   (2 * SAN_NS_PER_MS)  /* the same without a link: a peer needs several turns */
#define HELD_NS   (1 * SAN_NS_PER_S)   /* longest hold: other work needs the thread, too */
/* Time for which the thread runs freely. An alarm due at once would run before its other work. */
#define FREE_US 100

enum gate_turn {
	GATE_FREE = 0, /* the thread runs freely */
	GATE_ASKED,    /* an alarm is set, and will hold it */
	GATE_HELD,
	GATE_LEAVING, /* held until the gates that are in have left; no gate may join */
};

/* The state: the turn, and the number of gates that hold the thread, in units of ONE_IN. */
#define TURN_MASK 3u
#define ONE_IN    4u

static _Atomic uint32_t state;
static sem_t go;
static uint32_t nb_users; /* changed by the one thread that opens or closes ports */

/* Hold the interrupt thread. It runs in that thread. */
static void
gate_hold_timer(void *arg __rte_unused)
{
	uint32_t asked = GATE_ASKED;

	if (!atomic_compare_exchange_strong(&state, &asked, GATE_HELD))
		return; /* no gate wants it any more */
	while (sem_wait(&go) != 0 && errno == EINTR)
		;
}

/* Make all gates leave, *nb* of them now. The last one releases the thread. */
static void
let_go(uint32_t nb)
{
	uint32_t now = atomic_load(&state), in, next;

	do {
		/* with *nb* 0, another gate may have released it already */
		if ((now & TURN_MASK) != GATE_HELD && (now & TURN_MASK) != GATE_LEAVING)
			return;
		in = (now & ~TURN_MASK) - nb;
		next = in == 0 ? (uint32_t)GATE_FREE : in | GATE_LEAVING;
	} while (!atomic_compare_exchange_weak(&state, &now, next));
	if (in == 0)
		sem_post(&go);
}

static void
gate_leave(struct san_engine_gate *g)
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
	gate_leave(g);
	if (--nb_users != 0)
		return;
	if (atomic_exchange(&state, GATE_FREE) == GATE_HELD)
		sem_post(&go);
	/* waits for a running timer, which finds that no gate wants the thread */
	rte_eal_alarm_cancel(gate_hold_timer, NULL);
	sem_destroy(&go);
}

bool
san_engine_gate_pass(struct san_engine_gate *g, bool is_up, uint64_t now_ns)
{
	uint64_t idle_ns;
	uint32_t now;

	if (!g->used)
		return true;
	now = atomic_load(&state);
	if (g->held) {
		idle_ns = (now & ~TURN_MASK) == ONE_IN ? IDLE_NS : SHARED_NS;
		if ((now & TURN_MASK) == GATE_HELD && now_ns - g->traffic_ns < idle_ns &&
		    now_ns - g->since_ns < HELD_NS)
			return true;
		gate_leave(g);
		return false;
	}
	/* without a link there is nothing to send, and a peer needs the thread to connect */
	if (is_up && (now & TURN_MASK) == GATE_HELD) {
		if (!atomic_compare_exchange_strong(&state, &now, now + ONE_IN))
			return false; /* the state has changed: try again in the next round */
		g->held = true;
		g->traffic_ns = g->since_ns = now_ns;
		return true;
	}
	/* unless another gate asks first */
	if (is_up && now == GATE_FREE && atomic_compare_exchange_strong(&state, &now, GATE_ASKED) &&
	    rte_eal_alarm_set(FREE_US, gate_hold_timer, NULL) != 0)
		atomic_store(&state, GATE_FREE);
	/* this port has no link, and the thread is held for other ports */
	if (!is_up && (now & TURN_MASK) != GATE_HELD)
		g->since_ns = now_ns;
	else if (!is_up && now_ns - g->since_ns >= DOWN_NS)
		let_go(0);
	return false;
}
