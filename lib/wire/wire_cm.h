/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_CM_H
#define WIRE_CM_H

/**
 * @file
 * Bytes of a connection management message. All messages have the same structure and are always
 * sent whole, so that no answer is longer than its request (RULE-17). (doc/wire.md)
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "wire.h"

struct wire_cm {
	uint8_t msg;
	uint8_t flags;
	uint8_t reason;
	uint8_t nb_ports;
	rte_be32_t xid;
	rte_be32_t src_cid;
	rte_be32_t src_tag;
	rte_be32_t dst_cid;
	rte_be32_t dst_tag;
	rte_be32_t req_psn;
	rte_be32_t data_psn;
	rte_be32_t first_rsn;
	rte_be32_t features;
	rte_be16_t mtu;
	rte_be16_t req_win;
	rte_be16_t data_win;
	rte_be16_t first_win;
	rte_be16_t max_txn;
	rte_be16_t rnr_ms;
	rte_be16_t keepalive_ms;
	rte_be16_t private_len;
	rte_be64_t service;
	uint8_t cookie[SAN_WIRE_COOKIE];
	rte_be16_t ports[SAN_WIRE_CM_PORTS];
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
} __rte_packed;
static_assert(offsetof(struct wire_cm, mtu) == 40, "CM mtu");
static_assert(offsetof(struct wire_cm, service) == 56, "CM service");
static_assert(offsetof(struct wire_cm, cookie) == 64, "CM cookie");
static_assert(offsetof(struct wire_cm, ports) == 84, "CM ports");
static_assert(offsetof(struct wire_cm, private_data) == 100, "CM private data");
static_assert(sizeof(struct wire_cm) == 164, "CM message");

#endif /* WIRE_CM_H */
