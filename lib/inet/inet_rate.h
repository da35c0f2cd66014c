/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Rate limit for answers to unauthenticated packets. Each host is guaranteed a quarter of the rate;
 * more it gets only from what other hosts leave, so that the flood of one peer does not use up the
 * answers of others. (RT-36)
 *
 * There is no record per host. Its budget is one of a fixed number, chosen by a keyed hash of its
 * address. Two hosts that share a budget have different ones a second later.
 *
 * Forged addresses can use up all budgets. Therefore a part of a burst is kept for hosts that the
 * caller trusts more: a flood of others leaves it to them.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_common.h>
#include <rte_jhash.h>

#include "wire.h"

#define SAN_INET_RATE_HOSTS 1024 /**< number of budgets; power of two */

/** Eighths of a burst that are kept for others. */
enum san_inet_trust {
	SAN_INET_KNOWN = 0, /**< the host has proved its address */
	SAN_INET_NET = 1,   /**< another host of its network has */
	SAN_INET_STRANGER = 2,
	SAN_INET_EXCESS = 4, /**< beyond the host's guaranteed share */
};

struct san_inet_rate {
	uint64_t each_ns; /**< time between two answers */
	uint32_t burst;   /**< answers at once after silence */
	uint32_t seed;
	uint64_t taken_ns;                           /**< all hosts together; see san_time.h */
	uint64_t host_taken_ns[SAN_INET_RATE_HOSTS]; /**< each budget */
};

/** *seed* must be unknown to peers. */
void san_inet_rate_init(struct san_inet_rate *r, uint64_t each_ns, uint32_t burst, uint32_t seed);
/** True if *host* may get an answer; takes it from its budget and from the total. */
bool san_inet_rate_take(struct san_inet_rate *r, const struct san_ip *host,
			enum san_inet_trust trust, uint64_t now_ns);

/**
 * Hash of an address, for tables that peers fill. The seed is unknown to peers, so they cannot put
 * many addresses into one bucket. (RT-36)
 */
static inline uint32_t
san_inet_hash(const struct san_ip *ip, uint32_t seed)
{
	uint32_t words[sizeof(ip->b) / sizeof(uint32_t)]; /* the address may be unaligned */

	memcpy(words, ip->b, sizeof(words));
	return rte_jhash_32b(words, RTE_DIM(words), seed);
}
