/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

/**
 * @file
 * Hosts, switches and links in one process and in virtual time. The protocol code is the product's;
 * its environment is simulated: cables, queues, clocks, programs, and the faults of all of these.
 *
 *   sim_event.c   queue of events
 *   sim_pool.c    buffers of all packets
 *   sim_link.c    one direction of a cable, with the queue in front of it
 *   sim_topo.c    topology and forwarding
 *   sim_host.c    an engine, its clock, its receive ring
 *   sim_load.c    the programs: connections, requests, memory
 *   sim_fault.c   faults: kind, time and place
 *   sim_lie.c     hosts that lie
 *   sim_check*.c  invariants
 *   sim_report.c  results of a run
 *   sim_world.c   the event loop and the phases of a run
 *
 * One world at a time; nothing is thread-safe.
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
	SIM_EV_FAULT,                    /**< obj: fault; port: 1 start, 0 end */
	SIM_EV_LOAD,                     /**< obj: side of a connection; see sim_load.c */
	SIM_EV_SAMPLE,
};

#define SIM_PLANS 64u /* per host: timers are up to 50 us ahead, at a granularity of 1 us */

/** What a liar acknowledged on a connection before it lied. */
struct sim_kept {
	uint32_t tag, data, cmpl;
	uint8_t round;
};

struct sim_host {
	uint32_t id;
	uint32_t nb_starts;    /**< 1: first process */
	struct san_core *core; /**< NULL: no process */
	struct rte_ether_addr mac;
	struct rte_mempool *pool;
	struct san_ulp_cq *send_cq, *recv_cq;
	uint32_t *side_of_qp;  /**< indexed by SAN_QPN_INDEX */
	uint32_t nb_paused;    /**< number of faults that pause it */
	uint64_t paused_at_ns; /**< start of the first of these */
	int64_t drift_ppm;
	uint64_t run_at_ns;             /**< its next round, or SAN_TIME_NEVER */
	uint64_t planned_ns[SIM_PLANS]; /**< times with a pending event */
	uint64_t last_run_ns;
	uint64_t held_ns;     /**< pauses since its last round: packets may have waited that long */
	struct rte_mbuf **rx; /**< ring of received packets */
	uint32_t rx_mask, rx_head, rx_tail;
	uint64_t nb_rx_full; /**< ring full */
	uint64_t nb_rounds;
	uint32_t inflight_high;
	bool liar;                /**< a fault of the scenario makes it lie */
	uint8_t lie;              /**< enum sim_lie: now */
	struct sim_kept kept[32]; /**< hashed by tag */
};

struct sim_stats {
	uint64_t nb_events; /**< arrivals of packets */
	uint64_t nb_ops, nb_ops_failed;
	uint64_t nb_conns, nb_broken; /**< connections set up, and unexpectedly ended */
};

/** Sums of the engines' counters; maximum values are maximized. */
struct sim_engine_sums {
	struct san_pdl_stats pdl;
	struct san_tl_stats tl;
	uint64_t nb_express_rx, cam_high, cam_inserts, cam_rejects;
};

/** Sums of the links' counters, from the start of the load until it settled. */
struct sim_link_sums {
	uint64_t pkts, bytes, full, lost, marked;
	uint64_t queue_high; /**< of switches */
};

struct sim_world {
	struct sim_conf conf;
	uint64_t now_ns;
	uint64_t load_ns;   /**< start of the load */
	uint64_t hash;      /**< over time, place and content of every arrival */
	struct sim_net net; /**< its faults include those of hosts */
	struct rte_hash *cam;
	uint32_t nb_engines;
	uint32_t nb_hosts, nb_switches, nb_links;
	struct sim_host *hosts;
	struct sim_link *links;
	struct sim_load *load;
	struct sim_checks *checks;
	struct sim_stats stats;
	struct sim_engine_sums dead_engines; /**< of processes that have ended */
	struct sim_link_sums on_links;
	uint64_t longest_silence_ns; /**< between completions of a side with open requests */
	uint32_t silent_side;        /**< that side */
	bool fault_active[SIM_FAULTS_MAX];
	bool faults_over;      /**< no further fault starts */
	uint32_t nb_blocking;  /**< active faults that suspend the progress check */
	uint64_t unblocked_ns; /**< since when there are none */
	uint32_t nb_silencing; /**< active faults that can drop a packet repeatedly */
	uint64_t silence_ns;   /**< total time with such faults, up to silence_at_ns */
	uint64_t silence_at_ns;
	FILE *series; /**< time series, CSV; NULL: none */
	bool series_begun;
	bool explained; /**< the reason is on stderr already */
	bool failed;
	char why[512]; /**< the first violation */
};

/** Outputs that the command line requests; they do not change the run. */
struct sim_watch {
	const char *trace_path, *trace_where; /**< links to record as pcapng */
	const char *series_path;
};

/* ---- sim_world.c ---- */

/** 0, or -errno with a message on stderr: no memory, or a file can't be written. */
int san_sim_world_create(const struct sim_conf *conf, const struct sim_watch *watch,
			 struct sim_world **out);
/** All phases: connect, load, settle, disconnect, check for leaks. */
void san_sim_world_run(struct sim_world *w);
int san_sim_world_destroy(struct sim_world *w);
/** Megabytes of DPDK memory that a scenario needs. */
uint32_t san_sim_world_mb(const struct sim_conf *conf);
/** Report a violated invariant. The first one is kept and ends the run. */
void san_sim_world_fail(struct sim_world *w, const char *check, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void san_sim_world_at(struct sim_world *w, uint64_t at_ns, enum sim_event_kind kind, uint32_t obj,
		      uint16_t port, void *arg);
/** Process one event. False: none before *end_ns*, which is the time now. */
bool san_sim_world_step(struct sim_world *w, uint64_t end_ns);

/** Queue a packet. The link owns it. */
static inline void
san_sim_world_send(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m)
{
	san_sim_link_send(&w->net, l, m, w->now_ns);
}

/* ---- sim_topo.c ---- */

int san_sim_topo_create(struct sim_world *w);
/** Call after the last event: links own their packets. */
void san_sim_topo_destroy(struct sim_world *w);
/** A packet has arrived at the end of a link. */
void san_sim_topo_arrive(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m);
struct sim_link *san_sim_topo_uplink(struct sim_world *w, uint32_t host);
/** The next link that *where* (see struct sim_fault_conf) names, from *i* on; NULL: none. */
struct sim_link *san_sim_topo_match(struct sim_world *w, const char *where, uint32_t *i);
/** True if *where* exists in this topology. */
bool san_sim_topo_is_place(const struct sim_world *w, const char *where);

/* ---- sim_host.c ---- */

int san_sim_host_create(struct sim_world *w, uint32_t id);
void san_sim_host_destroy(struct sim_world *w, struct sim_host *h);
/** Start a process, or end it abruptly. */
int san_sim_host_start(struct sim_world *w, struct sim_host *h);
void san_sim_host_kill(struct sim_world *w, struct sim_host *h);
/** Number of times its engine found the common pool empty. */
uint64_t san_sim_host_no_mbuf(const struct sim_world *w, const struct sim_host *h);
void san_sim_host_rx(struct sim_world *w, struct sim_host *h, struct rte_mbuf *m);
/** Execute one round of its loop if it is due. */
void san_sim_host_round(struct sim_world *w, struct sim_host *h);
/** Make it check its work soon: something was posted, or a pause has ended. */
void san_sim_host_wake(struct sim_world *w, struct sim_host *h);
uint64_t san_sim_host_clock(const struct sim_host *h, uint64_t now_ns);

/* ---- sim_lie.c ---- */

/** What a liar sends in place of *m*; NULL: nothing, and *m* is freed. */
struct rte_mbuf *san_sim_lie_falsify(struct sim_world *w, struct sim_host *h, struct rte_mbuf *m);

/* ---- sim_fault.c ---- */

int san_sim_fault_create(struct sim_world *w);
void san_sim_fault_event(struct sim_world *w, uint32_t fault, bool begins);
/** The load starts: times of faults count from now. */
void san_sim_fault_arm(struct sim_world *w);
/** End all faults. */
void san_sim_fault_end(struct sim_world *w);
/** True if this side's connection, which has just broken, had a valid reason. */
bool san_sim_fault_may_break(struct sim_world *w, const struct sim_side *side);

/* ---- sim_report.c: figures as text and JSON, time series ---- */

/**
 * Jain's fairness index of shares of a resource: (sum x)^2 / (n * sum of x^2). Equal shares give 1;
 * if one has everything the index is 1/n. In integers, so that it is equal on all machines: exact
 * while the largest value and n have 54 bits together (a thousand values below 2^44); beyond that
 * all values are scaled down.
 *
 * @return
 *   Millionths, rounded down. 0: there is no value, or all are 0.
 */
uint32_t san_sim_report_jain_ppm(const uint64_t *x, uint32_t n);
/** Jain's index of the initiators' bytes during the measurement, in millionths. */
uint32_t san_sim_report_jain(const struct sim_world *w);
/** Print one page of figures. */
void san_sim_report_text(const struct sim_world *w, FILE *out);
/** Print all figures as one JSON object; sansim(1) describes the keys. */
void san_sim_report_json(const struct sim_world *w, FILE *out);
/** Add the counters of an engine. */
void san_sim_report_engine(struct sim_engine_sums *s, struct san_core *core);
/** Take the links' counters now, for the report. */
void san_sim_report_links(struct sim_world *w);
/** Print a line of the time series; the header first. */
void san_sim_report_series(struct sim_world *w);

#endif /* SIM_WORLD_H */
