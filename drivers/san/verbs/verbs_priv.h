/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_PRIV_H
#define VERBS_PRIV_H

/**
 * @file
 * The provider on a real RDMA device, or Soft-RoCE, through rdma-core: what is posted goes to the
 * device from the thread that posts it, completions come to the thread that polls. A thread of the
 * provider's own sees to connections: the connection manager's events, orderly ends, silence.
 * (SYS-4)
 *
 * Locks: that of a queue pair before that of a completion queue; that of the context before both.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "rtsan_provider.h"

#define VERBS_QPS      4096
#define VERBS_CQS      4096
#define VERBS_MRS      16384
#define VERBS_WR_MAX   4096
#define VERBS_REQUESTS 256 /* that nobody has accepted yet */
#define VERBS_PRIVATE  40  /* bytes of connect's: rdma_cm carries 56, some are ours */
#define VERBS_HARVEST  32  /* completions that are taken at once */

struct verbs_ctx;

/* What a request is called at the device: its queue pair, its queue, its place there. */
#define VERBS_ID(qpn, recv, at)                                                        \
	((uint64_t)SAN_QPN_INDEX(qpn) << 33 | ((uint64_t)(qpn) >> 16 & 0x7fff) << 49 | \
	 (uint64_t)(recv) << 32 | (at))
#define VERBS_ID_INDEX(id)   ((uint32_t)((id) >> 33 & 0xffff))
#define VERBS_ID_IS_RECV(id) (((id) >> 32 & 1) != 0)
#define VERBS_ID_OF(id)      ((id) & ~0x1ffffffffull) /* of its queue pair */

/** A completion queue, and what was taken from the device's that nobody has polled yet. */
struct verbs_cq {
	struct verbs_ctx *ctx;
	pthread_mutex_t lock;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	int fd, wake_fd; /**< readable: see verbs_cq_arm(); one that we write to */
	uint32_t depth;  /**< of the device's */
	uint32_t used;   /**< of these: what its queue pairs may need */
	/* a ring of *depth* entries */
	struct san_ulp_wc *kept;
	uint32_t kept_head, kept_tail;
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
	uint32_t qpn; /**< ours; SAN_QPN_NONE: free */
	uint32_t gen; /**< how often there was one here */
	enum verbs_state state;
	struct verbs_cq *send_cq, *recv_cq;
	uint32_t sq_depth, rq_depth;
	struct san_wq *wq;
	struct san_ulp_wr *sqe;
	struct san_ulp_recv *rqe;
	uint32_t sq_posted, rq_posted; /**< positions from where on the device has none */
	struct ibv_mr *ring;           /**< of the queues: what is inline and too long for the device */
	struct rdma_cm_id *id;         /**< NULL: no connection */
	uint64_t service;
	uint8_t reason; /**< why it ends: enum rtsan_reason */
	bool was_up;
	bool has_asked;      /**< see verbs_qp_ask() */
	_Atomic bool failed; /**< the device has said so: it is to end */
	/* what its program hears when all that was posted has come back */
	uint8_t last_type, last_reason;
	uint16_t last_len;
	uint8_t last_data[RTSAN_PRIVATE_MAX];
	/* what goes along with connect */
	uint8_t private_data[RTSAN_PRIVATE_MAX];
	uint16_t private_len;
};

struct verbs_listener {
	uint64_t service;
	uint32_t cookie;
	struct rdma_cm_id *id;
	LIST_ENTRY(verbs_listener)
	link;
};

/** A request that nobody has answered yet; *id* NULL: none. */
struct verbs_request {
	struct rdma_cm_id *id;
	uint32_t gen;
	bool is_stream;
};

struct verbs_event {
	struct rtsan_provider_event ev;
	STAILQ_ENTRY(verbs_event)
	link;
};

/** A region: what it is called at the peer and here differs with some devices. */
struct verbs_mr {
	_Atomic(struct ibv_mr *) mr; /**< NULL: free, and nothing behind it */
	uint32_t key;
};

#define VERBS_MR_GONE ((struct ibv_mr *)1) /**< free, but others may be behind it */

struct verbs_ctx {
	const struct rtsan_host *host;
	char device[64];
	char ip[64];
	struct ibv_context *dev;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	uint32_t max_inline;
	struct rdma_event_channel *cm;
	pthread_mutex_t lock; /**< what is below */
	struct verbs_qp *qps;
	uint32_t next_qp;
	struct verbs_mr *mrs;
	uint32_t nb_mrs, nb_cqs;
	LIST_HEAD(, verbs_listener)
	listeners;
	struct verbs_request requests[VERBS_REQUESTS];
	STAILQ_HEAD(, verbs_event)
	events;
	int event_fd;  /**< readable: there are events */
	bool is_armed; /**< somebody wants to hear of that */
	int kick_fd;   /**< wakes the thread */
	pthread_t thread;
	_Atomic bool is_over;
	_Atomic bool is_gone; /**< the device is */
};

/* ---- verbs_mr.c ---- */

int verbs_mr_add(void *priv, struct rtsan_provider_mr *mr);
int verbs_mr_del(void *priv, uint32_t key);
/** The region that is called *key*, or NULL. */
struct ibv_mr *verbs_mr_find(const struct verbs_ctx *ctx, uint32_t key);

/* ---- verbs_cq.c ---- */

int verbs_cq_create(void *priv, uint32_t depth, void **cq);
int verbs_cq_destroy(void *priv, void *cq);
int verbs_cq_poll(void *cq, struct san_ulp_wc *wc, int n);
int verbs_cq_fd(void *priv, void *cq);
int verbs_cq_arm(void *priv, void *cq);
/** Room for *n* more in the device's; below 0: no longer. 0 or -errno. */
int verbs_cq_reserve(struct verbs_cq *cq, int32_t n);
/** Take what the device has; it is kept for who polls. Under the lock. */
void verbs_cq_harvest(struct verbs_cq *cq);
/**
 * Of *q*, whose connection is over, all that was posted comes back. Under its lock. False: not all
 * of it has a place yet; ask again.
 */
bool verbs_cq_flush(struct verbs_qp *q);

/* ---- verbs_qp.c ---- */

int verbs_qp_create(void *priv, struct rtsan_provider_qp *conf);
void verbs_qp_destroy(void *priv, uint32_t qp);
void verbs_qp_doorbell(void *priv, uint32_t qp);
/** The queue pair with that number; NULL: it has gone. */
struct verbs_qp *verbs_qp_find(const struct verbs_ctx *ctx, uint32_t qpn);
/** It has a device's: what was posted before goes there. Under its lock. */
void verbs_qp_post(struct verbs_qp *q);
/** Have a completion of the last that was posted, which wanted none. Under its lock. */
void verbs_qp_ask(struct verbs_qp *q);
/** Is nothing to be sent, and all of it done? */
bool verbs_qp_is_empty(const struct verbs_qp *q);

/* ---- verbs_conn.c ---- */

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
/** End the connection of *q*, if it has one, without a word. Under no lock. */
void verbs_conn_drop(struct verbs_qp *q);
/** The thread: until ctx->is_over. */
void *verbs_conn_run(void *ctx);
/** It has something to look at. */
void verbs_conn_kick(struct verbs_ctx *ctx);

#endif /* VERBS_PRIV_H */
