/* SPDX-License-Identifier: BSD-3-Clause */

/* Silence, PROBEs, and dead peers. (RT-24) */

#include "test_cm.h"

#define INTERVAL (100 * MS)

static uint16_t slot[2];
static uint32_t nb_probes[2];

static void
count_probes(struct cm_net *n, int from, const struct san_wire_pkt *p,
	     const struct san_wire_cm *msg, struct cm_fate *fate)
{
	nb_probes[from] += p->op == SAN_OP_PROBE;
	/* arg[0]: number of PROBEs that are lost */
	if (p->op == SAN_OP_PROBE && n->arg[0] != 0) {
		n->arg[0]--;
		fate->copies = 0;
	}
}

/** Host 0 sends PROBEs, host 1 does not. */
static void
setup(void)
{
	cm_setup();
	net.h[0].param.keepalive_ms = 100;
	cm_net_open(&net, slot);
	net.hook = count_probes;
	memset(nb_probes, 0, sizeof(nb_probes));
}

UNIT_FIXTURE(.setup = setup, .teardown = cm_teardown);

UNIT_CASE(probe__answered_for_ever)
{
	cm_net_run(&net, 100 * INTERVAL);
	/* one per silent interval: the answer ends the silence */
	assert_in_range(nb_probes[0], 90, 101);
	assert_int_equal(nb_probes[1], 0);
	assert_int_equal(san_cm_state(net.h[0].cm, slot[0]), SAN_CM_ESTABLISHED);
	assert_events(0, SAN_CM_EV_DISCONNECTED, 0);
}

UNIT_CASE(probe__not_while_packets_arrive)
{
	for (unsigned int i = 0; i < 100; i++) {
		cm_net_tx_data(&net, 1, slot[1]);
		cm_net_run(&net, INTERVAL / 2);
	}
	assert_int_equal(nb_probes[0], 0);
}

/* Five unanswered PROBEs: the peer is dead, in bounded time; one event, all is released. */
UNIT_CASE(probe__peer_is_gone)
{
	net.h[1].dead = true;
	cm_net_run(&net, 6 * INTERVAL - 11 * MS);
	assert_int_equal(nb_probes[0], 5);
	assert_events(0, SAN_CM_EV_DISCONNECTED, 0);
	cm_net_run(&net, 12 * MS);
	assert_ended_by(0, SAN_CM_EV_DISCONNECTED, RTSAN_R_TIMEOUT);
	assert_int_equal(net.h[0].last[SAN_CM_EV_DISCONNECTED].cookie, 42);
	assert_int_equal(net.h[0].pdl->nb_conns, 0);
	cm_net_run(&net, 100 * INTERVAL);
	assert_int_equal(nb_probes[0], 5);
}

/* Four lost in a row do not end the connection, and an answer restarts the count. */
UNIT_CASE(probe__some_lost)
{
	for (unsigned int i = 0; i < 10; i++) {
		net.arg[0] = 4;
		cm_net_run(&net, 7 * INTERVAL);
		assert_int_equal(net.arg[0], 0);
	}
	assert_events(0, SAN_CM_EV_DISCONNECTED, 0);
	net.arg[0] = 5;
	cm_net_run(&net, 8 * INTERVAL);
	assert_events(0, SAN_CM_EV_DISCONNECTED, 1);
}

/* The restarted peer does not know the first PROBE, and answers so. */
UNIT_CASE(probe__peer_restarted)
{
	cm_restart(1);
	cm_net_run(&net, 3 * INTERVAL / 2);
	assert_int_equal(nb_probes[0], 1);
	assert_ended_by(0, SAN_CM_EV_DISCONNECTED, RTSAN_R_STALE);
	assert_int_equal(net.h[0].pdl->nb_conns, 0);
}

UNIT_CASE(probe__not_when_switched_off)
{
	net.h[0].dead = true;
	cm_net_run(&net, 1000 * INTERVAL);
	assert_int_equal(nb_probes[1], 0);
	assert_int_equal(san_cm_state(net.h[1].cm, slot[1]), SAN_CM_ESTABLISHED);
}

/* A disconnect has its own timers. */
UNIT_CASE(probe__not_while_draining)
{
	net.h[1].dead = true;
	assert_int_equal(san_cm_fsm_disconnect(net.h[0].cm, slot[0], false, net.now_ns), 0);
	cm_net_run(&net, 20 * INTERVAL);
	assert_int_equal(nb_probes[0], 0);
	assert_int_equal(san_cm_state(net.h[0].cm, slot[0]), SAN_CM_DRAINING);
}

/* RT-34: a connection has the features of both sides; unknown bits are ignored. */
UNIT_CASE(connect__agrees_on_features)
{
	static const uint32_t table[][3] = {
		{1, 1, 1}, {1, 0, 0}, {0, 1, 0}, {0x80000001, 1, 1}, {1, 0xf0, 0}};

	assert_int_equal(net.h[0].cm->conf.features, SAN_CM_FEAT_PACK);
	for (unsigned int i = 0; i < RTE_DIM(table); i++) {
		net.h[0].cm->conf.features = table[i][0];
		net.h[1].cm->conf.features = table[i][1];
		cm_net_open(&net, slot);
		assert_int_equal(san_cm_agreed(net.h[0].cm, slot[0])->features, table[i][2]);
		assert_int_equal(san_cm_agreed(net.h[1].cm, slot[1])->features, table[i][2]);
	}
}
