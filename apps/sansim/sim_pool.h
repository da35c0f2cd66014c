/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_POOL_H
#define SIM_POOL_H

/**
 * @file
 * Packet buffers of a simulation in memory of their own. DPDK's environment without hugepages would
 * scatter them over pages, and clear all of them on release.
 */

#include <stdint.h>

#include <rte_mempool.h>

/**
 * A pool of *nb_mbufs* for packets of *mtu* bytes, with a cache of *cache*. NULL: no memory. Free
 * it with rte_mempool_free().
 */
struct rte_mempool *san_sim_pool_create(const char *name, uint32_t nb_mbufs, uint32_t cache,
					uint16_t mtu);

#endif /* SIM_POOL_H */
