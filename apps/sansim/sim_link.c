/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One direction of a cable. The queue in front of it drains at a constant rate, so it needs no
 * list: its length follows from the time at which the port has sent the last packet. A packet that
 * a fault drops still takes its time on the cable.
 */

#include <rte_ether.h>

#include "sim_link.h"

#define FRAME_EXTRA 24 /* preamble, frame check sequence and gap, as bytes */
#define PS_PER_NS   1000
#define BURST       8 /* mean length of a burst */

void
san_sim_link_net_init(struct sim_net *net, uint64_t seed)
{
	*net = (struct sim_net){0};
	san_prng_seed(&net->prng, seed);
	san_sim_event_init(&net->events);
}

void
san_sim_link_net_fini(struct sim_net *net)
{
	struct sim_event ev;

	while (san_sim_event_pop(&net->events, &ev))
		if (ev.kind == SIM_EV_ARRIVE)
			rte_pktmbuf_free(ev.arg);
	san_sim_event_fini(&net->events);
}

void
san_sim_link_init(struct sim_link *l, uint32_t id, const struct sim_link_conf *conf)
{
	*l = (struct sim_link){
		.conf = conf, .id = id, .buffer_bytes = conf->buffer_bytes, .trace_if = -1};
}

uint64_t
san_sim_link_backlog(const struct sim_link *l, uint64_t now_ns)
{
	uint64_t now_ps = now_ns * PS_PER_NS;

	if (l->busy_ps <= now_ps)
		return 0;
	return (l->busy_ps - now_ps) * l->conf->rate_mbps / (8 * (uint64_t)SIM_PPM);
}

/* Start and end bursts so that they contain the share of packets, up to BURST / (BURST + 1). */
static bool
is_in_burst(struct sim_net *net, const struct sim_link_fault *f)
{
	uint64_t left = SIM_PPM - RTE_MIN(f->burst_ppm, SIM_PPM), begins;

	if (left == 0)
		return true;
	if (f->in_burst)
		return san_sim_link_chance(net, SIM_PPM - SIM_PPM / BURST);
	begins = (uint64_t)f->burst_ppm * SIM_PPM / (BURST * left);
	return san_sim_link_chance(net, (uint32_t)RTE_MIN(begins, (uint64_t)SIM_PPM));
}

static bool
is_lost(struct sim_net *net, struct sim_link *l, struct rte_mbuf *m)
{
	struct sim_link_fault *f = &l->fault;

	if (f->nb_down != 0 || san_sim_link_chance(net, f->loss_ppm))
		return true;
	if (f->nb_mute != 0 && san_sim_pkt_goes_on(m))
		return true;
	if (f->burst_ppm != 0) {
		f->in_burst = is_in_burst(net, f);
		if (f->in_burst)
			return true;
	}
	return f->flow_ppm != 0 && san_sim_pkt_flow(m) % SIM_PPM < f->flow_ppm;
}

static void
sim_link_trace(struct sim_net *net, const struct sim_link *l, const struct rte_mbuf *m,
	       uint64_t at_ns, const char *comment)
{
	if (l->trace_if >= 0)
		san_sim_trace_packet(net->trace, (uint32_t)l->trace_if, at_ns, true,
				     rte_pktmbuf_mtod(m, const void *), m->data_len, comment);
}

/* Schedule the arrival of its last bit, mostly after all packets that were sent before. */
static void
sim_link_deliver(struct sim_net *net, struct sim_link *l, struct rte_mbuf *m, uint64_t at_ns)
{
	const struct sim_event ev = {.at_ns = at_ns, .arg = m, .obj = l->id, .kind = SIM_EV_ARRIVE};

	san_sim_event_push(&net->events, &ev);
}

static uint64_t
draw_delay(struct sim_net *net, uint64_t most_ns)
{
	return san_prng_below(&net->prng, (uint32_t)RTE_MIN(most_ns, UINT32_MAX - 1ull) + 1);
}

/* Carry a packet over the cable, with its faults. Its last bit arrives at *at_ns*. */
static void
sim_link_carry(struct sim_net *net, struct sim_link *l, struct rte_mbuf *m, uint64_t at_ns)
{
	struct sim_link_fault *f = &l->fault;
	struct rte_mbuf *copy;
	uint64_t late_ns;

	if (is_lost(net, l, m)) {
		sim_link_trace(net, l, m, at_ns, "lost: fault");
		l->stats.nb_lost++;
		net->nb_faults++;
		rte_pktmbuf_free(m);
		return;
	}
	if (san_sim_link_chance(net, f->dup_ppm)) {
		copy = rte_pktmbuf_copy(m, net->pool, 0, UINT32_MAX);
		net->nb_no_mbuf += copy == NULL;
		net->nb_faults++;
		if (copy != NULL)
			sim_link_deliver(net, l, copy, at_ns + draw_delay(net, f->dup_ns));
	}
	if (san_sim_link_chance(net, f->forge_ppm)) {
		copy = san_sim_pkt_forge_cnp(m, net->pool);
		net->nb_faults += copy != NULL;
		if (copy != NULL)
			sim_link_deliver(net, l, copy, at_ns);
	}
	if (san_sim_link_chance(net, f->corrupt_ppm)) {
		net->nb_faults++;
		san_sim_pkt_flip_bit(m, &net->prng);
	}
	if (san_sim_link_chance(net, f->reorder_ppm)) {
		late_ns = draw_delay(net, f->reorder_ns);
		net->nb_faults += late_ns != 0;
		at_ns += late_ns;
	}
	sim_link_trace(net, l, m, at_ns, NULL);
	sim_link_deliver(net, l, m, at_ns);
}

void
san_sim_link_send(struct sim_net *net, struct sim_link *l, struct rte_mbuf *m, uint64_t now_ns)
{
	uint64_t queued = san_sim_link_backlog(l, now_ns);
	uint64_t now_ps = now_ns * PS_PER_NS;
	uint32_t ip_len = m->pkt_len - (uint32_t)sizeof(struct rte_ether_hdr);
	bool is_long = (l->conf->mtu != 0 && ip_len > l->conf->mtu) ||
		(l->fault.mtu != 0 && ip_len > l->fault.mtu);

	if (is_long || queued + m->pkt_len > l->buffer_bytes) {
		sim_link_trace(net, l, m, now_ns,
			       is_long ? "dropped: longer than the MTU" : "dropped: queue full");
		l->stats.nb_lost += is_long;
		l->stats.nb_full += !is_long;
		rte_pktmbuf_free(m);
		return;
	}
	if (l->conf->mark_bytes != 0 && queued > l->conf->mark_bytes)
		l->stats.nb_marked += san_sim_pkt_mark_ce(m);
	l->busy_ps = l->busy_ps > now_ps ? l->busy_ps : now_ps;
	if (l->conf->rate_mbps != 0)
		l->busy_ps += (m->pkt_len + FRAME_EXTRA) * 8ull * SIM_PPM / l->conf->rate_mbps;
	l->stats.nb_pkts++;
	l->stats.nb_bytes += m->pkt_len + FRAME_EXTRA;
	queued = san_sim_link_backlog(l, now_ns);
	l->stats.high_bytes = RTE_MAX(l->stats.high_bytes, queued);
	sim_link_carry(net, l, m, l->busy_ps / PS_PER_NS + l->conf->delay_ns + l->more_ns);
}
