/* SPDX-License-Identifier: BSD-3-Clause */

/* The end of a connection: drain, DREQ, DREP, RESET, restart of a peer. (RT-24; cm_fsm.c) */

#include "test_cm.h"

static uint16_t slot[2];

static void
setup(void)
{
	cm_setup();
	cm_net_open(&net, slot);
}

UNIT_FIXTURE(.setup = setup, .teardown = cm_teardown);

static int
disconnect(int i, bool hard)
{
	return san_cm_fsm_disconnect(net.h[i].cm, slot[i], hard, net.now_ns);
}

static void
drained(int i)
{
	san_cm_fsm_drained(net.h[i].cm, slot[i], net.now_ns);
}

static enum san_cm_state
state_of(int i)
{
	return san_cm_state(net.h[i].cm, slot[i]);
}

/** Each side got one final event with this type and reason, and holds nothing. */
static void
assert_ended(int i, uint8_t type, uint8_t reason)
{
	assert_int_equal(net.h[i].nb[SAN_CM_EV_CLOSED] + net.h[i].nb[SAN_CM_EV_DISCONNECTED], 1);
	assert_int_equal(net.h[i].nb[type], 1);
	assert_int_equal(net.h[i].last[type].reason, reason);
	assert_int_equal(net.h[i].last[type].slot, slot[i]);
	assert_int_equal(net.h[i].last[type].cookie, i == 0 ? 42 : 1000 + slot[i]);
	assert_int_equal(net.h[i].pdl->nb_conns, 0);
	assert_null(san_cm_agreed(net.h[i].cm, slot[i]));
}

static void
assert_orderly(void)
{
	assert_ended(0, SAN_CM_EV_CLOSED, RTSAN_R_NONE);
	assert_ended(1, SAN_CM_EV_DISCONNECTED, RTSAN_R_NONE);
}

UNIT_CASE(disconnect__waits_until_drained)
{
	assert_int_equal(disconnect(0, false), 0);
	assert_int_equal(disconnect(0, false), 0);
	cm_net_run(&net, 1 * SAN_NS_PER_S);
	assert_int_equal(state_of(0), SAN_CM_DRAINING);
	assert_int_equal(state_of(1), SAN_CM_ESTABLISHED);
	assert_int_equal(net.h[0].nb_tx[SAN_CM_DREQ], 0);
	drained(0);
	assert_int_equal(state_of(0), SAN_CM_DREQ_SENT);
	assert_int_equal(net.h[0].pdl->conns[slot[0]].state, SAN_CONN_CLOSING);
	cm_net_run(&net, 1 * MS);
	assert_orderly();
	assert_int_equal(net.h[0].nb_tx[SAN_CM_DREQ], 1);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_DREP], 1);
	/* nothing is sent any more */
	cm_net_run(&net, 100 * SAN_NS_PER_S);
	assert_int_equal(cm_net_nb_sent(&net), 7);
}

UNIT_CASE(disconnect__drain_has_a_limit)
{
	disconnect(0, false);
	cm_net_run(&net, 5 * SAN_NS_PER_S - 1 * MS);
	assert_int_equal(state_of(0), SAN_CM_DRAINING);
	cm_net_run(&net, 2 * MS);
	assert_orderly();
}

/* The drain continues as long as packets are acknowledged. */
UNIT_CASE(disconnect__drain_goes_on_with_progress)
{
	struct san_pdl_rxw *w = net.h[0].pdl->conns[slot[0]].rx;

	disconnect(0, false);
	for (int i = 0; i < 10; i++) {
		cm_net_run(&net, 5 * SAN_NS_PER_S - 1 * MS);
		assert_int_equal(state_of(0), SAN_CM_DRAINING);
		w[i & 1].base++;
		w[i & 1].high++;
	}
	cm_net_run(&net, 10 * SAN_NS_PER_S);
	assert_orderly();
}

UNIT_CASE(disconnect__hard_waits_for_nothing)
{
	assert_int_equal(disconnect(0, true), 0);
	cm_net_run(&net, 1 * MS);
	assert_orderly();
	assert_int_equal(disconnect(0, true), -ENOTCONN);
	assert_int_equal(disconnect(1, false), -ENOTCONN);
}

UNIT_CASE(disconnect__hard_after_soft)
{
	disconnect(0, false);
	assert_int_equal(disconnect(0, true), 0);
	assert_int_equal(disconnect(0, true), 0);
	cm_net_run(&net, 1 * MS);
	assert_orderly();
}

/* From the accepting side as well. */
UNIT_CASE(disconnect__by_the_acceptor)
{
	disconnect(1, true);
	cm_net_run(&net, 1 * MS);
	assert_ended(1, SAN_CM_EV_CLOSED, RTSAN_R_NONE);
	assert_ended(0, SAN_CM_EV_DISCONNECTED, RTSAN_R_NONE);
}

UNIT_CASE(disconnect__dreq_or_drep_lost)
{
	static const uint8_t lost[][2] = {
		{SAN_CM_DREQ, 1}, {SAN_CM_DREQ, 5}, {SAN_CM_DREP, 1}, {SAN_CM_DREP, 5}};

	for (unsigned int i = 0; i < RTE_DIM(lost); i++) {
		cm_teardown();
		setup();
		cm_lose(lost[i][0], 1, lost[i][1]);
		disconnect(0, true);
		cm_net_run(&net, 2 * SAN_NS_PER_S);
		assert_orderly();
		assert_int_equal(net.h[0].nb_tx[SAN_CM_DREQ], lost[i][1] + 1);
	}
}

/* The core keeps the slot, so TIMEWAIT answers. */
UNIT_CASE(timewait__answers_repeated_dreq)
{
	net.h[1].no_release = true;
	cm_lose(SAN_CM_DREP, 1, 3);
	disconnect(0, true);
	cm_net_run(&net, 2 * SAN_NS_PER_S);
	assert_ended(0, SAN_CM_EV_CLOSED, RTSAN_R_NONE);
	assert_int_equal(state_of(1), SAN_CM_TIMEWAIT);
	assert_events(1, SAN_CM_EV_DISCONNECTED, 1);
	san_cm_release(net.h[1].cm, slot[1], net.now_ns);
	assert_orderly();
	assert_int_equal(state_of(1), SAN_CM_IDLE);
}

UNIT_CASE(disconnect__nobody_answers)
{
	net.h[1].dead = true;
	disconnect(0, true);
	cm_net_run(&net, TRIES_NS + 1 * MS);
	assert_ended(0, SAN_CM_EV_CLOSED, RTSAN_R_TIMEOUT);
	assert_int_equal(net.h[0].nb_tx[SAN_CM_DREQ], TRIES);
}

UNIT_CASE(disconnect__everything_twice)
{
	net.hook = cm_twice;
	disconnect(0, true);
	cm_net_run(&net, 1 * SAN_NS_PER_S);
	assert_orderly();
}

/* Both at the same time, with drain or without, with loss or without: one event each. */
UNIT_CASE(disconnect__simultaneous)
{
	for (unsigned int i = 0; i < 8; i++) {
		cm_teardown();
		setup();
		cm_lose(i & 4 ? SAN_CM_DREQ : SAN_CM_DREP, 1, 1);
		disconnect(0, i & 1);
		disconnect(1, i & 2);
		if (!(i & 1))
			drained(0);
		cm_net_run(&net, 10 * SAN_NS_PER_S);
		assert_ended(0, SAN_CM_EV_CLOSED, RTSAN_R_NONE);
		assert_ended(1, SAN_CM_EV_CLOSED, RTSAN_R_NONE);
	}
}

/* The other side disconnects during the drain: the connection ends for both. */
UNIT_CASE(disconnect__by_both_one_drains)
{
	disconnect(0, false);
	disconnect(1, true);
	cm_net_run(&net, 1 * MS);
	assert_ended(0, SAN_CM_EV_CLOSED, RTSAN_R_NONE);
	assert_ended(1, SAN_CM_EV_CLOSED, RTSAN_R_NONE);
}

static void
open_without_rtu(void)
{
	cm_anew(3);
	cm_lose(SAN_CM_RTU, 1, 1);
	slot[0] = cm_net_connect(&net, 0, 42);
	cm_net_run(&net, 1 * MS);
	slot[1] = cm_requested();
	assert_int_equal(state_of(0), SAN_CM_ESTABLISHED);
	assert_int_equal(state_of(1), SAN_CM_REP_SENT);
}

/* The RTU is lost and the drain has begun: the RTU is still repeated. */
UNIT_CASE(disconnect__drains_without_rtu)
{
	open_without_rtu();
	disconnect(0, false);
	cm_net_run(&net, 100 * MS);
	assert_int_equal(state_of(0), SAN_CM_DRAINING);
	assert_int_equal(state_of(1), SAN_CM_ESTABLISHED);
	drained(0);
	cm_net_run(&net, 1 * MS);
	assert_orderly();
}

/* The RTU is lost and a DREQ arrives instead: one event, at once. */
UNIT_CASE(disconnect__dreq_without_rtu)
{
	open_without_rtu();
	disconnect(0, true);
	cm_net_run(&net, 1 * MS);
	assert_events(1, SAN_CM_EV_ESTABLISHED, 0);
	assert_orderly();
}

/* In every state before the connection is open. */
UNIT_CASE(disconnect__while_connecting)
{
	static const enum san_cm_state at[] = {SAN_CM_RESOLVING, SAN_CM_REQ_SENT,
					       SAN_CM_REQ_COOKIE_SENT};
	uint16_t s;

	for (unsigned int i = 0; i < RTE_DIM(at); i++) {
		cm_anew(i);
		net.h[0].no_mac = at[i] == SAN_CM_RESOLVING;
		net.h[1].no_accept = true;
		cm_lose(SAN_CM_COOKIE, 1, at[i] == SAN_CM_REQ_SENT ? 100 : 0);
		s = cm_net_connect(&net, 0, 42);
		cm_net_run(&net, 1 * MS);
		assert_int_equal(san_cm_state(net.h[0].cm, s), at[i]);
		assert_int_equal(san_cm_fsm_disconnect(net.h[0].cm, s, i & 1, net.now_ns), 0);
		cm_net_run(&net, 1 * MS);
		assert_events(0, SAN_CM_EV_CLOSED, 1);
		assert_int_equal(net.h[0].pdl->nb_conns, 0);
	}
	/* the other side accepts a withdrawn request, and learns it at once */
	assert_int_equal(cm_accept(cm_requested()), 0);
	cm_net_run(&net, 1 * MS);
	assert_ended_by(1, SAN_CM_EV_DISCONNECTED, RTSAN_R_STALE);
	assert_int_equal(net.h[1].pdl->nb_conns, 0);
}

/* Accepted and disconnected at once, and the REP is lost: the other side sees a refusal. */
UNIT_CASE(disconnect__before_the_rep_arrives)
{
	uint16_t s;

	cm_anew(9);
	net.h[1].no_accept = true;
	cm_lose(SAN_CM_REP, 1, 100);
	cm_net_connect(&net, 0, 42);
	cm_net_run(&net, 1 * MS);
	s = cm_requested();
	assert_int_equal(cm_accept(s), 0);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(san_cm_fsm_disconnect(net.h[1].cm, s, false, net.now_ns), 0);
	cm_net_run(&net, 1 * SAN_NS_PER_S);
	assert_ended_by(0, SAN_CM_EV_REJECTED, RTSAN_R_REFUSED);
	assert_events(1, SAN_CM_EV_CLOSED, 1);
	assert_int_equal(net.h[0].pdl->nb_conns + net.h[1].pdl->nb_conns, 0);
}

/* Packet delivery has failed: one event here, and the peer is notified. (RT-7) */
UNIT_CASE(failed__tells_both)
{
	san_cm_fsm_failed(net.h[0].cm, slot[0], RTSAN_R_TIMEOUT, net.now_ns);
	san_cm_fsm_failed(net.h[0].cm, slot[0], RTSAN_R_TIMEOUT, net.now_ns);
	cm_net_run(&net, 1 * MS);
	assert_ended(0, SAN_CM_EV_DISCONNECTED, RTSAN_R_TIMEOUT);
	assert_ended(1, SAN_CM_EV_DISCONNECTED, RTSAN_R_TIMEOUT);
}

/* Disconnected, and the retries of the DREQ are exhausted. */
UNIT_CASE(failed__while_waiting_for_drep)
{
	net.h[1].dead = true;
	disconnect(0, true);
	cm_net_run(&net, 1 * MS);
	san_cm_fsm_failed(net.h[0].cm, slot[0], RTSAN_R_NONE, net.now_ns);
	cm_net_settle(&net);
	assert_ended(0, SAN_CM_EV_DISCONNECTED, RTSAN_R_NONE);
}

UNIT_CASE(failed__while_draining)
{
	net.h[1].dead = true;
	disconnect(0, false);
	san_cm_fsm_failed(net.h[0].cm, slot[0], RTSAN_R_TIMEOUT, net.now_ns);
	cm_net_run(&net, 1 * MS);
	assert_ended(0, SAN_CM_EV_DISCONNECTED, RTSAN_R_TIMEOUT);
}

/* ---- RESET (RULE-17) ---- */

/** A RESET as host 1 would send it for our packet *psn*. */
static struct san_wire_cm
reset_for(uint32_t psn)
{
	const struct san_pdl_conn *c = &net.h[0].pdl->conns[slot[0]];

	return (struct san_wire_cm){
		.msg = SAN_CM_RESET,
		.reason = RTSAN_R_STALE,
		.src_cid = c->dcid,
		.src_tag = c->dtag,
		.data_psn = psn,
	};
}

/* A restarted peer does not know the connection: our next packet ends it. */
UNIT_CASE(reset__after_restart_of_the_peer) /* RT-24 */
{
	cm_restart(1);
	cm_net_tx_data(&net, 0, slot[0]);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(net.h[1].nb_tx[SAN_CM_RESET], 1);
	assert_ended(0, SAN_CM_EV_DISCONNECTED, RTSAN_R_STALE);
}

/* The same with a new connection under the old CID: only the tag differs. */
UNIT_CASE(reset__new_connection_same_cid) /* RT-24 */
{
	uint32_t old_dcid = net.h[0].pdl->conns[slot[0]].dcid;
	uint16_t other;

	cm_restart(1);
	cm_net_listen(&net, 1);
	other = cm_net_connect(&net, 0, 43);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(net.h[0].pdl->conns[other].dcid, old_dcid);
	cm_net_tx_data(&net, 0, slot[0]);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(net.h[1].drops[SAN_DROP_TAG], 1);
	assert_events(0, SAN_CM_EV_DISCONNECTED, 1);
	assert_int_equal(net.h[0].last[SAN_CM_EV_DISCONNECTED].slot, slot[0]);
	assert_int_equal(san_cm_state(net.h[0].cm, other), SAN_CM_ESTABLISHED);
	/* the new connection works */
	cm_net_tx_data(&net, 0, other);
	cm_net_run(&net, 1 * MS);
	assert_int_equal(net.h[1].drops[SAN_DROP_TAG], 1);
}

/* The peer restarts and connects: a new connection beside the old one. */
UNIT_CASE(restart__connects_anew) /* RT-24 */
{
	cm_restart(0);
	cm_net_connect(&net, 0, 43);
	cm_net_run(&net, 1 * MS);
	assert_events(1, SAN_CM_EV_ESTABLISHED, 2);
	assert_int_equal(net.h[1].pdl->nb_conns, 2);
	cm_net_tx_data(&net, 1, slot[1]);
	cm_net_run(&net, 1 * MS);
	assert_events(1, SAN_CM_EV_DISCONNECTED, 1);
	assert_int_equal(net.h[1].last[SAN_CM_EV_DISCONNECTED].slot, slot[1]);
	assert_int_equal(net.h[1].pdl->nb_conns, 1);
}

/* Invalid RESETs, which change nothing but a counter. */
static const struct {
	const char *what;
	int32_t psn; /* distance from the outstanding PSN */
	uint32_t tag_xor, cid_xor;
	uint8_t src_xor; /* changes the source address */
	uint16_t pkey_xor;
} stale_resets[] = {
	{"below", -1, 0, 0, 0, 0},
	{"never sent", 1, 0, 0, 0, 0},
	{"far away", INT32_MIN, 0, 0, 0, 0},
	{"tag", 0, 1, 0, 0, 0},
	{"tag", 0, 0x80000000u, 0, 0, 0},
	{"CID", 0, 0, 1, 0, 0},
	{"address", 0, 0, 0, 0x80, 0},
	{"partition", 0, 0, 0, 0, 1},
};

UNIT_CASE(reset__stale_changes_nothing) /* RT-24, RT-29 */
{
	struct san_pdl_conn *c = &net.h[0].pdl->conns[slot[0]];
	struct san_wire_cm msg;
	uint32_t psn;

	net.h[1].dead = true;
	psn = cm_net_tx_data(&net, 0, slot[0]);
	/* otherwise these numbers might be outstanding in the other window */
	assert_false(san_pdl_rtx_is_outstanding(c, SAN_WIN_DATA, psn));
	UNIT_EACH(r, stale_resets) {
		unit_row(r->what);
		path = cm_net_path(&net, 1);
		path.src.b[15] ^= r->src_xor;
		pkt = cm_pkt;
		pkt.pkey ^= r->pkey_xor;
		msg = reset_for(psn + (uint32_t)r->psn);
		msg.src_tag ^= r->tag_xor;
		msg.src_cid ^= r->cid_xor;
		assert_int_equal(cm_net_rx(&net, 0, cm_net_build(&net, &path, &pkt, &msg)),
				 SAN_DROP_RESET_STALE);
		assert_int_equal(state_of(0), SAN_CM_ESTABLISHED);
		assert_true(san_pdl_rtx_is_outstanding(c, SAN_WIN_REQ, psn));
	}
	cm_net_settle(&net);
	assert_events(0, SAN_CM_EV_DISCONNECTED, 0);
	assert_int_equal(net.h[0].nb_tx[SAN_CM_RESET], 0);
	/* the valid one ends it */
	msg = reset_for(psn);
	assert_int_equal(cm_net_forge(&net, 1, &msg), SAN_DROP_NONE);
	cm_net_settle(&net);
	assert_ended(0, SAN_CM_EV_DISCONNECTED, RTSAN_R_STALE);
	assert_int_equal(cm_net_forge(&net, 1, &msg), SAN_DROP_RESET_STALE);
}

/** The RESET for our packet *psn* ends our side, with *type* and *reason*. */
static void
assert_reset(uint32_t psn, uint8_t type, uint8_t reason)
{
	struct san_wire_cm msg = reset_for(psn);

	assert_int_equal(cm_net_forge(&net, 1, &msg), SAN_DROP_NONE);
	cm_net_settle(&net);
	assert_ended(0, type, reason);
}

UNIT_CASE(reset__nothing_outstanding)
{
	struct san_wire_cm msg = reset_for(net.h[0].pdl->conns[slot[0]].tx[SAN_WIN_REQ].next - 1);

	assert_int_equal(cm_net_forge(&net, 1, &msg), SAN_DROP_RESET_STALE);
	assert_int_equal(state_of(0), SAN_CM_ESTABLISHED);
}

/* The packet that it answers was in the data window. */
UNIT_CASE(reset__data_window)
{
	struct san_pdl_conn *c = &net.h[0].pdl->conns[slot[0]];
	struct san_pdl_entry e = {.op = SAN_OP_PUSH_UNSLCTD_DATA};
	struct san_pdl_room room;

	san_pdl_tx_room(net.h[0].pdl, c, net.now_ns, &room);
	san_pdl_tx_assign(net.h[0].pdl, c, &e, net.now_ns);
	san_pdl_sched_end(net.h[0].pdl, c, false);
	assert_reset(e.psn, SAN_CM_EV_DISCONNECTED, RTSAN_R_STALE);
}

/* After our DREQ, the RESET of a peer that does not know the connection replaces the DREP. */
UNIT_CASE(reset__stands_for_drep)
{
	net.h[1].dead = true;
	disconnect(0, true);
	cm_net_run(&net, 1 * MS);
	assert_reset(0, SAN_CM_EV_CLOSED, RTSAN_R_NONE);
}

UNIT_CASE(reset__while_draining)
{
	uint32_t psn = cm_net_tx_data(&net, 0, slot[0]);

	net.h[1].dead = true;
	disconnect(0, false);
	assert_reset(psn, SAN_CM_EV_DISCONNECTED, RTSAN_R_STALE);
}

/* ---- packets of other senders ---- */

static void
note_xid(struct cm_net *n, int from, const struct san_wire_pkt *p, const struct san_wire_cm *msg,
	 struct cm_fate *fate)
{
	if (msg != NULL && from == 0)
		n->arg[3] = msg->xid;
}

static void
setup_with_xid(void)
{
	cm_setup();
	net.hook = note_xid;
	cm_net_open(&net, slot);
}

static const struct {
	uint8_t msg;
	uint32_t dst_tag_xor, src_tag_xor, xid_xor;
	uint16_t pkey_xor;
	uint8_t src_xor;
	enum san_drop drop;
} forged_rows[] = {
	{SAN_CM_DREQ, 1, 0, 0, 0, 0, SAN_DROP_TAG},
	{SAN_CM_DREQ, 0, 1, 0, 0, 0, SAN_DROP_CM_STALE},
	{SAN_CM_DREQ, 0, 0, 1, 0, 0, SAN_DROP_CM_STALE},
	{SAN_CM_DREQ, 0, 0, 0, 1, 0, SAN_DROP_PKEY},
	{SAN_CM_DREQ, 0, 0, 0, 0, 1, SAN_DROP_PEER},
	{SAN_CM_DREP, 1, 0, 0, 0, 0, SAN_DROP_TAG},
	{SAN_CM_DREP, 0, 0, 0, 0, 0, SAN_DROP_CM_STALE}, /* without a DREQ */
	{SAN_CM_REJ, 0, 0, 0, 0, 0, SAN_DROP_CM_STALE},  /* too late */
	{SAN_CM_COOKIE, 0, 0, 0, 0, 0, SAN_DROP_CM_STALE},
	{SAN_CM_REP, 1, 0, 0, 0, 0, SAN_DROP_TAG},
	{SAN_CM_RTU, 0, 0, 0, 0, 0, SAN_DROP_NONE}, /* changes nothing either */
};

UNIT_CASE_IN(forged__changes_nothing, setup_with_xid) /* RT-24, RT-29 */
{
	const struct san_cm_agreed *a = san_cm_agreed(net.h[0].cm, slot[0]);
	const struct san_pdl_conn *c = &net.h[1].pdl->conns[slot[1]];
	const struct san_pdl_conn *own = &net.h[0].pdl->conns[slot[0]];
	struct san_wire_cm msg;

	assert_int_equal(a->pdl.dcid, c->cid);
	UNIT_EACH(r, forged_rows) {
		path = cm_net_path(&net, 0);
		path.src.b[15] ^= (uint8_t)(r->src_xor << 4);
		pkt = cm_pkt;
		pkt.pkey ^= r->pkey_xor;
		msg = (struct san_wire_cm){
			.msg = r->msg,
			.flags = r->msg == SAN_CM_COOKIE ? SAN_CM_F_COOKIE : 0,
			.xid = (uint32_t)net.arg[3] ^ r->xid_xor,
			.src_cid = own->cid,
			.src_tag = own->tag ^ r->src_tag_xor,
			.dst_cid = c->cid,
			.dst_tag = c->tag ^ r->dst_tag_xor,
		};
		assert_int_equal(cm_net_rx(&net, 1, cm_net_build(&net, &path, &pkt, &msg)),
				 r->drop);
		assert_int_equal(state_of(1), SAN_CM_ESTABLISHED);
	}
	assert_events(1, SAN_CM_EV_DISCONNECTED, 0);
}

/* A DREQ for a connection that ended long ago is answered, so that the other side can finish. */
UNIT_CASE(dreq__for_nothing)
{
	struct san_wire_cm msg = {
		.msg = SAN_CM_DREQ,
		.xid = 5,
		.src_cid = 3,
		.src_tag = 4,
		.dst_cid = 0xf00005,
		.dst_tag = 6,
	};

	assert_int_equal(cm_net_forge(&net, 0, &msg), SAN_DROP_CM_STALE);
	assert_true(cm_next(1, &msg));
	assert_int_equal(msg.msg, SAN_CM_DREP);
	assert_int_equal(msg.xid, 5);
	assert_int_equal(msg.src_cid, 0xf00005);
	assert_int_equal(msg.src_tag, 6);
	assert_int_equal(msg.dst_cid, 3);
	assert_int_equal(msg.dst_tag, 4);
	assert_int_equal(pkt.tag, 4);
	assert_false(cm_next(1, &msg));
}
