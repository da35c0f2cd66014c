/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_BTH_H
#define WIRE_BTH_H

/**
 * @file
 * Bytes up to and including the BTH: Ethernet, IP, UDP, and the InfiniBand base transport header,
 * as in RoCEv2. (doc/wire.md, RT-31)
 *
 * Every structure is packed: after 14 bytes of Ethernet nothing is aligned in memory. Relative to
 * the BTH, fields are naturally aligned.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ip.h>
#include <rte_udp.h>

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

/** Headers up to the BTH over IPv4. */
struct wire_front_v4 {
	struct wire_eth eth;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
	struct wire_bth bth;
} __rte_packed;
static_assert(sizeof(struct wire_front_v4) == 54, "headers over IPv4");

/** Headers up to the BTH over IPv6. */
struct wire_front_v6 {
	struct wire_eth eth;
	struct rte_ipv6_hdr ip;
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

#endif /* WIRE_BTH_H */
