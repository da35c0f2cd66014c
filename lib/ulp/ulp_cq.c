/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Work reserves its completion entry before it starts (RT-23: a receive without one is
 * receiver-not-ready). So writing an entry never fails, and no completion is lost. The alternative
 * is a queue that overruns and fails, as in InfiniBand; then the application must count entries
 * itself.
 *
 * Requests reserve when they are posted, receives when a message arrives. If both share a queue,
 * requests leave one entry free. Otherwise two applications that keep posting requests would refuse
 * each other's messages, and no request would complete.
 */

#include <stdlib.h>

#include "ulp_priv.h"

/* A queue over *mem*, which is not listed; NULL: no memory. */
static struct san_ulp_cq *
cq_alloc(struct san_ulp *ulp, uint32_t depth, struct san_cq *mem, int waiter)
{
	struct san_ulp_cq *cq = san_mem_aligned(ulp->conf.mem, sizeof(*cq));

	if (cq == NULL)
		return NULL;
	cq->mem = mem;
	cq->waiter = waiter;
	TAILQ_INIT(&cq->full);
	san_spsc_prod_init(&cq->q, depth);
	san_spsc_cons_init(&cq->consumer, depth);
	return cq;
}

int
san_ulp_cq_create_at(struct san_ulp *ulp, uint32_t depth, struct san_cq *mem,
		     struct san_ulp_cq **out)
{
	struct san_ulp_cq *cq;
	int rc;

	if (depth < 2 || !rte_is_power_of_2(depth))
		return -EINVAL;
	cq = cq_alloc(ulp, depth, mem, -1);
	if (cq == NULL)
		return -ENOMEM;
	rc = san_ulp_cq_join(ulp, cq);
	if (rc != 0)
		san_mem_free(ulp->conf.mem, cq, sizeof(*cq));
	else
		*out = cq;
	return rc;
}

int
san_ulp_cq_create(struct san_ulp *ulp, uint32_t depth, struct san_ulp_cq **out)
{
	struct san_cq *mem;
	int rc;

	if (depth == 0 || depth > SAN_ULP_CQ_MAX)
		return -EINVAL;
	depth = san_ulp_cq_depth(depth);
	mem = aligned_alloc(SAN_LINE, san_wr_cq_bytes(depth));
	if (mem == NULL)
		return -ENOMEM;
	memset(mem, 0, sizeof(*mem));
	rc = san_ulp_cq_create_at(ulp, depth, mem, out);
	if (rc != 0)
		free(mem);
	else
		(*out)->is_ours = true;
	return rc;
}

size_t
san_ulp_cq_own_bytes(uint32_t depth)
{
	return sizeof(struct san_ulp_cq) + san_wr_cq_bytes(depth);
}

int
san_ulp_cq_create_own(struct san_ulp *ulp, uint32_t depth, struct san_ulp_cq **out)
{
	struct san_mem *mem = ulp->conf.mem;
	struct san_ulp_cq *cq;
	struct san_cq *entries;

	if (depth < 2 || depth > SAN_ULP_CQ_MAX || !rte_is_power_of_2(depth))
		return -EINVAL;
	entries = san_mem_aligned(mem, san_wr_cq_bytes(depth));
	if (entries == NULL)
		return -ENOMEM;
	cq = cq_alloc(ulp, depth, entries, SAN_ULP_CQ_OWN);
	if (cq == NULL) {
		san_mem_free(mem, entries, san_wr_cq_bytes(depth));
		return -ENOMEM;
	}
	cq->ulp = ulp;
	LIST_INSERT_HEAD(&ulp->owns, cq, own_link);
	*out = cq;
	return 0;
}

/* ---- notification ---- */

static struct san_ulp_cq **
ulp_cq_notified_list(struct san_ulp_cq *cq)
{
	return cq->waiter == SAN_ULP_CQ_OWN ? &cq->ulp->own_notified : &cq->ulp->notified;
}

void
san_ulp_cq_notify(struct san_ulp_cq *cq)
{
	struct san_ulp_cq **at = ulp_cq_notified_list(cq);

	if (cq->is_notified)
		return;
	cq->is_notified = true;
	cq->notified_next = *at;
	*at = cq;
}

static void
ulp_cq_unnotify(struct san_ulp_cq *cq)
{
	struct san_ulp_cq **at = ulp_cq_notified_list(cq);

	if (!cq->is_notified)
		return;
	while (*at != cq)
		at = &(*at)->notified_next;
	*at = cq->notified_next;
	cq->is_notified = false;
}

void
san_ulp_cq_watch(struct san_ulp_cq *cq, int waiter)
{
	if (waiter < 0)
		ulp_cq_unnotify(cq);
	cq->waiter = waiter;
}

int
san_ulp_cq_waiter(const struct san_ulp_cq *cq)
{
	return cq->waiter;
}

bool
san_ulp_cq_arm(struct san_ulp_cq *cq)
{
	return san_spsc_arm(&cq->consumer, &cq->mem->tail, &cq->mem->armed);
}

int
san_ulp_cq_wake_next(struct san_ulp *ulp)
{
	struct san_ulp_cq *cq;

	while ((cq = ulp->notified) != NULL) {
		ulp_cq_unnotify(cq);
		if (san_spsc_must_wake(&cq->mem->armed))
			return cq->waiter;
	}
	return -1;
}

void
san_ulp_cq_wake_all(struct san_ulp *ulp)
{
	uint32_t i;

	for (i = 0; i < ulp->conf.max_cqs; i++)
		if (ulp->cqs[i] != NULL && ulp->cqs[i]->waiter >= 0)
			san_ulp_cq_notify(ulp->cqs[i]);
}

struct san_ulp_cq *
san_ulp_cq_next_own(struct san_ulp *ulp)
{
	struct san_ulp_cq *cq = ulp->own_notified;

	if (cq != NULL)
		ulp_cq_unnotify(cq);
	return cq;
}

bool
san_ulp_cq_has_own(const struct san_ulp *ulp)
{
	return ulp->own_notified != NULL;
}

/* ---- tables ---- */

/* Index in the table; max_cqs: not found. */
static uint32_t
ulp_cq_place_of(const struct san_ulp *ulp, const struct san_ulp_cq *cq)
{
	uint32_t i;

	for (i = 0; i < ulp->conf.max_cqs && ulp->cqs[i] != cq; i++)
		;
	return i;
}

bool
san_ulp_cq_is_of(const struct san_ulp *ulp, const struct san_ulp_cq *cq)
{
	return ulp_cq_place_of(ulp, cq) < ulp->conf.max_cqs;
}

int
san_ulp_cq_join(struct san_ulp *ulp, struct san_ulp_cq *cq)
{
	uint32_t i = ulp_cq_place_of(ulp, NULL);

	if (i == ulp->conf.max_cqs)
		return -ENOSPC;
	ulp->cqs[i] = cq;
	ulp->nb_cqs++;
	cq->ulp = ulp;
	if (cq->waiter >= 0) /* the last entries from the other lcore may not be notified yet */
		san_ulp_cq_notify(cq);
	return 0;
}

int
san_ulp_cq_leave(struct san_ulp *ulp, struct san_ulp_cq *cq)
{
	uint32_t i = ulp_cq_place_of(ulp, cq);

	if (cq->nb_qps > 0)
		return -EBUSY;
	SAN_VERIFY(i < ulp->conf.max_cqs);
	ulp_cq_unnotify(cq);
	ulp->cqs[i] = NULL;
	ulp->nb_cqs--;
	return 0;
}

void
san_ulp_cq_free(struct san_ulp *ulp, struct san_ulp_cq *cq)
{
	if (cq->waiter == SAN_ULP_CQ_OWN)
		san_mem_free(ulp->conf.mem, cq->mem, san_wr_cq_bytes(cq->q.mask + 1));
	else if (cq->is_ours)
		free(cq->mem);
	san_mem_free(ulp->conf.mem, cq, sizeof(*cq));
}

uint32_t
san_ulp_cq_nb_qps(const struct san_ulp_cq *cq)
{
	return cq->nb_qps;
}

int
san_ulp_cq_destroy(struct san_ulp *ulp, struct san_ulp_cq *cq)
{
	int rc = 0;

	if (cq->waiter != SAN_ULP_CQ_OWN) {
		rc = san_ulp_cq_leave(ulp, cq);
	} else if (cq->nb_qps > 0) {
		rc = -EBUSY;
	} else {
		ulp_cq_unnotify(cq);
		LIST_REMOVE(cq, own_link);
	}
	if (rc == 0)
		san_ulp_cq_free(ulp, cq);
	return rc;
}

uint32_t
san_ulp_cq_poll(struct san_ulp_cq *cq, struct san_ulp_wc *wc, uint32_t n)
{
	return san_wr_cq_poll(&cq->consumer, cq->mem, wc, n);
}

bool
san_ulp_cq_reserve_recv(struct san_ulp_cq *cq)
{
	if (!san_ulp_cq_has(cq, 0))
		return false;
	cq->nb_reserved++;
	return true;
}

void
san_ulp_cq_hold(struct san_ulp_cq *cq)
{
	cq->nb_qps++;
	cq->nb_holds++;
}

void
san_ulp_cq_drop(struct san_ulp_cq *cq)
{
	SAN_ASSERT(cq->nb_holds > 0);
	cq->nb_qps--;
	cq->nb_holds--;
}

bool
san_ulp_cq_give(struct san_ulp_cq *cq, const struct san_ulp_wc *wc)
{
	if (!san_ulp_cq_reserve_recv(cq))
		return false;
	san_ulp_cq_put(cq, wc);
	cq->ulp->stats.nb_wcs++;
	return true;
}

void
san_ulp_cq_check(const struct san_ulp *ulp, const struct san_ulp_cq *cq)
{
	uint32_t pending = cq->q.tail - atomic_load(&cq->mem->head);
	uint32_t i, nb_reserved = 0, nb_recv_qps = 0, nb_qps = 0;

	SAN_VERIFY(pending <= cq->q.mask + 1);
	SAN_VERIFY(cq->nb_reserved <= cq->q.mask + 1 - pending);
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
			nb_reserved += san_ulp_qp_nb_taken(qp);
		}
	}
	SAN_VERIFY(nb_qps + cq->nb_holds == cq->nb_qps);
	SAN_VERIFY(nb_recv_qps == cq->nb_recv_qps);
	SAN_VERIFY(nb_reserved == cq->nb_reserved);
}
