/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_WR_H
#define SAN_WR_H

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

#include "san_spsc.h"

#define SAN_ULP_SGE_MAX    4
#define SAN_ULP_INLINE_MAX 64 /**< bytes copied with the work request */
#define SAN_ULP_ATOMIC_LEN 8

/**
 * Number of a queue pair: its index in tables, and above it how often the index was used before. So
 * a number identifies one queue pair and never a later one.
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
	/* of streams, besides SEND; not ordered with SENDs */
	SAN_WR_WAIT = 16,     /**< until an event in *imm* holds: enum san_stream_event */
	SAN_WR_CANCEL = 17,   /**< cancel what *imm* names: enum san_stream_cancel */
	SAN_WR_SHUTDOWN = 18, /**< after the sends before it nothing more is sent */
	SAN_WR_URGENT = 19,   /**< take the urgent byte: the completion has it in *imm* */
	SAN_WR_OPTION = 20,   /**< *imm*: enum san_stream_option; value in remote_addr */
	/** Return the lent message buffer *imm*; only for applications in the lcore's process. */
	SAN_WR_GIVE_BACK = 21,
};

/**
 * Events that a stream's WAIT waits for, and that its completion reports in *imm*. (AFC-1, AFC-19)
 */
enum san_stream_event {
	SAN_STREAM_READABLE = 0x1, /**< data, or its end */
	SAN_STREAM_WRITABLE = 0x2, /**< a send would start at once */
	SAN_STREAM_URGENT = 0x4,   /**< an urgent byte was announced */
	SAN_STREAM_ENDED = 0x8,    /**< the connection has ended; always waited for */
};

enum san_stream_cancel {
	SAN_STREAM_RECVS = 0x1, /**< posted receives; active ones complete with what arrived */
	SAN_STREAM_SENDS = 0x2, /**< sends; active ones complete with what was sent */
	SAN_STREAM_WAITS = 0x4,
};

/** What OPTION sets, from the next transfer on. */
enum san_stream_option {
	SAN_STREAM_OPT_MODE = 1, /**< a fixed mode, or 0xff: adaptive (AFC-6) */
	SAN_STREAM_OPT_READ = 2, /**< enum san_stream_read */
	SAN_STREAM_OPT_HOLD_NS = 3,
	SAN_STREAM_OPT_GATHER_NS = 4,
};

/** Flags of a receive on a stream. */
enum san_recv_flag {
	SAN_RECV_PEEK = 0x1,     /**< copy available data without consuming it */
	SAN_RECV_WAITALL = 0x2,  /**< complete when full, or at the end */
	SAN_RECV_DONTWAIT = 0x4, /**< complete at once, with the data available */
	/**
	 * No buffer: the next message buffer is lent. Only for applications in the lcore's process.
	 */
	SAN_RECV_LOAN = 0x8,
};

enum san_ulp_wr_flag {
	SAN_WR_SIGNALED = 0x1,    /**< a completion entry is written; for errors always */
	SAN_WR_INLINE = 0x2,      /**< payload is in the request itself */
	SAN_WR_SOLICITED = 0x4,   /**< force solicited (RT-12) */
	SAN_WR_UNSOLICITED = 0x8, /**< force unsolicited */
	SAN_WR_OOB = 0x10,        /**< streams: the last byte is urgent */
};

struct san_ulp_sge {
	void *addr;
	uint32_t len;
	uint32_t key; /**< of the region that contains it; 0: unregistered memory */
};

/**
 * A work request on its way from the application to the lcore: two cache lines, of which most need
 * only the first.
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
	/* atomics only: unchanged by others */
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
	uint8_t flags; /**< enum san_recv_flag; streams only */
	uint8_t pad[6];
	struct san_ulp_sge sge[SAN_ULP_SGE_MAX];
};

enum san_ulp_wc_op {
	SAN_WC_SEND = 1,
	SAN_WC_PUSH = 2,
	SAN_WC_PULL = 3,
	SAN_WC_ATOMIC = 4,
	SAN_WC_RECV = 5,          /**< a send arrived */
	SAN_WC_RECV_PUSH_IMM = 6, /**< a push with immediate arrived */
	/* of streams */
	SAN_WC_WAIT = 7,
	SAN_WC_CANCEL = 8,
	SAN_WC_SHUTDOWN = 9,
	SAN_WC_URGENT = 10,
	SAN_WC_OPTION = 11,
	SAN_WC_GIVE_BACK = 12,
};

/** Local results of a work request, from 64 on, beyond enum san_wire_status. */
enum san_ulp_status {
	SAN_WC_ST_RETRY_EXC = 64,    /**< the peer does not answer (RT-7) */
	SAN_WC_ST_FLUSHED = 65,      /**< the queue pair was disconnected first */
	SAN_WC_ST_LOCAL_LENGTH = 66, /**< receive: the send was longer; only this receive fails */
	/* of streams */
	SAN_WC_ST_NO_BUFFERS = 67, /**< no registered memory was available: nothing was sent */
	SAN_WC_ST_CANCELLED = 68,  /**< by SAN_WR_CANCEL; byte_len: moved before */
	SAN_WC_ST_AGAIN = 69,      /**< DONTWAIT: no data is available */
	SAN_WC_ST_SHUTDOWN = 70,   /**< a send after SAN_WR_SHUTDOWN */
	SAN_WC_ST_PROTOCOL = 71,   /**< the peer violated the session protocol */
	SAN_WC_ST_INVALID = 72,    /**< a value out of range */
};

struct san_ulp_wc {
	uint64_t wr_id;
	uint32_t qp; /**< number of the queue pair */
	uint32_t byte_len;
	uint32_t imm;
	uint8_t op;     /**< enum san_ulp_wc_op */
	uint8_t status; /**< enum san_wire_status or enum san_ulp_status */
	bool has_imm;
	uint8_t pad;
	const void *loan; /**< LOAN: the first byte, *imm* names the buffer; else NULL */
};
_Static_assert(sizeof(struct san_ulp_wc) == 32, "half a cache line");

/**
 * The two work queues of a queue pair, shared by the application's thread, which produces, and the
 * lcore, which consumes. The entries of the send queue follow, then those of the receive queue.
 */
struct san_wq {
	_Alignas(64) _Atomic uint32_t sq_tail; /**< written by the application */
	_Atomic uint32_t rq_tail;
	_Alignas(64) _Atomic uint32_t sq_head; /**< written by the lcore */
	_Atomic uint32_t rq_head;
};

/** Private state of the application. */
struct san_wq_prod {
	struct san_wq *wq;
	struct san_ulp_wr *sqe;
	struct san_ulp_recv *rqe;
	struct san_spsc_prod sq, rq;
};

/** Private state of the lcore. */
struct san_wq_cons {
	struct san_wq *wq; /**< NULL: there are no queues */
	struct san_ulp_wr *sqe;
	struct san_ulp_recv *rqe;
	struct san_spsc_cons sq, rq;
};

/**
 * Bytes of two queues of these depths, powers of two; whole cache lines. Zeros are a valid start.
 */
static inline size_t
san_wr_wq_bytes(uint32_t sq_depth, uint32_t rq_depth)
{
	return (sizeof(struct san_wq) + sq_depth * sizeof(struct san_ulp_wr) +
		rq_depth * sizeof(struct san_ulp_recv) + 63) &
		~(size_t)63;
}

static inline void
san_wr_wq_prod_init(struct san_wq_prod *p, struct san_wq *wq, uint32_t sq_depth, uint32_t rq_depth)
{
	p->wq = wq;
	p->sqe = (struct san_ulp_wr *)(wq + 1);
	p->rqe = (struct san_ulp_recv *)(p->sqe + sq_depth);
	san_spsc_prod_init(&p->sq, sq_depth);
	san_spsc_prod_init(&p->rq, rq_depth);
}

static inline void
san_wr_wq_cons_init(struct san_wq_cons *c, struct san_wq *wq, uint32_t sq_depth, uint32_t rq_depth)
{
	c->wq = wq;
	c->sqe = (struct san_ulp_wr *)(wq + 1);
	c->rqe = (struct san_ulp_recv *)(c->sqe + sq_depth);
	san_spsc_cons_init(&c->sq, sq_depth);
	san_spsc_cons_init(&c->rq, rq_depth);
}

/**
 * A completion queue, shared by the lcore, which produces, and the application's thread, which
 * consumes. The number of entries is a power of two, at least two.
 */
struct san_cq {
	_Alignas(64) _Atomic uint32_t tail;  /**< written by the lcore */
	_Alignas(64) _Atomic uint32_t head;  /**< written by the application */
	_Alignas(64) _Atomic uint32_t armed; /**< by the application: see san_spsc_arm() */
	_Alignas(64) struct san_ulp_wc wc[];
};

/** Memory for *depth* entries; whole cache lines. Zeros are a valid start. */
static inline size_t
san_wr_cq_bytes(uint32_t depth)
{
	return sizeof(struct san_cq) + depth * sizeof(struct san_ulp_wc);
}

/** Called by the consumer: take at most *n* completions, oldest first. Returns their number. */
uint32_t san_wr_cq_poll(struct san_spsc_cons *c, struct san_cq *q, struct san_ulp_wc *wc,
			uint32_t n);

#endif /* SAN_WR_H */
