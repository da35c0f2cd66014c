/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One direction of a cable. The queue in front of it needs no list: it drains
 * at a constant rate, so what is queued follows from when the port will have
 * sent the last of it. A packet that a fault takes was sent all the same; it
 * used its time on the cable.
 */

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "sim_world.h"

#define FRAME_EXTRA 24 /* preamble, frame check sequence, gap: bytes of time on the cable */
#define PS_PER_NS   1000
#define BURST       8 /* packets of a run, on average */

static uint64_t
byte_ps(const struct sim_link *l, uint64_t bytes)
{
	return bytes * 8 * SIM_PPM / l->conf->rate_mbps;
}

uint64_t
sim_link_backlog(const struct sim_link *l, uint64_t now_ns)
{
	uint64_t now_ps = now_ns * PS_PER_NS;

	if (l->busy_ps <= now_ps)
		return 0;
	return (l->busy_ps - now_ps) * l->conf->rate_mbps / (8 * (uint64_t)SIM_PPM);
}

/* CE in the IP header, checksum mended: what a switch does. */
static void
mark_ce(struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *v4 = (void *)(eth + 1);
	struct rte_ipv6_hdr *v6 = (void *)(eth + 1);

	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)) {
		v4->type_of_service |= 3;
		v4->hdr_checksum = 0;
		v4->hdr_checksum = rte_ipv4_cksum(v4);
	} else if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)) {
		v6->vtc_flow |= rte_cpu_to_be_32(3u << 20);
	}
}

static void
flip_bit(struct sim_world *w, struct rte_mbuf *m)
{
	uint32_t bit = san_prng_below(&w->prng, m->data_len * 8u);

	rte_pktmbuf_mtod(m, uint8_t *)[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}

static uint64_t
mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

uint64_t
sim_pkt_flow(const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const uint8_t *ip = (const uint8_t *)(eth + 1);
	bool v6 = eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
	const uint8_t *addr = ip + (v6 ? offsetof(struct rte_ipv6_hdr, src_addr) : offsetof(struct rte_ipv4_hdr, src_addr));
	const uint8_t *udp = ip + (v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr));
	uint32_t i, nb_words = v6 ? 8 : 2;
	uint64_t h = 0;
	uint32_t word;

	/* a corrupted frame may say that it is what it is too short for */
	if (m->data_len < (size_t)(udp - (const uint8_t *)eth) + sizeof(struct rte_udp_hdr))
		return 0;
	for (i = 0; i < nb_words; i++) {
		memcpy(&word, &addr[i * sizeof(word)], sizeof(word));
		h = mix(h, word);
	}
	return mix(h, (uint64_t)udp[0] << 8 | udp[1]);
}

/* Begins and ends so that the share of the rate is in bursts, up to BURST / (BURST + 1). */
static bool
is_in_burst(struct sim_world *w, const struct sim_link_fault *f)
{
	uint64_t left = SIM_PPM - RTE_MIN(f->burst_ppm, SIM_PPM), begins;

	if (left == 0)
		return true;
	if (f->in_burst)
		return sim_chance(w, SIM_PPM - SIM_PPM / BURST);
	begins = (uint64_t)f->burst_ppm * SIM_PPM / (BURST * left);
	return sim_chance(w, (uint32_t)RTE_MIN(begins, (uint64_t)SIM_PPM));
}

static bool
is_lost(struct sim_world *w, struct sim_link *l, const struct rte_mbuf *m)
{
	struct sim_link_fault *f = &l->fault;

	if (f->nb_down != 0 || sim_chance(w, f->loss_ppm))
		return true;
	if (f->burst_ppm != 0) {
		f->in_burst = is_in_burst(w, f);
		if (f->in_burst)
			return true;
	}
	return f->flow_ppm != 0 && sim_pkt_flow(m) % SIM_PPM < f->flow_ppm;
}

static void
trace(struct sim_world *w, const struct sim_link *l, const struct rte_mbuf *m, uint64_t at_ns,
      const char *comment)
{
	if (l->trace_if >= 0)
		sim_trace_packet(w->trace, (uint32_t)l->trace_if, at_ns, true,
				 rte_pktmbuf_mtod(m, const void *), m->data_len, comment);
}

static uint64_t
draw_delay(struct sim_world *w, uint64_t most_ns)
{
	return san_prng_below(&w->prng, (uint32_t)RTE_MIN(most_ns, UINT32_MAX - 1ull) + 1);
}

/* On the cable, with what goes wrong there; *at_ns*: when its last bit arrives. */
static void
carry(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m, uint64_t at_ns)
{
	struct sim_link_fault *f = &l->fault;
	struct rte_mbuf *copy;

	if (is_lost(w, l, m)) {
		trace(w, l, m, at_ns, "lost: fault");
		l->nb_lost++;
		w->stats.nb_faults++;
		rte_pktmbuf_free(m);
		return;
	}
	if (sim_chance(w, f->dup_ppm) &&
	    (copy = rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX)) != NULL) {
		w->stats.nb_faults++;
		sim_world_at(w, at_ns + draw_delay(w, f->dup_ns), SIM_EV_ARRIVE, l->id, 0, copy);
	}
	if (sim_chance(w, f->corrupt_ppm)) {
		w->stats.nb_faults++;
		flip_bit(w, m);
	}
	if (sim_chance(w, f->reorder_ppm)) {
		w->stats.nb_faults++;
		at_ns += draw_delay(w, f->reorder_ns);
	}
	trace(w, l, m, at_ns, NULL);
	sim_world_at(w, at_ns, SIM_EV_ARRIVE, l->id, 0, m);
}

void
sim_link_send(struct sim_world *w, struct sim_link *l, struct rte_mbuf *m)
{
	uint64_t queued = sim_link_backlog(l, w->now_ns);
	uint64_t now_ps = w->now_ns * PS_PER_NS, at_ns;

	if (queued + m->pkt_len > l->buffer_bytes) {
		trace(w, l, m, w->now_ns, "dropped: queue full");
		l->nb_full++;
		rte_pktmbuf_free(m);
		return;
	}
	if (l->conf->mark_bytes != 0 && queued > l->conf->mark_bytes) {
		mark_ce(m);
		l->nb_marked++;
	}
	l->busy_ps = (l->busy_ps > now_ps ? l->busy_ps : now_ps) +
		byte_ps(l, m->pkt_len + FRAME_EXTRA);
	l->nb_pkts++;
	l->nb_bytes += m->pkt_len + FRAME_EXTRA;
	queued = sim_link_backlog(l, w->now_ns);
	l->high_bytes = queued > l->high_bytes ? queued : l->high_bytes;
	at_ns = l->busy_ps / PS_PER_NS + l->conf->delay_ns;
	if (l->faulty) {
		carry(w, l, m, at_ns);
		return;
	}
	trace(w, l, m, at_ns, NULL);
	sim_world_at(w, at_ns, SIM_EV_ARRIVE, l->id, 0, m);
}
