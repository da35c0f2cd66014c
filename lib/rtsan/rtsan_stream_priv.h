/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_STREAM_PRIV_H
#define RTSAN_STREAM_PRIV_H

/**
 * @file
 * What rtsan_stream.c (connections) and rtsan_stream_io.c (bytes) share.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rtsan_priv.h"
#include "rtsan_stream.h"
#include "rtsan_turn.h"

/** One posted request; its address is its wr_id. */
struct rtsan_stream_op {
	bool posted; /**< until its completion was seen */
	bool done;
	struct rtsan_wc wc;
};

struct rtsan_stream {
	struct rtsan_ctx *ctx;
	struct rtsan_qp *qp;
	struct rtsan_cq *cq;
	struct rtsan_turn turn; /**< of *cq*; its lock is also for posting */
	pthread_mutex_t rd, wr; /**< a call of each direction at a time */
	_Atomic int timeout_ms;
	struct rtsan_stream_op read, write, ctl, wait;
	struct rtsan_stream_op end; /**< nobody waits for it */
	bool ctl_used;              /**< somebody waits for *ctl* */
	bool is_shut;               /**< *end* is posted: nothing is written behind it */
	bool is_polled;             /**< a poll sleeps: whoever looks meanwhile rings *bell* */
	int bell;                   /**< an eventfd, from the first poll that sleeps on; -1 */
	uint32_t wait_events;       /**< of *wait*, while it is posted */
	/* with a provider in another process */
	struct rtsan_mr *mr; /**< half to read, half to write; NULL: memory is used as it is */
	/* by the lock of the context's *events* */
	uint8_t event;  /**< last one of the connection, enum rtsan_event_type; 0: none yet */
	uint8_t reason; /**< of it */
};

/** See rtsan_stream_connect(). Not connected yet. */
int rtsan_stream_create(struct rtsan_ctx *ctx, const struct rtsan_stream_attr *attr,
			struct rtsan_stream **out);
/** Whatever its connection does. */
void rtsan_stream_destroy(struct rtsan_stream *s);

#endif /* RTSAN_STREAM_PRIV_H */
