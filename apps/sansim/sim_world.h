/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

/**
 * @file
 * Hosts, switches and links in one process and in virtual time. The protocol
 * is the shipped one; what is simulated is what surrounds it: cables, queues,
 * clocks, programs that post work, and what goes wrong with all of these.
 *
 *   sim_event.c   what happens next
 *   sim_pool.c    buffers of all packets
 *   sim_link.c    one direction of a cable, with the queue in front of it
 *   sim_topo.c    who is connected with whom; which way a switch sends a packet
 *   sim_host.c    an engine, its clock, its receive ring
 *   sim_load.c    the program on top: connections, requests, memory
 *   sim_fault.c   what goes wrong, when and where
 *   sim_check*.c  what must never happen
 *   sim_world.c   the loop, and the order in which a run is built and taken down
 *
 * One world at a time; nothing here is thread-safe.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "sim_conf.h"
#include "sim_link.h"

struct sim_world;
struct sim_load;
struct sim_side;
struct sim_checks;

enum sim_event_kind {
	SIM_EV_HOST = SIM_EV_ARRIVE + 1, /**< obj: host; its next round */
	SIM_EV_FAULT,                    /**< obj: fault; port: 1 begins, 0 ends */
	SIM_EV_LOAD,                     /**< obj: side of a connection; see sim_load.c */
	SIM_EV_SAMPLE,
};

#define SIM_PLANS 64u /* of a host: timers look some 50 us ahead, by the microsecond */

struct sim_host {
	uint32_t id;
	uint32_t nb_starts;    /**< 1: the first process */
	struct san_core *core; /**< NULL: dead */
	struct rte_ether_addr mac;
	struct rte_mempool *pool;
	struct san_ulp_cq *send_cq, *recv_cq;
	uint32_t *side_of_qp;  /**< by SAN_QPN_INDEX */
	uint32_t nb_paused;    /**< faults that hold it */
	uint64_t paused_at_ns; /**< when the first of these began */
	int64_t drift_ppm;
	uint64_t run_at_ns;             /**< its next round; SAN_TIME_NEVER: none */
	uint64_t planned_ns[SIM_PLANS]; /**< times for which an event is on its way */
	uint64_t last_run_ns;
	uint64_t held_ns;     /**< pauses since its last round: packets may have waited so long */
	struct rte_mbuf **rx; /**< ring of what arrived */
	uint32_t rx_mask, rx_head, rx_tail;
	uint64_t nb_rx_full;   /**< ring full */
	uint64_t nb_rx_nombuf; /**< its pool was empty */
	uint64_t nb_rounds;
	uint32_t inflight_high;
};

struct sim_stats {
	uint64_t nb_events; /**< packets that arrived somewhere */
	uint64_t nb_ops, nb_ops_failed;
	uint64_t nb_conns, nb_broken; /**< connections made; ended by other than us */
};

/** What engines counted, summed up; of what has a highest, the highest. */
struct sim_engine_sums {
	struct san_pdl_stats pdl;
	struct san_tl_stats tl;
	uint64_t nb_express_rx, nb_express_tx;
	uint64_t cam_high, cam_inserts, cam_rejects;
};

/** What links counted from the load's start until it had settled. */
struct sim_link_sums {
	uint64_t pkts, bytes, full, lost, marked;
	uint64_t queue_high; /**< of switches */
};

struct sim_world {
	struct sim_conf conf;
	uint64_t now_ns;
	uint64_t load_ns;   /**< when the load started */
	uint64_t hash;      /**< of every arrival: where, when, what */
	struct sim_net net; /**< its faults: those of hosts, too */
	struct rte_hash *cam;
	uint32_t nb_engines;
	uint32_t nb_hosts, nb_switches, nb_links;
	struct sim_host *hosts;
	struct sim_link *links;
	struct sim_load *load;
	struct sim_checks *checks;
	struct sim_stats stats;
	struct sim_engine_sums dead_engines; /**< of processes that died */
	struct sim_link_sums on_links;
	uint64_t longest_silence_ns; /**< between completions of a side that had work */
	uint32_t silent_side;        /**< whose that was */
	bool fault_active[SIM_FAULTS_MAX];
	bool faults_over;      /**< none begins any more */
	uint32_t nb_blocking;  /**< active faults under which no progress is asked for */
	uint64_t unblocked_ns; /**< since when there is none */
	uint32_t nb_silencing; /**< active faults that can swallow packet after packet */
	uint64_t silence_ns;   /**< how long there were any, up to silence_at_ns */
	uint64_t silence_at_ns;
	FILE *series; /**< time series, CSV; NULL: none */
	bool series_begun;
	bool explained; /**< why it can't be built is on stderr */
	bool failed;
	char why[512]; /**< the first violation */
};

/** What the command line adds to a scenario; it does not change the run. */
struct sim_watch {
	const char *trace_path, *trace_where; /**< pcapng of these links */
	const char *series_path;
};

/* ---- sim_world.c ---- */

/** 0, or -errno with a message on stderr: no memory, a file that can't be written. */
int sim_world_create(const struct sim_conf *conf, const struct sim_watch *watch,
		     struct sim_world **out);
/** The whole life: connect, load, settle, disconnect, look for leaks. */
void sim_world_run(struct sim_world *w);
int sim_world_destroy(struct sim_world *w);
/** Megabytes of DPDK's memory that a scenario needs. */
uint32_t sim_world_mb(const struct sim_conf *conf);
/** An invariant is broken: the first one is kept and ends the run. */
void sim_world_fail(struct sim_world *w, const char *check, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void sim_world_at(struct sim_world *w, uint64_t at_ns, enum sim_event_kind kind, uint32_t obj,
		  uint16_t port, void *arg);
/** One event; false: none before *end_ns*, which is then the time. */
bool sim_world_step(struct sim_world *w, uint64_t end_ns);

/** Queue a packet; it is the link's from here on. */
static inline void
sim_world_send(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m)
{
	sim_link_send(&w->net, l, m, w->now_ns);
}

/* ---- sim_topo.c ---- */

int sim_topo_create(struct sim_world *w);
/** After the last event: links hold those of their packets. */
void sim_topo_destroy(struct sim_world *w);
/** A packet reached the end of a link. */
void sim_topo_arrive(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m);
struct sim_link *sim_topo_uplink(struct sim_world *w, uint32_t host);
/** The next link of *where* (see struct sim_fault_conf) from *i* on; NULL: no more. */
struct sim_link *sim_topo_match(struct sim_world *w, const char *where, uint32_t *i);
/** Is *where* a place of this topology? */
bool sim_topo_is_place(const struct sim_world *w, const char *where);

/* ---- sim_host.c ---- */

int sim_host_create(struct sim_world *w, uint32_t id);
void sim_host_destroy(struct sim_world *w, struct sim_host *h);
/** A process begins, or ends without a word. */
int sim_host_start(struct sim_world *w, struct sim_host *h);
void sim_host_kill(struct sim_world *w, struct sim_host *h);
/** Times that its engine found the common pool empty. */
uint64_t sim_host_no_mbuf(const struct sim_world *w, const struct sim_host *h);
void sim_host_rx(struct sim_world *w, struct sim_host *h, struct rte_mbuf *m);
/** One round of its loop, if it is due. */
void sim_host_round(struct sim_world *w, struct sim_host *h);
/** Make it look at its work soon: something was posted, or a pause is over. */
void sim_host_wake(struct sim_world *w, struct sim_host *h);
uint64_t sim_host_clock(const struct sim_host *h, uint64_t now_ns);

/* ---- sim_fault.c ---- */

int sim_fault_create(struct sim_world *w);
void sim_fault_event(struct sim_world *w, uint32_t fault, bool begins);
/** The load starts: the faults' times count from now. */
void sim_fault_arm(struct sim_world *w);
/** Every fault ends. */
void sim_fault_end(struct sim_world *w);
/** Has this side's connection, which broke just now, a reason to? */
bool sim_fault_may_break(struct sim_world *w, const struct sim_side *side);

#endif /* SIM_WORLD_H */
