/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The target's records and the packets held in them (RT-19, RT-26; RULE-8).
 *
 * A claim is a reserved record. Each connection has two: one for its head of line, the base RSN,
 * and one for a pull or atomic below the base whose data is being sent. A connection that is not
 * open yet has claims, too, because all other records may be in use when it opens. So the base
 * always moves: a push at the base has its record. A pull at the base finds a record, or waits for
 * another pull, whose data needs no scarce resource. Records beyond the claims are for RSNs out of
 * order.
 *
 * With more than max_wide connections, there are max_wide claims of each kind for all. A head of
 * line that finds none is refused and resent until others finish. Solicited heads may wait for
 * budget, and so for data behind other heads; therefore they have claims of their own. The other
 * heads wait only for their own packets, and executed pulls only for ACKs. So all of them finish.
 * (doc/deadlock.md)
 *
 * Hosts share spare records and claims (RT-35). A host gets one more only while it has less than an
 * eighth of those that are left. So each silent host keeps less than the one before: of 1,024
 * records, some are left after fifty such hosts. A host that is alone may use all spare records.
 *
 * Nothing is held for long. If no part of the base arrives for HELD_NS, the packets that wait for
 * it are dropped, and the peer resends them when they are no longer reported. If heads of other
 * connections found no record in that time, an unsolicited push at the base gives up its record,
 * too: it is refused for lack of a record, and the peer resends all of it. Any other record may
 * stay for SAN_HOLD_MAX_NS without progress. If heads of others find none after that, its
 * connection ends (san_holders.h).
 */

#include "tl_priv.h"

#define HELD_NS (100 * SAN_NS_PER_MS) /* a base that is lost repeatedly arrives within this time */

/* ---- claims ---- */

static inline uint32_t
rxn_claims_left(uint32_t claims, uint32_t used)
{
	return claims > used ? claims - used : 0;
}

uint32_t
san_tl_rxn_nb_claims(const struct san_tl *tl)
{
	uint32_t max = tl->conf.max_wide;

	return rxn_claims_left(max, tl->nb_heads[0]) + rxn_claims_left(max, tl->nb_heads[1]) +
		rxn_claims_left(max, tl->nb_pullers);
}

/* True if a record is free that is neither claimed nor left for other hosts. */
static bool
may_take_spare(const struct san_tl *tl, const struct san_tl_host *h)
{
	uint32_t spare = rxn_claims_left(tl->free_rxns.nb, san_tl_rxn_nb_claims(tl));

	return spare != 0 && (tl->pdl->nb_hosts == 1 || h->nb_rxns * SAN_SHARES < spare);
}

/* True if a host may take a claim of a kind: *used* are taken, *own* of them by this host. */
static bool
has_claim(const struct san_tl *tl, uint32_t used, uint32_t own)
{
	return san_holders_may_take(tl->pdl->nb_conns > tl->conf.max_wide, own,
				    rxn_claims_left(tl->conf.max_wide, used), 0);
}

static void
count_head(struct san_tl *tl, struct san_tl_conn *tc, const struct san_tl_rxn *r, uint32_t n)
{
	if (r == NULL)
		return;
	tl->nb_heads[r->solicited] += n;
	tc->host->nb_heads[r->solicited] += n;
}

void
san_tl_rxn_set_cur(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	count_head(tl, tc, tc->cur, -1u);
	count_head(tl, tc, r, 1);
	tc->cur = r;
	san_tl_odd_put(tl, tc, SAN_ODD_BASE, r != NULL);
}

void
san_tl_rxn_set_ahead(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, bool in_cam)
{
	r->in_cam = in_cam;
	tc->nb_ahead = (uint16_t)(tc->nb_ahead + (in_cam ? 1 : -1));
	san_tl_odd_put(tl, tc, SAN_ODD_AHEAD, tc->nb_ahead != 0);
}

void
san_tl_rxn_set_pulling(struct san_tl *tl, struct san_tl_conn *tc, int change)
{
	uint32_t had = tc->nb_pulling != 0;

	tc->nb_pulling = (uint16_t)(tc->nb_pulling + change);
	tl->nb_pullers += (tc->nb_pulling != 0) - had;
	tc->host->nb_pullers += (tc->nb_pulling != 0) - had;
}

bool
san_tl_rxn_can_pull(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	return (tc->nb_pulling == 0 && has_claim(tl, tl->nb_pullers, tc->host->nb_pullers)) ||
		may_take_spare(tl, tc->host);
}

/* ---- states of a record ---- */

/* The first record brings the queues. */
static void
rxn_take_queues(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_tl_queues *q = san_pool_take(&tl->free_queues);

	TAILQ_INIT(&q->rxns);
	TAILQ_INIT(&q->grants);
	TAILQ_INIT(&q->out);
	TAILQ_INIT(&q->pulls);
	TAILQ_INIT(&q->retry);
	q->slot = tc->slot;
	tc->queues = q;
}

static struct san_tl_rxn *
rxn_take(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, bool solicited)
{
	struct san_tl_rxn *r = san_pool_take(&tl->free_rxns);

	*r = (struct san_tl_rxn){
		.slot = tc->slot,
		.state = SAN_RXN_AHEAD,
		.solicited = solicited,
		.rsn = rsn,
		.charge = {.slot = tc->slot, .granted = true},
	};
	if (tc->nb_rxns == 0)
		rxn_take_queues(tl, tc);
	TAILQ_INSERT_TAIL(&tc->queues->rxns, r, all_link);
	san_holders_enter(&tl->used_rxns, &r->holder);
	tc->nb_rxns++;
	tc->host->nb_rxns++;
	return r;
}

struct san_tl_rxn *
san_tl_rxn_new(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, bool solicited)
{
	bool is_head = rsn == tc->rx_base;
	struct san_tl_rxn *r;

	if (!(is_head && has_claim(tl, tl->nb_heads[solicited], tc->host->nb_heads[solicited])) &&
	    !may_take_spare(tl, tc->host)) {
		tl->nb_scarce += is_head;
		tc->nb_waits += is_head;
		return NULL;
	}
	r = rxn_take(tl, tc, rsn, solicited);
	if (is_head) {
		SAN_ASSERT(tc->cur == NULL);
		san_tl_odd_put(tl, tc, SAN_ODD_HEAD, false);
		san_tl_rxn_set_cur(tl, tc, r);
		return r;
	}
	if (san_tl_reorder_add(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_REQUEST, rsn,
			       r) != 0) {
		san_tl_rxn_free(tl, tc, r);
		return NULL;
	}
	san_tl_rxn_set_ahead(tl, tc, r, true);
	return r;
}

void
san_tl_rxn_detach(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	if (tc->cur == r) {
		san_tl_rxn_set_cur(tl, tc, NULL);
	} else if (r->in_cam) {
		san_tl_reorder_take(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_REQUEST,
				    r->rsn);
		san_tl_rxn_set_ahead(tl, tc, r, false);
	}
}

void
san_tl_rxn_free(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	if (r == &tl->scratch)
		return;
	SAN_ASSERT(r->held_head == NULL);
	san_tl_rxn_detach(tl, tc, r);
	san_tl_rxn_ssn_leave(tl, tc, r);
	san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_NONE);
	san_tl_rxn_out(tl, tc, r, false);
	san_tl_admit_charge_release(tl, &r->charge);
	san_tl_rxn_unreserve(tl, tc, r);
	TAILQ_REMOVE(&tc->queues->rxns, r, all_link);
	TAILQ_REMOVE(&tl->used_rxns, &r->holder, link);
	tc->nb_rxns--;
	tc->host->nb_rxns--;
	if (tc->nb_rxns == 0) {
		SAN_ASSERT(!tc->in_admit);
		san_pool_give(&tl->free_queues, tc->queues);
		tc->queues = &tl->no_queues;
	}
	san_tl_rxn_set(tl, r, SAN_RXN_FREE);
	san_pool_give(&tl->free_rxns, r);
}

/* ---- resources from the ULP ---- */

void
san_tl_rxn_push_undo(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	if (r->begun)
		san_tl_ulp_push_abort(tl->conf.ulp, r);
	r->begun = false;
	/* also if the push did not begin: push_req() has released the reserved receive */
	san_tl_rxn_grant_wake(tl, tc);
}

void
san_tl_rxn_unreserve(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	if (!r->reserved)
		return;
	san_tl_ulp_unreserve(tl->conf.ulp, tc->slot);
	r->reserved = false;
	san_tl_rxn_grant_wake(tl, tc);
}

/* ---- queues ---- */

/* The list of a queue that is not NONE. */
static struct san_tl_rxns *
queue_of(struct san_tl_conn *tc, uint8_t queue)
{
	return queue == SAN_RXN_QUEUE_GRANT ? &tc->queues->grants :
		queue == SAN_RXN_QUEUE_PULL ? &tc->queues->pulls :
					      &tc->queues->retry;
}

void
san_tl_rxn_queue(struct san_tl_conn *tc, struct san_tl_rxn *r, enum san_rxn_queue queue)
{
	if (r->queue == queue)
		return;
	if (r->queue != SAN_RXN_QUEUE_NONE)
		TAILQ_REMOVE(queue_of(tc, r->queue), r, queue_link);
	r->queue = (uint8_t)queue;
	if (queue != SAN_RXN_QUEUE_NONE)
		TAILQ_INSERT_TAIL(queue_of(tc, r->queue), r, queue_link);
}

void
san_tl_rxn_out(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, bool in)
{
	if (r->in_out == in)
		return;
	r->in_out = in;
	if (in) {
		TAILQ_INSERT_TAIL(&tc->queues->out, r, out_link);
		san_pdl_sched_kick(tl->pdl, san_tl_pdl_conn(tl, tc));
	} else {
		TAILQ_REMOVE(&tc->queues->out, r, out_link);
	}
}

/* ---- the place of its SSN ---- */

/* Lowest SSN not fully granted: the head of the queue, or the next SSN to join it. */
void
san_tl_rxn_update_ssn(struct san_tl_conn *tc)
{
	const struct san_tl_rxn *r = TAILQ_FIRST(&tc->queues->grants);

	tc->rx_ssn = r != NULL ? r->ssn : tc->ssn_queued;
}

void
san_tl_rxn_count_ssn(struct san_tl_conn *tc, int change)
{
	tc->nb_solicit = (uint16_t)(tc->nb_solicit + change);
	tc->host->nb_solicit += (uint32_t)change;
}

void
san_tl_rxn_ssn_leave(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	uint32_t cid = san_tl_pdl_conn(tl, tc)->cid;
	int rc;

	if (r->in_cam_ssn) {
		/* The SSN still takes its turn. Removing the entry leaves room for the new one. */
		san_tl_reorder_take(&tl->cam, cid, SAN_CAM_SOLICIT, r->ssn);
		rc = san_tl_reorder_add(&tl->cam, cid, SAN_CAM_SOLICIT, r->ssn, &tl->scratch);
		SAN_VERIFY(rc == 0);
		r->in_cam_ssn = false;
	} else if (r->queue == SAN_RXN_QUEUE_GRANT) {
		if (TAILQ_FIRST(&tc->queues->grants) == r)
			tc->grant_wait = false;
		san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_NONE);
		san_tl_admit_update(tl, tc);
		san_tl_rxn_update_ssn(tc);
	}
}

void
san_tl_rxn_ssn_end_all(struct san_tl *tl, struct san_tl_conn *tc)
{
	uint32_t ssn, cid = san_tl_pdl_conn(tl, tc)->cid;

	for (ssn = tc->ssn_queued; tc->nb_solicit != 0; ssn++)
		if (san_tl_reorder_take(&tl->cam, cid, SAN_CAM_SOLICIT, ssn) != NULL)
			san_tl_rxn_count_ssn(tc, -1);
}

void
san_tl_rxn_grant_wake(struct san_tl *tl, struct san_tl_conn *tc)
{
	if (!tc->grant_wait)
		return;
	tc->grant_wait = false;
	san_tl_admit_update(tl, tc);
}

/* ---- held packets ---- */

bool
san_tl_rxn_is_red(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	/* A host may have as many as are left (RT-35), so half of them if it is alone. */
	return *san_tl_host_held(tl, tc) + tl->nb_held >= tl->conf.max_held ||
		tc->nb_held >= tl->conf.max_held_conn;
}

/* Count *nb* held packets more, or less. */
static void
count_held(struct san_tl *tl, struct san_tl_conn *tc, int nb)
{
	tl->nb_held += (uint32_t)nb;
	tc->nb_held += (uint32_t)nb;
	*san_tl_host_held(tl, tc) += (uint32_t)nb;
}

uint32_t
san_tl_rxn_base_at(const struct san_tl_conn *tc)
{
	return tc->rx_base + (tc->cur != NULL ? tc->cur->arrived : 0);
}

void
san_tl_rxn_held_watch(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	tc->held_at = san_tl_rxn_base_at(tc);
	tc->held_scarce = (uint16_t)tl->nb_scarce;
	tc->held_ns = now_ns + HELD_NS;
	san_tl_deadline(tl, tc, tc->held_ns);
}

bool
san_tl_rxn_can_give_up(const struct san_tl_conn *tc)
{
	const struct san_tl_rxn *r = tc->cur;

	return r != NULL && r->type == SAN_TL_PUSH && !r->solicited &&
		(r->state == SAN_RXN_AHEAD || r->state == SAN_RXN_ACTIVE);
}

/*
 * A value that changes while the peer makes progress. The record of an executed pull ends when its
 * data is acknowledged, any other record when the base reaches it and finishes.
 */
static uint32_t
rxn_progress_of(const struct san_tl *tl, const struct san_tl_rxn *r)
{
	const struct san_tl_conn *tc = &tl->conns[r->slot];
	const struct san_tl_rxn *cur = tc->cur;

	if (r->state == SAN_RXN_PULLING)
		return tl->pdl->conns[r->slot].tx[SAN_WIN_DATA].base;
	/* the base may wait for this host, not for its peer */
	if (cur != NULL &&
	    (cur->type != SAN_TL_PUSH || cur->state == SAN_RXN_REFUSED ||
	     (cur->solicited && cur->granted == cur->arrived)))
		return r->holder.mark + 1;
	return san_tl_rxn_base_at(tc) + tc->nb_waits;
}

void
san_tl_rxn_end_stale(struct san_tl *tl, uint64_t now_ns)
{
	const struct san_tl_rxn *r;
	struct san_holder *h;
	uint32_t i;

	tl->seen_scarce = tl->nb_scarce;
	for (i = 0; i < SAN_HOLDERS_LOOKS && (h = TAILQ_FIRST(&tl->used_rxns)) != NULL; i++) {
		r = container_of(h, struct san_tl_rxn, holder);
		if (san_holders_is_stale(&tl->used_rxns, h, rxn_progress_of(tl, r), now_ns))
			san_pdl_conn_fail(tl->pdl, &tl->pdl->conns[r->slot]);
	}
}

void
san_tl_rxn_base_watch(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	if (now_ns >= tc->held_ns && san_tl_rxn_can_give_up(tc))
		san_tl_rxn_held_watch(tl, tc, now_ns);
}

void
san_tl_rxn_held_enter(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	if (tc->nb_held == 0)
		san_tl_rxn_held_watch(tl, tc, now_ns);
	count_held(tl, tc, 1);
}

void
san_tl_rxn_held_leave(struct san_tl *tl, struct san_tl_conn *tc)
{
	count_held(tl, tc, -1);
}

void
san_tl_rxn_held_push(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
		     struct rte_mbuf *m, uint64_t now_ns)
{
	san_tl_rxn_held_enter(tl, tc, now_ns);
	san_wire_pkt(m)->next = NULL;
	if (r->held_head == NULL)
		r->held_head = m;
	else
		san_wire_pkt(r->held_tail)->next = m;
	r->held_tail = m;
}

struct rte_mbuf *
san_tl_rxn_held_pop(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	struct rte_mbuf *m = r->held_head;

	if (m == NULL)
		return NULL;
	r->held_head = san_wire_pkt(m)->next;
	san_tl_rxn_held_leave(tl, tc);
	return m;
}

void
san_tl_rxn_held_drop(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, bool ack,
		     enum san_drop reason, uint64_t now_ns)
{
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	struct rte_mbuf *m;

	while ((m = san_tl_rxn_held_pop(tl, tc, r)) != NULL) {
		if (ack)
			san_pdl_rx_ack(tl->pdl, c, san_wire_pkt(m)->w.psn, now_ns);
		else
			san_pdl_rx_revoke(tl->pdl, c, san_wire_pkt(m)->w.psn);
		tl->drops[reason]++;
		san_tl_death_add(tl->death, m);
	}
}

/* ---- the last packet of a pull of ours (RT-39) ---- */

struct rte_mbuf *
san_tl_rxn_pull_last_take(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	struct rte_mbuf *m = san_tl_pull_last(tl, t);

	san_tl_extra(tl, t)->last = NULL;
	san_tl_rxn_held_leave(tl, tc);
	return m;
}

void
san_tl_rxn_pull_last_drop(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t,
			  enum san_drop reason)
{
	struct rte_mbuf *m;

	if (t == NULL || san_tl_pull_last(tl, t) == NULL)
		return;
	m = san_tl_rxn_pull_last_take(tl, tc, t);
	san_pdl_rx_revoke(tl->pdl, san_tl_pdl_conn(tl, tc), san_wire_pkt(m)->w.psn);
	tl->drops[reason]++;
	san_tl_death_add(tl->death, m);
}
