/* SPDX-License-Identifier: BSD-3-Clause */

/* Silence, PROBEs, and dead peers. (RT-24) */

#include "unit.h"
#include "cm_net.h"

#define MS       SAN_NS_PER_MS
#define INTERVAL (100 * MS)

static struct rte_mempool *pool;
static struct cm_net net;
static uint16_t slot[2];
static uint32_t nb_probes[2];

static void
count_probes(struct cm_net *n, int from, const struct san_wire_pkt *p,
	     const struct san_wire_cm *msg, struct cm_fate *fate)
{
	(void)msg;
	nb_probes[from] += p->op == SAN_OP_PROBE;
	/* arg[0]: number of PROBEs that are lost */
	if (p->op == SAN_OP_PROBE && n->arg[0] != 0) {
		n->arg[0]--;
		fate->copies = 0;
	}
}

/** Host 0 sends PROBEs, host 1 does not. */
static int
setup(void **state)
{
	(void)state;
	cm_net_init(&net, pool, 1, 16, false);
	cm_net_listen(&net, 1);
	net.h[0].param.keepalive_ms = 100;
	cm_net_open(&net, slot);
	net.hook = count_probes;
	memset(nb_probes, 0, sizeof(nb_probes));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	cm_net_fini(&net);
	return (int)rte_mempool_in_use_count(pool);
}

static void
probe__answered_for_ever(void **state)
{
	(void)state;
	cm_net_run(&net, 100 * INTERVAL);
	/* one per silent interval: the answer ends the silence */
	assert_in_range(nb_probes[0], 90, 101);
	assert_int_equal(nb_probes[1], 0);
	assert_int_equal(san_cm_state(net.h[0].cm, slot[0]), SAN_CM_ESTABLISHED);
	assert_int_equal(net.h[0].nb[SAN_CM_EV_DISCONNECTED], 0);
}

static void
probe__not_while_packets_arrive(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		cm_net_tx_data(&net, 1, slot[1]);
		cm_net_run(&net, INTERVAL / 2);
	}
	assert_int_equal(nb_probes[0], 0);
}

/* Five unanswered PROBEs: the peer is dead, in bounded time; one event, all is released. */
static void
probe__peer_is_gone(void **state)
{
	(void)state;
	net.h[1].dead = true;
	cm_net_run(&net, 6 * INTERVAL - 11 * MS);
	assert_int_equal(nb_probes[0], 5);
	assert_int_equal(net.h[0].nb[SAN_CM_EV_DISCONNECTED], 0);
	cm_net_run(&net, 12 * MS);
	assert_int_equal(net.h[0].nb[SAN_CM_EV_DISCONNECTED], 1);
	assert_int_equal(net.h[0].last[SAN_CM_EV_DISCONNECTED].reason, RTSAN_R_TIMEOUT);
	assert_int_equal(net.h[0].last[SAN_CM_EV_DISCONNECTED].cookie, 42);
	assert_int_equal(net.h[0].pdl->nb_conns, 0);
	cm_net_run(&net, 100 * INTERVAL);
	assert_int_equal(nb_probes[0], 5);
}

/* Four lost in a row do not end the connection, and an answer restarts the count. */
static void
probe__some_lost(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		net.arg[0] = 4;
		cm_net_run(&net, 7 * INTERVAL);
		assert_int_equal(net.arg[0], 0);
	}
	assert_int_equal(net.h[0].nb[SAN_CM_EV_DISCONNECTED], 0);
	net.arg[0] = 5;
	cm_net_run(&net, 8 * INTERVAL);
	assert_int_equal(net.h[0].nb[SAN_CM_EV_DISCONNECTED], 1);
}

/* The restarted peer does not know the first PROBE, and answers so. */
static void
probe__peer_restarted(void **state)
{
	struct san_pdl_conf pdl_conf;
	struct san_cm_conf cm_conf;

	(void)state;
	cm_net_pdl_conf(&net.h[1], 16, &pdl_conf);
	cm_net_cm_conf(&net.h[1], 16, &cm_conf);
	cm_net_start(&net, 1, &pdl_conf, &cm_conf);
	cm_net_run(&net, 3 * INTERVAL / 2);
	assert_int_equal(nb_probes[0], 1);
	assert_int_equal(net.h[0].nb[SAN_CM_EV_DISCONNECTED], 1);
	assert_int_equal(net.h[0].last[SAN_CM_EV_DISCONNECTED].reason, RTSAN_R_STALE);
	assert_int_equal(net.h[0].pdl->nb_conns, 0);
}

static void
probe__not_when_switched_off(void **state)
{
	(void)state;
	net.h[0].dead = true;
	cm_net_run(&net, 1000 * INTERVAL);
	assert_int_equal(nb_probes[1], 0);
	assert_int_equal(san_cm_state(net.h[1].cm, slot[1]), SAN_CM_ESTABLISHED);
}

/* A disconnect has its own timers. */
static void
probe__not_while_draining(void **state)
{
	(void)state;
	net.h[1].dead = true;
	assert_int_equal(san_cm_fsm_disconnect(net.h[0].cm, slot[0], false, net.now_ns), 0);
	cm_net_run(&net, 20 * INTERVAL);
	assert_int_equal(nb_probes[0], 0);
	assert_int_equal(san_cm_state(net.h[0].cm, slot[0]), SAN_CM_DRAINING);
}

/* RT-34: a connection has the features of both sides; unknown bits are ignored. */
static void
connect__agrees_on_features(void **state)
{
	static const uint32_t table[][3] = {
		{0x1, 0x1, 0x1},
		{0x1, 0x0, 0x0},
		{0x0, 0x1, 0x0},
		{0x80000001, 0x1, 0x1},
		{0x1, 0xf0, 0x0},
	};
	unsigned int i;

	(void)state;
	assert_int_equal(net.h[0].cm->conf.features, SAN_CM_FEAT_PACK);
	for (i = 0; i < RTE_DIM(table); i++) {
		net.h[0].cm->conf.features = table[i][0];
		net.h[1].cm->conf.features = table[i][1];
		cm_net_open(&net, slot);
		assert_int_equal(san_cm_agreed(net.h[0].cm, slot[0])->features, table[i][2]);
		assert_int_equal(san_cm_agreed(net.h[1].cm, slot[1])->features, table[i][2]);
	}
}

UNIT_TEST(test_cm_keepalive)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(probe__answered_for_ever),
		TEST(probe__not_while_packets_arrive),
		TEST(probe__peer_is_gone),
		TEST(probe__some_lost),
		TEST(probe__peer_restarted),
		TEST(probe__not_when_switched_off),
		TEST(connect__agrees_on_features),
		TEST(probe__not_while_draining),
	};

	pool = test_eal_pool("cm_keepalive", 1023, 2048);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
