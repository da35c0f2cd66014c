/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "engine_conn.h"
#include "engine_priv.h"

#define SLICE 256 /* places visited in one call */

static uint16_t
app_of(const struct san_engine *e, uint32_t qpn)
{
	uint32_t index = san_ulp_qp_index(&e->conf.ulp, qpn);

	return index < e->conf.ulp.max_qps ? e->qps[index].app : 0;
}

static void
view_packets(const struct san_pdl *pdl, const struct san_pdl_conn *c, struct san_engine_conn *out)
{
	out->cwnd = san_pdl_cc_window(&c->cc);
	out->first_win = c->pcb.first_win;
	out->virtual_win = san_pdl_pcb_vwin(pdl, c);
	out->req_win = c->tx[SAN_WIN_REQ].size;
	out->data_win = c->tx[SAN_WIN_DATA].size;
	out->limit = san_pdl_pcb_limit(pdl, c);
	out->in_flight = c->pcb.inflight;
	out->srtt_ns = c->rtt.srtt_ns;
	out->rttvar_ns = c->rtt.var_ns;
	out->rtt_base_ns = c->rtt.base_ns;
	out->rto_ns = c->rtt.rto_ns;
	out->nb_tx_pkts = c->nb_tx_pkts;
	out->nb_rx_pkts = c->nb_rx_pkts;
	out->nb_rtx = c->nb_rtx;
	out->nb_fast_rtx = c->nb_fast_rtx;
	out->nb_tlp = c->nb_tlp;
	out->nb_rto = c->nb_rto;
	out->nb_dup = c->nb_dup;
	out->nb_cuts = c->cc.nb_cuts;
}

/*
 * If the application polls the engine, this runs in another thread. It may read single words then,
 * but must not follow pointers that the engine may free: queue pair and reason are unknown.
 */
static void
engine_conn_view(struct san_engine *e, uint32_t slot, struct san_engine_conn *out)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	const struct san_tl *tl = san_core_tl(e->core);
	const struct san_ulp *ulp = san_core_ulp(e->core);
	const struct san_pdl_conn *c = &pdl->conns[slot];

	*out = (struct san_engine_conn){
		.cid = c->cid,
		.dcid = c->dcid,
		.qpn = SAN_QPN_NONE,
		.lcore = e->id,
		.state = c->state,
		.hold = SAN_HOLD_MAX,
		.ordered = c->ordered,
		.relaxed = c->relaxed,
		.peer = c->path.dst,
		.port = c->path.src_port,
		.mtu = c->mtu,
		.pkey = c->pkey,
		.nb_messages = tl->conns[slot].nb_msgs,
		.max_messages = c->pcb.msg_limit,
	};
	view_packets(pdl, c, out);
	if (!e->launched)
		return;
	out->hold = (uint8_t)san_tl_hold(tl, c, e->now_ns);
	out->qpn = san_ulp_qp_of(ulp, (uint16_t)slot);
	if (san_ulp_qp_view(ulp, out->qpn, &out->qp))
		out->app = app_of(e, out->qpn);
	else
		out->qpn = SAN_QPN_NONE;
}

/* ---- pages ---- */

struct page {
	uint32_t slot, end; /**< slots to visit: from, and up to */
	uint16_t app;
	struct san_engine_conn *out;
	uint32_t nb, max;
};

static int
do_page(struct san_engine *e, void *arg)
{
	struct page *page = arg;
	const struct san_pdl *pdl = san_core_pdl(e->core);

	for (; page->slot < page->end && page->nb < page->max; page->slot++) {
		struct san_engine_conn *out = &page->out[page->nb];

		if (pdl->conns[page->slot].state == SAN_CONN_FREE)
			continue;
		engine_conn_view(e, page->slot, out);
		page->nb += page->app == ENGINE_APP_ANY || page->app == out->app;
	}
	return 0;
}

uint32_t
san_engine_conn_all(struct san_engine_port *p, uint32_t from, uint16_t app,
		    struct san_engine_conn *out, uint32_t max, uint32_t *next)
{
	const uint32_t per = p->conf.core.pdl.max_conns, all = per * p->nb_engines;
	struct page page = {.app = app, .out = out, .max = max};
	struct san_engine *e;

	while (from < all && page.nb < max) {
		e = p->engines[from / per];
		page.slot = from % per;
		page.end = RTE_MIN(page.slot + SLICE, per);
		san_engine_loop_read(e, do_page, &page);
		from = e->id * per + page.slot;
	}
	*next = from < all ? from : 0;
	return page.nb;
}

struct one {
	uint32_t cid;
	struct san_engine_conn *out;
};

static int
do_one(struct san_engine *e, void *arg)
{
	const struct one *one = arg;
	const struct san_pdl_conn *c = san_pdl_conn_find(san_core_pdl(e->core), one->cid);

	if (c == NULL)
		return -ENOENT;
	engine_conn_view(e, c->slot, one->out);
	return 0;
}

int
san_engine_conn(struct san_engine_port *p, uint32_t cid, struct san_engine_conn *out)
{
	struct one one = {.cid = cid, .out = out};
	uint32_t lcore = san_pdl_cid_lcore(cid);

	return lcore < p->nb_engines ? san_engine_loop_read(p->engines[lcore], do_one, &one) :
				       -ENOENT;
}

/* ---- sums ---- */

struct count {
	uint32_t at, end;
	union {
		struct san_engine_census *census;
		struct san_engine_app_view *apps;
	};
};

/* Call *fn* for *nb* places of each engine. */
static void
in_slices(struct san_engine_port *p, uint32_t nb, san_engine_fn fn, struct count *count)
{
	uint32_t i;

	for (i = 0; i < p->nb_engines; i++) {
		for (count->at = 0; count->at < nb; count->at = count->end) {
			count->end = RTE_MIN(count->at + SLICE, nb);
			san_engine_loop_read(p->engines[i], fn, count);
		}
	}
}

static int
do_census(struct san_engine *e, void *arg)
{
	const struct count *count = arg;
	const struct san_pdl *pdl = san_core_pdl(e->core);
	const struct san_tl *tl = san_core_tl(e->core);
	uint32_t i;

	for (i = count->at; i < count->end; i++) {
		const struct san_pdl_conn *c = &pdl->conns[i];

		if (c->state == SAN_CONN_FREE)
			continue;
		count->census->holds[e->launched ? san_tl_hold(tl, c, e->now_ns) : SAN_HOLD_MAX]++;
		if (c->rtt.srtt_ns == 0)
			continue;
		count->census->rtt[san_engine_busy_bucket(c->rtt.srtt_ns)]++;
		count->census->rtt_sum_ns += c->rtt.srtt_ns;
	}
	return 0;
}

void
san_engine_conn_count(struct san_engine_port *p, struct san_engine_census *out)
{
	struct count count = {.census = out};

	memset(out, 0, sizeof(*out));
	in_slices(p, p->conf.core.pdl.max_conns, do_census, &count);
}

static int
do_apps(struct san_engine *e, void *arg)
{
	const struct count *count = arg;
	const struct san_ulp *ulp = san_core_ulp(e->core);
	struct san_ulp_qp_view qp;
	uint32_t i;

	for (i = count->at; i < count->end; i++) {
		struct san_engine_app_view *app = &count->apps[e->qps[i].app];

		if (e->qps[i].wq.wq == NULL)
			continue;
		app->nb_qps++;
		/* as in engine_conn_view(): the queue pair itself is read only on its lcore */
		if (!e->launched || !san_ulp_qp_view(ulp, e->qps[i].qpn, &qp))
			continue;
		app->nb_conns += qp.is_bound;
		san_ulp_traffic_add(&app->traffic, &qp.traffic);
	}
	return 0;
}

static int
do_past(struct san_engine *e, void *arg)
{
	struct san_engine_app_view *apps = arg;
	uint32_t i;

	for (i = 0; i < e->nb_apps; i++) {
		apps[i].nb_faults += e->apps[i].nb_faults;
		san_ulp_traffic_add(&apps[i].traffic, &e->apps[i].past);
	}
	return 0;
}

void
san_engine_conn_count_apps(struct san_engine_port *p, struct san_engine_app_view *out)
{
	struct count count = {.apps = out};
	uint32_t i;

	memset(out, 0, SAN_ENGINE_APPS * sizeof(*out));
	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_read(p->engines[i], do_past, out);
	in_slices(p, p->conf.core.ulp.max_qps, do_apps, &count);
}
