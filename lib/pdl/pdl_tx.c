/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Chooses what a connection sends: lost packets first, then new ones. For each packet this file
 * returns an entry, from which the transaction sublayer builds the packet (RULE-16).
 */

#include "pdl_priv.h"

/*
 * Number of new packets that may be sent now. After 0, the connection becomes ready again when that
 * changes.
 */
static uint32_t
pdl_tx_credit(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	uint32_t limit = san_pdl_pcb_limit(pdl, c);

	if (c->pcb.inflight >= limit || !san_pdl_sched_paced(pdl, c, now_ns))
		return 0;
	/* If the congestion window is below one packet, only pacing limits. */
	if (san_pdl_cc_window(&c->cc) < SAN_CC_ONE)
		limit = c->pcb.inflight + 1;
	return RTE_MIN(limit - c->pcb.inflight, san_pdl_pcb_budget(pdl, c));
}

/* Packets that fit in the peer's window and in the transmit block. */
static uint16_t
pdl_tx_room_of(const struct san_pdl_conn *c, enum san_win win)
{
	const struct san_pdl_txw *w = &c->tx[win];

	return (uint16_t)RTE_MIN(san_pdl_win_tx_room(w), san_pdl_win_tx_memory(w, c->txb, win));
}

void
san_pdl_tx_room(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns,
		struct san_pdl_room *room)
{
	*room = (struct san_pdl_room){0};
	if (c->state != SAN_CONN_OPEN || c->failed)
		return;
	san_pdl_pcb_begin(pdl, c);
	san_pdl_pcb_take_block(pdl, c);
	room->nb_req = pdl_tx_room_of(c, SAN_WIN_REQ);
	room->nb_data = pdl_tx_room_of(c, SAN_WIN_DATA);
	/* While the peer is silent, only lost packets are sent. Its next packet allows new ones. */
	if (room->nb_req + room->nb_data != 0 && !(c->odd & SAN_ODD_SILENT))
		room->nb_credit = (uint16_t)RTE_MIN(pdl_tx_credit(pdl, c, now_ns), UINT16_MAX);
}

/*
 * Looks at the same limits as san_pdl_tx_room(), in the same order. It must not take a block, a
 * token or a place in the wait list, so it cannot call that function.
 */
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

static void
count_sent(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_entry *e,
	   uint64_t now_ns)
{
	pdl->stats.nb_resync_tx += e->op == SAN_OP_RESYNC;
	if (!san_pdl_is_counted(e->op))
		return;
	san_bitmap_set(&c->txb->flight[e->win], e->psn);
	san_pdl_pcb_enter(pdl, c);
	san_pdl_sched_sent(pdl, c, 1, e->len, now_ns);
}

void
san_pdl_tx_assign(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e,
		  uint64_t now_ns)
{
	enum san_win win = san_pdl_rx_win_of(e->op, e->flags);
	struct san_pdl_txw *w;
	struct san_pdl_entry *slot;

	SAN_ASSERT(win != SAN_WIN_MAX && c->txb != NULL);
	w = &c->tx[win];
	SAN_ASSERT(san_pdl_win_tx_room(w) > 0);
	e->win = (uint8_t)win;
	e->psn = w->next++;
	e->retries = 0;
	e->state = 0;
	slot = san_pdl_win_tx_entry(c->txb, win, e->psn);
	*slot = *e;
	count_sent(pdl, c, slot, now_ns);
	san_pdl_rtx_sent(pdl, c, slot, now_ns);
	if (unlikely(e->len >= c->mtu_watch))
		san_pdl_pmtu_on_sent(pdl, c, e->len, now_ns);
}

struct san_pdl_entry *
san_pdl_tx_express_assign(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	struct san_pdl_txw *w = &c->tx[SAN_WIN_DATA];
	struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, SAN_WIN_DATA, w->next);

	SAN_ASSERT(san_pdl_win_tx_room(w) > 0);
	e->win = SAN_WIN_DATA;
	e->psn = w->next++;
	e->retries = 0;
	san_bitmap_set(&c->txb->flight[SAN_WIN_DATA], e->psn);
	san_pdl_pcb_enter(pdl, c);
	return e;
}

void
san_pdl_tx_express_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t n, uint32_t bytes,
			uint16_t longest, uint64_t now_ns)
{
	uint32_t psn = c->tx[SAN_WIN_DATA].next - n;
	const struct san_pdl_entry *e;
	uint16_t i;

	san_pdl_sched_sent(pdl, c, n, bytes, now_ns);
	san_pdl_rtx_sent_first(pdl, c, psn, n, now_ns);
	for (i = 0; unlikely(c->mtu_watch <= longest) && i < n; i++) {
		e = san_pdl_win_tx_entry(c->txb, SAN_WIN_DATA, psn + i);
		if (e->len >= c->mtu_watch)
			san_pdl_pmtu_on_sent(pdl, c, e->len, now_ns);
	}
}

/*
 * True if the counted entry *e* may be resent now. The window does not stop a connection that has
 * nothing in flight: no ACK would come to open it. Pacing does not delay a packet that timed out,
 * which has waited long enough (RT-7).
 */
static bool
may_go_again(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_entry *e,
	     uint64_t now_ns)
{
	if (c->pcb.inflight != 0 && c->pcb.inflight >= san_pdl_pcb_limit(pdl, c))
		return false;
	if (e->retries == 0 && !san_pdl_sched_paced(pdl, c, now_ns))
		return false;
	return san_pdl_pcb_budget(pdl, c) != 0;
}

/*
 * Find the lowest lost PSN of a window that may be resent. *blocked* is set once a counted packet
 * may not be resent: then no other counted packet may either.
 */
static struct san_pdl_entry *
lowest_lost(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, bool *blocked,
	    uint64_t now_ns)
{
	const struct san_pdl_txw *w = &c->tx[win];
	uint32_t psn = w->base;

	if (w->nb_lost == 0 || (*blocked && w->nb_lost_free == 0))
		return NULL;
	for (;;) {
		struct san_pdl_entry *e;

		psn += san_bitmap_first_one(&c->txb->lost[win], psn, w->next - psn);
		if (psn == w->next)
			return NULL;
		e = san_pdl_win_tx_entry(c->txb, win, psn);
		if (!san_pdl_is_counted(e->op))
			return e;
		if (!*blocked && may_go_again(pdl, c, e, now_ns))
			return e;
		*blocked = true;
		if (w->nb_lost_free == 0)
			return NULL;
		psn++;
	}
}

/*
 * Choose between the lost packets of the two windows. On an ordered connection the lower RSN goes
 * first (RT-20, RT-26). On other connections the windows take turns. They also take turns if the
 * data is pull data, because its RSN is one of the peer. Otherwise a request for which the peer has
 * no record could starve packets that free records.
 */
static struct san_pdl_entry *
pdl_tx_choose_entry(struct san_pdl_conn *c, struct san_pdl_entry *req, struct san_pdl_entry *data)
{
	if (req == NULL || data == NULL)
		return req != NULL ? req : data;
	if (!san_pdl_is_counted(data->op))
		return data;
	if (c->ordered && data->op != SAN_OP_PULL_DATA)
		return san_seq_lt(req->rsn, data->rsn) ? req : data;
	c->again_data = !c->again_data;
	return c->again_data ? data : req;
}

/*
 * True if the resend *e* leaves its turn to new packets. If the limit allows only one packet more,
 * a request that timed out or was refused takes every other turn only. Otherwise a peer that keeps
 * refusing it would stop all new packets.
 */
static bool
leave_turn(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_entry *e)
{
	if (e->win != SAN_WIN_REQ || (e->retries == 0 && (e->state & SAN_ENT_REFUSED) == 0) ||
	    c->pcb.inflight + 1 < san_pdl_pcb_limit(pdl, c))
		return false;
	c->new_turn = !c->new_turn;
	c->turn_left = c->new_turn;
	return c->new_turn;
}

/*
 * Choose the next piece of *e*, which is longer than the path MTU (RT-37). True if it is the last
 * piece.
 */
static bool
next_piece(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_entry *e)
{
	struct san_pdl_piece *x = &c->piece;
	uint16_t from = x->psn == e->psn ? x->from + x->len : 0;

	if (from >= e->len)
		from = 0;
	*x = (struct san_pdl_piece){
		.psn = e->psn,
		.from = from,
		.len = RTE_MIN((uint16_t)(e->len - from), san_wire_piece_max(c->mtu)),
	};
	pdl->stats.nb_pieces_tx++;
	return from + x->len == e->len;
}

struct san_pdl_entry *
san_pdl_tx_again(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct san_pdl_entry *e;
	bool blocked = false;

	if (!san_pdl_has_lost(c) || c->failed || c->state != SAN_CONN_OPEN)
		return NULL;
	san_pdl_pcb_begin(pdl, c);
	e = lowest_lost(pdl, c, SAN_WIN_REQ, &blocked, now_ns);
	e = pdl_tx_choose_entry(c, e, lowest_lost(pdl, c, SAN_WIN_DATA, &blocked, now_ns));
	if (e == NULL || leave_turn(pdl, c, e))
		return NULL;
	if (unlikely(e->len > c->mtu) && !next_piece(pdl, c, e))
		return e;
	san_pdl_rtx_find(c, e->win, e->psn);
	if (e->state & SAN_ENT_SENT) { /* otherwise: a new RESYNC */
		c->nb_rtx++;
		pdl->stats.nb_rtx++;
	}
	count_sent(pdl, c, e, now_ns);
	san_pdl_rtx_sent(pdl, c, e, now_ns);
	c->ackreq_owed = true;
	return e;
}

/*
 * True if the packet asks for an ACK (RULE-11). While few packets are in flight, each one asks;
 * otherwise one in *ack_every* does. A resent packet asks, and so does the packet that fills the
 * window, because none follows it.
 */
static inline bool
wants_ack(const struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t limit)
{
	c->ackreq_count++;
	if (!c->ackreq_owed && c->pcb.inflight > pdl->conf.ackreq_window &&
	    c->pcb.inflight < limit && c->ackreq_count < pdl->conf.ack_every)
		return false;
	c->ackreq_owed = false;
	c->ackreq_count = 0;
	return true;
}

uint32_t
san_pdl_tx_header(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_wire_pkt *p,
		  uint64_t now_ns)
{
	uint32_t limit = san_pdl_pcb_limit(pdl, c);

	p->dcid = c->dcid;
	p->tag = c->dtag;
	p->pkey = c->pkey;
	p->req_ebsn = c->rx[SAN_WIN_REQ].base;
	p->data_ebsn = c->rx[SAN_WIN_DATA].base;
	p->cmpl_rsn = c->cmpl_out;
	p->tx_time = (uint32_t)now_ns;
	p->ackreq = san_pdl_rx_win_of(p->op, p->flags) != SAN_WIN_MAX && wants_ack(pdl, c, limit);
	if (p->op != SAN_OP_ACK && p->op != SAN_OP_CNP) {
		san_pdl_ack_answer(pdl, c, now_ns);
		san_pdl_ack_piggyback(pdl, c, now_ns);
	}
	c->nb_tx_pkts++;
	return limit;
}

void
san_pdl_tx_header_next(const struct san_pdl *pdl, struct san_pdl_conn *c, struct san_wire_pkt *p,
		       uint32_t limit)
{
	p->ackreq = wants_ack(pdl, c, limit);
	c->nb_tx_pkts++;
}
