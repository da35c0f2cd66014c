/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * One port between two processes, as bench_link's roles use it: no protocol.
 *
 * The measuring side prints JSON (after "ready", as all do) and says goodbye by a
 * frame shorter than all others. It leaves the rings alone from then on: memif
 * unmaps them from a thread of its own when the peer goes, under the feet of a
 * burst that is running.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define LINK_PORT    0
#define LINK_BURST   32
#define LINK_WARM_MS 60 /* not measured */

struct link {
	struct rte_mempool *pool;
	uint64_t hz;
	uint64_t duration; /* ticks */
	uint32_t nb_idle;
	char **argv; /* what follows the role */
};

/** Start the port, for frames of up to *frame* bytes. 0 or -1, said on stderr. */
int link_open(struct link *l, uint32_t frame);
void link_close(void);
/** Wait until the peer is there, or gone. False: that took too long. */
bool link_wait(const struct link *l, uint16_t wanted);
/** Nothing was received or sent: false when that is because the peer is gone. */
bool link_idle(struct link *l);
void link_say_bye(struct link *l);
bool link_is_bye(const struct rte_mbuf *m);

static inline uint64_t
link_ticks(const struct link *l, uint64_t ms)
{
	return ms * l->hz / 1000;
}

/* ---- the worked link's ICRC: of an IPv4 frame in one segment ---- */

void link_seal(struct rte_mbuf *m);
bool link_is_sealed(struct rte_mbuf *m);

/* ---- roles: 0, or -1 when the peer was lost; *argv* are their own arguments ---- */

int raw_tx(struct link *l);
int raw_rx(struct link *l);
int raw_ping(struct link *l);
int raw_pong(struct link *l);
int worked_tx(struct link *l);
int worked_rx(struct link *l);
int worked_both(struct link *l);
int worked_both_peer(struct link *l);
int worked_ping(struct link *l);
int worked_pong(struct link *l);
