/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "pdl_pair.h"

static struct pair pair;
static struct san_pdl *pdl;
static struct san_pdl_conn *c[4];

static int
setup(void **state)
{
	struct san_pdl_conf conf = pair_conf();
	int i;

	(void)state;
	pair_open(&pair, &conf, 16, 64);
	pdl = pair.pdl[0];
	c[0] = pair.c[0];
	for (i = 1; i < 4; i++) {
		pair_connect(&pair, 16, 64);
		c[i] = pair.c[0];
	}
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
san_pdl_kick__once_in_order(void **state)
{
	int i;

	(void)state;
	assert_false(san_pdl_has_work(pdl));
	for (i = 0; i < 3; i++) {
		san_pdl_kick(pdl, c[2 - i]);
		san_pdl_kick(pdl, c[2]); /* harmless if there */
	}
	assert_true(san_pdl_has_work(pdl));
	san_pdl_check(pdl);
	for (i = 0; i < 3; i++)
		assert_ptr_equal(san_pdl_sched_next(pdl, pair.now), c[2 - i]);
	assert_null(san_pdl_sched_next(pdl, pair.now));
}

static void
san_pdl_kick__only_what_can_send(void **state)
{
	(void)state;
	c[0]->failed = true;
	san_pdl_kick(pdl, c[0]);
	c[1]->state = SAN_CONN_CLOSING;
	san_pdl_kick(pdl, c[1]);
	assert_null(san_pdl_sched_next(pdl, pair.now));
}

/* Design, rule 9: a visit that stopped for its quantum goes to the end of the queue. */
static void
san_pdl_tx_end__round_robin(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < 4; i++)
		san_pdl_kick(pdl, c[i]);
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 4; i++) {
			assert_ptr_equal(san_pdl_sched_next(pdl, pair.now), c[i]);
			san_pdl_tx_end(pdl, c[i], true);
		}
	}
	for (i = 0; i < 4; i++)
		san_pdl_tx_end(pdl, san_pdl_sched_next(pdl, pair.now), false);
	assert_null(san_pdl_sched_next(pdl, pair.now));
}

/* Above one packet nothing is paced; below, rtt / window apart. */
static void
san_pdl_sched_paced__below_one_packet(void **state)
{
	(void)state;
	san_pdl_rtt_sample(&c[0]->rtt, &pdl->conf, 30000, 0);
	c[0]->cc.window = SAN_CC_ONE;
	san_pdl_sched_sent(pdl, c[0], pair.now);
	assert_true(san_pdl_sched_paced(pdl, c[0], pair.now));
	c[0]->cc.window = SAN_CC_ONE / 10;
	san_pdl_sched_sent(pdl, c[0], pair.now);
	assert_false(san_pdl_sched_paced(pdl, c[0], pair.now + 290000));
	assert_true(c[0]->pace_wait && san_timer_is_armed(&c[0]->timer));
	assert_true(san_pdl_sched_paced(pdl, c[0], pair.now + 300100));
	/* the host's window counts as well */
	c[0]->cc.window = 4 * SAN_CC_ONE;
	assert_true(san_pdl_sched_paced(pdl, c[0], pair.now));
	c[0]->cc.host_window = SAN_CC_ONE / 2;
	assert_false(san_pdl_sched_paced(pdl, c[0], pair.now));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(san_pdl_kick__once_in_order),
		T(san_pdl_kick__only_what_can_send),
		T(san_pdl_tx_end__round_robin),
		T(san_pdl_sched_paced__below_one_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
