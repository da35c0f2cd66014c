/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Lying hosts (RT-35). The engine and the program of such a host are honest, and so is what it
 * receives. What it sends is falsified, but for messages of the CM: it connects again.
 *
 * The promises of the transport are for pairs of innocent hosts (struct sim_side): notes of other
 * sides reach no checker, and the load waits for none of them. Invariants of state hold for every
 * engine, also that of a liar, because no peer may break them. So rounds of all hosts are checked,
 * and bounds, guards of regions and leaks.
 */

#include "sim_world.h"

/* The base stays. What is ahead of it is reported as received, as acknowledged in part, or not. */
static void
lie_keep_base(uint8_t lie, const struct sim_kept *k, struct san_wire_pkt *p, struct san_wire_ack *a)
{
	uint32_t i, ahead = lie == SIM_LIE_UNACKED ? 0 : p->data_ebsn - k->data;

	p->data_ebsn = k->data;
	if (p->op != SAN_OP_ACK)
		return;
	a->nb_data = (uint8_t)((ahead + 63) / 64);
	memset(a->data_acked, 0, sizeof(a->data_acked));
	memset(a->data_rcvd, 0, sizeof(a->data_rcvd));
	for (i = 0; i < ahead; i++) {
		a->data_rcvd[i / 64] |= 1ULL << i % 64;
		a->data_acked[i / 64] |= (uint64_t)(lie == SIM_LIE_PARTIAL && i % 2 != 0) << i % 64;
	}
	if (lie != SIM_LIE_RECEIVED)
		a->first_win = SAN_WIN_MIN;
}

/* In place of half of the ACKs the oldest packet that was not acknowledged is refused. */
static void
lie_refuse(struct sim_world *w, struct sim_kept *k, struct san_wire_pkt *p)
{
	if (p->op != SAN_OP_ACK || !san_sim_link_chance(&w->net, SIM_PPM / 2)) {
		k->data = p->data_ebsn;
		return;
	}
	p->op = SAN_OP_NACK;
	p->flags = SAN_F_WIN_DATA;
	p->round = ++k->round;
	p->status = k->round % 2 == 0 ? SAN_ST_RNR : SAN_ST_RESOURCE;
	p->rsn = p->cmpl_rsn;
	p->nack_psn = p->data_ebsn = k->data;
	p->delay_us = 100;
	p->payload_len = 0; /* the bitmaps */
}

/* Build the packet again, with its payload from *from* on. */
static void
lie_rebuild(struct rte_mbuf *m, const struct san_wire_pkt *p, const struct san_wire_ack *a,
	    uint16_t from)
{
	const struct san_wire_path path = san_sim_pkt_path(m, p);

	m->data_off += from;
	m->pkt_len = m->data_len = (uint16_t)(p->payload_off + p->payload_len - from);
	if (p->op == SAN_OP_ACK) {
		rte_pktmbuf_reset(m);
		san_wire_build_ack(m, &path, p, a);
	} else {
		san_wire_build(m, &path, p);
	}
	san_wire_icrc_seal(m);
}

struct rte_mbuf *
san_sim_lie_falsify(struct sim_world *w, struct sim_host *h, struct rte_mbuf *m)
{
	struct san_wire_pkt p;
	struct san_wire_ack a;
	struct sim_kept *k;
	uint16_t from;

	if (san_wire_parse(m, SAN_WIRE_PORT, &p, &a) != SAN_DROP_NONE || p.op == SAN_OP_CM ||
	    p.op == SAN_OP_CNP)
		return m;
	w->net.nb_faults++;
	if (h->lie == SIM_LIE_SILENT || (h->lie == SIM_LIE_QUIET && p.op != SAN_OP_ACK) ||
	    (h->lie == SIM_LIE_BEGIN && san_sim_pkt_goes_on(m))) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	if (h->lie > SIM_LIE_REFUSE)
		return m;
	k = &h->kept[p.tag % RTE_DIM(h->kept)]; /* one that loses its place begins again */
	if (k->tag != p.tag)
		*k = (struct sim_kept){p.tag, p.data_ebsn, p.cmpl_rsn, 0};
	from = p.op == SAN_OP_ACK ? p.payload_off : san_wire_op_hdr_len(p.op, p.v6);
	p.cmpl_rsn = k->cmpl;
	if (h->lie == SIM_LIE_REFUSE)
		lie_refuse(w, k, &p);
	else
		lie_keep_base(h->lie, k, &p, &a);
	lie_rebuild(m, &p, &a, from);
	return m;
}
