/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The ordinary packet of an ordinary connection, straight through all layers.
 *
 * No rule is written here. Each layer has, beside its rule, a pair of functions. One checks whether
 * the packet is the ordinary case of that layer, and changes nothing. The other does what the
 * general path would do with it. Express calls all checks, then all actions; work that is the same
 * for packets received together is done once. It runs only if the connection's word *odd* is 0
 * (pdl.h), or says that the data is of the solicited push at the base. A packet that it refuses
 * takes the general path, which is complete by itself: with or without express, the same packets
 * are sent and the same completions are reported, at the same time, and all counters but those of
 * express are equal. (RT-42)
 *
 * Thread rule: everything here belongs to one lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ulp.h"
#include "visit.h"

struct san_express {
	bool is_on;
	uint16_t udp_port; /**< UDP port of the transport, host order */
	struct san_pdl *pdl;
	struct san_tl *tl;
	struct san_ulp *ulp;
};

/**
 * Process packets from the first of *pkts* on, which san_wire_express_cid_at() has found to be for
 * *cid*. It continues while they are of that connection and each is an unsolicited push in one
 * packet, in order; or it takes one ACK without bitmaps. Returns their number; they are on tl's
 * death row. The next packet takes the general path, and is unchanged.
 */
uint16_t san_express_rx(struct san_express *x, uint32_t cid, struct rte_mbuf **pkts, uint16_t n,
			uint64_t now_ns);

/** True if *m*, which the general path took last, is data of a solicited push. */
static inline bool
san_express_rx_is_data(const struct san_death_row *row, struct rte_mbuf *m)
{
	return row->n != 0 && row->m[row->n - 1] == m &&
		san_wire_pkt(m)->w.op == SAN_OP_PUSH_SLCTD_DATA;
}

/**
 * Process packets that follow pkts[0], which is such a packet. It continues while they are data of
 * the same push, alike and in order, without LAST, and no grant may be due. Returns their number,
 * as above.
 */
uint16_t san_express_rx_data(struct san_express *x, struct rte_mbuf **pkts, uint16_t n,
			     uint64_t now_ns);

/**
 * Build the next packets of v->c, while they are unpacked packets of pushes and fit into *room*,
 * *v* and *spare*. Returns their number. The next work takes the general path, and is unchanged.
 */
uint16_t san_express_tx(struct san_express *x, struct san_visit *v, struct san_spare *spare,
			struct san_pdl_room *room, uint64_t now_ns);
