/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_EAL_H
#define SIM_EAL_H

/**
 * @file
 * DPDK's environment for a simulation: memory only, no devices, no hugepages, nothing shared.
 */

#include <stdint.h>

#define SIM_EAL_SWARM_MB 768 /**< sufficient for any scenario of a swarm */

/** Start EAL with *mb* megabytes. On failure print a message and exit. */
void san_sim_eal_init(uint32_t mb);

#endif /* SIM_EAL_H */
