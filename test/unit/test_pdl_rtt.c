/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

UNIT_FIXTURE(.setup = setup_pair, .teardown = teardown);

#define US SAN_NS_PER_US

UNIT_CASE(san_pdl_rtt_sample__smooths)
{
	const struct san_pdl_conf *conf = &pair.pdl[0]->conf;
	struct san_pdl_rtt r;

	r = (struct san_pdl_rtt){.rto_ns = conf->rto_init_ns};
	assert_true(r.rto_ns == conf->rto_init_ns);
	san_pdl_rtt_sample(&r, conf, 8000, 0, UINT32_MAX);
	assert_true(r.srtt_ns == 8000 && r.var_ns == 4000);
	san_pdl_rtt_sample(&r, conf, 16000, 0, UINT32_MAX);
	assert_true(r.srtt_ns == 9000 && r.var_ns == 5000);
	assert_true(r.rto_ns == r.srtt_ns + conf->rto_min_ns); /* the floor */
	for (int i = 0; i < 100; i++)
		san_pdl_rtt_sample(&r, conf, 3 * SAN_NS_PER_MS, 0, UINT32_MAX);
	assert_in_range(r.srtt_ns, 29 * SAN_NS_PER_MS / 10, 3 * SAN_NS_PER_MS);
	/* a constant round trip leaves room for other delays */
	assert_in_range(r.rto_ns, r.srtt_ns + conf->rto_min_ns, 5 * SAN_NS_PER_MS);
	for (int i = 0; i < 10; i++)
		san_pdl_rtt_sample(&r, conf, SAN_NS_PER_S, 0, UINT32_MAX);
	assert_true(r.rto_ns == conf->rto_max_ns);
}

/* RT-7: the minimum timeout, or the variation if larger, is added to the round trip. */
UNIT_CASE(san_pdl_rtt_sample__rto_is_on_top)
{
	const struct san_pdl_conf *conf = &pair.pdl[0]->conf;
	static const uint32_t ms[] = {1, 4, 30};
	struct san_pdl_rtt r;

	for (uint32_t i = 0; i < RTE_DIM(ms); i++) {
		r = (struct san_pdl_rtt){.rto_ns = conf->rto_init_ns};
		san_pdl_rtt_sample(&r, conf, ms[i] * SAN_NS_PER_MS, 0, UINT32_MAX);
		assert_true(r.rto_ns == r.srtt_ns + RTE_MAX(4 * r.var_ns, conf->rto_min_ns));
		for (uint32_t n = 0; n < 200; n++)
			san_pdl_rtt_sample(&r, conf, ms[i] * SAN_NS_PER_MS, 0, UINT32_MAX);
		assert_true(4 * r.var_ns < conf->rto_min_ns / 100);
		assert_true(r.rto_ns == r.srtt_ns + conf->rto_min_ns);
	}
	san_pdl_rtt_sample(&r, conf, 40 * SAN_NS_PER_MS, 0, UINT32_MAX);
	assert_true(4 * r.var_ns > 5 * conf->rto_min_ns);
	assert_true(r.rto_ns == r.srtt_ns + 4 * r.var_ns);
}

/* RT-7: always 4 ms, and sometimes half a millisecond more: that is no loss. */
UNIT_CASE(san_pdl_rtt_sample__steady_long_path)
{
	const struct san_pdl_conn *c = pair.c[0];

	san_pdl_rtt_path(pair.pdl[0], pair.c[0], 4 * SAN_NS_PER_MS);
	for (uint32_t i = 0; i < 400; i++) {
		exchange(4 * SAN_NS_PER_MS + (i % 25 == 24 ? SAN_NS_PER_MS / 2 : 0));
		assert_int_equal(c->nb_rto, 0);
	}
	assert_int_equal(c->nb_rtx, 0);
}

/*
 * RT-7: a machine that stalls now and then has its effect for about a second, however many samples
 * come between two stalls.
 */
UNIT_CASE(san_pdl_rtt_sample__rto_falls_by_time)
{
	const struct san_pdl_conf *conf = &pair.pdl[0]->conf;
	const uint64_t ms = SAN_NS_PER_MS, calm_ns = ms + conf->rto_min_ns;
	static const uint32_t gaps_us[] = {1, 10, 100, 1000};
	struct san_pdl_rtt r;

	UNIT_EACH(us, gaps_us) {
		r = (struct san_pdl_rtt){.rto_ns = 100 * ms};
		san_pdl_rtt_sample(&r, conf, ms, 0, 0);
		assert_true(r.rto_ns == ms + 2 * ms); /* the first sample says what it is */
		san_pdl_rtt_sample(&r, conf, 20 * ms, 0, *us * US);
		assert_true(r.rto_ns > 20 * ms);
		for (uint32_t i = 0; i < 100 * 1000 / *us; i++)
			san_pdl_rtt_sample(&r, conf, ms, 0, *us * US);
		assert_true(r.rto_ns > 18 * ms);
		for (uint32_t i = 0; i < 10 * 1000 * 1000 / *us; i++)
			san_pdl_rtt_sample(&r, conf, ms, 0, *us * US);
		assert_in_range(r.rto_ns, calm_ns, calm_ns + ms / 100);
	}
	/* silence counts as well */
	san_pdl_rtt_sample(&r, conf, 20 * ms, 0, 0);
	san_pdl_rtt_sample(&r, conf, ms, 0, UINT32_MAX);
	assert_true(r.rto_ns == r.srtt_ns + 4 * r.var_ns);
}

/* RT-9: congestion raises the RTO, even its minimum; without it the RTO falls again. */
UNIT_CASE(san_pdl_rtt_sample__level_raises_rto)
{
	const struct san_pdl_conf *conf = &pair.pdl[0]->conf;
	struct san_pdl_rtt r;

	r = (struct san_pdl_rtt){.rto_ns = conf->rto_init_ns};
	san_pdl_rtt_sample(&r, conf, 8000, 128, UINT32_MAX);
	assert_true(r.rto_ns == (8000 + conf->rto_min_ns) * 3 / 2);
	san_pdl_rtt_sample(&r, conf, 8000, 0, UINT32_MAX);
	assert_true(r.rto_ns == 8000 + conf->rto_min_ns);
}

/* RT-7: doubles per retry up to the cap, and jitter stays below 1/16. */
UNIT_CASE(san_pdl_rtt_timeout__backoff_and_jitter)
{
	struct san_pdl *pdl = pair.pdl[0];
	struct san_pdl_conn *c = pair.c[0];
	uint64_t base, t, least, most;

	for (uint8_t retries = 0; retries < 12; retries++) {
		base = RTE_MIN(c->rtt.rto_ns << retries, pdl->conf.rto_max_ns);
		least = UINT64_MAX;
		most = 0;
		for (int i = 0; i < 200; i++) {
			t = san_pdl_rtt_timeout(pdl, c, retries);
			least = RTE_MIN(least, t);
			most = RTE_MAX(most, t);
		}
		assert_true(least >= base && most < base + base / 16);
		assert_true(most - least > base / 32); /* there is jitter */
	}
	c->rtt.backoff = 3; /* the connection's backoff also counts for new packets */
	assert_true(san_pdl_rtt_timeout(pdl, c, 0) >= 8 * c->rtt.rto_ns);
}

/* All three parameters equal: a fixed timeout, whatever is measured, however often it fires. */
UNIT_CASE(san_pdl_rtt_timeout__fixed)
{
	struct san_pdl *pdl = pair.pdl[0];
	struct san_pdl_conn *c = pair.c[0];
	const uint64_t fixed_ns = 5 * SAN_NS_PER_MS;
	uint64_t t;

	pdl->conf.rto_init_ns = pdl->conf.rto_min_ns = pdl->conf.rto_max_ns = fixed_ns;
	c->rtt = (struct san_pdl_rtt){.rto_ns = pdl->conf.rto_init_ns};
	for (int i = 0; i < 200; i++) {
		t = san_pdl_rtt_timeout(pdl, c, (uint8_t)i);
		assert_true(t >= fixed_ns && t < fixed_ns + fixed_ns / 16);
		san_pdl_rtt_sample(&c->rtt, &pdl->conf, 1000ULL << (i % 24), (uint32_t)i,
				   UINT32_MAX);
		c->rtt.backoff = (uint8_t)i;
	}
}

static bool
echo(uint32_t t1, uint32_t t2, uint32_t t3, uint64_t t4, uint64_t *rtt, uint64_t *delay)
{
	struct san_wire_ack a = {.echo_tx = t1, .echo_rx = t2};

	return san_pdl_rtt_echo(&pair.pdl[0]->conf, pair.c[0], t3, &a, t4, rtt, delay);
}

/* RT-25: fabric delay = (t4 - t1) - (t3 - t2); clocks have different origins and wrap. */
UNIT_CASE(san_pdl_rtt_echo__fabric_delay)
{
	uint64_t rtt, delay;

	assert_true(echo(1000, 900000, 903000, 31000, &rtt, &delay));
	assert_true(delay == 27000 && rtt == 30000);
	/* both clocks wrap in between */
	assert_true(echo(0xfffffff0, 0xffffff00, 0x700, 0x100001000, &rtt, &delay));
	assert_true(delay == 0x1010 - 0x800 && rtt == 0x1010);
}

/* The time that the ULP held a packet is no round trip. */
UNIT_CASE(san_pdl_rtt_echo__long_hold_is_left_out)
{
	uint64_t rtt, delay;
	uint64_t most = 2 * pair.pdl[0]->conf.ack_delay_ns;

	assert_true(echo(1000, 0, 500000000, 500000000 + 21000, &rtt, &delay));
	assert_true(delay == 20000 && rtt == 20000 + most);
}

UNIT_CASE(san_pdl_rtt_echo__each_packet_once)
{
	uint64_t rtt, delay;

	assert_true(echo(1000, 0, 0, 9000, &rtt, &delay));
	assert_false(echo(1000, 0, 0, 9500, &rtt, &delay));
	assert_true(echo(1001, 0, 0, 9500, &rtt, &delay));
	assert_false(echo(100000, 0, 0, 9500, &rtt, &delay));       /* from the future */
	assert_false(echo(90, 0, 0x90000000, 95000, &rtt, &delay)); /* invalid hold time */
}

/* ---- what congestion control is given ---- */

static uint64_t
weigh(uint64_t delay_ns)
{
	san_pdl_rtt_base(&pair.pdl[0]->conf, pair.c[0], delay_ns);
	return san_pdl_rtt_weigh(&pair.pdl[0]->conf, pair.c[0], delay_ns, pair.now);
}

/* Set the round trip of the handshake; earlier results are forgotten. */
static void
path(uint64_t rtt_ns)
{
	pair.c[0]->rtt = (struct san_pdl_rtt){.rto_ns = pair.pdl[0]->conf.rto_init_ns};
	san_pdl_rtt_path(pair.pdl[0], pair.c[0], rtt_ns);
}

UNIT_CASE(san_pdl_rtt_path__first_sample)
{
	const struct san_pdl_rtt *r = &pair.c[0]->rtt;

	path(300 * US);
	assert_true(r->base_ns == 300 * US && r->srtt_ns == 300 * US);
	path(0); /* a clock that stood still: 0 means unknown */
	assert_true(r->base_ns == 1 && r->srtt_ns == 1);
}

/* For a path of up to 3/10 of the target (25 us) the target is used as it is. */
UNIT_CASE(san_pdl_rtt_weigh__short_path)
{
	path(5 * US);
	for (uint64_t ns = 5 * US; ns < SAN_NS_PER_MS; ns += 777)
		assert_true(weigh(ns) == ns);
	for (uint64_t ns = 5 * US; ns > 0; ns -= 500)
		assert_true(weigh(ns) == ns);
	/* without a measured handshake the first sample replaces it */
	pair.c[0]->rtt = (struct san_pdl_rtt){.rto_ns = pair.pdl[0]->conf.rto_init_ns};
	assert_true(weigh(4 * US) == 4 * US);
	assert_true(weigh(90 * US) == 90 * US);
}

/* Beyond that only the queue counts, on top of 3/10 of the target: for all paths the same. */
UNIT_CASE(san_pdl_rtt_weigh__long_path)
{
	path(7501);
	assert_true(weigh(7501) == 7500);
	assert_true(weigh(30 * US) == 30 * US - 1);
	path(400 * US);
	assert_true(weigh(400 * US) == 7500);
	assert_true(weigh(407 * US) == 14500);
	assert_true(weigh(9 * SAN_NS_PER_MS) == 9 * SAN_NS_PER_MS - 392500);
}

/* The least delay is the path. No number of later samples raises it. */
UNIT_CASE(san_pdl_rtt_weigh__samples_only_lower_the_base)
{
	path(400 * US);
	assert_true(weigh(390 * US) == 7500);
	assert_true(weigh(400 * US) == 17500);
	for (uint32_t i = 0; i < 10000; i++) {
		pair.now += SAN_NS_PER_MS;
		assert_true(weigh(800 * US) == 417500);
	}
	assert_true(pair.c[0]->rtt.base_ns == 390 * US);
	assert_true(weigh(4 * US) == 4 * US);
	assert_true(weigh(400 * US) == 400 * US);
}

/* Four hops send 1024 + 256 bytes, each at 1 Gb/s: 40.96 us that are no queue. */
UNIT_CASE(san_pdl_rtt_weigh__slow_link)
{
	assert_int_equal(pair.c[0]->mtu, 1024);
	pair.pdl[0]->conf.link_mbps = 1000;
	path(4 * US);
	assert_true(weigh(100 * US) == 59040);
	path(400 * US); /* both */
	assert_true(weigh(500 * US) == 66540);
	pair.pdl[0]->conf.link_mbps = 100000;
	path(4 * US);
	assert_true(weigh(100 * US) == 100 * US - 409);
}

/* 0 would mean that there is no sample. */
UNIT_CASE(san_pdl_rtt_weigh__never_0)
{
	static const uint32_t mbps[] = {0, 1, 1000, 400000};

	UNIT_EACH(r, mbps) {
		pair.pdl[0]->conf.link_mbps = *r;
		path(SAN_NS_PER_MS);
		for (uint64_t ns = SAN_NS_PER_MS; ns > 0; ns /= 3)
			assert_true(weigh(ns) >= 1);
		path(SAN_NS_PER_MS);
		assert_true(weigh(1) == 1);
	}
	assert_true(weigh(1) == 1);
}

/*
 * The path became longer: the window falls to its minimum, and after 1 s there the least delay of
 * that second is the new path.
 */
UNIT_CASE(san_pdl_rtt_weigh__learned_anew)
{
	uint64_t start;

	path(4 * US);
	pair.c[0]->cc.window = pair.pdl[0]->conf.cc_conf.window_min;
	start = pair.now;
	assert_true(weigh(500 * US) == 500 * US);
	pair.now = start + SAN_NS_PER_S / 2;
	assert_true(weigh(480 * US) == 480 * US);
	pair.now = start + SAN_NS_PER_S - 1;
	assert_true(weigh(500 * US) == 500 * US);
	pair.now++;
	assert_true(weigh(500 * US) == 27500);
	assert_true(pair.c[0]->rtt.base_ns == 480 * US);
	/* still at its minimum: the next second detects the next change */
	pair.now += SAN_NS_PER_US;
	assert_true(weigh(900 * US) == 427500);
	pair.now += SAN_NS_PER_S - 1;
	assert_true(weigh(900 * US) == 427500);
	pair.now++;
	assert_true(weigh(900 * US) == 7500);
}

/* If the window grows in between, it is a queue that varies. */
UNIT_CASE(san_pdl_rtt_weigh__not_learned_while_it_grows)
{
	struct san_pdl_conn *c = pair.c[0];
	uint32_t min;

	path(4 * US);
	min = c->cc.floor;
	c->cc.window = min + 1;
	for (uint32_t i = 0; i < 50; i++) {
		pair.now += SAN_NS_PER_S / 10;
		assert_true(weigh(500 * US) == 500 * US);
	}
	for (uint32_t i = 0; i < 50; i++) {
		c->cc.window = i % 10 == 9 ? min + 1 : min;
		pair.now += SAN_NS_PER_S / 10;
		assert_true(weigh(500 * US) == 500 * US);
	}
	assert_true(c->rtt.base_ns == 4 * US);
}
