/* SPDX-License-Identifier: BSD-3-Clause */

/* The express path. Each check here has its rule in another layer: express.h says how. */

#include <rte_prefetch.h>

#include "express.h"

#define PREFETCH_AHEAD 4 /* packets */

/*
 * True if the headers of *m* are ordinary. Most packets of a visit differ little from the last one.
 * Then the fields that identify the connection, and the ACK fields, are those of the last packet,
 * which were checked.
 */
static inline bool
read_headers(const struct san_express *x, const struct san_pdl_conn *c, struct rte_mbuf *m,
	     const struct rte_mbuf *last, struct san_wire_pkt *p, bool *is_alike)
{
	*is_alike = last != NULL && san_wire_express_next(m, last, p);
	return *is_alike ||
		(san_wire_express(m, &c->path, x->udp_port, p) && san_pdl_rx_express_of(c, p));
}

/* True if *m* was an ACK without bitmaps. Not inlined, to leave the loop below its registers. */
static __rte_noinline bool
rx_report(struct san_express *x, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	struct san_wire_ack ack;
	struct san_wire_pkt p;

	if (c->odd != 0 || !san_wire_express_ack(m, &c->path, x->udp_port, &p, &ack) ||
	    !san_pdl_rx_express_of(c, &p))
		return false;
	san_pdl_rx_express_report(x->pdl, c, &p, &ack, now_ns);
	san_tl_on_ack(x->tl, c, now_ns);
	san_tl_death_add(x->tl->death, m);
	return true;
}

uint16_t
san_express_rx(struct san_express *x, uint32_t cid, struct rte_mbuf **pkts, uint16_t n,
	       uint64_t now_ns)
{
	struct san_pdl_conn *c = san_pdl_conn_find(x->pdl, cid);
	struct rte_mbuf *last = NULL;
	bool is_alike, asks = false;
	struct san_ulp_express u;
	struct san_wire_pkt p;
	uint16_t i, k, max, nb_silent = 0;
	uint32_t rsn = 0;

	if (c == NULL || !x->is_on)
		return 0;
	san_ulp_place_express_start(x->ulp, c->slot, &u);
	max = san_tl_target_express_run(x->tl, c->slot, n);
	for (k = 0; k < max && c->odd == 0; k++) {
		if (!read_headers(x, c, pkts[k], last, &p, &is_alike) ||
		    !san_pdl_rx_express(c, &p, k) ||
		    !san_tl_target_express(x->tl, c->slot, &p, k) ||
		    !san_wire_express_sum(pkts[k], &p))
			break;
		if (k + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[k + PREFETCH_AHEAD], void *));
		if (!is_alike) {
			san_pdl_rx_express_ack(x->pdl, c, &p, k, now_ns);
			san_tl_on_ack(x->tl, c, now_ns);
			u.mr = NULL; /* the ACK may have ended the peer's rights (RT-40) */
		}
		/* The general path then applies the ACK again, which changes nothing. */
		if (!san_ulp_place_express(x->ulp, &p, &u))
			break;
		san_ulp_place_express_take(x->ulp, &u, &p, pkts[k]);
		asks |= p.ackreq;
		nb_silent += !asks;
		last = pkts[k];
		rsn = p.rsn;
	}
	if (k == 0)
		return rte_pktmbuf_data_len(pkts[0]) <= SAN_WIRE_BARE_ACK_MAX &&
			rx_report(x, c, pkts[0], now_ns);
	san_pdl_rx_express_take(x->pdl, c, k, nb_silent, now_ns);
	san_tl_target_express_take(x->tl, c->slot, k, rsn, now_ns);
	for (i = 0; i < k; i++)
		san_tl_death_add(x->tl->death, pkts[i]);
	return k;
}

/* Not inlined, to leave the loop of its caller its registers. */
__rte_noinline uint16_t
san_express_rx_data(struct san_express *x, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	struct san_wire_pkt *p = &san_wire_pkt(pkts[0])->w;
	struct san_pdl_conn *c = san_pdl_conn_find(x->pdl, p->dcid);
	uint16_t i, k, nb_silent = 0;
	uint32_t room, bytes = 0;
	struct san_tl_rxn *r;
	bool asks = false;

	if (n < 2 || san_wire_express_cid_at(pkts[1]) != p->dcid)
		return 0;
	if (!x->is_on || p->payload_len == 0 || (p->flags & (SAN_F_LAST | SAN_F_PIECE)) != 0 ||
	    c == NULL || (c->odd & ~SAN_ODD_AHEAD) != SAN_ODD_BASE || !san_pdl_rx_express_of(c, p))
		return 0;
	r = san_tl_target_express_data(x->tl, c->slot, p->rsn, &room);
	for (k = 1; k < n && r != NULL && bytes + p->payload_len <= room; k++) {
		if (k + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[k + PREFETCH_AHEAD], void *));
		if (!san_wire_express_data(pkts[k], pkts[k - 1], p) ||
		    !san_pdl_rx_express(c, p, k - 1) || p->offset != r->received + bytes ||
		    !san_ulp_place_express_data(x->ulp, r, p, pkts[k]))
			break;
		bytes += p->payload_len;
		asks |= p->ackreq;
		nb_silent += !asks;
	}
	if (bytes == 0)
		return 0;
	san_pdl_rx_express_take(x->pdl, c, --k, nb_silent, now_ns);
	san_tl_target_express_data_take(x->tl, r, bytes, now_ns);
	for (i = 1; i <= k; i++)
		san_tl_death_add(x->tl->death, pkts[i]);
	return k;
}

uint16_t
san_express_tx(struct san_express *x, struct san_visit *v, struct san_spare *spare,
	       struct san_pdl_room *room, uint64_t now_ns)
{
	uint32_t bytes = 0, max = RTE_MIN(room->nb_data, room->nb_credit);
	uint16_t k, longest = 0;
	struct san_pdl_entry *e;
	struct san_tl_txn *t;
	struct rte_mbuf *m;

	max = RTE_MIN(max, RTE_MIN((uint32_t)v->max - v->nb, spare->n));
	if (!x->is_on || max == 0 || !san_tl_initiator_express_tx(x->tl, v->c))
		return 0;
	for (k = 0; k < max && (t = san_tl_initiator_express_next(x->tl, v->c)) != NULL; k++) {
		e = san_pdl_tx_express_assign(x->pdl, v->c);
		san_tl_initiator_express_sent(x->tl, v->c, t, e);
		bytes += e->len;
		longest = RTE_MAX(longest, e->len);
		m = san_visit_spare_take(spare);
		v->p.psn = e->psn;
		san_tl_initiator_express_fill(x->tl, v->c, t, e, m, &v->p);
		san_visit_add(v, x->pdl, m, now_ns);
	}
	room->nb_data -= k;
	room->nb_credit -= k;
	if (k != 0)
		san_pdl_tx_express_sent(x->pdl, v->c, k, bytes, longest, now_ns);
	return k;
}
