/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_PRIV_H
#define VERBS_PRIV_H

/**
 * @file
 * The provider on a real RDMA device, or Soft-RoCE, through rdma-core: what is posted goes to the
 * device from the thread that posts it, completions come to the thread that polls. A thread of the
 * provider's own sees to all that takes time or must not wait for the program: events of the
 * connection manager and the device, ends, silence, streams. (SYS-4)
 *
 * Locks, in this order: a queue pair's, cm_lock, a completion queue's, that of all contexts, a
 * context's.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "rtsan_provider.h"
#include "san_time.h"
#include "san_wheel.h"
#include "stream.h"
#include "verbs_hello.h"

#define VERBS_QPS        4096
#define VERBS_CQS        4096
#define VERBS_MRS        16384
#define VERBS_WR_MAX     4096
#define VERBS_REQUESTS   256 /* that nobody has accepted yet */
#define VERBS_HALVES     64  /* first halves of requests, whose others are under way */
#define VERBS_MARKS      2   /* requests of ours beside the program's: see verbs_qp_mark() */
#define VERBS_IP_MAX     INET6_ADDRSTRLEN
#define VERBS_RESOLVE_MS 2000 /* of an address, then of a route */

/* What a request is called at the device: connection, queue pair, queue, place there. */
#define VERBS_ID(q, recv, at)                                                 \
	((uint64_t)((q)->epoch & 0x7fff) << 49 | (uint64_t)(q)->index << 33 | \
	 (uint64_t)(recv) << 32 | (at))
#define VERBS_ID_INDEX(id)   ((uint32_t)((id) >> 33 & 0xffff))
#define VERBS_ID_IS_RECV(id) (((id) >> 32 & 1) != 0)
#define VERBS_ID_OF(id)      ((id) & ~0x1ffffffffull) /* of its connection */
#define VERBS_PLACE          0x7fffffffu
#define VERBS_MARK           0x80000000u /* in a place: ours, see verbs_qp_mark() */

struct verbs_ctx;
struct verbs_stream;

/** A completion queue, and what was taken from the device's that nobody has polled yet. */
struct verbs_cq {
	struct verbs_ctx *ctx;
	pthread_mutex_t lock;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel; /**< NULL: of a stream beneath, which has none */
	int fd;                           /**< readable when there may be something */
	int wake_fd;                      /**< behind it, what we write to */
	uint32_t depth;                   /**< of the device's */
	uint32_t used;                    /**< of these: what its queue pairs may need */
	uint32_t users;                   /**< queue pairs */
	bool is_armed;                    /**< somebody wants to hear of what is kept */
	bool is_awaited;                  /**< a stream has found no room here */
	/* a ring of *depth* entries */
	struct san_ulp_wc *kept;
	uint32_t kept_head, nb_kept;
	LIST_ENTRY(verbs_cq)
	link;
};

/** What a program hears next of a queue pair or a request. */
struct verbs_event {
	struct rtsan_provider_event ev;
	bool is_queued;
	STAILQ_ENTRY(verbs_event)
	link;
};

enum verbs_state {
	VERBS_IDLE = 0,
	VERBS_RESOLVING,  /**< its peer's address, then the way there */
	VERBS_CONNECTING, /**< asks, or has accepted */
	VERBS_UP,
	VERBS_DRAINING, /**< ends when what is posted is done */
	VERBS_ENDING,   /**< what is posted comes back */
};

/** A queue pair. The device's is made with each connection. */
struct verbs_qp {
	struct verbs_ctx *ctx;
	pthread_mutex_t lock;
	_Atomic uint32_t qpn; /**< what rtsan calls it; SAN_QPN_NONE: free */
	uint32_t index;       /**< its place in the table */
	uint32_t gen;         /**< how often there was one here */
	uint32_t epoch;       /**< how often it had one of the device's; by both queues' locks */
	enum verbs_state state;
	struct verbs_cq *send_cq, *recv_cq;
	uint32_t sq_depth, rq_depth;
	struct san_wq *wq;
	struct san_ulp_wr *sqe;
	struct san_ulp_recv *rqe;
	uint32_t sq_posted, rq_posted; /**< places from where on the device has none */
	struct ibv_mr *ring;           /**< of the queues: inline data that the device can't take */
	uint32_t max_inline;
	struct ibv_mr **temps;       /**< by place and part: memory registered for that time */
	struct verbs_stream *stream; /**< whose requests these are; NULL: the program's */

	/* the connection */
	struct rdma_cm_id *id; /**< NULL: none */
	uint64_t service;
	struct sockaddr_storage peer;
	bool is_acceptor;
	uint8_t half; /**< VERBS_HELLO_FIRST, _REST, or 0: it fits into one request */
	uint64_t token;
	uint8_t nb_stale; /**< how often the peer took our number for one in use */
	uint16_t private_len;
	uint8_t private_data[RTSAN_PRIVATE_MAX];
	uint32_t keepalive_ms, rnr_ms;
	_Atomic bool was_up;
	_Atomic uint8_t failed;         /**< the first status that ends it; 0: none */
	_Atomic uint8_t blame;          /**< of the first that the device flushes; 0: none */
	uint8_t blame_send, blame_recv; /**< likewise for the first that it never had */
	_Atomic uint32_t marks;         /**< of ours under way */
	uint32_t mark_at;               /**< all before it is done when the mark is */
	/* how far verbs_end.c has seen it, and since when that is so: in all, and of sends */
	uint32_t sq_seen, rq_seen, marks_seen;
	uint64_t moved_ns, out_ns;
	bool has_end_mark;            /**< the last word is under way, or done */
	uint64_t end_ns;              /**< until then it must have come up, or come back */
	struct verbs_event events[2]; /**< that it is up, and how it ended */

	/* the thread's */
	struct san_timer timer;
	uint64_t armed_ns;
	bool is_listed;
	STAILQ_ENTRY(verbs_qp)
	todo;
};

struct verbs_listener {
	uint64_t service;
	uint32_t cookie;
	uint32_t backlog, waiting;
	struct rdma_cm_id *id;
	LIST_ENTRY(verbs_listener)
	link;
};

/** A request that nobody has answered yet; *id* NULL: none. */
struct verbs_request {
	struct rdma_cm_id *id;
	struct verbs_listener *listener;
	uint32_t gen;
	bool is_stream;
	uint8_t reads_in, reads_out; /**< what the peer has of them */
	struct verbs_event event;
};

/** A request's first half. */
struct verbs_half {
	uint64_t token; /**< 0: none */
	uint64_t service;
	struct sockaddr_storage peer; /**< its port is not looked at */
	uint8_t data[VERBS_HELLO_HALF];
};

/** An id that only the thread may destroy, as it alone knows that no event names it. */
struct verbs_retired {
	struct rdma_cm_id *id;
	STAILQ_ENTRY(verbs_retired)
	link;
};

struct verbs_ctx {
	const struct rtsan_host *host;
	char device[64];
	char ip[VERBS_IP_MAX];
	bool is_plain;             /**< peers are no programs of rtsan.h: no hello */
	struct ibv_context **devs; /**< keeps *dev* open, with all others */
	struct ibv_context *dev;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	_Atomic uint32_t max_inline; /**< what the device took last */
	uint32_t max_sge;
	struct rdma_event_channel *cm;
	pthread_mutex_t cm_lock;          /**< taking events changes the device's queue pairs */
	struct ibv_comp_channel *channel; /**< of all streams */
	_Atomic(struct ibv_mr *) *mrs;    /**< the programs': see verbs_mr.c */
	_Atomic uint32_t next_mr;
	pthread_mutex_t lock; /**< what is below */
	pthread_cond_t passed;
	struct verbs_qp *qps;
	uint32_t next_qp;
	LIST_HEAD(, verbs_cq)
	cqs;
	LIST_HEAD(, verbs_listener)
	listeners;
	struct verbs_request requests[VERBS_REQUESTS];
	struct verbs_half halves[VERBS_HALVES];
	uint32_t next_half;
	STAILQ_HEAD(, verbs_event)
	events;
	STAILQ_HEAD(, verbs_retired)
	retired;
	uint64_t nb_retired; /**< ever, and how many of those the thread has destroyed */
	uint64_t nb_destroyed;
	STAILQ_HEAD(, verbs_qp)
	todo;          /**< for the thread to look at */
	int event_fd;  /**< readable: there are events */
	bool is_armed; /**< somebody wants to hear of that */
	/* the thread */
	pthread_t thread;
	int kick_fd; /**< wakes it */
	_Atomic bool is_kicked;
	_Atomic bool is_over;
	_Atomic bool has_room; /**< in a completion queue that a stream waits for */
	_Atomic bool is_gone;  /**< the device is */
	struct san_wheel wheel;
	LIST_ENTRY(verbs_ctx)
	link; /**< all of the process */
};

static inline uint64_t
verbs_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SAN_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* ---- verbs_ctx.c ---- */

/** The device is gone: all of its connections end, and everybody who waits hears of it. */
void verbs_ctx_gone(const struct ibv_context *dev);
/** Is it of a context of this process? */
bool verbs_ctx_has_qp(const struct verbs_qp *q);
bool verbs_ctx_has_cq(const struct ibv_cq *cq);

/* ---- verbs_mr.c ---- */

int verbs_mr_add(void *priv, struct rtsan_provider_mr *mr);
int verbs_mr_del(void *priv, uint32_t key);
/** The region that is called *key*, or NULL. */
struct ibv_mr *verbs_mr_find(const struct verbs_ctx *ctx, uint32_t key);
/** Does one of these name *key*? */
bool verbs_mr_names(const struct san_ulp_sge *sge, uint32_t n, uint32_t key);

/* ---- verbs_cq.c ---- */

int verbs_cq_create(void *priv, uint32_t depth, void **cq);
int verbs_cq_destroy(void *priv, void *cq);
int verbs_cq_poll(void *cq, struct san_ulp_wc *wc, int n);
int verbs_cq_fd(void *priv, void *cq);
int verbs_cq_arm(void *priv, void *cq);
/** That of a stream's own requests, whose place is *index*: completions wake the thread. */
int verbs_cq_create_inner(struct verbs_ctx *ctx, uint32_t index, uint32_t depth,
			  struct verbs_cq **cq);
/** A queue pair more, which may have *n* completions at the device. 0 or -errno. */
int verbs_cq_join(struct verbs_cq *cq, uint32_t n);
void verbs_cq_leave(struct verbs_cq *cq, uint32_t n);
/** Take what the device has; it is kept for who polls. False: there was no room for all. */
bool verbs_cq_harvest(struct verbs_cq *cq);
/** A completion for who polls. False: no room; then the thread looks again when there is. */
bool verbs_cq_give(struct verbs_cq *cq, const struct san_ulp_wc *wc);
/** The device will say nothing more of *q*'s connection, or nothing that counts. */
void verbs_cq_forget(struct verbs_qp *q);
/**
 * Of *q*, whose connection is over and forgotten, all that was posted comes back. False: not all
 * of it has a place yet; ask again.
 */
bool verbs_cq_flush(struct verbs_qp *q);
/** All that the device still had of *q*'s sends went well and wanted no completion. */
void verbs_cq_settle(struct verbs_qp *q);

/* ---- verbs_qp.c; under the lock of the queue pair, but the first four ---- */

int verbs_qp_create(void *priv, struct rtsan_provider_qp *conf);
void verbs_qp_destroy(void *priv, uint32_t qp);
void verbs_qp_doorbell(void *priv, uint32_t qp);
/** The queue pair with that number; NULL: it has gone. */
struct verbs_qp *verbs_qp_find(const struct verbs_ctx *ctx, uint32_t qpn);
/** Nobody uses it any more: its place is free. */
void verbs_qp_free(struct verbs_qp *q);
/** Rings of sq_depth and rq_depth. 0 or -errno. */
int verbs_qp_make_queues(struct verbs_qp *q);
void verbs_qp_end_queues(struct verbs_qp *q);
/** Make the device's, of which nothing is posted to yet. 0 or -errno. */
int verbs_qp_make(struct verbs_qp *q);
/** Destroy that, if there is one: it says nothing more. */
void verbs_qp_unmake(struct verbs_qp *q);
/** If there is a device's, what was posted goes there. */
void verbs_qp_post(struct verbs_qp *q);
/**
 * A request of ours behind all others: when it is done those are, also who wanted no completion.
 * It moves nothing; a peer that has vanished is noticed by it. True: it is under way.
 */
bool verbs_qp_mark(struct verbs_qp *q);
/** Is nothing to be sent, and all of it done? */
bool verbs_qp_is_empty(const struct verbs_qp *q);

/* ---- verbs_conn.c: what programs call ---- */

int verbs_conn_listen(void *priv, uint64_t service, uint16_t pkey, uint16_t backlog,
		      uint32_t cookie);
void verbs_conn_unlisten(void *priv, uint64_t service, uint16_t pkey);
int verbs_conn_connect(void *priv, uint32_t qp, const char *peer, uint64_t service,
		       const struct rtsan_conn_param *param);
int verbs_conn_accept(void *priv, uint64_t request, uint32_t qp,
		      const struct rtsan_conn_param *param);
int verbs_conn_reject(void *priv, uint64_t request, const void *data, uint16_t len);
int verbs_conn_disconnect(void *priv, uint32_t qp);
int verbs_conn_event_poll(void *priv, struct rtsan_provider_event *ev);
int verbs_conn_event_fd(void *priv);
int verbs_conn_event_arm(void *priv);
/** An event, in place of what was queued there and not polled. Under the context's lock. */
void verbs_conn_put(struct verbs_ctx *ctx, struct verbs_event *e);
/** Its place is free again, and the id the caller's. Under the context's lock. */
struct rdma_cm_id *verbs_conn_take(struct verbs_ctx *ctx, struct verbs_request *r);
/** A request, which is nobody's, is refused for *reason*, with *data* of the program's. */
void verbs_conn_refuse(struct verbs_ctx *ctx, struct rdma_cm_id *id, uint8_t reason,
		       const void *data, uint16_t len);
/** Ask the peer; again with the other half. Under the queue pair's lock. 0 or -errno. */
int verbs_conn_resolve(struct verbs_qp *q);
/** The rest of rdma_cm's parameters: *reads_in*, *reads_out*: at most. */
void verbs_conn_param(const struct verbs_ctx *ctx, uint8_t reads_in, uint8_t reads_out,
		      struct rdma_conn_param *p);

/* ---- verbs_end.c: how connections end; under the lock of the queue pair ---- */

/** Text of the peer's address. Needs no lock. */
void verbs_end_fill_peer(struct rtsan_event *ev, struct rdma_cm_id *id);
/** It is up. */
void verbs_end_tell_up(struct verbs_qp *q, const struct verbs_hello *h);
/** In order: when what is posted is done. */
void verbs_end_drain(struct verbs_qp *q);
/** Now: what is posted comes back, then its program hears *type*, *reason* and *h*. */
void verbs_end_begin(struct verbs_qp *q, uint8_t type, uint8_t reason, const struct verbs_hello *h);
/** Without a word to the program: its memory is not touched on return. */
void verbs_end_drop(struct verbs_qp *q);
/** It has no id any more; the thread destroys that. */
void verbs_end_leave(struct verbs_qp *q);
/** What its state wants now, in the thread. When to look again. */
uint64_t verbs_end_look(struct verbs_qp *q, uint64_t now_ns);

/* ---- verbs_thread.c ---- */

int verbs_thread_start(struct verbs_ctx *ctx);
void verbs_thread_stop(struct verbs_ctx *ctx);
/** It has something to look at. */
void verbs_thread_kick(struct verbs_ctx *ctx);
/** It looks at *q* soon. */
void verbs_thread_look(struct verbs_qp *q);
/** It destroys *id*; on return, if *wait*, it has. Not of the thread, then. */
void verbs_thread_retire(struct verbs_ctx *ctx, struct rdma_cm_id *id, bool wait);

/* ---- verbs_cm.c: what the connection manager says, in the thread ---- */

void verbs_cm_run(struct verbs_ctx *ctx);

/* ---- verbs_stream.c; under the lock of the queue pair ---- */

/** *q* is a stream's: its queues are the session's, conf->wq the program's. 0 or -errno. */
int verbs_stream_create(struct verbs_qp *q, struct rtsan_provider_qp *conf);
void verbs_stream_destroy(struct verbs_qp *q);
/** Everything that may have become possible. When to come again. */
uint64_t verbs_stream_work(struct verbs_qp *q, uint64_t now_ns);
/** Another connection. 0, -EBUSY (see rtsan_connect()), -ENOMEM. */
int verbs_stream_renew(struct verbs_qp *q);
void verbs_stream_opened(struct verbs_qp *q);
/** After all of its requests have come back. */
void verbs_stream_over(struct verbs_qp *q, uint8_t status);
/** End it in order, with a word to the peer's program first. */
void verbs_stream_close(struct verbs_qp *q);
/** Its program goes. True: it sends what it has all the same, and is destroyed then. */
bool verbs_stream_orphan(struct verbs_qp *q);
bool verbs_stream_is_orphan(const struct verbs_stream *s);
/** Does posted work name *key*? */
bool verbs_stream_names(const struct verbs_stream *s, uint32_t key);
/** The region that memory of the session's own lies in, or NULL. */
struct ibv_mr *verbs_stream_find(const struct verbs_stream *s, const void *addr);
/** Completions have come since it was told to say so. */
void verbs_stream_rung(struct verbs_stream *s);

#endif /* VERBS_PRIV_H */
