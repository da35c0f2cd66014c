/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Outgoing messages. A connection has at most one to send, which is built from its record when it
 * is taken. Answers that belong to no connection wait in a small ring. Stateless answers are
 * rate-limited by host: cookies, rejections, RESET. (RULE-17, RT-36)
 */

#include "cm_priv.h"

/* ---- hosts that have proved their address: by a cookie, or by a connection's tag ---- */

/** The network of a host: 24 bits of an IPv4 address, 64 of an IPv6 address. */
static struct san_ip
cm_tx_net_of(const struct san_ip *host)
{
	struct san_ip net = *host;

	memset(&net.b[san_wire_ip_is_v4(host) ? 15 : 8], 0, san_wire_ip_is_v4(host) ? 1 : 8);
	return net;
}

static struct san_ip *
known_place_of(struct san_cm *cm, const struct san_ip *ip)
{
	return &cm->known[san_inet_hash(ip, cm->answers.seed) % CM_KNOWN];
}

void
san_cm_tx_note_known(struct san_cm *cm, const struct san_ip *host)
{
	struct san_ip net = cm_tx_net_of(host);

	*known_place_of(cm, &net) = net;
	*known_place_of(cm, host) = *host;
}

bool
san_cm_tx_rate_take(struct san_cm *cm, struct san_inet_rate *rate, const struct san_ip *host,
		    uint64_t now_ns)
{
	struct san_ip net = cm_tx_net_of(host);
	enum san_inet_trust trust = SAN_INET_STRANGER;

	if (san_wire_ip_eq(known_place_of(cm, host), host))
		trust = SAN_INET_KNOWN;
	else if (san_wire_ip_eq(known_place_of(cm, &net), &net))
		trust = SAN_INET_NET;
	return san_inet_rate_take(rate, host, trust, now_ns);
}

/* ---- messages ---- */

static void
cm_tx_fill_private(struct san_wire_cm *msg, const struct cm_setup *setup)
{
	msg->private_len = setup->private_len;
	memcpy(msg->private_data, setup->private_data, setup->private_len);
}

static void
cm_tx_fill_offer(const struct san_cm *cm, const struct san_cm_conn *c, struct san_wire_cm *msg)
{
	const struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);
	const struct cm_setup *setup = san_cm_setup(cm, c);

	msg->flags = setup->flags;
	/* The first PSNs: none is acknowledged while the peer still needs the offer. */
	msg->req_psn = pc->tx[SAN_WIN_REQ].base;
	msg->data_psn = pc->tx[SAN_WIN_DATA].base;
	msg->first_rsn = setup->agreed.first_rsn_tx;
	msg->features = cm->conf.features | (setup->is_stream ? SAN_CM_FEAT_STREAM : 0) |
		(c->uid != RTSAN_UID_NONE ? SAN_CM_FEAT_USER : 0);
	msg->uid = c->uid;
	msg->mtu = setup->mtu;
	msg->req_win = setup->agreed.rx_req_win;
	msg->data_win = setup->agreed.rx_data_win;
	msg->first_win = setup->first_win;
	msg->max_txn = setup->max_txn;
	msg->rnr_ms = setup->agreed.rnr_tx_ms;
	msg->keepalive_ms = c->keepalive_ms;
	msg->service = setup->service;
	memcpy(msg->cookie, setup->cookie, sizeof(msg->cookie));
	/* Source ports that bring the peer's packets here: always the same ones. (RULE-13) */
	if (cm->conf.steer != NULL)
		msg->nb_ports = san_cm_steer_udp_ports(
			cm->conf.steer, cm->conf.queue, &pc->path.dst, &pc->path.src,
			cm->conf.path.dst_port, pc->tag >> 1, msg->ports);
	if (msg->nb_ports == 0) {
		msg->nb_ports = (uint8_t)cm->conf.nb_ports;
		memcpy(msg->ports, cm->conf.ports, sizeof(msg->ports));
	}
	cm_tx_fill_private(msg, setup);
}

void
san_cm_tx_build(const struct san_cm *cm, const struct san_cm_conn *c, uint8_t type,
		struct san_wire_cm *msg)
{
	const struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);

	*msg = (struct san_wire_cm){
		.msg = type, .xid = c->xid, .dst_cid = c->peer_cid, .dst_tag = c->peer_tag};
	if (type == SAN_CM_REJ) { /* it has no connection to name */
		msg->reason = c->reason;
		cm_tx_fill_private(msg, san_cm_setup(cm, c));
		return;
	}
	msg->src_cid = pc->cid;
	msg->src_tag = pc->tag;
	if (type == SAN_CM_REQ || type == SAN_CM_REP)
		cm_tx_fill_offer(cm, c, msg);
}

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

static bool
out_add(struct san_cm *cm, const struct san_wire_path *path, uint16_t pkey,
	const struct san_wire_cm *msg)
{
	struct cm_out *o = &cm->out[cm->out_tail & (CM_OUT_MAX - 1)];

	if (cm->out_tail - cm->out_head == CM_OUT_MAX)
		return false;
	cm->out_tail++;
	*o = (struct cm_out){.path = *path, .pkey = pkey, .msg = *msg};
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
san_cm_tx_farewell(struct san_cm *cm, const struct san_cm_conn *c, uint8_t type, uint8_t reason)
{
	const struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);
	struct san_wire_cm msg;

	san_cm_tx_build(cm, c, type, &msg);
	msg.reason = reason;
	if (!out_add(cm, &pc->path, pc->pkey, &msg))
		cm->drops[SAN_DROP_CM_RATE]++;
}

/** Common header of a CM packet: to the well-known CID, with the receiver's tag. (RT-24) */
static void
fill_pkt(struct san_wire_pkt *p, uint16_t pkey, const struct san_wire_cm *msg, uint64_t now_ns)
{
	*p = (struct san_wire_pkt){
		.op = SAN_OP_CM,
		.dcid = SAN_WIRE_CID_CM,
		.pkey = pkey,
		.tag = msg->dst_tag,
		.tx_time = (uint32_t)now_ns,
	};
}

bool
san_cm_tx_pending(const struct san_cm *cm)
{
	return cm->out_head != cm->out_tail || !TAILQ_EMPTY(&cm->tx);
}

bool
san_cm_tx_next(struct san_cm *cm, struct san_wire_path *path, struct san_wire_pkt *p,
	       struct san_wire_cm *msg, uint64_t now_ns)
{
	const struct san_pdl_conn *pc;
	const struct cm_out *o;
	struct cm_setup *setup;
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
	pc = san_cm_pdl_conn(cm, c);
	*path = pc->path;
	san_cm_tx_build(cm, c, c->msg, msg);
	fill_pkt(p, pc->pkey, msg, now_ns);
	if (san_cm_is_setup(cm, c)) {
		setup = san_cm_setup(cm, c);
		/* The answer to a message sent twice may be to either copy. */
		setup->asked_ns = setup->asked_ns == 0 ? now_ns : SAN_TIME_NEVER;
	}
	return true;
}
