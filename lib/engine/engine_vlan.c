/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A port in a VLAN. The tag is inserted into sent packets and removed from received ones in
 * software, which works with every driver, and the layers above do not see it. Packets of another
 * VLAN, or without a tag, are dropped.
 */

#include "engine_priv.h"

#define VID_MASK 0xfff

uint16_t
san_engine_vlan_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		pkts[i]->vlan_tci = e->port->conf.vlan;
		if (likely(rte_vlan_insert(&pkts[i]) == 0)) {
			pkts[kept++] = pkts[i];
			continue;
		}
		e->drops[SAN_DROP_TX_FULL]++;
		rte_pktmbuf_free(pkts[i]);
	}
	return kept;
}

uint16_t
san_engine_vlan_rx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		/* some ports strip the tag themselves */
		if (likely((pkts[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 ||
			   rte_vlan_strip(pkts[i]) == 0) &&
		    likely((pkts[i]->vlan_tci & VID_MASK) == e->port->conf.vlan)) {
			pkts[kept++] = pkts[i];
			continue;
		}
		e->drops[SAN_DROP_VLAN]++;
		rte_pktmbuf_free(pkts[i]);
	}
	return kept;
}
