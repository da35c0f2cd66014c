/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A receive keeps its place in the order of posting until it completes. If a push that took it is
 * aborted or refused for now (RULE-4, RULE-5), it returns before all receives posted later,
 * in whatever order they were taken. On an ordered connection that is the head of the queue. Queue
 * and free list hold indices of entries, so an entry stays in place and packets find it without a
 * search.
 *
 * When its connection has ended, a queue pair flushes everything posted before and after, so that
 * every work request completes, whatever application and peer did at the same time. Receives have
 * no reserved CQ entry; those that find the CQ full are flushed by san_ulp_qp_pump() as it is
 * polled. They are listed with that CQ, so a full one costs one check, however many wait.
 *
 * A queue pair may share the receive queue of another (RT-44). Each receive remembers who took it.
 * What returns may be wanted by others, or flushed: the pump of the owner looks.
 */

#include <rte_prefetch.h>

#include "san_seq.h"
#include "ulp_priv.h"

#define QP_GENS     UINT16_MAX /* keeps numbers different from SAN_QPN_NONE */
#define FULL_VISITS 32         /* full completion queues per round: a fraction of a microsecond */

static bool
ulp_qp_is_depth(uint32_t depth)
{
	return depth <= SAN_ULP_DEPTH_MAX && rte_is_power_of_2(depth);
}

size_t
san_ulp_qp_bytes(uint32_t nb_sq, uint32_t nb_rq)
{
	return sizeof(struct san_ulp_qp) +
		nb_sq * (sizeof(struct san_ulp_wqe) + 2 * sizeof(uint16_t)) +
		nb_rq * (sizeof(struct san_ulp_rqe) + 2 * sizeof(uint16_t));
}

/* NULL: no memory. */
static struct san_ulp_qp *
qp_alloc(struct san_mem *mem, const struct san_ulp_qp_conf *conf)
{
	uint32_t nb_sq = conf->sq_depth, nb_rq = conf->rq_depth;
	struct san_ulp_qp *qp = san_mem_calloc(mem, 1, san_ulp_qp_bytes(nb_sq, nb_rq));
	struct san_ulp_rq *rq;
	uint32_t i;

	if (qp == NULL)
		return NULL;
	rq = qp->rq = &qp->own_rq;
	qp->send_cq = conf->send_cq;
	qp->recv_cq = conf->recv_cq;
	qp->owner = conf->owner;
	qp->sq_depth = conf->sq_depth;
	qp->wqes = (struct san_ulp_wqe *)(qp + 1);
	rq->rqes = (struct san_ulp_rqe *)(qp->wqes + nb_sq);
	qp->sq = (uint16_t *)(rq->rqes + nb_rq);
	qp->sq_free = qp->sq + nb_sq;
	rq->queue = qp->sq_free + nb_sq;
	/* stacks: lowest index on top */
	for (i = 0; i < qp->sq_depth; i++)
		qp->sq_free[i] = (uint16_t)(qp->sq_depth - 1 - i);
	rq->nb_free = rq->depth = nb_rq;
	for (i = 0; i < nb_rq; i++)
		san_ulp_rq_free(rq)[i] = (uint16_t)(nb_rq - 1 - i);
	qp->nb_sq_free = qp->sq_depth;
	STAILQ_INIT(&rq->hungry);
	return qp;
}

int
san_ulp_qp_create(struct san_ulp *ulp, const struct san_ulp_qp_conf *conf, uint32_t *out)
{
	struct san_ulp_qp *qp, *from = NULL;
	uint32_t index;

	if (conf->shares_recvs) {
		from = san_ulp_qp_get(ulp, conf->recv_from);
		if (from == NULL || from->rq != &from->own_rq)
			return -EINVAL;
	}
	if (conf->send_cq == NULL || conf->recv_cq == NULL || !ulp_qp_is_depth(conf->sq_depth) ||
	    !ulp_qp_is_depth(conf->rq_depth))
		return -EINVAL;
	if (ulp->nb_qps == ulp->conf.max_qps)
		return -ENOSPC;
	qp = qp_alloc(ulp->conf.mem, conf);
	if (qp == NULL)
		return -ENOMEM;
	if (from != NULL) {
		qp->rq = &from->own_rq;
		from->is_shared = true;
	}
	/* Round-robin, so that an index rests before it is used again. */
	while (ulp->qps[ulp->next_qp] != NULL)
		ulp->next_qp = (ulp->next_qp + 1) % ulp->conf.max_qps;
	index = ulp->next_qp;
	ulp->next_qp = (ulp->next_qp + 1) % ulp->conf.max_qps;
	qp->qpn = (uint32_t)ulp->qp_gens[index] << SAN_QPN_INDEX_BITS |
		(ulp->conf.first_qp + index);
	ulp->qp_gens[index] = (uint16_t)((ulp->qp_gens[index] + 1) % QP_GENS);
	ulp->qps[index] = qp;
	ulp->nb_qps++;
	conf->send_cq->nb_qps++;
	conf->recv_cq->nb_qps++;
	conf->recv_cq->nb_recv_qps++;
	*out = qp->qpn;
	return 0;
}

static void
ulp_qp_unlist(struct san_ulp *ulp, struct san_ulp_qp *qp)
{
	struct san_ulp_cq *cq = qp->recv_cq;

	if (qp->listed == SAN_ULP_IN_PUMP) {
		TAILQ_REMOVE(&ulp->pump, qp, link);
	} else if (qp->listed == SAN_ULP_IN_FAILED) {
		TAILQ_REMOVE(&ulp->failed, qp, link);
	} else if (qp->listed == SAN_ULP_IN_FULL) {
		TAILQ_REMOVE(&cq->full, qp, link);
		if (TAILQ_EMPTY(&cq->full))
			TAILQ_REMOVE(&ulp->fulls, cq, full_link);
	}
	qp->listed = SAN_ULP_UNLISTED;
}

void
san_ulp_qp_mark(struct san_ulp *ulp, struct san_ulp_qp *qp)
{
	if (qp->listed != SAN_ULP_UNLISTED)
		return;
	qp->listed = SAN_ULP_IN_PUMP;
	TAILQ_INSERT_TAIL(&ulp->pump, qp, link);
}

uint32_t
san_ulp_qp_of(const struct san_ulp *ulp, uint16_t slot)
{
	const struct san_ulp_qp *qp = slot < ulp->conf.max_conns ? ulp->qp_of_slot[slot] : NULL;

	return qp != NULL ? qp->qpn : SAN_QPN_NONE;
}

uint16_t
san_ulp_qp_owner(const struct san_ulp *ulp, uint32_t qpn)
{
	const struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);

	return qp != NULL ? qp->owner : 0;
}

void
san_ulp_qp_disown(struct san_ulp *ulp, uint32_t qpn)
{
	struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);

	if (qp != NULL)
		qp->owner = SAN_ULP_NOBODY;
}

void
san_ulp_qp_prefetch(const struct san_ulp *ulp, uint32_t index)
{
	const uint8_t *qp = (const uint8_t *)ulp->qps[index];
	size_t at;

	for (at = 0; at < sizeof(struct san_ulp_qp); at += SAN_LINE)
		rte_prefetch0(qp + at);
}

bool
san_ulp_qp_is_idle(const struct san_ulp *ulp, uint32_t qpn)
{
	const struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);

	if (qp == NULL)
		return true;
	if (qp->nb_sq_free < qp->sq_depth)
		return false;
	return qp->state != SAN_ULP_QP_ENDED || qp->own_rq.nb_free == qp->own_rq.depth;
}

int
san_ulp_qp_bind(struct san_ulp *ulp, uint32_t qpn, uint16_t slot, uint16_t pkey,
		const struct san_ip *peer)
{
	struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);

	if (qp == NULL || slot >= ulp->conf.max_conns)
		return -EINVAL;
	if (qp->state == SAN_ULP_QP_BOUND || ulp->qp_of_slot[slot] != NULL)
		return -EBUSY;
	/* Completions of its last connection still wait for room in a CQ. */
	if (qp->state == SAN_ULP_QP_ENDED && !san_ulp_qp_is_idle(ulp, qpn))
		return -EBUSY;
	qp->state = SAN_ULP_QP_BOUND;
	qp->slot = slot;
	qp->pkey = pkey;
	qp->blocked = false;
	qp->ends = qp->failed = qp->is_known = false;
	qp->nb_guesses = 0;
	qp->peer = *peer;
	ulp->qp_of_slot[slot] = qp;
	san_ulp_qp_mark(ulp, qp);
	return 0;
}

/* ---- the end on error (RT-40) ---- */

void
san_ulp_qp_end_on_error(struct san_ulp *ulp, uint32_t qpn)
{
	struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);

	if (qp != NULL && qp->state == SAN_ULP_QP_BOUND)
		qp->ends = true;
}

/* Called by tl, which must not be called back: the owner ends the connection later. */
void
san_ulp_qp_fail(struct san_ulp *ulp, struct san_ulp_qp *qp)
{
	qp->failed = true;
	ulp_qp_unlist(ulp, qp);
	qp->listed = SAN_ULP_IN_FAILED;
	TAILQ_INSERT_TAIL(&ulp->failed, qp, link);
}

uint32_t
san_ulp_qp_next_failed(struct san_ulp *ulp)
{
	struct san_ulp_qp *qp = TAILQ_FIRST(&ulp->failed);

	if (qp == NULL)
		return SAN_QPN_NONE;
	ulp_qp_unlist(ulp, qp);
	return qp->qpn;
}

int
san_ulp_qp_renew(struct san_ulp *ulp, uint32_t qpn)
{
	struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);

	if (qp == NULL)
		return -EINVAL;
	if (qp->state == SAN_ULP_QP_BOUND)
		return -EISCONN;
	/* Completions of its last connection still wait for room in a CQ. */
	if (qp->state == SAN_ULP_QP_ENDED && !san_ulp_qp_is_idle(ulp, qpn))
		return -EBUSY;
	qp->state = SAN_ULP_QP_IDLE;
	return 0;
}

/* ---- receives ---- */

struct san_ulp_rqe *
san_ulp_qp_take_recv(struct san_ulp_qp *qp)
{
	struct san_ulp_rqe *e;

	if (san_ulp_qp_nb_posted(qp) == 0 || !san_ulp_cq_reserve_recv(qp->recv_cq))
		return NULL;
	e = &qp->rq->rqes[qp->rq->queue[qp->rq->head++ & (qp->rq->depth - 1)]];
	SAN_ASSERT(e->state == SAN_RQE_POSTED);
	e->state = SAN_RQE_TAKEN;
	e->taker = SAN_QPN_INDEX(qp->qpn);
	if (++e->gen == 0)
		e->gen = 1;
	return e;
}

static void
return_recv(struct san_ulp_qp *qp, struct san_ulp_rqe *e)
{
	uint32_t mask = qp->rq->depth - 1;
	uint32_t at = --qp->rq->head;

	/* Unordered: receives posted earlier may have returned after later ones. */
	for (; at + 1 != qp->rq->tail; at++) {
		uint16_t next = qp->rq->queue[(at + 1) & mask];

		if (san_seq_lt(e->seq, qp->rq->rqes[next].seq))
			break;
		qp->rq->queue[at & mask] = next;
	}
	qp->rq->queue[at & mask] = (uint16_t)(e - qp->rq->rqes);
	e->state = SAN_RQE_POSTED;
}

void
san_ulp_qp_returned(struct san_ulp *ulp, struct san_ulp_rq *rq)
{
	struct san_ulp_qp *owner = container_of(rq, struct san_ulp_qp, own_rq);

	if (owner->is_shared)
		san_ulp_qp_mark(ulp, owner); /* tl may be the caller, so the pump does the rest */
}

void
san_ulp_qp_return_recv(struct san_ulp *ulp, struct san_ulp_qp *qp, struct san_ulp_rqe *e)
{
	SAN_ASSERT(e->state == SAN_RQE_TAKEN);
	return_recv(qp, e);
	san_ulp_cq_unreserve(qp->recv_cq);
	san_ulp_qp_returned(ulp, qp->rq);
}

void
san_ulp_qp_complete_recv(struct san_ulp *ulp, struct san_ulp_qp *qp, struct san_ulp_rqe *e,
			 struct san_ulp_wc *wc)
{
	SAN_ASSERT(e->state == SAN_RQE_TAKEN);
	wc->wr_id = e->wr_id;
	wc->qp = qp->qpn;
	san_ulp_cq_put(qp->recv_cq, wc);
	ulp->stats.nb_wcs++;
	e->state = SAN_RQE_FREE;
	san_ulp_rq_free(qp->rq)[qp->rq->nb_free++] = (uint16_t)(e - qp->rq->rqes);
}

/** Complete posted receives as flushed, but not shared ones; without room the rest waits. */
static void
ulp_qp_flush_recvs(struct san_ulp *ulp, struct san_ulp_qp *qp)
{
	struct san_ulp_wc wc = {.op = RTSAN_WC_RECV, .status = RTSAN_WC_FLUSHED};
	struct san_ulp_cq *cq = qp->recv_cq;
	struct san_ulp_rqe *e;

	ulp_qp_unlist(ulp, qp);
	if (qp->rq != &qp->own_rq)
		return;
	while ((e = san_ulp_qp_take_recv(qp)) != NULL)
		san_ulp_qp_complete_recv(ulp, qp, e, &wc);
	if (san_ulp_qp_nb_posted(qp) == 0)
		return;
	SAN_ASSERT(qp->listed == SAN_ULP_UNLISTED);
	if (TAILQ_EMPTY(&cq->full))
		TAILQ_INSERT_TAIL(&ulp->fulls, cq, full_link);
	qp->listed = SAN_ULP_IN_FULL;
	TAILQ_INSERT_TAIL(&cq->full, qp, link);
}

/** Flush everything queued, in order: requests, then receives. */
static void
ulp_qp_flush_work(struct san_ulp *ulp, struct san_ulp_qp *qp)
{
	san_ulp_wr_flush(ulp, qp);
	ulp_qp_flush_recvs(ulp, qp);
}

static bool
is_taken_by(const struct san_ulp_rqe *e, const struct san_ulp_qp *qp)
{
	return e->state == SAN_RQE_TAKEN && e->taker == SAN_QPN_INDEX(qp->qpn);
}

/* Return what pushes of *qp* use of its queue: receives, in their order, and reservations. */
static void
leave_rq(struct san_ulp *ulp, struct san_ulp_qp *qp)
{
	struct san_ulp_rq *rq = qp->rq;
	uint32_t i;

	for (i = 0; i < rq->depth; i++)
		if (is_taken_by(&rq->rqes[i], qp))
			san_ulp_qp_return_recv(ulp, qp, &rq->rqes[i]);
	rq->nb_set_aside -= qp->nb_set_aside;
	qp->nb_set_aside = 0;
	if (qp->is_hungry)
		STAILQ_REMOVE(&rq->hungry, qp, san_ulp_qp, hungry_link);
	qp->is_hungry = false;
	san_ulp_qp_returned(ulp, rq);
}

void
san_ulp_qp_unbind(struct san_ulp *ulp, uint32_t qpn)
{
	struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);

	if (qp == NULL || qp->state == SAN_ULP_QP_ENDED)
		return;
	/* A connection may end before it was bound: the work that waited for it completes, too. */
	if (qp->state == SAN_ULP_QP_BOUND)
		ulp->qp_of_slot[qp->slot] = NULL;
	qp->state = SAN_ULP_QP_ENDED;
	qp->blocked = false;
	leave_rq(ulp, qp);
	ulp_qp_flush_work(ulp, qp);
}

/* Queue pairs that share the receives of *qp* go on without any. */
static void
end_sharing(struct san_ulp *ulp, const struct san_ulp_qp *qp)
{
	struct san_ulp_qp *other;
	uint32_t i;

	for (i = 0; i < ulp->conf.max_qps; i++) {
		other = ulp->qps[i];
		if (other == NULL || other == qp || other->rq != &qp->own_rq)
			continue;
		leave_rq(ulp, other);
		other->rq = &other->own_rq;
	}
}

int
san_ulp_qp_destroy(struct san_ulp *ulp, uint32_t qpn)
{
	struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);
	uint32_t i;

	if (qp == NULL)
		return -EINVAL;
	if (qp->state == SAN_ULP_QP_BOUND)
		return -EBUSY;
	if (qp->is_shared)
		end_sharing(ulp, qp);
	ulp_qp_flush_work(ulp, qp);
	/* Work that finds the CQ full is dropped with the queue pair. */
	for (i = qp->nb_sq_free; i < qp->sq_depth; i++)
		san_ulp_cq_unreserve(qp->send_cq);
	ulp_qp_unlist(ulp, qp);
	qp->send_cq->nb_qps--;
	qp->recv_cq->nb_qps--;
	qp->recv_cq->nb_recv_qps--;
	ulp->qps[san_ulp_qp_index(&ulp->conf, qpn)] = NULL;
	ulp->nb_qps--;
	san_mem_free(ulp->conf.mem, qp, san_ulp_qp_bytes(qp->sq_depth, qp->own_rq.depth));
	return 0;
}

/** Looks at the list in use: an inline request has its data in place of the elements. */
static bool
sgl_names_key(const struct san_ulp_sgl *l, uint32_t key)
{
	uint32_t i;

	for (i = 0; i < l->nb_sge; i++)
		if (l->sge[i].lkey == key)
			return true;
	return false;
}

bool
san_ulp_qp_names_key(const struct san_ulp *ulp, uint32_t key)
{
	const struct san_ulp_qp *qp;
	uint32_t at, i;

	for (at = 0; at < ulp->conf.max_qps; at++) {
		qp = ulp->qps[at];
		if (qp == NULL)
			continue;
		for (i = 0; i < qp->sq_depth; i++)
			if (qp->wqes[i].used && sgl_names_key(&qp->wqes[i].sgl, key))
				return true;
		for (i = 0; i < qp->own_rq.depth; i++)
			if (qp->own_rq.rqes[i].state != SAN_RQE_FREE &&
			    sgl_names_key(&qp->own_rq.rqes[i].sgl, key))
				return true;
	}
	return false;
}

/* Wake those that wait for a receive, while one is left. */
static void
feed_hungry(struct san_ulp *ulp, struct san_ulp_rq *rq, uint64_t now_ns)
{
	struct san_ulp_qp *qp;

	while ((qp = STAILQ_FIRST(&rq->hungry)) != NULL &&
	       san_ulp_qp_nb_posted(qp) > rq->nb_set_aside) {
		STAILQ_REMOVE_HEAD(&rq->hungry, hungry_link);
		qp->is_hungry = false;
		san_tl_on_recv_posted(ulp->tl, qp->slot, now_ns);
	}
}

uint32_t
san_ulp_qp_post_recv(struct san_ulp *ulp, uint32_t qpn, const struct san_ulp_recv *r, uint32_t n,
		     uint64_t now_ns)
{
	struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);
	struct san_ulp_rq *rq;
	uint32_t i;

	if (qp == NULL)
		return 0;
	rq = &qp->own_rq;
	n = RTE_MIN(n, rq->nb_free);
	for (i = 0; i < n; i++) {
		uint16_t at = san_ulp_rq_free(rq)[--rq->nb_free];
		struct san_ulp_rqe *e = &rq->rqes[at];

		e->wr_id = r[i].wr_id;
		san_ulp_sgl_copy(&e->sgl, e->sge, r[i].sge, r[i].nb_sge);
		e->room = san_ulp_sgl_len(&e->sgl);
		e->seq = rq->seq++;
		e->state = SAN_RQE_POSTED;
		rq->queue[rq->tail++ & (rq->depth - 1)] = at;
	}
	if (n == 0)
		return 0;
	if (qp->state == SAN_ULP_QP_BOUND)
		san_tl_on_recv_posted(ulp->tl, qp->slot, now_ns);
	else if (qp->state == SAN_ULP_QP_ENDED)
		ulp_qp_flush_recvs(ulp, qp);
	if (unlikely(qp->is_shared))
		feed_hungry(ulp, rq, now_ns);
	return n;
}

void
san_ulp_qp_pump(struct san_ulp *ulp, uint64_t now_ns)
{
	struct san_ulp_qp *last = TAILQ_LAST(&ulp->pump, san_ulp_qps);
	struct san_ulp_qp *qp;
	struct san_ulp_cq *cq;
	uint32_t i;

	/*
	 * Flush ended queue pairs that wait for room in a CQ, when there is room. Each full queue
	 * is checked once, a few per round, in turn (RT-36).
	 */
	for (i = 0; unlikely((cq = TAILQ_FIRST(&ulp->fulls)) != NULL) && i < FULL_VISITS; i++) {
		TAILQ_REMOVE(&ulp->fulls, cq, full_link);
		TAILQ_INSERT_TAIL(&ulp->fulls, cq, full_link);
		while (!TAILQ_EMPTY(&cq->full) && san_ulp_cq_has(cq, 0))
			ulp_qp_flush_recvs(ulp, TAILQ_FIRST(&cq->full));
	}
	/* Queue pairs marked meanwhile are left to the next loop, or this one might never end. */
	do {
		qp = TAILQ_FIRST(&ulp->pump);
		if (qp == NULL)
			return;
		ulp_qp_unlist(ulp, qp);
		if (qp->state == SAN_ULP_QP_BOUND)
			san_ulp_wr_submit(ulp, qp, now_ns);
		if (unlikely(qp->is_shared)) {
			if (qp->state == SAN_ULP_QP_ENDED)
				ulp_qp_flush_recvs(ulp, qp);
			feed_hungry(ulp, &qp->own_rq, now_ns);
		}
	} while (qp != last);
}

bool
san_ulp_qp_has_work(const struct san_ulp *ulp)
{
	/* Those that wait for room wait until an application polls. */
	return !TAILQ_EMPTY(&ulp->pump) || !TAILQ_EMPTY(&ulp->failed);
}

uint32_t
san_ulp_qp_nb_taken(const struct san_ulp_qp *qp)
{
	uint32_t i, nb = 0;

	for (i = 0; i < qp->rq->depth; i++)
		nb += is_taken_by(&qp->rq->rqes[i], qp);
	return nb;
}

void
san_ulp_qp_check(const struct san_ulp *ulp, const struct san_ulp_qp *qp)
{
	uint32_t nb_queued = qp->sq_tail - qp->sq_head;
	const struct san_ulp_rq *rq = &qp->own_rq;
	uint32_t nb_taken = 0, nb_used = 0, i;

	SAN_VERIFY(san_ulp_qp_get(ulp, qp->qpn) == qp);
	SAN_VERIFY((qp->state == SAN_ULP_QP_BOUND) == (san_ulp_qp_of(ulp, qp->slot) == qp->qpn));
	SAN_VERIFY(qp->nb_sq_free + nb_queued <= qp->sq_depth);
	for (i = 0; i < nb_queued; i++) {
		const struct san_ulp_wqe *e = &qp->wqes[qp->sq[(qp->sq_head + i) &
							       (qp->sq_depth - 1)]];

		SAN_VERIFY(e->used && !e->whole);
		/* Only the first may be submitted in part. */
		SAN_VERIFY(i == 0 || (e->submitted == 0 && e->nb_out == 0));
	}
	for (i = 0; i < qp->sq_depth; i++)
		nb_used += qp->wqes[i].used;
	SAN_VERIFY(qp->nb_sq_free + nb_used == qp->sq_depth);
	for (i = 0; i < rq->depth; i++)
		nb_taken += rq->rqes[i].state == SAN_RQE_TAKEN;
	SAN_VERIFY(rq->nb_free + (rq->tail - rq->head) + nb_taken == rq->depth);
	for (i = rq->head; i != rq->tail; i++) {
		const struct san_ulp_rqe *e = &rq->rqes[rq->queue[i & (rq->depth - 1)]];
		const struct san_ulp_rqe *next = &rq->rqes[rq->queue[(i + 1) & (rq->depth - 1)]];

		SAN_VERIFY(e->state == SAN_RQE_POSTED);
		SAN_VERIFY(i + 1 == rq->tail || san_seq_lt(e->seq, next->seq));
	}
}

bool
san_ulp_qp_view(const struct san_ulp *ulp, uint32_t qpn, struct san_ulp_qp_view *out)
{
	const struct san_ulp_qp *qp = san_ulp_qp_get(ulp, qpn);

	if (qp == NULL)
		return false;
	*out = (struct san_ulp_qp_view){
		.sq_depth = qp->sq_depth,
		.rq_depth = qp->rq->depth,
		.nb_requests = qp->sq_depth - qp->nb_sq_free,
		.nb_waiting = qp->sq_tail - qp->sq_head,
		.nb_recvs = san_ulp_qp_nb_posted(qp),
		.is_bound = qp->state == SAN_ULP_QP_BOUND,
		.traffic = {
			.nb_tx = qp->nb_tx,
			.tx_bytes = qp->tx_bytes,
			.nb_rx = qp->nb_rx,
			.rx_bytes = qp->rx_bytes,
		},
	};
	return true;
}
