/* SPDX-License-Identifier: BSD-3-Clause */

/* The states of a connection between two hosts, message by message. (RT-1, RT-23, RT-24) */

#include "test_cm.h"

UNIT_FIXTURE(.setup = cm_setup, .teardown = cm_teardown);

static enum san_cm_state
state_of(int i, uint16_t slot)
{
	return san_cm_state(net.h[i].cm, slot);
}

/** Nothing is left on either side. */
static void
assert_clean(void)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(net.h[i].pdl->nb_conns, 0);
}

/** Both sides have ended once, in an orderly way. */
static void
assert_ended(uint8_t type0, uint8_t type1)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(net.h[i].nb[SAN_CM_EV_CLOSED] +
					 net.h[i].nb[SAN_CM_EV_DISCONNECTED],
				 1);
	}
	assert_int_equal(net.h[0].nb[type0], 1);
	assert_int_equal(net.h[1].nb[type1], 1);
	assert_int_equal(net.h[0].last[type0].reason, RTSAN_R_NONE);
	assert_int_equal(net.h[1].last[type1].reason, RTSAN_R_NONE);
	assert_clean();
}

/* ---- connecting ---- */

UNIT_CASE(connect__establishes_both) /* RT-1 */
{
	uint16_t slot[2];

	net.h[0].param.private_len = 3;
	memcpy(net.h[0].param.private_data, "abc", 3);
	net.h[1].param.private_len = 64;
	memset(net.h[1].param.private_data, 'x', 64);
	cm_net_open(&net, slot);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_int_equal(net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].listener, 77);
	assert_int_equal(net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].private_len, 3);
	assert_memory_equal(net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].private_data, "abc", 3);
	assert_true(san_wire_ip_eq(&net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].peer, &net.h[0].ip));
	assert_established(1, 1);
	assert_int_equal(net.h[0].last[SAN_CM_EV_ESTABLISHED].cookie, 42);
	assert_int_equal(net.h[1].last[SAN_CM_EV_ESTABLISHED].cookie, 1000 + slot[1]);
	assert_int_equal(net.h[0].last[SAN_CM_EV_ESTABLISHED].private_len, 64);
	assert_int_equal(net.h[0].last[SAN_CM_EV_ESTABLISHED].private_data[63], 'x');
	/* REQ, COOKIE, REQ, REP, RTU, each once */
	assert_int_equal(net.h[0].nb_tx[SAN_CM_REQ], 2);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_COOKIE], 1);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_REP], 1);
	assert_int_equal(net.h[0].nb_tx[SAN_CM_RTU], 1);
	/* nothing is repeated when both are open */
	cm_net_run(&net, 100 * SAN_NS_PER_S);
	assert_int_equal(cm_net_nb_sent(&net), 5);
}

UNIT_CASE(connect__agrees_on_parameters)
{
	struct san_cm_param *a = &net.h[0].param, *b = &net.h[1].param;
	const struct san_pdl_conn *c[2];
	const struct san_cm_agreed *g[2];
	uint16_t slot[2];

	a->mtu = 4096;
	b->mtu = 1408;
	a->max_txn = 32;
	b->max_txn = 64;
	a->req_win = 2;
	a->data_win = 1024;
	b->req_win = 256;
	b->data_win = 8;
	a->first_win = 2;
	b->first_win = 300;
	a->rnr_ms = 11;
	b->rnr_ms = 22;
	a->msg_limit = 5;
	b->msg_limit = 6;
	a->ordered = true;
	a->relaxed = true;
	b->ordered = false; /* the connecting side decides */
	cm_net_open(&net, slot);
	for (int i = 0; i < 2; i++) {
		c[i] = &net.h[i].pdl->conns[slot[i]];
		g[i] = san_cm_agreed(net.h[i].cm, slot[i]);
		assert_non_null(g[i]);
		assert_int_equal(g[i]->pdl.mtu, 1408);
		assert_int_equal(g[i]->n_tx, 32);
		assert_int_equal(g[i]->n_rx, 32);
		assert_true(g[i]->pdl.ordered && g[i]->pdl.relaxed);
		assert_int_equal(c[i]->state, SAN_CONN_OPEN);
		assert_int_equal(c[i]->pkey, CM_NET_PKEY);
	}
	for (int i = 0; i < 2; i++) {
		/* RT-1: the CID that the other side allocated */
		assert_int_equal(g[i]->pdl.dcid, c[1 - i]->cid);
		assert_int_equal(g[i]->pdl.dtag, c[1 - i]->tag);
		assert_int_equal(g[i]->pdl.req_psn, c[1 - i]->tx[SAN_WIN_REQ].next);
		assert_int_equal(g[i]->pdl.data_psn, c[1 - i]->tx[SAN_WIN_DATA].next);
		assert_int_equal(g[i]->first_rsn_rx, g[1 - i]->first_rsn_tx);
		assert_int_equal(g[i]->pdl.tx_req_win, g[1 - i]->rx_req_win);
		assert_int_equal(g[i]->pdl.tx_data_win, g[1 - i]->rx_data_win);
		assert_int_equal(g[i]->rnr_rx_ms, g[1 - i]->rnr_tx_ms);
		assert_int_equal(g[i]->pdl.nb_ports, 2);
		assert_int_equal(g[i]->pdl.ports[1], 51000 + 2 - i);
		/* RULE-13: only ports that the peer has named */
		assert_int_equal(c[i]->path.src_port, 50000 + 2 - i);
		assert_int_equal(c[i]->path.dscp, 26);
		assert_true(rte_is_same_ether_addr(&c[i]->path.dst_mac, &net.h[1 - i].mac));
	}
	assert_int_equal(g[0]->rx_req_win, 2);
	assert_int_equal(g[0]->rx_data_win, 1024);
	assert_int_equal(g[0]->rnr_tx_ms, 11);
	assert_int_equal(g[0]->pdl.msg_limit, 5);
	assert_int_equal(g[1]->pdl.msg_limit, 6);
	/* PCB-1: what the peer's receiver allows, at first and in ACKs */
	assert_int_equal(g[0]->pdl.first_win, 300);
	assert_int_equal(g[1]->pdl.first_win, 2);
	assert_int_equal(c[0]->rx_first_win, 2);
	assert_int_equal(c[1]->rx_first_win, 300);
	assert_int_not_equal(g[0]->first_rsn_tx, g[1]->first_rsn_tx);
}

UNIT_CASE(connect__unordered)
{
	uint16_t slot[2];

	net.h[0].param.ordered = false;
	net.h[1].param.ordered = true;
	cm_net_open(&net, slot);
	assert_false(san_cm_agreed(net.h[0].cm, slot[0])->pdl.ordered);
	assert_false(san_cm_agreed(net.h[1].cm, slot[1])->pdl.ordered);
}

UNIT_CASE(connect__fixed_sequence_numbers)
{
	uint16_t slot[2];

	net.h[0].pdl_conf.fixed_psn = true;
	net.h[0].pdl_conf.first_psn = 0xfffffffe;
	cm_restart(0);
	cm_net_open(&net, slot);
	assert_int_equal(san_cm_agreed(net.h[0].cm, slot[0])->first_rsn_tx, 0xfffffffe);
	assert_int_equal(san_cm_agreed(net.h[1].cm, slot[1])->first_rsn_rx, 0xfffffffe);
	assert_int_equal(san_cm_agreed(net.h[1].cm, slot[1])->pdl.data_psn, 0xfffffffe);
}

UNIT_CASE(connect__over_v6) /* RT-31 */
{
	uint16_t slot[2];

	cm_net_fini(&net);
	cm_net_init(&net, test_pool(), 2, 16, true);
	cm_net_listen(&net, 1);
	cm_net_open(&net, slot);
	assert_int_equal(cm_net_nb_sent(&net), 5);
}

UNIT_CASE(connect__many_at_once) /* RT-1: CIDs are unique */
{
	for (uint16_t i = 0; i < 8; i++)
		cm_net_connect(&net, 0, i);
	cm_net_run(&net, 100 * MS);
	assert_established(8, 8);
	for (uint16_t i = 0; i < 8; i++) {
		for (uint16_t k = 0; k < i; k++)
			assert_int_not_equal(net.h[0].pdl->conns[i].cid,
					     net.h[0].pdl->conns[k].cid);
	}
}

/* Each side connects to the other with the same numbers: two connections. (RT-1) */
UNIT_CASE(connect__crosswise)
{
	cm_net_listen(&net, 0);
	cm_net_connect(&net, 0, 1);
	cm_net_connect(&net, 1, 2);
	cm_net_run(&net, 100 * MS);
	assert_established(2, 2);
}

#define OK           .pkey = 1, .msg_limit = 1
#define WIN(r, d, f) .req_win = r, .data_win = d, .first_win = f

static const struct {
	const char *what;
	struct san_cm_param param;
	int rc;
} param_rows[] = {
	{"smallest", {OK, WIN(2, 2, 2), .mtu = 64, .max_txn = 1}, 0},
	{"largest", {OK, WIN(256, 1024, 65535), .mtu = 65535, .max_txn = 65535}, 0},
	{"request window", {OK, WIN(1, 2, 2), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"request window", {OK, WIN(0, 2, 2), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"request window", {OK, WIN(512, 2, 2), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"request window", {OK, WIN(24, 2, 2), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"data window", {OK, WIN(2, 1, 2), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"data window", {OK, WIN(2, 2048, 2), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"data window", {OK, WIN(2, 1000, 2), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"first window", {OK, WIN(2, 2, 1), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"mtu", {OK, WIN(2, 2, 2), .mtu = 63, .max_txn = 1}, -EINVAL},
	{"max_txn", {OK, WIN(2, 2, 2), .mtu = 64}, -EINVAL},
	{"message limit", {WIN(2, 2, 2), .mtu = 64, .max_txn = 1}, -EINVAL},
	{"relaxed", {OK, WIN(2, 2, 2), .mtu = 64, .max_txn = 1, .relaxed = true}, -EINVAL},
	{"private", {OK, WIN(2, 2, 2), .mtu = 64, .max_txn = 1, .private_len = 65}, -EINVAL},
};

UNIT_CASE(connect__parameters) /* RULE-7 */
{
	uint16_t slot;

	UNIT_EACH(r, param_rows) {
		unit_row(r->what);
		assert_int_equal(cm_connect(&net.h[1].ip, &r->param, &slot), r->rc);
	}
	assert_int_equal(net.h[0].pdl->nb_conns, 2);
}

UNIT_CASE(connect__bad_addresses)
{
	static const char bad[][16] = {
		{[10] = -1, [11] = -1},                             /* 0.0.0.0 */
		{[10] = -1, [11] = -1, [12] = (char)224, [15] = 1}, /* multicast */
		{[10] = -1, [11] = -1, -1, -1, -1, -1},             /* broadcast */
		{[0] = (char)0xfd, [15] = 2},                       /* another family */
	};
	struct cm_host *h = &net.h[0];
	struct san_ip v6 = cm_net_ip(0, true), ip;
	uint16_t slot;

	UNIT_EACH(r, bad) {
		memcpy(ip.b, *r, sizeof(ip.b));
		assert_int_equal(cm_connect(&ip, &h->param, &slot), -EINVAL);
	}
	memset(&ip, 0, sizeof(ip));
	assert_int_equal(san_cm_fsm_connect(h->cm, &v6, &ip, 1, &h->param, 0, net.now_ns, &slot),
			 -EINVAL);
	ip.b[0] = 0xff;
	assert_int_equal(san_cm_fsm_connect(h->cm, &v6, &ip, 1, &h->param, 0, net.now_ns, &slot),
			 -EINVAL);
	assert_int_equal(h->pdl->nb_conns, 0);
}

UNIT_CASE(connect__no_slot)
{
	uint16_t slot;

	for (uint16_t i = 0; i < 16; i++)
		cm_net_connect(&net, 0, i);
	assert_int_equal(cm_connect(&net.h[1].ip, &net.h[0].param, &slot), -ENOSPC);
}

UNIT_CASE(resolved__sends_what_waits)
{
	struct san_ip other = cm_net_ip(7, false);
	uint16_t a, b;

	net.h[0].no_mac = true;
	a = cm_net_connect(&net, 0, 1);
	b = cm_net_connect(&net, 0, 2);
	cm_net_run(&net, 50 * MS);
	assert_int_equal(state_of(0, a), SAN_CM_RESOLVING);
	assert_int_equal(cm_net_nb_sent(&net), 0);
	san_cm_fsm_resolved(net.h[0].cm, &other, &net.h[1].mac, net.now_ns);
	assert_int_equal(state_of(0, a), SAN_CM_RESOLVING);
	san_cm_fsm_resolved(net.h[0].cm, &net.h[1].ip, &net.h[1].mac, net.now_ns);
	assert_int_equal(state_of(0, a), SAN_CM_REQ_SENT);
	assert_int_equal(state_of(0, b), SAN_CM_REQ_SENT);
	cm_net_run(&net, 1 * MS);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 2);
}

/* A proxy resolved the address and sent the REQ: the answer shows where the peer is. */
UNIT_CASE(resolved__by_the_cookie)
{
	uint16_t slot;
	struct san_wire_cm msg;

	net.h[0].no_mac = true;
	slot = cm_net_connect(&net, 0, 1);
	assert_true(cm_next(0, &msg));
	assert_true(rte_is_zero_ether_addr(&path.dst_mac));
	path.dst_mac = net.h[1].mac;
	cm_net_send(&net, 0, &pkt, &msg, cm_net_build(&net, &path, &pkt, &msg));
	cm_net_run(&net, 1 * MS);
	assert_int_equal(state_of(0, slot), SAN_CM_ESTABLISHED);
}

UNIT_CASE(connect__mac_never_known)
{
	net.h[0].no_mac = true;
	cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 100 * SAN_NS_PER_S);
	assert_events(0, SAN_CM_EV_UNREACHABLE, 1);
	assert_clean();
}

/* Each message of the handshake is lost once: it recovers, and is established exactly once. */
UNIT_CASE(connect__each_message_lost_once)
{
	static const uint8_t lost[][2] = {
		{SAN_CM_REQ, 1},
		{SAN_CM_COOKIE, 1},
		{SAN_CM_REQ, 2},
		{SAN_CM_REP, 1},
		{SAN_CM_RTU, 1},
	};
	uint16_t slot[2];

	for (unsigned int i = 0; i < RTE_DIM(lost); i++) {
		cm_anew(i);
		cm_lose(lost[i][0], lost[i][1], lost[i][1]);
		slot[0] = cm_net_connect(&net, 0, 42);
		cm_net_run(&net, 15 * MS);
		/* the first retry is sent after 20 ms */
		assert_int_equal(net.h[0].nb[SAN_CM_EV_ESTABLISHED] +
					 net.h[1].nb[SAN_CM_EV_ESTABLISHED],
				 lost[i][0] == SAN_CM_RTU ? 1 : 0);
		cm_net_run(&net, 15 * MS);
		assert_established(1, 1);
		assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
		assert_int_equal(state_of(0, slot[0]), SAN_CM_ESTABLISHED);
		assert_int_equal(net.h[1].pdl->nb_conns, 1);
	}
}

UNIT_CASE(connect__each_message_twice)
{
	uint16_t slot;

	net.hook = cm_twice;
	slot = cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 10 * SAN_NS_PER_S);
	assert_established(1, 1);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
	assert_int_equal(san_cm_fsm_disconnect(net.h[0].cm, slot, true, net.now_ns), 0);
	cm_net_run(&net, 30 * SAN_NS_PER_S);
	assert_ended(SAN_CM_EV_CLOSED, SAN_CM_EV_DISCONNECTED);
}

/* Data before the RTU replaces it. */
UNIT_CASE(implicit_rtu__opens)
{
	uint16_t slot;

	cm_lose(SAN_CM_RTU, 1, UINT64_MAX);
	slot = cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 1 * MS);
	assert_established(1, 0);
	cm_net_tx_data(&net, 0, slot);
	cm_net_run(&net, 1 * MS);
	assert_events(1, SAN_CM_EV_ESTABLISHED, 1);
	assert_int_equal(net.h[1].drops[SAN_DROP_STATE], 0);
	/* no REP is repeated */
	cm_net_run(&net, 10 * SAN_NS_PER_S);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_REP], 1);
	assert_events(1, SAN_CM_EV_ESTABLISHED, 1);
	assert_events(1, SAN_CM_EV_DISCONNECTED, 0);
}

UNIT_CASE(implicit_rtu__only_in_rep_sent)
{
	uint16_t slot = cm_net_connect(&net, 0, 1);

	assert_false(san_cm_rx_implicit_rtu(net.h[0].cm, slot, net.now_ns));
	assert_false(san_cm_rx_implicit_rtu(net.h[0].cm, 9999, net.now_ns));
	net.h[1].no_accept = true;
	cm_net_run(&net, 1 * MS);
	slot = cm_requested();
	assert_false(san_cm_rx_implicit_rtu(net.h[1].cm, slot, net.now_ns));
	assert_int_equal(state_of(1, slot), SAN_CM_WAIT_ACCEPT);
}

/* Data replaced the RTU by mistake, and the REP was lost: the repeated REQ is answered. */
UNIT_CASE(implicit_rtu__by_mistake)
{
	uint16_t slot;

	cm_lose(SAN_CM_REP, 1, 1);
	slot = cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 1 * MS);
	assert_true(san_cm_rx_implicit_rtu(net.h[1].cm, cm_requested(), net.now_ns));
	cm_net_run(&net, 100 * MS);
	assert_int_equal(state_of(0, slot), SAN_CM_ESTABLISHED);
	assert_events(1, SAN_CM_EV_ESTABLISHED, 1);
}

/* No answer: retries with doubled intervals, then one event, and nothing is left. (RT-24) */
UNIT_CASE(connect__unreachable)
{
	net.h[1].dead = true;
	cm_net_connect(&net, 0, 42);
	cm_net_run(&net, TRIES_NS - 1 * MS);
	assert_int_equal(net.h[0].nb_tx[SAN_CM_REQ], TRIES);
	assert_events(0, SAN_CM_EV_UNREACHABLE, 0);
	cm_net_run(&net, 2 * MS);
	assert_events(0, SAN_CM_EV_UNREACHABLE, 1);
	assert_int_equal(net.h[0].last[SAN_CM_EV_UNREACHABLE].cookie, 42);
	assert_clean();
}

/** arg[0]: number of REQs that are lost; then every REQ with a cookie is lost. */
static void
lose_reqs(struct cm_net *n, int from, const struct san_wire_pkt *p, const struct san_wire_cm *msg,
	  struct cm_fate *fate)
{
	if (msg != NULL && msg->msg == SAN_CM_REQ &&
	    (n->h[from].nb_tx[SAN_CM_REQ] < n->arg[0] || (msg->flags & SAN_CM_F_COOKIE)))
		fate->copies = 0;
}

/* Each message has its own retries: progress restarts the count. */
UNIT_CASE(connect__retries_start_anew)
{
	net.hook = lose_reqs;
	net.arg[0] = 5;
	cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 20 * SAN_NS_PER_S);
	assert_int_equal(net.h[0].nb_tx[SAN_CM_REQ], 6 + TRIES);
	assert_events(0, SAN_CM_EV_UNREACHABLE, 1);
	assert_clean();
}

/* ---- accepting ---- */

/* The peer dies after its request was accepted: one event, all is released. (RT-24) */
UNIT_CASE(accept__peer_gone)
{
	cm_request();
	net.h[0].dead = true;
	assert_int_equal(cm_accept(cm_requested()), 0);
	cm_net_run(&net, TRIES_NS + 1 * MS);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_REP], TRIES);
	assert_ended_by(1, SAN_CM_EV_DISCONNECTED, RTSAN_R_TIMEOUT);
	assert_int_equal(net.h[1].last[SAN_CM_EV_DISCONNECTED].cookie, 7);
	assert_events(1, SAN_CM_EV_ESTABLISHED, 0);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
}

/* The request is not accepted: the connecting side gets a timeout, the other side drops it. */
UNIT_CASE(accept__never)
{
	cm_request();
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
	cm_net_run(&net, 30 * SAN_NS_PER_S);
	assert_events(0, SAN_CM_EV_UNREACHABLE, 1);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_events(1, SAN_CM_EV_DISCONNECTED, 0);
	assert_clean();
	assert_int_equal(cm_accept(cm_requested()), -ENOENT);
}

/* Accepted late, while the peer still repeats: repeated REQs are one request. */
UNIT_CASE(accept__late)
{
	net.h[1].no_accept = true;
	cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 3 * SAN_NS_PER_S);
	assert_true(net.h[0].nb_tx[SAN_CM_REQ] > 5);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_int_equal(cm_accept(cm_requested()), 0);
	cm_net_run(&net, 1 * MS);
	assert_established(1, 1);
}

UNIT_CASE(accept__what_is_no_request)
{
	struct cm_host *h = &net.h[1];
	struct san_cm_param bad = h->param;
	struct san_cm_event ev;
	uint16_t slot[2];

	bad.first_win = 1;
	cm_net_open(&net, slot);
	assert_int_equal(san_cm_fsm_accept_peer(h->cm, slot[1], &h->param, 0, net.now_ns), -ENOENT);
	assert_int_equal(san_cm_fsm_accept_peer(h->cm, 15, &h->param, 0, net.now_ns), -ENOENT);
	assert_int_equal(san_cm_fsm_accept_peer(h->cm, 16, &h->param, 0, net.now_ns), -ENOENT);
	assert_int_equal(san_cm_fsm_reject(h->cm, slot[1], NULL, 0, net.now_ns), -ENOENT);
	assert_int_equal(san_cm_fsm_disconnect(h->cm, 15, false, net.now_ns), -ENOTCONN);
	/* after an accept that failed the request can still be accepted */
	h->no_accept = true;
	cm_net_connect(&net, 0, 2);
	cm_net_run(&net, 1 * MS);
	ev = h->last[SAN_CM_EV_CONNECT_REQUEST];
	assert_int_equal(san_cm_fsm_accept_peer(h->cm, ev.slot, &bad, 0, net.now_ns), -EINVAL);
	assert_int_equal(san_cm_fsm_disconnect(h->cm, ev.slot, false, net.now_ns), -ENOTCONN);
	assert_int_equal(san_cm_fsm_accept_peer(h->cm, ev.slot, &h->param, 0, net.now_ns), 0);
	cm_net_run(&net, 1 * MS);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 2);
}

UNIT_CASE(reject__with_private_data)
{
	const struct san_cm_event *ev = &net.h[0].last[SAN_CM_EV_REJECTED];

	cm_request();
	assert_int_equal(san_cm_fsm_reject(net.h[1].cm, cm_requested(), NULL, 65, net.now_ns),
			 -EINVAL);
	assert_int_equal(cm_reject(cm_requested(), "not today"), 0);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
	cm_net_run(&net, 1 * MS);
	assert_events(0, SAN_CM_EV_REJECTED, 1);
	assert_int_equal(ev->reason, RTSAN_R_REFUSED);
	assert_int_equal(ev->cookie, 42);
	assert_int_equal(ev->private_len, 9);
	assert_memory_equal(ev->private_data, "not today", 9);
	assert_clean();
}

/* The REJ is lost: the repeated REQ gets it again, and the ULP is not asked again. */
UNIT_CASE(reject__lost)
{
	cm_lose(SAN_CM_REJ, 1, 1);
	cm_request();
	assert_int_equal(cm_reject(cm_requested(), "no"), 0);
	cm_net_run(&net, 30 * MS);
	assert_ended_by(0, SAN_CM_EV_REJECTED, RTSAN_R_REFUSED);
	assert_memory_equal(net.h[0].last[SAN_CM_EV_REJECTED].private_data, "no", 2);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_clean();
}

/* A REP with invalid parameters ends the attempt on both sides. */
UNIT_CASE(rep__out_of_range)
{
	struct san_wire_cm rep;

	cm_request();
	assert_int_equal(cm_accept(cm_requested()), 0);
	assert_true(cm_next(1, &rep));
	rep.data_win = 100;
	cm_net_forge(&net, 1, &rep);
	cm_net_run(&net, 1 * MS);
	assert_ended_by(0, SAN_CM_EV_REJECTED, RTSAN_R_PARAMETER);
	assert_ended_by(1, SAN_CM_EV_DISCONNECTED, RTSAN_R_PARAMETER);
	assert_clean();
}
