/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

#define BAD  (3 * pair.pdl[0]->conf.cc_conf.target_ns)
#define GOOD (pair.pdl[0]->conf.cc_conf.target_ns)

static struct san_pdl_conn *c;

static void
setup(void)
{
	setup_pair();
	c = pair.c[0];
	san_pdl_rtt_sample(&c->rtt, &pair.pdl[0]->conf, 30000, 0, UINT32_MAX);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

/* *rounds* round trips of three samples each. */
static void
samples(int rounds, uint64_t delay_ns, bool ce)
{
	for (int i = 0; i < 3 * rounds; i++) {
		pair.now += 10001;
		san_pdl_plb_sample(pair.pdl[0], c, delay_ns, ce, pair.now);
	}
}

/* RT-28: use the next port of the peer after the configured number of bad round trips. */
UNIT_CASE(san_pdl_plb_sample__moves_on)
{
	assert_int_equal(c->path.src_port, 50001);
	samples(3, BAD, false);
	assert_int_equal(c->path.src_port, 50001);
	for (int i = 1; i <= 5; i++) {
		while (pair.pdl[0]->stats.nb_path_changes < (uint64_t)i)
			samples(1, BAD, false);
		assert_int_equal(c->path.src_port, 50001 + i % 4);
	}
	assert_int_equal(c->path.dst_port, 0); /* the rest of the path stays */
}

/* If all paths are full, each change takes longer than the last one; good times reset that. */
UNIT_CASE(san_pdl_plb_sample__moves_ever_less)
{
	uint64_t moves = 0, rounds[4] = {0};

	for (int i = 0; i < 4; i++, moves++)
		for (; pair.pdl[0]->stats.nb_path_changes == moves; rounds[i]++)
			samples(1, BAD, false);
	assert_in_range(rounds[0], 4, 7);
	for (int i = 1; i < 4; i++)
		assert_true(rounds[i] >= 2 * rounds[i - 1]);
	for (int i = 0; i < 4000; i++)
		samples(1, GOOD, false);
	samples(7, BAD, false);
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, moves + 1);
}

static void
copy_after_answer(const struct pair_pkt *copy)
{
	while (pair_owed(&pair, 0, &ack))
		;
	pair_recv(&pair, 0, copy, SAN_RX_RECEIVED);
}

/* The peer repeats packets: our ACKs are lost. A new packet proves that they arrive. */
UNIT_CASE(san_pdl_plb_copy__moves_the_path_of_acks)
{
	struct pair_pkt next;

	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
	assert_true(pair_send(&pair, 1, SAN_OP_PUSH_UNSLCTD_DATA, 2, &next));
	pair_recv(&pair, 0, &k, SAN_RX_RECEIVED);
	for (int i = 0; i < 5; i++) /* delayed, and then all at once */
		pair_recv(&pair, 0, &k, SAN_RX_RECEIVED);
	copy_after_answer(&k);
	pair_recv(&pair, 0, &next, SAN_RX_RECEIVED);
	copy_after_answer(&k);
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 0);
	copy_after_answer(&next);
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 1);
	assert_int_equal(c->path.src_port, 50002);
}

UNIT_CASE(san_pdl_plb_sample__one_good_resets)
{
	for (int i = 0; i < 10; i++) {
		samples(3, BAD, false);
		samples(1, GOOD, false);
	}
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 0);
	/* one late sample per round trip does not make it a bad one */
	for (int i = 0; i < 20; i++) {
		samples(1, i % 2 != 0 ? BAD : GOOD, false);
	}
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 0);
}

UNIT_CASE(san_pdl_plb_sample__marks_are_bad)
{
	samples(8, GOOD, true);
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 1);
}

UNIT_CASE(san_pdl_plb_sample__off_or_nowhere_to_go)
{
	pair.pdl[0]->conf.plb_bad_rtts = 0;
	samples(20, BAD, true);
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 0);
	pair.pdl[0]->conf.plb_bad_rtts = 5;
	c->nb_ports = 1;
	samples(20, BAD, true);
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 0);
	assert_int_equal(c->path.src_port, 50001);
}

/* A path on which everything is lost gives no samples: timeouts count. */
UNIT_CASE(san_pdl_plb_timeout__black_hole)
{
	uint32_t sent = 1;

	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
	while (c->path.src_port == 50001) {
		pair_pass(&pair, 100000);
		sent += pair_again(&pair, 0, &k);
		assert_false(c->failed);
	}
	assert_int_equal(c->nb_rto, 1);
	assert_in_range(sent, 2, 6); /* tail-loss probes are sent before */
}

/* A packet is lost repeatedly, but ACKs arrive: the path is not dead. Then they do not. */
UNIT_CASE(san_pdl_plb_timeout__not_while_heard)
{
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
	while (c->nb_rto < 3) {
		pair_pass(&pair, 100000);
		pair_again(&pair, 0, &k);
		san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
		assert_true(pair_report(&pair, 1));
	}
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 0);
	while (c->nb_rto < 4) {
		assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 0);
		pair_pass(&pair, 100000);
		pair_again(&pair, 0, &k);
	}
	assert_int_equal(pair.pdl[0]->stats.nb_path_changes, 1);
}

/* Exactly an RTO of silence. */
UNIT_CASE(san_pdl_plb_timeout__silence_of_an_rto)
{
	c->last_ack_ns = pair.now;
	san_pdl_plb_timeout(pair.pdl[0], c, pair.now + c->rtt.rto_ns - 1);
	assert_int_equal(c->path.src_port, 50001);
	san_pdl_plb_timeout(pair.pdl[0], c, pair.now + c->rtt.rto_ns);
	assert_int_equal(c->path.src_port, 50002);
	pair.pdl[0]->conf.plb_bad_rtts = 0;
	san_pdl_plb_timeout(pair.pdl[0], c, pair.now + c->rtt.rto_ns);
	assert_int_equal(c->path.src_port, 50002);
}
