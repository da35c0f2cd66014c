/* SPDX-License-Identifier: BSD-3-Clause */

/* Records of connections: configuration, hash of peers, slots, events. (RT-1, RT-24) */

#include "unit.h"

#include <errno.h>

#include "cm_net.h"

#define MS SAN_NS_PER_MS

static struct rte_mempool *pool;
static struct cm_net net;

static int
setup(void **state)
{
	(void)state;
	cm_net_init(&net, pool, 1, 64, false);
	cm_net_listen(&net, 1);
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
create__configuration(void **state)
{
	struct san_cm_conf good, conf;
	struct san_cm *cm;

	(void)state;
	cm_net_cm_conf(&net.h[0], 64, &good);
#define BAD(change)                                                                 \
	do {                                                                        \
		conf = good;                                                        \
		change;                                                             \
		assert_int_equal(san_cm_create(&conf, net.h[0].pdl, &cm), -EINVAL); \
	} while (0)
	BAD(conf.max_conns = 63);
	BAD(conf.max_retries = CM_RETRIES_MAX + 1);
	BAD(conf.keepalive_probes = 0);
	BAD(conf.retry_ns = 0);
	BAD(conf.cookie_slot_ns = 0);
	BAD(conf.rate_per_ms = 0);
	BAD(conf.nb_ports = SAN_WIRE_CM_PORTS + 1);
	BAD(conf.path.dst_port = 0);
	/* a secret that is publicly known */
	BAD(memset(conf.secret, 0, sizeof(conf.secret)));
#undef BAD
	assert_int_equal(san_cm_create(&good, net.h[0].pdl, &cm), 0);
	san_cm_destroy(cm);
	san_cm_destroy(NULL);
}

/* Idle connections are cheap: 2 KiB with all layers, by ARCH-9. */
static void
conn__is_small(void **state)
{
	(void)state;
	assert_true(sizeof(struct san_cm_conn) <= 512);
}

static struct san_cm_conn *
hashed(uint32_t cid, uint32_t tag, const struct san_ip *peer)
{
	struct san_cm_conn *c;

	assert_int_equal(san_cm_conn_add(net.h[0].cm, &net.h[0].ip, peer, 1, &c), 0);
	c->peer_cid = cid;
	c->peer_tag = tag;
	san_cm_hash_add(net.h[0].cm, c);
	return c;
}

static void
hash__finds_each(void **state)
{
	struct san_cm *cm = net.h[0].cm;
	struct san_ip a = cm_net_ip(1, false), b = cm_net_ip(2, false);
	struct san_cm_conn *c[60];
	unsigned int i;

	(void)state;
	for (i = 0; i < 60; i++)
		c[i] = hashed(i / 4, i & 1, i & 2 ? &a : &b);
	for (i = 0; i < 60; i++) {
		assert_ptr_equal(san_cm_hash_find(cm, i & 2 ? &a : &b, i / 4, i & 1), c[i]);
		assert_false(san_cm_hash_free(cm, i & 2 ? &a : &b, i / 4, i & 1));
	}
	assert_null(san_cm_hash_find(cm, &b, 99, 0));
	assert_null(san_cm_hash_find(cm, &b, 0, 2));
	assert_true(san_cm_hash_free(cm, &b, 0, 2));
	for (i = 0; i < 60; i += 2)
		san_cm_hash_del(cm, c[i]);
	san_cm_hash_del(cm, c[0]); /* has no effect */
	for (i = 0; i < 60; i++)
		assert_int_equal(san_cm_hash_find(cm, i & 2 ? &a : &b, i / 4, i & 1) != NULL,
				 i & 1);
}

/* RT-36: whatever names a peer chooses, a look-up takes a few steps. */
static void
hash__chains_are_short(void **state)
{
	struct san_cm *cm = net.h[0].cm;
	struct san_ip peer = cm_net_ip(1, false);
	uint32_t i, slot, nb;

	(void)state;
	for (i = 0; i < 64; i++)
		hashed(0x777, 1 + i, &peer);
	for (i = 0; i <= cm->bucket_mask; i++) {
		nb = 0;
		for (slot = cm->buckets[i]; slot != CM_NO_SLOT; slot = cm->conns[slot].hash_next)
			nb++;
		assert_in_range(nb, 0, 6);
	}
}

/* Connections that wait for a host are found without a search among others. (RT-36) */
static void
resolving__lists_are_short(void **state)
{
	struct san_cm *cm = net.h[0].cm;
	const struct san_cm_param param = cm_net_param();
	const struct san_cm_conn *c;
	struct san_ip peer = cm_net_ip(1, false);
	uint32_t i, nb;
	uint16_t slot;

	(void)state;
	for (i = 0; i < 60; i++) {
		peer.b[15] = (uint8_t)i;
		assert_int_equal(san_cm_fsm_connect(cm, &net.h[0].ip, &peer, 1, &param, 0,
						    net.now_ns, &slot),
				 0);
	}
	for (i = 0; i < CM_RESOLVING; i++) {
		nb = 0;
		TAILQ_FOREACH(c, &cm->resolving[i], change_link)
			nb++;
		assert_in_range(nb, 0, 4);
	}
	san_cm_check(cm);
	san_cm_fsm_resolved(cm, &peer, &net.h[1].mac, net.now_ns);
	assert_int_equal(san_cm_state(cm, slot), SAN_CM_REQ_SENT);
	san_cm_check(cm);
}

/* Each side learns the other's user, or that the other does not state it. */
static void
event__states_the_user(void **state)
{
	static const uint32_t uids[][2] = {{1000, 7}, {RTSAN_UID_NONE, 0}, {0, RTSAN_UID_NONE}};
	uint16_t slot[2];
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(uids); i++) {
		net.h[0].param.uid = uids[i][0];
		net.h[1].param.uid = uids[i][1];
		cm_net_open(&net, slot);
		assert_int_equal(net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].uid, uids[i][0]);
		assert_int_equal(net.h[1].last[SAN_CM_EV_ESTABLISHED].uid, uids[i][0]);
		assert_int_equal(net.h[0].last[SAN_CM_EV_ESTABLISHED].uid, uids[i][1]);
	}
}

/* There is one final event, and no event after it. */
static void
event__final(void **state)
{
	struct san_cm *cm = net.h[1].cm;
	struct san_cm_event ev;
	uint16_t slot[2];

	(void)state;
	cm_net_open(&net, slot);
	san_cm_fsm_failed(cm, slot[1], RTSAN_R_TIMEOUT, net.now_ns);
	san_cm_fsm_failed(cm, slot[1], RTSAN_R_TIMEOUT, net.now_ns);
	assert_true(san_cm_event_next(cm, &ev));
	assert_int_equal(ev.type, SAN_CM_EV_DISCONNECTED);
	assert_false(san_cm_event_next(cm, &ev));
	san_cm_release(cm, slot[1], net.now_ns);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
}

/* Established and ended before the events are polled: both are reported, in this order. */
static void
event__two_at_once(void **state)
{
	struct san_cm *cm = net.h[1].cm;
	struct san_wire_path path;
	struct san_wire_pkt p;
	struct san_wire_cm msg;
	struct san_cm_event ev;
	uint16_t slot;

	(void)state;
	net.h[1].no_accept = true;
	slot = cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(
		san_cm_fsm_accept_peer(cm, net.h[1].last[1].slot, &net.h[1].param, 9, net.now_ns),
		0);
	assert_true(san_cm_tx_next(cm, &path, &p, &msg, net.now_ns));
	assert_int_equal(cm_net_rx(&net, 0, cm_net_build(&net, &path, &p, &msg)), 0);
	assert_true(san_cm_tx_next(net.h[0].cm, &path, &p, &msg, net.now_ns));
	assert_int_equal(msg.msg, SAN_CM_RTU);
	assert_int_equal(cm_net_rx(&net, 1, cm_net_build(&net, &path, &p, &msg)), 0);
	assert_int_equal(san_cm_fsm_disconnect(net.h[0].cm, slot, true, net.now_ns), 0);
	assert_true(san_cm_tx_next(net.h[0].cm, &path, &p, &msg, net.now_ns));
	assert_int_equal(msg.msg, SAN_CM_DREQ);
	assert_int_equal(cm_net_rx(&net, 1, cm_net_build(&net, &path, &p, &msg)), 0);
	assert_true(san_cm_event_next(cm, &ev));
	assert_int_equal(ev.type, SAN_CM_EV_ESTABLISHED);
	assert_int_equal(ev.cookie, 9);
	assert_true(san_cm_event_next(cm, &ev));
	assert_int_equal(ev.type, SAN_CM_EV_DISCONNECTED);
	assert_false(san_cm_event_next(cm, &ev));
	san_cm_release(cm, ev.slot, net.now_ns);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
}

/* If it is released before its event is polled, the slot is not reused until then. */
static void
event__keeps_its_slot(void **state)
{
	struct san_cm *cm = net.h[1].cm;
	struct san_cm_event ev;
	uint16_t slot[2];

	(void)state;
	cm_net_open(&net, slot);
	san_cm_fsm_failed(cm, slot[1], RTSAN_R_TIMEOUT, net.now_ns);
	san_cm_release(cm, slot[1], net.now_ns);
	cm_net_check(&net);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
	assert_int_equal(net.h[1].pdl->free_count, 63);
	assert_true(san_cm_event_next(cm, &ev));
	assert_int_equal(ev.type, SAN_CM_EV_DISCONNECTED);
	assert_int_equal(ev.slot, slot[1]);
	assert_false(san_cm_event_next(cm, &ev));
	assert_int_equal(net.h[1].pdl->free_count, 64);
	cm_net_check(&net);
}

/* No room for the private data of a REP: it is dropped, and will be repeated. */
static void
private__no_room(void **state)
{
	struct san_cm *cm = net.h[0].cm;
	uint32_t nb = cm->free_privates.nb;
	uint16_t slot;

	(void)state;
	net.h[1].param.private_len = 3;
	memcpy(net.h[1].param.private_data, "xyz", 3);
	cm->free_privates.nb = 0;
	slot = cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 100 * MS);
	assert_int_equal(san_cm_state(cm, slot), SAN_CM_REQ_COOKIE_SENT);
	assert_true(net.h[0].nb_rx[SAN_CM_REP] > 1);
	cm->free_privates.nb = nb;
	cm_net_run(&net, 1000 * MS);
	assert_int_equal(san_cm_state(cm, slot), SAN_CM_ESTABLISHED);
	assert_int_equal(net.h[0].last[SAN_CM_EV_ESTABLISHED].private_len, 3);
	assert_memory_equal(net.h[0].last[SAN_CM_EV_ESTABLISHED].private_data, "xyz", 3);
	assert_int_equal(cm->free_privates.nb, nb); /* taken and returned */
}

/* Only ended connections can be released. */
static void
release__only_after_the_end(void **state)
{
	uint16_t slot[2];

	(void)state;
	cm_net_open(&net, slot);
	san_cm_release(net.h[1].cm, slot[1], net.now_ns);
	san_cm_release(net.h[1].cm, 63, net.now_ns);
	san_cm_release(net.h[1].cm, 64, net.now_ns);
	assert_int_equal(san_cm_state(net.h[1].cm, slot[1]), SAN_CM_ESTABLISHED);
	net.h[1].no_release = true;
	san_cm_fsm_failed(net.h[1].cm, slot[1], RTSAN_R_TIMEOUT, net.now_ns);
	cm_net_settle(&net);
	assert_int_equal(san_cm_state(net.h[1].cm, slot[1]), SAN_CM_TIMEWAIT);
	san_cm_release(net.h[1].cm, slot[1], net.now_ns);
	san_cm_release(net.h[1].cm, slot[1], net.now_ns);
	assert_int_equal(san_cm_state(net.h[1].cm, slot[1]), SAN_CM_IDLE);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
	cm_net_check(&net);
}

static void
state__of_no_slot(void **state)
{
	(void)state;
	assert_int_equal(san_cm_state(net.h[0].cm, 64), SAN_CM_IDLE);
	assert_null(san_cm_agreed(net.h[0].cm, 64));
	assert_null(san_cm_agreed(net.h[0].cm, 0));
	san_cm_fsm_on_timer(net.h[0].cm, 0, net.now_ns);
	san_cm_fsm_on_timer(net.h[0].cm, 64, net.now_ns);
	san_cm_fsm_drained(net.h[0].cm, 64, net.now_ns);
	san_cm_fsm_failed(net.h[0].cm, 0, RTSAN_R_TIMEOUT, net.now_ns);
}

/* Slots are reused after their rest, thousands of times. */
static void
conn__churn(void **state) /* RT-24: both sides release everything */
{
	uint16_t slot[2];
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		cm_net_open(&net, slot);
		assert_int_equal(
			san_cm_fsm_disconnect(net.h[i & 1].cm, slot[i & 1], true, net.now_ns), 0);
		cm_net_run(&net, 10 * MS);
		assert_int_equal(net.h[0].pdl->nb_conns + net.h[1].pdl->nb_conns, 0);
	}
	assert_int_equal(net.h[1].nb[SAN_CM_EV_CONNECT_REQUEST], 1000);
}

UNIT_TEST(test_cm_conn)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(create__configuration),
		TEST(conn__is_small),
		TEST(hash__finds_each),
		TEST(hash__chains_are_short),
		TEST(resolving__lists_are_short),
		TEST(event__states_the_user),
		TEST(event__final),
		TEST(event__two_at_once),
		TEST(event__keeps_its_slot),
		TEST(private__no_room),
		TEST(release__only_after_the_end),
		TEST(state__of_no_slot),
		TEST(conn__churn),
	};

	pool = test_eal_pool("cm_conn", 1023, 2048);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
