/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Hosts, switches and links in one process and in virtual time. The protocol code is the product's;
 * its environment is simulated: cables, queues, clocks, programs, and the faults of all of these.
 *
 *   sim_event.c   queue of events
 *   sim_pkt.c     packets and their buffers
 *   sim_link.c    one direction of a cable, with the queue in front of it
 *   sim_topo.c    topology and forwarding
 *   sim_host.c    an engine, its clock, its receive ring
 *   sim_load.c    the programs: connections, requests, memory
 *   sim_fault.c   faults: kind, time and place
 *   sim_lie.c     hosts that lie
 *   sim_check.c   invariants
 *   sim_report.c  results of a run
 *   sim_world.c   the event loop and the phases of a run
 *   sim_draw.c    scenarios drawn from seeds
 *   sim_swarm.c   many runs of these
 *
 * One world at a time; nothing is thread-safe.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "hist.h"
#include "sim_conf.h"
#include "sim_link.h"

struct sim_world;
struct sim_load;
struct sim_side;

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

/** A connection after the previous round, for the checker "pcb". */
struct sim_before {
	uint64_t nb_rtx;
	uint32_t cid;
	uint32_t inflight;
	uint64_t oldest[SAN_WIN_MAX]; /**< packet in flight; 0: none, or it is not known */
};

struct sim_host {
	uint32_t id;
	uint32_t nb_starts;    /**< 1: first process */
	struct san_core *core; /**< NULL: no process */
	struct rte_ether_addr mac;
	struct rte_mempool *pool;
	struct san_ulp_cq *send_cq, *recv_cq;
	struct sim_side *sides; /**< of its programs, linked by *next* */
	uint32_t nb_sides;
	uint32_t rkey_block;          /**< key of the block of content, for pulls */
	struct sim_side **side_of_qp; /**< indexed by SAN_QPN_INDEX */
	struct sim_before *before;    /**< by slot; NULL: not checked yet */
	uint32_t nb_paused;           /**< number of faults that pause it */
	uint64_t paused_at_ns;        /**< start of the first of these */
	int64_t drift_ppm;
	uint64_t run_at_ns;             /**< its next round, or SAN_TIME_NEVER */
	uint64_t planned_ns[SIM_PLANS]; /**< times with a pending event */
	uint64_t last_run_ns;
	uint64_t held_ns;     /**< pauses since its last round: packets may have waited that long */
	struct rte_mbuf **rx; /**< ring of received packets */
	uint32_t rx_mask, rx_head, rx_tail;
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

struct sim_world {
	struct sim_conf conf;
	uint64_t now_ns;
	uint64_t load_ns;   /**< start of the load */
	uint64_t hash;      /**< over time, place and content of every arrival */
	struct sim_net net; /**< its faults include those of hosts */
	struct rte_hash *cam;
	uint32_t nb_engines;
	uint32_t nb_hosts, nb_links;
	struct sim_host *hosts;
	struct sim_link *links;
	struct sim_load *load;
	struct sim_stats stats;
	struct sim_engine_sums dead_engines; /**< of processes that have ended */
	/** Of all links, from the start of the load until it settled; high_bytes of switches. */
	struct sim_link_stats on_links;
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
	bool failed;
	char why[512]; /**< the first violation */
};

/** Outputs that the command line requests; they do not change the run. */
struct sim_watch {
	const char *trace_path, *trace_where; /**< links to record as pcapng */
	const char *series_path;
};

/* ---- sim_world.c ---- */

/** 0, or another value and a message on stderr: no memory, or a file can't be written. */
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
#define san_sim_fail_side(w, s, check, text, ...) \
	san_sim_world_fail(w, check, "side %u: " text, (s)->id, ##__VA_ARGS__)
#define san_sim_fail_host(w, h, check, text, ...) \
	san_sim_world_fail(w, check, "host %u: " text, (h)->id, ##__VA_ARGS__)
void san_sim_world_at(struct sim_world *w, uint64_t at_ns, enum sim_event_kind kind, uint32_t obj,
		      uint16_t port, void *arg);
/** Process one event. False: none before *end_ns*, which is the time now. */
bool san_sim_world_step(struct sim_world *w, uint64_t end_ns);

/* ---- sim_topo.c ---- */

int san_sim_topo_create(struct sim_world *w);
/** A packet has arrived at the end of a link. */
void san_sim_topo_arrive(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m);
struct sim_link *san_sim_topo_uplink(struct sim_world *w, uint32_t host);
/** The next link that *where* (see struct sim_fault_conf) names, from *i* on; NULL: none. */
struct sim_link *san_sim_topo_match(struct sim_world *w, const char *where, uint32_t *i);
bool san_sim_topo_is_place(struct sim_world *w, const char *where);

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

/** 0, or 1 with a message on stderr: a fault has a place that does not exist. */
int san_sim_fault_create(struct sim_world *w);
void san_sim_fault_event(struct sim_world *w, uint32_t fault, bool begins);
/** The load starts: times of faults count from now. */
void san_sim_fault_arm(struct sim_world *w);
void san_sim_fault_end(struct sim_world *w);
/** True if this side's connection, which has just broken, had a valid reason. */
bool san_sim_fault_may_break(struct sim_world *w, const struct sim_side *side);

/* ---- sim_report.c: figures as text and JSON, time series ---- */

/**
 * Jain's fairness index of shares of a resource: (sum x)^2 / (n * sum of x^2). Equal shares give 1;
 * if one has everything the index is 1/n. In integers, so that it is equal on all machines: exact
 * while the largest value and n have 54 bits together (a thousand values below 2^44); beyond that
 * all values are scaled down. In millionths, rounded down. 0: there is no value, or all are 0.
 */
uint32_t san_sim_report_jain_ppm(const uint64_t *x, uint32_t n);
/** Jain's index of the initiators' bytes during the measurement, in millionths. */
uint32_t san_sim_report_jain(const struct sim_world *w);
/** Print one page of figures. */
void san_sim_report_text(const struct sim_world *w, FILE *out);
/** Print all figures as one JSON object; sansim(1) describes the keys. */
void san_sim_report_json(const struct sim_world *w, FILE *out);
/** Add *size* bytes of counters, all of 64 bits. */
void san_sim_report_add(void *sums, const void *counters, size_t size);
/** Add the counters of an engine. */
void san_sim_report_engine(struct sim_engine_sums *s, struct san_core *core);
/** Take the links' counters now, for the report. */
void san_sim_report_links(struct sim_world *w);
/** Print a line of the time series; the header first. */
void san_sim_report_series(struct sim_world *w);

/*
 * ---- sim_load*.c: the programs ----
 *
 * Connections between hosts, their requests, and the memory that these access. Content is a slice
 * of one block of random bytes that all programs share; the request determines the slice. So
 * content takes no memory, and data that is shifted or belongs to another request is detected.
 */

#define SIM_SIDES       2
#define SIM_GUARD       64   /**< guard bytes around each target */
#define SIM_GUARD_BYTE  0xa5 /**< content of guards */
#define SIM_POISON_BYTE 0xee /**< content of a target without a request */
#define SIM_HEADER      16   /**< bytes of a send that precede its slice */

/** A request, in a slot of its side. */
struct sim_op {
	uint64_t seq; /**< counted per side, from 0 */
	uint64_t posted_ns;
	uint64_t result;                 /**< atomics: old value */
	uint64_t header[SIM_HEADER / 8]; /**< sends: sequence number; slice and length */
	uint32_t slice;                  /**< offset in the block of content */
	uint32_t len;
	uint32_t life; /**< life of the target when it was posted */
	uint16_t slot; /**< index in side->ops and in the target's region */
	uint8_t op;    /**< enum rtsan_wr_opcode */
	bool posted;   /**< the slot is used */
	bool bad;      /**< with a wrong key: must be refused */
};

/** State of a connection as its programs see it. */
enum sim_side_state {
	SIM_SIDE_IDLE,    /**< not connected; the connecting side may try */
	SIM_SIDE_CONNECT, /**< set-up requested */
	SIM_SIDE_UP,
	SIM_SIDE_END,  /**< disconnect requested */
	SIM_SIDE_OVER, /**< ended for good */
};

/** State of the requests of a side, for the checker "order". */
struct sim_order {
	uint8_t *seqs; /**< indexed by sequence number */
	uint64_t nb_seqs;
	uint64_t nb_received; /**< highest sequence number received + 1 */
	uint64_t nb_done;     /**< highest sequence number completed + 1 */
	uint64_t excused;     /**< those below may be missing: their process died */
	/* fetch-and-adds in the target's process */
	uint64_t adds_from;              /**< first sequence number of this process */
	uint64_t adds_ok, adds_doubtful; /**< certainly executed, and possibly */
	uint64_t next_old;               /**< ordered: minimum of the next old value */
};

struct sim_side {
	uint32_t id; /**< 2 * connection + (0: connects, 1: accepts) */
	uint32_t host;
	uint32_t qp;   /**< SAN_QPN_NONE: none */
	uint8_t state; /**< enum sim_side_state */
	bool ordered;
	bool stream;           /**< its connection is a stream */
	bool innocent;         /**< neither end is a host that lies */
	struct sim_flow *flow; /**< state of a stream's data, or NULL */
	bool initiates;
	struct sim_side *next; /**< next side of the same host */
	/* as initiator */
	uint64_t start_ns, stop_ns; /**< posts requests in between; 0 before the load */
	uint64_t nb_posted;         /**< next sequence number */
	uint64_t nb_done;           /**< completed in any way, or lost with the process */
	uint64_t nb_failed;
	uint64_t bytes_done; /**< successful, during the measurement */
	uint64_t last_ns;    /**< last completion, or first post after a pause */
	bool flushed;        /**< its connection has ended: post nothing more */
	uint16_t nb_free;
	uint16_t *free;     /**< free slots */
	struct sim_op *ops; /**< load.depth */
	uint8_t *own;       /**< destination of pulls, one slot per request */
	/* for checkers */
	struct sim_order order;
	uint64_t nb_flushed; /**< requests that completed because the connection ended */
	/* as target */
	uint32_t life;    /**< changes with process, connection and keys */
	uint8_t *region;  /**< guard, slot, guard, slot ... */
	uint64_t counter; /**< for atomics, a region of its own */
	uint32_t rkey, rkey_atomic;
	uint32_t nb_recvs;   /**< number posted */
	uint32_t recv_epoch; /**< changes when all of them are posted again */
	uint8_t *recv;       /**< load.depth receives */
};

struct sim_load {
	uint32_t nb_sides;
	struct sim_side *sides;
	uint32_t slot_bytes; /**< largest request, rounded up */
	uint8_t *block;      /**< content */
	uint32_t block_bytes;
	struct san_prng prng;
	uint32_t nb_up;      /**< connected sides */
	uint32_t nb_over;    /**< sides that will not connect again */
	uint64_t nb_pending; /**< open requests of innocent sides */
	uint64_t nb_flow;    /**< sends of streams not yet received */
	bool ending;         /**< post and connect nothing new */
	bool closing;        /**< connections are ended deliberately */
	uint64_t last_done_ns;
	struct hist hist; /**< completion times during the measurement */
};

/** Draw the pairs of hosts, before the hosts are created. 0 or -ENOMEM. */
int san_sim_load_create(struct sim_world *w);
void san_sim_load_destroy(struct sim_world *w);
/** A host has a new process: create queue pairs, regions and listener. 0 or -errno. */
int san_sim_load_host_up(struct sim_world *w, struct sim_host *h);
/** Its process has died: open requests never complete. */
void san_sim_load_host_down(struct sim_world *w, struct sim_host *h);
/** One round of a host: events, completions, new requests. */
void san_sim_load_round(struct sim_world *w, struct sim_host *h);
/** SIM_EV_LOAD of a side; *what* is enum sim_load_what. */
void san_sim_load_event(struct sim_world *w, uint32_t side, uint16_t what, void *arg);
/** Requests may be posted: the start times of connections count from now. */
void san_sim_load_start(struct sim_world *w);
/** True if all of load.ops (unless 0) are posted, and all requests have completed. */
bool san_sim_load_is_done(const struct sim_world *w);
void san_sim_load_disconnect_all(struct sim_world *w);
/** Release queue pairs and regions, like a program before it ends. */
void san_sim_load_release(struct sim_world *w);

/* ---- sim_load.c, sim_load_op.c: among themselves ---- */

enum sim_load_what {
	SIM_LOAD_CONNECT, /**< try to connect */
	SIM_LOAD_POST,    /**< its start time */
	SIM_LOAD_RECV,    /**< arg: the receive to post */
	SIM_LOAD_REVOKE,
};

/** Post as much as the depth allows. */
void san_sim_load_op_post(struct sim_world *w, struct sim_side *s);
void san_sim_load_op_completions(struct sim_world *w, struct sim_host *h);
void san_sim_load_op_post_recvs(struct sim_world *w, struct sim_side *s);
void san_sim_load_op_post_recv(struct sim_world *w, struct sim_side *s, uint32_t slot,
			       uint32_t epoch);
/** Post this receive. */
void san_sim_load_op_take_recv(struct sim_world *w, struct sim_side *s,
			       const struct san_ulp_recv *r);
/** Plan to post a receive again. False: the scenario does not delay that. */
bool san_sim_load_op_recv_later(struct sim_world *w, const struct sim_side *s, uint32_t slot);
/** Placed data is discarded, and older requests must not place any more. */
void san_sim_load_new_life(struct sim_world *w, struct sim_side *s);

/* ---- sim_load_stream.c ---- */

int san_sim_load_stream_create(struct sim_world *w, struct sim_side *s);
void san_sim_load_stream_destroy(struct sim_side *s);
int san_sim_load_stream_create_qp(struct sim_world *w, struct sim_host *h, struct sim_side *s,
				  const struct san_ulp_qp_conf *qp);
/** A send was posted. */
void san_sim_load_stream_sent(struct sim_world *w, struct sim_side *s, uint32_t slice,
			      uint32_t len);
void san_sim_load_stream_up(struct sim_world *w, struct sim_side *s);
void san_sim_load_stream_down(struct sim_world *w, struct sim_side *s);
/** Post the next receive, unless one is posted. */
void san_sim_load_stream_receive(struct sim_world *w, struct sim_side *s);
void san_sim_load_stream_on_wait(struct sim_world *w, struct sim_side *s,
				 const struct san_ulp_wc *wc);
void san_sim_load_stream_on_recv(struct sim_world *w, struct sim_side *s,
				 const struct san_ulp_wc *wc);

static inline struct sim_side *
san_sim_load_peer(struct sim_world *w, const struct sim_side *s)
{
	return &w->load->sides[s->id ^ 1];
}

/** A slot of the target's region. */
static inline uint8_t *
san_sim_load_slot(const struct sim_world *w, const struct sim_side *s, uint32_t slot)
{
	return s->region + SIM_GUARD + (size_t)slot * (w->load->slot_bytes + SIM_GUARD);
}

/** Destination of the pull of a slot; a guard follows the requested bytes. */
static inline uint8_t *
san_sim_load_own(const struct sim_world *w, const struct sim_side *s, uint32_t slot)
{
	return s->own + (size_t)slot * (w->load->slot_bytes + SIM_GUARD);
}

/** Bytes of a receive; a send of the largest size fits. */
static inline uint32_t
san_sim_load_recv_bytes(const struct sim_world *w)
{
	return w->load->slot_bytes + SIM_HEADER;
}

/** Buffer of a receive, if the load has sends. */
static inline uint8_t *
san_sim_load_recv(const struct sim_world *w, const struct sim_side *s, uint64_t slot)
{
	return s->recv + slot * san_sim_load_recv_bytes(w);
}

static inline size_t
san_sim_load_region_bytes(const struct sim_world *w)
{
	return SIM_GUARD + (size_t)w->conf.load.depth * (w->load->slot_bytes + SIM_GUARD);
}

/* ---- sim_check.c : invariants of a run, judged by what the programs see ---- */

/** What a program sees. */
enum sim_note {
	SIM_NOTE_BROKEN,    /**< a connection ended unexpectedly; DOWN follows */
	SIM_NOTE_DOWN,      /**< it ended; every request has completed */
	SIM_NOTE_POSTED,    /**< op */
	SIM_NOTE_COMPLETED, /**< op, wc */
	SIM_NOTE_RECEIVED,  /**< wc, of a receive; not of streams */
	SIM_NOTE_RESTARTED, /**< the process of the side was replaced */
};

/** Notes of sides that are not innocent reach no checker (sim_lie.c). */
void san_sim_check_note(struct sim_world *w, enum sim_note note, struct sim_side *s,
			const struct sim_op *op, const struct san_ulp_wc *wc);
/** After each round of a host. */
void san_sim_check_round(struct sim_world *w, struct sim_host *h);
/** Every quarter of run.stall, and after the load. */
void san_sim_check_sample(struct sim_world *w);
/** All requests have completed; connections are still open. */
void san_sim_check_settled(struct sim_world *w);
/** Connections are closed, queue pairs and regions released. */
void san_sim_check_end(struct sim_world *w);
/** Only the checker "pcb". */
void san_sim_check_pcb_round(struct sim_world *w, struct sim_host *h);

/*
 * ---- sim_swarm.c, sim_draw.c ----
 *
 * Many short runs of scenarios drawn from seeds. Each worker process executes one run after the
 * other. If it dies the run has failed, and the worker is replaced. A failed scenario is shrunk:
 * repeated with less as long as the same checker fails.
 */

#define SIM_WORKERS_MAX 16

struct sim_swarm_conf {
	uint64_t seed;    /**< of the first run; each next run increments it */
	uint64_t nb_runs; /**< 0: until the time is over */
	uint64_t seconds; /**< real time; 0: until all runs are done */
	uint32_t nb_workers;
	bool shrink;
	const char *program; /**< for the command line in reports */
};

/** Sums over many runs. */
struct sim_swarm_sum {
	uint64_t nb_runs, nb_failed, nb_events, nb_faults, nb_ops, nb_broken;
	uint64_t hash; /**< sum of the runs' trace hashes, independent of their order */
};

/** Draw the scenario of a seed, always the same. */
void san_sim_draw_swarm(uint64_t seed, struct sim_conf *conf);
/**
 * Execute one run in a process of its own. 0: passed, or not a scenario; -EIO: failed; -EINVAL: a
 * fault names a place that does not exist; another -errno: no process. *why* has the reason.
 */
int san_sim_swarm_try(const struct sim_conf *conf, struct sim_swarm_sum *sum, char *why,
		      size_t len);
/** Reduce a failing scenario while it fails with the same reason *why*. */
void san_sim_swarm_shrink(struct sim_conf *conf, const char *why);
/** Print as INI, with *why* as a comment in the first line. */
void san_sim_swarm_print(const struct sim_conf *conf, const char *why, FILE *out);
/** Run the campaign. Returns the number of failed runs, or of workers that could not start. */
uint64_t san_sim_swarm_run(const struct sim_swarm_conf *conf);
