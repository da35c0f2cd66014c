/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two applications on one port: packets that the port sends to its own address are looped back
 * here, because the device would drop them (SYS-2). The lcore that owns them receives them like any
 * others, so a local connection needs no special handling.
 */

#include <string.h>

#include "engine_priv.h"

uint16_t
san_engine_local_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	const struct rte_ether_hdr *eth;
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		eth = rte_pktmbuf_mtod(pkts[i], const struct rte_ether_hdr *);
		if (likely(!rte_is_same_ether_addr(&eth->dst_addr, &e->conf.inet.mac))) {
			pkts[kept++] = pkts[i];
		} else if (e->nb_local < ENGINE_LOCAL) {
			e->local[e->nb_local++] = pkts[i];
			e->stats.nb_local++;
		} else { /* lost, as in any network, and will be retransmitted */
			e->drops[SAN_DROP_TX_FULL]++;
			rte_pktmbuf_free(pkts[i]);
		}
	}
	return kept;
}

uint16_t
san_engine_local_rx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	n = RTE_MIN(n, e->nb_local);
	memcpy(pkts, e->local, n * sizeof(pkts[0]));
	e->nb_local -= n;
	memmove(e->local, &e->local[n], e->nb_local * sizeof(pkts[0]));
	return n;
}
