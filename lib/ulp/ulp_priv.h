/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Definitions shared by the files of this folder: the objects behind ulp.h. They belong to one
 * lcore; only the consumer's half of a completion queue belongs to another thread. (SYS-2)
 */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "san_assert.h"
#include "san_line.h"
#include "san_spsc.h"
#include "ulp.h"

#define SAN_ULP_MRS_MAX (1u << 20) /**< both kinds: region and receive fit into ulp_ref */
#define SAN_ULP_QPS_MAX (1u << SAN_QPN_INDEX_BITS)
#define SAN_ULP_CQ_MAX  (1u << 24)
#define SAN_ULP_CQ_OWN  INT_MAX /**< waiter of an own queue: it is listed for the lcore */

#define SAN_ULP_KEY_STREAM (1u << 31) /**< set in keys of streams' regions only */

/*
 * ---- scatter-gather lists (RT-10, RT-11) ----
 *
 * Access to the bytes of a transaction by offset. A list remembers the element used last, so
 * ascending offsets cost O(1) each. Any other order is allowed too, for resends.
 */

struct san_ulp_sgl {
	const struct rtsan_sge *sge;
	uint32_t start; /**< offset at which element *idx* starts */
	uint16_t idx;   /**< element used last */
	uint16_t nb_sge;
};

/** *sge* must stay valid while the list is used. */
static inline void
san_ulp_sgl_init(struct san_ulp_sgl *l, const struct rtsan_sge *sge, uint32_t nb_sge)
{
	*l = (struct san_ulp_sgl){.sge = sge, .nb_sge = (uint16_t)nb_sge};
}

/** Likewise over *mine*, which gets a copy of the first RTSAN_SGE_MAX elements of *sge*. */
static inline void
san_ulp_sgl_copy(struct san_ulp_sgl *l, struct rtsan_sge mine[RTSAN_SGE_MAX],
		 const struct rtsan_sge *sge, uint32_t nb_sge)
{
	uint32_t i, n = RTE_MIN(nb_sge, (uint32_t)RTSAN_SGE_MAX);

	mine[0] = sge[0];
	for (i = 1; unlikely(i < n); i++)
		mine[i] = sge[i];
	san_ulp_sgl_init(l, mine, n);
}

/** Total length. */
static inline uint64_t
san_ulp_sgl_len(const struct san_ulp_sgl *l)
{
	uint64_t len = 0;
	uint32_t i;

	for (i = 0; i < l->nb_sge; i++)
		len += l->sge[i].length;
	return len;
}

/** Address of the bytes if the list has one element that contains them, as usual; or NULL. */
static inline uint8_t *
san_ulp_sgl_only(const struct san_ulp_sgl *l, uint32_t offset, uint32_t len)
{
	bool has = l->nb_sge == 1 && (uint64_t)offset + len <= l->sge->length;

	return likely(has) ? (uint8_t *)l->sge->addr + offset : NULL;
}

/** Copy out of the list; returns the bytes copied, fewer than *len* at its end. */
uint32_t san_ulp_sgl_gather(struct san_ulp_sgl *l, uint32_t offset, void *dst, uint32_t len);
/** san_ulp_sgl_scatter() into a list of any form. */
uint32_t san_ulp_sgl_scatter_any(struct san_ulp_sgl *l, uint32_t offset, const void *src,
				 uint32_t len);
/** Copy into the list; returns the same. */
static inline uint32_t
san_ulp_sgl_scatter(struct san_ulp_sgl *l, uint32_t offset, const void *src, uint32_t len)
{
	uint8_t *only = san_ulp_sgl_only(l, offset, len);

	if (unlikely(only == NULL))
		return san_ulp_sgl_scatter_any(l, offset, src, len);
	memcpy(only, src, len);
	return len;
}
/** Copy *len* bytes from *off* of a packet of any number of segments into the list; likewise. */
uint32_t san_ulp_sgl_scatter_mbuf(struct san_ulp_sgl *l, uint32_t offset,
				  const struct rte_mbuf *m, uint16_t off, uint16_t len);

/* ---- objects ---- */

/** A region. Its slot in the table is part of its key. */
struct san_ulp_mr {
	uint8_t *addr;
	uint64_t base; /**< remote address of the first byte */
	uint64_t len;
	uint32_t key; /**< of the last region in this slot: never used twice in a row */
	uint32_t gen; /**< counts the regions of this slot; not 0 while in use */
	uint32_t qpn; /**< a stream's: only the peer of this queue pair may access it */
	uint16_t pkey;
	uint16_t owner; /**< application whose work may name it */
	uint8_t rights;
	bool used;
	bool closing; /**< new work of its owner cannot name it any more */
};

TAILQ_HEAD(san_ulp_qps, san_ulp_qp);

/**
 * Lcore's side of a completion queue. nb_reserved counts entries reserved for work in progress, so
 * the ring cannot overrun: reserved + not yet polled ≤ depth.
 */
struct san_ulp_cq {
	struct san_cq *mem;
	struct san_spsc_prod q;
	uint32_t nb_reserved;
	uint32_t nb_qps;      /**< uses; a queue pair using it for both counts twice */
	uint32_t nb_holds;    /**< those that are not queue pairs: see san_ulp_cq_hold() */
	uint32_t nb_recv_qps; /**< those whose receives complete here */
	bool is_ours;         /**< *mem* belongs to us */
	/* notification of a sleeping consumer */
	bool is_notified; /**< on the list ulp->rung or ulp->own_notified */
	int waiter;       /**< see san_ulp_cq_watch(), or SAN_ULP_CQ_OWN */
	struct san_ulp *ulp;
	struct san_ulp_cq *notified_next;
	LIST_ENTRY(san_ulp_cq) own_link;   /**< on the list of own queues */
	struct san_ulp_qps full;           /**< ended queue pairs, whose receives wait */
	TAILQ_ENTRY(san_ulp_cq) full_link; /**< on a list while *full* is not empty */
	/* for san_ulp_cq_poll(), if the consumer is in this process */
	_Alignas(SAN_LINE) struct san_spsc_cons consumer;
};

/**
 * A work request held by the lcore, by value (RULE-14). Most requests touch two cache lines
 * of it. With many connections each entry is new to the cache.
 */
struct san_ulp_wqe {
	struct san_tl_req req; /**< the complete request to tl */
	uint64_t wr_id;
	struct san_ulp_sgl sgl; /**< list over *sge* or over *inl* */
	uint32_t submitted;     /**< bytes submitted to tl: pulls are submitted by pieces */
	uint16_t nb_out;        /**< pieces that tl has not completed */
	uint8_t status;         /**< first error */
	uint8_t wc_op:5;        /**< enum rtsan_wc_opcode */
	bool is_signaled:1;
	bool whole:1; /**< submitted completely: off the queue */
	bool used:1;
	union {
		struct rtsan_sge sge[RTSAN_SGE_MAX];
		uint8_t data[RTSAN_INLINE_MAX];
	};
	union {
		struct {
			uint64_t operand, swap; /**< of an atomic */
		};
		struct rtsan_sge inl; /**< *data* as a list of one element */
	};
};
static_assert(sizeof(struct san_ulp_wqe) == 144, "doc/architecture.md: what a connection costs");

enum san_ulp_rqe_state {
	SAN_RQE_FREE = 0,
	SAN_RQE_POSTED, /**< on the receive queue */
	SAN_RQE_TAKEN,  /**< in use by a push; its CQ entry is reserved */
};

struct san_ulp_rqe {
	uint64_t wr_id;
	struct rtsan_sge sge[RTSAN_SGE_MAX];
	struct san_ulp_sgl sgl;
	uint64_t room;  /**< bytes */
	uint32_t seq;   /**< order of posting */
	uint32_t gen;   /**< counts uses; not 0 while taken */
	uint16_t taker; /**< while taken: SAN_QPN_INDEX() of the queue pair */
	uint8_t state;  /**< enum san_ulp_rqe_state */
};

/** A receive queue: posted and unused receives, in order. Others may share it. (RT-44) */
struct san_ulp_rq {
	struct san_ulp_rqe *rqes;
	uint16_t *queue; /**< *depth* indices; those of free entries follow: san_ulp_rq_free() */
	uint32_t head, tail, depth;
	uint32_t nb_free;
	uint32_t seq;
	uint32_t nb_set_aside;            /**< receives reserved for solicited sends (RULE-4) */
	STAILQ_HEAD(, san_ulp_qp) hungry; /**< if it is shared: those that got no reservation */
};

static inline uint16_t *
san_ulp_rq_free(const struct san_ulp_rq *rq)
{
	return rq->queue + rq->depth;
}

enum san_ulp_qp_state {
	SAN_ULP_QP_IDLE = 0, /**< not bound: posted work waits */
	SAN_ULP_QP_BOUND,    /**< carried by a connection */
	SAN_ULP_QP_ENDED,    /**< its connection has ended: everything is flushed */
};

/** List of san_ulp_qp_pump() that has the queue pair. */
enum san_ulp_qp_list {
	SAN_ULP_UNLISTED = 0,
	SAN_ULP_IN_PUMP,   /**< ulp->pump: has work to submit */
	SAN_ULP_IN_FULL,   /**< recv_cq->full */
	SAN_ULP_IN_FAILED, /**< ulp->failed: its connection must end */
};

struct san_ulp_qp {
	uint32_t qpn;
	uint16_t slot; /**< while bound */
	uint16_t pkey;
	uint16_t owner;
	uint8_t state;                /**< enum san_ulp_qp_state */
	bool blocked;                 /**< tl had no room for the head of *sq* */
	bool ends:1;                  /**< its connection ends with the first error (RT-40) */
	bool failed:1;                /**< that happened: further completions are flushed */
	bool is_known;                /**< its peer has named a region correctly */
	bool is_shared:1;             /**< others use *own_rq* */
	bool is_hungry:1;             /**< on the list rq->hungry */
	uint8_t listed;               /**< enum san_ulp_qp_list */
	TAILQ_ENTRY(san_ulp_qp) link; /**< on that list */
	struct san_ulp_cq *send_cq, *recv_cq;
	/* send queue: requests that tl has not accepted completely, in order */
	struct san_ulp_wqe *wqes;
	uint16_t *sq;
	uint16_t *sq_free;
	uint32_t sq_head, sq_tail, sq_depth;
	uint32_t nb_sq_free;
	uint64_t nb_tx, tx_bytes; /**< struct san_ulp_traffic, next to fields used with it */
	struct san_ulp_rq *rq;    /**< its own one, or that of another queue pair */
	struct san_ulp_rq own_rq;
	STAILQ_ENTRY(san_ulp_qp) hungry_link;
	uint64_t nb_rx, rx_bytes;
	/* see ulp_guess.c */
	struct san_ip peer;
	uint32_t nb_guesses;
	uint32_t nb_set_aside; /**< receives of *rq*, as there */
};

static inline void
san_ulp_count_rx(struct san_ulp_qp *qp, uint64_t bytes)
{
	qp->nb_rx++;
	qp->rx_bytes += bytes;
}

struct san_ulp {
	struct san_ulp_conf conf;
	struct san_tl *tl;
	struct san_ulp_mr *mrs; /**< of applications, then of streams */
	uint32_t nb_mrs, nb_stream_mrs;
	struct san_ulp_cq **cqs;
	uint32_t nb_cqs;
	struct san_ulp_qp **qps; /**< by san_ulp_qp_index() */
	uint16_t *qp_gens;       /**< how often each index was used before */
	uint32_t next_qp;        /**< where the search for a free index starts */
	uint32_t nb_qps;
	struct san_ulp_qp **qp_of_slot; /**< NULL: none is bound */
	struct san_ulp_qps pump;        /**< have work to submit */
	struct san_ulp_qps failed;
	TAILQ_HEAD(, san_ulp_cq) fulls;  /**< CQs for whose room ended queue pairs wait */
	struct san_ulp_cq *notified;     /**< watched queues with new entries */
	struct san_ulp_cq *own_notified; /**< own queues with new entries */
	LIST_HEAD(, san_ulp_cq) owns;
	struct san_ulp_guesser *guessers;
	uint32_t guess_seed;
	struct san_ulp_stats stats;
};

/* ---- ulp_mr.c ---- */

/** The only slot where the region of *key* can be. */
static inline uint32_t
san_ulp_mr_index(const struct san_ulp *ulp, uint32_t key)
{
	if (unlikely((key & SAN_ULP_KEY_STREAM) != 0))
		return ulp->conf.max_mrs + (key & (ulp->conf.max_stream_mrs - 1));
	return key & (ulp->conf.max_mrs - 1);
}

/**
 * True if the peer of *qp* is known and may access these bytes; *out* is their region. Counts
 * nothing: if false, san_ulp_mr_access() decides.
 */
bool san_ulp_mr_may(const struct san_ulp *ulp, const struct san_ulp_qp *qp, uint32_t key,
		    uint64_t addr, uint64_t len, enum rtsan_access right,
		    struct san_ulp_mr **out);
/** Region named by *r* with key, address and length, for *right*. SAN_ST_OK, SAN_ST_ACCESS. */
uint8_t san_ulp_mr_access(struct san_ulp *ulp, const struct san_tl_rxn *r, uint64_t len,
			  struct san_ulp_qp *qp, enum rtsan_access right,
			  struct san_ulp_mr **out);

/** True if the bytes are inside. addr + len may wrap, so only differences are compared. */
static inline bool
san_ulp_mr_has(const struct san_ulp_mr *mr, uint64_t addr, uint64_t len)
{
	return addr >= mr->base && addr - mr->base <= mr->len && len <= mr->len - (addr - mr->base);
}

/** Local address of remote address *addr*. */
static inline uint8_t *
san_ulp_mr_at(const struct san_ulp_mr *mr, uint64_t addr)
{
	return mr->addr + (addr - mr->base);
}

/* ---- ulp_guess.c ---- */

int san_ulp_guess_init(struct san_ulp *ulp);
/** True if the peer's host has spent its budget of refusals for this application. */
bool san_ulp_guess_is_over(const struct san_ulp *ulp, const struct san_ulp_qp *qp);
/** The peer was refused: one refusal too many ends its connection. */
void san_ulp_guess(struct san_ulp *ulp, struct san_ulp_qp *qp);

/* ---- ulp_cq.c ---- */

/** True if there is an entry besides *left* more that stay free. */
static inline bool
san_ulp_cq_has(struct san_ulp_cq *cq, uint32_t left)
{
	uint32_t taken = cq->nb_reserved + left;

	return san_spsc_room_seen(&cq->q) > taken ||
		san_spsc_room_now(&cq->q, &cq->mem->head) > taken;
}

/** Reserve entries for at most *n* requests, but not the last one if receives need it. */
static inline uint32_t
san_ulp_cq_reserve_send(struct san_ulp_cq *cq, uint32_t n)
{
	uint32_t taken = cq->nb_reserved + (cq->nb_recv_qps != 0);
	uint32_t room = san_spsc_room_seen(&cq->q);

	if (room < taken + n)
		room = san_spsc_room_now(&cq->q, &cq->mem->head);
	n = room > taken ? RTE_MIN(n, room - taken) : 0;
	cq->nb_reserved += n;
	return n;
}

/** Reserve an entry for a receive; false: full. */
bool san_ulp_cq_reserve_recv(struct san_ulp_cq *cq);
/** The queue is watched and has a new entry. */
void san_ulp_cq_notify(struct san_ulp_cq *cq);
/** The entry *i* after the next one. */
static inline struct san_ulp_wc *
san_ulp_cq_at(struct san_ulp_cq *cq, uint32_t i)
{
	return &cq->mem->wc[(cq->q.tail + i) & cq->q.mask];
}

/** Of *nb_promised* reserved entries *nb_used* are written; the others are released. */
static inline void
san_ulp_cq_settle(struct san_ulp_cq *cq, uint32_t nb_promised, uint32_t nb_used)
{
	SAN_ASSERT(cq->nb_reserved >= nb_promised);
	cq->nb_reserved -= nb_promised;
	if (nb_used == 0)
		return;
	san_spsc_push(&cq->q, &cq->mem->tail, nb_used);
	if (unlikely(cq->waiter >= 0))
		san_ulp_cq_notify(cq);
}

/** Release a reserved entry: the work completed silently. */
static inline void
san_ulp_cq_unreserve(struct san_ulp_cq *cq)
{
	san_ulp_cq_settle(cq, 1, 0);
}

/** Write a reserved entry. */
static inline void
san_ulp_cq_put(struct san_ulp_cq *cq, const struct san_ulp_wc *wc)
{
	*san_ulp_cq_at(cq, 0) = *wc;
	san_ulp_cq_settle(cq, 1, 1);
}

/** Verify the invariants of one queue. */
void san_ulp_cq_check(const struct san_ulp *ulp, const struct san_ulp_cq *cq);
void san_ulp_cq_free(struct san_ulp *ulp, struct san_ulp_cq *cq);

/* ---- ulp_qp.c ---- */

static inline struct san_ulp_qp *
san_ulp_qp_get(const struct san_ulp *ulp, uint32_t qpn)
{
	uint32_t index = san_ulp_qp_index(&ulp->conf, qpn);
	struct san_ulp_qp *qp = index < ulp->conf.max_qps ? ulp->qps[index] : NULL;

	return qp != NULL && qp->qpn == qpn ? qp : NULL;
}

static inline struct san_ulp_qp *
san_ulp_qp_at(const struct san_ulp *ulp, uint16_t slot)
{
	return ulp->qp_of_slot[slot];
}

static inline uint32_t
san_ulp_qp_nb_posted(const struct san_ulp_qp *qp)
{
	return qp->rq->tail - qp->rq->head;
}

/**
 * The queue pair has failed: san_ulp_qp_next_failed() returns it to the owner of its
 * connection.
 */
void san_ulp_qp_fail(struct san_ulp *ulp, struct san_ulp_qp *qp);
/** List the queue pair for san_ulp_qp_pump(). */
void san_ulp_qp_mark(struct san_ulp *ulp, struct san_ulp_qp *qp);
/** Take the first posted receive and reserve a CQ entry; NULL: none, or the CQ is full. */
struct san_ulp_rqe *san_ulp_qp_take_recv(struct san_ulp_qp *qp);
/** Undo that: the receive returns to its place at the head of the queue. */
void san_ulp_qp_return_recv(struct san_ulp *ulp, struct san_ulp_qp *qp, struct san_ulp_rqe *e);
/** A receive, or the reservation of one, has returned: others that share the queue may want it. */
void san_ulp_qp_returned(struct san_ulp *ulp, struct san_ulp_rq *rq);
/** Complete a taken receive: *wc* needs op, status, byte_len, imm. */
void san_ulp_qp_complete_recv(struct san_ulp *ulp, struct san_ulp_qp *qp, struct san_ulp_rqe *e,
			      struct san_ulp_wc *wc);
/** Number of receives that pushes of *qp* use. */
uint32_t san_ulp_qp_nb_taken(const struct san_ulp_qp *qp);
void san_ulp_qp_check(const struct san_ulp *ulp, const struct san_ulp_qp *qp);

/* ---- ulp_wr.c ---- */

/** Submit from the head of the send queue until it is empty or tl has no room. */
void san_ulp_wr_submit(struct san_ulp *ulp, struct san_ulp_qp *qp, uint64_t now_ns);
/** Complete the requests that tl was not given, in order. */
void san_ulp_wr_flush(struct san_ulp *ulp, struct san_ulp_qp *qp);
