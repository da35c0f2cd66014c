/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine_priv.h"
#include "view.h"

struct lcore {
	struct san_engine_stats stats;
	struct san_view_busy busy;
	uint32_t nb_conns, nb_backlog, nb_inflight;
};

#define FIELD(name, member) SAN_VIEW_FIELD(struct lcore, name, member)

static const struct san_view_field fields[] = {
	FIELD("time_ns", busy.time_ns),
	FIELD("busy_ns", busy.busy_ns),
	FIELD("loops", stats.nb_loops),
	FIELD("loops_idle", stats.nb_idle_loops),
	FIELD("sleeps", stats.nb_sleeps),
	FIELD("rx_pkts", stats.nb_rx),
	FIELD("tx_pkts", stats.nb_tx),
	FIELD("conns", nb_conns),
	FIELD("in_flight", nb_inflight),
	FIELD("backlog", nb_backlog),
};

static int
do_lcore(struct san_engine *e, void *arg)
{
	struct lcore *out = arg;

	*out = (struct lcore){
		.stats = e->stats,
		.busy.time_ns = e->now_ns - e->busy.since_ns,
		.busy.busy_ns = e->busy.busy_ns,
		.nb_conns = san_core_pdl(e->core)->nb_conns,
		.nb_inflight = san_core_pdl(e->core)->inflight,
		.nb_backlog = e->nb_backlog,
	};
	return 0;
}

struct san_view_busy
san_view_lcore(struct san_engine *e, struct san_view *v)
{
	struct lcore l;

	san_engine_loop_read(e, do_lcore, &l);
	san_view_fields(v, fields, RTE_DIM(fields), &l);
	return l.busy;
}
