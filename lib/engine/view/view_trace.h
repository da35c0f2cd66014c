/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Trace points for changes of state, for --trace=sanstack.*; see rtsan-dpdk(7). None is on the
 * packet path. The layers below do not trace; their changes are traced here when they arrive as an
 * event or as a counter that has moved. view_trace_register.c registers the points.
 */

#ifndef ALLOW_EXPERIMENTAL_API
#define ALLOW_EXPERIMENTAL_API /* rte_trace is still marked so in DPDK 22.11 */
#endif

#include <stdint.h>

#include <rte_trace_point.h>

/* clang-format off */

/* a connection was requested, established or refused, or has ended */
RTE_TRACE_POINT(
	san_trace_conn,
	RTE_TRACE_POINT_ARGS(uint16_t lcore, uint8_t event, uint8_t reason, uint32_t qp,
			     uint32_t cid),
	rte_trace_point_emit_u16(lcore);
	rte_trace_point_emit_u8(event);
	rte_trace_point_emit_u8(reason);
	rte_trace_point_emit_u32(qp);
	rte_trace_point_emit_u32(cid);
)

/* packets, of any connections, that timed out in this round */
RTE_TRACE_POINT(
	san_trace_rto,
	RTE_TRACE_POINT_ARGS(uint16_t lcore, uint64_t timeouts),
	rte_trace_point_emit_u16(lcore);
	rte_trace_point_emit_u64(timeouts);
)

RTE_TRACE_POINT(
	san_trace_attach,
	RTE_TRACE_POINT_ARGS(uint16_t lcore, uint16_t app),
	rte_trace_point_emit_u16(lcore);
	rte_trace_point_emit_u16(app);
)

RTE_TRACE_POINT(
	san_trace_detach,
	RTE_TRACE_POINT_ARGS(uint16_t lcore, uint16_t app),
	rte_trace_point_emit_u16(lcore);
	rte_trace_point_emit_u16(app);
)

/* a queue pair was ended for an invalid entry of its application */
RTE_TRACE_POINT(
	san_trace_fault,
	RTE_TRACE_POINT_ARGS(uint16_t lcore, uint16_t app, uint32_t qp, const char *why),
	rte_trace_point_emit_u16(lcore);
	rte_trace_point_emit_u16(app);
	rte_trace_point_emit_u32(qp);
	rte_trace_point_emit_string(why);
)

/* the lcore is about to sleep, at most for *ns* */
RTE_TRACE_POINT(
	san_trace_sleep,
	RTE_TRACE_POINT_ARGS(uint16_t lcore, uint64_t ns),
	rte_trace_point_emit_u16(lcore);
	rte_trace_point_emit_u64(ns);
)

/* clang-format on */
