/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Go-back-N (SAN_RECOVER_GO_BACK_N): what selective recovery is compared with, as
 * eRPC does it. All that differs is here; everything else is the same code.
 *
 * Receiver: takes the next PSN of a window, in order, and drops every later one.
 * Sender: looks for no holes and probes no tail (pdl_rtx.c asks san_pdl_goes_back()).
 * A window has one timeout, that of its oldest packet. When it expires, the whole
 * window from that packet on goes again in order, and nothing new before it: one
 * timeout and one retry, however many they are.
 *
 * What the receiver tells of is no loss, and as always. Held data, reported received,
 * is probed for, and goes again when an ACK says that it was dropped after all. A
 * refused packet is still the next in order: it is withdrawn, or goes again after the
 * delay that the NACK names. What followed it was dropped, so it waits, too: counted as
 * in flight, it would keep back what the receiver may need before it can take the other.
 */

#include "pdl_priv.h"

enum san_drop
san_pdl_gbn_place(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		  enum san_win win)
{
	const struct san_pdl_rxw *w = &c->rx[win];

	/* That is w->high, unless something held was dropped after all. */
	if (p->psn == w->base + san_bitmap_leading_ones(&w->rcvd, w->base, w->high - w->base))
		return SAN_DROP_NONE;
	if (p->ackreq)
		san_pdl_ack_owe(pdl, c, false);
	return SAN_DROP_ORDER;
}

/* Neither acknowledged nor reported received: as far as we know, the receiver wants it. */
static bool
is_wanted(const struct san_pdl_conn *c, enum san_win win, uint32_t psn)
{
	return !san_bitmap_test(&c->txb->acked[win], psn) &&
		!san_bitmap_test(&c->txb->rcvd[win], psn);
}

bool
san_pdl_gbn_line_up(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint64_t now_ns)
{
	const struct san_pdl_txw *w = &c->tx[win];
	const struct san_pdl_entry *oldest = NULL;
	uint32_t now = (uint32_t)(now_ns >> SAN_PDL_TICK_SHIFT);
	bool lost = false;
	uint32_t psn;

	for (psn = w->base; psn != w->next; psn++) {
		struct san_pdl_entry *e = san_pdl_txw_entry(c->txb, win, psn);

		if (!is_wanted(c, win, psn))
			continue;
		if (oldest == NULL) {
			oldest = e;
		} else if (san_seq_le(oldest->due, now)) {
			san_pdl_rtx_lose(pdl, c, win, psn);
			lost = true;
		} else if (san_seq_le(e->due, now)) {
			e->due = oldest->due; /* it waits for its turn to be the oldest */
		}
	}
	return lost;
}

void
san_pdl_gbn_defer_rest(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		       uint64_t delay_ns, uint64_t now_ns)
{
	for (psn++; psn != c->tx[win].next; psn++) {
		if (is_wanted(c, win, psn))
			san_pdl_rtx_defer(pdl, c, win, psn, delay_ns, now_ns);
	}
}

/* Must anything of the window go again, now or, deferred, later? The newest would, too. */
static bool
is_behind(const struct san_pdl_conn *c, enum san_win win)
{
	const struct san_pdl_txw *w = &c->tx[win];
	uint32_t newest = w->next - 1;

	if (w->nb_lost != 0)
		return true;
	if (w->next == w->base || !is_wanted(c, win, newest))
		return false;
	return (san_pdl_txw_entry(c->txb, win, newest)->state & SAN_ENT_DEFER) != 0;
}

void
san_pdl_gbn_limit_room(const struct san_pdl_conn *c, struct san_pdl_room *room)
{
	if (is_behind(c, SAN_WIN_REQ))
		room->nb_req = 0;
	if (is_behind(c, SAN_WIN_DATA))
		room->nb_data = 0;
}
