/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TL_PRIV_H
#define TL_PRIV_H

/**
 * @file
 * What the files of lib/tl share and nobody else sees.
 */

#include "san_assert.h"
#include "san_seq.h"
#include "tl.h"

#define SAN_TL_SLOT(rsn) ((rsn) & (SAN_TL_N_MAX - 1))

/* ---- small helpers ---- */

static inline struct san_pdl_conn *
san_tl_pdl_conn(struct san_tl *tl, const struct san_tl_conn *tc)
{
	return &tl->pdl->conns[tc->slot];
}

/** Is it odd for this reason? See pdl_odd.h. */
static inline bool
san_tl_is_odd(const struct san_tl *tl, const struct san_tl_conn *tc, enum san_odd why)
{
	return (tl->pdl->conns[tc->slot].odd & (uint8_t)why) != 0;
}

static inline void
san_tl_odd_put(struct san_tl *tl, const struct san_tl_conn *tc, enum san_odd why, bool holds)
{
	san_odd_put(&san_tl_pdl_conn(tl, tc)->odd, why, holds);
}

/** Initiator's live record of *rsn*, or NULL. */
static inline struct san_tl_txn *
san_tl_txn_at(const struct san_tl_conn *tc, uint32_t rsn)
{
	struct san_tl_txn *t = tc->txns[rsn & tc->txn_mask];

	return t != NULL && t->rsn == rsn ? t : NULL;
}

/** Has it a request that must (still) go? That of a solicited push goes even if it was given up. */
static inline bool
san_tl_owes_request(const struct san_tl_txn *t)
{
	if (t->req_sent || (t->req.type == SAN_TL_PUSH && !t->solicited))
		return false;
	return t->solicited || t->state == SAN_TXN_POSTED;
}

/** Was *rsn* ever used by us? (RT-32) */
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

/** Bytes of an immediate in a packet with these flags. */
static inline uint16_t
san_tl_imm_len(uint8_t flags)
{
	return (flags & (SAN_F_KIND | SAN_F_LAST)) ==
			(SAN_KIND_PUSH_IMM << SAN_F_KIND_SHIFT | SAN_F_LAST) ?
		SAN_WIRE_IMM_LEN :
		0;
}

/** Bytes of push data in a packet: its payload without the immediate. */
static inline uint32_t
san_tl_data_len(const struct san_wire_pkt *p)
{
	return p->payload_len - (uint32_t)san_tl_imm_len(p->flags);
}

/** Its turn on this connection: nothing has to wait for anything below it. */
static inline bool
san_tl_in_turn(const struct san_tl_conn *tc, uint32_t rsn)
{
	return !tc->peer.ordered || rsn == tc->rx_base;
}

/* ---- tl.c ---- */

/** Tell pdl, dispose of *m*, hand the reason through. */
enum san_drop san_tl_settle(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			    enum san_verdict verdict, enum san_drop drop, uint64_t now_ns);
/** The connection's timer must fire no later than *at_ns*. */
void san_tl_deadline(struct san_tl *tl, struct san_tl_conn *tc, uint64_t at_ns);

/* ---- tl_host.c ---- */

/** -ENOMEM. */
int san_tl_hosts_init(struct san_tl *tl);
void san_tl_hosts_fini(struct san_tl *tl);
/** Its peer host, in its partition: from its opening to its end. */
void san_tl_host_join(struct san_tl *tl, struct san_tl_conn *tc);
void san_tl_host_leave(struct san_tl *tl, struct san_tl_conn *tc);
void san_tl_hosts_check(const struct san_tl *tl);

/** Packets held of the host of *tc*. */
static inline uint32_t *
san_tl_host_held(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	return &tl->host_held[tc->host - tl->hosts];
}

/* ---- tl_path.c ---- */

static inline struct san_tl_path *
san_tl_path_of(const struct san_tl *tl, uint16_t slot, bool granted)
{
	return &tl->conns[slot].host->paths[granted];
}

/** Bytes of it that are in the budget. */
static inline uint32_t
san_tl_path_over(const struct san_tl_path *p)
{
	return p->charged > p->room ? p->charged - p->room : 0;
}

/** Bytes that may be charged to it, beyond the budget. */
uint32_t san_tl_path_left(const struct san_tl *tl, const struct san_tl_path *p);
/** *bytes* are charged to the path of *ch*, or come back; returned: of those, the budget's. */
int64_t san_tl_path_add(struct san_tl *tl, const struct san_tl_charge *ch, int64_t bytes);
/** *bytes* of *ch* arrived. */
void san_tl_path_use(struct san_tl *tl, const struct san_tl_charge *ch, uint32_t bytes,
		     uint64_t now_ns);
/** Its host has no connection any more. */
void san_tl_path_end(struct san_tl *tl, struct san_tl_path *p);

/* ---- tl_lend.c ---- */

/** Take the first budget: all of it, or a share. */
void san_tl_lend_join(struct san_tl *tl);
/** Nothing of it is used any more. */
void san_tl_lend_leave(struct san_tl *tl);
/** Of several lcores, once a round: borrow if somebody *waits* here, give back what others need. */
void san_tl_lend_tick(struct san_tl *tl, bool waits);

/** Connections with nothing outstanding for each of which a free record is set aside. */
static inline uint32_t
san_tl_nb_idle(const struct san_tl *tl)
{
	return tl->nb_busy < tl->conf.max_wide ? tl->conf.max_wide - tl->nb_busy : 0;
}

/* ---- tl_want.c ---- */

/** Records that no connection has set aside. */
static inline uint32_t
san_tl_nb_common(const struct san_tl *tl)
{
	return tl->nb_free_txns - san_tl_nb_idle(tl) - tl->nb_promised;
}

/** Is there a record for one with nothing outstanding? */
static inline bool
san_tl_has_first(const struct san_tl *tl)
{
	return tl->nb_busy < tl->conf.max_wide || san_tl_nb_common(tl) != 0;
}

/** Is there a ring, so that one can have more than one transaction? */
static inline bool
san_tl_has_ring(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	return tc->txn_mask != 0 || tl->nb_free_rings != 0;
}

/** A push that has nothing to wait for, on a connection that waits for nothing: most are. */
static inline bool
san_tl_is_free_to_go(const struct san_tl *tl, const struct san_tl_conn *tc,
		     const struct san_tl_req *req)
{
	return req->type == SAN_TL_PUSH && tc->want == 0 &&
		tc->rsn_next - tc->rsn_base < tc->peer.n_tx &&
		(tc->nb_txns == 0 ? san_tl_has_first(tl) :
				    san_tl_nb_common(tl) != 0 && san_tl_has_ring(tl, tc));
}

/** Does anybody wait for what others may give back? */
static inline bool
san_tl_has_waiting(const struct san_tl *tl)
{
	return tl->nb_waiting != 0;
}

/** Must *req* wait? Then the connection is told by san_tl_ulp_room() when to try again. */
bool san_tl_want(struct san_tl *tl, struct san_tl_conn *tc, const struct san_tl_req *req,
		 uint64_t now_ns);
/** One of its transactions finished. */
void san_tl_wake_own(struct san_tl *tl, struct san_tl_conn *tc);
/** Records or budget came back. */
void san_tl_wake_waiting(struct san_tl *tl);
static inline void
san_tl_wake(struct san_tl *tl)
{
	if (unlikely(san_tl_has_waiting(tl)))
		san_tl_wake_waiting(tl);
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

/** The first of a list of its connection, or NULL. */
static inline struct san_tl_txn *
san_tl_txn_first(const struct san_tl *tl, const struct san_tl_extras *list)
{
	return TAILQ_EMPTY(list) ? NULL : san_tl_extra_txn(tl, TAILQ_FIRST(list));
}

/** Since when the target is not ready for it; 0: it is, as far as is known. */
static inline uint64_t
san_tl_rnr_since_ns(const struct san_tl *tl, const struct san_tl_txn *t)
{
	return t->has_extra ? san_tl_extra(tl, t)->rnr_since_ns : 0;
}

/** It was ready. */
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

/** Valid from now on. */
struct san_tl_extra *san_tl_extra_use(struct san_tl *tl, struct san_tl_txn *t);
/** A record with the next RSN; there is one, and room for it: see tl_want.c. */
struct san_tl_txn *san_tl_txn_new(struct san_tl *tl, struct san_tl_conn *tc,
				  const struct san_tl_req *req);
/** They are reported, and on no list: their records are free, and they are no messages any more. */
void san_tl_txns_free(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *const t[],
		      uint32_t n);
void san_tl_txn_list(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
		     enum san_txn_list list);
/** Unordered: list it as ready if it has data to send. */
void san_tl_txn_ready(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** Has it push data that may be sent now, as far as grants go? */
bool san_tl_txn_can_send(const struct san_tl_txn *t);
/** Can it have more than one transaction? Takes a ring for them, if need be. */
bool san_tl_ring_take(struct san_tl *tl, struct san_tl_conn *tc);

/* ---- tl_initiator.c ---- */

/** What goes next, and gets a PSN: *e*. The transaction is advanced by it. */
bool san_tl_next_request(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_room *room,
			 struct san_pdl_entry *e);
bool san_tl_next_push(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e);
void san_tl_request_fill(struct san_tl *tl, const struct san_tl_conn *tc,
			 const struct san_pdl_entry *e, struct rte_mbuf *m, struct san_wire_pkt *p);
void san_tl_push_fill(struct san_tl *tl, const struct san_pdl_conn *c, const struct san_tl_conn *tc,
		      const struct san_pdl_entry *e, struct rte_mbuf *m, struct san_wire_pkt *p);
/** A packet that only fills the PSN of *e*. */
void san_tl_fill_empty(const struct san_pdl_entry *e, struct san_wire_pkt *p);
/** Transactions enter the count of PCB-3 while there is room. */
void san_tl_admit_msgs(struct san_tl *tl, struct san_pdl_conn *c);
enum san_drop san_tl_rx_pull_data(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
				  uint64_t now_ns);

/* ---- tl_finish.c ---- */

/** Finished with *status*: reported now, or when its turn comes. *t* may be gone afterwards. */
void san_tl_txn_finish(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
		       uint8_t status);
/** Finish it if nothing of it is outstanding any more. */
void san_tl_txn_settle(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** Complete everything with *status*. */
void san_tl_ini_close(struct san_tl *tl, struct san_tl_conn *tc, uint8_t status);
void san_tl_ini_check(const struct san_tl *tl, const struct san_tl_conn *tc);

/* ---- tl_target.c ---- */

enum san_drop san_tl_rx_push(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			     uint64_t now_ns);
enum san_drop san_tl_rx_request(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
				uint64_t now_ns);
/** Finished, as far as order goes: below the base, or (unordered) marked. */
bool san_tl_is_finished(const struct san_tl_conn *tc, uint32_t rsn);
/** Record of an unfinished RSN, or NULL. */
struct san_tl_rxn *san_tl_rxn_find(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn);
/** RSN is finished with *code*: move the base, or mark it. Its record is gone already. */
void san_tl_rsn_finish(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, uint8_t code);
/** Likewise *n* of them, from *rsn* on, that nothing is known of, with OK. */
void san_tl_rsns_finish(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, uint32_t n);
/** The base has a new record, or its record a new state: do what can be done in order. */
void san_tl_run_base(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** Bases that wait because too many pulls are on their way, again. */
void san_tl_wake_pulls(struct san_tl *tl, uint64_t now_ns);
void san_tl_pull_wait(struct san_tl *tl, struct san_tl_conn *tc, bool wait);
/** Once *status* is an error of a connection that ends with it, nothing is executed (RT-40). */
void san_tl_fail_if_ends(struct san_tl *tl, const struct san_tl_conn *tc, uint8_t status);
/** A request that finds no place to be remembered: it comes again. */
enum san_drop san_tl_request_not_now(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
				     enum san_drop drop, uint64_t now_ns);

/* ---- tl_pull.c ---- */

/** Must pushes that come now be refused, because the base is a pull that waits? */
bool san_tl_is_behind_pull(const struct san_tl *tl, const struct san_tl_conn *tc);
/** A pull or atomic is due: true if it was executed, so that the base may move. */
bool san_tl_execute(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
		    uint64_t now_ns);
enum san_drop san_tl_rx_pull(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			     uint64_t now_ns);
/** Pulls and atomics that wait for the ULP, again. */
void san_tl_retry_pulls(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
bool san_tl_next_pull(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e);
void san_tl_pull_fill(struct san_tl *tl, const struct san_pdl_entry *e, struct rte_mbuf *m,
		      struct san_wire_pkt *p);
/** The initiator gave up a pull that was executed: send no more of it. */
void san_tl_pull_cancel(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn);
void san_tl_pull_acked(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e,
		       uint64_t now_ns);
/** Release every record, CAM entry and held mbuf. */
void san_tl_tgt_close(struct san_tl *tl, struct san_tl_conn *tc);
void san_tl_tgt_check(const struct san_tl *tl, const struct san_tl_conn *tc);

/** A packet that found no record, or no place to be held: it comes again. */
enum san_drop san_tl_refuse_red(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
				enum san_drop drop, uint64_t now_ns);

/* ---- tl_pack.c ---- */

/** Might *t*, which is next, share a packet with those behind it? */
bool san_tl_may_pack(const struct san_tl_conn *tc, const struct san_tl_txn *t, uint16_t mtu);
/** May it? Then *e* is that packet. */
bool san_tl_pack(struct san_tl *tl, struct san_tl_conn *tc, const struct san_tl_txn *t,
		 uint16_t mtu, struct san_pdl_entry *e);
void san_tl_pack_fill(struct san_tl *tl, const struct san_pdl_conn *c, const struct san_tl_conn *tc,
		      const struct san_pdl_entry *e, struct rte_mbuf *m, struct san_wire_pkt *p);
/**
 * *t* was refused: from now on it goes alone, and so does what it shared a packet
 * with. On an unordered connection those, withdrawn with it, go at once.
 */
void san_tl_unpack(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** A packed packet, of the right round, whose first RSN is new. */
enum san_drop san_tl_rx_packed(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			       uint64_t now_ns);
/** The base has reached the packed packet that *r* holds; true if it was taken. */
bool san_tl_pack_replay(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			uint64_t now_ns);

/* ---- tl_piece.c ---- */

#define SAN_TL_PIECES_MAX 32 /**< of a connection: a few of the longest packets */

/** A piece of a packet came: the packet, if that is whole now; NULL: *drop* says what of it. */
struct rte_mbuf *san_tl_rx_piece(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
				 uint64_t now_ns, enum san_drop *drop);
/** Give up the pieces that nobody waits for any more, or *all*. Counts *reason*. */
void san_tl_pieces_drop(struct san_tl *tl, struct san_tl_conn *tc, bool all, enum san_drop reason);
/** How many are kept; checks them. */
uint32_t san_tl_nb_pieces(const struct san_tl_conn *tc);

/* ---- tl_record.c ---- */

/**
 * A zeroed record of RSN *rsn*: as c->cur when it is the base, else in the CAM.
 * NULL: none free, or the CAM is full (design, rule 8).
 */
struct san_tl_rxn *san_tl_rxn_new(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn,
				  bool solicited);
/** Free records that are claimed: see tl_record.c. */
uint32_t san_tl_nb_claims(const struct san_tl *tl);
/** No longer the record of its RSN: neither cur nor in the CAM. */
void san_tl_rxn_detach(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** Back to the pool, off every list; nothing may be held. */
void san_tl_rxn_free(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** The push will not be finished: the ULP has back what push_req() took for it. */
void san_tl_push_undo(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** The receive that was set aside for it, if any, is free for others. */
void san_tl_unreserve(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
void san_tl_set_cur(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** It is in the CAM, under SAN_CAM_REQUEST, or is not any more. */
void san_tl_set_ahead(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, bool in_cam);
/** May the base's record stay in use after the base has passed it? */
bool san_tl_can_pull(const struct san_tl *tl, const struct san_tl_conn *tc);
void san_tl_set_pulling(struct san_tl *tl, struct san_tl_conn *tc, int change);
void san_tl_rxn_queue(struct san_tl_conn *tc, struct san_tl_rxn *r, enum san_rxn_queue queue);
void san_tl_rxn_out(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, bool in);
/** Red zone: only the head of the line is admitted (design, rule 8). */
bool san_tl_is_red(const struct san_tl *tl, const struct san_tl_conn *tc);
void san_tl_held_push(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
		      struct rte_mbuf *m, uint64_t now_ns);
/** Something of the base came, and it is not over. */
void san_tl_base_watch(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** A head found no record: of those that have some, end who made no progress for long (RT-35). */
void san_tl_end_stale(struct san_tl *tl, uint64_t now_ns);
/** The base may have stood still for too long (RT-35). */
void san_tl_held_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** Give up all that is held of the connection: it comes again. */
void san_tl_held_drop_all(struct san_tl *tl, struct san_tl_conn *tc, enum san_drop reason,
			  uint64_t now_ns);
/** One packet more, or less, is held. */
void san_tl_held_enter(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
void san_tl_held_leave(struct san_tl *tl, struct san_tl_conn *tc);
/** The last packet of a pull of ours, until the rest is placed. */
void san_tl_pull_last_hold(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
			   struct rte_mbuf *m, uint64_t now_ns);
struct rte_mbuf *san_tl_pull_last_take(struct san_tl *tl, struct san_tl_conn *tc,
				       struct san_tl_txn *t);
/** It comes again; NULL and without one: nothing happens. */
void san_tl_pull_last_drop(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
			   enum san_drop reason);
struct rte_mbuf *san_tl_held_pop(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** Give up what is held: *ack* its PSNs, or revoke them. Counts *reason*. */
void san_tl_held_drop(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, bool ack,
		      enum san_drop reason, uint64_t now_ns);

/* ---- tl_solicit.c ---- */

enum san_drop san_tl_rx_grant(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			      uint64_t now_ns);
/** The transaction of *t* ended: its SSN holds up no other. */
void san_tl_ssn_end(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** May SSN *ssn* come now? */
bool san_tl_ssn_valid(const struct san_tl_conn *tc, uint32_t ssn);
/** Request with *ssn* arrived; NULL: its transaction is over already. False: CAM full. */
bool san_tl_ssn_join(struct san_tl *tl, struct san_tl_conn *tc, uint32_t ssn, struct san_tl_rxn *r);
/** It is over before its turn among the SSNs. */
void san_tl_ssn_leave(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r);
/** Decide one grant for the head of the queue; false: it must wait. */
bool san_tl_grant_one(struct san_tl *tl, struct san_tl_conn *tc, uint32_t step, uint64_t now_ns);
/** Nothing was granted and nothing will be: a grant with *status* says so (design, rule 5). */
void san_tl_grant_refuse(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			 uint8_t status);
/** A receive was posted or came back: who waits for one is looked at again. */
void san_tl_grant_wake(struct san_tl *tl, struct san_tl_conn *tc);
/** The wait for a receive may have lasted too long. */
void san_tl_grant_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
bool san_tl_next_grant(struct san_tl *tl, struct san_tl_conn *tc, struct san_pdl_entry *e,
		       uint64_t now_ns);

/* ---- tl_admit.c ---- */

/** Of a budget, what may be pulled. */
uint32_t san_tl_pull_part(uint32_t budget_bytes);
/** Bytes that may be pulled, at most; and now, over *tc*. */
uint32_t san_tl_pull_most(const struct san_tl *tl);
uint32_t san_tl_pull_room(const struct san_tl *tl, const struct san_tl_conn *tc);
/** Somebody could be granted, or pull, more with more of it. */
bool san_tl_waits_for_budget(const struct san_tl *tl);
void san_tl_charge(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes, uint64_t now_ns);
/** *bytes* of it arrived, in their turn or not: neither it lapses nor what follows it. */
void san_tl_charge_use(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes,
		       uint64_t now_ns);
/** *bytes* of it are placed in their turn: they will not come again. */
void san_tl_charge_done(struct san_tl *tl, struct san_tl_charge *ch, uint32_t bytes);
void san_tl_charge_release(struct san_tl *tl, struct san_tl_charge *ch);
/** What was unused for 4 RTT leaves the budget (design, rule 6). */
void san_tl_lapse(struct san_tl *tl, uint64_t now_ns);
/** The connection waits for budget: wake it when an unused grant lapses. */
void san_tl_deadline_lapse(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** Has it something to grant, and nothing of its own that forbids it? */
bool san_tl_may_grant(const struct san_tl *tl, const struct san_tl_conn *tc);
/** Something changed that decides that: the connection enters or leaves the line for grants. */
void san_tl_admit_update(struct san_tl *tl, struct san_tl_conn *tc);
/** Grant while the budget lasts. */
void san_tl_admit_run(struct san_tl *tl, uint64_t now_ns);

/* ---- tl_nack.c ---- */

/** Refuse a packet of the data window. */
void san_tl_nack(struct san_tl *tl, const struct san_tl_conn *tc, uint32_t psn, uint32_t rsn,
		 uint8_t code);
/** Refuse a request for lack of a place to remember it. */
void san_tl_nack_request(struct san_tl *tl, const struct san_tl_conn *tc, uint32_t psn,
			 uint32_t rsn);
enum san_drop san_tl_rx_nack(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			     uint64_t now_ns);
enum san_drop san_tl_rx_resync(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			       uint64_t now_ns);
/** Was it sent before the initiator knew of our last RNR? (design, rule 4) */
bool san_tl_is_old_round(const struct san_tl_conn *tc, const struct san_wire_pkt *p);
/** For such a packet, which is refused, the NACK again. */
void san_tl_repeat_nack(struct san_tl *tl, const struct san_tl_conn *tc,
			const struct san_wire_pkt *p);
/** RNR for the RSN of *r*: drop what is held and placed of it (ordered: and above). */
void san_tl_rnr(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint32_t psn,
		uint64_t now_ns);
/** No record for *rsn*, or no place to hold the packet *psn* of it. */
void san_tl_no_record(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn, uint32_t rsn,
		      uint64_t now_ns);
/**
 * Ordered: the base waits for a record. The pushes behind it, and itself if it is one,
 * are withdrawn, or their PSNs would fill the window; *psn* is of one of them.
 */
void san_tl_base_waits(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn, uint64_t now_ns);
/**
 * The record of the base, an unsolicited push, is for others: all of it comes again. The peer
 * gets the NACK when it sends.
 */
void san_tl_base_give_up(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** What came of the push is dropped for *reason*: all of it comes again. *r* may be gone then. */
void san_tl_push_reset(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
		       enum san_drop reason, uint64_t now_ns);
/** A finished RSN was completed in error with *code*, or not at all in error (OK). */
void san_tl_refused_set(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, uint8_t code);
/** They are all OK: their memory goes back. */
void san_tl_refused_return(struct san_tl *tl, struct san_tl_conn *tc);
/** Status of a finished RSN: OK, or the error that its packets are answered with. */
uint8_t san_tl_refused_get(const struct san_tl_conn *tc, uint32_t rsn);
/** A push that is neither given up nor over. */
bool san_tl_is_live_push(const struct san_tl_txn *t);
/** All of the push goes again, from the first byte; or it is given up, if nobody wants it. */
void san_tl_push_rewind(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t);
/** Give *t* up with *status*. */
void san_tl_txn_abort(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
		      uint8_t status);
bool san_tl_next_abort(struct san_tl *tl, struct san_tl_conn *tc, struct san_pdl_entry *e);
/** The delay of an RNR may be over. */
void san_tl_rnr_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns);
/** When it will be; NEVER: none. */
uint64_t san_tl_rnr_due_ns(const struct san_tl_conn *tc);

#endif /* TL_PRIV_H */
