/* SPDX-License-Identifier: BSD-3-Clause */

/* Nothing is left after the end: no connection, record, CAM entry, region or mbuf. */

#include <inttypes.h>

#include <rte_hash.h>
#include <rte_mempool.h>

#include "sim_check.h"

/* Count used mbufs, without the empty ones that cores keep for their next packets. */
static void
check_leak_pool(struct sim_world *w, const char *whose, struct rte_mempool *pool)
{
	unsigned int used = rte_mempool_in_use_count(pool);
	uint32_t i;

	for (i = 0; i < w->nb_hosts; i++)
		if (w->hosts[i].core != NULL && w->hosts[i].pool == pool)
			used -= san_core_nb_spare(w->hosts[i].core);
	if (used != 0)
		san_sim_world_fail(w, "leak", "%s: %u of %u mbufs in use at the end", whose, used,
				   pool->size);
}

static void
leak_end(struct sim_world *w, void *state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < w->nb_hosts; i++) {
		struct sim_host *h = &w->hosts[i];

		if (h->core != NULL && san_core_leaks(h->core) != 0)
			san_sim_world_fail(w, "leak",
					   "host %u: %" PRIu64 " things in use at the end", i,
					   san_core_leaks(h->core));
		if (h->pool != w->net.pool)
			check_leak_pool(w, "a host", h->pool);
	}
	if (rte_hash_count(w->cam) != 0)
		san_sim_world_fail(w, "leak", "%d entries in the CAM at the end",
				   rte_hash_count(w->cam));
	check_leak_pool(w, "the network", w->net.pool);
}

const struct sim_checker sim_check_leak = {
	.end = leak_end,
};
