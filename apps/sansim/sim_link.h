/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_LINK_H
#define SIM_LINK_H

/**
 * @file
 * Links in virtual time: rate, queue, delay, and the faults of each. A packet
 * is an mbuf with any bytes; what is at the ends of a link is its owner's. The
 * simulator and the tests of every layer send over these, with sim_event.c,
 * sim_pkt.c, sim_pool.c and sim_trace.c, which need no layer above wire.
 *
 * Time is the caller's: calls get it, arrivals tell it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "san_prng.h"
#include "sim_event.h"
#include "sim_trace.h"

#define SIM_PPM 1000000u

/** Kind of the event of an arrival: arg: mbuf; obj: link. Other kinds are their owner's. */
#define SIM_EV_ARRIVE 0u

/** A cable and the output queue in front of it, one per direction. */
struct sim_link_conf {
	uint32_t rate_mbps;    /**< 0: packets take no time on the cable, and none queues */
	uint64_t delay_ns;     /**< propagation */
	uint32_t buffer_bytes; /**< of the queue; what does not fit is dropped */
	uint32_t mark_bytes;   /**< CE when more is queued; 0: never */
	uint32_t mtu;          /**< IP bytes; longer packets are lost without a word; 0: none */
};

/** The faults of a link, summed over those that are active. */
struct sim_link_fault {
	uint32_t loss_ppm, burst_ppm, flow_ppm, reorder_ppm, dup_ppm, corrupt_ppm, forge_ppm;
	uint32_t nb_down, nb_mute;
	uint64_t reorder_ns, dup_ns;
	uint16_t mtu; /**< longer packets are dropped; 0: none */
	bool in_burst;
};

struct sim_link {
	const struct sim_link_conf *conf;
	uint32_t id;
	uint32_t from, to; /**< nodes: hosts first, then switches */
	uint64_t busy_ps;  /**< its port sends what is queued until then */
	uint32_t buffer_bytes;
	int32_t trace_if;            /**< below 0: not traced */
	struct sim_events_lane lane; /**< packets under way */
	struct sim_link_fault fault;
	bool faulty; /**< any of them */
	/* what happened */
	uint64_t nb_pkts, nb_bytes;
	uint64_t nb_full; /**< dropped: no room in the queue */
	uint64_t nb_lost; /**< dropped by a fault */
	uint64_t nb_marked;
	uint64_t high_bytes; /**< most that was queued */
};

/** What all links of a network share. */
struct sim_net {
	struct sim_events events; /**< arrivals; the owner may add others */
	struct san_prng prng;
	struct rte_mempool *pool; /**< of copies */
	struct sim_trace *trace;
	uint64_t nb_faults;  /**< packets that a fault touched */
	uint64_t nb_no_mbuf; /**< copies that there was no mbuf for */
};

void sim_net_init(struct sim_net *net, uint64_t seed);
/** Free all that is under way. Before the pool, and before the links' lanes. */
void sim_net_fini(struct sim_net *net);

static inline bool
sim_chance(struct sim_net *net, uint32_t ppm)
{
	return ppm != 0 && san_prng_below(&net->prng, SIM_PPM) < ppm;
}

/** Link *id* of what *conf* says, which must stay; nothing is under way or queued. */
void sim_link_init(struct sim_link *l, uint32_t id, const struct sim_link_conf *conf);
/** After sim_net_fini(). */
void sim_link_fini(struct sim_link *l);
/** Queue a packet; it is the link's from here on. */
void sim_link_send(struct sim_net *net, struct sim_link *l, struct rte_mbuf *m, uint64_t now_ns);
/** Bytes queued now, the one being sent included. */
uint64_t sim_link_backlog(const struct sim_link *l, uint64_t now_ns);
/** The next packet that arrived until *now_ns*, on link *id*; NULL: none. No other events exist. */
struct rte_mbuf *sim_link_arrival(struct sim_net *net, uint64_t now_ns, uint32_t *id);

#endif /* SIM_LINK_H */
