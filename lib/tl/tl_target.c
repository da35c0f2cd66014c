/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The target: executes the requests of the peer, exactly once and in its order (RT-10, RT-11,
 * RT-14, RT-15, RT-18, RT-19, RT-30, RT-32; RULE-1, RULE-3, RULE-14, RULE-15).
 *
 * On an ordered connection the base is the lowest unfinished RSN, and its packets are processed at
 * once. Packets of a later RSN are held in the record of that RSN, which is in the CAM. When the
 * base reaches it, the record is taken out of the CAM and its packets are processed in order of
 * arrival. This repeats while the CAM has the next RSN. On an unordered connection packets of every
 * unfinished RSN are processed at once. A push in one packet that is the base needs neither a
 * record of the pool nor a look-up.
 *
 * Push data is acknowledged when it is placed. LAST is acknowledged when all data is placed and the
 * ULP has acknowledged the push. A pull or atomic counts as finished for the order once it was
 * executed. Its record stays until its data is acknowledged (tl_pull.c).
 */

#include "tl_priv.h"

/** Result of one packet of push data. */
enum put {
	PUT_PLACED = 0, /**< placed; more is to come */
	PUT_WAIT,       /**< LAST is placed, but not the rest, or the push must wait for its turn */
	PUT_FINISHED,   /**< all is placed, and the ULP acknowledged */
	PUT_RNR,        /**< the receiver is not ready for the push */
	PUT_LATER,      /**< it must be refused, and there is no memory for that now */
	PUT_ERROR,      /**< completed in error */
	PUT_HOLD,       /**< ahead of its turn: retry when it is the base */
};

/* ---- one packet of push data ---- */

/*
 * On the wire RNR and RESOURCE mean that a retry may succeed. Here a ULP that returns one of them
 * has refused finally, so another status is sent.
 */
static uint8_t
final_status(uint8_t code)
{
	return code == SAN_ST_RNR || code == SAN_ST_RESOURCE || code >= SAN_ST_MAX ?
		SAN_ST_REFUSED :
		code;
}

/* Complete the push in error (RT-27), or later. */
static enum put
target_refuse_push(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint32_t psn,
		   uint8_t code)
{
	if (unlikely(!san_tl_nack_refused_note(tl, tc, psn))) {
		if (!r->begun)
			return san_tl_in_turn(tc, r->rsn) ? PUT_LATER : PUT_HOLD;
		/*
		 * Part of it is placed, so it cannot come again. Without the status its copies
		 * would be taken for those of a finished push: the connection ends.
		 */
		san_pdl_conn_fail(tl->pdl, san_tl_pdl_conn(tl, tc));
	}
	code = final_status(code);
	r->status = code;
	san_tl_rxn_set(tl, r, SAN_RXN_REFUSED);
	san_tl_nack(tl, tc, psn, r->rsn, code);
	return PUT_ERROR;
}

/* Begin the push with the first packet of its RSN: call pushReq. */
static enum put
target_begin_push(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint32_t psn)
{
	uint8_t status;

	if (unlikely(san_tl_is_odd(tl, tc, SAN_ODD_FAILED)))
		return target_refuse_push(tl, tc, r, psn, SAN_ST_REFUSED);
	status = san_tl_ulp_push_req(tl->conf.ulp, r);
	if (status == SAN_ST_RNR)
		return san_tl_in_turn(tc, r->rsn) ? PUT_RNR : PUT_HOLD;
	if (status != SAN_ST_OK)
		return target_refuse_push(tl, tc, r, psn, status);
	r->begun = true;
	san_tl_rxn_set(tl, r, SAN_RXN_ACTIVE);
	if (unlikely(san_tl_is_odd(tl, tc, SAN_ODD_RNR)) && san_tl_in_turn(tc, r->rsn))
		san_tl_target_rnr_over(tl, tc);
	return PUT_PLACED;
}

/* All data is placed, and it is the turn of the push: ask for the ULP-ACK. */
static enum put
target_complete_push(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	uint8_t status = san_tl_ulp_push_done(tl->conf.ulp, r);

	if (status != SAN_ST_OK)
		return target_refuse_push(tl, tc, r, r->last_psn, status);
	return PUT_FINISHED;
}

static enum put
put_packet(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, struct rte_mbuf *m)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	uint16_t imm_len = san_wire_imm_len(p->flags);
	uint16_t len = p->payload_len - imm_len;
	rte_be32_t copy;
	const void *imm;
	enum put out;
	uint8_t status;

	if (!r->begun) {
		out = target_begin_push(tl, tc, r, p->psn);
		if (out != PUT_PLACED)
			return out;
	}
	if (len != 0) {
		status = san_tl_ulp_push_place(tl->conf.ulp, r, p->offset, m,
					       p->payload_off + imm_len, len);
		if (unlikely(status != SAN_ST_OK))
			return target_refuse_push(tl, tc, r, p->psn, status);
	}
	r->received += len;
	if (r->solicited && san_tl_in_turn(tc, r->rsn))
		san_tl_admit_charge_done(tl, &r->charge, len);
	if (p->flags & SAN_F_LAST) {
		r->has_last = true;
		r->last_psn = p->psn;
		if (imm_len != 0) {
			imm = rte_pktmbuf_read(m, p->payload_off, sizeof(copy), &copy);
			if (imm != NULL)
				memcpy(&copy, imm, sizeof(copy));
			r->imm = rte_be_to_cpu_32(copy);
		}
	}
	if (r->has_last && r->received == r->length && san_tl_in_turn(tc, r->rsn))
		return target_complete_push(tl, tc, r);
	return p->flags & SAN_F_LAST ? PUT_WAIT : PUT_PLACED;
}

/* ---- applying the result ---- */

static void
finish_push(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r)
{
	uint8_t code = r->state == SAN_RXN_REFUSED ? r->status : SAN_ST_OK;
	uint32_t rsn = r->rsn;

	san_tl_rxn_free(tl, tc, r);
	san_tl_target_rsn_finish(tl, tc, rsn, code);
}

/*
 * Release the rest of a refused push. None of its PSNs may stay reported as received: the initiator
 * would not send the RESYNC under such a PSN.
 */
static void
drop_refused(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint32_t psn,
	     uint64_t now_ns)
{
	san_tl_rxn_push_undo(tl, tc, r);
	if (r != &tl->scratch) {
		if (r->has_last && r->last_psn != psn)
			san_pdl_rx_revoke(tl->pdl, san_tl_pdl_conn(tl, tc), r->last_psn);
		r->has_last = false;
		san_tl_rxn_held_drop(tl, tc, r, false, SAN_DROP_ABORTED, now_ns);
		san_tl_rxn_ssn_leave(tl, tc, r);
		san_tl_rxn_out(tl, tc, r, false);
		san_tl_admit_charge_release(tl, &r->charge);
	}
	if (san_tl_in_turn(tc, r->rsn))
		finish_push(tl, tc, r);
}

static enum san_drop
target_conclude_push(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r,
		     struct rte_mbuf *m, enum put out, bool fresh, uint64_t now_ns)
{
	static const struct {
		enum san_verdict verdict;
		enum san_drop drop;
	} table[] = {
		[PUT_PLACED] = {SAN_RX_ACKED, SAN_DROP_NONE},
		[PUT_WAIT] = {SAN_RX_RECEIVED, SAN_DROP_NONE},
		[PUT_FINISHED] = {SAN_RX_ACKED, SAN_DROP_NONE},
		[PUT_RNR] = {SAN_RX_REFUSED, SAN_DROP_RNR},
		[PUT_LATER] = {SAN_RX_REFUSED, SAN_DROP_NO_TXN},
		[PUT_ERROR] = {SAN_RX_REFUSED, SAN_DROP_ABORTED},
	};
	enum san_verdict verdict = table[out].verdict;
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	uint32_t psn = san_wire_pkt(m)->w.psn;

	/* answer at once, or later if the packet was held */
	if (fresh)
		san_pdl_rx_commit(tl->pdl, c, &san_wire_pkt(m)->w, verdict, now_ns);
	else if (verdict == SAN_RX_ACKED)
		san_pdl_rx_ack(tl->pdl, c, psn, now_ns);
	else if (verdict == SAN_RX_REFUSED)
		san_pdl_rx_revoke(tl->pdl, c, psn);
	san_tl_death_add(tl->death, m);
	if (!fresh && table[out].drop != SAN_DROP_NONE)
		tl->drops[table[out].drop]++;
	switch (out) {
	case PUT_FINISHED:
		if (r->last_psn != psn)
			san_pdl_rx_ack(tl->pdl, c, r->last_psn, now_ns);
		finish_push(tl, tc, r);
		break;
	case PUT_RNR:
	case PUT_LATER:
		san_tl_nack_not_now(tl, tc, r, psn, out == PUT_RNR ? SAN_ST_RNR : SAN_ST_RESOURCE,
				    now_ns);
		break;
	case PUT_ERROR:
		drop_refused(tl, tc, r, psn, now_ns);
		break;
	default:
		break;
	}
	return table[out].drop;
}

/* ---- push data from the network ---- */

static void
set_push(struct san_tl_rxn *r, const struct san_wire_pkt *p)
{
	r->type = SAN_TL_PUSH;
	r->kind = san_tl_kind(p);
	r->length = p->length;
	r->key = p->key;
	r->addr = p->addr;
}

/* A push in one packet that arrives in its turn needs no record: use the scratch record. */
static struct san_tl_rxn *
use_scratch(struct san_tl *tl, const struct san_tl_conn *tc, const struct san_wire_pkt *p)
{
	struct san_tl_rxn *r = &tl->scratch;

	set_push(r, p);
	r->slot = tc->slot;
	r->rsn = p->rsn;
	r->state = SAN_RXN_AHEAD;
	r->status = SAN_ST_OK;
	r->begun = false;
	r->reserved = false;
	r->has_last = false;
	r->seen_last = false;
	r->received = 0;
	r->arrived = 0;
	return r;
}

/* True if the packet agrees with those before it, and its data is granted and new. */
static bool
target_rxn_matches(const struct san_tl_rxn *r, const struct san_wire_pkt *p)
{
	uint32_t len = san_tl_data_len(p);

	if (r->type != SAN_TL_PUSH || r->packed || r->kind != san_tl_kind(p) ||
	    r->solicited != (p->op == SAN_OP_PUSH_SLCTD_DATA))
		return false;
	if (p->offset > r->length || len > r->length - p->offset || len > r->length - r->arrived)
		return false;
	if ((p->flags & SAN_F_LAST) && (r->seen_last || p->offset + len != r->length))
		return false;
	if (r->solicited) /* each byte once: the budget must get back only what was charged */
		return p->offset + len <= r->granted && len <= r->granted - r->arrived;
	return r->length == p->length && r->key == p->key && r->addr == p->addr;
}

/* A packet of a finished transaction is discarded, but not after an error (RT-32). */
static enum san_drop
push_over(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	uint8_t code = san_tl_nack_refused_get(tc, p->rsn);

	if (code != SAN_ST_OK) {
		san_tl_nack(tl, tc, p->psn, p->rsn, code);
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_ABORTED, now_ns);
	}
	tl->stats.nb_finished_data++;
	return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_FINISHED, now_ns);
}

/* Get a record for the packet; NULL: *drop* has the reason. */
static struct san_tl_rxn *
record_for(struct san_tl *tl, struct san_tl_conn *tc, const struct san_wire_pkt *p,
	   enum san_drop *drop)
{
	bool in_turn = san_tl_in_turn(tc, p->rsn);
	uint32_t len = san_tl_data_len(p);
	struct san_tl_rxn *r;

	*drop = SAN_DROP_RANGE;
	/* Refuse data that was never granted, and LAST that does not end the push. */
	if (p->op == SAN_OP_PUSH_SLCTD_DATA ||
	    ((p->flags & SAN_F_LAST) && p->offset + len != p->length))
		return NULL;
	if (in_turn && (p->flags & SAN_F_LAST) && len == p->length)
		return use_scratch(tl, tc, p);
	*drop = SAN_DROP_RED_ZONE;
	if (!in_turn && san_tl_rxn_is_red(tl, tc))
		return NULL;
	*drop = SAN_DROP_NO_TXN;
	r = san_tl_rxn_new(tl, tc, p->rsn, false);
	if (r != NULL)
		set_push(r, p);
	return r;
}

/*
 * True if LAST must wait for data before it. On an ordered connection it is placed last: an
 * application that polls the last byte finds all bytes before it (RT-39). Relaxed placement does
 * not guarantee that.
 */
static inline bool
target_last_is_ahead(const struct san_tl_conn *tc, const struct san_tl_rxn *r,
		     const struct san_wire_pkt *p)
{
	/* it waits if data before LAST is missing */
	return (p->flags & SAN_F_LAST) != 0 && r->received != p->offset && tc->peer.ordered &&
		!tc->peer.relaxed;
}

static enum san_drop
put_or_hold(struct san_tl *tl, struct san_pdl_conn *c, struct san_tl_rxn *r, struct rte_mbuf *m,
	    uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	bool in_turn = san_tl_in_turn(tc, p->rsn);
	enum put out = PUT_HOLD;

	if ((in_turn && !target_last_is_ahead(tc, r, p)) ||
	    (tc->peer.relaxed && r->kind == SAN_KIND_PUSH))
		out = put_packet(tl, tc, r, m);
	if (out == PUT_HOLD && san_tl_rxn_is_red(tl, tc))
		/* LAST that is held back is only resent, because the rest may be placed. */
		return in_turn ? san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RED_ZONE,
					       now_ns) :
				 san_tl_target_refuse_red(tl, c, m, SAN_DROP_RED_ZONE, now_ns);
	r->arrived += san_tl_data_len(p);
	r->seen_last |= (p->flags & SAN_F_LAST) != 0;
	if (r->solicited)
		san_tl_admit_charge_use(tl, &r->charge, san_tl_data_len(p), now_ns);
	if (out != PUT_HOLD)
		return target_conclude_push(tl, tc, r, m, out, true, now_ns);
	san_pdl_rx_commit(tl->pdl, c, p, SAN_RX_RECEIVED, now_ns);
	san_tl_rxn_held_push(tl, tc, r, m, now_ns);
	return SAN_DROP_NONE;
}

enum san_drop
san_tl_target_rx_push(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
		      uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_rxn *r;
	enum san_drop drop;

	if (san_tl_target_is_finished(tc, p->rsn))
		return push_over(tl, c, m, now_ns);
	if (p->rsn - tc->rx_base >= tc->peer.n_rx)
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RSN, now_ns);
	if (unlikely(san_tl_nack_is_old_round(tc, p))) {
		san_tl_nack_repeat(tl, tc, p);
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_ROUND, now_ns);
	}
	if (unlikely(san_tl_pull_is_before(tl, tc))) {
		san_tl_nack_base_waits(tl, tc, p->psn, now_ns);
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RNR, now_ns);
	}
	r = san_tl_target_rxn_find(tl, tc, p->rsn);
	if (p->op == SAN_OP_PUSH_PACKED) {
		if (r != NULL || p->rsn + p->length - 1 - tc->rx_base >= tc->peer.n_rx)
			return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RSN, now_ns);
		if (!san_tl_in_turn(tc, p->rsn))
			return san_tl_pack_hold(tl, c, m, now_ns);
		drop = san_tl_pack_rx(tl, c, m, now_ns);
		if (tc->cur != NULL)
			san_tl_target_run_base(tl, tc, now_ns);
		return drop;
	}
	if (r == NULL) {
		r = record_for(tl, tc, p, &drop);
		if (r == NULL)
			return drop == SAN_DROP_RANGE ?
				san_tl_settle(tl, c, m, SAN_RX_REFUSED, drop, now_ns) :
				san_tl_target_refuse_red(tl, c, m, drop, now_ns);
	} else if (r->state == SAN_RXN_ABORTED) {
		return push_over(tl, c, m, now_ns);
	} else if (r->state == SAN_RXN_REFUSED) {
		san_tl_nack(tl, tc, p->psn, p->rsn, r->status);
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_ABORTED, now_ns);
	} else if (!target_rxn_matches(r, p)) {
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RANGE, now_ns);
	}
	drop = put_or_hold(tl, c, r, m, now_ns);
	if (tc->cur != NULL) {
		san_tl_target_run_base(tl, tc, now_ns);
		san_tl_rxn_base_watch(tl, tc, now_ns);
	}
	return drop;
}

/* ---- express: pushes of one packet, in their turn ---- */

uint16_t
san_tl_target_express_run(const struct san_tl *tl, uint16_t slot, uint16_t n)
{
	/* Grants are looked for after each packet while one waits: their order depends on it. */
	return tl->conns[slot].peer.ordered && tl->nb_admit == 0 ? n : RTE_MIN(n, 1);
}

bool
san_tl_target_express(const struct san_tl *tl, uint16_t slot, const struct san_wire_pkt *p,
		      uint16_t nb_taken)
{
	const struct san_tl_conn *tc = &tl->conns[slot];

	if (tc->peer.ordered)
		return p->rsn == tc->rx_base + nb_taken && !san_tl_nack_is_old_round(tc, p);
	return !san_tl_target_is_finished(tc, p->rsn) && p->rsn - tc->rx_base < tc->peer.n_rx &&
		!san_tl_nack_is_old_round(tc, p);
}

void
san_tl_target_express_take(struct san_tl *tl, uint16_t slot, uint16_t nb_taken, uint32_t last_rsn,
			   uint64_t now_ns)
{
	tl->now_ns = now_ns;
	san_tl_target_rsn_finish_all(tl, &tl->conns[slot], last_rsn - nb_taken + 1u, nb_taken);
	if (unlikely(tl->nb_admit != 0))
		san_tl_admit_run(tl, now_ns);
}

/* ---- express: solicited data, in its turn ---- */

struct san_tl_rxn *
san_tl_target_express_data(struct san_tl *tl, uint16_t slot, uint32_t rsn, uint32_t *room)
{
	const struct san_tl_conn *tc = &tl->conns[slot];
	struct san_tl_rxn *r = tc->cur;

	if (!tc->peer.ordered || r->rsn != rsn || r->state != SAN_RXN_ACTIVE || !r->solicited ||
	    r->charge.charged == 0 || r->charge.expired != 0)
		return NULL;
	/* What is charged is granted and not placed. The last byte of it has effects on others. */
	*room = RTE_MIN(r->charge.charged - 1, san_tl_admit_quiet(tl));
	return r;
}

void
san_tl_target_express_data_take(struct san_tl *tl, struct san_tl_rxn *r, uint32_t bytes,
				uint64_t now_ns)
{
	r->received += bytes;
	r->arrived += bytes;
	san_tl_admit_charge_done(tl, &r->charge, bytes);
	san_tl_admit_charge_use(tl, &r->charge, bytes, now_ns);
}

/* ---- the base moves ---- */

/*
 * Process the packets that the push at the base holds, in order of arrival and LAST at the end.
 * True if the push is finished.
 */
static bool
target_replay_held(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_rxn *r, uint64_t now_ns)
{
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	uint32_t base = tc->rx_base;
	struct rte_mbuf *m;
	enum put out;
	bool is_ahead;

	while (tc->cur == r && (m = r->held_head) != NULL) {
		is_ahead = target_last_is_ahead(tc, r, &san_wire_pkt(m)->w);
		if (is_ahead && m == r->held_tail)
			break; /* the rest is still missing */
		san_tl_rxn_held_pop(tl, tc, r);
		if (is_ahead) {
			san_tl_rxn_held_push(tl, tc, r, m, now_ns);
			continue;
		}
		out = put_packet(tl, tc, r, m);
		target_conclude_push(tl, tc, r, m, out, false, now_ns);
	}
	if (tc->cur != r || !r->has_last || r->received != r->length)
		return tc->rx_base != base;
	/* with relaxed placement all data was placed ahead of its turn */
	out = target_complete_push(tl, tc, r);
	if (out == PUT_FINISHED) {
		san_pdl_rx_ack(tl->pdl, c, r->last_psn, now_ns);
		finish_push(tl, tc, r);
		return true;
	}
	drop_refused(tl, tc, r, r->last_psn + 1, now_ns);
	return true;
}

void
san_tl_target_run_base(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	struct san_tl_rxn *r;
	bool moved = true;

	while (moved && (r = tc->cur) != NULL) {
		switch (r->state) {
		case SAN_RXN_REFUSED:
		case SAN_RXN_ABORTED:
			/* The record must stay until the grant packet with the refusal is sent. */
			moved = !r->in_out;
			if (moved)
				finish_push(tl, tc, r);
			break;
		default:
			if (r->packed)
				moved = san_tl_pack_replay(tl, tc, r, now_ns);
			else if (r->type == SAN_TL_PUSH)
				moved = target_replay_held(tl, tc, r, now_ns);
			else
				moved = r->queue != SAN_RXN_QUEUE_RETRY &&
					san_tl_pull_execute(tl, tc, r, now_ns);
			break;
		}
	}
}

/* ---- requests from the network ---- */

/* Accept the request of a finished transaction: its SSN must be counted. */
static enum san_drop
request_over(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];

	if (p->op == SAN_OP_PUSH_SLCTD_REQ) {
		if (!san_tl_solicit_ssn_valid(tc, p->ssn))
			return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_SSN, now_ns);
		if (!san_tl_solicit_ssn_join(tl, tc, p->ssn, NULL))
			return san_tl_target_refuse_red(tl, c, m, SAN_DROP_RED_ZONE, now_ns);
	}
	tl->stats.nb_finished_data++;
	return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_FINISHED, now_ns);
}

static enum san_drop
target_rx_solicit(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_rxn *r;
	uint8_t status;

	if (!san_tl_solicit_ssn_valid(tc, p->ssn))
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_SSN, now_ns);
	/* A request for no bytes is invalid: there is nothing to grant. */
	if (p->length == 0)
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RANGE, now_ns);
	r = san_tl_rxn_new(tl, tc, p->rsn, true);
	if (r == NULL)
		return san_tl_target_refuse_red(tl, c, m, SAN_DROP_NO_TXN, now_ns);
	set_push(r, p);
	r->ssn = p->ssn;
	if (!san_tl_solicit_ssn_join(tl, tc, p->ssn, r)) {
		san_tl_rxn_free(tl, tc, r);
		return san_tl_target_refuse_red(tl, c, m, SAN_DROP_RED_ZONE, now_ns);
	}
	/*
	 * Grant as much as the budget allows. If the first packet would show that the push must be
	 * refused, refuse it before the first grant. Otherwise the initiator would send the granted
	 * data in vain (RT-27).
	 */
	status = san_tl_ulp_push_check(tl->conf.ulp, r);
	if (unlikely(status != SAN_ST_OK)) {
		san_tl_solicit_grant_refuse(tl, tc, r, final_status(status));
	} else {
		san_tl_admit_run(tl, now_ns);
		if (r->granted == 0 && !tc->grant_wait)
			tl->stats.nb_grants_deferred++;
	}
	return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_NONE, now_ns);
}

static void
set_pull(struct san_tl_rxn *r, const struct rte_mbuf *m, const struct san_wire_pkt *p)
{
	rte_be64_t copy[2] = {0, 0};
	const void *args;

	r->key = p->key;
	r->addr = p->addr;
	if (p->op == SAN_OP_PULL_REQ) {
		r->type = SAN_TL_PULL;
		r->length = p->length;
		return;
	}
	r->type = SAN_TL_ATOMIC;
	r->op = p->status;
	args = rte_pktmbuf_read(m, p->payload_off, sizeof(copy), copy);
	if (args != NULL)
		memcpy(copy, args, sizeof(copy));
	r->operand = rte_be_to_cpu_64(copy[0]);
	r->swap = rte_be_to_cpu_64(copy[1]);
}

static enum san_drop
target_rx_pull(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_rxn *r = NULL;

	/* A peer that acknowledges nothing must not use up the records of others. */
	if (tc->nb_rxns < 2 * tc->peer.n_rx)
		r = san_tl_rxn_new(tl, tc, p->rsn, false);
	if (r == NULL) {
		if (tc->peer.ordered && p->rsn == tc->rx_base) {
			san_tl_odd_put(tl, tc, SAN_ODD_HEAD, true);
			san_tl_pull_clear_behind(tl, tc, now_ns);
		}
		return san_tl_target_refuse_red(tl, c, m, SAN_DROP_NO_TXN, now_ns);
	}
	set_pull(r, m, p);
	if (tc->cur != r && san_tl_in_turn(tc, r->rsn))
		san_tl_pull_execute(tl, tc, r, now_ns);
	san_tl_target_run_base(tl, tc, now_ns);
	return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_NONE, now_ns);
}

enum san_drop
san_tl_target_rx_request(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			 uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	const struct san_tl_rxn *r;

	if (san_tl_target_is_finished(tc, p->rsn))
		return request_over(tl, c, m, now_ns);
	if (p->rsn - tc->rx_base >= tc->peer.n_rx)
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RSN, now_ns);
	r = san_tl_target_rxn_find(tl, tc, p->rsn);
	if (r != NULL && r->state == SAN_RXN_ABORTED)
		return request_over(tl, c, m, now_ns);
	if (r != NULL) /* an RSN is requested once */
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RSN, now_ns);
	if (p->op == SAN_OP_PUSH_SLCTD_REQ)
		return target_rx_solicit(tl, c, m, now_ns);
	return target_rx_pull(tl, c, m, now_ns);
}

/* ---- pulls that waited ---- */

void
san_tl_target_retry_pulls(struct san_tl *tl, struct san_tl_conn *tc, uint64_t now_ns)
{
	struct san_tl_rxn *r, *last;

	if (TAILQ_EMPTY(&tc->queues->retry))
		return;
	if (now_ns < tc->queues->retry_ns) {
		san_tl_deadline(tl, tc, tc->queues->retry_ns);
		return;
	}
	last = TAILQ_LAST(&tc->queues->retry, san_tl_rxns);
	do {
		r = TAILQ_FIRST(&tc->queues->retry);
		san_tl_rxn_queue(tc, r, SAN_RXN_QUEUE_NONE);
		san_tl_pull_execute(tl, tc, r, now_ns);
	} while (r != last);
	san_tl_target_run_base(tl, tc, now_ns);
}

/* True if a pull of any connection may be executed. */
static bool
target_has_room(const struct san_tl *tl)
{
	return tl->nb_pullers < tl->conf.max_wide || tl->free_rxns.nb > san_tl_rxn_nb_claims(tl);
}

void
san_tl_target_wake_pulls(struct san_tl *tl, uint64_t now_ns)
{
	struct san_tl_conns line = TAILQ_HEAD_INITIALIZER(line);
	struct san_tl_conns again = TAILQ_HEAD_INITIALIZER(again);
	struct san_tl_conn *tc, *next;

	if (likely(TAILQ_EMPTY(&tl->pull_wait)))
		return;
	/* empty the list first: the connection being called must not be queued behind others */
	TAILQ_CONCAT(&line, &tl->pull_wait, pull_link);
	for (tc = TAILQ_FIRST(&line); tc != NULL && target_has_room(tl); tc = next) {
		next = TAILQ_NEXT(tc, pull_link);
		/* A connection that waits for its own pulls does not block others. */
		if (!san_tl_rxn_can_pull(tl, tc))
			continue;
		TAILQ_REMOVE(&line, tc, pull_link);
		tc->in_pull_wait = false;
		san_tl_target_run_base(tl, tc, now_ns);
		/* If it must wait again, it is queued behind all others. */
		TAILQ_CONCAT(&again, &tl->pull_wait, pull_link);
	}
	TAILQ_CONCAT(&tl->pull_wait, &line, pull_link);
	TAILQ_CONCAT(&tl->pull_wait, &again, pull_link);
}
