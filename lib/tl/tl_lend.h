/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TL_LEND_H
#define TL_LEND_H

/**
 * @file
 * The incast budget of a host with several lcores: split evenly, and lent by lcores that do not use
 * theirs (RT-13). See tl_lend.c.
 *
 * Thread rule: the lcores share the struct; each lcore calls with its own san_tl.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct san_tl;

struct san_tl_lend {
	_Alignas(64) _Atomic uint32_t free_bytes; /**< in no lcore's budget */
	_Alignas(64) _Atomic uint32_t claims;     /**< waiting lcores; high half: short ones */
	_Alignas(64) uint32_t total_bytes;
	uint32_t share_bytes; /**< what an lcore gets whenever it asks */
	uint32_t least_bytes; /**< what an lcore always keeps */
	uint32_t unit_bytes;  /**< bytes borrowed at a time */
};

void san_tl_lend_init(struct san_tl_lend *l, uint32_t total_bytes, uint32_t nb_lcores);

#endif /* TL_LEND_H */
