/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Serial arithmetic mod 2^32 for PSN, RSN and SSN (RT-3).
 *
 * Two numbers are comparable while they are less than 2^31 apart, which every
 * window here guarantees. Example: 0x00000001 comes after 0xffffffff, because
 * 0x00000001 - 0xffffffff = 2 mod 2^32, and 2 as a signed number is positive.
 */

#include <stdbool.h>
#include <stdint.h>

/** How far *a* is ahead of *b*; negative when it is behind. */
static inline int32_t
san_seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static inline bool
san_seq_lt(uint32_t a, uint32_t b)
{
	return san_seq_diff(a, b) < 0;
}

static inline bool
san_seq_le(uint32_t a, uint32_t b)
{
	return san_seq_diff(a, b) <= 0;
}

static inline bool
san_seq_gt(uint32_t a, uint32_t b)
{
	return san_seq_diff(a, b) > 0;
}

static inline bool
san_seq_ge(uint32_t a, uint32_t b)
{
	return san_seq_diff(a, b) >= 0;
}

/** The later of two. */
static inline uint32_t
san_seq_max(uint32_t a, uint32_t b)
{
	return san_seq_lt(a, b) ? b : a;
}
