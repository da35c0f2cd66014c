/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_JAIN_H
#define SIM_JAIN_H

/**
 * @file
 * Jain's fairness index of what several got of the same thing: (sum x)^2 over
 * n times the sum of x^2. All the same: 1; one has it all: 1/n.
 */

#include <stdint.h>

#define SIM_JAIN_FAIR_PPM 1000000u

/**
 * The index in integer arithmetic, so that it is the same on every machine.
 *
 * Exact while the largest value and n have 54 bits together (a thousand values
 * below 2^44); beyond, all values are scaled down to that.
 *
 * @return
 *   Millionths, rounded down. 0: there is no value, or all are 0, which is
 *   nothing to call fair.
 */
uint32_t sim_jain_ppm(const uint64_t *x, uint32_t n);

#endif /* SIM_JAIN_H */
