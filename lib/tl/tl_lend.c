/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One incast budget for all lcores of a host (RT-13). Invariants, at every step:
 *
 *   free_bytes + sum of budget_bytes of the lcores = total_bytes
 *   budget_used <= budget_bytes >= least_bytes, on each lcore
 *
 * So the bytes granted or pulled on all lcores together never exceed the total. Each lcore always
 * has what tl_admit.c needs: room for one more step while nothing is granted. Pulls leave a quarter
 * of *its* budget, and san_tl_lend_tick() never takes that quarter away. So each lcore can always
 * grant to one head of line.
 *
 * An lcore that waits takes free budget, unit by unit, and makes a claim. A claim makes the other
 * lcores return what they do not use. An idle lcore returns all but the least. If the waiting lcore
 * has less than an even share, a busy lcore returns what exceeds its own share, as its grants are
 * used or expire, and does not take it back. While no lcore waits, none writes to the shared words:
 * an idle lcore keeps what it has.
 */

#include "tl_priv.h"

#define CLAIM_WAITS 1u
#define CLAIM_SHORT (1u << 16 | CLAIM_WAITS)
#define CALM_ROUNDS 64 /* rounds until a claim is withdrawn: lcores wait in some rounds only */

void
san_tl_lend_init(struct san_tl_lend *l, uint32_t total_bytes, uint32_t nb_lcores)
{
	l->total_bytes = RTE_MAX(total_bytes, nb_lcores); /* each lcore has some */
	l->share_bytes = l->total_bytes / nb_lcores;
	l->least_bytes = RTE_MAX(l->share_bytes / 4, 1u);
	l->unit_bytes = RTE_MAX(l->total_bytes / 16, 1u);
	atomic_init(&l->free_bytes, l->total_bytes);
	atomic_init(&l->claims, 0);
}

/* Take at most *bytes* of the free budget. */
static uint32_t
lend_take_bytes(struct san_tl_lend *l, uint32_t bytes)
{
	uint32_t had = atomic_load(&l->free_bytes), got;

	do {
		got = RTE_MIN(had, bytes);
		if (got == 0)
			return 0;
	} while (!atomic_compare_exchange_weak(&l->free_bytes, &had, had - got));
	return got;
}

static void
set_claim(struct san_tl *tl, uint32_t claim)
{
	if (tl->claim == claim)
		return;
	atomic_fetch_add(&tl->conf.lend->claims, claim - tl->claim);
	tl->claim = claim;
}

void
san_tl_lend_join(struct san_tl *tl)
{
	struct san_tl_lend *l = tl->conf.lend;

	tl->budget_bytes = tl->limit_bytes = tl->share_bytes = tl->conf.budget_bytes;
	tl->calm = CALM_ROUNDS;
	if (l == NULL)
		return;
	/* Other lcores have run in no round yet, so they have one share at most. */
	tl->budget_bytes = tl->limit_bytes = tl->share_bytes = lend_take_bytes(l, l->share_bytes);
	SAN_VERIFY(tl->budget_bytes == l->share_bytes);
}

void
san_tl_lend_leave(struct san_tl *tl)
{
	if (tl->conf.lend == NULL)
		return;
	set_claim(tl, 0);
	atomic_fetch_add(&tl->conf.lend->free_bytes, tl->budget_bytes);
	tl->budget_bytes = 0;
}

/* Budget that must stay: what is used, and at least a quarter more than what is pulled. */
static uint32_t
in_use(const struct san_tl *tl)
{
	uint32_t pulled = tl->pulled_used;

	return pulled == 0 ? tl->budget_used : RTE_MAX(tl->budget_used, pulled + pulled / 3 + 2);
}

void
san_tl_lend_tick(struct san_tl *tl, bool waits)
{
	struct san_tl_lend *l = tl->conf.lend;
	uint32_t keep = UINT32_MAX, others, claim = 0;

	others = atomic_load_explicit(&l->claims, memory_order_relaxed) - tl->claim;
	if (waits && (others < CLAIM_SHORT || tl->budget_bytes < tl->share_bytes))
		tl->budget_bytes += lend_take_bytes(l, l->unit_bytes);
	if (waits)
		tl->calm = 0;
	else if (tl->calm < CALM_ROUNDS)
		tl->calm++;
	if (tl->calm != CALM_ROUNDS)
		claim = tl->budget_bytes < tl->share_bytes ? CLAIM_SHORT : CLAIM_WAITS;
	set_claim(tl, claim);
	tl->limit_bytes = tl->budget_bytes;
	if (likely(others == 0))
		return;
	if (tl->claim == 0)
		keep = RTE_MAX(in_use(tl), l->least_bytes);
	else if (others >= CLAIM_SHORT)
		keep = RTE_MAX(in_use(tl), tl->share_bytes);
	if (tl->budget_bytes > keep) {
		atomic_fetch_add(&l->free_bytes, tl->budget_bytes - keep);
		tl->budget_bytes = keep;
		tl->stats.nb_budget_returned++;
	}
	/* This lcore must not use again what it returns between two rounds. */
	tl->limit_bytes = others < CLAIM_SHORT ? tl->budget_bytes :
						 RTE_MIN(tl->budget_bytes, tl->share_bytes);
}
