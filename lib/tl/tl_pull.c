/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pull data out: what executed pulls and atomics owe the peer (RT-11, RT-30;
 * design, rule 14). The bytes are read as each packet is built, also when it goes
 * again; a record is free when all of its data is acknowledged.
 */

#include "tl_priv.h"

bool
san_tl_next_pull(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_rxn *r = TAILQ_FIRST(&tc->pulls);
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
	dst = rte_pktmbuf_append(m, e->len);
	SAN_VERIFY(dst != NULL);
	if (r->type == SAN_TL_ATOMIC) {
		result = rte_cpu_to_be_64(r->result);
		memcpy(dst, &result, sizeof(result));
		return;
	}
	p->status = san_tl_ulp_pull_read(tl->conf.ulp, r, e->offset, dst, e->len);
	if (unlikely(p->status != SAN_ST_OK)) /* revoked meanwhile (design, rule 14) */
		rte_pktmbuf_trim(m, e->len);
}

static void
pull_settle(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	if (r->nb_unacked != 0 || r->queue == SAN_RXN_QUEUE_PULL)
		return;
	san_tl_set_pulling(tl, tc, -1);
	san_tl_rxn_free(tl, tc, r);
}

void
san_tl_pull_acked(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e,
		  uint64_t now_ns)
{
	struct san_tl_rxn *r = &tl->rxns[e->aux];

	SAN_ASSERT(r->state == SAN_RXN_PULLING && r->rsn == e->rsn && r->nb_unacked > 0);
	r->nb_unacked--;
	(void)now_ns; /* a pull at the base that waits for this one has its turn in the next tick */
	pull_settle(tl, tc, r);
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

/* May anybody's pull be executed? */
static bool
has_room(const struct san_tl *tl)
{
	return tl->nb_pullers < tl->conf.max_wide || tl->nb_free_rxns > san_tl_nb_claims(tl);
}

void
san_tl_wake_pulls(struct san_tl *tl, uint64_t now_ns)
{
	struct san_tl_conns line = TAILQ_HEAD_INITIALIZER(line);
	struct san_tl_conns again = TAILQ_HEAD_INITIALIZER(again);
	struct san_tl_conn *tc, *next;

	if (likely(TAILQ_EMPTY(&tl->pull_wait)))
		return;
	/* with the line empty the one that is called need not stand in it again */
	TAILQ_CONCAT(&line, &tl->pull_wait, pull_link);
	for (tc = TAILQ_FIRST(&line); tc != NULL && has_room(tl); tc = next) {
		next = TAILQ_NEXT(tc, pull_link);
		/* who waits for its own pulls holds up nobody else */
		if (!san_tl_can_pull(tl, tc))
			continue;
		TAILQ_REMOVE(&line, tc, pull_link);
		tc->in_pull_wait = false;
		san_tl_run_base(tl, tc, now_ns);
		/* with more to do it is behind all others, and in nobody's way now */
		TAILQ_CONCAT(&again, &tl->pull_wait, pull_link);
	}
	TAILQ_CONCAT(&tl->pull_wait, &line, pull_link);
	TAILQ_CONCAT(&tl->pull_wait, &again, pull_link);
}

void
san_tl_pull_cancel(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn)
{
	struct san_tl_rxn *r;

	TAILQ_FOREACH(r, &tc->pulls, queue_link) {
		if (r->rsn != rsn)
			continue;
		san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_NONE);
		pull_settle(tl, tc, r);
		return;
	}
}
