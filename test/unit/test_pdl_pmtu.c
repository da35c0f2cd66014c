/* SPDX-License-Identifier: BSD-3-Clause */

/* The MTU of the path: probed after some full packets, one length after the other. (RT-31) */

#include "test_pdl.h"

#define BOTH  8908 /* payload bytes of MTU 9000, over IPv4 */
#define MID   4004 /* of 4096 */
#define BEGIN 1408 /* of 1500 */
#define SURE  1188 /* of 1280 */
#define LONG  20   /* bytes of a PROBE's payload beyond that: its header is shorter */

static uint16_t limit;   /* longest payload that passes from 0 to 1 */
static uint16_t probed;  /* the longest PROBE sent */
static uint32_t nb_long; /* PROBEs sent with a payload */

static void
open_pair(void)
{
	struct san_pdl_conf conf = pair_conf();

	conf.pmtu_after = 1;
	pair_open(&pair, &conf, 16, 64);
	for (int i = 0; i < 2; i++)
		san_pdl_pmtu_init(pair.pdl[i], pair.c[i], BOTH);
	limit = UINT16_MAX;
	probed = 0;
	nb_long = 0;
}

UNIT_FIXTURE(.setup = open_pair, .teardown = teardown);

/* Deliver everything that is owed. */
static void
carry(void)
{
	while (pair_owed(&pair, 0, &k)) {
		nb_long += k.p.op == SAN_OP_PROBE && k.p.payload_len != 0;
		probed = RTE_MAX(probed, k.p.payload_len);
		if (k.p.payload_len <= limit + LONG)
			pair_recv(&pair, 1, &k, SAN_RX_ACKED);
	}
	while (pair_report(&pair, 1))
		;
}

static void
assign(uint16_t len, struct san_pdl_entry *e)
{
	struct san_pdl_room room;

	*e = (struct san_pdl_entry){.op = SAN_OP_PUSH_UNSLCTD_DATA, .len = len};
	san_pdl_tx_room(pair.pdl[0], pair.c[0], pair.now, &room);
	assert_true(room.nb_data > 0 && room.nb_credit > 0);
	san_pdl_tx_assign(pair.pdl[0], pair.c[0], e, pair.now);
	san_pdl_sched_end(pair.pdl[0], pair.c[0], false);
	san_pdl_conn_arm(pair.pdl[0], pair.c[0]);
}

/* It arrives and is acknowledged, and everything owed is sent both ways. */
static void
send_data(uint16_t len)
{
	struct san_pdl_entry e;

	assign(len, &e);
	pair_build(&pair, 0, &e, &k);
	assert_int_equal(arrive(&k, SAN_RX_ACKED), SAN_DROP_NONE);
	carry();
}

/* Continue the search for *ns*, with all PROBEs answered. */
static void
go_on(uint64_t ns)
{
	uint64_t end = pair.now + ns;

	while (pair.now < end) {
		pair_pass(&pair, RTE_MIN(end - pair.now, 100 * SAN_NS_PER_US));
		carry();
		san_pdl_check(pair.pdl[0]);
	}
}

UNIT_CASE_ALONE(san_pdl_pmtu_init__begins_with_what_is_safe)
{
	struct san_pdl_conf conf = pair_conf();

	open_pair();
	assert_int_equal(pair.c[0]->mtu, BEGIN);
	assert_int_equal(pair.c[0]->mtu_max, BOTH);
	san_pdl_pmtu_init(pair.pdl[0], pair.c[0], 932); /* both accept less than that */
	assert_int_equal(pair.c[0]->mtu, 932);
	pair.c[0]->path.dst = (struct san_ip){{0xfd, [15] = 1}};
	san_pdl_pmtu_init(pair.pdl[0], pair.c[0], 8888);
	assert_int_equal(pair.c[0]->mtu, 1388);
	pair_close(&pair);
	conf.pmtu_after = 0;
	pair_open(&pair, &conf, 16, 64);
	san_pdl_pmtu_init(pair.pdl[0], pair.c[0], BOTH);
	assert_int_equal(pair.c[0]->mtu, BOTH);
	send_data(BOTH);
	assert_int_equal(pair.c[0]->pmtu.size, 0);
	pair_close(&pair);
}

/* A sender of few full packets, as in an incast, sends no long PROBE. */
UNIT_CASE(san_pdl_pmtu_on_sent__when_it_is_worth_it)
{
	struct san_pdl_conf conf;

	san_pdl_conf_default(&conf);
	pair.pdl[0]->conf.pmtu_after = conf.pmtu_after;
	for (int i = 1; i < conf.pmtu_after; i++) {
		send_data(BEGIN);
		send_data(BEGIN - 1);
	}
	go_on(SAN_NS_PER_S);
	assert_int_equal(nb_long, 0);
	send_data(BEGIN);
	go_on(SAN_NS_PER_S);
	assert_true(nb_long > 0);
	assert_int_equal(pair.c[0]->mtu, BOTH);
}

UNIT_CASE(san_pdl_pmtu_on_sent__from_the_first_full_packet)
{
	struct san_pdl_entry e;

	send_data(BEGIN - 1);
	go_on(SAN_NS_PER_S);
	assert_int_equal(nb_long, 0);
	assign(BEGIN, &e);
	/* the long one, and the short one behind it; one ACK reports both */
	assert_owes(0, &k, SAN_OP_PROBE);
	assert_int_equal(k.p.payload_len, BOTH + LONG);
	pair_recv(&pair, 1, &k, SAN_RX_ACKED);
	assert_owes(0, &k, SAN_OP_PROBE);
	assert_int_equal(k.p.payload_len, 0);
	pair_recv(&pair, 1, &k, SAN_RX_ACKED);
	assert_false(pair_owed(&pair, 0, &k));
	assert_owes(1, &k, SAN_OP_ACK);
	assert_int_equal(k.p.rsn, BOTH + LONG);
	pair_recv(&pair, 0, &k, SAN_RX_ACKED);
	assert_int_equal(pair.c[0]->mtu, BOTH);
	assert_int_equal(pair.pdl[0]->stats.nb_mtu_raised, 1);
	assert_int_equal(pair.c[1]->mtu, BEGIN); /* each direction separately */
	/* an answered PROBE is not reported again */
	send_data(BOTH);
	san_pdl_ack_owe(pair.pdl[1], pair.c[1], true);
	assert_true(pair_owed(&pair, 1, &k));
	assert_int_equal(k.p.rsn, 0);
	go_on(SAN_NS_PER_S);
	assert_int_equal(nb_long, 0);
}

/* An answer to a shorter PROBE, or to none that is outstanding, proves nothing. */
UNIT_CASE(san_pdl_pmtu_answer__only_to_this_probe)
{
	struct san_pdl_entry e;

	san_pdl_pmtu_answer(pair.pdl[0], pair.c[0], BOTH + LONG, pair.now);
	assert_int_equal(pair.c[0]->mtu, BEGIN);
	assign(BEGIN, &e);
	while (pair_owed(&pair, 0, &k))
		;
	san_pdl_pmtu_answer(pair.pdl[0], pair.c[0], BOTH + LONG - 1, pair.now);
	assert_int_equal(pair.c[0]->mtu, BEGIN);
	san_pdl_pmtu_answer(pair.pdl[0], pair.c[0], BOTH + LONG, pair.now);
	assert_int_equal(pair.c[0]->mtu, BOTH);
}

UNIT_CASE(san_pdl_pmtu_on_timer__the_next_shorter)
{
	limit = 5000;
	send_data(BEGIN);
	assert_int_equal(pair.c[0]->pmtu.size, BOTH);
	go_on(50 * SAN_NS_PER_MS);
	assert_int_equal(nb_long, 4); /* three that are too long, one that is not */
	assert_int_equal(pair.c[0]->mtu, MID);
	assert_int_equal(pair.c[0]->pmtu.size, 0);
	/* the path may change: probed after ten minutes, and only if packets are full */
	limit = UINT16_MAX;
	send_data(MID);
	go_on(500 * SAN_NS_PER_S);
	send_data(MID);
	assert_int_equal(nb_long, 4);
	go_on(101 * SAN_NS_PER_S);
	assert_int_equal(nb_long, 4);
	send_data(MID);
	assert_int_equal(nb_long, 5);
	assert_int_equal(pair.c[0]->mtu, BOTH);
}

UNIT_CASE(san_pdl_pmtu_on_timer__nothing_longer)
{
	limit = BEGIN;
	send_data(BEGIN);
	go_on(100 * SAN_NS_PER_MS);
	assert_int_equal(nb_long, 6); /* three of each length */
	assert_int_equal(pair.c[0]->mtu, BEGIN);
	assert_int_equal(pair.c[0]->pmtu.size, 0);
	send_data(BEGIN);
	go_on(SAN_NS_PER_S);
	assert_int_equal(nb_long, 6);
}

/* Without any answer there is no result for the length. */
UNIT_CASE(san_pdl_pmtu_on_timer__silence_is_no_verdict)
{
	send_data(BEGIN - 1);
	san_pdl_pmtu_on_sent(pair.pdl[0], pair.c[0], BEGIN, pair.now);
	while (pair.c[0]->pmtu.size != 0) {
		assert_int_equal(pair.c[0]->pmtu.size, BOTH);
		while (pair_owed(&pair, 0, &k))
			nb_long += k.p.payload_len != 0;
		pair_pass(&pair, SAN_NS_PER_MS);
	}
	assert_int_equal(nb_long, 8);
	/* the peer answers again */
	send_data(BEGIN);
	assert_int_equal(pair.c[0]->mtu, BOTH);
}

/* A PROBE that is lost for another reason is sent again. */
UNIT_CASE(san_pdl_pmtu_on_timer__again)
{
	limit = BEGIN;
	send_data(BEGIN);
	limit = UINT16_MAX;
	go_on(10 * SAN_NS_PER_MS);
	assert_int_equal(nb_long, 2);
	assert_int_equal(pair.c[0]->mtu, BOTH);
}

UNIT_CASE(san_pdl_pmtu_stop__with_the_connection)
{
	limit = BEGIN;
	send_data(BEGIN);
	san_pdl_conn_close(pair.pdl[0], pair.c[0]);
	nb_long = 0;
	go_on(SAN_NS_PER_S);
	while (pair_owed(&pair, 0, &k))
		;
	assert_int_equal(nb_long, 0);
	assert_int_equal(pair.c[0]->pmtu.size, 0);
}

/* RT-37: which losses of a long packet prove that the path is too narrow for it. */
UNIT_CASE_ALONE(san_pdl_pmtu_on_loss__what_it_means)
{
	static const struct {
		uint8_t retries, early;
		bool proven; /* a long packet has arrived before */
		bool heard;  /* the peer was heard since it was sent */
		bool passed; /* a long packet sent later has arrived */
		bool full;   /* the peer is full */
		bool falls;
	} rows[] = {
		{.retries = 1, .heard = true, .falls = true},
		{.early = 1, .heard = true, .falls = true},
		{.retries = 1},
		{.retries = 1, .heard = true, .passed = true},
		{.retries = 1, .heard = true, .full = true},
		{.retries = 2, .proven = true, .heard = true},
		{.retries = 3, .proven = true, .heard = true, .falls = true},
		{.retries = 2, .early = 1, .proven = true, .heard = true, .falls = true},
		{.early = 3, .proven = true, .heard = true},
		{.retries = 3, .proven = true},
		{.retries = 3, .proven = true, .heard = true, .passed = true},
		{.retries = 3, .proven = true, .heard = true, .full = true},
	};
	struct san_pdl_entry e, *lost;
	struct san_pdl_conn *c;
	struct san_bitmap *rcvd;
	uint32_t later;

	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		open_pair();
		c = pair.c[0];
		c->pmtu.proven = rows[i].proven;
		assign(BEGIN, &e);
		lost = san_pdl_win_tx_entry(c->txb, SAN_WIN_DATA, c->tx[SAN_WIN_DATA].base);
		lost->retries = rows[i].retries;
		lost->state += rows[i].early; /* SAN_ENT_FAST_RTX: the low bits */
		pair.now += SAN_NS_PER_US;
		assign(BEGIN, &e);
		rcvd = &c->txb->rcvd[SAN_WIN_DATA];
		later = c->tx[SAN_WIN_DATA].base + 1;
		if (rows[i].passed)
			san_bitmap_set(rcvd, later);
		c->last_ack_ns = rows[i].heard ? pair.now : 0;
		c->peer_level = rows[i].full ? 500 : 499;
		san_pdl_pmtu_on_loss(pair.pdl[0], c, lost, pair.now);
		if (c->mtu != (rows[i].falls ? SURE : BEGIN))
			fail_msg("row %u: %u bytes", i, c->mtu);
		san_bitmap_clear(rcvd, later);
		pair_close(&pair);
	}
}

/* A packet of *len* bytes never arrives, *short_ones* do; true: it fails by its length. */
static bool
dies_of_length(uint16_t len, bool short_ones)
{
	struct san_pdl_entry e;
	bool blamed;

	open_pair();
	assign(len, &e);
	while (!pair.c[0]->failed) {
		pair_pass(&pair, SAN_NS_PER_MS);
		while (pair_again(&pair, 0, &k))
			;
		pair.now += SAN_NS_PER_US;
		while (pair_owed(&pair, 0, &k)) {
			if (short_ones && k.p.payload_len == 0)
				pair_recv(&pair, 1, &k, SAN_RX_ACKED);
		}
		while (pair_report(&pair, 1))
			;
	}
	blamed = pair.c[0]->too_narrow;
	pair_close(&pair);
	return blamed;
}

UNIT_CASE_ALONE(san_pdl_pmtu_is_to_blame__if_short_ones_get_through)
{
	assert_true(dies_of_length(BEGIN, true));
	assert_true(dies_of_length(SURE + 4, true));
	assert_false(dies_of_length(SURE, true));
	assert_false(dies_of_length(BEGIN, false));
}
