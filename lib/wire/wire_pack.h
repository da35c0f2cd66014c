/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The messages in a PUSH_PACKED packet. Its payload is a sequence of messages, each with a header
 * of its own and padded to four bytes. (RT-34; doc/wire.md)
 *
 * Inline, because it runs for each message on both sides.
 */

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "wire.h"

/** Header before the data of each message; its length depends on the kind. */
struct wire_msg {
	uint8_t kind; /**< enum san_wire_kind */
	uint8_t rsvd;
	rte_be16_t length;
	rte_be32_t key; /**< a send's immediate, if it has one */
	/* pushes, with and without an immediate */
	rte_be64_t addr;
	/* pushes with an immediate */
	rte_be32_t imm;
} __rte_packed;
static_assert(sizeof(struct wire_msg) == 20, "message of PUSH_PACKED");
static_assert(offsetof(struct wire_msg, key) == 4, "a send ends here");
static_assert(offsetof(struct wire_msg, addr) == 8, "a send with an immediate ends here");
static_assert(offsetof(struct wire_msg, imm) == 16, "a push ends here");

/** A message in host order; *kind* decides which fields are valid. */
struct san_wire_msg {
	uint64_t addr;
	uint32_t key;
	uint32_t imm;
	uint16_t length; /**< bytes of data */
	uint16_t off;    /**< get only: offset of the data from the start of the mbuf's data */
	uint8_t kind;    /**< enum san_wire_kind */
};

/**
 * Check that the payload of a PUSH_PACKED consists of exactly p->length valid messages. The parser
 * calls it, except for a piece.
 */
enum san_drop san_wire_pack_check(const struct rte_mbuf *m, const struct san_wire_pkt *p);

/** Bytes before the data. */
static inline uint32_t
san_wire_pack_hdr_len(uint8_t kind)
{
	static const uint8_t len[4] = {
		[SAN_KIND_SEND] = offsetof(struct wire_msg, key),
		[SAN_KIND_SEND_IMM] = offsetof(struct wire_msg, addr),
		[SAN_KIND_PUSH] = offsetof(struct wire_msg, imm),
		[SAN_KIND_PUSH_IMM] = sizeof(struct wire_msg),
	};

	return len[kind & 3]; /* *kind* is checked before; the mask keeps it inside the table */
}

/** Length of a message with *length* bytes of data. */
static inline uint32_t
san_wire_pack_len(uint8_t kind, uint32_t length)
{
	return san_wire_pack_hdr_len(kind) + RTE_ALIGN_CEIL(length, 4u);
}

/**
 * Write header and padding of a message to *dst*, where san_wire_pack_len() bytes are free. @return
 * where the caller then writes the data.
 */
static inline void *
san_wire_pack_put(void *dst, const struct san_wire_msg *msg)
{
	uint32_t hdr_len = san_wire_pack_hdr_len(msg->kind);
	struct wire_msg *x = dst;
	uint8_t *data = (uint8_t *)dst + hdr_len;

	x->kind = msg->kind;
	x->rsvd = 0;
	x->length = rte_cpu_to_be_16(msg->length);
	if (!san_wire_is_send(msg->kind)) {
		x->key = rte_cpu_to_be_32(msg->key);
		x->addr = rte_cpu_to_be_64(msg->addr);
		if (msg->kind == SAN_KIND_PUSH_IMM)
			x->imm = rte_cpu_to_be_32(msg->imm);
	} else if (msg->kind == SAN_KIND_SEND_IMM) {
		x->key = rte_cpu_to_be_32(msg->imm);
	}
	if (msg->length % 4 != 0)
		memset(data + RTE_ALIGN_FLOOR(msg->length, 4u), 0, 4);
	return data;
}

/**
 * Read the message at *off*, counted from the start of the data of *m*, a packet that
 * san_wire_parse() accepted.
 * @return the offset of the next one.
 */
static inline uint32_t
san_wire_pack_get(const struct rte_mbuf *m, uint32_t off, struct san_wire_msg *msg)
{
	struct wire_msg copy;
	const struct wire_msg *x = rte_pktmbuf_read(m, off, offsetof(struct wire_msg, key), &copy);
	uint32_t hdr_len;

	msg->kind = x->kind;
	msg->length = rte_be_to_cpu_16(x->length);
	hdr_len = san_wire_pack_hdr_len(msg->kind);
	if (msg->kind != SAN_KIND_SEND)
		x = rte_pktmbuf_read(m, off, hdr_len, &copy);
	if (!san_wire_is_send(msg->kind)) {
		msg->key = rte_be_to_cpu_32(x->key);
		msg->addr = rte_be_to_cpu_64(x->addr);
		if (msg->kind == SAN_KIND_PUSH_IMM)
			msg->imm = rte_be_to_cpu_32(x->imm);
	} else {
		if (msg->kind == SAN_KIND_SEND_IMM)
			msg->imm = rte_be_to_cpu_32(x->key);
		msg->key = 0;
		msg->addr = 0;
	}
	msg->off = (uint16_t)(off + hdr_len);
	return off + hdr_len + RTE_ALIGN_CEIL((uint32_t)msg->length, 4u);
}
