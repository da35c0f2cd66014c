/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_CORE_H
#define SIM_CORE_H

/**
 * @file
 * Configures a core as a numbered host of a virtual network: addresses, ports and secrets. Used by
 * the simulator, test/sim and bench_core.
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

#endif /* SIM_CORE_H */
