/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Processes one received packet. rx_check checks it without any change, then applies its ACK fields
 * and finds its place in the window. rx_commit takes the verdict of the transaction sublayer;
 * rx_ack or rx_revoke may follow later.
 * (RT-5, RT-18, RT-21, RT-24, RT-29, RT-33)
 */

#include "pdl_priv.h"

enum san_win
san_pdl_rx_win_of(uint8_t op, uint8_t flags)
{
	if (op == SAN_OP_RESYNC)
		return (flags & SAN_F_WIN_DATA) != 0 ? SAN_WIN_DATA : SAN_WIN_REQ;
	if (op < SAN_OP_PUSH_SLCTD_REQ || (op > SAN_OP_PULL_DATA && op != SAN_OP_PUSH_PACKED))
		return SAN_WIN_MAX;
	return op <= SAN_OP_ATOMIC_REQ ? SAN_WIN_REQ : SAN_WIN_DATA;
}

/* Check that the packet belongs to the connection. Changes nothing in any case (RT-21). */
static enum san_drop
pdl_rx_belongs(const struct san_pdl_conn *c, const struct san_wire_pkt *p)
{
	if (!san_wire_ip_eq(&p->src, &c->path.dst))
		return SAN_DROP_PEER;
	if (p->tag != c->tag && p->op != SAN_OP_CNP) /* a CNP is only a BTH, without a tag */
		return SAN_DROP_TAG;
	if (p->pkey != c->pkey)
		return SAN_DROP_PKEY;
	if (c->state == SAN_CONN_OPEN)
		return SAN_DROP_NONE;
	if (c->state == SAN_CONN_CLOSING && p->op != SAN_OP_CNP &&
	    san_pdl_rx_win_of(p->op, p->flags) == SAN_WIN_MAX)
		return SAN_DROP_NONE;
	return SAN_DROP_STATE;
}

/* The narrow bitmaps do not reach the PSN of a packet: make them wide. */
static bool
pdl_rx_widen(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_rxw *w, uint64_t now_ns)
{
	struct san_pdl_use *use = &pdl->uses[c->host];
	struct san_pdl_rxwords *words;
	struct san_holder *h;
	uint32_t i;

	if (!san_pdl_may_take(pdl, use->nb_words, &pdl->free_rxwords, SAN_WIN_MAX)) {
		pdl->stats.nb_windows_denied++;
		/* end connections that hold words although their base does not move */
		for (i = 0; i < SAN_HOLDERS_LOOKS; i++) {
			h = TAILQ_FIRST(&pdl->used_rxwords);
			if (h == NULL)
				break;
			words = container_of(h, struct san_pdl_rxwords, holder);
			if (san_holders_is_stale(&pdl->used_rxwords, h, words->window->base,
						 now_ns))
				san_pdl_conn_fail(pdl, words->conn);
		}
		return false;
	}
	words = san_pool_take(&pdl->free_rxwords);
	use->nb_words++;
	words->conn = c;
	words->window = w;
	san_holders_enter(&pdl->used_rxwords, &words->holder);
	san_pdl_win_rx_widen(w, words);
	return true;
}

/* Return the words if the window is empty. */
static void
pdl_rx_narrow(struct san_pdl *pdl, struct san_pdl_rxw *w)
{
	struct san_pdl_rxwords *words = san_pdl_win_rx_narrow(w);

	if (unlikely(words != NULL))
		san_pdl_rxwords_return(pdl, words);
}

/* RT-5: classify the PSN. */
static enum san_drop
pdl_rx_place_pkt(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		 enum san_win win, uint64_t now_ns)
{
	enum san_drop pos = san_pdl_win_rx_classify(&c->rx[win], p->psn);

	if (unlikely(pos == SAN_DROP_NONE && !san_pdl_win_rx_reaches(&c->rx[win], p->psn) &&
		     !pdl_rx_widen(pdl, c, &c->rx[win], now_ns)))
		pos = SAN_DROP_BEYOND; /* other windows use all the memory */

	san_pdl_ack_echo(pdl, c, p, c->ack.nb_unreported, now_ns);
	if (p->ce) {
		c->ack.ce_count++;
		c->ack.ce = true;
		san_pdl_ack_cnp(pdl, c, now_ns);
	}
	if (pos == SAN_DROP_NONE) {
		c->nb_copies = 0;
		return SAN_DROP_NONE;
	}
	if (pos == SAN_DROP_BEYOND) {
		c->ack.oow |= win == SAN_WIN_REQ ? SAN_OOW_REQ : SAN_OOW_DATA;
	} else {
		c->nb_dup++;
		san_pdl_plb_copy(pdl, c);
	}
	san_pdl_ack_owe(pdl, c, true);
	return pos;
}

/*
 * Any host that knows the partition can forge a CNP. So a CNP reaches only an algorithm that uses
 * CNPs, and only while a packet is in flight that may have been marked (RT-21).
 */
static void
on_cnp(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct san_pdl_cc *cc = &c->cc;
	uint32_t cuts = cc->nb_cuts;
	uint64_t rtt_ns = c->rtt.srtt_ns != 0 ? c->rtt.srtt_ns : pdl->conf.rto_init_ns;

	pdl->stats.nb_cnp_rx++;
	if (cc->ops->on_cnp == NULL || !san_pdl_has_outstanding(c))
		return;
	cc->ops->on_cnp(cc, &pdl->conf.cc_conf, rtt_ns, now_ns);
	pdl->stats.nb_cc_cuts += cc->nb_cuts - cuts;
}

static void
take_header(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
	    uint64_t now_ns)
{
	c->last_rx_ns = now_ns;
	if (unlikely(c->odd & SAN_ODD_SILENT))
		san_pdl_rtx_silence_ends(pdl, c, now_ns);
	c->cmpl_in = san_seq_max(c->cmpl_in, p->cmpl_rsn);
}

enum san_drop
san_pdl_rx_check(struct san_pdl *pdl, struct san_wire_pkt *p, const struct san_wire_ack *ack,
		 uint64_t now_ns, struct san_pdl_conn **conn)
{
	struct san_pdl_conn *c = san_pdl_conn_find(pdl, p->dcid);
	enum san_drop drop;
	enum san_win win;

	*conn = c;
	if (c == NULL)
		return SAN_DROP_CID;
	drop = pdl_rx_belongs(c, p);
	if (drop != SAN_DROP_NONE)
		return drop;
	if (p->op == SAN_OP_CNP) {
		on_cnp(pdl, c, now_ns);
		return SAN_DROP_NONE;
	}
	take_header(pdl, c, p, now_ns);
	c->nb_rx_pkts++;
	san_pdl_ack_apply(pdl, c, p, p->op == SAN_OP_ACK ? ack : NULL, now_ns);
	win = san_pdl_rx_win_of(p->op, p->flags);
	if (win != SAN_WIN_MAX)
		return pdl_rx_place_pkt(pdl, c, p, win, now_ns);
	if (p->op == SAN_OP_PROBE) {
		c->ack.probe_len = RTE_MAX(c->ack.probe_len, p->payload_len);
		san_pdl_ack_echo(pdl, c, p, c->ack.nb_unreported, now_ns);
		san_pdl_ack_owe(pdl, c, true);
	}
	return SAN_DROP_NONE;
}

void
san_pdl_rx_commit(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		  enum san_verdict verdict, uint64_t now_ns)
{
	enum san_win win = san_pdl_rx_win_of(p->op, p->flags);
	struct san_pdl_rxw *w;
	bool in_order;

	if (win == SAN_WIN_MAX)
		return;
	w = &c->rx[win];
	in_order = p->psn == w->high;
	/*
	 * tl may have acknowledged all other packets since rx_check. The window then returned its
	 * words.
	 */
	if (unlikely(verdict != SAN_RX_REFUSED && !san_pdl_win_rx_reaches(w, p->psn) &&
		     !pdl_rx_widen(pdl, c, w, now_ns)))
		verdict = SAN_RX_REFUSED;
	if (verdict != SAN_RX_REFUSED) {
		if (verdict == SAN_RX_ACKED)
			san_pdl_win_rx_take(w, p->psn);
		else
			san_pdl_win_rx_receive(w, p->psn);
		san_pdl_ack_coalesce(pdl, c, 1, p->ackreq, now_ns);
		/* the packet opens or fills a gap: report that at once */
		if (!in_order)
			san_pdl_ack_owe(pdl, c, true);
	}
	pdl_rx_narrow(pdl, w);
	if (p->ackreq)
		san_pdl_ack_on_request(pdl, c);
}

void
san_pdl_rx_ack(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn, uint64_t now_ns)
{
	struct san_pdl_rxw *w = &c->rx[SAN_WIN_DATA];

	if (san_seq_lt(psn, w->base) || san_bitmap_test(&w->acked, psn))
		return;
	san_pdl_win_rx_ack(w, psn);
	/* no other packet is held: the peer may wait for this ACK, so do not wait for the timer */
	if (!san_pdl_win_rx_has_gap(w))
		san_pdl_ack_owe(pdl, c, false);
	else
		san_pdl_ack_coalesce(pdl, c, 1, false, now_ns);
	pdl_rx_narrow(pdl, w);
}

/* ---- express: the next PSN, and nothing is held ---- */

bool
san_pdl_rx_express(const struct san_pdl_conn *c, const struct san_wire_pkt *p, uint16_t nb_taken)
{
	const struct san_pdl_rxw *w = &c->rx[SAN_WIN_DATA];

	return p->psn == w->base + nb_taken && w->high == w->base;
}

void
san_pdl_rx_express_report(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
			  const struct san_wire_ack *ack, uint64_t now_ns)
{
	take_header(pdl, c, p, now_ns);
	c->nb_rx_pkts++;
	san_pdl_ack_apply(pdl, c, p, ack, now_ns);
}

void
san_pdl_rx_express_ack(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		       uint16_t nb_taken, uint64_t now_ns)
{
	take_header(pdl, c, p, now_ns);
	san_pdl_ack_apply(pdl, c, p, NULL, now_ns);
	san_pdl_ack_echo(pdl, c, p, c->ack.nb_unreported + nb_taken, now_ns);
}

void
san_pdl_rx_express_take(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t nb_taken,
			uint16_t nb_silent, uint64_t now_ns)
{
	struct san_pdl_rxw *w = &c->rx[SAN_WIN_DATA];

	w->base += nb_taken;
	w->high += nb_taken;
	c->nb_copies = 0;
	c->nb_rx_pkts += nb_taken;
	san_pdl_ack_coalesce(pdl, c, nb_taken, nb_silent == 0, now_ns);
	if (nb_silent != nb_taken)
		san_pdl_ack_on_request(pdl, c);
}

void
san_pdl_rx_revoke(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn)
{
	san_pdl_win_rx_revoke(&c->rx[SAN_WIN_DATA], psn);
	pdl_rx_narrow(pdl, &c->rx[SAN_WIN_DATA]);
}
