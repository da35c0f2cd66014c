/* SPDX-License-Identifier: BSD-3-Clause */

/* Faults: kind, time and place. Faults of a link add up, and each is subtracted when it ends. */

#include <err.h>

#include "sim_world.h"

#define KIND(name, word, stalls_from, silences_from, is_of_host) \
	{stalls_from, silences_from, is_of_host},

static const struct {
	uint32_t stalls_from, silences_from;
	bool is_of_host;
} kinds[SIM_FAULT_MAX] = {SIM_FAULTS(KIND)};

static struct sim_host *
fault_host_of(struct sim_world *w, const struct sim_fault_conf *f)
{
	struct sim_place p;

	if (!san_sim_conf_place(f->where, &p) || p.kind != SIM_PLACE_HOST || !p.from || !p.to ||
	    p.id >= w->nb_hosts)
		return NULL;
	return &w->hosts[p.id];
}

static void
change_link(struct sim_link *l, const struct sim_fault_conf *f, bool begins)
{
	struct sim_link_fault *lf = &l->fault;
	uint32_t *const sums[SIM_FAULT_MAX] = {
		[SIM_FAULT_LOSS] = &lf->loss_ppm,
		[SIM_FAULT_BURST] = &lf->burst_ppm,
		[SIM_FAULT_FLOW] = &lf->flow_ppm,
		[SIM_FAULT_REORDER] = &lf->reorder_ppm,
		[SIM_FAULT_DUPLICATE] = &lf->dup_ppm,
		[SIM_FAULT_CORRUPT] = &lf->corrupt_ppm,
		[SIM_FAULT_FORGE] = &lf->forge_ppm,
		[SIM_FAULT_DOWN] = &lf->nb_down,
		[SIM_FAULT_MUTE] = &lf->nb_mute,
	};
	bool has_rate = f->kind != SIM_FAULT_DOWN && f->kind != SIM_FAULT_MUTE;
	uint32_t by = has_rate ? f->rate_ppm : 1;
	uint64_t by_ns = begins ? f->arg_ns : -f->arg_ns;

	if (sums[f->kind] != NULL)
		*sums[f->kind] += begins ? by : -by;
	if (f->kind == SIM_FAULT_REORDER)
		lf->reorder_ns += by_ns;
	if (f->kind == SIM_FAULT_DUPLICATE)
		lf->dup_ns += by_ns;
}

/* Each link has the narrowest of its active limits. */
static void
narrow_links(struct sim_world *w)
{
	const struct sim_fault_conf *f;
	struct sim_link *l;
	uint32_t k, i;

	for (i = 0; i < w->nb_links; i++)
		w->links[i].fault.mtu = 0;
	for (k = 0; k < w->conf.nb_faults; k++) {
		f = &w->conf.faults[k];
		if (f->kind != SIM_FAULT_NARROW || !w->fault_active[k])
			continue;
		for (i = 0; (l = san_sim_topo_match(w, f->where, &i)) != NULL;)
			if (l->fault.mtu == 0 || f->mtu < l->fault.mtu)
				l->fault.mtu = f->mtu;
	}
}

static void
change_host(struct sim_world *w, struct sim_host *h, const struct sim_fault_conf *f, bool begins)
{
	int rc;

	switch (f->kind) {
	case SIM_FAULT_PAUSE:
		if (begins && h->nb_paused++ == 0)
			h->paused_at_ns = w->now_ns;
		if (begins || --h->nb_paused != 0)
			return;
		h->held_ns += w->now_ns - h->paused_at_ns;
		break;
	case SIM_FAULT_RESTART:
		if (begins)
			san_sim_host_kill(w, h);
		if (begins || h->core != NULL)
			return;
		rc = san_sim_host_start(w, h);
		if (rc != 0)
			san_sim_fail_host(w, h, "sansim", "%s", strerror(-rc));
		break;
	case SIM_FAULT_MOVE: /* its end changes the address once more */
		if (h->core == NULL)
			return;
		h->mac.addr_bytes[1]++;
		san_core_mac_set(h->core, &h->mac, false);
		break;
	default:
		h->lie = begins ? f->lie : SIM_LIE_NONE;
		return;
	}
	san_sim_host_wake(w, h);
}

static void
count_silence(struct sim_world *w)
{
	if (w->nb_silencing != 0)
		w->silence_ns += w->now_ns - w->silence_at_ns;
	w->silence_at_ns = w->now_ns;
}

/* The shortest silence after which an end may give up its connection (RT-7, RT-24). */
static uint64_t
give_up_ns(struct sim_world *w, struct san_core *core)
{
	const struct san_pdl_conf *pdl = &san_core_pdl(core)->conf;
	uint64_t alive_ns = w->conf.host.conn.keepalive_ms * (uint64_t)SAN_NS_PER_MS;
	uint64_t rto_ns = pdl->rto_min_ns, retries_ns = 0;
	uint32_t i;

	for (i = 0; i < pdl->max_retries; i++) {
		retries_ns += rto_ns;
		rto_ns = RTE_MIN(2 * rto_ns, pdl->rto_max_ns);
	}
	alive_ns *= w->conf.host.core.cm.keepalive_probes;
	return alive_ns == 0 ? retries_ns : RTE_MIN(retries_ns, alive_ns);
}

/*
 * A connection may break only if one of its processes died, if faults dropped packets for as long
 * as its ends tolerate, or if the scenario sets short limits. Congestion, reordering, small pools,
 * wrong and revoked keys, and late receives are no reason, and neither is a loss too low to hit a
 * packet repeatedly.
 */
bool
san_sim_fault_may_break(struct sim_world *w, const struct sim_side *side)
{
	const struct sim_host *h = &w->hosts[side->host];
	const struct sim_host *peer = &w->hosts[san_sim_load_peer(w, side)->host];
	struct san_pdl_conf usual;

	if (h->nb_starts > 1 || peer->nb_starts > 1 || peer->core == NULL)
		return true;
	count_silence(w);
	san_pdl_conf_default(&usual);
	return w->conf.host.core.pdl.max_retries < usual.max_retries ||
		w->silence_ns >= give_up_ns(w, h->core);
}

void
san_sim_fault_event(struct sim_world *w, uint32_t fault, bool begins)
{
	const struct sim_fault_conf *f = &w->conf.faults[fault];
	struct sim_link *l;
	uint32_t i = 0;

	if (begins == w->fault_active[fault] || (begins && w->faults_over))
		return; /* it has ended together with all others */
	w->fault_active[fault] = begins;
	if (f->rate_ppm >= kinds[f->kind].stalls_from) {
		w->nb_blocking += begins ? 1 : -1;
		w->unblocked_ns = w->now_ns;
	}
	if (f->rate_ppm >= kinds[f->kind].silences_from) {
		count_silence(w);
		w->nb_silencing += begins ? 1 : -1;
	}
	w->net.nb_faults += begins;
	if (kinds[f->kind].is_of_host)
		change_host(w, fault_host_of(w, f), f, begins);
	else if (f->kind == SIM_FAULT_NARROW)
		narrow_links(w);
	else
		while ((l = san_sim_topo_match(w, f->where, &i)) != NULL)
			change_link(l, f, begins);
}

int
san_sim_fault_create(struct sim_world *w)
{
	uint32_t i;

	for (i = 0; i < w->conf.nb_faults; i++) {
		const struct sim_fault_conf *f = &w->conf.faults[i];

		if (kinds[f->kind].is_of_host ? fault_host_of(w, f) == NULL :
						!san_sim_topo_is_place(w, f->where)) {
			warnx("fault.%s.where: \"%s\" is not %s", f->name, f->where,
			      kinds[f->kind].is_of_host ? "a host" : "a place of this topology");
			return 1;
		}
		if (f->kind == SIM_FAULT_LIE)
			fault_host_of(w, f)->liar = true;
	}
	return 0;
}

void
san_sim_fault_arm(struct sim_world *w)
{
	uint32_t i;

	for (i = 0; i < w->conf.nb_faults; i++) {
		const struct sim_fault_conf *f = &w->conf.faults[i];

		san_sim_world_at(w, w->now_ns + f->at_ns, SIM_EV_FAULT, i, 1, NULL);
		if (f->for_ns != 0)
			san_sim_world_at(w, w->now_ns + f->at_ns + f->for_ns, SIM_EV_FAULT, i, 0,
					 NULL);
	}
}

void
san_sim_fault_end(struct sim_world *w)
{
	uint32_t i;

	w->faults_over = true;
	for (i = 0; i < w->conf.nb_faults; i++)
		if (w->fault_active[i] && w->conf.faults[i].kind != SIM_FAULT_RESTART &&
		    w->conf.faults[i].kind != SIM_FAULT_LIE)
			san_sim_fault_event(w, i, false);
}
