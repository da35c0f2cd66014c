/* SPDX-License-Identifier: BSD-3-Clause */

/* Ports and lcores. */

#include "engine_priv.h"
#include "view.h"

/* ---- ports ---- */

#define FIELD(name, member, kind, unit, help) \
	SAN_VIEW_FIELD(struct san_engine_port, name, member, kind, unit, help)

/** Port */
static const struct san_view_field port_fields[] = {
	SAN_VIEW_NOTE(port_name, INFO, "", "Name of the port in the configuration."),
	SAN_VIEW_NOTE(build, INFO, "", "Version and commit of the program with the engine."),
	SAN_VIEW_NOTE(name, INFO, "", "Name of the device in DPDK."),
	SAN_VIEW_NOTE(driver, INFO, "", "Driver of the device."),
	SAN_VIEW_NOTE(mac, INFO, "", "MAC address."),
	SAN_VIEW_NOTE(address_0, INFO, "", "First IP address; others follow as address_1 ..."),
	SAN_VIEW_NOTE(link, INFO, "", "State of the kernel's device behind the port."),
	SAN_VIEW_NOTE(interface, INFO, "", "Present name of the kernel's device behind the port."),
	SAN_VIEW_NOTE(carrier, INFO, "", "Link as the driver reports it: up or down."),
	SAN_VIEW_NOTE(idle, INFO, "", "What an idle lcore does (idle=)."),
	SAN_VIEW_NOTE(rss_types, INFO, "", "Types of packets that RSS can spread, as DPDK's bits."),
	SAN_VIEW_NOTE(source_ports, INFO, "", "Source ports of connections: any, or for RSS."),
	SAN_VIEW_NOTE(rx_offloads, INFO, "", "Receive offloads in use."),
	SAN_VIEW_NOTE(tx_offloads, INFO, "", "Transmit offloads in use."),
	SAN_VIEW_NOTE(rx_offered, INFO, "", "Receive offloads that the device offers."),
	SAN_VIEW_NOTE(tx_offered, INFO, "", "Transmit offloads that the device offers."),
	FIELD(port, id, INFO, "", "Number of the device in DPDK."),
	FIELD(mtu, conf.core.mtu, INFO, "bytes", "Longest IP packet."),
	FIELD(device_mtu, declared, INFO, "bytes", "MTU that is set at the device."),
	FIELD(lcores, nb_engines, GAUGE, "lcores", "Lcores that serve the port."),
	FIELD(queues, conf.nb_queues, GAUGE, "queues", "Pairs of queues in use."),
	FIELD(rx_descriptors, conf.nb_rxd, GAUGE, "descriptors", "Receive descriptors per queue."),
	FIELD(tx_descriptors, conf.nb_txd, GAUGE, "descriptors", "Transmit descriptors per queue."),
	FIELD(reta_size, info.reta_size, INFO, "entries", "Size of the redirection table of RSS."),
	FIELD(buffers, conf.pool_size, GAUGE, "buffers", "Packet buffers."),
	SAN_VIEW_NOTE(buffers_free, GAUGE, "buffers", "Packet buffers that are free."),
	SAN_VIEW_NOTE(rx_pkts, COUNTER, "packets", "Packets received by all lcores."),
	SAN_VIEW_NOTE(tx_pkts, COUNTER, "packets", "Packets sent by all lcores."),
	SAN_VIEW_NOTE(rx_missed, COUNTER, "packets", "Packets that the device dropped."),
	SAN_VIEW_NOTE(tx_errors, COUNTER, "packets", "Packets that the device failed to send."),
};
const struct san_view_set san_view_port_set = {port_fields, RTE_DIM(port_fields)};

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
port_put_offloads(struct san_view *v, const char *name, uint64_t rx, uint64_t tx)
{
	char text[128] = "";
	int len = 0;
	size_t i;

	for (i = 0; i < RTE_DIM(offloads); i++)
		if ((rx & offloads[i].rx) != 0 || (tx & offloads[i].tx) != 0)
			len += snprintf(&text[len], sizeof(text) - (size_t)len, "%s%s",
					len > 0 ? "," : "", offloads[i].name);
	san_view_string(v, name, len > 0 ? text : "none");
}

static void
port_put_addresses(struct san_view *v, const struct san_engine_port *p)
{
	const struct rte_ether_addr ether = san_engine_mac(p);
	char mac[RTE_ETHER_ADDR_FMT_SIZE], addr[SAN_INET_TEXT], name[16];
	uint16_t i;

	rte_ether_format_addr(mac, sizeof(mac), &ether);
	san_view_string(v, "mac", mac);
	for (i = 0; i < p->conf.core.inet.nb_addrs; i++) {
		snprintf(name, sizeof(name), "address_%u", i);
		san_view_string(v, name, san_inet_addr_text(&p->conf.core.inet.addrs[i].ip, addr));
	}
}

void
san_view_port(const struct san_engine_port *p, struct san_view *v)
{
	struct rte_eth_link link = {0};
	struct rte_eth_stats stats = {0};
	uint64_t nb_rx = 0, nb_tx = 0;
	uint32_t i;

	for (i = 0; i < p->nb_engines; i++) {
		nb_rx += p->engines[i]->stats.nb_rx_pkts;
		nb_tx += p->engines[i]->stats.nb_tx_pkts;
	}
	rte_eth_link_get_nowait(p->id, &link);
	rte_eth_stats_get(p->id, &stats);
	san_view_string(v, "port_name", p->conf.name);
	san_view_string(v, "build", san_view_build);
	san_view_string(v, "name", p->name);
	san_view_string(v, "driver", p->info.driver_name);
	port_put_addresses(v, p);
	san_view_string(v, "link", san_engine_dev_state(p));
	san_view_string(v, "interface", p->dev.name);
	san_view_string(v, "carrier", link.link_status == RTE_ETH_LINK_UP ? "up" : "down");
	san_view_string(v, "idle", san_engine_idle_words[p->conf.idle]);
	san_view_hex(v, "rss_types", 1, p->info.flow_type_rss_offloads);
	san_view_string(v, "source_ports", p->is_steered ? "rss" : "any");
	port_put_offloads(v, "rx_offloads", p->rx_offloads, 0);
	port_put_offloads(v, "tx_offloads", 0, p->tx_offloads);
	port_put_offloads(v, "rx_offered", p->info.rx_offload_capa, 0);
	port_put_offloads(v, "tx_offered", 0, p->info.tx_offload_capa);
	san_view_fields(v, port_fields, RTE_DIM(port_fields), p);
	san_view_u64(v, "buffers_free", rte_mempool_avail_count(p->pool));
	san_view_u64(v, "rx_pkts", nb_rx);
	san_view_u64(v, "tx_pkts", nb_tx);
	san_view_u64(v, "rx_missed", stats.imissed);
	san_view_u64(v, "tx_errors", stats.oerrors);
}

/* ---- lcores ---- */

struct lcore {
	struct san_engine_stats stats;
	uint64_t time_ns, busy_ns;
	uint32_t nb_conns, nb_backlog, nb_inflight;
};

#undef FIELD
#define FIELD(name, member, kind, unit, help) \
	SAN_VIEW_FIELD(struct lcore, name, member, kind, unit, help)

/** Lcore */
static const struct san_view_field lcore_fields[] = {
	SAN_VIEW_NOTE(lcore, INFO, "", "Number of the lcore in EAL; -1: the program polls."),
	FIELD(time_ns, time_ns, COUNTER, "ns", "Time since the engine was started."),
	FIELD(busy_ns, busy_ns, COUNTER, "ns", "Time in rounds that found work."),
	FIELD(loops, stats.nb_loops, COUNTER, "rounds", "Rounds."),
	FIELD(loops_idle, stats.nb_loops_idle, COUNTER, "rounds", "Rounds that found no work."),
	FIELD(sleeps, stats.nb_sleeps, COUNTER, "times", "Times that the lcore slept."),
	FIELD(rx_pkts, stats.nb_rx_pkts, COUNTER, "packets", "Packets received."),
	FIELD(tx_pkts, stats.nb_tx_pkts, COUNTER, "packets", "Packets sent."),
	FIELD(conns, nb_conns, GAUGE, "connections", "Connections."),
	FIELD(in_flight, nb_inflight, GAUGE, "packets", "Packets sent and not acknowledged yet."),
	FIELD(backlog, nb_backlog, GAUGE, "packets", "Packets that wait for room in the port."),
};
const struct san_view_set san_view_lcore_set = {lcore_fields, RTE_DIM(lcore_fields)};

static int
do_lcore(struct san_engine *e, void *arg)
{
	struct lcore *out = arg;

	*out = (struct lcore){
		.stats = e->stats,
		.time_ns = e->now_ns - e->busy.since_ns,
		.busy_ns = e->busy.busy_ns,
		.nb_conns = san_core_pdl(e->core)->nb_conns,
		.nb_inflight = san_core_pdl(e->core)->inflight,
		.nb_backlog = e->nb_backlog,
	};
	return 0;
}

void
san_view_lcore(struct san_engine *e, struct san_view *v)
{
	struct lcore l;

	san_engine_loop_read(e, do_lcore, &l);
	san_view_fields(v, lcore_fields, RTE_DIM(lcore_fields), &l);
}
