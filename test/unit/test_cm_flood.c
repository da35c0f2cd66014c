/* SPDX-License-Identifier: BSD-3-Clause */

/* Floods of unauthenticated packets: bounded memory and answers. (RT-24; cm_rx.c, cm_tx.c) */

#include "test_cm.h"

#define MILLION 1000000u
#define XID_OFF 4 /* offset in the message */

UNIT_FIXTURE(.setup = cm_setup, .teardown = cm_teardown);

static void
put_be32(uint8_t *at, uint32_t v)
{
	v = rte_cpu_to_be_32(v);
	memcpy(at, &v, sizeof(v));
}

/*
 * A million REQs without a cookie, each from another address: no connection, no half-open one, no
 * slot is used, and no more answers are sent than the limit. (RT-24)
 */
UNIT_CASE(flood__million_requests)
{
	struct san_wire_cm msg = cm_net_req(0), ans;
	struct san_wire_path from = cm_net_path(&net, 0);
	struct san_wire_pkt p = cm_pkt;
	struct rte_mbuf *m = cm_net_build(&net, &from, &p, &msg);
	uint32_t in_use = rte_mempool_in_use_count(test_pool());
	uint32_t nb_answers = 0, nb_limited = 0;
	uint64_t begin_ns = net.now_ns;
	struct san_wire_pkt q;
	struct san_wire_ack ack;
	uint8_t *bytes;
	enum san_drop drop;

	assert_int_equal(san_wire_parse(m, SAN_WIRE_PORT, &p, &ack), SAN_DROP_NONE);
	bytes = rte_pktmbuf_mtod_offset(m, uint8_t *, p.payload_off);
	for (uint32_t i = 0; i < MILLION; i++) {
		put_be32(bytes + XID_OFF, i);
		put_be32(p.src.b + 12, 0x0a010000 + i);
		drop = san_cm_rx(net.h[1].cm, m, &p, net.now_ns);
		assert_true(drop == SAN_DROP_NONE || drop == SAN_DROP_CM_RATE);
		nb_limited += drop == SAN_DROP_CM_RATE;
		nb_answers += san_cm_tx_next(net.h[1].cm, &path, &q, &ans, net.now_ns);
		net.now_ns += 1000; /* a million a second */
	}
	rte_pktmbuf_free(m);
	assert_int_equal(nb_answers + nb_limited, MILLION);
	/* 100 per ms, and the initial burst */
	assert_in_range(nb_answers, 99000, 100 * ((net.now_ns - begin_ns) / MS) + 100);
	cm_assert_nothing_kept();
	assert_int_equal(rte_mempool_in_use_count(test_pool()), in_use - 1);
	/* an honest peer can connect */
	cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 100 * MS);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 1);
}

/* A flood of invalid cookies is limited before their MACs are computed. (RT-36) */
UNIT_CASE(flood__wrong_cookies)
{
	struct san_wire_cm msg = cm_net_req(0);
	uint32_t slot = (uint32_t)(net.now_ns / (4 * SAN_NS_PER_S));
	uint32_t nb_checked = 0;
	enum san_drop drop;

	msg.flags |= SAN_CM_F_COOKIE;
	put_be32(msg.cookie + 16, slot);
	for (uint32_t i = 0; i < 10000; i++) {
		msg.xid = i;
		memcpy(msg.cookie, &i, sizeof(i));
		drop = cm_net_forge(&net, 0, &msg);
		assert_true(drop == SAN_DROP_CM_COOKIE || drop == SAN_DROP_CM_RATE);
		nb_checked += drop == SAN_DROP_CM_COOKIE;
	}
	/* RT-36: each check costs a MAC; at one instant one host gets half a burst */
	assert_int_equal(nb_checked, 200);
	cm_assert_nothing_kept();
}

UNIT_CASE(flood__resets_are_limited)
{
	struct san_wire_pkt p = cm_net_stray(&net, SAN_OP_PROBE), q;
	struct san_wire_cm msg;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		san_cm_rx_answer_reset(net.h[1].cm, &p, net.now_ns);
		n += san_cm_tx_next(net.h[1].cm, &path, &q, &msg, net.now_ns);
		net.now_ns += 100;
	}
	/* ten milliseconds */
	assert_in_range(n, 1000, 1100);
	assert_int_equal(san_cm_drops(net.h[1].cm)[SAN_DROP_CM_RATE], 100000 - n);
}

/* A flood of one host does not keep another one from connecting. (RT-36) */
UNIT_CASE(flood__of_one_host)
{
	struct san_wire_pkt stray = cm_net_stray(&net, SAN_OP_PROBE), p = cm_pkt;
	struct san_wire_path from = cm_net_path(&net, 0);
	struct san_wire_cm msg = cm_net_req(0);
	struct rte_mbuf *m = cm_net_build(&net, &from, &p, &msg);
	struct san_wire_ack ack;

	assert_int_equal(san_wire_parse(m, SAN_WIRE_PORT, &p, &ack), SAN_DROP_NONE);
	p.src.b[15] = stray.src.b[15] = 99;
	for (uint32_t i = 0; i < 10000; i++) {
		if (i == 2000)
			cm_net_connect(&net, 0, 1);
		san_cm_rx(net.h[1].cm, m, &p, net.now_ns);
		san_cm_rx_answer_reset(net.h[1].cm, &stray, net.now_ns);
		cm_net_run(&net, 1000);
	}
	rte_pktmbuf_free(m);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 1);
}

/* A forged REQ of another host each time, without a cookie or with a wrong one. */
static void
forge_random(struct rte_mbuf *m, struct san_wire_pkt *p, uint32_t i)
{
	put_be32(p->src.b + 12, 0x14000000 + i * 0x9e3779b9 % 0x60000000);
	san_cm_rx(net.h[1].cm, m, p, net.now_ns);
}

/*
 * Two million REQs a second of random hosts: a host that has connected before connects like without
 * them. (RT-35, RT-36)
 */
UNIT_CASE(flood__of_random_hosts)
{
	struct san_wire_cm msg[2] = {cm_net_req(0), cm_net_req(1)};
	struct san_wire_path from = cm_net_path(&net, 0);
	struct san_wire_pkt p[2] = {cm_pkt, cm_pkt};
	struct san_wire_ack ack;
	struct rte_mbuf *m[2];
	uint32_t k;

	msg[1].flags |= SAN_CM_F_COOKIE;
	put_be32(msg[1].cookie + 16, (uint32_t)(net.now_ns / (4 * SAN_NS_PER_S)));
	for (uint32_t i = 0; i < 2; i++) {
		m[i] = cm_net_build(&net, &from, &p[i], &msg[i]);
		assert_int_equal(san_wire_parse(m[i], SAN_WIRE_PORT, &p[i], &ack), SAN_DROP_NONE);
	}
	cm_net_connect(&net, 0, 0);
	cm_net_run(&net, 100 * MS);
	for (k = 1; k <= 8; k++) {
		assert_events(0, SAN_CM_EV_ESTABLISHED, k);
		for (uint32_t i = 0; i < 4000; i++) {
			if (i == 2000 + 3 * k)
				cm_net_connect(&net, 0, k);
			forge_random(m[0], &p[0], k * 4000 + i);
			forge_random(m[1], &p[1], k * 4000 + i);
			cm_net_run(&net, 1000);
		}
	}
	assert_events(0, SAN_CM_EV_ESTABLISHED, k);
	rte_pktmbuf_free(m[0]);
	rte_pktmbuf_free(m[1]);
}
