/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * rte_telemetry commands, so that dpdk-telemetry.py shows everything that "show" does. Telemetry
 * has a thread of its own. An engine on an lcore is asked by a call. Of an engine that the
 * application polls the thread reads only counters, one word each, while the lock keeps the engine
 * from being destroyed. (ARCH-7)
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>

#include "engine_priv.h"
#include "view.h"
#include "view_telemetry.h"

#define BUSY_LEAST_NS (100 * SAN_NS_PER_MS) /* a percentage of a shorter time means nothing */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The last reading of an lcore: the next one reports the change since then. */
struct last {
	uint64_t time_ns, busy_ns, percent;
};

/* The first one is used for requests that name no port. */
static struct place {
	struct san_engine_port *port;
	struct last last[SAN_ENGINE_LCORES];
} places[RTE_MAX_ETHPORTS];
static uint32_t nb_places;

int
san_view_telemetry_error(struct rte_tel_data *d, const char *text)
{
	rte_tel_data_start_dict(d);
	return rte_tel_data_add_dict_string(d, "error", text);
}

static int
tel_stats(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	(void)params;
	rte_tel_data_start_dict(d);
	san_view_counters_put(p, NULL, &(struct san_view){.dict = d}, "drop_", false);
	return 0;
}

static int
tel_drops(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	(void)params;
	rte_tel_data_start_dict(d);
	san_view_counters_put(p, NULL, &(struct san_view){.dict = d}, "drop_", true);
	return 0;
}

static int
tel_cam(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	(void)params;
	rte_tel_data_start_dict(d);
	san_view_counters_put(p, NULL, &(struct san_view){.dict = d}, "cam_", true);
	return 0;
}

static int
tel_gauges(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	struct rtsan_dpdk_counter c[SAN_VIEW_COUNTERS];
	uint32_t i, n = san_view_counters(p, NULL, c);

	(void)params;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (i = 0; i < n; i++)
		if (san_view_counters_is_gauge(c[i].name))
			rte_tel_data_add_array_string(d, c[i].name);
	return 0;
}

/* Show the counters of one engine; without a number, list the lcores. */
static int
tel_lcore(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	char *end = NULL;
	unsigned long id;
	uint32_t k;

	if (params == NULL || params[0] == '\0') {
		rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
		for (k = 0; k < p->nb_engines; k++)
			rte_tel_data_add_array_int(d, (int)k);
		return 0;
	}
	id = strtoul(params, &end, 10);
	if (*end != '\0' || id >= p->nb_engines)
		return -EINVAL;
	rte_tel_data_start_dict(d);
	san_view_counters_put(p, p->engines[id], &(struct san_view){.dict = d}, "", true);
	return 0;
}

/* Percentage of time busy since the last reading, which is repeated if it is very recent. */
static uint64_t
busy_percent(struct last *l, uint64_t time_ns, uint64_t busy_ns)
{
	if (time_ns - l->time_ns >= BUSY_LEAST_NS) {
		l->percent = 100 * (busy_ns - l->busy_ns) / (time_ns - l->time_ns);
		l->time_ns = time_ns;
		l->busy_ns = busy_ns;
	}
	return l->percent;
}

static int
add_lcore(struct rte_tel_data *d, struct san_engine *e)
{
	struct place *place = places;
	struct rte_tel_data *one = rte_tel_data_alloc();
	struct san_view_busy busy;
	char name[16];

	if (one == NULL)
		return -ENOMEM;
	while (place->port != e->port)
		place++;
	rte_tel_data_start_dict(one);
	rte_tel_data_add_dict_int(one, "lcore",
				  e->launched ? (int)e->port->conf.lcores[e->id] : -1);
	busy = san_view_lcore(e, &(struct san_view){.dict = one});
	rte_tel_data_add_dict_u64(one, "busy_percent",
				  busy_percent(&place->last[e->id], busy.time_ns, busy.busy_ns));
	snprintf(name, sizeof(name), "%u", e->id);
	return rte_tel_data_add_dict_container(d, name, one, 0);
}

static int
tel_lcores(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	uint32_t i;
	int rc = 0;

	(void)params;
	rte_tel_data_start_dict(d);
	for (i = 0; i < p->nb_engines && rc == 0; i++)
		rc = add_lcore(d, p->engines[i]);
	return rc;
}

static int
tel_port(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	const struct rte_ether_addr addr = san_engine_mac(p);
	char mac[RTE_ETHER_ADDR_FMT_SIZE];
	uint64_t nb_rx = 0, nb_tx = 0;
	uint32_t i;

	(void)params;
	for (i = 0; i < p->nb_engines; i++) {
		nb_rx += p->engines[i]->stats.nb_rx;
		nb_tx += p->engines[i]->stats.nb_tx;
	}
	rte_ether_format_addr(mac, sizeof(mac), &addr);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "port_name", p->conf.name);
	rte_tel_data_add_dict_u64(d, "port", p->id);
	rte_tel_data_add_dict_string(d, "name", p->name);
	rte_tel_data_add_dict_string(d, "driver", p->driver);
	rte_tel_data_add_dict_string(d, "mac", mac);
	rte_tel_data_add_dict_string(d, "link", san_engine_dev_state(p));
	rte_tel_data_add_dict_string(d, "interface", p->dev.name);
	rte_tel_data_add_dict_u64(d, "mtu", p->mtu);
	rte_tel_data_add_dict_u64(d, "lcores", p->nb_engines);
	rte_tel_data_add_dict_u64(d, "queues", p->nb_queues);
	rte_tel_data_add_dict_u64(d, "rx_pkts", nb_rx);
	rte_tel_data_add_dict_u64(d, "tx_pkts", nb_tx);
	rte_tel_data_add_dict_u64(d, "buffers", p->conf.pool_size);
	rte_tel_data_add_dict_u64(d, "buffers_free", rte_mempool_avail_count(p->pool));
	rte_tel_data_add_dict_string(d, "idle", san_engine_idle_name(p->idle));
	return 0;
}

static int
tel_ports(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	uint32_t i;

	(void)p;
	(void)params;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (i = 0; i < nb_places; i++)
		rte_tel_data_add_array_string(d, places[i].port->conf.name);
	return 0;
}

static const struct command {
	const char *name;
	int (*fn)(struct san_engine_port *p, struct rte_tel_data *d, const char *params);
	const char *help;
} commands[] = {
	{"/sanstack/ports", tel_ports,
	 "Names of the ports. Every other command takes port=NAME as its first parameter; without "
	 "it, it is about the first one"},
	{"/sanstack/port", tel_port, "The port. No parameters"},
	{"/sanstack/conn", san_view_telemetry_conn_one,
	 "One connection. Parameter: CID; none: conn_list"},
	{"/sanstack/stream", san_view_stream_telemetry, "One stream. Parameter: CID"},
	{"/sanstack/conn_list", san_view_telemetry_conn_list,
	 "Connections, a page of them. Parameters: OFFSET (0 or the last *next*), APP"},
	{"/sanstack/reasons", san_view_telemetry_conn_reasons,
	 "Connections by what holds them back now. No parameters"},
	{"/sanstack/hist", san_view_telemetry_conn_hist,
	 "Histograms: rounds with work, round trips now. Bucket i: from 2^i ns. No parameters"},
	{"/sanstack/lcores", tel_lcores, "All lcores and how busy they are. No parameters"},
	{"/sanstack/capture", san_view_telemetry_conn_capture,
	 "Packets into a pcapng file. Parameters: FILE, CID (0: all), SNAP; none: show"},
	{"/sanstack/capture_stop", san_view_telemetry_conn_capture_stop,
	 "End capturing. No parameters"},
	{"/sanstack/lcore", tel_lcore, "Counters of one lcore. Parameter: its number, from 0"},
	{"/sanstack/stats", tel_stats, "Counters of every layer. No parameters"},
	{"/sanstack/drops", tel_drops, "Dropped packets by reason. No parameters"},
	{"/sanstack/gauges", tel_gauges, "Counters that are states, not counts. No parameters"},
	{"/sanstack/cam", tel_cam, "The reorder engine's table. No parameters"},
};

#define PORT_KEY "port="

bool
san_view_telemetry_port_name(const char **params, char name[SAN_ENGINE_NAME])
{
	const char *from = *params;
	size_t len;

	name[0] = '\0';
	if (from == NULL || strncmp(from, PORT_KEY, strlen(PORT_KEY)) != 0)
		return true;
	from += strlen(PORT_KEY);
	len = strcspn(from, ",");
	if (len == 0 || len >= SAN_ENGINE_NAME)
		return false;
	memcpy(name, from, len);
	name[len] = '\0';
	*params = from[len] == ',' ? &from[len + 1] : &from[len];
	return true;
}

/* Find the port that *params* begin with, and cut it off. NULL: there is none. */
static struct san_engine_port *
telemetry_find_port(const char **params)
{
	char name[SAN_ENGINE_NAME];
	uint32_t i;

	if (!san_view_telemetry_port_name(params, name))
		return NULL;
	for (i = 0; i < nb_places; i++)
		if (name[0] == '\0' || strcmp(places[i].port->conf.name, name) == 0)
			return places[i].port;
	return NULL;
}

static int
telemetry_answer_cmd(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct san_engine_port *port = telemetry_find_port(&params);
	size_t i;

	if (nb_places == 0)
		return -ENODEV;
	if (port == NULL)
		return san_view_telemetry_error(d, "there is no port with this name");
	for (i = 0; i < RTE_DIM(commands); i++)
		if (strcmp(cmd, commands[i].name) == 0)
			return commands[i].fn(port, d, params);
	return -ENODEV;
}

static int
telemetry_handle_cmd(const char *cmd, const char *params, struct rte_tel_data *d)
{
	int rc;

	pthread_mutex_lock(&lock);
	rc = telemetry_answer_cmd(cmd, params, d);
	pthread_mutex_unlock(&lock);
	return rc;
}

RTE_INIT(view_telemetry_register)
{
	size_t i;

	for (i = 0; i < RTE_DIM(commands); i++)
		rte_telemetry_register_cmd(commands[i].name, telemetry_handle_cmd,
					   commands[i].help);
}

void
san_view_telemetry_add(struct san_engine_port *p)
{
	pthread_mutex_lock(&lock);
	if (nb_places < RTE_DIM(places))
		places[nb_places++] = (struct place){.port = p};
	pthread_mutex_unlock(&lock);
}

void
san_view_telemetry_del(struct san_engine_port *p)
{
	uint32_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < nb_places; i++) {
		if (places[i].port != p)
			continue;
		/* keep the order of the others */
		memmove(&places[i], &places[i + 1], (--nb_places - i) * sizeof(places[0]));
		break;
	}
	pthread_mutex_unlock(&lock);
}
