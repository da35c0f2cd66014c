/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Work requests and completions as they pass between an application's thread and an lcore:
 * lib/rtsan writes requests and reads completions, lib/ulp the reverse. They are here because
 * librtsan uses no layer above base. (SYS-2)
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rtsan_abi.h"
#include "san_line.h"
#include "san_spsc.h"

#define SAN_ULP_ATOMIC_LEN 8

/**
 * Number of a queue pair: its index in tables, and above it how often the index was used before. So
 * a number identifies one queue pair and never a later one.
 */
#define SAN_QPN_INDEX_BITS 16
#define SAN_QPN_INDEX(qpn) ((qpn) & ((1u << SAN_QPN_INDEX_BITS) - 1))
#define SAN_QPN_NONE       UINT32_MAX

/** Requests of streams besides RTSAN_WR_SEND, not ordered with it: calls of rtsan.h make them. */
enum san_wr_op {
	SAN_WR_WAIT = 16,     /**< until an event in *imm* holds: enum rtsan_stream_event */
	SAN_WR_CANCEL = 17,   /**< cancel what *imm* names: enum rtsan_stream_work */
	SAN_WR_SHUTDOWN = 18, /**< after the sends before it nothing more is sent */
	SAN_WR_URGENT = 19,   /**< take the urgent byte: the completion has it in *imm* */
	SAN_WR_OPTION = 20,   /**< *imm*: enum san_stream_option; value in remote_addr */
	/** Return the lent message buffer *imm*; only for applications in the lcore's process. */
	SAN_WR_GIVE_BACK = 21,
};

/** What OPTION sets, from the next transfer on. */
enum san_stream_option {
	SAN_STREAM_OPT_MODE = 1, /**< a fixed mode, or 0xff: adaptive (AFC-6) */
	SAN_STREAM_OPT_READ = 2, /**< enum rtsan_stream_read */
	SAN_STREAM_OPT_HOLD_NS = 3,
	SAN_STREAM_OPT_GATHER_NS = 4,
};

static inline bool
san_wr_is_atomic(uint8_t op)
{
	return op == RTSAN_WR_FETCH_ADD || op == RTSAN_WR_CMP_SWAP;
}

/** True if the request sends bytes, which may be inline. *op*: enum rtsan_wr_opcode. */
static inline bool
san_wr_is_push(uint8_t op)
{
	return op != RTSAN_WR_PULL && !san_wr_is_atomic(op);
}

/** True if the request uses a receive of the peer. */
static inline bool
san_wr_takes_recv(uint8_t op)
{
	return san_wr_is_push(op) && op != RTSAN_WR_PUSH;
}

/** True if an element that has bytes is of the region *key*. */
static inline bool
san_wr_sges_name_key(const struct rtsan_sge *sge, uint32_t nb_sge, uint32_t key)
{
	uint32_t i;

	for (i = 0; i < nb_sge; i++)
		if (sge[i].lkey == key && sge[i].length != 0)
			return true;
	return false;
}

/** A work request for the lcore: two cache lines, of which most need only the first. */
struct san_ulp_wr {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t imm;
	uint8_t op;    /**< enum rtsan_wr_opcode or san_wr_op */
	uint8_t flags; /**< enum rtsan_wr_flags */
	uint8_t nb_sge;
	uint8_t inline_len;
	uint32_t length; /**< sum of the parts, at most SAN_WIRE_LENGTH_MAX */
	union {
		/** lkey: the provider's key of the region; 0: unregistered memory */
		struct rtsan_sge sge[RTSAN_SGE_MAX];
		uint8_t data[RTSAN_INLINE_MAX];
	};
	/* atomics only: unchanged by others */
	uint64_t operand;
	uint64_t swap;
	uint8_t pad[16];
};
_Static_assert(sizeof(struct san_ulp_wr) == 2 * SAN_LINE, "two cache lines");
_Static_assert(offsetof(struct san_ulp_wr, sge[2]) == SAN_LINE, "of two parts: one cache line");

/** A posted receive. */
struct san_ulp_recv {
	uint64_t wr_id;
	uint8_t nb_sge;
	uint8_t flags; /**< enum rtsan_recv_flags; streams only */
	uint8_t pad[6];
	struct rtsan_sge sge[RTSAN_SGE_MAX];
};

struct san_ulp_wc {
	uint64_t wr_id;
	uint32_t qp; /**< number of the queue pair */
	uint32_t byte_len;
	uint32_t imm;
	uint8_t op;     /**< enum rtsan_wc_opcode */
	uint8_t status; /**< enum rtsan_wc_status */
	bool has_imm;
	uint8_t pad;
	const void *loan; /**< LOAN: the first byte, *imm* names the buffer; else NULL */
};
_Static_assert(sizeof(struct san_ulp_wc) == SAN_LINE / 2, "half a cache line");

/**
 * The two work queues of a queue pair, shared by the application's thread, which produces, and the
 * lcore, which consumes. The entries of the send queue follow, then those of the receive queue.
 */
struct san_wq {
	_Alignas(SAN_LINE) _Atomic uint32_t sq_tail; /**< written by the application */
	_Atomic uint32_t rq_tail;
	_Alignas(SAN_LINE) _Atomic uint32_t sq_head; /**< written by the lcore */
	_Atomic uint32_t rq_head;
	_Alignas(SAN_LINE) struct san_ulp_wr sqe[];
};

/** Private state of the application. */
struct san_wq_prod {
	struct san_wq *wq;
	struct san_ulp_recv *rqe;
	struct san_spsc_prod sq, rq;
};

/** Private state of the lcore. */
struct san_wq_cons {
	struct san_wq *wq; /**< NULL: there are no queues */
	struct san_ulp_recv *rqe;
	struct san_spsc_cons sq, rq;
};

/** Bytes of two queues of these depths, powers of two. Zeros are a valid start. */
static inline size_t
san_wr_wq_bytes(uint32_t sq_depth, uint32_t rq_depth)
{
	return sizeof(struct san_wq) + sq_depth * sizeof(struct san_ulp_wr) +
		rq_depth * sizeof(struct san_ulp_recv);
}

static inline void
san_wr_wq_prod_init(struct san_wq_prod *p, struct san_wq *wq, uint32_t sq_depth, uint32_t rq_depth)
{
	p->wq = wq;
	p->rqe = (struct san_ulp_recv *)(wq->sqe + sq_depth);
	san_spsc_prod_init(&p->sq, sq_depth);
	san_spsc_prod_init(&p->rq, rq_depth);
}

static inline void
san_wr_wq_cons_init(struct san_wq_cons *c, struct san_wq *wq, uint32_t sq_depth, uint32_t rq_depth)
{
	c->wq = wq;
	c->rqe = (struct san_ulp_recv *)(wq->sqe + sq_depth);
	san_spsc_cons_init(&c->sq, sq_depth);
	san_spsc_cons_init(&c->rq, rq_depth);
}

/**
 * A completion queue, shared by the lcore, which produces, and the application's thread, which
 * consumes. The number of entries is a power of two, at least two.
 */
struct san_cq {
	_Alignas(SAN_LINE) _Atomic uint32_t tail;  /**< written by the lcore */
	_Alignas(SAN_LINE) _Atomic uint32_t head;  /**< written by the application */
	_Alignas(SAN_LINE) _Atomic uint32_t armed; /**< by the application: see san_spsc_arm() */
	_Alignas(SAN_LINE) struct san_ulp_wc wc[];
};

/** Memory for *depth* entries; whole cache lines. Zeros are a valid start. */
static inline size_t
san_wr_cq_bytes(uint32_t depth)
{
	return sizeof(struct san_cq) + depth * sizeof(struct san_ulp_wc);
}

/** Called by the consumer: take at most *n* completions, oldest first. Returns their number. */
static inline uint32_t
san_wr_cq_poll(struct san_spsc_cons *c, struct san_cq *q, struct san_ulp_wc *wc, uint32_t n)
{
	uint32_t count = san_spsc_count(c, &q->tail);
	uint32_t head, first;

	if (count == 0)
		return 0;
	if (count < n) /* a caller that asks for all gets all */
		count = san_spsc_count_now(c, &q->tail);
	n = n < count ? n : count;
	head = c->head & c->mask;
	first = c->mask + 1 - head;
	first = first < n ? first : n;
	memcpy(wc, &q->wc[head], first * sizeof(wc[0]));
	memcpy(wc + first, q->wc, (n - first) * sizeof(wc[0]));
	san_spsc_pop(c, &q->head, n);
	return n;
}
