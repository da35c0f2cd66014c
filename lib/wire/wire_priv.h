/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_PRIV_H
#define WIRE_PRIV_H

/**
 * @file
 * Definitions shared by the files of this folder: the table of packet types, the ICRC.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "wire.h"
#include "wire_bth.h"
#include "wire_rt.h"

#define WIRE_OP_FIRST  SAN_OP_PUSH_SLCTD_REQ
#define WIRE_NB_OPS    13
#define WIRE_V4_OFFSET 12   /**< offset of an IPv4 address in struct san_ip */
#define WIRE_ANY_LEN   0xff /**< any length, or checked by the parser of the type */

/** Properties of a packet type. */
struct wire_op {
	uint8_t ext_len; /**< bytes of the extended header */
	uint8_t flags;   /**< enum san_wire_flag allowed */
	uint8_t payload; /**< exact payload length, or WIRE_ANY_LEN */
};

/** Packet types, indexed by opcode - WIRE_OP_FIRST; CNP is not included. */
extern const struct wire_op san_wire_ops[WIRE_NB_OPS];

static inline const struct wire_op *
san_wire_op_get(uint8_t op)
{
	uint8_t i = (uint8_t)(op - WIRE_OP_FIRST);

	return i < WIRE_NB_OPS ? &san_wire_ops[i] : NULL;
}

/**
 * ICRC of a frame whose headers up to the BTH are contiguous, in memory that we may write to. The
 * frame is unchanged on return.
 *
 * @param len
 *   Bytes covered, from the start of the Ethernet header to the ICRC, which is not included;
 *   at most the length of the packet.
 */
uint32_t san_wire_icrc(struct rte_mbuf *m, bool v6, uint32_t len);

#endif /* WIRE_PRIV_H */
