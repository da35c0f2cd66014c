/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_EAL_H
#define SIM_EAL_H

/**
 * @file
 * DPDK's environment for a simulation: memory only, no devices, no hugepages,
 * nothing shared with other processes.
 */

#include <stdint.h>

#define SIM_EAL_SWARM_MB 768 /**< enough for what a swarm draws */

/** Start EAL with *mb* megabytes; ends the process with a message if it can't. */
void sim_eal_init(uint32_t mb);

#endif /* SIM_EAL_H */
