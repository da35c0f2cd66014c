/* SPDX-License-Identifier: BSD-3-Clause */

/* Records of connections: configuration, hash of peers, slots, events. (RT-1, RT-24) */

#include "test_cm.h"

static void
setup(void)
{
	cm_net_init(&net, test_pool(), 1, 64, false);
	cm_net_listen(&net, 1);
}

UNIT_FIXTURE(.setup = setup, .teardown = cm_teardown);

UNIT_CASE(create__configuration)
{
	struct san_cm_conf conf;
	struct san_cm *cm;

#define BAD(change)                                                                 \
	do {                                                                        \
		conf = net.h[0].cm_conf;                                            \
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
	assert_int_equal(san_cm_create(&net.h[0].cm_conf, net.h[0].pdl, &cm), 0);
	san_cm_destroy(cm);
	san_cm_destroy(NULL);
}

/* Idle connections are cheap: 2 KiB with all layers, by ARCH-9. */
UNIT_CASE(conn__is_small)
{
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

UNIT_CASE(hash__finds_each)
{
	struct san_cm *cm = net.h[0].cm;
	struct san_ip a = cm_net_ip(1, false), b = cm_net_ip(2, false);
	struct san_cm_conn *c[60];

	for (unsigned int i = 0; i < 60; i++)
		c[i] = hashed(i / 4, i & 1, i & 2 ? &a : &b);
	for (unsigned int i = 0; i < 60; i++) {
		assert_ptr_equal(san_cm_hash_find(cm, i & 2 ? &a : &b, i / 4, i & 1), c[i]);
		assert_false(san_cm_hash_free(cm, i & 2 ? &a : &b, i / 4, i & 1));
	}
	assert_null(san_cm_hash_find(cm, &b, 99, 0));
	assert_null(san_cm_hash_find(cm, &b, 0, 2));
	assert_true(san_cm_hash_free(cm, &b, 0, 2));
	for (unsigned int i = 0; i < 60; i += 2)
		san_cm_hash_del(cm, c[i]);
	san_cm_hash_del(cm, c[0]); /* has no effect */
	for (unsigned int i = 0; i < 60; i++)
		assert_int_equal(san_cm_hash_find(cm, i & 2 ? &a : &b, i / 4, i & 1) != NULL,
				 i & 1);
}

/* RT-36: whatever names a peer chooses, a look-up takes a few steps. */
UNIT_CASE(hash__chains_are_short)
{
	struct san_cm *cm = net.h[0].cm;
	struct san_ip peer = cm_net_ip(1, false);
	uint32_t nb;

	for (uint32_t i = 0; i < 64; i++)
		hashed(0x777, 1 + i, &peer);
	for (uint32_t i = 0; i <= cm->bucket_mask; i++) {
		nb = 0;
		for (uint32_t slot = cm->buckets[i]; slot != CM_NO_SLOT;
		     slot = cm->conns[slot].hash_next)
			nb++;
		assert_in_range(nb, 0, 6);
	}
}

/* Connections that wait for a host are found without a search among others. (RT-36) */
UNIT_CASE(resolving__lists_are_short)
{
	struct san_cm *cm = net.h[0].cm;
	const struct san_cm_param param = cm_net_param();
	const struct san_cm_conn *c;
	struct san_ip peer = cm_net_ip(1, false);
	uint32_t nb;
	uint16_t slot;

	for (uint32_t i = 0; i < 60; i++) {
		peer.b[15] = (uint8_t)i;
		assert_int_equal(cm_connect(&peer, &param, &slot), 0);
	}
	for (uint32_t i = 0; i < CM_RESOLVING; i++) {
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
UNIT_CASE(event__states_the_user)
{
	static const uint32_t uids[][2] = {{1000, 7}, {RTSAN_UID_NONE, 0}, {0, RTSAN_UID_NONE}};
	uint16_t slot[2];

	for (unsigned int i = 0; i < RTE_DIM(uids); i++) {
		net.h[0].param.uid = uids[i][0];
		net.h[1].param.uid = uids[i][1];
		cm_net_open(&net, slot);
		assert_int_equal(net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].uid, uids[i][0]);
		assert_int_equal(net.h[1].last[SAN_CM_EV_ESTABLISHED].uid, uids[i][0]);
		assert_int_equal(net.h[0].last[SAN_CM_EV_ESTABLISHED].uid, uids[i][1]);
	}
}

/* There is one final event, and no event after it. */
UNIT_CASE(event__final)
{
	struct san_cm *cm = net.h[1].cm;
	struct san_cm_event ev;
	uint16_t slot[2];

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
UNIT_CASE(event__two_at_once)
{
	struct san_cm *cm = net.h[1].cm;
	struct san_wire_cm msg;
	struct san_cm_event ev;
	uint16_t slot;

	net.h[1].no_accept = true;
	slot = cm_net_connect(&net, 0, 1);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(cm_accept(cm_requested()), 0);
	assert_true(san_cm_tx_next(cm, &path, &pkt, &msg, net.now_ns));
	assert_int_equal(cm_net_rx(&net, 0, cm_net_build(&net, &path, &pkt, &msg)), 0);
	assert_true(cm_next(0, &msg));
	assert_int_equal(msg.msg, SAN_CM_RTU);
	assert_int_equal(cm_net_rx(&net, 1, cm_net_build(&net, &path, &pkt, &msg)), 0);
	assert_int_equal(san_cm_fsm_disconnect(net.h[0].cm, slot, true, net.now_ns), 0);
	assert_true(cm_next(0, &msg));
	assert_int_equal(msg.msg, SAN_CM_DREQ);
	assert_int_equal(cm_net_rx(&net, 1, cm_net_build(&net, &path, &pkt, &msg)), 0);
	assert_true(san_cm_event_next(cm, &ev));
	assert_int_equal(ev.type, SAN_CM_EV_ESTABLISHED);
	assert_int_equal(ev.cookie, 7);
	assert_true(san_cm_event_next(cm, &ev));
	assert_int_equal(ev.type, SAN_CM_EV_DISCONNECTED);
	assert_false(san_cm_event_next(cm, &ev));
	san_cm_release(cm, ev.slot, net.now_ns);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
}

/* If it is released before its event is polled, the slot is not reused until then. */
UNIT_CASE(event__keeps_its_slot)
{
	struct san_cm *cm = net.h[1].cm;
	struct san_cm_event ev;
	uint16_t slot[2];

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
UNIT_CASE(private__no_room)
{
	struct san_cm *cm = net.h[0].cm;
	uint32_t nb = cm->free_privates.nb;
	uint16_t slot;

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
UNIT_CASE(release__only_after_the_end)
{
	uint16_t slot[2];

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

UNIT_CASE(state__of_no_slot)
{
	assert_int_equal(san_cm_state(net.h[0].cm, 64), SAN_CM_IDLE);
	assert_null(san_cm_agreed(net.h[0].cm, 64));
	assert_null(san_cm_agreed(net.h[0].cm, 0));
	san_cm_fsm_on_timer(net.h[0].cm, 0, net.now_ns);
	san_cm_fsm_on_timer(net.h[0].cm, 64, net.now_ns);
	san_cm_fsm_drained(net.h[0].cm, 64, net.now_ns);
	san_cm_fsm_failed(net.h[0].cm, 0, RTSAN_R_TIMEOUT, net.now_ns);
}

/* Slots are reused after their rest, thousands of times. */
UNIT_CASE(conn__churn) /* RT-24: both sides release everything */
{
	uint16_t slot[2];

	for (unsigned int i = 0; i < 1000; i++) {
		cm_net_open(&net, slot);
		assert_int_equal(
			san_cm_fsm_disconnect(net.h[i & 1].cm, slot[i & 1], true, net.now_ns), 0);
		cm_net_run(&net, 10 * MS);
		assert_int_equal(net.h[0].pdl->nb_conns + net.h[1].pdl->nb_conns, 0);
	}
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1000);
}
