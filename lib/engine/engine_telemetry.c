/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * rte_telemetry commands, so that dpdk-telemetry.py sees everything that "show"
 * does. Telemetry has a thread of its own: an engine with an lcore is asked by a
 * call; with one that the application polls, the thread only reads counters, each
 * a word, while the lock keeps the engine from going away.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>

#include "engine_priv.h"

#define COUNTERS_MAX 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct san_engine_port *port; /* one per process; see rtsan_open() */

static int
with_prefix(struct rte_tel_data *d, const char *prefix, bool want)
{
	struct san_engine_counter c[COUNTERS_MAX];
	int i, n = san_engine_counters(port, c, COUNTERS_MAX);
	size_t len = strlen(prefix);

	rte_tel_data_start_dict(d);
	for (i = 0; i < RTE_MIN(n, COUNTERS_MAX); i++)
		if ((strncmp(c[i].name, prefix, len) == 0) == want)
			rte_tel_data_add_dict_u64(d, c[i].name, c[i].value);
	return 0;
}

static int
tel_stats(struct rte_tel_data *d, const char *params)
{
	(void)params;
	return with_prefix(d, "drop_", false);
}

static int
tel_drops(struct rte_tel_data *d, const char *params)
{
	(void)params;
	return with_prefix(d, "drop_", true);
}

static int
tel_cam(struct rte_tel_data *d, const char *params)
{
	(void)params;
	return with_prefix(d, "cam_", true);
}

/* All counters of one engine; without a number, which lcores there are. */
static int
tel_lcore(struct rte_tel_data *d, const char *params)
{
	struct san_engine_counter c[COUNTERS_MAX];
	char *end = NULL;
	unsigned long id;
	uint32_t k;
	int i, n;

	if (params == NULL || params[0] == '\0') {
		rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
		for (k = 0; k < port->nb_engines; k++)
			rte_tel_data_add_array_int(d, (int)k);
		return 0;
	}
	id = strtoul(params, &end, 10);
	if (*end != '\0' || id >= port->nb_engines)
		return -EINVAL;
	n = san_engine_counters_of(port->engines[id], c, COUNTERS_MAX);
	rte_tel_data_start_dict(d);
	for (i = 0; i < RTE_MIN(n, COUNTERS_MAX); i++)
		rte_tel_data_add_dict_u64(d, c[i].name, c[i].value);
	return 0;
}

static int
tel_port(struct rte_tel_data *d, const char *params)
{
	char mac[RTE_ETHER_ADDR_FMT_SIZE];
	uint64_t nb_rx = 0, nb_tx = 0;
	uint32_t i;

	(void)params;
	for (i = 0; i < port->nb_engines; i++) {
		nb_rx += port->engines[i]->stats.nb_rx;
		nb_tx += port->engines[i]->stats.nb_tx;
	}
	rte_ether_format_addr(mac, sizeof(mac), &port->mac);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "port", port->id);
	rte_tel_data_add_dict_string(d, "name", port->name);
	rte_tel_data_add_dict_string(d, "driver", port->driver);
	rte_tel_data_add_dict_string(d, "mac", mac);
	rte_tel_data_add_dict_u64(d, "mtu", port->mtu);
	rte_tel_data_add_dict_u64(d, "lcores", port->nb_engines);
	rte_tel_data_add_dict_u64(d, "queues", port->nb_queues);
	rte_tel_data_add_dict_u64(d, "rx_pkts", nb_rx);
	rte_tel_data_add_dict_u64(d, "tx_pkts", nb_tx);
	rte_tel_data_add_dict_string(d, "idle", san_engine_idle_name(port->idle));
	return 0;
}

static int
conn_add(struct rte_tel_data *d, const struct san_pdl_conn *c)
{
	struct rte_tel_data *one = rte_tel_data_alloc();
	char name[16], addr[SAN_INET_TEXT];

	if (one == NULL)
		return -ENOMEM;
	rte_tel_data_start_dict(one);
	rte_tel_data_add_dict_string(one, "peer", san_inet_text(&c->path.dst, addr));
	rte_tel_data_add_dict_u64(one, "state", c->state);
	rte_tel_data_add_dict_u64(one, "tx_pkts", c->nb_tx_pkts);
	rte_tel_data_add_dict_u64(one, "rx_pkts", c->nb_rx_pkts);
	rte_tel_data_add_dict_u64(one, "rtx", c->nb_rtx);
	rte_tel_data_add_dict_u64(one, "rtt_ns", c->rtt.srtt_ns);
	rte_tel_data_add_dict_u64(one, "cwnd_q16", c->cc.window);
	rte_tel_data_add_dict_u64(one, "in_flight", c->pcb.inflight);
	snprintf(name, sizeof(name), "0x%06x", c->cid);
	return rte_tel_data_add_dict_container(d, name, one, 0);
}

static int
do_conns(struct san_engine *e, void *arg)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	uint32_t i;

	for (i = 0; i < pdl->conf.max_conns; i++)
		if (pdl->conns[i].state != SAN_CONN_FREE && conn_add(arg, &pdl->conns[i]) != 0)
			break; /* an answer holds a bounded number */
	return 0;
}

static int
tel_conns(struct rte_tel_data *d, const char *params)
{
	uint32_t i;

	(void)params;
	rte_tel_data_start_dict(d);
	for (i = 0; i < port->nb_engines; i++)
		san_engine_read(port->engines[i], do_conns, d);
	return 0;
}

static const struct command {
	const char *name;
	int (*fn)(struct rte_tel_data *d, const char *params);
	const char *help;
} commands[] = {
	{"/sanstack/port", tel_port, "The port. No parameters"},
	{"/sanstack/conn", tel_conns, "Connections by CID. No parameters"},
	{"/sanstack/lcore", tel_lcore, "Counters of one lcore. Parameter: its number, from 0"},
	{"/sanstack/stats", tel_stats, "Counters of every layer. No parameters"},
	{"/sanstack/drops", tel_drops, "Dropped packets by reason. No parameters"},
	{"/sanstack/cam", tel_cam, "The reorder engine's table. No parameters"},
};

static int
handle(const char *cmd, const char *params, struct rte_tel_data *d)
{
	int rc = -ENODEV;
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; port != NULL && i < RTE_DIM(commands); i++)
		if (strcmp(cmd, commands[i].name) == 0)
			rc = commands[i].fn(d, params);
	pthread_mutex_unlock(&lock);
	return rc;
}

RTE_INIT(engine_telemetry_register)
{
	size_t i;

	for (i = 0; i < RTE_DIM(commands); i++)
		rte_telemetry_register_cmd(commands[i].name, handle, commands[i].help);
}

void
san_engine_telemetry_add(struct san_engine_port *p)
{
	pthread_mutex_lock(&lock);
	if (port == NULL)
		port = p;
	pthread_mutex_unlock(&lock);
}

void
san_engine_telemetry_del(struct san_engine_port *p)
{
	pthread_mutex_lock(&lock);
	if (port == p)
		port = NULL;
	pthread_mutex_unlock(&lock);
}
