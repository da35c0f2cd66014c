/* SPDX-License-Identifier: BSD-3-Clause */

#include "tl_pair.h"

#define BUDGET 8000
#define RTT_NS (20 * SAN_NS_PER_US)

static uint16_t slots[2][2]; /* of two connections, side 0 and side 1 */

static void
open_two(uint32_t path_bytes)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conf tl;

	san_tl_conf_default(&tl);
	tl.budget_bytes = BUDGET;
	tl.path_bytes = path_bytes;
	tl.grant_bytes = 4000;
	pair_open(&l, &tl);
	memcpy(slots[0], pair.slot, sizeof(slots[0]));
	pair_connect(&l, slots[1]);
}

static void
setup(void)
{
	open_two(1 << 20);
}

UNIT_FIXTURE(.setup = setup, .teardown = pair_close);

static void
push_on(uint32_t conn, uint64_t cookie, uint32_t length)
{
	const struct san_tl_req req = {
		.type = SAN_TL_PUSH,
		.solicit = SAN_SOLICIT_ALWAYS,
		.length = length,
		.cookie = cookie,
	};

	assert_int_equal(san_tl_initiator_submit(pair.h[0].tl, slots[conn][0], &req, pair.now), 0);
}

static struct san_tl_path *
path(int side, bool granted)
{
	return &pair_tc(side)->host->paths[granted];
}

/*
 * Round trips until side 0 has *nb* completions; *beyond*: the most that *side* used above the
 * budget.
 */
static uint32_t
rounds_until(uint32_t nb, int side, uint64_t rtt_ns, uint32_t *beyond)
{
	struct san_tl *tl = pair.h[side].tl;
	uint32_t i;

	*beyond = 0;
	for (i = 0; i < 1000 && pair.f[0].nb_cmpl < nb; i++) {
		for (uint32_t k = 0; k < 2; k++)
			pair.h[side].pdl->conns[slots[k][side]].rtt.base_ns = rtt_ns;
		pair_xfer(0);
		assert_true(tl->budget_used <= BUDGET);
		pair_xfer(1);
		assert_true(tl->budget_used <= BUDGET);
		san_tl_check(tl);
		*beyond = RTE_MAX(*beyond, tl->path_used);
		pair_wait(RTT_NS);
	}
	assert_int_equal(pair.f[0].nb_cmpl, nb);
	return i;
}

/* RT-41: grants follow the product of rate and delay. */
UNIT_CASE(san_tl_path_use__grows_with_the_product)
{
	uint32_t beyond;

	push_on(0, 0, 200000);
	assert_in_range(rounds_until(1, 1, RTT_NS, &beyond), 6, 14); /* 8,000 each are 26 */
	assert_in_range(beyond, 2 * BUDGET, 6 * BUDGET);
	assert_int_equal(pair.h[1].tl->path_used, 0);
}

/* RT-13, RT-41: nothing is granted beyond the budget if that is enough for the path. */
UNIT_CASE(san_tl_path_use__not_on_a_short_path)
{
	uint32_t beyond;

	push_on(0, 0, 200000);
	assert_in_range(rounds_until(1, 1, RTT_NS / 2, &beyond), 26, 30);
	assert_int_equal(beyond, 0);
	assert_int_equal(path(1, true)->room, 0);
}

/* A connection that does not use its grants leaves the budget to the others of its host. */
UNIT_CASE(san_tl_path_use__two_connections)
{
	uint32_t beyond;

	push_on(0, 0, 100000);
	push_on(1, 1, 100000);
	assert_in_range(rounds_until(2, 1, RTT_NS, &beyond), 6, 16);
	assert_true(beyond > BUDGET);
}

/* Excess room is removed as charges return: it does not exceed the budget. */
UNIT_CASE(san_tl_path_add__shrinks)
{
	struct san_tl_path *p = path(1, true);
	uint32_t beyond, room;

	push_on(0, 0, 200000);
	rounds_until(1, 1, RTT_NS, &beyond);
	room = p->room;
	assert_true(room > BUDGET);
	for (uint32_t i = 1; i <= 40; i++) { /* a little in each round trip */
		push_on(0, i, 1000);
		rounds_until(1 + i, 1, RTT_NS, &beyond);
	}
	assert_int_equal(p->room, 0);
	assert_true(p->rate < room);
}

/* All hosts together have at most path_bytes, and one at most what is left. */
UNIT_CASE_IN(san_tl_path_left__bound, NULL)
{
	struct san_tl_path wide = {.room = 5000, .charged = 1000};
	struct san_tl *tl;
	uint32_t beyond;

	open_two(6000);
	tl = pair.h[1].tl;
	push_on(0, 0, 200000);
	rounds_until(1, 1, RTT_NS, &beyond);
	assert_in_range(beyond, 2000, 4000);
	assert_int_equal(tl->path_used, 0);
	assert_int_equal(san_tl_path_left(tl, &wide), 4000);
	tl->path_used = tl->conf.path_bytes - 1500; /* of other hosts, all but 1,000 */
	assert_int_equal(san_tl_path_left(tl, &wide), 500);
	tl->path_used = 0;
}

/* RT-41: pulls have their own room. */
UNIT_CASE(san_tl_path_use__pulls)
{
	struct san_tl *tl = pair.h[0].tl;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 60; i++) {
		while (n < 60 && pair_pull(n, 1000) == 0)
			n++;
		pair_xfer(0);
		pair.h[0].pdl->conns[slots[0][0]].rtt.base_ns = RTT_NS;
		pair_xfer(1);
		san_tl_check(tl);
		assert_true(tl->pulled_used <= BUDGET / 4 * 3 && tl->budget_used <= BUDGET);
		pair_wait(RTT_NS);
	}
	assert_int_equal(pair.f[0].nb_cmpl, 60);
	assert_true(tl->stats.path_high > BUDGET / 4);
	assert_int_equal(path(0, true)->room, 0);
}
