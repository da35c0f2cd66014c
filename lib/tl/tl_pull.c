/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pulls and atomics of the peer (RT-11, RT-30; RULE-14). They are executed in their turn, and then
 * their data is sent. The bytes are read each time a packet is built, also when it is resent. A
 * record is freed when all of its data is acknowledged.
 */

#include "tl_priv.h"

/* ---- execution in turn ---- */

/*
 * True if the base is a pull that is not executed: it waits for a record, for its request, or for
 * its data. It may wait until pull data of ours is acknowledged. Pushes behind it, which are held
 * or refused under their PSNs, would fill the peer's data window. The peer needs this window for
 * its own pull data to us. If both sides filled it, neither would make progress. So these pushes
 * are refused as by RNR, which empties the window.
 */
bool
san_tl_pull_is_before(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	const struct san_tl_rxn *r = tc->cur;

	if (r == NULL || !tc->peer.ordered)
		return san_tl_is_odd(tl, tc, SAN_ODD_HEAD);
	return (r->type == SAN_TL_PULL || r->type == SAN_TL_ATOMIC) &&
		r->queue != SAN_RXN_QUEUE_RETRY; /* that queue waits for the ULP, with a limit */
}

void
san_tl_pull_clear_behind(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	const struct san_tl_rxn *r;

	TAILQ_FOREACH(r, &tc->queues->rxns, all_link)
		if (r->type == SAN_TL_PUSH && (r->held_head != NULL || r->has_last))
			break;
	if (r != NULL)
		san_tl_nack_base_waits(
			tl, tc, r->has_last ? r->last_psn : san_wire_pkt(r->held_head)->w.psn,
			now_ns);
}

bool
san_tl_pull_execute(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
		    uint64_t now_ns)
{
	uint8_t status;

	/* The base waits for another pull, behind those that wait already: see tl_rxn.c. */
	if (r == tc->cur && (!TAILQ_EMPTY(&tl->pull_wait) || !san_tl_rxn_can_pull(tl, tc))) {
		san_tl_pull_wait(tl, tc, true);
		if (tc->peer.ordered)
			san_tl_pull_clear_behind(tl, tc, now_ns);
		return false;
	}
	if (r->since_ns == 0)
		r->since_ns = RTE_MAX(now_ns, 1u);
	if (unlikely(san_tl_is_odd(tl, tc, SAN_ODD_FAILED)))
		status = SAN_ST_REFUSED;
	else if (r->type == SAN_TL_PULL)
		status = san_tl_ulp_pull_req(tl->conf.ulp, r);
	else
		status = san_tl_ulp_atomic(tl->conf.ulp, r);
	/*
	 * A pull that is not ready is retried here, as long as the initiator would retry it
	 * (RULE-5).
	 */
	if (status == SAN_ST_RNR && now_ns < san_tl_rnr_end_ns(r->since_ns, tc->peer.rnr_rx_ms)) {
		san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_RETRY);
		tc->queues->retry_ns = now_ns + tl->conf.rnr_delay_us * SAN_NS_PER_US;
		san_tl_deadline(tl, tc, tc->queues->retry_ns);
		return false;
	}
	if (status != SAN_ST_OK)
		tl->stats.nb_refused++;
	san_tl_target_fail_if_ends(tl, tc, status);
	r->status = status;
	san_tl_rxn_set(tl, r, SAN_RXN_PULLING);
	if (r->type == SAN_TL_ATOMIC)
		r->length = sizeof(r->result);
	san_tl_rxn_detach(tl, tc, r);
	san_tl_rxn_set_pulling(tl, tc, 1);
	san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_PULL);
	san_tl_target_rsn_finish(tl, tc, r->rsn, SAN_ST_OK);
	san_pdl_sched_kick(tl->pdl, san_tl_pdl_conn(tl, tc));
	return true;
}

/* ---- sending pull data ---- */

bool
san_tl_pull_next(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_rxn *r = TAILQ_FIRST(&tc->queues->pulls);
	uint32_t left;

	if (r == NULL)
		return false;
	left = r->length - r->pull_sent;
	e->op = SAN_OP_PULL_DATA;
	e->rsn = r->rsn;
	e->aux = (uint32_t)(r - tl->rxns);
	e->offset = r->pull_sent;
	e->status = r->status;
	if (r->status != SAN_ST_OK)
		left = 0;
	e->len = (uint16_t)RTE_MIN(left, c->mtu);
	e->flags = e->len == left ? SAN_F_LAST : 0;
	r->pull_sent += e->len;
	r->nb_unacked++;
	if (e->flags & SAN_F_LAST)
		san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_NONE);
	return true;
}

void
san_tl_pull_fill(struct san_tl *tl, const struct san_pdl_entry *e, struct rte_mbuf *m,
		 struct san_wire_pkt *p)
{
	struct san_tl_rxn *r = &tl->rxns[e->aux];
	rte_be64_t result;
	void *dst;

	p->offset = e->offset;
	p->status = e->status;
	if (e->len == 0)
		return;
	dst = san_wire_payload(m, e->len);
	SAN_VERIFY(dst != NULL);
	if (r->type == SAN_TL_ATOMIC) {
		result = rte_cpu_to_be_64(r->result);
		memcpy(dst, &result, sizeof(result));
		return;
	}
	p->status = san_tl_ulp_pull_read(tl->conf.ulp, r, e->offset, dst, e->len);
	if (unlikely(p->status != SAN_ST_OK)) /* revoked meanwhile (RULE-14) */
		rte_pktmbuf_trim(m, e->len);
}

static void
pull_settle(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	if (r->nb_unacked != 0 || r->queue == SAN_RXN_QUEUE_PULL)
		return;
	san_tl_rxn_set_pulling(tl, tc, -1);
	san_tl_rxn_free(tl, tc, r);
}

void
san_tl_pull_acked(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e)
{
	struct san_tl_rxn *r = &tl->rxns[e->aux];

	SAN_ASSERT(r->state == SAN_RXN_PULLING && r->rsn == e->rsn && r->nb_unacked > 0);
	r->nb_unacked--;
	pull_settle(tl, tc, r); /* a pull at the base that waits for it goes on in the next tick */
}

void
san_tl_pull_wait(struct san_tl *tl, struct san_tl_conn *tc, bool wait)
{
	if (tc->in_pull_wait == wait)
		return;
	tc->in_pull_wait = wait;
	if (wait)
		TAILQ_INSERT_TAIL(&tl->pull_wait, tc, pull_link);
	else
		TAILQ_REMOVE(&tl->pull_wait, tc, pull_link);
}

void
san_tl_pull_cancel(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn)
{
	struct san_tl_rxn *r;

	TAILQ_FOREACH(r, &tc->queues->pulls, queue_link) {
		if (r->rsn != rsn)
			continue;
		san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_NONE);
		pull_settle(tl, tc, r);
		return;
	}
}
