/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_H
#define NET_H

/**
 * @file
 * Queue pairs and their completion queues, and the dispatch of completions and events to the owner
 * of the queue pair.
 */

#include "bench.h"

struct bench_qp {
	struct bench *b;
	struct rtsan_qp *qp;
	struct bench_cq *cq;
	uint32_t cq_entries;
	const struct rtsan_stream_attr *stream; /**< NULL: a queue pair for messages */
	bool is_up;
	bool is_over; /**< it was up, or was being set up, and has ended */
	void (*on_wc)(struct bench_qp *q, const struct rtsan_wc *wc);
	void (*on_event)(struct bench_qp *q, const struct rtsan_event *ev);
};

/**
 * Create a queue pair. Completion queues are shared as far as their depth permits.
 *
 * @param under_way
 *   Maximum number of its work requests that may complete between two polls.
 */
int san_net_qp_open(struct bench *b, struct bench_qp *q, uint32_t sq_depth, uint32_t rq_depth,
		    uint32_t under_way);
/** Close a queue pair; a connection is aborted. Not allowed in a callback. */
void san_net_qp_close(struct bench_qp *q);
/** Poll all events and completions once. Returns their number. */
uint32_t san_net_poll(struct bench *b);
/** Sleep until san_net_poll() has work, or the time is over. The caller polls in both cases. */
void san_net_wait(struct bench *b, int timeout_ms);
/** Connection parameters from the settings. */
void san_net_param(const struct bench_conf *conf, struct rtsan_conn_param *param,
		   const void *private_data, size_t private_len);

/* ---- private data of connections ---- */

#define HELLO_MAGIC 0x53424e31 /**< "SBN1" in little endian */

enum hello_kind {
	HELLO_CTL = 1,
	HELLO_DATA = 2,
};

enum hello_flags {
	HELLO_VERIFY = 0x1,
	HELLO_IMM = 0x2,
	HELLO_BOTH = 0x4, /**< the server sends requests, too */
};

/** Private data of a connection request. The control connection is set up first. */
struct hello {
	uint32_t magic;
	uint8_t kind;
	uint8_t mode;
	uint8_t flags;
	uint8_t order;
	uint64_t token; /**< identifies the session */
	uint64_t seed;
	uint32_t size_min, size_max;
	uint16_t depth, slots; /**< slots is a power of two */
	uint16_t nb_conns, index;
	uint64_t addr; /**< region of the client, if the server pulls */
	uint32_t rkey;
	uint16_t batch;      /**< requests that the server posts together */
	uint8_t way, manner; /**< streams: enum flow_way, enum flow_manner */
};

/** Private data of the answer. */
struct welcome {
	uint32_t magic;
	uint32_t rkey; /**< region of the server, 0: none */
	uint64_t addr;
	uint64_t shared_addr; /**< words shared by all connections of the session */
	uint32_t shared_rkey;
	uint32_t rq; /**< number of receives posted */
};

_Static_assert(sizeof(struct hello) <= RTSAN_PRIVATE_MAX, "hello fits");
_Static_assert(sizeof(struct welcome) <= RTSAN_PRIVATE_MAX, "welcome fits");

/** Slots are aligned, so that copies are aligned for any size. */
static inline uint32_t
san_net_stride(uint32_t size)
{
	return (size + 63u) & ~63u;
}

static inline uint32_t
san_net_slot(const struct hello *h, uint64_t i)
{
	return (uint32_t)i & (h->slots - 1u);
}

/** Memory for the slots of a connection. */
static inline uint64_t
san_net_slots_bytes(const struct hello *h, uint32_t stride)
{
	return (uint64_t)h->slots * stride;
}

#endif /* NET_H */
