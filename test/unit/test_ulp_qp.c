/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ulp.h"

static uint8_t mem[64];

UNIT_FIXTURE(.setup = test_ulp_setup, .teardown = test_ulp_close);

/** Post receives wr_id = first .. first + n - 1. */
static void
post_recvs(uint64_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(test_post_recv(first + i, mem, sizeof(mem)), 1);
}

static uint8_t
take(struct san_tl_rxn *r)
{
	*r = test_push(SAN_KIND_SEND, 8, 0, 0);
	return san_tl_ulp_push_req(t.ulp, r);
}

/** wr_id of the receive that the next send uses; all of it arrives. */
static uint64_t
receive_one(void)
{
	struct san_tl_rxn r;

	assert_int_equal(take(&r), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	return test_poll_one(t.recv_cq).wr_id;
}

static void
expect_flushed(struct san_ulp_cq *cq, uint8_t op, uint64_t first, uint32_t n)
{
	struct san_ulp_wc wc[64];

	assert_int_equal(san_ulp_cq_poll(cq, wc, 64), n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(wc[i].wr_id, first + i);
		assert_int_equal(wc[i].op, op);
		assert_int_equal(wc[i].status, RTSAN_WC_FLUSHED);
		assert_int_equal(wc[i].byte_len, 0);
	}
}

UNIT_CASE(san_ulp_qp_create__refuses_bad_arguments)
{
	const struct san_ulp_qp_conf good = {t.send_cq, t.recv_cq, 4, 4, 0};
	struct san_ulp_qp_conf bad;
	uint32_t qp;

#define REFUSED(field, value)                                                   \
	do {                                                                    \
		bad = good;                                                     \
		bad.field = value;                                              \
		assert_int_equal(san_ulp_qp_create(t.ulp, &bad, &qp), -EINVAL); \
	} while (0)
	REFUSED(send_cq, NULL);
	REFUSED(recv_cq, NULL);
	REFUSED(sq_depth, 0);
	REFUSED(sq_depth, 3);
	REFUSED(sq_depth, 8192);
	REFUSED(rq_depth, 0);
	REFUSED(rq_depth, 6);
	REFUSED(rq_depth, 8192);
#undef REFUSED
}

UNIT_CASE(san_ulp_qp_create__up_to_max_and_rests)
{
	const struct san_ulp_qp_conf conf = {t.send_cq, t.send_cq, 4096, 4096, 0};
	uint32_t qp[8], again;

	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &qp[i]), 0);
	assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &again), -ENOSPC);
	san_ulp_check(t.ulp);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, qp[5]), 0);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, qp[2]), 0);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, qp[2]), -EINVAL);
	assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &again), 0);
	/* the same place, another number: the old number is invalid */
	assert_int_equal(SAN_QPN_INDEX(again), SAN_QPN_INDEX(qp[2]));
	assert_int_not_equal(again, qp[2]);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, qp[2]), -EINVAL);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, again), 0);
	/* not the one just released: its place rests */
	assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &again), 0);
	assert_int_equal(SAN_QPN_INDEX(again), SAN_QPN_INDEX(qp[5]));
}

/* Lcores assign different numbers, and each knows only its own. (SYS-1) */
UNIT_CASE(san_ulp_qp_create__numbers_of_its_lcore)
{
	struct san_ulp_qp_conf conf = {.sq_depth = 4, .rq_depth = 4};
	struct san_ulp_conf ulp_conf;
	struct san_ulp *other;
	uint32_t qp;

	test_ulp_conf(&ulp_conf);
	ulp_conf.first_qp = 65536 - 7;
	assert_int_equal(san_ulp_create(&ulp_conf, &other), -EINVAL);
	ulp_conf.first_qp = 65536 - 8;
	assert_int_equal(san_ulp_create(&ulp_conf, &other), 0);
	assert_int_equal(san_ulp_cq_create(other, 16, &conf.send_cq), 0);
	conf.recv_cq = conf.send_cq;
	assert_int_equal(san_ulp_qp_create(other, &conf, &qp), 0);
	assert_int_equal(SAN_QPN_INDEX(qp), 65536 - 8);
	assert_int_equal(san_ulp_qp_index(&ulp_conf, qp), 0);
	assert_int_equal(san_ulp_qp_destroy(other, t.qp), -EINVAL);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, qp), -EINVAL);
	san_ulp_check(other);
	assert_int_equal(san_ulp_qp_destroy(other, qp), 0);
	assert_int_equal(san_ulp_qp_create(other, &conf, &qp), 0);
	assert_int_equal(san_ulp_qp_index(&ulp_conf, qp), 1);
	san_ulp_destroy(other);
}

UNIT_CASE(san_ulp_qp_bind__one_to_one)
{
	const struct san_ulp_qp_conf conf = {t.send_cq, t.recv_cq, 4, 4, 0};
	uint32_t qp;

	assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &qp), 0);
	assert_int_equal(san_ulp_qp_of(t.ulp, SLOT), t.qp);
	assert_int_equal(san_ulp_qp_of(t.ulp, SLOT + 1), UINT32_MAX);
	assert_int_equal(san_ulp_qp_of(t.ulp, 8), UINT32_MAX);
	assert_int_equal(san_ulp_qp_bind(t.ulp, qp, SLOT, PKEY, &peer), -EBUSY);
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT + 1, PKEY, &peer), -EBUSY);
	assert_int_equal(san_ulp_qp_bind(t.ulp, qp, 8, PKEY, &peer), -EINVAL);
	assert_int_equal(san_ulp_qp_bind(t.ulp, 99, SLOT + 1, PKEY, &peer), -EINVAL);
	assert_int_equal(san_ulp_qp_bind(t.ulp, qp, SLOT + 1, PKEY, &peer), 0);
	assert_int_equal(san_ulp_qp_of(t.ulp, SLOT + 1), qp);
	san_ulp_qp_unbind(t.ulp, qp);
	assert_int_equal(san_ulp_qp_of(t.ulp, SLOT + 1), UINT32_MAX);
	san_ulp_qp_unbind(t.ulp, qp);
	san_ulp_qp_unbind(t.ulp, 99);
}

UNIT_CASE_IN(san_ulp_qp_bind__submits_what_waited, NULL)
{
	struct san_ulp_wr wr[3];

	test_ulp_open(8, 8, 16);
	for (uint32_t i = 0; i < 3; i++)
		wr[i] = test_wr(RTSAN_WR_SEND, 100 + i, RTSAN_WR_SIGNALED);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 3, 0), 3);
	post_recvs(1, 2);
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_txns, 0);
	assert_int_equal(fake.nb_recv_posted, 0);
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT, PKEY, &peer), 0);
	assert_int_equal(fake.nb_txns, 0);
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_txns, 3);
	assert_int_equal(receive_one(), 1);
	for (uint32_t i = 0; i < 3; i++) {
		fake_cmpl(i, SAN_ST_OK);
		assert_int_equal(test_poll_one(t.send_cq).wr_id, 100 + i);
	}
}

UNIT_CASE(san_ulp_qp_is_idle__counts_requests)
{
	struct san_ulp_wr wr = test_wr(RTSAN_WR_SEND, 1, 0);

	post_recvs(1, 1);
	assert_true(san_ulp_qp_is_idle(t.ulp, t.qp));
	fake.room = 0;
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	assert_false(san_ulp_qp_is_idle(t.ulp, t.qp));
	test_room(1);
	assert_false(san_ulp_qp_is_idle(t.ulp, t.qp));
	fake_cmpl(0, SAN_ST_OK);
	assert_true(san_ulp_qp_is_idle(t.ulp, t.qp));
	assert_true(san_ulp_qp_is_idle(t.ulp, 99));
}

/* RT-7: all posted work completes. */
UNIT_CASE(san_ulp_qp_unbind__flushes_in_order)
{
	struct san_ulp_wr wr;
	struct san_ulp_wc wc;
	struct san_tl_rxn a, b, c;

	fake.room = 2;
	for (uint32_t i = 0; i < 6; i++) {
		/* unsignaled: errors complete nevertheless */
		wr = test_wr(RTSAN_WR_SEND, 100 + i, 0);
		assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	}
	post_recvs(1, 6);
	/* three in progress, one of them has returned its receive */
	assert_int_equal(take(&a), SAN_ST_OK);
	assert_int_equal(take(&b), SAN_ST_OK);
	assert_int_equal(take(&c), SAN_ST_OK);
	san_tl_ulp_push_abort(t.ulp, &b);
	fake_cmpl(0, RTSAN_WC_RETRY_EXC);
	fake_cmpl(1, RTSAN_WC_RETRY_EXC);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(san_ulp_cq_poll(t.send_cq, &wc, 1), 1);
		assert_int_equal(wc.wr_id, 100 + i);
		assert_int_equal(wc.status, RTSAN_WC_RETRY_EXC);
	}
	san_ulp_qp_unbind(t.ulp, t.qp);
	expect_flushed(t.send_cq, RTSAN_WC_SEND, 102, 4);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 1, 6);
	assert_true(san_ulp_qp_is_idle(t.ulp, t.qp));
	/* later calls of tl for them have no effect */
	san_tl_ulp_push_abort(t.ulp, &a);
	assert_int_not_equal(san_tl_ulp_push_done(t.ulp, &c), SAN_ST_OK);
	san_ulp_check(t.ulp);
}

UNIT_CASE_IN(san_ulp_qp_unbind__full_cq_is_flushed_by_pump, NULL)
{
	test_ulp_open_bound(8, 16, 4);
	post_recvs(1, 10);
	san_ulp_qp_unbind(t.ulp, t.qp);
	san_ulp_check(t.ulp);
	assert_false(san_ulp_qp_is_idle(t.ulp, t.qp));
	assert_false(san_ulp_qp_has_work(t.ulp)); /* until the application polls */
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT, PKEY, &peer), -EBUSY);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 1, 4);
	san_ulp_qp_pump(t.ulp, 0);
	san_ulp_qp_pump(t.ulp, 0);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 5, 4);
	san_ulp_qp_pump(t.ulp, 0);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 9, 2);
	assert_true(san_ulp_qp_is_idle(t.ulp, t.qp));
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT, PKEY, &peer), 0);
}

/* RT-36: many that wait for the same full queue are not checked until it has room. */
UNIT_CASE_IN(san_ulp_qp_unbind__many_wait_for_one_cq, NULL)
{
	enum {
		MANY = 6
	};
	struct san_ulp_qp_conf conf = {.sq_depth = 1, .rq_depth = 1};
	struct san_ulp_recv r = {.wr_id = 1};
	struct san_ulp_wc wc;
	struct san_ulp_cq *cq;
	uint32_t qp[MANY];

	test_ulp_open(8, 16, 4);
	assert_int_equal(san_ulp_cq_create(t.ulp, 2, &cq), 0);
	conf.send_cq = conf.recv_cq = cq;
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &qp[i]), 0);
		assert_int_equal(san_ulp_qp_post_recv(t.ulp, qp[i], &r, 1, 0), 1);
		san_ulp_qp_unbind(t.ulp, qp[i]);
	}
	san_ulp_qp_pump(t.ulp, 0);
	assert_true(TAILQ_EMPTY(&t.ulp->pump));
	assert_int_equal(TAILQ_FIRST(&t.ulp->fulls)->full.tqh_first->qpn, qp[2]);
	san_ulp_check(t.ulp);
	/* in turn, one for each entry polled; one that is destroyed leaves the list */
	assert_int_equal(san_ulp_qp_destroy(t.ulp, qp[3]), 0);
	for (uint32_t i = 0; i < MANY - 1; i++) {
		assert_int_equal(san_ulp_cq_poll(cq, &wc, 1), 1);
		assert_int_equal(wc.qp, qp[i < 3 ? i : i + 1]);
		san_ulp_qp_pump(t.ulp, 0);
		san_ulp_check(t.ulp);
	}
	assert_true(TAILQ_EMPTY(&t.ulp->fulls));
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(san_ulp_qp_destroy(t.ulp, qp[i]), i == 3 ? -EINVAL : 0);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, cq), 0);
}

UNIT_CASE(san_ulp_qp_unbind__later_posts_are_flushed)
{
	struct san_ulp_wr wr = test_wr(RTSAN_WR_PUSH, 9, 0);

	san_ulp_qp_unbind(t.ulp, t.qp);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	expect_flushed(t.send_cq, RTSAN_WC_PUSH, 9, 1);
	post_recvs(4, 2);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 4, 2);
	assert_int_equal(fake.nb_txns, 0);
	/* a new connection makes it usable again */
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT + 1, PKEY, &peer), 0);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	assert_int_equal(fake.nb_txns, 1);
	assert_int_equal(fake.txns[0].slot, SLOT + 1);
	fake_cmpl(0, SAN_ST_OK);
}

UNIT_CASE(san_ulp_qp_destroy__busy_while_bound)
{
	assert_int_equal(san_ulp_qp_destroy(t.ulp, t.qp), -EBUSY);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, 99), -EINVAL);
}

UNIT_CASE_IN(san_ulp_qp_destroy__flushes_what_fits, NULL)
{
	struct san_ulp_wr wr[3];

	test_ulp_open(8, 8, 4);
	for (uint32_t i = 0; i < 3; i++)
		wr[i] = test_wr(RTSAN_WR_PULL, 100 + i, 0);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 3, 0), 3);
	post_recvs(1, 6);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, t.qp), 0);
	expect_flushed(t.send_cq, RTSAN_WC_PULL, 100, 3);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 1, 4);
	san_ulp_qp_pump(t.ulp, 0);
}

/** Destroyed while it waits for the pump: first, in the middle or last of the list. */
UNIT_CASE(san_ulp_qp_destroy__leaves_the_pump)
{
	const struct san_ulp_qp_conf conf = {t.send_cq, t.recv_cq, 4, 4, 0};

	san_ulp_qp_pump(t.ulp, 0);
	for (uint32_t gone = 0; gone < 3; gone++) {
		struct san_ulp_wr wr = test_wr(RTSAN_WR_SEND, 1, 0);
		uint32_t qp[3];

		fake.nb_txns = 0;
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &qp[i]), 0);
			assert_int_equal(san_ulp_wr_post(t.ulp, qp[i], &wr, 1, 0), 1);
			assert_int_equal(san_ulp_qp_bind(t.ulp, qp[i], (uint16_t)(4 + i), PKEY,
							 &peer),
					 0);
		}
		/* unbind keeps the mark, destroy must not */
		san_ulp_qp_unbind(t.ulp, qp[gone]);
		assert_int_equal(san_ulp_qp_destroy(t.ulp, qp[gone]), 0);
		san_ulp_check(t.ulp);
		san_ulp_qp_pump(t.ulp, 0);
		assert_int_equal(fake.nb_txns, 2);
		test_poll_one(t.send_cq);
		for (uint32_t i = 0; i < 2; i++)
			fake_cmpl(i, SAN_ST_OK);
		for (uint32_t i = 0; i < 3; i++) {
			san_ulp_qp_unbind(t.ulp, qp[i]);
			san_ulp_qp_destroy(t.ulp, qp[i]);
		}
	}
}

/** Memory may be released only when no work in progress refers to it. */
UNIT_CASE(san_ulp_qp_names_key__until_completed)
{
	struct san_ulp_wr wr = test_wr(RTSAN_WR_SEND, 1, 0);
	struct san_ulp_recv recv = {.nb_sge = 2, .sge = {{mem, 4, 50}, {mem + 4, 4, 60}}};
	struct san_tl_rxn r = test_push(SAN_KIND_SEND, 8, 0, 0);

	wr.nb_sge = 2;
	wr.sge[0] = (struct rtsan_sge){mem, 4, 70};
	wr.sge[1] = (struct rtsan_sge){mem, 4, 80};
	wr.sge[2].lkey = 90; /* not part of it */
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	assert_int_equal(san_ulp_qp_post_recv(t.ulp, t.qp, &recv, 1, 0), 1);
	assert_true(san_ulp_qp_names_key(t.ulp, 60));
	assert_true(san_ulp_qp_names_key(t.ulp, 80));
	assert_false(san_ulp_qp_names_key(t.ulp, 90));
	fake_cmpl(0, SAN_ST_OK);
	assert_false(san_ulp_qp_names_key(t.ulp, 80));
	assert_int_equal(san_tl_ulp_push_req(t.ulp, &r), SAN_ST_OK);
	assert_true(san_ulp_qp_names_key(t.ulp, 60));
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	assert_false(san_ulp_qp_names_key(t.ulp, 60));
	/* inline data that looks like a list refers to nothing */
	wr.flags = RTSAN_WR_INLINE;
	wr.inline_len = RTSAN_INLINE_MAX;
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	assert_false(san_ulp_qp_names_key(t.ulp, 70));
	fake_cmpl(1, SAN_ST_OK);
}

UNIT_CASE(san_ulp_qp_post_recv__takes_what_fits)
{
	struct san_ulp_recv r[10] = {{0}};
	struct san_tl_rxn taken;

	for (uint32_t i = 0; i < 10; i++)
		r[i].wr_id = i;
	assert_int_equal(san_ulp_qp_post_recv(t.ulp, t.qp, r, 10, 0), 8);
	assert_int_equal(fake.nb_recv_posted, 1);
	assert_int_equal(san_ulp_qp_post_recv(t.ulp, t.qp, r, 1, 0), 0);
	assert_int_equal(san_ulp_qp_post_recv(t.ulp, 99, r, 1, 0), 0);
	assert_int_equal(fake.nb_recv_posted, 1);
	/* a receive in use keeps its room until it completes */
	taken = test_push(SAN_KIND_SEND, 0, 0, 0);
	assert_int_equal(san_tl_ulp_push_req(t.ulp, &taken), SAN_ST_OK);
	assert_int_equal(san_ulp_qp_post_recv(t.ulp, t.qp, r, 1, 0), 0);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &taken), SAN_ST_OK);
	assert_int_equal(san_ulp_qp_post_recv(t.ulp, t.qp, r, 1, 0), 1);
	assert_int_equal(fake.nb_recv_posted, 2);
}

UNIT_CASE(san_ulp_qp_take_recv__in_posting_order)
{
	t.ulp->qps[t.qp]->own_rq.seq = 0xfffffffa; /* and over the wrap */
	for (uint32_t round = 0; round < 5; round++) {
		post_recvs(round * 10, 5);
		for (uint32_t i = 0; i < 5; i++)
			assert_int_equal(receive_one(), round * 10 + i);
	}
}

/* RT-23: a returned receive is the next one to be used (RULE-4, RULE-5). */
UNIT_CASE(san_ulp_qp_return_recv__keeps_posting_order)
{
	static const uint8_t orders[][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	for (uint32_t i = 0; i < 6; i++) {
		struct san_tl_rxn r[3];

		post_recvs(1, 5);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(take(&r[k]), SAN_ST_OK);
		for (uint32_t k = 0; k < 3; k++) {
			san_tl_ulp_push_abort(t.ulp, &r[orders[i][k]]);
			san_ulp_check(t.ulp);
		}
		for (uint32_t k = 0; k < 5; k++)
			assert_int_equal(receive_one(), 1 + k);
	}
	assert_int_equal(t.recv_cq->nb_reserved, 0);
}

UNIT_CASE(san_ulp_qp_pump__visits_each_once)
{
	struct san_ulp_wr wr = test_wr(RTSAN_WR_SEND, 1, 0);

	san_ulp_qp_pump(t.ulp, 0); /* it was marked when it was bound */
	fake.room = 0;
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	/* a tl that calls room() from within the refusal must not loop the pump */
	fake.room_inside = true;
	fake.nb_refused = 0;
	assert_false(san_ulp_qp_has_work(t.ulp));
	san_tl_ulp_room(t.ulp, SLOT);
	assert_true(san_ulp_qp_has_work(t.ulp));
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_refused, 1);
	/* ... nor be forgotten */
	assert_true(san_ulp_qp_has_work(t.ulp));
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_refused, 2);
	fake.room = 1;
	san_ulp_qp_pump(t.ulp, 0);
	assert_false(san_ulp_qp_has_work(t.ulp));
	assert_int_equal(fake.nb_txns, 1);
	fake_cmpl(0, SAN_ST_OK);
}

/* ---- shared receives (RT-44) ---- */

static uint32_t sharers[2];

/* t.qp has receives for two queue pairs, in slots SLOT and SLOT + 1. */
static void
open_shared(void)
{
	struct san_ulp_qp_conf conf = {.sq_depth = 4, .rq_depth = 1, .shares_recvs = true};

	test_ulp_open(4, 4, 16);
	conf.send_cq = t.send_cq;
	conf.recv_cq = t.recv_cq;
	conf.recv_from = t.qp;
	for (uint16_t i = 0; i < 2; i++) {
		assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &sharers[i]), 0);
		assert_int_equal(san_ulp_qp_bind(t.ulp, sharers[i], SLOT + i, PKEY, &peer), 0);
	}
}

static uint8_t
take_of(uint16_t i, struct san_tl_rxn *r)
{
	uint8_t status;

	*r = test_push(SAN_KIND_SEND, 8, 0, 0);
	r->slot = SLOT + i;
	status = san_tl_ulp_push_req(t.ulp, r);
	san_ulp_check(t.ulp);
	return status;
}

static void
finish(struct san_tl_rxn *r, uint64_t wr_id, uint32_t qp)
{
	struct san_ulp_wc wc;

	assert_int_equal(san_tl_ulp_push_done(t.ulp, r), SAN_ST_OK);
	wc = test_poll_one(t.recv_cq);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.qp, qp);
}

UNIT_CASE_IN(recv_from__in_order_for_who_comes, open_shared)
{
	struct san_tl_rxn r[3];

	assert_int_equal(take_of(0, &r[0]), SAN_ST_RNR);
	post_recvs(1, 3);
	assert_int_equal(take_of(1, &r[0]), SAN_ST_OK);
	assert_int_equal(take_of(0, &r[1]), SAN_ST_OK);
	/* what is taken returns to its place when its connection ends, and the rest stays */
	san_ulp_qp_unbind(t.ulp, sharers[1]);
	san_ulp_check(t.ulp);
	test_poll_none(t.recv_cq);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r[0]), SAN_ST_REFUSED);
	assert_int_equal(take_of(0, &r[2]), SAN_ST_OK);
	finish(&r[2], 1, sharers[0]);
	finish(&r[1], 2, sharers[0]);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, sharers[1]), 0);
	assert_int_equal(take_of(0, &r[2]), SAN_ST_OK);
	finish(&r[2], 3, sharers[0]);
	assert_int_equal(take_of(0, &r[0]), SAN_ST_RNR);
}

UNIT_CASE_IN(recv_from__reservations_are_of_all, open_shared)
{
	post_recvs(1, 2);
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT + 1));
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT));
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT));
	/* a receive wakes who waits for one, once */
	assert_int_equal(fake.nb_recv_posted, 0);
	post_recvs(3, 1);
	assert_int_equal(fake.nb_recv_posted, 1);
	post_recvs(4, 1);
	assert_int_equal(fake.nb_recv_posted, 1);
	/* with its connection a queue pair loses its own reservations */
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	san_ulp_qp_unbind(t.ulp, sharers[0]);
	for (int i = 0; i < 3; i++)
		assert_true(san_tl_ulp_reserve(t.ulp, SLOT + 1));
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT + 1));
	san_ulp_qp_unbind(t.ulp, sharers[1]);
	post_recvs(5, 0);
	assert_int_equal(fake.nb_recv_posted, 1);
}

UNIT_CASE_IN(recv_from__destroyed_first, open_shared)
{
	struct san_ulp_qp_conf conf = {t.send_cq, t.recv_cq, 4, 1, 0, true, sharers[0]};
	struct san_tl_rxn r[2];
	uint32_t qp;

	assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &qp), -EINVAL);
	conf.recv_from = 0x7fff0000;
	assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &qp), -EINVAL);
	post_recvs(1, 2);
	assert_int_equal(take_of(0, &r[0]), SAN_ST_OK);
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT + 1));
	assert_int_equal(san_ulp_qp_destroy(t.ulp, t.qp), 0);
	san_ulp_check(t.ulp);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 1, 2);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r[0]), SAN_ST_REFUSED);
	san_tl_ulp_unreserve(t.ulp, SLOT + 1);
	assert_int_equal(take_of(1, &r[1]), SAN_ST_RNR);
}

/* What one leaves, another gets. */
UNIT_CASE_IN(recv_from__returned, open_shared)
{
	struct san_tl_rxn r;

	post_recvs(1, 1);
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT + 1));
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT));
	san_ulp_qp_unbind(t.ulp, sharers[1]);
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_recv_posted, 1);
	assert_int_equal(take_of(0, &r), SAN_ST_OK);
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT));
	san_tl_ulp_push_abort(t.ulp, &r);
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_recv_posted, 2);
}

UNIT_CASE_IN(recv_from__flushed_when_returned, open_shared)
{
	struct san_tl_rxn r;

	post_recvs(1, 2);
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT + 2, PKEY, &peer), 0);
	assert_int_equal(take_of(0, &r), SAN_ST_OK);
	san_ulp_qp_unbind(t.ulp, t.qp);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 2, 1);
	san_ulp_qp_unbind(t.ulp, sharers[0]);
	san_ulp_qp_pump(t.ulp, 0);
	expect_flushed(t.recv_cq, RTSAN_WC_RECV, 1, 1);
	assert_int_equal(san_ulp_qp_renew(t.ulp, t.qp), 0);
}
