/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packed packets: several small pushes and sends in one packet (RT-34).
 *
 * Initiator. When a push that fits in one packet is next, the pushes behind it share its packet.
 * They have consecutive RSNs, each is whole, unsolicited and counted for PCB-3, and nothing of it
 * was sent. Each could be sent now in a packet of its own, so none overtakes another
 * (RULE-3) and none waits for others. The entry of the PSN stores the first RSN and the number; the
 * packet is built from the records each time it is sent.
 *
 * Target. The packet is accepted or refused as a whole. First pushReq is called for each message.
 * If the ULP refuses one, the resources of the others are returned, and the packet is refused by
 * RNR(first RSN, delay 0, unpack). Like any RNR, this withdraws the packet. Its messages are then
 * sent alone, and each gets its own answer. So a refusal costs a round trip, and no message is
 * refused twice as part of a packet.
 *
 * Rounds ensure exactly-once. Before the RNR of the first RSN the messages are sent only in this
 * packet; after it, only alone. A copy of the packet that arrives later is of an old round, or its
 * first RSN is finished: checking this RSN is enough. Ahead of its turn on an ordered connection,
 * relaxed or not, the packet is held whole in a record of its first RSN.
 */

#include "tl_priv.h"

/* ---- initiator ---- */

static inline bool
may_share(const struct san_tl_txn *t)
{
	return t->state == SAN_TXN_POSTED && t->req.type == SAN_TL_PUSH && !t->solicited &&
		!t->alone;
}

bool
san_tl_pack_may(const struct san_tl_conn *tc, const struct san_tl_txn *t, uint16_t mtu)
{
	return may_share(t) && t->rsn + 1 != tc->adm_rsn &&
		san_wire_pack_len(t->req.kind, t->req.length) < mtu;
}

_Static_assert(SAN_WIRE_PACK_MIN == 2, "the second message is taken before the third is seen");

/* The message of *t* is sent in a packet of *nb_packed* that starts with it, or in one before. */
static inline void
pack_take_txn(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t, uint8_t nb_packed)
{
	t->sent = t->req.length;
	t->last_sent = true;
	t->nb_unacked++;
	san_tl_txn_set(t, SAN_TXN_SENT);
	t->nb_packed = nb_packed;
	san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_NONE);
}

bool
san_tl_pack(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *head, uint16_t mtu,
	    struct san_pdl_entry *e)
{
	uint32_t len, left = mtu - san_wire_pack_len(head->req.kind, head->req.length);
	uint32_t n, max = RTE_MIN(tc->adm_rsn - head->rsn, (uint32_t)SAN_WIRE_PACK_MAX);
	struct san_tl_txn *t;

	if (!san_tl_pack_may(tc, head, mtu))
		return false;
	for (n = 1; n < max; n++) {
		t = san_tl_txn_at(tc, head->rsn + n);
		if (t == NULL || !may_share(t))
			break;
		len = san_wire_pack_len(t->req.kind, t->req.length);
		if (len > left)
			break;
		left -= len;
		pack_take_txn(tl, tc, t, 0);
	}
	if (n == 1)
		return false;
	pack_take_txn(tl, tc, head, (uint8_t)n);
	if (tc->peer.ordered)
		tc->data_rsn = head->rsn + n;
	tl->stats.nb_packed_tx++;
	tl->stats.nb_packed_tx_messages += n;
	e->op = SAN_OP_PUSH_PACKED;
	e->rsn = head->rsn;
	e->aux = n - 1;
	e->len = (uint16_t)(mtu - left);
	return true;
}

void
san_tl_pack_fill(struct san_tl *tl, const struct san_pdl_conn *c, const struct san_tl_conn *tc,
		 const struct san_pdl_entry *e, struct rte_mbuf *m, struct san_wire_pkt *p)
{
	char *dst = san_wire_payload(m, e->len);
	const struct san_tl_txn *t;
	struct san_wire_msg msg;
	uint32_t i;
	void *data;

	SAN_VERIFY(dst != NULL);
	p->round = tc->peer.ordered ? c->rnr_round_out : 0;
	p->length = e->aux + 1;
	for (i = 0; i <= e->aux; i++) {
		t = san_tl_txn_at(tc, e->rsn + i);
		/* The record stays until the packet is acknowledged or withdrawn. */
		SAN_VERIFY(t != NULL);
		msg.kind = t->req.kind;
		msg.length = (uint16_t)t->req.length;
		msg.key = t->req.key;
		msg.addr = t->req.addr;
		msg.imm = t->req.imm;
		data = san_wire_pack_put(dst, &msg);
		if (msg.length != 0)
			san_tl_ulp_push_fill(tl->conf.ulp, t, 0, data, msg.length);
		dst = (char *)data + RTE_ALIGN_CEIL((uint32_t)msg.length, 4u);
	}
}

/* ---- target ---- */

/* Fill the scratch record with message *i*, which has *rsn*. */
static inline void
pack_load_request(struct san_tl *tl, uint32_t i, uint32_t rsn)
{
	const struct san_tl_part *part = &tl->parts[i];
	struct san_tl_rxn *r = &tl->scratch;

	r->kind = part->msg.kind;
	r->length = part->msg.length;
	r->key = part->msg.key;
	r->addr = part->msg.addr;
	r->imm = part->msg.imm;
	r->rsn = rsn;
	r->ulp_ref = part->ulp_ref;
	r->ulp_gen = part->ulp_gen;
}

/* Ask the ULP for every message (pushReq). False: one was refused, and all are undone. */
static bool
begin_all(struct san_tl *tl, const struct rte_mbuf *m, const struct san_wire_pkt *p)
{
	uint32_t i, off = p->payload_off;

	for (i = 0; i < p->length; i++) {
		off = san_wire_pack_get(m, off, &tl->parts[i].msg);
		pack_load_request(tl, i, p->rsn + i);
		if (san_tl_ulp_push_req(tl->conf.ulp, &tl->scratch) != SAN_ST_OK)
			break;
		tl->parts[i].ulp_ref = tl->scratch.ulp_ref;
		tl->parts[i].ulp_gen = tl->scratch.ulp_gen;
	}
	if (i == p->length)
		return true;
	while (i-- > 0) { /* in reverse order, so that receives return to their places */
		pack_load_request(tl, i, p->rsn + i);
		san_tl_ulp_push_abort(tl->conf.ulp, &tl->scratch);
	}
	return false;
}

/*
 * Place all data and ask for the ULP-ACKs. None is refused, because begin_all() has asked for all.
 */
static void
complete_all(struct san_tl *tl, struct rte_mbuf *m, const struct san_wire_pkt *p)
{
	struct san_tl_rxn *r = &tl->scratch;
	uint8_t status = SAN_ST_OK;
	uint32_t i;

	for (i = 0; i < p->length; i++) {
		pack_load_request(tl, i, p->rsn + i);
		if (r->length != 0)
			status |= san_tl_ulp_push_place(tl->conf.ulp, r, 0, m,
							tl->parts[i].msg.off, (uint16_t)r->length);
		status |= san_tl_ulp_push_done(tl->conf.ulp, r);
	}
	SAN_VERIFY(status == SAN_ST_OK);
}

/* The ULP takes all messages, or none. */
static bool
pack_take(struct san_tl *tl, struct san_tl_conn *tc, struct rte_mbuf *m)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;

	/* After an error each message must come again alone, and is refused alone. */
	if (san_tl_is_odd(tl, tc, SAN_ODD_FAILED))
		return false;
	if (likely(tl->conf.express && m->nb_segs == 1) &&
	    san_tl_ulp_push_packed(tl->conf.ulp, tc->slot, m, p))
		return true;
	if (!begin_all(tl, m, p))
		return false;
	complete_all(tl, m, p);
	return true;
}

/*
 * True if all RSNs of the packet are new. The first one was checked before. A correct initiator
 * uses each RSN once.
 */
static bool
is_new(struct san_tl *tl, struct san_tl_conn *tc, const struct san_wire_pkt *p)
{
	uint32_t i;

	if (tc->peer.ordered && tc->nb_ahead == 0)
		return true;
	for (i = 1; i < p->length; i++)
		if (san_tl_target_is_finished(tc, p->rsn + i) ||
		    san_tl_target_rxn_find(tl, tc, p->rsn + i) != NULL)
			return false;
	return true;
}

/* Execute the packet in its turn. Returns NONE if all of it is done. */
static enum san_drop
pack_execute_pkt(struct san_tl *tl, struct san_tl_conn *tc, struct rte_mbuf *m)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_rxn *r = &tl->scratch;

	if (!is_new(tl, tc, p))
		return SAN_DROP_RSN;
	r->type = SAN_TL_PUSH;
	r->slot = tc->slot;
	r->begun = false;
	r->reserved = false;
	r->packed = true;
	if (unlikely(!pack_take(tl, tc, m))) {
		r->rsn = p->rsn;
		return SAN_DROP_RNR;
	}
	tl->stats.nb_packed_rx++;
	tl->stats.nb_packed_rx_messages += p->length;
	san_tl_target_rsn_finish_all(tl, tc, p->rsn, p->length);
	return SAN_DROP_NONE;
}

/* After pack_execute_pkt(): send the RNR of a refusal. */
static void
pack_conclude(struct san_tl *tl, struct san_tl_conn *tc, uint32_t psn, enum san_drop drop,
	      uint64_t now_ns)
{
	if (drop == SAN_DROP_RNR)
		san_tl_nack_not_now(tl, tc, &tl->scratch, psn, SAN_ST_RNR, now_ns);
	tl->scratch.packed = false;
}

enum san_drop
san_tl_pack_hold(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_rxn *r;

	if (san_tl_rxn_is_red(tl, tc))
		return san_tl_target_refuse_red(tl, c, m, SAN_DROP_RED_ZONE, now_ns);
	r = san_tl_rxn_new(tl, tc, p->rsn, false);
	if (r == NULL)
		return san_tl_target_refuse_red(tl, c, m, SAN_DROP_NO_TXN, now_ns);
	r->type = SAN_TL_PUSH;
	r->packed = true;
	san_pdl_rx_commit(tl->pdl, c, p, SAN_RX_RECEIVED, now_ns);
	san_tl_rxn_held_push(tl, tc, r, m, now_ns);
	return SAN_DROP_NONE;
}

enum san_drop
san_tl_pack_rx(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	uint32_t psn = san_wire_pkt(m)->w.psn;
	enum san_drop drop;

	drop = pack_execute_pkt(tl, tc, m);
	san_tl_settle(tl, c, m, drop == SAN_DROP_NONE ? SAN_RX_ACKED : SAN_RX_REFUSED, drop,
		      now_ns);
	pack_conclude(tl, tc, psn, drop, now_ns);
	return drop;
}

bool
san_tl_pack_replay(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint64_t now_ns)
{
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	struct rte_mbuf *m = san_tl_rxn_held_pop(tl, tc, r);
	uint32_t psn = san_wire_pkt(m)->w.psn;
	enum san_drop drop;

	san_tl_rxn_free(tl, tc, r);
	drop = pack_execute_pkt(tl, tc, m);
	if (drop == SAN_DROP_NONE) {
		san_pdl_rx_ack(tl->pdl, c, psn, now_ns);
	} else {
		san_pdl_rx_revoke(tl->pdl, c, psn);
		tl->drops[drop]++;
	}
	san_tl_death_add(tl->death, m);
	pack_conclude(tl, tc, psn, drop, now_ns);
	return drop == SAN_DROP_NONE;
}
