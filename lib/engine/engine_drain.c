/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Closing a port that other processes use. Work posted before is done, then the connections end in
 * order. An application that keeps posting must not delay the end, so only the entries that were in
 * its send queue at the first call count. (SYS-2)
 */

#include <errno.h>

#include "engine_priv.h"

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

uint32_t
san_engine_drain(struct san_engine *e)
{
	uint32_t i, left = san_core_share_nb_orphans(e->core);

	for (i = 0; i < e->conf.ulp.max_qps; i++)
		if (e->qps[i].wq.wq != NULL && e->qps[i].app != 0 &&
		    !engine_drain_qp_is_over(e, &e->qps[i]))
			left++;
	return left;
}

void
san_engine_drain_cut(struct san_engine *e)
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
}
