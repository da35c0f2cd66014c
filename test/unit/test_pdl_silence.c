/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

UNIT_FIXTURE(.setup = setup_retries, .teardown = teardown);

#define SILENT 24
#define LOW    16 /* packets that are resent */

/* Silence until *nb_rto* timeouts; returns the number of packets sent. */
static uint32_t
be_silent(uint32_t nb_rto, uint32_t lowest)
{
	struct san_pdl_room room;
	uint32_t sent = 0;

	while (pair.c[0]->nb_rto < nb_rto * LOW) {
		pair_pass(&pair, 100 * SAN_NS_PER_US);
		for (; pair_again(&pair, 0, &k); sent++)
			assert_in_range(k.p.psn - lowest, 0, LOW - 1);
	}
	san_pdl_tx_room(pair.pdl[0], pair.c[0], pair.now, &room);
	assert_int_equal(room.nb_credit, 0);
	assert_int_equal(pair.c[0]->pcb.inflight, LOW); /* the others are not in PCB-2's sum */
	return sent;
}

/*
 * RT-7, RT-22: while a peer does not run, each timeout resends a few packets, not the window.
 * Packets that its ACKs then do not report are resent without waiting for a timeout, and no others.
 */
UNIT_CASE(san_pdl_rtx_on_timer__silent_peer)
{
	struct san_pdl_conn *c = pair.c[0];
	struct pair_pkt d[SILENT];
	uint32_t i;

	exchange(40 * SAN_NS_PER_US);
	for (i = 0; i < SILENT; i++)
		d[i] = send_push(2);
	assert_int_equal(be_silent(4, d[0].p.psn), 4 * LOW + 4); /* and the tail-loss probes */
	/* it has all of them, and reads them in two bursts; of the second one two are lost */
	for (i = 0; i < SILENT / 2; i++)
		pair_recv(&pair, 1, &d[i], SAN_RX_ACKED);
	report();
	assert_false(san_pdl_has_lost(c));
	assert_int_equal(c->rtt.backoff, 0);
	pair_pass(&pair, 100 * SAN_NS_PER_US);
	for (; i < SILENT - 2; i++)
		pair_recv(&pair, 1, &d[i], SAN_RX_ACKED);
	report();
	assert_false(san_pdl_has_lost(c));
	pair_recv(&pair, 1, &k, SAN_RX_REFUSED); /* the last copy, sent long after them */
	report();
	assert_int_equal(c->nb_fast_rtx, 2);
	for (; i < SILENT; i++) {
		assert_resent(d[i].p.psn);
		pair_recv(&pair, 1, &k, SAN_RX_ACKED);
	}
	assert_false(pair_again(&pair, 0, &k));
	report();
	assert_false(san_pdl_has_outstanding(c));
	assert_int_equal(c->nb_rto, 4 * LOW);
}

/*
 * RT-7: more packets are lost than the reduced window allows. Packets in flight above them time out
 * in the silence, which makes room, so that the lost ones are sent.
 */
UNIT_CASE(san_pdl_rtx_on_timer__lost_go_in_silence)
{
	struct san_pdl_conn *c = pair.c[0];
	struct pair_pkt d[2 * LOW];

	exchange(40 * SAN_NS_PER_US);
	c->cc.window = 3 * LOW * SAN_CC_ONE;
	for (uint32_t i = 0; i < 2 * LOW; i++)
		d[i] = send_push(2);
	for (uint32_t i = LOW; i < 2 * LOW; i++)
		pair_recv(&pair, 1, &d[i], SAN_RX_ACKED);
	pair_pass(&pair, san_pdl_rtt_gap_ns(pair.pdl[0], c));
	report();
	assert_int_equal(c->tx[SAN_WIN_DATA].nb_lost, LOW);
	for (uint32_t i = 0; i < LOW; i++)
		send_push(2);
	c->cc.window = 4 * SAN_CC_ONE;
	assert_false(pair_again(&pair, 0, &k)); /* more is in flight */
	san_pdl_sched_remove(pair.pdl[0], c);
	for (uint32_t i = 0; i < 1000 && c->pcb.inflight != 0; i++)
		pair_pass(&pair, 100 * SAN_NS_PER_US);
	assert_true(c->in_ready);
	for (uint32_t i = 0; i < 4; i++)
		assert_resent(d[i].p.psn);
	assert_false(pair_again(&pair, 0, &k));
}

/* The peer is heard, but sends no news: what timed out gets a full timeout, then is resent. */
UNIT_CASE(san_pdl_rtx_silence_ends__timeouts_anew)
{
	struct san_pdl_conn *c = pair.c[0];
	uint32_t first;
	uint64_t end;

	exchange(40 * SAN_NS_PER_US);
	first = send_push(2).p.psn;
	for (uint32_t i = 1; i < SILENT; i++)
		send_push(2);
	be_silent(4, first);
	san_pdl_ack_probe_now(pair.pdl[1], pair.c[1]);
	assert_true(pair_owed(&pair, 1, &ack) && ack.p.op == SAN_OP_PROBE);
	pair_recv(&pair, 0, &ack, SAN_RX_REFUSED);
	assert_true(c->in_ready); /* a new packet may be sent */
	end = pair.now + c->rtt.rto_ns;
	pair_pass(&pair, c->rtt.rto_ns - SAN_NS_PER_US);
	assert_false(san_pdl_has_lost(c));
	c->last_rx_ns = pair.now; /* the peer is heard */
	pair_pass(&pair, end + end / 10 - pair.now);
	assert_int_equal(c->tx[SAN_WIN_DATA].nb_lost, SILENT - LOW); /* with own timeouts */
}

/* After a time without the CPU, received packets come first, then timers; but not forever. */
UNIT_CASE(san_pdl_rtx_rx_gap__timers_wait)
{
	struct san_pdl *pdl = pair.pdl[0];
	struct san_pdl_conn *c = pair.c[0];
	struct pair_pkt d;

	exchange(40 * SAN_NS_PER_US);
	d = send_push(2);
	pair_recv(&pair, 1, &d, SAN_RX_ACKED);
	pair.now += 50 * SAN_NS_PER_MS;
	san_pdl_rtx_rx_gap(pdl, 50 * SAN_NS_PER_MS, pair.now);
	pair_pass(&pair, pdl->conf.rto_min_ns - 1);
	assert_int_equal(c->nb_rto + c->nb_tlp, 0);
	san_pdl_check(pdl);
	report();
	assert_false(san_pdl_has_outstanding(c));
	send_push(2);
	pair.now += 50 * SAN_NS_PER_MS;
	san_pdl_rtx_rx_gap(pdl, 50 * SAN_NS_PER_MS, pair.now); /* no timer has fired since */
	pair_pass(&pair, 1);
	assert_int_equal(c->nb_rto, 1);
	pdl->grace_ns = 0;
	san_pdl_rtx_rx_gap(pdl, pdl->conf.rto_min_ns / 2 - 1, pair.now); /* too short to matter */
	assert_true(pdl->grace_ns == 0);
}
