/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

static void
open_with(uint32_t req_win)
{
	struct san_pdl_conf conf = pair_conf();

	pair_open(&pair, &conf, req_win, 64);
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
}

static void
setup(void)
{
	open_with(16);
}

static void
setup_long(void)
{
	open_with(64);
}

static void
setup_dcqcn(void)
{
	struct san_pdl_conf conf = pair_conf();

	conf.cc = SAN_CC_DCQCN;
	pair_open(&pair, &conf, 16, 64);
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
}

static void
setup_narrow(void)
{
	struct san_pdl_conf conf = pair_conf();

	conf.max_conns = 1;
	conf.max_wide = 0;
	pair_open(&pair, &conf, 16, 64);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

UNIT_CASE(san_pdl_rx_win_of__every_op)
{
	for (int op = 0; op < 256; op++) {
		for (int flags = 0; flags < 16; flags++) {
			enum san_win win = SAN_WIN_MAX;

			if (op >= SAN_OP_PUSH_SLCTD_REQ && op <= SAN_OP_ATOMIC_REQ)
				win = SAN_WIN_REQ;
			else if ((op >= SAN_OP_PUSH_GRNT && op <= SAN_OP_PULL_DATA) ||
				 op == SAN_OP_PUSH_PACKED)
				win = SAN_WIN_DATA;
			else if (op == SAN_OP_RESYNC)
				win = (flags & SAN_F_WIN_DATA) ? SAN_WIN_DATA : SAN_WIN_REQ;
			assert_int_equal(san_pdl_rx_win_of((uint8_t)op, (uint8_t)flags), win);
		}
	}
}

/* Make row *i* wrong: CID, lcore, peer (and all that follows), tag, partition. */
static void
spoil(struct san_wire_pkt *p, size_t i)
{
	p->dcid += i == 0;
	p->dcid += i == 1 ? 1 << SAN_CID_LCORE_SHIFT : 0;
	p->src.b[15] += i == 2;
	p->tag += i == 2 || i == 3;
	p->pkey += i >= 2;
}

/*
 * RT-21, RT-24, RT-29: wrong packets get the right drop reason, in this order, and change nothing,
 * neither in the connection nor in the instance. A CNP has no tag.
 */
UNIT_CASE(san_pdl_rx_check__drops_leave_state_untouched)
{
	static const enum san_drop want[] = {
		SAN_DROP_CID, SAN_DROP_CID, SAN_DROP_PEER, SAN_DROP_TAG, SAN_DROP_PKEY};
	static const uint8_t ops[] = {
		SAN_OP_PUSH_SLCTD_REQ, SAN_OP_PULL_REQ, SAN_OP_ATOMIC_REQ, SAN_OP_PUSH_GRNT,
		SAN_OP_PUSH_SLCTD_DATA, SAN_OP_PUSH_UNSLCTD_DATA, SAN_OP_PUSH_PACKED,
		SAN_OP_PULL_DATA, SAN_OP_ACK, SAN_OP_NACK, SAN_OP_RESYNC, SAN_OP_PROBE,
		SAN_OP_CNP};
	static struct san_pdl_conn conn;
	static struct san_pdl inst;
	struct san_pdl_conn *c = pair.c[1];
	struct pair_pkt out;

	/* something is in flight, so that a CNP and an ACK would have an effect */
	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &out));
	for (size_t i = 0; i < RTE_DIM(want); i++) {
		UNIT_EACH(r, ops) {
			struct san_wire_pkt p = k.p;
			struct san_pdl_conn *found;
			enum san_drop drop;

			p.op = *r;
			p.ackreq = true;
			p.ce = true;
			p.data_ebsn += 1000;
			spoil(&p, i);
			conn = *c;
			inst = *pair.pdl[1];
			drop = san_pdl_rx_check(pair.pdl[1], &p, &k.ack, pair.now, &found);
			if (p.op == SAN_OP_CNP && want[i] == SAN_DROP_TAG)
				assert_int_equal(drop, SAN_DROP_PKEY); /* as wrong as the tag */
			else
				assert_int_equal(drop, want[i]);
			assert_memory_equal(&conn, c, sizeof(conn));
			assert_memory_equal(&inst, pair.pdl[1], sizeof(inst));
			assert_ptr_equal(found, i < 2 ? NULL : c);
		}
	}
}

/* SETUP: only after everything else matched, so that cm can use it as an RTU and check again. */
UNIT_CASE(san_pdl_rx_check__state_comes_last)
{
	struct san_pdl_conn *c = pair.c[1], *found;
	struct san_pdl_conn before;
	struct san_wire_pkt p = k.p;

	c->state = SAN_CONN_SETUP;
	before = *c;
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_STATE);
	assert_ptr_equal(found, c);
	p.pkey++;
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_PKEY);
	p.tag++;
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_TAG);
	assert_memory_equal(&before, c, sizeof(before));
	c->state = SAN_CONN_OPEN;
	p = k.p;
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_NONE);
}

UNIT_CASE(san_pdl_rx_check__closing_lets_acks_flow)
{
	struct san_pdl_conn *found;
	struct san_wire_pkt p = k.p;

	pair.c[1]->state = SAN_CONN_CLOSING;
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_STATE);
	p.op = SAN_OP_PROBE;
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_NONE);
	assert_true(pair_owed(&pair, 1, &k));
	p.op = SAN_OP_NACK;
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_NONE);
	pair.c[1]->state = SAN_CONN_OPEN;
}

/*
 * RT-21: a CNP has only a BTH, so it can be forged with address, CID and partition. It counts if
 * the algorithm uses it, while packets are in flight, and once for each mark that an ACK, which has
 * a tag, reports.
 */
UNIT_CASE_IN(san_pdl_rx_check__cnp, setup_dcqcn)
{
	struct san_wire_pkt p = {
		.op = SAN_OP_CNP,
		.dcid = k.p.dcid,
		.src = k.p.src,
		.pkey = k.p.pkey,
	};
	struct san_pdl_cc *cc = &pair.c[1]->cc;
	struct san_pdl_conn *found;
	struct pair_pkt out;
	uint32_t window = cc->window;

	/* nothing is in flight */
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_NONE);
	assert_int_equal(cc->window, window);
	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &out));
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_NONE);
	assert_true(cc->window < window);
	window = cc->window;
	for (int i = 0; i < 100; i++) {
		pair.now += SAN_NS_PER_MS;
		san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found);
		assert_int_equal(cc->window, window);
	}
	assert_int_equal(pair.pdl[1]->stats.nb_cnp_rx, 102);
	assert_int_equal(pair.pdl[1]->stats.nb_cc_cuts, 1);
	assert_int_equal(pair.pdl[1]->drops[SAN_DROP_ACK_BEYOND], 0);
}

/* An algorithm based on delay does not use packets that can be forged. */
UNIT_CASE(san_pdl_rx_check__cnp_unwanted)
{
	struct san_wire_pkt p = {
		.op = SAN_OP_CNP,
		.dcid = k.p.dcid,
		.src = k.p.src,
		.pkey = k.p.pkey,
	};
	struct san_pdl_cc before = pair.c[1]->cc;
	struct san_pdl_conn *found;
	struct pair_pkt out;

	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &out));
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &p, NULL, pair.now, &found), SAN_DROP_NONE);
	assert_memory_equal(&before, &pair.c[1]->cc, sizeof(before));
	assert_int_equal(pair.pdl[1]->stats.nb_cnp_rx, 1);
}

/* RT-5 through both steps, and a refused packet can be resent (RT-33). */
UNIT_CASE(san_pdl_rx_commit__verdicts)
{
	struct san_pdl_rxw *w = &pair.c[1]->rx[SAN_WIN_DATA];
	uint32_t psn = k.p.psn;

	assert_int_equal(arrive(&k, SAN_RX_REFUSED), SAN_DROP_NONE);
	assert_int_equal(arrive(&k, SAN_RX_RECEIVED), SAN_DROP_NONE);
	assert_true(w->base == psn && w->high == psn + 1);
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_DUPLICATE);
	assert_true(w->base == psn); /* RT-18: received is not acknowledged */
	san_pdl_rx_revoke(pair.pdl[1], pair.c[1], psn);
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
	assert_true(w->base == psn + 1);
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_OLD);
	k.p.psn = w->base + w->size;
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_BEYOND);
	assert_true(w->base == psn + 1 && w->high == psn + 1);
}

/* RT-18: LAST waits for the ULP; then, if nothing else is held, the ACK is sent at once. */
UNIT_CASE(san_pdl_rx_ack__late)
{
	struct pair_pkt second;

	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &second));
	pair_recv(&pair, 1, &k, SAN_RX_RECEIVED);
	pair_recv(&pair, 1, &second, SAN_RX_RECEIVED);
	pair_pass(&pair, SAN_NS_PER_MS);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.ack.data_rcvd[0] == 3 && ack.ack.data_acked[0] == 0);
	san_pdl_rx_ack(pair.pdl[1], pair.c[1], second.p.psn, pair.now);
	/* the first one is still held: coalesced */
	assert_false(pair_owed(&pair, 1, &ack));
	san_pdl_rx_ack(pair.pdl[1], pair.c[1], second.p.psn, pair.now); /* repeated: no effect */
	san_pdl_rx_ack(pair.pdl[1], pair.c[1], k.p.psn, pair.now);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.p.data_ebsn == second.p.psn + 1);
}

/* PCB-5: the cumulative completed RSN only moves forward. */
UNIT_CASE(san_pdl_rx_check__message_ack)
{
	static const uint32_t sent[] = {0xfffffffe, 0xffffffff, 0xfffffffe, 1, 0};
	static const uint32_t want[] = {0xfffffffe, 0xffffffff, 0xffffffff, 1, 1};

	pair.c[1]->cmpl_in = sent[0]; /* as when it was opened */
	for (size_t i = 0; i < RTE_DIM(sent); i++) {
		k.p.cmpl_rsn = sent[i];
		pair_recv(&pair, 1, &k, SAN_RX_ACKED);
		assert_true(pair.c[1]->cmpl_in == want[i]);
	}
}

/* Marked packets are counted for the sender, and answered by a CNP, but not each of them. */
UNIT_CASE(san_pdl_rx_check__ce)
{
	struct pair_pkt out;
	uint32_t nb_cnp = 0;

	k.p.ce = true;
	for (int i = 0; i < 10; i++) {
		pair_recv(&pair, 1, &k, SAN_RX_ACKED);
		while (pair_owed(&pair, 1, &out))
			nb_cnp += out.p.op == SAN_OP_CNP;
		pair.now += 1000;
	}
	assert_int_equal(nb_cnp, 1);
	assert_int_equal(out.ack.ecn_count, 10);
	pair.now += 60 * SAN_NS_PER_US;
	pair_recv(&pair, 1, &k, SAN_RX_ACKED);
	assert_owes(1, &out, SAN_OP_CNP);
}

/* RT-5: for bits beyond its own a connection takes memory, and returns it. */
UNIT_CASE(san_pdl_rx_check__wide_while_needed)
{
	struct san_pdl_rxw *w = &pair.c[1]->rx[SAN_WIN_DATA];
	struct pair_pkt far = k;

	far.p.psn += SAN_BITMAP_NARROW;
	pair.pdl[1]->free_rxwords.nb = 0; /* other connections use it all */
	assert_int_equal(arrive(&far, SAN_RX_ACKED), SAN_DROP_BEYOND);
	assert_int_equal(pair.c[1]->ack.oow, SAN_OOW_DATA);
	assert_int_equal(pair.pdl[1]->stats.nb_windows_denied, 1);
	pair.pdl[1]->free_rxwords.nb = SAN_WIN_MAX * pair.pdl[1]->conf.max_wide;
	assert_int_equal(arrive(&far, SAN_RX_REFUSED), SAN_DROP_NONE);
	assert_false(san_bitmap_is_wide(&w->rcvd)); /* it was not taken */
	assert_int_equal(arrive(&far, SAN_RX_ACKED), SAN_DROP_NONE);
	assert_true(san_bitmap_is_wide(&w->rcvd));
	assert_int_equal(arrive(&far, SAN_RX_ACKED), SAN_DROP_DUPLICATE);
	san_pdl_check(pair.pdl[1]);
	for (int i = 0; i < SAN_BITMAP_NARROW; i++, k.p.psn++)
		assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
	assert_int_equal(w->base, far.p.psn + 1);
	assert_false(san_bitmap_is_wide(&w->rcvd));
}

/* RT-35: a connection that never fills its gap loses that memory, and ends, if others need it. */
UNIT_CASE_IN(san_pdl_rx_check__words_of_a_liar, setup_long)
{
	struct san_pdl_conn *c = pair.c[1];
	struct pair_pkt far = k, req;

	far.p.psn += SAN_BITMAP_NARROW;
	assert_int_equal(arrive(&far, SAN_RX_ACKED), SAN_DROP_NONE);
	assert_true(pair_send(&pair, 0, SAN_OP_PULL_REQ, 2, &req));
	req.p.psn += SAN_BITMAP_NARROW;
	pair.pdl[1]->free_rxwords.nb = 0; /* other connections use it all */
	assert_int_equal(arrive(&req, SAN_RX_ACKED), SAN_DROP_BEYOND);
	pair.now += SAN_HOLD_MAX_NS;
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE); /* progress */
	assert_int_equal(arrive(&req, SAN_RX_ACKED), SAN_DROP_BEYOND);
	pair.now += SAN_HOLD_MAX_NS - 1;
	assert_int_equal(arrive(&req, SAN_RX_ACKED), SAN_DROP_BEYOND);
	assert_false(c->failed);
	pair.now++;
	assert_int_equal(arrive(&req, SAN_RX_ACKED), SAN_DROP_BEYOND);
	assert_true(c->failed);
	assert_true(san_wheel_timer_is_armed(&c->timer) && c->timer.deadline_ns <= pair.now);
	pair.pdl[1]->free_rxwords.nb = SAN_WIN_MAX * pair.pdl[1]->conf.max_wide - 1;
	san_pdl_check(pair.pdl[1]);
}

/* ... and again, if packets settled before that emptied the window. */
UNIT_CASE(san_pdl_rx_commit__wide_again)
{
	struct san_pdl_rxw *w = &pair.c[1]->rx[SAN_WIN_DATA];
	struct san_wire_pkt far = k.p;
	struct san_pdl_conn *c;

	assert_int_equal(arrive(&k, SAN_RX_RECEIVED), SAN_DROP_NONE);
	far.psn += SAN_BITMAP_NARROW + 7;
	assert_int_equal(san_pdl_rx_check(pair.pdl[1], &far, NULL, pair.now, &c), SAN_DROP_NONE);
	san_pdl_rx_ack(pair.pdl[1], c, k.p.psn, pair.now);
	assert_false(san_bitmap_is_wide(&w->rcvd));
	san_pdl_rx_commit(pair.pdl[1], c, &far, SAN_RX_ACKED, pair.now);
	san_pdl_check(pair.pdl[1]);
	assert_int_equal(w->high, far.psn + 1);
	assert_true(san_bitmap_test(&w->acked, far.psn));
}

/* RT-26: without any pool a window of one request and two data packets makes progress. */
UNIT_CASE_IN(san_pdl_tx_room__without_a_pool, setup_narrow)
{
	for (int i = 0; i < 20; i++) {
		assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
		assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
		assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k)); /* lost */
		assert_false(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
		assert_true(pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k));
		assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
		assert_false(pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k));
		san_pdl_check(pair.pdl[0]);
		pair_pass(&pair, 100 * SAN_NS_PER_US);
		while (pair_report(&pair, 1))
			pair.pdl[0]->nb_acked = 0;
		while (pair.c[0]->tx[SAN_WIN_DATA].nb_lost == 0)
			pair_pass(&pair, 100 * SAN_NS_PER_US);
		assert_true(pair_again(&pair, 0, &k));
		assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
		while (pair_report(&pair, 1))
			pair.pdl[0]->nb_acked = 0;
		assert_null(pair.c[0]->txb);
	}
	assert_true(pair.pdl[0]->stats.nb_windows_denied >= 20);
}
