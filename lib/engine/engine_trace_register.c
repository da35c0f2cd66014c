/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Makes the trace points known to rte_trace. In a file of its own: behind
 * rte_trace_point_register.h a trace point is not one that records, but one that describes its
 * fields, at start, in a text that grows with every call.
 */

#define ALLOW_EXPERIMENTAL_API /* rte_trace is still marked so in DPDK 22.11 */

#include <rte_trace_point_register.h>

#include "engine_trace_points.h"

RTE_TRACE_POINT_REGISTER(san_trace_conn, sanstack.conn.event)
RTE_TRACE_POINT_REGISTER(san_trace_rto, sanstack.conn.rto)
RTE_TRACE_POINT_REGISTER(san_trace_attach, sanstack.app.attach)
RTE_TRACE_POINT_REGISTER(san_trace_detach, sanstack.app.detach)
RTE_TRACE_POINT_REGISTER(san_trace_fault, sanstack.qp.fault)
RTE_TRACE_POINT_REGISTER(san_trace_sleep, sanstack.lcore.sleep)
