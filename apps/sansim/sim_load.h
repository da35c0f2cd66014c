/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_LOAD_H
#define SIM_LOAD_H

/**
 * @file
 * The programs: connections between hosts, the requests that they post, the
 * memory that these read and write.
 *
 * Content is a slice of one block of random bytes that everybody knows; which
 * slice follows from the request. So content costs no memory, and bytes of
 * another request, or shifted by one, are seen.
 */

#include "app_hist.h"
#include "sim_world.h"

#define SIM_SIDES       2
#define SIM_GUARD       64   /**< bytes around every target that nobody may touch */
#define SIM_GUARD_BYTE  0xa5 /**< what they hold */
#define SIM_POISON_BYTE 0xee /**< what a target holds while no request is under way */
#define SIM_HEADER      16   /**< bytes of a send before its slice */

enum sim_op_state {
	SIM_OP_FREE,
	SIM_OP_POSTED,
};

/** A request, in a slot of its side. */
struct sim_op {
	uint64_t seq; /**< of its side, from 0 on */
	uint64_t posted_ns;
	uint64_t result;                 /**< atomics: old value */
	uint64_t header[SIM_HEADER / 8]; /**< sends: sequence number; slice and length */
	uint32_t slice;                  /**< offset in the block of content */
	uint32_t len;
	uint32_t life; /**< of the target when it was posted */
	uint16_t slot; /**< its place in side->ops and in the target's region */
	uint8_t op;    /**< enum san_ulp_op */
	uint8_t state; /**< enum sim_op_state */
	bool bad;      /**< posted with a wrong key: must be refused */
};

/** Life of a connection as the programs see it. */
enum sim_side_state {
	SIM_SIDE_IDLE,    /**< no queue pair connected; the connecting side may try */
	SIM_SIDE_CONNECT, /**< asked for */
	SIM_SIDE_UP,
	SIM_SIDE_END,  /**< orderly end asked for */
	SIM_SIDE_OVER, /**< ended, for good */
};

struct sim_side {
	uint32_t id; /**< 2 * connection + (0: connects, 1: accepts) */
	uint32_t host;
	uint32_t qp;   /**< SAN_QPN_NONE: its host has none */
	uint8_t state; /**< enum sim_side_state */
	bool ordered;
	bool stream;           /**< its connection carries one */
	struct sim_flow *flow; /**< then what it sends and how it receives */
	bool initiates;
	struct sim_side *next; /**< of the same host */
	/* as initiator */
	uint64_t start_ns, stop_ns; /**< posts in between */
	uint64_t nb_posted;         /**< next sequence number */
	uint64_t nb_done;           /**< completed, in whatever way, or lost with the process */
	uint64_t nb_failed;
	uint64_t bytes_done, ops_done; /**< succeeded in the measured time */
	uint64_t last_ns;              /**< last completion, or first post after idleness */
	bool counted;                  /**< in load->nb_todo */
	bool flushed;                  /**< its connection has ended: nothing more is posted */
	uint16_t nb_free;
	uint16_t *free;     /**< slots */
	struct sim_op *ops; /**< load.depth */
	uint8_t *own;       /**< where its pulls arrive: a slot for each request */
	/* as target of the other side */
	uint32_t life;     /**< changes with its process, connection and keys */
	uint8_t *region;   /**< guard, slot, guard, slot ... */
	uint64_t *counter; /**< for atomics, a region of its own */
	uint32_t rkey, rkey_atomic;
	uint32_t nb_recvs;   /**< posted */
	uint32_t recv_epoch; /**< changes when all of them are posted */
	uint8_t *recv;       /**< load.depth receives */
};

struct sim_load {
	uint32_t nb_sides;
	struct sim_side *sides;
	uint32_t slot_bytes; /**< largest request, rounded up */
	uint8_t *block;      /**< content */
	uint32_t block_bytes;
	struct sim_side **of_host; /**< by host: its sides, linked */
	uint32_t *rkey_block;      /**< by host: pulls */
	struct san_prng prng;
	uint32_t nb_up;      /**< sides that are connected */
	uint32_t nb_over;    /**< sides that will not be again */
	uint32_t nb_todo;    /**< sides that have not posted all of load.ops */
	uint64_t nb_pending; /**< requests under way */
	uint64_t nb_flow;    /**< sends of streams that the other side has not received */
	bool started;
	bool ending;  /**< nothing new is posted or connected */
	bool closing; /**< connections are ended: no end is a surprise */
	uint64_t last_done_ns;
	struct app_hist hist; /**< completion times in the measured time */
};

/** Before the hosts: who talks to whom. -ENOMEM. */
int sim_load_create(struct sim_world *w);
void sim_load_destroy(struct sim_world *w);
uint32_t sim_load_conns_of(const struct sim_world *w, uint32_t host);
/** Entries that its completion queues need. */
uint32_t sim_load_cqes_of(const struct sim_world *w, uint32_t host);
/** A host has a new process: queue pairs, regions, listener. 0 or -errno. */
int sim_load_host_up(struct sim_world *w, struct sim_host *h);
/** Its process is gone: what it had under way never completes. */
void sim_load_host_down(struct sim_world *w, struct sim_host *h);
/** A round of a host: events, completions, new requests. */
void sim_load_round(struct sim_world *w, struct sim_host *h);
/** SIM_EV_LOAD of a side; *what* is enum sim_load_what. */
void sim_load_event(struct sim_world *w, uint32_t side, uint16_t what, void *arg);
/** Requests may be posted from now on: the connections' start times count. */
void sim_load_start(struct sim_world *w);
/** Nothing new is posted or connected from now on. */
void sim_load_stop(struct sim_world *w);
/** All requests of load.ops, if there is a number, are posted, and all have completed. */
bool sim_load_is_done(const struct sim_world *w);
void sim_load_disconnect_all(struct sim_world *w);
/** Queue pairs and regions are given back: what a program does before it ends. */
void sim_load_release(struct sim_world *w);

/* ---- sim_load_conn.c, sim_load_op.c: among themselves ---- */

enum sim_load_what {
	SIM_LOAD_CONNECT, /**< try (again) */
	SIM_LOAD_POST,    /**< its time to start */
	SIM_LOAD_RECV,    /**< arg: the receive to post again */
	SIM_LOAD_REVOKE,
};

void sim_load_connect(struct sim_world *w, struct sim_side *s);
void sim_load_events(struct sim_world *w, struct sim_host *h);
/** Post as much as depth allows. */
void sim_load_post(struct sim_world *w, struct sim_side *s);
void sim_load_completions(struct sim_world *w, struct sim_host *h);
void sim_load_post_recvs(struct sim_world *w, struct sim_side *s);
void sim_load_post_recv(struct sim_world *w, struct sim_side *s, uint32_t slot, uint32_t epoch);
/** Keys of a side as target: a new life begins. */
void sim_load_register(struct sim_world *w, struct sim_side *s);
void sim_load_deregister(struct sim_world *w, struct sim_side *s);
/** Whatever was placed is gone; nothing of before may be placed any more. */
void sim_load_new_life(struct sim_world *w, struct sim_side *s);
/** The side will not post any more. */
void sim_load_todo_done(struct sim_world *w, struct sim_side *s);

/* ---- sim_load_stream.c ---- */

int sim_flow_create(struct sim_world *w, struct sim_side *s);
void sim_flow_destroy(struct sim_side *s);
int sim_flow_create_qp(struct sim_world *w, struct sim_host *h, struct sim_side *s,
		       const struct san_ulp_qp_conf *qp);
/** It has posted a send. */
void sim_flow_sent(struct sim_world *w, struct sim_side *s, uint32_t slice, uint32_t len);
void sim_flow_up(struct sim_world *w, struct sim_side *s);
void sim_flow_down(struct sim_world *w, struct sim_side *s);
/** Post what it receives with next, unless something is posted. */
void sim_flow_receive(struct sim_world *w, struct sim_side *s);
void sim_flow_on_wait(struct sim_world *w, struct sim_side *s, const struct san_ulp_wc *wc);
void sim_flow_on_recv(struct sim_world *w, struct sim_side *s, const struct san_ulp_wc *wc);

static inline struct sim_side *
sim_peer(struct sim_world *w, const struct sim_side *s)
{
	return &w->load->sides[s->id ^ 1];
}

/** Bytes of a target's slot. */
static inline uint8_t *
sim_slot(const struct sim_world *w, const struct sim_side *s, uint32_t slot)
{
	return s->region + SIM_GUARD + (size_t)slot * (w->load->slot_bytes + SIM_GUARD);
}

/** Where the pull of a slot arrives; a guard follows what was asked for. */
static inline uint8_t *
sim_own(const struct sim_world *w, const struct sim_side *s, uint32_t slot)
{
	return s->own + (size_t)slot * (w->load->slot_bytes + SIM_GUARD);
}

static inline size_t
sim_region_bytes(const struct sim_world *w)
{
	return SIM_GUARD + (size_t)w->conf.load.depth * (w->load->slot_bytes + SIM_GUARD);
}

/** What an initiator names as the address of a target's slot. */
static inline uint64_t
sim_remote(const struct sim_world *w, const struct sim_side *s, uint32_t slot)
{
	return ((uint64_t)s->id + 1) << 36 | (uint64_t)(sim_slot(w, s, slot) - s->region);
}

#endif /* SIM_LOAD_H */
