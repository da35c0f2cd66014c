/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_POOL_H
#define SIM_POOL_H

/**
 * @file
 * Packet buffers of a simulation, in memory of their own: DPDK's environment, without
 * hugepages, spreads them over pages and clears all of them when they are given back.
 */

#include <stdint.h>

#include <rte_mempool.h>

/**
 * A pool of *nb_mbufs*, each for a packet of *mtu*, *cache* of them at hand. NULL: no
 * memory. rte_mempool_free() gives everything back.
 */
struct rte_mempool *sim_pool_create(const char *name, uint32_t nb_mbufs, uint32_t cache,
				    uint16_t mtu);

#endif /* SIM_POOL_H */
