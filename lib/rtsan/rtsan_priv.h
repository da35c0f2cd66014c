/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_PRIV_H
#define RTSAN_PRIV_H

/**
 * @file
 * The objects behind rtsan.h. Control calls lock the context; posting and
 * polling take no lock, because what they look up has a fixed place: the lkey
 * table and the table of queue pairs never move while the context lives. (SYS-2)
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rtsan_provider.h"
#include "rtsan_turn.h"

#define RTSAN_POLL_MAX 64  /* completions that are taken at once */
#define RTSAN_REQUESTS 256 /* for streams, of one listener, that nobody has accepted yet */

struct rtsan_stream;

/** A place in the lkey table. */
struct rtsan_mr {
	struct rtsan_ctx *ctx;
	_Atomic uint32_t lkey; /**< 0: free; written last: if it matches, the range is right */
	uint32_t gen;          /**< counts the regions that were here; upper part of the lkey */
	uint32_t key, rkey;    /**< the provider's names for it */
	bool mapped;           /**< by us: unmap it */
	uintptr_t addr;
	size_t length;   /**< as asked for */
	size_t map_size; /**< whole pages */
};

struct rtsan_cq {
	struct rtsan_ctx *ctx;
	void *priv; /**< the provider's */
	LIST_ENTRY(rtsan_cq)
	link;
};

struct rtsan_listener {
	struct rtsan_ctx *ctx;
	uint64_t service;
	uint16_t pkey; /**< as asked for */
	uint32_t cookie;
	_Atomic bool is_sync;              /**< requests for streams are rtsan_stream_accept()'s */
	uint64_t requests[RTSAN_REQUESTS]; /**< these; by the lock of the context's *events* */
	uint32_t first_request, nb_requests;
	LIST_ENTRY(rtsan_listener)
	link;
};

struct rtsan_qp {
	struct san_wq_prod wq;
	struct rtsan_ctx *ctx;
	struct rtsan_cq *send_cq, *recv_cq;
	void *context;
	uint32_t qpn;
	bool is_stream;
	struct rtsan_stream *sync; /**< whose it is, or NULL */
	_Atomic bool busy;         /**< connecting or connected, as far as the program was told */
	_Atomic bool ended;        /**< the connection is over, as the application has been told */
};

/** An event that rtsan_event_poll() gets later. */
struct rtsan_kept {
	struct rtsan_provider_event ev;
	STAILQ_ENTRY(rtsan_kept)
	link;
};

/** A place in the table of queue pairs, read without the lock: see rtsan_qp_find(). */
struct rtsan_qp_place {
	_Atomic uint32_t qpn; /**< SAN_QPN_NONE: free */
	_Atomic(struct rtsan_qp *) qp;
};

struct rtsan_ctx {
	const struct rtsan_provider *provider;
	const struct rtsan_provider_ops *ops;
	void *priv;
	struct rtsan_caps caps;
	pthread_mutex_t lock;       /**< the tables and lists below, except look-ups */
	struct rtsan_mr *mrs;       /**< caps.max_mrs */
	uint32_t lkey_bits;         /**< lower part of an lkey: place in *mrs* */
	uint32_t mr_next;           /**< where the search for a free place begins */
	struct rtsan_qp_place *qps; /**< caps.max_qps, by SAN_QPN_INDEX() */
	LIST_HEAD(, rtsan_cq)
	cqs;
	LIST_HEAD(, rtsan_listener)
	listeners;
	uint32_t listener_cookie;
	struct rtsan_turn events; /**< who takes them; its lock before *lock* */
	STAILQ_HEAD(, rtsan_kept)
	kept;
	struct rtsan_kept *spare; /**< for the next one, so that none is lost */
};

/** Keep a text for rtsan_error(), return *rc*. */
int rtsan_fail(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** If *rc* is an error whose text nobody has set since rtsan_error_clear(), set this one. */
int rtsan_fail_else(int rc, const char *what);
void rtsan_error_clear(void);
bool rtsan_error_is_set(void);

/** Take all events: those of streams where they belong, others are kept. 0, -EIO, -ENOMEM. */
int rtsan_event_share(struct rtsan_ctx *ctx);
/** Streams are accepted now, or again: requests for them that were kept go where they belong. */
void rtsan_event_recall(struct rtsan_ctx *ctx);
/** As rtsan_event_wait(), whatever is kept. */
int rtsan_event_sleep(struct rtsan_ctx *ctx, int timeout_ms);
/** Is it for a stream of rtsan_stream.h, or its listener? Then it is there now. */
bool rtsan_stream_on_event(const struct rtsan_event *ev);

/** The queue pair with that number, or NULL. Takes no lock and looks into no queue pair. */
struct rtsan_qp *rtsan_qp_find(const struct rtsan_ctx *ctx, uint32_t qpn);

/** The provider's key for an lkey that rtsan_mr_check() found good. */
static inline uint32_t
rtsan_mr_key(const struct rtsan_ctx *ctx, uint32_t lkey)
{
	return lkey != 0 ? ctx->mrs[lkey & ((1u << ctx->lkey_bits) - 1)].key : 0;
}

/** Post what has no parts. -EAGAIN: the send queue is full. */
int rtsan_qp_post_control(struct rtsan_qp *qp, uint8_t op, uint32_t imm, uint64_t value,
			  uint64_t wr_id);

/** May *len* bytes from *addr* be used under *lkey*? 0 or -EINVAL, with the reason in *why*. */
int rtsan_mr_check(const struct rtsan_ctx *ctx, const void *addr, uint32_t len, uint32_t lkey,
		   const char **why);
/** Release a region without asking the provider: the context is going. */
void rtsan_mr_release(struct rtsan_mr *mr);

#endif /* RTSAN_PRIV_H */
