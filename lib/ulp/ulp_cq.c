/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Whoever may have something to report reserves its entry before it starts
 * (RT-23: a receive without one is receiver-not-ready), so putting never
 * fails and a completion is never lost. The alternative, a queue that overruns
 * and fails as InfiniBand's does, makes the program count for itself.
 *
 * Requests reserve when they are posted, receives when a message arrives. Where
 * both share a queue, requests leave it one entry: two programs that post requests
 * without end would refuse each other's messages, and no request would complete.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "san_assert.h"
#include "ulp_priv.h"

int
san_ulp_cq_create(struct san_ulp *ulp, uint32_t depth, struct san_ulp_cq **out)
{
	struct san_ulp_cq *cq;
	uint32_t size;

	if (depth == 0 || depth > SAN_ULP_CQ_MAX)
		return -EINVAL;
	if (ulp->nb_cqs == ulp->conf.max_cqs)
		return -ENOSPC;
	size = rte_align32pow2(RTE_MAX(depth, 2u)); /* one for receives, one for requests */
	cq = aligned_alloc(64, sizeof(*cq));
	if (cq == NULL)
		return -ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->ring = aligned_alloc(64, RTE_ALIGN_CEIL((size_t)size * sizeof(cq->ring[0]), 64));
	if (cq->ring == NULL) {
		free(cq);
		return -ENOMEM;
	}
	cq->mask = size - 1;
	san_spsc_init(&cq->q, size);
	*out = cq;
	return san_ulp_cq_join(ulp, cq);
}

/* Its place in the table; max_cqs: it is not there. */
static uint32_t
place_of(const struct san_ulp *ulp, const struct san_ulp_cq *cq)
{
	uint32_t i;

	for (i = 0; i < ulp->conf.max_cqs && ulp->cqs[i] != cq; i++)
		;
	return i;
}

bool
san_ulp_cq_is_of(const struct san_ulp *ulp, const struct san_ulp_cq *cq)
{
	return place_of(ulp, cq) < ulp->conf.max_cqs;
}

int
san_ulp_cq_join(struct san_ulp *ulp, struct san_ulp_cq *cq)
{
	uint32_t i = place_of(ulp, NULL);

	if (i == ulp->conf.max_cqs)
		return -ENOSPC;
	ulp->cqs[i] = cq;
	ulp->nb_cqs++;
	return 0;
}

int
san_ulp_cq_leave(struct san_ulp *ulp, struct san_ulp_cq *cq)
{
	uint32_t i = place_of(ulp, cq);

	if (cq->nb_qps > 0)
		return -EBUSY;
	SAN_VERIFY(i < ulp->conf.max_cqs);
	ulp->cqs[i] = NULL;
	ulp->nb_cqs--;
	return 0;
}

void
san_ulp_cq_free(struct san_ulp_cq *cq)
{
	free(cq->ring);
	free(cq);
}

uint32_t
san_ulp_cq_nb_qps(const struct san_ulp_cq *cq)
{
	return cq->nb_qps;
}

int
san_ulp_cq_destroy(struct san_ulp *ulp, struct san_ulp_cq *cq)
{
	int rc = san_ulp_cq_leave(ulp, cq);

	if (rc == 0)
		san_ulp_cq_free(cq);
	return rc;
}

uint32_t
san_ulp_cq_poll(struct san_ulp_cq *cq, struct san_ulp_wc *wc, uint32_t n)
{
	uint32_t head;
	uint32_t count = san_spsc_count(&cq->q, &head);
	uint32_t first;

	if (count == 0)
		return 0;
	if (count < n) {
		/* pairs with the release in san_spsc_push(): who asks for all gets all */
		cq->q.tail_seen = atomic_load_explicit(&cq->q.tail, memory_order_acquire);
		count = cq->q.tail_seen - head;
	}
	n = RTE_MIN(n, count);
	head &= cq->mask;
	first = RTE_MIN(n, cq->mask + 1 - head);
	memcpy(wc, &cq->ring[head], first * sizeof(wc[0]));
	memcpy(wc + first, cq->ring, (n - first) * sizeof(wc[0]));
	san_spsc_pop(&cq->q, n);
	return n;
}

/* One more entry, so that *left* stay free. */
static bool
reserve(struct san_ulp_cq *cq, uint32_t left)
{
	uint32_t taken = cq->nb_reserved + left, tail;

	if (san_spsc_room(&cq->q, &tail) <= taken &&
	    /* that was from the copy of the consumer's index: look again */
	    cq->mask + 1 - san_spsc_pending(&cq->q) <= taken)
		return false;
	cq->nb_reserved++;
	return true;
}

bool
san_ulp_cq_reserve_send(struct san_ulp_cq *cq)
{
	return reserve(cq, cq->nb_recv_qps != 0);
}

bool
san_ulp_cq_reserve_recv(struct san_ulp_cq *cq)
{
	return reserve(cq, 0);
}

void
san_ulp_cq_unreserve(struct san_ulp_cq *cq)
{
	SAN_ASSERT(cq->nb_reserved > 0);
	cq->nb_reserved--;
}

void
san_ulp_cq_put(struct san_ulp_cq *cq, const struct san_ulp_wc *wc)
{
	uint32_t tail = atomic_load_explicit(&cq->q.tail, memory_order_relaxed);

	SAN_ASSERT(cq->nb_reserved > 0);
	cq->ring[tail & cq->mask] = *wc;
	cq->nb_reserved--;
	san_spsc_push(&cq->q, 1);
}

void
san_ulp_cq_check(const struct san_ulp *ulp, const struct san_ulp_cq *cq)
{
	uint32_t pending = atomic_load(&cq->q.tail) - atomic_load(&cq->q.head);
	uint32_t nb_reserved = 0;
	uint32_t nb_recv_qps = 0;
	uint32_t nb_qps = 0;
	uint32_t i;

	SAN_VERIFY(pending <= cq->mask + 1);
	SAN_VERIFY(cq->nb_reserved <= cq->mask + 1 - pending);
	for (i = 0; i < ulp->conf.max_qps; i++) {
		const struct san_ulp_qp *qp = ulp->qps[i];

		if (qp == NULL)
			continue;
		if (qp->send_cq == cq) {
			nb_qps++;
			nb_reserved += qp->sq_depth - qp->nb_sq_free;
		}
		if (qp->recv_cq == cq) {
			nb_qps++;
			nb_recv_qps++;
			nb_reserved += qp->rq_depth - qp->nb_rq_free - san_ulp_qp_nb_posted(qp);
		}
	}
	SAN_VERIFY(nb_qps == cq->nb_qps);
	SAN_VERIFY(nb_recv_qps == cq->nb_recv_qps);
	SAN_VERIFY(nb_reserved == cq->nb_reserved);
}
