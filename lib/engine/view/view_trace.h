/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEW_TRACE_H
#define VIEW_TRACE_H

/**
 * @file
 * Trace points for changes of state, for --trace=sanstack.*; see rtsan-dpdk(7). None is on the
 * packet path. The layers below do not trace; their changes are traced here when they arrive as an
 * event or as a counter that has moved.
 */

#include <stdint.h>

#include "core.h"

/** A connection was requested, established or refused, or has ended. */
void san_view_trace_conn(uint16_t lcore, const struct san_core_event *ev);
/** *n* packets, of any connections, timed out in this round. */
void san_view_trace_rto(uint16_t lcore, uint64_t n);
void san_view_trace_attach(uint16_t lcore, uint16_t app);
void san_view_trace_detach(uint16_t lcore, uint16_t app);
/** A queue pair was ended for an invalid entry of its application. */
void san_view_trace_fault(uint16_t lcore, uint16_t app, uint32_t qpn, const char *why);
/** The lcore is about to sleep, at most for *ns*. */
void san_view_trace_sleep(uint16_t lcore, uint64_t ns);
/** Write the trace to files: EAL itself would do so only in its cleanup. */
void san_view_trace_save(void);

#endif /* VIEW_TRACE_H */
