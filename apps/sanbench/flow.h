/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FLOW_H
#define FLOW_H

/**
 * @file
 * One end of a connection that carries a stream. It sends as configured, receives in a given
 * manner, and checks every byte by its position in the stream. (AFC-1)
 */

#include "net.h"

/** How the receiver posts buffers. */
enum flow_manner {
	FLOW_DIRECT = 0, /**< large buffers, posted before data arrives */
	FLOW_WAIT,       /**< wait for data, then post a small buffer, then a large one */
	FLOW_SMALL,      /**< small buffers */
	FLOW_MIXED,      /**< each of these for a while */
	FLOW_MANNERS
};

/** Which end sends, and when. */
enum flow_way {
	FLOW_ONE = 0,   /**< the client, at full rate */
	FLOW_BOTH,      /**< both ends */
	FLOW_SEND_RECV, /**< request and answer; each end sends, then posts a receive */
	FLOW_RECV_SEND, /**< request and answer; each end posts a receive, then sends */
	FLOW_WAYS
};

struct flow;

struct flow_state {
	uint64_t msgs, bytes; /**< posted */
	uint64_t done;        /**< completed sends; answered requests */
	uint64_t received;    /**< bytes received */
	bool is_shut;         /**< own end is posted; the connection ends with the peer's */
	const char *error;    /**< text of the last error, or NULL */
};

/**
 * Create one end.
 *
 * @param is_server
 *   It answers requests, and sends by itself only in FLOW_BOTH.
 * @param stream
 *   Attributes of the queue pair.
 * @return
 *   0 or a negative errno.
 */
int san_flow_open(struct bench *b, struct bench_qp *q, const struct hello *hello, bool is_server,
		  const struct rtsan_stream_attr *stream, struct hist *lat, struct flow **out);
/** Call after the queue pair is closed. */
void san_flow_close(struct flow *f);
void san_flow_on_wc(struct flow *f, const struct rtsan_wc *wc);
/**
 * One turn: post at most *max* new messages. 0: no more follow, so end the stream when all are
 * sent.
 */
bool san_flow_step(struct flow *f, uint64_t max);
/** Everything is sent and received, including both ends. */
bool san_flow_is_over(const struct flow *f);
const struct flow_state *san_flow_state(const struct flow *f);

#endif /* FLOW_H */
