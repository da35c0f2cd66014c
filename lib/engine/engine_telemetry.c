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
#include "engine_telemetry.h"

#define COUNTERS_MAX  256
#define BUSY_LEAST_NS (100 * SAN_NS_PER_MS) /* a share of less time says nothing */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct san_engine_port *port; /* one per process; see rtsan_open() */

/* The last reading of each lcore, so that the next one can tell what happened since. */
static struct last {
	uint64_t time_ns, busy_ns, percent;
} last[SAN_ENGINE_LCORES];

static int
with_prefix(struct san_engine_port *p, struct rte_tel_data *d, const char *prefix, bool want)
{
	struct san_engine_counter c[COUNTERS_MAX];
	int i, n = san_engine_counters(p, c, COUNTERS_MAX);
	size_t len = strlen(prefix);

	rte_tel_data_start_dict(d);
	for (i = 0; i < RTE_MIN(n, COUNTERS_MAX); i++)
		if ((strncmp(c[i].name, prefix, len) == 0) == want)
			rte_tel_data_add_dict_u64(d, c[i].name, c[i].value);
	return 0;
}

static int
tel_stats(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	(void)params;
	return with_prefix(p, d, "drop_", false);
}

static int
tel_drops(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	(void)params;
	return with_prefix(p, d, "drop_", true);
}

static int
tel_cam(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	(void)params;
	return with_prefix(p, d, "cam_", true);
}

/* All counters of one engine; without a number, which lcores there are. */
static int
tel_lcore(struct san_engine_port *p, struct rte_tel_data *d, const char *params)
{
	struct san_engine_counter c[COUNTERS_MAX];
	char *end = NULL;
	unsigned long id;
	uint32_t k;
	int i, n;

	if (params == NULL || params[0] == '\0') {
		rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
		for (k = 0; k < p->nb_engines; k++)
			rte_tel_data_add_array_int(d, (int)k);
		return 0;
	}
	id = strtoul(params, &end, 10);
	if (*end != '\0' || id >= p->nb_engines)
		return -EINVAL;
	n = san_engine_counters_of(p->engines[id], c, COUNTERS_MAX);
	rte_tel_data_start_dict(d);
	for (i = 0; i < RTE_MIN(n, COUNTERS_MAX); i++)
		rte_tel_data_add_dict_u64(d, c[i].name, c[i].value);
	return 0;
}

/* What a reading of *e* finds: the share of time since the one before, if that is not just now. */
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

struct lcore_view {
	struct san_engine_stats stats;
	uint64_t time_ns, busy_ns;
	uint32_t nb_conns, nb_backlog, nb_inflight;
};

static int
do_lcore(struct san_engine *e, void *arg)
{
	struct lcore_view *out = arg;

	*out = (struct lcore_view){
		.stats = e->stats,
		.time_ns = e->now_ns - e->busy.since_ns,
		.busy_ns = e->busy.busy_ns,
		.nb_conns = san_core_pdl(e->core)->nb_conns,
		.nb_inflight = san_core_pdl(e->core)->inflight,
		.nb_backlog = e->nb_backlog,
	};
	return 0;
}

static int
add_lcore(struct rte_tel_data *d, struct san_engine *e)
{
	struct rte_tel_data *one = rte_tel_data_alloc();
	struct lcore_view v;
	char name[16];

	if (one == NULL)
		return -ENOMEM;
	san_engine_read(e, do_lcore, &v);
	rte_tel_data_start_dict(one);
	rte_tel_data_add_dict_int(one, "lcore",
				  e->launched ? (int)e->port->conf.lcores[e->id] : -1);
	rte_tel_data_add_dict_u64(one, "busy_percent",
				  busy_percent(&last[e->id], v.time_ns, v.busy_ns));
	rte_tel_data_add_dict_u64(one, "time_ns", v.time_ns);
	rte_tel_data_add_dict_u64(one, "busy_ns", v.busy_ns);
	rte_tel_data_add_dict_u64(one, "loops", v.stats.nb_loops);
	rte_tel_data_add_dict_u64(one, "loops_idle", v.stats.nb_idle_loops);
	rte_tel_data_add_dict_u64(one, "sleeps", v.stats.nb_sleeps);
	rte_tel_data_add_dict_u64(one, "rx_pkts", v.stats.nb_rx);
	rte_tel_data_add_dict_u64(one, "tx_pkts", v.stats.nb_tx);
	rte_tel_data_add_dict_u64(one, "conns", v.nb_conns);
	rte_tel_data_add_dict_u64(one, "in_flight", v.nb_inflight);
	rte_tel_data_add_dict_u64(one, "backlog", v.nb_backlog);
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
	char mac[RTE_ETHER_ADDR_FMT_SIZE];
	uint64_t nb_rx = 0, nb_tx = 0;
	uint32_t i;

	(void)params;
	for (i = 0; i < p->nb_engines; i++) {
		nb_rx += p->engines[i]->stats.nb_rx;
		nb_tx += p->engines[i]->stats.nb_tx;
	}
	rte_ether_format_addr(mac, sizeof(mac), &p->mac);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "port", p->id);
	rte_tel_data_add_dict_string(d, "name", p->name);
	rte_tel_data_add_dict_string(d, "driver", p->driver);
	rte_tel_data_add_dict_string(d, "mac", mac);
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

static const struct command {
	const char *name;
	int (*fn)(struct san_engine_port *p, struct rte_tel_data *d, const char *params);
	const char *help;
} commands[] = {
	{"/sanstack/port", tel_port, "The port. No parameters"},
	{"/sanstack/conn", san_engine_tel_conn, "One connection. Parameter: CID; none: conn_list"},
	{"/sanstack/conn_list", san_engine_tel_conn_list,
	 "Connections, a page of them. Parameters: OFFSET (0, then what next says), APP"},
	{"/sanstack/reasons", san_engine_tel_reasons,
	 "Connections by what holds them back now. No parameters"},
	{"/sanstack/hist", san_engine_tel_hist,
	 "Histograms: rounds with work, round trips now. Bucket i: from 2^i ns. No parameters"},
	{"/sanstack/lcores", tel_lcores, "All lcores and how busy they are. No parameters"},
	{"/sanstack/capture", san_engine_tel_capture,
	 "Packets into a pcapng file. Parameters: FILE, CID (0: all), SNAP; none: show"},
	{"/sanstack/capture_stop", san_engine_tel_capture_stop, "End capturing. No parameters"},
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
			rc = commands[i].fn(port, d, params);
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
	if (port == NULL) {
		port = p;
		memset(last, 0, sizeof(last));
	}
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
