/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_H
#define NET_H

/**
 * @file
 * Queue pairs with their completion queues, and the dispatch of completions
 * and events to whoever owns the queue pair.
 */

#include "bench.h"

struct bench_qp {
	struct bench *b;
	struct rtsan_qp *qp;
	struct bench_cq *cq;
	uint32_t cq_entries;
	const struct rtsan_stream_attr *stream; /**< NULL: it carries messages */
	bool is_up;
	bool is_over; /**< was up or tried to be, and has ended */
	void (*on_wc)(struct bench_qp *q, const struct rtsan_wc *wc);
	void (*on_event)(struct bench_qp *q, const struct rtsan_event *ev);
};

/**
 * Create a queue pair; completion queues are shared as far as they are deep enough.
 *
 * @param under_way
 *   Work requests of it that may complete before the next poll, at most.
 */
int net_qp_open(struct bench *b, struct bench_qp *q, uint32_t sq_depth, uint32_t rq_depth,
		uint32_t under_way);
/** Ends the connection at once if there still is one. Not from within a callback. */
void net_qp_close(struct bench_qp *q);
/** Poll every event and completion once; how many there were. */
uint32_t net_poll(struct bench *b);
/**
 * Sleep until there is something for net_poll(), or the time is over. Neither is told: who
 * calls it polls anyway.
 */
void net_wait(struct bench *b, int timeout_ms);
/** Connection parameters from the settings. */
void net_param(const struct bench_conf *conf, struct rtsan_conn_param *param,
	       const void *private_data, size_t private_len);

/* ---- what connections say to each other when they are set up ---- */

#define HELLO_MAGIC 0x53424e31 /**< "SBN1" in the byte order of a host like us */

enum hello_kind {
	HELLO_CTL = 1,
	HELLO_DATA = 2,
};

enum hello_flags {
	HELLO_VERIFY = 0x1,
	HELLO_IMM = 0x2,
	HELLO_BOTH = 0x4, /**< the server asks, too */
};

/** Private data of a connection request. The control connection comes first. */
struct hello {
	uint32_t magic;
	uint8_t kind;
	uint8_t mode;
	uint8_t flags;
	uint8_t order;
	uint64_t token; /**< names the session */
	uint64_t seed;
	uint32_t size_min, size_max;
	uint16_t depth, slots; /**< a power of two of slots */
	uint16_t nb_conns, index;
	uint64_t addr; /**< region of the client, where the server pulls */
	uint32_t rkey;
	uint16_t batch;      /**< requests that the server posts together */
	uint8_t way, manner; /**< streams: enum flow_way, enum flow_manner */
};

/** Private data of the answer. */
struct welcome {
	uint32_t magic;
	uint32_t rkey; /**< region of the server, 0: none */
	uint64_t addr;
	uint64_t shared_addr; /**< words that all connections of the session share */
	uint32_t shared_rkey;
	uint32_t rq; /**< receives posted */
};

_Static_assert(sizeof(struct hello) <= RTSAN_PRIVATE_MAX, "hello fits");
_Static_assert(sizeof(struct welcome) <= RTSAN_PRIVATE_MAX, "welcome fits");

/** Slots are aligned, so that unaligned sizes don't make unaligned copies. */
static inline uint32_t
net_stride(uint32_t size)
{
	return (size + 63u) & ~63u;
}

static inline uint32_t
net_slot(const struct hello *h, uint64_t i)
{
	return (uint32_t)i & (h->slots - 1u);
}

/** Memory of a connection: its slots. */
static inline uint64_t
net_slots_bytes(const struct hello *h, uint32_t stride)
{
	return (uint64_t)h->slots * stride;
}

#endif /* NET_H */
