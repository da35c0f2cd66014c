/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Refusals, and how gaps in the PSN space are filled (RT-23, RT-27, RT-33; RULE-4, RULE-5). A NACK
 * is not repeated: the next copy of the refused packet causes another NACK.
 *
 * RNR. The target drops what it has of RSN r (ordered: of r and all above) and starts a new round.
 * It refuses packets of an older round with the same NACK. The initiator turns their PSNs into
 * RESYNC and waits. Then it sends the data again under new PSNs, which echo the round. On an
 * ordered connection the round belongs to the connection. On an unordered one each RSN has its own
 * round, because no other RSN is refused.
 *
 * No record (unordered: for any RSN; ordered: for the base). The target refuses in the same way,
 * with SAN_ST_RESOURCE. Resending under the same PSN could fill the window with packets that wait
 * for records, while the transactions that hold records wait for the window (RT-26). On an ordered
 * connection packets ahead of the base are resent under the same PSN. The initiator recognises a
 * refusal of the base by its new round.
 *
 * A request or an abort that finds no record is resent under its PSN, on every connection.
 * Transactions that hold records need no place in the request window to finish, and a connection
 * sends one abort at a time. The NACK shows that the peer is alive, so it counts no retry.
 *
 * Complete-in-error. The target is done with the RSN at once. It remembers the status until the
 * initiator knows it, and answers every packet of the RSN with it. The initiator turns the PSNs
 * into RESYNC.
 */

#include "tl_priv.h"

#define REQUEST_DELAYS 8 /* delay of a request, in delays of data: it may be one of many */

/* ---- NACKs out ---- */

/* NACKs of one host in a burst: the others stay free for other hosts. (RT-36) */
#define HOST_BURST (SAN_TL_NACKS / 2)

static void
nack_add(struct san_tl *tl, const struct san_tl_conn *tc, uint8_t flags, uint32_t psn, uint32_t rsn,
	 uint8_t code, uint32_t delay_us)
{
	struct san_tl_nack *n;

	if (tl->nack_tail - tl->nack_head == SAN_TL_NACKS ||
	    !san_rate_take(&tc->host->nacks_ns, SAN_NS_PER_MS / tl->conf.nacks_per_ms, HOST_BURST,
			   tl->now_ns))
		return; /* the next copy asks again */
	n = &tl->nacks[tl->nack_tail++ & (SAN_TL_NACKS - 1)];
	*n = (struct san_tl_nack){
		.cid = tl->pdl->conns[tc->slot].cid,
		.slot = tc->slot,
		.code = code,
		.round = tc->peer.ordered ? tc->rnr_round : tc->memo->round[SAN_TL_SLOT(rsn)],
		.flags = flags,
		.psn = psn,
		.rsn = rsn,
		.delay_us = delay_us,
	};
}

void
san_tl_nack(struct san_tl *tl, const struct san_tl_conn *tc, uint32_t psn, uint32_t rsn,
	    uint8_t code)
{
	bool wait = code == SAN_ST_RNR || code == SAN_ST_RESOURCE;

	nack_add(tl, tc, SAN_F_WIN_DATA, psn, rsn, code, wait ? tl->conf.rnr_delay_us : 0);
}

/* RNR for a packed packet (*unpack*): its messages are resent alone without delay. */
static void
nack_later(struct san_tl *tl, const struct san_tl_conn *tc, uint32_t psn, uint32_t rsn,
	   uint8_t code, bool unpack)
{
	if (unpack && code == SAN_ST_RNR)
		nack_add(tl, tc, SAN_F_WIN_DATA | SAN_F_UNPACK, psn, rsn, code, 0);
	else
		san_tl_nack(tl, tc, psn, rsn, code);
}

void
san_tl_nack_request(struct san_tl *tl, const struct san_tl_conn *tc, uint32_t psn, uint32_t rsn)
{
	nack_add(tl, tc, 0, psn, rsn, SAN_ST_RESOURCE, REQUEST_DELAYS * tl->conf.rnr_delay_us);
}

bool
san_tl_nack_next(struct san_tl *tl, uint16_t *slot, struct san_wire_pkt *p)
{
	while (tl->nack_head != tl->nack_tail) {
		const struct san_tl_nack *n = &tl->nacks[tl->nack_head++ & (SAN_TL_NACKS - 1)];

		if (!tl->conns[n->slot].open || tl->pdl->conns[n->slot].cid != n->cid)
			continue;
		*slot = n->slot;
		*p = (struct san_wire_pkt){
			.op = SAN_OP_NACK,
			.flags = n->flags,
			.rsn = n->rsn,
			.round = n->round,
			.status = n->code,
			.nack_psn = n->psn,
			.delay_us = n->delay_us,
		};
		return true;
	}
	return false;
}

/* ---- target: not ready ---- */

bool
san_tl_nack_is_old_round(const struct san_tl_conn *tc, const struct san_wire_pkt *p)
{
	if (tc->peer.ordered)
		return tc->rnr_valid && san_seq_ge(p->rsn, tc->rnr_rsn) &&
			p->round != tc->rnr_round;
	return p->round != tc->memo->round[SAN_TL_SLOT(p->rsn)];
}

/*
 * Unordered: start the next round of *rsn*. Odd rounds mean a lack of records, even ones RNR. So a
 * repeated NACK has the code of the first.
 */
static void
next_round(struct san_tl_conn *tc, uint32_t rsn, uint8_t code)
{
	uint8_t *round = &tc->memo->round[SAN_TL_SLOT(rsn)];
	uint8_t odd = code == SAN_ST_RESOURCE;

	*round += (*round & 1) == odd ? 2 : 1;
}

void
san_tl_nack_repeat(struct san_tl *tl, const struct san_tl_conn *tc, const struct san_wire_pkt *p)
{
	bool packed = p->op == SAN_OP_PUSH_PACKED, odd;

	if (tc->peer.ordered) {
		nack_later(tl, tc, p->psn, tc->rnr_rsn, tc->rnr_code, tc->rnr_unpack);
		return;
	}
	odd = (tc->memo->round[SAN_TL_SLOT(p->rsn)] & 1) != 0;
	nack_later(tl, tc, p->psn, p->rsn, odd && !packed ? SAN_ST_RESOURCE : SAN_ST_RNR, packed);
}

void
san_tl_nack_push_reset(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
		       enum san_drop reason, uint64_t now_ns)
{
	san_tl_rxn_push_undo(tl, tc, r);
	if (r == &tl->scratch)
		return;
	san_tl_rxn_held_drop(tl, tc, r, false, reason, now_ns);
	if (r->has_last)
		san_pdl_rx_revoke(tl->pdl, san_tl_pdl_conn(tl, tc), r->last_psn);
	san_tl_rxn_set(tl, r, SAN_RXN_AHEAD);
	r->seen_last = false;
	r->has_last = false;
	r->received = 0;
	r->arrived = 0;
	if (!r->solicited) /* otherwise it stays granted */
		san_tl_rxn_free(tl, tc, r);
}

/* Ordered: start a new round, from *rsn* on. */
static void
refuse_onward(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, uint8_t code, bool unpack,
	      uint64_t now_ns)
{
	struct san_tl_rxn *r, *next;

	tc->rnr_round++;
	tc->rnr_rsn = rsn;
	tc->rnr_valid = true;
	san_tl_odd_put(tl, tc, SAN_ODD_RNR, true);
	tc->rnr_unpack = unpack;
	tc->rnr_code = code;
	for (r = TAILQ_FIRST(&tc->queues->rxns); r != NULL; r = next) {
		next = TAILQ_NEXT(r, all_link);
		if (r->type == SAN_TL_PUSH && san_seq_ge(r->rsn, rsn) &&
		    (r->state == SAN_RXN_AHEAD || r->state == SAN_RXN_ACTIVE))
			san_tl_nack_push_reset(tl, tc, r, SAN_DROP_RNR, now_ns);
	}
	san_tl_admit_update(tl, tc);
}

void
san_tl_nack_not_now(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint32_t psn,
		    uint8_t code, uint64_t now_ns)
{
	uint32_t rsn = r->rsn;
	bool unpack = r->packed;

	tl->stats.nb_rnr_tx += code == SAN_ST_RNR;
	tl->stats.nb_unpack_tx += unpack;
	tc->nb_waits += rsn == tc->rx_base;
	if (!tc->peer.ordered || r == &tl->scratch)
		san_tl_nack_push_reset(tl, tc, r, SAN_DROP_RNR, now_ns);
	if (!tc->peer.ordered)
		next_round(tc, rsn, code);
	else
		refuse_onward(tl, tc, rsn, code, unpack, now_ns);
	nack_later(tl, tc, psn, rsn, code, unpack);
}

void
san_tl_nack_base_waits(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn, uint64_t now_ns)
{
	refuse_onward(tl, tc, tc->rx_base, SAN_ST_RESOURCE, false, now_ns);
	san_tl_nack(tl, tc, psn, tc->rx_base, SAN_ST_RESOURCE);
}

void
san_tl_nack_base_give_up(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	uint32_t rsn = tc->rx_base;

	if (tc->peer.ordered) {
		refuse_onward(tl, tc, rsn, SAN_ST_RESOURCE, false, now_ns);
		return;
	}
	san_tl_nack_push_reset(tl, tc, tc->cur, SAN_DROP_RNR, now_ns);
	next_round(tc, rsn, SAN_ST_RESOURCE);
}

void
san_tl_nack_no_record(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn, uint32_t rsn,
		      uint64_t now_ns)
{
	if (tc->peer.ordered && rsn == tc->rx_base) {
		san_tl_nack_base_waits(tl, tc, psn, now_ns);
		return;
	}
	if (!tc->peer.ordered)
		next_round(tc, rsn, SAN_ST_RESOURCE);
	san_tl_nack(tl, tc, psn, rsn, SAN_ST_RESOURCE);
}

/* ---- target: completed in error ---- */

/*
 * A status is remembered until the initiator knows it. The refused packet leaves its bit clear, so
 * the base of the data window passes its PSN only by the RESYNC that answers the refusal. Then
 * copies of the push that are still in the network do no harm: the initiator has its status. Until
 * then they must not be taken for those of a finished push. While RSN r is unfinished at the
 * initiator, it uses no RSN from r + N on, so r + N takes over the slot of r. The statuses are not
 * in the CAM: a refused RSN is the head of line, which must never wait for space that RSNs behind
 * it hold (RULE-8).
 *
 * Hosts share the memory (RT-35). A push that finds none waits as if it had found no record.
 */
static bool
refused_take(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn)
{
	struct san_pool *pool = &tl->free_refused;
	const struct san_tl_refused *f;
	struct san_holder *h;
	uint32_t i;

	if (san_holders_may_take(tl->pdl->nb_hosts > 1, tc->host->nb_refused, pool->nb,
				 pool->max / SAN_SHARES)) {
		tc->refused = san_pool_take(pool);
		tc->refused->slot = tc->slot;
		tc->refused->psn = psn;
		tc->host->nb_refused++;
		san_holders_enter(&tl->used_refused, &tc->refused->holder);
		return true;
	}
	for (i = 0; i < SAN_HOLDERS_LOOKS && (h = TAILQ_FIRST(&tl->used_refused)) != NULL; i++) {
		f = container_of(h, struct san_tl_refused, holder);
		if (san_holders_is_stale(&tl->used_refused, h,
					 tl->pdl->conns[f->slot].rx[SAN_WIN_DATA].base, tl->now_ns))
			san_pdl_conn_fail(tl->pdl, &tl->pdl->conns[f->slot]);
	}
	return false;
}

bool
san_tl_nack_refused_note(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn)
{
	if (tc->refused == NULL)
		return refused_take(tl, tc, psn);
	tc->refused->psn = san_seq_max(tc->refused->psn, psn);
	return true;
}

void
san_tl_nack_refused_forget(struct san_tl *tl, struct san_tl_conn *tc)
{
	TAILQ_REMOVE(&tl->used_refused, &tc->refused->holder, link);
	memset(tc->refused, 0, sizeof(*tc->refused));
	san_pool_give(&tl->free_refused, tc->refused);
	tc->refused = NULL;
	tc->host->nb_refused--;
}

void
san_tl_nack_refused_pass(struct san_tl *tl, struct san_tl_conn *tc)
{
	if (san_seq_gt(san_tl_pdl_conn(tl, tc)->rx[SAN_WIN_DATA].base, tc->refused->psn))
		san_tl_nack_refused_forget(tl, tc);
}

void
san_tl_nack_refused_set(const struct san_tl_conn *tc, uint32_t rsn, uint8_t code)
{
	uint8_t *pair = &tc->refused->status[SAN_TL_SLOT(rsn) / 2];
	unsigned int shift = (rsn & 1) * 4;

	*pair = (uint8_t)((*pair & ~(0xf << shift)) | code << shift);
}

uint8_t
san_tl_nack_refused_get(const struct san_tl_conn *tc, uint32_t rsn)
{
	int32_t behind = san_seq_diff(tc->rx_base, rsn);

	if (tc->refused == NULL || behind > SAN_TL_N_MAX)
		return SAN_ST_OK;
	return (tc->refused->status[SAN_TL_SLOT(rsn) / 2] >> ((rsn & 1) * 4)) & 0xf;
}
