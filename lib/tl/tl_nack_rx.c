/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a NACK or a RESYNC does to the side that receives it (RT-23, RT-27; RULE-4, RULE-5), and
 * how a transaction is given up. tl_nack.c says when NACKs are sent.
 *
 * Abort. RESYNC(abort) finishes the RSN at the target, even if nothing else of it ever arrived. The
 * request of a solicited push is sent all the same, because the target needs its SSN. A push can be
 * aborted only before its LAST has a PSN. Packets that are sent stay as they are: the target may
 * hold them, and a RESYNC under the same PSN would be a duplicate. An acknowledged LAST keeps its
 * meaning.
 *
 * On an ordered connection RESYNC(abort) takes the place of LAST among the data (RULE-3). It waits
 * until the RSN is the oldest unfinished one, and then the target can always accept it. Ahead of
 * the base it would need a record. PSNs that wait for records would fill the window that lower RSNs
 * need (RT-26).
 */

#include "tl_priv.h"

#define RESOURCE_DELAY_MAX_NS (10 * SAN_NS_PER_MS)
#define DEFER_MAX_NS          (100 * SAN_NS_PER_MS)
#define DEFER_STEP            16 /* consecutive refusals that lengthen the delay by one step */
#define DEFER_RTTS            4  /* reduce the window after so many without acceptance */

/* ---- target: RESYNC ---- */

static void
abort_record(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint64_t now_ns)
{
	san_tl_rxn_held_drop(tl, tc, r, true, SAN_DROP_ABORTED, now_ns);
	if (r->has_last)
		san_pdl_rx_ack(tl->pdl, san_tl_pdl_conn(tl, tc), r->last_psn, now_ns);
	san_tl_rxn_push_undo(tl, tc, r);
	san_tl_rxn_unreserve(tl, tc, r);
	r->has_last = false;
	san_tl_rxn_set(tl, r, SAN_RXN_ABORTED);
	san_tl_rxn_ssn_leave(tl, tc, r);
	san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_NONE);
	san_tl_rxn_out(tl, tc, r, false);
	san_tl_admit_charge_release(tl, &r->charge);
	if (san_tl_in_turn(tc, r->rsn))
		san_tl_rxn_free(tl, tc, r);
}

/* False: no record is free, which the abort of a later RSN needs. */
static bool
abort_rsn(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, uint64_t now_ns)
{
	struct san_tl_rxn *r = san_tl_target_rxn_find(tl, tc, rsn);

	if (r != NULL) {
		abort_record(tl, tc, r, now_ns);
	} else if (!san_tl_in_turn(tc, rsn)) {
		r = san_tl_rxn_new(tl, tc, rsn, false);
		if (r == NULL)
			return false;
		san_tl_rxn_set(tl, r, SAN_RXN_ABORTED);
	}
	if (san_tl_in_turn(tc, rsn))
		san_tl_target_rsn_finish(tl, tc, rsn, SAN_ST_OK);
	return true;
}

enum san_drop
san_tl_nack_rx_resync(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
		      uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	enum san_drop drop = SAN_DROP_NONE;
	enum san_verdict verdict = SAN_RX_ACKED;

	tl->stats.nb_resync_rx++;
	if (p->status == SAN_RESYNC_ABORT) {
		if (san_tl_target_is_finished(tc, p->rsn)) {
			san_tl_pull_cancel(tl, tc, p->rsn);
		} else if (p->rsn - tc->rx_base >= tc->peer.n_rx) {
			verdict = SAN_RX_REFUSED;
			drop = SAN_DROP_RSN;
		} else if (!abort_rsn(tl, tc, p->rsn, now_ns)) {
			verdict = SAN_RX_REFUSED;
			drop = SAN_DROP_NO_TXN;
			san_tl_nack(tl, tc, p->psn, p->rsn, SAN_ST_RESOURCE);
		}
	}
	return san_tl_settle(tl, c, m, verdict, drop, now_ns);
}

/* ---- initiator: NACKs in ---- */

void
san_tl_nack_push_rewind(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	t->sent = 0;
	t->nb_packed = 0;
	t->last_sent = false;
	san_tl_txn_set(t, t->req_sent ? SAN_TXN_SENDING : SAN_TXN_POSTED);
	if (t->unwanted)
		san_tl_nack_txn_abort(tl, tc, t, t->status);
}

bool
san_tl_nack_is_live_push(const struct san_tl_txn *t)
{
	return t != NULL && t->req.type == SAN_TL_PUSH && t->state != SAN_TXN_ABORTING &&
		t->state != SAN_TXN_DONE;
}

/*
 * Ordered: wait from *rsn* on, whatever the state of its transaction. It may be given up or even
 * freed, but the transactions above it are refused all the same.
 */
static void
wait_ordered(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, uint8_t round,
	     uint64_t until_ns)
{
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	struct san_tl_txn *t;
	uint32_t i;

	c->rnr_round_out = round;
	san_pdl_rtx_cancel(tl->pdl, c, rsn, true, SAN_RESYNC_FILL);
	for (i = san_seq_max(rsn, tc->rsn_base); i != tc->rsn_next; i++) {
		t = san_tl_txn_at(tc, i);
		if (!san_tl_nack_is_live_push(t))
			continue;
		/*
		 * The target may have refused this one for good ahead of its turn. It gives that
		 * answer only to a push that is sent alone.
		 */
		t->alone |= tc->peer.relaxed;
		san_tl_nack_push_rewind(tl, tc, t);
	}
	if (san_seq_gt(tc->data_rsn, rsn))
		tc->data_rsn = san_seq_max(rsn, tc->rsn_base);
	tc->rnr_rsn_tx = rsn;
	tc->rnr_until_ns = RTE_MAX(until_ns, 1u);
	san_tl_deadline(tl, tc, tc->rnr_until_ns);
}

static uint64_t
rnr_limit_ns(const struct san_tl_conn *tc, uint64_t since_ns)
{
	return san_tl_rnr_end_ns(since_ns, tc->peer.rnr_tx_ms);
}

/* True if the target was not ready for *t* for the whole time that both sides agreed on. */
static bool
is_rnr_over(const struct san_tl *tl, const struct san_tl_conn *tc, const struct san_tl_txn *t,
	    uint64_t now_ns)
{
	uint64_t since_ns = san_tl_rnr_since_ns(tl, t);

	return since_ns != 0 && now_ns >= rnr_limit_ns(tc, since_ns);
}

static void
resume_ordered(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	struct san_tl_txn *t = san_tl_txn_at(tc, tc->rnr_rsn_tx);

	if (tc->rnr_until_ns == 0 || now_ns < tc->rnr_until_ns)
		return;
	tc->rnr_until_ns = 0;
	if (san_tl_nack_is_live_push(t) && is_rnr_over(tl, tc, t, now_ns))
		san_tl_nack_txn_abort(tl, tc, t, SAN_ST_RNR);
	san_pdl_sched_kick(tl->pdl, san_tl_pdl_conn(tl, tc));
}

/* The delay of *t* is over. */
static void
resume_unordered(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t, uint64_t now_ns)
{
	san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_NONE);
	if (is_rnr_over(tl, tc, t, now_ns))
		san_tl_nack_txn_abort(tl, tc, t, SAN_ST_RNR);
	else
		san_tl_txn_ready(tl, tc, t);
	san_pdl_sched_kick(tl->pdl, san_tl_pdl_conn(tl, tc));
}

static void
wait_unordered(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t, uint64_t until_ns,
	       uint64_t now_ns)
{
	san_pdl_rtx_cancel(tl->pdl, san_tl_pdl_conn(tl, tc), t->rsn, false, SAN_RESYNC_FILL);
	if (san_tl_nack_is_live_push(t))
		san_tl_nack_push_rewind(tl, tc, t);
	if (!san_tl_nack_is_live_push(t))
		return; /* given up: only its place in the window was still needed */
	if (until_ns <= now_ns) {
		resume_unordered(tl, tc, t, now_ns);
		return;
	}
	san_tl_extra(tl, t)->wait_ns = until_ns;
	tc->memo->wait_due_ns = san_time_min(tc->memo->wait_due_ns, until_ns);
	san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_WAIT);
	san_tl_deadline(tl, tc, until_ns);
}

/*
 * Delay after a refusal for lack of a record or of space. *n* counts packets. It grows with the
 * packets refused since one was accepted. If none was accepted for some round trips, the window is
 * reduced, too (RT-35): otherwise whole windows are resent again and again and fill the link of a
 * target whose resources others hold. While some are accepted the window stays, because their data
 * frees resources.
 */
static uint64_t
refused_delay_ns(struct san_tl *tl, struct san_tl_conn *tc, const struct san_wire_pkt *p,
		 uint32_t n, uint64_t now_ns)
{
	uint64_t delay_ns = RTE_MIN(p->delay_us * SAN_NS_PER_US, RESOURCE_DELAY_MAX_NS);
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	uint32_t now_us = (uint32_t)(now_ns / SAN_NS_PER_US);

	if (tc->nb_deferred == 0)
		tc->deferred_us = now_us;
	delay_ns = RTE_MIN(delay_ns * (1 + tc->nb_deferred / DEFER_STEP), DEFER_MAX_NS);
	if (tc->nb_deferred >= DEFER_STEP &&
	    (uint32_t)(now_us - tc->deferred_us) >= DEFER_RTTS * c->rtt.srtt_ns / SAN_NS_PER_US)
		san_pdl_pcb_set_crowded(tl->pdl, c, true);
	tc->nb_deferred = (uint16_t)RTE_MIN(tc->nb_deferred + n, (uint32_t)UINT16_MAX);
	return delay_ns;
}

/*
 * *t* was refused: from now on it is sent alone, and so are the messages it shared a packet with.
 * On an unordered connection those, which were withdrawn with it, are sent at once.
 */
static void
nack_unpack(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	uint32_t i, n = t->nb_packed;

	t->alone = true;
	t->nb_packed = 0;
	for (i = 1; i < n; i++) {
		struct san_tl_txn *next = san_tl_txn_at(tc, t->rsn + i);

		if (next == NULL)
			continue;
		next->alone = true;
		if (tc->peer.ordered || !san_tl_nack_is_live_push(next))
			continue;
		san_tl_nack_push_rewind(tl, tc, next);
		san_tl_txn_ready(tl, tc, next);
	}
}

/* RNR, or no record: withdraw the data, wait, resend. *t* is NULL only on ordered connections. */
static enum san_drop
on_not_now(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
	   const struct san_wire_pkt *p, uint64_t now_ns)
{
	uint8_t known = tc->peer.ordered ? san_tl_pdl_conn(tl, tc)->rnr_round_out : t->round;
	uint64_t until_ns = now_ns + p->delay_us * SAN_NS_PER_US;
	bool unpack = (p->flags & SAN_F_UNPACK) != 0;
	struct san_tl_extra *x;

	if ((int8_t)(p->round - known) <= 0)
		return SAN_DROP_NACK_STALE;
	tl->stats.nb_rnr_rx += p->status == SAN_ST_RNR;
	tl->stats.nb_unpack_rx += unpack;
	/* Each message of a packed push that was not ready is sent alone for its own answer. */
	if (p->status == SAN_ST_RNR && !unpack && san_tl_nack_is_live_push(t)) {
		x = san_tl_txn_extra_use(tl, t);
		if (x->rnr_since_ns == 0)
			x->rnr_since_ns = RTE_MAX(now_ns, 1u);
		until_ns = RTE_MIN(until_ns, rnr_limit_ns(tc, x->rnr_since_ns));
	} else {
		if (p->status == SAN_ST_RESOURCE && t != NULL)
			san_tl_rnr_over(tl, t); /* the receives are not the problem */
		until_ns = now_ns + refused_delay_ns(tl, tc, p, DEFER_STEP, now_ns);
	}
	if (t != NULL)
		nack_unpack(tl, tc, t);
	if (tc->peer.ordered) {
		wait_ordered(tl, tc, p->rsn, p->round, until_ns);
		resume_ordered(tl, tc, now_ns);
	} else {
		t->round = p->round;
		wait_unordered(tl, tc, t, until_ns, now_ns);
	}
	return SAN_DROP_NONE;
}

/* No record or no space: resend the same packet later. */
static enum san_drop
nack_defer_push(struct san_tl *tl, struct san_pdl_conn *c, const struct san_pdl_entry *e,
		const struct san_wire_pkt *p, uint64_t now_ns)
{
	if (p->status != SAN_ST_RESOURCE || e->rsn != p->rsn)
		return SAN_DROP_NACK_STALE;
	/* In the data window only pushes and aborts need a record: other NACKs are stale. */
	if (e->win == SAN_WIN_DATA && !san_tl_is_push_data(e->op) &&
	    !(e->op == SAN_OP_RESYNC && e->status == SAN_RESYNC_ABORT))
		return SAN_DROP_NACK_STALE;
	san_pdl_rtx_defer(tl->pdl, c, e->win, e->psn,
			  refused_delay_ns(tl, &tl->conns[c->slot], p, 1, now_ns), now_ns);
	return SAN_DROP_NONE;
}

enum san_drop
san_tl_nack_rx(struct san_tl *tl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
	       uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t = san_tl_txn_at(tc, p->rsn);
	enum san_win win = p->flags & SAN_F_WIN_DATA ? SAN_WIN_DATA : SAN_WIN_REQ;
	bool is_new = (int8_t)(p->round - c->rnr_round_out) > 0;
	const struct san_pdl_entry *e;

	/* RULE-17: the NACK must refer to an outstanding PSN. */
	if (!san_pdl_rtx_is_outstanding(c, win, p->nack_psn))
		return SAN_DROP_NACK_STALE;
	e = san_pdl_win_tx_entry(c->txb, win, p->nack_psn);
	if (!san_tl_is_push_data(e->op))
		return nack_defer_push(tl, c, e, p, now_ns);
	/*
	 * Ordered: an RNR names the first refused RSN, and the PSN may belong to a later one. So
	 * does a refusal because the base found no record, which starts a new round. A refusal
	 * without a new round defers one packet.
	 */
	if (tc->peer.ordered &&
	    (p->status == SAN_ST_RNR || (p->status == SAN_ST_RESOURCE && is_new)))
		return san_seq_ge(e->rsn, p->rsn) ? on_not_now(tl, tc, t, p, now_ns) :
						    SAN_DROP_NACK_STALE;
	if (e->rsn != p->rsn || t == NULL)
		return SAN_DROP_NACK_STALE;
	if (p->status == SAN_ST_RNR || p->status == SAN_ST_RESOURCE) {
		return tc->peer.ordered ? nack_defer_push(tl, c, e, p, now_ns) :
					  on_not_now(tl, tc, t, p, now_ns);
	}
	if (e->op == SAN_OP_PUSH_PACKED) /* its messages get a final refusal only when sent alone */
		return SAN_DROP_NACK_STALE;
	/* The target is done with the RSN: an abort that was not sent is not needed. */
	if (t->list == SAN_TXN_LIST_ABORT)
		t->aborted = false;
	t->status = p->status;
	san_tl_txn_set(t, SAN_TXN_ABORTING);
	san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_NONE);
	san_pdl_rtx_cancel(tl->pdl, c, t->rsn, false, SAN_RESYNC_FILL);
	san_tl_finish_settle(tl, tc, t);
	return SAN_DROP_NONE;
}

/* ---- initiator: the delay is over ---- */

void
san_tl_nack_rnr_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	struct san_tl_extra *x, *next;

	resume_ordered(tl, tc, now_ns);
	if (tc->memo == NULL || now_ns < tc->memo->wait_due_ns)
		return;
	tc->memo->wait_due_ns = SAN_TIME_NEVER;
	for (x = TAILQ_FIRST(&tc->memo->wait); x != NULL; x = next) {
		next = TAILQ_NEXT(x, link);
		if (now_ns >= x->wait_ns)
			resume_unordered(tl, tc, san_tl_extra_txn(tl, x), now_ns);
		else
			tc->memo->wait_due_ns = san_time_min(tc->memo->wait_due_ns, x->wait_ns);
	}
}

uint64_t
san_tl_nack_rnr_due_ns(const struct san_tl_conn *tc)
{
	uint64_t due_ns = tc->memo != NULL ? tc->memo->wait_due_ns : SAN_TIME_NEVER;

	return tc->rnr_until_ns != 0 ? san_time_min(tc->rnr_until_ns, due_ns) : due_ns;
}

/* ---- initiator: abort ---- */

void
san_tl_nack_txn_abort(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
		      uint8_t status)
{
	if (t->state == SAN_TXN_ABORTING || t->state == SAN_TXN_DONE)
		return;
	t->status = status;
	if (t->last_sent) {
		t->unwanted = true;
		return;
	}
	tl->stats.nb_aborts++;
	san_tl_txn_set(t, SAN_TXN_ABORTING);
	t->aborted = true;
	if (t->has_extra)
		san_tl_admit_charge_release(tl, &san_tl_extra(tl, t)->charge);
	san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_NONE);
	/* The request is sent first, for its SSN. */
	if (!t->solicited || t->req_sent)
		san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_ABORT);
	san_pdl_sched_kick(tl->pdl, san_tl_pdl_conn(tl, tc));
}

bool
san_tl_nack_next_abort(struct san_tl *tl, struct san_tl_conn *tc, struct san_pdl_entry *e)
{
	struct san_tl_txn *t = san_tl_txn_first(tl, &tc->aborts);

	/* Ordered: wait until it is the oldest. Otherwise the target would need a record for it. */
	if (t != NULL && tc->peer.ordered)
		t = san_tl_txn_at(tc, tc->rsn_base);
	if (t == NULL || t->list != SAN_TXN_LIST_ABORT)
		return false;
	e->op = SAN_OP_RESYNC;
	e->flags = SAN_F_WIN_DATA;
	e->status = SAN_RESYNC_ABORT;
	e->rsn = t->rsn;
	t->nb_unacked++;
	san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_NONE);
	return true;
}
