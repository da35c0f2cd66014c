/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The objects behind rtsan.h. Control calls lock the context. Posting and polling take no lock,
 * because the objects that they look up have a fixed place: the lkey table and the table of queue
 * pairs never move while the context exists. (SYS-2)
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "rtsan_provider.h"
#include "rtsan_stream.h"
#include "san_lock.h"

#define RTSAN_POLL_MAX 64  /* most completions taken at once */
#define RTSAN_REQUESTS 256 /* requests for streams of a listener that wait for accept */

/**
 * Several threads wait for different things at one place that only one thread may check. One of
 * them checks for all, and the others sleep until it has taken something or stops. (AFC-19)
 */
struct rtsan_turn {
	pthread_mutex_t lock; /**< also protects what *take* changes and *done* reads */
	pthread_cond_t seen;
	bool busy; /**< a thread is checking */
};

struct rtsan_turn_ops {
	bool (*done)(const void *what);
	/** Take and distribute what is there; with the lock. 0, -EIO. */
	int (*take)(void *of);
	/** Sleep until there may be something; without the lock. As rtsan_cq_wait(). */
	int (*sleep)(void *of, int timeout_ms);
};

/** An entry of the lkey table. */
struct rtsan_mr {
	struct rtsan_ctx *ctx;
	_Atomic uint32_t lkey; /**< 0: free; written last: if it matches, the range is valid */
	uint32_t gen;          /**< counts the regions of this entry; upper part of the lkey */
	uint32_t key, rkey;    /**< names that the provider uses */
	uintptr_t addr;
	size_t length;   /**< as requested */
	size_t map_size; /**< whole pages, which we mapped and must unmap; 0: not ours */
	bool is_adopted; /**< by rtsan_adopt() */
};

struct rtsan_cq {
	struct rtsan_ctx *ctx;
	void *priv; /**< of the provider */
	LIST_ENTRY(rtsan_cq) link;
};

struct rtsan_listener {
	struct rtsan_ctx *ctx;
	uint64_t service;
	uint16_t pkey; /**< as requested */
	uint32_t cookie;
	_Atomic bool is_sync;              /**< rtsan_stream_accept() takes the requests */
	uint64_t requests[RTSAN_REQUESTS]; /**< those requests; protected by the lock of *events* */
	uint32_t first_request, nb_requests;
	LIST_ENTRY(rtsan_listener) link;
};

struct rtsan_qp {
	struct san_wq_prod wq;
	struct rtsan_ctx *ctx;
	void *context;
	struct rtsan_stream *sync; /**< stream that owns it, or NULL */
	uint32_t qpn;
	bool is_stream;
	bool shares_recvs;
	_Atomic bool busy;  /**< connecting or connected, until the end was reported */
	_Atomic bool ended; /**< the connection has ended, and that was reported */
};

/** An event that is kept for rtsan_event_poll(). */
struct rtsan_kept {
	struct shmq_event ev;
	STAILQ_ENTRY(rtsan_kept) link;
};

/** An entry of the table of queue pairs, read without the lock: see rtsan_qp_find(). */
struct rtsan_qp_place {
	_Atomic uint32_t qpn; /**< SAN_QPN_NONE: free */
	_Atomic(struct rtsan_qp *) qp;
};

struct rtsan_ctx {
	const struct rtsan_provider *ops;
	void *priv;
	struct rtsan_caps caps;
	pthread_mutex_t lock;       /**< protects the tables and lists below, except look-ups */
	struct rtsan_mr *mrs;       /**< caps.max_mrs */
	uint32_t lkey_bits;         /**< bits of an lkey that are the index in *mrs* */
	uint32_t mr_next;           /**< where the search for a free entry starts */
	struct rtsan_qp_place *qps; /**< caps.max_qps, by SAN_QPN_INDEX() */
	LIST_HEAD(, rtsan_cq) cqs;
	LIST_HEAD(, rtsan_listener) listeners;
	uint32_t listener_cookie;
	struct rtsan_turn events; /**< thread that takes events; its lock comes before *lock* */
	STAILQ_HEAD(, rtsan_kept) kept;
	struct rtsan_kept *spare; /**< allocated in advance, so that no event is lost */
};

/** Store a text for rtsan_error(), return *rc*. */
int rtsan_fail(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** If *rc* is an error without a text since rtsan_error_clear(), set this one. */
int rtsan_fail_else(int rc, const char *what);
void rtsan_error_clear(void);
bool rtsan_error_is_set(void);

/** Take all events of context *of*: those of streams go to them. 0, -EIO, -ENOMEM. */
int rtsan_event_share(void *of);
/** Streams are accepted from now on: pass kept requests for them to their listener. */
void rtsan_event_recall(struct rtsan_ctx *ctx);
/** As rtsan_event_wait(), regardless of kept events. */
int rtsan_event_sleep(struct rtsan_ctx *ctx, int timeout_ms);
/** True if the event belonged to a stream of rtsan_stream.h, or its listener, which got it. */
bool rtsan_stream_on_event(const struct rtsan_event *ev);

/** Queue pair with that number, or NULL. Takes no lock and does not access the queue pair. */
struct rtsan_qp *rtsan_qp_find(const struct rtsan_ctx *ctx, uint32_t qpn);

/** The provider's key for an lkey that rtsan_mr_check() accepted. */
static inline uint32_t
rtsan_mr_key(const struct rtsan_ctx *ctx, uint32_t lkey)
{
	return lkey != 0 ? ctx->mrs[lkey & ((1u << ctx->lkey_bits) - 1)].key : 0;
}

/** Check that *lkey* allows *len* bytes from *addr*. 0 or -EINVAL, with the reason in *why*. */
int rtsan_mr_check(const struct rtsan_ctx *ctx, const void *addr, uint32_t len, uint32_t lkey,
		   const char **why);
/** Release a region without the provider: the context is being closed. */
void rtsan_mr_release(struct rtsan_mr *mr);

/* ---- rtsan_adopt.c ---- */

extern _Atomic int rtsan_nb_threads; /**< of libraries of ours: they change no globals */

/**
 * Have the pages of *length* bytes at *addr* in a memfd that another process can map, at the same
 * address. Its offset in *fd* is the address. *is_written*: peers may write. 0; -EFAULT: not
 * mapped, or read-only; -EOPNOTSUPP: such memory cannot be shared; -ENOMEM.
 */
int rtsan_adopt(void *addr, size_t length, bool is_written, int *fd);
/** A region of rtsan_adopt() has ended: pages that no other has become private again. */
void rtsan_return(void *addr, size_t length);

/* ---- rtsan_wait.c ---- */

void rtsan_turn_init(struct rtsan_turn *t);
void rtsan_turn_fini(struct rtsan_turn *t);
/**
 * Wait until *what* is done, or *end_ms* of rtsan_turn_end_ms(). Called with the lock, which is
 * released while asleep. 0; -EAGAIN: not in time; or an error of *take* or *sleep*.
 */
int rtsan_turn_wait(struct rtsan_turn *t, const struct rtsan_turn_ops *ops, void *of,
		    const void *what, int64_t end_ms);

/** Time at which *timeout_ms* from now is over; -1: never. */
int64_t rtsan_turn_end_ms(int timeout_ms);
/** Time left until then, as poll(2) expects it. */
int rtsan_turn_left_ms(int64_t end_ms);

/* ---- rtsan_stream.c: connections of streams; rtsan_stream_io.c: their bytes ---- */

/** A posted request; its address is its wr_id. */
struct rtsan_stream_op {
	bool posted; /**< until its completion was polled */
	struct rtsan_wc wc;
};

struct rtsan_stream {
	struct rtsan_ctx *ctx;
	struct rtsan_qp *qp;
	struct rtsan_cq *cq;
	struct rtsan_turn turn; /**< for *cq*; its lock also protects posting */
	pthread_mutex_t rd, wr; /**< one call of each direction at a time */
	_Atomic int timeout_ms;
	struct rtsan_stream_op read, write, ctl, wait;
	struct rtsan_stream_op end; /**< SHUTDOWN; no thread waits for it */
	bool ctl_used;              /**< a thread uses *ctl* */
	bool is_shut;               /**< *end* is posted: nothing is written after it */
	/** a poll sleeps: write to *doorbell* after taking completions */
	bool is_polled;
	int doorbell;         /**< an eventfd, created by the first poll that sleeps; -1 */
	uint32_t wait_events; /**< events of *wait*, while it is posted */
	/* with a provider in another process: */
	struct rtsan_mr *mr; /**< half to read, half to write; NULL: memory is used in place */
	/* protected by the lock of the context's *events*: */
	uint8_t event;  /**< last event of the connection, enum rtsan_event_type; 0: none */
	uint8_t reason; /**< reason of that event */
};

/** Create a stream without a connection; see rtsan_stream_connect(). */
int rtsan_stream_create(struct rtsan_ctx *ctx, const struct rtsan_stream_attr *attr,
			struct rtsan_stream **out);
/** Destroy a stream in any state of its connection. */
void rtsan_stream_destroy(struct rtsan_stream *s);
