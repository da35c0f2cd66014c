/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Received messages: finds the connection that a message belongs to, checks its validity, and sends
 * the answers that need no connection. cm_fsm.c has the effects on a connection. (RT-24, RT-29;
 * RULE-17)
 *
 * A message that names our CID must carry our tag, and come from our peer's address in our
 * partition. Its xid must be that of the attempt. Once the peer's CID and tag are known, a message
 * that has them must have the same ones. A RESET does not name our CID: it repeats CID and tag of
 * our packet.
 */

#include "cm_priv.h"

/** Answer the sender of s->msg without state. */
static enum san_drop
cm_rx_answer(struct san_cm *cm, const struct cm_step *s, struct san_wire_cm *reply)
{
	/* Check this before the MAC, which costs more than anything else here (RT-36). */
	if (cm->out_tail - cm->out_head == CM_OUT_MAX ||
	    !san_cm_tx_rate_take(cm, &cm->answers, &s->pkt->src, s->now_ns))
		return SAN_DROP_CM_RATE;
	if (reply->msg == SAN_CM_COOKIE)
		san_cm_cookie_make(cm, s->pkt, s->msg, s->now_ns, reply->cookie);
	reply->xid = s->msg->xid;
	reply->src_cid = s->msg->dst_cid;
	reply->src_tag = s->msg->dst_tag;
	reply->dst_cid = s->msg->src_cid;
	reply->dst_tag = s->msg->src_tag;
	san_cm_tx_reply(cm, s->pkt, san_cm_reply_udp_port(s->pkt, s->msg), reply);
	return SAN_DROP_NONE;
}

static enum san_drop
answer_rej(struct san_cm *cm, const struct cm_step *s, uint8_t reason)
{
	struct san_wire_cm rej = {.msg = SAN_CM_REJ, .reason = reason};

	return cm_rx_answer(cm, s, &rej);
}

/* ---- REQ ---- */

/** Store the peer's offer until both offers are known. */
static void
keep_offer(const struct san_cm *cm, struct san_cm_conn *c, const struct san_wire_cm *msg)
{
	struct cm_setup *setup = san_cm_setup(cm, c);
	struct san_cm_agreed *a = &setup->agreed;

	/* the connecting side decides the order */
	if (c->passive)
		setup->flags = msg->flags & SAN_CM_F_ORDER;
	a->pdl.ordered = (setup->flags & SAN_CM_F_ORDERED) != 0;
	a->pdl.relaxed = (setup->flags & SAN_CM_F_RELAXED) != 0;
	a->pdl.ends = (setup->flags & SAN_CM_F_ENDS) != 0;
	c->peer_cid = msg->src_cid;
	c->peer_tag = msg->src_tag;
	c->peer_uid = msg->uid;
	a->pdl.dcid = msg->src_cid;
	a->pdl.dtag = msg->src_tag;
	a->pdl.req_psn = msg->req_psn;
	a->pdl.data_psn = msg->data_psn;
	a->pdl.mtu = msg->mtu;
	a->pdl.tx_req_win = msg->req_win;
	a->pdl.tx_data_win = msg->data_win;
	a->pdl.first_win = msg->first_win;
	a->pdl.nb_ports = msg->nb_ports;
	memcpy(a->pdl.ports, msg->ports, sizeof(a->pdl.ports));
	a->first_rsn_rx = msg->first_rsn;
	a->n_tx = msg->max_txn;
	a->rnr_rx_ms = msg->rnr_ms;
	a->features = msg->features;
}

/** Create a connection from a REQ whose source address the cookie has verified. */
static enum san_drop
add_request(struct san_cm *cm, struct cm_listener *l, const struct cm_step *s)
{
	const struct san_wire_cm *msg = s->msg;
	const struct san_wire_pkt *p = s->pkt;
	struct cm_setup *setup;
	struct san_cm_conn *c;

	if (!san_cm_hash_free(cm, &p->src, msg->src_cid, msg->src_tag))
		return SAN_DROP_CM_STALE;
	if (!san_cm_listen_may_wait(cm, l, &p->src))
		return answer_rej(cm, s, RTSAN_R_BACKLOG);
	if (san_cm_conn_add(cm, &p->dst, &p->src, p->pkey, &c) != 0)
		return answer_rej(cm, s, RTSAN_R_RESOURCES);
	c->passive = true;
	c->listener = (uint16_t)(l - cm->listeners);
	san_cm_pdl_conn(cm, c)->path.dst_mac = p->src_mac;
	san_cm_pdl_conn(cm, c)->path.src_port = san_cm_reply_udp_port(p, msg);
	keep_offer(cm, c, msg);
	c->xid = msg->xid;
	setup = san_cm_setup(cm, c);
	setup->private_len = msg->private_len;
	memcpy(setup->private_data, msg->private_data, msg->private_len);
	san_cm_hash_add(cm, c);
	san_cm_fsm_step(cm, c, s);
	return SAN_DROP_NONE;
}

static enum san_drop
rx_req(struct san_cm *cm, const struct cm_step *s)
{
	const struct san_wire_cm *msg = s->msg;
	const struct san_wire_pkt *p = s->pkt;
	struct san_wire_cm cookie = {.msg = SAN_CM_COOKIE, .flags = SAN_CM_F_COOKIE};
	struct san_cm_conn *c;
	struct cm_listener *l;
	uint8_t reason;

	if (msg->flags & SAN_CM_F_COOKIE) {
		if (!san_cm_tx_rate_take(cm, &cm->checks, &p->src, s->now_ns))
			return SAN_DROP_CM_RATE;
		if (!san_cm_cookie_valid(cm, p, msg, s->now_ns)) {
			/* it may have expired during a long wait for accept: send a new one */
			cm_rx_answer(cm, s, &cookie);
			return SAN_DROP_CM_COOKIE;
		}
		san_cm_tx_note_known(cm, &p->src);
		c = san_cm_hash_find(cm, &p->src, msg->src_cid, msg->src_tag);
		/* an earlier copy of this REQ may have created it */
		if (c != NULL && c->passive && c->xid == msg->xid &&
		    (!c->is_ghost || s->now_ns < c->expires_ns))
			return san_cm_fsm_step(cm, c, s) ? SAN_DROP_NONE : SAN_DROP_CM_STALE;
	}
	l = san_cm_listen_find(cm, msg->service, p->pkey, &reason);
	if (l == NULL) {
		answer_rej(cm, s, reason);
		return reason == RTSAN_R_PKEY ? SAN_DROP_PKEY : SAN_DROP_NONE;
	}
	if (!san_cm_offer_valid(msg))
		return answer_rej(cm, s, RTSAN_R_PARAMETER);
	if (!(msg->flags & SAN_CM_F_COOKIE))
		return cm_rx_answer(cm, s, &cookie);
	return add_request(cm, l, s);
}

/* ---- messages to a connection ---- */

static bool
is_from_peer(const struct san_pdl_conn *pc, const struct san_wire_pkt *p)
{
	return san_wire_ip_eq(&p->src, &pc->path.dst) && san_wire_ip_eq(&p->dst, &pc->path.src);
}

/** Find the connection that *msg* names, and check the sender. */
static enum san_drop
find_conn(struct san_cm *cm, const struct san_wire_pkt *p, const struct san_wire_cm *msg,
	  struct san_cm_conn **out)
{
	struct san_pdl_conn *pc = san_pdl_conn_find(cm->pdl, msg->dst_cid);
	struct san_cm_conn *c;

	*out = NULL;
	if (pc == NULL)
		return SAN_DROP_CM_STALE;
	if (pc->tag != msg->dst_tag)
		return SAN_DROP_TAG;
	if (!is_from_peer(pc, p))
		return SAN_DROP_PEER;
	if (pc->pkey != p->pkey)
		return SAN_DROP_PKEY;
	c = &cm->conns[pc->slot];
	if (c->xid != msg->xid)
		return SAN_DROP_CM_STALE;
	/* Once known, the peer's CID and tag must not change. */
	if (c->peer_tag != 0 && msg->src_tag != 0 &&
	    (c->peer_tag != msg->src_tag || c->peer_cid != msg->src_cid))
		return SAN_DROP_CM_STALE;
	*out = c;
	return SAN_DROP_NONE;
}

/** The acceptor's offer completes the agreement, or ends the attempt. */
static bool
rx_rep(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	struct cm_step end = *s;

	if (c->state == SAN_CM_REQ_COOKIE_SENT) {
		/* an acceptor without streams omits their bit; CID and tag must be unused here */
		if (!san_cm_offer_valid(s->msg) ||
		    !san_cm_hash_free(cm, san_cm_peer(cm, c), s->msg->src_cid, s->msg->src_tag) ||
		    san_cm_has_stream(s->msg->features) != san_cm_setup(cm, c)->is_stream) {
			end.in = CM_IN_REJ;
			end.reason = RTSAN_R_PARAMETER;
			answer_rej(cm, s, RTSAN_R_PARAMETER);
			return san_cm_fsm_step(cm, c, &end);
		}
		/* No memory for private data: ignore the REP. The peer repeats it later. */
		if (!san_cm_private_keep(cm, c, s->msg))
			return false;
		keep_offer(cm, c, s->msg);
	}
	return san_cm_fsm_step(cm, c, s);
}

static enum san_drop
cm_rx_conn_msg(struct san_cm *cm, const struct cm_step *s)
{
	const struct san_wire_cm *msg = s->msg;
	struct san_wire_cm drep = {.msg = SAN_CM_DREP};
	struct san_cm_conn *c;
	enum san_drop drop;
	bool taken;

	drop = find_conn(cm, s->pkt, msg, &c);
	/* Answer, so that the peer does not wait for a connection that no longer exists here. */
	if (drop == SAN_DROP_CM_STALE && msg->msg == SAN_CM_REP)
		answer_rej(cm, s, RTSAN_R_STALE);
	if (drop == SAN_DROP_CM_STALE && msg->msg == SAN_CM_DREQ)
		cm_rx_answer(cm, s, &drep);
	if (drop != SAN_DROP_NONE)
		return drop;
	san_cm_tx_note_known(cm, &s->pkt->src);
	taken = msg->msg == SAN_CM_REP ? rx_rep(cm, c, s) : san_cm_fsm_step(cm, c, s);
	return taken ? SAN_DROP_NONE : SAN_DROP_CM_STALE;
}

/* ---- RESET ---- */

/** True if we sent the packet that this RESET answers. */
static bool
is_reset_valid(const struct san_cm *cm, const struct san_cm_conn *c, const struct cm_step *s)
{
	const struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);

	if (c->is_ghost || !is_from_peer(pc, s->pkt) || pc->pkey != s->pkt->pkey)
		return false;
	if (c->state == SAN_CM_DREQ_SENT)
		return true;
	if (!c->is_agreed)
		return false;
	return san_pdl_rtx_is_outstanding(pc, SAN_WIN_REQ, s->msg->data_psn) ||
		san_pdl_rtx_is_outstanding(pc, SAN_WIN_DATA, s->msg->data_psn) ||
		/* a PROBE carries the next PSN */
		(pc->nb_probes != 0 && s->msg->data_psn == pc->tx[SAN_WIN_DATA].next);
}

static enum san_drop
rx_reset(struct san_cm *cm, const struct cm_step *s)
{
	struct san_cm_conn *c = san_cm_hash_find(cm, &s->pkt->src, s->msg->src_cid,
						 s->msg->src_tag);

	if (c == NULL || !is_reset_valid(cm, c, s))
		return SAN_DROP_RESET_STALE;
	return san_cm_fsm_step(cm, c, s) ? SAN_DROP_NONE : SAN_DROP_RESET_STALE;
}

__rte_noinline void
san_cm_rx_answer_reset(struct san_cm *cm, const struct san_wire_pkt *p, uint64_t now_ns)
{
	struct san_wire_cm reset = {.msg = SAN_CM_RESET, .reason = RTSAN_R_STALE};

	cm->now_ns = now_ns;
	/* A RESET is never answered, so two sides cannot answer each other forever. */
	if (p->op == SAN_OP_CM || p->op == SAN_OP_NACK || p->op == SAN_OP_CNP ||
	    san_cm_is_multicast(&p->src))
		return;
	reset.src_cid = p->dcid;
	reset.src_tag = p->tag;
	reset.data_psn = p->psn;
	if (!san_cm_tx_rate_take(cm, &cm->answers, &p->src, now_ns) ||
	    !san_cm_tx_reply(cm, p, p->src_port, &reset))
		cm->drops[SAN_DROP_CM_RATE]++;
}

/* ---- any message ---- */

static const enum cm_input input_of[SAN_CM_MSG_MAX] = {
	[SAN_CM_REQ] = CM_IN_REQUEST,
	[SAN_CM_COOKIE] = CM_IN_COOKIE,
	[SAN_CM_REP] = CM_IN_REP,
	[SAN_CM_RTU] = CM_IN_RTU,
	[SAN_CM_REJ] = CM_IN_REJ,
	[SAN_CM_DREQ] = CM_IN_DREQ,
	[SAN_CM_DREP] = CM_IN_DREP,
	[SAN_CM_RESET] = CM_IN_RESET,
};

enum san_drop
san_cm_rx(struct san_cm *cm, const struct rte_mbuf *m, const struct san_wire_pkt *p,
	  uint64_t now_ns)
{
	struct san_wire_cm msg;
	struct cm_step s = {.pkt = p, .msg = &msg, .now_ns = now_ns};
	enum san_drop drop;

	cm->now_ns = now_ns;
	drop = san_wire_cm_parse(m, p, &msg);
	if (drop != SAN_DROP_NONE)
		return drop;
	if (san_cm_is_multicast(&p->src))
		return SAN_DROP_PEER;
	s.in = input_of[msg.msg];
	s.reason = msg.reason;
	if (msg.msg == SAN_CM_REQ)
		return rx_req(cm, &s);
	if (msg.msg == SAN_CM_RESET)
		return rx_reset(cm, &s);
	return cm_rx_conn_msg(cm, &s);
}

__rte_noinline bool
san_cm_rx_implicit_rtu(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_RTU, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);

	return c != NULL && c->state == SAN_CM_REP_SENT && san_cm_fsm_step(cm, c, &s);
}
