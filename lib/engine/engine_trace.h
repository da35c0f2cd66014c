/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TRACE_H
#define ENGINE_TRACE_H

/**
 * @file
 * Trace points of transitions, for --trace=sanstack.*; see rtsan-dpdk(7). None is on a
 * packet's way. The layers below know no tracing: what happens there is seen here when
 * it comes up, as an event or as a counter that moved.
 */

#include <stdint.h>

#include "core.h"

/** A connection was asked for, is there, was refused, ended. */
void san_engine_trace_conn(uint16_t lcore, const struct san_core_event *ev);
/** *n* packets timed out in this round, on whatever connections. */
void san_engine_trace_rto(uint16_t lcore, uint64_t n);
void san_engine_trace_attach(uint16_t lcore, uint16_t app);
void san_engine_trace_detach(uint16_t lcore, uint16_t app);
/** A queue pair was ended for what its application wrote. */
void san_engine_trace_fault(uint16_t lcore, uint16_t app, uint32_t qpn, const char *why);
/** The lcore is about to sleep, at most for *ns*. */
void san_engine_trace_sleep(uint16_t lcore, uint64_t ns);
/** What was traced so far goes into files: EAL itself would do so only as it cleans up. */
void san_engine_trace_save(void);

#endif /* ENGINE_TRACE_H */
