/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Writes packets of a simulation to a pcapng file, stamped with virtual time in nanoseconds. Equal
 * calls give equal files on any machine and day, so runs can be compared by their files.
 *
 * rte_pcapng is not used: it stamps with the time stamp counter and names the host.
 */

#include <stdbool.h>
#include <stdint.h>

/** Maximum length that is written of a packet: Wireshark's limit. */
#define SIM_TRACE_SNAPLEN_MAX 262144u

struct sim_trace;

/** Create or truncate the file. 0, or a negative errno of opening or allocating. */
int san_sim_trace_open(const char *path, struct sim_trace **out);
/**
 * Declare an Ethernet interface, at any time before its first packet. Wireshark displays *name*,
 * in UTF-8. Returns its number, from 0 on. san_sim_trace_close() reports errors of the file.
 */
int32_t san_sim_trace_interface(struct sim_trace *t, const char *name);
/**
 * Write one packet: the whole frame without FCS. Packets need not be ordered by time. *comment* is
 * UTF-8 or NULL. Texts are truncated to 65535 bytes.
 */
void san_sim_trace_packet(struct sim_trace *t, uint32_t iface, uint64_t at_ns, bool outbound,
			  const void *bytes, uint32_t len, const char *comment);
/**
 * Finish the file and free the trace in any case. 0: every byte was written; else the negative
 * errno of the first write that failed (-ENOSPC: disk full), after which nothing was written.
 */
int san_sim_trace_close(struct sim_trace *t);
