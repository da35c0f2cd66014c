/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * PCB-2, PCB-3, PCB-4: packets in flight are within the first window, the connection's share of the
 * host's budget, and that budget; messages are within their limit. The share is recomputed from the
 * active connections, where every round is checked.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "sim_check.h"

/* A connection after the previous round. */
struct before {
	uint64_t nb_rtx;
	uint32_t cid;
	uint32_t inflight;
	bool active;
};

struct pcb {
	struct before **hosts;
	struct san_core **cores; /* to detect a restart */
};

static int
pcb_begin(struct sim_world *w, void **state)
{
	struct pcb *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	*state = p;
	p->hosts = calloc(w->nb_hosts, sizeof(*p->hosts));
	p->cores = calloc(w->nb_hosts, sizeof(*p->cores));
	return p->hosts == NULL || p->cores == NULL ? -ENOMEM : 0;
}

static void
pcb_fini(struct sim_world *w, void *state)
{
	struct pcb *p = state;
	uint32_t i;

	for (i = 0; p->hosts != NULL && i < w->nb_hosts; i++)
		free(p->hosts[i]);
	free(p->hosts);
	free(p->cores);
	free(p);
}

static void
check_pcb_conn(struct sim_world *w, const struct sim_host *h, const struct san_pdl_conn *c,
	       const struct before *b, uint32_t share)
{
	const struct san_tl *tl = san_core_tl(h->core);
	uint32_t vwin = RTE_MAX(1u, RTE_MIN(c->pcb.first_win - 1u, share));

	if (tl->conns[c->slot].open && tl->conns[c->slot].nb_msgs > c->pcb.msg_limit)
		san_sim_world_fail(w, "pcb", "host %u: connection %u has %u messages, limit %u",
				   h->id, c->slot, tl->conns[c->slot].nb_msgs, c->pcb.msg_limit);
	/* retransmissions need no room, and a smaller window takes nothing back (RULE-7) */
	if (b->cid == c->cid && c->pcb.inflight > b->inflight && c->nb_rtx == b->nb_rtx &&
	    c->pcb.inflight > vwin)
		san_sim_world_fail(w, "pcb", "host %u: connection %u has %u packets in flight, "
					     "virtual window %u",
				   h->id, c->slot, c->pcb.inflight, vwin);
}

static void
pcb_round(struct sim_world *w, void *state, struct sim_host *h)
{
	struct pcb *p = state;
	const struct san_pdl *pdl = san_core_pdl(h->core);
	struct before *b = p->hosts[h->id];
	uint32_t slot, share, nb_active = 0;

	if (pdl->inflight > pdl->conf.budget_pkts)
		san_sim_world_fail(w, "pcb", "host %u: %u packets in flight, budget %u", h->id,
				   pdl->inflight, pdl->conf.budget_pkts);
	if (w->conf.run.check_every != 1)
		return;
	if (p->cores[h->id] != h->core) {
		free(b);
		b = p->hosts[h->id] = calloc(pdl->conf.max_conns, sizeof(*b));
		p->cores[h->id] = h->core;
		if (b == NULL)
			return;
	}
	/* connections that stayed active: shares were at most those among them */
	for (slot = 0; slot < pdl->conf.max_conns; slot++)
		nb_active += pdl->conns[slot].state != SAN_CONN_FREE && pdl->conns[slot].active &&
			b[slot].active && b[slot].cid == pdl->conns[slot].cid;
	share = pdl->conf.budget_pkts / RTE_MAX(1u, nb_active);
	for (slot = 0; slot < pdl->conf.max_conns; slot++) {
		const struct san_pdl_conn *c = &pdl->conns[slot];

		if (c->state == SAN_CONN_OPEN)
			check_pcb_conn(w, h, c, &b[slot], share);
		b[slot] = (struct before){
			.nb_rtx = c->nb_rtx,
			.cid = c->cid,
			.inflight = c->pcb.inflight,
			.active = c->active,
		};
	}
}

const struct sim_checker sim_check_pcb = {
	.begin = pcb_begin,
	.round = pcb_round,
	.fini = pcb_fini,
};
