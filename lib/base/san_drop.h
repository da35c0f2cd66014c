/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_DROP_H
#define SAN_DROP_H

/**
 * @file
 * Reasons why a packet is dropped, each with its own counter (RT-21). Every packet is counted under
 * exactly one; zero means accepted. The list makes the enum, the texts for operators, and the table
 * of sanstack-counters(7).
 */

#include <stdint.h>

/* clang-format off */

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

/* clang-format on */

#define SAN_DROPS_MEMBER(reason, name, help) SAN_DROP_##reason,

enum san_drop {
	SAN_DROP_NONE = 0,
	SAN_DROPS(SAN_DROPS_MEMBER)
	SAN_DROP_MAX
};

/** Short lower-case name, e.g. "icrc"; stable, used by show and telemetry. */
const char *san_drop_name(enum san_drop reason);

#endif /* SAN_DROP_H */
