/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app_port.h"
#include "socks.h"

int
san_app_port_init(struct app_port *port, const char *name, const struct conf *conf,
		  struct dpdk_ctx *ctx)
{
	uint32_t max_conns = san_engine_conf_of(ctx->port)->core.pdl.max_conns;

	rtsan_provider_dpdk.ops->query(ctx, &port->caps);
	port->ctx = ctx;
	port->name = name;
	port->conf = conf;
	port->lcore_qps = port->caps.max_qps / port->caps.nb_lcores;
	port->max_conns = max_conns * port->caps.nb_lcores;
	port->slot_mask = san_pdl_slot_mask(max_conns);
	port->yields = san_engine_yields(ctx->port);
	port->sleeps = san_engine_sleeps(ctx->port);
	port->carries_tcp = san_engine_sock_carries_tcp(ctx->port);
	port->max_socks = san_engine_conf_of(ctx->port)->core.max_socks;
	port->nb_doorbells = port->lcore_qps + port->max_socks;
	port->qps = calloc(port->caps.max_qps, sizeof(*port->qps));
	port->cqs = calloc(port->caps.max_cqs, sizeof(*port->cqs));
	port->mrs = calloc(port->caps.max_mrs, sizeof(*port->mrs));
	port->requests = calloc(port->caps.max_qps, sizeof(*port->requests));
	port->socks = calloc(RTE_MAX(port->max_socks, 1u), sizeof(*port->socks));
	LIST_INIT(&port->listeners);
	if (port->qps != NULL && port->cqs != NULL && port->mrs != NULL && port->requests != NULL &&
	    port->socks != NULL)
		return 0;
	san_app_port_fini(port);
	return rtsan_provider_host()->fail(-ENOMEM, "no memory for the tables of applications");
}

void
san_app_port_fini(struct app_port *port)
{
	free(port->socks);
	free(port->qps);
	free(port->cqs);
	free(port->mrs);
	free(port->requests);
	port->max_socks = 0;
}

uint16_t
san_app_port_take_id(struct app_port *port)
{
	uint32_t i;

	for (i = 1; i < SAN_ENGINE_APPS; i++) {
		port->last_id = port->last_id + 1 < SAN_ENGINE_APPS ? port->last_id + 1 : 1;
		if (port->used[port->last_id])
			continue;
		port->used[port->last_id] = true;
		return port->last_id;
	}
	return 0;
}

static_assert(CONF_PORTS_MAX * SAN_ENGINE_APPS <= UINT16_MAX + 1, "they have room");

uint16_t
san_app_port_guard_id(const struct app_port *port, uint16_t id)
{
	return (uint16_t)(port->index * SAN_ENGINE_APPS + id);
}

/* *request* holds a CID: lcore and slot. Connections never outnumber queue pairs. */
struct app_request *
san_app_port_request(struct app_port *port, uint64_t request)
{
	uint32_t cid = (uint32_t)request, slot = cid & port->slot_mask;
	uint32_t lcore = san_pdl_cid_lcore(cid);

	/* a forged number selects some entry, but does not equal the number stored there */
	return &port->requests[(lcore * port->lcore_qps + slot) % port->caps.max_qps];
}

uint32_t
san_app_port_ranges(const struct app_port *port)
{
	return port->caps.max_qps + port->caps.max_cqs + port->caps.max_mrs + port->max_socks +
		SAN_ENGINE_APPS;
}

/* *limit*, or by default (0) three quarters of *all*: one application can't exhaust the port. */
static uint32_t
app_port_share_of(uint32_t limit, uint32_t all)
{
	return limit != 0 ? limit : RTE_MAX(all - all / 4, 1u);
}

uint32_t
san_app_port_qps_each(const struct app_port *port)
{
	return app_port_share_of(port->conf->app_qps, port->caps.max_qps);
}

uint32_t
san_app_port_conns_each(const struct app_port *port)
{
	return app_port_share_of(port->conf->app_conns, port->max_conns);
}
