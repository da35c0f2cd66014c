/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INET_RATE_H
#define INET_RATE_H

/**
 * @file
 * How often we answer packets that anybody can have forged: at a bounded rate. A quarter of it is
 * each host's; more than that it has only of what the others leave, so that one peer's flood does
 * not use up their answers. (RT-36)
 *
 * No host has a record: its budget is one of a fixed number, chosen by a keyed hash of its
 * address. Two hosts with the same budget have different ones a second later.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define SAN_INET_RATE_HOSTS 1024 /**< budgets; power of two */

struct san_inet_rate {
	uint64_t each_ns; /**< between two answers */
	uint32_t burst;   /**< answers at once, after silence */
	uint32_t seed;
	uint64_t taken_ns;                           /**< of all hosts; see san_rate.h */
	uint64_t host_taken_ns[SAN_INET_RATE_HOSTS]; /**< of each budget */
};

/** *seed*: unknown to peers. */
void san_inet_rate_init(struct san_inet_rate *r, uint64_t each_ns, uint32_t burst, uint32_t seed);
/** May *host* be answered once more? Takes it from its budget, and from that of all. */
bool san_inet_rate_take(struct san_inet_rate *r, const struct san_ip *host, uint64_t now_ns);

#endif /* INET_RATE_H */
