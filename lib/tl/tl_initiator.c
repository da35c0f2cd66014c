/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The initiator: from pushReq and pullReq to pushCmpl (RT-10 .. RT-12, RT-14 ..
 * RT-17, RT-20, RT-32, PCB-3, PCB-5; design, rules 3 and 6).
 *
 * A request gets its record, RSN and SSN before anything of it is sent. Four
 * pointers walk the RSNs, each no further than rsn_next:
 *
 *   rsn_base  oldest unfinished; no RSN from rsn_base + N on is used
 *   adm_rsn   everything below is in the count of PCB-3, or was. Strictly in RSN
 *             order: a later message must not take the place of an earlier one
 *             that it will have to wait for
 *   req_rsn   requests below have PSNs
 *   data_rsn  (ordered) push data below has PSNs, and requests below too
 *
 * Finished ahead of the base RSN: kept in the CAM until its turn to be reported.
 */

#include <errno.h>

#include "tl_priv.h"

/* ---- submit ---- */

static bool
is_solicited(const struct san_tl *tl, const struct san_pdl_conn *c, const struct san_tl_req *req)
{
	if (req->type != SAN_TL_PUSH || req->length == 0)
		return false; /* nothing there that could be granted */
	if (req->solicit != SAN_SOLICIT_AUTO)
		return req->solicit == SAN_SOLICIT_ALWAYS;
	return req->length >= tl->conf.solicit_len ||
		(tl->conf.solicit_level != 0 && c->cc.level >= tl->conf.solicit_level);
}

bool
san_tl_ring_take(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_tl_txn **ring;

	if (tc->txn_mask != 0)
		return true;
	if (tl->nb_free_rings == 0)
		return false;
	ring = tl->free_rings[--tl->nb_free_rings];
	if (tc->one != NULL)
		ring[SAN_TL_SLOT(tc->one->rsn)] = tc->one;
	tc->txns = ring;
	tc->txn_mask = SAN_TL_N_MAX - 1;
	return true;
}

static void
ring_return(struct san_tl *tl, struct san_tl_conn *tc)
{
	if (tc->txn_mask != 0)
		tl->free_rings[tl->nb_free_rings++] = tc->txns;
	tc->one = NULL;
	tc->txns = &tc->one;
	tc->txn_mask = 0;
}

static struct san_tl_txn *
txn_new(struct san_tl *tl, struct san_tl_conn *tc, const struct san_tl_req *req)
{
	struct san_tl_txn *t = tl->free_txns[--tl->nb_free_txns];

	bool has_room = tc->nb_txns == 0 || san_tl_ring_take(tl, tc);

	SAN_ASSERT(has_room);
	(void)has_room;
	tl->nb_busy += tc->nb_txns == 0;
	*t = (struct san_tl_txn){
		.req = *req,
		.rsn = tc->rsn_next++,
		.slot = tc->slot,
		.state = SAN_TXN_POSTED,
		.charge.slot = tc->slot,
	};
	SAN_ASSERT(tc->txns[t->rsn & tc->txn_mask] == NULL);
	tc->txns[t->rsn & tc->txn_mask] = t;
	tc->nb_txns++;
	tc->nb_issued++;
	return t;
}

/* ---- the count of PCB-3 ---- */

static uint32_t
msg_limit(const struct san_pdl_conn *c)
{
	return RTE_MAX(c->pcb.msg_limit, 1u);
}

static void
msg_leave(struct san_tl_conn *tc, struct san_tl_txn *t)
{
	if (!t->msg_counted)
		return;
	t->msg_counted = false;
	tc->nb_msgs--;
}

static void
admit(struct san_tl_conn *tc, struct san_tl_txn *t)
{
	t->msg_counted = true;
	tc->nb_msgs++;
	san_tl_txn_ready(tc, t);
}

/* One that was just posted: if it may go, nobody has to look for it again. */
static void
admit_new(struct san_tl_conn *tc, struct san_tl_txn *t, uint32_t limit)
{
	if (tc->adm_rsn != t->rsn || tc->nb_msgs >= limit)
		return;
	tc->adm_rsn++;
	admit(tc, t);
	if (tc->req_rsn == t->rsn && !san_tl_owes_request(t))
		tc->req_rsn++;
}

void
san_tl_admit_msgs(struct san_tl *tl, struct san_pdl_conn *c)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	uint32_t limit = msg_limit(c);
	struct san_tl_txn *t;

	while (tc->adm_rsn != tc->rsn_next && tc->nb_msgs < limit) {
		t = san_tl_txn_at(tc, tc->adm_rsn++);
		/* given up before anything was sent: RESYNC is no message */
		if (t == NULL || t->state == SAN_TXN_DONE ||
		    (t->state == SAN_TXN_ABORTING && !t->solicited))
			continue;
		admit(tc, t);
	}
}

int
san_tl_submit(struct san_tl *tl, uint16_t slot, const struct san_tl_req *req, uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[slot];
	struct san_pdl_conn *c = &tl->pdl->conns[slot];
	struct san_tl_txn *t;

	if (!tc->open || tc->draining)
		return -ENOTCONN;
	if (!san_tl_is_free_to_go(tl, tc, req) && san_tl_want(tl, tc, req, now_ns))
		return -EAGAIN;
	t = txn_new(tl, tc, req);
	if (req->type != SAN_TL_PUSH) {
		tc->nb_pulls++;
		tl->stats.nb_pulls += req->type == SAN_TL_PULL;
		tl->stats.nb_atomics += req->type == SAN_TL_ATOMIC;
		if (req->type == SAN_TL_PULL)
			san_tl_charge(tl, &t->charge,
				      RTE_MIN(req->length, san_tl_pull_room(tl, tc)), now_ns);
	} else if (is_solicited(tl, c, req)) {
		t->solicited = true;
		t->ssn = tc->ssn_next++;
		tl->stats.nb_push_slctd++;
	} else {
		tl->stats.nb_push_unslctd++;
	}
	admit_new(tc, t, msg_limit(c));
	/* it may have been the first in line, or not have needed its promise: the next */
	if (san_tl_has_waiting(tl))
		san_tl_wake(tl);
	san_pdl_kick(tl->pdl, c);
	return 0;
}

/* Ordered pushes are acknowledged as messages by the cumulative RSN (PCB-5). */
static void
on_cmpl_in(struct san_tl *tl, struct san_pdl_conn *c)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t;
	uint32_t rsn;

	if (!tc->open)
		return;
	if (san_seq_lt(c->cmpl_in, tc->msg_rsn) || san_seq_gt(c->cmpl_in, tc->rsn_next))
		return;
	rsn = tc->peer.ordered ? san_seq_max(tc->msg_rsn, tc->rsn_base) : c->cmpl_in;
	for (; san_seq_lt(rsn, c->cmpl_in); rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (t != NULL && t->req.type == SAN_TL_PUSH)
			msg_leave(tc, t);
	}
	tc->msg_rsn = c->cmpl_in;
	if (tc->adm_rsn != tc->rsn_next)
		san_pdl_kick(tl->pdl, c);
}

/* ---- lists ---- */

static struct san_tl_txns *
list_of(struct san_tl_conn *tc, uint8_t list)
{
	switch (list) {
	case SAN_TXN_LIST_READY:
		return &tc->ready;
	case SAN_TXN_LIST_WAIT:
		return &tc->wait;
	case SAN_TXN_LIST_ABORT:
		return &tc->aborts;
	default:
		return NULL;
	}
}

void
san_tl_txn_list(struct san_tl_conn *tc, struct san_tl_txn *t, enum san_txn_list list)
{
	if (t->list == list)
		return;
	if (t->list != SAN_TXN_LIST_NONE)
		TAILQ_REMOVE(list_of(tc, t->list), t, link);
	t->list = (uint8_t)list;
	if (list != SAN_TXN_LIST_NONE)
		TAILQ_INSERT_TAIL(list_of(tc, t->list), t, link);
}

bool
san_tl_txn_can_send(const struct san_tl_txn *t)
{
	if (t->req.type != SAN_TL_PUSH || t->last_sent || t->state == SAN_TXN_ABORTING ||
	    t->state == SAN_TXN_DONE)
		return false;
	return !t->solicited || t->sent < t->granted || t->sent == t->req.length;
}

void
san_tl_txn_ready(struct san_tl_conn *tc, struct san_tl_txn *t)
{
	/* counted once it was admitted; a grant proves that it was */
	if (!tc->peer.ordered && t->list == SAN_TXN_LIST_NONE &&
	    san_seq_lt(t->rsn, tc->adm_rsn) && san_tl_txn_can_send(t))
		san_tl_txn_list(tc, t, SAN_TXN_LIST_READY);
}

/* ---- what goes next ---- */

bool
san_tl_next_request(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e)
{
	static const uint8_t op_of[] = {
		[SAN_TL_PUSH] = SAN_OP_PUSH_SLCTD_REQ,
		[SAN_TL_PULL] = SAN_OP_PULL_REQ,
		[SAN_TL_ATOMIC] = SAN_OP_ATOMIC_REQ,
	};
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t = NULL;

	for (; tc->req_rsn != tc->adm_rsn; tc->req_rsn++) {
		t = san_tl_txn_at(tc, tc->req_rsn);
		if (t != NULL && san_tl_owes_request(t))
			break;
	}
	if (tc->req_rsn == tc->adm_rsn)
		return false;
	e->op = op_of[t->req.type];
	e->rsn = t->rsn;
	e->len = t->req.type == SAN_TL_ATOMIC ? SAN_WIRE_ATOMIC_LEN : 0;
	t->req_sent = true;
	tc->req_rsn++;
	if (t->state == SAN_TXN_ABORTING)
		san_tl_txn_list(tc, t, SAN_TXN_LIST_ABORT);
	else
		t->state = t->req.type == SAN_TL_PUSH ? SAN_TXN_SENDING : SAN_TXN_SENT;
	return true;
}

/* Next push with data to send on an ordered connection (design, rule 3). */
static struct san_tl_txn *
ordered_push(struct san_tl_conn *tc)
{
	struct san_tl_txn *t;

	if (tc->rnr_until_ns != 0) /* its timer ends it, and decides whether to go on */
		return NULL;
	for (; tc->data_rsn != tc->adm_rsn; tc->data_rsn++) {
		t = san_tl_txn_at(tc, tc->data_rsn);
		if (t == NULL)
			continue;
		if (san_tl_owes_request(t) || t->list == SAN_TXN_LIST_ABORT)
			return NULL; /* every lower request, and the end of lower data, go first */
		if (t->req.type != SAN_TL_PUSH || t->last_sent || t->state == SAN_TXN_ABORTING ||
		    t->state == SAN_TXN_DONE)
			continue;
		return san_tl_txn_can_send(t) ? t : NULL;
	}
	return NULL;
}

bool
san_tl_next_push(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t;
	uint32_t left, may, imm_len, len;

	t = tc->peer.ordered ? ordered_push(tc) : TAILQ_FIRST(&tc->ready);
	if (t == NULL)
		return false;
	if (tc->peer.pack && san_tl_pack(tl, tc, t, c->mtu, e))
		return true;
	left = t->req.length - t->sent;
	may = t->solicited ? t->granted - t->sent : left;
	imm_len = t->req.kind == SAN_KIND_PUSH_IMM ? SAN_WIRE_IMM_LEN : 0;
	e->op = t->solicited ? SAN_OP_PUSH_SLCTD_DATA : SAN_OP_PUSH_UNSLCTD_DATA;
	e->rsn = t->rsn;
	e->offset = t->sent;
	e->flags = (uint8_t)(t->req.kind << SAN_F_KIND_SHIFT);
	t->last_sent = may == left && left + imm_len <= c->mtu;
	if (t->last_sent) {
		e->flags |= SAN_F_LAST;
		e->len = (uint16_t)(left + imm_len);
		len = left;
	} else {
		len = RTE_MIN(may, c->mtu);
		e->len = (uint16_t)len;
	}
	t->sent += len;
	t->nb_unacked++;
	t->state = t->last_sent ? SAN_TXN_SENT : SAN_TXN_SENDING;
	if (!san_tl_txn_can_send(t))
		san_tl_txn_list(tc, t, SAN_TXN_LIST_NONE);
	return true;
}

/* ---- building packets, for the first time or again ---- */

/*
 * Of a transaction that is over only the ACK can be missing (its request did
 * arrive, or it would not be over), and anything under the PSN will bring that.
 */
void
san_tl_fill_empty(const struct san_pdl_entry *e, struct san_wire_pkt *p)
{
	p->op = SAN_OP_RESYNC;
	p->flags = e->win == SAN_WIN_DATA ? SAN_F_WIN_DATA : 0;
	p->rsn = e->rsn;
	p->status = SAN_RESYNC_FILL;
}

void
san_tl_request_fill(struct san_tl *tl, const struct san_tl_conn *tc, const struct san_pdl_entry *e,
		    struct rte_mbuf *m, struct san_wire_pkt *p)
{
	const struct san_tl_txn *t = san_tl_txn_at(tc, e->rsn);
	rte_be64_t args[2];
	char *dst;

	(void)tl;
	if (t == NULL) {
		san_tl_fill_empty(e, p);
		return;
	}
	if (t->solicited)
		p->flags = (uint8_t)(t->req.kind << SAN_F_KIND_SHIFT);
	p->length = t->req.length;
	p->key = t->req.key;
	p->addr = t->req.addr;
	p->ssn = t->ssn;
	if (t->req.type != SAN_TL_ATOMIC)
		return;
	p->status = t->req.op;
	args[0] = rte_cpu_to_be_64(t->req.operand);
	args[1] = rte_cpu_to_be_64(t->req.swap);
	dst = rte_pktmbuf_append(m, sizeof(args));
	SAN_VERIFY(dst != NULL);
	memcpy(dst, args, sizeof(args));
}

void
san_tl_push_fill(struct san_tl *tl, struct san_pdl_conn *c, const struct san_tl_conn *tc,
		 const struct san_pdl_entry *e, struct rte_mbuf *m, struct san_wire_pkt *p)
{
	const struct san_tl_txn *t = san_tl_txn_at(tc, e->rsn);
	uint16_t imm_len = san_tl_imm_len(e->flags);
	rte_be32_t imm;
	char *dst;

	/* its record stays until all its data is acknowledged or withdrawn */
	SAN_VERIFY(t != NULL);
	p->flags = e->flags;
	p->round = tc->peer.ordered ? c->rnr_round_out : t->round;
	p->length = t->req.length;
	p->key = t->req.key;
	p->addr = t->req.addr;
	p->offset = e->offset;
	if (e->len == 0)
		return;
	dst = rte_pktmbuf_append(m, e->len);
	SAN_VERIFY(dst != NULL);
	if (imm_len != 0) {
		imm = rte_cpu_to_be_32(t->req.imm);
		memcpy(dst, &imm, sizeof(imm));
	}
	if (e->len != imm_len)
		san_tl_ulp_push_fill(tl->conf.ulp, t, e->offset, dst + imm_len,
				     e->len - imm_len);
}

/* ---- what comes back ---- */

static void
on_acked_push(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e)
{
	bool last = (e->flags & SAN_F_LAST) != 0 || e->op == SAN_OP_PUSH_PACKED;
	uint32_t i;

	for (i = 0; i <= e->aux; i++) {
		struct san_tl_txn *t = san_tl_txn_at(tc, e->rsn + i);

		SAN_ASSERT(t != NULL && t->nb_unacked > 0);
		t->nb_unacked--;
		if (e->op == SAN_OP_RESYNC) {
			t->abort_acked |= e->status == SAN_RESYNC_ABORT;
		} else {
			t->rnr_since_ns = 0; /* it was ready */
			t->last_acked |= last;
		}
		san_tl_txn_settle(tl, tc, t);
	}
}

static void
on_acked_request(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e)
{
	struct san_tl_txn *t = san_tl_txn_at(tc, e->rsn);

	if (t == NULL)
		return;
	t->req_acked = true;
	san_tl_txn_settle(tl, tc, t);
}

/* Is any of it what a target may have no place for? */
static bool
has_taken(const struct san_pdl_entry *e, uint32_t n)
{
	while (n > 0 && !san_tl_is_push_data(e->op) && e->win == SAN_WIN_DATA) {
		e++;
		n--;
	}
	return n != 0;
}

static void
on_acked(struct san_tl *tl, struct san_tl_conn *tc, const struct san_pdl_entry *e, uint32_t n,
	 uint64_t now_ns)
{
	uint32_t i;

	if (!tc->open)
		return;
	if (unlikely(tc->nb_deferred != 0) && has_taken(e, n))
		tc->nb_deferred = 0;
	for (i = 0; i < n; i++) {
		switch (e[i].op) {
		case SAN_OP_PUSH_SLCTD_DATA:
		case SAN_OP_PUSH_UNSLCTD_DATA:
		case SAN_OP_PUSH_PACKED:
		case SAN_OP_RESYNC:
			on_acked_push(tl, tc, &e[i]);
			break;
		case SAN_OP_PUSH_SLCTD_REQ:
		case SAN_OP_PULL_REQ:
		case SAN_OP_ATOMIC_REQ:
			on_acked_request(tl, tc, &e[i]);
			break;
		case SAN_OP_PULL_DATA:
			san_tl_pull_acked(tl, tc, &e[i], now_ns);
			break;
		default: /* a grant: it is in the initiator's record now */
			break;
		}
	}
}

void
san_tl_on_acked(struct san_tl *tl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct san_pdl *pdl = tl->pdl;

	if (c->cmpl_in != tl->conns[c->slot].msg_rsn)
		on_cmpl_in(tl, c);
	if (pdl->nb_acked != 0) {
		on_acked(tl, &tl->conns[c->slot], pdl->acked, pdl->nb_acked, now_ns);
		pdl->nb_acked = 0;
	}
}

/* Like that of a push, the last packet of a pull is placed last (RT-39). */
static bool
is_early_last(const struct san_tl_conn *tc, const struct san_tl_txn *t,
	      const struct san_wire_pkt *p, uint32_t length)
{
	return p->status == SAN_ST_OK && p->offset + p->payload_len == length &&
		t->placed + p->payload_len != length && tc->peer.ordered && !tc->peer.relaxed;
}

static enum san_drop
hold_last(struct san_tl *tl, struct san_pdl_conn *c, struct san_tl_txn *t, struct rte_mbuf *m,
	  uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];

	if (t->last != NULL)
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RANGE, now_ns);
	if (san_tl_is_red(tl, tc))
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RED, now_ns);
	san_pdl_rx_commit(tl->pdl, c, &san_pkt(m)->w, SAN_RX_RECEIVED, now_ns);
	san_tl_pull_last_hold(tl, tc, t, m, now_ns);
	return SAN_DROP_NONE;
}

static void
place_pull(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t, struct rte_mbuf *m,
	   uint32_t length, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_pkt(m)->w;
	uint8_t status = p->status;

	if (status == SAN_ST_OK && p->payload_len != 0)
		status = san_tl_ulp_pull_place(tl->conf.ulp, t, p->offset, m, p->payload_off,
					       p->payload_len);
	t->placed += p->payload_len;
	san_tl_charge_use(tl, &t->charge, p->payload_len, now_ns);
	san_tl_charge_done(tl, &t->charge, p->payload_len);
	if (status != SAN_ST_OK || t->placed == length)
		san_tl_txn_finish(tl, tc, t, status);
}

/* The rest is placed, and its last packet is here: that too. */
static void
place_last(struct san_tl *tl, struct san_pdl_conn *c, struct san_tl_txn *t, uint32_t length,
	   uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct rte_mbuf *m = san_tl_pull_last_take(tl, tc, t);

	san_pdl_rx_ack(tl->pdl, c, san_pkt(m)->w.psn, now_ns);
	place_pull(tl, tc, t, m, length, now_ns);
	san_death_add(tl->death, m);
}

enum san_drop
san_tl_rx_pull_data(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t = san_tl_txn_at(tc, p->rsn);
	uint32_t length;

	if (t == NULL || t->state == SAN_TXN_DONE || t->state == SAN_TXN_ABORTING) {
		if (t == NULL && !san_tl_was_issued(tc, p->rsn))
			return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RSN, now_ns);
		tl->stats.nb_finished_data++;
		return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_FINISHED, now_ns);
	}
	if (t->req.type == SAN_TL_PUSH || t->state != SAN_TXN_SENT)
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RSN, now_ns);
	length = t->req.type == SAN_TL_PULL ? t->req.length : (uint32_t)sizeof(uint64_t);
	if (p->offset > length || p->payload_len > length - p->offset ||
	    p->payload_len > length - t->placed)
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RANGE, now_ns);
	if (is_early_last(tc, t, p, length))
		return hold_last(tl, c, t, m, now_ns);
	place_pull(tl, tc, t, m, length, now_ns);
	if (t->last != NULL && t->placed + san_pkt(t->last)->w.payload_len == length)
		place_last(tl, c, t, length, now_ns);
	return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_NONE, now_ns);
}

/* ---- the end of a transaction ---- */

static void
report(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	san_tl_ulp_cmpl(tl->conf.ulp, t, t->status);
	t->state = SAN_TXN_FREE;
	tc->txns[t->rsn & tc->txn_mask] = NULL;
	tl->free_txns[tl->nb_free_txns++] = t;
	if (--tc->nb_txns == 0) {
		ring_return(tl, tc);
		tl->nb_busy -= !(tc->want & SAN_WANT_PROMISED);
	}
}

/* The finished transaction of the base RSN, if it is. */
static struct san_tl_txn *
take_done(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_tl_txn *t = NULL;

	if (tc->nb_cam_cmpl != 0)
		t = san_cam_take(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_CMPL,
				 tc->rsn_base);
	if (t != NULL) {
		tc->nb_cam_cmpl--;
	} else if (tc->nb_cmpl_lost != 0) {
		t = san_tl_txn_at(tc, tc->rsn_base);
		if (t != NULL && t->state != SAN_TXN_DONE)
			t = NULL;
		tc->nb_cmpl_lost -= t != NULL;
	}
	return t;
}

static void
report_ordered(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	if (t->rsn != tc->rsn_base) {
		if (san_cam_add(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_CMPL, t->rsn,
				t) == 0)
			tc->nb_cam_cmpl++;
		else
			tc->nb_cmpl_lost++; /* it can't be refused: look into its record */
		return;
	}
	do {
		report(tl, tc, t);
		tc->rsn_base++;
		t = tc->rsn_base != tc->rsn_next ? take_done(tl, tc) : NULL;
	} while (t != NULL);
}

void
san_tl_txn_finish(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t, uint8_t status)
{
	t->status = status;
	t->state = SAN_TXN_DONE;
	if (t->charge.charged + t->charge.lapsed != 0)
		san_tl_charge_release(tl, &t->charge);
	san_tl_txn_list(tc, t, SAN_TXN_LIST_NONE);
	if (unlikely(t->last != NULL))
		san_tl_pull_last_drop(tl, tc, t, SAN_DROP_FINISHED);
	if (t->solicited)
		san_tl_ssn_end(tl, tc, t);
	msg_leave(tc, t);
	if (t->req.type != SAN_TL_PUSH)
		tc->nb_pulls--;
	if (tc->peer.ordered) {
		report_ordered(tl, tc, t);
	} else {
		report(tl, tc, t);
		while (tc->rsn_base != tc->rsn_next && san_tl_txn_at(tc, tc->rsn_base) == NULL)
			tc->rsn_base++;
	}
	if (tc->want != 0)
		san_tl_wake_own(tl, tc);
	if (san_tl_has_waiting(tl))
		san_tl_wake(tl);
}

void
san_tl_txn_settle(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	if (t->nb_unacked != 0)
		return;
	if (t->state == SAN_TXN_ABORTING) {
		/* an aborted one whose request goes unanswered must be able to send that again */
		if (t->aborted && (!t->abort_acked || (t->req_sent && !t->req_acked)))
			return;
		san_tl_txn_finish(tl, tc, t, t->last_acked ? SAN_ST_OK : t->status);
	} else if (t->state == SAN_TXN_SENT && t->req.type == SAN_TL_PUSH) {
		san_tl_txn_finish(tl, tc, t, SAN_ST_OK);
	}
}

void
san_tl_ini_close(struct san_tl *tl, struct san_tl_conn *tc, uint8_t status)
{
	uint32_t rsn;
	struct san_tl_txn *t;

	san_tl_unwant(tl, tc->slot);
	for (rsn = tc->rsn_base; rsn != tc->rsn_next; rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (t != NULL && t->state != SAN_TXN_DONE)
			san_tl_txn_finish(tl, tc, t, status);
	}
	SAN_VERIFY(tc->nb_txns == 0 && tc->rsn_base == tc->rsn_next);
}

/* ---- check ---- */

void
san_tl_ini_check(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	uint32_t nb_txns = 0, nb_msgs = 0, nb_pulls = 0, nb_done = 0, nb_cam_grant = 0;
	const struct san_tl_txn *t;
	uint32_t rsn;

	SAN_VERIFY(tc->rsn_next - tc->rsn_base <= tc->peer.n_tx);
	SAN_VERIFY(san_seq_le(tc->req_rsn, tc->adm_rsn));
	SAN_VERIFY(!tc->peer.ordered || san_seq_le(tc->data_rsn, tc->adm_rsn));
	SAN_VERIFY(san_seq_le(tc->adm_rsn, tc->rsn_next));
	SAN_VERIFY((tc->txn_mask == 0) == (tc->txns == &tc->one));
	SAN_VERIFY(tc->nb_txns != 0 || (tc->txn_mask == 0 && tc->one == NULL));
	for (rsn = tc->rsn_base; rsn != tc->rsn_next; rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (t == NULL)
			continue;
		SAN_VERIFY(t->slot == tc->slot && t->state != SAN_TXN_FREE);
		SAN_VERIFY(t->sent <= t->req.length && t->granted <= t->req.length);
		SAN_VERIFY(!t->solicited || t->sent <= t->granted);
		SAN_VERIFY(t->state != SAN_TXN_DONE || tc->peer.ordered);
		SAN_VERIFY(!t->msg_counted || san_seq_lt(rsn, tc->adm_rsn));
		nb_txns++;
		nb_msgs += t->msg_counted;
		nb_pulls += t->req.type != SAN_TL_PUSH && t->state != SAN_TXN_DONE;
		nb_done += t->state == SAN_TXN_DONE;
		nb_cam_grant += t->in_cam;
	}
	SAN_VERIFY(nb_txns == tc->nb_txns && nb_msgs == tc->nb_msgs && nb_pulls == tc->nb_pulls);
	SAN_VERIFY(nb_msgs <= RTE_MAX(tl->pdl->conns[tc->slot].pcb.msg_limit, 1u));
	SAN_VERIFY(nb_done == (uint32_t)tc->nb_cam_cmpl + tc->nb_cmpl_lost);
	SAN_VERIFY(nb_cam_grant == tc->nb_cam_grant);
	/* the oldest unfinished one is live, not waiting for its turn */
	t = san_tl_txn_at(tc, tc->rsn_base);
	SAN_VERIFY(tc->rsn_base == tc->rsn_next || (t != NULL && t->state != SAN_TXN_DONE));
}
