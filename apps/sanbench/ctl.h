/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_H
#define CTL_H

/**
 * @file
 * Control messages between the two ends of a run. They are sends on a connection of their own,
 * which is always ordered.
 *
 *   client                           server
 *   PLACED(conn, n)            -->          messages below n are in their slots
 *                              <--  DONE(conn, n)  they were checked
 *   CONN_END(conn, ...)        -->          totals of the connection
 *   END                        -->
 *                              <--  REPORT  what the server found
 */

#include "net.h"

#define CTL_PAYLOAD 512 /**< a struct ctl_report */
#define CTL_RX      64
#define CTL_TX      32

enum ctl_type {
	CTL_PLACED = 4,   /**< index, a: messages */
	CTL_DONE = 5,     /**< index, a: messages */
	CTL_CONN_END = 6, /**< index, a: messages, b: bytes, c: checksum of the mode */
	CTL_END = 7,      /**< a: checksum of the mode over all connections */
	CTL_REPORT = 8,   /**< struct ctl_report */
};

struct ctl_msg {
	uint16_t type; /**< enum ctl_type */
	uint16_t index;
	uint32_t len; /**< length of the payload that follows */
	uint64_t a, b, c;
};

/** Result of the server. */
struct ctl_report {
	uint64_t errors; /**< wrong, missing or surplus messages */
	uint64_t msgs, bytes;
	uint64_t rtx;             /**< the server's retransmissions, or PORT_UNKNOWN */
	uint64_t calls, calls_ns; /**< mode rpc: its own requests, and their duration */
	struct hist_summary lat;  /**< of the server's requests (rpc) */
	char text[BENCH_TEXT];    /**< text of the first error */
};

struct ctl {
	struct bench_qp q; /**< must be first: a bench_qp is cast to ctl */
	struct rtsan_mr *mr;
	uint8_t *rx, *tx;
	uint32_t free_tx[CTL_TX];
	uint32_t nb_free_tx;
	void *owner;
	void (*on_msg)(void *owner, const struct ctl_msg *msg, const void *payload);
	void (*on_event)(void *owner, const struct rtsan_event *ev);
};

int san_ctl_open(struct bench *b, struct ctl *c);
void san_ctl_close(struct ctl *c);
/** 0; -EAGAIN: no room, try again in a later step; -ENOTCONN. */
int san_ctl_send(struct ctl *c, const struct ctl_msg *msg, const void *payload);

#endif /* CTL_H */
