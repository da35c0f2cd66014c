/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two hosts, each connection management over packet delivery, and the cable between
 * them, for the tests of lib/cm. Messages travel as bytes, through
 * the builder and the parser; what becomes of each may be the test's to say.
 */

#include <rte_common.h>

#include "cable.h"
#include "cm_priv.h"
#include "unit/test_eal.h"

#define CM_NET_LATENCY_NS (10 * SAN_NS_PER_US)
#define CM_NET_SERVICE    0x1122334455667788ULL
#define CM_NET_PKEY       0x8001

/* A message that nobody answers: tries, and time until it is given up (RT-24). */
#define TRIES    14
#define TRIES_NS ((20 + 40 + 80 + 160 + 320 + 9 * 500) * SAN_NS_PER_MS)

struct cm_net;

/** What the test does to a packet before the faults of the link. */
struct cm_fate {
	uint8_t copies; /**< that are put on the link; 0: lost */
	uint64_t delay_ns[2];
};

/** *msg*: of a CM packet, else NULL. *fate* is filled for one copy after the usual time. */
typedef void (*cm_net_hook)(struct cm_net *net, int from, const struct san_wire_pkt *p,
			    const struct san_wire_cm *msg, struct cm_fate *fate);

/** Sees each event before anything is done about it. */
typedef void (*cm_net_on_event)(struct cm_net *net, int i, const struct san_cm_event *ev);

struct cm_host {
	struct san_pdl *pdl;
	struct san_cm *cm;
	struct san_pdl_conf pdl_conf; /**< tests may change both before cm_net_start() */
	struct san_cm_conf cm_conf;
	struct san_prng secret;
	struct san_ip ip;
	struct rte_ether_addr mac;
	struct san_cm_param param;         /**< for connect and accept */
	bool no_accept;                    /**< leave requests to the test */
	bool no_release;                   /**< leave released slots to the test */
	bool no_mac;                       /**< nobody resolves addresses */
	bool dead;                         /**< hears and says nothing */
	uint32_t nb[SAN_CM_EV_CLOSED + 1]; /**< events by type */
	struct san_cm_event last[SAN_CM_EV_CLOSED + 1];
	uint32_t nb_rx[SAN_CM_MSG_MAX], nb_tx[SAN_CM_MSG_MAX];
	uint64_t drops[SAN_DROP_MAX];
};

struct cm_net {
	struct cm_host h[2];
	uint64_t now_ns;
	struct cable cable;
	cm_net_hook hook;
	cm_net_on_event on_event;
	uint64_t arg[4]; /**< the hook's */
};

static inline uint32_t
cm_net_secret32(void *arg)
{
	return (uint32_t)(san_prng_u64(arg) >> 32);
}

static inline struct san_ip
cm_net_ip(int i, bool v6)
{
	struct san_ip ip = {.b = {[10] = 0xff, [11] = 0xff, 10, 0, 0, (uint8_t)(i + 1)}};

	if (v6)
		ip = (struct san_ip){.b = {0xfd, [15] = (uint8_t)(i + 1)}};
	return ip;
}

static inline struct san_cm_param
cm_net_param(void)
{
	return (struct san_cm_param){
		.ordered = true,
		.pkey = CM_NET_PKEY,
		.mtu = 1408,
		.req_win = 64,
		.data_win = 256,
		.first_win = 64,
		.max_txn = 128,
		.msg_limit = 100,
		.rnr_ms = 500,
		.keepalive_ms = 0,
	};
}

/** (Re)start a host: nothing of an earlier life is left but address and name. */
static inline void
cm_net_start(const struct cm_net *net, struct cm_host *h)
{
	san_cm_destroy(h->cm);
	san_pdl_destroy(h->pdl);
	h->cm = NULL;
	h->pdl = NULL;
	SAN_VERIFY(san_pdl_create(&h->pdl_conf, net->now_ns, &h->pdl) == 0);
	SAN_VERIFY(san_cm_create(&h->cm_conf, h->pdl, &h->cm) == 0);
}

/** The host with number *i*, which cm_net_start() starts. */
static inline void
cm_net_host_init(struct cm_host *h, int i, uint32_t max_conns, bool v6)
{
	struct san_cm_conf *conf = &h->cm_conf;

	h->ip = cm_net_ip(i, v6);
	h->mac = (struct rte_ether_addr){{2, 0, 0, 0, 0, (uint8_t)(i + 1)}};
	h->param = cm_net_param();
	san_pdl_conf_default(&h->pdl_conf);
	h->pdl_conf.max_conns = max_conns;
	h->pdl_conf.secret32 = cm_net_secret32;
	h->pdl_conf.secret_arg = &h->secret;
	h->pdl_conf.prng_seed = 1;
	san_cm_conf_default(conf);
	conf->max_conns = max_conns;
	conf->max_listeners = 4;
	conf->path.src_mac = h->mac;
	conf->path.dscp = 26;
	conf->ports[0] = (uint16_t)(50001 + i);
	conf->ports[1] = (uint16_t)(51001 + i);
	conf->nb_ports = 2;
	memset(conf->secret, 0x41 + i, sizeof(conf->secret));
}

static inline void
cm_net_init(struct cm_net *net, struct rte_mempool *pool, uint64_t seed, uint32_t max_conns,
	    bool v6)
{
	memset(net, 0, sizeof(*net));
	cable_init(&net->cable, pool, seed + 1);
	net->now_ns = 1000 * SAN_NS_PER_S;
	for (int i = 0; i < 2; i++) {
		san_prng_seed(&net->h[i].secret, i == 0 ? seed : ~seed);
		cm_net_host_init(&net->h[i], i, max_conns, v6);
		cm_net_start(net, &net->h[i]);
	}
}

static inline void
cm_net_fini(struct cm_net *net)
{
	cable_fini(&net->cable);
	for (uint32_t i = 0; i < 2; i++) {
		san_cm_destroy(net->h[i].cm);
		san_pdl_destroy(net->h[i].pdl);
	}
}

static inline void
cm_net_check(const struct cm_net *net)
{
	for (int i = 0; i < 2; i++) {
		san_cm_check(net->h[i].cm);
		san_pdl_check(net->h[i].pdl);
	}
}

/* ---- the link ---- */

/** Packets that went over the link. */
static inline uint64_t
cm_net_nb_sent(const struct cm_net *net)
{
	return net->cable.to[0].stats.nb_pkts + net->cable.to[1].stats.nb_pkts;
}

/** Put a packet on the link; *m* is the link's. */
static inline void
cm_net_send(struct cm_net *net, int from, const struct san_wire_pkt *p,
	    const struct san_wire_cm *msg, struct rte_mbuf *m)
{
	struct cm_fate fate = {.copies = 1, .delay_ns = {CM_NET_LATENCY_NS}};

	if (net->hook != NULL)
		net->hook(net, from, p, msg, &fate);
	if (msg != NULL)
		net->h[from].nb_tx[msg->msg]++;
	for (uint8_t i = 0; i < fate.copies; i++)
		cable_send(&net->cable, 1 - from,
			   rte_pktmbuf_copy(m, net->cable.net.pool, 0, UINT32_MAX),
			   fate.delay_ns[i], net->now_ns);
	rte_pktmbuf_free(m);
}

static inline struct rte_mbuf *
cm_net_mbuf(struct cm_net *net)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(net->cable.net.pool);

	SAN_VERIFY(m != NULL);
	return m;
}

/** A CM packet as it comes from *path*; a test may forge any. */
static inline struct rte_mbuf *
cm_net_build(struct cm_net *net, const struct san_wire_path *path, const struct san_wire_pkt *p,
	     const struct san_wire_cm *msg)
{
	struct rte_mbuf *m = cm_net_mbuf(net);

	san_wire_cm_build(m, path, p, msg);
	san_wire_icrc_seal(m);
	return m;
}

static inline void
cm_net_tx_cm(struct cm_net *net, int i)
{
	struct cm_host *h = &net->h[i];
	struct san_wire_path path;
	struct san_wire_pkt p;
	struct san_wire_cm msg;

	while (san_cm_tx_next(h->cm, &path, &p, &msg, net->now_ns)) {
		if (rte_is_zero_ether_addr(&path.dst_mac)) {
			if (!h->no_mac)
				san_cm_fsm_resolved(h->cm, &path.dst, &net->h[1 - i].mac,
						    net->now_ns);
			continue;
		}
		SAN_VERIFY(rte_is_same_ether_addr(&path.dst_mac, &net->h[1 - i].mac));
		cm_net_send(net, i, &p, &msg, cm_net_build(net, &path, &p, &msg));
	}
}

/** ACKs and PROBEs. */
static inline void
cm_net_tx_acks(struct cm_net *net, int i)
{
	struct cm_host *h = &net->h[i];
	struct san_pdl_conn *c;
	struct san_wire_pkt p;
	struct san_wire_ack ack;
	struct rte_mbuf *m;

	while ((c = san_pdl_ack_next(h->pdl)) != NULL) {
		memset(&p, 0, sizeof(p));
		memset(&ack, 0, sizeof(ack));
		san_pdl_ack_fill(h->pdl, c, &p, &ack, net->now_ns);
		m = cm_net_mbuf(net);
		if (p.op == SAN_OP_ACK)
			san_wire_build_ack(m, &c->path, &p, &ack);
		else
			san_wire_build(m, &c->path, &p);
		san_wire_icrc_seal(m);
		cm_net_send(net, i, &p, NULL, m);
	}
}

/** One pull request from *slot* of host *i*, of which nothing else is true. */
static inline uint32_t
cm_net_tx_data(struct cm_net *net, int i, uint16_t slot)
{
	struct cm_host *h = &net->h[i];
	struct san_pdl_conn *c = &h->pdl->conns[slot];
	struct san_pdl_entry e = {.op = SAN_OP_PULL_REQ};
	struct san_pdl_room room;
	struct san_wire_pkt p;
	struct rte_mbuf *m;

	san_pdl_tx_room(h->pdl, c, net->now_ns, &room);
	SAN_VERIFY(room.nb_req > 0);
	san_pdl_tx_assign(h->pdl, c, &e, net->now_ns);
	memset(&p, 0, sizeof(p));
	p.op = SAN_OP_PULL_REQ;
	p.psn = e.psn;
	p.length = 1;
	san_pdl_tx_header(h->pdl, c, &p, net->now_ns);
	san_pdl_sched_end(h->pdl, c, false);
	san_pdl_conn_arm(h->pdl, c);
	m = cm_net_mbuf(net);
	san_wire_build(m, &c->path, &p);
	san_wire_icrc_seal(m);
	cm_net_send(net, i, &p, NULL, m);
	return e.psn;
}

/* ---- the hosts ---- */

static inline void
cm_net_events(struct cm_net *net, int i)
{
	struct cm_host *h = &net->h[i];
	struct san_cm_event ev;

	while (san_cm_event_next(h->cm, &ev)) {
		SAN_VERIFY(ev.type >= SAN_CM_EV_CONNECT_REQUEST && ev.type <= SAN_CM_EV_CLOSED);
		h->nb[ev.type]++;
		h->last[ev.type] = ev;
		if (net->on_event != NULL)
			net->on_event(net, i, &ev);
		if (ev.type == SAN_CM_EV_CONNECT_REQUEST && !h->no_accept)
			san_cm_fsm_accept_peer(h->cm, ev.slot, &h->param, 1000 + ev.slot,
					       net->now_ns);
		if (ev.type >= SAN_CM_EV_DISCONNECTED && !h->no_release)
			san_cm_release(h->cm, ev.slot, net->now_ns);
	}
}

static inline enum san_drop
cm_net_rx_transport(struct cm_net *net, int i, struct san_wire_pkt *p,
		    const struct san_wire_ack *ack)
{
	struct cm_host *h = &net->h[i];
	struct san_pdl_conn *c = NULL;
	enum san_drop drop = san_pdl_rx_check(h->pdl, p, ack, net->now_ns, &c);

	if (drop == SAN_DROP_STATE && san_cm_rx_implicit_rtu(h->cm, c->slot, net->now_ns))
		drop = san_pdl_rx_check(h->pdl, p, ack, net->now_ns, &c);
	if (drop == SAN_DROP_CID || drop == SAN_DROP_TAG)
		san_cm_rx_answer_reset(h->cm, p, net->now_ns);
	if (drop == SAN_DROP_NONE)
		san_pdl_rx_commit(h->pdl, c, p, SAN_RX_ACKED, net->now_ns);
	h->pdl->nb_acked = 0;
	if (c != NULL)
		san_pdl_conn_arm(h->pdl, c);
	return drop;
}

/** Host *i* receives *m*, which is freed. */
static inline enum san_drop
cm_net_rx(struct cm_net *net, int i, struct rte_mbuf *m)
{
	struct cm_host *h = &net->h[i];
	struct san_wire_pkt p;
	struct san_wire_ack ack;
	struct san_wire_cm msg;
	enum san_drop drop = san_wire_parse(m, SAN_WIRE_PORT, &p, &ack);

	SAN_VERIFY(drop == SAN_DROP_NONE);
	if (p.op == SAN_OP_CM) {
		if (san_wire_cm_parse(m, &p, &msg) == SAN_DROP_NONE)
			h->nb_rx[msg.msg]++;
		drop = san_cm_rx(h->cm, m, &p, net->now_ns);
	} else {
		drop = cm_net_rx_transport(net, i, &p, p.op == SAN_OP_ACK ? &ack : NULL);
	}
	h->drops[drop]++;
	rte_pktmbuf_free(m);
	return drop;
}

static inline void
cm_net_timers(struct cm_net *net, int i)
{
	struct cm_host *h = &net->h[i];
	struct san_pdl_conn *c;
	struct san_timer *t;

	while ((t = san_wheel_poll(&h->pdl->wheel, net->now_ns)) != NULL) {
		c = container_of(t, struct san_pdl_conn, timer);
		san_pdl_rtx_on_timer(h->pdl, c, net->now_ns);
		if (c->failed)
			san_cm_fsm_failed(h->cm, c->slot, RTSAN_R_TIMEOUT, net->now_ns);
		san_cm_fsm_on_timer(h->cm, c->slot, net->now_ns);
		if (c->state != SAN_CONN_FREE)
			san_pdl_conn_arm(h->pdl, c);
		cm_net_events(net, i);
	}
}

/** Let both hosts do what they can without time passing. */
static inline void
cm_net_settle(struct cm_net *net)
{
	for (int i = 0; i < 2; i++) {
		if (net->h[i].dead)
			continue;
		cm_net_events(net, i);
		cm_net_timers(net, i);
		cm_net_tx_cm(net, i);
		cm_net_tx_acks(net, i);
		cm_net_events(net, i);
	}
}

/** When something happens next. */
static inline uint64_t
cm_net_deadline_ns(struct cm_net *net)
{
	uint64_t t = cable_next_ns(&net->cable);

	for (int i = 0; i < 2; i++) {
		if (!net->h[i].dead)
			t = san_time_min(t, san_wheel_deadline_ns(&net->h[i].pdl->wheel));
	}
	return t;
}

/** Virtual time passes until *until_ns*. */
static inline void
cm_net_run_until(struct cm_net *net, uint64_t until_ns)
{
	struct rte_mbuf *m;
	uint64_t t;
	int to;

	for (;;) {
		cm_net_settle(net);
		t = cm_net_deadline_ns(net);
		if (t > until_ns)
			break;
		net->now_ns = RTE_MAX(t, net->now_ns);
		while ((m = cable_arrival(&net->cable, &to, net->now_ns)) != NULL) {
			if (net->h[to].dead) {
				rte_pktmbuf_free(m);
				continue;
			}
			cm_net_rx(net, to, m);
			cm_net_settle(net);
			cm_net_check(net);
		}
	}
	net->now_ns = until_ns;
	cm_net_check(net);
}

static inline void
cm_net_run(struct cm_net *net, uint64_t ns)
{
	cm_net_run_until(net, net->now_ns + ns);
}

/* ---- what many tests begin with ---- */

static inline void
cm_net_listen(struct cm_net *net, int i)
{
	SAN_VERIFY(san_cm_listen(net->h[i].cm, CM_NET_SERVICE, CM_NET_PKEY, 8, 77) == 0);
}

/** Host *i* starts to connect to the other. */
static inline uint16_t
cm_net_connect(struct cm_net *net, int i, uint64_t cookie)
{
	struct cm_host *h = &net->h[i];
	uint16_t slot = UINT16_MAX;

	SAN_VERIFY(san_cm_fsm_connect(h->cm, &h->ip, &net->h[1 - i].ip, CM_NET_SERVICE, &h->param,
				      cookie, net->now_ns, &slot) == 0);
	return slot;
}

/** From host 0 to host 1, until both are open; returns the slots. */
static inline void
cm_net_open(struct cm_net *net, uint16_t slot[2])
{
	slot[0] = cm_net_connect(net, 0, 42);
	cm_net_run(net, 10 * SAN_NS_PER_MS);
	slot[1] = net->h[1].last[SAN_CM_EV_ESTABLISHED].slot;
	SAN_VERIFY(san_cm_state(net->h[0].cm, slot[0]) == SAN_CM_ESTABLISHED);
	SAN_VERIFY(san_cm_state(net->h[1].cm, slot[1]) == SAN_CM_ESTABLISHED);
}

/** Path of a packet that claims to come from host *from*. */
static inline struct san_wire_path
cm_net_path(const struct cm_net *net, int from)
{
	const struct cm_host *h = &net->h[from];

	return (struct san_wire_path){
		.src_mac = h->mac,
		.dst_mac = net->h[1 - from].mac,
		.src = h->ip,
		.dst = net->h[1 - from].ip,
		.src_port = 55555,
		.dst_port = SAN_WIRE_PORT,
	};
}

/** Host 1 - *from* receives a message forged in the name of *from*. */
static inline enum san_drop
cm_net_forge(struct cm_net *net, int from, const struct san_wire_cm *msg)
{
	struct san_wire_path path = cm_net_path(net, from);
	struct san_wire_pkt p = {
		.op = SAN_OP_CM, .dcid = SAN_WIRE_CID_CM, .pkey = CM_NET_PKEY, .tag = msg->dst_tag};

	return cm_net_rx(net, 1 - from, cm_net_build(net, &path, &p, msg));
}

/** A REQ as host 0 would send it; no connection of host 0 is behind it. */
static inline struct san_wire_cm
cm_net_req(uint32_t xid)
{
	return (struct san_wire_cm){
		.msg = SAN_CM_REQ,
		.flags = SAN_CM_F_ORDERED,
		.xid = xid,
		.src_cid = 0x123456,
		.src_tag = 0xdeadbeef,
		.req_psn = 100,
		.data_psn = 200,
		.first_rsn = 300,
		.mtu = 1408,
		.req_win = 64,
		.data_win = 256,
		.first_win = 64,
		.max_txn = 128,
		.service = CM_NET_SERVICE,
	};
}

/** A packet from host 0 to host 1 for a connection that is not there. */
static inline struct san_wire_pkt
cm_net_stray(const struct cm_net *net, uint8_t op)
{
	return (struct san_wire_pkt){
		.op = op,
		.pkey = CM_NET_PKEY,
		.src_port = 50505,
		.dcid = 0xabcdef,
		.tag = 0x11223344,
		.psn = 0xfffffffe,
		.src = net->h[0].ip,
		.dst = net->h[1].ip,
		.src_mac = net->h[0].mac,
	};
}
