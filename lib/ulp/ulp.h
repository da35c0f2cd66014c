/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ULP_H
#define ULP_H

/**
 * @file
 * The upper layer of one lcore: memory regions and keys, queue pairs,
 * completion queues; work requests become transactions, packets become bytes
 * in their final place (SYS-2, RT-10, RT-11, RT-14, RT-23, RT-27, RT-30).
 *
 * Thread rule: the lcore's own, except san_ulp_cq_poll(), which is the
 * consuming side of a completion queue and belongs to one other thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "san_spsc.h"
#include "san_wr.h"
#include "tl.h"

#define SAN_ULP_DEPTH_MAX 4096       /**< entries of a send or receive queue: cookies name them */
#define SAN_ULP_NOBODY    UINT16_MAX /**< owner of what no program has; no application's number */

enum san_ulp_right {
	SAN_RIGHT_PUSH = 0x1,
	SAN_RIGHT_PULL = 0x2,
	SAN_RIGHT_ATOMIC = 0x4,
};

struct san_ulp_conf {
	uint32_t max_conns;
	uint32_t max_qps;
	uint32_t first_qp; /**< index of the first in their numbers, so that lcores have others */
	uint32_t max_cqs;
	uint32_t max_mrs;                /**< power of two */
	uint32_t max_stream_mrs;         /**< of streams, beside those; power of two */
	uint32_t pull_piece;             /**< bytes: longer pulls go in pieces (design, rule 6) */
	uint32_t guesses_per_conn;       /**< see ulp_guess.c */
	uint32_t guesses_per_hour;       /**< of a peer host and an application */
	uint32_t (*secret32)(void *arg); /**< keys */
	void *secret_arg;
	struct san_mem *mem; /**< for all of its state; NULL: the heap */
};

struct san_ulp_stats {
	uint64_t nb_wrs, nb_wcs;
	uint64_t nb_express_rx; /**< pushes that express took */
	uint64_t nb_placed_bytes;
	uint64_t nb_rnr; /**< pushReq refused: no receive or no CQ slot */
	uint64_t nb_key_errors, nb_bounds_errors, nb_rights_errors, nb_revoked;
	uint64_t nb_guessers; /**< connections that ended for them */
};

/** What was transferred, and completed without an error: messages, and bytes of programs. */
struct san_ulp_traffic {
	uint64_t nb_tx, tx_bytes; /**< pushes of ours, pulls of the peer's */
	uint64_t nb_rx, rx_bytes; /**< the other way round */
};

static inline void
san_ulp_traffic_add(struct san_ulp_traffic *sum, const struct san_ulp_traffic *t)
{
	sum->nb_tx += t->nb_tx;
	sum->tx_bytes += t->tx_bytes;
	sum->nb_rx += t->nb_rx;
	sum->rx_bytes += t->rx_bytes;
}

/** A queue pair as operators see it. */
struct san_ulp_qp_view {
	uint32_t sq_depth, rq_depth;
	uint32_t nb_requests; /**< taken from the program and not completed */
	uint32_t nb_waiting;  /**< of those, not begun: tl has no room for them */
	uint32_t nb_recvs;    /**< receives that nothing came for yet */
	bool is_bound;        /**< a connection carries it */
	struct san_ulp_traffic traffic;
};

struct san_ulp;
struct san_ulp_cq;

void san_ulp_conf_default(struct san_ulp_conf *conf);
int san_ulp_create(const struct san_ulp_conf *conf, struct san_ulp **out);
void san_ulp_destroy(struct san_ulp *ulp);
/** It lay parked in conf->mem: functions are those of *conf*, and nobody waits any more. */
void san_ulp_resume(struct san_ulp *ulp, const struct san_ulp_conf *conf);
/** Second half of construction: tl exists only after ulp does. */
void san_ulp_set_tl(struct san_ulp *ulp, struct san_tl *tl, struct san_pdl *pdl);

/* ---- regions ---- */

/**
 * Register memory for remote access: the remote side names bytes by
 * *base* + offset, *base* being what it is told (our address of it).
 * -ENOSPC: no free region; -EINVAL.
 */
int san_ulp_mr_add(struct san_ulp *ulp, void *addr, uint64_t len, uint64_t base, uint8_t rights,
		   uint16_t pkey, uint32_t *key);
/** The same region with the same *key* on another lcore. -EEXIST: its place is taken. */
int san_ulp_mr_copy(struct san_ulp *ulp, void *addr, uint64_t len, uint64_t base, uint8_t rights,
		    uint16_t pkey, uint32_t key);
/** The key dies at once: later accesses get ACCESS, accesses under way REVOKED. -ENOENT. */
int san_ulp_mr_del(struct san_ulp *ulp, uint32_t key);
/** It is *owner*'s; regions are nobody's (0) until then. -ENOENT. */
int san_ulp_mr_give(struct san_ulp *ulp, uint32_t key, uint16_t owner);
/**
 * Where *len* bytes lie that *owner* calls *addr*, in its region *key*; NULL: it has no such
 * region, or not there.
 */
void *san_ulp_mr_find(const struct san_ulp *ulp, uint32_t key, uint16_t owner, uint64_t addr,
		      uint32_t len);
/** It is about to go, or not after all: new work of its owner finds it no more, remote sides do. */
void san_ulp_mr_close(struct san_ulp *ulp, uint32_t key, bool closing);
/**
 * Register *addr* for the peer of *qpn*, which is bound, alone: bytes are named by their offset.
 * These regions have places and keys of their own, so that they neither take those of programs
 * nor lack any because of them. (AFC-24)
 *
 * @return
 *   0, -ENOSPC, -EINVAL.
 */
int san_ulp_mr_add_stream(struct san_ulp *ulp, uint32_t qpn, void *addr, uint64_t len,
			  uint8_t rights, uint32_t *key);
/** Regions in use. */
uint32_t san_ulp_nb_mrs(const struct san_ulp *ulp);

/* ---- queues ---- */

int san_ulp_cq_create(struct san_ulp *ulp, uint32_t depth, struct san_ulp_cq **out);
/** Entries of a queue that is to hold *depth*: one for receives and one for requests at least. */
static inline uint32_t
san_ulp_cq_depth(uint32_t depth)
{
	return rte_align32pow2(RTE_MAX(depth, 2u));
}
/** In memory of the caller's, new, with so many entries. -EINVAL, -ENOMEM, -ENOSPC. */
int san_ulp_cq_create_at(struct san_ulp *ulp, uint32_t depth, struct san_cq *mem,
			 struct san_ulp_cq **out);
/**
 * The lcore's own: what comes into it is the lcore's to take, see san_ulp_cq_next_own(). It lies
 * in conf->mem, with its entries, and takes no place of max_cqs. -EINVAL, -ENOMEM.
 */
int san_ulp_cq_create_own(struct san_ulp *ulp, uint32_t depth, struct san_ulp_cq **out);
/** Bytes that such a queue takes. */
size_t san_ulp_cq_own_bytes(uint32_t depth);
/** An own queue that has new entries, each time once; NULL: there is none. */
struct san_ulp_cq *san_ulp_cq_next_own(struct san_ulp *ulp);
/** Would that return one? */
bool san_ulp_cq_has_own(const struct san_ulp *ulp);
/** -EBUSY: a queue pair uses it. */
int san_ulp_cq_destroy(struct san_ulp *ulp, struct san_ulp_cq *cq);
/** Is it one of this lcore's? */
bool san_ulp_cq_is_of(const struct san_ulp *ulp, const struct san_ulp_cq *cq);
/**
 * A queue without queue pairs may change its lcore: it leaves one and is then added to the
 * other, completions in it and all. -EBUSY: a queue pair uses it; -ENOSPC.
 */
int san_ulp_cq_leave(struct san_ulp *ulp, struct san_ulp_cq *cq);
int san_ulp_cq_join(struct san_ulp *ulp, struct san_ulp_cq *cq);
/** Uses of it by queue pairs: two for one that sends and receives with it. */
uint32_t san_ulp_cq_nb_qps(const struct san_ulp_cq *cq);
/**
 * Who is no queue pair but completes here what programs posted keeps it from being destroyed, as
 * a queue pair does, until it drops it.
 */
void san_ulp_cq_hold(struct san_ulp_cq *cq);
void san_ulp_cq_drop(struct san_ulp_cq *cq);
/** ... and gives it a completion. False: it is full, or what is left is promised. */
bool san_ulp_cq_give(struct san_ulp_cq *cq, const struct san_ulp_wc *wc);
/** The consumer: at most *n* completions, oldest first. One thread per CQ. */
uint32_t san_ulp_cq_poll(struct san_ulp_cq *cq, struct san_ulp_wc *wc, uint32_t n);

/**
 * Somebody may sleep until the queue has entries. Each time it has new ones and its consumer
 * asked for it (san_spsc_arm()), san_ulp_cq_rung() tells *waiter*, the caller's name for who
 * is to be woken; -1: nobody any more.
 */
void san_ulp_cq_watch(struct san_ulp_cq *cq, int waiter);
int san_ulp_cq_waiter(const struct san_ulp_cq *cq);
/** The consumer, if it is in this process: see san_spsc_arm(). */
bool san_ulp_cq_arm(struct san_ulp_cq *cq);
/** Next waiter to wake, or -1: nobody. To be asked once after each burst of work. (AFC-19) */
int san_ulp_cq_rung(struct san_ulp *ulp);

/** Nothing will come any more: san_ulp_cq_rung() tells everybody who waits. */
void san_ulp_cq_ring_all(struct san_ulp *ulp);

struct san_ulp_qp_conf {
	struct san_ulp_cq *send_cq, *recv_cq;
	uint32_t sq_depth, rq_depth; /**< powers of two */
	uint64_t cookie;
	uint16_t owner; /**< whose regions its peer may reach; see san_ulp_mr_give() */
};
int san_ulp_qp_create(struct san_ulp *ulp, const struct san_ulp_qp_conf *conf, uint32_t *qpn);
/** Bytes that one with such depths takes. */
size_t san_ulp_qp_bytes(uint32_t sq_depth, uint32_t rq_depth);
/** Flushes what is left. -EBUSY while bound to a connection. */
int san_ulp_qp_destroy(struct san_ulp *ulp, uint32_t qpn);
/**
 * It is about to be connected (again): from now on what is posted waits for the
 * connection. -EISCONN; -EBUSY: completions of its last connection find no room
 * in their CQ yet.
 */
int san_ulp_qp_renew(struct san_ulp *ulp, uint32_t qpn);
/** The connection of *slot* to *peer* is open and carries this queue pair from now on. */
int san_ulp_qp_bind(struct san_ulp *ulp, uint32_t qpn, uint16_t slot, uint16_t pkey,
		    const struct san_ip *peer);
/** Bound: after the first request in error all others are flushed (RT-40). */
void san_ulp_qp_end_on_error(struct san_ulp *ulp, uint32_t qpn);
/** A queue pair whose connection must end for that, once each; SAN_QPN_NONE: there is none. */
uint32_t san_ulp_next_failed(struct san_ulp *ulp);
/**
 * It is gone (tl has completed everything): flush what was not submitted, and the receives.
 * What is posted from now on is flushed at once, until it is bound again; receives that find
 * their CQ full are flushed by san_ulp_pump() as it is polled.
 */
void san_ulp_qp_unbind(struct san_ulp *ulp, uint32_t qpn);
/** Place of a queue pair in tables of *max_qps*; not below that for another lcore's. */
static inline uint32_t
san_ulp_qp_index(const struct san_ulp_conf *conf, uint32_t qpn)
{
	return SAN_QPN_INDEX(qpn) - conf->first_qp;
}

/** Queue pair of a slot, or SAN_QPN_NONE. */
uint32_t san_ulp_qp_of(const struct san_ulp *ulp, uint16_t slot);
uint16_t san_ulp_qp_owner(const struct san_ulp *ulp, uint32_t qpn);
/** Its program has gone: from now on its peer reaches no region of programs. */
void san_ulp_qp_disown(struct san_ulp *ulp, uint32_t qpn);
uint64_t san_ulp_qp_cookie(const struct san_ulp *ulp, uint32_t qpn);
/** No work request under way, and after unbind no receive left to flush. */
bool san_ulp_qp_is_idle(const struct san_ulp *ulp, uint32_t qpn);
/** False: there is no such queue pair. */
bool san_ulp_qp_view(const struct san_ulp *ulp, uint32_t qpn, struct san_ulp_qp_view *out);
/** Does a work request or receive that has not completed name *key*? Looks at all of them. */
bool san_ulp_names_key(const struct san_ulp *ulp, uint32_t key);

/** The queue pair in that place (san_ulp_qp_index()) is the next one that is looked at. */
void san_ulp_qp_prefetch(const struct san_ulp *ulp, uint32_t index);
/**
 * Work requests, in order. Returns how many were taken: fewer than *n* when
 * the send queue or its CQ has no room. Before it is bound they wait. Operation
 * and lengths are the caller's to check.
 */
uint32_t san_ulp_post(struct san_ulp *ulp, uint32_t qpn, const struct san_ulp_wr *wr, uint32_t n,
		      uint64_t now_ns);
uint32_t san_ulp_post_recv(struct san_ulp *ulp, uint32_t qpn, const struct san_ulp_recv *r,
			   uint32_t n, uint64_t now_ns);

/** Express: what san_ulp_express() has found of a packet, and what it knows from those before. */
struct san_ulp_express {
	struct san_ulp_qp *qp;
	const struct san_ulp_mr *mr; /**< the peer may push into it; NULL: none is known */
	uint8_t *dst;                /**< pushes: where their bytes go */
	uint8_t kind;                /**< enum san_wire_kind */
};
/** Before the first of some packets that came together. */
void san_ulp_express_start(const struct san_ulp *ulp, uint16_t slot, struct san_ulp_express *x);
/**
 * Can *p*, an unsolicited push that is whole and in its turn, be taken at once: key, bounds and
 * rights, a receive with room and a completion? Changes nothing that lasts.
 */
bool san_ulp_express(const struct san_ulp *ulp, const struct san_wire_pkt *p,
		     struct san_ulp_express *x);
/** Place it, and complete it. *m* is of one segment. */
void san_ulp_express_take(struct san_ulp *ulp, const struct san_ulp_express *x,
			  const struct san_wire_pkt *p, struct rte_mbuf *m);
/** Submit what waited for room in tl; once per loop. */
void san_ulp_pump(struct san_ulp *ulp, uint64_t now_ns);
/** Would that do something? */
bool san_ulp_has_work(const struct san_ulp *ulp);
const struct san_ulp_stats *san_ulp_stats(const struct san_ulp *ulp);
const char *san_ulp_status_name(uint8_t status);
void san_ulp_check(const struct san_ulp *ulp);

#endif /* ULP_H */
