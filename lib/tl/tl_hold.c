/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Tells operators why san_tl_tx_next() would find nothing. It walks at most the transactions that
 * are not sent yet, and moves none of the pointers that walk them.
 */

#include "tl_priv.h"

/* Hold reason of the first push data that is not sent; ANSWER: there is none. */
static enum san_hold
push_hold(const struct san_tl_conn *tc)
{
	uint32_t rsn = tc->peer.ordered ? tc->data_rsn : tc->rsn_base;
	const struct san_tl_txn *t;

	if (tc->memo != NULL && !TAILQ_EMPTY(&tc->memo->ready))
		return SAN_HOLD_NONE;
	if (tc->memo != NULL && !TAILQ_EMPTY(&tc->memo->wait))
		return SAN_HOLD_RECEIVER;
	for (; rsn != tc->adm_rsn; rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (!san_tl_nack_is_live_push(t) || t->last_sent)
			continue;
		if (tc->rnr_until_ns != 0)
			return SAN_HOLD_RECEIVER;
		return san_tl_txn_can_send(t) ? SAN_HOLD_NONE : SAN_HOLD_GRANT;
	}
	return SAN_HOLD_ANSWER;
}

enum san_hold
san_tl_hold(const struct san_tl *tl, const struct san_pdl_conn *c, uint64_t now_ns)
{
	const struct san_tl_conn *tc = &tl->conns[c->slot];
	const struct san_tl_txn *t;
	enum san_hold hold;
	uint32_t rsn;

	if (!tc->open || c->state != SAN_CONN_OPEN)
		return SAN_HOLD_SETUP;
	if (!TAILQ_EMPTY(&tc->queues->pulls))
		return san_pdl_hold(tl->pdl, c, SAN_WIN_DATA, now_ns);
	for (rsn = tc->req_rsn; rsn != tc->adm_rsn; rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (t != NULL && san_tl_owes_request(t)) /* it waits only for packet delivery */
			return san_pdl_hold(tl->pdl, c, SAN_WIN_REQ, now_ns);
	}
	/* Refused by the peer, and all others wait for it. It is retried from time to time. */
	t = san_tl_txn_at(tc, tc->rsn_base);
	if (tc->peer.ordered && t != NULL && san_tl_rnr_since_ns(tl, t) != 0)
		return SAN_HOLD_RECEIVER;
	hold = push_hold(tc);
	if (hold == SAN_HOLD_NONE)
		return san_pdl_hold(tl->pdl, c, SAN_WIN_DATA, now_ns);
	if (hold != SAN_HOLD_ANSWER)
		return hold;
	/* Everything that tl accepted is sent: the reason for which it does not accept more. */
	if (tc->adm_rsn != tc->rsn_next)
		return SAN_HOLD_MESSAGES;
	if ((tc->want & SAN_WANT_RECORDS) != 0)
		return SAN_HOLD_RECORDS;
	if ((tc->want & SAN_WANT_BUDGET) != 0)
		return SAN_HOLD_PULLS;
	if ((tc->want & SAN_WANT_OWN) != 0)
		return SAN_HOLD_TRANSACTIONS;
	return tc->rsn_base != tc->rsn_next ? SAN_HOLD_ANSWER : SAN_HOLD_APPLICATION;
}
