/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_HOLD_H
#define SAN_HOLD_H

/**
 * @file
 * Why a connection sends nothing new now: the first reason that the transmit path would meet. It is
 * derived from state when an operator asks, so it costs packets nothing. (RT-26, PCB-2, PCB-3,
 * PCB-4)
 */

#include <stdint.h>

enum san_hold {
	SAN_HOLD_NONE = 0,     /**< it may send: its turn comes next */
	SAN_HOLD_SETUP,        /**< not open, or closing */
	SAN_HOLD_APPLICATION,  /**< nothing is posted */
	SAN_HOLD_ANSWER,       /**< all is sent; waits for the network and the peer */
	SAN_HOLD_WINDOW,       /**< the peer's window of packets is full */
	SAN_HOLD_VIRTUAL,      /**< first or virtual window (PCB-1, PCB-2) */
	SAN_HOLD_CONGESTION,   /**< congestion window */
	SAN_HOLD_PACE,         /**< congestion window below one packet: paced */
	SAN_HOLD_BUDGET,       /**< packet budget of this host (PCB-4) */
	SAN_HOLD_MEMORY,       /**< no memory here for more packets in flight (wide=) */
	SAN_HOLD_GRANT,        /**< the peer has not granted it (RT-13) */
	SAN_HOLD_RECEIVER,     /**< the peer was not ready: no receive, or no record */
	SAN_HOLD_MESSAGES,     /**< limit of unacknowledged messages (PCB-3) */
	SAN_HOLD_TRANSACTIONS, /**< the connection has as many transactions as allowed */
	SAN_HOLD_RECORDS,      /**< no record here for one more transaction (txns=) */
	SAN_HOLD_PULLS,        /**< incast budget of this host, for one more pull (RT-13) */
	SAN_HOLD_MAX
};

/** Name for telemetry and labels; "unknown" if out of range. */
const char *san_hold_name(uint8_t hold);

#endif /* SAN_HOLD_H */
