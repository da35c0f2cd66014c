/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_LOAD_H
#define SIM_LOAD_H

/**
 * @file
 * The programs: connections between hosts, their requests, and the memory that these access.
 *
 * Content is a slice of one block of random bytes that all programs share; the request determines
 * the slice. So content takes no memory, and data that is shifted or belongs to another request is
 * detected.
 */

#include "hist.h"
#include "sim_world.h"

#define SIM_SIDES       2
#define SIM_GUARD       64   /**< guard bytes around each target */
#define SIM_GUARD_BYTE  0xa5 /**< content of guards */
#define SIM_POISON_BYTE 0xee /**< content of a target without a request */
#define SIM_HEADER      16   /**< bytes of a send that precede its slice */

enum sim_op_state {
	SIM_OP_FREE,
	SIM_OP_POSTED,
};

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
	uint8_t state; /**< enum sim_op_state */
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
	uint64_t start_ns, stop_ns; /**< posts requests in between */
	uint64_t nb_posted;         /**< next sequence number */
	uint64_t nb_done;           /**< completed in any way, or lost with the process */
	uint64_t nb_failed;
	uint64_t bytes_done; /**< successful, during the measurement */
	uint64_t last_ns;    /**< last completion, or first post after a pause */
	bool counted;        /**< counted in load->nb_todo */
	bool flushed;        /**< its connection has ended: post nothing more */
	uint16_t nb_free;
	uint16_t *free;     /**< free slots */
	struct sim_op *ops; /**< load.depth */
	uint8_t *own;       /**< destination of pulls, one slot per request */
	/* as target */
	uint32_t life;     /**< changes with process, connection and keys */
	uint8_t *region;   /**< guard, slot, guard, slot ... */
	uint64_t *counter; /**< for atomics, a region of its own */
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
	struct sim_side **of_host; /**< by host: list of its sides */
	uint32_t *rkey_block;      /**< by host: key for pulls */
	struct san_prng prng;
	uint32_t nb_up;      /**< connected sides */
	uint32_t nb_over;    /**< sides that will not connect again */
	uint32_t nb_todo;    /**< innocent sides that have not posted all of load.ops */
	uint64_t nb_pending; /**< open requests of innocent sides */
	uint64_t nb_flow;    /**< sends of streams not yet received */
	bool started;
	bool ending;  /**< post and connect nothing new */
	bool closing; /**< connections are ended deliberately */
	uint64_t last_done_ns;
	struct hist hist; /**< completion times during the measurement */
};

/** Draw the pairs of hosts, before the hosts are created. 0 or -ENOMEM. */
int san_sim_load_create(struct sim_world *w);
void san_sim_load_destroy(struct sim_world *w);
uint32_t san_sim_load_conns_of(const struct sim_world *w, uint32_t host);
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
/** Post and connect nothing new. */
void san_sim_load_stop(struct sim_world *w);
/** True if all of load.ops (unless 0) are posted, and all requests have completed. */
bool san_sim_load_is_done(const struct sim_world *w);
void san_sim_load_conn_disconnect_all(struct sim_world *w);
/** Release queue pairs and regions, like a program before it ends. */
void san_sim_load_release(struct sim_world *w);

/* ---- sim_load_conn.c, sim_load_op.c: among themselves ---- */

enum sim_load_what {
	SIM_LOAD_CONNECT, /**< try to connect */
	SIM_LOAD_POST,    /**< its start time */
	SIM_LOAD_RECV,    /**< arg: the receive to post */
	SIM_LOAD_REVOKE,
};

void san_sim_load_conn_connect(struct sim_world *w, struct sim_side *s);
void san_sim_load_conn_events(struct sim_world *w, struct sim_host *h);
/** Post as much as the depth allows. */
void san_sim_load_op_post(struct sim_world *w, struct sim_side *s);
void san_sim_load_op_completions(struct sim_world *w, struct sim_host *h);
void san_sim_load_op_post_recvs(struct sim_world *w, struct sim_side *s);
void san_sim_load_op_post_recv(struct sim_world *w, struct sim_side *s, uint32_t slot,
			       uint32_t epoch);
/** Placed data is discarded, and older requests must not place any more. */
void san_sim_load_new_life(struct sim_world *w, struct sim_side *s);
/** The side posts nothing more. */
void san_sim_load_todo_done(struct sim_world *w, struct sim_side *s);

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

static inline size_t
san_sim_load_region_bytes(const struct sim_world *w)
{
	return SIM_GUARD + (size_t)w->conf.load.depth * (w->load->slot_bytes + SIM_GUARD);
}

/** Remote address of a target's slot. */
static inline uint64_t
san_sim_load_remote(const struct sim_world *w, const struct sim_side *s, uint32_t slot)
{
	return ((uint64_t)s->id + 1) << 36 | (uint64_t)(san_sim_load_slot(w, s, slot) - s->region);
}

#endif /* SIM_LOAD_H */
