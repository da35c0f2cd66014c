/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Several protocol cores in one process and in virtual time, connected by a switch with one link of
 * the simulator (sim_link.h) per host. The production code runs unchanged; only packets and time
 * are simulated. So every run repeats from its seed, and every time limit can be asserted exactly.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "sim_link.h"

#define WORLD_NODES 40
#define WORLD_QPS   20480

/** What the path to a host does to packets. Rates in millionths. */
struct world_link {
	uint32_t drop_ppm, dup_ppm, reorder_ppm, corrupt_ppm;
	uint64_t delay_ns;   /**< propagation */
	uint64_t reorder_ns; /**< most extra delay of a reordered packet */
	uint32_t mbps;       /**< 0: no serialisation */
	uint32_t queue_pkts; /**< queue length in packets of the MTU; 0: unlimited */
	uint16_t mtu;        /**< longer packets are dropped silently; 0: none are */
	bool down;
};

struct world;

/** Sees every packet sent; returns how many copies arrive (0 drops, 1 is normal). May be NULL. */
typedef int (*world_filter)(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m,
			    void *arg);

struct world_qp {
	uint32_t node, qp;
	struct san_ulp_cq *send_cq, *recv_cq;
	bool established, disconnected, rejected, unreachable;
	uint8_t reason;
	uint64_t nb_done; /**< completions returned by world_wait() */
};

struct world_node {
	struct san_core *core;  /**< NULL: killed */
	struct world_link link; /**< to this node; may change at any time */
	struct sim_link_conf in_conf;
	struct sim_link in; /**< *link* in the simulator */
	uint64_t paused_until_ns;
	uint64_t gap_ns;     /**< longest time that a packet waited during the pause */
	uint64_t rx_next_ns; /**< when the waiting packets will have been taken, in bursts */
	uint32_t nb_held;
	uint64_t nb_rx;
	uint64_t nb_lost; /**< lost on the link to it */
	bool accept;      /**< accept every connection request, with *param* */
	bool has_request;
	struct san_core_event request;
	struct san_cm_param param;
};

struct world_conf {
	uint32_t nb_nodes;
	uint64_t seed;
	uint32_t max_conns; /**< per node */
	uint16_t mtu;
	bool ipv6;
	uint32_t nb_mbufs, sq_depth, rq_depth;
	struct world_link link;
	/** Change a node's configuration before it is created; may be NULL. */
	void (*tune)(struct san_core_conf *conf, uint32_t node, void *arg);
	void *tune_arg;
	const struct san_stream_conf *stream; /**< queue pairs are streams; NULL: they are plain */
};

struct world {
	struct world_conf conf;
	uint64_t now_ns;
	struct sim_net net;
	struct rte_mempool *pool; /**< of the network */
	struct rte_hash *cam;
	uint32_t nb_engines;
	struct world_node node[WORLD_NODES];
	struct world_qp qp[WORLD_QPS];
	uint32_t nb_qps;
	uint64_t hash; /**< of every packet's destination, time and bytes */
	world_filter filter;
	void *filter_arg;
	bool check; /**< check every invariant after every step */
};

void world_conf_default(struct world_conf *conf);
struct world *world_create(const struct world_conf *conf);
/** Asserts that no record, CAM entry or mbuf has leaked. */
void world_destroy(struct world *w);
/** Get the configuration with which the node would be created. */
void world_node_conf(struct world *w, uint32_t node, struct san_core_conf *conf);
void world_node_start(struct world *w, uint32_t node);
/** Destroy the core without a packet, as if the process died. */
void world_node_kill(struct world *w, uint32_t node);
void world_ip(const struct world *w, uint32_t node, struct san_ip *ip);

void world_param_default(struct san_cm_param *p);
/** Create a queue pair with its own CQs. Returns its index in w->qp. */
uint32_t world_qp_create(struct world *w, uint32_t node);
/** Connect a new queue pair of *a* to one that *b* creates; runs until it is established. */
void world_connect(struct world *w, uint32_t a, uint32_t b, const struct san_cm_param *pa,
		   const struct san_cm_param *pb, uint32_t *qa, uint32_t *qb);
/** Disconnect *qa* in an orderly way; runs until both sides are disconnected. */
void world_disconnect(struct world *w, uint32_t qa, uint32_t qb);
void world_qp_destroy(struct world *w, uint32_t q);

/** Handle the next packet or timer, and everything that follows at that time. */
void world_step(struct world *w);
void world_run_for(struct world *w, uint64_t ns);
/** Run until *done* or the limit. Returns whether *done* was true. */
bool world_run_until(struct world *w, bool (*done)(struct world *w, void *arg), void *arg,
		     uint64_t limit_ns);

/** Post one request; runs the world while the queue is full. */
void world_post(struct world *w, uint32_t q, const struct san_ulp_wr *wr);
bool world_try_post(struct world *w, uint32_t q, const struct san_ulp_wr *wr);
void world_post_recv(struct world *w, uint32_t q, void *buf, uint32_t len, uint64_t wr_id);
/** Get the next completion of a queue; runs the world until there is one, or to the limit. */
bool world_wait(struct world *w, uint32_t q, bool recv, struct san_ulp_wc *wc, uint64_t limit_ns);
void world_wr(struct san_ulp_wr *wr, uint8_t op, void *buf, uint32_t len, uint64_t raddr,
	      uint32_t rkey, uint64_t wr_id, uint8_t flags);
uint32_t world_mr(struct world *w, uint32_t node, void *addr, uint64_t len, uint8_t rights);
void world_mr_del(struct world *w, uint32_t node, uint32_t key);

/** Bytes that depend only on seed and position. */
void world_pattern(uint8_t *buf, uint64_t len, uint64_t seed);
bool world_pattern_ok(const uint8_t *buf, uint64_t len, uint64_t seed);
