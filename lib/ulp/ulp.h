/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The upper layer of one lcore: memory regions and keys, queue pairs, completion queues. It turns
 * work requests into transactions, and places received bytes at their destination (SYS-2, RT-10,
 * RT-11, RT-14, RT-23, RT-27, RT-30).
 *
 * Thread rule: belongs to the lcore, except san_ulp_cq_poll(), the consuming side of a completion
 * queue, which belongs to one other thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "san_counters.h"
#include "san_spsc.h"
#include "san_wr.h"
#include "tl.h"

#define SAN_ULP_DEPTH_MAX 4096       /**< entries of a send or receive queue, at most */
#define SAN_ULP_NOBODY    UINT16_MAX /**< owner of objects without an application */

struct san_ulp_conf {
	uint32_t max_conns;
	uint32_t max_qps;
	uint32_t first_qp; /**< index of the first one in queue pair numbers; differs by lcore */
	uint32_t max_cqs;
	uint32_t max_mrs;                /**< power of two */
	uint32_t max_stream_mrs;         /**< regions of streams, in addition; power of two */
	uint32_t pull_piece;             /**< bytes: longer pulls are split (RULE-6) */
	uint32_t guesses_per_conn;       /**< see ulp_guess.c */
	uint32_t guesses_per_hour;       /**< for one peer host and one application */
	uint32_t (*secret32)(void *arg); /**< generator for keys */
	void *secret_arg;
	struct san_mem *mem; /**< holds all state of the layer; NULL: the heap */
};

struct san_ulp_stats {
	SAN_ULP_COUNTERS(SAN_COUNTER_MEMBER)
};

/** Successful transfers: messages, and bytes of applications. */
struct san_ulp_traffic {
	uint64_t nb_tx, tx_bytes; /**< our pushes, and pulls of the peer */
	uint64_t nb_rx, rx_bytes; /**< pushes of the peer, and our pulls */
};

static inline void
san_ulp_traffic_add(struct san_ulp_traffic *sum, const struct san_ulp_traffic *t)
{
	sum->nb_tx += t->nb_tx;
	sum->tx_bytes += t->tx_bytes;
	sum->nb_rx += t->nb_rx;
	sum->rx_bytes += t->rx_bytes;
}

/** State of a queue pair, for operators. */
struct san_ulp_qp_view {
	uint32_t sq_depth, rq_depth;
	uint32_t nb_requests; /**< taken from the application and not completed */
	uint32_t nb_waiting;  /**< of those, not started: tl has no room for them */
	uint32_t nb_recvs;    /**< receives that no message has used yet */
	bool is_bound;        /**< it has a connection */
	struct san_ulp_traffic traffic;
};

struct san_ulp;
struct san_ulp_cq;

void san_ulp_conf_default(struct san_ulp_conf *conf);
int san_ulp_create(const struct san_ulp_conf *conf, struct san_ulp **out);
void san_ulp_destroy(struct san_ulp *ulp);
/**
 * Resume the state that lay parked in conf->mem: functions are those of *conf*, and no queue is
 * watched.
 */
void san_ulp_resume(struct san_ulp *ulp, const struct san_ulp_conf *conf);
/** Second step of construction, because tl is created after ulp. */
void san_ulp_set_tl(struct san_ulp *ulp, struct san_tl *tl);

/* ---- regions ---- */

/**
 * Register memory for remote access. The remote side addresses bytes as *base* + offset; it learns
 * *base* as our address of the region. -ENOSPC: no free region; -EINVAL.
 */
int san_ulp_mr_add(struct san_ulp *ulp, void *addr, uint64_t len, uint64_t base, uint8_t rights,
		   uint16_t pkey, uint32_t *key);
/** Register the same region with the same *key* on another lcore. -EEXIST: its slot is taken. */
int san_ulp_mr_copy(struct san_ulp *ulp, void *addr, uint64_t len, uint64_t base, uint8_t rights,
		    uint16_t pkey, uint32_t key);
/** Revoke the key at once: later accesses get ACCESS, accesses in progress REVOKED. -ENOENT. */
int san_ulp_mr_del(struct san_ulp *ulp, uint32_t key);
/** Assign the region to *owner*; it has none (0) before. -ENOENT. */
int san_ulp_mr_give(struct san_ulp *ulp, uint32_t key, uint16_t owner);
/** The owner of the region; SAN_ULP_NOBODY: there is none of this key. */
uint16_t san_ulp_mr_owner(const struct san_ulp *ulp, uint32_t key);
/**
 * Translate *addr* of *owner* in its region *key*, for *len* bytes; NULL: no such region of this
 * owner, or not inside.
 */
void *san_ulp_mr_find(const struct san_ulp *ulp, uint32_t key, uint16_t owner, uint64_t addr,
		      uint32_t len);
/**
 * Hide the region from new work of its owner before it is removed, or (false) show it again. Remote
 * sides can still access it.
 */
void san_ulp_mr_close(struct san_ulp *ulp, uint32_t key, bool closing);
/**
 * Register *addr* only for the peer of *qpn*, which is bound; bytes are addressed by their offset.
 * These regions have separate slots and keys, so streams and applications do not take them from
 * each other. (AFC-24)
 *
 * @return
 *   0, -ENOSPC, -EINVAL.
 */
int san_ulp_mr_add_stream(struct san_ulp *ulp, uint32_t qpn, void *addr, uint64_t len,
			  uint8_t rights, uint32_t *key);
/** Number of regions in use. */
uint32_t san_ulp_mr_nb(const struct san_ulp *ulp);

/* ---- queues ---- */

int san_ulp_cq_create(struct san_ulp *ulp, uint32_t depth, struct san_ulp_cq **out);
/** Entries of a queue for *depth* completions: at least one for receives and one for requests. */
static inline uint32_t
san_ulp_cq_depth(uint32_t depth)
{
	return rte_align32pow2(RTE_MAX(depth, 2u));
}
/** Create a queue in new memory of the caller, with *depth* entries. -EINVAL, -ENOMEM, -ENOSPC. */
int san_ulp_cq_create_at(struct san_ulp *ulp, uint32_t depth, struct san_cq *mem,
			 struct san_ulp_cq **out);
/**
 * Create a queue of the lcore's own: the lcore consumes its entries, see san_ulp_cq_next_own(). It
 * and its entries are in conf->mem, and it does not count against max_cqs. -EINVAL, -ENOMEM.
 */
int san_ulp_cq_create_own(struct san_ulp *ulp, uint32_t depth, struct san_ulp_cq **out);
/** Bytes of such a queue. */
size_t san_ulp_cq_own_bytes(uint32_t depth);
/** Take an own queue that got new entries; NULL: there is none. */
struct san_ulp_cq *san_ulp_cq_next_own(struct san_ulp *ulp);
/** True if san_ulp_cq_next_own() would return one. */
bool san_ulp_cq_has_own(const struct san_ulp *ulp);
/** -EBUSY: a queue pair uses it. */
int san_ulp_cq_destroy(struct san_ulp *ulp, struct san_ulp_cq *cq);
/** True if the queue belongs to this lcore. */
bool san_ulp_cq_is_of(const struct san_ulp *ulp, const struct san_ulp_cq *cq);
/**
 * Move a queue without queue pairs to another lcore, with the completions in it: it leaves one and
 * then joins the other. -EBUSY: a queue pair uses it; -ENOSPC.
 */
int san_ulp_cq_leave(struct san_ulp *ulp, struct san_ulp_cq *cq);
int san_ulp_cq_join(struct san_ulp *ulp, struct san_ulp_cq *cq);
/** Number of uses by queue pairs: two for one that uses it for sends and receives. */
uint32_t san_ulp_cq_nb_qps(const struct san_ulp_cq *cq);
/**
 * Keep the queue from being destroyed, and end that. For a user that is not a queue pair, but
 * completes work of applications here.
 */
void san_ulp_cq_hold(struct san_ulp_cq *cq);
void san_ulp_cq_drop(struct san_ulp_cq *cq);
/** ... and write a completion. False: the queue is full, or the rest is reserved. */
bool san_ulp_cq_give(struct san_ulp_cq *cq, const struct san_ulp_wc *wc);
/** Called by the consumer: take at most *n* completions, oldest first. One thread per CQ. */
uint32_t san_ulp_cq_poll(struct san_ulp_cq *cq, struct san_ulp_wc *wc, uint32_t n);

/**
 * A thread may sleep until the queue has entries. Each time it has new ones and its consumer armed
 * it (san_spsc_arm()), san_ulp_cq_wake_next() returns *waiter*, the caller's name for the thread to
 * wake; -1: stop watching.
 */
void san_ulp_cq_watch(struct san_ulp_cq *cq, int waiter);
int san_ulp_cq_waiter(const struct san_ulp_cq *cq);
/** Called by the consumer, if it is in this process: see san_spsc_arm(). */
bool san_ulp_cq_arm(struct san_ulp_cq *cq);
/** Next waiter to wake; -1: none. Call it after each burst of work. (AFC-19) */
int san_ulp_cq_wake_next(struct san_ulp *ulp);

/** Nothing more will come: san_ulp_cq_wake_next() returns every waiter. */
void san_ulp_cq_wake_all(struct san_ulp *ulp);

struct san_ulp_qp_conf {
	struct san_ulp_cq *send_cq, *recv_cq;
	uint32_t sq_depth, rq_depth; /**< powers of two */
	/** Application whose regions the peer may access; see san_ulp_mr_give(). */
	uint16_t owner;
	bool shares_recvs;  /**< it uses the receive queue of *recv_from*, not its own */
	uint32_t recv_from; /**< a queue pair that uses its own */
};
/**
 * -EINVAL, also without such a *recv_from*; -ENOSPC, -ENOMEM. If *recv_from* is destroyed first, no
 * receive is left to take.
 */
int san_ulp_qp_create(struct san_ulp *ulp, const struct san_ulp_qp_conf *conf, uint32_t *qpn);
/** Bytes of a queue pair with these depths. */
size_t san_ulp_qp_bytes(uint32_t sq_depth, uint32_t rq_depth);
/** Flushes what is left. -EBUSY while bound to a connection. */
int san_ulp_qp_destroy(struct san_ulp *ulp, uint32_t qpn);
/**
 * Prepare a queue pair to be connected (again): work posted from now on waits for the connection.
 * -EISCONN; -EBUSY: completions of its last connection have no room in their CQ yet.
 */
int san_ulp_qp_renew(struct san_ulp *ulp, uint32_t qpn);
/** The connection of *slot* to *peer* is open and carries this queue pair from now on. */
int san_ulp_qp_bind(struct san_ulp *ulp, uint32_t qpn, uint16_t slot, uint16_t pkey,
		    const struct san_ip *peer);
/** Bound: after the first failed request all others are flushed (RT-40). */
void san_ulp_qp_end_on_error(struct san_ulp *ulp, uint32_t qpn);
/**
 * Take a queue pair whose connection must end because of a failure; each is returned once.
 * SAN_QPN_NONE: none.
 */
uint32_t san_ulp_qp_next_failed(struct san_ulp *ulp);
/**
 * The connection has ended, and tl has completed everything: flush unsubmitted requests and the
 * receives. Work posted from now on is flushed at once, until the queue pair is bound again.
 * Receives that find their CQ full are flushed by san_ulp_qp_pump() as it is polled.
 */
void san_ulp_qp_unbind(struct san_ulp *ulp, uint32_t qpn);
/** Index of a queue pair in tables of *max_qps*; out of range for one of another lcore. */
static inline uint32_t
san_ulp_qp_index(const struct san_ulp_conf *conf, uint32_t qpn)
{
	return SAN_QPN_INDEX(qpn) - conf->first_qp;
}

/** Queue pair of a slot, or SAN_QPN_NONE. */
uint32_t san_ulp_qp_of(const struct san_ulp *ulp, uint16_t slot);
uint16_t san_ulp_qp_owner(const struct san_ulp *ulp, uint32_t qpn);
/** Its application has ended: its peer can no longer access regions of applications. */
void san_ulp_qp_disown(struct san_ulp *ulp, uint32_t qpn);
/** True if no work request is in progress and, after unbind, no receive is left to flush. */
bool san_ulp_qp_is_idle(const struct san_ulp *ulp, uint32_t qpn);
/** False: there is no such queue pair. */
bool san_ulp_qp_view(const struct san_ulp *ulp, uint32_t qpn, struct san_ulp_qp_view *out);
/** True if an uncompleted work request or receive names *key*. Scans all of them. */
bool san_ulp_qp_names_key(const struct san_ulp *ulp, uint32_t key);

/** Prefetch the queue pair with this index (san_ulp_qp_index()). */
void san_ulp_qp_prefetch(const struct san_ulp *ulp, uint32_t index);
/**
 * Post work requests, in order. Returns how many were accepted: fewer than *n* if the send queue or
 * its CQ has no room. Before the queue pair is bound they wait. The caller checks operation and
 * lengths.
 */
uint32_t san_ulp_wr_post(struct san_ulp *ulp, uint32_t qpn, const struct san_ulp_wr *wr, uint32_t n,
			 uint64_t now_ns);
uint32_t san_ulp_qp_post_recv(struct san_ulp *ulp, uint32_t qpn, const struct san_ulp_recv *r,
			      uint32_t n, uint64_t now_ns);

/** Express: result of san_ulp_place_express() for a packet, and what it keeps from earlier ones. */
struct san_ulp_express {
	struct san_ulp_qp *qp;
	const struct san_ulp_mr *mr; /**< region that the peer may push into; NULL: none is known */
	uint8_t *dst;                /**< pushes: destination of their bytes */
	uint8_t kind;                /**< enum san_wire_kind */
};
/** Call before the first of several packets that arrived together. */
void san_ulp_place_express_start(const struct san_ulp *ulp, uint16_t slot,
				 struct san_ulp_express *x);
/**
 * True if *p*, a whole unsolicited push in its turn, can be placed at once: key, bounds and rights
 * are valid, and a receive with room and a completion entry are there if needed. Changes nothing
 * that lasts.
 */
bool san_ulp_place_express(const struct san_ulp *ulp, const struct san_wire_pkt *p,
			   struct san_ulp_express *x);
/** Place and complete the push. *m* has one segment. */
void san_ulp_place_express_take(struct san_ulp *ulp, const struct san_ulp_express *x,
				const struct san_wire_pkt *p, struct rte_mbuf *m);
/** Place data of *r*. False: the general path finds the reason. */
bool san_ulp_place_express_data(struct san_ulp *ulp, struct san_tl_rxn *r,
				const struct san_wire_pkt *p, struct rte_mbuf *m);
/** Submit requests that waited for room in tl; once per loop. */
void san_ulp_qp_pump(struct san_ulp *ulp, uint64_t now_ns);
/** True if san_ulp_qp_pump() has something to do. */
bool san_ulp_qp_has_work(const struct san_ulp *ulp);
const struct san_ulp_stats *san_ulp_stats(const struct san_ulp *ulp);
const char *san_ulp_status_name(uint8_t status);
void san_ulp_check(const struct san_ulp *ulp);
