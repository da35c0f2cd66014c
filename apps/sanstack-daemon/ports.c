/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "ports.h"
#include "san_log.h"
#include "socks.h"

/*
 * Places in the address space that nobody else uses: programs, their libraries and heaps lie
 * above or below, EAL's memory below. The first are for the state of ports, each with room for
 * more than it can need; the others for what applications share with us.
 */
#define STATE_FROM  0x200000000000
#define STATE_BYTES ((size_t)64 << 30)
#define STATE_NB    256
#define SHARE_FROM  0x300000000000
#define SHARE_BYTES ((size_t)32 << 40)

/** What EAL is told, in words. */
struct eal_args {
	char buf[DPDK_WORD_MAX * 8];
	char *words[DPDK_ARGS_MAX + 2];
	char *devices[DPDK_ARGS_MAX];
	int nb_words, nb_devices;
};

static int
split(struct eal_args *a, const struct conf *conf)
{
	static char name[] = "sanstack-daemon";
	int n;

	a->words[0] = name;
	n = dpdk_eal_split(conf->eal, a->buf, sizeof(a->buf), &a->words[1], DPDK_ARGS_MAX - 1);
	a->nb_words = n + 1;
	return n >= 0 ? 0 :
			rtsan_provider_host()->fail(n, "[eal] args: too long, or a quote is open");
}

static bool
has_word(const struct eal_args *a, const char *word)
{
	int i;

	for (i = 1; i < a->nb_words; i++)
		if (strcmp(a->words[i], word) == 0)
			return true;
	return false;
}

int
ports_start_eal(const struct conf *conf, bool bare)
{
	static char in_memory[] = "--in-memory", no_files[] = "--no-shconf", no_pci[] = "--no-pci";
	struct eal_args a;
	int rc = split(&a, conf);

	if (rc != 0)
		return rc;
	if (bare) {
		a.nb_devices = dpdk_eal_take_devices(a.words, &a.nb_words, a.devices);
		/* files in the places that the other daemon has them would be its */
		if (!has_word(&a, in_memory) && !has_word(&a, no_files))
			a.words[a.nb_words++] = has_word(&a, "--no-huge") ? no_files : in_memory;
		/* what was not named is not ours either */
		if (!has_word(&a, no_pci) && a.nb_devices != 0)
			a.words[a.nb_words++] = no_pci;
	}
	return dpdk_eal_start(a.nb_words, a.words, rtsan_provider_host());
}

/* Several processes may have it at the same time. To make it takes the kernel 100 ms. */
static bool
is_shared(const char *device)
{
	static const char name[] = "net_af_packet";

	return strncmp(device, name, sizeof(name) - 1) == 0;
}

static int
probe(const struct conf *conf, bool shared_only)
{
	struct eal_args a;
	int i, rc = split(&a, conf);

	if (rc != 0)
		return rc;
	a.nb_devices = dpdk_eal_take_devices(a.words, &a.nb_words, a.devices);
	for (i = 0; i < a.nb_devices && rc == 0; i++)
		if (!shared_only || is_shared(a.devices[i]))
			rc = dpdk_eal_probe(a.devices[i], rtsan_provider_host());
	return rc;
}

int
ports_probe(const struct conf *conf)
{
	return probe(conf, false);
}

int
ports_warm(const struct conf *conf)
{
	int rc = probe(conf, true);
	uint32_t i;

	for (i = 0; i < conf->nb_ports && rc == 0; i++)
		rc = dpdk_ctx_warm(conf->ports[i].words, conf->ports[i].nb_words,
				   rtsan_provider_host());
	return rc;
}

/* NULL: it can't be, and the port can't be taken over. */
static struct san_mem *
new_state(int *fd)
{
	struct san_mem *mem = NULL;
	uint32_t i, first = arc4random_uniform(STATE_NB);
	int rc = -EEXIST;

	for (i = 0; i < STATE_NB && rc == -EEXIST; i++)
		rc = san_mem_create(STATE_FROM + (first + i) % STATE_NB * STATE_BYTES,
				    STATE_BYTES, fd, &mem);
	if (rc != 0)
		SAN_LOG(DRIVER, WARNING, "state: %s; a new daemon can't take over", strerror(-rc));
	return mem;
}

static int
open_port(struct server *s, uint32_t i)
{
	const struct rtsan_host *host = rtsan_provider_host();
	const struct conf_port *conf = &s->conf.ports[i];
	struct app_port *port = &s->all.ports[i];
	int fd = port->mem_fd;
	struct san_mem *mem = port->mem;
	struct dpdk_ctx *ctx;
	int rc;

	if (i >= s->all.nb_ports) {
		fd = -1;
		mem = s->conf.takeover != 0 ? new_state(&fd) : NULL;
	}
	if (mem != NULL)
		shmq_mem_place(SHARE_FROM, SHARE_BYTES);
	rc = dpdk_ctx_open(conf->name, conf->words, conf->nb_words, mem, host, &ctx);
	if (rc == 0 && i >= s->all.nb_ports)
		rc = apps_add_port(&s->all, conf->name, mem, ctx);
	if (rc != 0)
		return rc;
	port->mem_fd = fd;
	port->epoll = s->epoll;
	rc = app_port_join(port, ctx);
	if (rc != 0)
		return host->fail(rc, "no memory for the table of sockets");
	return server_watch(s, san_engine_event_fd(ctx->port), &s->all) == 0 ?
		0 :
		host->fail(-errno, "epoll: %s", strerror(errno));
}

int
ports_open(struct server *s)
{
	char section[64], why[256];
	uint32_t i;
	int rc;

	for (i = 0; i < s->conf.nb_ports; i++) {
		rc = open_port(s, i);
		if (rc == 0)
			continue;
		conf_port_section(&s->conf.ports[i], section, sizeof(section));
		snprintf(why, sizeof(why), "%s", rtsan_error());
		return rtsan_provider_host()->fail(rc, "[%s] %s", section, why);
	}
	return 0;
}

int
ports_begin(struct server *s)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->all.nb_ports && rc == 0; i++)
		if (s->all.ports[i].mem != NULL)
			rc = dpdk_ctx_start(s->all.ports[i].ctx);
	return rc;
}

bool
ports_can_park(const struct server *s)
{
	uint32_t i;

	for (i = 0; i < s->all.nb_ports; i++)
		if (s->all.ports[i].mem == NULL)
			return false;
	return true;
}

void
ports_park(struct server *s)
{
	uint32_t i;

	for (i = 0; i < s->all.nb_ports; i++) {
		if (s->all.ports[i].ctx != NULL) {
			socks_close(&s->all.ports[i]);
			dpdk_ctx_park(s->all.ports[i].ctx);
		}
		s->all.ports[i].ctx = NULL;
	}
}

void
ports_reclaim(struct server *s)
{
	uint32_t i;

	for (i = 0; i < s->all.nb_ports; i++)
		san_engine_reclaim(s->all.ports[i].mem);
}

uint64_t
ports_close(struct server *s)
{
	uint64_t leaks, sum = 0;
	struct app_port *port;
	uint32_t i;

	for (i = 0; i < s->all.nb_ports; i++) {
		port = &s->all.ports[i];
		socks_close(port);
		leaks = san_engine_leaks(port->ctx->port);
		if (leaks != 0)
			SAN_LOG(DRIVER, ERR, "port=%s leaks=%" PRIu64 ": records that nobody holds",
				port->name, leaks);
		sum += leaks;
		dpdk_ctx_close(port->ctx);
		san_mem_close(port->mem);
		if (port->mem_fd >= 0)
			close(port->mem_fd);
	}
	return sum;
}
