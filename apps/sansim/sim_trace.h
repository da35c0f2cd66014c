/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

/**
 * @file
 * Packets of a simulation into a pcapng file, stamped with virtual time in
 * nanoseconds. The same calls give the same bytes, whatever the day and the
 * machine, so that two runs can be compared by their files.
 *
 * Not rte_pcapng, which stamps with the time stamp counter and names the host.
 */

#include <stdbool.h>
#include <stdint.h>

/** Longest part of a packet that is written: what Wireshark takes. */
#define SIM_TRACE_SNAPLEN_MAX 262144u

struct sim_trace;

/**
 * Create the file, or empty it if it is there.
 *
 * @return
 *   0, and the trace in *out*; or a negative errno of opening or allocating.
 */
int sim_trace_open(const char *path, struct sim_trace **out);

/**
 * Declare an Ethernet interface, at any time before its first packet.
 *
 * @param name
 *   What Wireshark shows; UTF-8, cut after 65535 bytes.
 * @param snaplen
 *   Bytes of each packet that are kept; 0: all, up to SIM_TRACE_SNAPLEN_MAX.
 * @return
 *   Its number, 0 for the first and one more for each; or -ENOMEM. What goes
 *   wrong with the file is reported by sim_trace_close().
 */
int sim_trace_interface(struct sim_trace *t, const char *name, uint32_t snaplen);

/**
 * Write one packet. Needs not be in the order of time.
 *
 * @param iface
 *   Number of its interface.
 * @param at_ns
 *   Virtual time.
 * @param outbound
 *   Sent by the interface; false: received.
 * @param bytes
 *   The whole frame, from the Ethernet header on, without FCS.
 * @param comment
 *   UTF-8, cut after 65535 bytes; NULL: none.
 */
void sim_trace_packet(struct sim_trace *t, uint32_t iface, uint64_t at_ns, bool outbound,
		      const void *bytes, uint32_t len, const char *comment);

/**
 * Finish the file and free the trace, in any case.
 *
 * @return
 *   0: every byte was written. Else the negative errno of the first write that
 *   failed, however long ago (-ENOSPC: disk full); the file breaks off there.
 */
int sim_trace_close(struct sim_trace *t);

#endif /* SIM_TRACE_H */
