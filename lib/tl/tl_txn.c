/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The initiator's records: pool, ring by RSN, and the lists of a connection.
 *
 * An ordinary push needs only the cache line of its record. The rest, struct san_tl_extra, is in an
 * array of its own and becomes valid when needed, so this cannot fail.
 */

#include "tl_priv.h"

/* ---- states ---- */

/*
 * The changes of state that records of transactions make. san_tl_txn_set() and san_tl_rxn_set() in
 * tl_priv.h check them, in debug builds only. (RT-10, RULE-5)
 *
 *   initiator    POSTED -> SENDING -> SENT -> DONE; back to POSTED or SENDING if it is refused for
 *                now; ABORTING from each of them, then DONE
 *   target       AHEAD -> ACTIVE or PULLING; REFUSED or ABORTED until the base reaches it; back to
 *                AHEAD if the receiver is not ready
 */
#define TO(state) (1u << (state))

const uint8_t san_tl_txn_next[] = {
	[SAN_TXN_FREE] = 0,
	[SAN_TXN_POSTED] = TO(SAN_TXN_POSTED) | TO(SAN_TXN_SENDING) | TO(SAN_TXN_SENT) |
		TO(SAN_TXN_ABORTING) | TO(SAN_TXN_DONE),
	[SAN_TXN_SENDING] = TO(SAN_TXN_POSTED) | TO(SAN_TXN_SENDING) | TO(SAN_TXN_SENT) |
		TO(SAN_TXN_ABORTING) | TO(SAN_TXN_DONE),
	[SAN_TXN_SENT] = TO(SAN_TXN_POSTED) | TO(SAN_TXN_SENDING) | TO(SAN_TXN_ABORTING) |
		TO(SAN_TXN_DONE) | TO(SAN_TXN_FREE),
	[SAN_TXN_ABORTING] = TO(SAN_TXN_ABORTING) | TO(SAN_TXN_DONE),
	[SAN_TXN_DONE] = TO(SAN_TXN_FREE),
};

const uint8_t san_tl_txn_next_rxn[] = {
	[SAN_RXN_FREE] = 0,
	[SAN_RXN_AHEAD] = TO(SAN_RXN_AHEAD) | TO(SAN_RXN_ACTIVE) | TO(SAN_RXN_PULLING) |
		TO(SAN_RXN_REFUSED) | TO(SAN_RXN_ABORTED) | TO(SAN_RXN_FREE),
	[SAN_RXN_ACTIVE] = TO(SAN_RXN_AHEAD) | TO(SAN_RXN_REFUSED) | TO(SAN_RXN_ABORTED) |
		TO(SAN_RXN_FREE),
	[SAN_RXN_PULLING] = TO(SAN_RXN_FREE),
	[SAN_RXN_REFUSED] = TO(SAN_RXN_ABORTED) | TO(SAN_RXN_FREE),
	[SAN_RXN_ABORTED] = TO(SAN_RXN_ABORTED) | TO(SAN_RXN_FREE),
};

bool
san_tl_txn_ring_take(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_tl_txn **ring;

	if (tc->txn_mask != 0)
		return true;
	if (!san_tl_has_ring(tl, tc))
		return false;
	ring = san_pool_take(&tl->free_rings);
	tc->host->nb_rings++;
	if (tc->one != NULL)
		ring[SAN_TL_SLOT(tc->one->rsn)] = tc->one;
	tc->txns = ring;
	tc->txn_mask = SAN_TL_N_MAX - 1;
	return true;
}

struct san_tl_txn *
san_tl_txn_new(struct san_tl *tl, struct san_tl_conn *tc, const struct san_tl_req *const req[],
	       uint32_t n, bool counted)
{
	uint32_t i, mask, rsn = tc->rsn_next;
	struct san_tl_txn *t = NULL, **ring;
	uint16_t slot = tc->slot;

	if (tc->nb_txns == 0)
		san_tl_set_busy(tl, tc, true);
	if (tc->nb_txns + n > 1)
		san_tl_txn_ring_take(tl, tc);
	SAN_ASSERT(tc->nb_txns + n == 1 || tc->txn_mask != 0);
	ring = tc->txns;
	mask = tc->txn_mask;
	for (i = 0; i < n; i++) {
		t = san_pool_take(&tl->free_txns);
		*t = (struct san_tl_txn){
			.req = *req[i],
			.rsn = rsn + i,
			.slot = slot,
			.state = SAN_TXN_POSTED,
			.msg_counted = counted,
		};
		SAN_ASSERT(ring[t->rsn & mask] == NULL);
		ring[t->rsn & mask] = t;
	}
	tc->rsn_next += n;
	tc->nb_txns = (uint16_t)(tc->nb_txns + n);
	tc->host->nb_txns += n;
	tc->nb_issued += n;
	return t;
}

void
san_tl_txn_free_all(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *const t[],
		    uint32_t n)
{
	uint32_t i, nb_msgs = 0, mask = tc->txn_mask;
	struct san_tl_txn **ring = tc->txns;

	for (i = 0; i < n; i++) {
		san_tl_txn_set(t[i], SAN_TXN_FREE);
		nb_msgs += t[i]->msg_counted;
		ring[t[i]->rsn & mask] = NULL;
	}
	san_pool_give_all(&tl->free_txns, t, n);
	tc->nb_msgs = (uint16_t)(tc->nb_msgs - nb_msgs);
	tc->nb_txns = (uint16_t)(tc->nb_txns - n);
	tc->host->nb_txns -= n;
	if (tc->nb_txns == 0) {
		if (tc->txn_mask != 0) {
			san_pool_give(&tl->free_rings, tc->txns);
			tc->host->nb_rings--;
		}
		tc->one = NULL;
		tc->txns = &tc->one;
		tc->txn_mask = 0;
		if (!(tc->want & SAN_WANT_PROMISED))
			san_tl_set_busy(tl, tc, false);
	}
}

struct san_tl_extra *
san_tl_txn_extra_use(struct san_tl *tl, struct san_tl_txn *t)
{
	struct san_tl_extra *x = san_tl_extra(tl, t);

	if (!t->has_extra) {
		x->rnr_since_ns = 0;
		x->last = NULL;
		x->charge = (struct san_tl_charge){.slot = t->slot};
		t->has_extra = true;
	}
	return x;
}

/* ---- lists ---- */

/* A list that is not NONE. */
static struct san_tl_extras *
txn_list_of(struct san_tl_conn *tc, uint8_t list)
{
	return list == SAN_TXN_LIST_READY ? &tc->memo->ready :
		list == SAN_TXN_LIST_WAIT ? &tc->memo->wait :
					    &tc->aborts;
}

void
san_tl_txn_list(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
		enum san_txn_list list)
{
	if (t->list == list)
		return;
	if (t->list != SAN_TXN_LIST_NONE)
		TAILQ_REMOVE(txn_list_of(tc, t->list), san_tl_extra(tl, t), link);
	t->list = (uint8_t)list;
	if (list != SAN_TXN_LIST_NONE)
		TAILQ_INSERT_TAIL(txn_list_of(tc, t->list), san_tl_extra(tl, t), link);
}

bool
san_tl_txn_can_send(const struct san_tl_txn *t)
{
	if (t->req.type != SAN_TL_PUSH || t->state > SAN_TXN_SENDING)
		return false;
	return !t->solicited || t->sent < t->granted || t->sent == t->req.length;
}

void
san_tl_txn_ready(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	/* Ready once it is counted for PCB-3; a grant proves that it was. */
	if (!tc->peer.ordered && t->list == SAN_TXN_LIST_NONE &&
	    san_seq_lt(t->rsn, tc->adm_rsn) && san_tl_txn_can_send(t))
		san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_READY);
}
