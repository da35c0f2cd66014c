/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What operators see: tables to read, and counters by name for programs. Each number is read on the
 * lcore, so that the numbers of one lcore are from the same moment. For several lcores the sum is
 * given.
 */

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"

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

#define PDL(name, field)                                              \
	{                                                             \
		name, FROM_PDL, offsetof(struct san_pdl_stats, field) \
	}
#define TL(name, field)                                             \
	{                                                           \
		name, FROM_TL, offsetof(struct san_tl_stats, field) \
	}
#define ULP(name, field)                                              \
	{                                                             \
		name, FROM_ULP, offsetof(struct san_ulp_stats, field) \
	}
#define CAM(name, field)                                        \
	{                                                       \
		name, FROM_CAM, offsetof(struct san_cam, field) \
	}
#define ENGINE(name, field)                                                 \
	{                                                                   \
		name, FROM_ENGINE, offsetof(struct san_engine_stats, field) \
	}
#define IMPAIR(name, field)                                                                   \
	{"impair_tx_" name, FROM_IMPAIR_TX, offsetof(struct san_engine_impair_stats, field)}, \
	{                                                                                     \
		"impair_rx_" name, FROM_IMPAIR_RX,                                            \
			offsetof(struct san_engine_impair_stats, field)                       \
	}

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

/* Gauges and drops follow the table; drops have their names in san_drop.c. */
static const char *const gauges[] = {"cam_used", "cam_high", "held", "conns",
				     "regions", "leaks", "budget", "streams",
				     "stream_bytes", "orphans", "orphan_bytes"};

#define NB_DROPS    (SAN_DROP_MAX - 1)
#define NB_COUNTERS ((int)(RTE_DIM(counters) + RTE_DIM(gauges) + NB_DROPS))
#define DROP_NAME   40

static char drop_names[SAN_DROP_MAX][DROP_NAME];

RTE_INIT(engine_drop_names)
{
	int i;

	for (i = 1; i < SAN_DROP_MAX; i++)
		snprintf(drop_names[i], sizeof(drop_names[i]), "drop_%s",
			 san_drop_name((enum san_drop)i));
}

static void
all_drops(const struct san_engine *e, uint64_t drops[SAN_DROP_MAX])
{
	int i;

	san_core_drops(e->core, drops);
	for (i = 0; i < SAN_DROP_MAX; i++)
		drops[i] += e->drops[i];
	drops[SAN_DROP_IMPAIRED] += e->impair_tx.stats.nb_dropped +
		e->impair_rx.stats.nb_dropped +
		e->impair_tx.stats.nb_overflow +
		e->impair_rx.stats.nb_overflow;
}

static const char *
counter_name(int i)
{
	const int nb_table = RTE_DIM(counters), nb_gauges = RTE_DIM(gauges);

	if (i < nb_table)
		return counters[i].name;
	i -= nb_table;
	return i < nb_gauges ? gauges[i] : drop_names[i - nb_gauges + 1];
}

/* The sum of high-water marks was never reached, so the highest is given. */
static bool
is_mark(const char *name)
{
	const char *end = strrchr(name, '_');

	return end != NULL && strcmp(end, "_high") == 0;
}

/* Combine the values of one engine into those in *arg*. */
static int
do_values(struct san_engine *e, void *arg)
{
	uint64_t *sum = arg, one[NB_COUNTERS], *v = one;
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
	const uint64_t gauge[RTE_DIM(gauges)] = {
		tl->cam.nb_used,
		tl->cam.nb_high,
		tl->nb_held,
		san_core_pdl(e->core)->nb_conns,
		san_ulp_mr_nb(san_core_ulp(e->core)),
		san_core_leaks(e->core),
		tl->budget_bytes,
		san_core_stream_nb(e->core),
		san_core_share_stream_bytes(e->core),
		san_core_share_nb_orphans(e->core),
		san_core_share_orphan_bytes(e->core),
	};
	uint64_t drops[SAN_DROP_MAX];
	size_t i;

	for (i = 0; i < RTE_DIM(counters); i++)
		*v++ = *(const uint64_t *)((const uint8_t *)base[counters[i].source] +
					   counters[i].offset);
	for (i = 0; i < RTE_DIM(gauges); i++)
		*v++ = gauge[i];
	all_drops(e, drops);
	for (i = 1; i < SAN_DROP_MAX; i++)
		*v++ = drops[i];
	for (i = 0; i < NB_COUNTERS; i++)
		sum[i] = is_mark(counter_name((int)i)) ? RTE_MAX(sum[i], one[i]) : sum[i] + one[i];
	return 0;
}

static void
all_values(struct san_engine_port *p, uint64_t sum[NB_COUNTERS])
{
	uint32_t i;

	memset(sum, 0, NB_COUNTERS * sizeof(sum[0]));
	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_read(p->engines[i], do_values, sum);
}

static int
engine_show_fill_counters(const uint64_t v[NB_COUNTERS], struct rtsan_dpdk_counter *c, int max)
{
	int i;

	for (i = 0; i < NB_COUNTERS && i < max; i++)
		c[i] = (struct rtsan_dpdk_counter){.name = counter_name(i), .value = v[i]};
	return NB_COUNTERS;
}

int
san_engine_show_counters(struct san_engine_port *p, struct rtsan_dpdk_counter *c, int max)
{
	uint64_t sum[NB_COUNTERS];

	all_values(p, sum);
	return engine_show_fill_counters(sum, c, max);
}

int
san_engine_show_counters_of(struct san_engine *e, struct rtsan_dpdk_counter *c, int max)
{
	uint64_t v[NB_COUNTERS] = {0};

	san_engine_loop_read(e, do_values, v);
	return engine_show_fill_counters(v, c, max);
}

static int
do_leaks(struct san_engine *e, void *arg)
{
	*(uint64_t *)arg += san_core_leaks(e->core);
	return 0;
}

uint64_t
san_engine_show_leaks(struct san_engine_port *p)
{
	uint64_t leaks = 0;
	uint32_t i;

	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_read(p->engines[i], do_leaks, &leaks);
	return leaks;
}

/* ---- tables to read ---- */

static const struct offload {
	uint64_t rx, tx;
	const char *name;
} offloads[] = {
	{RTE_ETH_RX_OFFLOAD_SCATTER, RTE_ETH_TX_OFFLOAD_MULTI_SEGS, "multi-segment"},
	{RTE_ETH_RX_OFFLOAD_IPV4_CKSUM, RTE_ETH_TX_OFFLOAD_IPV4_CKSUM, "ipv4-checksum"},
	{RTE_ETH_RX_OFFLOAD_UDP_CKSUM, RTE_ETH_TX_OFFLOAD_UDP_CKSUM, "udp-checksum"},
	{RTE_ETH_RX_OFFLOAD_TIMESTAMP, 0, "timestamp"},
	{0, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE, "fast-free"},
};

static void
show_offloads(const char *what, uint64_t rx, uint64_t tx, FILE *f)
{
	size_t i;

	fprintf(f, "  %s", what);
	for (i = 0; i < RTE_DIM(offloads); i++) {
		if ((rx & offloads[i].rx) != 0)
			fprintf(f, " rx:%s", offloads[i].name);
		if ((tx & offloads[i].tx) != 0)
			fprintf(f, " tx:%s", offloads[i].name);
	}
	fprintf(f, "\n");
}

static void
show_port(const struct san_engine_port *p, FILE *f)
{
	const struct rte_ether_addr ether = san_engine_mac(p);
	char mac[RTE_ETHER_ADDR_FMT_SIZE], addr[SAN_INET_TEXT];
	struct rte_eth_link link = {0};
	struct rte_eth_stats stats = {0};
	uint16_t i;

	rte_eth_link_get_nowait(p->id, &link);
	rte_eth_stats_get(p->id, &stats);
	rte_ether_format_addr(mac, sizeof(mac), &ether);
	fprintf(f, "port %u: %s, driver %s, %s, link %s\n", p->id, p->name, p->driver, mac,
		link.link_status == RTE_ETH_LINK_UP ? "up" : "down");
	for (i = 0; i < p->conf.core.inet.nb_addrs; i++)
		fprintf(f, "  address %s\n",
			san_inet_addr_text(&p->conf.core.inet.addrs[i].ip, addr));
	fprintf(f, "  mtu %u (told to the port: %u), rings %u rx, %u tx, %s, idle %s\n", p->mtu,
		p->declared, p->nb_rxd, p->nb_txd,
		p->launched ? "own lcore" : "polled by caller", san_engine_idle_name(p->idle));
	show_offloads("offered:", p->rx_capa, p->tx_capa, f);
	show_offloads("in use: ", p->rx_offloads, p->tx_offloads, f);
	fprintf(f, "  queues %u, %s; rss types 0x%" PRIx64 ", reta %u\n", p->nb_queues,
		p->is_steered ? "source ports chosen by rss" : "any source port", p->rss_capa,
		p->reta_size);
	fprintf(f, "  port: %" PRIu64 " missed, %" PRIu64 " tx errors\n", stats.imissed,
		stats.oerrors);
	fprintf(f, "  buffers %u free of %u\n", rte_mempool_avail_count(p->pool),
		p->conf.pool_size);
}

static void
show_lcore(struct san_engine *e, FILE *f)
{
	if (e->launched)
		fprintf(f, "  lcore %u:", e->port->conf.lcores[e->id]);
	else
		fprintf(f, "  caller:");
	fprintf(f, " packets %" PRIu64 " rx, %" PRIu64 " tx, %u waiting\n", e->stats.nb_rx,
		e->stats.nb_tx, e->nb_backlog);
	if (e->is_alone)
		return;
	fprintf(f, "    %s, handed over %" PRIu64 ", taken over %" PRIu64,
		e->has_queue ? "a queue of its own" : "no queue", e->stats.nb_handed,
		e->stats.nb_taken);
	fprintf(f, ", sent by others %" PRIu64 "\n", e->stats.nb_lent);
}

const char *
san_engine_show_conn_state(uint8_t state)
{
	static const char *const names[] = {"free", "setup", "open", "closing"};

	return state < RTE_DIM(names) ? names[state] : "unknown";
}

static void
show_conns(struct san_engine *e, FILE *f)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	char addr[SAN_INET_TEXT];
	uint32_t i;

	fprintf(f, "%u connections, %u packets in flight, budget %u\n", pdl->nb_conns,
		pdl->inflight, pdl->conf.budget_pkts);
	for (i = 0; i < pdl->conf.max_conns; i++) {
		const struct san_pdl_conn *c = &pdl->conns[i];

		if (c->state == SAN_CONN_FREE)
			continue;
		fprintf(f, "  cid 0x%06x %s peer %s cid 0x%06x pkey 0x%04x %s mtu %u port %u\n",
			c->cid, san_engine_show_conn_state(c->state),
			san_inet_addr_text(&c->path.dst, addr), c->dcid,
			c->pkey, c->ordered ? (c->relaxed ? "relaxed" : "ordered") : "unordered",
			c->mtu, c->path.src_port);
		fprintf(f, "    rtt %" PRIu64 " us, rto %" PRIu64 " us, in flight %u\n",
			(uint64_t)(c->rtt.srtt_ns / SAN_NS_PER_US),
			(uint64_t)(c->rtt.rto_ns / SAN_NS_PER_US), c->pcb.inflight);
		fprintf(f, "    cwnd %u.%02u, cuts %u, level %u\n", c->cc.window / SAN_CC_ONE,
			c->cc.window % SAN_CC_ONE * 100 / SAN_CC_ONE, c->cc.nb_cuts, c->cc.level);
		fprintf(f, "    tx %" PRIu64 ", rx %" PRIu64 ", dup %u%s\n", c->nb_tx_pkts,
			c->nb_rx_pkts, c->nb_dup,
			san_core_tl(e->core)->conns[i].peer.pack ? ", packs" : "");
		fprintf(f, "    rtx %u, early %u, tlp %u, rto %u\n", c->nb_rtx, c->nb_fast_rtx,
			c->nb_tlp, c->nb_rto);
	}
}

static void
show_stats(struct san_engine_port *p, FILE *f)
{
	uint64_t v[NB_COUNTERS];
	int i;

	all_values(p, v);
	for (i = 0; i < NB_COUNTERS - NB_DROPS; i++)
		fprintf(f, "  %-24s %" PRIu64 "\n", counter_name(i), v[i]);
}

static void
show_cam(struct san_engine *e, FILE *f)
{
	const struct san_tl *tl = san_core_tl(e->core);
	const struct san_cam *cam = &tl->cam;

	fprintf(f, "cam: %u in use, at most %u so far\n", cam->nb_used, cam->nb_high);
	fprintf(f, "  inserts %" PRIu64 ", look-ups %" PRIu64, cam->nb_inserts, cam->nb_lookups);
	fprintf(f, ", hits %" PRIu64 ", rejected %" PRIu64 "\n", cam->nb_hits, cam->nb_rejects);
	fprintf(f, "  packets held %u of %u\n", tl->nb_held, tl->conf.max_held);
}

static void
show_drops(struct san_engine_port *p, FILE *f)
{
	uint64_t v[NB_COUNTERS];
	const uint64_t *drops = &v[NB_COUNTERS - NB_DROPS];
	int i, shown = 0;

	all_values(p, v);
	for (i = 0; i < NB_DROPS; i++) {
		if (drops[i] == 0)
			continue;
		fprintf(f, "  %-16s %10" PRIu64 "  %s\n", san_drop_name((enum san_drop)(i + 1)),
			drops[i], san_drop_text((enum san_drop)(i + 1)));
		shown++;
	}
	if (shown == 0)
		fprintf(f, "  none\n");
}

struct show_call {
	void (*show)(struct san_engine *e, FILE *f);
	FILE *f;
};

static int
engine_show_do_print(struct san_engine *e, void *arg)
{
	const struct show_call *call = arg;

	call->show(e, call->f);
	return 0;
}

/* Printing may block: the lcore prints into memory, the caller to *f*. */
static void
show_each(struct san_engine_port *p, void (*show)(struct san_engine *e, FILE *f), FILE *f)
{
	struct show_call call = {.show = show};
	char *text = NULL;
	size_t len = 0;
	uint32_t i;

	call.f = open_memstream(&text, &len);
	if (call.f == NULL)
		return;
	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_call(p->engines[i], engine_show_do_print, &call);
	fclose(call.f);
	fputs(text, f);
	free(text);
}

void
san_engine_show(struct san_engine_port *p, enum rtsan_dpdk_show what, FILE *f)
{
	switch (what) {
	case RTSAN_SHOW_PORT:
		show_port(p, f);
		show_each(p, show_lcore, f);
		break;
	case RTSAN_SHOW_CONN:
		show_each(p, show_conns, f);
		break;
	case RTSAN_SHOW_STATS:
		show_stats(p, f);
		break;
	case RTSAN_SHOW_CAM:
		show_each(p, show_cam, f);
		break;
	case RTSAN_SHOW_DROPS:
		show_drops(p, f);
		break;
	case RTSAN_SHOW_STREAM:
		show_each(p, san_engine_show_stream_list, f);
		break;
	}
}
