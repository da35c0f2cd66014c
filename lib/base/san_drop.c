/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <stddef.h>

#include "san_drop.h"

struct drop_words {
	const char *name;
	const char *text;
};

static const struct drop_words words[] = {
	[SAN_DROP_NONE] = {"none", "Accepted."},
	[SAN_DROP_NOT_OURS] = {"not_ours", "Not of the transport; handed to the IP layer."},
	[SAN_DROP_SHORT] = {"short", "Shorter than its headers say."},
	[SAN_DROP_SPLIT_HEADER] = {"split_header", "Headers are scattered and cannot be joined."},
	[SAN_DROP_IP_HEADER] = {"ip_header", "Bad IP version, length, option or fragment."},
	[SAN_DROP_IP_CHECKSUM] = {"ip_checksum", "IPv4 header checksum is wrong."},
	[SAN_DROP_UDP_LENGTH] = {"udp_length", "UDP length contradicts the IP length."},
	[SAN_DROP_BTH] = {"bth", "BTH has an unknown version or reserved bits set."},
	[SAN_DROP_OPCODE] = {"opcode", "BTH opcode is unknown, or not negotiated."},
	[SAN_DROP_VERSION] = {"version", "Version of the transport header is unknown."},
	[SAN_DROP_RESERVED] = {"reserved", "A reserved field is not zero."},
	[SAN_DROP_FIELD] = {"field", "A field has a value that no sender uses."},
	[SAN_DROP_ICRC] = {"icrc", "ICRC is wrong: damaged on the way."},
	[SAN_DROP_NOT_FOR_US] = {"not_for_us", "Addressed to another host."},
	[SAN_DROP_INET_MALFORMED] = {"inet_malformed", "Malformed ARP, ICMP, IP or UDP packet."},
	[SAN_DROP_INET_UNWANTED] = {"inet_unwanted", "Well formed, but there is no listener."},
	[SAN_DROP_INET_FRAG] = {"inet_frag", "A fragment: a copy, or its packet never was whole."},
	[SAN_DROP_INET_NEIGH] = {"inet_neigh", "Its neighbour did not answer."},
	[SAN_DROP_INET_RATE] = {"inet_rate", "Answers to its sender are rate-limited."},
	[SAN_DROP_CID] = {"cid", "No connection has this CID."},
	[SAN_DROP_TAG] = {"tag", "Connection tag is wrong: spoofed, or of an earlier connection."},
	[SAN_DROP_PEER] = {"peer", "Source address is not the peer's."},
	[SAN_DROP_PKEY] = {"pkey", "P_Key is of another partition."},
	[SAN_DROP_STATE] = {"state", "The state of the connection does not allow this packet."},
	[SAN_DROP_OLD] = {"old", "PSN is below the window: a late copy."},
	[SAN_DROP_DUPLICATE] = {"duplicate", "PSN was already received."},
	[SAN_DROP_BEYOND] = {"beyond", "PSN is beyond the window."},
	[SAN_DROP_ACK_BEYOND] = {"ack_beyond", "Acknowledges what was never sent."},
	[SAN_DROP_NACK_STALE] = {"nack_stale", "NACK of an older round or a PSN not outstanding."},
	[SAN_DROP_RESET_STALE] = {"reset_stale", "RESET matches nothing that is outstanding."},
	[SAN_DROP_RSN] = {"rsn", "RSN was never issued or is too far ahead."},
	[SAN_DROP_SSN] = {"ssn", "SSN was never issued."},
	[SAN_DROP_RANGE] = {"range", "Outside of what was granted or requested."},
	[SAN_DROP_FINISHED] = {"finished", "Content of a finished transaction, acked again."},
	[SAN_DROP_RNR] = {"rnr", "Refused: the receiver is not ready."},
	[SAN_DROP_ROUND] = {"round", "Refused: sent before the last receiver-not-ready."},
	[SAN_DROP_RED] = {"red", "Refused: the reorder buffer admits only the head of line."},
	[SAN_DROP_NO_TXN] = {"no_txn", "Refused: no transaction record is free."},
	[SAN_DROP_ABORTED] = {"aborted", "Refused: its transaction completed in error."},
	[SAN_DROP_CM_MALFORMED] = {"cm_malformed", "Malformed connection management message."},
	[SAN_DROP_CM_COOKIE] = {"cm_cookie", "Cookie is wrong or too old."},
	[SAN_DROP_CM_STALE] = {"cm_stale", "No connection attempt matches the message."},
	[SAN_DROP_CM_RATE] = {"cm_rate", "Over the rate limit of connection management."},
	[SAN_DROP_NO_MBUF] = {"no_mbuf", "No packet buffer was free."},
	[SAN_DROP_IMPAIRED] = {"impaired", "Dropped on purpose by the impairment stage."},
	[SAN_DROP_TX_FULL] = {"tx_full", "The port did not accept it."},
	[SAN_DROP_VLAN] = {"vlan", "It is of another VLAN than the port."},
	[SAN_DROP_HANDOVER] = {"handover", "The lcore that it belongs to did not accept it."},
	[SAN_DROP_HELD] = {"held", "Held out of order, but the packets before it did not come."},
};

static_assert(sizeof(words) / sizeof(words[0]) == SAN_DROP_MAX, "a drop reason has no name");

const char *
san_drop_name(enum san_drop reason)
{
	/* Unsigned, so that a negative value is out of range too. */
	return (unsigned int)reason < SAN_DROP_MAX ? words[reason].name : "unknown";
}

const char *
san_drop_text(enum san_drop reason)
{
	return (unsigned int)reason < SAN_DROP_MAX ? words[reason].text : "Unknown reason.";
}
