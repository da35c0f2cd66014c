/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "unit.h"
#include "pdl_pair.h"

#define DATA SAN_OP_PUSH_UNSLCTD_DATA
#define RTO  (5 * SAN_NS_PER_MS)

static struct pair pair;
static struct pair_pkt k, ack;
static struct san_pdl_conn *c;
static struct san_pdl_rxw *rx; /* data window of side 1 */

static int
setup_mode(enum san_pdl_recovery recovery)
{
	struct san_pdl_conf conf = pair_conf();

	conf.recovery = (uint8_t)recovery;
	conf.max_retries = 5;
	conf.rto_init_ns = conf.rto_min_ns = conf.rto_max_ns = RTO;
	conf.cc = &san_pdl_cc_fixed;
	pair_open(&pair, &conf, 16, 64);
	c = pair.c[0];
	rx = &pair.c[1]->rx[SAN_WIN_DATA];
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	return setup_mode(SAN_RECOVER_GO_BACK_N);
}

static int
setup_default(void **state)
{
	struct san_pdl_conf conf;

	(void)state;
	san_pdl_conf_default(&conf);
	return setup_mode((enum san_pdl_recovery)conf.recovery);
}

static int
teardown(void **state)
{
	(void)state;
	pair_close(&pair);
	return 0;
}

static void
send_n(struct pair_pkt *d, int n)
{
	int i;

	for (i = 0; i < n; i++)
		assert_true(pair_send(&pair, 0, DATA, 1, &d[i]));
}

static enum san_drop
arrive(const struct pair_pkt *p)
{
	return pair_recv(&pair, 1, p, SAN_RX_ACKED);
}

/* What side 1 has to tell reaches side 0. */
static void
report(void)
{
	san_pdl_ack_now(pair.pdl[1], pair.c[1]);
	assert_true(pair_report(&pair, 1));
	pair.pdl[0]->nb_acked = 0;
}

/* Side 0 measures a round trip. */
static void
exchange(void)
{
	send_n(&k, 1);
	pair_pass(&pair, 50 * SAN_NS_PER_US);
	assert_int_equal(arrive(&k), SAN_DROP_NONE);
	pair_pass(&pair, 50 * SAN_NS_PER_US);
	report();
	assert_true(c->rtt.srtt_ns != 0);
}

/* These n, and no other, go again, in this order. */
static void
assert_again(const struct pair_pkt *d, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		assert_true(pair_again(&pair, 0, &k));
		assert_true(k.p.psn == d[i].p.psn);
	}
	assert_false(pair_again(&pair, 0, &k));
}

/* ---- receiver ---- */

static void
san_pdl_gbn_place__only_the_next(void **state)
{
	struct pair_pkt d[3], back;
	uint32_t high = rx->high;

	(void)state;
	assert_true(pair_send(&pair, 1, DATA, 1, &back));
	send_n(d, 1);
	assert_int_equal(pair_recv(&pair, 0, &back, SAN_RX_ACKED), SAN_DROP_NONE);
	send_n(&d[1], 2);
	d[1].p.ackreq = false;
	assert_int_equal(arrive(&d[1]), SAN_DROP_ORDER);
	assert_true(rx->high == high && !san_bitmap_test(&rx->rcvd, d[1].p.psn));
	assert_int_equal(pair.pdl[1]->nb_acked, 1); /* its ACK part was used */
	assert_false(pair_owed(&pair, 1, &ack));
	d[2].p.ackreq = true;
	assert_int_equal(arrive(&d[2]), SAN_DROP_ORDER);
	assert_true(pair_owed(&pair, 1, &ack)); /* as it asked for */
	assert_true(ack.p.data_ebsn == d[0].p.psn && ack.ack.nb_data == 0);
	assert_int_equal(arrive(&d[0]), SAN_DROP_NONE);
	assert_int_equal(arrive(&d[2]), SAN_DROP_ORDER);
	assert_int_equal(arrive(&d[1]), SAN_DROP_NONE);
	assert_int_equal(arrive(&d[2]), SAN_DROP_NONE);
	assert_int_equal(arrive(&d[1]), SAN_DROP_OLD);
	d[2].p.psn = rx->base + rx->size;
	assert_int_equal(arrive(&d[2]), SAN_DROP_BEYOND);
}

static void
san_pdl_gbn_place__each_window_by_itself(void **state)
{
	struct pair_pkt d[2], req;

	(void)state;
	send_n(d, 2);
	assert_true(pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &req));
	assert_int_equal(arrive(&d[1]), SAN_DROP_ORDER);
	assert_int_equal(arrive(&req), SAN_DROP_NONE);
}

/* RNR, red zone: the bit stays clear, and it is its turn until it is taken (RT-33). */
static void
san_pdl_gbn_place__refused_is_still_next(void **state)
{
	struct pair_pkt d[2];

	(void)state;
	send_n(d, 2);
	assert_int_equal(pair_recv(&pair, 1, &d[0], SAN_RX_REFUSED), SAN_DROP_NONE);
	assert_int_equal(arrive(&d[1]), SAN_DROP_ORDER);
	assert_int_equal(pair_recv(&pair, 1, &d[0], SAN_RX_REFUSED), SAN_DROP_NONE);
	assert_int_equal(arrive(&d[0]), SAN_DROP_NONE);
	assert_int_equal(arrive(&d[1]), SAN_DROP_NONE);
}

/* Of what is held, one in the middle is dropped after all: it is the next again. */
static void
san_pdl_gbn_place__revoked_is_next(void **state)
{
	struct pair_pkt d[4];
	int i;

	(void)state;
	send_n(d, 4);
	for (i = 0; i < 3; i++)
		assert_int_equal(pair_recv(&pair, 1, &d[i], SAN_RX_RECEIVED), SAN_DROP_NONE);
	san_pdl_rx_revoke(pair.pdl[1], pair.c[1], d[1].p.psn);
	assert_int_equal(arrive(&d[3]), SAN_DROP_ORDER);
	assert_int_equal(arrive(&d[2]), SAN_DROP_DUPLICATE);
	assert_int_equal(pair_recv(&pair, 1, &d[1], SAN_RX_RECEIVED), SAN_DROP_NONE);
	assert_int_equal(arrive(&d[3]), SAN_DROP_NONE);
}

/* ---- sender: one timeout ---- */

/* RT-7: all from the oldest on, in order, under their PSNs; it counts once. */
static void
san_pdl_gbn_line_up__all_from_the_oldest(void **state)
{
	struct pair_pkt d[6];
	uint64_t start;
	int i;

	(void)state;
	exchange();
	start = pair.now;
	for (i = 0; i < 6; i++) {
		send_n(&d[i], 1);
		pair_pass(&pair, 100 * SAN_NS_PER_US);
	}
	assert_int_equal(arrive(&d[0]), SAN_DROP_NONE);
	report();
	for (i = 2; i < 6; i++)
		assert_int_equal(arrive(&d[i]), SAN_DROP_ORDER);
	report();
	while (c->nb_rto == 0)
		pair_pass(&pair, 1000);
	assert_in_range(pair.now - start - 100 * SAN_NS_PER_US, RTO, RTO + RTO / 16 + 10000);
	assert_int_equal(c->pcb.inflight, 0); /* out of PCB-2's sum */
	/* nothing new before them */
	assert_false(pair_send(&pair, 0, DATA, 1, &k));
	assert_again(&d[1], 5);
	assert_int_equal(c->pcb.inflight, 5);
	assert_true(pair_send(&pair, 0, DATA, 1, &k));
	assert_int_equal(c->nb_rtx, 5);
	assert_int_equal(c->nb_rto, 1);
	assert_int_equal(pair.pdl[0]->stats.nb_rto, 1);
	for (i = 1; i < 6; i++) {
		assert_int_equal(san_pdl_txw_entry(c->txb, SAN_WIN_DATA, d[i].p.psn)->retries,
				 i == 1);
		assert_int_equal(arrive(&d[i]), SAN_DROP_NONE);
	}
	assert_int_equal(arrive(&k), SAN_DROP_NONE);
	report();
	pair_pass(&pair, SAN_NS_PER_S);
	assert_int_equal(c->nb_rto, 1);
	assert_int_equal(c->nb_rtx, 5);
}

/* A later one that is due earlier, because the oldest went again meanwhile, waits for it. */
static void
san_pdl_gbn_line_up__later_ones_have_no_timeout(void **state)
{
	struct pair_pkt d[2];
	uint64_t start = pair.now;

	(void)state;
	send_n(d, 1);
	assert_int_equal(pair_recv(&pair, 1, &d[0], SAN_RX_RECEIVED), SAN_DROP_NONE);
	report();
	send_n(&d[1], 1);
	pair_pass(&pair, 3 * SAN_NS_PER_MS);
	san_pdl_rx_revoke(pair.pdl[1], pair.c[1], d[0].p.psn);
	report(); /* the receiver dropped it, and says so: no loss */
	assert_again(d, 1);
	while (pair.now < start + 3 * SAN_NS_PER_MS + RTO) {
		san_pdl_check(pair.pdl[0]);
		assert_int_equal(c->nb_rto, 0);
		assert_false(pair_again(&pair, 0, &k));
		pair_pass(&pair, 10000);
	}
	pair_pass(&pair, RTO / 16 + 10000);
	assert_int_equal(c->nb_rto, 1);
	assert_again(d, 2);
}

/* Every time the same timeout; the oldest one's retries decide (RT-7). */
static void
san_pdl_gbn_line_up__fixed_timeout_then_fail(void **state)
{
	struct pair_pkt d[3];
	uint64_t sent = pair.now;
	int i;

	(void)state;
	send_n(d, 3);
	for (i = 0; i <= 5; i++) {
		while (c->nb_rto == (uint32_t)i && !c->failed)
			pair_pass(&pair, 1000);
		assert_in_range(pair.now - sent, RTO, RTO + RTO / 16 + 10000);
		sent = pair.now;
		if (i < 5)
			assert_again(d, 3);
	}
	assert_true(c->failed);
	assert_int_equal(c->nb_rto, 5);
	assert_int_equal(pair.pdl[0]->stats.nb_failed, 1);
}

/* Held: probed for as always, while what follows goes again without it. */
static void
san_pdl_gbn_line_up__passes_over_held(void **state)
{
	struct pair_pkt d[3];

	(void)state;
	send_n(d, 3);
	assert_int_equal(pair_recv(&pair, 1, &d[0], SAN_RX_RECEIVED), SAN_DROP_NONE);
	report();
	pair_pass(&pair, RTO + RTO / 8);
	assert_again(&d[1], 2);
	assert_int_equal(c->nb_rto, 1);
	assert_true(pair_owed(&pair, 0, &k));
	assert_int_equal(k.p.op, SAN_OP_PROBE);
}

/* ---- sender: nothing early ---- */

/* The peer is selective and reports a hole; silence; neither brings anything before the timeout. */
static void
san_pdl_rtx_holes__not_when_going_back(void **state)
{
	struct pair_pkt d[8];
	int i;

	(void)state;
	pair.pdl[1]->conf.recovery = SAN_RECOVER_SELECTIVE;
	exchange();
	send_n(d, 8);
	for (i = 1; i < 7; i++)
		assert_int_equal(pair_recv(&pair, 1, &d[i], SAN_RX_RECEIVED), SAN_DROP_NONE);
	for (i = 0; i < 40; i++) {
		pair_pass(&pair, 100 * SAN_NS_PER_US);
		report();
		assert_false(pair_again(&pair, 0, &k));
	}
	assert_int_equal(pair.pdl[0]->stats.nb_early + pair.pdl[0]->stats.nb_tlp, 0);
	pair_pass(&pair, RTO);
	assert_true(pair_again(&pair, 0, &k) && k.p.psn == d[0].p.psn);
	assert_true(pair_again(&pair, 0, &k) && k.p.psn == d[7].p.psn);
	assert_int_equal(c->nb_rto, 1);
	assert_int_equal(pair.pdl[0]->stats.nb_early + pair.pdl[0]->stats.nb_tlp, 0);
}

/* ---- sender: refused ---- */

/* NACK: what follows was dropped and waits, too; no retry, and the other window goes on. */
static void
san_pdl_gbn_defer_rest__all_after_the_delay(void **state)
{
	struct pair_pkt d[4];
	uint64_t start = pair.now;
	int i;

	(void)state;
	send_n(d, 4);
	san_pdl_tx_defer(pair.pdl[0], c, SAN_WIN_DATA, d[1].p.psn, 2 * SAN_NS_PER_MS, pair.now);
	assert_int_equal(c->pcb.inflight, 1); /* d[0] */
	san_pdl_check(pair.pdl[0]);
	assert_int_equal(arrive(&d[0]), SAN_DROP_NONE);
	report();
	assert_false(pair_send(&pair, 0, DATA, 1, &k)); /* it would be dropped, too */
	assert_true(pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k));
	assert_int_equal(arrive(&k), SAN_DROP_NONE);
	report();
	while (!san_pdl_has_lost(c))
		pair_pass(&pair, 10000);
	assert_in_range(pair.now - start, 2 * SAN_NS_PER_MS, 2 * SAN_NS_PER_MS + 20000);
	assert_again(&d[1], 3);
	assert_int_equal(c->nb_rto, 0);
	for (i = 1; i < 4; i++)
		assert_int_equal(arrive(&d[i]), SAN_DROP_NONE);
	report();
	assert_false(san_pdl_has_outstanding(c));
	assert_true(pair_send(&pair, 0, DATA, 1, &k));
}

/* RT-23: withdrawn PSNs go at once as RESYNC and are taken in order. */
static void
san_pdl_tx_withdraw__in_order_when_going_back(void **state)
{
	struct pair_pkt d[3];
	int i;

	(void)state;
	send_n(d, 3);
	assert_int_equal(pair_recv(&pair, 1, &d[0], SAN_RX_REFUSED), SAN_DROP_NONE);
	assert_int_equal(arrive(&d[1]), SAN_DROP_ORDER);
	assert_int_equal(san_pdl_tx_withdraw(pair.pdl[0], c, 1, true, SAN_RESYNC_FILL), 3);
	for (i = 0; i < 3; i++) {
		assert_true(pair_again(&pair, 0, &k));
		assert_true(k.p.op == SAN_OP_RESYNC && k.p.psn == d[i].p.psn);
		assert_int_equal(arrive(&k), SAN_DROP_NONE);
	}
	report();
	assert_false(san_pdl_has_outstanding(c));
	assert_int_equal(c->nb_rto, 0);
}

/* ---- sender: in order, whoever needs credit ---- */

/* A push and a grant are lost, and there is room for one packet only. */
static void
lose_push_and_grant(struct pair_pkt *push, struct pair_pkt *grant)
{
	c->pcb.first_win = 2;
	send_n(push, 1);
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_GRNT, 1, grant));
	pair_pass(&pair, RTO + RTO / 8);
	san_pdl_conn_arm(pair.pdl[0], c);
	assert_int_equal(c->tx[SAN_WIN_DATA].nb_lost, 2);
	/* requests take the room */
	assert_true(pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k));
}

static void
san_pdl_tx_again__no_overtaking(void **state)
{
	struct pair_pkt d[2];

	(void)state;
	lose_push_and_grant(&d[0], &d[1]);
	assert_false(pair_again(&pair, 0, &k));
	assert_false(pair_send(&pair, 0, SAN_OP_PUSH_GRNT, 1, &k)); /* nor anything new */
	assert_int_equal(pair_recv(&pair, 1, &k, SAN_RX_ACKED), SAN_DROP_NONE);
	report();
	assert_again(d, 2);
}

/* ---- the default does nothing of this ---- */

static void
default__takes_out_of_order(void **state)
{
	struct pair_pkt d[6];
	int i;

	(void)state;
	assert_int_equal(pair.pdl[0]->conf.recovery, SAN_RECOVER_SELECTIVE);
	exchange();
	send_n(d, 6);
	pair_pass(&pair, 200 * SAN_NS_PER_US);
	for (i = 1; i < 6; i++)
		assert_int_equal(arrive(&d[i]), SAN_DROP_NONE);
	report();
	assert_int_equal(pair.pdl[0]->stats.nb_early + pair.pdl[0]->stats.nb_tlp, 1);
	assert_again(d, 1);
	assert_int_equal(c->nb_rto, 0);
}

static void
default__grants_overtake(void **state)
{
	struct pair_pkt d[2];

	(void)state;
	lose_push_and_grant(&d[0], &d[1]);
	assert_again(&d[1], 1);
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_GRNT, 1, &k));
}

static void
default__defers_what_was_refused(void **state)
{
	struct pair_pkt d[3];

	(void)state;
	send_n(d, 3);
	san_pdl_tx_defer(pair.pdl[0], c, SAN_WIN_DATA, d[1].p.psn, SAN_NS_PER_MS, pair.now);
	assert_int_equal(c->pcb.inflight, 2);
	assert_true(pair_send(&pair, 0, DATA, 1, &k));
	pair_pass(&pair, 2 * SAN_NS_PER_MS);
	assert_again(&d[1], 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define D(f) cmocka_unit_test_setup_teardown(f, setup_default, teardown)

UNIT_TEST(test_pdl_gbn)
{
	const struct CMUnitTest tests[] = {
		T(san_pdl_gbn_place__only_the_next),
		T(san_pdl_gbn_place__each_window_by_itself),
		T(san_pdl_gbn_place__refused_is_still_next),
		T(san_pdl_gbn_place__revoked_is_next),
		T(san_pdl_gbn_line_up__all_from_the_oldest),
		T(san_pdl_gbn_line_up__later_ones_have_no_timeout),
		T(san_pdl_gbn_line_up__fixed_timeout_then_fail),
		T(san_pdl_gbn_line_up__passes_over_held),
		T(san_pdl_rtx_holes__not_when_going_back),
		T(san_pdl_gbn_defer_rest__all_after_the_delay),
		T(san_pdl_tx_withdraw__in_order_when_going_back),
		T(san_pdl_tx_again__no_overtaking),
		D(default__takes_out_of_order),
		D(default__grants_overtake),
		D(default__defers_what_was_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
