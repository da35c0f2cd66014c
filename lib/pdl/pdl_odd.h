/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PDL_ODD_H
#define PDL_ODD_H

/**
 * @file
 * Reasons why packets of a connection must take the general path (lib/express). A bit is set as
 * long as its reason holds. Each layer sets and clears its own bits, and its san_*_check() verifies
 * them.
 */

#include <stdbool.h>
#include <stdint.h>

enum san_odd {
	SAN_ODD_STATE = 0x01,  /**< pdl.c: not open */
	SAN_ODD_SILENT = 0x02, /**< pdl_rtx.c: no packet received since a timeout */
	SAN_ODD_BASE = 0x04,   /**< tl_rxn.c: the base RSN has a record, part of it came */
	SAN_ODD_AHEAD = 0x08,  /**< tl_rxn.c: the CAM has records of later RSNs */
	SAN_ODD_HEAD = 0x10,   /**< tl_rxn.c: the base is a request without a record */
	SAN_ODD_RNR = 0x20,    /**< tl_nack.c: the base was refused and not accepted since */
	SAN_ODD_FAILED = 0x40, /**< tl_target.c: nothing is executed any more (RT-40) */
};

static inline void
san_pdl_odd_put(uint8_t *odd, enum san_odd why, bool holds)
{
	*odd = holds ? *odd | (uint8_t)why : *odd & (uint8_t)~why;
}

#endif /* PDL_ODD_H */
