/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EX_H
#define EX_H

/**
 * @file
 * What the examples share: a context with one queue pair and one completion
 * queue, connected to the other side. Everything is rtsan.h; where something
 * fails there is nothing to rescue, so it says so and exits.
 */

#include <stdbool.h>
#include <stdint.h>

#include "rtsan.h"

#define EX_SERVICE 7471
#define EX_DEPTH   64 /* work requests under way */

struct ex {
	const char *name; /* of the program, for messages */
	int sleeps;       /* sleep until something comes, rather than poll */
	struct rtsan_ctx *ctx;
	struct rtsan_cq *cq;
	struct rtsan_qp *qp;
	struct rtsan_event ev; /* the last one: private data of the peer */
	const char *waits_for; /* to be said if it takes long; NULL: nothing, or it is said */
	const char *peer;      /* whom, for that */
};

/** Close, print "name: text" and exit with 1. */
void ex_die(const struct ex *ex, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/** Open the provider, make the queues. From then on SIGINT and SIGTERM close it at the end. */
void ex_open(struct ex *ex, const char *name, const char *spec);
void ex_close(struct ex *ex);

/** Server: wait for a request; its private data is in ex->ev. Then ex_accept(). */
void ex_listen(struct ex *ex);
void ex_accept(struct ex *ex, const void *data, uint16_t len);
/** Client: connect; the private data of the answer is in ex->ev. */
void ex_connect(struct ex *ex, const char *peer, const void *data, uint16_t len);
/** Client: end in order. Server: wait until the client has. */
void ex_disconnect(struct ex *ex);
void ex_wait_disconnect(struct ex *ex);

/** A region of *len* bytes. */
struct rtsan_mr *ex_alloc(struct ex *ex, size_t len, uint32_t access);
/** An element for *len* bytes from *off* in *mr*. */
struct rtsan_sge ex_sge(const struct rtsan_mr *mr, size_t off, size_t len);
void ex_post_recv(struct ex *ex, uint64_t id, struct rtsan_sge sge);
void ex_post_send(struct ex *ex, const struct rtsan_send_wr *wr);
/** Next completion, which must be a success. */
void ex_wait(struct ex *ex, struct rtsan_wc *wc);

/** FNV-1a, 64 bit: enough to tell a right copy from a wrong one. */
uint64_t ex_checksum(const void *data, size_t len);
uint64_t ex_now_ns(void);

#endif /* EX_H */
