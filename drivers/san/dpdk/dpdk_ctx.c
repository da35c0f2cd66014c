/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Contexts: a port with its engines, opened from port arguments. A program has one. The daemon has
 * one for each of its ports, all with one EAL.
 */

#include <stdatomic.h>
#include <stdlib.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "dpdk_priv.h"
#include "san_log.h"
#include "view.h"

static _Atomic bool claimed;
static LIST_HEAD(, dpdk_ctx) opened = LIST_HEAD_INITIALIZER(opened);

static int
dpdk_ctx_find_port(struct dpdk_conf *conf, const struct rtsan_host *host)
{
	uint16_t *port_id = &conf->engine.port_id;
	const struct dpdk_ctx *other;
	char *end;
	unsigned long n = strtoul(conf->port, &end, 10);
	bool is_number = conf->port[0] >= '0' && conf->port[0] <= '9' && *end == '\0';

	if (is_number)
		*port_id = (uint16_t)n;
	if (is_number ? n >= RTE_MAX_ETHPORTS || !rte_eth_dev_is_valid_port(*port_id) :
			rte_eth_dev_get_port_by_name(conf->port, port_id) != 0)
		return host->fail(
			-ENODEV, "port=%s: no such port; DPDK found %u, see --vdev and --allow",
			conf->port, rte_eth_dev_count_avail());
	LIST_FOREACH(other, &opened, link)
		if (san_engine_conf_of(other->port)->port_id == *port_id)
			return host->fail(-EBUSY, "port=%s: the device of port %s", conf->port,
					  san_engine_conf_of(other->port)->name);
	return 0;
}

static int
make_engine(struct dpdk_conf *conf, const struct rtsan_host *host, struct dpdk_ctx *ctx)
{
	struct rte_device *dev = san_dpdk_eal_device(conf->engine.port_id);
	const char *why = "";
	int rc = san_engine_open(&conf->engine, &ctx->port, &why);

	if (rc != 0) {
		/* the engine has closed the port; probe its device anew for the next try */
		san_dpdk_eal_remove(dev);
		return host->fail(rc, "port %s: %s (%s)", conf->port, why, strerror(-rc));
	}
	if (conf->capture[0] == '\0')
		return 0;
	rc = san_view_capture(ctx->port, conf->capture);
	if (rc != 0) {
		san_engine_close(ctx->port);
		san_dpdk_eal_remove(dev);
		return host->fail(rc, "capture=%s: %s", conf->capture,
				  rc == -EEXIST ? "is no capture; it stays" : strerror(-rc));
	}
	return 0;
}

static void
count_qps(struct dpdk_ctx *ctx)
{
	uint32_t i;

	for (i = 0; i < san_engine_count(ctx->port); i++)
		ctx->nb_qps[i] = san_engine_lcore_nb_qps(san_engine_at(ctx->port, i));
}

int
san_dpdk_ctx_open(const char *name, struct dpdk_conf *conf, struct san_mem *mem,
		  const struct rte_ether_addr *mac, const struct rtsan_host *host,
		  struct dpdk_ctx **out)
{
	struct dpdk_ctx *ctx = calloc(1, sizeof(*ctx));
	int rc = ctx != NULL ? 0 : -ENOMEM;

	san_view_build = rtsan_build();
	conf->engine.core.mem = mem;
	conf->engine.resumes = mac != NULL;
	conf->engine.waits = mem != NULL || mac != NULL;
	if (mac != NULL)
		conf->engine.mac = *mac;
	snprintf(conf->engine.name, sizeof(conf->engine.name), "%s", name);
	if (rc == 0)
		rc = dpdk_ctx_find_port(conf, host);
	if (rc == 0 && conf->engine.own_lcore && !conf->has_lcores) {
		conf->engine.lcores[0] = rte_get_next_lcore(UINT32_MAX, 1, 0);
		if (conf->engine.lcores[0] >= RTE_MAX_LCORE)
			rc = host->fail(-EINVAL, "poll=lcore: EAL has no worker lcore; try "
						 "--lcores=0@0,1@1");
	}
	if (rc == 0)
		rc = make_engine(conf, host, ctx);
	if (rc != 0) {
		free(ctx);
		return rc;
	}
	ctx->host = host;
	ctx->param = conf->param;
	strcpy(ctx->capture, conf->capture);
	ctx->nb_engines = conf->engine.nb_lcores;
	ctx->qp_shift = SAN_QPN_INDEX_BITS;
	if (ctx->nb_engines > 1)
		ctx->qp_shift = rte_log2_u32(conf->engine.core.ulp.max_qps);
	count_qps(ctx);
	LIST_INSERT_HEAD(&opened, ctx, link);
	*out = ctx;
	return 0;
}

int
san_dpdk_ctx_open_alone(int argc, char *const *argv, char *const *words, int nb_words,
			const struct rtsan_host *host, struct dpdk_ctx **out)
{
	struct dpdk_conf *conf = malloc(sizeof(*conf));
	int rc = conf != NULL ? 0 : -ENOMEM;

	if (atomic_exchange(&claimed, true)) {
		free(conf);
		return host->fail(-EBUSY, "a context is open: one EAL per process");
	}
	if (rc == 0)
		rc = san_dpdk_eal_start(argc, argv, host);
	if (rc == 0)
		rc = san_dpdk_conf_read(conf, words, nb_words, host);
	if (rc == 0)
		rc = san_dpdk_ctx_open(DPDK_PORT_NAME, conf, NULL, NULL, host, out);
	free(conf);
	if (rc != 0)
		atomic_store(&claimed, false);
	return rc;
}

void
san_dpdk_ctx_close_alone(void *ctx)
{
	san_dpdk_ctx_close(ctx);
	atomic_store(&claimed, false);
}

int
san_dpdk_ctx_resume(struct dpdk_ctx *ctx, struct san_mem *mem)
{
	const char *why = "";
	int rc = san_engine_resume(ctx->port, mem, &why);

	if (rc != 0)
		return ctx->host->fail(rc, "%s (%s)", why, strerror(-rc));
	count_qps(ctx);
	/* parking has ended the capture */
	if (ctx->capture[0] != '\0' && !san_view_capture_show(ctx->port, NULL, false)) {
		rc = san_view_capture(ctx->port, ctx->capture);
		if (rc != 0)
			SAN_LOG(DRIVER, WARNING, "capture=%s: %s", ctx->capture, strerror(-rc));
	}
	return 0;
}

int
san_dpdk_ctx_start(struct dpdk_ctx *ctx)
{
	const char *why = "";
	int rc = san_engine_start(ctx->port, &why);

	return rc == 0 ? 0 : ctx->host->fail(rc, "%s (%s)", why, strerror(-rc));
}

void
san_dpdk_ctx_close(struct dpdk_ctx *ctx)
{
	struct rte_device *dev = san_dpdk_eal_device(san_engine_conf_of(ctx->port)->port_id);

	LIST_REMOVE(ctx, link);
	san_engine_close(ctx->port);
	san_dpdk_eal_remove(dev);
	free(ctx);
}

void
san_dpdk_ctx_halt(void)
{
	const struct dpdk_ctx *ctx;

	LIST_FOREACH(ctx, &opened, link)
		san_engine_halt(ctx->port);
}
