/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_RT_H
#define WIRE_RT_H

/**
 * @file
 * Bytes after the BTH: the common RT header and the extended header of each packet type.
 * (doc/wire.md, RT-3, RT-24, PCB-5)
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "wire.h"

#define WIRE_RT_VERSION_SHIFT 4
#define WIRE_RT_RESERVED      0x0f /**< low nibble of the version byte */

/** In every packet but CNP. */
struct wire_rt {
	uint8_t version; /**< high nibble */
	uint8_t flags;
	uint8_t psn_hi; /**< bits 31..24; the BTH has the rest (RT-3) */
	uint8_t round;
	rte_be32_t tag; /**< tag of the receiver (RT-24) */
	rte_be32_t rsn;
	rte_be32_t req_ebsn;
	rte_be32_t data_ebsn;
	rte_be32_t cmpl_rsn; /**< PCB-5 */
	rte_be32_t tx_time;
} __rte_packed;
static_assert(sizeof(struct wire_rt) == 28, "common RT header");
static_assert(offsetof(struct wire_rt, tag) == 4, "tag");
static_assert(offsetof(struct wire_rt, tx_time) == 24, "tx_time");

/** PULL_REQ, and the start of the two pushes below. */
struct wire_remote {
	rte_be32_t length;
	rte_be32_t key;
	rte_be64_t addr;
} __rte_packed;
static_assert(sizeof(struct wire_remote) == 16, "PULL_REQ");
static_assert(offsetof(struct wire_remote, addr) == 8, "addr");

/** PUSH_SLCTD_REQ and PUSH_UNSLCTD_DATA. */
struct wire_push {
	struct wire_remote remote;
	rte_be32_t number; /**< request: SSN; data: offset */
} __rte_packed;
static_assert(sizeof(struct wire_push) == 20, "PUSH_SLCTD_REQ, PUSH_UNSLCTD_DATA");

/** Before the payload of a piece, which is part of a longer payload. (RT-37) */
struct wire_piece {
	rte_be16_t offset;
	rte_be16_t length; /**< of the whole payload */
} __rte_packed;
static_assert(sizeof(struct wire_piece) == 4, "piece");

struct wire_atomic_req {
	uint8_t op;
	uint8_t rsvd[3];
	rte_be32_t key;
	rte_be64_t addr;
} __rte_packed;
static_assert(sizeof(struct wire_atomic_req) == 16, "ATOMIC_REQ");

/** PULL_DATA, and the end of a grant. */
struct wire_result {
	rte_be32_t offset;
	uint8_t status;
	uint8_t rsvd[3];
} __rte_packed;
static_assert(sizeof(struct wire_result) == 8, "PULL_DATA");

struct wire_grnt {
	rte_be32_t ssn;
	struct wire_result result;
} __rte_packed;
static_assert(sizeof(struct wire_grnt) == 12, "PUSH_GRNT");

struct wire_slctd_data {
	rte_be32_t offset;
} __rte_packed;
static_assert(sizeof(struct wire_slctd_data) == 4, "PUSH_SLCTD_DATA");

/** PUSH_PACKED and RESYNC. */
struct wire_code {
	uint8_t code; /**< number of messages; enum san_wire_resync */
	uint8_t rsvd[3];
} __rte_packed;
static_assert(sizeof(struct wire_code) == 4, "PUSH_PACKED, RESYNC");

struct wire_nack {
	rte_be32_t psn;
	uint8_t code;
	uint8_t rsvd[3];
	rte_be32_t delay_us;
} __rte_packed;
static_assert(sizeof(struct wire_nack) == 12, "NACK");

#define WIRE_ACK_OOW           0x03
#define WIRE_ACK_NB_REQ        0x1c
#define WIRE_ACK_NB_REQ_SHIFT  2
#define WIRE_ACK_BITS_RESERVED 0xe0
#define WIRE_ACK_LEVEL_MAX     1000

/** The payload follows: nb_req words, then nb_data words acknowledged, then nb_data received. */
struct wire_ack {
	rte_be32_t serial;
	rte_be32_t echo_tx;
	rte_be32_t echo_rx;
	rte_be16_t ecn_count;
	rte_be16_t rx_level;
	rte_be16_t first_win;
	uint8_t bits; /**< out-of-window flags, nb_req */
	uint8_t nb_data;
} __rte_packed;
static_assert(sizeof(struct wire_ack) == 20, "ACK");
static_assert(offsetof(struct wire_ack, bits) == 18, "ACK bits");

#endif /* WIRE_RT_H */
