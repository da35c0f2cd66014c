/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INET_HASH_H
#define INET_HASH_H

/**
 * @file
 * Hash of an address, for tables that peers fill. The seed is unknown to peers, so they cannot put
 * many addresses into one bucket. (RT-36)
 */

#include <stdint.h>
#include <string.h>

#include <rte_common.h>
#include <rte_jhash.h>

#include "wire.h"

static inline uint32_t
san_inet_hash(const struct san_ip *ip, uint32_t seed)
{
	uint32_t words[sizeof(ip->b) / sizeof(uint32_t)]; /* the address may be unaligned */

	memcpy(words, ip->b, sizeof(words));
	return rte_jhash_32b(words, RTE_DIM(words), seed);
}

#endif /* INET_HASH_H */
