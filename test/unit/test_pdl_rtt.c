/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "pdl_pair.h"

static struct pair pair;

static int
setup(void **state)
{
	struct san_pdl_conf conf = pair_conf();

	(void)state;
	pair_open(&pair, &conf, 16, 64);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	pair_close(&pair);
	return 0;
}

static void
san_pdl_rtt_sample__smooths(void **state)
{
	const struct san_pdl_conf *conf = &pair.pdl[0]->conf;
	struct san_pdl_rtt r;
	int i;

	(void)state;
	san_pdl_rtt_init(&r, conf);
	assert_true(r.rto_ns == conf->rto_init_ns);
	san_pdl_rtt_sample(&r, conf, 8000, 0);
	assert_true(r.srtt_ns == 8000 && r.var_ns == 4000 && r.min_ns == 8000);
	san_pdl_rtt_sample(&r, conf, 16000, 0);
	assert_true(r.srtt_ns == 9000 && r.var_ns == 5000 && r.min_ns == 8000);
	assert_true(r.rto_ns == conf->rto_min_ns); /* the floor */
	for (i = 0; i < 100; i++)
		san_pdl_rtt_sample(&r, conf, 3 * SAN_NS_PER_MS, 0);
	assert_in_range(r.srtt_ns, 29 * SAN_NS_PER_MS / 10, 3 * SAN_NS_PER_MS);
	assert_in_range(r.rto_ns, 29 * SAN_NS_PER_MS / 10, 5 * SAN_NS_PER_MS);
	for (i = 0; i < 10; i++)
		san_pdl_rtt_sample(&r, conf, SAN_NS_PER_S, 0);
	assert_true(r.rto_ns == conf->rto_max_ns);
}

/* RT-9: congestion raises the RTO, at its floor too; relief lowers it again. */
static void
san_pdl_rtt_sample__level_raises_rto(void **state)
{
	const struct san_pdl_conf *conf = &pair.pdl[0]->conf;
	struct san_pdl_rtt r;

	(void)state;
	san_pdl_rtt_init(&r, conf);
	san_pdl_rtt_sample(&r, conf, 8000, 128);
	assert_true(r.rto_ns == conf->rto_min_ns * 3 / 2);
	san_pdl_rtt_sample(&r, conf, 8000, 0);
	assert_true(r.rto_ns == conf->rto_min_ns);
}

/* RT-7: doubles per retry up to the cap, and jitter stays below 1/16. */
static void
san_pdl_rtt_timeout__backoff_and_jitter(void **state)
{
	struct san_pdl *pdl = pair.pdl[0];
	struct san_pdl_conn *c = pair.c[0];
	uint64_t base, t, least, most;
	uint8_t retries;
	int i;

	(void)state;
	for (retries = 0; retries < 12; retries++) {
		base = RTE_MIN(c->rtt.rto_ns << retries, pdl->conf.rto_max_ns);
		least = UINT64_MAX;
		most = 0;
		for (i = 0; i < 200; i++) {
			t = san_pdl_rtt_timeout(pdl, c, retries);
			least = RTE_MIN(least, t);
			most = RTE_MAX(most, t);
		}
		assert_true(least >= base && most < base + base / 16);
		assert_true(most - least > base / 32); /* there is jitter */
	}
	c->rtt.backoff = 3; /* the connection's backoff counts for new packets too */
	assert_true(san_pdl_rtt_timeout(pdl, c, 0) >= 8 * c->rtt.rto_ns);
}

/* All three alike: a fixed timeout, whatever is measured and however often it expired. */
static void
san_pdl_rtt_timeout__fixed(void **state)
{
	struct san_pdl *pdl = pair.pdl[0];
	struct san_pdl_conn *c = pair.c[0];
	const uint64_t fixed_ns = 5 * SAN_NS_PER_MS;
	uint64_t t;
	int i;

	(void)state;
	pdl->conf.rto_init_ns = pdl->conf.rto_min_ns = pdl->conf.rto_max_ns = fixed_ns;
	san_pdl_rtt_init(&c->rtt, &pdl->conf);
	for (i = 0; i < 200; i++) {
		t = san_pdl_rtt_timeout(pdl, c, (uint8_t)i);
		assert_true(t >= fixed_ns && t < fixed_ns + fixed_ns / 16);
		san_pdl_rtt_sample(&c->rtt, &pdl->conf, 1000ULL << (i % 24), (uint32_t)i);
		c->rtt.backoff = (uint8_t)i;
	}
}

static bool
echo(uint32_t t1, uint32_t t2, uint32_t t3, uint64_t t4, uint64_t *rtt, uint64_t *delay)
{
	struct san_wire_ack ack = {.echo_tx = t1, .echo_rx = t2};

	return san_pdl_rtt_echo(&pair.pdl[0]->conf, pair.c[0], t3, &ack, t4, rtt, delay);
}

/* RT-25: fabric delay = (t4 - t1) - (t3 - t2); clocks have different origins and wrap. */
static void
san_pdl_rtt_echo__fabric_delay(void **state)
{
	uint64_t rtt, delay;

	(void)state;
	assert_true(echo(1000, 900000, 903000, 31000, &rtt, &delay));
	assert_true(delay == 27000 && rtt == 30000);
	/* our clock and theirs wrap in between */
	assert_true(echo(0xfffffff0, 0xffffff00, 0x700, 0x100001000, &rtt, &delay));
	assert_true(delay == 0x1010 - 0x800 && rtt == 0x1010);
}

/* A ULP that took its time is no round trip. */
static void
san_pdl_rtt_echo__long_hold_is_left_out(void **state)
{
	uint64_t rtt, delay;
	uint64_t most = 2 * pair.pdl[0]->conf.ack_delay_ns;

	(void)state;
	assert_true(echo(1000, 0, 500000000, 500000000 + 21000, &rtt, &delay));
	assert_true(delay == 20000 && rtt == 20000 + most);
}

static void
san_pdl_rtt_echo__each_packet_once(void **state)
{
	uint64_t rtt, delay;

	(void)state;
	assert_true(echo(1000, 0, 0, 9000, &rtt, &delay));
	assert_false(echo(1000, 0, 0, 9500, &rtt, &delay));
	assert_true(echo(1001, 0, 0, 9500, &rtt, &delay));
	assert_false(echo(100000, 0, 0, 9500, &rtt, &delay));       /* from the future */
	assert_false(echo(90, 0, 0x90000000, 95000, &rtt, &delay)); /* hold is nonsense */
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(san_pdl_rtt_sample__smooths),
		T(san_pdl_rtt_sample__level_raises_rto),
		T(san_pdl_rtt_timeout__backoff_and_jitter),
		T(san_pdl_rtt_timeout__fixed),
		T(san_pdl_rtt_echo__fabric_delay),
		T(san_pdl_rtt_echo__long_hold_is_left_out),
		T(san_pdl_rtt_echo__each_packet_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
