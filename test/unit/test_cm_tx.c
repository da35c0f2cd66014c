/* SPDX-License-Identifier: BSD-3-Clause */

/* What is sent, how often, the limits, and the RTT of answers. (RULE-17) */

#include "test_cm.h"

static struct san_wire_cm msg;

UNIT_FIXTURE(.setup = cm_idle, .teardown = cm_teardown);

UNIT_CASE(tx_next__fills_all)
{
	uint16_t slot = cm_net_connect(&net, 0, 1);
	const struct san_pdl_conn *c = &net.h[0].pdl->conns[slot];

	memset(&pkt, 0xee, sizeof(pkt));
	assert_true(cm_next(0, &msg));
	assert_int_equal(pkt.op, SAN_OP_CM);
	assert_int_equal(pkt.dcid, SAN_WIRE_CID_CM);
	assert_int_equal(pkt.pkey, CM_NET_PKEY);
	assert_int_equal(pkt.tag, 0);
	assert_int_equal(pkt.psn, 0);
	assert_int_equal(pkt.flags, 0);
	assert_int_equal(pkt.tx_time, (uint32_t)net.now_ns);
	assert_true(rte_is_zero_ether_addr(&path.dst_mac));
	assert_true(rte_is_same_ether_addr(&path.src_mac, &net.h[0].mac));
	/* ports are unknown yet: any of the entropy range */
	assert_in_range(path.src_port, 49152, 65535);
	assert_int_equal(msg.msg, SAN_CM_REQ);
	assert_int_equal(msg.flags, SAN_CM_F_ORDERED);
	assert_int_equal(msg.src_cid, c->cid);
	assert_int_equal(msg.src_tag, c->tag);
	assert_int_equal(msg.nb_ports, 2);
	assert_int_equal(msg.ports[0], 50001);
	assert_int_equal(msg.service, CM_NET_SERVICE);
	assert_false(cm_next(0, &msg));
}

/* Retries: after 20 ms, doubled each time up to 500; at most one message waits. */
UNIT_CASE(tx_next__retries_double)
{
	uint64_t begin_ns = net.now_ns;
	uint16_t slot = cm_net_connect(&net, 0, 1);
	uint64_t due_ns = 0;

	assert_true(cm_next(0, &msg));
	for (uint32_t i = 0; i < 7; i++) {
		due_ns += RTE_MIN(20 * MS << i, 500 * MS);
		net.now_ns = begin_ns + due_ns - 1;
		san_cm_fsm_on_timer(net.h[0].cm, slot, net.now_ns);
		assert_false(cm_next(0, &msg));
		net.now_ns++;
		san_cm_fsm_on_timer(net.h[0].cm, slot, net.now_ns);
		san_cm_fsm_on_timer(net.h[0].cm, slot, net.now_ns);
		assert_true(cm_next(0, &msg));
		assert_int_equal(msg.msg, SAN_CM_REQ);
		assert_false(cm_next(0, &msg));
	}
}

/* The ring of answers is bounded, and drops what does not fit. */
UNIT_CASE(reply__ring_is_full)
{
	struct san_wire_pkt p = {.src = net.h[1].ip, .dst = net.h[0].ip};
	struct san_wire_cm m = {.msg = SAN_CM_REJ};

	for (uint32_t i = 0; i < CM_OUT_MAX; i++) {
		m.xid = i;
		assert_true(san_cm_tx_reply(net.h[0].cm, &p, 1, &m));
	}
	assert_false(san_cm_tx_reply(net.h[0].cm, &p, 1, &m));
	cm_net_check(&net);
	for (uint32_t i = 0; i < CM_OUT_MAX; i++) {
		assert_true(cm_next(0, &msg));
		assert_int_equal(msg.xid, i);
	}
	assert_false(cm_next(0, &msg));
	assert_true(san_cm_tx_reply(net.h[0].cm, &p, 1, &m));
}

/* A last message that does not fit is counted; the other side's retries replace it. */
UNIT_CASE(farewell__ring_is_full)
{
	struct san_wire_pkt p = {.src = net.h[1].ip, .dst = net.h[0].ip};
	struct san_wire_cm m = {.msg = SAN_CM_REJ};
	uint16_t slot[2];

	cm_net_listen(&net, 1);
	cm_net_open(&net, slot);
	while (san_cm_tx_reply(net.h[0].cm, &p, 1, &m))
		;
	san_cm_fsm_failed(net.h[0].cm, slot[0], RTSAN_R_TIMEOUT, net.now_ns);
	assert_int_equal(san_cm_drops(net.h[0].cm)[SAN_DROP_CM_RATE], 1);
	cm_net_events(&net, 0);
	assert_int_equal(net.h[0].pdl->nb_conns, 0);
}

/* ---- the path, as the handshake measures it ---- */

#define US     SAN_NS_PER_US
#define RTT_NS (2 * CM_NET_LATENCY_NS)

/* RTT that packet delivery of host *i* was given for its only connection; 0: none. */
static uint64_t
path_ns(int i)
{
	const struct san_pdl *pdl = net.h[i].pdl;
	uint32_t slot;

	assert_int_equal(pdl->nb_conns, 1);
	for (slot = 0; pdl->conns[slot].state == SAN_CONN_FREE; slot++)
		continue;
	assert_true(pdl->conns[slot].rtt.srtt_ns == pdl->conns[slot].rtt.base_ns);
	return pdl->conns[slot].rtt.base_ns;
}

/** arg[0]: message type; the first one gets arg[1] copies, delayed by arg[2] and arg[3]. */
static void
treat_first(struct cm_net *n, int from, const struct san_wire_pkt *p,
	    const struct san_wire_cm *m, struct cm_fate *fate)
{
	if (m == NULL || m->msg != n->arg[0] || n->h[from].nb_tx[m->msg] != 0)
		return;
	fate->copies = (uint8_t)n->arg[1];
	fate->delay_ns[0] = n->arg[2];
	fate->delay_ns[1] = n->arg[3];
}

static void
open_treating(uint8_t type, uint8_t copies, uint64_t delay0_ns, uint64_t delay1_ns)
{
	cm_net_listen(&net, 1);
	net.hook = treat_first;
	net.arg[0] = type;
	net.arg[1] = copies;
	net.arg[2] = delay0_ns;
	net.arg[3] = delay1_ns;
	cm_net_connect(&net, 0, 42);
	cm_net_run(&net, 500 * MS);
	assert_established(1, 1);
}

/* The connecting side measures by REQ and COOKIE, the other side by REP and RTU. */
UNIT_CASE(measure_path__by_cookie_and_rtu)
{
	open_treating(SAN_CM_COOKIE, 1, 3 * CM_NET_LATENCY_NS, 0);
	assert_int_equal(path_ns(0), 4 * CM_NET_LATENCY_NS);
	assert_int_equal(path_ns(1), RTT_NS);
}

UNIT_CASE(measure_path__by_a_late_rtu)
{
	open_treating(SAN_CM_RTU, 1, 5 * CM_NET_LATENCY_NS, 0);
	assert_int_equal(path_ns(0), RTT_NS);
	assert_int_equal(path_ns(1), 6 * CM_NET_LATENCY_NS);
}

/* A REP may be late because of the ULP, so it is not used. */
UNIT_CASE(measure_path__not_by_rep)
{
	uint16_t slot;

	cm_net_listen(&net, 1);
	net.h[1].no_accept = true;
	cm_net_connect(&net, 0, 42);
	cm_net_run(&net, 5 * MS);
	slot = cm_requested();
	assert_int_equal(cm_accept(slot), 0);
	cm_net_run(&net, 1 * MS);
	assert_events(0, SAN_CM_EV_ESTABLISHED, 1);
	assert_int_equal(net.h[0].nb_tx[SAN_CM_REQ], 2); /* without and with a cookie */
	assert_int_equal(path_ns(0), RTT_NS);
	assert_int_equal(path_ns(1), RTT_NS);
}

/* Karn: the answer to a repeated message may be to either copy. */
UNIT_CASE(measure_path__not_of_what_was_lost)
{
	static const struct {
		uint8_t msg;
		uint64_t path_ns[2];
	} cases[] = {
		{SAN_CM_REQ, {0, RTT_NS}},
		{SAN_CM_COOKIE, {0, RTT_NS}},
		{SAN_CM_REP, {RTT_NS, 0}},
		{SAN_CM_RTU, {RTT_NS, 0}},
	};

	UNIT_EACH(r, cases) {
		open_treating(r->msg, 0, 0, 0);
		assert_int_equal(path_ns(0), r->path_ns[0]);
		assert_int_equal(path_ns(1), r->path_ns[1]);
		cm_teardown();
		cm_idle();
	}
}

/* The first REQ was only late: 25 ms; a measurement from the second one would give 5. */
UNIT_CASE(measure_path__not_of_a_retry)
{
	open_treating(SAN_CM_COOKIE, 1, 25 * MS, 0);
	assert_true(net.h[0].nb_tx[SAN_CM_REQ] > 2);
	assert_int_equal(path_ns(0), 0);
	assert_int_equal(path_ns(1), RTT_NS);
}

/** Duplicate the REQ with the cookie, so that the REP is sent twice. */
static void
request_twice(struct cm_net *n, int from, const struct san_wire_pkt *p,
	      const struct san_wire_cm *m, struct cm_fate *fate)
{
	if (m == NULL || m->msg != SAN_CM_REQ || (m->flags & SAN_CM_F_COOKIE) == 0)
		return;
	fate->copies = 2;
	fate->delay_ns[1] = fate->delay_ns[0] + 15 * US;
}

/* The RTU answers the first of two REPs, 5 us after the second one. */
UNIT_CASE(measure_path__not_of_a_repeated_answer)
{
	cm_net_listen(&net, 1);
	net.hook = request_twice;
	cm_net_connect(&net, 0, 42);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_REP], 2);
	assert_events(1, SAN_CM_EV_ESTABLISHED, 1);
	assert_int_equal(path_ns(0), RTT_NS);
	assert_int_equal(path_ns(1), 0);
}

/* A request that replaces the RTU was sent when the application had work. */
UNIT_CASE(measure_path__not_by_implicit_rtu)
{
	uint16_t slot;

	cm_net_listen(&net, 1);
	net.hook = treat_first;
	net.arg[0] = SAN_CM_RTU;
	slot = cm_net_connect(&net, 0, 42);
	cm_net_run(&net, 1 * MS);
	cm_net_tx_data(&net, 0, slot);
	cm_net_run(&net, 1 * MS);
	assert_events(1, SAN_CM_EV_ESTABLISHED, 1);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_REP], 1);
	assert_int_equal(path_ns(1), 0);
}
