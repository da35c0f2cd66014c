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
#include "view_conn.h"
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
	(void)params;
	rte_tel_data_start_dict(d);
	san_view_port(p, &(struct san_view){.dict = d});
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

/** Metrics with labels of their own */
static const struct san_view_field families[] = {
	SAN_VIEW_NOTE(port, INFO, "", "The ports."),
	SAN_VIEW_NOTE(drops, COUNTER, "packets", "Packets dropped, by reason."),
	SAN_VIEW_NOTE(conns_held, GAUGE, "connections", "Connections by what holds them back now."),
	SAN_VIEW_NOTE(round_ns, HISTOGRAM, "ns", "Time of rounds of the lcores that found work."),
	SAN_VIEW_NOTE(rtt_ns, GAUGEHISTOGRAM, "ns", "Round-trip times of the connections now."),
};
static const struct san_view_set families_set = {families, RTE_DIM(families)};

static const struct command {
	const char *name;
	int (*fn)(struct san_engine_port *p, struct rte_tel_data *d, const char *params);
	const char *help;
	const struct san_view_set *set; /**< explained if the parameter is "help" */
} commands[] = {
	{"/sanstack/ports", tel_ports,
	 "Names of the ports. Every other command takes port=NAME as its first parameter; without "
	 "it, it is about the first one"},
	{"/sanstack/port", tel_port, "The port. No parameters", &san_view_port_set},
	{"/sanstack/conn", san_view_telemetry_conn_one,
	 "One connection. Parameter: CID; none: conn_list", &san_view_conn_set},
	{"/sanstack/stream", san_view_stream_telemetry, "One stream. Parameter: CID",
	 &san_view_stream_set},
	{"/sanstack/conn_list", san_view_telemetry_conn_list,
	 "Connections, a page of them. Parameters: OFFSET (0 or the last *next*), APP",
	 &san_view_conn_list_set},
	{"/sanstack/reasons", san_view_telemetry_conn_reasons,
	 "Connections by what holds them back now. No parameters", &san_view_reasons_set},
	{"/sanstack/hist", san_view_telemetry_conn_hist,
	 "Histograms: rounds with work, round trips now. Bucket i: from 2^i ns. No parameters",
	 &families_set},
	{"/sanstack/lcores", tel_lcores, "All lcores and how busy they are. No parameters",
	 &san_view_lcore_set},
	{"/sanstack/capture", san_view_telemetry_conn_capture,
	 "Packets into a pcapng file. Parameters: FILE, CID (0: all), SNAP; none: show"},
	{"/sanstack/capture_stop", san_view_telemetry_conn_capture_stop,
	 "End capturing. No parameters"},
	{"/sanstack/lcore", tel_lcore, "Counters of one lcore. Parameter: its number, from 0",
	 &san_view_counters_set},
	{"/sanstack/stats", tel_stats, "Counters of every layer. No parameters",
	 &san_view_counters_set},
	{"/sanstack/drops", tel_drops, "Dropped packets by reason. No parameters",
	 &san_view_drops_set},
	{"/sanstack/cam", tel_cam, "The reorder engine's table. No parameters",
	 &san_view_counters_set},
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
	const struct command *c = commands;

	if (nb_places == 0)
		return -ENODEV;
	if (port == NULL)
		return san_view_telemetry_error(d, "there is no port with this name");
	while (strcmp(cmd, c->name) != 0)
		c++;
	if (c->set != NULL && params != NULL && strcmp(params, "help") == 0)
		return san_view_explain(d, c->set);
	return c->fn(port, d, params);
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
