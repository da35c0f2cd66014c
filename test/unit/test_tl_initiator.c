/* SPDX-License-Identifier: BSD-3-Clause */

#include "tl_pair.h"

#define NEVER   SAN_SOLICIT_NEVER
#define PUSH(n) pair_push(n, SAN_KIND_PUSH, NEVER, 100)

/* N = 4, two messages at once. */
static void
setup_tight(void)
{
	struct tl_link l = pair_link(true);

	l.n = 4;
	l.msg_limit = 2;
	pair_open(&l, NULL);
}

UNIT_FIXTURE(.setup = pair_setup, .teardown = pair_close);

/* RT-32: it has its RSN and SSN, and can be found by them, before anything is sent. */
UNIT_CASE(san_tl_initiator_submit__registered_first)
{
	assert_int_equal(pair_push(5, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 100), 0);
	assert_int_equal(PUSH(6), 0);
	assert_int_equal(pair_tc(0)->rsn_next, pair_rsn(2));
	assert_int_equal(pair_tc(0)->ssn_next, pair_rsn(1));
	assert_int_equal(pair_tc(0)->txns[pair_rsn(0) % SAN_TL_N_MAX]->req.cookie, 5);
	assert_int_equal(pair_tc(0)->txns[pair_rsn(1) % SAN_TL_N_MAX]->req.cookie, 6);
	assert_true(pair.c[0]->in_ready);
	assert_int_equal(pair.c[0]->tx[SAN_WIN_REQ].next, pair.c[0]->tx[SAN_WIN_REQ].base);
}

/* RT-12: L - 1, L; C - 1, C; and the caller's choice. */
UNIT_CASE(san_tl_initiator_submit__solicited_or_not)
{
	static const struct {
		uint8_t solicit;
		uint32_t length, level;
		bool expected;
	} table[] = {
		{SAN_SOLICIT_AUTO, 4999, 0, false},
		{SAN_SOLICIT_AUTO, 5000, 0, true},
		{SAN_SOLICIT_AUTO, 4999, 99, false},
		{SAN_SOLICIT_AUTO, 4999, 100, true},
		{SAN_SOLICIT_AUTO, 0, 100, false}, /* nothing to grant */
		{SAN_SOLICIT_ALWAYS, 1, 0, true},
		{SAN_SOLICIT_NEVER, 500000, 200, false},
	};
	struct san_tl *tl = pair.h[0].tl;
	uint64_t nb = 0;

	tl->conf.solicit_len = 5000;
	tl->conf.solicit_level = 100;
	for (uint32_t i = 0; i < RTE_DIM(table); i++) {
		pair.c[0]->cc.level = table[i].level;
		assert_int_equal(pair_push(i, SAN_KIND_PUSH, table[i].solicit, table[i].length), 0);
		nb += table[i].expected;
		assert_int_equal(tl->stats.nb_push_solicited, nb);
	}
	assert_int_equal(tl->stats.nb_push_unsolicited, RTE_DIM(table) - nb);
}

/* RULE-6: no RSN N beyond the oldest unfinished one; notified when there is room. */
UNIT_CASE_IN(san_tl_initiator_submit__n, setup_tight)
{
	pair_pushes(0, 4);
	assert_int_equal(PUSH(4), -EAGAIN);
	assert_int_equal(pair.f[0].nb_room, 0);
	pair_settle();
	assert_true(pair.f[0].nb_room > 0);
	assert_int_equal(PUSH(4), 0);
	pair_tc(0)->draining = true;
	assert_int_equal(PUSH(5), -ENOTCONN);
}

/* Express: only a push that is next, with nothing to be sent before it. */
UNIT_CASE(san_tl_initiator_express_tx__only_pushes)
{
	struct san_tl *tl = pair.h[0].tl;

	assert_false(san_tl_initiator_express_tx(tl, pair.c[0]));
	assert_int_equal(PUSH(0), 0);
	assert_true(san_tl_initiator_express_tx(tl, pair.c[0]));
	assert_int_equal(san_tl_initiator_express_next(tl, pair.c[0])->req.cookie, 0);
	pair_tc(0)->rnr_until_ns = 1;
	assert_false(san_tl_initiator_express_tx(tl, pair.c[0]));
	pair_tc(0)->rnr_until_ns = 0;
	assert_int_equal(pair_pull(1, 100), 0);
	assert_false(san_tl_initiator_express_tx(tl, pair.c[0]));
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_push(2, SAN_KIND_PUSH, NEVER, pair.c[0]->mtu + 1u), 0);
	assert_true(san_tl_initiator_express_tx(tl, pair.c[0]));
	assert_int_equal(san_tl_initiator_express_next(tl, pair.c[0])->req.cookie, 2);
	assert_int_equal(pair_push(3, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 10), 0);
	assert_false(san_tl_initiator_express_tx(tl, pair.c[0])); /* its request is sent first */
	assert_int_equal(pair_tx(0), 3);
	assert_null(san_tl_initiator_express_next(tl, pair.c[0])); /* nothing of it is granted */
	assert_int_equal(PUSH(4), 0);
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 4), 0);
	assert_false(san_tl_initiator_express_tx(tl, pair.c[0]));
}

UNIT_CASE_IN(san_tl_initiator_express_tx__behind_abort, pair_setup_unordered)
{
	pair_pushes(0, 2);
	assert_true(san_tl_initiator_express_tx(pair.h[0].tl, pair.c[0]));
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 0), 0);
	assert_false(san_tl_initiator_express_tx(pair.h[0].tl, pair.c[0]));
}

/* PCB-3: no more messages than the limit, whatever the windows allow. */
UNIT_CASE_IN(san_tl_tx_next__message_limit, setup_tight)
{
	pair_pushes(0, 4);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_tc(0)->nb_msgs, 2);
	pair_rx(1, 0);
	pair_rx(1, 1);
	pair_xfer(1);
	assert_int_equal(pair.f[0].nb_cmpl, 2);
	assert_int_equal(pair_tx(0), 2);
}

/* PCB-5: received is not complete: a message counts until the cumulative RSN passes it. */
UNIT_CASE_IN(san_tl_on_ack__frees_the_count, setup_tight)
{
	pair_pushes(0, 3);
	assert_int_equal(pair_tx(0), 2);
	pair_rx(1, 1); /* received and held: the first one is missing */
	pair_xfer(1);
	assert_int_equal(pair_tc(0)->nb_msgs, 2);
	pair.c[0]->cmpl_in = pair_rsn(1);
	san_tl_on_ack(pair.h[0].tl, pair.c[0], pair.now);
	assert_int_equal(pair_tc(0)->nb_msgs, 1);
	assert_int_equal(pair.f[0].nb_cmpl, 0); /* the packet's ACK is separate */
	pair.c[0]->cmpl_in = pair_rsn(50);      /* never issued: ignored */
	san_tl_on_ack(pair.h[0].tl, pair.c[0], pair.now);
	assert_int_equal(pair_tc(0)->nb_msgs, 1);
}

/* RULE-3; RT-17: no push data before the requests below it, and all in RSN order. */
UNIT_CASE(san_tl_tx_next__rsn_order)
{
	struct san_pdl_room room = {.nb_req = 0, .nb_data = 9, .nb_credit = 9};
	struct san_pdl_entry e = {0};

	assert_int_equal(PUSH(0), 0);
	assert_int_equal(pair_pull(1, 10), 0);
	assert_int_equal(PUSH(2), 0);
	assert_int_equal(pair_add(3, 1), 0);
	assert_true(san_tl_tx_next(pair.h[0].tl, pair.c[0], &room, &e, pair.now));
	assert_int_equal(e.op, SAN_OP_PUSH_UNSLCTD_DATA);
	assert_int_equal(e.rsn, pair_rsn(0));
	assert_false(san_tl_tx_next(pair.h[0].tl, pair.c[0], &room, &e, pair.now));
	/* as if it were not sent */
	pair_tc(0)->txns[pair_rsn(0) % SAN_TL_N_MAX]->last_sent = false;
	pair_tc(0)->txns[pair_rsn(0) % SAN_TL_N_MAX]->state = SAN_TXN_POSTED;
	pair_tc(0)->data_rsn = pair_rsn(0);
	assert_int_equal(pair_tx(0), 4);
	assert_int_equal(pair_pkt(pair_find(SAN_OP_PULL_REQ, 0))->psn + 1,
			 pair_pkt(pair_find(SAN_OP_ATOMIC_REQ, 0))->psn);
	assert_int_equal(pair_pkt(pair_find(SAN_OP_PUSH_UNSLCTD_DATA, 0))->rsn, pair_rsn(0));
	assert_int_equal(pair_pkt(pair_find(SAN_OP_PUSH_UNSLCTD_DATA, 1))->rsn, pair_rsn(2));
}

/* RT-17, RULE-16: a resent packet is the same: PSN, RSN, offset, bytes. */
UNIT_CASE(san_tl_tx_fill__again_the_same)
{
	struct san_wire_pkt first, *p;
	char bytes[1000];

	assert_int_equal(pair_push(3, SAN_KIND_PUSH, NEVER, 1500), 0);
	assert_int_equal(pair_tx(0), 2);
	first = *pair_pkt(1);
	memcpy(bytes, rte_pktmbuf_mtod(pair.out[1].m, char *), first.payload_len);
	do
		pair_wait(100 * SAN_NS_PER_US);
	while (pair_tx(0) < 2);
	p = pair_pkt(1);
	assert_int_equal(p->psn, first.psn);
	assert_int_equal(p->rsn, first.rsn);
	assert_int_equal(p->offset, first.offset);
	assert_int_equal(p->length, 1500);
	assert_int_equal(p->flags, first.flags);
	assert_int_equal(p->payload_len, first.payload_len);
	assert_memory_equal(bytes, rte_pktmbuf_mtod(pair.out[1].m, char *), first.payload_len);
}

static void
on_acked(const struct san_pdl_entry *e)
{
	pair.h[0].pdl->acked[0] = *e;
	pair.h[0].pdl->nb_acked = 1;
	san_tl_on_ack(pair.h[0].tl, pair.c[0], pair.now);
}

/* RT-20: acknowledged when all its packets are, not when LAST is. */
UNIT_CASE(san_tl_on_ack__all_packets)
{
	struct san_pdl_entry e = {.op = SAN_OP_PUSH_UNSLCTD_DATA, .rsn = pair_rsn(0)};

	assert_int_equal(pair_push(1, SAN_KIND_PUSH, NEVER, 1500), 0);
	assert_int_equal(pair_tx(0), 2);
	e.flags = SAN_F_LAST;
	on_acked(&e);
	assert_int_equal(pair.f[0].nb_cmpl, 0);
	e.flags = 0;
	on_acked(&e);
	assert_int_equal(pair.f[0].nb_cmpl, 1);
	assert_int_equal(pair.f[0].status[0], SAN_ST_OK);
}

/* RT-14, RT-19: finished ahead of its turn: reported in its turn, out of the CAM. */
UNIT_CASE(san_tl_finish_txn__in_order)
{
	assert_int_equal(PUSH(0), 0);
	assert_int_equal(pair_pull(1, 100), 0);
	assert_int_equal(pair_pull(2, 100), 0);
	pair_xfer(0);
	pair_tx(1);
	for (uint32_t i = 0; i < 2; i++) { /* pull data, but not what acknowledges the push */
		pair_pkt(pair_find(SAN_OP_PULL_DATA, i))->data_ebsn -= 1;
		pair_rx(0, pair_find(SAN_OP_PULL_DATA, i));
	}
	assert_int_equal(pair.f[0].nb_pull_bytes, 200);
	assert_int_equal(pair.f[0].nb_cmpl, 0);
	assert_int_equal(pair.h[0].tl->cam.nb_used, 2);
	assert_settles(3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(pair.f[0].cookie[i], i);
}

/* RT-14: a push that is acknowledged before the pull in front of it ends waits for that. */
UNIT_CASE(san_tl_finish_txn__behind_a_pull)
{
	uint32_t i;

	assert_int_equal(pair_pull(0, 100), 0);
	assert_int_equal(PUSH(1), 0);
	pair_xfer(0);
	pair_tx(1);
	i = pair_find(SAN_OP_PULL_DATA, 0);
	pair_pkt(i)->offset = 501;
	assert_int_equal(pair_rx(0, i), SAN_DROP_RANGE); /* but it acknowledges the push */
	assert_int_equal(pair_tc(0)->nb_cam_cmpl, 1);
	assert_int_equal(pair.f[0].nb_cmpl, 0);
	pair_pkt(i)->offset = 0;
	assert_int_equal(pair_rx(0, i), SAN_DROP_NONE);
	assert_int_equal(pair.f[0].nb_cmpl, 2);
	assert_int_equal(pair.f[0].cookie[1], 1);
}

/* RT-15: unordered, it waits for nothing. */
UNIT_CASE_IN(san_tl_finish_txn__unordered, pair_setup_unordered)
{
	assert_int_equal(PUSH(0), 0);
	assert_int_equal(pair_pull(1, 100), 0);
	pair_tx(0);
	pair_rx(1, pair_find(SAN_OP_PULL_REQ, 0));
	pair_xfer(1);
	assert_int_equal(pair.f[0].nb_cmpl, 1);
	assert_int_equal(pair.f[0].cookie[0], 1);
	assert_int_equal(pair.h[0].tl->cam.nb_used, 0);
}

/* RT-11, RT-21, RT-32: pull data that was never requested, too long, too late. */
UNIT_CASE(san_tl_initiator_rx_pull_data__refused)
{
	struct san_wire_pkt *p, saved;
	uint32_t i;

	assert_int_equal(pair_pull(1, 1500), 0);
	pair_xfer(0);
	pair_tx(1);
	i = pair_find(SAN_OP_PULL_DATA, 0);
	p = pair_pkt(i);
	saved = *p;
	p->rsn = pair_rsn(1);
	assert_int_equal(pair_rx(0, i), SAN_DROP_RSN);
	p->rsn = pair_rsn(0) - 1;
	assert_int_equal(pair_rx(0, i), SAN_DROP_RSN);
	*p = saved;
	p->offset = 501;
	assert_int_equal(pair_rx(0, i), SAN_DROP_RANGE);
	*p = saved;
	assert_int_equal(pair_rx(0, i), SAN_DROP_NONE);
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_PULL_DATA, 1)), SAN_DROP_NONE);
	assert_int_equal(pair.f[0].nb_cmpl, 1);
	p->psn += 2; /* with a new PSN, but of a finished pull */
	assert_int_equal(pair_rx(0, i), SAN_DROP_FINISHED);
	assert_int_equal(pair.c[0]->rx[SAN_WIN_DATA].base, p->psn + 1);
}

/* ---- pushes that need not wait ---- */

/*
 * The short path leaves the state of san_tl_initiator_submit(), and refuses what it may not
 * take.
 */
UNIT_CASE(san_tl_initiator_plain_submit__like_submit)
{
	struct san_tl_req req = {.type = SAN_TL_PUSH, .solicit = NEVER, .length = 10, .key = 77};
	struct san_tl_req other = {.type = SAN_TL_PULL, .length = 10};
	const struct san_tl_req *run[] = {&req, &req, &other};
	struct tl_link l = pair_link(true);
	struct san_tl *tl = pair.h[0].tl;
	struct san_tl_conn *a, *b;
	uint16_t slot[2][2];

	pair_connect(&l, slot[0]);
	pair_connect(&l, slot[1]);
	a = &tl->conns[slot[0][0]];
	b = &tl->conns[slot[1][0]];
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(san_tl_initiator_submit(tl, a->slot, &req, pair.now), 0);
	assert_int_equal(san_tl_initiator_plain_room(tl, b->slot, 3), 3);
	assert_int_equal(san_tl_initiator_plain_submit(tl, b->slot, run, 1), 1);
	assert_int_equal(san_tl_initiator_plain_submit(tl, b->slot, run, 3), 2);
	assert_int_equal(san_tl_initiator_plain_submit(tl, b->slot, run + 2, 1), 0);
	other.type = SAN_TL_PUSH;
	other.solicit = SAN_SOLICIT_ALWAYS;
	assert_int_equal(san_tl_initiator_plain_submit(tl, b->slot, run + 2, 1), 0);
	san_tl_check(tl);
	assert_int_equal(b->rsn_next, a->rsn_next);
	assert_int_equal(b->adm_rsn, a->adm_rsn);
	assert_int_equal(b->req_rsn, a->req_rsn);
	assert_int_equal(b->ssn_next, a->ssn_next);
	assert_int_equal(b->nb_msgs, a->nb_msgs);
	assert_int_equal(b->nb_txns, a->nb_txns);
	assert_true(pair.h[0].pdl->conns[b->slot].in_ready);
	assert_int_equal(tl->stats.nb_push_unsolicited, 6);
	san_tl_conn_close(tl, a->slot, SAN_ST_ABORTED, pair.now);
	san_tl_conn_close(tl, b->slot, SAN_ST_ABORTED, pair.now);
}

/* A connection may be visited once more after its end: it has no memo any more. */
UNIT_CASE_IN(san_tl_has_tx__after_the_end, pair_setup_unordered)
{
	san_tl_conn_close(pair.h[0].tl, pair_tc(0)->slot, SAN_ST_ABORTED, pair.now);
	assert_false(san_tl_has_tx(pair.h[0].tl, pair.c[0]));
}

/* Not more than N and the limit of PCB-3 allow, and nothing before work that waits. */
UNIT_CASE_IN(san_tl_initiator_plain_room__bounds, setup_tight)
{
	struct san_tl *tl = pair.h[0].tl;
	struct san_tl_conn *tc = pair_tc(0);

	assert_int_equal(san_tl_initiator_plain_room(tl, tc->slot, 1), 1);
	assert_int_equal(san_tl_initiator_plain_room(tl, tc->slot, 9), 2); /* messages */
	pair.c[0]->pcb.msg_limit = 16;
	assert_int_equal(san_tl_initiator_plain_room(tl, tc->slot, 9), 4); /* N */
	assert_int_equal(PUSH(0), 0);
	assert_int_equal(san_tl_initiator_plain_room(tl, tc->slot, 9), 3);
	pair.c[0]->pcb.msg_limit = 1;
	assert_int_equal(san_tl_initiator_plain_room(tl, tc->slot, 9), 0);
	assert_int_equal(PUSH(1), 0);
	pair.c[0]->pcb.msg_limit = 16;
	/* push 1 waits for admission */
	assert_int_equal(san_tl_initiator_plain_room(tl, tc->slot, 9), 0);
}

/* The end of the connection completes everything, in order, each with its result. */
UNIT_CASE(san_tl_conn_close__completes)
{
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(i == 3 ? pair_pull(i, 100) : PUSH(i), 0);
	pair_tx(0);
	pair_rx(1, pair_find(SAN_OP_PUSH_UNSLCTD_DATA, 0));
	pair_xfer(1);
	assert_int_equal(pair.f[0].nb_cmpl, 1);
	assert_false(san_tl_is_drained(pair.h[0].tl, pair.slot[0]));
	san_tl_conn_close(pair.h[0].tl, pair.slot[0], 66, pair.now);
	assert_int_equal(pair.f[0].nb_cmpl, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(pair.f[0].cookie[i], i);
		assert_int_equal(pair.f[0].status[i], i == 0 ? SAN_ST_OK : 66);
	}
	assert_true(san_tl_is_drained(pair.h[0].tl, pair.slot[0]));
	assert_int_equal(PUSH(9), -ENOTCONN);
	san_tl_conn_close(pair.h[0].tl, pair.slot[0], 66, pair.now); /* no effect */
}
