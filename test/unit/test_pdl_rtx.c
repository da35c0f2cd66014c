/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

UNIT_FIXTURE(.setup = setup_retries, .teardown = teardown);

/* ---- timeouts ---- */

/*
 * RT-7, RT-17: the same PSN each time, the in-flight sum is correct, the connection fails after the
 * configured retries and within the sum of the timeouts + 10 %.
 */
UNIT_CASE(san_pdl_rtx_on_timer__retries_exhausted)
{
	struct san_pdl_conn *c = pair.c[0];
	uint64_t start, sum = 0, rto;
	uint32_t psn, sent = 0;

	exchange(40 * SAN_NS_PER_US);
	rto = c->rtt.rto_ns;
	for (int i = 0; i <= 5; i++)
		sum += RTE_MIN(rto << i, pair.pdl[0]->conf.rto_max_ns);
	psn = send_push(2).p.psn;
	start = pair.now;
	while (!c->failed) {
		pair_pass(&pair, 1000);
		if (!pair_again(&pair, 0, &k))
			continue;
		assert_true(k.p.psn == psn && k.p.rsn == 2 && k.p.ackreq);
		assert_int_equal(c->pcb.inflight, 1);
		sent++;
		assert_true(pair.now - start < 2 * sum);
	}
	assert_int_equal(c->nb_rto, 5);
	assert_int_equal(sent, 5 + 4); /* retries, and all tail-loss probes */
	assert_int_equal(c->nb_tlp, 4);
	assert_true(pair.now - start >= sum);
	assert_true(pair.now - start <= sum + sum / 10);
	assert_int_equal(pair.pdl[0]->stats.nb_conns_failed, 1);
	assert_null(san_pdl_tx_again(pair.pdl[0], c, pair.now));
}

/* RT-7: a peer without memory for packets far ahead is alive, however long that takes. */
UNIT_CASE(san_pdl_rtx_on_timer__no_memory_is_no_silence)
{
	struct pair_pkt far, probe;

	pair.pdl[1]->free_rxwords.nb = 0; /* other connections use it all */
	for (uint32_t i = 0; i < SAN_BITMAP_NARROW; i++) {
		far = send_push(1);
		assert_int_equal(arrive(&far, SAN_RX_RECEIVED), SAN_DROP_NONE);
	}
	report(); /* the window is larger than what is in flight */
	far = send_push(1);
	assert_int_equal(arrive(&far, SAN_RX_ACKED), SAN_DROP_BEYOND);
	for (uint32_t i = 0; i < 8000; i++) { /* 5 retries take far less */
		while (pair_report(&pair, 1))
			;
		pair_pass(&pair, SAN_NS_PER_MS);
		assert_false(pair.c[0]->failed);
		while (pair_owed(&pair, 0, &probe))
			pair_recv(&pair, 1, &probe, SAN_RX_REFUSED);
		if (pair_again(&pair, 0, &far))
			assert_int_equal(arrive(&far, SAN_RX_ACKED), SAN_DROP_BEYOND);
	}
	for (uint32_t i = 0; i < 20000 && !pair.c[0]->failed; i++) { /* now it is silent */
		pair_pass(&pair, SAN_NS_PER_MS);
		pair_again(&pair, 0, &far);
	}
	assert_true(pair.c[0]->failed);
	pair.pdl[1]->free_rxwords.nb = pair.pdl[1]->free_rxwords.max;
}

/* With many packets outstanding, the first one to exhaust its retries decides. */
UNIT_CASE(san_pdl_rtx_on_timer__many_outstanding_fail_as_fast)
{
	uint64_t start, sum = 0;

	exchange(40 * SAN_NS_PER_US);
	for (int i = 0; i <= 5; i++)
		sum += pair.c[0]->rtt.rto_ns << i;
	start = pair.now;
	for (int i = 0; i < 20; i++) {
		send_push(2);
		pair_pass(&pair, 7000);
	}
	while (!pair.c[0]->failed) {
		pair_pass(&pair, 1000);
		while (pair_again(&pair, 0, &k))
			continue;
		assert_true(pair.now - start < 2 * sum);
	}
	assert_true(pair.now - start <= sum + sum / 10);
}

UNIT_CASE(san_pdl_rtx_on_timer__progress_resets_backoff)
{
	exchange(40 * SAN_NS_PER_US);
	send_push(2);
	while (pair.c[0]->nb_rto < 2) {
		pair_pass(&pair, 1000);
		pair_again(&pair, 0, &k);
	}
	assert_int_equal(pair.c[0]->rtt.backoff, 2);
	arrive_and_report(&k);
	assert_int_equal(pair.c[0]->rtt.backoff, 0);
	assert_int_equal(pair.c[0]->pcb.inflight, 0);
	pair_pass(&pair, SAN_NS_PER_S);
	assert_int_equal(pair.c[0]->nb_rto, 2);
}

/* The lower RSN of both windows is resent first, in each the lowest PSN (RT-20, RT-26). */
UNIT_CASE(san_pdl_rtx_on_timer__lowest_first)
{
	uint32_t req, data;

	data = send_push(0xffffffff).p.psn;
	req = send_op(SAN_OP_PULL_REQ, 0).p.psn;
	send_push(1);
	pair_lose(&pair);
	assert_int_equal(pair.pdl[0]->inflight, 0); /* timed out: not in PCB-2's sum */
	assert_resent(data);
	assert_true(pair_again(&pair, 0, &k));
	assert_true(k.p.op == SAN_OP_PULL_REQ && k.p.psn == req);
	assert_resent(data + 1);
	assert_false(pair_again(&pair, 0, &k));
}

/* Pull data and requests are resent in turn, so that neither starves the other. */
UNIT_CASE(san_pdl_rtx_on_timer__pull_data_takes_turns)
{
	uint32_t nb_req = 0, nb_data = 0;

	for (int i = 0; i < 4; i++) {
		send_op(SAN_OP_PULL_REQ, 1);
		send_op(SAN_OP_PULL_DATA, 1);
	}
	pair_lose(&pair);
	for (int i = 0; i < 8; i++) {
		assert_true(pair_again(&pair, 0, &k));
		nb_req += k.p.op == SAN_OP_PULL_REQ;
		nb_data += k.p.op == SAN_OP_PULL_DATA;
		assert_in_range(nb_data + 1 - nb_req, 0, 2);
	}
	assert_int_equal(nb_req, 4);
	assert_false(pair_again(&pair, 0, &k));
}

/* Room for one packet, and refused requests: every other turn is for new ones. */
UNIT_CASE(san_pdl_rtx_on_timer__refused_request_leaves_turns)
{
	uint32_t again = 0, left = 0;

	pair.c[0]->pcb.first_win = 2;
	send_op(SAN_OP_PULL_REQ, 1);
	for (int i = 0; i < 40 && again < 4; i++) {
		pair_pass(&pair, 10 * SAN_NS_PER_MS);
		if (!san_pdl_has_lost(pair.c[0]))
			continue;
		if (pair_again(&pair, 0, &k)) {
			again++;
		} else {
			left++;
			assert_true(pair.c[0]->in_ready); /* it is scheduled again by itself */
		}
	}
	assert_int_equal(again, 4);
	assert_in_range(left, 3, 5);
}

/* ---- fast retransmit and tail-loss probes (RT-22; RULE-10) ---- */

UNIT_CASE(san_pdl_rtx_gaps__distance_and_rtt)
{
	struct pair_pkt d[8];

	exchange(100 * SAN_NS_PER_US);
	for (int i = 0; i < 5; i++)
		d[i] = send_push(2);
	pair_pass(&pair, 50 * SAN_NS_PER_US);
	pair_recv(&pair, 1, &d[1], SAN_RX_ACKED);
	arrive_and_report(&d[2]);
	pair_pass(&pair, 40 * SAN_NS_PER_US);
	assert_int_equal(pair.c[0]->nb_fast_rtx, 0); /* too near: may be reordering */
	arrive_and_report(&d[3]);
	assert_int_equal(pair.c[0]->nb_fast_rtx, 0); /* far enough, but less than an RTT old */
	pair_pass(&pair, 200 * SAN_NS_PER_US);
	assert_int_equal(pair.c[0]->nb_rto, 0);
	assert_int_equal(pair.c[0]->nb_fast_rtx, 1);
	assert_resent(d[0].p.psn);
	arrive_and_report(&k);
	assert_true(pair.c[0]->tx[SAN_WIN_DATA].base == d[4].p.psn);
	assert_int_equal(pair.c[0]->nb_rto, 0);
}

/* However old, a loss that few PSNs passed waits for the timeout: it may be reordering. */
UNIT_CASE(san_pdl_rtx_gaps__too_near)
{
	struct pair_pkt d[4];

	exchange(100 * SAN_NS_PER_US);
	pair.c[0]->nb_tails = UINT8_MAX; /* no tail-loss probe in between */
	for (int i = 0; i < 4; i++)
		d[i] = send_push(2);
	pair_recv(&pair, 1, &d[1], SAN_RX_ACKED);
	pair_recv(&pair, 1, &d[2], SAN_RX_ACKED);
	pair_pass(&pair, 500 * SAN_NS_PER_US);
	report();
	assert_int_equal(pair.c[0]->nb_fast_rtx, 0);
	arrive_and_report(&d[3]);
	assert_int_equal(pair.c[0]->nb_fast_rtx, 1);
}

/* Two packets; the first one is fast-retransmitted: nothing passes it by more than one. */
static void
lose_first(struct pair_pkt d[2])
{
	d[0] = send_push(2);
	d[1] = send_push(2);
	pair_pass(&pair, 50 * SAN_NS_PER_US);
	arrive_and_report(&d[1]);
	assert_false(pair_again(&pair, 0, &k));
	pair_pass(&pair, 250 * SAN_NS_PER_US);
	assert_resent(d[0].p.psn);
}

/* An overtaken packet proves that the path reorders: fast retransmit waits longer from then on. */
UNIT_CASE(san_pdl_rtx_gaps__overtaken)
{
	struct san_pdl_conn *c = pair.c[0];
	struct pair_pkt d[2];

	exchange(100 * SAN_NS_PER_US);
	assert_true(san_pdl_rtt_gap_ns(pair.pdl[0], c) < san_pdl_rtt_answer_ns(pair.pdl[0], c));
	lose_first(d);
	pair_pass(&pair, 10 * SAN_NS_PER_US);
	arrive_and_report(&d[0]);
	assert_true(san_pdl_rtt_gap_ns(pair.pdl[0], c) == san_pdl_rtt_answer_ns(pair.pdl[0], c));
	c->rtt.nb_reorder_wait = 1;
	lose_first(d); /* this time it was lost */
	pair_pass(&pair, 100 * SAN_NS_PER_US);
	arrive_and_report(&k);
	assert_int_equal(c->rtt.nb_reorder_wait, 0);
}

/* Each fast retransmit of a packet waits longer; after a few, only the timeout resends it. */
UNIT_CASE(san_pdl_rtx_gaps__not_for_ever)
{
	struct pair_pkt d[5];
	uint64_t at[3] = {0};
	uint32_t n = 0;

	exchange(100 * SAN_NS_PER_US);
	for (uint32_t i = 0; i < 5; i++) {
		d[i] = send_push(2);
		if (i != 0)
			pair_recv(&pair, 1, &d[i], SAN_RX_ACKED);
	}
	for (uint32_t i = 0; i < 100 && pair.c[0]->nb_rto == 0; i++) {
		pair_pass(&pair, 100 * SAN_NS_PER_US);
		report();
		while (pair_again(&pair, 0, &k))
			assert_true(k.p.psn == d[0].p.psn);
		if (pair.c[0]->nb_fast_rtx > n && n < 3)
			at[n++] = pair.now;
	}
	assert_int_equal(pair.c[0]->nb_fast_rtx, 3);
	assert_int_equal(pair.c[0]->nb_rto, 1);
	assert_true(at[2] - at[1] > at[1] - at[0]);
}

/* What congestion control is given. */
static uint32_t nb_told, nb_losses;

static void
spy_on_ack(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
	   const struct san_pdl_cc_sample *s)
{
	nb_told += s->nb_lost;
}

static void
spy_on_loss(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
	    uint64_t now_ns)
{
	nb_losses++;
}

static const struct san_pdl_cc_ops spy = {.on_ack = spy_on_ack, .on_loss = spy_on_loss};

/* No ACK arrives when a loss is old enough: the next one reports the loss, once (RT-9). */
UNIT_CASE(san_pdl_rtx_on_timer__holes_are_losses)
{
	struct pair_pkt d[6], old;

	nb_told = nb_losses = 0;
	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &old));
	exchange(100 * SAN_NS_PER_US);
	pair.c[0]->cc.ops = &spy;
	for (int i = 0; i < 6; i++)
		d[i] = send_push(2);
	pair_pass(&pair, 50 * SAN_NS_PER_US);
	for (int i = 2; i < 5; i++)
		pair_recv(&pair, 1, &d[i], SAN_RX_ACKED);
	report();
	assert_int_equal(pair.c[0]->nb_fast_rtx, 0);
	pair_pass(&pair, 180 * SAN_NS_PER_US);
	assert_int_equal(pair.c[0]->nb_fast_rtx, 2);
	assert_int_equal(nb_told + nb_losses, 0);
	pair_recv(&pair, 0, &old, SAN_RX_ACKED); /* overtaken, no news: no report */
	assert_int_equal(nb_told + nb_losses, 0);
	report();
	assert_int_equal(nb_told, 2);
	assert_int_equal(nb_losses, 1);
	report();
	assert_int_equal(nb_told, 2);
	assert_int_equal(nb_losses, 1);
	pair.c[0]->cc.ops = &san_pdl_cc_fixed;
}

/* All of a tail is lost: one probe, and its ACK shows the rest, before any timeout. */
UNIT_CASE(san_pdl_rtx_on_timer__tail_loss_probe)
{
	struct pair_pkt d[3];
	uint64_t lost_ns;

	exchange(100 * SAN_NS_PER_US);
	exchange(100 * SAN_NS_PER_US);
	for (int i = 0; i < 3; i++)
		d[i] = send_push(2);
	lost_ns = pair.now;
	while (pair.c[0]->nb_tlp == 0) {
		assert_true(pair.now - lost_ns < SAN_NS_PER_S);
		pair_pass(&pair, 1000);
	}
	assert_true(pair.now - lost_ns >= 2 * pair.c[0]->rtt.srtt_ns);
	assert_true(pair_again(&pair, 0, &k));
	assert_true(k.p.psn == d[0].p.psn && k.p.ackreq);
	assert_false(pair_again(&pair, 0, &k)); /* one packet, not the window */
	pair_pass(&pair, 50 * SAN_NS_PER_US);
	pair_recv(&pair, 1, &k, SAN_RX_ACKED);
	assert_true(pair_report(&pair, 1));
	pair.pdl[0]->nb_acked = 0;
	for (int i = 1; i < 3; i++) {
		assert_resent(d[i].p.psn);
		pair_recv(&pair, 1, &k, SAN_RX_ACKED);
	}
	report();
	assert_int_equal(pair.c[0]->nb_rto, 0);
	assert_false(san_pdl_has_outstanding(pair.c[0]));
}

/* Time until the next tail-loss probe. The probe is *k*, and does not arrive. */
static uint64_t
until_probe(void)
{
	uint64_t start = pair.now;
	uint32_t n = pair.c[0]->nb_tlp;

	while (pair.c[0]->nb_tlp == n) {
		assert_true(pair.now - start < SAN_NS_PER_S);
		pair_pass(&pair, 100);
	}
	assert_int_equal(pair.c[0]->nb_tlp, n + 1);
	assert_true(pair_again(&pair, 0, &k));
	assert_true(k.p.ackreq);
	assert_false(pair_again(&pair, 0, &ack));
	return pair.now - start;
}

/* Timeouts are far away, the round trip is 100 us. */
static void
begin_tails(void)
{
	pair.pdl[0]->conf.rto_min_ns = 100 * SAN_NS_PER_MS;
	exchange(100 * SAN_NS_PER_US);
	assert_true(pair.c[0]->rtt.rto_ns == 100 * (SAN_NS_PER_MS + SAN_NS_PER_US));
	assert_true(san_pdl_rtt_tail_ns(pair.pdl[0], pair.c[0]) == 200 * SAN_NS_PER_US);
}

/* A lost probe is repeated: four in a row, each after twice the silence. */
UNIT_CASE(san_pdl_rtx_on_timer__tail_probes_get_lost)
{
	uint64_t wait_ns;
	uint32_t psn;

	begin_tails();
	psn = send_push(2).p.psn;
	for (uint32_t i = 0; i < 4; i++) {
		wait_ns = until_probe();
		assert_true(k.p.psn == psn);
		assert_in_range(wait_ns, 200 * SAN_NS_PER_US << i, 202 * SAN_NS_PER_US << i);
		assert_int_equal(pair.c[0]->nb_rto, 0);
	}
	/* then the timeout follows, and starts no new series */
	while (pair.c[0]->nb_rto < 2) {
		pair_pass(&pair, 100 * SAN_NS_PER_US);
		pair_again(&pair, 0, &k);
	}
	assert_int_equal(pair.c[0]->nb_tlp, 4);
}

/* An ACK of any packet starts a new series, for the packets that are left and those sent then. */
UNIT_CASE(san_pdl_rtx_progress__resets_tail_probes)
{
	struct san_pdl_conn *c = pair.c[0];
	struct pair_pkt d;
	uint64_t tail_ns;

	begin_tails();
	d = send_push(2);
	send_push(2);
	for (uint32_t i = 0; i < 4; i++)
		until_probe();
	assert_int_equal(c->nb_tails, 4);
	arrive_and_report(&d); /* late, but not lost */
	assert_int_equal(c->nb_tails, 0);
	for (uint32_t i = 0; i < 4; i++) {
		tail_ns = san_pdl_rtt_tail_ns(pair.pdl[0], c) << i;
		assert_in_range(until_probe(), tail_ns, tail_ns + tail_ns / 100);
		assert_true(k.p.psn == d.p.psn + 1);
	}
	arrive_and_report(&k);
	assert_false(san_pdl_has_outstanding(c));
	send_push(3);
	tail_ns = san_pdl_rtt_tail_ns(pair.pdl[0], c);
	assert_in_range(until_probe(), tail_ns, tail_ns + tail_ns / 100);
	assert_int_equal(c->nb_rto, 0);
}

/* ---- received, not acknowledged (RT-18; RULE-2) ---- */

/* Held for longer than all timeouts together: probed, never resent, no retry counted. */
UNIT_CASE(san_pdl_rtx_on_timer__held_and_answered)
{
	struct san_pdl_conn *c = pair.c[0];
	uint64_t end;
	uint32_t probes = 0;

	exchange(40 * SAN_NS_PER_US);
	k = send_push(2);
	pair_recv(&pair, 1, &k, SAN_RX_RECEIVED);
	report();
	assert_int_equal(c->pcb.inflight, 0); /* not in PCB-2's count */
	end = pair.now + 10 * SAN_NS_PER_S;
	while (pair.now < end) {
		pair_pass(&pair, 20000);
		assert_false(pair_again(&pair, 0, &k));
		if (!pair_owed(&pair, 0, &k))
			continue;
		assert_int_equal(k.p.op, SAN_OP_PROBE);
		probes++;
		pair_recv(&pair, 1, &k, SAN_RX_REFUSED);
		assert_true(pair_report(&pair, 1));
	}
	assert_false(c->failed);
	assert_int_equal(c->nb_rto, 0);
	assert_in_range(probes, 10, 200);
	san_pdl_rx_ack(pair.pdl[1], pair.c[1], c->tx[SAN_WIN_DATA].base, pair.now);
	assert_true(pair_report(&pair, 1));
	assert_int_equal(pair.pdl[0]->nb_acked, 1);
	assert_false(san_pdl_has_outstanding(c));
}

/* Unanswered PROBEs are retries. */
UNIT_CASE(san_pdl_rtx_on_timer__held_and_silent)
{
	uint64_t start, sum = 0;

	exchange(40 * SAN_NS_PER_US);
	k = send_push(2);
	pair_recv(&pair, 1, &k, SAN_RX_RECEIVED);
	report();
	start = pair.now;
	for (int i = 0; i <= 7; i++)
		sum += RTE_MIN(pair.c[0]->rtt.rto_ns << i, pair.pdl[0]->conf.rto_max_ns);
	while (!pair.c[0]->failed) {
		pair_pass(&pair, 20000);
		assert_false(pair_again(&pair, 0, &k));
		pair_owed(&pair, 0, &k);
		assert_true(pair.now - start < 2 * sum);
	}
	assert_true(pair.c[0]->nb_probes >= 5);
}

/* Dropped after it was held, as the answer to the PROBE reports: then it is resent. */
UNIT_CASE(san_pdl_rtx_on_timer__held_then_dropped)
{
	uint32_t psn;

	exchange(40 * SAN_NS_PER_US);
	k = send_push(2);
	psn = k.p.psn;
	pair_recv(&pair, 1, &k, SAN_RX_RECEIVED);
	report();
	san_pdl_rx_revoke(pair.pdl[1], pair.c[1], psn);
	while (!pair_owed(&pair, 0, &k))
		pair_pass(&pair, 20000);
	assert_int_equal(k.p.op, SAN_OP_PROBE);
	assert_false(pair_again(&pair, 0, &ack));
	pair_recv(&pair, 1, &k, SAN_RX_REFUSED);
	assert_true(pair_report(&pair, 1));
	assert_resent(psn);
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
	report();
	assert_false(san_pdl_has_outstanding(pair.c[0]));
	assert_int_equal(pair.c[0]->nb_rto, 0);
}

/* ---- withdraw (RT-23, RT-27; RULE-4, RULE-5) ---- */

UNIT_CASE(san_pdl_rtx_cancel__becomes_resync_under_its_psn)
{
	struct pair_pkt d[6];

	d[0] = send_push(7);
	d[1] = send_op(SAN_OP_PUSH_SLCTD_DATA, 8);
	d[2] = send_op(SAN_OP_PUSH_GRNT, 8);
	d[3] = send_op(SAN_OP_PULL_DATA, 8);
	d[4] = send_op(SAN_OP_PUSH_PACKED, 9);
	d[5] = send_push(8);
	pair_recv(&pair, 1, &d[1], SAN_RX_ACKED);
	report(); /* d[1] is acknowledged: nothing to withdraw */
	assert_int_equal(san_pdl_rtx_cancel(pair.pdl[0], pair.c[0], 8, false, SAN_RESYNC_FILL), 1);
	assert_int_equal(pair.c[0]->pcb.inflight, 3);
	san_pdl_check(pair.pdl[0]);
	/* onward: 9 too, 7 not; grants and pull data belong to the other direction */
	assert_int_equal(san_pdl_rtx_cancel(pair.pdl[0], pair.c[0], 8, true, SAN_RESYNC_FILL), 1);
	for (uint32_t i = 4; i < 6; i++) {
		assert_true(pair_again(&pair, 0, &k));
		assert_int_equal(k.p.op, SAN_OP_RESYNC);
		assert_int_equal(k.p.flags, SAN_F_WIN_DATA);
		assert_int_equal(k.p.status, SAN_RESYNC_FILL);
		assert_true(k.p.psn == d[i].p.psn && k.p.rsn == d[i].p.rsn);
		assert_int_equal(k.p.payload_len, 0);
		assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
	}
	assert_false(pair_again(&pair, 0, &k));
	assert_int_equal(pair.c[0]->nb_rtx, 0);
	assert_int_equal(pair.pdl[0]->stats.nb_resync_tx, 2);
	assert_int_equal(pair.pdl[0]->stats.nb_withdrawn, 2);
	report();
	assert_int_equal(pair.c[0]->pcb.inflight, 2);
}

UNIT_CASE(san_pdl_rtx_cancel__onward_wraps)
{
	send_push(0xfffffffe);
	send_push(0xffffffff);
	send_push(0);
	send_push(1);
	assert_int_equal(san_pdl_rtx_cancel(pair.pdl[0], pair.c[0], 0xffffffff, true,
					    SAN_RESYNC_FILL),
			 3);
}

/* A hint from before the target dropped it must not suppress the RESYNC. */
UNIT_CASE(san_pdl_rtx_cancel__late_hint)
{
	struct pair_pkt late;

	k = send_push(8);
	pair_recv(&pair, 1, &k, SAN_RX_RECEIVED);
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_true(pair_owed(&pair, 1, &late));
	san_pdl_rx_revoke(pair.pdl[1], pair.c[1], k.p.psn);
	assert_int_equal(san_pdl_rtx_cancel(pair.pdl[0], pair.c[0], 8, false, SAN_RESYNC_FILL), 1);
	pair_recv(&pair, 0, &late, SAN_RX_REFUSED);
	assert_true(pair_again(&pair, 0, &k));
	assert_int_equal(k.p.op, SAN_OP_RESYNC);
}

/* A lost RESYNC is retransmitted like any packet. */
UNIT_CASE(san_pdl_rtx_cancel__lost_resync)
{
	uint32_t psn = send_push(8).p.psn;

	san_pdl_rtx_cancel(pair.pdl[0], pair.c[0], 8, false, SAN_RESYNC_ABORT);
	assert_true(pair_again(&pair, 0, &k));
	pair_pass(&pair, 2 * pair.pdl[0]->conf.rto_init_ns);
	assert_true(pair_again(&pair, 0, &k));
	assert_true(k.p.op == SAN_OP_RESYNC && k.p.psn == psn && k.p.status == SAN_RESYNC_ABORT);
	assert_int_equal(pair.c[0]->nb_rtx, 1);
}

/* ---- defer ---- */

UNIT_CASE(san_pdl_rtx_defer__same_psn_after_the_delay)
{
	uint32_t psn = send_push(8).p.psn;
	uint64_t start = pair.now;

	san_pdl_rtx_defer(pair.pdl[0], pair.c[0], SAN_WIN_DATA, psn, 20 * SAN_NS_PER_MS, pair.now);
	assert_int_equal(pair.c[0]->pcb.inflight, 0);
	san_pdl_check(pair.pdl[0]);
	while (!pair_again(&pair, 0, &k))
		pair_pass(&pair, 100000);
	assert_true(k.p.psn == psn && k.p.op == SAN_OP_PUSH_UNSLCTD_DATA);
	assert_in_range(pair.now - start, 20 * SAN_NS_PER_MS, 21 * SAN_NS_PER_MS);
	assert_int_equal(pair.c[0]->nb_rto, 0); /* no retry */
	/* not outstanding */
	san_pdl_rtx_defer(pair.pdl[0], pair.c[0], SAN_WIN_DATA, psn + 1, 1000, pair.now);
	san_pdl_check(pair.pdl[0]);
}

UNIT_CASE(san_pdl_rtx_is_outstanding__assigned_and_not_acknowledged)
{
	struct pair_pkt d[2];
	uint32_t base = pair.c[0]->tx[SAN_WIN_DATA].next;

	assert_false(san_pdl_rtx_is_outstanding(pair.c[0], SAN_WIN_DATA, base));
	d[0] = send_push(8);
	d[1] = send_push(8);
	assert_true(san_pdl_rtx_is_outstanding(pair.c[0], SAN_WIN_DATA, base));
	assert_false(san_pdl_rtx_is_outstanding(pair.c[0], SAN_WIN_REQ, base));
	arrive_and_report(&d[1]);
	assert_true(san_pdl_rtx_is_outstanding(pair.c[0], SAN_WIN_DATA, base));
	assert_false(san_pdl_rtx_is_outstanding(pair.c[0], SAN_WIN_DATA, base + 1));
	assert_false(san_pdl_rtx_is_outstanding(pair.c[0], SAN_WIN_DATA, base + 2));
	assert_false(san_pdl_rtx_is_outstanding(pair.c[0], SAN_WIN_DATA, base - 1));
}
