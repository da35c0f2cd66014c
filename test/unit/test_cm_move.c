/* SPDX-License-Identifier: BSD-3-Clause */

/* A request that is accepted on a queue pair of another lcore. (SYS-1, RT-24) */

#include "test_cm.h"

#define CONNS   4
#define COOKIE  4711
#define TO_HERE 1 /* lcore of *there* in its CIDs */

static struct cm_host there; /* the other lcore of host 1 */

/* Packets of host 0 to a CID of the other lcore are delivered there. */
static void
steer(struct cm_net *n, int from, const struct san_wire_pkt *p, const struct san_wire_cm *msg,
      struct cm_fate *fate)
{
	struct san_wire_pkt parsed;
	struct san_wire_ack ack;
	struct rte_mbuf *m;

	path = cm_net_path(n, from);
	if (from != 0 || msg == NULL || san_pdl_cid_lcore(msg->dst_cid) != TO_HERE)
		return;
	fate->copies = 0;
	m = cm_net_build(n, &path, p, msg);
	assert_int_equal(san_wire_parse(m, SAN_WIRE_PORT, &parsed, &ack), SAN_DROP_NONE);
	assert_int_equal(san_cm_rx(there.cm, m, &parsed, n->now_ns), SAN_DROP_NONE);
	rte_pktmbuf_free(m);
}

/* Send the packets of the other lcore. */
static void
send_from_there(void)
{
	struct san_wire_cm msg;

	while (san_cm_tx_next(there.cm, &path, &pkt, &msg, net.now_ns)) {
		assert_memory_equal(&path.dst_mac, &net.h[0].mac, 6);
		there.nb_tx[msg.msg]++;
		cm_net_send(&net, 1, &pkt, &msg, cm_net_build(&net, &path, &pkt, &msg));
	}
}

static void
setup(void)
{
	cm_net_init(&net, test_pool(), 1, CONNS, false);
	net.hook = steer;
	cm_net_listen(&net, 1);
	memset(&there, 0, sizeof(there));
	san_prng_seed(&there.secret, 99);
	cm_net_host_init(&there, 1, CONNS, false);
	there.pdl_conf.lcore_id = TO_HERE;
	cm_net_start(&net, &there);
}

static void
teardown(void)
{
	san_cm_check(there.cm);
	san_cm_destroy(there.cm);
	san_pdl_destroy(there.pdl);
	cm_teardown();
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

static uint16_t
move(uint16_t from)
{
	struct san_cm_moved moved;
	uint16_t slot;

	assert_int_equal(san_cm_move_out(net.h[1].cm, from, &moved, net.now_ns), 0);
	assert_int_equal(
		san_cm_move_in(there.cm, &moved, &there.param, COOKIE, net.now_ns, &slot), 0);
	san_cm_move_done(net.h[1].cm, from, true, net.now_ns);
	cm_net_check(&net);
	san_cm_check(there.cm);
	return slot;
}

UNIT_CASE(move__establishes_there)
{
	const struct san_cm_agreed *a, *b;
	struct san_cm_event ev;
	uint16_t from, to;

	net.h[0].param.ordered = false;
	net.h[0].param.mtu = 1000;
	net.h[0].param.uid = 1000;
	from = cm_request();
	to = move(from);
	assert_int_equal(san_cm_state(net.h[1].cm, from), SAN_CM_IDLE);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
	send_from_there();
	cm_net_run(&net, MS);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 1);
	assert_int_equal(san_cm_state(there.cm, to), SAN_CM_ESTABLISHED);
	assert_true(san_cm_event_next(there.cm, &ev));
	assert_int_equal(ev.type, SAN_CM_EV_ESTABLISHED);
	assert_int_equal(ev.cookie, COOKIE);
	assert_int_equal(ev.uid, 1000);
	assert_memory_equal(&ev.peer, &net.h[0].ip, sizeof(ev.peer));
	/* both sides have agreed on the same, as without the move */
	a = san_cm_agreed(net.h[0].cm, net.h[0].last[SAN_CM_EV_ESTABLISHED].slot);
	b = san_cm_agreed(there.cm, to);
	assert_int_equal(b->pdl.mtu, 1000);
	assert_false(b->pdl.ordered);
	assert_int_equal(a->first_rsn_tx, b->first_rsn_rx);
	assert_int_equal(b->first_rsn_tx, a->first_rsn_rx);
	assert_int_equal(a->pdl.dcid, there.pdl->conns[to].cid);
	assert_int_equal(san_pdl_cid_lcore(a->pdl.dcid), TO_HERE);
	assert_int_equal(there.pdl->conns[to].path.src_port, 50001); /* named by host 0 */
	assert_int_equal(there.pdl->conns[to].pkey, CM_NET_PKEY);
}

/* Until the peer gets the REP it repeats its REQ: that creates no second connection. */
UNIT_CASE(move__repeated_requests_are_known)
{
	move(cm_request());
	cm_net_run(&net, 200 * MS);
	assert_true(net.h[1].nb_rx[SAN_CM_REQ] > 3);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_REJ], 0);
	send_from_there();
	cm_net_run(&net, MS);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 1);
}

/* A moved request exists once; moved back, it is unchanged. */
UNIT_CASE(move_out__once)
{
	struct san_cm *cm = net.h[1].cm;
	uint16_t slot = cm_request();
	struct san_cm_moved moved;

	assert_int_equal(san_cm_move_out(cm, slot, &moved, net.now_ns), 0);
	assert_int_equal(san_cm_move_out(cm, slot, &moved, net.now_ns), -ENOENT);
	assert_int_equal(san_cm_fsm_accept_peer(cm, slot, &net.h[1].param, 1, net.now_ns), -ENOENT);
	assert_int_equal(san_cm_fsm_reject(cm, slot, NULL, 0, net.now_ns), -ENOENT);
	san_cm_move_done(cm, slot, false, net.now_ns);
	assert_int_equal(san_cm_fsm_accept_peer(cm, slot, &net.h[1].param, 1, net.now_ns), 0);
	/* not any more: it is accepted */
	assert_int_equal(san_cm_move_out(cm, slot, &moved, net.now_ns), -ENOENT);
	san_cm_move_done(cm, slot, true, net.now_ns);
	cm_net_run(&net, MS);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 1);
}

UNIT_CASE(move_in__says_no)
{
	struct san_cm_moved moved;
	uint16_t slot;

	assert_int_equal(san_cm_move_out(net.h[1].cm, cm_request(), &moved, net.now_ns), 0);
	there.param.first_win = 1;
	assert_int_equal(san_cm_move_in(there.cm, &moved, &there.param, 1, net.now_ns, &slot),
			 -EINVAL);
	there.param.first_win = 2;
	for (uint16_t i = 0; i < CONNS; i++) {
		moved.xid++;
		moved.offer.pdl.dtag++;
		assert_int_equal(
			san_cm_move_in(there.cm, &moved, &there.param, 1, net.now_ns, &slot), 0);
	}
	moved.offer.pdl.dtag++;
	assert_int_equal(san_cm_move_in(there.cm, &moved, &there.param, 1, net.now_ns, &slot),
			 -ENOSPC);
}

/* The listener is removed while the request is moved: the peer gets an answer. */
UNIT_CASE(move__ended_meanwhile)
{
	uint16_t slot = cm_request();
	struct san_cm_moved moved;

	assert_int_equal(san_cm_move_out(net.h[1].cm, slot, &moved, net.now_ns), 0);
	san_cm_listen_end(net.h[1].cm, CM_NET_SERVICE, CM_NET_PKEY);
	san_cm_move_done(net.h[1].cm, slot, true, net.now_ns);
	cm_net_check(&net);
	cm_net_run(&net, MS);
	assert_events(0, SAN_CM_EV_REJECTED, 1);
}
