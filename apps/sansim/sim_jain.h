/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_JAIN_H
#define SIM_JAIN_H

/**
 * @file
 * Jain's fairness index of shares of a resource: (sum x)^2 / (n * sum of x^2). Equal shares give 1;
 * if one has everything the index is 1/n.
 */

#include <stdint.h>

#define SIM_JAIN_FAIR_PPM 1000000u

/**
 * The index in integer arithmetic, so that it is equal on all machines.
 *
 * Exact while the largest value and n have 54 bits together (a thousand values below 2^44); beyond
 * that all values are scaled down.
 *
 * @return
 *   Millionths, rounded down. 0: there is no value, or all are 0.
 */
uint32_t san_sim_jain_ppm(const uint64_t *x, uint32_t n);

#endif /* SIM_JAIN_H */
