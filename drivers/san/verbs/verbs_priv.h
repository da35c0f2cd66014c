/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Provider for an RDMA device, or Soft-RoCE, by rdma-core. The thread that posts gives requests to
 * the device; the thread that polls takes completions from it. A thread of the provider does what
 * takes time or must not depend on the program: events of the connection manager and of the device,
 * ends of connections, keep-alive, streams. (SYS-4)
 *
 * Order of locks: a queue pair's, cm_lock, a completion queue's, that of the list of contexts, a
 * context's.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h> /* MIN, MAX */
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "rtsan_provider.h"
#include "san_lock.h"
#include "san_mem.h"
#include "san_time.h"
#include "san_wheel.h"
#include "stream.h"
#include "verbs_hello.h"

#define VERBS_QPS        4096
#define VERBS_CQS        4096
#define VERBS_MRS        16384
#define VERBS_WR_MAX     4096
#define VERBS_REQUESTS   256 /* requests that are not accepted yet */
#define VERBS_HALVES     64  /* first halves of requests, before the others come */
#define VERBS_MARKS      2   /* requests beside the program's: see san_verbs_qp_mark() */
#define VERBS_IP_MAX     INET6_ADDRSTRLEN
#define VERBS_RESOLVE_MS 2000 /* for an address, then for a route */

/* ID of a request at the device: epoch, queue pair, queue, place in the queue */
#define VERBS_ID(q, recv, at)                                                 \
	((uint64_t)((q)->epoch & 0x7fff) << 49 | (uint64_t)(q)->index << 33 | \
	 (uint64_t)(recv) << 32 | (at))
#define VERBS_ID_INDEX(id)   ((uint32_t)((id) >> 33 & 0xffff))
#define VERBS_ID_IS_RECV(id) (((id) >> 32 & 1) != 0)
#define VERBS_ID_OF(id)      ((id) & ~0x1ffffffffull) /* without the place */
#define VERBS_PLACE          0x7fffffffu
#define VERBS_MARK           0x80000000u /* bit of the place: see san_verbs_qp_mark() */

struct verbs_ctx;
struct verbs_qp;

/** A completion queue: the device's, and completions that were taken from there before a poll. */
struct verbs_cq {
	struct verbs_ctx *ctx;
	pthread_mutex_t lock;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel; /**< NULL: the queue of a stream's requests */
	int fd;                           /**< readable when there may be completions */
	int wake_fd;                      /**< behind *fd*: the provider writes to it */
	uint32_t depth;                   /**< of the device's queue */
	uint32_t used;                    /**< of *depth*: needed by its queue pairs */
	uint32_t users;                   /**< number of its queue pairs */
	bool is_armed;                    /**< a thread waits for kept completions */
	bool has_waiter;                  /**< a stream waits for room here */
	/* ring of *depth* entries */
	struct san_ulp_wc *kept;
	uint32_t kept_head, nb_kept;
	LIST_ENTRY(verbs_cq) link;
};

/** Memory of the session; or memory of the program that its peer may access. */
struct verbs_chunk {
	void *mem;
	size_t bytes;
	struct ibv_mr *mr;
	struct verbs_chunk *next;
};

struct verbs_stream {
	struct verbs_qp *q;
	struct san_stream *session;
	struct san_stream_conf conf;
	struct verbs_cq *send_cq, *recv_cq; /**< the program's; NULL: orphaned */
	struct verbs_cq *own;               /**< of the session's requests */
	struct san_wq_cons wq;              /**< the program's queues */
	struct verbs_chunk *chunks, *shared;
	bool lingers;
	bool is_armed; /**< the device reports the next completion */
	bool is_open, is_over;
	bool is_blocked; /**< a completion queue of the program is full */
	uint64_t linger_ns;
};

/** An event that the program has not polled yet. */
struct verbs_event {
	struct shmq_event ev;
	bool is_queued;
	STAILQ_ENTRY(verbs_event) link;
};

enum verbs_state {
	VERBS_IDLE = 0,
	VERBS_RESOLVING,  /**< the peer's address, then the route */
	VERBS_CONNECTING, /**< has requested, or has accepted */
	VERBS_UP,
	VERBS_DRAINING, /**< ends in order, when posted work is done */
	VERBS_ENDING,   /**< posted work comes back */
	VERBS_ENDED,    /**< the same for late work, until it connects again; not for streams */
};

/** A queue pair. Each connection has a new one of the device. */
struct verbs_qp {
	struct verbs_ctx *ctx;
	pthread_mutex_t lock;
	_Atomic uint32_t qpn; /**< its number for rtsan; SAN_QPN_NONE: free */
	uint32_t index;       /**< its place in the table */
	uint32_t gen;         /**< counts the queue pairs at this place */
	uint32_t epoch;       /**< counts the device's queue pairs; under both queues' locks */
	enum verbs_state state;
	struct verbs_cq *send_cq, *recv_cq;
	uint32_t sq_depth, rq_depth;
	struct san_wq *wq;
	struct san_ulp_wr *sqe;
	struct san_ulp_recv *rqe;
	uint32_t sq_posted, rq_posted; /**< places from there on were not given to the device */
	struct ibv_mr *ring;           /**< of the queues: inline data that the device can't take */
	uint32_t max_inline;
	struct ibv_mr **temps;       /**< memory registered for one request, by place and element */
	struct verbs_stream *stream; /**< the queues are its session's; NULL: the program's */

	/* the connection */
	struct rdma_cm_id *id; /**< NULL: none */
	uint64_t service;
	struct sockaddr_storage peer;
	bool is_acceptor;
	uint8_t half; /**< VERBS_HELLO_FIRST, _REST, or 0: one request is enough */
	uint64_t token;
	uint8_t nb_stale; /**< how often the peer took our number for one in use */
	uint16_t private_len;
	uint8_t private_data[RTSAN_PRIVATE_MAX];
	uint32_t keepalive_ms, rnr_ms;
	_Atomic bool was_up;
	_Atomic uint8_t failed;         /**< first status that ends the connection; 0: none */
	_Atomic uint8_t blame;          /**< status of the first request to be flushed; 0: none */
	uint8_t blame_send, blame_recv; /**< the same for the first one that the device never had */
	_Atomic uint32_t marks;         /**< marks in flight */
	uint32_t mark_at;               /**< requests before this place are done with the mark */
	/* progress that verbs_end.c has seen, and the times of the last: of any, and of sends */
	uint32_t sq_seen, rq_seen, marks_seen;
	uint64_t moved_ns, out_ns;
	bool has_end_mark;            /**< the last mark is in flight, or done */
	uint64_t end_ns;              /**< deadline to be connected, or to have drained */
	struct verbs_event events[2]; /**< it is connected; how it ended */

	/* for the thread */
	struct san_timer timer;
	uint64_t armed_ns;
	bool is_listed;
	STAILQ_ENTRY(verbs_qp) todo;
};

struct verbs_listener {
	uint64_t service;
	uint32_t cookie;
	uint32_t backlog, waiting;
	struct rdma_cm_id *id;
	LIST_ENTRY(verbs_listener) link;
};

/** A request that is not answered yet; *id* NULL: none. */
struct verbs_request {
	struct rdma_cm_id *id;
	struct verbs_listener *listener;
	uint32_t gen;
	uint8_t reads_in, reads_out; /**< the peer's limits of reads in flight */
	struct verbs_event event;
};

/** First half of a request. */
struct verbs_half {
	struct verbs_hello hello;     /**< *token* 0: none */
	char peer[RTSAN_ADDRESS_MAX]; /**< text of its address */
};

/** An ID to destroy. Only the thread may do that: it knows that it holds no event of it. */
struct verbs_retired {
	struct rdma_cm_id *id;
	STAILQ_ENTRY(verbs_retired) link;
};

struct verbs_ctx {
	const struct rtsan_host *host;
	char device[64];
	char ip[VERBS_IP_MAX];
	bool is_plain;             /**< peers are other programs than those of rtsan.h: no hello */
	struct ibv_context **devs; /**< keeps *dev* open, with all others */
	struct ibv_context *dev;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	_Atomic uint32_t max_inline; /**< what the device accepted last */
	uint32_t max_sge;
	uint32_t max_msg; /**< of its port */
	struct rdma_event_channel *cm;
	pthread_mutex_t cm_lock;          /**< fetching events changes the device's queue pairs */
	struct ibv_comp_channel *channel; /**< shared by all streams */
	_Atomic(struct ibv_mr *) *mrs;    /**< of programs: see verbs_mr.c */
	_Atomic uint32_t next_mr;
	pthread_mutex_t lock; /**< protects what is below */
	pthread_cond_t passed;
	struct verbs_qp *qps;
	uint32_t next_qp;
	LIST_HEAD(, verbs_cq) cqs;
	LIST_HEAD(, verbs_listener) listeners;
	struct verbs_request requests[VERBS_REQUESTS];
	struct verbs_half halves[VERBS_HALVES];
	uint32_t next_half;
	STAILQ_HEAD(, verbs_event) events;
	STAILQ_HEAD(, verbs_retired) retired;
	uint64_t nb_retired; /**< IDs to destroy so far, and those that are destroyed */
	uint64_t nb_destroyed;
	STAILQ_HEAD(, verbs_qp) todo; /**< for the thread to look at */
	int event_fd;                 /**< readable when there are events */
	bool is_armed;                /**< a thread waits for events */
	/* the thread */
	pthread_t thread;
	int kick_fd; /**< wakes it */
	_Atomic bool is_kicked;
	_Atomic bool is_over;
	_Atomic bool has_room; /**< in a completion queue for which a stream waits */
	_Atomic bool is_lost;  /**< the device has failed, or was removed */
	struct san_wheel wheel;
	LIST_ENTRY(verbs_ctx) link; /**< list of all contexts of the process */
};

static inline uint64_t
san_verbs_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SAN_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/** The queue pair with that number. librtsan names only queue pairs that exist. */
static inline struct verbs_qp *
san_verbs_qp_of(const struct verbs_ctx *ctx, uint32_t qpn)
{
	return &ctx->qps[SAN_QPN_INDEX(qpn)];
}

/** Whether it is a stream that its program has destroyed. */
static inline bool
san_verbs_qp_is_orphan(const struct verbs_qp *q)
{
	return q->stream != NULL && q->stream->send_cq == NULL;
}

/** Whether it has a queue pair of the device. */
static inline bool
san_verbs_qp_is_made(const struct verbs_qp *q)
{
	return q->id != NULL && q->id->qp != NULL;
}

/* ---- verbs_ctx.c ---- */

/** The device has failed or was removed: end all of its connections, and wake all waiters. */
void san_verbs_ctx_fail(const struct ibv_context *dev);
/** Whether it belongs to a context of this process. */
bool san_verbs_ctx_has_qp(const struct verbs_qp *q);
bool san_verbs_ctx_has_cq(const struct ibv_cq *cq);

/* ---- verbs_mr.c ---- */

int san_verbs_mr_add(void *priv, const struct shmq_req *req, int fd,
		     struct rtsan_provider_keys *keys);
int san_verbs_mr_del(struct verbs_ctx *ctx, const struct shmq_req *req);
/** The region *key*; NULL: it was deregistered. */
struct ibv_mr *san_verbs_mr_find(const struct verbs_ctx *ctx, uint32_t key);
/** By which posted work a region is named. */
enum verbs_naming {
	VERBS_NAMED_NOT,
	VERBS_NAMED_SILENTLY, /**< only by unsignaled sends */
	VERBS_NAMED,
};
/** By which entries of these queues *key* is named. */
enum verbs_naming san_verbs_mr_named_by(struct san_wq *wq, uint32_t sq_depth, uint32_t rq_depth,
					uint32_t key);

/* ---- verbs_cq.c ---- */

int san_verbs_cq_create(void *priv, uint32_t depth, void **cq);
int san_verbs_cq_destroy(void *priv, void *cq);
int san_verbs_cq_poll(void *cq, struct san_ulp_wc *wc, int n);
int san_verbs_cq_fd(void *priv, void *cq);
int san_verbs_cq_arm(void *priv, void *cq);
/** Create a queue of programs, or that of the requests of *stream*, which wake the thread. */
int san_verbs_cq_make(struct verbs_ctx *ctx, uint32_t depth, const struct verbs_qp *stream,
		      struct verbs_cq **out);
/** Add a queue pair, which may have *n* completions at the device. 0 or -errno. */
int san_verbs_cq_join(struct verbs_cq *cq, uint32_t n);
void san_verbs_cq_leave(struct verbs_cq *cq, uint32_t n);
/** Take completions from the device and keep them for polls. False: there was no room for all. */
bool san_verbs_cq_harvest(struct verbs_cq *cq);
/** Add a completion for polls. False: no room; the thread tries again when there is some. */
bool san_verbs_cq_give(struct verbs_cq *cq, const struct san_ulp_wc *wc);
/** Ignore further completions of the connection of *q*. */
void san_verbs_cq_forget(struct verbs_qp *q);
/**
 * Give back all that was posted to *q*, whose connection has ended and is forgotten. False: there
 * was no room for all completions; call it again.
 */
bool san_verbs_cq_flush(struct verbs_qp *q);
/** The sends that the device still had were successful, and unsignaled: release their places. */
void san_verbs_cq_settle(struct verbs_qp *q);

/* ---- verbs_qp.c: under the lock of the queue pair, except the first three ---- */

int san_verbs_qp_create(void *priv, struct rtsan_provider_qp *conf);
void san_verbs_qp_destroy(void *priv, uint32_t qp);
void san_verbs_qp_doorbell(void *priv, uint32_t qp);
/** Release the queue pair and its place. */
void san_verbs_qp_free(struct verbs_qp *q);
/** Allocate rings of sq_depth and rq_depth. 0 or -errno. */
int san_verbs_qp_make_queues(struct verbs_qp *q);
void san_verbs_qp_end_queues(struct verbs_qp *q);
/** Create the device's queue pair; nothing is posted to it yet. 0 or -errno. */
int san_verbs_qp_make(struct verbs_qp *q);
/** Destroy the device's queue pair, if there is one. Nothing of it completes any more. */
void san_verbs_qp_unmake(struct verbs_qp *q);
/** Give posted requests to the device's queue pair, if there is one. */
void san_verbs_qp_post(struct verbs_qp *q);
/**
 * Post a mark: an empty write behind all requests. When it is done, all of them are, also
 * unsignaled ones; and it notices a peer that does not exist any more. True: it is in flight.
 */
bool san_verbs_qp_mark(struct verbs_qp *q);

/* ---- verbs_conn.c: operations for programs ---- */

int san_verbs_conn_call(void *priv, const struct shmq_req *req);
int san_verbs_conn_event_poll(void *priv, struct shmq_event *ev);
int san_verbs_conn_event_fd(void *priv);
int san_verbs_conn_event_arm(void *priv);
/** Queue an event, in place of one of *e* that was not polled. Under the context's lock. */
void san_verbs_conn_put(struct verbs_ctx *ctx, struct verbs_event *e);
/** Encode *h* into *buf* of VERBS_HELLO_MAX bytes as peers expect it. Returns the length. */
uint8_t san_verbs_conn_encode(const struct verbs_ctx *ctx, const struct verbs_hello *h,
			      uint8_t *buf);
/** Refuse a request that was taken or never kept, for *reason*, with private data. */
void san_verbs_conn_refuse(struct verbs_ctx *ctx, struct rdma_cm_id *id, uint8_t reason,
			   const void *data, uint16_t len);
/** Begin to connect; again for the other half. Under the queue pair's lock. 0 or -errno. */
int san_verbs_conn_resolve(struct verbs_qp *q);
/** Set rdma_cm's parameters. *reads_in*, *reads_out*: limits of the peer. */
void san_verbs_conn_param(const struct verbs_ctx *ctx, uint8_t reads_in, uint8_t reads_out,
			  struct rdma_conn_param *p);

/* ---- verbs_end.c: ends of connections, under the lock of the queue pair ---- */

/** Write the peer's address, without a port. Needs no lock. */
void san_verbs_end_peer_text(struct rdma_cm_id *id, char text[RTSAN_ADDRESS_MAX]);
/** Report that it is connected. */
void san_verbs_end_tell_up(struct verbs_qp *q, const struct verbs_hello *h);
/** Whether it has a connection, or one that begins or ends. */
bool san_verbs_end_is_connected(const struct verbs_qp *q);
/** End now: posted work comes back, then the program gets *type*, *reason* and *h*. */
void san_verbs_end_begin(struct verbs_qp *q, uint8_t type, uint8_t reason,
			 const struct verbs_hello *h);
/** End without an event. The program's memory is not accessed afterwards. */
void san_verbs_end_drop(struct verbs_qp *q);
/** A failure ends the connection. That takes time, so the thread does it. True: the first one. */
bool san_verbs_end_fail(struct verbs_qp *q, uint8_t status);
/** Give up the ID, which the thread destroys. */
void san_verbs_end_leave(struct verbs_qp *q);
/** Do what its state requires, in the thread. Returns when to call it again. */
uint64_t san_verbs_end_serve(struct verbs_qp *q, uint64_t now_ns);

/* ---- verbs_thread.c ---- */

int san_verbs_thread_start(struct verbs_ctx *ctx);
void san_verbs_thread_stop(struct verbs_ctx *ctx);
void san_verbs_thread_kick(struct verbs_ctx *ctx);
void san_verbs_thread_look(struct verbs_qp *q);
/** Have the thread destroy *id*, and, if *wait*, wait for that. The thread itself must not wait. */
void san_verbs_thread_retire(struct verbs_ctx *ctx, struct rdma_cm_id *id, bool wait);

/* ---- verbs_cm.c: events of the connection manager, in the thread ---- */

void san_verbs_cm_run(struct verbs_ctx *ctx);

/* ---- verbs_stream.c: under the lock of the queue pair ---- */

/** Make *q* a stream: its queues become the session's, and conf->wq the program's. 0 or -errno. */
int san_verbs_stream_create(struct verbs_qp *q, struct rtsan_provider_qp *conf);
void san_verbs_stream_destroy(struct verbs_qp *q);
/** Do all work that has become possible. Returns when to call it again. */
uint64_t san_verbs_stream_work(struct verbs_qp *q, uint64_t now_ns);
/** Prepare for another connection. 0, -EBUSY (see rtsan_connect()), -ENOMEM. */
int san_verbs_stream_renew(struct verbs_qp *q);
void san_verbs_stream_opened(struct verbs_qp *q);
/** The connection has ended, and all requests have come back. */
void san_verbs_stream_over(struct verbs_qp *q, uint8_t status);
/** Its program destroys it. True: it lingers to send what it has, and is destroyed then. */
bool san_verbs_stream_orphan(struct verbs_qp *q);
/** Whether posted work names *key*. */
bool san_verbs_stream_names(const struct verbs_stream *s, uint32_t key);
/** The region of memory of the session; NULL: it is not the session's. */
struct ibv_mr *san_verbs_stream_find(const struct verbs_stream *s, const void *addr);
