/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES: how much may be in flight (PCB-1, PCB-2, PCB-4; design, rule 7)
 *
 * Virtual windows share the host's budget among the active connections. With
 * more of them than budget each still has a window of one, so the budget itself
 * decides, first come first served: who finds none waits in a list. When budget
 * frees, the longest waiting gets a *token*: one packet reserved for it until
 * its next visit. While anybody waits, nobody without a token takes any. So no
 * waiter is overtaken, and each holds the token for one visit only: what it
 * sent leaves the sum when received, acknowledged or timed out, and then the
 * next one's token is free. That is rotation without a timer.
 *
 * A txblock is the memory of what is outstanding. Every connection has a narrow one of
 * its own, because none may wait for another's: what a connection has outstanding may
 * wait for what that other one sends. It is for a window of one request and two packets
 * of data, with which all of doc/deadlock.md holds. For more there is a pool; who finds
 * it empty goes on with its own, and tries again with its next visit.
 */

#include "pdl_priv.h"

static void
set_active(struct san_pdl *pdl, struct san_pdl_conn *c, bool active)
{
	uint32_t n;

	if (c->active == active)
		return;
	c->active = active;
	pdl->nb_active += active ? 1 : -1;
	n = RTE_MAX(pdl->nb_active, 1u);
	/* as long as no window could be larger, there is nothing to divide */
	if (n * SAN_WIN_DATA_MAX <= pdl->conf.budget_pkts)
		pdl->share = SAN_WIN_DATA_MAX;
	else
		pdl->share = RTE_MAX(pdl->conf.budget_pkts / n, 1u);
}

uint32_t
san_pdl_pcb_vwin(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	/* The first window is at least 2, so this is at least 1. */
	return RTE_MIN((uint32_t)c->pcb.first_win - 1, pdl->share);
}

uint32_t
san_pdl_pcb_limit(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	uint32_t cwnd = san_pdl_cc_window(&c->cc) / SAN_CC_ONE;

	if (unlikely(c->crowded))
		return 1;
	/* Below one packet the pace decides, not the window. */
	return RTE_MIN(san_pdl_pcb_vwin(pdl, c), RTE_MAX(cwnd, 1u));
}

void
san_pdl_tx_crowded(struct san_pdl *pdl, struct san_pdl_conn *c, bool crowded)
{
	if (c->crowded == crowded)
		return;
	c->crowded = crowded;
	if (!crowded)
		san_pdl_kick(pdl, c);
}

/* ---- host budget ---- */

static void
wait_for(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (c->in_wait)
		return;
	c->in_wait = true;
	TAILQ_INSERT_TAIL(&pdl->wait, c, wait_link);
	pdl->stats.nb_budget_waits++;
	set_active(pdl, c, true); /* it has queued packets (PCB-2) */
}

static void
stop_waiting(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (c->in_wait)
		TAILQ_REMOVE(&pdl->wait, c, wait_link);
	c->in_wait = false;
}

static void
drop_token(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (!c->token)
		return;
	c->token = false;
	pdl->nb_tokens--;
}

uint32_t
san_pdl_pcb_budget(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	uint32_t taken = pdl->inflight + pdl->nb_tokens;

	SAN_ASSERT(taken <= pdl->conf.budget_pkts);
	/* While anybody waits, all of it is in flight or a token: nobody is overtaken. */
	SAN_ASSERT(TAILQ_EMPTY(&pdl->wait) || taken == pdl->conf.budget_pkts);
	if (taken - c->token == pdl->conf.budget_pkts) {
		wait_for(pdl, c);
		return 0;
	}
	return pdl->conf.budget_pkts - taken + c->token;
}

void
san_pdl_pcb_enter(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	drop_token(pdl, c);
	SAN_ASSERT(pdl->inflight + pdl->nb_tokens < pdl->conf.budget_pkts);
	pdl->inflight++;
	c->pcb.inflight++;
	set_active(pdl, c, true);
}

void
san_pdl_pcb_leave(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t n)
{
	SAN_ASSERT(pdl->inflight >= n && c->pcb.inflight >= n);
	pdl->inflight -= n;
	c->pcb.inflight -= n;
}

void
san_pdl_pcb_wake(struct san_pdl *pdl)
{
	struct san_pdl_conn *c;

	while ((c = TAILQ_FIRST(&pdl->wait)) != NULL &&
	       pdl->inflight + pdl->nb_tokens < pdl->conf.budget_pkts) {
		stop_waiting(pdl, c);
		c->token = true;
		pdl->nb_tokens++;
		san_pdl_kick(pdl, c);
	}
}

void
san_pdl_pcb_end(struct san_pdl *pdl, struct san_pdl_conn *c, bool more)
{
	drop_token(pdl, c);
	san_pdl_pcb_return_block(pdl, c);
	if (!more && c->pcb.inflight == 0 && !c->in_wait &&
	    !san_pdl_has_lost(c))
		set_active(pdl, c, false);
	san_pdl_pcb_wake(pdl);
}

void
san_pdl_pcb_withdraw(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	stop_waiting(pdl, c);
	drop_token(pdl, c);
	san_pdl_pcb_return_block(pdl, c);
	if (c->pcb.inflight == 0)
		set_active(pdl, c, false);
	san_pdl_pcb_wake(pdl);
}

void
san_pdl_pcb_fini(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	stop_waiting(pdl, c);
	drop_token(pdl, c);
	pdl->inflight -= c->pcb.inflight;
	c->pcb.inflight = 0;
	set_active(pdl, c, false);
	san_pdl_pcb_wake(pdl);
}

/* ---- txblocks ---- */

void
san_pdl_pcb_take_block(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	struct san_pdl_wide *b;

	if (likely(san_pdl_is_wide(c)))
		return;
	if (unlikely(pdl->nb_free_wide == 0)) {
		pdl->stats.nb_narrow++;
		if (c->txb == NULL)
			c->txb = san_pdl_narrow_init(&c->narrow);
		c->is_lent = false;
		return;
	}
	b = pdl->free_wide[--pdl->nb_free_wide];
	if (b->b.e[0] == NULL) /* its first time: only now it becomes memory */
		san_pdl_wide_init(b);
	if (c->txb != NULL)
		san_pdl_wide_take(b, &c->narrow, c->tx);
	c->txb = &b->b;
}

void
san_pdl_pcb_return_block(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (c->txb == NULL || san_pdl_has_outstanding(c) || c->in_wait || c->token)
		return;
	if (likely(san_pdl_is_wide(c)))
		pdl->free_wide[pdl->nb_free_wide++] = san_pdl_wide_of(c);
	c->txb = NULL;
}
