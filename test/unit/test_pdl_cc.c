/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

#define TARGET (25 * SAN_NS_PER_US)
#define RTT    (20 * SAN_NS_PER_US)
#define PKT(n) ((n)*SAN_CC_ONE)

static const struct san_pdl_cc_conf conf = {
	.target_ns = TARGET,
	.window_init = PKT(32),
	.window_min = SAN_CC_ONE / 100,
	.window_max = PKT(256),
};

static struct san_pdl_cc cc;
static struct san_pdl_cc_sample s;

/* One round trip with *n* ACKs, each with *delay_ns*. */
static void
round_trip(uint64_t delay_ns, uint32_t n)
{
	s.rtt_ns = RTT;
	s.delay_ns = delay_ns;
	s.limited = true;
	for (uint32_t i = 0; i < n; i++) {
		s.now_ns += RTT / n;
		s.nb_acked = RTE_MAX(cc.window / SAN_CC_ONE / n, 1u);
		cc.ops->on_ack(&cc, &conf, &s);
	}
}

static void
round_trips(uint32_t nb, uint64_t delay_ns, uint32_t n)
{
	while (nb-- > 0)
		round_trip(delay_ns, n);
}

static void
start(const struct san_pdl_cc_ops *ops)
{
	memset(&s, 0, sizeof(s));
	s.now_ns = SAN_NS_PER_S;
	san_pdl_cc_init(&cc, ops, &conf);
	assert_ptr_equal(cc.ops, ops);
	assert_true(san_pdl_cc_window(&cc) == conf.window_init);
}

/* ---- swift ---- */

/* Without any sign of a limit: the window doubles each round trip while it is used. */
UNIT_CASE(swift__doubles_at_first)
{
	uint32_t before;

	start(&san_pdl_cc_swift);
	for (int i = 1; i <= 3; i++) {
		round_trip(TARGET / 2, 1);
		assert_int_equal(cc.window, PKT(32) << i);
	}
	round_trip(TARGET / 2, 1);
	assert_int_equal(cc.window, conf.window_max);
	/* a few late samples are due to its own bursts */
	start(&san_pdl_cc_swift);
	s.rtt_ns = RTT;
	s.limited = true;
	for (int i = 0; i < 6; i++) {
		s.now_ns += RTT / 2;
		s.delay_ns = i % 2 == 0 ? 3 * TARGET : TARGET / 2;
		s.nb_acked = cc.window / SAN_CC_ONE / 2;
		before = cc.window;
		cc.ops->on_ack(&cc, &conf, &s);
		assert_int_equal(cc.window, RTE_MIN(before + PKT(s.nb_acked), conf.window_max));
	}
}

/* A late round trip, a loss, a mark, a timeout, a full receiver: each of them ends the doubling. */
UNIT_CASE(swift__doubles_until_first_hint)
{
	uint32_t before;

	for (int i = 0; i < 6; i++) {
		start(&san_pdl_cc_swift);
		round_trip(i == 0 ? 3 * TARGET : TARGET / 2, 8);
		s.now_ns += RTT;
		s.delay_ns = TARGET / 2;
		s.nb_lost = i == 1;
		s.nb_ce = i == 2;
		s.rx_level = i == 5 ? 900 : 0;
		cc.ops->on_ack(&cc, &conf, &s);
		s.nb_lost = s.nb_ce = s.rx_level = 0;
		if (i == 3)
			cc.ops->on_loss(&cc, &conf, RTT, s.now_ns);
		else if (i == 4)
			cc.ops->on_timeout(&cc, &conf, s.now_ns);
		before = cc.window;
		round_trip(TARGET / 2, 8);
		assert_in_range(cc.window, before, before + PKT(2));
	}
}

/* A mark reported by an ACK, which has a tag, counts before delay is visible; a CNP does not. */
UNIT_CASE(swift__mark_cuts_once_per_rtt)
{
	uint32_t before;

	start(&san_pdl_cc_swift);
	assert_null(cc.ops->on_cnp);
	round_trip(TARGET / 2, 1);
	before = cc.window;
	s.nb_ce = 1;
	round_trip(TARGET / 2, 8);
	s.nb_ce = 0;
	assert_in_range(cc.nb_cuts, 1, 2);
	assert_in_range(cc.window, before / 2, before - 1);
}

/* RT-9: with less than a packet per round trip a mark is random: the window stays. */
UNIT_CASE(swift__mark_below_a_packet_is_no_cut)
{
	start(&san_pdl_cc_swift);
	cc.window = SAN_CC_ONE - 1;
	s.nb_ce = 1;
	round_trip(TARGET / 2, 1);
	assert_int_equal(cc.nb_cuts, 0);
	assert_int_equal(cc.window, SAN_CC_ONE - 1);
	cc.window = SAN_CC_ONE;
	round_trip(TARGET / 2, 1);
	assert_int_equal(cc.nb_cuts, 1);
	s.nb_ce = 0;
}

/* Additive increase: about one packet per round trip, and only when the window is used. */
UNIT_CASE(swift__grows_below_target)
{
	int i;

	start(&san_pdl_cc_swift);
	cc.ops->on_loss(&cc, &conf, RTT, s.now_ns); /* ends the doubling */
	round_trips(20, TARGET / 2, 8);
	assert_in_range(cc.window, PKT(32 + 17), PKT(32 + 21));
	assert_int_equal(cc.level, 0);
	s.limited = false;
	s.nb_acked = 100;
	s.now_ns += RTT;
	i = (int)cc.window;
	cc.ops->on_ack(&cc, &conf, &s);
	assert_int_equal(cc.window, i);
	round_trips(1000, TARGET / 2, 8);
	assert_int_equal(cc.window, conf.window_max);
}

/*
 * RT-9: four times the target delay for ten round trips at least halves the window; the level
 * reports it; both recover.
 */
UNIT_CASE(swift__rt9)
{
	start(&san_pdl_cc_swift);
	round_trips(5, TARGET / 2, 4);
	round_trips(10, 4 * TARGET, 4);
	assert_true(cc.window <= PKT(16));
	assert_true(cc.level > 100);
	round_trips(60, TARGET / 2, 4);
	assert_true(cc.window >= PKT(32));
	assert_int_equal(cc.level, 0);
}

/* RULE-12: one late sample, or one round trip of them, does not cut. */
UNIT_CASE(swift__late_sample_or_stall_does_not_cut)
{
	start(&san_pdl_cc_swift);
	round_trips(5, TARGET / 2, 4);
	round_trip(3 * SAN_NS_PER_MS, 1);
	assert_int_equal(cc.nb_cuts, 0);
	round_trips(5, TARGET / 2, 4);
	round_trip(3 * SAN_NS_PER_MS, 30); /* a stall delays everything in flight */
	assert_int_equal(cc.nb_cuts, 0);
	assert_int_equal(cc.level, 0);
	round_trips(5, 5 * TARGET, 4); /* several in a row */
	assert_true(cc.nb_cuts > 0);
}

UNIT_CASE(swift__one_cut_per_rtt_at_most_half)
{
	uint32_t before, cuts;

	start(&san_pdl_cc_swift);
	round_trips(3, 6 * TARGET, 4);
	for (int i = 0; i < 10; i++) {
		before = cc.window;
		cuts = cc.nb_cuts;
		round_trip(6 * TARGET, 16);
		assert_in_range(cc.nb_cuts - cuts, 0, 1);
		assert_true(cc.window >= before / 2);
	}
	/* just above the target: a small cut */
	start(&san_pdl_cc_swift);
	round_trips(4, TARGET + TARGET / 4, 4);
	assert_true(cc.nb_cuts > 0 && cc.window > PKT(32) * 7 / 10);
}

/* Window below one packet: down to the minimum, and up again. */
UNIT_CASE(swift__below_one_packet)
{
	start(&san_pdl_cc_swift);
	round_trips(100, 10 * TARGET, 1);
	assert_int_equal(cc.window, conf.window_min);
	round_trips(20, TARGET / 2, 1);
	assert_true(cc.window >= PKT(2));
}

/*
 * RT-9: a round trip of a long path counts for several: the window grows by two packets, and the
 * part of the target for many flows is that of half the window.
 */
UNIT_CASE(swift__long_path_grows_more)
{
	start(&san_pdl_cc_swift);
	san_pdl_cc_set_path(&cc, &conf, 2 * TARGET);
	cc.ops->on_loss(&cc, &conf, RTT, s.now_ns); /* ends the doubling */
	round_trips(20, TARGET / 2, 8);
	assert_in_range(cc.window, PKT(32 + 34), PKT(32 + 42));
	for (int i = 0; i < 2; i++) {
		start(&san_pdl_cc_swift);
		san_pdl_cc_set_path(&cc, &conf, i * 2 * TARGET);
		cc.window = PKT(4); /* target 31.25 us, of half as many packets 37.5 us */
		cc.limited = true;
		round_trips(3, 35 * SAN_NS_PER_US, 4);
		assert_true((cc.nb_cuts == 0) == (i == 1));
	}
}

/* RT-9: the least window is a rate, the same for all paths, and never more than a packet. */
UNIT_CASE(san_pdl_cc_set_path__floor)
{
	start(&san_pdl_cc_swift);
	san_pdl_cc_set_path(&cc, &conf, 40 * TARGET);
	round_trips(100, 10 * TARGET, 1);
	assert_int_equal(cc.window, 21 * conf.window_min);
	san_pdl_cc_set_path(&cc, &conf, SAN_NS_PER_S);
	assert_int_equal(cc.floor, SAN_CC_ONE);
	san_pdl_cc_set_path(&cc, &conf, 0);
	assert_int_equal(cc.floor, conf.window_min);
}

/* Delay beyond that of any fabric: not below the initial window; timeouts: one packet. */
UNIT_CASE(swift__host_that_does_not_run)
{
	start(&san_pdl_cc_swift);
	round_trips(100, 8 * SAN_NS_PER_MS, 4);
	assert_int_equal(cc.window, conf.window_init);
	for (int i = 0; i < 10; i++) {
		s.now_ns += RTT;
		cc.ops->on_timeout(&cc, &conf, s.now_ns);
	}
	assert_int_equal(cc.window, PKT(1));
}

/* One report: this many packets arrived, this many are taken for lost. */
static void
told(uint32_t nb_acked, uint32_t nb_lost)
{
	s.rtt_ns = RTT;
	s.nb_acked = nb_acked;
	s.nb_lost = nb_lost;
	cc.ops->on_ack(&cc, &conf, &s);
	if (nb_lost != 0)
		cc.ops->on_loss(&cc, &conf, RTT, s.now_ns);
}

/* *n* packets, a microsecond apart, each *period*th of them lost; with negligible delay. */
static void
lose_each(uint32_t period, uint32_t n)
{
	s.delay_ns = TARGET / 2;
	s.limited = false;
	for (uint32_t i = 1; i <= n; i++) {
		s.now_ns += SAN_NS_PER_US;
		told(i % period != 0, i % period == 0);
	}
}

/* A bad link does not improve with a lower rate: up to 1 of 10, over about 256 packets. */
UNIT_CASE(swift__loss_up_to_a_share_is_noise)
{
	struct san_prng prng;

	start(&san_pdl_cc_swift);
	told(1, 0);
	told(0, 25); /* of 256 */
	assert_int_equal(cc.nb_cuts, 0);
	start(&san_pdl_cc_swift);
	lose_each(20, 100000);
	assert_int_equal(cc.nb_cuts, 0);
	lose_each(11, 100000);
	assert_int_equal(cc.nb_cuts, 0);
	start(&san_pdl_cc_swift);
	san_prng_seed(&prng, 5);
	for (uint32_t i = 0; i < 1000000; i++) {
		bool lost = san_prng_below(&prng, 100) < 5;

		s.now_ns += SAN_NS_PER_US;
		told(!lost, lost);
	}
	/* 26 of 256 happens on a 5 % link, too, but rarely */
	assert_true(cc.nb_cuts < 20);
}

UNIT_CASE(swift__loss_above_the_share)
{
	start(&san_pdl_cc_swift);
	told(0, 26); /* of 256 */
	for (uint32_t i = 0; i < 5; i++)
		cc.ops->on_loss(&cc, &conf, RTT, s.now_ns); /* one cut per round trip */
	assert_int_equal(cc.nb_cuts, 1);
	assert_int_equal(cc.window, PKT(28)); /* 7/8 */
	cc.ops->on_loss(&cc, &conf, RTT, s.now_ns + RTT - 1);
	assert_int_equal(cc.window, PKT(28));
	cc.ops->on_loss(&cc, &conf, RTT, s.now_ns + RTT);
	assert_int_equal(cc.window, PKT(49) / 2);
	start(&san_pdl_cc_swift);
	lose_each(9, 100000);
	assert_true(cc.nb_cuts > 0);
}

/* 20 %: one cut per round trip, down to where fast retransmit still works; forgotten later. */
UNIT_CASE(swift__much_loss_cuts_once_per_rtt)
{
	uint32_t cuts, window;
	uint64_t cut_ns = 0;

	start(&san_pdl_cc_swift);
	for (uint32_t i = 0; i < 400; i++) { /* 2000 packets, 100 round trips */
		cuts = cc.nb_cuts;
		window = cc.window;
		lose_each(5, 5);
		if (cc.nb_cuts == cuts)
			continue;
		assert_int_equal(cc.nb_cuts, cuts + 1);
		assert_int_equal(cc.window, RTE_MAX((uint64_t)window * 7 / 8, PKT(4)));
		assert_true(cut_ns == 0 || s.now_ns == cut_ns + RTT);
		cut_ns = s.now_ns;
	}
	assert_in_range(cc.nb_cuts, 90, 95); /* the first one when the share is known */
	assert_int_equal(cc.window, PKT(4));
	cuts = cc.nb_cuts;
	told(1000, 0);
	lose_each(20, 10000);
	assert_int_equal(cc.nb_cuts, cuts);
}

/* With delay it is congestion, even if one packet of many is lost. */
UNIT_CASE(swift__loss_with_delay_halves)
{
	uint32_t window;

	start(&san_pdl_cc_swift);
	round_trips(3, 2 * TARGET, 1);
	cc.last_cut_ns = 0;
	window = cc.window;
	cc.ops->on_loss(&cc, &conf, RTT, s.now_ns + RTT);
	assert_int_equal(cc.window, window / 2);
	cc.ops->on_loss(&cc, &conf, RTT, s.now_ns + 2 * RTT - 1);
	assert_int_equal(cc.window, window / 2);
	cc.window = PKT(4);
	cc.ops->on_loss(&cc, &conf, RTT, s.now_ns + 2 * RTT);
	assert_int_equal(cc.window, PKT(2));
}

/* ---- the receiver's host ---- */

UNIT_CASE(san_pdl_cc_host__shrinks_and_recovers)
{
	static const struct san_pdl_cc_ops *const ops[] = {&san_pdl_cc_swift, &san_pdl_cc_dcqcn};

	for (size_t at = 0; at < RTE_DIM(ops); at++) {
		start(ops[at]);
		s.rx_level = 900;
		round_trip(TARGET / 2, 8);
		assert_true(san_pdl_cc_window(&cc) >= PKT(16)); /* once per round trip */
		assert_true(san_pdl_cc_window(&cc) < PKT(32));
		round_trips(20, TARGET / 2, 8);
		assert_int_equal(san_pdl_cc_window(&cc), SAN_CC_ONE);
		s.rx_level = 100;
		round_trips(200, TARGET / 2, 8);
		assert_true(san_pdl_cc_window(&cc) >= PKT(32));
	}
}

/* ---- dcqcn ---- */

UNIT_CASE(dcqcn__marks_cut_quiet_recovers)
{
	int i;

	start(&san_pdl_cc_dcqcn);
	for (i = 0; i < 10; i++) {
		s.nb_ce = 1;
		round_trip(TARGET / 2, 4);
	}
	assert_in_range(cc.nb_cuts, 8, 11); /* once per round trip */
	assert_true(cc.window <= PKT(16) && cc.level > 100);
	s.nb_ce = 0;
	round_trips(200, TARGET / 2, 4);
	assert_true(cc.window >= PKT(32));
	assert_int_equal(cc.level, 0);
	/* alpha is small by now: a single mark cuts little */
	i = (int)cc.window;
	cc.ops->on_cnp(&cc, &conf, RTT, s.now_ns);
	assert_true(cc.window < (uint32_t)i && cc.window > (uint32_t)i * 9 / 10);
}

/* RT-21: a CNP announces a mark that an ACK will report; otherwise there is no second cut. */
UNIT_CASE(dcqcn__cnp_until_an_ack_confirms)
{
	uint32_t before;

	start(&san_pdl_cc_dcqcn);
	for (uint32_t i = 0; i < 100; i++) {
		s.now_ns += RTT;
		cc.ops->on_cnp(&cc, &conf, RTT, s.now_ns);
	}
	assert_int_equal(cc.nb_cuts, 1);
	s.nb_ce = 1;
	round_trip(TARGET / 2, 1);
	s.nb_ce = 0;
	s.now_ns += RTT;
	before = cc.window;
	cc.ops->on_cnp(&cc, &conf, RTT, s.now_ns);
	assert_true(cc.window < before);
}

/* ---- fixed ---- */

UNIT_CASE(fixed__does_not_move)
{
	start(&san_pdl_cc_fixed);
	round_trips(20, 10 * TARGET, 4);
	assert_null(cc.ops->on_loss);
	assert_null(cc.ops->on_timeout);
	assert_int_equal(san_pdl_cc_window(&cc), conf.window_init);
}

/* ---- in a connection ---- */

/* One packet and its ACK, each way half of *rtt_ns*. */
static void
paced_exchange(uint64_t rtt_ns)
{
	while (!pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k))
		pair_pass(&pair, 1000); /* paced */
	pair_pass(&pair, rtt_ns / 2);
	assert_int_equal(pair_recv(&pair, 1, &k, SAN_RX_ACKED), SAN_DROP_NONE);
	assert_true(pair_owed(&pair, 1, &ack));
	pair_pass(&pair, rtt_ns / 2);
	assert_int_equal(pair_recv(&pair, 0, &ack, SAN_RX_REFUSED), SAN_DROP_NONE);
	pair.pdl[0]->nb_acked = 0;
}

static void
paced_exchanges(uint32_t nb, uint64_t rtt_ns)
{
	while (nb-- > 0)
		paced_exchange(rtt_ns);
}

/* A connection with the usual configuration, which is *pc*. */
static struct san_pdl_conf pc;

static struct san_pdl_conn *
open_one(void)
{
	pc = pair_conf();
	pair_open(&pair, &pc, 16, 64);
	return pair.c[0];
}

/* All of RT-9: window and RTO of a connection, through the ACKs' timestamps. */
UNIT_CASE(connection__rt9)
{
	struct san_pdl_conn *c = open_one();
	uint32_t window;
	uint64_t rto;

	paced_exchanges(20, TARGET / 2);
	window = san_pdl_cc_window(&c->cc);
	rto = c->rtt.rto_ns;
	assert_true(window == pc.cc_conf.window_init);
	assert_in_range(rto, pc.rto_min_ns + TARGET / 2, pc.rto_min_ns + TARGET);
	paced_exchanges(10, 4 * TARGET);
	assert_true(san_pdl_cc_window(&c->cc) <= window / 2);
	assert_true(c->rtt.rto_ns > rto + rto / 4);
	assert_true(pair.pdl[0]->stats.nb_cc_cuts > 0);
	paced_exchanges(40, TARGET / 2);
	pair.now += 2 * SAN_NS_PER_S; /* timeouts fall by time */
	paced_exchanges(1, TARGET / 2);
	assert_in_range(c->rtt.rto_ns, rto, rto + TARGET / 10);
	/* one packet in flight is no sign that more is possible: fill the window to grow it */
	for (int i = 0; i < 2000 && san_pdl_cc_window(&c->cc) < window; i++) {
		c->cc.ops->on_ack(&c->cc, &pc.cc_conf,
				  &(struct san_pdl_cc_sample){.now_ns = pair.now += TARGET,
							      .rtt_ns = TARGET,
							      .delay_ns = TARGET / 2,
							      .nb_acked = 16,
							      .limited = true});
	}
	assert_true(san_pdl_cc_window(&c->cc) >= window);
	pair_close(&pair);
}

/* The handshake took as long: the delay of the path does not cut, a queue on top of it does. */
UNIT_CASE(connection__long_path_is_no_queue)
{
	const uint64_t path_ns = 400 * SAN_NS_PER_US;
	struct san_pdl_conn *c = open_one();

	san_pdl_rtt_path(pair.pdl[0], c, path_ns);
	assert_true(c->rtt.srtt_ns == path_ns);
	paced_exchanges(50, path_ns);
	assert_int_equal(c->cc.nb_cuts, 0);
	assert_int_equal(san_pdl_cc_window(&c->cc), pc.cc_conf.window_init);
	paced_exchanges(10, path_ns + 3 * TARGET);
	assert_true(c->cc.nb_cuts > 0);
	pair_close(&pair);
}

/* A short handshake, then a queue of other flows: that is not the path. */
UNIT_CASE(connection__joins_a_standing_queue)
{
	const uint64_t queue_ns = 400 * SAN_NS_PER_US;
	struct san_pdl_conn *c = open_one();

	san_pdl_rtt_path(pair.pdl[0], c, 10 * SAN_NS_PER_US);
	paced_exchanges(12, queue_ns);
	assert_true(c->cc.nb_cuts >= 6);
	assert_true(san_pdl_cc_window(&c->cc) < SAN_CC_ONE);
	assert_true(c->rtt.base_ns == 10 * SAN_NS_PER_US);
	pair_close(&pair);
}

/* Below one packet: one per round trip / window, by the connection's timer. */
UNIT_CASE(connection__paced_below_one_packet)
{
	struct san_pdl_room room;
	struct san_pdl_conn *c = open_one();
	uint64_t sent_ns;

	paced_exchanges(10, 40 * SAN_NS_PER_US);
	c->cc.window = SAN_CC_ONE / 4;
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
	sent_ns = pair.now;
	pair_recv(&pair, 1, &k, SAN_RX_ACKED);
	/* its ACK has arrived, nothing is in flight, and still the next packet waits */
	assert_true(pair_report(&pair, 1));
	pair.pdl[0]->nb_acked = 0;
	c->cc.window = SAN_CC_ONE / 4;
	san_pdl_tx_room(pair.pdl[0], c, pair.now, &room);
	assert_int_equal(room.nb_credit, 0);
	assert_true(room.nb_data > 0); /* grants may be sent */
	san_pdl_sched_end(pair.pdl[0], c, false);
	while (san_pdl_sched_next(pair.pdl[0]) != NULL)
		continue;
	while (!c->in_ready)
		pair_pass(&pair, 1000);
	assert_in_range(pair.now - sent_ns, 3 * c->rtt.srtt_ns, 5 * c->rtt.srtt_ns);
	san_pdl_tx_room(pair.pdl[0], c, pair.now, &room);
	assert_int_equal(room.nb_credit, 1);
	san_pdl_sched_end(pair.pdl[0], c, false);
	pair_close(&pair);
}
