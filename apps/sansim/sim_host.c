/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A host: one engine on its own clock, behind a receive ring. Each round of its loop takes a while.
 * The engine's packets go to the host's port as long as that has little queued, like with a driver.
 */

#include "sim_world.h"

#define EPOCH_NS   SAN_NS_PER_S /* not 0, because 0 often means "never" by accident */
#define RETRY_NS   SAN_NS_PER_US
#define DRAIN_NS   (20 * SAN_NS_PER_US)
#define WRAP_AFTER 40 /* packets, and requests */
#define QUEUE_SLOT 32 /* QP table entries beyond the connections */

uint64_t
san_sim_host_clock(const struct sim_host *h, uint64_t now_ns)
{
	int64_t drift = (int64_t)now_ns / 1000 * h->drift_ppm / 1000;

	return EPOCH_NS + now_ns + (uint64_t)drift;
}

/* ---- start and end of a process ---- */

static void
fill_conf(struct sim_world *w, struct sim_host *h, struct san_core_conf *conf)
{
	const struct sim_host_conf *hc = &w->conf.host;
	uint32_t nb_conns = h->nb_sides;
	uint32_t nb_ops = nb_conns * w->conf.load.depth * 4 + 64;
	struct san_pdl_conf *pdl = &conf->pdl;
	struct san_tl_conf *tl = &conf->tl;

	*conf = hc->core;
	conf->mtu = hc->mtu;
	conf->pool = h->pool;
	/* beyond its own: a repeated request, and one in time-wait */
	pdl->max_conns = conf->ulp.max_qps = tl->max_unordered = 2 * nb_conns + QUEUE_SLOT;
	san_sim_core_conf(conf, h->id, hc->ipv6, &w->net.prng);
	pdl->fixed_psn = hc->wrap;
	pdl->first_psn = 0u - WRAP_AFTER;
	pdl->link_mbps = w->conf.edge.rate_mbps;
	pdl->cc_conf.window_init = RTE_MIN(pdl->cc_conf.window_init, pdl->cc_conf.window_max);
	tl->cam = w->cam;
	tl->engine = w->nb_engines++;
	tl->max_wide = pdl->max_wide;
	/* no more memory than the load can use */
	tl->max_txns = RTE_MIN(tl->max_txns, nb_ops);
	tl->max_rxns = RTE_MIN(tl->max_rxns, nb_ops + pdl->max_conns);
	conf->ulp.max_mrs = rte_align32pow2(2 * nb_conns + 2);
	conf->ulp.max_cqs = 2;
	conf->inet.max_neighbours = RTE_MAX(conf->inet.max_neighbours, 2 * nb_conns);
	/* a refused request is intended here, so do not limit guesses */
	conf->ulp.guesses_per_conn = conf->ulp.guesses_per_hour = UINT32_MAX;
}

int
san_sim_host_start(struct sim_world *w, struct sim_host *h)
{
	struct san_core_conf conf;
	uint32_t nb_cqes = (h->nb_sides + 1) * 2 * w->conf.load.depth;
	int rc;

	fill_conf(w, h, &conf);
	h->side_of_qp = calloc(conf.ulp.max_qps, sizeof(*h->side_of_qp));
	if (h->side_of_qp == NULL)
		return -ENOMEM;
	rc = san_core_create(&conf, san_sim_host_clock(h, w->now_ns), &h->core);
	if (rc != 0)
		return rc;
	h->mac = conf.inet.mac;
	h->nb_starts++;
	rc = san_ulp_cq_create(san_core_ulp(h->core), nb_cqes, &h->send_cq);
	if (rc == 0)
		rc = san_ulp_cq_create(san_core_ulp(h->core), nb_cqes, &h->recv_cq);
	if (rc == 0)
		rc = san_sim_load_host_up(w, h);
	return rc;
}

uint64_t
san_sim_host_no_mbuf(const struct sim_world *w, const struct sim_host *h)
{
	uint64_t drops[SAN_DROP_MAX] = {0};

	if (h->core == NULL || h->pool != w->net.pool)
		return 0;
	san_core_drops(h->core, drops);
	return drops[SAN_DROP_NO_MBUF];
}

void
san_sim_host_kill(struct sim_world *w, struct sim_host *h)
{
	if (h->core == NULL)
		return;
	san_sim_load_host_down(w, h);
	while (h->rx_head != h->rx_tail)
		rte_pktmbuf_free(h->rx[h->rx_head++ & h->rx_mask]);
	san_sim_report_engine(&w->dead_engines, h->core);
	w->net.nb_no_mbuf += san_sim_host_no_mbuf(w, h);
	san_core_destroy(h->core);
	h->core = NULL;
	free(h->side_of_qp);
	h->side_of_qp = NULL;
	free(h->before);
	h->before = NULL;
}

int
san_sim_host_create(struct sim_world *w, uint32_t id)
{
	struct sim_host *h = &w->hosts[id];
	uint64_t range = w->conf.host.clock_ppm_range;
	char name[RTE_MEMPOOL_NAMESIZE];

	h->id = id;
	h->run_at_ns = SAN_TIME_NEVER;
	h->drift_ppm = san_prng_below(&w->net.prng, (uint32_t)(2 * range + 1));
	h->drift_ppm -= (int64_t)range;
	h->rx_mask = rte_align32pow2(w->conf.host.rx_ring) - 1;
	h->rx = calloc(h->rx_mask + 1, sizeof(struct rte_mbuf *));
	if (h->rx == NULL)
		return -ENOMEM;
	h->pool = w->net.pool;
	if (w->conf.host.mbufs != 0) {
		snprintf(name, sizeof(name), "host%u", id);
		h->pool = san_sim_pkt_pool_create(name, w->conf.host.mbufs, 0, w->conf.host.mtu);
		if (h->pool == NULL)
			return -ENOMEM;
	}
	return san_sim_host_start(w, h);
}

void
san_sim_host_destroy(struct sim_world *w, struct sim_host *h)
{
	san_sim_host_kill(w, h);
	if (h->pool != w->net.pool)
		rte_mempool_free(h->pool);
	free(h->rx);
}

/* ---- its loop ---- */

static void
sim_host_plan_round(struct sim_world *w, struct sim_host *h, uint64_t at_ns)
{
	uint64_t *planned_ns = &h->planned_ns[(at_ns >> SAN_WHEEL_SHIFT) % SIM_PLANS];

	if (at_ns >= h->run_at_ns)
		return;
	h->run_at_ns = at_ns;
	if (at_ns != w->now_ns) { /* else it may be the current event */
		/* packets arrive before a timer that is the same after each: it is pending */
		if (*planned_ns == at_ns)
			return;
		*planned_ns = at_ns;
	}
	san_sim_world_at(w, at_ns, SIM_EV_HOST, h->id, 0, NULL);
}

void
san_sim_host_wake(struct sim_world *w, struct sim_host *h)
{
	uint64_t round_ns = h->last_run_ns + w->conf.host.poll_ns;

	if (h->core != NULL && h->nb_paused == 0)
		sim_host_plan_round(w, h, RTE_MAX(round_ns, w->now_ns));
}

/* A packet that passes between pools is copied, as by a driver: no pool loses an mbuf. */
static struct rte_mbuf *
into_pool(struct rte_mempool *pool, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (m->pool == pool)
		return m;
	copy = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
	rte_pktmbuf_free(m);
	return copy;
}

/* Like a port that is not promiscuous. */
static bool
sim_host_owns_packet(const struct sim_host *h, const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	return rte_is_multicast_ether_addr(&eth->dst_addr) ||
		rte_is_same_ether_addr(&eth->dst_addr, &h->mac);
}

void
san_sim_host_rx(struct sim_world *w, struct sim_host *h, struct rte_mbuf *m)
{
	if (h->core == NULL || !sim_host_owns_packet(h, m) ||
	    h->rx_tail - h->rx_head > h->rx_mask) {
		rte_pktmbuf_free(m);
		return;
	}
	m = into_pool(h->pool, m);
	if (m == NULL)
		return;
	h->rx[h->rx_tail++ & h->rx_mask] = m;
	san_sim_host_wake(w, h);
}

/* True: there may be more, but the port has enough for now. */
static bool
sim_host_transmit(struct sim_world *w, struct sim_host *h, uint64_t now_ns)
{
	struct sim_link *l = san_sim_topo_uplink(w, h->id);
	struct rte_mbuf *pkts[SAN_CORE_BURST];
	uint64_t queued;
	uint16_t i, k, n;

	while ((queued = san_sim_link_backlog(l, w->now_ns)) < w->conf.host.nic_bytes) {
		uint64_t room = (w->conf.host.nic_bytes - queued) / w->conf.host.mtu;

		n = (uint16_t)RTE_MIN(RTE_MAX(room, 4u), (uint64_t)SAN_CORE_BURST);
		k = san_core_tx_burst(h->core, pkts, n, now_ns);
		for (i = 0; i < k; i++) {
			struct rte_mbuf *m = into_pool(w->net.pool, pkts[i]);

			w->net.nb_no_mbuf += m == NULL;
			if (m != NULL && h->lie != SIM_LIE_NONE)
				m = san_sim_lie_falsify(w, h, m);
			if (m != NULL)
				san_sim_link_send(&w->net, l, m, w->now_ns);
		}
		if (k == 0)
			return false;
	}
	return true;
}

static void
plan_next(struct sim_world *w, struct sim_host *h, bool port_full, uint64_t clock_ns)
{
	uint64_t at_ns = san_core_deadline_ns(h->core);
	uint64_t round_ns = w->now_ns + w->conf.host.poll_ns, ahead_ns = at_ns - clock_ns;

	if (at_ns == SAN_TIME_NEVER && !port_full)
		return;
	if (port_full) /* half of the queue will be sent by then */
		at_ns = w->now_ns +
			(uint64_t)w->conf.host.nic_bytes * 4000 / w->conf.edge.rate_mbps;
	else if (at_ns <= clock_ns) /* it can't do its work: a pool is empty, or it drains */
		at_ns = w->now_ns +
			(san_pdl_sched_has_work(san_core_pdl(h->core)) ? RETRY_NS : DRAIN_NS);
	else /* when its clock shows that time, or slightly later */
		at_ns = w->now_ns + ahead_ns + ahead_ns / SIM_PPM * (uint64_t)labs(h->drift_ppm) +
			(h->drift_ppm != 0 ? 2000 : 0);
	sim_host_plan_round(w, h, RTE_MAX(at_ns, round_ns));
}

void
san_sim_host_round(struct sim_world *w, struct sim_host *h)
{
	uint64_t clock_ns = san_sim_host_clock(h, w->now_ns);
	struct rte_mbuf *pkts[SAN_CORE_BURST];
	bool port_full;
	uint16_t n;

	h->run_at_ns = SAN_TIME_NEVER;
	if (h->core == NULL || h->nb_paused != 0)
		return;
	san_pdl_rtx_rx_gap(san_core_pdl(h->core), w->conf.host.poll_ns + h->held_ns, clock_ns);
	san_core_pdl(h->core)->away_ns += h->held_ns;
	h->held_ns = 0;
	while (h->rx_head != h->rx_tail) {
		for (n = 0; n < SAN_CORE_BURST && h->rx_head != h->rx_tail; n++)
			pkts[n] = h->rx[h->rx_head++ & h->rx_mask];
		san_core_rx_burst(h->core, pkts, n, clock_ns);
	}
	san_core_tick(h->core, clock_ns);
	san_sim_load_round(w, h);
	port_full = sim_host_transmit(w, h, clock_ns);
	h->inflight_high = RTE_MAX(h->inflight_high, san_core_pdl(h->core)->inflight);
	san_sim_load_round(w, h);
	h->last_run_ns = w->now_ns;
	h->nb_rounds++;
	san_sim_check_round(w, h);
	plan_next(w, h, port_full, clock_ns);
}
