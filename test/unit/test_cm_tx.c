/* SPDX-License-Identifier: BSD-3-Clause */

/* What is sent, how often, and how much of it at most. (design, rule 17) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cm_net.h"
#include "cm_priv.h"

#define MS SAN_NS_PER_MS

static struct rte_mempool *pool;
static struct cm_net net;
static struct san_wire_path path;
static struct san_wire_pkt pkt;
static struct san_wire_cm msg;

static int
setup(void **state)
{
	(void)state;
	cm_net_init(&net, pool, 1, 16, false);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	cm_net_fini(&net);
	return (int)rte_mempool_in_use_count(pool);
}

static bool
next(void)
{
	return san_cm_tx_next(net.h[0].cm, &path, &pkt, &msg, net.now_ns);
}

static void
rate_take__bucket(void **state)
{
	struct san_cm *cm = net.h[0].cm;
	uint64_t now_ns = net.now_ns;
	uint32_t i;

	(void)state;
	/* full at first: a millisecond's worth */
	for (i = 0; i < 100; i++)
		assert_true(san_cm_rate_take(cm, now_ns));
	assert_false(san_cm_rate_take(cm, now_ns));
	/* one every 10 us */
	assert_false(san_cm_rate_take(cm, now_ns + 9999));
	assert_true(san_cm_rate_take(cm, now_ns + 10000));
	assert_false(san_cm_rate_take(cm, now_ns + 10000));
	/* time that goes back gives nothing */
	assert_false(san_cm_rate_take(cm, now_ns));
	assert_false(san_cm_rate_take(cm, now_ns + 19999));
	assert_true(san_cm_rate_take(cm, now_ns + 20000));
	/* and a long rest no more than it holds */
	now_ns += 3600 * SAN_NS_PER_S;
	for (i = 0; i < 100; i++)
		assert_true(san_cm_rate_take(cm, now_ns));
	assert_false(san_cm_rate_take(cm, now_ns));
	/* however long: nothing overflows */
	now_ns += 1ULL << 62;
	for (i = 0; i < 100; i++)
		assert_true(san_cm_rate_take(cm, now_ns));
	assert_false(san_cm_rate_take(cm, now_ns));
}

/* Asked for in the smallest steps, nothing is rounded away. */
static void
rate_take__small_steps(void **state)
{
	struct san_cm *cm = net.h[0].cm;
	uint32_t i, n = 0;

	(void)state;
	while (san_cm_rate_take(cm, net.now_ns))
		;
	for (i = 0; i < 1000000; i++)
		n += san_cm_rate_take(cm, ++net.now_ns);
	assert_int_equal(n, 100);
}

static void
tx_next__fills_all(void **state)
{
	uint16_t slot = cm_net_connect(&net, 0, 1);
	const struct san_pdl_conn *c = &net.h[0].pdl->conns[slot];

	(void)state;
	memset(&pkt, 0xee, sizeof(pkt));
	assert_true(next());
	assert_int_equal(pkt.op, SAN_OP_CM);
	assert_int_equal(pkt.dcid, SAN_WIRE_CID_CM);
	assert_int_equal(pkt.pkey, CM_NET_PKEY);
	assert_int_equal(pkt.tag, 0);
	assert_int_equal(pkt.psn, 0);
	assert_int_equal(pkt.flags, 0);
	assert_int_equal(pkt.tx_time, (uint32_t)net.now_ns);
	assert_true(rte_is_zero_ether_addr(&path.dst_mac));
	assert_true(rte_is_same_ether_addr(&path.src_mac, &net.h[0].mac));
	/* ports are not known yet: any of the entropy range */
	assert_in_range(path.src_port, 49152, 65535);
	assert_int_equal(msg.msg, SAN_CM_REQ);
	assert_int_equal(msg.flags, SAN_CM_F_ORDERED);
	assert_int_equal(msg.src_cid, c->cid);
	assert_int_equal(msg.src_tag, c->tag);
	assert_int_equal(msg.nb_ports, 2);
	assert_int_equal(msg.ports[0], 50001);
	assert_int_equal(msg.service, CM_NET_SERVICE);
	assert_false(next());
}

/* Retries: 20 ms, doubled each time up to 500; one message waits at most. */
static void
tx_next__retries_double(void **state)
{
	uint64_t begin_ns = net.now_ns;
	uint16_t slot = cm_net_connect(&net, 0, 1);
	uint64_t due_ns = 0;
	uint32_t i;

	(void)state;
	assert_true(next());
	for (i = 0; i < 7; i++) {
		due_ns += RTE_MIN(20 * MS << i, 500 * MS);
		net.now_ns = begin_ns + due_ns - 1;
		san_cm_on_timer(net.h[0].cm, slot, net.now_ns);
		assert_false(next());
		net.now_ns++;
		san_cm_on_timer(net.h[0].cm, slot, net.now_ns);
		san_cm_on_timer(net.h[0].cm, slot, net.now_ns);
		assert_true(next());
		assert_int_equal(msg.msg, SAN_CM_REQ);
		assert_false(next());
	}
}

/* The ring of answers is finite, and takes no more than it holds. */
static void
reply__ring_is_full(void **state)
{
	struct san_wire_pkt p = {.src = net.h[1].ip, .dst = net.h[0].ip};
	struct san_wire_cm m = {.msg = SAN_CM_REJ};
	uint32_t i;

	(void)state;
	for (i = 0; i < CM_OUT_MAX; i++) {
		m.xid = i;
		assert_true(san_cm_tx_reply(net.h[0].cm, &p, 1, &m));
	}
	assert_false(san_cm_tx_reply(net.h[0].cm, &p, 1, &m));
	cm_net_check(&net);
	for (i = 0; i < CM_OUT_MAX; i++) {
		assert_true(next());
		assert_int_equal(msg.xid, i);
	}
	assert_false(next());
	assert_true(san_cm_tx_reply(net.h[0].cm, &p, 1, &m));
}

/* A last word that finds no room is counted; the other side's retries make up for it. */
static void
farewell__ring_is_full(void **state)
{
	struct san_wire_pkt p = {.src = net.h[1].ip, .dst = net.h[0].ip};
	struct san_wire_cm m = {.msg = SAN_CM_REJ};
	uint16_t slot[2];

	(void)state;
	cm_net_listen(&net, 1);
	cm_net_open(&net, slot);
	while (san_cm_tx_reply(net.h[0].cm, &p, 1, &m))
		;
	san_cm_failed(net.h[0].cm, slot[0], SAN_CM_R_TIMEOUT, net.now_ns);
	assert_int_equal(san_cm_drops(net.h[0].cm)[SAN_DROP_CM_RATE], 1);
	cm_net_events(&net, 0);
	assert_int_equal(net.h[0].pdl->nb_conns, 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(rate_take__bucket),
		TEST(rate_take__small_steps),
		TEST(tx_next__fills_all),
		TEST(tx_next__retries_double),
		TEST(reply__ring_is_full),
		TEST(farewell__ring_is_full),
	};

	pool = test_eal_pool("cm_tx", 1023, 2048);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
