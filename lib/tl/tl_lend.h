/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TL_LEND_H
#define TL_LEND_H

/**
 * @file
 * The incast budget of a host with several lcores: split evenly, and lent where it is
 * not used (RT-13). See tl_lend.c.
 *
 * Thread rule: the struct is shared by the lcores; each calls with its own san_tl.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct san_tl;

struct san_tl_lend {
	_Alignas(64) _Atomic uint32_t free_bytes; /**< in no lcore's budget */
	_Alignas(64) _Atomic uint32_t claims;     /**< lcores that wait; above: with too little */
	_Alignas(64) uint32_t total_bytes;
	uint32_t share_bytes; /**< an lcore's, whenever it asks for it */
	uint32_t least_bytes; /**< what it always keeps */
	uint32_t unit_bytes;  /**< borrowed at once */
};

void san_tl_lend_init(struct san_tl_lend *l, uint32_t total_bytes, uint32_t nb_lcores);

#endif /* TL_LEND_H */
