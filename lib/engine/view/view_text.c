/* SPDX-License-Identifier: BSD-3-Clause */

/* Views as text for people. */

#include <inttypes.h>
#include <stdlib.h>

#include "engine_priv.h"
#include "view.h"
#include "view_conn.h"

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
text_offloads(const char *what, uint64_t rx, uint64_t tx, FILE *f)
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
text_port(const struct san_engine_port *p, FILE *f)
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
	fprintf(f, "  mtu %u (set at the port: %u), rings %u rx, %u tx, %s, idle %s\n", p->mtu,
		p->declared, p->nb_rxd, p->nb_txd,
		p->launched ? "own lcore" : "polled by caller", san_engine_idle_name(p->idle));
	text_offloads("offered:", p->rx_capa, p->tx_capa, f);
	text_offloads("in use: ", p->rx_offloads, p->tx_offloads, f);
	fprintf(f, "  queues %u, %s; rss types 0x%" PRIx64 ", reta %u\n", p->nb_queues,
		p->is_steered ? "source ports chosen by rss" : "any source port", p->rss_capa,
		p->reta_size);
	fprintf(f, "  port: %" PRIu64 " missed, %" PRIu64 " tx errors\n", stats.imissed,
		stats.oerrors);
	fprintf(f, "  buffers %u free of %u\n", rte_mempool_avail_count(p->pool),
		p->conf.pool_size);
}

static void
text_lcore(struct san_engine *e, FILE *f)
{
	struct san_view v = {.text = f};

	if (e->launched)
		v.column = (uint32_t)fprintf(f, "  lcore %u%s:", e->port->conf.lcores[e->id],
					     e->has_queue ? "" : ", no queue");
	else
		v.column = (uint32_t)fprintf(f, "  caller:");
	san_view_lcore(e, &v);
	fputc('\n', f);
}

static void
text_conns(struct san_engine *e, FILE *f)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	struct san_view_conn c;
	struct san_view v;
	uint32_t i;

	fprintf(f, "%u connections, %u packets in flight, budget %u\n", pdl->nb_conns,
		pdl->inflight, pdl->conf.budget_pkts);
	for (i = 0; i < pdl->conf.max_conns; i++) {
		if (pdl->conns[i].state == SAN_CONN_FREE)
			continue;
		v = (struct san_view){.text = f};
		san_view_conn_of(e, i, true, &c);
		san_view_conn_full(&v, &c);
		fputc('\n', f);
	}
}

static void
text_counters(struct san_engine_port *p, const char *prefix, bool want, FILE *f)
{
	struct san_view v = {.text = f};

	san_view_counters_put(p, NULL, &v, prefix, want);
	fputc('\n', f);
}

static void
text_drops(struct san_engine_port *p, FILE *f)
{
	struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS];
	uint32_t i, n = san_view_counters(p, NULL, c), shown = 0;
	uint64_t value;

	for (i = 1; i < SAN_DROP_MAX && n != 0; i++) {
		value = c[n - SAN_DROP_MAX + i].value;
		if (value == 0)
			continue;
		fprintf(f, "  %-16s %10" PRIu64 "  %s\n", san_drop_name((enum san_drop)i),
			value, san_drop_text((enum san_drop)i));
		shown++;
	}
	if (shown == 0)
		fprintf(f, "  none\n");
}

struct text_call {
	void (*show)(struct san_engine *e, FILE *f);
	FILE *f;
};

static int
text_do_print(struct san_engine *e, void *arg)
{
	const struct text_call *call = arg;

	call->show(e, call->f);
	return 0;
}

/* Printing may block: the lcore prints into memory, the caller to *f*. */
static void
text_each(struct san_engine_port *p, void (*show)(struct san_engine *e, FILE *f), FILE *f)
{
	struct text_call call = {.show = show};
	char *text = NULL;
	size_t len = 0;
	uint32_t i;

	call.f = open_memstream(&text, &len);
	if (call.f == NULL)
		return;
	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_call(p->engines[i], text_do_print, &call);
	fclose(call.f);
	fputs(text, f);
	free(text);
}

void
san_view_text(struct san_engine_port *p, enum rtsan_dpdk_show what, FILE *f)
{
	uint32_t i;

	switch (what) {
	case RTSAN_SHOW_PORT:
		text_port(p, f);
		for (i = 0; i < p->nb_engines; i++)
			text_lcore(p->engines[i], f);
		break;
	case RTSAN_SHOW_CONN:
		text_each(p, text_conns, f);
		break;
	case RTSAN_SHOW_STATS:
		text_counters(p, "drop_", false, f);
		break;
	case RTSAN_SHOW_CAM:
		text_counters(p, "cam_", true, f);
		break;
	case RTSAN_SHOW_DROPS:
		text_drops(p, f);
		break;
	case RTSAN_SHOW_STREAM:
		text_each(p, san_view_stream_text, f);
		break;
	}
}
