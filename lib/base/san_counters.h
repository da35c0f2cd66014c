/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The counters of the layers: name, what is counted, and help for operators. A list makes the
 * members of its layer's struct (nb_rtx) and the names of telemetry, of OpenMetrics and of the
 * manual page sanstack-counters(7), which devtools/gen-man.py makes from the lists. A unit is the
 * thing counted, or "bytes" or "ns", in which names then end. view_counters.c has the gauges.
 *
 * The last two lists make an enum, texts for operators, and tables of that page. (SYS-1)
 */

#include <stdint.h>

/** A list's member of its struct. */
#define SAN_COUNTER_MEMBER(name, unit, help) uint64_t nb_##name;

/* clang-format off */

/** Engine of an lcore */
#define SAN_ENGINE_COUNTERS(X) \
	X(loops_idle, "rounds", "Rounds that found no work.") \
	X(rx_pkts, "packets", "Packets received from the port.") \
	X(tx_pkts, "packets", "Packets that the port accepted.") \
	X(tx_backlogged, "packets", "Packets that the port did not accept at once.") \
	X(doorbells, "doorbells", "Doorbells of programs that were handled.") \
	X(calls, "calls", "Control calls that the lcore ran for other threads.") \
	X(sleeps, "times", "Times that the lcore slept.") \
	X(wakes, "times", "Waiting programs woken, each by a system call.") \
	X(handover_out, "packets", "Packets handed over to other lcores, whose they are.") \
	X(handover_in, "packets", "Packets handed over to this lcore by others.") \
	X(tx_by_others, "packets", "Packets sent through other lcores, as this one has no queue.") \
	X(loopback, "packets", "Packets sent to an address of this port.") \
	X(app_faults, "queue pairs", "Queue pairs ended for malformed entries of their programs.")

/** Packet delivery */
#define SAN_PDL_COUNTERS(X) \
	X(rtx, "packets", "Packets sent again.") \
	X(fast_rtx, "packets", "Fast retransmits: later packets had arrived.") /* RT-22 */ \
	X(tlp, "packets", "Tail-loss probes.") \
	X(rto, "times", "Retransmission timeouts.") \
	X(probes, "packets", "Probes of the peer sent.") \
	X(acks_tx, "packets", "Packets with nothing but an ACK sent.") \
	X(acks_rx, "packets", "Packets with nothing but an ACK received.") \
	X(acks_piggybacked, "ACKs", "Owed ACKs that a packet with data carried.") \
	X(path_changes, "times", "Changes of path because of congestion.") /* RT-28 */ \
	X(mtu_raised, "times", "Times that longer packets passed the path.") /* RT-31 */ \
	X(mtu_lowered, "times", "Times that packets were too long for the path.") /* RT-37 */ \
	X(pieces_tx, "packets", "Pieces of packets too long for the path sent.") /* RT-37 */ \
	X(resync_tx, "packets", "RESYNC packets sent, for data that will not come.") \
	X(withdrawn, "packets", "Unacknowledged packets replaced by a RESYNC.") \
	X(cc_cuts, "times", "Cuts of a congestion window.") \
	X(conns_failed, "connections", "Connections lost because retries were exhausted.") \
	X(cnp_tx, "packets", "Congestion notifications sent.") \
	X(cnp_rx, "packets", "Congestion notifications received.") \
	X(out_of_window, "ACKs", "ACKs that reported a packet beyond the peer's window.") \
	X(budget_waits, "times", "Waits of a connection for the packet budget.") /* PCB-4 */ \
	X(windows_denied, "times", "Times that no memory was left for full windows (wide=).")

/** Transactions */
#define SAN_TL_COUNTERS(X) \
	/* as initiator */ \
	X(push_solicited, "messages", "Messages pushed with a grant of the peer.") \
	X(push_unsolicited, "messages", "Messages pushed without a grant.") \
	X(pulls, "requests", "Pulls started.") \
	X(atomics, "requests", "Atomic operations started.") \
	X(express_tx, "packets", "Packets sent by the express path.") \
	/* as target, and both */ \
	X(served, "transactions", "Transactions of the peer that are finished.") \
	X(grants, "packets", "Grants of solicited pushes sent.") \
	X(grants_deferred, "requests", "Solicited pushes that waited for incast budget.") \
	X(grants_expired, "grants", "Grants that expired before all of their data arrived.") \
	X(rnr_tx, "NACKs", "NACKs sent: receiver not ready.") \
	X(rnr_rx, "NACKs", "NACKs received: receiver not ready.") \
	X(refused, "transactions", "Transactions of the peer completed in error.") \
	X(resync_rx, "packets", "RESYNC packets received.") \
	X(aborts, "requests", "Own requests aborted.") \
	X(red_zone, "packets", "Packets refused while the reorder buffer was nearly full.") \
	X(finished_data, "packets", "Packets of finished transactions, discarded.") \
	/* packing (RT-34) */ \
	X(packed_tx, "packets", "Packets with several small messages sent.") \
	X(packed_rx, "packets", "Packets with several small messages accepted.") \
	X(packed_tx_messages, "messages", "Messages in packets with several ones sent.") \
	X(packed_rx_messages, "messages", "Messages in packets with several ones accepted.") \
	X(unpack_tx, "NACKs", "NACKs sent that ask for the messages of a packet one by one.") \
	X(unpack_rx, "NACKs", "NACKs received that ask for the messages of a packet one by one.") \
	/* incast budget (RT-13) */ \
	X(budget_returned, "times", "Times that incast budget was returned for other lcores.")

/** Placement of data */
#define SAN_ULP_COUNTERS(X) \
	X(wrs, "requests", "Work requests taken from programs.") \
	X(wcs, "completions", "Work completions delivered to programs.") \
	X(express_rx, "messages", "Messages received by the express path.") \
	X(placed_bytes, "bytes", "Payload received and placed.") \
	X(rnr, "messages", "Messages refused: no receive, or its completion queue was full.") \
	X(key_errors, "requests", "Requests of peers refused: unknown key.") \
	X(bounds_errors, "requests", "Requests of peers refused: outside of the region.") \
	X(rights_errors, "requests", "Requests of peers refused: the region does not allow it.") \
	X(revoked, "requests", "Requests of peers ended because the region was removed.") \
	X(guessers, "connections", "Connections closed because the peer guessed keys.")

/** Messages and waits of a stream */
#define SAN_STREAM_COUNTERS(X) \
	X(tx_messages, "messages", "Messages sent.") \
	X(rx_messages, "messages", "Messages received.") \
	X(rx_data, "messages", "Messages with payload received.") \
	X(updates, "messages", "Updates of credit sent.") \
	X(advertisements, "buffers", "Buffers advertised to the peer.") \
	X(advertisements_piggybacked, "buffers", "Of those, in a message with data.") \
	X(advertisements_stale, "buffers", "Advertisements of the peer that came too late.") \
	X(offers, "transfers", "Transfers offered to the peer to read.") \
	X(offers_void, "transfers", "Of those, void: an advertisement of the peer crossed them.") \
	X(fallbacks, "transfers", "Rests of transfers sent in messages, as no buffer was posted.") \
	X(resizes, "times", "Changes of the size of messages.") \
	X(resizes_refused, "times", "Changes of the size of messages refused.") \
	X(no_buffers, "times", "Sends that failed for lack of memory.") \
	X(messages_held, "messages", "Messages held because they arrived out of order.") \
	/* reasons why data was not sent, counted each time one begins */ \
	X(stalls_credit, "times", "Waits: the peer had no receive left.") \
	X(stalls_store, "times", "Waits: the peer's program did not read.") \
	X(stalls_buffers, "times", "Waits: all own messages were in flight.") \
	X(stalls_set, "times", "Waits: no buffer of the peer was known.")

/* ---- reasons ---- */

/** Dropped packets */
#define SAN_DROPS(X) \
	/* wire: not a valid packet of ours */ \
	X(NOT_OURS, not_ours, "Not of the transport; handed to the IP layer.") \
	X(SHORT, short, "Shorter than its headers say.") \
	X(SPLIT_HEADER, split_header, "Headers are scattered and cannot be joined.") \
	X(IP_HEADER, ip_header, "Bad IP version, length, option or fragment.") \
	X(IP_CHECKSUM, ip_checksum, "IPv4 header checksum is wrong.") \
	X(UDP_LENGTH, udp_length, "UDP length contradicts the IP length.") \
	X(BTH, bth, "BTH has an unknown version or reserved bits set.") \
	X(OPCODE, opcode, "BTH opcode is unknown, or not negotiated.") \
	X(VERSION, version, "Version of the transport header is unknown.") \
	X(RESERVED, reserved, "A reserved field is not zero.") \
	X(FIELD, field, "A field has a value that no sender uses.") \
	X(ICRC, icrc, "ICRC is wrong: damaged on the way.") \
	/* inet */ \
	X(NOT_FOR_US, not_for_us, "Addressed to another host.") \
	X(INET_MALFORMED, inet_malformed, "Malformed ARP, ICMP, IP or UDP packet.") \
	X(INET_UNWANTED, inet_unwanted, "Well formed, but there is no listener.") \
	X(INET_FRAG, inet_frag, "A fragment: a copy, or its packet never was whole.") \
	X(INET_NEIGH, inet_neigh, "Its neighbour did not answer.") \
	X(INET_RATE, inet_rate, "Answers to its sender are rate-limited.") /* RT-36 */ \
	/* pdl: no connection matches, or its state does not allow it */ \
	X(CID, cid, "No connection has this CID.") \
	X(TAG, tag, "Connection tag is wrong: spoofed, or of an earlier connection.") /* RT-24 */ \
	X(PEER, peer, "Source address is not the peer's.") \
	X(PKEY, pkey, "P_Key is of another partition.") /* RT-29 */ \
	X(STATE, state, "The state of the connection does not allow this packet.") \
	X(OLD, old, "PSN is below the window: a late copy.") /* RT-5 */ \
	X(DUPLICATE, duplicate, "PSN was already received.") /* RT-5 */ \
	X(BEYOND, beyond, "PSN is beyond the window.") /* RT-5 */ \
	X(ACK_BEYOND, ack_beyond, "Acknowledges what was never sent.") /* RT-6 */ \
	X(NACK_STALE, nack_stale, "NACK of an older round or a PSN not outstanding.") \
	X(RESET_STALE, reset_stale, "RESET matches nothing that is outstanding.") \
	/* tl */ \
	X(RSN, rsn, "RSN was never issued or is too far ahead.") /* RT-32 */ \
	X(SSN, ssn, "SSN was never issued.") /* RT-21 */ \
	X(RANGE, range, "Outside of what was granted or requested.") \
	X(FINISHED, finished, "Data of a finished transaction, acknowledged again.") /* RT-32 */ \
	X(RNR, rnr, "Refused: the receiver is not ready.") \
	X(ROUND, round, "Refused: sent before the last receiver-not-ready.") \
	X(RED_ZONE, red_zone, "Refused: the reorder buffer admits only the head of line.") \
	X(NO_TXN, no_txn, "Refused: no transaction record is free.") \
	X(ABORTED, aborted, "Refused: its transaction completed in error.") /* RT-27 */ \
	/* cm */ \
	X(CM_MALFORMED, cm_malformed, "Malformed connection management message.") \
	X(CM_COOKIE, cm_cookie, "Cookie is wrong or too old.") \
	X(CM_STALE, cm_stale, "No connection attempt matches the message.") \
	X(CM_RATE, cm_rate, "Over the rate limit of connection management.") \
	/* core and engine */ \
	X(NO_MBUF, no_mbuf, "No packet buffer was free.") \
	X(IMPAIRED, impaired, "Dropped on purpose by the impairment stage.") \
	X(TX_FULL, tx_full, "The port did not accept it.") \
	X(VLAN, vlan, "It is of another VLAN than the port.") \
	X(HANDOVER, handover, "The lcore that it belongs to did not accept it.") \
	X(HELD, held, "Held out of order, but the packets before it did not come.")

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

#define SAN_DROPS_MEMBER(reason, name, help) SAN_DROP_##reason,

/** Why a packet is dropped (RT-21): each is counted under exactly one; zero means accepted. */
enum san_drop {
	SAN_DROP_NONE = 0,
	SAN_DROPS(SAN_DROPS_MEMBER)
	SAN_DROP_MAX
};

/** Short lower-case name, e.g. "icrc"; stable, used by show and telemetry. */
const char *san_drop_name(enum san_drop reason);

#define SAN_HOLDS_MEMBER(reason, name, help) SAN_HOLD_##reason,

/**
 * Why a connection sends nothing new now: the first reason that the transmit path would meet. It is
 * derived from state when an operator asks, so it costs packets nothing. SAN_HOLD_MAX: it is
 * unknown. (RT-13, RT-26, PCB-2, PCB-3, PCB-4)
 */
enum san_hold {
	SAN_HOLDS(SAN_HOLDS_MEMBER)
};

/** Name for telemetry and labels; "unknown" if out of range. */
const char *san_hold_name(uint8_t hold);
