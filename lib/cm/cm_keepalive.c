/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keep-alive (RT-24): decides that a PROBE is due; packet delivery sends it and
 * the peer's answer shows in last_rx_ns. A peer that leaves keepalive_probes of
 * them unanswered is gone.
 *
 * Timer: cm_deadline_ns of an ESTABLISHED connection. It is not moved with every
 * packet received, which would cost the hot path a cache line: it fires once per
 * interval and looks how long the silence really was.
 */

#include "cm_priv.h"

static inline uint64_t
keepalive_ns(const struct san_cm_conn *c)
{
	return c->keepalive_ms * SAN_NS_PER_MS;
}

void
san_cm_keepalive_start(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns)
{
	struct san_pdl_conn *pc = cm_pdl_conn(cm, c);

	c->probes = 0;
	pc->last_rx_ns = now_ns;
	san_cm_timer(cm, c, c->keepalive_ms != 0 ? now_ns + keepalive_ns(c) : SAN_TIME_NEVER);
}

bool
san_cm_keepalive_on_timer(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns)
{
	struct san_pdl_conn *pc = cm_pdl_conn(cm, c);

	if (c->probes != 0 && pc->last_rx_ns != c->probe_seen_ns)
		c->probes = 0;
	if (c->probes == 0 && now_ns - pc->last_rx_ns < keepalive_ns(c)) {
		san_cm_timer(cm, c, pc->last_rx_ns + keepalive_ns(c));
		return true;
	}
	if (c->probes >= cm->conf.keepalive_probes)
		return false;
	c->probes++;
	c->probe_seen_ns = pc->last_rx_ns;
	san_pdl_probe_now(cm->pdl, pc);
	san_cm_timer(cm, c, now_ns + keepalive_ns(c));
	return true;
}
