/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

static struct san_pdl *pdl;
static struct san_pdl_conn *c;

static void
setup(void)
{
	struct san_pdl_conf conf = pair_conf();

	conf.cc = SAN_CC_FIXED;
	pair_open(&pair, &conf, 8, 32);
	pdl = pair.pdl[0];
	c = pair.c[0];
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

/* RT-2: two windows, each with its own room. */
UNIT_CASE(san_pdl_tx_room__per_window)
{
	struct san_pdl_room room;

	san_pdl_tx_room(pdl, c, pair.now, &room);
	assert_int_equal(room.nb_req, 8);
	assert_int_equal(room.nb_data, 32);
	assert_int_equal(room.nb_credit, 32); /* congestion window */
	san_pdl_sched_end(pdl, c, false);
	assert_null(c->txb); /* nothing was sent, so it was returned */
	for (int i = 0; i < 8; i++)
		assert_true(pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k));
	assert_false(pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k));
	assert_true(pair_send(&pair, 0, SAN_OP_PULL_DATA, 1, &k));
	san_pdl_tx_room(pdl, c, pair.now, &room);
	assert_int_equal(room.nb_req, 0);
	assert_int_equal(room.nb_data, 31);
	assert_int_equal(room.nb_credit, 23);
	san_pdl_sched_end(pdl, c, false);
}

UNIT_CASE(san_pdl_tx_room__none_unless_open)
{
	struct san_pdl_room room;

	c->state = SAN_CONN_CLOSING;
	san_pdl_tx_room(pdl, c, pair.now, &room);
	assert_int_equal(room.nb_req + room.nb_data + room.nb_credit, 0);
	c->state = SAN_CONN_OPEN;
	c->failed = true;
	san_pdl_tx_room(pdl, c, pair.now, &room);
	assert_int_equal(room.nb_req + room.nb_data + room.nb_credit, 0);
	assert_null(c->txb);
}

/* RT-3, RT-17: ascending PSNs per window, across 2^32; the entry is stored as given. */
UNIT_CASE(san_pdl_tx_assign__ascending)
{
	struct san_pdl_entry e = {.op = SAN_OP_PUSH_SLCTD_DATA,
				  .rsn = 3,
				  .offset = 4,
				  .aux = 5,
				  .len = 6,
				  .flags = SAN_F_LAST,
				  .status = 7};
	struct san_pdl_entry *kept;
	struct san_pdl_room room;

	san_pdl_tx_room(pdl, c, pair.now, &room);
	for (uint32_t i = 0; i < 20; i++) {
		san_pdl_tx_assign(pdl, c, &e, pair.now);
		assert_true(e.psn == 0xfffffff8 + i);
	}
	san_pdl_sched_end(pdl, c, false);
	pair_pass(&pair, 2 * pdl->conf.rto_init_ns);
	kept = san_pdl_tx_again(pdl, c, pair.now);
	assert_non_null(kept);
	assert_true(kept->psn == 0xfffffff8);
	assert_true(kept->rsn == 3 && kept->offset == 4 && kept->aux == 5 && kept->len == 6);
	assert_true(kept->flags == SAN_F_LAST && kept->status == 7);
	assert_int_equal(kept->op, SAN_OP_PUSH_SLCTD_DATA);
}

/* RULE-7: grants and RESYNC need no credit; other packets wait, one is always allowed. */
UNIT_CASE(san_pdl_tx_again__grants_pass_the_blocked)
{
	struct pair_pkt d;
	uint32_t grant;

	pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &d);
	pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &d);
	pair_send(&pair, 0, SAN_OP_PUSH_GRNT, 2, &k);
	grant = k.p.psn;
	pair_lose(&pair);
	assert_int_equal(c->tx[SAN_WIN_DATA].nb_lost, 3);
	assert_int_equal(c->tx[SAN_WIN_DATA].nb_lost_free, 1);
	c->pcb.first_win = 2; /* virtual window 1 */
	assert_resent(0xfffffff8);
	assert_true(pair_again(&pair, 0, &k));
	assert_true(k.p.psn == grant && k.p.op == SAN_OP_PUSH_GRNT);
	assert_false(pair_again(&pair, 0, &k));
	assert_int_equal(c->pcb.inflight, 1);
	assert_int_equal(c->tx[SAN_WIN_DATA].nb_lost, 1);
}

/* Many losses and a reduced window: still one packet at a time is sent. */
UNIT_CASE(san_pdl_tx_again__progress_under_a_tiny_window)
{
	int n = 0;

	for (int i = 0; i < 16; i++)
		pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k);
	pair_pass(&pair, 2 * pdl->conf.rto_init_ns);
	c->pcb.first_win = 2;
	while (san_pdl_has_outstanding(c)) {
		assert_true(pair_again(&pair, 0, &k));
		pair_recv(&pair, 1, &k, SAN_RX_ACKED);
		san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
		pair.c[1]->rx_first_win = 2;
		assert_true(pair_report(&pair, 1));
		pdl->nb_acked = 0;
		assert_true(++n <= 16);
	}
}

UNIT_CASE(san_pdl_tx_header__fields)
{
	struct san_wire_pkt p;

	memset(&p, 0, sizeof(p));
	p.op = SAN_OP_NACK;
	p.psn = 4711;
	p.round = 3;
	c->cmpl_out = 99;
	pair.now = 0x1234567890;
	san_pdl_tx_header(pdl, c, &p, pair.now);
	assert_true(p.dcid == pair.c[1]->cid && p.tag == pair.c[1]->tag); /* RT-1, RT-24 */
	assert_int_equal(p.pkey, c->pkey);
	assert_true(p.req_ebsn == c->rx[SAN_WIN_REQ].base);
	assert_true(p.data_ebsn == c->rx[SAN_WIN_DATA].base);
	assert_int_equal(p.cmpl_rsn, 99);
	assert_int_equal(p.round, 3); /* set by tl, like the rest */
	assert_true(p.tx_time == 0x34567890);
	assert_false(p.ackreq); /* no window, so nothing to acknowledge */
	assert_int_equal(p.psn, 4711);
}

/* RULE-11: every packet while few are in flight, else a fraction, the last always. */
UNIT_CASE(san_pdl_tx_header__ackreq)
{
	uint32_t asked = 0, last = 0;

	for (int i = 0; i < 32; i++) {
		assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
		asked += k.p.ackreq;
		if (i < 2)
			assert_true(k.p.ackreq);
		last = k.p.ackreq;
	}
	assert_in_range(asked, 4, 8);
	assert_true(last);
	assert_false(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
}

/* Within a visit, the packet that reaches the limit asks; the first one tells the limit. */
UNIT_CASE(san_pdl_tx_header_next__limit)
{
	struct san_wire_pkt p = {.op = SAN_OP_PUSH_GRNT};
	uint32_t limit;

	while (pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k))
		;
	limit = san_pdl_tx_header(pdl, c, &p, pair.now);
	assert_int_equal(limit, c->pcb.inflight);
	p.op = SAN_OP_PUSH_UNSLCTD_DATA;
	san_pdl_tx_header_next(pdl, c, &p, UINT32_MAX);
	assert_false(p.ackreq);
	san_pdl_tx_header_next(pdl, c, &p, limit);
	assert_true(p.ackreq); /* it fills the window */
}
