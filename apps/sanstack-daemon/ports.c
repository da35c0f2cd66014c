/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>

#include <bsd/stdlib.h>

#include "server.h"
#include "socks.h"
#include "view.h"

#define STATE_EACH ((size_t)64 << 30) /* part of PORTS_STATE_BYTES for each port */
#define STATE_NB   (PORTS_STATE_BYTES / STATE_EACH)

/** The arguments of EAL as a vector. */
struct eal_args {
	char buf[DPDK_WORD_MAX * 8];
	char *words[DPDK_ARGS_MAX + 2];
	char *devices[DPDK_ARGS_MAX];
	int nb_words, nb_devices;
};

static int
ports_split_args(struct eal_args *a, const struct conf *conf)
{
	static char name[] = "sanstack-daemon";
	int n;

	a->words[0] = name;
	n = san_dpdk_eal_split(conf->eal, a->buf, sizeof(a->buf), &a->words[1], DPDK_ARGS_MAX - 1);
	a->nb_words = n + 1;
	return n >= 0 ? 0 :
			rtsan_provider_host()->fail(n, "[eal] args: too long, or a quote is open");
}

int
san_ports_check_lcores(const struct conf *conf)
{
	const struct rtsan_host *host = rtsan_provider_host();
	bool workers[RTE_MAX_LCORE];
	const struct dpdk_conf *port;
	struct eal_args a;
	uint32_t i, k;
	int rc = ports_split_args(&a, conf);

	if (rc != 0 || !san_dpdk_eal_workers(a.words, a.nb_words, workers))
		return rc;
	for (i = 0; i < conf->nb_ports; i++) {
		port = &conf->ports[i].dpdk;
		for (k = 0; port->has_lcores && k < port->engine.nb_lcores; k++)
			if (!workers[port->engine.lcores[k]])
				return host->fail(-EINVAL, "[%s]: lcore %u: no worker of EAL",
						  conf->ports[i].section, port->engine.lcores[k]);
		if (!port->has_lcores && memchr(workers, true, sizeof(workers)) == NULL)
			return host->fail(-EINVAL, "[%s]: EAL has no worker lcore, see --lcores",
					  conf->ports[i].section);
	}
	return 0;
}

static bool
ports_has_word(const struct eal_args *a, const char *word)
{
	int i;

	for (i = 1; i < a->nb_words; i++)
		if (strcmp(a->words[i], word) == 0)
			return true;
	return false;
}

int
san_ports_start_eal(const struct conf *conf, bool bare)
{
	static char in_memory[] = "--in-memory", no_files[] = "--no-shconf", no_pci[] = "--no-pci";
	struct eal_args a;
	int rc = ports_split_args(&a, conf);

	if (rc != 0)
		return rc;
	if (bare) {
		a.nb_devices = san_dpdk_eal_take_devices(a.words, &a.nb_words, a.devices);
		/* EAL's files would overwrite those of the other daemon */
		if (!ports_has_word(&a, in_memory) && !ports_has_word(&a, no_files))
			a.words[a.nb_words++] = ports_has_word(&a, "--no-huge") ? no_files :
										  in_memory;
		/* do not scan PCI: only the named devices are used */
		if (!ports_has_word(&a, no_pci) && a.nb_devices != 0)
			a.words[a.nb_words++] = no_pci;
	}
	return san_dpdk_eal_start(a.nb_words, a.words, rtsan_provider_host());
}

/*
 * Several processes may use such a device at the same time. The kernel takes 100 ms to set it up.
 */
static bool
ports_is_shared(const char *device)
{
	static const char name[] = "net_af_packet";

	return strncmp(device, name, sizeof(name) - 1) == 0;
}

int
san_ports_probe(const struct conf *conf, bool is_early)
{
	struct eal_args a;
	int i, rc = ports_split_args(&a, conf);

	if (rc != 0)
		return rc;
	a.nb_devices = san_dpdk_eal_take_devices(a.words, &a.nb_words, a.devices);
	for (i = 0; i < a.nb_devices && rc == 0; i++)
		if (!is_early || ports_is_shared(a.devices[i]))
			rc = san_dpdk_eal_probe(a.devices[i], rtsan_provider_host());
	for (i = 0; is_early && i < (int)conf->nb_ports && rc == 0; i++)
		san_engine_port_warm(&conf->ports[i].dpdk.engine);
	return rc;
}

/* NULL: no memory range is available, and the port can't be taken over. */
static struct san_mem *
new_state(int *fd)
{
	struct san_mem *mem = NULL;
	uint32_t i, first = arc4random_uniform((uint32_t)STATE_NB);
	int rc = -EEXIST;

	for (i = 0; i < STATE_NB && rc == -EEXIST; i++)
		rc = san_mem_create(PORTS_STATE_FROM + (first + i) % STATE_NB * STATE_EACH,
				    STATE_EACH, fd, &mem);
	if (rc != 0)
		SAN_LOG(DRIVER, WARNING, "state: %s; a new daemon can't take over", strerror(-rc));
	return mem;
}

int
san_ports_each(struct server *s, ports_fn fn)
{
	char why[256];
	uint32_t i;
	int rc;

	for (i = 0; i < s->conf.nb_ports; i++) {
		rc = fn(s, i);
		if (rc == 0)
			continue;
		snprintf(why, sizeof(why), "%s", rtsan_error());
		return rtsan_provider_host()->fail(rc, "[%s] %s", s->conf.ports[i].section, why);
	}
	return 0;
}

static int
ports_watch(struct server *s, const struct dpdk_ctx *ctx)
{
	int rc = san_fd_watch(s->epoll, san_engine_event_fd(ctx->port), EPOLLIN, &s->all);

	return rc == 0 ? 0 : rtsan_provider_host()->fail(rc, "epoll: %s", strerror(-rc));
}

int
san_ports_open(struct server *s, uint32_t i)
{
	struct conf_port *conf = &s->conf.ports[i];
	struct app_port *port = &s->all.ports[i];
	struct dpdk_ctx *ctx;
	int rc;

	port->mem_fd = -1;
	port->mem = s->conf.takeover != 0 ? new_state(&port->mem_fd) : NULL;
	if (port->mem != NULL)
		san_shmq_mem_place(PORTS_SHARE_FROM, PORTS_SHARE_BYTES);
	rc = san_dpdk_ctx_open(conf->name, &conf->dpdk, port->mem, NULL, rtsan_provider_host(),
			       &ctx);
	if (rc == 0)
		rc = san_apps_add_port(&s->all, conf->name, port->mem, ctx);
	return rc == 0 ? ports_watch(s, ctx) : rc;
}

int
san_ports_open_device(struct server *s, uint32_t i)
{
	struct conf_port *conf = &s->conf.ports[i];
	struct app_port *port = &s->all.ports[i];
	int rc;

	if (port->ctx != NULL)
		return 0;
	rc = san_dpdk_ctx_open(conf->name, &conf->dpdk, NULL, &port->mac, rtsan_provider_host(),
			       &port->ctx);
	return rc == 0 ? ports_watch(s, port->ctx) : rc;
}

int
san_ports_resume(struct server *s, uint32_t i)
{
	san_shmq_mem_place(PORTS_SHARE_FROM, PORTS_SHARE_BYTES);
	return san_dpdk_ctx_resume(s->all.ports[i].ctx, s->all.ports[i].mem);
}

int
san_ports_begin(struct server *s, uint32_t i)
{
	return s->all.ports[i].mem != NULL ? san_dpdk_ctx_start(s->all.ports[i].ctx) : 0;
}

bool
san_ports_can_park(const struct server *s)
{
	uint32_t i;

	for (i = 0; i < s->all.nb_ports; i++)
		if (s->all.ports[i].mem == NULL)
			return false;
	return true;
}

void
san_ports_park(struct server *s)
{
	struct app_port *port;
	uint32_t i;

	for (i = 0; i < s->conf.nb_ports; i++) {
		port = &s->all.ports[i];
		if (port->ctx == NULL)
			continue;
		san_socks_close(port);
		port->mac = san_engine_mac(port->ctx->port);
		san_engine_park(port->ctx->port); /* san_dpdk_ctx_resume() goes on */
		if (san_engine_is_shareable(port->ctx->port))
			continue;
		san_dpdk_ctx_close(port->ctx);
		port->ctx = NULL;
	}
}

void
san_ports_reclaim(struct server *s)
{
	uint32_t i;

	for (i = 0; i < s->all.nb_ports; i++)
		san_engine_reclaim(s->all.ports[i].mem);
}

uint64_t
san_ports_close(struct server *s)
{
	uint64_t leaks, sum = 0;
	struct app_port *port;
	uint32_t i;

	for (i = 0; i < s->all.nb_ports; i++) {
		port = &s->all.ports[i];
		san_socks_close(port);
		leaks = san_view_counters_leaks(port->ctx->port);
		if (leaks != 0)
			SAN_LOG(DRIVER, ERR, "port=%s leaks=%" PRIu64 ": records without an owner",
				port->name, leaks);
		sum += leaks;
		san_dpdk_ctx_close(port->ctx);
		san_mem_close(port->mem);
		san_fd_close(port->mem_fd);
	}
	return sum;
}
