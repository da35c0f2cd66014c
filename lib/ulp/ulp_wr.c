/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A work request stays in its entry from post to completion. Only inline data is copied, so a
 * resend reads the payload in place (RULE-16). The send queue holds requests that tl has not
 * accepted. They are submitted strictly from the head, so an ordered queue pair keeps its order
 * (RT-14). A long pull is submitted piece by piece (RULE-6). It holds back the requests after it
 * until its last piece has its RSN.
 *
 * The cookie that tl returns contains queue pair, entry and offset of the piece. So no callback
 * searches.
 */

#include <rte_byteorder.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "ulp_priv.h"

#define PREFETCH_AHEAD 4
#define RUN_MAX        64 /* requests posted together */

#define COOKIE_WQE_SHIFT 32
#define COOKIE_QP_SHIFT  44
#define COOKIE_WQE_MASK  (SAN_ULP_DEPTH_MAX - 1)
_Static_assert(SAN_ULP_DEPTH_MAX <= 1u << (COOKIE_QP_SHIFT - COOKIE_WQE_SHIFT), "cookie");
_Static_assert(SAN_ULP_QPS_MAX <= 1u << (64 - COOKIE_QP_SHIFT), "cookie");

/** Indexed by the two flags that force a mode; if both are set, RTSAN_WR_SOLICITED counts. */
#define FORCED(flags) ((flags) / RTSAN_WR_SOLICITED & 3)
static const uint8_t solicit_of[] = {
	[FORCED(RTSAN_WR_SOLICITED)] = SAN_SOLICIT_ALWAYS,
	[FORCED(RTSAN_WR_UNSOLICITED)] = SAN_SOLICIT_NEVER,
	[FORCED(RTSAN_WR_SOLICITED | RTSAN_WR_UNSOLICITED)] = SAN_SOLICIT_ALWAYS,
};

/** Operations in terms of tl and the completion queue. */
static const struct wr_op {
	uint8_t head[4]; /**< start of struct san_tl_req, whose third byte is *solicit* */
	uint8_t wc_op;   /**< enum rtsan_wc_opcode */
} ops[] = {
	[RTSAN_WR_SEND] = {{SAN_TL_PUSH, SAN_KIND_SEND}, RTSAN_WC_SEND},
	[RTSAN_WR_PUSH] = {{SAN_TL_PUSH, SAN_KIND_PUSH}, RTSAN_WC_PUSH},
	[RTSAN_WR_PUSH_IMM] = {{SAN_TL_PUSH, SAN_KIND_PUSH_IMM}, RTSAN_WC_PUSH},
	[RTSAN_WR_PULL] = {{SAN_TL_PULL}, RTSAN_WC_PULL},
	[RTSAN_WR_FETCH_ADD] = {{SAN_TL_ATOMIC, 0, 0, SAN_ATOMIC_FETCH_ADD}, RTSAN_WC_ATOMIC},
	[RTSAN_WR_CMP_SWAP] = {{SAN_TL_ATOMIC, 0, 0, SAN_ATOMIC_CMP_SWAP}, RTSAN_WC_ATOMIC},
	[RTSAN_WR_SEND_IMM] = {{SAN_TL_PUSH, SAN_KIND_SEND_IMM}, RTSAN_WC_SEND},
};
_Static_assert(RTE_DIM(ops) == RTSAN_WR_SEND_IMM + 1, "one row per operation");

static struct san_ulp_wqe *
wqe_of(struct san_ulp *ulp, uint64_t cookie, struct san_ulp_qp **qp)
{
	struct san_ulp_wqe *e;

	*qp = ulp->qps[cookie >> COOKIE_QP_SHIFT];
	SAN_ASSERT(*qp != NULL);
	e = &(*qp)->wqes[(cookie >> COOKIE_WQE_SHIFT) & COOKIE_WQE_MASK];
	SAN_ASSERT(e->used && e->nb_out > 0);
	return e;
}

static inline void
wqe_free(struct san_ulp_qp *qp, struct san_ulp_wqe *e)
{
	e->used = false;
	qp->sq_free[qp->nb_sq_free++] = (uint16_t)(e - qp->wqes);
}

static void
ulp_wr_fail_entry(struct san_ulp *ulp, struct san_ulp_qp *qp, struct san_ulp_wqe *e)
{
	const struct san_ulp_wc wc = {
		.wr_id = e->wr_id,
		.qp = qp->qpn,
		.op = e->wc_op,
		.status = e->status,
	};

	san_ulp_cq_put(qp->send_cq, &wc);
	ulp->stats.nb_wcs++;
	if (qp->ends && !qp->failed && qp->state == SAN_ULP_QP_BOUND)
		san_ulp_qp_fail(ulp, qp);
	wqe_free(qp, e);
}

/* *is_out*: tl gets it at once. */
static inline void
wqe_init(struct san_ulp_wqe *e, const struct san_ulp_wr *wr, uint64_t cookie, bool is_out)
{
	const struct wr_op *op = &ops[wr->op];
	/* A send names no memory of the peer, so the contents of these fields must not be sent. */
	bool names = op->wc_op != RTSAN_WC_SEND;
	uint8_t flags = wr->flags; /* once: for the compiler, a write to *e may change *wr */
	uint32_t n;

	memcpy(&e->req, op->head, sizeof(op->head));
	e->req.solicit = solicit_of[FORCED(flags)];
	e->req.length = wr->length;
	e->req.key = names ? wr->rkey : 0;
	e->req.imm = wr->imm;
	e->req.addr = names ? wr->remote_addr : 0;
	e->req.cookie = cookie;
	e->wr_id = wr->wr_id;
	e->submitted = 0;
	e->nb_out = is_out;
	e->status = SAN_ST_OK;
	e->wc_op = op->wc_op;
	e->is_signaled = (flags & RTSAN_WR_SIGNALED) != 0;
	e->whole = is_out;
	e->used = true;
	if (unlikely(op->wc_op == RTSAN_WC_ATOMIC)) {
		e->req.length = SAN_ULP_ATOMIC_LEN;
		e->operand = wr->operand;
		e->swap = wr->swap;
	} else if ((flags & RTSAN_WR_INLINE) != 0) {
		/* the list has one element, our copy: packets are filled as for other requests */
		n = RTE_MIN(wr->inline_len, (uint8_t)RTSAN_INLINE_MAX);
		memcpy(e->data, wr->data, n);
		e->inl = (struct rtsan_sge){.addr = e->data, .length = n};
		e->req.length = n;
		san_ulp_sgl_init(&e->sgl, &e->inl, 1);
		return;
	}
	san_ulp_sgl_copy(&e->sgl, e->sge, wr->sge, wr->nb_sge);
}

/*
 * Post at most RUN_MAX requests. Those that can be submitted past the send queue are, together: if
 * it is empty, and tl has room for them. Returns how many were posted.
 */
static uint32_t
post_run(struct san_ulp *ulp, struct san_ulp_qp *qp, const struct san_ulp_wr *wr, uint32_t n)
{
	uint64_t cookie = (uint64_t)san_ulp_qp_index(&ulp->conf, qp->qpn) << COOKIE_QP_SHIFT;
	const struct san_tl_req *reqs[RUN_MAX];
	struct san_ulp_wqe *e, *wqes = qp->wqes;
	uint16_t at, *free;
	uint32_t i, room = 0;

	n = san_ulp_cq_reserve_send(qp->send_cq, RTE_MIN(n, qp->nb_sq_free));
	free = &qp->sq_free[qp->nb_sq_free];
	qp->nb_sq_free -= n;
	if (qp->state == SAN_ULP_QP_BOUND && !qp->blocked && qp->sq_head == qp->sq_tail)
		room = san_tl_initiator_plain_room(ulp->tl, qp->slot, n);
	for (i = 0; i < n; i++) {
		if (likely(i + PREFETCH_AHEAD < n)) {
			e = &wqes[free[-1 - PREFETCH_AHEAD]];
			rte_prefetch0(e);
			rte_prefetch0(e->sge);
		}
		at = *--free;
		e = &wqes[at];
		reqs[i] = &e->req;
		SAN_ASSERT(wr[i].op >= RTSAN_WR_SEND && wr[i].op <= RTSAN_WR_SEND_IMM);
		wqe_init(e, &wr[i], cookie | (uint64_t)at << COOKIE_WQE_SHIFT, room != 0);
	}
	i = room != 0 ? san_tl_initiator_plain_submit(ulp->tl, qp->slot, reqs, room) : 0;
	for (; unlikely(i < n); i++) {
		e = container_of(reqs[i], struct san_ulp_wqe, req);
		e->nb_out = 0;
		e->whole = false;
		qp->sq[qp->sq_tail++ & (qp->sq_depth - 1)] = (uint16_t)(e - wqes);
	}
	return n;
}

uint32_t
san_ulp_wr_post(struct san_ulp *ulp, uint32_t qpn, const struct san_ulp_wr *wr, uint32_t n,
		uint64_t now_ns)
{
	struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);
	uint32_t nb = 0, k;

	if (qp == NULL)
		return 0;
	do {
		k = post_run(ulp, qp, wr + nb, RTE_MIN(n - nb, (uint32_t)RUN_MAX));
		nb += k;
	} while (k != 0 && nb < n);
	ulp->stats.nb_wrs += nb;
	if (qp->state == SAN_ULP_QP_BOUND)
		san_ulp_wr_submit(ulp, qp, now_ns);
	else if (qp->state == SAN_ULP_QP_ENDED)
		san_ulp_wr_flush(ulp, qp);
	return nb;
}

void
san_ulp_wr_submit(struct san_ulp *ulp, struct san_ulp_qp *qp, uint64_t now_ns)
{
	const struct san_tl_req *req;
	struct san_tl_req piece;

	while (!qp->blocked && qp->sq_head != qp->sq_tail) {
		struct san_ulp_wqe *e = &qp->wqes[qp->sq[qp->sq_head & (qp->sq_depth - 1)]];

		req = &e->req;
		if (unlikely(req->type == SAN_TL_PULL)) { /* the next piece */
			piece = e->req;
			piece.length = RTE_MIN(piece.length - e->submitted, ulp->conf.pull_piece);
			piece.addr += e->submitted;
			piece.cookie += e->submitted;
			req = &piece;
		}
		/* set it before the call: tl may call room() inside, which clears it */
		qp->blocked = true;
		if (san_tl_initiator_submit(ulp->tl, qp->slot, req, now_ns) != 0)
			return;
		qp->blocked = false;
		e->nb_out++;
		e->submitted += req->length;
		e->whole = e->submitted == e->req.length;
		qp->sq_head += e->whole;
	}
}

void
san_ulp_wr_flush(struct san_ulp *ulp, struct san_ulp_qp *qp)
{
	while (qp->sq_head != qp->sq_tail) {
		struct san_ulp_wqe *e = &qp->wqes[qp->sq[qp->sq_head++ & (qp->sq_depth - 1)]];

		e->whole = true;
		if (e->status == SAN_ST_OK)
			e->status = RTSAN_WC_FLUSHED;
		if (e->nb_out == 0)
			ulp_wr_fail_entry(ulp, qp, e);
	}
}

/* ---- callbacks of tl ---- */

/* Not inlined: the common case saves no registers then. */
static __rte_noinline void
fill_any(struct san_ulp_wqe *e, uint32_t offset, void *dst, uint16_t len)
{
	uint32_t n = san_ulp_sgl_gather(&e->sgl, offset, dst, len);

	/*
	 * The application owns the list, and may have made it shorter. Send zeros then, not our
	 * memory.
	 */
	if (unlikely(n < len))
		memset((uint8_t *)dst + n, 0, len - n);
}

void
san_tl_ulp_push_fill(void *arg, const struct san_tl_txn *t, uint32_t offset, void *dst,
		     uint16_t len)
{
	struct san_ulp_qp *qp;
	struct san_ulp_wqe *e = wqe_of(arg, t->req.cookie, &qp);
	const uint8_t *only = san_ulp_sgl_only(&e->sgl, offset, len);

	if (likely(only != NULL))
		memcpy(dst, only, len);
	else
		fill_any(e, offset, dst, len);
}

void
san_tl_ulp_atomic_fill(void *arg, const struct san_tl_txn *t, rte_be64_t args[2])
{
	struct san_ulp_qp *qp;
	const struct san_ulp_wqe *e = wqe_of(arg, t->req.cookie, &qp);

	args[0] = rte_cpu_to_be_64(e->operand);
	args[1] = rte_cpu_to_be_64(e->swap);
}

/** Old value of an atomic: 8 bytes, big-endian on the wire, host order in memory. (RT-30) */
static uint32_t
place_result(struct san_ulp_wqe *e, struct rte_mbuf *m, uint16_t off, uint16_t len)
{
	rte_be64_t buf;
	const void *p;
	uint64_t value;

	if (len != sizeof(buf))
		return 0;
	p = rte_pktmbuf_read(m, off, sizeof(buf), &buf);
	if (p == NULL)
		return 0;
	memcpy(&buf, p, sizeof(buf));
	value = rte_be_to_cpu_64(buf);
	return san_ulp_sgl_scatter(&e->sgl, 0, &value, sizeof(value));
}

uint8_t
san_tl_ulp_pull_place(void *arg, const struct san_tl_txn *t, uint32_t offset, struct rte_mbuf *m,
		      uint16_t off, uint16_t len)
{
	struct san_ulp *ulp = arg;
	struct san_ulp_qp *qp;
	struct san_ulp_wqe *e = wqe_of(ulp, t->req.cookie, &qp);
	uint32_t n;

	if (t->req.type == SAN_TL_ATOMIC) {
		n = place_result(e, m, off, len);
	} else {
		/* the peer may claim any offset: stay inside the piece */
		if (offset > t->req.length || len > t->req.length - offset)
			return SAN_ST_LENGTH;
		offset += (uint32_t)t->req.cookie; /* start of the piece */
		n = san_ulp_sgl_scatter_mbuf(&e->sgl, offset, m, off, len);
	}
	ulp->stats.nb_placed_bytes += n;
	return n == len ? SAN_ST_OK : SAN_ST_LENGTH;
}

static void
ulp_wr_complete_txn(struct san_ulp *ulp, const struct san_tl_txn *t, uint8_t status)
{
	struct san_ulp_qp *qp;
	struct san_ulp_wqe *e = wqe_of(ulp, t->req.cookie, &qp);

	e->nb_out--;
	if (unlikely(qp->failed))
		status = RTSAN_WC_FLUSHED;
	if (status != SAN_ST_OK && e->status == SAN_ST_OK)
		e->status = status;
	/* After an error no further piece is requested; only the head can be in pieces. */
	if (e->status != SAN_ST_OK && !e->whole) {
		SAN_ASSERT(&qp->wqes[qp->sq[qp->sq_head & (qp->sq_depth - 1)]] == e);
		e->whole = true;
		qp->sq_head++;
		/*
		 * The queue may have waited for resources for this request: release what tl has
		 * reserved.
		 */
		qp->blocked = false;
		san_tl_want_end(ulp->tl, t->slot);
		if (qp->sq_head != qp->sq_tail)
			san_ulp_qp_mark(ulp, qp);
	}
	if (e->whole && e->nb_out == 0)
		ulp_wr_fail_entry(ulp, qp, e); /* complete_run() handles successful ones */
}

/*
 * Complete requests that succeeded: their entries become visible to the consumer together. Returns
 * the number of entries of *t* completed. The next one is completed separately.
 */
static uint32_t
complete_run(struct san_ulp *ulp, struct san_tl_txn *const t[], uint32_t n)
{
	struct san_ulp_qp *qp = ulp->qps[t[0]->req.cookie >> COOKIE_QP_SHIFT];
	uint16_t at, *free = &qp->sq_free[qp->nb_sq_free];
	struct san_ulp_wqe *e, *wqes = qp->wqes;
	struct san_ulp_cq *cq = qp->send_cq;
	struct san_ulp_wc *wcs = cq->mem->wc;
	uint32_t i, nb_rx = 0, tail = cq->q.tail, mask = cq->q.mask;
	uint64_t tx_bytes = 0;

	for (i = 0; i < n && !qp->failed; i++) {
		at = t[i]->req.cookie >> COOKIE_WQE_SHIFT & COOKIE_WQE_MASK;
		e = &wqes[at];
		if (!e->whole || e->nb_out != 1 || e->status != SAN_ST_OK)
			break;
		SAN_ASSERT(e->used);
		if (e->is_signaled)
			wcs[tail++ & mask] = (struct san_ulp_wc){
				.wr_id = e->wr_id,
				.qp = qp->qpn,
				.byte_len = e->req.length,
				.op = e->wc_op,
				.status = SAN_ST_OK,
			};
		if (likely(e->req.type == SAN_TL_PUSH)) {
			tx_bytes += e->req.length;
		} else {
			nb_rx++;
			san_ulp_count_rx(qp, e->req.length);
		}
		e->used = false;
		free[i] = at;
	}
	qp->nb_sq_free += i;
	qp->nb_tx += i - nb_rx;
	qp->tx_bytes += tx_bytes;
	ulp->stats.nb_wcs += tail - cq->q.tail;
	san_ulp_cq_settle(cq, i, tail - cq->q.tail);
	return i;
}

void
san_tl_ulp_cmpl(void *arg, struct san_tl_txn *const t[], uint32_t n, uint8_t status)
{
	uint32_t k;

	for (; n != 0; t += k, n -= k) {
		k = likely(status == SAN_ST_OK) ? complete_run(arg, t, n) : 0;
		if (likely(k != 0))
			continue;
		ulp_wr_complete_txn(arg, t[0], status);
		k = 1;
	}
}

void
san_tl_ulp_room(void *arg, uint16_t slot)
{
	struct san_ulp *ulp = arg;
	struct san_ulp_qp *qp = san_ulp_qp_at(ulp, slot);

	if (qp == NULL || !qp->blocked)
		return;
	qp->blocked = false;
	san_ulp_qp_mark(ulp, qp);
}
