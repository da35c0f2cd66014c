/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_GATE_H
#define ENGINE_GATE_H

/**
 * @file
 * Bursts and EAL's interrupt thread take turns, for drivers whose control channel
 * takes rings away under the feet of a burst: memif (DPDK 22.11) unmaps them in
 * that thread as soon as the peer's process is gone.
 *
 * The thread is held in an alarm of ours while bursts run. When nothing has come
 * for a while the peer may be gone, or want to talk: the thread is let go for a
 * moment, in which no burst runs, of no port that has a gate: there is one such thread. Nobody
 * ever waits on the lcore's side.
 *
 * Thread rule: each is its port's lcore's; init and fini by one thread at a time.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct san_engine_gate {
	bool used;           /**< else bursts may always run */
	_Atomic bool held;   /**< the lcore knows that the thread is held, and counts on it */
	uint64_t since_ns;   /**< since when; without a link: that others hold it */
	uint64_t traffic_ns; /**< when something came last; at least since_ns */
};

/** *used*: the driver needs it. */
void san_engine_gate_init(struct san_engine_gate *g, bool used);
/** The thread is free; and stays so, if this was the last one of a port. */
void san_engine_gate_fini(struct san_engine_gate *g);
/** May bursts run in this round? Once per round; *is_up*: the port's link. */
bool san_engine_gate_pass(struct san_engine_gate *g, bool is_up, uint64_t now_ns);

/** Something came: the peer lives. */
static inline void
san_engine_gate_traffic(struct san_engine_gate *g, uint64_t now_ns)
{
	if (g->used) /* else it would be a word that every lcore writes */
		g->traffic_ns = now_ns;
}

#endif /* ENGINE_GATE_H */
