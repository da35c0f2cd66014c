/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPRESS_H
#define EXPRESS_H

/**
 * @file
 * The ordinary packet of an ordinary connection, straight through all layers.
 *
 * No rule is written here. Each layer has, beside its rule, a pair of functions: one that says
 * whether the packet is the ordinary case of that layer and changes nothing, and one that does
 * what the general path would do with it. Express asks all, then does all; what is the same for
 * packets that came together is done once. It runs only if the connection's word *odd* is 0
 * (pdl_odd.h). A packet that it refuses goes the general path, which is complete by itself: with
 * or without express, the same packets go out and the same completions come.
 *
 * Thread rule: everything here belongs to one lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ulp.h"
#include "visit.h"

struct san_express {
	bool is_on;
	uint16_t udp_port; /**< of the transport, host order */
	struct san_pdl *pdl;
	struct san_tl *tl;
	struct san_ulp *ulp;
};

/**
 * Take packets from the first of *pkts* on, which san_wire_cid_at() says is for *cid*, as long as
 * they are of that connection, each an unsolicited push that is whole in its packet and in its
 * turn. Returned: how many; they are on tl's death row. The next one goes the general path, and
 * nothing of it has changed.
 */
uint16_t san_express_rx(struct san_express *x, uint32_t cid, struct rte_mbuf **pkts, uint16_t n,
			uint64_t now_ns);

/**
 * Build what is next of v->c as long as it is packets of pushes, none of which is shared by
 * several, and fits into *room*, *v* and *spare*. Returned: how many. What is next then goes the
 * general path, and nothing of it has changed.
 */
uint16_t san_express_tx(struct san_express *x, struct san_visit *v, struct san_spare *spare,
			struct san_pdl_room *room, uint64_t now_ns);

#endif /* EXPRESS_H */
