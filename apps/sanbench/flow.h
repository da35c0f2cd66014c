/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FLOW_H
#define FLOW_H

/**
 * @file
 * One end of a connection that carries a stream: sends what its conf says, receives in the
 * manner that it is told, and checks every byte by its place in the stream. (AFC-1)
 */

#include "net.h"

/** How a program receives. */
enum flow_manner {
	FLOW_DIRECT = 0, /**< large buffers, posted before there is data */
	FLOW_WAIT,       /**< waits for data, then a small buffer, then a large one */
	FLOW_SMALL,      /**< small buffers */
	FLOW_MIXED,      /**< one after the other, each for a while */
	FLOW_MANNERS
};

/** Who sends, and when. */
enum flow_way {
	FLOW_ONE = 0,   /**< the client, as fast as it can */
	FLOW_BOTH,      /**< both ends do */
	FLOW_SEND_RECV, /**< requests and answers; each end sends before it posts a receive */
	FLOW_RECV_SEND, /**< likewise, the other way round */
	FLOW_WAYS
};

struct flow;

struct flow_counts {
	uint64_t msgs, bytes; /**< sent, as far as posted */
	uint64_t done;        /**< sends that have completed; requests: answered */
	uint64_t received;    /**< bytes */
};

/**
 * Make one end.
 *
 * @param is_server
 *   It answers requests, and sends by itself in FLOW_BOTH only.
 * @param stream
 *   What the queue pair is to be like.
 * @return
 *   0 or a negative errno.
 */
int flow_open(struct bench *b, struct bench_qp *q, const struct hello *hello, bool is_server,
	      const struct rtsan_stream_attr *stream, struct app_hist *lat, struct flow **out);
/** After its queue pair. */
void flow_close(struct flow *f);
void flow_on_wc(struct flow *f, const struct rtsan_wc *wc);
/** A turn: at most *max* new messages; 0: no more of them, and the end when all are sent. */
bool flow_step(struct flow *f, uint64_t max);
/** Our end is posted: when the peer's has come, too, the connection ends. */
bool flow_is_shut(const struct flow *f);
/** Everything is sent and received, both ends included. */
bool flow_is_over(const struct flow *f);
/** What went wrong, or NULL. */
const char *flow_error(const struct flow *f);
const struct flow_counts *flow_counts(const struct flow *f);

#endif /* FLOW_H */
