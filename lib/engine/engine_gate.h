/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_GATE_H
#define ENGINE_GATE_H

/**
 * @file
 * Bursts and EAL's interrupt thread take turns. Some drivers need it, because their control channel
 * removes rings during a burst: memif (DPDK 22.11) unmaps them in that thread as soon as the peer's
 * process has ended.
 *
 * An alarm of the gate holds the thread while bursts run. After an idle time, in which the peer may
 * have ended or want to connect, the thread is released for a moment. No port with a gate runs a
 * burst in that moment, because there is one such thread for all. The lcore never waits.
 *
 * Thread rule: a gate belongs to the lcore of its port; init and fini run in one thread at a time.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct san_engine_gate {
	bool used;           /**< otherwise bursts may always run */
	_Atomic bool held;   /**< the lcore relies on the thread being held */
	uint64_t since_ns;   /**< since when; without a link: since when other gates hold it */
	uint64_t traffic_ns; /**< when packets arrived last; at least since_ns */
};

/** Set up; *used*: the driver needs it. */
void san_engine_gate_init(struct san_engine_gate *g, bool used);
/** Release the thread; for good, if this was the last gate. */
void san_engine_gate_fini(struct san_engine_gate *g);
/** Whether bursts may run in this round. Once per round; *is_up*: the port has a link. */
bool san_engine_gate_pass(struct san_engine_gate *g, bool is_up, uint64_t now_ns);

/** Packets have arrived, so the peer is alive. */
static inline void
san_engine_gate_traffic(struct san_engine_gate *g, uint64_t now_ns)
{
	if (g->used) /* otherwise every lcore would write this word */
		g->traffic_ns = now_ns;
}

#endif /* ENGINE_GATE_H */
