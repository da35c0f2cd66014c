/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim_jain.h"

/* (sum x)^2 times a million, which has 20 bits, must fit into 128 bits. */
#define SUM_BITS 54u

static uint32_t
bits_of(uint64_t value)
{
	return value == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(value);
}

uint32_t
san_sim_jain_ppm(const uint64_t *x, uint32_t n)
{
	unsigned __int128 sum = 0, squares = 0;
	uint32_t i, bits, shift;
	uint64_t max = 0;

	for (i = 0; i < n; i++)
		max = x[i] > max ? x[i] : max;
	if (max == 0)
		return 0;
	bits = bits_of(max) + bits_of(n);
	shift = bits > SUM_BITS ? bits - SUM_BITS : 0;
	for (i = 0; i < n; i++) {
		unsigned __int128 value = x[i] >> shift;

		sum += value;
		squares += value * value;
	}
	return (uint32_t)(sum * sum * SIM_JAIN_FAIR_PPM / (squares * n));
}
