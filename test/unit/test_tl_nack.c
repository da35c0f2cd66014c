/* SPDX-License-Identifier: BSD-3-Clause */

#include "tl_pair.h"

#define NEVER   SAN_SOLICIT_NEVER
#define PUSH(n) pair_push(n, SAN_KIND_PUSH, NEVER, 100)
#define SEND(n) pair_push(n, SAN_KIND_SEND, NEVER, 100)

static void
setup_few_records(void)
{
	struct tl_link l = pair_link(false);
	struct san_tl_conf tl;

	san_tl_conf_default(&tl);
	tl.max_rxns = 3 * TL_HOST_CONNS + 14;
	pair_open(&l, &tl);
}

UNIT_FIXTURE(.setup = pair_setup_hasty, .teardown = pair_close);

/* The NACK that *side* has to send; it stays in pair.out. */
static struct san_wire_pkt *
nack_of(int side)
{
	uint32_t i;

	pair_tx(side);
	i = pair_find(SAN_OP_NACK, 0);
	assert_int_not_equal(i, UINT32_MAX);
	return pair_pkt(i);
}

/* Refused packets of one host leave room for NACKs to others, and are limited. (RT-36) */
UNIT_CASE(san_tl_nack__budget_of_a_host)
{
	struct san_tl *tl = pair.h[1].tl;
	struct tl_link l = pair_link(true);
	struct san_wire_pkt p;
	uint16_t slot[2], from;
	uint32_t i, n = 0;

	pair.h[0].side = 9; /* another host */
	pair_connect(&l, slot);
	pair.h[0].side = 0;
	tl->now_ns = pair.now;
	for (i = 0; i < 2000; i++)
		san_tl_nack(tl, pair_tc(1), i, 0, SAN_ST_ACCESS);
	san_tl_nack(tl, &tl->conns[slot[1]], 0, 0, SAN_ST_ACCESS);
	for (i = 0; san_tl_nack_next(tl, &from, &p); i++)
		n += from == slot[1];
	assert_int_equal(n, 1);
	assert_int_equal(i, SAN_TL_NACKS / 2 + 1);
	/* 10 ms, in each 500 */
	for (i = n = 0; i < 10000; i++) {
		tl->now_ns += SAN_NS_PER_US;
		san_tl_nack(tl, pair_tc(1), i, 0, SAN_ST_ACCESS);
		while (san_tl_nack_next(tl, &from, &p))
			n++;
	}
	assert_in_range(n, 4999, 5000);
}

/* RT-23, RT-33; RULE-4: withdrawn, then resent with new PSNs and the round. */
UNIT_CASE(san_tl_nack_rnr__withdraw_and_resend)
{
	struct san_wire_pkt *p;
	uint32_t psn;

	pair_sends(0, 3);
	assert_int_equal(pair_tx(0), 3);
	psn = pair_pkt(0)->psn;
	assert_int_equal(pair_pkt(0)->round, 0);
	assert_int_equal(pair_rx(1, 2), SAN_DROP_NONE); /* held */
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	/* held packets above it are dropped, and not reported any more */
	assert_int_equal(pair.h[1].tl->nb_held, 0);
	assert_int_equal(pair.c[1]->rx[SAN_WIN_DATA].high, psn);
	p = nack_of(1);
	assert_int_equal(p->status, SAN_ST_RNR);
	assert_int_equal(p->nack_psn, psn);
	assert_int_equal(p->rsn, pair_rsn(0));
	assert_int_equal(p->round, 1);
	assert_int_equal(p->delay_us, 100);
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_NACK, 0)), SAN_DROP_NONE);
	assert_int_equal(pair_tx(0), 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(pair_pkt(i)->op, SAN_OP_RESYNC);
		assert_int_equal(pair_pkt(i)->psn, psn + i);
		assert_int_equal(pair_pkt(i)->status, SAN_RESYNC_FILL);
		assert_int_equal(pair_rx(1, i), SAN_DROP_NONE);
	}
	assert_int_equal(pair.c[1]->rx[SAN_WIN_DATA].base, psn + 3);
	pair_xfer(1);
	assert_int_equal(pair_tx(0), 0); /* not before the delay is over */
	pair.f[1].nb_recvs = 3;
	pair_wait(101 * SAN_NS_PER_US);
	assert_int_equal(pair_tx(0), 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(pair_pkt(i)->rsn, pair_rsn(i));
		assert_int_equal(pair_pkt(i)->psn, psn + 3 + i);
		assert_int_equal(pair_pkt(i)->round, 1);
		pair_rx(1, i);
	}
	assert_int_equal(pair.f[1].nb_done, 3);
	assert_settles(3);
}

/* RULE-4: packets sent before the RNR are refused after it, with a repeated NACK. */
UNIT_CASE(san_tl_nack_is_old_round__refused_again)
{
	struct san_wire_pkt *p;

	pair_sends(0, 2);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	pair.f[1].nb_recvs = 2; /* now it would be ready */
	assert_int_equal(pair_rx(1, 0), SAN_DROP_ROUND);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_ROUND);
	assert_int_equal(pair.f[1].nb_done, 0);
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_NACK, 2));
	assert_int_equal(p->round, 1);
	assert_int_equal(p->rsn, pair_rsn(0)); /* the first of those refused */
	/* only the last one arrives */
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_NACK, 2)), SAN_DROP_NONE);
	assert_settles(2);
	assert_int_equal(pair.h[0].tl->stats.nb_rnr_rx, 1);
}

/* RT-20; RULE-4, RULE-17: an old NACK, or one for nothing outstanding, is ignored. */
UNIT_CASE(san_tl_nack_rx__stale)
{
	struct san_wire_pkt *p, saved;
	uint32_t i;

	assert_int_equal(SEND(0), 0);
	pair_xfer(0);
	p = nack_of(1);
	saved = *p;
	i = pair_find(SAN_OP_NACK, 0);
	p->nack_psn += 1;
	assert_int_equal(pair_rx(0, i), SAN_DROP_NACK_STALE);
	*p = saved;
	p->rsn += 1;
	assert_int_equal(pair_rx(0, i), SAN_DROP_NACK_STALE);
	*p = saved;
	p->round = 0;
	assert_int_equal(pair_rx(0, i), SAN_DROP_NACK_STALE);
	*p = saved;
	assert_int_equal(pair_rx(0, i), SAN_DROP_NONE);
	assert_int_equal(pair_rx(0, i), SAN_DROP_NACK_STALE); /* a duplicate */
	assert_int_equal(pair.h[0].tl->stats.nb_rnr_rx, 1);
	assert_int_equal(pair.h[0].pdl->stats.nb_withdrawn, 1);
	p->status = SAN_ST_ACCESS; /* for a PSN that was replaced by RESYNC */
	assert_int_equal(pair_rx(0, i), SAN_DROP_NACK_STALE);
}

/* RT-23: RNR has its own time limit; then only this one fails, and the rest continues. */
UNIT_CASE(san_tl_nack_rnr_timer__gives_up)
{
	uint64_t start = pair.now;

	assert_int_equal(SEND(0), 0);
	assert_int_equal(PUSH(1), 0);
	while (pair.f[0].nb_cmpl < 2)
		pair_turn();
	assert_int_equal(pair.f[0].status[0], SAN_ST_RNR);
	assert_int_equal(pair.f[0].status[1], SAN_ST_OK);
	assert_in_range(pair.now - start, 5 * SAN_NS_PER_MS, 6 * SAN_NS_PER_MS);
	assert_true(pair.h[1].tl->stats.nb_rnr_tx > 10);
	assert_int_equal(pair.h[0].tl->stats.nb_aborts, 1);
	assert_int_equal(pair.f[1].nb_done, 1);
}

/* RT-23: a wait without an end, of an unsolicited send, a solicited one, and a pull. */
static void
wait_endless(bool ordered)
{
	pair_close();
	pair_setup_as(ordered, UINT16_MAX);
	pair.f[1].pull_req = SAN_ST_RNR;
	assert_int_equal(SEND(0), 0);
	assert_int_equal(pair_push(1, SAN_KIND_SEND, SAN_SOLICIT_ALWAYS, 5000), 0);
	assert_int_equal(pair_pull(2, 100), 0);
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < 100; k++)
			pair_turn();
		assert_int_equal(pair.f[0].nb_cmpl, 0);
		pair_wait(20 * SAN_NS_PER_S);
	}
	pair.f[1].nb_recvs = 2;
	pair.f[1].pull_req = SAN_ST_OK;
	san_tl_on_recv_posted(pair.h[1].tl, pair.slot[1], pair.now);
	assert_settles(3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pair.f[0].status[i], SAN_ST_OK);
}

UNIT_CASE(san_tl_rnr_end_ns__endless)
{
	wait_endless(true);
	wait_endless(false);
}

/* RULE-4: unordered, RNR affects only its own RSN. */
UNIT_CASE_IN(san_tl_nack_rnr__unordered_only_itself, pair_setup_hasty_unordered)
{
	assert_int_equal(SEND(0), 0);
	assert_int_equal(PUSH(1), 0);
	assert_int_equal(SEND(2), 0);
	assert_int_equal(pair_tx(0), 3);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 2), SAN_DROP_RNR);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_ROUND);
	pair_tx(1);
	for (uint32_t i = pair.nb_out; i > 0; i--) /* the NACKs in the wrong order: both count */
		pair_rx(0, i - 1);
	assert_int_equal(pair.h[0].tl->stats.nb_rnr_rx, 2);
	assert_int_equal(pair.f[0].nb_cmpl, 1);
	assert_int_equal(pair.f[0].cookie[0], 1);
	pair.f[1].nb_recvs = 2;
	assert_settles(3);
	assert_int_equal(pair.f[1].nb_done, 3);
}

/* RT-26: unordered without a record: PSNs are withdrawn, or they would fill the window. */
UNIT_CASE_IN(san_tl_nack_no_record__withdraws, setup_few_records)
{
	struct san_wire_pkt *p;

	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(pair_push(i, SAN_KIND_PUSH, NEVER, 1100), 0);
	assert_int_equal(pair_tx(0), 32);
	/* the second half of each: 14 records beyond the two claims */
	for (uint32_t i = 1; i < 15; i++)
		assert_int_equal(pair_rx(1, 2 * i + 1), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 31), SAN_DROP_NO_TXN);
	assert_int_equal(pair_rx(1, 30), SAN_DROP_ROUND);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE); /* the head of the line */
	p = nack_of(1);
	assert_int_equal(p->status, SAN_ST_RESOURCE);
	assert_int_equal(p->rsn, pair_rsn(15));
	assert_int_equal(p->round, 1);
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NONE);
	assert_int_equal(pair_rx(0, 1), SAN_DROP_NACK_STALE); /* the same content */
	assert_int_equal(pair.h[0].pdl->stats.nb_withdrawn, 2);
	assert_settles(16);
	assert_int_equal(pair.f[1].nb_done, 16);
	assert_int_equal(pair.h[0].tl->stats.nb_rnr_rx, 0); /* that is not RNR */
}

/* A pull with RSN number 15 is sent to a target without a record for it. */
static void
fill_records(void)
{
	for (uint32_t i = 0; i < 15; i++)
		assert_int_equal(pair_push(i, SAN_KIND_PUSH, NEVER, 1100), 0);
	assert_int_equal(pair_pull(15, 100), 0);
	assert_int_equal(pair_tx(0), 31);
	for (uint32_t i = 0; i < 31; i++) /* second halves: all records but the two claims */
		if (pair_pkt(i)->op != SAN_OP_PULL_REQ && pair_pkt(i)->offset != 0 &&
		    pair_pkt(i)->rsn != pair_rsn(0))
			assert_int_equal(pair_rx(1, i), SAN_DROP_NONE);
	pair.c[0]->rtt.srtt_ns = SAN_NS_PER_S; /* so that no refusal counts as old */
}

/* It is refused, and resent. */
static void
refuse_once(uint32_t psn)
{
	struct san_wire_pkt *p;

	assert_int_equal(pair_rx(1, pair_find(SAN_OP_PULL_REQ, 0)), SAN_DROP_NO_TXN);
	p = nack_of(1);
	assert_int_equal(p->status, SAN_ST_RESOURCE);
	assert_int_equal(p->flags & SAN_F_WIN_DATA, 0);
	assert_int_equal(p->nack_psn, psn);
	assert_int_equal(p->rsn, pair_rsn(15));
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_NACK, 0)), SAN_DROP_NONE);
	do {
		pair_wait(101 * SAN_NS_PER_US);
		pair_tx(0);
	} while (pair_find(SAN_OP_PULL_REQ, 0) == UINT32_MAX);
}

/* RT-23: a request without a record waits under its PSN as long as needed: no retry counts. */
UNIT_CASE_IN(san_tl_nack_request__costs_no_retry, setup_few_records)
{
	uint32_t psn = pair.c[0]->tx[SAN_WIN_REQ].next;
	const struct san_pdl_entry *e;

	fill_records();
	for (uint32_t i = 0; i < 3 * pair.h[0].pdl->conf.max_retries; i++)
		refuse_once(psn);
	pair.c[0]->rtt.srtt_ns = 0;
	e = san_pdl_win_tx_entry(pair.c[0]->txb, SAN_WIN_REQ, psn);
	assert_int_equal(e->retries, 0);
	assert_settles(16);
}

/*
 * RT-35: a connection refused for some round trips sends one packet at a time, until one is
 * accepted.
 */
UNIT_CASE_IN(san_tl_nack_request__one_at_a_time, setup_few_records)
{
	uint32_t psn = pair.c[0]->tx[SAN_WIN_REQ].next;

	fill_records();
	for (uint32_t i = 0; i < 17; i++) {
		refuse_once(psn);
		assert_false(pair.c[0]->crowded);
	}
	pair.c[0]->rtt.srtt_ns = SAN_NS_PER_US;
	refuse_once(psn);
	assert_true(pair.c[0]->crowded);
	pair_wait(SAN_NS_PER_S); /* lost packets time out */
	pair_settle();
	assert_false(pair.c[0]->crowded);
	assert_int_equal(pair.f[0].nb_cmpl, 16);
}

/* RT-27: completed in error: one fails with its status, the others do not. */
UNIT_CASE(complete_in_error__the_connection_lives)
{
	pair.f[1].push_req = SAN_ST_ACCESS;
	assert_int_equal(pair_push(0, SAN_KIND_PUSH, NEVER, 2500), 0);
	assert_int_equal(PUSH(1), 0);
	assert_int_equal(pair_tx(0), 4);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_ABORTED);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(1));
	pair.f[1].push_req = SAN_ST_OK;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_ABORTED); /* each of its packets */
	assert_int_equal(pair_rx(1, 3), SAN_DROP_NONE);
	pair_tx(1);
	assert_int_equal(pair_pkt(pair_find(SAN_OP_NACK, 1))->status, SAN_ST_ACCESS);
	assert_settles_with(SAN_ST_ACCESS, SAN_ST_OK); /* and both NACKs were lost */
	assert_true(pair.h[0].pdl->stats.nb_resync_tx >= 3);
	for (uint32_t i = 0; i < 64; i++) { /* N later it cannot be repeated any more */
		assert_int_equal(PUSH(2 + i), 0);
		if (i % 16 == 0)
			pair_settle();
	}
	assert_settles(66);
}

/* RT-27: the same when a region is removed half way, or the ULP-ACK is a refusal. */
UNIT_CASE(complete_in_error__late)
{
	assert_int_equal(pair_push(0, SAN_KIND_PUSH, NEVER, 2500), 0);
	assert_int_equal(pair_tx(0), 3);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 2), SAN_DROP_NONE); /* LAST: received */
	pair.f[1].push_place = SAN_ST_REVOKED;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_ABORTED);
	assert_int_equal(pair.f[1].nb_abort, 1);
	pair.f[1].push_place = SAN_ST_OK;
	assert_settles_with(SAN_ST_REVOKED);
	pair.f[1].push_done = SAN_ST_RESOURCE; /* means "not now" on the wire */
	assert_int_equal(pair_push(1, SAN_KIND_PUSH, NEVER, 1500), 0);
	pair_settle();
	assert_int_equal(pair.f[0].status[1], SAN_ST_REFUSED);
	assert_int_equal(pair.f[1].nb_done, 0);
}

/* RT-32: half a byte for each of the last N. */
UNIT_CASE(san_tl_nack_refused_get__table)
{
	struct san_tl_conn *tc = pair_tc(1);

	tc->rx_base = pair_rsn(SAN_TL_N_MAX);
	assert_int_equal(san_tl_nack_refused_get(tc, pair_rsn(0)), SAN_ST_OK);
	assert_true(san_tl_nack_refused_note(pair.h[1].tl, tc, pair.c[1]->rx[SAN_WIN_DATA].base));
	for (uint32_t i = 0; i < SAN_TL_N_MAX; i++)
		san_tl_nack_refused_set(tc, pair_rsn(i), i % SAN_ST_MAX);
	for (uint32_t i = 0; i < SAN_TL_N_MAX; i++)
		assert_int_equal(san_tl_nack_refused_get(tc, pair_rsn(i)), i % SAN_ST_MAX);
	tc->rx_base++; /* RSN 256 finishes: it replaces RSN 0, which is done at the initiator */
	san_tl_nack_refused_set(tc, pair_rsn(SAN_TL_N_MAX), SAN_ST_ACCESS);
	assert_int_equal(san_tl_nack_refused_get(tc, pair_rsn(0)), SAN_ST_OK);
	assert_int_equal(san_tl_nack_refused_get(tc, pair_rsn(SAN_TL_N_MAX)), SAN_ST_ACCESS);
	assert_int_equal(san_tl_nack_refused_get(tc, pair_rsn(1)), 1);
	tc->rx_base = pair_rsn(0);
}

/*
 * RT-27, RT-35: a status is remembered until the RESYNC shows that the initiator knows it, also
 * while later pushes finish.
 */
UNIT_CASE(san_tl_nack_refused_pass__with_the_resync)
{
	pair.f[1].bad = SAN_ST_ACCESS;
	pair.f[1].bad_rsn = pair_rsn(1);
	pair_pushes(0, 3);
	assert_int_equal(pair_tx(0), 3);
	pair_rx(1, 1); /* ahead of its turn: held */
	pair_rx(1, 2);
	assert_null(pair_tc(1)->refused);
	pair_rx(1, 0);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(3));
	assert_int_equal(san_tl_nack_refused_get(pair_tc(1), pair_rsn(1)), SAN_ST_ACCESS);
	assert_settles(3);
	assert_int_equal(pair.f[0].status[1], SAN_ST_ACCESS);
	assert_null(pair_tc(1)->refused);
	assert_int_equal(pair.h[1].tl->free_refused.nb, pair.h[1].tl->free_refused.max);
}

/* RT-27, RT-35: a refusal for which there is no memory comes later. The connection lives. */
UNIT_CASE_ALONE(san_tl_nack_refused_note__no_memory_waits)
{
	struct tl_link l = pair_link(true);
	struct san_pool *pool;
	uint32_t max;

	for (uint32_t i = 0; i < 2; i++) {
		l.ordered = i == 0;
		pair_open(&l, NULL);
		pool = &pair.h[1].tl->free_refused;
		max = pool->max;
		pool->nb = pool->max = 0;
		pair.f[1].bad = SAN_ST_ACCESS;
		pair.f[1].bad_rsn = pair_rsn(0);
		pair_pushes(0, 2);
		assert_settles(i);
		assert_false(pair.c[1]->failed);
		pool->nb = pool->max = max;
		assert_settles(2);
		assert_int_equal(pair.f[0].status[i], SAN_ST_ACCESS);
		assert_int_equal(pair.f[0].status[1 - i], SAN_ST_OK);
		pair_close();
	}
}

/* Not if a part of the push is placed: without its status it would become a success. */
UNIT_CASE(san_tl_nack_refused_note__no_memory_ends_it)
{
	pair.h[1].tl->free_refused.nb = pair.h[1].tl->free_refused.max = 0;
	pair.f[1].push_place = SAN_ST_REVOKED;
	assert_int_equal(PUSH(0), 0);
	pair_tx(0);
	pair_rx(1, 0);
	assert_true(pair.c[1]->failed);
	assert_true(san_wheel_timer_is_armed(&pair.c[1]->timer) &&
		    pair.c[1]->timer.deadline_ns <= pair.now);
}

/* RT-35: a connection whose peer does not answer refusals ends when others find no memory. */
UNIT_CASE(san_tl_nack_refused_note__stale_holders)
{
	struct tl_link l = pair_link(true);
	struct san_tl *tl = pair.h[1].tl;
	uint16_t other[2];

	pair_connect(&l, other);
	tl->free_refused.nb = tl->free_refused.max = 1;
	pair.f[1].push_req = SAN_ST_ACCESS;
	assert_int_equal(PUSH(0), 0);
	pair_tx(0);
	pair_rx(1, 0);
	assert_non_null(pair_tc(1)->refused);
	assert_false(san_tl_nack_refused_note(tl, &tl->conns[other[1]], 1));
	tl->now_ns += SAN_HOLD_MAX_NS - 1;
	assert_false(san_tl_nack_refused_note(tl, &tl->conns[other[1]], 1));
	assert_false(pair.c[1]->failed);
	tl->now_ns++;
	assert_false(san_tl_nack_refused_note(tl, &tl->conns[other[1]], 1));
	assert_true(pair.c[1]->failed);
}

/* RT-27; RULE-5: RESYNC(abort) of an RSN that the target does not know. */
UNIT_CASE(san_tl_nack_rx_resync__request_never_arrived)
{
	struct san_wire_pkt *p;

	pair_pushes(0, 2);
	assert_int_equal(pair_tx(0), 2);
	p = pair_pkt(0);
	pair_rx(1, 1);
	assert_int_equal(pair.f[1].nb_done, 0);
	p->op = SAN_OP_RESYNC;
	p->flags = SAN_F_WIN_DATA;
	p->status = SAN_RESYNC_ABORT;
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 1);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(2));
	assert_int_equal(pair.c[1]->rx[SAN_WIN_DATA].base, p->psn + 2);
}

/* Ahead of the base it is kept until its turn; its request is accepted when it arrives. */
UNIT_CASE(san_tl_nack_rx_resync__ahead)
{
	struct san_wire_pkt *p;
	uint32_t i;

	assert_int_equal(PUSH(0), 0);
	assert_int_equal(pair_push(1, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 100), 0);
	assert_int_equal(PUSH(2), 0);
	assert_int_equal(pair_tx(0), 2); /* the third waits for the grant */
	i = pair_find(SAN_OP_PUSH_UNSLCTD_DATA, 0);
	p = pair_pkt(i);
	p->op = SAN_OP_RESYNC;
	p->flags = SAN_F_WIN_DATA;
	p->status = SAN_RESYNC_ABORT;
	p->rsn = pair_rsn(1);
	assert_int_equal(pair_rx(1, i), SAN_DROP_NONE);
	assert_int_equal(pair_tc(1)->nb_ahead, 1);
	assert_int_equal(pair_rx(1, pair_find(SAN_OP_PUSH_SLCTD_REQ, 0)), SAN_DROP_FINISHED);
	assert_int_equal(pair.h[1].tl->stats.nb_grants, 0);
	assert_int_equal(pair_tc(1)->rx_ssn, pair_rsn(1)); /* its SSN is skipped */
	p->rsn = pair_rsn(0);
	p->psn++;
	assert_int_equal(pair_rx(1, i), SAN_DROP_NONE);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(2));
	assert_int_equal(pair_tc(1)->nb_rxns, 0);
}

/* RULE-5: the initiator aborts one; its neighbours are not affected. */
UNIT_CASE(san_tl_nack_txn_abort__one_of_three)
{
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 1), -ENOENT);
	assert_int_equal(PUSH(0), 0);
	assert_int_equal(pair_push(1, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 5000), 0);
	assert_int_equal(PUSH(2), 0);
	pair_tx(0); /* sends the first, and the request of the second */
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 1), 0);
	assert_settles_with(SAN_ST_OK, SAN_ST_ABORTED, SAN_ST_OK);
	assert_int_equal(pair.f[1].nb_done, 2);
	assert_int_equal(pair.h[1].tl->budget_used + pair.h[1].tl->expired_used, 0);
	/* later grants are in order: its SSN is skipped on both sides */
	assert_int_equal(pair_push(3, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 100), 0);
	pair_settle();
	assert_int_equal(pair.f[0].status[3], SAN_ST_OK);
	assert_int_equal(pair_tc(0)->ssn_base, pair_tc(0)->ssn_next);
}

/* Sent completely it is too late, and LAST keeps its meaning. */
UNIT_CASE(san_tl_nack_txn_abort__too_late)
{
	assert_int_equal(PUSH(0), 0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 0), 0);
	pair_settle();
	assert_int_equal(pair.f[0].status[0], SAN_ST_OK);
	assert_int_equal(pair.f[1].nb_done, 1);
	/* but it does not wait for a receiver that is not ready */
	assert_int_equal(SEND(1), 0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 1), 0);
	pair_rx(1, 0);
	pair_settle();
	assert_int_equal(pair.f[0].status[1], SAN_ST_ABORTED);
	assert_int_equal(pair.h[1].tl->stats.nb_rnr_tx, 1);
}

/* NACKs of a connection that has ended are not sent. */
UNIT_CASE(san_tl_nack_next__gone)
{
	assert_int_equal(SEND(0), 0);
	pair_xfer(0);
	san_tl_conn_close(pair.h[1].tl, pair.slot[1], SAN_ST_ABORTED, pair.now);
	pair_tx(1);
	assert_int_equal(pair_find(SAN_OP_NACK, 0), UINT32_MAX);
}
