/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Definitions shared by the files of lib/tl only. */

#include "san_assert.h"
#include "san_seq.h"
#include "tl.h"

#define SAN_TL_SLOT(rsn) ((rsn) & (SAN_TL_N_MAX - 1))

/* ---- states: tl_txn.c has the tables ---- */

/** For each state, a bit for each state that may follow it. */
extern const uint8_t san_tl_txn_next[], san_tl_txn_next_rxn[];

/** The only place where the state of an initiator's record changes, after its birth as POSTED. */
static inline void
san_tl_txn_set(struct san_tl_txn *t, enum san_txn_state to)
{
	SAN_ASSERT((san_tl_txn_next[t->state] & 1u << to) != 0);
	t->state = (uint8_t)to;
}

/** Likewise of a target's record, which is born as AHEAD. Counts refusals. */
static inline void
san_tl_rxn_set(struct san_tl *tl, struct san_tl_rxn *r, enum san_rxn_state to)
{
	SAN_ASSERT((san_tl_txn_next_rxn[r->state] & 1u << to) != 0);
	tl->stats.nb_refused += to == SAN_RXN_REFUSED;
	r->state = (uint8_t)to;
}

/* ---- small helpers ---- */

static inline struct san_pdl_conn *
san_tl_pdl_conn(struct san_tl *tl, const struct san_tl_conn *tc)
{
	return &tl->pdl->conns[tc->slot];
}

/** True if the connection is odd for this reason. See enum san_odd. */
static inline bool
san_tl_is_odd(const struct san_tl *tl, const struct san_tl_conn *tc, enum san_odd why)
{
	return (tl->pdl->conns[tc->slot].odd & (uint8_t)why) != 0;
}

static inline void
san_tl_odd_put(struct san_tl *tl, const struct san_tl_conn *tc, enum san_odd why, bool holds)
{
	san_pdl_odd_put(&san_tl_pdl_conn(tl, tc)->odd, why, holds);
}

/** Initiator's live record of *rsn*, or NULL. */
static inline struct san_tl_txn *
san_tl_txn_at(const struct san_tl_conn *tc, uint32_t rsn)
{
	struct san_tl_txn *t = tc->txns[rsn & tc->txn_mask];

	return t != NULL && t->rsn == rsn ? t : NULL;
}

/**
 * True if its request is still to be sent. The request of a solicited push is sent even if the push
 * was given up.
 */
static inline bool
san_tl_owes_request(const struct san_tl_txn *t)
{
	if (t->req_sent || (t->req.type == SAN_TL_PUSH && !t->solicited))
		return false;
	return t->solicited || t->state == SAN_TXN_POSTED;
}

/** True if we ever used *rsn* (RT-32). */
static inline bool
san_tl_was_issued(const struct san_tl_conn *tc, uint32_t rsn)
{
	uint32_t age = tc->rsn_next - rsn;

	return age != 0 && age < (1u << 31) && age <= tc->nb_issued;
}

static inline uint8_t
san_tl_kind(const struct san_wire_pkt *p)
{
	return (p->flags & SAN_F_KIND) >> SAN_F_KIND_SHIFT;
}

static inline bool
san_tl_is_push_data(uint8_t op)
{
	return op == SAN_OP_PUSH_SLCTD_DATA || op == SAN_OP_PUSH_UNSLCTD_DATA ||
		op == SAN_OP_PUSH_PACKED;
}

/** Bytes of push data in a packet: its payload without the immediate. */
static inline uint32_t
san_tl_data_len(const struct san_wire_pkt *p)
{
	return p->payload_len - (uint32_t)san_wire_imm_len(p->flags);
}

/** True if *rsn* has its turn: it need not wait for any RSN below. */
static inline bool
san_tl_in_turn(const struct san_tl_conn *tc, uint32_t rsn)
{
	return !tc->peer.ordered || rsn == tc->rx_base;
}

/* ---- tl.c ---- */

/** Make the connection's timer fire no later than *at_ns*. */
static inline void
san_tl_deadline(struct san_tl *tl, struct san_tl_conn *tc, uint64_t at_ns)
{
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);

	if (at_ns >= c->tl_deadline_ns)
		return;
	c->tl_deadline_ns = at_ns;
	san_pdl_conn_arm(tl->pdl, c);
}

/** When a wait for a receiver that is not ready ends; UINT16_MAX ms: never. (RULE-4) */
static inline uint64_t
san_tl_rnr_end_ns(uint64_t since_ns, uint16_t ms)
{
	return ms == UINT16_MAX ? UINT64_MAX : since_ns + ms * SAN_NS_PER_MS;
}

/* ---- tl_host.c ---- */

/** 0 or -ENOMEM; san_tl_destroy() frees the tables. */
int san_tl_host_init(struct san_tl *tl);
/** Join the record of its peer host in its partition when it opens, and leave it at the end. */
void san_tl_host_join(struct san_tl *tl, struct san_tl_conn *tc);
void san_tl_host_leave(struct san_tl *tl, struct san_tl_conn *tc);
void san_tl_host_check(const struct san_tl *tl);

/** Number of packets held for the host of *tc*. */
static inline uint32_t *
san_tl_host_held(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	return &tl->pdl->uses[tc->host - tl->hosts].nb_held;
}

/* ---- tl_path.c ---- */

static inline struct san_tl_path *
san_tl_path_of(const struct san_tl *tl, uint16_t slot, bool granted)
{
	return &tl->conns[slot].host->paths[granted];
}

/** Bytes of the path that are counted in the budget. */
static inline uint32_t
san_tl_path_over(const struct san_tl_path *p)
{
	return p->charged > p->room ? p->charged - p->room : 0;
}

/** Bytes that may be charged to the path outside the budget. */
uint32_t san_tl_path_left(const struct san_tl *tl, const struct san_tl_path *p);
/**
 * Charge *bytes* to the path of *ch*, or return them if negative. Returns the part that concerns
 * the budget.
 */
int64_t san_tl_path_add(struct san_tl *tl, const struct san_tl_charge *ch, int64_t bytes);
/** *bytes* of *ch* arrived. */
void san_tl_path_use(struct san_tl *tl, const struct san_tl_charge *ch, uint32_t bytes,
		     uint64_t now_ns);
/** The last connection of its host is closed. */
void san_tl_path_end(struct san_tl *tl, struct san_tl_path *p);

/* ---- tl_lend.c ---- */

/** Take the initial budget: all of it, or a share. */
void san_tl_lend_join(struct san_tl *tl);
/** Return the budget; none of it is in use. */
void san_tl_lend_leave(struct san_tl *tl);
/**
 * Once per tick, with several lcores: borrow if a connection here *waits*, and return what others
 * need.
 */
void san_tl_lend_tick(struct san_tl *tl, bool waits);

/** Idle connections for which a free record is reserved each. */
static inline uint32_t
san_tl_nb_idle(const struct san_tl *tl)
{
	return tl->nb_busy < tl->conf.max_wide ? tl->conf.max_wide - tl->nb_busy : 0;
}

/* ---- tl_want.c ---- */

/** Free records that are not reserved. */
static inline uint32_t
san_tl_nb_common(const struct san_tl *tl)
{
	return tl->free_txns.nb - san_tl_nb_idle(tl) - tl->nb_promised;
}

/** How many of those the host may take (RT-35). */
static inline uint32_t
san_tl_nb_spare(const struct san_tl *tl, const struct san_tl_host *h)
{
	uint32_t common = san_tl_nb_common(tl), share;

	if (likely(tl->pdl->nb_hosts == 1))
		return common;
	share = (common + SAN_SHARES - 1) / SAN_SHARES;
	return share > h->nb_txns ? share - h->nb_txns : 0;
}

/**
 * True if a host with *own* may take one of *left* parts, of which each of max_wide connections has
 * one, and *spare* are beyond that (RT-35).
 */
static inline bool
san_tl_may_claim(const struct san_tl *tl, uint32_t own, uint32_t left, uint32_t spare)
{
	return san_holders_may_take(tl->pdl->nb_conns > tl->conf.max_wide &&
					    tl->pdl->nb_hosts > 1,
				    own, left, spare);
}

/** True if a record is available for a connection with nothing outstanding. */
static inline bool
san_tl_has_first(const struct san_tl *tl, const struct san_tl_host *h)
{
	return san_tl_may_claim(tl, h->nb_busy, san_tl_nb_idle(tl), 0) ||
		san_tl_nb_spare(tl, h) != 0;
}

/** True if the connection has or can get a ring for more than one transaction. */
static inline bool
san_tl_has_ring(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	return tc->txn_mask != 0 ||
		san_tl_may_claim(tl, tc->host->nb_rings, tl->free_rings.nb,
				 tl->free_rings.max - tl->conf.max_wide);
}

/** True for a push that need not wait, on a connection that does not wait: the common case. */
static inline bool
san_tl_is_free_to_go(const struct san_tl *tl, const struct san_tl_conn *tc,
		     const struct san_tl_req *req)
{
	return req->type == SAN_TL_PUSH && tc->want == 0 &&
		tc->rsn_next - tc->rsn_base < tc->peer.n_tx &&
		(tc->nb_txns == 0 ? san_tl_has_first(tl, tc->host) :
				    san_tl_nb_spare(tl, tc->host) != 0 && san_tl_has_ring(tl, tc));
}

/** True if *req* must wait. san_tl_ulp_room() reports when to try again. */
bool san_tl_want(struct san_tl *tl, struct san_tl_conn *tc, const struct san_tl_req *req,
		 uint64_t now_ns);
/** One of the connection's transactions finished. */
void san_tl_want_wake_own(struct san_tl *tl, struct san_tl_conn *tc);
/** Records or budget were released. */
void san_tl_want_wake_waiting(struct san_tl *tl);
/** Connections wait for records: end those that hold some and made no progress for long (RT-35). */
void san_tl_want_end_stale(struct san_tl *tl, uint64_t now_ns);
/** Count a connection with its first record, or without any more. */
static inline void
san_tl_set_busy(struct san_tl *tl, struct san_tl_conn *tc, bool busy)
{
	tl->nb_busy += busy ? 1 : -1u;
	tc->host->nb_busy += busy ? 1 : -1u;
}
/** Wake connections that wait for resources which others may have released. */
static inline void
san_tl_wake(struct san_tl *tl)
{
	if (unlikely(tl->nb_waiting != 0))
		san_tl_want_wake_waiting(tl);
}

/* ---- tl_txn.c ---- */

static inline struct san_tl_extra *
san_tl_extra(const struct san_tl *tl, const struct san_tl_txn *t)
{
	return &tl->extras[t - tl->txns];
}

static inline struct san_tl_txn *
san_tl_extra_txn(const struct san_tl *tl, const struct san_tl_extra *x)
{
	return &tl->txns[x - tl->extras];
}

/** First transaction of a list of its connection, or NULL. */
static inline struct san_tl_txn *
san_tl_txn_first(const struct san_tl *tl, const struct san_tl_extras *list)
{
	return TAILQ_EMPTY(list) ? NULL : san_tl_extra_txn(tl, TAILQ_FIRST(list));
}

/** Since when the target is not ready for it; 0: it is ready, as far as known. */
static inline uint64_t
san_tl_rnr_since_ns(const struct san_tl *tl, const struct san_tl_txn *t)
{
	return t->has_extra ? san_tl_extra(tl, t)->rnr_since_ns : 0;
}

/** The target is ready. */
static inline void
san_tl_rnr_over(const struct san_tl *tl, const struct san_tl_txn *t)
{
	if (unlikely(t->has_extra))
		san_tl_extra(tl, t)->rnr_since_ns = 0;
}

/** The last packet of a pull of ours, held until the rest is placed; or NULL. */
static inline struct rte_mbuf *
san_tl_pull_last(const struct san_tl *tl, const struct san_tl_txn *t)
{
	return t->has_extra ? san_tl_extra(tl, t)->last : NULL;
}

/** Make the extra fields valid. */
struct san_tl_extra *san_tl_txn_extra_use(struct san_tl *tl, struct san_tl_txn *t);
/**
 * Allocate records with the next *n* RSNs, and return the last. The caller made sure that there
 * are as many, and room for them: see tl_want.c. *counted*: the caller counts them for PCB-3.
 */
struct san_tl_txn *san_tl_txn_new(struct san_tl *tl, struct san_tl_conn *tc,
				  const struct san_tl_req *const req[], uint32_t n, bool counted);
/**
 * Free the records of *n* reported transactions, which are on no list. They leave the PCB-3 count.
 */
void san_tl_txn_free_all(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *const t[],
			 uint32_t n);
void san_tl_txn_list(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
		     enum san_txn_list list);
/** Unordered: list it as ready if it has data to send. */
void san_tl_txn_ready(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** True if it has push data to send that is granted. */
bool san_tl_txn_can_send(const struct san_tl_txn *t);
/** Take a ring for more than one transaction, if needed. False: none is free. */
bool san_tl_txn_ring_take(struct san_tl *tl, struct san_tl_conn *tc);

/* ---- tl_initiator.c ---- */

/** Choose the next packet to get a PSN: fills *e* and advances the transaction. */
bool san_tl_initiator_next_request(struct san_tl *tl, struct san_pdl_conn *c,
				   struct san_pdl_room *room, struct san_pdl_entry *e);
bool san_tl_initiator_next_push(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e);
void san_tl_initiator_request_fill(struct san_tl *tl, const struct san_tl_conn *tc,
				   const struct san_pdl_entry *e, struct rte_mbuf *m,
				   struct san_wire_pkt *p);
void san_tl_initiator_push_fill(struct san_tl *tl, const struct san_pdl_conn *c,
				const struct san_tl_conn *tc, const struct san_pdl_entry *e,
				struct rte_mbuf *m, struct san_wire_pkt *p);
/** Build a packet that only fills the PSN of *e*. */
void san_tl_initiator_fill_empty(const struct san_pdl_entry *e, struct san_wire_pkt *p);
/** Count transactions for PCB-3 while there is room. */
void san_tl_initiator_admit(struct san_tl *tl, struct san_pdl_conn *c);
enum san_drop san_tl_initiator_rx_pull_data(struct san_tl *tl, struct san_pdl_conn *c,
					    struct rte_mbuf *m, uint64_t now_ns);

enum san_drop san_tl_initiator_rx_grant(struct san_tl *tl, struct san_pdl_conn *c,
					struct rte_mbuf *m, uint64_t now_ns);

/* ---- tl_finish.c ---- */

/**
 * Finish *t* with *status*: it is reported now, or when its turn comes. *t* may be freed by this
 * call.
 */
void san_tl_finish_txn(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
		       uint8_t status);
/** Finish *t* if nothing of it is outstanding. */
void san_tl_finish_settle(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** Complete everything with *status*. */
void san_tl_finish_close(struct san_tl *tl, struct san_tl_conn *tc, uint8_t status);
void san_tl_initiator_check(const struct san_tl *tl, const struct san_tl_conn *tc);

/* ---- tl_target_order.c ---- */

/** True if *rsn* is finished for the order: below the base, or (unordered) marked. */
bool san_tl_target_is_finished(const struct san_tl_conn *tc, uint32_t rsn);
/** Record of an unfinished RSN, or NULL. */
struct san_tl_rxn *san_tl_target_rxn_find(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn);
/** *rsn* is finished with *code*: move the base, or mark it. Its record is already freed. */
void san_tl_target_rsn_finish(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn,
			      uint8_t code);
/** Likewise for *n* RSNs from *rsn* on that have no record, with OK. */
void san_tl_target_rsn_finish_all(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn,
				  uint32_t n);
/** If *status* is an error and the connection ends with errors, execute nothing more (RT-40). */
void san_tl_target_fail_if_ends(struct san_tl *tl, const struct san_tl_conn *tc, uint8_t status);
/** Refuse a packet for lack of a record or of space to hold it: the peer resends it. */
enum san_drop san_tl_target_refuse_red(struct san_tl *tl, struct san_pdl_conn *c,
				       struct rte_mbuf *m, enum san_drop drop, uint64_t now_ns);
/** The RSN that was answered by RNR is accepted or finished: grants are possible again. */
void san_tl_target_rnr_over(struct san_tl *tl, struct san_tl_conn *tc);

/* ---- tl_target.c ---- */

enum san_drop san_tl_target_rx_push(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
				    uint64_t now_ns);
enum san_drop san_tl_target_rx_request(struct san_tl *tl, struct san_pdl_conn *c,
				       struct rte_mbuf *m, uint64_t now_ns);
/** The base has a new record, or its record a new state: process what is in order. */
void san_tl_target_run_base(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** Retry pulls and atomics that wait for the ULP. */
void san_tl_target_retry_pulls(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** Retry bases that wait because too many pulls are in progress. */
void san_tl_target_wake_pulls(struct san_tl *tl, uint64_t now_ns);

/* ---- tl_pull.c ---- */

/** The base has just become a pull that waits: withdraw also the packets held behind it. */
void san_tl_pull_clear_behind(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** True if pushes must be refused now because the base is a pull that waits. */
bool san_tl_pull_is_before(const struct san_tl *tl, const struct san_tl_conn *tc);
/** The base waits, or no longer, for a record of a pull. */
void san_tl_pull_wait(struct san_tl *tl, struct san_tl_conn *tc, bool wait);
/** Execute a pull or atomic in its turn: true if executed, so that the base may move. */
bool san_tl_pull_execute(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			 uint64_t now_ns);
bool san_tl_pull_next(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e);
void san_tl_pull_fill(struct san_tl *tl, const struct san_pdl_entry *e, struct rte_mbuf *m,
		      struct san_wire_pkt *p);
/** The initiator gave up an executed pull: send no more of its data. */
void san_tl_pull_cancel(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn);
void san_tl_pull_acked(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e);

/* ---- tl_pack.c ---- */

/** True if *t*, which is next, might share a packet with the pushes after it. */
bool san_tl_pack_may(const struct san_tl_conn *tc, const struct san_tl_txn *t, uint16_t mtu);
/** Pack *head* with pushes after it into *e*; false: nothing was packed. */
bool san_tl_pack(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *head, uint16_t mtu,
		 struct san_pdl_entry *e);
void san_tl_pack_fill(struct san_tl *tl, const struct san_pdl_conn *c, const struct san_tl_conn *tc,
		      const struct san_pdl_entry *e, struct rte_mbuf *m, struct san_wire_pkt *p);
/** Hold a packed packet that arrived ahead of its turn. */
enum san_drop san_tl_pack_hold(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			       uint64_t now_ns);
/** Process a packed packet of the right round, in its turn, whose first RSN is new. */
enum san_drop san_tl_pack_rx(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			     uint64_t now_ns);
/** The base has reached the packed packet that *r* holds; true if it was accepted. */
bool san_tl_pack_replay(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			uint64_t now_ns);

/* ---- tl_piece.c ---- */

#define SAN_TL_PIECES_MAX 32 /**< per connection: a few of the longest packets */

/**
 * A piece of a packet arrived. Returns the packet if it is complete now; NULL: *drop* has the
 * result.
 */
struct rte_mbuf *san_tl_piece_rx(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
				 uint64_t now_ns, enum san_drop *drop);
/** Drop the pieces that are no longer needed, or *all*. Counts *reason*. */
void san_tl_piece_drop(struct san_tl *tl, struct san_tl_conn *tc, bool all, enum san_drop reason);
/** Number of pieces held; verifies them. */
uint32_t san_tl_piece_nb(const struct san_tl_conn *tc);

/* ---- tl_rxn.c ---- */

/**
 * Allocate a zeroed record of *rsn*: tc->cur if it is the base, else in the CAM. NULL: none is
 * free, or the CAM is full (RULE-8).
 */
struct san_tl_rxn *san_tl_rxn_new(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn,
				  bool solicited);
/** Free records that are reserved by claims: see tl_rxn.c. */
uint32_t san_tl_rxn_nb_claims(const struct san_tl *tl);
/** Detach the record from its RSN: neither cur nor in the CAM. */
void san_tl_rxn_detach(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** Detach the record and return it to the pool, off every list; it must hold nothing. */
void san_tl_rxn_free(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** The push will not be finished: return to the ULP what push_req() took for it. */
void san_tl_rxn_push_undo(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** Release the receive that was reserved for it, if any. */
void san_tl_rxn_unreserve(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
void san_tl_rxn_set_cur(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** Note that it entered or left the CAM (SAN_CAM_REQUEST). */
void san_tl_rxn_set_ahead(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			  bool in_cam);
/** True if the base's record may stay in use after the base has passed it. */
bool san_tl_rxn_can_pull(const struct san_tl *tl, const struct san_tl_conn *tc);
void san_tl_rxn_set_pulling(struct san_tl *tl, struct san_tl_conn *tc, int change);
void san_tl_rxn_queue(struct san_tl_conn *tc, struct san_tl_rxn *r, enum san_rxn_queue queue);
void san_tl_rxn_out(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, bool in);
/** Red zone: true if only the head of line is admitted (RULE-8). */
bool san_tl_rxn_is_red(const struct san_tl *tl, const struct san_tl_conn *tc);
void san_tl_rxn_held_push(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			  struct rte_mbuf *m, uint64_t now_ns);
/** A part of the base arrived, and the base is not finished. */
void san_tl_rxn_base_watch(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/**
 * A head of line found no record: end connections that hold one and made no progress for long
 * (RT-35).
 */
void san_tl_rxn_end_stale(struct san_tl *tl, uint64_t now_ns);
/** Count one held packet more, or less. */
void san_tl_rxn_held_enter(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
void san_tl_rxn_held_leave(struct san_tl *tl, struct san_tl_conn *tc);
/** Take the last packet of a pull of ours, which was held until the rest was placed. */
struct rte_mbuf *san_tl_rxn_pull_last_take(struct san_tl *tl, struct san_tl_conn *tc,
					   struct san_tl_txn *t);
/** Drop that packet, so that the peer resends it. Does nothing if *t* is NULL or has none. */
void san_tl_rxn_pull_last_drop(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
			       enum san_drop reason);
struct rte_mbuf *san_tl_rxn_held_pop(struct san_tl *tl, struct san_tl_conn *tc,
				     struct san_tl_rxn *r);
/** Drop what is held: *ack* its PSNs, or revoke them. Counts *reason*. */
void san_tl_rxn_held_drop(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, bool ack,
			  enum san_drop reason, uint64_t now_ns);

/** The transaction of *r* ended before the turn of its SSN, if it has one. */
void san_tl_rxn_ssn_leave(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** A receive was posted or returned: a grant that waits for one is reconsidered. */
void san_tl_rxn_grant_wake(struct san_tl *tl, struct san_tl_conn *tc);
/** The connection ends: forget the SSNs whose transactions finished before their turn. */
void san_tl_rxn_ssn_end_all(struct san_tl *tl, struct san_tl_conn *tc);
/** The head of the queue of grants has changed. */
void san_tl_rxn_update_ssn(struct san_tl_conn *tc);
void san_tl_rxn_count_ssn(struct san_tl_conn *tc, int change);
/** Position of the base. It changes with each part of it that arrives. */
uint32_t san_tl_rxn_base_at(const struct san_tl_conn *tc);
/** Note where the base is, and when it must have moved. */
void san_tl_rxn_held_watch(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** True if the base has a record that it may give up. */
bool san_tl_rxn_can_give_up(const struct san_tl_conn *tc);

/* ---- tl_rxn_held.c ---- */

/** Act if the base has not moved for too long (RT-35). */
void san_tl_rxn_held_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** Drop everything held for the connection: the peer resends it. */
void san_tl_rxn_held_drop_all(struct san_tl *tl, struct san_tl_conn *tc, enum san_drop reason,
			      uint64_t now_ns);
/** Release every record, CAM entry and held mbuf. */
void san_tl_rxn_close_all(struct san_tl *tl, struct san_tl_conn *tc);
void san_tl_rxn_check(const struct san_tl *tl, const struct san_tl_conn *tc);

/* ---- tl_solicit.c ---- */

/** *t* is granted up to *offset*. */
void san_tl_solicit_take_grant(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
			       uint32_t offset);
/** The transaction of *t* ended: its SSN no longer blocks others. */
void san_tl_solicit_ssn_end(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** True if SSN *ssn* may come now. */
bool san_tl_solicit_ssn_valid(const struct san_tl_conn *tc, uint32_t ssn);
/** A request with *ssn* arrived; *r* NULL: its transaction is finished. False: the CAM is full. */
bool san_tl_solicit_ssn_join(struct san_tl *tl, struct san_tl_conn *tc, uint32_t ssn,
			     struct san_tl_rxn *r);
/** Decide one grant for the head of the queue; false: it must wait. */
bool san_tl_solicit_grant_one(struct san_tl *tl, struct san_tl_conn *tc, uint32_t step,
			      uint64_t now_ns);
/** Nothing was or will be granted: send a grant with *status* (RULE-5). */
void san_tl_solicit_grant_refuse(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
				 uint8_t status);
/** Act if the wait for a receive has lasted too long. */
void san_tl_solicit_grant_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
bool san_tl_solicit_next_grant(struct san_tl *tl, struct san_tl_conn *tc, struct san_pdl_entry *e);

/* ---- tl_admit.c ---- */

/** True if something is granted that is neither placed nor expired. */
static inline bool
san_tl_admit_any_granted(const struct san_tl *tl)
{
	return tl->budget_used != tl->pulled_used;
}

/** Part of *bytes* that is not in use. */
static inline uint32_t
san_tl_admit_room_in(uint32_t bytes, uint32_t used)
{
	return bytes > used ? bytes - used : 0;
}

/** Part of a budget that may be used by pulls. */
static inline uint32_t
san_tl_admit_pull_part(uint32_t budget_bytes)
{
	return budget_bytes - RTE_MAX(budget_bytes / 4, 1u);
}

/**
 * Bytes of the budget that may be granted. While other lcores are short of budget, limit_bytes is
 * below budget_bytes. Only a first grant, with none outstanding, may exceed it.
 */
uint32_t san_tl_admit_budget_room(const struct san_tl *tl);
/** Bytes that may be granted to *tc*, from the budget and from its path. */
uint32_t san_tl_admit_grant_room(const struct san_tl *tl, const struct san_tl_conn *tc);
/** Bytes that may be pulled: at most; and now, over *tc*. */
uint32_t san_tl_admit_pull_most(const struct san_tl *tl);
uint32_t san_tl_admit_pull_room(const struct san_tl *tl, const struct san_tl_conn *tc);
/** True if a connection could be granted, or pull, more with more budget. */
bool san_tl_admit_waits_for_budget(const struct san_tl *tl);
void san_tl_admit_charge(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes,
			 uint64_t now_ns);
/** *bytes* of the charge arrived, in turn or not: it and later ones do not expire now. */
void san_tl_admit_charge_use(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes,
			     uint64_t now_ns);
/** *bytes* of the charge are placed in turn: they will not come again. */
void san_tl_admit_charge_done(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes);
void san_tl_admit_charge_release(struct san_tl *tl, struct san_tl_charge *ch);
/** Remove charges unused for 4 RTT from the budget (RULE-6). */
void san_tl_admit_expire(struct san_tl *tl, uint64_t now_ns);
/** The connection waits for budget: wake it when an unused grant expires. */
void san_tl_admit_set_expiry(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** True if the connection has something to grant and no reason of its own not to. */
bool san_tl_admit_may_grant(const struct san_tl *tl, const struct san_tl_conn *tc);
/** That may have changed: the connection joins or leaves the grant list. */
void san_tl_admit_update(struct san_tl *tl, struct san_tl_conn *tc);
/** The connection joins the grant list at its end, or leaves it. */
void san_tl_admit_list(struct san_tl *tl, struct san_tl_conn *tc, bool in);

/* ---- tl_admit_run.c ---- */

/** Grant while budget lasts. */
void san_tl_admit_run(struct san_tl *tl, uint64_t now_ns);
/** Bytes of a charge, not all of it, that may return until san_tl_admit_run() has an effect. */
uint32_t san_tl_admit_quiet(struct san_tl *tl);

/* ---- tl_nack.c ---- */

/** Refuse a packet of the data window. */
void san_tl_nack(struct san_tl *tl, const struct san_tl_conn *tc, uint32_t psn, uint32_t rsn,
		 uint8_t code);
/** Refuse a request for lack of a record. */
void san_tl_nack_request(struct san_tl *tl, const struct san_tl_conn *tc, uint32_t psn,
			 uint32_t rsn);
/** True if it was sent before the initiator knew of our last RNR (RULE-4). */
bool san_tl_nack_is_old_round(const struct san_tl_conn *tc, const struct san_wire_pkt *p);
/** Refuse such a packet with the same NACK again. */
void san_tl_nack_repeat(struct san_tl *tl, const struct san_tl_conn *tc,
			const struct san_wire_pkt *p);
/**
 * The RSN of *r* must wait: drop what is held and placed of it (ordered: and above). *code*: RNR,
 * or RESOURCE.
 */
void san_tl_nack_not_now(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			 uint32_t psn, uint8_t code, uint64_t now_ns);
/** Refuse packet *psn* of *rsn* for lack of a record or of space to hold it. */
void san_tl_nack_no_record(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn, uint32_t rsn,
			   uint64_t now_ns);
/**
 * Ordered: the base waits for a record. The pushes behind it, and the base itself if it is a push,
 * are withdrawn, because their PSNs would fill the window; *psn* is of one of them.
 */
void san_tl_nack_base_waits(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn,
			    uint64_t now_ns);
/**
 * Release the record of the base, an unsolicited push, for other connections. The peer gets the
 * NACK when it sends, and resends all of the push.
 */
void san_tl_nack_base_give_up(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/**
 * Drop what arrived of the push for *reason*: the peer resends all of it. *r* may be freed by this
 * call.
 */
void san_tl_nack_push_reset(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			    enum san_drop reason, uint64_t now_ns);
/** Packet *psn* is to be refused for good. False: there is no memory for it, so it must wait. */
bool san_tl_nack_refused_note(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn);
/** Remember the status of a finished RSN: the error *code*, or OK. tc->refused is not NULL. */
void san_tl_nack_refused_set(const struct san_tl_conn *tc, uint32_t rsn, uint8_t code);
/** The base of the data window may have moved: forget the statuses if the peer knows them. */
void san_tl_nack_refused_pass(struct san_tl *tl, struct san_tl_conn *tc);
/** Forget all statuses and return their memory. */
void san_tl_nack_refused_forget(struct san_tl *tl, struct san_tl_conn *tc);
/** Status of a finished RSN: OK, or the error with which its packets are refused. */
uint8_t san_tl_nack_refused_get(const struct san_tl_conn *tc, uint32_t rsn);
/* ---- tl_nack_rx.c ---- */

/** Process a NACK. The caller disposes of its packet. */
enum san_drop san_tl_nack_rx(struct san_tl *tl, struct san_pdl_conn *c,
			     const struct san_wire_pkt *p, uint64_t now_ns);
enum san_drop san_tl_nack_rx_resync(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
				    uint64_t now_ns);
/** True for a push that is neither given up nor finished. */
bool san_tl_nack_is_live_push(const struct san_tl_txn *t);
/** Send the push again from the first byte; or give it up, if it is unwanted. */
void san_tl_nack_push_rewind(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** Give *t* up with *status*. */
void san_tl_nack_txn_abort(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
			   uint8_t status);
bool san_tl_nack_next_abort(struct san_tl *tl, struct san_tl_conn *tc, struct san_pdl_entry *e);
/** Act if the delay of an RNR is over. */
void san_tl_nack_rnr_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** When it is over; NEVER: there is none. */
uint64_t san_tl_nack_rnr_due_ns(const struct san_tl_conn *tc);

/* ---- of every file that takes packets ---- */

/** Report the verdict to pdl, dispose of *m*, and return *drop*. */
static inline enum san_drop
san_tl_settle(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
	      enum san_verdict verdict, enum san_drop drop, uint64_t now_ns)
{
	san_pdl_rx_commit(tl->pdl, c, &san_wire_pkt(m)->w, verdict, now_ns);
	if (unlikely(!TAILQ_EMPTY(&tl->used_refused)) && tl->conns[c->slot].refused != NULL)
		san_tl_nack_refused_pass(tl, &tl->conns[c->slot]);
	san_tl_death_add(tl->death, m);
	return drop;
}
