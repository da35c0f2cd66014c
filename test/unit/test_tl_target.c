/* SPDX-License-Identifier: BSD-3-Clause */

#include "tl_pair.h"

#define NEVER   SAN_SOLICIT_NEVER
#define ALWAYS  SAN_SOLICIT_ALWAYS
#define PUSH(n) pair_push(n, SAN_KIND_PUSH, NEVER, 100)

/* Only two records per connection, four held packets. */
static void
setup_small(void)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conf tl;

	san_tl_conf_default(&tl);
	tl.max_txns = 64;
	tl.max_rxns = 3 * TL_HOST_CONNS + 14;
	tl.max_held = 8; /* half of them for a host */
	tl.max_held_conn = 4;
	pair_open(&l, &tl);
}

UNIT_FIXTURE(.setup = pair_setup, .teardown = pair_close);

/* RT-19; RULE-15: packets in order need neither the CAM nor a record. */
UNIT_CASE(san_tl_target_rx_push__in_order_no_cam)
{
	pair_pushes(0, 10);
	pair_settle();
	assert_int_equal(pair.f[1].nb_done, 10);
	assert_int_equal(pair.h[1].tl->cam.nb_lookups, 0);
	assert_int_equal(pair.h[1].tl->cam.nb_inserts, 0);
	assert_int_equal(pair.h[0].tl->cam.nb_lookups, 0);
	assert_int_equal(pair.f[0].nb_cmpl, 10);
	for (uint64_t i = 0; i < 10; i++) {
		assert_true(pair_has_bytes(i, 100));
		assert_int_equal(pair.f[0].cookie[i], i);
	}
}

/* RT-14, RT-18, RT-19: later ones are held, received but not acknowledged, then done in order. */
UNIT_CASE(san_tl_target_rx_push__held_until_its_turn)
{
	struct san_pdl_rxw *w = &pair.c[1]->rx[SAN_WIN_DATA];
	uint32_t psn;

	pair_pushes(0, 4);
	assert_int_equal(pair_tx(0), 4);
	psn = pair_pkt(0)->psn;
	for (uint32_t i = 3; i > 0; i--) {
		assert_int_equal(pair_rx(1, i), SAN_DROP_NONE);
		assert_true(san_bitmap_test(&w->rcvd, psn + i));
		assert_false(san_bitmap_test(&w->acked, psn + i));
	}
	assert_int_equal(pair.f[1].nb_push_req, 0);
	assert_int_equal(pair.h[1].tl->nb_held, 3);
	assert_int_equal(pair.h[1].tl->cam.nb_used, 3);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pair.f[1].done[i], pair_rsn(i));
	assert_int_equal(w->base, psn + 4);
	assert_int_equal(pair.c[1]->cmpl_out, pair_rsn(4)); /* PCB-5 */
	assert_int_equal(pair.h[1].tl->nb_held, 0);
}

/* RT-18; RULE-1: each packet as it is placed, LAST with the ULP-ACK. */
UNIT_CASE(san_tl_target_rx_push__last_waits_for_the_rest)
{
	struct san_pdl_rxw *w = &pair.c[1]->rx[SAN_WIN_DATA];
	uint32_t psn;

	assert_int_equal(pair_push(1, SAN_KIND_PUSH, NEVER, 2500), 0);
	assert_int_equal(pair_tx(0), 3);
	psn = pair_pkt(0)->psn;
	assert_int_equal(pair_rx(1, 2), SAN_DROP_NONE);
	assert_false(san_bitmap_test(&w->acked, psn + 2));
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(w->base, psn + 1);
	assert_int_equal(pair.f[1].nb_done, 0);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 1);
	assert_int_equal(w->base, psn + 3);
	assert_true(pair_has_bytes(1, 2500));
}

/* RT-32: for a finished transaction: acknowledged, discarded, counted. */
UNIT_CASE(san_tl_target_rx_push__finished)
{
	struct san_wire_pkt *p;

	assert_int_equal(PUSH(1), 0);
	pair_settle();
	assert_int_equal(PUSH(2), 0);
	assert_int_equal(pair_tx(0), 1);
	p = pair_pkt(0);
	p->rsn = pair_rsn(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_FINISHED);
	assert_int_equal(pair.h[1].tl->stats.nb_finished_data, 1);
	assert_int_equal(pair.c[1]->rx[SAN_WIN_DATA].base, p->psn + 1);
	assert_int_equal(pair.f[1].nb_done, 1);
}

/* RT-32; RULE-6: never issued, or beyond N: its bit stays clear. */
UNIT_CASE(san_tl_target_rx_push__beyond_n)
{
	struct san_wire_pkt *p;

	assert_int_equal(PUSH(1), 0);
	assert_int_equal(pair_tx(0), 1);
	p = pair_pkt(0);
	p->rsn = pair_rsn(64);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RSN);
	assert_int_equal(pair.c[1]->rx[SAN_WIN_DATA].high, p->psn);
	p->rsn = pair_rsn(63);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	p->rsn = pair_rsn(0);
	pair.now += 1000;
}

/* RT-21, RT-32: not requested, not granted, or contradicting earlier packets. */
UNIT_CASE(san_tl_target_rx_push__out_of_range)
{
	struct san_wire_pkt *p, saved;

	assert_int_equal(pair_push(1, SAN_KIND_PUSH, NEVER, 2500), 0);
	assert_int_equal(pair_tx(0), 3);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	p = pair_pkt(1);
	saved = *p;
	p->length = 2400;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RANGE);
	*p = saved;
	p->offset = 2000;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RANGE);
	*p = saved;
	p->key = 78;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RANGE);
	*p = saved;
	p->flags |= SAN_F_LAST;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RANGE);
	*p = saved;
	p->op = SAN_OP_PUSH_SLCTD_DATA;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RANGE);
	*p = saved;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 2), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 1);
}

/* RT-23, RT-26, RT-33; RULE-8: red refuses all but the head of the line. */
UNIT_CASE_IN(san_tl_target_rx_push__red_admits_the_head, setup_small)
{
	pair_pushes(0, 8);
	assert_int_equal(pair_tx(0), 8);
	for (uint32_t i = 1; i < 8; i++)
		assert_int_equal(pair_rx(1, i), i < 5 ? SAN_DROP_NONE : SAN_DROP_RED_ZONE);
	assert_int_equal(pair.h[1].tl->stats.nb_red_zone, 3);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 5);
	assert_settles(8); /* refused packets are resent */
	assert_int_equal(pair.f[1].nb_done, 8);
}

/* A packet of a longer push, which needs a record, is admitted, too. */
UNIT_CASE_IN(san_tl_target_rx_push__red_admits_a_long_head, setup_small)
{
	assert_int_equal(pair_push(0, SAN_KIND_PUSH, NEVER, 1100), 0);
	pair_pushes(1, 7);
	assert_int_equal(pair_tx(0), 9);
	for (uint32_t i = 2; i < 9; i++)
		pair_rx(1, i);
	assert_true(san_tl_rxn_is_red(pair.h[1].tl, pair_tc(1)));
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	assert_true(pair.f[1].nb_done >= 1);
	pair_settle();
	assert_int_equal(pair.f[1].nb_done, 8);
}

/* RT-26: when every free record is reserved for heads of line, these still get theirs. */
UNIT_CASE_IN(san_tl_target_rx_push__no_record_but_for_the_head, setup_small)
{
	struct san_tl *tl = pair.h[1].tl;
	uint32_t nb_ok = 0;

	/* three for each possible connection, open or not, and some more */
	assert_int_equal(tl->free_rxns.nb, 3 * TL_HOST_CONNS + 14);
	tl->conf.max_held = tl->conf.max_held_conn = 100;
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(pair_push(i, SAN_KIND_PUSH, NEVER, 1100), 0);
	assert_int_equal(pair_tx(0), 32);
	for (uint32_t i = 2; i < 32; i++) {
		enum san_drop drop = pair_rx(1, i);

		assert_true(drop == SAN_DROP_NONE || drop == SAN_DROP_NO_TXN);
		nb_ok += drop == SAN_DROP_NONE;
	}
	assert_int_equal(nb_ok, 2 * 14);
	assert_int_equal(tl->free_rxns.nb, 3 * TL_HOST_CONNS);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 1 + 14);
	assert_settles(16);
}

/* RT-15: on an unordered connection each is done on arrival. */
UNIT_CASE_IN(san_tl_target_rx_push__unordered, pair_setup_unordered)
{
	pair_pushes(0, 4);
	assert_int_equal(pair_tx(0), 4);
	for (uint32_t i = 3; i > 0; i--) {
		assert_int_equal(pair_rx(1, i), SAN_DROP_NONE);
		assert_int_equal(pair.f[1].done[3 - i], pair_rsn(i));
	}
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(0));
	assert_int_equal(pair_xfer(1), 1); /* an ACK: three complete */
	assert_int_equal(pair.f[0].nb_cmpl, 3);
	assert_settles(4);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(4));
	assert_int_equal(pair_tc(0)->rsn_base, pair_rsn(4));
}

/* RULE-3: relaxed places on arrival, and still acknowledges in order. */
UNIT_CASE_IN(san_tl_target_rx_push__relaxed, pair_setup_relaxed)
{
	struct san_pdl_rxw *w = &pair.c[1]->rx[SAN_WIN_DATA];
	uint32_t psn;

	assert_int_equal(PUSH(0), 0);
	assert_int_equal(pair_push(1, SAN_KIND_PUSH, NEVER, 1500), 0);
	assert_int_equal(pair_tx(0), 3);
	psn = pair_pkt(0)->psn;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 2), SAN_DROP_NONE);
	assert_true(pair_has_bytes(1, 1500));
	assert_true(san_bitmap_test(&w->acked, psn + 1));
	assert_false(san_bitmap_test(&w->acked, psn + 2)); /* LAST: not before its turn */
	assert_int_equal(pair.f[1].nb_done, 0);
	assert_int_equal(pair.h[1].tl->nb_held, 0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 2);
	assert_int_equal(w->base, psn + 3);
}

/* The immediate is the first 4 bytes of LAST, in front of its data. */
UNIT_CASE(san_tl_target_rx_push__immediate)
{
	pair.f[1].nb_recvs = 4;
	/* 1000, 998: 4 too many */
	assert_int_equal(pair_push(1, SAN_KIND_PUSH_IMM, NEVER, 1998), 0);
	assert_int_equal(pair_tx(0), 3);
	assert_int_equal(pair_pkt(1)->payload_len, 998);
	assert_int_equal(pair_pkt(2)->payload_len, SAN_WIRE_IMM_LEN);
	pair_rx(1, 2);
	pair_rx(1, 1);
	pair_rx(1, 0);
	assert_int_equal(pair.f[1].imm, 0xabcd0001);
	assert_true(pair_has_bytes(1, 1998));
	assert_int_equal(pair_push(2, SAN_KIND_PUSH_IMM, NEVER, 996), 0);
	assert_int_equal(pair_push(3, SAN_KIND_PUSH_IMM, NEVER, 0), 0);
	pair_settle();
	assert_int_equal(pair.f[1].imm, 0xabcd0003);
	assert_true(pair_has_bytes(2, 996));
	assert_int_equal(pair_push(4, SAN_KIND_SEND_IMM, NEVER, 5), 0);
	pair_settle();
	assert_int_equal(pair.f[1].imm, 0xabcd0004);
	assert_true(pair_has_bytes(4, 5));
	assert_int_equal(pair.f[0].nb_cmpl, 4);
	assert_int_equal(pair.f[1].nb_recvs, 0);
}

/* RT-30; RULE-14: once, however often the request and the answer are lost. */
UNIT_CASE(san_tl_target_rx_request__atomic_once)
{
	pair.f[1].counter = 40;
	assert_int_equal(pair_add(1, 2), 0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_OLD);
	assert_int_equal(pair_tx(1), 2); /* answer and ACK, both lost */
	pair_settle();
	assert_int_equal(pair.f[1].nb_atomic, 1);
	assert_int_equal(pair.f[1].counter, 42);
	assert_int_equal(pair.f[0].nb_cmpl, 1);
	assert_int_equal(pair.f[0].atomic_result, 40);
	assert_true(san_tl_is_drained(pair.h[1].tl, pair.slot[1]));
}

/* RT-14: a pull waits for the pushes below it, and delays none above it. */
UNIT_CASE(san_tl_target_rx_request__pull_in_order)
{
	assert_int_equal(PUSH(0), 0);
	assert_int_equal(pair_pull(1, 1500), 0);
	assert_int_equal(PUSH(2), 0);
	assert_int_equal(pair_tx(0), 3);
	pair_rx(1, pair_find(SAN_OP_PULL_REQ, 0));
	pair_rx(1, pair_find(SAN_OP_PUSH_UNSLCTD_DATA, 1));
	assert_int_equal(pair.f[1].nb_pull_req, 0);
	pair_rx(1, pair_find(SAN_OP_PUSH_UNSLCTD_DATA, 0));
	assert_int_equal(pair.f[1].nb_done, 3);
	assert_int_equal(pair.f[1].done[1], pair_rsn(1));
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(3));
	assert_false(san_tl_is_drained(pair.h[1].tl, pair.slot[1]));
	pair_settle();
	assert_int_equal(pair.f[0].nb_pull_bytes, 1500);
	assert_int_equal(pair.f[0].nb_cmpl, 3);
}

/* RT-26: while the base is a request without a record, nothing waits behind it. */
UNIT_CASE(san_tl_target_rx_request__pull_without_a_record)
{
	pair_tc(1)->peer.n_rx = 2; /* so four records are its limit */
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(pair_pull(i, 100), 0);
	assert_int_equal(PUSH(5), 0);
	assert_int_equal(pair_tx(0), 6);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(pair_rx(1, pair_find(SAN_OP_PULL_REQ, (uint32_t)i)),
				 SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, pair_find(SAN_OP_PULL_REQ, 4)), SAN_DROP_NO_TXN);
	assert_int_equal(pair_rx(1, pair_find(SAN_OP_PUSH_UNSLCTD_DATA, 0)), SAN_DROP_RNR);
	assert_int_equal(pair_tc(1)->nb_held, 0);
	assert_settles(6);
}

/* RULE-5: refused by pull data with a status, reliably. */
UNIT_CASE(san_tl_target_rx_request__pull_refused)
{
	pair.f[1].pull_req = SAN_ST_ACCESS;
	assert_int_equal(pair_pull(1, 1500), 0);
	assert_int_equal(PUSH(2), 0);
	pair_xfer(0);
	pair_tx(1);
	assert_int_not_equal(pair_find(SAN_OP_PULL_DATA, 0), UINT32_MAX);
	assert_int_equal(pair_pkt(pair_find(SAN_OP_PULL_DATA, 0))->status, SAN_ST_ACCESS);
	assert_settles_with(SAN_ST_ACCESS, SAN_ST_OK); /* it was lost once */
	assert_int_equal(pair.f[1].nb_pull_req, 1);
}

/* RULE-5: RNR of a pull is retried at the target, for the initiator's RNR time. */
UNIT_CASE(san_tl_target_rx_request__pull_not_ready)
{
	pair.f[1].pull_req = SAN_ST_RNR;
	assert_int_equal(pair_pull(1, 500), 0);
	assert_int_equal(PUSH(2), 0);
	pair_settle();
	assert_true(pair.f[1].nb_pull_req > 1);
	assert_int_equal(pair.f[1].nb_done, 0); /* the push waits for it */
	pair.f[1].pull_req = SAN_ST_OK;
	pair_wait(SAN_NS_PER_MS);
	assert_settles(2);
	pair.f[1].pull_req = SAN_ST_RNR;
	assert_int_equal(pair_pull(3, 500), 0);
	pair_settle();
	pair_wait(1000 * SAN_NS_PER_MS);
	pair_settle();
	assert_int_equal(pair.f[0].status[2], SAN_ST_RNR);
}

/* RULE-14: bytes are read at each transmission; a region revoked meanwhile is a status. */
UNIT_CASE(san_tl_pull_fill__revoked)
{
	assert_int_equal(pair_pull(1, 2500), 0);
	pair_xfer(0);
	pair.f[1].pull_read = SAN_ST_REVOKED;
	pair_tx(1);
	assert_int_equal(pair_pkt(pair_find(SAN_OP_PULL_DATA, 1))->status, SAN_ST_REVOKED);
	assert_int_equal(pair_pkt(pair_find(SAN_OP_PULL_DATA, 1))->payload_len, 0);
	assert_settles_with(SAN_ST_REVOKED);
}

/* RT-26: more pulls than records: the base waits for one of its own pulls, never forever. */
UNIT_CASE_IN(san_tl_target_run_base__pull_waits_for_a_pull, setup_small)
{
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(pair_pull(i, 3000), 0);
	assert_settles(32);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(pair.f[0].status[i], SAN_ST_OK);
}

/* As many heads of each kind as there are claims, and no more while there is no spare record. */
UNIT_CASE_IN(san_tl_rxn_new__claims_of_each_kind, NULL)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conn *tc[2];
	struct san_tl_rxn *r, *s;
	struct san_tl_conf conf;
	struct san_tl *tl;
	uint16_t slot[2];

	san_tl_conf_default(&conf);
	conf.max_wide = 1;
	conf.max_rxns = 1; /* raised to the number of claims */
	pair_open(&l, &conf);
	pair_connect(&l, slot);
	tl = pair.h[1].tl;
	tc[0] = pair_tc(1);
	tc[1] = &tl->conns[slot[1]];
	r = san_tl_rxn_new(tl, tc[0], tc[0]->rx_base, false);
	assert_non_null(r);
	assert_null(san_tl_rxn_new(tl, tc[1], tc[1]->rx_base, false));
	assert_null(san_tl_rxn_new(tl, tc[1], tc[1]->rx_base + 1, true));
	s = san_tl_rxn_new(tl, tc[1], tc[1]->rx_base, true);
	assert_non_null(s);
	assert_int_equal(tl->free_rxns.nb, 1);
	assert_true(san_tl_rxn_can_pull(tl, tc[0])); /* the rest is for that */
	san_tl_rxn_detach(tl, tc[0], r);
	san_tl_rxn_set_pulling(tl, tc[0], 1);
	assert_false(san_tl_rxn_can_pull(tl, tc[0])); /* but reserved for the head again */
	assert_false(san_tl_rxn_can_pull(tl, tc[1]));
	san_tl_rxn_set_pulling(tl, tc[0], -1);
	san_tl_rxn_free(tl, tc[0], r);
	assert_null(san_tl_rxn_new(tl, tc[1], tc[1]->rx_base + 1, false));
	r = san_tl_rxn_new(tl, tc[0], tc[0]->rx_base, false);
	assert_non_null(r);
	san_tl_rxn_free(tl, tc[0], r);
	san_tl_rxn_free(tl, tc[1], s);
}

/* One record of each kind, and whether it waits for its peer. */
static const struct holding {
	uint8_t type, state;
	bool ahead, solicited, pulling;
	uint32_t granted, arrived;
	bool ends;
} holdings[] = {
	{SAN_TL_PUSH, SAN_RXN_AHEAD, .ends = true}, /* unsolicited, begun */
	{SAN_TL_PUSH, SAN_RXN_AHEAD, .ahead = true, .ends = true},
	{SAN_TL_PULL, SAN_RXN_AHEAD, .ahead = true, .ends = true},
	{SAN_TL_PUSH, SAN_RXN_AHEAD, .ahead = true, .solicited = true, .ends = true},
	{SAN_TL_PUSH, SAN_RXN_ACTIVE, .solicited = true, .granted = 8, .arrived = 4, .ends = true},
	{SAN_TL_PULL, SAN_RXN_PULLING, .pulling = true, .ends = true},
	{SAN_TL_PUSH, SAN_RXN_AHEAD, .solicited = true}, /* waits for a grant */
	{SAN_TL_PUSH, SAN_RXN_ACTIVE, .solicited = true, .granted = 8, .arrived = 8},
	{SAN_TL_PUSH, SAN_RXN_REFUSED}, /* waits until its answer is sent */
	{SAN_TL_PULL, SAN_RXN_AHEAD},   /* waits for a record, or for the ULP */
	{SAN_TL_ATOMIC, SAN_RXN_AHEAD},
};

static void
hold_and_look(const struct holding *h)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conn *tc;
	struct san_tl_rxn *r;
	struct san_tl *tl;
	uint64_t now;

	pair_open(&l, NULL);
	tl = pair.h[1].tl;
	tc = pair_tc(1);
	now = pair.now;
	r = san_tl_rxn_new(tl, tc, tc->rx_base + h->ahead, h->solicited);
	assert_non_null(r);
	r->type = h->type;
	r->state = h->state;
	r->length = 16;
	r->granted = h->granted;
	r->arrived = h->arrived;
	if (h->pulling) {
		san_tl_rxn_detach(tl, tc, r);
		san_tl_rxn_set_pulling(tl, tc, 1);
	}
	tl->nb_scarce++;
	san_tl_tick(tl, now);
	tc->nb_waits += !h->pulling; /* it was refused, and requested again */
	san_tl_pdl_conn(tl, tc)->tx[SAN_WIN_DATA].base += h->pulling;
	now += SAN_HOLD_MAX_NS;
	tl->nb_scarce++;
	san_tl_tick(tl, now);
	now += SAN_HOLD_MAX_NS - 1;
	tl->nb_scarce++;
	san_tl_tick(tl, now);
	assert_false(san_tl_pdl_conn(tl, tc)->failed);
	san_tl_tick(tl, ++now); /* there was no request since */
	assert_false(san_tl_pdl_conn(tl, tc)->failed);
	tl->nb_scarce++;
	san_tl_tick(tl, now);
	assert_int_equal(san_tl_pdl_conn(tl, tc)->failed, h->ends);
	san_tl_pdl_conn(tl, tc)->tx[SAN_WIN_DATA].base -= h->pulling;
	if (h->pulling)
		san_tl_rxn_set_pulling(tl, tc, -1);
	san_tl_rxn_free(tl, tc, r);
	pair_close();
}

/* RT-35: if its peer does nothing for a record, others get it, and the connection ends. */
UNIT_CASE_ALONE(san_tl_rxn_end_stale__each_kind)
{
	UNIT_EACH(r, holdings)
		hold_and_look(r);
}

static void
pull_on(uint16_t slot)
{
	const struct san_tl_req req = {.type = SAN_TL_PULL, .length = 100, .key = 77};

	assert_int_equal(san_tl_initiator_submit(pair.h[0].tl, slot, &req, pair.now), 0);
	assert_true(pair_xfer(0) != 0);
}

/* RT-26: if two may be in flight, the pulls of three connections alternate. */
UNIT_CASE_IN(san_tl_target_wake_pulls__in_turn, NULL)
{
	struct tl_link l = pair_link(true);
	uint16_t second[2], third[2];
	struct san_tl_conf conf;
	struct san_tl_conn *tc;

	san_tl_conf_default(&conf);
	conf.max_wide = 2;
	conf.max_rxns = 1; /* raised to the number of claims */
	pair_open(&l, &conf);
	pair_connect(&l, second);
	pair_connect(&l, third);
	tc = &pair.h[1].tl->conns[second[1]];
	pull_on(pair.slot[0]);
	pull_on(third[0]);
	assert_int_equal(pair.f[1].nb_pull_req, 2);
	pull_on(second[0]);
	pull_on(pair.slot[0]);
	assert_int_equal(pair.f[1].nb_pull_req, 2); /* both wait at their base */
	pair_tx(1);
	for (uint32_t i = 0; i < pair.nb_out; i++) /* the first one acknowledges what it receives */
		if (pair_pkt(i)->dcid == pair.c[0]->cid)
			pair_rx(0, i);
	pair_xfer(0);
	pair_tick(1);
	assert_int_equal(pair.f[1].nb_pull_req, 3);
	assert_int_equal(tc->nb_pulling, 1);
	assert_settles(4);
}

/* An unordered connection needs memory of its own, which is limited. */
UNIT_CASE_IN(san_tl_may_prepare__unordered_only, NULL)
{
	struct tl_link l = pair_link(false);
	struct san_tl_conf conf;
	struct san_tl *tl;

	san_tl_conf_default(&conf);
	conf.max_unordered = 1;
	pair_open(&l, &conf);
	tl = pair.h[1].tl;
	assert_false(san_tl_may_prepare(tl, false));
	assert_true(san_tl_may_prepare(tl, true));
	san_tl_conn_close(tl, pair.slot[1], SAN_ST_ABORTED, pair.now);
	assert_true(san_tl_may_prepare(tl, false));
	san_tl_conn_prepare(tl, pair.slot[1], false);
	assert_false(san_tl_may_prepare(tl, false));
	san_tl_conn_close(tl, pair.slot[1], SAN_ST_ABORTED, pair.now); /* never opened */
	assert_true(san_tl_may_prepare(tl, false));
}

static bool
express(uint32_t rsn, uint8_t round, uint16_t nb_taken)
{
	const struct san_wire_pkt p = {.rsn = rsn, .round = round};

	return san_tl_target_express(pair.h[1].tl, pair.slot[1], &p, nb_taken);
}

/* In its turn, behind packets received with it, and in the current round. */
UNIT_CASE(san_tl_target_express__in_order)
{
	struct san_tl_conn *tc = pair_tc(1);
	uint32_t rsn = tc->rx_base;

	assert_int_equal(san_tl_target_express_run(pair.h[1].tl, pair.slot[1], 7), 7);
	pair.h[1].tl->nb_admit = 1; /* the order of grants depends on each packet */
	assert_int_equal(san_tl_target_express_run(pair.h[1].tl, pair.slot[1], 7), 1);
	pair.h[1].tl->nb_admit = 0;
	assert_true(express(rsn, 0, 0) && express(rsn + 3, 0, 3));
	assert_false(express(rsn + 1, 0, 0) || express(rsn, 0, 1) || express(rsn - 1, 0, 0));
	tc->rnr_valid = true;
	tc->rnr_rsn = rsn;
	tc->rnr_round = 5;
	assert_false(express(rsn, 4, 0));
	assert_true(express(rsn, 5, 0));
	tc->rnr_valid = false;
}

/* Any unfinished one, one at a time: each changes the state for the next one. */
UNIT_CASE(san_tl_target_express_data__ordinary)
{
	struct san_tl_conn *tc = pair_tc(1);
	const struct san_tl_rxn ordinary = {.rsn = tc->rx_base,
					    .state = SAN_RXN_ACTIVE,
					    .solicited = true,
					    .charge = {.charged = 100}};
	struct san_tl_rxn not [6], r = ordinary;
	struct san_tl *tl = pair.h[1].tl;
	uint32_t room, rsn = tc->rx_base;

	tc->cur = &r;
	assert_ptr_equal(san_tl_target_express_data(tl, pair.slot[1], rsn, &room), &r);
	assert_int_equal(room, 99); /* the last byte has effects on others */
	for (uint32_t i = 0; i < RTE_DIM(not ); i++)
		not [i] = ordinary;
	not [0].rsn++;
	not [1].state = SAN_RXN_REFUSED;
	not [2].solicited = false;
	not [3].charge.charged = 0;
	not [4].charge.expired = 1;
	tc->peer.ordered = true;
	for (uint32_t i = 0; i < RTE_DIM(not ); i++) {
		tc->cur = &not [i];
		tc->peer.ordered = i != 5;
		assert_null(san_tl_target_express_data(tl, pair.slot[1], rsn, &room));
	}
	tc->cur = NULL;
	tc->peer.ordered = true;
}

UNIT_CASE_IN(san_tl_target_express__unordered, pair_setup_unordered)
{
	uint32_t rsn = pair_tc(1)->rx_base;

	assert_int_equal(san_tl_target_express_run(pair.h[1].tl, pair.slot[1], 7), 1);
	pair_pushes(0, 2);
	assert_int_equal(pair_tx(0), 2);
	pair_rx(1, 1); /* the second one overtakes the first */
	assert_true(pair_tc(1)->rx_base == rsn);
	assert_true(express(rsn, 0, 0) && express(rsn + 2, 0, 0));
	assert_false(express(rsn + 1, 0, 0) || express(rsn - 1, 0, 0));
	assert_false(express(rsn, 1, 0) || express(rsn + pair_tc(1)->peer.n_rx, 0, 0));
}
