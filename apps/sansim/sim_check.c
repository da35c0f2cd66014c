/* SPDX-License-Identifier: BSD-3-Clause */

/* The list of checkers, the distribution of notes to them, and the small checkers. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_hash.h>
#include <rte_mempool.h>

#include "sim_check.h"

/* The layers' own checks of their invariants: windows, timers, CAM, queues. They abort. */
static void
core_round(struct sim_world *w, void *state, struct sim_host *h)
{
	(void)w;
	(void)state;
	san_core_check(h->core);
}

static const struct sim_checker sim_check_core = {
	.round = core_round,
};

/* ---- nothing is left after the end: no connection, record, CAM entry, region or mbuf ---- */

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

static const struct sim_checker sim_check_leak = {
	.end = leak_end,
};

/* ---- RT-26: a connection with open requests makes progress while its path works ---- */

static void
progress_sample(struct sim_world *w, void *state)
{
	uint32_t i;

	(void)state;
	if (w->nb_blocking != 0)
		return;
	for (i = 0; i < w->load->nb_sides; i++) {
		const struct sim_side *s = &w->load->sides[i];
		uint64_t since = RTE_MAX(s->last_ns, w->unblocked_ns);

		if (s->innocent && s->nb_posted != s->nb_done && s->state == SIM_SIDE_UP &&
		    w->now_ns > since + w->conf.run.stall_ns)
			san_sim_world_fail(w, "progress",
					   "side %u: of %" PRIu64
					   " requests none is done for %" PRIu64 " ms",
					   i, s->nb_posted - s->nb_done,
					   (uint64_t)((w->now_ns - since) / SAN_NS_PER_MS));
	}
}

static void
progress_settled(struct sim_world *w, void *state)
{
	(void)state;
	if (w->conf.run.silence_max_ns != 0 && w->longest_silence_ns > w->conf.run.silence_max_ns)
		san_sim_world_fail(w, "progress", "side %u stood still for %" PRIu64 " us",
				   w->silent_side,
				   (uint64_t)(w->longest_silence_ns / SAN_NS_PER_US));
}

static const struct sim_checker sim_check_progress = {
	.sample = progress_sample,
	.settled = progress_settled,
};

/* Jain's index over the connections' bytes during the measurement. */
static void
fair_settled(struct sim_world *w, void *state)
{
	uint32_t jain = san_sim_report_jain(w);

	(void)state;
	if (w->conf.run.jain_min_ppm != 0 && jain < w->conf.run.jain_min_ppm)
		san_sim_world_fail(w, "fair", "Jain's index is %u millionths, asked for are %u",
				   jain, w->conf.run.jain_min_ppm);
}

static const struct sim_checker sim_check_fair = {
	.settled = fair_settled,
};

/* ---- all of them ---- */

static const struct sim_checker *const checkers[] = {
	&sim_check_order,
	&sim_check_bytes,
	&sim_check_complete,
	&sim_check_place,
	&sim_check_grant,
	&sim_check_pcb,
	&sim_check_core,
	&sim_check_leak,
	&sim_check_progress,
	&sim_check_fair,
};

struct sim_checks {
	void *state[RTE_DIM(checkers)];
};

int
san_sim_check_create(struct sim_world *w)
{
	struct sim_checks *c = calloc(1, sizeof(*c));
	size_t i;
	int rc = 0;

	if (c == NULL)
		return -ENOMEM;
	w->checks = c;
	for (i = 0; i < RTE_DIM(checkers) && rc == 0; i++)
		if (checkers[i]->begin != NULL)
			rc = checkers[i]->begin(w, &c->state[i]);
	return rc;
}

void
san_sim_check_destroy(struct sim_world *w)
{
	size_t i;

	if (w->checks == NULL)
		return;
	for (i = 0; i < RTE_DIM(checkers); i++)
		if (checkers[i]->fini == NULL)
			free(w->checks->state[i]);
		else if (w->checks->state[i] != NULL)
			checkers[i]->fini(w, w->checks->state[i]);
	free(w->checks);
	w->checks = NULL;
}

void
san_sim_check_note(struct sim_world *w, const struct sim_note *n)
{
	size_t i;

	for (i = 0; i < RTE_DIM(checkers) && n->side->innocent; i++)
		if (checkers[i]->note != NULL)
			checkers[i]->note(w, w->checks->state[i], n);
}

void
san_sim_check_round(struct sim_world *w, struct sim_host *h)
{
	uint32_t every = w->conf.run.check_every;
	size_t i;

	if (every == 0 || h->nb_rounds % every != 0)
		return;
	/* checkers report the failure before the core's own check aborts */
	for (i = 0; i < RTE_DIM(checkers) && !w->failed; i++)
		if (checkers[i]->round != NULL)
			checkers[i]->round(w, w->checks->state[i], h);
}

void
san_sim_check_sample(struct sim_world *w)
{
	size_t i;

	for (i = 0; i < RTE_DIM(checkers); i++)
		if (checkers[i]->sample != NULL)
			checkers[i]->sample(w, w->checks->state[i]);
}

void
san_sim_check_settled(struct sim_world *w)
{
	size_t i;

	for (i = 0; i < RTE_DIM(checkers) && !w->failed; i++)
		if (checkers[i]->settled != NULL)
			checkers[i]->settled(w, w->checks->state[i]);
}

void
san_sim_check_end(struct sim_world *w)
{
	size_t i;

	for (i = 0; i < RTE_DIM(checkers) && !w->failed; i++)
		if (checkers[i]->end != NULL)
			checkers[i]->end(w, w->checks->state[i]);
}
