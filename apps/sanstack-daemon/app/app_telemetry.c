/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "socks.h"
#include "view.h"
#include "view_compat.h"

#define PAGE    24    /* applications per answer: some 500 bytes each, of at most 16 KiB */
#define NUMBERS 65536 /* upper bound of socket numbers */
#define WAIT_S  2     /* limit for taking the lock; then the operator sees an error */

/** A copy of what telemetry reports of an application. */
struct row {
	struct app app;
	struct san_view_app view;
};

#define FIELD(name, member, kind, unit, help) \
	SAN_VIEW_FIELD(struct row, name, member, kind, unit, help)

/** Application */
static const struct san_view_field fields[] = {
	SAN_VIEW_NOTE(name, INFO, "", "Name of the program."),
	FIELD(pid, app.pid, INFO, "", "Process."),
	FIELD(uid, app.uid, INFO, "", "User."),
	FIELD(qps, app.nb[USERS_QPS], GAUGE, "queue pairs", "Queue pairs."),
	FIELD(cqs, app.nb[USERS_CQS], GAUGE, "queues", "Completion queues."),
	FIELD(regions, app.nb[USERS_MRS], GAUGE, "regions", "Memory regions."),
	FIELD(listeners, app.nb[USERS_LISTENERS], GAUGE, "listeners", "Listeners."),
	FIELD(memory_bytes, app.nb[USERS_BYTES], GAUGE, "bytes", "Registered memory and queues."),
	FIELD(events_late, app.nb_late, GAUGE, "events",
	      "Events that wait for the program to read."),
	FIELD(conns, view.nb_conns, GAUGE, "connections", "Connections."),
	FIELD(tx_messages, view.traffic.nb_tx, COUNTER, "messages", "Messages sent."),
	FIELD(tx_bytes, view.traffic.tx_bytes, COUNTER, "bytes", "Payload sent."),
	FIELD(rx_messages, view.traffic.nb_rx, COUNTER, "messages", "Messages received."),
	FIELD(rx_bytes, view.traffic.rx_bytes, COUNTER, "bytes", "Payload received."),
	FIELD(qp_faults, view.nb_faults, COUNTER, "queue pairs", "Ended for malformed entries."),
};
static const struct san_view_set fields_set = {fields, RTE_DIM(fields)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct apps *apps;

void
san_app_telemetry_enter(struct apps *all)
{
	pthread_mutex_lock(&lock);
	apps = all;
}

void
san_app_telemetry_leave(void)
{
	pthread_mutex_unlock(&lock);
}

static int
add_app(struct rte_tel_data *d, const struct app *a, const struct san_view_app *view)
{
	struct rte_tel_data *one = rte_tel_data_alloc();
	struct row row = {.app = *a, .view = *view};
	char name[16];

	if (one == NULL)
		return -ENOMEM;
	san_ulp_traffic_add(&row.view.traffic, &a->socks_traffic);
	rte_tel_data_start_dict(one);
	rte_tel_data_add_dict_string(one, "name", a->name);
	san_view_fields(&(struct san_view){.dict = one}, fields, RTE_DIM(fields), &row);
	snprintf(name, sizeof(name), "%u", a->id);
	return rte_tel_data_add_dict_container(d, name, one, 0);
}

static int
add_limits(struct rte_tel_data *d, const struct app_port *port)
{
	const struct san_core_conf *core = &san_engine_conf_of(port->ctx->port)->core;
	const struct conf *conf = port->conf;
	struct rte_tel_data *one = rte_tel_data_alloc();

	if (one == NULL)
		return -ENOMEM;
	rte_tel_data_start_dict(one);
	rte_tel_data_add_dict_uint(one, "apps", conf->apps);
	rte_tel_data_add_dict_uint(one, "qps", san_app_port_each(port, USERS_QPS));
	rte_tel_data_add_dict_uint(one, "conns", san_app_port_each(port, USERS_CONNS));
	rte_tel_data_add_dict_uint(one, "cqs", conf->app_cqs);
	rte_tel_data_add_dict_uint(one, "regions", conf->app_regions);
	rte_tel_data_add_dict_uint(one, "listeners", conf->app_listeners);
	rte_tel_data_add_dict_uint(one, "memory_bytes", conf->app_bytes);
	rte_tel_data_add_dict_uint(one, "stream_mem", core->stream_mem);
	rte_tel_data_add_dict_uint(one, "stream_mem_user", core->stream_mem_user);
	rte_tel_data_add_dict_uint(one, "stream_mrs", core->ulp.max_stream_mrs);
	rte_tel_data_add_dict_uint(one, "linger_ms", core->linger_ns / SAN_NS_PER_MS);
	return rte_tel_data_add_dict_container(d, "limits", one, 0);
}

/* Report the applications of *port* from number *from* on. */
static int
app_telemetry_apps(struct rte_tel_data *d, const struct app_port *port, uint32_t from)
{
	static struct san_view_app views[SAN_ENGINE_APPS];
	const struct app *a, *by_id[SAN_ENGINE_APPS] = {NULL};
	uint32_t id, nb_listed = 0;
	int rc;

	LIST_FOREACH(a, &apps->list, link)
		if (a->attached && a->port == port)
			by_id[a->id] = a;
	san_view_conn_count_apps(port->ctx->port, views);
	san_socks_count(port, views);
	rc = add_limits(d, port);
	for (id = from; id < SAN_ENGINE_APPS && rc == 0; id++) {
		if (by_id[id] == NULL)
			continue;
		if (nb_listed++ == PAGE)
			break;
		rc = add_app(d, by_id[id], &views[id]);
	}
	rte_tel_data_add_dict_uint(d, "next", id < SAN_ENGINE_APPS ? id : 0);
	return rc;
}

static const struct command {
	const char *name;
	/** fill the dict *d* */
	int (*run)(struct rte_tel_data *d, const struct app_port *port, uint32_t from);
	unsigned long max; /* numbers are below it */
	const char *help;
	const struct san_view_set *set; /**< explained if the parameter is "help" */
} commands[] = {
	{"/sanstack/apps", app_telemetry_apps, SAN_ENGINE_APPS,
	 "Applications. Parameter: first number, 0 or the last *next*", &fields_set},
	{"/sanstack/sockets", san_socks_telemetry_sum, NUMBERS,
	 "Carried sockets: number, memory, and number of those refused at a limit of either",
	 &san_socks_telemetry_sum_set},
	{"/sanstack/sock_list", san_socks_telemetry_list, NUMBERS,
	 "Each carried socket. Parameter: first number, 0 or the last *next*",
	 &san_socks_telemetry_list_set},
	{"/sanstack/sock_reasons", san_socks_telemetry_reasons, NUMBERS,
	 "Why the last sockets that a rule would carry are the kernel's, by inode"},
};

static int
app_telemetry_run(struct rte_tel_data *d, const char *name, uint32_t from, const struct command *c)
{
	uint32_t i;

	for (i = 0; i < apps->nb_ports && apps->ports[i].ctx != NULL; i++)
		if (name[0] == '\0' || strcmp(apps->ports[i].name, name) == 0)
			return c->run(d, &apps->ports[i], from);
	return san_view_telemetry_error(d, "there is no port with this name");
}

static int
app_telemetry_answer(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct command *c = commands;
	char name[SAN_ENGINE_NAME];
	unsigned long from = 0;
	struct timespec until;
	char *end = NULL;
	int rc = -ENODEV;

	while (strcmp(c->name, cmd) != 0)
		c++;
	if (!san_view_telemetry_port_name(&params, name))
		return san_view_telemetry_error(d, "there is no port with this name");
	if (c->set != NULL && params != NULL && strcmp(params, "help") == 0)
		return san_view_explain(d, c->set);
	if (params != NULL && params[0] != '\0') {
		from = strtoul(params, &end, 10);
		if (*end != '\0' || from >= c->max)
			return san_view_telemetry_error(d, "the parameter is a number");
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	rte_tel_data_start_dict(d);
	if (pthread_mutex_timedlock(&lock, &until) != 0)
		return san_view_telemetry_error(d, "the daemon is busy");
	if (apps != NULL)
		rc = app_telemetry_run(d, name, (uint32_t)from, c);
	pthread_mutex_unlock(&lock);
	return rc;
}

RTE_INIT(app_telemetry_register)
{
	size_t i;

	for (i = 0; i < RTE_DIM(commands); i++)
		rte_telemetry_register_cmd(commands[i].name, app_telemetry_answer,
					   commands[i].help);
}
