/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Send scheduler. Owners take turns (deficit round robin, by bytes), so that an owner with a
 * thousand connections gets no more than one with a single connection. Each owner has a FIFO of
 * connections that may have something to send; a visit lasts at most a quantum. A visit is O(1) for
 * any number of connections (RULE-9). The transaction sublayer chooses the kind of packet,
 * within the room that pdl_tx.c reports.
 *
 * A congestion window below one packet becomes a pace: one packet per round trip / window, timed by
 * the connection's timer (RT-9; RULE-12). The pace is at least one packet per PACE_MAX_NS:
 * on a long path a much smaller window would stop the connection for seconds, and so few packets
 * load no link.
 */

#include "pdl_priv.h"

#define TURN_BYTES   32768 /* about one burst */
#define PACE_MAX_NS  (100 * SAN_NS_PER_MS)
#define HEADER_BYTES 100 /* so that small packets cost as much as on the link */

void
san_pdl_sched_kick(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	struct san_pdl_owner *o = &pdl->owners[c->owner];

	if (c->in_ready || c->state != SAN_CONN_OPEN || c->failed)
		return;
	c->in_ready = true;
	/* The turn of an owner continues if its only connection was just visited. */
	if (TAILQ_EMPTY(&o->ready) && pdl->visited == o && o->credit > 0)
		TAILQ_INSERT_HEAD(&pdl->turns, o, link);
	else if (TAILQ_EMPTY(&o->ready))
		TAILQ_INSERT_TAIL(&pdl->turns, o, link);
	TAILQ_INSERT_TAIL(&o->ready, c, ready_link);
}

void
san_pdl_sched_remove(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	struct san_pdl_owner *o = &pdl->owners[c->owner];

	if (!c->in_ready)
		return;
	c->in_ready = false;
	TAILQ_REMOVE(&o->ready, c, ready_link);
	if (!TAILQ_EMPTY(&o->ready))
		return;
	TAILQ_REMOVE(&pdl->turns, o, link);
	if (pdl->turn == o)
		pdl->turn = NULL;
}

bool
san_pdl_sched_has_work(const struct san_pdl *pdl)
{
	return !TAILQ_EMPTY(&pdl->turns) || !TAILQ_EMPTY(&pdl->acks);
}

/*
 * The owner whose turn it is. A turn adds TURN_BYTES to the credit and ends when the credit is used
 * up. A visit is not cut short, so an owner may overdraw its credit; its next turns pay for that.
 */
static struct san_pdl_owner *
next_owner(struct san_pdl *pdl)
{
	struct san_pdl_owner *o;

	while ((o = TAILQ_FIRST(&pdl->turns)) != NULL && unlikely(o->credit <= 0)) {
		if (pdl->turn != o) {
			pdl->turn = o;
			o->credit += TURN_BYTES;
			continue;
		}
		pdl->turn = NULL;
		TAILQ_REMOVE(&pdl->turns, o, link);
		TAILQ_INSERT_TAIL(&pdl->turns, o, link);
	}
	return o;
}

struct san_pdl_conn *
san_pdl_sched_next(struct san_pdl *pdl)
{
	struct san_pdl_owner *o = next_owner(pdl);
	struct san_pdl_conn *c;

	if (o == NULL)
		return NULL;
	c = TAILQ_FIRST(&o->ready);
	san_pdl_sched_remove(pdl, c);
	pdl->visited = o;
	return c;
}

const struct san_pdl_conn *
san_pdl_sched_peek(const struct san_pdl *pdl)
{
	const struct san_pdl_owner *o = TAILQ_FIRST(&pdl->turns);

	return o != NULL ? TAILQ_FIRST(&o->ready) : NULL;
}

void
san_pdl_sched_end(struct san_pdl *pdl, struct san_pdl_conn *c, bool more)
{
	/* A resend that left its turn to new packets comes next. */
	if (more || c->turn_left)
		san_pdl_sched_kick(pdl, c);
	c->turn_left = false;
	san_pdl_pcb_end(pdl, c);
	pdl->visited = NULL;
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
san_pdl_sched_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t n, uint32_t bytes,
		   uint64_t now_ns)
{
	uint32_t window = san_pdl_cc_window(&c->cc);
	uint64_t rtt = c->rtt.srtt_ns != 0 ? c->rtt.srtt_ns : pdl->conf.rto_init_ns;

	pdl->owners[c->owner].credit -= (int32_t)(bytes + n * HEADER_BYTES);
	if (window < SAN_CC_ONE)
		c->pace_ns = now_ns + RTE_MIN(rtt * SAN_CC_ONE / RTE_MAX(window, 1u), PACE_MAX_NS);
}
