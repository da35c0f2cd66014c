/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

UNIT_FIXTURE(.setup = setup_acks, .teardown = teardown);

/* ---- owed ACKs ---- */

/* RT-8: without reverse traffic a packet is reported within the coalescing time. */
UNIT_CASE(san_pdl_ack_coalesce__within_its_time)
{
	uint64_t delay = pair.pdl[1]->conf.ack_delay_ns;

	k = data();
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
	assert_false(pair_owed(&pair, 1, &ack));
	pair_pass(&pair, delay / 2);
	k = data();
	arrive(&k, SAN_RX_ACKED);
	assert_false(pair_owed(&pair, 1, &ack)); /* the second packet does not delay it */
	pair_pass(&pair, delay / 2 + (1 << SAN_WHEEL_SHIFT));
	assert_owes(1, &ack, SAN_OP_ACK);
	assert_true(ack.p.data_ebsn == k.p.psn + 1);
	pair_pass(&pair, 10 * delay);
	assert_false(pair_owed(&pair, 1, &ack)); /* once is enough */
}

UNIT_CASE(san_pdl_ack_coalesce__every_so_many)
{
	for (uint16_t i = 0; i < pair.pdl[1]->conf.ack_every; i++) {
		assert_false(pair_owed(&pair, 1, &ack));
		k = data();
		arrive(&k, SAN_RX_ACKED);
	}
	assert_true(pair_owed(&pair, 1, &ack));
	assert_false(pair_owed(&pair, 1, &ack));
}

/* RULE-11: at once on request, but one per burst, however many packets request it. */
UNIT_CASE(san_pdl_ack_next__one_per_burst)
{
	for (int i = 0; i < 5; i++) {
		k = data();
		k.p.ackreq = true;
		arrive(&k, SAN_RX_ACKED);
	}
	assert_true(pair_owed(&pair, 1, &ack));
	assert_false(pair_owed(&pair, 1, &ack));
	assert_int_equal(pair.pdl[1]->stats.nb_acks_tx, 1);
}

/* RT-5: below the base → an ACK of the current base, at once; RT-8: so a lost ACK is repaired. */
UNIT_CASE(san_pdl_ack_next__duplicate_and_old_at_once)
{
	struct pair_pkt second;

	k = data();
	second = data();
	arrive(&k, SAN_RX_ACKED);
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_OLD);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.p.data_ebsn == k.p.psn + 1);
	arrive(&second, SAN_RX_RECEIVED);
	assert_int_equal(arrive(&second, SAN_RX_RECEIVED), SAN_DROP_DUPLICATE);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.p.data_ebsn == k.p.psn + 1);
	assert_int_equal(ack.ack.nb_data, 1);
	assert_true(ack.ack.data_rcvd[0] == 1 && ack.ack.data_acked[0] == 0);
	assert_int_equal(pair.c[1]->nb_dup, 2);
}

UNIT_CASE(san_pdl_ack_next__hole_at_once)
{
	struct pair_pkt late, next;

	late = data();
	k = data();
	next = data();
	arrive(&k, SAN_RX_ACKED); /* leaves a gap */
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.ack.data_acked[0] == 2 && ack.ack.data_rcvd[0] == 2);
	arrive(&next, SAN_RX_ACKED); /* does not change the gap */
	assert_false(pair_owed(&pair, 1, &ack));
	arrive(&late, SAN_RX_ACKED); /* fills the gap */
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.p.data_ebsn == next.p.psn + 1);
	assert_int_equal(ack.ack.nb_data, 0);
}

/* RT-5: beyond the window → reported in the next ACK, once. */
UNIT_CASE(san_pdl_ack_next__overrun_is_flagged)
{
	k = data();
	k.p.psn += 64;
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_BEYOND);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_int_equal(ack.ack.oow, SAN_OOW_DATA);
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_int_equal(ack.ack.oow, 0);
	assert_int_equal(pair_recv(&pair, 0, &ack, SAN_RX_REFUSED), SAN_DROP_NONE);
}

/* RT-33: a refused packet is not reported, but AckReq is answered. */
UNIT_CASE(san_pdl_ack_next__refused_is_not_mentioned)
{
	k = data();
	arrive(&k, SAN_RX_REFUSED);
	pair_pass(&pair, SAN_NS_PER_MS);
	assert_false(pair_owed(&pair, 1, &ack));
	k.p.ackreq = true;
	arrive(&k, SAN_RX_REFUSED);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.p.data_ebsn == k.p.psn);
	assert_int_equal(ack.ack.nb_data, 0);
}

/* ---- filling ---- */

/* RT-1: the ACK carries the CID of its receiver; RT-25: echo of the newest packet. */
UNIT_CASE(san_pdl_ack_fill__fields)
{
	uint32_t t1, t2, serial;
	struct pair_pkt old = data();

	pair.now += 700;
	k = data();
	t1 = (uint32_t)pair.now;
	pair.now += 5000;
	k.p.ce = true;
	arrive(&k, SAN_RX_ACKED);
	t2 = (uint32_t)pair.now;
	pair.now += 100;
	arrive(&old, SAN_RX_RECEIVED); /* overtaken: the echo is of the newer one */
	pair_hold(&pair, 1, 333);
	pair.c[1]->rx_first_win = 77;
	assert_true(pair_owed(&pair, 1, &ack)); /* CE: a CNP first */
	assert_int_equal(ack.p.op, SAN_OP_CNP);
	assert_owes(1, &ack, SAN_OP_ACK);
	assert_true(ack.p.dcid == pair.c[0]->cid && ack.p.tag == pair.c[0]->tag);
	assert_true(ack.ack.echo_tx == t1 && ack.ack.echo_rx == t2);
	assert_true(ack.p.tx_time == (uint32_t)pair.now);
	assert_int_equal(ack.ack.ecn_count, 1);
	assert_int_equal(ack.ack.rx_level, 333);
	assert_int_equal(ack.ack.first_win, 77);
	assert_false(ack.p.ackreq);
	serial = ack.ack.serial;
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.ack.serial == serial + 1);
}

UNIT_CASE(san_pdl_ack_fill__bitmaps_of_both_windows)
{
	struct pair_pkt req[3], d[3];

	for (int i = 0; i < 3; i++) {
		pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &req[i]);
		d[i] = data();
	}
	arrive(&req[2], SAN_RX_ACKED);
	arrive(&d[1], SAN_RX_ACKED);
	arrive(&d[2], SAN_RX_RECEIVED);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.p.req_ebsn == req[0].p.psn && ack.p.data_ebsn == d[0].p.psn);
	assert_int_equal(ack.ack.nb_req, 1);
	assert_int_equal(ack.ack.nb_data, 1);
	assert_true(ack.ack.req[0] == 4);
	assert_true(ack.ack.data_acked[0] == 2 && ack.ack.data_rcvd[0] == 6);
}

UNIT_CASE(san_pdl_ack_fill__probe_then_ack)
{
	san_pdl_ack_probe_now(pair.pdl[1], pair.c[1]);
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_owes(1, &ack, SAN_OP_PROBE);
	assert_int_equal(pair.c[1]->nb_probes, 1);
	assert_owes(1, &k, SAN_OP_ACK);
	assert_false(pair_owed(&pair, 1, &k));
	/* always answered, and the answer clears the count */
	assert_int_equal(pair_recv(&pair, 0, &ack, SAN_RX_REFUSED), SAN_DROP_NONE);
	assert_owes(0, &k, SAN_OP_ACK);
	pair_recv(&pair, 1, &k, SAN_RX_REFUSED);
	assert_int_equal(pair.c[1]->nb_probes, 0);
}

/* ---- applying (RT-4, RT-6) ---- */

/* An ACK of side 1 without news; the test sets what it needs. */
static struct pair_pkt
blank_ack(uint32_t serial)
{
	struct pair_pkt a;

	memset(&a, 0, sizeof(a));
	a.p.op = SAN_OP_ACK;
	a.p.dcid = pair.c[0]->cid;
	a.p.tag = pair.c[0]->tag;
	a.p.pkey = pair.c[0]->pkey;
	a.p.src = pair.c[0]->path.dst;
	a.p.req_ebsn = pair.c[0]->tx[SAN_WIN_REQ].base;
	a.p.data_ebsn = pair.c[0]->tx[SAN_WIN_DATA].base;
	a.ack.serial = serial;
	a.ack.first_win = 100;
	return a;
}

static uint32_t
hear(const struct pair_pkt *a)
{
	uint32_t n;

	assert_int_equal(pair_recv(&pair, 0, a, SAN_RX_REFUSED), SAN_DROP_NONE);
	n = pair.pdl[0]->nb_acked;
	forget_acked();
	san_pdl_check(pair.pdl[0]);
	return n;
}

/* The example of the source: eBSN 3,203 covers request PSNs <= 2 and data PSNs <= 202. */
UNIT_CASE(san_pdl_ack_apply__base_is_exclusive_and_per_window)
{
	struct san_pdl_txw *w = pair.c[0]->tx;
	struct pair_pkt a;

	for (int i = 0; i < 4; i++) {
		pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k);
		data();
	}
	a = blank_ack(1);
	a.p.req_ebsn += 3;
	assert_int_equal(hear(&a), 3);
	assert_int_equal(san_pdl_win_tx_outstanding(&w[SAN_WIN_REQ]), 1);
	assert_int_equal(san_pdl_win_tx_outstanding(&w[SAN_WIN_DATA]), 4);
	a.ack.serial = 2;
	a.p.data_ebsn += 2;
	assert_int_equal(hear(&a), 2);
	assert_int_equal(pair.c[0]->pcb.inflight, 3);
}

/* Everything below it is acknowledged, in however many words, and nothing above it. */
UNIT_CASE(san_pdl_ack_apply__base_within_a_word)
{
	static const uint32_t steps[] = {1, 62, 65, 64, 130, 3};
	struct san_pdl_conf conf = pair_conf();
	struct pair_pkt a;
	uint32_t left = 400;

	pair_close(&pair);
	conf.ackreq_window = 0;
	conf.cc = SAN_CC_FIXED;
	conf.cc_conf.window_init = conf.cc_conf.window_max;
	pair_open(&pair, &conf, 16, 512);
	for (uint32_t i = 0; i < left; i++)
		data();
	a = blank_ack(0);
	UNIT_EACH(r, steps) {
		a.ack.serial++;
		a.p.data_ebsn += *r;
		assert_int_equal(hear(&a), *r);
		left -= *r;
		assert_int_equal(san_pdl_win_tx_outstanding(&pair.c[0]->tx[SAN_WIN_DATA]), left);
		assert_int_equal(pair.c[0]->pcb.inflight, left);
	}
}

UNIT_CASE(san_pdl_ack_apply__holes_are_released_at_once)
{
	struct pair_pkt a;
	uint32_t base;

	for (int i = 0; i < 8; i++)
		data();
	base = pair.c[0]->tx[SAN_WIN_DATA].base;
	a = blank_ack(1);
	a.ack.nb_data = 1;
	a.ack.data_acked[0] = 0xa2; /* 1, 5, 7 */
	a.ack.data_rcvd[0] = 0xa2;
	assert_int_equal(hear(&a), 3);
	assert_true(pair.c[0]->tx[SAN_WIN_DATA].base == base);
	assert_int_equal(pair.c[0]->pcb.inflight, 5);
	assert_int_equal(hear(&a), 0); /* each is reported once */
	a.ack.serial = 2;
	a.ack.data_acked[0] = 1; /* 0: the base moves over 1, which is not reported again */
	a.ack.data_rcvd[0] = 1;
	assert_int_equal(hear(&a), 1);
	assert_true(pair.c[0]->tx[SAN_WIN_DATA].base == base + 2);
}

UNIT_CASE(san_pdl_ack_apply__older_base_is_ignored)
{
	struct pair_pkt old, a;

	for (int i = 0; i < 6; i++)
		data();
	old = blank_ack(5);
	old.ack.nb_data = 1;
	old.ack.data_acked[0] = 0x10;
	a = blank_ack(4);
	a.p.data_ebsn += 2;
	assert_int_equal(hear(&a), 2);
	assert_int_equal(hear(&old), 0); /* although its serial is newer */
	assert_int_equal(pair.pdl[0]->drops[SAN_DROP_ACK_BEYOND], 0);
	assert_int_equal(pair.c[0]->pcb.inflight, 4);
}

/* RT-6: eBSN beyond NSN: dropped, counted, nothing of that window changes. */
UNIT_CASE(san_pdl_ack_apply__beyond_nsn_changes_nothing)
{
	struct san_pdl_txw before;
	struct pair_pkt a;

	data();
	data();
	pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k);
	before = pair.c[0]->tx[SAN_WIN_DATA];
	a = blank_ack(1);
	a.p.data_ebsn += 3;
	a.p.req_ebsn += 1; /* the other window is checked separately */
	a.ack.nb_data = 1;
	a.ack.data_acked[0] = 1;
	assert_int_equal(hear(&a), 1);
	assert_memory_equal(&before, &pair.c[0]->tx[SAN_WIN_DATA], sizeof(before));
	assert_int_equal(pair.pdl[0]->drops[SAN_DROP_ACK_BEYOND], 1);
	assert_int_equal(pair.c[0]->pcb.inflight, 2);
	/* bits beyond NSN are ignored, too */
	a = blank_ack(2);
	a.ack.nb_data = 1;
	a.ack.data_acked[0] = 0xfc;
	a.ack.data_rcvd[0] = 0xfc;
	assert_int_equal(hear(&a), 0);
}

/* RT-33: an invalid ACK part does not affect the packet that carries it. */
UNIT_CASE(san_pdl_ack_apply__packet_with_bad_ack_is_taken)
{
	struct pair_pkt back;

	data();
	pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &back);
	back.p.data_ebsn += 9;
	assert_int_equal(pair_recv(&pair, 0, &back, SAN_RX_ACKED), SAN_DROP_NONE);
	assert_int_equal(pair.pdl[0]->drops[SAN_DROP_ACK_BEYOND], 1);
	assert_true(pair.c[0]->rx[SAN_WIN_DATA].base == back.p.psn + 1);
	/* but not by express, which reads the ACK of similar packets only once (RT-42) */
	assert_false(san_pdl_rx_express_of(pair.c[0], &back.p));
	back.p.data_ebsn -= 9;
	assert_true(san_pdl_rx_express_of(pair.c[0], &back.p));
}

/* RT-33: the ACK part of a duplicate counts. */
UNIT_CASE(san_pdl_ack_apply__from_a_duplicate)
{
	struct pair_pkt back;

	pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &back);
	pair_recv(&pair, 0, &back, SAN_RX_ACKED);
	data();
	back.p.data_ebsn += 1;
	assert_int_equal(pair_recv(&pair, 0, &back, SAN_RX_ACKED), SAN_DROP_OLD);
	assert_int_equal(pair.pdl[0]->nb_acked, 1);
	forget_acked();
}

/* RT-18; RULE-2: received is a hint of the newest ACK, acknowledged is final. */
UNIT_CASE(san_pdl_ack_apply__hint_of_the_newest_only)
{
	const struct san_bitmap *rcvd;
	struct pair_pkt a;
	uint32_t base;

	for (int i = 0; i < 4; i++)
		data();
	base = pair.c[0]->tx[SAN_WIN_DATA].base;
	rcvd = &pair.c[0]->txb->rcvd[SAN_WIN_DATA];
	a = blank_ack(10);
	a.ack.nb_data = 1;
	a.ack.data_rcvd[0] = 6;
	assert_int_equal(hear(&a), 0); /* nothing is released */
	assert_int_equal(pair.c[0]->pcb.inflight, 2);
	assert_true(san_bitmap_test(rcvd, base + 1) && san_bitmap_test(rcvd, base + 2));
	/* of an older ACK that was overtaken, acknowledged bits count, hints do not */
	a.ack.serial = 9;
	a.ack.data_acked[0] = 8;
	a.ack.data_rcvd[0] = 8;
	assert_int_equal(hear(&a), 1);
	assert_true(san_bitmap_test(rcvd, base + 1));
	/* the newest ACK withdraws a hint: the packet is resent */
	a.ack.serial = 11;
	a.ack.data_acked[0] = 8;
	a.ack.data_rcvd[0] = 8 | 4;
	assert_int_equal(hear(&a), 0);
	assert_false(san_bitmap_test(rcvd, base + 1));
	assert_true(san_bitmap_test(rcvd, base + 2));
	assert_int_equal(pair.c[0]->tx[SAN_WIN_DATA].nb_lost, 1);
	assert_resent(base + 1);
}

UNIT_CASE(san_pdl_ack_apply__serial_wraps)
{
	struct pair_pkt a;

	data();
	data();
	a = blank_ack(0xffffffff);
	hear(&a);
	a.ack.serial = 2;
	a.ack.nb_data = 1;
	a.ack.data_rcvd[0] = 2;
	hear(&a);
	assert_int_equal(pair.c[0]->pcb.inflight, 1);
}

/* PCB-1: the peer's receiver sets the limit; it is never less than 2. */
UNIT_CASE(san_pdl_ack_apply__first_window)
{
	struct pair_pkt a = blank_ack(1);

	a.ack.first_win = 9;
	hear(&a);
	assert_int_equal(pair.c[0]->pcb.first_win, 9);
	a.ack.serial = 2;
	a.ack.first_win = 0;
	hear(&a);
	assert_int_equal(pair.c[0]->pcb.first_win, 2);
	a.ack.serial = 1; /* older: ignored */
	a.ack.first_win = 50;
	hear(&a);
	assert_int_equal(pair.c[0]->pcb.first_win, 2);
}

/* An ACK whose echo has this delay on the path and this hold time at the peer. */
static void
echo(uint32_t serial, uint64_t delay_ns, uint64_t hold_ns)
{
	struct pair_pkt a = blank_ack(serial);

	pair.now += SAN_NS_PER_MS;
	a.ack.echo_tx = (uint32_t)(pair.now - delay_ns - hold_ns);
	a.ack.echo_rx = 5000;
	a.p.tx_time = (uint32_t)(5000 + hold_ns);
	hear(&a);
}

/* The delay of the path is taken from samples without long holds (RT-25). */
UNIT_CASE(san_pdl_ack_apply__base_by_prompt_samples)
{
	const uint64_t most = 2 * pair.pdl[0]->conf.ack_delay_ns;
	const struct san_pdl_rtt *r = &pair.c[0]->rtt;

	san_pdl_rtt_path(pair.pdl[0], pair.c[0], 600 * SAN_NS_PER_US);
	echo(1, 590000, most - 1);
	assert_true(r->base_ns == 590000);
	/* the peer held it long: the rest is not reliable */
	echo(2, 1000, most);
	echo(3, 1000, 2 * SAN_NS_PER_MS);
	assert_true(r->base_ns == 590000);
	/* we did: with our gap subtracted the rest is not reliable either */
	pair.pdl[0]->rx_gap_ns = most + 1;
	echo(4, 100000, 0);
	pair.pdl[0]->rx_gap_ns = 2 * SAN_NS_PER_MS;
	echo(5, 580000, 0);
	assert_true(r->base_ns == 590000);
	pair.pdl[0]->rx_gap_ns = most;
	echo(6, 580000, 0);
	assert_true(r->base_ns == 580000);
}

/* RT-35: packets that repeatedly find no room are sent one at a time, but never stopped. */
UNIT_CASE(san_pdl_pcb_is_crowded__one_packet_at_a_time)
{
	uint32_t before = san_pdl_pcb_limit(pair.pdl[0], pair.c[0]);

	assert_true(before > 1);
	san_pdl_pcb_set_crowded(pair.pdl[0], pair.c[0], true);
	assert_int_equal(san_pdl_pcb_limit(pair.pdl[0], pair.c[0]), 1);
	san_pdl_pcb_set_crowded(pair.pdl[0], pair.c[0], false);
	assert_int_equal(san_pdl_pcb_limit(pair.pdl[0], pair.c[0]), before);
}
