/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Lcores that share a port hand packets over to each other (SYS-1; RULE-13): received packets, if
 * the port has fewer queues than lcores or cannot be steered, and packets to send, from lcores
 * without a queue.
 *
 * DESIGN NOTES
 *
 * A lane is a ring from one lcore to one other. One ring for each destination would be fewer rings,
 * but each would have several producers. If lcores share a CPU, a producer that is preempted
 * between reserving its place and filling it would stall all others.
 */

#include "engine_priv.h"

#define PREFETCH_AHEAD 4   /* as in the core: about one memory access ahead */
#define COPY_MAX       384 /* bytes: ARP, neighbour discovery with options, RESET over IPv6 */

static struct rte_ring *
make_lane(const struct san_engine_port *p, char kind, uint32_t from, uint32_t to, uint32_t share)
{
	uint32_t size = rte_align32prevpow2(ENGINE_LANES / share);
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "san_%c%u_%u_%u", kind, p->id, from, to);
	return rte_ring_create(name, size, SOCKET_ID_ANY,
			       RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

/*
 * All lanes together hold ENGINE_LANES packets for each lcore (san_engine_port_pool_min()): the
 * lanes of received packets those of all lcores but one, the lanes of packets to send those of
 * that one.
 */
int
san_engine_handover_create(struct san_engine_port *p)
{
	uint32_t from, to;

	for (from = 0; from < p->nb_engines; from++) {
		if (from >= p->conf.nb_queues) {
			p->tx_lanes[from] =
				make_lane(p, 't', from, from % p->conf.nb_queues, p->nb_engines);
			if (p->tx_lanes[from] == NULL)
				return -ENOMEM;
			continue; /* it receives no packets */
		}
		for (to = 0; to < p->nb_engines; to++) {
			if (to == from)
				continue;
			p->rx_lanes[from][to].ring = make_lane(p, 'r', from, to, p->conf.nb_queues);
			if (p->rx_lanes[from][to].ring == NULL)
				return -ENOMEM;
		}
	}
	return 0;
}

static void
free_lane(struct rte_ring *lane)
{
	void *m;

	while (lane != NULL && rte_ring_sc_dequeue(lane, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(lane);
}

void
san_engine_handover_destroy(struct san_engine_port *p)
{
	uint32_t from, to;

	for (from = 0; from < SAN_ENGINE_LCORES; from++) {
		free_lane(p->tx_lanes[from]);
		p->tx_lanes[from] = NULL;
		for (to = 0; to < SAN_ENGINE_LCORES; to++) {
			free_lane(p->rx_lanes[from][to].ring);
			p->rx_lanes[from][to].ring = NULL;
		}
	}
}

/* ---- received ---- */

static void
handover_give_pkts(struct san_engine *e, uint32_t to, struct rte_mbuf **pkts, uint16_t n)
{
	struct san_engine_lane *lane = &e->port->rx_lanes[e->id][to];
	uint16_t k;

	/* the receiver reads it after the dequeue, which makes it visible */
	atomic_store_explicit(&lane->gap_ns, e->now_ns - e->rx_ns, memory_order_relaxed);
	k = (uint16_t)rte_ring_sp_enqueue_burst(lane->ring, (void **)pkts, n, NULL);
	e->stats.nb_handover_out += k;
	if (unlikely(e->port->conf.idle >= SAN_IDLE_SLEEP))
		san_engine_wake(e->port->engines[to]);
	if (unlikely(k < n)) {
		e->drops[SAN_DROP_HANDOVER] += n - k;
		rte_pktmbuf_free_bulk(&pkts[k], n - k);
	}
}

/* Packets for each other lcore, in order of arrival. */
struct handed {
	struct rte_mbuf *pkts[SAN_ENGINE_LCORES][ENGINE_OUT_MAX];
	uint16_t nb[SAN_ENGINE_LCORES];
};

/*
 * Give each other lcore a copy of its own, because a core writes what it parses next to the packet.
 * Packets for all lcores are short. Longer ones only claim to be for all, and are not copied, so
 * that a sender cannot amplify its load.
 */
static void
add_copies(struct san_engine *e, const struct rte_mbuf *m, struct handed *h)
{
	struct rte_mbuf *copy;
	uint32_t to;

	if (rte_pktmbuf_pkt_len(m) > COPY_MAX)
		return;
	for (to = 0; to < e->port->nb_engines; to++) {
		if (to == e->id)
			continue;
		copy = rte_pktmbuf_copy(m, e->port->pool, 0, UINT32_MAX);
		if (copy == NULL)
			e->drops[SAN_DROP_NO_MBUF]++;
		else
			h->pkts[to][h->nb[to]++] = copy;
	}
}

uint16_t
san_engine_handover(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t nb = e->port->nb_engines, to;
	uint16_t i, kept = 0;
	struct handed h;

	memset(h.nb, 0, sizeof(h.nb));
	for (i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], void *));
		to = san_core_owner(pkts[i], e->conf.udp_port, nb);
		if (to == e->id) {
			pkts[kept++] = pkts[i];
		} else if (to != SAN_OWNER_ALL) {
			h.pkts[to][h.nb[to]++] = pkts[i];
		} else {
			add_copies(e, pkts[i], &h);
			pkts[kept++] = pkts[i];
		}
	}
	for (to = 0; to < nb; to++)
		if (h.nb[to] != 0)
			handover_give_pkts(e, to, h.pkts[to], h.nb[to]);
	return kept;
}

uint16_t
san_engine_handover_take_rx(struct san_engine *e, uint32_t from, struct rte_mbuf **pkts, uint16_t n,
			    uint64_t *gap_ns)
{
	struct san_engine_lane *lane = &e->port->rx_lanes[from][e->id];

	if (lane->ring == NULL)
		return 0;
	n = (uint16_t)rte_ring_sc_dequeue_burst(lane->ring, (void **)pkts, n, NULL);
	*gap_ns = atomic_load_explicit(&lane->gap_ns, memory_order_relaxed);
	e->stats.nb_handover_in += n;
	return n;
}

/* ---- to send ---- */

uint16_t
san_engine_handover_lend_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	n = (uint16_t)rte_ring_sp_enqueue_burst(e->port->tx_lanes[e->id], (void **)pkts, n, NULL);
	e->stats.nb_tx_by_others += n;
	if (unlikely(e->port->conf.idle >= SAN_IDLE_SLEEP))
		san_engine_wake(e->port->engines[e->id % e->port->conf.nb_queues]);
	return n;
}

uint16_t
san_engine_handover_take_tx(const struct san_engine *e, uint32_t from, struct rte_mbuf **pkts,
			    uint16_t n)
{
	const uint32_t nb_queues = e->port->conf.nb_queues;

	if (from < nb_queues || from % nb_queues != e->id)
		return 0;
	return (uint16_t)rte_ring_sc_dequeue_burst(e->port->tx_lanes[from], (void **)pkts, n, NULL);
}
