/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_PRIV_H
#define WIRE_PRIV_H

/**
 * @file
 * What the files of this folder share: the table of packet types, the ICRC.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "wire.h"
#include "wire_bth.h"
#include "wire_rt.h"

#define WIRE_OP_FIRST  SAN_OP_PUSH_SLCTD_REQ
#define WIRE_NB_OPS    13
#define WIRE_V4_OFFSET 12   /**< of an IPv4 address in struct san_ip */
#define WIRE_ANY_LEN   0xff /**< payload length is free, or judged by the type's own parser */

/** What there is to know of a packet type. */
struct wire_op {
	const char *name;
	uint8_t ext_len; /**< bytes of the extended header */
	uint8_t flags;   /**< enum san_wire_flag allowed */
	uint8_t payload; /**< exact payload length, or WIRE_ANY_LEN */
};

/** Packet types by opcode - WIRE_OP_FIRST; CNP has none. */
extern const struct wire_op san_wire_ops[WIRE_NB_OPS];

static inline const struct wire_op *
wire_op_get(uint8_t op)
{
	uint8_t i = (uint8_t)(op - WIRE_OP_FIRST);

	return i < WIRE_NB_OPS ? &san_wire_ops[i] : NULL;
}

/**
 * ICRC of a frame whose headers up to the BTH are contiguous, in memory that is ours to
 * write to; when it returns the frame is as it was.
 *
 * @param len
 *   Bytes from the start of the Ethernet header that it covers, i.e. without
 *   the ICRC itself; not more than the packet has.
 */
uint32_t san_wire_icrc(struct rte_mbuf *m, bool v6, uint32_t len);

#endif /* WIRE_PRIV_H */
