/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_WR_H
#define SAN_WR_H

/**
 * @file
 * Work requests and completions as they cross between an application's thread
 * and an lcore: lib/rtsan writes the ones and reads the others, lib/ulp the
 * other way round. They are here because librtsan sees no layer above base.
 * (SYS-2)
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "san_spsc.h"

#define SAN_ULP_SGE_MAX    4
#define SAN_ULP_INLINE_MAX 64 /**< bytes copied with the work request */

/**
 * A queue pair's number: its place in tables, and above it how often the place
 * was used before. So a number names one queue pair, not its successors.
 */
#define SAN_QPN_INDEX_BITS 16
#define SAN_QPN_INDEX(qpn) ((qpn) & ((1u << SAN_QPN_INDEX_BITS) - 1))
#define SAN_QPN_NONE       UINT32_MAX

enum san_ulp_op {
	SAN_WR_SEND = 1,
	SAN_WR_PUSH = 2,
	SAN_WR_PUSH_IMM = 3,
	SAN_WR_PULL = 4,
	SAN_WR_FETCH_ADD = 5,
	SAN_WR_CMP_SWAP = 6,
};

enum san_ulp_wr_flag {
	SAN_WR_SIGNALED = 0x1,    /**< completes with an entry; errors always do */
	SAN_WR_INLINE = 0x2,      /**< payload is in the request itself */
	SAN_WR_SOLICITED = 0x4,   /**< force solicited (RT-12) */
	SAN_WR_UNSOLICITED = 0x8, /**< force unsolicited */
};

struct san_ulp_sge {
	void *addr;
	uint32_t len;
	uint32_t lkey; /**< 0: memory that is not registered */
};

/**
 * A work request as it crosses from the application to the lcore: two cache lines, of
 * which most need the first only.
 */
struct san_ulp_wr {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t imm;
	uint8_t op;    /**< enum san_ulp_op */
	uint8_t flags; /**< enum san_ulp_wr_flag */
	uint8_t nb_sge;
	uint8_t inline_len;
	uint32_t length; /**< sum of the parts, at most SAN_WIRE_LENGTH_MAX */
	union {
		struct san_ulp_sge sge[SAN_ULP_SGE_MAX];
		uint8_t data[SAN_ULP_INLINE_MAX];
	};
	/* atomics only: others leave them as they are */
	uint64_t operand;
	uint64_t swap;
	uint8_t pad[16];
};
_Static_assert(sizeof(struct san_ulp_wr) == 128, "two cache lines");
_Static_assert(offsetof(struct san_ulp_wr, sge[2]) == 64, "of two parts: one cache line");

/** A posted receive. */
struct san_ulp_recv {
	uint64_t wr_id;
	uint8_t nb_sge;
	uint8_t pad[7];
	struct san_ulp_sge sge[SAN_ULP_SGE_MAX];
};

enum san_ulp_wc_op {
	SAN_WC_SEND = 1,
	SAN_WC_PUSH = 2,
	SAN_WC_PULL = 3,
	SAN_WC_ATOMIC = 4,
	SAN_WC_RECV = 5,          /**< a send arrived */
	SAN_WC_RECV_PUSH_IMM = 6, /**< a push with immediate arrived */
};

/** Beyond enum san_wire_status, from 64 on: local outcomes of a work request. */
enum san_ulp_status {
	SAN_WC_ST_RETRY_EXC = 64,    /**< the peer does not answer (RT-7) */
	SAN_WC_ST_FLUSHED = 65,      /**< the queue pair was disconnected first */
	SAN_WC_ST_LOCAL_LENGTH = 66, /**< receive: the send was longer; nothing lost but this */
};

struct san_ulp_wc {
	uint64_t wr_id;
	uint32_t qp; /**< number of the queue pair */
	uint32_t byte_len;
	uint32_t imm;
	uint8_t op;     /**< enum san_ulp_wc_op */
	uint8_t status; /**< enum san_wire_status or enum san_ulp_status */
	bool has_imm;
	uint8_t pad[9];
};
_Static_assert(sizeof(struct san_ulp_wc) == 32, "half a cache line");

/**
 * The two work queues of a queue pair between the application's thread, which
 * produces, and the lcore, which consumes.
 */
struct san_wq {
	struct san_spsc sq;
	struct san_spsc rq;
	struct san_ulp_wr *sqe;   /**< sq.mask + 1 entries */
	struct san_ulp_recv *rqe; /**< rq.mask + 1 entries */
	_Atomic bool rung;        /**< the lcore has been told of new entries, and will look */
};

#endif /* SAN_WR_H */
