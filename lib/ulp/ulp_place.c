/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * This file is the target's side of the transactions. pushReq checks all that can be checked
 * without the data: key, partition, bounds, rights, a receive and its CQ entry. It stores the
 * results in the transaction's record as indices with generations (ulp_ref, ulp_gen), never as
 * pointers. So a region or a receive that was removed meanwhile is detected and not used.
 *
 * Permanent refusals are checked before "not ready": a wrong key must not wait for a receive.
 */

#include <rte_mbuf.h>

#include "ulp_priv.h"
#include "wire_pack.h"

#define REF_RECV_SHIFT 20
#define REF_MR_MASK    ((1u << REF_RECV_SHIFT) - 1)
#define GEN_MR_SHIFT   32
_Static_assert(SAN_ULP_MRS_MAX <= 1u << REF_RECV_SHIFT, "ulp_ref");
_Static_assert(SAN_ULP_DEPTH_MAX <= 1u << (32 - REF_RECV_SHIFT), "ulp_ref");

/** The region that pushReq found; NULL: it was revoked since, which is counted. */
static const struct san_ulp_mr *
mr_of(struct san_ulp *ulp, const struct san_tl_rxn *r)
{
	const struct san_ulp_mr *mr = &ulp->mrs[r->ulp_ref & REF_MR_MASK];

	if (likely(mr->used && mr->gen == r->ulp_gen >> GEN_MR_SHIFT))
		return mr;
	ulp->stats.nb_revoked++;
	return NULL;
}

/** The receive of the transaction; NULL: it has none, or the receive has completed. */
static struct san_ulp_rqe *
recv_of(const struct san_ulp_qp *qp, const struct san_tl_rxn *r)
{
	uint32_t at = r->ulp_ref >> REF_RECV_SHIFT;

	if (qp == NULL || at >= qp->rq->depth)
		return NULL;
	if (qp->rq->rqes[at].state != SAN_RQE_TAKEN || qp->rq->rqes[at].gen != (uint32_t)r->ulp_gen)
		return NULL;
	return &qp->rq->rqes[at];
}

/** Check access to a region; a transfer of no bytes with key 0 needs none. */
static uint8_t
open_region(struct san_ulp *ulp, struct san_ulp_qp *qp, struct san_tl_rxn *r,
	    enum rtsan_access right)
{
	struct san_ulp_mr *mr;
	uint8_t status;

	if (r->length == 0 && r->key == 0)
		return SAN_ST_OK;
	status = san_ulp_mr_access(ulp, r, r->length, qp, right, &mr);
	if (status == SAN_ST_OK) {
		r->ulp_ref |= (uint32_t)(mr - ulp->mrs);
		r->ulp_gen |= (uint64_t)mr->gen << GEN_MR_SHIFT;
	}
	return status;
}

/* ---- receives reserved for solicited sends (RULE-4) ---- */

bool
san_tl_ulp_reserve(void *arg, uint16_t slot)
{
	struct san_ulp_qp *qp = san_ulp_qp_at(arg, slot);

	if (qp == NULL)
		return false;
	if (san_ulp_qp_nb_posted(qp) <= qp->rq->nb_set_aside) {
		if (qp->rq != &qp->own_rq && !qp->is_hungry)
			STAILQ_INSERT_TAIL(&qp->rq->hungry, qp, hungry_link);
		qp->is_hungry = qp->rq != &qp->own_rq;
		return false;
	}
	qp->rq->nb_set_aside++;
	qp->nb_set_aside++;
	return true;
}

void
san_tl_ulp_unreserve(void *arg, uint16_t slot)
{
	struct san_ulp_qp *qp = san_ulp_qp_at(arg, slot);

	if (qp == NULL)
		return;
	if (qp->nb_set_aside == 0) /* the queue that it shared has been destroyed */
		return;
	qp->rq->nb_set_aside--;
	qp->nb_set_aside--;
	san_ulp_qp_returned(arg, qp->rq);
}

/* ---- pushes ---- */

/**
 * Take the next receive, even a reserved one. Reservations limit only the grants to further
 * solicited sends. If they kept the head of line from a receive, an ordered connection could wait
 * for itself (RT-26).
 */
static uint8_t
ulp_place_take_recv(struct san_ulp *ulp, struct san_ulp_qp *qp, struct san_tl_rxn *r)
{
	struct san_ulp_rqe *e = san_ulp_qp_take_recv(qp);

	if (e == NULL) {
		ulp->stats.nb_rnr++;
		return SAN_ST_RNR;
	}
	if (san_wire_is_send(r->kind) && r->length > e->room && r->packed) {
		/* the send is repeated alone, and then the receive completes in error (RT-34) */
		san_ulp_qp_return_recv(ulp, qp, e);
		return SAN_ST_LENGTH;
	}
	if (san_wire_is_send(r->kind) && r->length > e->room) {
		struct san_ulp_wc wc = {
			.op = RTSAN_WC_RECV,
			.status = RTSAN_WC_LOC_LENGTH,
			.byte_len = r->length,
		};

		san_ulp_qp_complete_recv(ulp, qp, e, &wc);
		return SAN_ST_LENGTH;
	}
	r->ulp_ref |= (uint32_t)(e - qp->rq->rqes) << REF_RECV_SHIFT;
	r->ulp_gen |= e->gen;
	return SAN_ST_OK;
}

uint8_t
san_tl_ulp_push_check(void *arg, struct san_tl_rxn *r)
{
	struct san_ulp *ulp = arg;
	struct san_ulp_qp *qp = san_ulp_qp_at(ulp, r->slot);

	r->ulp_ref = 0;
	r->ulp_gen = 0;
	if (unlikely(qp == NULL))
		return SAN_ST_REFUSED;
	if (san_wire_is_send(r->kind))
		return SAN_ST_OK;
	return open_region(ulp, qp, r, RTSAN_REMOTE_PUSH);
}

uint8_t
san_tl_ulp_push_req(void *arg, struct san_tl_rxn *r)
{
	struct san_ulp *ulp = arg;
	struct san_ulp_qp *qp = san_ulp_qp_at(ulp, r->slot);
	uint8_t status;

	r->ulp_ref = 0;
	r->ulp_gen = 0;
	if (unlikely(qp == NULL))
		return SAN_ST_REFUSED;
	/* the push is the head of line, so it needs no reservation any more */
	if (r->reserved) {
		san_tl_ulp_unreserve(ulp, r->slot);
		r->reserved = false;
	}
	if (!san_wire_is_send(r->kind)) {
		status = open_region(ulp, qp, r, RTSAN_REMOTE_PUSH);
		if (status != SAN_ST_OK)
			return status;
	}
	if (r->kind != SAN_KIND_PUSH)
		return ulp_place_take_recv(ulp, qp, r);
	return SAN_ST_OK;
}

uint8_t
san_tl_ulp_push_place(void *arg, struct san_tl_rxn *r, uint32_t offset, struct rte_mbuf *m,
		      uint16_t off, uint16_t len)
{
	struct san_ulp *ulp = arg;
	uint8_t status = SAN_ST_OK;
	const void *src;
	uint8_t *dst;

	if (len == 0)
		return SAN_ST_OK;
	/* push_req checked *length* bytes; the packet may claim more. */
	if (unlikely(offset > r->length || len > r->length - offset))
		return SAN_ST_LENGTH;
	if (san_wire_is_send(r->kind)) {
		struct san_ulp_rqe *e = recv_of(san_ulp_qp_at(ulp, r->slot), r);

		if (unlikely(e == NULL))
			return SAN_ST_REFUSED;
		if (san_ulp_sgl_scatter_mbuf(&e->sgl, offset, m, off, len) != len)
			status = SAN_ST_LENGTH;
	} else {
		const struct san_ulp_mr *mr = mr_of(ulp, r);

		if (unlikely(mr == NULL))
			return SAN_ST_REVOKED;
		/* directly to the destination: the only copy on receive */
		dst = san_ulp_mr_at(mr, r->addr + offset);
		src = rte_pktmbuf_read(m, off, len, dst);
		if (unlikely(src == NULL))
			return SAN_ST_LENGTH;
		if (likely(src != dst))
			memcpy(dst, src, len);
	}
	if (likely(status == SAN_ST_OK))
		ulp->stats.nb_placed_bytes += len;
	return status;
}

uint8_t
san_tl_ulp_push_done(void *arg, struct san_tl_rxn *r)
{
	struct san_ulp *ulp = arg;
	struct san_ulp_qp *qp = san_ulp_qp_at(ulp, r->slot);
	struct san_ulp_rqe *e;
	struct san_ulp_wc wc = {.op = RTSAN_WC_RECV, .byte_len = r->length};

	if (r->kind == SAN_KIND_PUSH) {
		if (likely(qp != NULL))
			san_ulp_count_rx(qp, r->length);
		return SAN_ST_OK;
	}
	e = recv_of(qp, r);
	if (unlikely(e == NULL))
		return SAN_ST_REFUSED;
	san_ulp_count_rx(qp, r->length);
	if (r->kind == SAN_KIND_PUSH_IMM)
		wc.op = RTSAN_WC_RECV_PUSH_IMM;
	if (san_wire_has_imm(r->kind)) {
		wc.imm = r->imm;
		wc.has_imm = true;
	}
	san_ulp_qp_complete_recv(ulp, qp, e, &wc);
	return SAN_ST_OK;
}

void
san_tl_ulp_push_abort(void *arg, struct san_tl_rxn *r)
{
	struct san_ulp_qp *qp = san_ulp_qp_at(arg, r->slot);
	struct san_ulp_rqe *e;

	if (r->kind == SAN_KIND_PUSH)
		return;
	e = recv_of(qp, r);
	if (e != NULL)
		san_ulp_qp_return_recv(arg, qp, e);
}

/* ---- express: pushes of one packet ---- */

void
san_ulp_place_express_start(const struct san_ulp *ulp, uint16_t slot, struct san_ulp_express *x)
{
	x->qp = san_ulp_qp_at(ulp, slot);
	x->mr = NULL;
	x->dst = NULL;
}

/*
 * Check access. If the region is that of the last packet, as it usually is, only the bounds are
 * checked.
 */
static inline bool
may_push(const struct san_ulp *ulp, const struct san_wire_pkt *p, struct san_ulp_express *x)
{
	struct san_ulp_mr *mr;

	if (p->length == 0 && p->key == 0)
		return true;
	if (x->mr == NULL || x->mr->key != p->key) {
		if (!san_ulp_mr_may(ulp, x->qp, p->key, p->addr, p->length, RTSAN_REMOTE_PUSH, &mr))
			return false;
		x->mr = mr;
	} else if (!san_ulp_mr_has(x->mr, p->addr, p->length)) {
		return false;
	}
	x->dst = san_ulp_mr_at(x->mr, p->addr);
	return true;
}

bool
san_ulp_place_express(const struct san_ulp *ulp, const struct san_wire_pkt *p,
		      struct san_ulp_express *x)
{
	const struct san_ulp_qp *qp = x->qp;

	if (unlikely(qp == NULL))
		return false;
	x->kind = (p->flags & SAN_F_KIND) >> SAN_F_KIND_SHIFT;
	if (x->kind == SAN_KIND_PUSH)
		return may_push(ulp, p, x);
	if (san_ulp_qp_nb_posted(qp) == 0 || !san_ulp_cq_has(qp->recv_cq, 0))
		return false;
	if (!san_wire_is_send(x->kind))
		return may_push(ulp, p, x);
	return p->length <= qp->rq->rqes[qp->rq->queue[qp->rq->head & (qp->rq->depth - 1)]].room;
}

/* For a push of no bytes *dst* is invalid: it needs no region. */
static inline void
ulp_place_copy(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	if (likely(len != 0))
		memcpy(dst, src, len);
}

static inline void
ulp_place_take(struct san_ulp *ulp, const struct san_ulp_express *x, const struct san_wire_pkt *p,
	       const struct rte_mbuf *m)
{
	const uint8_t *data = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->payload_off);
	struct san_ulp_wc wc = {.op = RTSAN_WC_RECV, .byte_len = p->length};
	struct san_ulp_rqe *e;
	rte_be32_t imm;

	ulp->stats.nb_placed_bytes += p->length;
	san_ulp_count_rx(x->qp, p->length);
	if (x->kind == SAN_KIND_PUSH) {
		ulp_place_copy(x->dst, data, p->length);
		return;
	}
	e = san_ulp_qp_take_recv(x->qp);
	if (san_wire_has_imm(x->kind)) {
		memcpy(&imm, data, sizeof(imm));
		data += sizeof(imm);
		wc.imm = rte_be_to_cpu_32(imm);
		wc.has_imm = true;
	}
	if (san_wire_is_send(x->kind)) {
		san_ulp_sgl_scatter(&e->sgl, 0, data, p->length);
	} else {
		ulp_place_copy(x->dst, data, p->length);
		wc.op = RTSAN_WC_RECV_PUSH_IMM;
	}
	san_ulp_qp_complete_recv(ulp, x->qp, e, &wc);
}

void
san_ulp_place_express_take(struct san_ulp *ulp, const struct san_ulp_express *x,
			   const struct san_wire_pkt *p, struct rte_mbuf *m)
{
	ulp->stats.nb_express_rx++;
	ulp_place_take(ulp, x, p, m);
}

bool
san_ulp_place_express_data(struct san_ulp *ulp, struct san_tl_rxn *r, const struct san_wire_pkt *p,
			   struct rte_mbuf *m)
{
	if (san_tl_ulp_push_place(ulp, r, p->offset, m, p->payload_off, p->payload_len) !=
	    SAN_ST_OK)
		return false;
	ulp->stats.nb_express_rx++;
	return true;
}

/* ---- express: packed packets ---- */

/* Where a message of a packed packet is, and where it goes. */
struct packed_msg {
	uint8_t *dst;
	uint16_t off, length;
	uint8_t kind;
};

/* True if there is a receive, and an entry for its completion, after those of *n* messages. */
static inline bool
has_recv(const struct san_ulp_qp *qp, uint32_t n, const struct san_wire_msg *msg)
{
	const struct san_ulp_rq *rq = qp->rq;
	uint32_t at = (rq->head + n) & (rq->depth - 1);

	return san_ulp_qp_nb_posted(qp) > n && san_ulp_cq_has(qp->recv_cq, n) &&
		(!san_wire_is_send(msg->kind) || msg->length <= rq->rqes[rq->queue[at]].room);
}

/* True if all messages of *m* can be taken: then *msgs* has them. */
static inline bool
packed_check(const struct san_ulp *ulp, const struct rte_mbuf *m, const struct san_wire_pkt *p,
	     struct san_ulp_express *x, struct packed_msg *msgs)
{
	uint32_t i, off = p->payload_off, nb_recvs = 0;
	struct san_wire_msg msg;
	struct san_wire_pkt q;

	for (i = 0; i < p->length; i++) {
		off = san_wire_pack_get(m, off, &msg);
		if (msg.kind != SAN_KIND_PUSH && !has_recv(x->qp, nb_recvs++, &msg))
			return false;
		q.key = msg.key;
		q.addr = msg.addr;
		q.length = msg.length;
		if (!san_wire_is_send(msg.kind) && !may_push(ulp, &q, x))
			return false;
		msgs[i].dst = x->dst;
		/* the immediate is before the data, as in a packet of its own */
		msgs[i].off = msg.off - (san_wire_has_imm(msg.kind) ? SAN_WIRE_IMM_LEN : 0);
		msgs[i].length = msg.length;
		msgs[i].kind = msg.kind;
	}
	return true;
}

bool
san_tl_ulp_push_packed(void *arg, uint16_t slot, const struct rte_mbuf *m,
		       const struct san_wire_pkt *p)
{
	struct packed_msg msgs[SAN_WIRE_PACK_MAX];
	struct san_ulp *ulp = arg;
	struct san_ulp_express x;
	struct san_wire_pkt q;
	uint32_t i;

	san_ulp_place_express_start(ulp, slot, &x);
	if (unlikely(x.qp == NULL) || !packed_check(ulp, m, p, &x, msgs))
		return false;
	ulp->stats.nb_express_rx++;
	for (i = 0; i < p->length; i++) {
		x.dst = msgs[i].dst;
		x.kind = msgs[i].kind;
		q.payload_off = msgs[i].off;
		q.length = msgs[i].length;
		ulp_place_take(ulp, &x, &q, m);
	}
	return true;
}

/* ---- pulls and atomics ---- */

uint8_t
san_tl_ulp_pull_req(void *arg, struct san_tl_rxn *r)
{
	struct san_ulp *ulp = arg;
	struct san_ulp_qp *qp = san_ulp_qp_at(ulp, r->slot);
	uint8_t status;

	r->ulp_ref = 0;
	r->ulp_gen = 0;
	if (unlikely(qp == NULL))
		return SAN_ST_REFUSED;
	status = open_region(ulp, qp, r, RTSAN_REMOTE_PULL);
	if (likely(status == SAN_ST_OK)) {
		qp->nb_tx++;
		qp->tx_bytes += r->length;
	}
	return status;
}

uint8_t
san_tl_ulp_pull_read(void *arg, struct san_tl_rxn *r, uint32_t offset, void *dst, uint16_t len)
{
	const struct san_ulp_mr *mr;

	if (len == 0)
		return SAN_ST_OK;
	SAN_ASSERT(offset <= r->length && len <= r->length - offset);
	mr = mr_of(arg, r);
	if (unlikely(mr == NULL))
		return SAN_ST_REVOKED;
	memcpy(dst, san_ulp_mr_at(mr, r->addr + offset), len);
	return SAN_ST_OK;
}

uint8_t
san_tl_ulp_atomic(void *arg, struct san_tl_rxn *r)
{
	struct san_ulp *ulp = arg;
	struct san_ulp_qp *qp = san_ulp_qp_at(ulp, r->slot);
	struct san_ulp_mr *mr;
	uint64_t *at;
	uint8_t status;

	if (unlikely(qp == NULL))
		return SAN_ST_REFUSED;
	status = san_ulp_mr_access(ulp, r, SAN_ULP_ATOMIC_LEN, qp, RTSAN_REMOTE_ATOMIC, &mr);
	if (status != SAN_ST_OK)
		return status;
	at = (uint64_t *)san_ulp_mr_at(mr, r->addr);
	/*
	 * The application may access these bytes, too, so the processor's atomic instruction is
	 * used.
	 */
	if (r->addr % SAN_ULP_ATOMIC_LEN != 0 || (uintptr_t)at % SAN_ULP_ATOMIC_LEN != 0)
		return SAN_ST_ALIGN;
	if (r->op == SAN_ATOMIC_FETCH_ADD) {
		r->result = __atomic_fetch_add(at, r->operand, __ATOMIC_SEQ_CST);
	} else {
		r->result = r->operand;
		__atomic_compare_exchange_n(at, &r->result, r->swap, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	return SAN_ST_OK;
}
