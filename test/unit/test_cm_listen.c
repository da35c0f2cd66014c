/* SPDX-License-Identifier: BSD-3-Clause */

/* Listeners by service and partition. (RT-29) */

#include "test_cm.h"

UNIT_FIXTURE(.setup = cm_idle, .teardown = cm_teardown);

UNIT_CASE(find__service_and_partition)
{
	struct san_cm *cm = net.h[1].cm;
	uint8_t reason;

	assert_null(san_cm_listen_find(cm, 1, 1, &reason));
	assert_int_equal(reason, RTSAN_R_NO_LISTENER);
	assert_int_equal(san_cm_listen(cm, 1, 1, 8, 11), 0);
	assert_int_equal(san_cm_listen(cm, 1, 2, 8, 12), 0);
	assert_int_equal(san_cm_listen(cm, 1ULL << 63 | 1, 1, 8, 13), 0);
	assert_int_equal(san_cm_listen_find(cm, 1, 1, &reason)->cookie, 11);
	assert_int_equal(reason, RTSAN_R_NONE);
	assert_int_equal(san_cm_listen_find(cm, 1, 2, &reason)->cookie, 12);
	assert_int_equal(san_cm_listen_find(cm, 1ULL << 63 | 1, 1, &reason)->cookie, 13);
	assert_null(san_cm_listen_find(cm, 1, 3, &reason));
	assert_int_equal(reason, RTSAN_R_PKEY);
	assert_null(san_cm_listen_find(cm, 2, 1, &reason));
	assert_int_equal(reason, RTSAN_R_NO_LISTENER);
}

UNIT_CASE(listen__twice_and_too_many)
{
	struct san_cm *cm = net.h[1].cm;

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(san_cm_listen(cm, i, 1, 8, 0), 0);
	assert_int_equal(san_cm_listen(cm, 2, 1, 8, 0), -EADDRINUSE);
	assert_int_equal(san_cm_listen(cm, 4, 1, 8, 0), -ENOSPC);
	san_cm_listen_end(cm, 2, 7); /* of another partition */
	assert_int_equal(san_cm_listen(cm, 4, 1, 8, 0), -ENOSPC);
	san_cm_listen_end(cm, 2, 1);
	assert_int_equal(san_cm_listen(cm, 4, 1, 8, 0), 0);
	san_cm_listen_end(cm, 99, 1);
}

/* Consecutive services, or with equal low bits: a request checks few listeners. (RT-36) */
UNIT_CASE(find__short_lists)
{
	static const unsigned int shifts[] = {0, 8, 16, 32, 56};
	struct cm_listener *l;
	struct san_cm *cm;
	uint32_t n;

	net.h[1].cm_conf.max_listeners = 256;
	cm_restart(1);
	cm = net.h[1].cm;
	for (uint32_t s = 0; s < RTE_DIM(shifts); s++) {
		for (uint32_t i = 0; i < 256; i++)
			assert_int_equal(san_cm_listen(cm, (uint64_t)i << shifts[s], 1, 8, 0), 0);
		for (uint32_t i = 0; i < CM_SERVICES; i++) {
			n = 0;
			SLIST_FOREACH(l, &cm->services[i], link)
				n++;
			assert_in_range(n, 0, 8);
		}
		for (uint32_t i = 0; i < 256; i++)
			san_cm_listen_end(cm, (uint64_t)i << shifts[s], 1);
	}
}

/* Two listeners of one service: each request goes to the one of its partition. */
UNIT_CASE(listen__per_partition)
{
	assert_int_equal(san_cm_listen(net.h[1].cm, CM_NET_SERVICE, CM_NET_PKEY, 8, 1), 0);
	assert_int_equal(san_cm_listen(net.h[1].cm, CM_NET_SERVICE, 5, 8, 2), 0);
	net.h[0].param.pkey = 5;
	net.h[1].param.pkey = 5;
	cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].listener, 2);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 1);
}

/* Requests that wait for accept are refused; open connections stay. */
UNIT_CASE(unlisten__refuses_who_waits)
{
	uint16_t slot[2], waiting;

	cm_net_listen(&net, 1);
	cm_net_open(&net, slot);
	net.h[1].no_accept = true;
	cm_net_connect(&net, 0, 7);
	cm_net_run(&net, 1 * MS);
	waiting = cm_requested();
	san_cm_listen_end(net.h[1].cm, CM_NET_SERVICE, CM_NET_PKEY);
	cm_net_run(&net, 1 * MS);
	assert_ended_by(0, SAN_CM_EV_REJECTED, RTSAN_R_NO_LISTENER);
	assert_int_equal(
		san_cm_fsm_accept_peer(net.h[1].cm, waiting, &net.h[1].param, 0, net.now_ns),
		-ENOENT);
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
	assert_int_equal(san_cm_state(net.h[1].cm, slot[1]), SAN_CM_ESTABLISHED);
}

/* A request that is not yet reported to the ULP. */
UNIT_CASE(unlisten__before_the_event)
{
	struct san_wire_cm msg;
	int from;

	cm_net_listen(&net, 1);
	cm_net_connect(&net, 0, 7);
	san_cm_fsm_resolved(net.h[0].cm, &net.h[1].ip, &net.h[1].mac, net.now_ns);
	for (int i = 0; i < 3; i++) {
		from = i & 1;
		assert_true(san_cm_tx_next(net.h[from].cm, &path, &pkt, &msg, net.now_ns));
		cm_net_rx(&net, 1 - from, cm_net_build(&net, &path, &pkt, &msg));
	}
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
	san_cm_listen_end(net.h[1].cm, CM_NET_SERVICE, CM_NET_PKEY);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
	cm_net_run(&net, 1 * MS);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 0);
	assert_events(0, SAN_CM_EV_REJECTED, 1);
}
