/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Outgoing messages. A connection has at most one to send, built from its record
 * when it is taken; answers that belong to no connection wait in a small ring.
 * Answers to strangers are rate-limited: cookies, rejections, RESET. (rule 17)
 */

#include <string.h>

#include <rte_common.h>

#include "cm_priv.h"
#include "san_assert.h"

#define CREDIT_ONE SAN_NS_PER_MS /* an answer, in units of credit */

void
san_cm_tx_add(struct san_cm *cm, struct san_cm_conn *c)
{
	if (c->in_tx)
		return;
	c->in_tx = true;
	TAILQ_INSERT_TAIL(&cm->tx, c, tx_link);
}

void
san_cm_tx_del(struct san_cm *cm, struct san_cm_conn *c)
{
	if (!c->in_tx)
		return;
	c->in_tx = false;
	TAILQ_REMOVE(&cm->tx, c, tx_link);
}

/**
 * A token bucket that holds one millisecond's worth. Elapsed ns times answers
 * per ms are millionths of an answer, so nothing is rounded away.
 */
bool
san_cm_rate_take(struct san_cm *cm, uint64_t now_ns)
{
	uint64_t full = (uint64_t)cm->conf.rate_per_ms * CREDIT_ONE;
	uint64_t elapsed_ns = now_ns - cm->credit_ns;

	if (now_ns < cm->credit_ns)
		elapsed_ns = 0;
	if (elapsed_ns >= SAN_NS_PER_MS)
		cm->credit = full;
	else
		cm->credit = RTE_MIN(full, cm->credit + elapsed_ns * cm->conf.rate_per_ms);
	cm->credit_ns = RTE_MAX(cm->credit_ns, now_ns);
	if (cm->credit < CREDIT_ONE)
		return false;
	cm->credit -= CREDIT_ONE;
	return true;
}

static bool
out_add(struct san_cm *cm, const struct san_wire_path *path, uint16_t pkey,
	const struct san_wire_cm *msg)
{
	struct cm_out *o = &cm->out[cm->out_tail & (CM_OUT_MAX - 1)];

	if (cm->out_tail - cm->out_head == CM_OUT_MAX)
		return false;
	cm->out_tail++;
	o->path = *path;
	o->pkey = pkey;
	o->msg = *msg;
	return true;
}

bool
san_cm_tx_reply(struct san_cm *cm, const struct san_wire_pkt *p, uint16_t src_port,
		const struct san_wire_cm *msg)
{
	struct san_wire_path path = cm->conf.path;

	path.src = p->dst;
	path.dst = p->src;
	path.dst_mac = p->src_mac;
	path.src_port = src_port;
	return out_add(cm, &path, p->pkey, msg);
}

void
san_cm_tx_farewell(struct san_cm *cm, const struct san_cm_conn *c, const struct san_wire_cm *msg)
{
	const struct san_pdl_conn *pc = cm_pdl_conn(cm, c);

	if (!out_add(cm, &pc->path, pc->pkey, msg))
		cm->drops[SAN_DROP_CM_RATE]++;
}

/** Common header of a CM packet: to the well-known CID, with the receiver's tag. (RT-24) */
static void
fill_pkt(struct san_wire_pkt *p, uint16_t pkey, const struct san_wire_cm *msg, uint64_t now_ns)
{
	memset(p, 0, sizeof(*p));
	p->op = SAN_OP_CM;
	p->dcid = SAN_WIRE_CID_CM;
	p->pkey = pkey;
	p->tag = msg->dst_tag;
	p->tx_time = (uint32_t)now_ns;
}

bool
san_cm_tx_next(struct san_cm *cm, struct san_wire_path *path, struct san_wire_pkt *p,
	       struct san_wire_cm *msg, uint64_t now_ns)
{
	const struct san_pdl_conn *pc;
	const struct cm_out *o;
	struct san_cm_conn *c;

	cm->now_ns = now_ns;
	if (cm->out_head != cm->out_tail) {
		o = &cm->out[cm->out_head++ & (CM_OUT_MAX - 1)];
		*path = o->path;
		*msg = o->msg;
		fill_pkt(p, o->pkey, msg, now_ns);
		return true;
	}
	c = TAILQ_FIRST(&cm->tx);
	if (c == NULL)
		return false;
	san_cm_tx_del(cm, c);
	pc = cm_pdl_conn(cm, c);
	*path = pc->path;
	*msg = c->own;
	fill_pkt(p, pc->pkey, msg, now_ns);
	/* a message sent twice has an answer that may be to either */
	c->asked_ns = c->asked_ns == 0 ? now_ns : SAN_TIME_NEVER;
	return true;
}
