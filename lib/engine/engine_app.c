/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Applications in other processes. They share their queues with the daemon and can write anything
 * there at any time (SYS-5). Therefore an entry is copied first, then checked, and only the copy is
 * used. An address in it is looked up in the application's own regions and replaced by the daemon's
 * address of that byte. An index is accepted only if it lies in the ring. An invalid entry ends its
 * queue pair and nothing else.
 */

#define ALLOW_EXPERIMENTAL_API /* see view_trace.h: before the first header of DPDK */

#include <sys/epoll.h>

#include "engine_priv.h"
#include "view_trace.h"

#define APP_BURST 32  /* entries that are copied at once */
#define APP_VISIT 128 /* most entries of a visit: the application may post on meanwhile */
#define APP_ROUND 256 /* most entries of one application in a round of the lcore */
#define FLAGS_ALL \
	(RTSAN_WR_SIGNALED | RTSAN_WR_INLINE | RTSAN_WR_SOLICITED | RTSAN_WR_UNSOLICITED)
#define FORCED       (RTSAN_WR_SOLICITED | RTSAN_WR_UNSOLICITED)
#define STREAM_FLAGS (RTSAN_WR_SIGNALED | RTSAN_WR_INLINE | RTSAN_WR_OOB)
#define RECV_FLAGS   (RTSAN_RECV_PEEK | RTSAN_RECV_WAITALL | RTSAN_RECV_DONTWAIT)

/* ---- applications ---- */

int
san_engine_app_add(struct san_engine *e, uint16_t app, uint32_t user,
		   struct san_doorbells *doorbells, int wake_fd)
{
	int rc = 0;

	if (app >= SAN_ENGINE_APPS)
		return -EINVAL;
	if (e->apps[app].doorbells != NULL)
		return -EEXIST;
	if (wake_fd >= 0)
		rc = san_engine_idle_add(e, wake_fd);
	if (rc != 0)
		return rc;
	/* the counters are kept: they are from before a restart */
	e->apps[app].user = user;
	e->apps[app].doorbells = doorbells;
	e->apps[app].wake_fd = wake_fd;
	e->nb_apps = RTE_MAX(e->nb_apps, app + 1u);
	san_trace_attach(e->id, app);
	return 0;
}

void
san_engine_app_del(struct san_engine *e, uint16_t app)
{
	/* closing the descriptor would not remove it from epoll: the application has it open */
	if (e->apps[app].doorbells != NULL && e->apps[app].wake_fd >= 0)
		epoll_ctl(e->epoll, EPOLL_CTL_DEL, e->apps[app].wake_fd, NULL);
	san_trace_detach(e->id, app);
	e->apps[app] = (struct san_engine_app){.doorbells = NULL};
	while (e->nb_apps > 0 && e->apps[e->nb_apps - 1].doorbells == NULL)
		e->nb_apps--;
}

/* ---- entries: these return NULL, or what is wrong ---- */

static const char *
take_sges(const struct san_engine *e, uint16_t app, struct rtsan_sge *sge, uint8_t nb_sge,
	  uint64_t *length)
{
	const struct san_ulp *ulp = san_core_ulp(e->core);
	uint8_t i;

	*length = 0;
	if (nb_sge > RTSAN_SGE_MAX)
		return "more parts than an entry has";
	for (i = 0; i < nb_sge; i++) {
		*length += sge[i].length;
		if (sge[i].length == 0) {
			sge[i] = (struct rtsan_sge){0};
			continue;
		}
		sge[i].addr = san_ulp_mr_find(ulp, sge[i].lkey, app, (uintptr_t)sge[i].addr,
					      sge[i].length);
		if (sge[i].addr == NULL)
			return "memory outside its regions";
	}
	return NULL;
}

static const char *
take_send(const struct san_engine *e, const struct san_engine_qp *q, struct san_ulp_wr *wr)
{
	bool atomic = san_wr_is_atomic(wr->op);
	const char *why = NULL;
	uint64_t length;

	/*
	 * Operations without payload. The session checks their values. Loans are not offered to
	 * other processes, neither here nor in RECV_FLAGS: message buffers lie in memory of the
	 * daemon, for which an application has no address.
	 */
	if (q->is_stream && wr->op != RTSAN_WR_SEND) {
		if (wr->op < SAN_WR_WAIT || wr->op > SAN_WR_OPTION)
			return "no operation of streams";
		if ((wr->flags & ~RTSAN_WR_SIGNALED) != 0)
			return "unknown flags";
		return wr->nb_sge != 0 || wr->length != 0 ? "no parts belong to that" : NULL;
	}
	if (!q->is_stream && (wr->op < RTSAN_WR_SEND || wr->op > RTSAN_WR_SEND_IMM))
		return "unknown operation";
	if ((wr->flags & ~(q->is_stream ? STREAM_FLAGS : FLAGS_ALL)) != 0 ||
	    (wr->flags & FORCED) == FORCED)
		return "unknown flags";
	if ((wr->flags & RTSAN_WR_INLINE) != 0) {
		if (!san_wr_is_push(wr->op) || wr->inline_len > RTSAN_INLINE_MAX)
			return "no inline data of that kind";
		length = wr->inline_len;
	} else {
		why = take_sges(e, q->app, wr->sge, wr->nb_sge, &length);
	}
	if (why != NULL)
		return why;
	if (length > SAN_WIRE_LENGTH_MAX || length != wr->length)
		return "wrong length";
	return atomic && length != SAN_ULP_ATOMIC_LEN ? "atomic of another length" : NULL;
}

/* ---- rings ---- */

void
san_engine_app_refill(struct san_engine *e)
{
	uint32_t i;

	for (i = 1; i < e->nb_apps; i++)
		e->apps[i].left = APP_ROUND;
}

/* Number of entries to copy in one piece from *head*; 0 and a fault if *count* is impossible. */
static uint32_t
engine_app_entries(const struct san_spsc_cons *c, uint32_t count, const char **why)
{
	uint32_t to_end = c->mask + 1 - (c->head & c->mask);

	if (unlikely(count > c->mask + 1)) {
		*why = "more entries than the ring has";
		return 0;
	}
	return RTE_MIN(RTE_MIN(count, to_end), (uint32_t)APP_BURST);
}

/* Entries in the send queue; during a drain, only those that were there when it began. */
static uint32_t
count_sends(struct san_engine_qp *q)
{
	uint32_t n = san_spsc_count(&q->wq.sq, &q->wq.wq->sq_tail);

	return q->end == SAN_QP_ENDING ? RTE_MIN(n, q->sq_last - q->wq.sq.head) : n;
}

/* Returns false if entries are left. */
static bool
drain_recvs(struct san_engine *e, struct san_engine_qp *q, const char **why)
{
	struct san_wq_cons *w = &q->wq;
	struct san_ulp_recv r[APP_BURST];
	uint64_t length;
	uint32_t n, i, taken, sum, max = RTE_MIN(e->apps[q->app].left, (uint32_t)APP_VISIT);

	for (sum = 0; (n = san_spsc_count(&w->rq, &w->wq->rq_tail)) != 0; sum += n) {
		if (sum >= max)
			return false;
		n = RTE_MIN(engine_app_entries(&w->rq, n, why), max - sum);
		memcpy(r, &w->rqe[w->rq.head & w->rq.mask], n * sizeof(r[0]));
		for (i = 0; i < n && *why == NULL; i++) {
			if ((r[i].flags & ~(q->is_stream ? RECV_FLAGS : 0)) != 0)
				*why = "unknown flags of a receive";
			else
				*why = take_sges(e, q->app, r[i].sge, r[i].nb_sge, &length);
		}
		if (*why != NULL)
			return true;
		taken = san_core_post_recv(e->core, q->qpn, r, n, e->now_ns);
		san_spsc_pop(&w->rq, &w->wq->rq_head, taken);
		e->apps[q->app].left -= taken;
		if (taken < n)
			return false;
	}
	return true;
}

static bool
drain_sends(struct san_engine *e, struct san_engine_qp *q, const char **why)
{
	struct san_wq_cons *w = &q->wq;
	struct san_ulp_wr wr[APP_BURST];
	uint32_t n, i, taken, sum, max = RTE_MIN(e->apps[q->app].left, (uint32_t)APP_VISIT);

	for (sum = 0; (n = count_sends(q)) != 0; sum += n) {
		if (sum >= max)
			return false;
		n = RTE_MIN(engine_app_entries(&w->sq, n, why), max - sum);
		memcpy(wr, &w->wq->sqe[w->sq.head & w->sq.mask], n * sizeof(wr[0]));
		for (i = 0; i < n && *why == NULL; i++)
			*why = take_send(e, q, &wr[i]);
		if (*why != NULL)
			return true;
		taken = san_core_post(e->core, q->qpn, wr, n, e->now_ns);
		san_spsc_pop(&w->sq, &w->wq->sq_head, taken);
		e->apps[q->app].left -= taken;
		if (taken < n)
			return false;
	}
	return true;
}

bool
san_engine_app_drain(struct san_engine *e, struct san_engine_qp *q)
{
	const char *why = NULL;
	bool all;

	if (q->fault != NULL)
		return true; /* nothing is taken from its rings any more */
	all = drain_recvs(e, q, &why);
	if (why == NULL)
		all = drain_sends(e, q, &why) && all;
	if (why == NULL)
		return all;
	q->fault = why;
	e->stats.nb_app_faults++;
	e->apps[q->app].nb_faults++;
	san_trace_fault(e->id, q->app, q->qpn, why);
	san_core_conn_abort(e->core, q->qpn, e->now_ns);
	return true;
}

/*
 * ---- closing a port that other processes use ----
 *
 * Work posted before is done, then the connections end in order. An application that keeps posting
 * must not delay the end, so only the entries that were in its send queue at the first call count.
 * (SYS-2)
 */

static bool
engine_drain_qp_is_over(struct san_engine *e, struct san_engine_qp *q)
{
	if (q->end == SAN_QP_OPEN) {
		q->sq_last = atomic_load_explicit(&q->wq.wq->sq_tail, memory_order_acquire);
		q->end = SAN_QP_ENDING;
	}
	if (q->end == SAN_QP_ENDING) {
		/* its doorbell has been rung, or will be: the loop takes the rest */
		if (q->fault == NULL && q->wq.sq.head != q->sq_last)
			return false;
		/* repeating it is harmless, and the result says when the connection has ended */
		if (san_core_conn_disconnect(e->core, q->qpn, false, e->now_ns) != -ENOTCONN)
			return false;
		q->end = SAN_QP_ENDED;
	}
	return san_engine_app_drain(e, q);
}

int
san_engine_drain(struct san_engine *e, void *none __rte_unused)
{
	uint32_t i, left = san_core_share_use(e->core)->nb_orphans;

	for (i = 0; i < e->conf.ulp.max_qps; i++)
		if (e->qps[i].wq.wq != NULL && e->qps[i].app != 0 &&
		    !engine_drain_qp_is_over(e, &e->qps[i]))
			left++;
	return (int)left;
}

int
san_engine_drain_cut(struct san_engine *e, void *none __rte_unused)
{
	uint32_t i;

	for (i = 0; i < e->conf.ulp.max_qps; i++) {
		struct san_engine_qp *q = &e->qps[i];

		if (q->wq.wq == NULL || q->app == 0)
			continue;
		san_core_conn_abort(e->core, q->qpn, e->now_ns);
		q->end = SAN_QP_ENDED;
	}
	san_core_stream_cut_all(e->core, e->now_ns);
	return 0;
}
