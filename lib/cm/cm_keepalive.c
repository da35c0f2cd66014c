/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keep-alive (RT-24, UDP-12): decides when a PROBE is due. Packet delivery sends the PROBE, and the
 * answer changes last_rx_ns. A peer is dead if it leaves the configured number of PROBEs
 * unanswered while this lcore runs.
 *
 * Timer: cm_deadline_ns of an ESTABLISHED connection. A received packet does not move it, because
 * that would cost the hot path a cache line. It fires once per interval and then checks how long
 * the silence is.
 */

#include "cm_priv.h"

static void
keepalive_begin(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns)
{
	uint64_t idle_ns = c->keepalive.idle_ms * SAN_NS_PER_MS;

	c->probes = 0;
	san_cm_timer(cm, c, idle_ns != 0 ? now_ns + idle_ns : SAN_TIME_NEVER);
}

void
san_cm_keepalive_start(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns)
{
	c->keepalive = (struct san_cm_keepalive){
		.idle_ms = c->keepalive_ms,
		.every_ms = c->keepalive_ms,
		.probes = cm->conf.keepalive_probes,
	};
	san_cm_pdl_conn(cm, c)->last_rx_ns = now_ns;
	keepalive_begin(cm, c, now_ns);
}

void
san_cm_keepalive_set(struct san_cm *cm, uint16_t slot, const struct san_cm_keepalive *k,
		     uint64_t now_ns)
{
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);

	if (c == NULL || c->state != SAN_CM_ESTABLISHED)
		return;
	c->keepalive = *k;
	keepalive_begin(cm, c, now_ns);
}

bool
san_cm_keepalive_on_timer(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns)
{
	struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);
	uint64_t idle_ns = c->keepalive.idle_ms * SAN_NS_PER_MS;
	uint64_t every_ns = c->keepalive.every_ms * SAN_NS_PER_MS;

	if (c->probes != 0 && pc->last_rx_ns != c->probe_seen_ns)
		c->probes = 0;
	if (c->keepalive.is_lazy && pc->txb != NULL) {
		keepalive_begin(cm, c, now_ns);
		return true;
	}
	if (c->probes == 0 && now_ns - pc->last_rx_ns < idle_ns) {
		san_cm_timer(cm, c, pc->last_rx_ns + idle_ns);
		return true;
	}
	/* TCP's keep-alive knows no excuse, and its silence begins with a retry */
	if ((pc->user_timeout != 0 ||
	     !san_pdl_rtx_is_excused(cm->pdl, pc, c->keepalive.probes * every_ns, now_ns)) &&
	    c->keepalive.probes != 0 && c->probes >= c->keepalive.probes)
		return false;
	c->probes = RTE_MIN(c->probes + 1, RTE_MAX(c->keepalive.probes, 1));
	c->probe_seen_ns = pc->last_rx_ns;
	san_pdl_ack_probe_now(cm->pdl, pc);
	san_cm_timer(cm, c, now_ns + every_ns);
	return true;
}
