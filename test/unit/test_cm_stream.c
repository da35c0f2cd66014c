/* SPDX-License-Identifier: BSD-3-Clause */

/* A connection is for a stream on both sides, or on neither. (AFC-2) */

#include "test_cm.h"

UNIT_FIXTURE(.setup = cm_setup, .teardown = cm_teardown);

/* Host 0 sends a request; returns its slot. */
static uint16_t
request(bool stream)
{
	uint16_t slot;

	net.h[0].param.stream = stream;
	slot = cm_request();
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 1);
	assert_int_equal(net.h[1].last[SAN_CM_EV_CONNECT_REQUEST].stream, stream);
	return slot;
}

static int
answer(uint16_t slot, bool stream)
{
	net.h[1].param.stream = stream;
	return cm_accept(slot);
}

static uint32_t
agreed(int i)
{
	const struct cm_host *h = &net.h[i];

	assert_int_equal(h->nb[SAN_CM_EV_ESTABLISHED], 1);
	return san_cm_agreed(h->cm, h->last[SAN_CM_EV_ESTABLISHED].slot)->features;
}

UNIT_CASE(connect__stream_to_stream)
{
	uint32_t want = SAN_CM_FEAT_STREAM | SAN_CM_FEAT_PACK;

	assert_int_equal(answer(request(true), true), 0);
	cm_net_run(&net, MS);
	assert_int_equal(agreed(0), want);
	assert_int_equal(agreed(1), want);
}

/* After a failed accept with the wrong kind, the right kind can still accept. */
UNIT_CASE(connect__other_kind)
{
	uint16_t slot = request(true);

	assert_int_equal(answer(slot, false), -EPROTOTYPE);
	assert_int_equal(san_cm_state(net.h[1].cm, slot), SAN_CM_WAIT_ACCEPT);
	assert_int_equal(answer(slot, true), 0);
	cm_net_run(&net, MS);
	assert_int_equal(agreed(0) & SAN_CM_FEAT_STREAM, SAN_CM_FEAT_STREAM);
}

UNIT_CASE(connect__plain_to_stream)
{
	uint16_t slot = request(false);

	assert_int_equal(answer(slot, true), -EPROTOTYPE);
	assert_int_equal(answer(slot, false), 0);
	cm_net_run(&net, MS);
	assert_int_equal(agreed(0), SAN_CM_FEAT_PACK);
	assert_int_equal(agreed(1), SAN_CM_FEAT_PACK);
}

/* The kind is kept when a request moves to another lcore. */
UNIT_CASE(move__other_kind)
{
	struct san_cm_param plain = cm_net_param();
	struct san_cm_moved moved;
	uint16_t slot = request(true), to;

	assert_int_equal(san_cm_move_out(net.h[1].cm, slot, &moved, net.now_ns), 0);
	assert_int_equal(san_cm_move_in(net.h[1].cm, &moved, &plain, 7, net.now_ns, &to),
			 -EPROTOTYPE);
	san_cm_move_done(net.h[1].cm, slot, false, net.now_ns);
	assert_int_equal(answer(slot, true), 0);
}

/* An acceptor without streams ignores the bit: there must be no connection. */
UNIT_CASE(connect__acceptor_without)
{
	uint16_t slot = request(true);

	assert_int_equal(answer(slot, true), 0);
	san_cm_setup(net.h[1].cm, &net.h[1].cm->conns[slot])->is_stream = false;
	cm_net_run(&net, MS);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 0);
	assert_ended_by(0, SAN_CM_EV_REJECTED, RTSAN_R_PARAMETER);
}

/* AFC-25: without strict order there is no session, whichever side requests it. */
UNIT_CASE(connect__not_in_order)
{
	struct cm_host *h = &net.h[0];
	struct san_cm_conn *c;
	uint16_t slot;

	h->param.stream = true;
	h->param.relaxed = true;
	assert_int_equal(cm_connect(&net.h[1].ip, &h->param, &slot), -EINVAL);
	h->param.ordered = h->param.relaxed = false;
	assert_int_equal(cm_connect(&net.h[1].ip, &h->param, &slot), -EINVAL);
	/* a peer that requests it nevertheless */
	h->param.stream = false;
	slot = cm_net_connect(&net, 0, 42);
	c = &h->cm->conns[slot];
	san_cm_setup(h->cm, c)->is_stream = true;
	cm_net_run(&net, MS);
	assert_events(1, SAN_CM_EV_CONNECT_REQUEST, 0);
	assert_int_equal(h->last[SAN_CM_EV_REJECTED].reason, RTSAN_R_PARAMETER);
}

/* The bit is not a feature: it is never set without a stream. */
UNIT_CASE(create__not_a_feature_of_all)
{
	struct san_cm_conf conf = net.h[0].cm->conf;
	struct san_cm *cm;

	conf.features |= SAN_CM_FEAT_STREAM;
	assert_int_equal(san_cm_create(&conf, net.h[0].pdl, &cm), -EINVAL);
}
