/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Solicited pushes: SSN order on both sides (RT-10, RT-16, RT-19; figures 8B, 11).
 *
 * Target: on an ordered connection a request joins the grant queue when its SSN is next. A request
 * ahead of that waits in the CAM. On an unordered connection a request joins on arrival. The head
 * of the queue is granted in steps (tl_admit_run.c). rx_ssn advances when it is fully granted.
 *
 * Initiator: a grant names RSN and SSN. Its offset is cumulative, and the transaction keeps the
 * highest. san_tl_initiator_next_push() sends the data in RSN order. The base SSN, and the CAM for
 * grants ahead of it, only record which SSNs are fully granted.
 */

#include "tl_priv.h"

/* ---- initiator ---- */

/* True if the base SSN, which has just moved, is fully granted or finished. */
static bool
is_granted(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_tl_txn *t = NULL;
	uint32_t rsn;

	if (tc->nb_cam_grant != 0)
		t = san_tl_reorder_take(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_GRANT,
					tc->ssn_base);
	if (t != NULL) {
		tc->nb_cam_grant--;
		t->in_cam = false;
		return t->granted == t->req.length;
	}
	if (tc->nb_ssn_lost == 0)
		return false;
	/* The CAM was full for some SSN: search the transactions. */
	for (rsn = tc->rsn_base; rsn != tc->rsn_next; rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (t != NULL && t->solicited && t->ssn == tc->ssn_base && t->state != SAN_TXN_DONE)
			break;
	}
	if (rsn != tc->rsn_next && !t->ssn_lost)
		return false;
	tc->nb_ssn_lost--;
	if (rsn == tc->rsn_next) /* it has ended */
		return true;
	t->ssn_lost = false;
	return t->granted == t->req.length;
}

static void
ssn_advance(struct san_tl *tl, struct san_tl_conn *tc)
{
	do {
		tc->ssn_base++;
	} while (tc->ssn_base != tc->ssn_next && is_granted(tl, tc));
}

void
san_tl_solicit_ssn_end(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	if (!t->solicited || !tc->peer.ordered || san_seq_lt(t->ssn, tc->ssn_base))
		return;
	if (t->in_cam) {
		san_tl_reorder_take(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_GRANT, t->ssn);
		t->in_cam = false;
		tc->nb_cam_grant--;
	}
	if (t->ssn == tc->ssn_base)
		ssn_advance(tl, tc);
	else
		tc->nb_ssn_lost += !t->ssn_lost;
}

/*
 * A grant is never refused. The PSN of a refused grant would stay in the target's data window. Pull
 * data behind it would wait there, and the base may wait for this data (RT-26). If the CAM is full,
 * only the transaction records the grant.
 */
void
san_tl_solicit_take_grant(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
			  uint32_t offset)
{
	t->granted = RTE_MAX(t->granted, offset);
	if (!tc->peer.ordered || san_seq_lt(t->ssn, tc->ssn_base))
		return;
	if (t->ssn == tc->ssn_base) {
		if (t->granted == t->req.length)
			ssn_advance(tl, tc);
	} else if (!t->in_cam && !t->ssn_lost) {
		t->in_cam = san_tl_reorder_add(&tl->cam, san_tl_pdl_conn(tl, tc)->cid,
					       SAN_CAM_GRANT, t->ssn, t) == 0;
		t->ssn_lost = !t->in_cam;
		tc->nb_cam_grant += t->in_cam;
		tc->nb_ssn_lost += t->ssn_lost;
	}
}

/* ---- target: order of requests ---- */

bool
san_tl_solicit_ssn_valid(const struct san_tl_conn *tc, uint32_t ssn)
{
	int32_t ahead = san_seq_diff(ssn, tc->ssn_queued);

	/* each SSN is used once, and no more SSNs than RSNs are in use */
	return !tc->peer.ordered || (ahead >= 0 && ahead < tc->peer.n_rx);
}

static void
join_queue(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_GRANT);
	san_tl_admit_update(tl, tc);
}

/*
 * True if the host of *tc* may have one more SSN in the CAM (RT-35). Entries of other kinds are
 * limited by the records that they belong to, but an SSN outlives its record if the push is
 * aborted.
 */
static bool
has_cam_share(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	uint32_t most = tl->conf.max_txns + tl->conf.max_rxns;

	return san_holders_may_take(tl->pdl->nb_hosts > 1, tc->host->nb_solicit,
				    most - RTE_MIN(most, tl->cam.nb_used), 0);
}

bool
san_tl_solicit_ssn_join(struct san_tl *tl, struct san_tl_conn *tc, uint32_t ssn,
			struct san_tl_rxn *r)
{
	uint32_t cid = san_tl_pdl_conn(tl, tc)->cid;
	void *value = r != NULL ? r : &tl->scratch; /* an SSN without a record */

	if (!tc->peer.ordered) {
		if (r != NULL)
			join_queue(tl, tc, r);
		return true;
	}
	if (ssn != tc->ssn_queued) {
		if (!has_cam_share(tl, tc) ||
		    san_tl_reorder_add(&tl->cam, cid, SAN_CAM_SOLICIT, ssn, value) != 0)
			return false;
		san_tl_rxn_count_ssn(tc, 1);
		if (r != NULL)
			r->in_cam_ssn = true;
		return true;
	}
	while (value != NULL) {
		if (value != &tl->scratch) {
			r = value;
			r->in_cam_ssn = false;
			join_queue(tl, tc, r);
		}
		tc->ssn_queued++;
		value = NULL;
		if (tc->nb_solicit != 0)
			value = san_tl_reorder_take(&tl->cam, cid, SAN_CAM_SOLICIT, tc->ssn_queued);
		if (value != NULL)
			san_tl_rxn_count_ssn(tc, -1);
	}
	san_tl_rxn_update_ssn(tc);
	return true;
}

/* ---- target: grants ---- */

/* True if the request has the receive that is reserved before its first grant (RULE-4). */
static bool
has_receive(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint64_t now_ns)
{
	if (r->kind == SAN_KIND_PUSH || r->granted != 0 || r->reserved)
		return true;
	r->reserved = san_tl_ulp_reserve(tl->conf.ulp, tc->slot);
	if (r->reserved)
		return true;
	if (r->since_ns == 0)
		r->since_ns = now_ns;
	tc->grant_wait = true;
	san_tl_deadline(tl, tc, san_tl_rnr_end_ns(r->since_ns, tc->peer.rnr_rx_ms));
	return false;
}

bool
san_tl_solicit_grant_one(struct san_tl *tl, struct san_tl_conn *tc, uint32_t step, uint64_t now_ns)
{
	struct san_tl_rxn *r = TAILQ_FIRST(&tc->queues->grants);

	if (!has_receive(tl, tc, r, now_ns))
		return false;
	r->granted += step;
	san_tl_admit_charge(tl, &r->charge, step, now_ns);
	tl->stats.nb_grants++;
	san_tl_rxn_out(tl, tc, r, true);
	if (r->granted == r->length) {
		san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_NONE);
		san_tl_rxn_update_ssn(tc);
	}
	return true;
}

void
san_tl_solicit_grant_refuse(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
			    uint8_t status)
{
	san_tl_rxn_set(tl, r, SAN_RXN_REFUSED);
	r->status = status;
	san_tl_rxn_ssn_leave(tl, tc, r);
	san_tl_rxn_out(tl, tc, r, true);
}

void
san_tl_solicit_grant_timer(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	struct san_tl_rxn *r = TAILQ_FIRST(&tc->queues->grants);
	uint64_t until_ns;

	/*
	 * grant_wait does not decide: after a wake-up the request may wait for budget, but its RNR
	 * time still runs.
	 */
	if (r == NULL || r->since_ns == 0 || r->granted != 0)
		return;
	until_ns = san_tl_rnr_end_ns(r->since_ns, tc->peer.rnr_rx_ms);
	if (now_ns < until_ns) {
		san_tl_deadline(tl, tc, until_ns);
		return;
	}
	/* A receive may be there already: the request then waited for budget. */
	if (!tc->grant_wait)
		r->reserved = san_tl_ulp_reserve(tl->conf.ulp, tc->slot);
	if (r->reserved)
		r->since_ns = 0;
	else
		san_tl_solicit_grant_refuse(tl, tc, r, SAN_ST_RNR);
}

bool
san_tl_solicit_next_grant(struct san_tl *tl, struct san_tl_conn *tc, struct san_pdl_entry *e)
{
	struct san_tl_rxn *r = TAILQ_FIRST(&tc->queues->out);

	if (r == NULL)
		return false;
	e->op = SAN_OP_PUSH_GRNT;
	e->rsn = r->rsn;
	e->aux = r->ssn;
	e->offset = r->granted;
	e->status = r->state == SAN_RXN_REFUSED ? r->status : SAN_ST_OK;
	san_tl_rxn_out(tl, tc, r, false);
	if (r->state != SAN_RXN_REFUSED)
		return true;
	/* The refusal is sent. The request may finish in its turn. */
	if (!tc->peer.ordered) {
		san_tl_rxn_free(tl, tc, r);
		san_tl_target_rsn_finish(tl, tc, e->rsn, SAN_ST_OK);
	}
	return true;
}
