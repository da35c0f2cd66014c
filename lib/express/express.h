/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPRESS_H
#define EXPRESS_H

/**
 * @file
 * The ordinary packet of an ordinary connection, straight through all layers.
 *
 * No rule is written here. Each layer has, beside its rule, a pair of functions: one that says
 * whether the packet is the ordinary case of that layer and changes nothing, and one that does
 * what the general path would do with it. Express asks all, then does all. It runs only if the
 * connection's word *odd* is 0 (pdl_odd.h); whoever it refuses goes the general path, which is
 * complete by itself: with or without express, the same packets go out and the same completions
 * come.
 *
 * Thread rule: everything here belongs to one lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ulp.h"

struct san_express {
	bool is_on;
	uint16_t udp_port; /**< of the transport, host order */
	struct san_pdl *pdl;
	struct san_tl *tl;
	struct san_ulp *ulp;
};

/**
 * Take *m*, if it is an unsolicited push that is whole in its packet and in its turn. False:
 * nothing has changed, it goes the general path. True: *m* is on tl's death row.
 */
bool san_express_rx(struct san_express *x, struct rte_mbuf *m, uint64_t now_ns);

#endif /* EXPRESS_H */
