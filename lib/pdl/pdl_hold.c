/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Tells why san_pdl_tx_room() would return no room, with the same checks in the same order. It must
 * not take a block, a token or a place in the wait list, so it cannot call that function.
 */

#include "pdl_priv.h"

enum san_hold
san_pdl_hold(const struct san_pdl *pdl, const struct san_pdl_conn *c, enum san_win win,
	     uint64_t now_ns)
{
	const struct san_pdl_txw *w = &c->tx[win];
	uint32_t limit = san_pdl_pcb_limit(pdl, c);

	if (c->state != SAN_CONN_OPEN || c->failed)
		return SAN_HOLD_SETUP;
	if (san_pdl_win_tx_room(w) == 0)
		return SAN_HOLD_WINDOW;
	if (c->txb != NULL && san_pdl_win_tx_memory(w, c->txb, win) == 0)
		return SAN_HOLD_MEMORY;
	if (c->crowded && c->pcb.inflight >= limit)
		return SAN_HOLD_RECEIVER;
	if (c->pcb.inflight >= limit)
		return limit == san_pdl_pcb_vwin(pdl, c) ? SAN_HOLD_VIRTUAL : SAN_HOLD_CONGESTION;
	if (san_pdl_cc_window(&c->cc) < SAN_CC_ONE && now_ns < c->pace_ns)
		return SAN_HOLD_PACE;
	return c->in_wait ? SAN_HOLD_BUDGET : SAN_HOLD_NONE;
}
