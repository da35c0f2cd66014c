/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The end of what is held (RT-19, RT-35): after a time without progress, when the connection is
 * closed or the lcore is handed over. tl_rxn.c says how long that may take.
 */

#include "tl_priv.h"

void
san_tl_rxn_held_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	bool scarce = tc->held_scarce != (uint16_t)tl->nb_scarce;

	if (now_ns < tc->held_ns) {
		san_tl_deadline(tl, tc, tc->held_ns);
		return;
	}
	if (tc->held_at == san_tl_rxn_base_at(tc)) {
		san_tl_rxn_held_drop_all(tl, tc, SAN_DROP_HELD, now_ns);
		if (scarce && san_tl_rxn_can_give_up(tc))
			san_tl_nack_base_give_up(tl, tc, now_ns);
	} else if (tc->nb_held != 0) {
		san_tl_piece_drop(tl, tc, false, SAN_DROP_HELD);
		san_tl_rxn_held_watch(tl, tc, now_ns);
	}
	san_tl_rxn_base_watch(tl, tc, now_ns);
}

void
san_tl_rxn_held_drop_all(struct san_tl *tl, struct san_tl_conn *tc, enum san_drop reason,
			 uint64_t now_ns)
{
	struct san_tl_rxn *r, *next;
	uint32_t rsn;

	san_tl_piece_drop(tl, tc, true, reason);
	for (r = TAILQ_FIRST(&tc->queues->rxns); r != NULL; r = next) {
		next = TAILQ_NEXT(r, all_link);
		if (r->held_head != NULL && r == tc->cur) {
			/* drop only LAST: the rest of the base is placed and acknowledged */
			san_tl_rxn_held_drop(tl, tc, r, false, reason, now_ns);
			r->seen_last = false;
			r->arrived = r->received;
		} else if (r->held_head != NULL) {
			san_tl_nack_push_reset(tl, tc, r, reason, now_ns);
		}
	}
	for (rsn = tc->rsn_base; tc->nb_held != 0 && rsn != tc->rsn_next; rsn++)
		san_tl_rxn_pull_last_drop(tl, tc, san_tl_txn_at(tc, rsn), reason);
}

void
san_tl_rxn_close_all(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_tl_rxn *r;

	san_tl_piece_drop(tl, tc, true, SAN_DROP_STATE);
	while ((r = TAILQ_FIRST(&tc->queues->rxns)) != NULL) {
		san_tl_rxn_held_drop(tl, tc, r, false, SAN_DROP_STATE, 0);
		san_tl_rxn_push_undo(tl, tc, r);
		if (r->state == SAN_RXN_PULLING)
			san_tl_rxn_set_pulling(tl, tc, -1);
		san_tl_rxn_free(tl, tc, r);
	}
	san_tl_rxn_ssn_end_all(tl, tc);
	san_tl_pull_wait(tl, tc, false);
	SAN_VERIFY(!tc->in_admit);
}

/* Bytes that are granted and may still arrive, for the first time or again. */
static uint32_t
rxn_due_of(const struct san_tl_conn *tc, const struct san_tl_rxn *r)
{
	if (r->state != SAN_RXN_AHEAD && r->state != SAN_RXN_ACTIVE)
		return 0;
	return r->granted - (r->solicited && san_tl_in_turn(tc, r->rsn) ? r->received : 0);
}

static void
check_record(const struct san_tl *tl, const struct san_tl_conn *tc, const struct san_tl_rxn *r)
{
	bool ahead = san_seq_gt(r->rsn, tc->rx_base);

	SAN_VERIFY(r->state != SAN_RXN_FREE && r->slot == tc->slot);
	SAN_VERIFY(r->received <= r->arrived && r->arrived <= r->length);
	SAN_VERIFY(r->granted <= r->length && (!r->solicited || r->arrived <= r->granted));
	/* RT-13: all that is granted and not placed in its turn is counted. */
	SAN_VERIFY(r->charge.charged + r->charge.expired == rxn_due_of(tc, r));
	if (r->state == SAN_RXN_PULLING) {
		SAN_VERIFY(!r->in_cam && tc->cur != r);
		SAN_VERIFY(r->nb_unacked != 0 || r->queue == SAN_RXN_QUEUE_PULL);
		return;
	}
	/* Anything unfinished is found by its RSN. */
	SAN_VERIFY(ahead ? r->in_cam : tc->cur == r);
	SAN_VERIFY(!ahead || r->rsn - tc->rx_base < tc->peer.n_rx);
	/* Only LAST of the base is held, and nothing on an unordered connection. */
	SAN_VERIFY(r->held_head == NULL || tc->peer.ordered);
	SAN_VERIFY(r->held_head == NULL || ahead ||
		   (r->held_head == r->held_tail &&
		    (san_wire_pkt(r->held_head)->w.flags & SAN_F_LAST) != 0));
	SAN_VERIFY(r->held_head == NULL || tl->nb_held != 0);
	SAN_VERIFY(r->queue != SAN_RXN_QUEUE_GRANT || r->granted < r->length);
}

void
san_tl_rxn_check(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	uint32_t nb = 0, nb_ahead = 0, nb_pulling = 0, charged = 0;
	uint32_t nb_held = san_tl_piece_nb(tc);
	const struct san_tl_rxn *r;
	const struct san_tl_txn *t;
	struct rte_mbuf *m;
	uint32_t rsn, odd;

	for (rsn = tc->rsn_base; rsn != tc->rsn_next; rsn++) {
		t = san_tl_txn_at(tc, rsn);
		nb_held += t != NULL && san_tl_pull_last(tl, t) != NULL;
	}
	TAILQ_FOREACH(r, &tc->queues->rxns, all_link) {
		check_record(tl, tc, r);
		for (m = r->held_head; m != NULL; m = san_wire_pkt(m)->next)
			nb_held++;
		nb++;
		nb_ahead += r->in_cam;
		nb_pulling += r->state == SAN_RXN_PULLING;
		charged += r->charge.charged;
	}
	SAN_VERIFY(nb == tc->nb_rxns && nb_ahead == tc->nb_ahead && nb_pulling == tc->nb_pulling);
	SAN_VERIFY(nb_held == tc->nb_held && nb_held <= tl->conf.max_held_conn + SAN_TL_PIECES_MAX);
	SAN_VERIFY((nb == 0) == (tc->queues == &tl->no_queues) && charged == tc->charged);
	SAN_VERIFY(tl->pdl->conns[tc->slot].cmpl_out == tc->rx_base);
	SAN_VERIFY(!tc->grant_wait || !TAILQ_EMPTY(&tc->queues->grants));
	odd = tl->pdl->conns[tc->slot].odd;
	SAN_VERIFY((odd & SAN_ODD_BASE) == (tc->cur != NULL ? SAN_ODD_BASE : 0));
	SAN_VERIFY((odd & SAN_ODD_AHEAD) == (tc->nb_ahead != 0 ? SAN_ODD_AHEAD : 0));
	SAN_VERIFY(!(odd & SAN_ODD_HEAD) || (tc->peer.ordered && tc->cur == NULL));
	SAN_VERIFY(!(odd & SAN_ODD_FAILED) || tc->peer.ends);
	SAN_VERIFY(!(odd & SAN_ODD_RNR) || (tc->peer.ordered && tc->rnr_rsn == tc->rx_base));
	SAN_VERIFY(tc->in_admit == san_tl_admit_may_grant(tl, tc));
	r = TAILQ_FIRST(&tc->queues->grants);
	if (tc->peer.ordered)
		SAN_VERIFY(tc->rx_ssn == (r != NULL ? r->ssn : tc->ssn_queued));
}
