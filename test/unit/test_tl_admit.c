/* SPDX-License-Identifier: BSD-3-Clause */

#include "tl_pair.h"

#define CONNS 5

static uint16_t slots[CONNS][2]; /* of every connection, side 0 and side 1 */

static void
open_with(uint8_t policy, uint32_t budget, uint32_t grant, uint32_t expired)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conf tl;

	san_tl_conf_default(&tl);
	tl.budget_bytes = budget;
	tl.expired_bytes = expired;
	tl.grant_bytes = grant;
	tl.policy = policy;
	pair_open(&l, &tl);
	memcpy(slots[0], pair.slot, sizeof(slots[0]));
	for (int i = 1; i < CONNS; i++)
		pair_connect(&l, slots[i]);
}

static void
setup_usual(void)
{
	open_with(SAN_GRANT_RR, 8000, 4000, 3000);
}

UNIT_FIXTURE(.setup = setup_usual, .teardown = pair_close);

/* No grant expires: everything must move by itself. A quarter is less than a packet. */
static void
setup_no_expiry(void)
{
	open_with(SAN_GRANT_RR, 2000, 4000, 0);
}

static void
push_on(uint32_t conn, uint64_t cookie, uint32_t length)
{
	const struct san_tl_req req = {
		.type = SAN_TL_PUSH,
		.solicit = SAN_SOLICIT_ALWAYS,
		.length = length,
		.addr = cookie * 16384,
		.cookie = cookie,
	};

	assert_int_equal(san_tl_initiator_submit(pair.h[0].tl, slots[conn][0], &req, pair.now), 0);
}

static struct san_tl_conn *
target(uint32_t conn)
{
	return &pair.h[1].tl->conns[slots[conn][1]];
}

/* RT-13: at every step, over all connections. */
UNIT_CASE(san_tl_admit_run__never_above_the_budget)
{
	struct san_tl *tl = pair.h[1].tl;

	for (uint32_t i = 0; i < CONNS; i++) {
		push_on(i, i, 10000);
		push_on(i, CONNS + i, 10000);
	}
	pair_xfer(0);
	assert_true(tl->stats.nb_grants_deferred > 0);
	assert_int_equal(tl->budget_used, 8000);
	for (uint32_t i = 0; i < 3000 && pair.f[0].nb_cmpl < 2 * CONNS; i++) {
		pair_xfer(0);
		assert_true(tl->budget_used <= 8000);
		pair_xfer(1);
		pair_wait(10 * SAN_NS_PER_US);
	}
	assert_int_equal(pair.f[0].nb_cmpl, 2 * CONNS);
	assert_int_equal(tl->stats.budget_high, 8000);
	pair_settle();
	assert_int_equal(tl->budget_used + tl->expired_used, 0);
}

/* While express takes data together, nothing would be granted after a part of it. */
UNIT_CASE(san_tl_admit_quiet__until_a_grant)
{
	struct san_tl *tl = pair.h[1].tl;
	uint64_t nb;
	uint32_t n;

	assert_int_equal(san_tl_admit_quiet(tl), UINT32_MAX);
	push_on(0, 0, 10000);
	push_on(1, 1, 10000);
	pair_xfer(0);
	nb = tl->stats.nb_grants;
	n = san_tl_admit_quiet(tl);
	assert_true(n > 0 && n < 8000);
	tl->limit_bytes += n; /* as if so much returned */
	assert_int_equal(san_tl_admit_quiet(tl), 0);
	san_tl_admit_run(tl, pair.now);
	assert_int_equal(tl->stats.nb_grants, nb);
	tl->limit_bytes++;
	assert_int_equal(san_tl_admit_quiet(tl), 0);
	san_tl_admit_run(tl, pair.now);
	assert_true(tl->stats.nb_grants > nb);
	tl->conf.budget_bytes = tl->budget_bytes = tl->limit_bytes;
}

/* RULE-6: no connection holds more than a quarter while others wait. */
UNIT_CASE(san_tl_admit_run__a_quarter_each)
{
	push_on(0, 0, 100000);
	pair_xfer(0);
	assert_int_equal(target(0)->charged, 8000); /* no other connection waits */
	pair_xfer(1);
	for (uint32_t i = 1; i < CONNS; i++)
		push_on(i, i, 100000);
	pair_xfer(0); /* all granted data, and the other requests */
	for (uint32_t i = 0; i < 200; i++)
		pair_turn();
	for (uint32_t i = 0; i < CONNS; i++)
		assert_true(target(i)->charged <= 2000);
}

/*
 * RT-13: the rest of a push must be worth a grant. The budget could hold so many tiny grants that
 * their headers and retransmissions fill a switch with room for twice the budget.
 */
UNIT_CASE_IN(san_tl_admit_run__leaves_no_crumbs, NULL)
{
	open_with(SAN_GRANT_RR, 64000, 16000, 64000);
	for (uint32_t i = 0; i < CONNS; i++)
		push_on(i, i, 17000);
	for (uint32_t i = 0; i < 3000 && pair.f[0].nb_cmpl < CONNS; i++) {
		pair_xfer(i % 2);
		for (uint32_t k = 0; k < CONNS; k++) {
			const struct san_tl_rxn *r = TAILQ_FIRST(&target(k)->queues->grants);

			assert_true(r == NULL || r->length - r->granted >= 8000);
		}
		pair_wait(10 * SAN_NS_PER_US);
	}
	assert_int_equal(pair.f[0].nb_cmpl, CONNS);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 2 * CONNS);
}

/* Shortest remaining first, over all connections. */
UNIT_CASE_IN(san_tl_admit_run__shortest_first, NULL)
{
	open_with(SAN_GRANT_SRPT, 8000, 4000, 3000);
	for (uint32_t i = 0; i < CONNS; i++)
		push_on(i, i, 20000);
	pair_xfer(0);
	pair_xfer(1);
	push_on(4, 9, 1000); /* behind the long one of its own connection: RT-16 */
	pair_xfer(0);
	assert_settles(CONNS + 1);
	push_on(0, 10, 50000);
	pair_xfer(0); /* it has the whole budget */
	push_on(1, 11, 9000);
	push_on(2, 12, 1000);
	pair_tx(0);
	pair_rx_only(1, SAN_OP_PUSH_SLCTD_REQ);
	assert_int_equal(target(1)->charged + target(2)->charged, 0);
	pair_xfer(1);
	pair_tx(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE); /* room for one of them */
	assert_int_equal(target(2)->charged, 1000);
	assert_int_equal(target(1)->charged, 0);
}

/* RULE-6: unused for 4 RTT a grant leaves the budget, and stays valid. */
UNIT_CASE(san_tl_admit_expire__stays_valid)
{
	push_on(0, 0, 2500);
	pair_xfer(0);
	assert_int_equal(pair.h[1].tl->budget_used, 2500);
	pair_wait(99 * SAN_NS_PER_US);
	assert_int_equal(pair.h[1].tl->budget_used, 2500);
	pair_wait(2 * SAN_NS_PER_US);
	assert_int_equal(pair.h[1].tl->budget_used, 0);
	assert_int_equal(pair.h[1].tl->expired_used, 2500);
	assert_int_equal(pair.h[1].tl->stats.nb_grants_expired, 1);
	assert_settles(1);
	assert_int_equal(pair.h[1].tl->expired_used, 0);
}

/*
 * RT-13, RT-35: unused grants leave the budget. A host with too many of them is granted slowly, but
 * its connections do not stop each other.
 */
UNIT_CASE(san_tl_admit_expire__slow_host)
{
	struct san_tl *tl = pair.h[1].tl;

	push_on(0, 0, 8000);
	pair_xfer(0);
	assert_int_equal(tl->budget_used, 8000);
	assert_false(target(0)->host->slow);
	pair_wait(SAN_NS_PER_MS);
	assert_int_equal(tl->expired_used, 8000);
	assert_int_equal(target(0)->host->expired, 8000);
	assert_true(target(0)->host->slow);
	assert_int_equal(tl->budget_used, 0);
	for (uint32_t i = 1; i < 4; i++)
		push_on(i, i, 2000);
	pair_xfer(0);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(target(i)->charged, 2000);
		assert_int_equal(tl->budget_used, 2000);
		assert_int_equal(tl->slow_used, 2000);
		pair_wait(SAN_NS_PER_MS);
	}
	assert_int_equal(tl->budget_used + tl->slow_used, 0);
	assert_settles(4);
	assert_int_equal(tl->expired_used, 0);
	assert_false(target(0)->host->slow);
}

/*
 * RT-13: a slow sender is granted more before it has sent all that had expired: once it has begun,
 * and half a grant is left.
 */
UNIT_CASE(san_tl_admit_expire__more_from_half_a_grant)
{
	push_on(0, 0, 2800);
	push_on(0, 1, 100);
	pair_xfer(0);
	pair_wait(SAN_NS_PER_MS);
	assert_int_equal(target(0)->expired, 2900);
	push_on(0, 2, 200);
	pair_xfer(0);
	assert_int_equal(target(0)->charged, 0);
	pair_xfer(1);
	pair_tx(0);
	for (uint32_t i = 0; i < pair.nb_out; i++) {
		pair_rx(1, i);
		assert_int_equal(target(0)->charged, target(0)->expired <= 2000 ? 200 : 0);
	}
	assert_int_equal(target(0)->expired, 0);
	assert_settles(3);
}

/* RT-13: a connection that does not use its grants gets no more, to leave some for others. */
UNIT_CASE(san_tl_admit_expire__no_more_until_used)
{
	push_on(0, 0, 2000);
	pair_xfer(0);
	pair_wait(SAN_NS_PER_MS);
	assert_int_equal(pair.h[1].tl->expired_used, 2000);
	push_on(0, 1, 2000);
	push_on(1, 2, 1000);
	pair_xfer(0);
	assert_int_equal(target(0)->charged, 0);
	assert_int_equal(target(1)->charged, 1000);
	assert_settles(3);
}

/* RULE-6: a grant that is being used does not expire. */
UNIT_CASE(san_tl_admit_expire__used_meanwhile)
{
	push_on(0, 0, 4000);
	pair_xfer(0);
	pair_xfer(1);
	pair_tx(0);
	pair_wait(60 * SAN_NS_PER_US);
	pair_rx(1, 0);
	pair_wait(60 * SAN_NS_PER_US);
	assert_int_equal(pair.h[1].tl->budget_used, 3000);
	pair_wait(60 * SAN_NS_PER_US);
	assert_int_equal(pair.h[1].tl->budget_used, 0);
}

/* Deliver all packets of *side* except those of connection 0; 50 us from data to data. */
static void
xfer_others(int side)
{
	uint32_t silent = pair.h[1 - side].pdl->conns[slots[0][1 - side]].cid;

	pair_tx(side);
	for (uint32_t i = 0; i < pair.nb_out; i++) {
		if (pair_pkt(i)->dcid == silent)
			continue;
		pair_rx(1 - side, i);
		if (pair_pkt(i)->op == SAN_OP_PUSH_SLCTD_DATA)
			pair_wait(50 * SAN_NS_PER_US);
		assert_int_equal(target(0)->expired, pair.h[1].tl->use >= 8000 ? 2000 : 0);
	}
}

/*
 * RULE-6: data may wait behind earlier grants, in a queue longer than 4 RTT. When all of
 * those have arrived, it does not wait any more.
 */
UNIT_CASE(san_tl_admit_expire__not_behind_others)
{
	push_on(0, 0, 2000);
	push_on(1, 1, 40000);
	pair_xfer(0);
	while (pair.h[1].tl->use < 10000) {
		xfer_others(1);
		xfer_others(0);
	}
	assert_int_equal(pair.h[1].tl->stats.nb_grants_expired, 1);
	assert_settles(2);
}

/* The same when no more of those arrive. */
UNIT_CASE(san_tl_admit_expire__not_for_ever_behind_others)
{
	push_on(0, 0, 2000);
	push_on(1, 1, 4000);
	pair_xfer(0);
	xfer_others(1);
	xfer_others(0);
	assert_int_equal(pair.h[1].tl->use, 4000);
	assert_int_equal(target(0)->expired, 0);
	pair_wait(51 * SAN_NS_PER_US);
	assert_int_equal(target(0)->expired, 2000);
	assert_settles(2);
}

/* The same when they arrive byte by byte. */
UNIT_CASE(san_tl_admit_expire__not_behind_a_trickle)
{
	push_on(0, 0, 2000);
	pair_xfer(0);
	for (uint32_t us = 50; us < 6500; us += 50) {
		pair.h[1].tl->use_ns = pair.now;
		pair_wait(50 * SAN_NS_PER_US);
		assert_int_equal(target(0)->expired, us < 6400 ? 0 : 2000);
	}
}

/* RT-13: the share of a failed connection returns, and is granted to those that wait. */
UNIT_CASE(san_tl_conn_close__share_returns)
{
	push_on(0, 0, 50000);
	pair_xfer(0);
	push_on(1, 1, 5000);
	pair_xfer(0);
	assert_int_equal(target(1)->charged, 0);
	san_tl_conn_close(pair.h[1].tl, slots[0][1], SAN_ST_ABORTED, pair.now);
	assert_int_equal(target(1)->charged, 5000);
	assert_int_equal(pair.h[1].tl->budget_used, 5000);
}

/* RULE-6: pulled bytes are charged here; one piece per connection is always allowed. */
UNIT_CASE(san_tl_admit_charge__pulls)
{
	struct san_tl *tl = pair.h[0].tl;

	assert_int_equal(pair_pull(0, 5000), 0);
	assert_int_equal(tl->budget_used, 5000);
	assert_int_equal(pair_pull(1, 1001), -EAGAIN);
	assert_int_equal(pair_pull(1, 1000), 0);
	assert_int_equal(tl->budget_used, 6000); /* a quarter is for grants */
	assert_int_equal(pair_pull(2, 1), -EAGAIN);
	{
		const struct san_tl_req req = {.type = SAN_TL_PULL, .length = 9000, .cookie = 7};

		/* another connection has none outstanding */
		assert_int_equal(san_tl_initiator_submit(tl, slots[1][0], &req, pair.now), 0);
	}
	assert_int_equal(tl->budget_used, 6000); /* still never above it */
	pair_settle();
	assert_true(pair.f[0].nb_room > 0);
	assert_int_equal(pair.f[0].nb_cmpl, 3);
	assert_int_equal(tl->budget_used + tl->expired_used, 0);
	assert_int_equal(pair_pull(2, 6000), 0);
}

/*
 * RT-26: on both sides a pull behind a push that needs a grant. The pulls hold their part of both
 * budgets and wait for the pushes, so these must be granted nevertheless.
 */
UNIT_CASE_IN(san_tl_admit_pull_room__grants_have_a_quarter, setup_no_expiry)
{
	for (int side = 0; side < 2; side++) {
		const struct san_tl_req push = {
			.type = SAN_TL_PUSH, .solicit = SAN_SOLICIT_ALWAYS, .length = 5000};
		const struct san_tl_req pull = {
			.type = SAN_TL_PULL, .length = 9000, .addr = 16384, .cookie = 1};

		assert_int_equal(pair_submit(side, &push), 0);
		assert_int_equal(pair_submit(side, &pull), 0);
		assert_int_equal(pair.h[side].tl->pulled_used, 1500);
	}
	/* at once: the pulls have not expired */
	for (int side = 0; side < 6; side++)
		pair_xfer(side % 2);
	for (int side = 0; side < 2; side++)
		assert_true(pair.h[side].tl->stats.nb_grants > 0);
	pair_settle();
	for (int side = 0; side < 2; side++) {
		assert_int_equal(pair.f[side].nb_cmpl, 2);
		assert_int_equal(pair.h[side].tl->stats.budget_high, 2000);
		assert_int_equal(pair.h[side].tl->budget_used, 0);
	}
}

/* Pulls over a connection do not reduce what may be granted to it. */
UNIT_CASE(san_tl_admit_charge__pulls_are_not_its_share)
{
	const struct san_tl_req pull = {.type = SAN_TL_PULL, .length = 4000, .cookie = 9};

	assert_int_equal(pair_submit(1, &pull), 0);
	push_on(1, 1, 10000);
	pair_xfer(0);
	assert_int_equal(target(1)->charged, 4000); /* the rest of the budget */
	push_on(0, 0, 10000);
	pair_xfer(0);
	pair_xfer(1);
	pair_tx(0);
	pair_rx_but(1, SAN_OP_PULL_DATA);
	assert_int_equal(pair.h[1].tl->pulled_used, 4000);
	assert_int_equal(target(0)->charged, 2000);
	assert_int_equal(target(1)->charged, 2000);
	assert_settles(2);
}

/* Slow pulls leave the budget, too. Then their connection pulls one piece at a time. */
UNIT_CASE(san_tl_admit_expire__pulls)
{
	const struct san_tl_req pull = {.type = SAN_TL_PULL, .length = 1000, .cookie = 1};
	const struct san_tl_req push = {
		.type = SAN_TL_PUSH, .solicit = SAN_SOLICIT_ALWAYS, .length = 3000, .cookie = 2};
	struct san_tl *tl = pair.h[0].tl;

	assert_int_equal(pair_pull(0, 2000), 0);
	pair_wait(SAN_NS_PER_MS);
	assert_int_equal(tl->budget_used, 0);
	assert_int_equal(pair_tc(0)->expired_pulled, 2000);
	assert_int_equal(pair_pull(1, 100), -EAGAIN);
	assert_int_equal(san_tl_initiator_submit(tl, slots[1][0], &pull, pair.now), 0);
	pair_wait(SAN_NS_PER_MS);
	assert_int_equal(tl->expired_used, 3000);
	assert_int_equal(tl->pulled_used, 0);
	assert_int_equal(san_tl_initiator_submit(pair.h[1].tl, slots[2][1], &push, pair.now), 0);
	pair_xfer(1);
	assert_int_equal(tl->budget_used, 3000);
	pair_wait(SAN_NS_PER_MS);
	assert_int_equal(tl->expired_used, 6000);
	assert_int_equal(tl->budget_used, 0);
	/* our side requests the pulls: they do not make a host slow */
	assert_int_equal(tl->conns[slots[2][0]].host->expired, 3000);
	assert_settles(2);
	assert_int_equal(pair.f[1].nb_cmpl, 1);
	assert_int_equal(tl->expired_used + tl->budget_used, 0);
	assert_int_equal(pair_pull(1, 100), 0);
}

static const struct san_tl_req solicited_send = {
	.type = SAN_TL_PUSH, .kind = SAN_KIND_SEND, .solicit = SAN_SOLICIT_ALWAYS, .length = 100};

/* Its receive was posted in time; since then it waits for the budget, which is no RNR. */
UNIT_CASE_IN(san_tl_solicit_grant_timer__waits_for_budget, setup_no_expiry)
{
	assert_int_equal(pair_submit(0, &solicited_send), 0);
	pair_xfer(0);
	assert_true(target(0)->grant_wait);
	push_on(1, 1, 10000);
	pair_xfer(0);
	assert_int_equal(target(1)->charged, 2000); /* the whole budget */
	pair.f[1].nb_recvs = 1;
	san_tl_on_recv_posted(pair.h[1].tl, slots[0][1], pair.now);
	pair_wait(1100 * SAN_NS_PER_MS);
	assert_int_equal(pair.h[1].tl->stats.nb_refused, 0);
	assert_int_equal(pair.f[1].nb_set_aside, 1);
	assert_settles(2);
	assert_int_equal(pair.f[0].status[0] | pair.f[0].status[1], SAN_ST_OK);
}

/* Connections that wait for a receive leave the list, so they do not block others. */
UNIT_CASE_IN(san_tl_admit_run__past_those_without_receive, setup_no_expiry)
{
	push_on(0, 0, 10000);
	pair_xfer(0); /* takes all of it */
	for (uint32_t i = 1; i < CONNS - 1; i++)
		assert_int_equal(pair_submit_at(0, slots[i][0], &solicited_send), 0);
	push_on(CONNS - 1, 1, 500);
	pair_xfer(0);
	assert_int_equal(pair.h[1].tl->nb_admit, CONNS);
	san_tl_conn_close(pair.h[1].tl, slots[0][1], SAN_ST_ABORTED, pair.now);
	assert_int_equal(target(CONNS - 1)->charged, 500);
}

/* A grant of less than a packet would be useless: only last packets could be sent. */
UNIT_CASE_IN(san_tl_admit_run__at_least_a_packet, NULL)
{
	open_with(SAN_GRANT_RR, 8000, 1, 3000);
	push_on(0, 0, 3000);
	push_on(1, 1, 3000);
	pair_xfer(0);
	assert_int_equal(target(0)->charged, 3000);
	assert_int_equal(target(1)->charged, 3000);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 6);
	assert_settles(2);
}

/* ---- received ahead of its turn ---- */

static const struct san_tl_req unsolicited_send = {
	.type = SAN_TL_PUSH, .kind = SAN_KIND_SEND, .solicit = SAN_SOLICIT_NEVER, .length = 100};

/* Deliver everything that side 0 sends, except the data of the send. */
static void
all_but_the_send(void)
{
	pair_tx(0);
	pair_rx_but(1, SAN_OP_PUSH_UNSLCTD_DATA);
}

/* Side 1 has no receive for a send; behind it 2000 bytes are granted and delivered. */
static void
begin_behind_a_send(void)
{
	assert_int_equal(pair_submit(0, &unsolicited_send), 0);
	push_on(0, 1, 2000);
	all_but_the_send();
	pair_xfer(1);
	all_but_the_send();
	assert_int_equal(pair.h[1].tl->stats.nb_rnr_tx, 0);
	assert_true(TAILQ_FIRST(&target(0)->queues->rxns)->arrived == 2000);
}

static void
until_rnr(void)
{
	for (int i = 0; i < 100 && pair.h[1].tl->stats.nb_rnr_tx == 0; i++) {
		pair_wait(100 * SAN_NS_PER_US);
		pair_xfer(0);
	}
	assert_true(pair.h[1].tl->stats.nb_rnr_tx > 0);
	san_tl_check(pair.h[1].tl);
}

static void
post_receive(void)
{
	pair.f[1].nb_recvs = 1;
	san_tl_on_recv_posted(pair.h[1].tl, slots[0][1], pair.now);
	pair_settle();
	assert_int_equal(pair.h[1].tl->budget_used + pair.h[1].tl->expired_used, 0);
}

/* RT-13: RNR drops held packets, and they are resent without a new grant, so they count. */
UNIT_CASE(san_tl_admit_charge_done__not_while_held)
{
	struct san_tl *tl = pair.h[1].tl;
	bool is_held = !target(0)->peer.relaxed;

	begin_behind_a_send();
	assert_int_equal(tl->nb_held, is_held ? 2 : 0);
	assert_int_equal(tl->budget_used, 2000);
	until_rnr();
	assert_int_equal(tl->nb_held, 0);
	assert_int_equal(tl->budget_used + tl->expired_used, 2000);
	post_receive();
	assert_int_equal(pair.f[0].nb_cmpl, 2);
}

/* The same for data placed ahead of its turn (RT-33). */
UNIT_CASE_IN(san_tl_admit_charge_done__not_ahead_of_its_turn, pair_setup_relaxed)
{
	memcpy(slots[0], pair.slot, sizeof(slots[0]));
	san_tl_admit_charge_done__not_while_held(state);
}

/* Grants behind a send without a receive would be unused: others get them. */
UNIT_CASE(san_tl_admit_may_grant__not_behind_rnr)
{
	assert_int_equal(pair_submit(0, &unsolicited_send), 0);
	until_rnr();
	push_on(0, 1, 2000);
	push_on(1, 2, 3000);
	pair_xfer(0);
	assert_int_equal(target(0)->charged, 0);
	assert_int_equal(target(1)->charged, 3000);
	assert_int_equal(pair.h[1].tl->nb_admit, 0);
	post_receive();
	assert_int_equal(pair.f[0].nb_cmpl, 3);
}

/* A peer that sends the same bytes twice gains nothing. */
UNIT_CASE(san_tl_admit_charge_done__no_more_than_granted)
{
	const struct san_tl_rxn *r;
	uint32_t nb_refused = 0;

	push_on(0, 0, 20000);
	pair_xfer(0);
	pair_xfer(1);
	for (uint32_t i = 1; i < CONNS; i++)
		push_on(i, i, 20000); /* they get what it returns */
	pair_tx(0);
	pair_rx_only(1, SAN_OP_PUSH_SLCTD_REQ);
	for (uint32_t i = 0; i < pair.nb_out; i++)
		if (pair_pkt(i)->op == SAN_OP_PUSH_SLCTD_DATA)
			assert_int_equal(pair_rx(1, i), SAN_DROP_NONE);
	for (uint32_t i = 0; i < pair.nb_out; i++) {
		if (pair_pkt(i)->op != SAN_OP_PUSH_SLCTD_DATA)
			continue;
		pair_pkt(i)->psn += 8;
		nb_refused += pair_rx(1, i) == SAN_DROP_RANGE;
	}
	assert_in_range(nb_refused, 6, 8);
	r = TAILQ_FIRST(&target(0)->queues->rxns);
	assert_true(r->arrived <= r->granted);
}

/* A connection whose first data was refused gets grants again when the data is accepted. */
UNIT_CASE(san_tl_admit_may_grant__its_own_rnr)
{
	push_on(0, 0, 20000);
	pair.f[1].push_req = SAN_ST_RNR;
	pair_xfer(0);
	pair_xfer(1);
	pair_xfer(0);
	assert_true(pair.h[1].tl->stats.nb_rnr_tx > 0);
	assert_int_equal(pair.h[1].tl->nb_admit, 0);
	pair.f[1].push_req = SAN_ST_OK;
	assert_settles(1);
}
