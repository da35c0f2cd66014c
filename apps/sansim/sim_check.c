/* SPDX-License-Identifier: BSD-3-Clause */

/* The list of checkers, and the distribution of notes to them. */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "sim_check.h"

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
