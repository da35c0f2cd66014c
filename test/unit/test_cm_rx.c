/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Unauthenticated packets: requests without and with cookies, refusals, RESET for unknown
 * connections. None of them costs memory. (RT-24, RT-29; RULE-17)
 */

#include "test_cm.h"

UNIT_FIXTURE(.setup = cm_setup, .teardown = cm_teardown);

static void
assert_no_answer(void)
{
	struct san_wire_path to;
	struct san_wire_pkt q;
	struct san_wire_cm msg;

	assert_false(san_cm_tx_next(net.h[1].cm, &to, &q, &msg, net.now_ns));
}

/** Returns the only message that host 1 has to send, with its *path* and *pkt*. */
static struct san_wire_cm
only_answer(void)
{
	struct san_wire_cm msg;

	assert_true(cm_next(1, &msg));
	assert_no_answer();
	return msg;
}

UNIT_CASE(req__gets_a_cookie)
{
	struct san_wire_cm msg = cm_net_req(7), ans;

	msg.nb_ports = 2;
	msg.ports[0] = 50001;
	msg.ports[1] = 50002;
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_NONE);
	ans = only_answer();
	assert_int_equal(ans.msg, SAN_CM_COOKIE);
	assert_int_equal(ans.flags, SAN_CM_F_COOKIE);
	assert_int_equal(ans.xid, 7);
	assert_int_equal(ans.dst_cid, 0x123456);
	assert_int_equal(ans.dst_tag, 0xdeadbeef);
	assert_int_equal(ans.src_cid, 0);
	assert_int_equal(ans.private_len, 0);
	assert_int_equal(pkt.tag, 0xdeadbeef);
	assert_int_equal(pkt.dcid, SAN_WIRE_CID_CM);
	assert_int_equal(pkt.pkey, CM_NET_PKEY);
	/* to its source, steered to the sender's lcore (RULE-13) */
	assert_true(san_wire_ip_eq(&path.dst, &net.h[0].ip));
	assert_true(san_wire_ip_eq(&path.src, &net.h[1].ip));
	assert_true(rte_is_same_ether_addr(&path.dst_mac, &net.h[0].mac));
	assert_true(rte_is_same_ether_addr(&path.src_mac, &net.h[1].mac));
	assert_int_equal(path.src_port, 50001);
	assert_int_equal(path.dst_port, SAN_WIRE_PORT);
	cm_assert_nothing_kept();
}

/** Exchange REQ and COOKIE, and put the cookie into *msg* for the second REQ. */
static void
ask_cookie(struct san_wire_cm *msg)
{
	struct san_wire_cm ans;

	assert_int_equal(cm_net_forge(&net, 0, msg), SAN_DROP_NONE);
	ans = only_answer();
	assert_int_equal(ans.msg, SAN_CM_COOKIE);
	msg->flags |= SAN_CM_F_COOKIE;
	memcpy(msg->cookie, ans.cookie, sizeof(msg->cookie));
}

/* No answer to an unauthenticated packet is longer than the packet. */
UNIT_CASE(req__answer_is_no_longer)
{
	struct san_wire_cm msg = cm_net_req(7), ans;
	struct rte_mbuf *q, *a;

	path = cm_net_path(&net, 0);
	pkt = cm_pkt;
	q = cm_net_build(&net, &path, &pkt, &msg);
	cm_net_forge(&net, 0, &msg);
	ans = only_answer();
	a = cm_net_build(&net, &path, &pkt, &ans);
	assert_true(rte_pktmbuf_pkt_len(a) <= rte_pktmbuf_pkt_len(q));
	rte_pktmbuf_free(q);
	rte_pktmbuf_free(a);
}

/** Exchange REQ, COOKIE, REQ; returns the answer of host 1 to the second REQ. */
static enum san_drop
with_cookie(struct san_wire_cm *msg)
{
	ask_cookie(msg);
	return cm_net_forge(&net, 0, msg);
}

UNIT_CASE(req__with_cookie_is_a_request)
{
	struct san_wire_cm msg = cm_net_req(7), rep, again;
	struct san_cm_event ev;

	assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
	/* copies of it are the same request */
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_NONE);
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_NONE);
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
	assert_no_answer();
	assert_true(san_cm_event_next(net.h[1].cm, &ev));
	assert_int_equal(ev.type, SAN_CM_EV_CONNECT_REQUEST);
	assert_false(san_cm_event_next(net.h[1].cm, &ev));
	/* after the accept, copies get the REP again */
	assert_int_equal(cm_accept(ev.slot), 0);
	rep = only_answer();
	assert_int_equal(rep.msg, SAN_CM_REP);
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_NONE);
	again = only_answer();
	assert_memory_equal(&rep, &again, sizeof(rep));
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
}

/*
 * The connection's send buffer overwrites its offer. After that there is no REP for a copy of the
 * REQ, and a copy must not write there.
 */
UNIT_CASE(req__again_when_data_went)
{
	struct san_wire_cm msg = cm_net_req(7);
	struct san_cm_event ev;

	net.h[1].pdl_conf.max_wide = 0; /* there is no other memory for the offer */
	cm_restart(1);
	cm_net_listen(&net, 1);
	assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
	assert_true(san_cm_event_next(net.h[1].cm, &ev));
	assert_int_equal(cm_accept(ev.slot), 0);
	assert_int_equal(only_answer().msg, SAN_CM_REP);
	assert_true(san_cm_rx_implicit_rtu(net.h[1].cm, ev.slot, net.now_ns));
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_NONE);
	assert_int_equal(only_answer().msg, SAN_CM_REP);
	cm_net_tx_data(&net, 1, ev.slot);
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_NONE);
	assert_no_answer();
	assert_int_equal(san_cm_fsm_disconnect(net.h[1].cm, ev.slot, true, net.now_ns), 0);
	assert_int_equal(only_answer().msg, SAN_CM_DREQ);
	cm_net_check(&net);
}

/* One bit of the second REQ differs from the first one: the cookie is invalid. */
UNIT_CASE(req__cookie_for_another_request) /* RT-24 */
{
	struct san_wire_cm msg = cm_net_req(7);

	ask_cookie(&msg);
	msg.first_win ^= 1;
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_CM_COOKIE);
	cm_assert_nothing_kept();
	/* it can try again with the right one */
	assert_int_equal(only_answer().msg, SAN_CM_COOKIE);
	msg.first_win ^= 1;
	msg.cookie[3] ^= 0x10;
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_CM_COOKIE);
	cm_assert_nothing_kept();
}

UNIT_CASE(req__cookie_from_another_address)
{
	struct san_wire_cm msg = cm_net_req(7);

	ask_cookie(&msg);
	path = cm_net_path(&net, 0);
	path.src.b[15] = 99;
	pkt = cm_pkt;
	assert_int_equal(cm_net_rx(&net, 1, cm_net_build(&net, &path, &pkt, &msg)),
			 SAN_DROP_CM_COOKIE);
	cm_assert_nothing_kept();
}

/* An expired cookie is refused and replaced, so that a slow peer succeeds. */
UNIT_CASE(req__old_cookie)
{
	struct san_wire_cm msg = cm_net_req(7);

	ask_cookie(&msg);
	net.now_ns += 8 * SAN_NS_PER_S; /* two slots */
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_CM_COOKIE);
	cm_assert_nothing_kept();
	memcpy(msg.cookie, only_answer().cookie, sizeof(msg.cookie));
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_NONE);
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
}

static void
restart_with_slot(uint64_t cookie_slot_ns)
{
	net.h[1].cm_conf.cookie_slot_ns = cookie_slot_ns;
	cm_restart(1);
	cm_net_listen(&net, 1);
}

/* The cookie expires during a long wait for accept: the connecting side takes the new one. */
UNIT_CASE(cookie__refreshed_while_waiting)
{
	restart_with_slot(100 * MS);
	net.h[1].no_accept = true;
	cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 3 * SAN_NS_PER_S);
	assert_true(net.h[1].drops[SAN_DROP_CM_COOKIE] > 0);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_int_equal(cm_accept(cm_requested()), 0);
	cm_net_run(&net, 10 * MS);
	assert_established(1, 1);
}

/** Loses every REQ with a cookie until arg[0]. */
static void
lose_cookies(struct cm_net *n, int from, const struct san_wire_pkt *p,
	     const struct san_wire_cm *msg, struct cm_fate *fate)
{
	if (msg != NULL && msg->msg == SAN_CM_REQ && (msg->flags & SAN_CM_F_COOKIE) &&
	    n->now_ns < n->arg[0])
		fate->copies = 0;
}

/* The cookie expires before it arrives. */
UNIT_CASE(cookie__refreshed_on_arrival)
{
	net.hook = lose_cookies;
	net.arg[0] = net.now_ns + 400 * MS;
	restart_with_slot(100 * MS);
	cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 2 * SAN_NS_PER_S);
	assert_int_equal(net.h[1].drops[SAN_DROP_CM_COOKIE], 1);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 1);
}

/* A peer whose cookies are always invalid cannot control the rate of our REQs. */
UNIT_CASE(cookie__no_ping_pong)
{
	struct san_wire_cm cookie = {.msg = SAN_CM_COOKIE, .flags = SAN_CM_F_COOKIE};
	struct san_wire_cm first;

	net.h[1].dead = true;
	cm_net_connect(&net, 0, 1);
	san_cm_fsm_resolved(net.h[0].cm, &net.h[1].ip, &net.h[1].mac, net.now_ns);
	assert_true(cm_next(0, &first));
	cookie.xid = first.xid;
	cookie.dst_cid = first.src_cid;
	cookie.dst_tag = first.src_tag;
	for (unsigned int i = 0; i < 100; i++) {
		cookie.cookie[0] = (uint8_t)i;
		cm_net_forge(&net, 1, &cookie);
		cm_net_settle(&net);
	}
	assert_int_equal(net.h[0].nb_tx[SAN_CM_REQ], 1);
	/* one more with each retry */
	cm_net_run(&net, 21 * MS);
	assert_int_equal(net.h[0].nb_tx[SAN_CM_REQ], 2);
	for (unsigned int i = 0; i < 100; i++) {
		cm_net_forge(&net, 1, &cookie);
		cm_net_settle(&net);
	}
	assert_int_equal(net.h[0].nb_tx[SAN_CM_REQ], 3);
}

/* ---- refusals ---- */

static void
expect_rej(const struct san_wire_cm *msg, enum san_drop drop, uint8_t reason)
{
	struct san_wire_cm ans;
	uint32_t nb = net.h[1].pdl->nb_conns;

	assert_int_equal(cm_net_forge(&net, 0, msg), drop);
	ans = only_answer();
	assert_int_equal(ans.msg, SAN_CM_REJ);
	assert_int_equal(ans.reason, reason);
	assert_int_equal(ans.xid, msg->xid);
	assert_int_equal(ans.dst_cid, msg->src_cid);
	assert_int_equal(ans.dst_tag, msg->src_tag);
	assert_int_equal(pkt.pkey, CM_NET_PKEY);
	assert_int_equal(net.h[1].pdl->nb_conns, nb);
	cm_net_check(&net);
}

UNIT_CASE(rej__no_listener)
{
	struct san_wire_cm msg = cm_net_req(7);

	msg.service++;
	expect_rej(&msg, SAN_DROP_NONE, RTSAN_R_NO_LISTENER);
}

UNIT_CASE(rej__other_partition) /* RT-29 */
{
	struct san_wire_cm msg = cm_net_req(7);

	san_cm_listen_end(net.h[1].cm, CM_NET_SERVICE, CM_NET_PKEY);
	assert_int_equal(san_cm_listen(net.h[1].cm, CM_NET_SERVICE, 0x9999, 8, 1), 0);
	expect_rej(&msg, SAN_DROP_PKEY, RTSAN_R_PKEY);
	/* the same with both parts of the handshake between real hosts */
	cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 1 * MS);
	assert_ended_by(0, SAN_CM_EV_REJECTED, RTSAN_R_PKEY);
	assert_int_equal(net.h[0].pdl->nb_conns, 0);
}

UNIT_CASE(rej__parameter) /* RULE-7 */
{
	struct san_wire_cm bad[9];

	for (unsigned int i = 0; i < RTE_DIM(bad); i++)
		bad[i] = cm_net_req(i);
	bad[0].first_win = 1;
	bad[1].req_win = 0;
	bad[2].req_win = 3;
	bad[3].req_win = 512;
	bad[4].data_win = 1;
	bad[5].data_win = 2048;
	bad[6].mtu = 16;
	bad[7].max_txn = 0;
	bad[8].data_win = 768;
	UNIT_EACH(r, bad)
		expect_rej(r, SAN_DROP_NONE, RTSAN_R_PARAMETER);
}

UNIT_CASE(rej__backlog)
{
	struct san_wire_cm msg, ans;
	static const uint8_t want[] = {6, 7, 8}; /* one host alone gets three quarters */
	uint32_t xid = 0;

	for (uint32_t host = 0; host < RTE_DIM(want); host++) {
		for (; xid < want[host]; xid++) {
			msg = cm_net_req(xid);
			msg.src_tag += xid;
			assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
		}
		msg = cm_net_req(8);
		msg.src_tag += 8;
		assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
		ans = only_answer();
		assert_int_equal(ans.msg, SAN_CM_REJ);
		assert_int_equal(ans.reason, RTSAN_R_BACKLOG);
		assert_int_equal(ans.xid, 8);
		assert_int_equal(net.h[1].pdl->nb_conns, want[host]);
		san_cm_check(net.h[1].cm);
		net.h[0].ip.b[15]++;
	}
	net.h[0].ip.b[15] -= RTE_DIM(want);
	/* an old copy is still recognised as old */
	msg = cm_net_req(3);
	msg.src_tag += 3;
	assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
	assert_no_answer();
}

/* RT-36: a name in use is no second connection; otherwise look-ups would become long */
UNIT_CASE(req__same_name_twice)
{
	struct san_wire_cm msg = cm_net_req(1);

	assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
	msg = cm_net_req(2);
	assert_int_equal(with_cookie(&msg), SAN_DROP_CM_STALE);
	assert_no_answer();
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
}

UNIT_CASE(rej__resources)
{
	struct san_wire_cm msg = cm_net_req(7);

	for (uint16_t i = 0; i < 16; i++)
		cm_net_connect(&net, 1, i);
	while (cm_next(1, &msg))
		;
	msg = cm_net_req(7);
	with_cookie(&msg);
	msg = only_answer();
	assert_int_equal(msg.msg, SAN_CM_REJ);
	assert_int_equal(msg.reason, RTSAN_R_RESOURCES);
}

/* Every reason is reported, also those that only other implementations use. */
UNIT_CASE(rej__every_reason_is_reported)
{
	struct san_wire_cm first, rej;
	uint8_t reason;

	net.h[1].dead = true;
	for (reason = RTSAN_R_NO_LISTENER; reason < SAN_CM_R_MAX; reason++) {
		cm_net_connect(&net, 0, reason);
		san_cm_fsm_resolved(net.h[0].cm, &net.h[1].ip, &net.h[1].mac, net.now_ns);
		assert_true(cm_next(0, &first));
		rej = (struct san_wire_cm){
			.msg = SAN_CM_REJ,
			.reason = reason,
			.xid = first.xid ^ 1,
			.dst_cid = first.src_cid,
			.dst_tag = first.src_tag,
		};
		assert_int_equal(cm_net_forge(&net, 1, &rej), SAN_DROP_CM_STALE);
		rej.xid = first.xid;
		rej.dst_tag ^= 1;
		assert_int_equal(cm_net_forge(&net, 1, &rej), SAN_DROP_TAG);
		rej.dst_tag ^= 1;
		assert_int_equal(cm_net_forge(&net, 1, &rej), SAN_DROP_NONE);
		cm_net_settle(&net);
		assert_events(0, SAN_CM_EV_REJECTED, reason);
		assert_int_equal(net.h[0].last[SAN_CM_EV_REJECTED].reason, reason);
		assert_int_equal(net.h[0].last[SAN_CM_EV_REJECTED].cookie, reason);
		assert_int_equal(net.h[0].pdl->nb_conns, 0);
		net.now_ns += 20 * SAN_NS_PER_S;
	}
	assert_int_equal(reason - 1, SAN_CM_R_MAX - 1);
}

/* ---- old copies ---- */

/* A REQ arrives after the connection has ended: it creates no second connection. */
UNIT_CASE(ghost__late_req)
{
	struct san_wire_cm msg = cm_net_req(7);
	struct san_cm_event ev;

	assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
	assert_true(san_cm_event_next(net.h[1].cm, &ev));
	assert_int_equal(cm_accept(ev.slot), 0);
	san_cm_fsm_failed(net.h[1].cm, ev.slot, RTSAN_R_TIMEOUT, net.now_ns);
	cm_net_settle(&net);
	cm_assert_nothing_kept();
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_NONE);
	cm_assert_nothing_kept();
	assert_int_equal(san_cm_state(net.h[1].cm, ev.slot), SAN_CM_IDLE);
	/* another attempt with the same CID is another connection */
	msg.xid++;
	msg.flags &= (uint8_t)~SAN_CM_F_COOKIE;
	memset(msg.cookie, 0, sizeof(msg.cookie));
	assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
}

/* Slots that are remembered for late REQs can be reused. */
UNIT_CASE(ghost__slots_are_reused)
{
	struct san_wire_cm msg;
	struct san_cm_event ev;

	for (uint32_t i = 0; i < 100; i++) {
		msg = cm_net_req(i);
		assert_int_equal(with_cookie(&msg), SAN_DROP_NONE);
		assert_true(san_cm_event_next(net.h[1].cm, &ev));
		assert_int_equal(cm_reject(ev.slot, ""), 0);
		cm_net_settle(&net);
		cm_assert_nothing_kept();
		net.now_ns += 100 * MS;
	}
}

/* A REP for a cancelled attempt is answered, so that the other side need not wait. */
UNIT_CASE(rep__for_nothing)
{
	struct san_wire_cm msg = cm_net_req(7);

	msg.msg = SAN_CM_REP;
	msg.dst_cid = 0xf00004;
	msg.dst_tag = 99;
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_CM_STALE);
	msg = only_answer();
	assert_int_equal(msg.msg, SAN_CM_REJ);
	assert_int_equal(msg.reason, RTSAN_R_STALE);
	assert_int_equal(msg.src_cid, 0xf00004);
	assert_int_equal(msg.src_tag, 99);
}

/* ---- RESET ---- */

UNIT_CASE(answer_reset__echoes)
{
	struct san_wire_pkt p = cm_net_stray(&net, SAN_OP_PUSH_UNSLCTD_DATA);
	struct san_wire_cm msg;

	san_cm_rx_answer_reset(net.h[1].cm, &p, net.now_ns);
	msg = only_answer();
	assert_int_equal(msg.msg, SAN_CM_RESET);
	assert_int_equal(msg.reason, RTSAN_R_STALE);
	assert_int_equal(msg.src_cid, 0xabcdef);
	assert_int_equal(msg.src_tag, 0x11223344);
	assert_int_equal(msg.data_psn, 0xfffffffe);
	assert_int_equal(pkt.pkey, CM_NET_PKEY);
	assert_true(san_wire_ip_eq(&path.dst, &net.h[0].ip));
	assert_true(rte_is_same_ether_addr(&path.dst_mac, &net.h[0].mac));
}

UNIT_CASE(answer_reset__never_to_these)
{
	static const uint8_t never[] = {SAN_OP_CM, SAN_OP_NACK, SAN_OP_CNP};
	static const uint8_t always[] = {SAN_OP_PUSH_SLCTD_REQ, SAN_OP_ACK, SAN_OP_RESYNC,
					 SAN_OP_PROBE};

	UNIT_EACH(r, never) {
		pkt = cm_net_stray(&net, *r);
		san_cm_rx_answer_reset(net.h[1].cm, &pkt, net.now_ns);
		assert_no_answer();
	}
	for (unsigned int i = 0; i < RTE_DIM(always); i++) {
		pkt = cm_net_stray(&net, always[i]);
		san_cm_rx_answer_reset(net.h[1].cm, &pkt, net.now_ns);
		assert_int_equal(only_answer().msg, SAN_CM_RESET);
	}
	pkt = cm_net_stray(&net, SAN_OP_PROBE);
	pkt.src = (struct san_ip){.b = {0xff, 2, [15] = 1}};
	san_cm_rx_answer_reset(net.h[1].cm, &pkt, net.now_ns);
	assert_no_answer();
}

/* Neither RESETs nor unexpected answers are answered: no two hosts exchange packets forever. */
UNIT_CASE(answers__are_not_answered)
{
	static const uint8_t types[] = {SAN_CM_COOKIE, SAN_CM_RTU, SAN_CM_REJ, SAN_CM_DREP,
					SAN_CM_RESET};
	struct san_wire_cm msg;
	enum san_drop stale;

	UNIT_EACH(r, types) {
		msg = (struct san_wire_cm){
			.msg = *r,
			.flags = *r == SAN_CM_COOKIE ? SAN_CM_F_COOKIE : 0,
			.dst_cid = 0xf00003,
		};
		stale = *r == SAN_CM_RESET ? SAN_DROP_RESET_STALE : SAN_DROP_CM_STALE;
		assert_int_equal(cm_net_forge(&net, 0, &msg), stale);
		assert_no_answer();
	}
}

UNIT_CASE(rx__malformed)
{
	struct san_wire_cm msg = cm_net_req(7);

	msg.flags = SAN_CM_F_RELAXED;
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_CM_MALFORMED);
	msg = cm_net_req(7);
	msg.reason = SAN_CM_R_MAX;
	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_CM_MALFORMED);
	assert_no_answer();
	cm_assert_nothing_kept();
}
