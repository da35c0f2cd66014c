/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Accounts of the memory and queue pairs of an lcore that streams use (SYS-5).
 *
 * DESIGN NOTES
 *
 * A stream counts for its user as long as it exists, even if its application has ended. Counting by
 * application would not work: each gets another number when it attaches, so a program that
 * attaches, leaves streams behind and ends, again and again, would finally own everything.
 *
 * Orphaned streams have an additional limit: half of the memory and of the queue pairs. A stream
 * beyond it is not orphaned, and its peer sees a reset. Ending an older orphan instead would let
 * the latest application break what others were promised.
 *
 * An account exists while its user has streams, in conf.mem like them. Users are few, and are
 * searched only when a stream is created.
 */

#include "core_priv.h"
#include "san_assert.h"

static struct core_user *
core_share_find_user(const struct san_core *core, uint32_t id)
{
	struct core_user *u;

	LIST_FOREACH(u, &core->users, link)
		if (u->id == id)
			return u;
	return NULL;
}

int
san_core_share_init(struct san_core *core, struct core_share *share, uint32_t user)
{
	struct core_user *u = core_share_find_user(core, user);

	if (u == NULL) {
		u = san_mem_calloc(core->conf.mem, 1, sizeof(*u));
		if (u == NULL)
			return -ENOMEM;
		u->id = user;
		LIST_INSERT_HEAD(&core->users, u, link);
	}
	u->nb_streams++;
	*share = (struct core_share){.user = u};
	return 0;
}

void
san_core_share_fini(struct san_core *core, struct core_share *share)
{
	struct core_user *u = share->user;

	SAN_VERIFY(share->bytes == 0);
	if (share->is_orphan) {
		core->use.nb_orphans--;
		u->nb_orphans--;
	}
	if (--u->nb_streams > 0)
		return;
	LIST_REMOVE(u, link);
	san_mem_free(core->conf.mem, u, sizeof(*u));
}

/* ---- limits: an application that owns its core has only stream_mem ---- */

static uint64_t
orphan_bytes_left(const struct san_core *core)
{
	uint64_t half = core->conf.stream_mem / 2;

	return half - RTE_MIN(half, core->use.orphan_bytes);
}

bool
san_core_share_take(struct san_core *core, struct core_share *share, uint64_t bytes)
{
	uint64_t left = core->conf.stream_mem - core->use.bytes;

	if (share->user->id != SAN_CORE_ALONE) {
		left = RTE_MIN(left, core->conf.stream_mem_user - share->user->bytes);
		left = share->is_orphan ? RTE_MIN(left, orphan_bytes_left(core)) : left;
	}
	if (bytes > left)
		return false;
	core->use.bytes += bytes;
	core->use.orphan_bytes += share->is_orphan ? bytes : 0;
	share->user->bytes += bytes;
	share->bytes += bytes;
	return true;
}

void
san_core_share_give(struct san_core *core, struct core_share *share, uint64_t bytes)
{
	SAN_ASSERT(bytes <= share->bytes);
	core->use.bytes -= bytes;
	core->use.orphan_bytes -= share->is_orphan ? bytes : 0;
	share->user->bytes -= bytes;
	share->bytes -= bytes;
}

bool
san_core_share_may_linger(const struct san_core *core, const struct core_share *share)
{
	if (share->user->id == SAN_CORE_ALONE)
		return true;
	return core->use.nb_orphans < RTE_MAX(core->conf.ulp.max_qps / 2, 1u) &&
		share->bytes <= orphan_bytes_left(core);
}

void
san_core_share_orphan(struct san_core *core, struct core_share *share)
{
	share->is_orphan = true;
	share->user->nb_orphans++;
	core->use.nb_orphans++;
	core->use.orphan_bytes += share->bytes;
}

/* ---- for show ---- */

const struct san_core_use *
san_core_share_use(const struct san_core *core)
{
	return &core->use;
}

uint32_t
san_core_share_user_orphans(const struct san_core *core, uint32_t user)
{
	const struct core_user *u = core_share_find_user(core, user);

	return u != NULL ? u->nb_orphans : 0;
}

/* ---- pools that the connections of an lcore share (RT-35) ---- */

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

/* ---- for tests ---- */

void
san_core_share_check(const struct san_core *core)
{
	uint32_t nb_streams = 0, nb_orphans = 0;
	const struct core_user *u;
	uint64_t bytes = 0;

	LIST_FOREACH(u, &core->users, link) {
		SAN_VERIFY(core_share_find_user(core, u->id) == u);
		SAN_VERIFY(u->nb_streams > 0 && u->nb_orphans <= u->nb_streams);
		SAN_VERIFY(u->id == SAN_CORE_ALONE || u->bytes <= core->conf.stream_mem_user);
		nb_streams += u->nb_streams;
		nb_orphans += u->nb_orphans;
		bytes += u->bytes;
	}
	SAN_VERIFY(nb_streams == core->use.nb && nb_orphans == core->use.nb_orphans);
	SAN_VERIFY(bytes == core->use.bytes && bytes <= core->conf.stream_mem);
	SAN_VERIFY(core->use.orphan_bytes <= core->use.bytes);
}
