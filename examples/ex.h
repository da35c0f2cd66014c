/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Shared by the examples: a context with one queue pair and one completion queue, connected to the
 * other side. Only rtsan.h is used. Any error is reported and ends the program.
 */

#include <stdbool.h>
#include <stdint.h>

#include "rtsan.h"

#define EX_SERVICE 7471
#define EX_DEPTH   64 /* work requests in flight */

struct ex {
	const char *name; /* of the program, for messages */
	int sleeps;       /* sleep until something arrives, instead of polling */
	struct rtsan_ctx *ctx;
	struct rtsan_cq *cq;
	struct rtsan_qp *qp;
	struct rtsan_event ev; /* the last event, with the peer's private data */
	const char *waits_for; /* printed if the wait takes long; NULL: no more */
	const char *peer;      /* the peer it waits for */
};

/** Close, print "name: text" and exit with 1. */
void ex_die(const struct ex *ex, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/** Open the provider and create the queues. From then on SIGINT and SIGTERM close the context. */
void ex_open(struct ex *ex, const char *name, const char *spec);
void ex_close(struct ex *ex);

/**
 * Server: wait for a connection request, with its private data in ex->ev. Then call ex_accept().
 */
void ex_listen(struct ex *ex);
void ex_accept(struct ex *ex, const void *data, uint16_t len);
/** Client: connect. The private data of the answer is in ex->ev. */
void ex_connect(struct ex *ex, const char *peer, const void *data, uint16_t len);
/** Client: disconnect. Server: wait for it. */
void ex_disconnect(struct ex *ex);
void ex_wait_disconnect(struct ex *ex);

/** Allocate a region of *len* bytes. */
struct rtsan_mr *ex_alloc(struct ex *ex, size_t len, uint32_t access);
/** A scatter/gather element for *len* bytes from *off* in *mr*. */
struct rtsan_sge ex_sge(const struct rtsan_mr *mr, size_t off, size_t len);
void ex_post_recv(struct ex *ex, uint64_t id, struct rtsan_sge sge);
void ex_post_send(struct ex *ex, const struct rtsan_send_wr *wr);
/** Wait for the next completion, which must be successful. */
void ex_wait(struct ex *ex, struct rtsan_wc *wc);

/** FNV-1a, 64 bits, to compare a copy with the original. */
uint64_t ex_checksum(const void *data, size_t len);
uint64_t ex_now_ns(void);
