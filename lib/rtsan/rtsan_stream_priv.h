/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_STREAM_PRIV_H
#define RTSAN_STREAM_PRIV_H

/**
 * @file
 * Definitions shared by rtsan_stream.c (connections) and rtsan_stream_io.c (bytes).
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rtsan_priv.h"
#include "rtsan_stream.h"
#include "rtsan_turn.h"

/** A posted request; its address is its wr_id. */
struct rtsan_stream_op {
	bool posted; /**< until its completion was polled */
	bool done;
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

#endif /* RTSAN_STREAM_PRIV_H */
