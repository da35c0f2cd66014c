/* SPDX-License-Identifier: BSD-3-Clause */

#include "tl_pair.h"

#define SLCTD(n, kind, len)  pair_push(n, kind, SAN_SOLICIT_ALWAYS, len)
#define SLCTDS(n, kind, len) pair_requests(kind, SAN_SOLICIT_ALWAYS, len, 0, n)

/* Grants of 1000 bytes, one at a time. */
static void
setup_steps(void)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conf tl;

	san_tl_conf_default(&tl);
	tl.grant_bytes = 1000;
	tl.budget_bytes = 1000;
	pair_open(&l, &tl);
}

UNIT_FIXTURE(.setup = pair_setup_hasty, .teardown = pair_close);

/* RT-10, figure 5: request, grant, data, ULP-ACK, ACK, completion. */
UNIT_CASE(solicited_push__figure_5)
{
	assert_int_equal(SLCTD(1, SAN_KIND_PUSH, 1500), 0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_SLCTD_REQ);
	assert_int_equal(pair_pkt(0)->ssn, pair_rsn(0));
	assert_int_equal(pair_pkt(0)->length, 1500);
	pair_rx(1, 0);
	assert_int_equal(pair.f[1].nb_push_req, 0); /* the ULP is told with its data */
	pair_tx(1);
	assert_int_equal(pair_find(SAN_OP_PUSH_GRNT, 0), 0);
	assert_int_equal(pair_pkt(0)->rsn, pair_rsn(0));
	assert_int_equal(pair_pkt(0)->ssn, pair_rsn(0));
	assert_int_equal(pair_pkt(0)->offset, 1500);
	assert_int_equal(pair_pkt(0)->status, SAN_ST_OK);
	pair_rx(0, 0);
	assert_int_equal(pair_tx(0), 3); /* two, and the ACK of the grant */
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_SLCTD_DATA);
	pair_rx(1, 0);
	pair_rx(1, 1);
	assert_int_equal(pair.f[1].nb_done, 1);
	assert_true(pair_has_bytes(1, 1500));
	pair_xfer(1);
	assert_int_equal(pair.f[0].nb_cmpl, 1);
	assert_int_equal(pair.h[1].tl->budget_used, 0);
}

/* RT-27, RT-35: a request that cannot be accepted is granted nothing; those behind it continue. */
UNIT_CASE(san_tl_solicit_grant_refuse__before_the_first_grant)
{
	SLCTDS(3, SAN_KIND_PUSH, 1500);
	assert_int_equal(pair_tx(0), 3);
	pair_rx(1, 0);
	pair.f[1].push_check = SAN_ST_ACCESS;
	pair_rx(1, 1);
	pair.f[1].push_check = SAN_ST_OK;
	pair_rx(1, 2);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 2);
	assert_int_equal(pair.h[1].tl->stats.nb_refused, 1);
	assert_settles(3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(pair.f[0].status[i],
				 pair.f[0].cookie[i] == 1 ? SAN_ST_ACCESS : SAN_ST_OK);
	assert_int_equal(pair.f[1].nb_push_req, 2);
	assert_int_equal(pair.h[1].tl->budget_used, 0);
}

UNIT_CASE_AGAIN(san_tl_solicit_grant_refuse__before_the_first_grant, _unordered,
		pair_setup_hasty_unordered)

/* The same ahead of its turn among the SSNs. */
UNIT_CASE(san_tl_solicit_grant_refuse__ahead_of_its_turn)
{
	SLCTDS(2, SAN_KIND_PUSH, 1500);
	assert_int_equal(pair_tx(0), 2);
	pair.f[1].push_check = SAN_ST_ACCESS;
	pair_rx(1, 1);
	pair.f[1].push_check = SAN_ST_OK;
	pair_rx(1, 0);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 1);
	assert_settles_with(SAN_ST_OK, SAN_ST_ACCESS);
}

/* RT-16: grants in SSN order, however the requests arrive. */
UNIT_CASE(san_tl_solicit_ssn_join__grants_in_ssn_order)
{
	struct san_tl_conn *tc = pair_tc(1);

	SLCTDS(4, SAN_KIND_PUSH, 100);
	assert_int_equal(pair_tx(0), 4);
	for (uint32_t i = 3; i > 0; i--) {
		assert_int_equal(pair_rx(1, i), SAN_DROP_NONE);
		assert_int_equal(pair.h[1].tl->stats.nb_grants, 0);
		assert_int_equal(tc->rx_ssn, pair_rsn(0));
	}
	assert_int_equal(tc->nb_solicit, 3);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(tc->nb_solicit, 0);
	assert_int_equal(tc->rx_ssn, pair_rsn(4));
	pair_tx(1);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pair_pkt(pair_find(SAN_OP_PUSH_GRNT, i))->ssn, pair_rsn(i));
	assert_settles(4);
}

/* Unordered: granted in order of arrival. */
UNIT_CASE_IN(san_tl_solicit_ssn_join__unordered, pair_setup_hasty_unordered)
{
	SLCTDS(2, SAN_KIND_PUSH, 100);
	assert_int_equal(pair_tx(0), 2);
	pair_rx(1, 1);
	pair_tx(1);
	assert_int_equal(pair_pkt(pair_find(SAN_OP_PUSH_GRNT, 0))->ssn, pair_rsn(1));
	assert_settles(2);
}

/* RT-16, RT-19, figure 8B: grants out of order, data in RSN order all the same. */
UNIT_CASE(san_tl_initiator_rx_grant__data_in_rsn_order)
{
	struct san_tl_conn *tc = pair_tc(0);
	uint32_t i;

	SLCTDS(3, SAN_KIND_PUSH, 100);
	pair_xfer(0);
	pair_tx(1);
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_PUSH_GRNT, 2)), SAN_DROP_NONE);
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_PUSH_GRNT, 1)), SAN_DROP_NONE);
	assert_int_equal(tc->nb_cam_grant, 2);
	assert_int_equal(tc->ssn_base, pair_rsn(0));
	i = pair_find(SAN_OP_PUSH_GRNT, 0);
	{
		struct tl_pkt k = pair.out[i];

		k.m = tl_host_copy(&pair.h[0], k.m);
		pair_tx(0);
		assert_int_equal(pair_find(SAN_OP_PUSH_SLCTD_DATA, 0), UINT32_MAX);
		assert_int_equal(tl_host_rx(&pair.h[0], &k, pair.now), SAN_DROP_NONE);
	}
	assert_int_equal(tc->nb_cam_grant, 0);
	assert_int_equal(tc->ssn_base, pair_rsn(3));
	pair_tx(0);
	for (i = 0; i < 3; i++)
		assert_int_equal(pair_pkt(pair_find(SAN_OP_PUSH_SLCTD_DATA, i))->rsn, pair_rsn(i));
	assert_settles(3);
}

/* RULE-6: the offset is cumulative, the maximum counts; the last one moves the base SSN. */
UNIT_CASE_IN(san_tl_initiator_rx_grant__maximum_wins, setup_steps)
{
	struct san_wire_pkt *p;

	assert_int_equal(SLCTD(0, SAN_KIND_PUSH, 3000), 0);
	pair_xfer(0);
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_PUSH_GRNT, 0));
	assert_int_equal(p->offset, 1000);
	p->offset = 2000;
	pair_rx(0, 0);
	p->offset = 1000;
	p->psn++;
	pair_rx(0, 0);
	assert_int_equal(san_tl_txn_at(pair_tc(0), pair_rsn(0))->granted, 2000);
	assert_int_equal(pair_tc(0)->ssn_base, pair_rsn(0));
	p->offset = 3000;
	p->psn++;
	pair_rx(0, 0);
	assert_int_equal(pair_tc(0)->ssn_base, pair_rsn(1));
}

/* RT-21, RT-32: a grant that matches nothing changes nothing; a late one is accepted. */
UNIT_CASE(san_tl_initiator_rx_grant__refused)
{
	struct san_wire_pkt *p, saved;

	assert_int_equal(SLCTD(0, SAN_KIND_PUSH, 100), 0);
	assert_int_equal(pair_push(1, SAN_KIND_PUSH, SAN_SOLICIT_NEVER, 100), 0);
	pair_xfer(0);
	pair_tx(1);
	p = pair_pkt(0);
	saved = *p;
	p->rsn = pair_rsn(2);
	assert_int_equal(pair_rx(0, 0), SAN_DROP_RSN);
	p->rsn = pair_rsn(1); /* not solicited */
	assert_int_equal(pair_rx(0, 0), SAN_DROP_SSN);
	*p = saved;
	p->ssn++;
	assert_int_equal(pair_rx(0, 0), SAN_DROP_SSN);
	*p = saved;
	p->offset = 101;
	assert_int_equal(pair_rx(0, 0), SAN_DROP_RANGE);
	*p = saved;
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NONE);
	assert_settles(2);
	pair_push(2, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 100);
	pair_xfer(0);
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_PUSH_GRNT, 0));
	p->rsn = pair_rsn(0);
	p->ssn = pair_rsn(0);
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_PUSH_GRNT, 0)), SAN_DROP_FINISHED);
}

/* RT-20: each grant is lost once: it is resent, and everything completes. */
UNIT_CASE_IN(san_tl_solicit_next_grant__lost_once, setup_steps)
{
	assert_int_equal(SLCTD(0, SAN_KIND_PUSH, 3000), 0);
	for (uint32_t i = 0; i < 3; i++) {
		pair_xfer(0);
		do { /* until the grant is sent; it does not arrive */
			pair_wait(10 * SAN_NS_PER_US);
			pair_tx(1);
		} while (pair_find(SAN_OP_PUSH_GRNT, 0) == UINT32_MAX);
		while (san_tl_txn_at(pair_tc(0), pair_rsn(0))->granted < 1000 * (i + 1)) {
			pair_wait(10 * SAN_NS_PER_US);
			pair_xfer(1);
		}
	}
	assert_settles_with(SAN_ST_OK);
	assert_true(pair.h[1].pdl->stats.nb_rtx >= 3);
}

/* RT-32: data beyond the grant is refused. */
UNIT_CASE_IN(solicited_data__not_granted, setup_steps)
{
	struct san_wire_pkt *p;

	assert_int_equal(SLCTD(0, SAN_KIND_PUSH, 3000), 0);
	pair_xfer(0);
	pair_xfer(1);
	pair_tx(0);
	p = pair_pkt(0);
	assert_int_equal(p->op, SAN_OP_PUSH_SLCTD_DATA);
	p->offset = 500;
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RANGE);
	p->offset = 0;
	p->rsn = pair_rsn(1); /* nothing was ever granted to it */
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RANGE);
	p->rsn = pair_rsn(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
}

/* RULE-4: a receive is reserved before a send is granted. */
UNIT_CASE(san_tl_solicit_grant_one__reserves_first)
{
	pair.f[1].nb_recvs = 1;
	SLCTDS(2, SAN_KIND_SEND, 100);
	pair_xfer(0);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 1);
	assert_int_equal(pair.f[1].nb_set_aside, 1);
	pair_xfer(1); /* the first one is used */
	pair_xfer(0);
	pair_wait(3 * SAN_NS_PER_MS);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 1);
	pair.f[1].nb_recvs++;
	san_tl_on_recv_posted(pair.h[1].tl, pair.slot[1], pair.now);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 2);
	assert_settles(2);
	assert_int_equal(pair.f[0].status[1], SAN_ST_OK);
	assert_int_equal(pair.f[1].nb_recvs, 0);
}

/* One receive and two sends: the second waits, and may use it when the first has failed. */
static void
one_waits(void)
{
	pair.f[1].nb_recvs = 1;
	assert_int_equal(SLCTD(0, SAN_KIND_SEND, 60000), 0);
	assert_int_equal(SLCTD(1, SAN_KIND_SEND, 100), 0);
	pair_xfer(0);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 1);
	assert_true(pair_tc(1)->grant_wait);
}

static void
second_is_sent(uint8_t first)
{
	assert_settles_with(first, SAN_ST_OK);
	assert_int_equal(pair.f[1].nb_recvs, 0);
}

UNIT_CASE(san_tl_rxn_unreserve__given_up_before_data)
{
	one_waits();
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 0), 0);
	second_is_sent(SAN_ST_ABORTED);
}

UNIT_CASE(san_tl_rxn_push_undo__given_up_with_data)
{
	one_waits();
	pair_xfer(1);
	pair_tx(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE); /* takes the receive */
	assert_int_equal(pair.f[1].nb_recvs, 0);
	assert_true(pair_tc(1)->grant_wait);
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 0), 0);
	second_is_sent(SAN_ST_ABORTED);
	assert_int_equal(pair.f[1].nb_abort, 1);
}

UNIT_CASE(san_tl_rxn_push_undo__refused)
{
	one_waits();
	pair_xfer(1);
	pair.f[1].push_req = SAN_ST_ACCESS; /* and the reservation is returned */
	pair_tx(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_ABORTED);
	pair.f[1].push_req = SAN_ST_OK;
	second_is_sent(SAN_ST_ACCESS);
}

/* RULE-4, RULE-5: after the initiator's RNR time a grant with a status, reliably. */
UNIT_CASE(san_tl_solicit_grant_timer__refused_in_the_end)
{
	uint64_t start = pair.now;

	assert_int_equal(SLCTD(0, SAN_KIND_SEND, 100), 0);
	assert_int_equal(pair_push(1, SAN_KIND_PUSH, SAN_SOLICIT_NEVER, 100), 0);
	pair_xfer(0);
	while (pair.h[1].tl->stats.nb_refused == 0)
		pair_wait(10 * SAN_NS_PER_US);
	assert_in_range(pair.now - start, 5 * SAN_NS_PER_MS, 6 * SAN_NS_PER_MS);
	pair_tx(1); /* lost */
	assert_int_equal(pair_pkt(pair_find(SAN_OP_PUSH_GRNT, 0))->status, SAN_ST_RNR);
	assert_settles(2);
	assert_int_equal(pair.f[0].status[0], SAN_ST_RNR);
	assert_int_equal(pair.f[0].status[1], SAN_ST_OK); /* the connection continues */
	assert_int_equal(pair.f[1].nb_push_req, 1);
}

/*
 * After a wake-up the head may wait for something else, here for unused grants of its connection;
 * it is still refused in time.
 */
UNIT_CASE_IN(san_tl_solicit_grant_timer__also_when_woken, pair_setup_hasty_unordered)
{
	uint64_t start = pair.now;

	pair.f[1].nb_recvs = 1;
	assert_int_equal(SLCTD(0, SAN_KIND_SEND, 3000), 0);
	assert_int_equal(SLCTD(1, SAN_KIND_SEND, 100), 0);
	assert_int_equal(pair_push(2, SAN_KIND_SEND, SAN_SOLICIT_NEVER, 100), 0); /* takes it */
	pair_xfer(0);
	assert_true(pair_tc(1)->grant_wait);
	pair_wait(3 * SAN_NS_PER_MS);
	pair_xfer(1);
	pair_xfer(0); /* data of the first: RNR, and it stays granted */
	pair_tick(1);
	assert_false(pair_tc(1)->grant_wait);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 1);
	while (pair.h[1].tl->stats.nb_refused == 0)
		pair_wait(10 * SAN_NS_PER_US);
	assert_in_range(pair.now - start, 5 * SAN_NS_PER_MS, 6 * SAN_NS_PER_MS);
	assert_settles(3);
	assert_int_equal(pair.f[1].nb_recvs, 0);
}

/* A request for an SSN that was used, or far beyond; and an empty one. */
UNIT_CASE(san_tl_solicit_ssn_valid__each_once)
{
	struct san_wire_pkt *p;

	SLCTDS(2, SAN_KIND_PUSH, 100);
	assert_int_equal(pair_tx(0), 2);
	pair_rx(1, 0);
	p = pair_pkt(1);
	p->ssn = pair_rsn(0);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_SSN);
	p->ssn = pair_rsn(1 + 64);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_SSN);
	p->ssn = pair_rsn(1);
	p->length = 0;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RANGE);
	p->length = 100;
	p->rsn = pair_rsn(0);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RSN);
	p->rsn = pair_rsn(1);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
}

/* RT-35: SSNs without a record, of pushes that were given up, are limited by host. */
UNIT_CASE(san_tl_solicit_ssn_join__share_of_a_host)
{
	struct san_tl *tl = pair.h[1].tl;
	struct san_tl_conn *tc = pair_tc(1);
	struct san_tl_conf conf = tl->conf;
	uint32_t ssn = tc->ssn_queued, n;

	tl->conf.max_txns = 0;
	tl->conf.max_rxns = 40;
	for (n = 1; san_tl_solicit_ssn_join(tl, tc, ssn + n, NULL); n++)
		assert_true(n < 60);
	assert_true(n > 40); /* no other host needs them */
	san_tl_rxn_ssn_end_all(tl, tc);
	tl->pdl->nb_hosts++;
	for (n = 1; san_tl_solicit_ssn_join(tl, tc, ssn + n, NULL); n++)
		;
	assert_int_equal(n - 1, 40 / (SAN_SHARES + 1) + 1);
	tl->pdl->nb_hosts--;
	tl->conf = conf;
}
