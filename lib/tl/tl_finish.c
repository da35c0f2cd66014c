/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion at the initiator: ACKs of its packets, and the report of a transaction when nothing of
 * it is outstanding (RT-14, RT-20, RT-32, PCB-3, PCB-5).
 *
 * On an ordered connection, transactions finished ahead of the base RSN are kept in the CAM until
 * their turn to be reported.
 */

#include "tl_priv.h"

#define RUN_MAX SAN_WIRE_PACK_MAX /* maximum number of pushes reported together */

/* ---- message acknowledgments ---- */

static void
msg_leave(struct san_tl_conn *tc, struct san_tl_txn *t)
{
	if (!t->msg_counted)
		return;
	t->msg_counted = false;
	tc->nb_msgs--;
}

/* Pushes of ordered connections are acknowledged as messages by the cumulative RSN (PCB-5). */
static void
on_cmpl_in(struct san_tl *tl, struct san_pdl_conn *c)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t;
	uint32_t rsn;

	if (!tc->open)
		return;
	if (san_seq_lt(c->cmpl_in, tc->msg_rsn) || san_seq_gt(c->cmpl_in, tc->rsn_next))
		return;
	rsn = tc->peer.ordered ? san_seq_max(tc->msg_rsn, tc->rsn_base) : c->cmpl_in;
	for (; san_seq_lt(rsn, c->cmpl_in); rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (t != NULL && t->req.type == SAN_TL_PUSH)
			msg_leave(tc, t);
	}
	tc->msg_rsn = c->cmpl_in;
	if (tc->adm_rsn != tc->rsn_next)
		san_pdl_sched_kick(tl->pdl, c);
}

/* ---- the end of a transaction ---- */

static inline void
finish_report_txn(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	san_tl_ulp_cmpl(tl->conf.ulp, &t, 1, t->status);
	san_tl_txn_free_all(tl, tc, &t, 1);
}

/* Take the transaction of the base RSN, if it is finished; else NULL. */
static struct san_tl_txn *
take_done(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_tl_txn *t = NULL;

	if (tc->nb_cam_cmpl != 0)
		t = san_tl_reorder_take(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_CMPL,
					tc->rsn_base);
	if (t != NULL) {
		tc->nb_cam_cmpl--;
	} else if (tc->nb_cmpl_lost != 0) {
		t = san_tl_txn_at(tc, tc->rsn_base);
		if (t != NULL && t->state != SAN_TXN_DONE)
			t = NULL;
		tc->nb_cmpl_lost -= t != NULL;
	}
	return t;
}

static inline void
report_ordered(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	if (t->rsn != tc->rsn_base) {
		if (san_tl_reorder_add(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_CMPL, t->rsn,
				       t) == 0)
			tc->nb_cam_cmpl++;
		else
			tc->nb_cmpl_lost++; /* the ACK counts: found by its record later */
		return;
	}
	do {
		finish_report_txn(tl, tc, t);
		tc->rsn_base++;
		t = NULL;
		if (unlikely(tc->nb_cam_cmpl + tc->nb_cmpl_lost != 0))
			t = take_done(tl, tc);
	} while (t != NULL);
}

/* Move the base past *n* reported transactions, which are the lowest ones if ordered. */
static inline void
pass_base(struct san_tl_conn *tc, uint32_t n)
{
	if (tc->peer.ordered) {
		tc->rsn_base += n;
		return;
	}
	while (tc->rsn_base != tc->rsn_next && san_tl_txn_at(tc, tc->rsn_base) == NULL)
		tc->rsn_base++;
}

void
san_tl_finish_txn(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t, uint8_t status)
{
	t->status = status;
	san_tl_txn_set(t, SAN_TXN_DONE);
	san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_NONE);
	if (unlikely(t->has_extra)) {
		san_tl_admit_charge_release(tl, &san_tl_extra(tl, t)->charge);
		san_tl_rxn_pull_last_drop(tl, tc, t, SAN_DROP_FINISHED);
	}
	if (t->solicited)
		san_tl_solicit_ssn_end(tl, tc, t);
	if (t->req.type != SAN_TL_PUSH)
		tc->nb_pulls--;
	/* no packet refers to it: report it now, or when its turn comes */
	msg_leave(tc, t);
	if (tc->peer.ordered) {
		report_ordered(tl, tc, t);
	} else {
		finish_report_txn(tl, tc, t);
		pass_base(tc, 0);
	}
	if (tc->want != 0)
		san_tl_want_wake_own(tl, tc);
	san_tl_wake(tl);
}

void
san_tl_finish_settle(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	if (t->nb_unacked != 0)
		return;
	if (t->state == SAN_TXN_ABORTING) {
		/* An aborted transaction whose request is unanswered must be able to resend it. */
		if (t->aborted && (!t->abort_acked || (t->req_sent && !t->req_acked)))
			return;
		san_tl_finish_txn(tl, tc, t, t->last_acked ? SAN_ST_OK : t->status);
	} else if (t->state == SAN_TXN_SENT && t->req.type == SAN_TL_PUSH) {
		san_tl_finish_txn(tl, tc, t, SAN_ST_OK);
	}
}

/* ---- acknowledged packets ---- */

static inline bool
finish_is_whole_push(const struct san_pdl_entry *e)
{
	return e->op == SAN_OP_PUSH_PACKED ||
		(e->op == SAN_OP_PUSH_UNSLCTD_DATA && (e->flags & SAN_F_LAST) != 0);
}

/*
 * True if *e* ends its pushes in the common way: they have their turn, and nothing else of them is
 * outstanding.
 */
static inline bool
is_plain_end(const struct san_tl_conn *tc, const struct san_pdl_entry *e, struct san_tl_txn **done,
	     uint32_t nb_done)
{
	uint32_t i, rsn = tc->rsn_base + nb_done;

	if (tc->peer.ordered && e->rsn != rsn)
		return false;
	for (i = 0; i <= e->aux; i++) {
		struct san_tl_txn *t = san_tl_txn_at(tc, e->rsn + i);

		SAN_ASSERT(t != NULL && t->nb_unacked > 0);
		if (t->state != SAN_TXN_SENT || t->nb_unacked != 1 || t->has_extra)
			return false;
		done[nb_done + i] = t;
	}
	return true;
}

/*
 * Fast path for most acknowledged packets: pushes that end with them. Pushes in a row are reported
 * together. Returns how many of *e* were processed; the next one takes the general path.
 */
static uint32_t
finish_retire_entries(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e,
		      uint32_t n)
{
	struct san_tl_txn *done[RUN_MAX];
	uint32_t i, k = 0;

	/* This path wakes no connection and looks for no finished transactions behind these. */
	if (tc->want != 0 || tl->nb_waiting != 0 || tc->nb_cam_cmpl + tc->nb_cmpl_lost != 0)
		return 0;
	for (i = 0; i < n && finish_is_whole_push(&e[i]) && k + e[i].aux < RUN_MAX; i++) {
		if (!is_plain_end(tc, &e[i], done, k))
			break;
		k += e[i].aux + 1;
	}
	if (k == 0)
		return 0;
	san_tl_ulp_cmpl(tl->conf.ulp, done, k, SAN_ST_OK);
	san_tl_txn_free_all(tl, tc, done, k);
	pass_base(tc, k);
	return i;
}

/* Process one acknowledged push packet of any kind. */
static void
on_acked_push(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e)
{
	bool last = (e->flags & SAN_F_LAST) != 0 || e->op == SAN_OP_PUSH_PACKED;
	uint32_t i;

	for (i = 0; i <= e->aux; i++) {
		struct san_tl_txn *t = san_tl_txn_at(tc, e->rsn + i);

		SAN_ASSERT(t != NULL && t->nb_unacked > 0);
		t->nb_unacked--;
		if (e->op == SAN_OP_RESYNC) {
			t->abort_acked |= e->status == SAN_RESYNC_ABORT;
		} else {
			san_tl_rnr_over(tl, t); /* the target is ready */
			t->last_acked |= last;
		}
		san_tl_finish_settle(tl, tc, t);
	}
}

/* The peer acknowledged a packet, so it has resources again, or will soon (RT-35). */
static void
deferred_progress(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e,
		  uint32_t n, uint64_t now_ns)
{
	bool taken = false, pulled = false;
	uint32_t i;

	for (i = 0; i < n; i++) {
		taken |= san_tl_is_push_data(e[i].op) || e[i].win == SAN_WIN_REQ;
		pulled |= e[i].op == SAN_OP_PULL_DATA; /* frees a record of the peer */
	}
	if (taken)
		tc->nb_deferred = 0;
	if (taken || pulled) {
		tc->deferred_us = (uint32_t)(now_ns / SAN_NS_PER_US);
		san_pdl_pcb_set_crowded(tl->pdl, san_tl_pdl_conn(tl, tc), false);
	}
}

static void
on_acked(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e, uint32_t n,
	 uint64_t now_ns)
{
	struct san_tl_txn *t;
	uint32_t i, k;

	if (!tc->open)
		return;
	if (unlikely(tc->nb_deferred != 0))
		deferred_progress(tl, tc, e, n, now_ns);
	for (i = 0; i < n; i += k) {
		k = finish_is_whole_push(&e[i]) ? finish_retire_entries(tl, tc, &e[i], n - i) : 0;
		if (k != 0)
			continue;
		k = 1;
		switch (e[i].op) {
		case SAN_OP_PUSH_SLCTD_DATA:
		case SAN_OP_PUSH_UNSLCTD_DATA:
		case SAN_OP_PUSH_PACKED:
		case SAN_OP_RESYNC:
			on_acked_push(tl, tc, &e[i]);
			break;
		case SAN_OP_PUSH_SLCTD_REQ:
		case SAN_OP_PULL_REQ:
		case SAN_OP_ATOMIC_REQ:
			t = san_tl_txn_at(tc, e[i].rsn);
			if (t == NULL)
				break;
			t->req_acked = true;
			san_tl_finish_settle(tl, tc, t);
			break;
		case SAN_OP_PULL_DATA:
			san_tl_pull_acked(tl, tc, &e[i]);
			break;
		default: /* a grant: the initiator has recorded it */
			break;
		}
	}
}

void
san_tl_finish_acked(struct san_tl *tl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct san_pdl *pdl = tl->pdl;

	if (pdl->nb_acked != 0) {
		on_acked(tl, &tl->conns[c->slot], pdl->acked, pdl->nb_acked, now_ns);
		pdl->nb_acked = 0;
	}
	/* Do this last: transactions that are finished by now need not be processed. */
	if (c->cmpl_in != tl->conns[c->slot].msg_rsn)
		on_cmpl_in(tl, c);
}

void
san_tl_finish_close(struct san_tl *tl, struct san_tl_conn *tc, uint8_t status)
{
	uint32_t rsn;
	struct san_tl_txn *t;

	san_tl_want_end(tl, tc->slot);
	for (rsn = tc->rsn_base; rsn != tc->rsn_next; rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (t != NULL && t->state != SAN_TXN_DONE)
			san_tl_finish_txn(tl, tc, t, status);
	}
	SAN_VERIFY(tc->nb_txns == 0 && tc->rsn_base == tc->rsn_next);
}
