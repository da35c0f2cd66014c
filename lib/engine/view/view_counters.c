/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * All counters and gauges. Each number is read on the lcore, so that those of one lcore are from
 * the same moment. For several lcores the sum is given.
 */

#include "engine_priv.h"
#include "view.h"

/* clang-format off */

/** States, and counters of faults */
#define READINGS(X) \
	X(loops, COUNTER, "rounds", "Rounds of the lcore.", san_engine_loop_count(e)) \
	X(conns, GAUGE, "connections", "Connections.", pdl->nb_conns) \
	X(regions, GAUGE, "regions", "Memory regions.", san_ulp_mr_nb(san_core_ulp(core))) \
	X(streams, GAUGE, "streams", "Streams.", use->nb) \
	X(stream_bytes, GAUGE, "bytes", "Memory of streams.", use->bytes) \
	X(orphans, GAUGE, "streams", "Orphaned streams.", use->nb_orphans) \
	X(orphan_bytes, GAUGE, "bytes", "Memory of orphans.", use->orphan_bytes) \
	X(leaks, GAUGE, "objects", "Objects held although nothing is open.", san_core_leaks(core)) \
	X(held, GAUGE, "packets", "Out-of-order packets held.", tl->nb_held) \
	X(budget_bytes, GAUGE, "bytes", "Incast budget that the lcore has now.", tl->budget_bytes) \
	X(budget_high_bytes, MARK, "bytes", "Most bytes granted.", tl->stats.budget_high) \
	X(path_high_bytes, MARK, "bytes", "Most granted on long paths.", tl->stats.path_high) \
	X(impair_tx_dropped, COUNTER, "packets", "Dropped by impair_tx.", tx->nb_dropped) \
	X(impair_tx_duplicated, COUNTER, "packets", "Duplicated by impair_tx.", tx->nb_duplicated) \
	X(impair_tx_reordered, COUNTER, "packets", "Reordered by impair_tx.", tx->nb_reordered) \
	X(impair_tx_corrupted, COUNTER, "packets", "Corrupted by impair_tx.", tx->nb_corrupted) \
	X(impair_tx_marked, COUNTER, "packets", "Marked with ECN by impair_tx.", tx->nb_marked) \
	X(impair_tx_overflow, COUNTER, "packets", "impair_tx: no room to delay.", tx->nb_overflow) \
	X(impair_rx_dropped, COUNTER, "packets", "Dropped by impair_rx.", rx->nb_dropped) \
	X(impair_rx_duplicated, COUNTER, "packets", "Duplicated by impair_rx.", rx->nb_duplicated) \
	X(impair_rx_reordered, COUNTER, "packets", "Reordered by impair_rx.", rx->nb_reordered) \
	X(impair_rx_corrupted, COUNTER, "packets", "Corrupted by impair_rx.", rx->nb_corrupted) \
	X(impair_rx_marked, COUNTER, "packets", "Marked with ECN by impair_rx.", rx->nb_marked) \
	X(impair_rx_overflow, COUNTER, "packets", "impair_rx: no room to delay.", rx->nb_overflow)

/** Reorder table */
#define CAM_READINGS(X) \
	X(cam_used, GAUGE, "entries", "Entries of the reorder table in use.", cam->nb_used) \
	X(cam_high, MARK, "entries", "Most entries of that table.", cam->nb_high) \
	X(cam_inserts, COUNTER, "entries", "Insertions into the table.", cam->nb_inserts) \
	X(cam_lookups, COUNTER, "times", "Searches of the reorder table.", cam->nb_lookups) \
	X(cam_hits, COUNTER, "entries", "Searches that found an entry.", cam->nb_hits) \
	X(cam_rejects, COUNTER, "entries", "Insertions refused: full.", cam->nb_rejects)

#define NAME_COUNTER(name, unit, help) SAN_VIEW_NOTE(name, COUNTER, unit, help),
#define NAME_READING(name, kind, unit, help, source) SAN_VIEW_NOTE(name, kind, unit, help),
#define NAME_DROP(reason, name, help) SAN_VIEW_NOTE(drop_##name, COUNTER, "packets", help),

static const struct san_view_field counters[] = {
	SAN_ENGINE_COUNTERS(NAME_COUNTER)
	SAN_PDL_COUNTERS(NAME_COUNTER)
	SAN_TL_COUNTERS(NAME_COUNTER)
	SAN_ULP_COUNTERS(NAME_COUNTER)
	READINGS(NAME_READING)
	CAM_READINGS(NAME_READING)
	SAN_DROPS(NAME_DROP)
};

/* clang-format on */

#define NB_DROPS (SAN_DROP_MAX - 1)
#define NB_OTHER (RTE_DIM(counters) - NB_DROPS)

#define ONE(...) +1
#define NB_CAM   (0 CAM_READINGS(ONE))

const struct san_view_set san_view_all_set = {counters, RTE_DIM(counters)};
const struct san_view_set san_view_counters_set = {counters, NB_OTHER};
const struct san_view_set san_view_cam_set = {&counters[NB_OTHER - NB_CAM], NB_CAM};
const struct san_view_set san_view_drops_set = {&counters[NB_OTHER], NB_DROPS};

/* Combine the values of one engine with those in *arg*. */
static int
do_counters(struct san_engine *e, void *arg)
{
	const struct san_engine_impair_stats *tx = &e->impair_tx.stats, *rx = &e->impair_rx.stats;
	struct san_core *core = e->core;
	const struct san_ulp_stats *ulp = san_ulp_stats(san_core_ulp(core));
	const struct san_pdl *pdl = san_core_pdl(core);
	const struct san_tl *tl = san_core_tl(core);
	const struct san_core_use *use = san_core_share_use(core);
	const struct san_cam *cam = &tl->cam;
	struct rtsan_dpdk_counter *c = arg;
	uint64_t drops[SAN_DROP_MAX];
	size_t i;

	/* clang-format off */
#define OF_ENGINE(name, unit, help) e->stats.nb_##name,
#define OF_PDL(name, unit, help) pdl->stats.nb_##name,
#define OF_TL(name, unit, help) tl->stats.nb_##name,
#define OF_ULP(name, unit, help) ulp->nb_##name,
#define OF_SOURCE(name, kind, unit, help, source) source,
	const uint64_t values[] = {
		SAN_ENGINE_COUNTERS(OF_ENGINE)
		SAN_PDL_COUNTERS(OF_PDL)
		SAN_TL_COUNTERS(OF_TL)
		SAN_ULP_COUNTERS(OF_ULP)
		READINGS(OF_SOURCE)
		CAM_READINGS(OF_SOURCE)
	};
	/* clang-format on */

	static_assert(RTE_DIM(values) == NB_OTHER, "each has a value");
	for (i = 0; i < NB_OTHER; i++)
		c[i].value = counters[i].kind == SAN_VIEW_MARK ? RTE_MAX(c[i].value, values[i]) :
								 c[i].value + values[i];
	san_core_drops(core, drops);
	drops[SAN_DROP_IMPAIRED] +=
		tx->nb_dropped + rx->nb_dropped + tx->nb_overflow + rx->nb_overflow;
	for (i = 1; i < SAN_DROP_MAX; i++)
		c[NB_OTHER + i - 1].value += drops[i] + e->drops[i];
	return 0;
}

uint32_t
san_view_counters(struct san_engine_port *p, struct san_engine *e,
		  struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS])
{
	uint32_t i;

	static_assert(RTE_DIM(counters) <= SAN_VIEW_COUNTERS, "room for all");
	for (i = 0; i < RTE_DIM(counters); i++)
		c[i] = (struct rtsan_dpdk_counter){.name = counters[i].name};
	for (i = 0; i < p->nb_engines; i++)
		if (e == NULL || e == p->engines[i])
			san_engine_loop_read(p->engines[i], do_counters, c);
	return RTE_DIM(counters);
}

void
san_view_counters_put(struct san_engine_port *p, struct san_engine *e, struct san_view *v,
		      const struct san_view_set *set)
{
	struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS];
	const size_t first = (size_t)(set->fields - counters);
	uint32_t i;

	san_view_counters(p, e, c);
	for (i = 0; i < set->nb; i++)
		san_view_u64(v, c[first + i].name, c[first + i].value);
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
