/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Registers the trace points. It is a file of its own because after rte_trace_point_register.h a
 * trace point does not record: at start it describes its fields, and each call would append to that
 * text.
 */

#define ALLOW_EXPERIMENTAL_API /* see view_trace.h */

#include <rte_trace_point_register.h>

#include "view_trace.h"

RTE_TRACE_POINT_REGISTER(san_trace_conn, sanstack.conn.event)
RTE_TRACE_POINT_REGISTER(san_trace_rto, sanstack.conn.rto)
RTE_TRACE_POINT_REGISTER(san_trace_attach, sanstack.app.attach)
RTE_TRACE_POINT_REGISTER(san_trace_detach, sanstack.app.detach)
RTE_TRACE_POINT_REGISTER(san_trace_fault, sanstack.qp.fault)
RTE_TRACE_POINT_REGISTER(san_trace_sleep, sanstack.lcore.sleep)
