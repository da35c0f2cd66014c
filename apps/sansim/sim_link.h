/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Links in virtual time: rate, queue, delay and faults. A packet is an mbuf with any bytes. The
 * caller defines what the ends of a link are. The simulator and the tests of all layers use these
 * with sim_event.c, sim_pkt.c and sim_trace.c, which need no layer above wire.
 *
 * The caller supplies the time, and arrivals report theirs.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "san_prng.h"
#include "san_time.h"
#include "sim_trace.h"
#include "wire.h"

#define SIM_PPM 1000000u

/** Event of an arrival: arg is the mbuf, obj the link. The caller defines other kinds. */
#define SIM_EV_ARRIVE 0u

/*
 * ---- sim_event.c ----
 *
 * The future events of a simulation, the soonest first, and in the order of pushes for the same
 * time. Nothing else affects the order, so equal pushes give equal pops. The caller defines the
 * meaning of events.
 */

struct sim_event {
	uint64_t at_ns; /**< must not be SAN_TIME_NEVER */
	uint64_t order; /**< set by the push */
	void *arg;
	uint32_t obj;
	uint16_t kind, port;
};
static_assert(sizeof(struct sim_event) == 32, "two events in a cache line");

struct sim_events {
	struct sim_event *slot; /**< a heap: the children of slot i are 4i + 1 to 4i + 4 */
	uint32_t nb_events, nb_slots;
	uint64_t order; /**< for the next push */
};

/** Create an empty queue. It grows as needed; the program aborts without memory, also later. */
void san_sim_event_init(struct sim_events *q);
/** Free the queue with all its events. */
void san_sim_event_fini(struct sim_events *q);
/** Add a copy of *ev*. Sets its order. */
void san_sim_event_push(struct sim_events *q, const struct sim_event *ev);
/** Take the soonest event. False: none, *out* is unchanged. */
bool san_sim_event_pop(struct sim_events *q, struct sim_event *out);
void san_sim_event_check(const struct sim_events *q);

/** Time of the soonest event, or SAN_TIME_NEVER. */
static inline uint64_t
san_sim_event_next_ns(const struct sim_events *q)
{
	return q->nb_events == 0 ? SAN_TIME_NEVER : q->slot[0].at_ns;
}

/* ---- sim_link.c ---- */

/** A cable and the output queue in front of it, one per direction. */
struct sim_link_conf {
	uint32_t rate_mbps;    /**< 0: no time on the cable, and no queue */
	uint64_t delay_ns;     /**< propagation */
	uint32_t buffer_bytes; /**< of the queue; excess packets are dropped */
	uint32_t mark_bytes;   /**< mark CE if more is queued; 0: never */
	uint32_t mtu;          /**< IP bytes; longer packets are lost silently; 0: no limit */
};

/** Sum of the active faults of a link. */
struct sim_link_fault {
	uint32_t loss_ppm, burst_ppm, flow_ppm, reorder_ppm, dup_ppm, corrupt_ppm, forge_ppm;
	uint32_t nb_down, nb_mute;
	uint64_t reorder_ns, dup_ns;
	uint16_t mtu; /**< longer packets are dropped; 0: no limit */
	bool in_burst;
};

struct sim_link_stats {
	uint64_t nb_pkts, nb_bytes;
	uint64_t nb_full; /**< dropped: no room in the queue */
	uint64_t nb_lost; /**< dropped by a fault */
	uint64_t nb_marked;
	uint64_t high_bytes; /**< maximum queue */
};

struct sim_link {
	const struct sim_link_conf *conf;
	uint32_t id;
	uint32_t from, to; /**< nodes: hosts first, then switches */
	uint64_t more_ns;  /**< propagation beyond that of conf */
	uint64_t busy_ps;  /**< the port is busy until then */
	uint32_t buffer_bytes;
	int32_t trace_if; /**< negative: not traced */
	struct sim_link_fault fault;
	struct sim_link_stats stats;
};

/** Shared by all links of a network. */
struct sim_net {
	struct sim_events events; /**< arrivals; the caller may add others */
	struct san_prng prng;
	struct rte_mempool *pool; /**< for copies */
	struct sim_trace *trace;
	uint64_t nb_faults;  /**< packets that a fault touched */
	uint64_t nb_no_mbuf; /**< copies lost for lack of an mbuf */
};

void san_sim_link_net_init(struct sim_net *net, uint64_t seed);
/** Free all packets in flight. Call before freeing the pool. */
void san_sim_link_net_fini(struct sim_net *net);

static inline bool
san_sim_link_chance(struct sim_net *net, uint32_t ppm)
{
	return ppm != 0 && san_prng_below(&net->prng, SIM_PPM) < ppm;
}

/** Initialize link *id*, without packets. *conf* must stay valid. */
void san_sim_link_init(struct sim_link *l, uint32_t id, const struct sim_link_conf *conf);
/** Queue a packet. The link owns it. */
void san_sim_link_send(struct sim_net *net, struct sim_link *l, struct rte_mbuf *m,
		       uint64_t now_ns);
/** Queued bytes, including the packet being sent. */
uint64_t san_sim_link_backlog(const struct sim_link *l, uint64_t now_ns);

/*
 * ---- sim_pkt.c: packets ----
 *
 * Accesses stay inside the mbuf for any content, because packets may be corrupted.
 */

/**
 * A pool of *nb_mbufs* for packets of *mtu* bytes, with a cache of *cache*. NULL: no memory. Free
 * it with rte_mempool_free().
 */
struct rte_mempool *san_sim_pkt_pool_create(const char *name, uint32_t nb_mbufs, uint32_t cache,
					    uint16_t mtu);
/** Hash of the fields that ECMP uses: both addresses and the UDP source port. */
uint64_t san_sim_pkt_flow(const struct rte_mbuf *m);
/** Set CE in an ECT packet, like a switch. True if it was set. */
bool san_sim_pkt_mark_ce(struct rte_mbuf *m);
void san_sim_pkt_flip_bit(struct rte_mbuf *m, struct san_prng *prng);
/** The path of *m*, which was parsed into *p*. */
struct san_wire_path san_sim_pkt_path(const struct rte_mbuf *m, const struct san_wire_pkt *p);
/**
 * A CNP to the receiver of *m* that seems to come from its sender, as an attacker on the path could
 * forge it. NULL: *m* belongs to no connection, or *pool* is empty.
 */
struct rte_mbuf *san_sim_pkt_forge_cnp(struct rte_mbuf *m, struct rte_mempool *pool);
/** True for data that continues a transfer: after a grant, a request or a push's first packet. */
bool san_sim_pkt_goes_on(struct rte_mbuf *m);
/**
 * Add an arrival to a trace's hash: time, place and content. Of the content the headers and the end
 * are hashed: the ICRC at the end covers the rest.
 */
uint64_t san_sim_pkt_hash(uint64_t hash, uint64_t at_ns, uint32_t where, const struct rte_mbuf *m);
