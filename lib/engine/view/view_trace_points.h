/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEW_TRACE_POINTS_H
#define VIEW_TRACE_POINTS_H

/**
 * @file
 * The fields of each trace point, in the form that rte_trace needs. Included by view_trace.c,
 * where they record, and by view_trace_register.c, where they are registered.
 */

#ifndef ALLOW_EXPERIMENTAL_API
#define ALLOW_EXPERIMENTAL_API /* rte_trace is still marked so in DPDK 22.11 */
#endif

#include <stdint.h>

#include <rte_trace_point.h>

/* clang-format off */

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

RTE_TRACE_POINT(
	san_trace_fault,
	RTE_TRACE_POINT_ARGS(uint16_t lcore, uint16_t app, uint32_t qp, const char *why),
	rte_trace_point_emit_u16(lcore);
	rte_trace_point_emit_u16(app);
	rte_trace_point_emit_u32(qp);
	rte_trace_point_emit_string(why);
)

RTE_TRACE_POINT(
	san_trace_sleep,
	RTE_TRACE_POINT_ARGS(uint16_t lcore, uint64_t ns),
	rte_trace_point_emit_u16(lcore);
	rte_trace_point_emit_u64(ns);
)

/* clang-format on */

#endif /* VIEW_TRACE_POINTS_H */
