/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_CORE_H
#define SIM_CORE_H

/**
 * @file
 * What simulated cores need: DPDK's environment, and the configuration of a core as a numbered host
 * of a virtual network. Used by the simulator, test/sim and bench_core.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "san_prng.h"

void san_sim_core_ip(struct san_ip *ip, uint32_t id, bool ipv6);
/**
 * Turn the defaults in *conf* into the configuration of host *id*. *prng* supplies secrets, also
 * later.
 */
void san_sim_core_conf(struct san_core_conf *conf, uint32_t id, bool ipv6, struct san_prng *prng);

#define SIM_EAL_SWARM_MB 768 /**< sufficient for any scenario of a swarm */

/**
 * Start EAL with *mb* megabytes: memory only, no devices, no hugepages, nothing shared. On failure
 * print a message and exit.
 */
void san_sim_core_eal_init(uint32_t mb);

#endif /* SIM_CORE_H */
