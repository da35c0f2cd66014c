/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_COUNTERS_H
#define SAN_COUNTERS_H

/**
 * @file
 * The counters of the layers: name, what is counted, and help for operators. A list makes the
 * members of its layer's struct (nb_rtx) and the names of telemetry, of OpenMetrics and of the
 * manual page sanstack-counters(7), which devtools/gen-man.py makes from the lists. A unit is the
 * thing counted, or "bytes" or "ns", in which names then end. view_counters.c has the gauges,
 * san_drop.h the reasons of dropped packets, san_hold.h those of connections that wait. (SYS-1)
 */

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

/* clang-format on */

#endif /* SAN_COUNTERS_H */
