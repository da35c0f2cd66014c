/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The table of counters. Each number is read on the lcore, so that those of one lcore are from the
 * same moment. For several lcores the sum is given.
 */

#include <string.h>

#include "san_assert.h"
#include "engine_priv.h"
#include "view.h"

enum source {
	FROM_PDL,
	FROM_TL,
	FROM_ULP,
	FROM_CAM,
	FROM_ENGINE,
	FROM_IMPAIR_TX,
	FROM_IMPAIR_RX,
	SOURCES
};

#define COUNTER(name, source, type, field)                 \
	{                                                  \
		name, source, offsetof(struct type, field) \
	}
#define PDL(name, field)    COUNTER(name, FROM_PDL, san_pdl_stats, field)
#define TL(name, field)     COUNTER(name, FROM_TL, san_tl_stats, field)
#define ULP(name, field)    COUNTER(name, FROM_ULP, san_ulp_stats, field)
#define CAM(name, field)    COUNTER(name, FROM_CAM, san_cam, field)
#define ENGINE(name, field) COUNTER(name, FROM_ENGINE, san_engine_stats, field)
#define IMPAIR(name, field)                                                         \
	COUNTER("impair_tx_" name, FROM_IMPAIR_TX, san_engine_impair_stats, field), \
		COUNTER("impair_rx_" name, FROM_IMPAIR_RX, san_engine_impair_stats, field)

static const struct counter {
	const char *name;
	enum source source;
	size_t offset;
} counters[] = {
	ENGINE("rx_pkts", nb_rx),
	ENGINE("tx_pkts", nb_tx),
	ENGINE("tx_backlogged", nb_backlogged),
	ENGINE("loops", nb_loops),
	ENGINE("loops_idle", nb_idle_loops),
	ENGINE("doorbells", nb_doorbells),
	ENGINE("calls", nb_calls),
	ENGINE("sleeps", nb_sleeps),
	ENGINE("wakes", nb_wakes),
	ENGINE("handed_over", nb_handed),
	ENGINE("taken_over", nb_taken),
	ENGINE("sent_by_others", nb_lent),
	ENGINE("local", nb_local),
	ENGINE("app_faults", nb_app_faults),
	PDL("rtx", nb_rtx),
	PDL("early", nb_fast_rtx),
	PDL("tlp", nb_tlp),
	PDL("rto", nb_rto),
	PDL("probes", nb_probe_tx),
	PDL("acks_tx", nb_ack_tx),
	PDL("acks_rx", nb_ack_rx),
	PDL("acks_piggybacked", nb_acks_piggy),
	PDL("path_changes", nb_path_changes),
	PDL("mtu_raised", nb_mtu_raised),
	PDL("mtu_lowered", nb_mtu_lowered),
	PDL("pieces_tx", nb_pieces_tx),
	PDL("resync_tx", nb_resync_tx),
	PDL("withdrawn", nb_withdrawn),
	PDL("cc_cuts", nb_cc_cuts),
	PDL("failed", nb_failed),
	PDL("cnp_tx", nb_cnp_tx),
	PDL("cnp_rx", nb_cnp_rx),
	PDL("out_of_window", nb_oow),
	PDL("budget_waits", nb_budget_waits),
	PDL("narrow", nb_narrow),
	TL("push_solicited", nb_push_slctd),
	TL("push_unsolicited", nb_push_unslctd),
	TL("packed_tx", nb_packed_tx),
	TL("packed_tx_messages", nb_pack_msgs_tx),
	TL("packed_rx", nb_packed_rx),
	TL("packed_rx_messages", nb_pack_msgs_rx),
	TL("unpack_tx", nb_unpack_tx),
	TL("unpack_rx", nb_unpack_rx),
	TL("express_tx", nb_express_tx),
	TL("pulls", nb_pulls),
	TL("atomics", nb_atomics),
	TL("served", nb_served),
	TL("grants", nb_grants),
	TL("grants_deferred", nb_grants_deferred),
	TL("grants_lapsed", nb_grants_expired),
	TL("rnr_tx", nb_rnr_tx),
	TL("rnr_rx", nb_rnr_rx),
	TL("refused", nb_refused),
	TL("resync_rx", nb_resync_rx),
	TL("aborts", nb_aborts),
	TL("red", nb_red),
	TL("finished_data", nb_finished_data),
	TL("budget_lent", nb_lent),
	TL("budget_high", budget_high),
	TL("path_high", path_high),
	ULP("wrs", nb_wrs),
	ULP("wcs", nb_wcs),
	ULP("express_rx", nb_express_rx),
	ULP("placed_bytes", nb_placed_bytes),
	ULP("rnr", nb_rnr),
	ULP("key_errors", nb_key_errors),
	ULP("bounds_errors", nb_bounds_errors),
	ULP("rights_errors", nb_rights_errors),
	ULP("revoked", nb_revoked),
	ULP("guessers", nb_guessers),
	CAM("cam_inserts", nb_inserts),
	CAM("cam_lookups", nb_lookups),
	CAM("cam_hits", nb_hits),
	CAM("cam_rejects", nb_rejects),
	IMPAIR("dropped", nb_dropped),
	IMPAIR("duplicated", nb_duplicated),
	IMPAIR("reordered", nb_reordered),
	IMPAIR("corrupted", nb_corrupted),
	IMPAIR("marked", nb_marked),
	IMPAIR("overflow", nb_overflow),
};

#define DROP      "drop_"
#define DROP_NAME 40

static char drop_names[SAN_DROP_MAX][DROP_NAME];

RTE_INIT(view_counters_drop_names)
{
	int i;

	for (i = 1; i < SAN_DROP_MAX; i++)
		snprintf(drop_names[i], sizeof(drop_names[i]), DROP "%s",
			 san_drop_name((enum san_drop)i));
}

/* The sum of high-water marks was never reached, so the highest is given. */
static bool
is_mark(const char *name)
{
	const char *end = strrchr(name, '_');

	return end != NULL && strcmp(end, "_high") == 0;
}

bool
san_view_counters_is_gauge(const char *name)
{
	size_t i;

	for (i = 0; i < RTE_DIM(counters); i++)
		if (strcmp(name, counters[i].name) == 0)
			return is_mark(name);
	return strncmp(name, DROP, strlen(DROP)) != 0;
}

struct all {
	struct rtsan_dpdk_counter *c;
	uint32_t nb;
};

static void
counters_add_one(struct all *all, const char *name, uint64_t value)
{
	struct rtsan_dpdk_counter *c = &all->c[all->nb++];

	SAN_VERIFY(all->nb <= SAN_VIEW_COUNTERS);
	c->name = name;
	c->value = is_mark(name) ? RTE_MAX(c->value, value) : c->value + value;
}

/* Combine the values of one engine with those in *arg*. */
static int
do_counters(struct san_engine *e, void *arg)
{
	const struct san_tl *tl = san_core_tl(e->core);
	const void *const base[SOURCES] = {
		[FROM_PDL] = &san_core_pdl(e->core)->stats,
		[FROM_TL] = &tl->stats,
		[FROM_ULP] = san_ulp_stats(san_core_ulp(e->core)),
		[FROM_CAM] = &tl->cam,
		[FROM_ENGINE] = &e->stats,
		[FROM_IMPAIR_TX] = &e->impair_tx.stats,
		[FROM_IMPAIR_RX] = &e->impair_rx.stats,
	};
	const struct rtsan_dpdk_counter gauges[] = {
		{"cam_used", tl->cam.nb_used},
		{"cam_high", tl->cam.nb_high},
		{"held", tl->nb_held},
		{"conns", san_core_pdl(e->core)->nb_conns},
		{"regions", san_ulp_mr_nb(san_core_ulp(e->core))},
		{"leaks", san_core_leaks(e->core)},
		{"budget", tl->budget_bytes},
		{"streams", san_core_stream_nb(e->core)},
		{"stream_bytes", san_core_share_stream_bytes(e->core)},
		{"orphans", san_core_share_nb_orphans(e->core)},
		{"orphan_bytes", san_core_share_orphan_bytes(e->core)},
	};
	uint64_t drops[SAN_DROP_MAX];
	struct all *all = arg;
	size_t i;

	all->nb = 0;
	for (i = 0; i < RTE_DIM(counters); i++)
		counters_add_one(all, counters[i].name,
				 *(const uint64_t *)((const uint8_t *)base[counters[i].source] +
						     counters[i].offset));
	for (i = 0; i < RTE_DIM(gauges); i++)
		counters_add_one(all, gauges[i].name, gauges[i].value);
	san_core_drops(e->core, drops);
	drops[SAN_DROP_IMPAIRED] += e->impair_tx.stats.nb_dropped +
		e->impair_rx.stats.nb_dropped +
		e->impair_tx.stats.nb_overflow +
		e->impair_rx.stats.nb_overflow;
	for (i = 1; i < SAN_DROP_MAX; i++)
		counters_add_one(all, drop_names[i], drops[i] + e->drops[i]);
	return 0;
}

uint32_t
san_view_counters(struct san_engine_port *p, struct san_engine *e,
		  struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS])
{
	struct all all = {.c = c};
	uint32_t i;

	memset(c, 0, SAN_VIEW_COUNTERS * sizeof(c[0]));
	for (i = 0; i < p->nb_engines; i++)
		if (e == NULL || e == p->engines[i])
			san_engine_loop_read(p->engines[i], do_counters, &all);
	return all.nb;
}

void
san_view_counters_put(struct san_engine_port *p, struct san_engine *e, struct san_view *v,
		      const char *prefix, bool want)
{
	struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS];
	uint32_t i, n = san_view_counters(p, e, c);

	for (i = 0; i < n; i++)
		if ((strncmp(c[i].name, prefix, strlen(prefix)) == 0) == want)
			san_view_u64(v, c[i].name, c[i].value);
}

uint64_t
san_view_counters_leaks(struct san_engine_port *p)
{
	struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS];
	uint32_t i, n = san_view_counters(p, NULL, c);

	for (i = 0; i < n && strcmp(c[i].name, "leaks") != 0; i++)
		;
	return i < n ? c[i].value : 0;
}
