/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES: limits on packets in flight (PCB-1, PCB-2, PCB-4; RULE-7)
 *
 * Virtual windows share the host's budget among the active connections. If there are more
 * connections than packets of budget, each connection still has a window of one packet. Then the
 * budget goes to connections in order of arrival. A connection that finds no budget waits in a
 * list. When budget is freed, the connection that has waited longest gets a *token*: one packet
 * reserved for it until its next visit. While a connection waits, only tokens take budget, so no
 * waiting connection is overtaken. A token lasts for one visit. The packet that is sent with it
 * leaves the sum when it is received, acknowledged or timed out, and that frees the next token. So
 * the rotation needs no timer.
 *
 * A txblock holds the state of outstanding packets. Every connection has a narrow one of its own.
 * It must not wait for the memory of another connection, whose outstanding packets may wait for
 * what this one sends. The narrow block has room for one request and two data packets, with which
 * all of doc/deadlock.md holds. A pool has larger blocks. A connection that finds the pool empty
 * uses its narrow block and tries again at its next visit.
 */

#include "pdl_priv.h"

static void
set_active(struct san_pdl *pdl, struct san_pdl_conn *c, bool active)
{
	uint32_t n;

	if (likely(c->active == active))
		return;
	c->active = active;
	pdl->nb_active += active ? 1 : -1;
	n = RTE_MAX(pdl->nb_active, 1u);
	/* Windows are divided only if not all can have the largest size. */
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
	/* A congestion window below one packet is enforced by pacing. */
	return RTE_MIN(san_pdl_pcb_vwin(pdl, c), RTE_MAX(cwnd, 1u));
}

void
san_pdl_pcb_set_crowded(struct san_pdl *pdl, struct san_pdl_conn *c, bool crowded)
{
	if (c->crowded == crowded)
		return;
	c->crowded = crowded;
	if (!crowded)
		san_pdl_sched_kick(pdl, c);
}

/* ---- host budget ---- */

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
	/* While a connection waits, all budget is in flight or reserved by tokens. */
	SAN_ASSERT(TAILQ_EMPTY(&pdl->wait) || taken == pdl->conf.budget_pkts);
	if (taken - c->token == pdl->conf.budget_pkts && !c->in_wait) {
		c->in_wait = true;
		TAILQ_INSERT_TAIL(&pdl->wait, c, wait_link);
		pdl->stats.nb_budget_waits++;
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
		san_pdl_sched_kick(pdl, c);
	}
}

void
san_pdl_pcb_begin(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	set_active(pdl, c, true);
}

/* Only a connection with packets in flight, lost or waiting has a share of the budget (PCB-2). */
void
san_pdl_pcb_rest(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	san_pdl_pcb_return_block(pdl, c);
	if (c->pcb.inflight == 0 && !c->in_ready && !c->in_wait && !san_pdl_has_lost(c))
		set_active(pdl, c, false);
	san_pdl_pcb_wake(pdl);
}

void
san_pdl_pcb_end(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	drop_token(pdl, c);
	san_pdl_pcb_rest(pdl, c);
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

/* ---- txblocks ---- */

void
san_pdl_pcb_take_block(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	struct san_pdl_wide *b;

	if (likely(san_pdl_is_wide(c)))
		return;
	if (unlikely(!san_pdl_may_take(pdl, pdl->uses[c->host].nb_wide, &pdl->free_wide, 1))) {
		pdl->stats.nb_windows_denied++;
		if (c->txb == NULL)
			c->txb = san_pdl_win_narrow_init(&c->narrow);
		c->is_lent = false;
		return;
	}
	b = san_pool_take(&pdl->free_wide);
	pdl->uses[c->host].nb_wide++;
	if (b->b.e[0] == NULL) /* first use: touch its pages only now */
		san_pdl_win_wide_init(b);
	if (c->txb != NULL)
		san_pdl_win_wide_take(b, &c->narrow, c->tx);
	c->txb = &b->b;
}

void
san_pdl_pcb_return_block(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (c->txb == NULL || san_pdl_has_outstanding(c) || c->in_wait || c->token)
		return;
	if (likely(san_pdl_is_wide(c))) {
		san_pool_give(&pdl->free_wide, san_pdl_wide_of(c));
		pdl->uses[c->host].nb_wide--;
	}
	c->txb = NULL;
}
