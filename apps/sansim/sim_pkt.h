/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_PKT_H
#define SIM_PKT_H

/**
 * @file
 * What a network sees of a packet, and does to it. Reads only inside the mbuf,
 * for any bytes: the packet may have been corrupted before.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "san_prng.h"

/** What ECMP looks at, as a number: both addresses and the UDP source port. */
uint64_t sim_pkt_flow(const struct rte_mbuf *m);
/** CE in the IP header of a packet that is ECT, as a switch does it; whether it was. */
bool sim_pkt_mark_ce(struct rte_mbuf *m);
/** One bit, anywhere. */
void sim_pkt_flip_bit(struct rte_mbuf *m, struct san_prng *prng);
/**
 * A CNP for the receiver of *m* that seems to come from its sender, as somebody on the path could
 * forge it; NULL: *m* belongs to no connection, or *pool* is empty.
 */
struct rte_mbuf *sim_pkt_forge_cnp(struct rte_mbuf *m, struct rte_mempool *pool);
/** Is it data that something else began: a grant, a request, or the first packet of its push? */
bool sim_pkt_goes_on(struct rte_mbuf *m);
/**
 * Fold an arrival into a trace's hash: when, where, and what. Of the content
 * that is the headers, and the end, where the ICRC is, which covers the rest.
 */
uint64_t sim_pkt_hash(uint64_t hash, uint64_t at_ns, uint32_t where, const struct rte_mbuf *m);

#endif /* SIM_PKT_H */
