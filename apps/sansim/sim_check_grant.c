/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RT-13: what a target has granted and not placed in its turn stays within its budget,
 * what lapsed of it within another. Counted from the records, not taken from
 * the counters that the protocol decides by.
 */

#include <inttypes.h>

#include "sim_check.h"

/* Bytes that may still come, or come again: all but those that are placed in their turn. */
static uint32_t
due_of(const struct san_tl_conn *tc, const struct san_tl_rxn *r)
{
	bool in_turn = !tc->peer.ordered || r->rsn == tc->rx_base;

	if (!r->solicited || r->state == SAN_RXN_REFUSED || r->state == SAN_RXN_ABORTED)
		return 0;
	return r->granted - (in_turn ? r->received : 0);
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
	if (lapsed > tl->conf.lapsed_bytes || tl->lapsed_used > tl->conf.lapsed_bytes)
		sim_world_fail(w, "grant", "host %u: %" PRIu64 " bytes lapsed, %u counted; the "
					   "bound is %u",
			       h->id, lapsed, tl->lapsed_used,
			       tl->conf.lapsed_bytes);
}

const struct sim_checker sim_check_grant = {
	.name = "grant",
	.round = grant_round,
};
