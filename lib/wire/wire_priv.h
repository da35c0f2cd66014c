/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Layouts of all headers, the table of packet types, and the ICRC. (doc/wire.md, RT-3, RT-24,
 * RT-31, PCB-5)
 *
 * Every structure is packed: after 14 bytes of Ethernet nothing is aligned in memory. Relative to
 * the BTH, fields are naturally aligned.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "wire.h"

/* ---- up to and including the BTH, as in RoCEv2: Ethernet, IP, UDP, InfiniBand's header ---- */

#define WIRE_BTH_TVER      0x0f /**< transport version, in byte 1 */
#define WIRE_BTH_PAD       0x30 /**< number of zero bytes between payload and ICRC */
#define WIRE_BTH_PAD_SHIFT 4
#define WIRE_BTH_MIGREQ    0x40
#define WIRE_BTH_SE        0x80
#define WIRE_BTH_FECN      0x80 /**< in resv8a */
#define WIRE_BTH_BECN      0x40 /**< in resv8a; set in a CNP */
#define WIRE_BTH_ACKREQ    0x80 /**< in byte 8; the other seven bits are reserved */
#define WIRE_ICRC_LEN      4
#define WIRE_CNP_LEN       16 /**< of reserved bytes, which follow the BTH of a CNP */

struct wire_eth {
	uint8_t dst[6];
	uint8_t src[6];
	rte_be16_t type;
} __rte_packed;
static_assert(sizeof(struct wire_eth) == 14, "Ethernet header");

struct wire_bth {
	uint8_t opcode;
	uint8_t bits; /**< SE, M, pad count, TVer */
	rte_be16_t pkey;
	uint8_t resv8a; /**< FECN, BECN, reserved; counted as ones in the ICRC */
	uint8_t dqp[3]; /**< destination CID */
	uint8_t ackreq;
	uint8_t psn[3]; /**< low 24 bits */
} __rte_packed;
static_assert(sizeof(struct wire_bth) == 12, "BTH");
static_assert(offsetof(struct wire_bth, resv8a) == 4, "BTH resv8a");
static_assert(offsetof(struct wire_bth, ackreq) == 8, "BTH AckReq");

/* Since DPDK 24.11 these have an alignment, which a packet at an odd address would not have. */
typedef struct rte_ipv4_hdr wire_ipv4 __rte_aligned(1);
typedef struct rte_ipv6_hdr wire_ipv6 __rte_aligned(1);

/** Headers up to the BTH over IPv4. */
struct wire_front_v4 {
	struct wire_eth eth;
	wire_ipv4 ip;
	struct rte_udp_hdr udp;
	struct wire_bth bth;
} __rte_packed;
static_assert(sizeof(struct wire_front_v4) == 54, "headers over IPv4");

/** Headers up to the BTH over IPv6. */
struct wire_front_v6 {
	struct wire_eth eth;
	wire_ipv6 ip;
	struct rte_udp_hdr udp;
	struct wire_bth bth;
} __rte_packed;
static_assert(sizeof(struct wire_front_v6) == 74, "headers over IPv6");

/** Destination CID. It is read as a word with the byte before it, and so is the PSN. */
static inline uint32_t
san_wire_bth_cid(const struct wire_bth *bth)
{
	rte_be32_t word;

	memcpy(&word, &bth->resv8a, sizeof(word));
	return rte_be_to_cpu_32(word) & 0xffffff;
}

static inline uint32_t
san_wire_bth_psn(const struct wire_bth *bth)
{
	rte_be32_t word;

	memcpy(&word, &bth->ackreq, sizeof(word));
	return rte_be_to_cpu_32(word) & 0xffffff;
}

static inline void
san_wire_bth_put24(uint8_t b[3], uint32_t v)
{
	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

/* ---- after the BTH: the common RT header and the extended header of each packet type ---- */

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

/** Copy *n* words of an ACK's bitmaps to or from the wire. Returns their bytes. */
static inline size_t
san_wire_copy_words(void *to, const void *from, unsigned int n)
{
	uint64_t word;
	unsigned int i;

	for (i = 0; i < n; i++) {
		memcpy(&word, (const char *)from + i * sizeof(word), sizeof(word));
		word = rte_cpu_to_be_64(word);
		memcpy((char *)to + i * sizeof(word), &word, sizeof(word));
	}
	return n * sizeof(word);
}

/* ---- table of packet types, ICRC ---- */

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
 * frame is unchanged on return. *len*: bytes from the start of the Ethernet header to the ICRC,
 * which is not included; at most the length of the packet.
 */
uint32_t san_wire_icrc(struct rte_mbuf *m, bool v6, uint32_t len);
