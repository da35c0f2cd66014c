/* SPDX-License-Identifier: BSD-3-Clause */

#define ALLOW_EXPERIMENTAL_API /* rte_trace is still marked so in DPDK 22.11 */

#include <rte_trace.h>

#include "view_trace.h"
#include "view_trace_points.h"

void
san_view_trace_conn(uint16_t lcore, const struct san_core_event *ev)
{
	/* a connection request is identified by tag and CID */
	san_trace_conn(lcore, ev->type, ev->reason, ev->qp, (uint32_t)ev->request);
}

void
san_view_trace_rto(uint16_t lcore, uint64_t n)
{
	san_trace_rto(lcore, n);
}

void
san_view_trace_attach(uint16_t lcore, uint16_t app)
{
	san_trace_attach(lcore, app);
}

void
san_view_trace_detach(uint16_t lcore, uint16_t app)
{
	san_trace_detach(lcore, app);
}

void
san_view_trace_fault(uint16_t lcore, uint16_t app, uint32_t qpn, const char *why)
{
	san_trace_fault(lcore, app, qpn, why);
}

void
san_view_trace_sleep(uint16_t lcore, uint64_t ns)
{
	san_trace_sleep(lcore, ns);
}

void
san_view_trace_save(void)
{
	if (rte_trace_is_enabled())
		rte_trace_save();
}
