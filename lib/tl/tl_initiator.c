/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The initiator: from pushReq and pullReq to packets (RT-10 .. RT-12, RT-16, RT-17, RT-20, RT-32,
 * PCB-3; RULE-3, RULE-6). Completion, up to pushCmpl, is in tl_finish.c.
 *
 * A request gets its record, RSN and SSN before any of it is sent. Four positions in the RSNs
 * advance, each up to rsn_next:
 *
 *   rsn_base  oldest unfinished RSN; no RSN from rsn_base + N on is used
 *   adm_rsn   RSNs below it are or were counted for PCB-3. It advances strictly in RSN order: a
 *             later message must not take the place of an earlier one that it waits for
 *   req_rsn   requests below it have PSNs
 *   data_rsn  on an ordered connection: push data and requests below it have PSNs
 */

#include <errno.h>

#include "tl_priv.h"

/* ---- submit ---- */

/** Length from which pushes are solicited by default: there is no grant without data. */
static uint32_t
solicit_from(const struct san_tl *tl, const struct san_pdl_conn *c)
{
	if (tl->conf.solicit_level != 0 && c->cc.level >= tl->conf.solicit_level)
		return 1;
	return RTE_MAX(tl->conf.solicit_len, 1u);
}

static inline bool
is_solicited(const struct san_tl_req *req, uint32_t from)
{
	if (likely(req->solicit == SAN_SOLICIT_AUTO))
		return req->length >= from;
	return req->solicit == SAN_SOLICIT_ALWAYS && req->length != 0;
}

/* ---- the count of PCB-3 ---- */

static uint32_t
msg_limit(const struct san_pdl_conn *c)
{
	return RTE_MAX(c->pcb.msg_limit, 1u);
}

static void
initiator_admit_txn(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t)
{
	t->msg_counted = true;
	tc->nb_msgs++;
	san_tl_txn_ready(tl, tc, t);
}

void
san_tl_initiator_admit(struct san_tl *tl, struct san_pdl_conn *c)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	uint32_t limit = msg_limit(c);
	struct san_tl_txn *t;

	while (tc->adm_rsn != tc->rsn_next && tc->nb_msgs < limit) {
		t = san_tl_txn_at(tc, tc->adm_rsn++);
		/* The push was given up before any of it was sent, and RESYNC is no message. */
		if (t == NULL || t->state == SAN_TXN_DONE ||
		    (t->state == SAN_TXN_ABORTING && !t->solicited))
			continue;
		initiator_admit_txn(tl, tc, t);
	}
}

int
san_tl_initiator_submit(struct san_tl *tl, uint16_t slot, const struct san_tl_req *req,
			uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[slot];
	struct san_pdl_conn *c = &tl->pdl->conns[slot];
	struct san_tl_txn *t;

	if (!tc->open || tc->draining)
		return -ENOTCONN;
	if (!san_tl_is_free_to_go(tl, tc, req) && san_tl_want(tl, tc, req, now_ns))
		return -EAGAIN;
	t = san_tl_txn_new(tl, tc, &req, 1, false);
	if (req->type != SAN_TL_PUSH) {
		tc->nb_pulls++;
		tl->stats.nb_pulls += req->type == SAN_TL_PULL;
		tl->stats.nb_atomics += req->type == SAN_TL_ATOMIC;
		if (req->type == SAN_TL_PULL)
			san_tl_admit_charge(tl, &san_tl_txn_extra_use(tl, t)->charge,
					    RTE_MIN(req->length, san_tl_admit_pull_room(tl, tc)),
					    now_ns);
	} else if (is_solicited(req, solicit_from(tl, c))) {
		t->solicited = true;
		t->ssn = tc->ssn_next++;
		tl->stats.nb_push_solicited++;
	} else {
		tl->stats.nb_push_unsolicited++;
	}
	/* Admit it now if it may be sent now: then no later scan is needed. */
	if (tc->adm_rsn == t->rsn && tc->nb_msgs < msg_limit(c)) {
		tc->adm_rsn++;
		initiator_admit_txn(tl, tc, t);
		if (tc->req_rsn == t->rsn && !san_tl_owes_request(t))
			tc->req_rsn++;
	}
	/* It may have been first in line, or not have needed its reserved record: wake the next. */
	san_tl_wake(tl);
	san_pdl_sched_kick(tl->pdl, c);
	return 0;
}

/* ---- pushes that need not wait ---- */

/* Number of records that are available without waiting and fit into its ring. */
static inline uint32_t
records_for(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	uint32_t spare = san_tl_nb_spare(tl, tc->host);

	if (tc->nb_txns != 0)
		return san_tl_has_ring(tl, tc) ? spare : 0;
	if (!san_tl_has_first(tl, tc->host))
		return 0;
	return san_tl_has_ring(tl, tc) ? RTE_MAX(spare + (san_tl_nb_idle(tl) != 0), 1u) : 1;
}

uint32_t
san_tl_initiator_plain_room(const struct san_tl *tl, uint16_t slot, uint32_t n)
{
	const struct san_tl_conn *tc = &tl->conns[slot];
	uint32_t limit = msg_limit(&tl->pdl->conns[slot]);

	if (!tc->open || tc->draining || tc->want != 0 ||
	    tc->adm_rsn != tc->rsn_next || tc->nb_msgs >= limit)
		return 0;
	n = RTE_MIN(n, limit - tc->nb_msgs);
	n = RTE_MIN(n, tc->peer.n_tx - (tc->rsn_next - tc->rsn_base));
	return RTE_MIN(n, records_for(tl, tc));
}

uint32_t
san_tl_initiator_plain_submit(struct san_tl *tl, uint16_t slot,
			      const struct san_tl_req *const req[], uint32_t n)
{
	struct san_pdl_conn *c = &tl->pdl->conns[slot];
	struct san_tl_conn *tc = &tl->conns[slot];
	uint32_t k = 0, rsn = tc->rsn_next, from = solicit_from(tl, c);

	while (k < n && req[k]->type == SAN_TL_PUSH && !is_solicited(req[k], from))
		k++;
	if (k == 0)
		return 0;
	san_tl_txn_new(tl, tc, req, k, true);
	if (tc->req_rsn == rsn)
		tc->req_rsn += k;
	tc->adm_rsn += k;
	tc->nb_msgs = (uint16_t)(tc->nb_msgs + k);
	for (; !tc->peer.ordered && rsn != tc->rsn_next; rsn++)
		san_tl_txn_ready(tl, tc, san_tl_txn_at(tc, rsn));
	tl->stats.nb_push_unsolicited += k;
	san_pdl_sched_kick(tl->pdl, c);
	return k;
}

/* ---- choice of the next packet ---- */

/* The lowest transaction whose request must be sent; NULL: none. */
static inline struct san_tl_txn *
next_to_request(struct san_tl_conn *tc)
{
	struct san_tl_txn *t;

	for (; tc->req_rsn != tc->adm_rsn; tc->req_rsn++) {
		t = san_tl_txn_at(tc, tc->req_rsn);
		if (t != NULL && san_tl_owes_request(t))
			return t;
	}
	return NULL;
}

bool
san_tl_initiator_next_request(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_room *room,
			      struct san_pdl_entry *e)
{
	static const uint8_t op_of[] = {
		[SAN_TL_PUSH] = SAN_OP_PUSH_SLCTD_REQ,
		[SAN_TL_PULL] = SAN_OP_PULL_REQ,
		[SAN_TL_ATOMIC] = SAN_OP_ATOMIC_REQ,
	};
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t = next_to_request(tc);

	if (t == NULL || room->nb_req == 0)
		return false;
	room->nb_req--;
	room->nb_credit--;
	e->op = op_of[t->req.type];
	e->rsn = t->rsn;
	e->len = t->req.type == SAN_TL_ATOMIC ? SAN_WIRE_ATOMIC_LEN : 0;
	t->req_sent = true;
	tc->req_rsn++;
	if (t->state == SAN_TXN_ABORTING)
		san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_ABORT);
	else
		san_tl_txn_set(t, t->req.type == SAN_TL_PUSH ? SAN_TXN_SENDING : SAN_TXN_SENT);
	return true;
}

/* Next push with data to send on an ordered connection (RULE-3). */
static struct san_tl_txn *
ordered_push(struct san_tl_conn *tc)
{
	struct san_tl_txn *t;

	if (tc->rnr_until_ns != 0) /* its timer ends the wait, and decides whether to go on */
		return NULL;
	for (; tc->data_rsn != tc->adm_rsn; tc->data_rsn++) {
		t = san_tl_txn_at(tc, tc->data_rsn);
		if (t == NULL)
			continue;
		if (san_tl_owes_request(t) || t->list == SAN_TXN_LIST_ABORT)
			return NULL; /* lower requests, and the end of lower data, are sent first */
		if (t->req.type != SAN_TL_PUSH || t->last_sent || t->state == SAN_TXN_ABORTING ||
		    t->state == SAN_TXN_DONE)
			continue;
		return san_tl_txn_can_send(t) ? t : NULL;
	}
	return NULL;
}

static inline struct san_tl_txn *
next_push(struct san_tl *tl, struct san_tl_conn *tc)
{
	return tc->peer.ordered ? ordered_push(tc) : san_tl_txn_first(tl, &tc->memo->ready);
}

/* Assign the next packet of *t*, which can send, to *e*. */
static inline void
initiator_advance(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t, uint16_t mtu,
		  struct san_pdl_entry *e)
{
	uint32_t left = t->req.length - t->sent;
	uint32_t imm_len = san_wire_has_imm(t->req.kind) ? SAN_WIRE_IMM_LEN : 0;
	uint32_t may = unlikely(t->solicited) ? t->granted - t->sent : left;
	bool last = may == left && left + imm_len <= mtu;
	uint32_t len = likely(last) ? left : RTE_MIN(may, mtu);

	e->op = t->solicited ? SAN_OP_PUSH_SLCTD_DATA : SAN_OP_PUSH_UNSLCTD_DATA;
	e->rsn = t->rsn;
	e->offset = t->sent;
	e->aux = 0;
	e->len = (uint16_t)(len + (last ? imm_len : 0));
	e->flags = (uint8_t)(t->req.kind << SAN_F_KIND_SHIFT | (last ? SAN_F_LAST : 0));
	e->status = SAN_ST_OK;
	t->sent += len;
	t->nb_unacked++;
	t->last_sent = last;
	san_tl_txn_set(t, last ? SAN_TXN_SENT : SAN_TXN_SENDING);
	if (likely(tc->peer.ordered))
		tc->data_rsn = t->rsn + last;
	else if (!san_tl_txn_can_send(t))
		san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_NONE);
}

bool
san_tl_initiator_next_push(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_entry *e)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t = next_push(tl, tc);

	if (t == NULL)
		return false;
	if (!tc->peer.pack || !san_tl_pack(tl, tc, t, c->mtu, e))
		initiator_advance(tl, tc, t, c->mtu, e);
	return true;
}

/* ---- express: push packets that are not shared ---- */

bool
san_tl_initiator_express_tx(struct san_tl *tl, struct san_pdl_conn *c)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];

	if (!tc->open || !TAILQ_EMPTY(&tc->aborts))
		return false;
	if (tc->nb_rxns != 0 &&
	    (!TAILQ_EMPTY(&tc->queues->out) || !TAILQ_EMPTY(&tc->queues->pulls)))
		return false;
	if (tc->adm_rsn != tc->rsn_next)
		san_tl_initiator_admit(tl, c);
	return next_to_request(tc) == NULL && next_push(tl, tc) != NULL;
}

struct san_tl_txn *
san_tl_initiator_express_next(const struct san_tl *tl, const struct san_pdl_conn *c)
{
	const struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t;

	if (likely(tc->peer.ordered))
		t = tc->data_rsn != tc->adm_rsn ? san_tl_txn_at(tc, tc->data_rsn) : NULL;
	else
		t = san_tl_txn_first(tl, &tc->memo->ready);
	if (t == NULL || !san_tl_txn_can_send(t))
		return NULL;
	return tc->peer.pack && san_tl_pack_may(tc, t, c->mtu) ? NULL : t;
}

void
san_tl_initiator_express_sent(struct san_tl *tl, const struct san_pdl_conn *c, struct san_tl_txn *t,
			      struct san_pdl_entry *e)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];

	initiator_advance(tl, tc, t, c->mtu, e);
	tl->stats.nb_express_tx++;
	tc->turn = true; /* pull data is next, if there is any */
}

/* ---- building packets, for the first time or again ---- */

/*
 * Build the packet of a finished transaction. Its request has arrived and only the ACK can be
 * missing, which any packet under the PSN brings.
 */
void
san_tl_initiator_fill_empty(const struct san_pdl_entry *e, struct san_wire_pkt *p)
{
	p->op = SAN_OP_RESYNC;
	p->flags = e->win == SAN_WIN_DATA ? SAN_F_WIN_DATA : 0;
	p->rsn = e->rsn;
	p->status = SAN_RESYNC_FILL;
}

void
san_tl_initiator_request_fill(struct san_tl *tl, const struct san_tl_conn *tc,
			      const struct san_pdl_entry *e, struct rte_mbuf *m,
			      struct san_wire_pkt *p)
{
	const struct san_tl_txn *t = san_tl_txn_at(tc, e->rsn);
	rte_be64_t args[2];
	char *dst;

	if (t == NULL) {
		san_tl_initiator_fill_empty(e, p);
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
	san_tl_ulp_atomic_fill(tl->conf.ulp, t, args);
	dst = san_wire_payload(m, sizeof(args));
	SAN_VERIFY(dst != NULL);
	memcpy(dst, args, sizeof(args));
}

static inline void
push_fill(struct san_tl *tl, const struct san_pdl_conn *c, const struct san_tl_txn *t,
	  const struct san_pdl_entry *e, struct rte_mbuf *m, struct san_wire_pkt *p)
{
	uint16_t imm_len = san_wire_imm_len(e->flags);
	rte_be32_t imm;
	char *dst;

	p->flags = e->flags;
	p->round = c->ordered ? c->rnr_round_out : t->round;
	p->length = t->req.length;
	p->key = t->req.key;
	p->addr = t->req.addr;
	p->offset = e->offset;
	if (e->len == 0)
		return;
	dst = san_wire_payload(m, e->len);
	SAN_VERIFY(dst != NULL);
	if (imm_len != 0) {
		imm = rte_cpu_to_be_32(t->req.imm);
		memcpy(dst, &imm, sizeof(imm));
	}
	if (e->len != imm_len)
		san_tl_ulp_push_fill(tl->conf.ulp, t, e->offset, dst + imm_len,
				     e->len - imm_len);
}

void
san_tl_initiator_push_fill(struct san_tl *tl, const struct san_pdl_conn *c,
			   const struct san_tl_conn *tc, const struct san_pdl_entry *e,
			   struct rte_mbuf *m, struct san_wire_pkt *p)
{
	const struct san_tl_txn *t = san_tl_txn_at(tc, e->rsn);

	/* The record stays until all data is acknowledged or withdrawn. */
	SAN_VERIFY(t != NULL);
	push_fill(tl, c, t, e, m, p);
}

void
san_tl_initiator_express_fill(struct san_tl *tl, const struct san_pdl_conn *c,
			      const struct san_tl_txn *t, const struct san_pdl_entry *e,
			      struct rte_mbuf *m, struct san_wire_pkt *p)
{
	p->op = e->op;
	p->rsn = t->rsn;
	push_fill(tl, c, t, e, m, p);
}

/* ---- pull data ---- */

/* As for a push, the last packet of a pull is placed last (RT-39). */
static bool
initiator_last_is_ahead(const struct san_tl_conn *tc, const struct san_tl_txn *t,
			const struct san_wire_pkt *p, uint32_t length)
{
	return p->status == SAN_ST_OK && p->offset + p->payload_len == length &&
		t->placed + p->payload_len != length && tc->peer.ordered && !tc->peer.relaxed;
}

static void
place_pull(struct san_tl *tl, struct san_tl_conn *tc, struct san_tl_txn *t, struct rte_mbuf *m,
	   uint32_t length, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_charge *ch;
	uint8_t status = p->status;

	if (status == SAN_ST_OK && p->payload_len != 0)
		status = san_tl_ulp_pull_place(tl->conf.ulp, t, p->offset, m, p->payload_off,
					       p->payload_len);
	t->placed += p->payload_len;
	ch = &san_tl_txn_extra_use(tl, t)->charge;
	san_tl_admit_charge_use(tl, ch, p->payload_len, now_ns);
	san_tl_admit_charge_done(tl, ch, p->payload_len);
	if (status != SAN_ST_OK || t->placed == length)
		san_tl_finish_txn(tl, tc, t, status);
}

/** Take the last packet, which is held, if the rest is placed. */
static struct rte_mbuf *
take_last(struct san_tl *tl, struct san_pdl_conn *c, struct san_tl_conn *tc, struct san_tl_txn *t,
	  uint32_t length, uint64_t now_ns)
{
	struct rte_mbuf *last = san_tl_pull_last(tl, t);

	if (last == NULL || t->placed + san_wire_pkt(last)->w.payload_len != length)
		return NULL;
	san_pdl_rx_ack(tl->pdl, c, san_wire_pkt(last)->w.psn, now_ns);
	return san_tl_rxn_pull_last_take(tl, tc, t);
}

enum san_drop
san_tl_initiator_rx_pull_data(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			      uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t = san_tl_txn_at(tc, p->rsn);
	struct rte_mbuf *data;
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
	if (initiator_last_is_ahead(tc, t, p, length)) {
		if (san_tl_pull_last(tl, t) != NULL)
			return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RANGE, now_ns);
		if (san_tl_rxn_is_red(tl, tc))
			return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RED_ZONE, now_ns);
		san_pdl_rx_commit(tl->pdl, c, p, SAN_RX_RECEIVED, now_ns);
		san_tl_rxn_held_enter(tl, tc, now_ns);
		san_tl_txn_extra_use(tl, t)->last = m;
		return SAN_DROP_NONE;
	}
	for (data = m; data != NULL; data = take_last(tl, c, tc, t, length, now_ns)) {
		place_pull(tl, tc, t, data, length, now_ns);
		if (data != m)
			san_tl_death_add(tl->death, data);
	}
	return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_NONE, now_ns);
}

/* ---- grants ---- */

enum san_drop
san_tl_initiator_rx_grant(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			  uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_tl_conn *tc = &tl->conns[c->slot];
	struct san_tl_txn *t = san_tl_txn_at(tc, p->rsn);

	if (t == NULL || t->state == SAN_TXN_DONE || t->state == SAN_TXN_ABORTING) {
		if (t == NULL && !san_tl_was_issued(tc, p->rsn))
			return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RSN, now_ns);
		tl->stats.nb_finished_data++;
		return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_FINISHED, now_ns);
	}
	if (!t->solicited || t->ssn != p->ssn || !t->req_sent)
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_SSN, now_ns);
	if (p->offset > t->req.length)
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_RANGE, now_ns);
	if (p->status != SAN_ST_OK) {
		/* Grants are reliable, so this is final; nothing was granted before (RULE-5). */
		t->status = p->status;
		san_tl_txn_set(t, SAN_TXN_ABORTING);
		san_tl_txn_list(tl, tc, t, SAN_TXN_LIST_NONE);
		san_pdl_rtx_cancel(tl->pdl, c, t->rsn, false, SAN_RESYNC_FILL);
		san_tl_finish_settle(tl, tc, t);
		return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_NONE, now_ns);
	}
	san_tl_solicit_take_grant(tl, tc, t, p->offset);
	san_tl_txn_ready(tl, tc, t);
	return san_tl_settle(tl, c, m, SAN_RX_ACKED, SAN_DROP_NONE, now_ns);
}

/* ---- check ---- */

void
san_tl_initiator_check(const struct san_tl *tl, const struct san_tl_conn *tc)
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
		SAN_VERIFY(t->sent <= t->req.length);
		SAN_VERIFY(!t->solicited || t->granted <= t->req.length);
		SAN_VERIFY(t->req.type != SAN_TL_PULL || t->placed <= t->req.length);
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
	/* The oldest unfinished transaction does not wait for its turn. */
	t = san_tl_txn_at(tc, tc->rsn_base);
	SAN_VERIFY(tc->rsn_base == tc->rsn_next || (t != NULL && t->state != SAN_TXN_DONE));
}
