/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_HOLD_H
#define SAN_HOLD_H

/**
 * @file
 * Why a connection sends nothing new now: the first reason that the transmit path would meet. It is
 * derived from state when an operator asks, so it costs packets nothing. The list makes the enum,
 * the texts for operators, and the table of sanstack-counters(7). (RT-13, RT-26, PCB-2, PCB-3,
 * PCB-4)
 */

#include <stdint.h>

/* clang-format off */

/** Reasons why a connection sends nothing new */
#define SAN_HOLDS(X) \
	X(NONE, none, "It may send, and its turn is next.") \
	X(SETUP, setup, "It is not established, or it is closing.") \
	X(APPLICATION, application, "No request is posted.") \
	X(ANSWER, answer, "All data is sent, and the peer has not answered yet.") \
	X(WINDOW, window, "The peer's window of packets is full.") \
	X(VIRTUAL, virtual_window, "The first window, or this host's share for it, is full.") \
	X(CONGESTION, congestion, "The congestion window is full.") \
	X(PACE, pace, "The window is below one packet, and the next packet is not due yet.") \
	X(BUDGET, budget, "The packet budget of this host is used up, and others wait longer.") \
	X(MEMORY, memory, "Other connections have all full windows (wide=).") \
	X(GRANT, grant, "The peer has no incast budget, or no receive posted, for a grant.") \
	X(RECEIVER, receiver, "The peer was not ready: no receive, or completion queue full.") \
	X(MESSAGES, messages, "The limit of unacknowledged messages is reached.") \
	X(TRANSACTIONS, transactions, "The limit of transactions in flight is reached.") \
	X(RECORDS, records, "The lcore has no transaction record left (txns=).") \
	X(PULLS, pulls, "The lcore's incast budget allows no further pull.") \
	X(MAX, unknown, "The program polls its engine itself: no other thread can examine it.")

/* clang-format on */

#define SAN_HOLDS_MEMBER(reason, name, help) SAN_HOLD_##reason,

/** SAN_HOLD_MAX: it is unknown. */
enum san_hold {
	SAN_HOLDS(SAN_HOLDS_MEMBER)
};

/** Name for telemetry and labels; "unknown" if out of range. */
const char *san_hold_name(uint8_t hold);

#endif /* SAN_HOLD_H */
