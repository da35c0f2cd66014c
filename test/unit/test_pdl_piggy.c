/* SPDX-License-Identifier: BSD-3-Clause */

/* ACKs in our packets, and ACKs that wait for such a packet (RT-8, RT-25; RULE-11). */

#include "test_pdl.h"

UNIT_FIXTURE(.setup = setup_acks, .teardown = teardown);

/* ---- piggyback ---- */

/* Side 1 knows the round trip and has just sent a dedicated ACK. */
static void
give_rtt(uint64_t rtt_ns)
{
	san_pdl_rtt_sample(&pair.c[1]->rtt, &pair.pdl[1]->conf, rtt_ns, 0, UINT32_MAX);
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_true(pair_owed(&pair, 1, &ack));
}

UNIT_CASE(san_pdl_ack_piggyback__cancels)
{
	struct pair_pkt back;

	give_rtt(50 * SAN_NS_PER_US);
	k = data();
	k.p.ackreq = true;
	arrive(&k, SAN_RX_ACKED);
	assert_true(pair.c[1]->ack.listed);
	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &back));
	assert_true(back.p.data_ebsn == k.p.psn + 1);
	assert_false(pair_owed(&pair, 1, &ack)); /* the cleared entry is skipped */
	pair_pass(&pair, 20 * SAN_NS_PER_US);
	assert_false(pair_owed(&pair, 1, &ack));
	assert_int_equal(pair.pdl[1]->stats.nb_acks_piggybacked, 1);
	/* the other side takes it from the data packet alone */
	pair_recv(&pair, 0, &back, SAN_RX_ACKED);
	assert_true(pair.c[0]->tx[SAN_WIN_DATA].base == k.p.psn + 1);
	forget_acked();
}

/* It does not change the receiver's buffers: the last ACK is still valid for them. */
UNIT_CASE(san_pdl_ack_piggyback__not_of_the_buffers)
{
	struct pair_pkt back;
	uint32_t full;

	give_rtt(50 * SAN_NS_PER_US);
	pair_hold(&pair, 1, 900);
	k = data();
	arrive(&k, SAN_RX_ACKED);
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_true(pair_report(&pair, 1));
	forget_acked();
	full = pair.c[0]->cc.host_window;
	assert_true(full < pair.pdl[0]->conf.cc_conf.window_max);
	k = data();
	arrive(&k, SAN_RX_ACKED);
	pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &back);
	pair_recv(&pair, 0, &back, SAN_RX_ACKED);
	forget_acked();
	assert_true(pair.c[0]->tx[SAN_WIN_DATA].base == k.p.psn + 1);
	assert_true(pair.c[0]->cc.host_window <= full);
}

UNIT_CASE(san_pdl_ack_piggyback__not_with_a_gap)
{
	struct pair_pkt back;

	give_rtt(50 * SAN_NS_PER_US);
	k = data();
	arrive(&k, SAN_RX_RECEIVED); /* held: only a bitmap can report it */
	pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &back);
	pair_pass(&pair, 10 * SAN_NS_PER_US);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ack.ack.data_rcvd[0] == 1);
}

/* Side 0 sends data, side 1 sends a grant; then both send the ACKs that they owe. */
static void
ask_and_answer(bool ackreq)
{
	struct pair_pkt back;

	k = data();
	k.p.ackreq = ackreq;
	arrive(&k, SAN_RX_ACKED);
	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_GRNT, 1, &back));
	pair_recv(&pair, 0, &back, SAN_RX_ACKED);
	forget_acked();
	for (int side = 0; side < 2; side++) {
		while (pair_owed(&pair, side, &ack)) {
			pair_recv(&pair, !side, &ack, SAN_RX_REFUSED);
			forget_acked();
		}
	}
}

/*
 * RT-25: one dedicated ACK per round trip, whatever is sent back. If fewer than nine answers are
 * sent in that time, every ninth one has an ACK besides.
 */
UNIT_CASE(san_pdl_ack_piggyback__dedicated_per_rtt_or_ninth)
{
	static const struct {
		uint64_t apart_ns, nb; /* between two requests; ACKs of 90 requests */
	} cases[] = {
		{60 * SAN_NS_PER_US, 10},
		{100, 1}, /* 9 us: the ACK delay is 8 us */
	};

	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		uint64_t nb;

		give_rtt(50 * SAN_NS_PER_US);
		nb = pair.pdl[1]->stats.nb_acks_tx;
		for (int round = 0; round < 90; round++) {
			pair_pass(&pair, cases[i].apart_ns);
			ask_and_answer(true);
		}
		assert_int_equal(pair.pdl[1]->stats.nb_acks_tx - nb, cases[i].nb);
	}
}

/* A CE mark is reported by the next ACK: no answer stands for it. */
UNIT_CASE(san_pdl_ack_piggyback__never_for_a_ce_mark)
{
	struct pair_pkt back;

	give_rtt(50 * SAN_NS_PER_US);
	for (int i = 0; i < 2; i++) {
		k = data();
		k.p.ackreq = true;
		k.p.ce = i == 0;
		arrive(&k, SAN_RX_ACKED);
		assert_true(pair_send(&pair, 1, SAN_OP_PUSH_GRNT, 1, &back));
		while (pair_owed(&pair, 1, &ack) && ack.p.op == SAN_OP_CNP)
			;
		assert_true((ack.p.op == SAN_OP_ACK && ack.ack.ecn_count == 1) == (i == 0));
		ack.p.op = SAN_OP_CNP;
	}
}

UNIT_CASE(san_pdl_ack_piggyback__never_for_a_duplicate)
{
	struct pair_pkt back;

	k = data();
	arrive(&k, SAN_RX_ACKED);
	give_rtt(50 * SAN_NS_PER_US);
	arrive(&k, SAN_RX_ACKED);
	pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &back);
	assert_true(pair_owed(&pair, 1, &ack));
}

/* ---- an answer carries the ACK (RT-8) ---- */

/* A packet arrives that requests an ACK; true: one is owed at once. */
static bool
ask(void)
{
	k = data();
	k.p.ackreq = true;
	arrive(&k, SAN_RX_ACKED);
	return pair.c[1]->ack.listed;
}

/* Side 1 sends a packet *ns* later. */
static void
answer(uint64_t ns)
{
	struct pair_pkt back;

	pair_pass(&pair, ns);
	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &back));
	pair_recv(&pair, 0, &back, SAN_RX_ACKED);
	forget_acked();
}

/* Side 1 answers soon, often enough that its ACKs begin to wait. */
static void
answer_often(void)
{
	give_rtt(15 * SAN_NS_PER_US);
	for (int i = 0; i < 4; i++) {
		assert_true(ask());
		answer(SAN_NS_PER_US);
		pair_owed(&pair, 1, &ack);
	}
}

UNIT_CASE(san_pdl_ack_asked__waits_for_answer)
{
	answer_often();
	give_rtt(15 * SAN_NS_PER_US);
	assert_false(ask());
	answer(SAN_NS_PER_US);
	pair_pass(&pair, 10 * SAN_NS_PER_US);
	assert_false(pair_owed(&pair, 1, &ack));
	assert_true(pair.c[0]->tx[SAN_WIN_DATA].base == k.p.psn + 1);
}

/* It waits a third of a round trip, then it is sent; the next one does not wait again. */
UNIT_CASE(san_pdl_ack_asked__not_for_long)
{
	answer_often();
	assert_false(ask());
	pair_pass(&pair, 4 * SAN_NS_PER_US);
	assert_false(pair_owed(&pair, 1, &ack));
	pair_pass(&pair, 3 * SAN_NS_PER_US);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ask());
}

/*
 * The hold is twice the turn-round that was learned. A program that becomes slower raises it at
 * once, and one that becomes faster lowers it slowly.
 */
UNIT_CASE(san_pdl_ack_asked__for_the_learned_time)
{
	give_rtt(SAN_NS_PER_US);
	for (int i = 0; i < 20; i++) {
		ask();
		answer(2 * SAN_NS_PER_US);
		while (pair_owed(&pair, 1, &ack))
			;
	}
	assert_false(ask());
	pair_pass(&pair, 3 * SAN_NS_PER_US);
	assert_false(pair_owed(&pair, 1, &ack));
	answer(0);
	for (int i = 0; i < 200; i++) {
		assert_false(ask());
		answer(SAN_NS_PER_US / 2);
		while (pair_owed(&pair, 1, &ack))
			;
	}
	assert_false(ask());
	pair_pass(&pair, 3 * SAN_NS_PER_US / 2);
	assert_true(pair_owed(&pair, 1, &ack));
}

/* An answer after the coalescing time proves nothing, and resets what was learned. */
UNIT_CASE(san_pdl_ack_asked__late_answer)
{
	give_rtt(15 * SAN_NS_PER_US);
	for (int i = 0; i < 10; i++) {
		assert_true(ask());
		answer(9 * SAN_NS_PER_US);
		pair_owed(&pair, 1, &ack);
	}
}

/* With a window of a few packets the sender may wait for the ACK. */
UNIT_CASE(san_pdl_ack_asked__small_window)
{
	answer_often();
	pair.c[1]->rx[SAN_WIN_DATA].size = pair.pdl[1]->conf.ack_every;
	assert_true(ask());
}

/*
 * The coalescing timer may expire first: the wait was in vain, too, and many answers are needed
 * before an ACK waits again.
 */
UNIT_CASE(san_pdl_ack_asked__in_vain_by_timer)
{
	answer_often();
	assert_false(ask());
	pair_pass(&pair, 20 * SAN_NS_PER_US);
	assert_true(pair_owed(&pair, 1, &ack));
	for (int i = 0; i < 20; i++) {
		assert_true(ask());
		answer(SAN_NS_PER_US);
		while (pair_owed(&pair, 1, &ack))
			;
	}
}

/* A copy comes while the ACK is held: its sender does not wait, so no more are held. */
UNIT_CASE(san_pdl_ack_asked__copy_meanwhile)
{
	answer_often();
	assert_false(ask());
	arrive(&k, SAN_RX_ACKED);
	assert_true(pair_owed(&pair, 1, &ack));
	assert_true(ask());
}

/* A CNP that is due uses the entry in the list, and does not delay the ACK. */
UNIT_CASE(san_pdl_ack_asked__beside_a_cnp)
{
	answer_often();
	assert_false(ask());
	san_pdl_ack_cnp(pair.pdl[1], pair.c[1], pair.now);
	assert_true(pair_owed(&pair, 1, &ack) && ack.p.op == SAN_OP_CNP);
	assert_true(pair_owed(&pair, 1, &ack) && ack.p.op == SAN_OP_ACK);
}
