/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RT-13: what a target has granted and not placed in its turn stays within its budget.
 * RT-35: of what lapsed a host has no more than its bound, what it may have been granted before
 * it came there, and one grant for each connection. Counted from the records, not taken from
 * the counters that the protocol decides by.
 *
 * Nor is a crumb left to grant: a budget of crumbs is on its way from so many connections that
 * their headers, and what they send twice, are as much again. Only pulls leave so little room.
 */

#include <inttypes.h>

#include "sim_check.h"

#define PIECE_BYTES (32u << 10) /* what is left is worth a grant from that on */

/* Bytes that may still come, or come again: all but those that are placed in their turn. */
static uint32_t
due_of(const struct san_tl_conn *tc, const struct san_tl_rxn *r)
{
	bool in_turn = !tc->peer.ordered || r->rsn == tc->rx_base;

	if (!r->solicited || r->state == SAN_RXN_REFUSED || r->state == SAN_RXN_ABORTED)
		return 0;
	return r->granted - (in_turn ? r->received : 0);
}

/* Bytes that a grant leaves, if it leaves any. */
static uint32_t
least_left(const struct sim_world *w, const struct san_tl *tl)
{
	uint32_t piece = RTE_MIN(tl->conf.budget_bytes / 8, tl->conf.grant_bytes / 2);

	if (w->conf.load.weights[SAN_WR_PULL - SAN_WR_SEND] != 0 || w->conf.load.streams_ppm != 0)
		return 1;
	return RTE_MIN(piece, PIECE_BYTES);
}

static void
check_crumbs(struct sim_world *w, const struct sim_host *h, const struct san_tl_conn *tc)
{
	const struct san_tl *tl = san_core_tl(h->core);
	const struct san_tl_rxn *r = TAILQ_FIRST(&tc->grants); /* the others wait for its end */

	if (r != NULL && r->granted != 0 && r->length - r->granted < least_left(w, tl))
		sim_world_fail(w, "grant", "host %u: all but %u bytes of %u granted", h->id,
			       r->length - r->granted, r->length);
}

static void
check_host(struct sim_world *w, const struct sim_host *h, const struct san_tl_host *peer)
{
	const struct san_tl_conf *conf = &san_core_tl(h->core)->conf;
	uint64_t bound = (uint64_t)conf->lapsed_bytes + conf->budget_bytes +
		(uint64_t)peer->nb_conns * conf->grant_bytes;

	if (peer->lapsed > bound)
		sim_world_fail(w, "grant", "host %u: %u bytes lapsed of one peer; the bound is "
					   "%" PRIu64,
			       h->id, peer->lapsed, bound);
}

static void
grant_round(struct sim_world *w, void *state, struct sim_host *h)
{
	const struct san_tl *tl = san_core_tl(h->core);
	uint64_t due = 0, lapsed = 0;
	const struct san_tl_rxn *r;
	uint32_t slot;

	(void)state;
	for (slot = 0; slot < tl->conf.max_conns; slot++) {
		if (!tl->conns[slot].open)
			continue;
		check_crumbs(w, h, &tl->conns[slot]);
		check_host(w, h, tl->conns[slot].host);
		TAILQ_FOREACH(r, &tl->conns[slot].rxns, all_link) {
			uint32_t bytes = due_of(&tl->conns[slot], r);

			due += bytes - RTE_MIN(bytes, r->charge.lapsed);
			lapsed += r->charge.lapsed;
		}
	}
	if (due > tl->conf.budget_bytes || tl->budget_used > tl->conf.budget_bytes)
		sim_world_fail(w, "grant",
			       "host %u: %" PRIu64 " bytes granted, %u counted; the budget is %u",
			       h->id, due, tl->budget_used, tl->conf.budget_bytes);
	if (lapsed > tl->lapsed_used)
		sim_world_fail(w, "grant", "host %u: %" PRIu64 " bytes lapsed, %u counted", h->id,
			       lapsed, tl->lapsed_used);
}

const struct sim_checker sim_check_grant = {
	.name = "grant",
	.round = grant_round,
};
