/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets that arrive in pieces, because the path no longer carries their length (RT-37).
 *
 * All pieces of a packet have its PSN and headers. They are kept until the payload is complete.
 * Then the packet is processed as if it had arrived whole. A single piece changes nothing: the PSN
 * stays open, and nothing is placed or counted. So a packet that arrives whole, in pieces, or both
 * ways is executed once, like any other (RULE-1).
 *
 * Pieces count as held packets of the peer host (RT-35). A piece that cannot be kept is dropped
 * silently, and the packet is resent. A connection keeps only a few pieces, those of the lowest
 * PSNs, so that its window moves.
 *
 * If no more packets may be held, packets in pieces could never be completed. So one connection at
 * a time, the *joiner*, may keep the pieces of its lowest PSN beyond the limit. It may until they
 * are complete, or until another connection needs the place after JOIN_NS. That is one packet for
 * each lcore.
 */

#include "tl_priv.h"

#define JOIN_NS (10 * SAN_NS_PER_MS) /* longer than a round trip and a timeout */

static inline struct san_wire_pkt *
piece_pkt_of(struct rte_mbuf *m)
{
	return &san_wire_pkt(m)->w;
}

/* Unlink the piece at *at*. */
static struct rte_mbuf *
piece_unlink(struct san_tl *tl, struct san_tl_conn *tc, struct rte_mbuf **at)
{
	struct rte_mbuf *m = *at;

	*at = san_wire_pkt(m)->next;
	san_tl_rxn_held_leave(tl, tc);
	return m;
}

static void
piece_drop(struct san_tl *tl, struct san_tl_conn *tc, struct rte_mbuf **at, enum san_drop reason)
{
	tl->drops[reason]++;
	san_tl_death_add(tl->death, piece_unlink(tl, tc, at));
}

void
san_tl_piece_drop(struct san_tl *tl, struct san_tl_conn *tc, bool all, enum san_drop reason)
{
	const struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	struct rte_mbuf **at = &tc->pieces;
	enum san_drop pos;

	while (*at != NULL) {
		pos = san_pdl_win_rx_classify(&c->rx[SAN_WIN_DATA], piece_pkt_of(*at)->psn);
		if (all || pos != SAN_DROP_NONE) /* received already, or outside the window */
			piece_drop(tl, tc, at, reason);
		else
			at = &san_wire_pkt(*at)->next;
	}
	if (all && tl->joiner == tc)
		tl->joiner = NULL;
}

/* True if one more piece may be held. */
static bool
may_hold(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn, uint64_t now_ns)
{
	if (likely(!san_tl_rxn_is_red(tl, tc)))
		return true;
	if (psn != san_tl_pdl_conn(tl, tc)->rx[SAN_WIN_DATA].base)
		return false;
	if (tl->joiner != tc) {
		if (tl->joiner != NULL && now_ns < tl->join_ns)
			return false;
		if (tl->joiner != NULL)
			san_tl_piece_drop(tl, tl->joiner, true, SAN_DROP_HELD);
		tl->joiner = tc;
		tl->join_ns = now_ns + JOIN_NS;
	}
	return true;
}

/* True if both belong to one packet and do not overlap. */
static bool
piece_fits_next(const struct san_wire_pkt *a, const struct san_wire_pkt *b)
{
	return a->op == b->op && a->flags == b->flags && a->rsn == b->rsn &&
		a->offset == b->offset && a->whole_len == b->whole_len &&
		(a->piece_off + a->payload_len <= b->piece_off ||
		 b->piece_off + b->payload_len <= a->piece_off);
}

static bool
is_behind(const struct san_wire_pkt *a, const struct san_wire_pkt *b)
{
	return a->psn != b->psn ? san_seq_gt(a->psn, b->psn) : a->piece_off > b->piece_off;
}

/*
 * Make room for *m* among the pieces kept: drops pieces that do not match it and, if there are too
 * many, the last one. Returns the link where *m* belongs; NULL: *m* is not kept.
 */
static struct rte_mbuf **
piece_make_room(struct san_tl *tl, struct san_tl_conn *tc, struct rte_mbuf *m, uint64_t now_ns,
		enum san_drop *drop)
{
	struct rte_mbuf **at = &tc->pieces, **place = &tc->pieces, **last = NULL;
	const struct san_wire_pkt *p = piece_pkt_of(m), *q;
	uint32_t n = 0;

	while (*at != NULL) {
		q = piece_pkt_of(*at);
		if (q->psn == p->psn && q->piece_off == p->piece_off &&
		    q->payload_len == p->payload_len && q->whole_len == p->whole_len) {
			*drop = SAN_DROP_DUPLICATE;
			return NULL;
		}
		if (q->psn == p->psn && !piece_fits_next(q, p)) { /* cut in another way */
			piece_drop(tl, tc, at, SAN_DROP_HELD);
			continue;
		}
		n++;
		last = at;
		at = &san_wire_pkt(*at)->next;
		if (is_behind(p, q))
			place = at;
	}
	*drop = SAN_DROP_RED_ZONE;
	if (n < SAN_TL_PIECES_MAX)
		return may_hold(tl, tc, p->psn, now_ns) ? place : NULL;
	if (place == at) /* *m* itself would be last */
		return NULL;
	piece_drop(tl, tc, last, SAN_DROP_HELD);
	return place;
}

/* The first piece of the PSN if all pieces have arrived; else NULL. */
static struct rte_mbuf **
piece_find_whole(struct san_tl_conn *tc, uint32_t psn)
{
	struct rte_mbuf **first, *m;
	uint32_t end = 0;

	for (first = &tc->pieces; piece_pkt_of(*first)->psn != psn;
	     first = &san_wire_pkt(*first)->next)
		;
	for (m = *first;
	     m != NULL && piece_pkt_of(m)->psn == psn && piece_pkt_of(m)->piece_off == end;
	     m = san_wire_pkt(m)->next)
		end += piece_pkt_of(m)->payload_len;
	return end == piece_pkt_of(*first)->whole_len ? first : NULL;
}

/* Trim the mbuf to the end of its payload. */
static struct rte_mbuf *
data_end(struct rte_mbuf *m)
{
	san_wire_parse_trim(m,
			    (uint32_t)piece_pkt_of(m)->payload_off + piece_pkt_of(m)->payload_len);
	return m;
}

/*
 * Join the pieces from *first* on into one packet; *newest*: headers of the piece that came last.
 */
static struct rte_mbuf *
piece_join_all(struct san_tl *tl, struct san_tl_conn *tc, struct rte_mbuf **first,
	       const struct san_wire_pkt *newest)
{
	struct rte_mbuf *whole = data_end(piece_unlink(tl, tc, first)), *m;
	struct san_wire_pkt *p = piece_pkt_of(whole);
	uint32_t len;
	int rc;

	for (len = p->payload_len; len < p->whole_len; len += piece_pkt_of(m)->payload_len) {
		m = data_end(piece_unlink(tl, tc, first));
		rte_pktmbuf_adj(m, piece_pkt_of(m)->payload_off);
		rc = rte_pktmbuf_chain(whole, m);
		SAN_VERIFY(rc == 0);
	}
	*p = *newest;
	p->flags &= (uint8_t)~SAN_F_PIECE;
	p->payload_len = p->whole_len;
	return whole;
}

struct rte_mbuf *
san_tl_piece_rx(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns,
		enum san_drop *drop)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_wire_pkt w = *piece_pkt_of(m);
	struct rte_mbuf **at;

	san_tl_piece_drop(tl, tc, false, SAN_DROP_DUPLICATE);
	at = piece_make_room(tl, tc, m, now_ns, drop);
	if (at == NULL) {
		san_tl_settle(tl, c, m, SAN_RX_REFUSED, *drop, now_ns);
		return NULL;
	}
	san_tl_rxn_held_enter(tl, tc, now_ns);
	san_wire_pkt(m)->next = *at;
	*at = m;
	at = piece_find_whole(tc, w.psn);
	if (at == NULL) {
		san_pdl_rx_commit(tl->pdl, c, &w, SAN_RX_REFUSED, now_ns);
		*drop = SAN_DROP_NONE;
		return NULL;
	}
	m = piece_join_all(tl, tc, at, &w);
	if (tl->joiner == tc)
		tl->joiner = NULL;
	if (w.op == SAN_OP_PUSH_PACKED) {
		*drop = san_wire_pack_check(m, piece_pkt_of(m));
		if (*drop != SAN_DROP_NONE) {
			san_tl_settle(tl, c, m, SAN_RX_REFUSED, *drop, now_ns);
			return NULL;
		}
	}
	return m;
}

uint32_t
san_tl_piece_nb(const struct san_tl_conn *tc)
{
	struct rte_mbuf *m;
	uint32_t n = 0;

	for (m = tc->pieces; m != NULL; m = san_wire_pkt(m)->next) {
		SAN_VERIFY(san_wire_pkt(m)->next == NULL ||
			   is_behind(piece_pkt_of(san_wire_pkt(m)->next), piece_pkt_of(m)));
		n++;
	}
	SAN_VERIFY(n <= SAN_TL_PIECES_MAX);
	return n;
}
