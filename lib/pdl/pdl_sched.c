/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Who sends next: a FIFO of connections that may have something to send, each
 * visited for at most a quantum; O(1) per visit with any number of connections
 * (design, rule 9). Which kind of packet goes is the transaction sublayer's
 * choice, within the room that pdl_tx.c reports.
 *
 * A congestion window below one packet becomes a pace: one packet per
 * round trip / window, held by the connection's timer (RT-9; design, rule 12).
 */

#include "pdl_priv.h"

void
san_pdl_kick(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (c->in_ready || c->state != SAN_CONN_OPEN || c->failed)
		return;
	c->in_ready = true;
	TAILQ_INSERT_TAIL(&pdl->ready, c, ready_link);
}

bool
san_pdl_has_work(const struct san_pdl *pdl)
{
	return !TAILQ_EMPTY(&pdl->ready) || !TAILQ_EMPTY(&pdl->acks);
}

struct san_pdl_conn *
san_pdl_sched_next(struct san_pdl *pdl, uint64_t now_ns)
{
	struct san_pdl_conn *c = TAILQ_FIRST(&pdl->ready);

	(void)now_ns;
	if (c == NULL)
		return NULL;
	TAILQ_REMOVE(&pdl->ready, c, ready_link);
	c->in_ready = false;
	return c;
}

void
san_pdl_tx_end(struct san_pdl *pdl, struct san_pdl_conn *c, bool more)
{
	san_pdl_pcb_end(pdl, c, more);
	/* what left its turn to new packets has the next one */
	if (more || c->turn_left)
		san_pdl_kick(pdl, c);
	c->turn_left = false;
}

bool
san_pdl_sched_paced(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (san_pdl_cc_window(&c->cc) >= SAN_CC_ONE || now_ns >= c->pace_ns)
		return true;
	c->pace_wait = true;
	san_pdl_arm_for(pdl, c, c->pace_ns);
	return false;
}

void
san_pdl_sched_sent(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	uint32_t window = san_pdl_cc_window(&c->cc);
	uint64_t rtt = c->rtt.srtt_ns != 0 ? c->rtt.srtt_ns : pdl->conf.rto_init_ns;

	if (window < SAN_CC_ONE)
		c->pace_ns = now_ns + rtt * SAN_CC_ONE / RTE_MAX(window, 1u);
}
