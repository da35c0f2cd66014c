/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_PKT_H
#define SIM_PKT_H

/**
 * @file
 * What a network reads and changes in a packet. Accesses stay inside the mbuf for any content,
 * because packets may be corrupted.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "san_prng.h"

/** Hash of the fields that ECMP uses: both addresses and the UDP source port. */
uint64_t san_sim_pkt_flow(const struct rte_mbuf *m);
/** Set CE in an ECT packet, like a switch. True if it was set. */
bool san_sim_pkt_mark_ce(struct rte_mbuf *m);
/** Invert one random bit. */
void san_sim_pkt_flip_bit(struct rte_mbuf *m, struct san_prng *prng);
/**
 * A CNP to the receiver of *m* that seems to come from its sender, as an attacker on the path could
 * forge it. NULL: *m* belongs to no connection, or *pool* is empty.
 */
struct rte_mbuf *san_sim_pkt_forge_cnp(struct rte_mbuf *m, struct rte_mempool *pool);
/**
 * True for data that continues a transfer: it follows a grant, a request or the first packet of a
 * push.
 */
bool san_sim_pkt_goes_on(struct rte_mbuf *m);
/**
 * Add an arrival to a trace's hash: time, place and content. Of the content the headers and the end
 * are hashed: the ICRC at the end covers the rest.
 */
uint64_t san_sim_pkt_hash(uint64_t hash, uint64_t at_ns, uint32_t where, const struct rte_mbuf *m);

#endif /* SIM_PKT_H */
