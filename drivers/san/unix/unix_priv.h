/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIX_PRIV_H
#define UNIX_PRIV_H

/**
 * @file
 * What the files of the attached provider share: a context on a daemon. (SYS-2)
 */

#include <pthread.h>
#include <stdint.h>

#include "rtsan_provider.h"
#include "shmq.h"

/** Of a queue pair: what both map. */
struct unix_qp {
	struct san_wq *wq;
	size_t bytes;
};

struct unix_ctx {
	const struct rtsan_host *host;
	int sock;
	bool yields;   /**< the daemon works on our CPUs */
	int event_fd;  /**< readable when there are events, once armed; -1: nobody asked */
	int *wake_fds; /**< of each lcore; NULL: they never sleep */
	uint32_t lcore_qps, qp_shift;
	uint32_t nb_bells; /**< of an lcore */
	struct rtsan_caps caps;
	struct shmq_ctl *ctl;
	size_t ctl_bytes;
	struct unix_qp *qps;  /**< caps.max_qps, by SAN_QPN_INDEX() */
	pthread_mutex_t lock; /**< the socket: a request and its answer */
	_Atomic bool is_gone; /**< the daemon, or its port */
	uint32_t nb_idle;     /**< empty looks for events since the daemon was last asked for */
	struct san_spsc_cons events;
};

struct unix_cq {
	struct unix_ctx *ctx;
	uint32_t id;
	struct san_cq *mem;
	size_t bytes;
	int fd; /**< readable when there are completions, once armed; -1: nobody asked */
	struct san_spsc_cons c;
};

/* ---- unix_call.c ---- */

/**
 * Connect to a daemon and introduce ourselves. *args*: the path of its socket, or "PATH,port=NAME"
 * for another port than its first one. -errno with a text.
 */
int unix_call_open(struct unix_ctx *ctx, const char *args);
void unix_call_close(struct unix_ctx *ctx);
/**
 * Ask, wait for the answer. *fd* (or -1) goes with it; *got*, if not NULL, is the descriptor
 * that comes back, which is an error if there is none. What the daemon refuses is told in
 * its words.
 */
int unix_call(struct unix_ctx *ctx, struct shmq_req *req, int fd, struct shmq_rep *rep, int *got);
/** Ask for something that is a descriptor, by *id*. It, or -errno. */
int unix_call_fd(struct unix_ctx *ctx, enum shmq_type type, uint32_t id);
/** Is the daemon still there? */
bool unix_call_is_alive(struct unix_ctx *ctx);

#endif /* UNIX_PRIV_H */
