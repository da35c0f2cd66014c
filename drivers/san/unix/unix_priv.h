/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIX_PRIV_H
#define UNIX_PRIV_H

/**
 * @file
 * Shared by the files of the attached provider: a context on a daemon. (SYS-2)
 */

#include <pthread.h>
#include <stdint.h>

#include "rtsan_provider.h"
#include "shmq.h"

/** A queue pair: memory that the daemon and the program map. */
struct unix_qp {
	struct san_wq *wq;
	size_t bytes;
};

struct unix_ctx {
	const struct rtsan_host *host;
	int sock;
	bool yields;   /**< the daemon's lcores share the CPUs of programs */
	int event_fd;  /**< readable when there are events, once armed; -1: not requested */
	int *wake_fds; /**< one for each lcore; NULL: lcores never sleep */
	uint32_t lcore_qps, qp_shift;
	uint32_t nb_doorbells; /**< doorbells of an lcore */
	struct rtsan_caps caps;
	struct shmq_ctl *ctl;
	size_t ctl_bytes;
	struct unix_qp *qps;  /**< caps.max_qps entries, by SAN_QPN_INDEX() */
	pthread_mutex_t lock; /**< held for a request and its answer */
	_Atomic bool is_lost; /**< the daemon, or its port, has ended */
	uint32_t nb_idle;     /**< polls without an event */
	struct san_spsc_cons events;
};

struct unix_cq {
	struct unix_ctx *ctx;
	uint32_t id;
	struct san_cq *mem;
	size_t bytes;
	int fd; /**< readable when there are completions, once armed; -1: not requested */
	struct san_spsc_cons c;
};

/* ---- unix_call.c ---- */

/**
 * Connect to a daemon and attach to it (SHMQ_HELLO).
 *
 * @param args
 *   Path of the daemon's socket; or "PATH,port=NAME" for another port than its first one.
 * @return
 *   0; -errno with a text.
 */
int san_unix_call_open(struct unix_ctx *ctx, const char *args);
void san_unix_call_close(struct unix_ctx *ctx);
/**
 * Make a request and wait for the answer.
 *
 * @param fd
 *   Descriptor that goes with the request; -1: none.
 * @param got
 *   Becomes the descriptor of the answer, without which the call fails; NULL: none is expected.
 * @return
 *   0; -errno. If the daemon refuses, the text is the daemon's.
 */
int san_unix_call(struct unix_ctx *ctx, const struct shmq_req *req, int fd, struct shmq_rep *rep,
		  int *got);
/** Request a descriptor, by *id*. Returns it, or -errno. */
int san_unix_call_fd(struct unix_ctx *ctx, enum shmq_type type, uint32_t id);
/** True if the daemon is alive. */
bool san_unix_call_is_alive(struct unix_ctx *ctx);

#endif /* UNIX_PRIV_H */
