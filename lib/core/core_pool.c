/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The pools that the connections of an lcore share (RT-35). doc/deadlock.md has, for each, the
 * share of a host and when a stale holder loses it. test_sim_pools.c attacks each.
 */

#include "core_priv.h"

static struct san_core_pool
pool_of(const char *name, const struct san_pool *p)
{
	return (struct san_core_pool){.name = name, .used = p->max - p->nb, .max = p->max};
}

void
san_core_pools(const struct san_core *core, struct san_core_pool pools[SAN_CORE_POOLS])
{
	const struct san_pdl *pdl = core->pdl;
	const struct san_tl *tl = core->tl;
	const struct san_core_pool all[] = {
		{"connections", pdl->nb_conns, pdl->conf.max_conns},
		{"packets in flight", pdl->inflight, pdl->conf.budget_pkts},
		pool_of("transmit blocks", &pdl->free_wide),
		pool_of("receive words", &pdl->free_rxwords),
		pool_of("initiator's records", &tl->free_txns),
		pool_of("initiator's rings", &tl->free_rings),
		pool_of("target's records", &tl->free_rxns),
		pool_of("refusals", &tl->free_refused),
		{"CAM", tl->cam.nb_used, tl->conf.max_txns + tl->conf.max_rxns},
		{"held packets", tl->nb_held, tl->conf.max_held},
		{"incast budget", tl->budget_used, tl->conf.budget_bytes},
		{"expired grants", tl->expired_used, tl->conf.expired_bytes},
		{"long paths", tl->path_used, tl->conf.path_bytes},
	};

	static_assert(RTE_DIM(all) == SAN_CORE_POOLS, "each pool");
	memcpy(pools, all, sizeof(all));
}
