/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_CORE_H
#define SIM_CORE_H

/**
 * @file
 * What makes a core a numbered host of a virtual network: addresses, ports and
 * secrets. Of the simulator, of test/sim, and of bench_core.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "san_prng.h"

void sim_core_ip(struct san_ip *ip, uint32_t id, bool ipv6);
/** Make *conf*, which has the defaults, that of host *id*; secrets come from *prng*, later too. */
void sim_core_conf(struct san_core_conf *conf, uint32_t id, bool ipv6, struct san_prng *prng);

#endif /* SIM_CORE_H */
