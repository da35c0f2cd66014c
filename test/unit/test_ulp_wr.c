/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_byteorder.h>

#include "test_eal.h"
#include "test_ulp.h"

UNIT_FIXTURE(.setup = test_ulp_setup, .teardown = test_ulp_close);

static void
post(const struct san_ulp_wr *wr)
{
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 1, 0), 1);
	san_ulp_check(t.ulp);
}

/** A request over *len* bytes of *buf*, in *parts* equal parts. */
static struct san_ulp_wr
wr_over(uint8_t op, uint64_t wr_id, uint8_t *buf, uint32_t len, uint8_t parts)
{
	struct san_ulp_wr wr = test_wr(op, wr_id, RTSAN_WR_SIGNALED);

	wr.length = len;
	wr.nb_sge = parts;
	for (uint8_t i = 0; i < parts; i++) {
		wr.sge[i].addr = buf + i * (len / parts);
		wr.sge[i].length = i + 1 < parts ? len / parts : len - i * (len / parts);
	}
	return wr;
}

static uint8_t
place(uint32_t i, uint32_t offset, const void *data, uint16_t len)
{
	struct rte_mbuf *m = test_eal_exact(test_pool(), data, len);
	uint8_t status = san_tl_ulp_pull_place(t.ulp, &fake.txns[i], offset, m, 0, len);

	rte_pktmbuf_free(m);
	return status;
}

static void
count_up(uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8));
}

/* RT-10, RT-11, RT-30: the transaction of each operation. */
UNIT_CASE(san_ulp_wr_post__maps_each_operation)
{
	static const struct {
		uint8_t op, type, kind, atomic, wc_op;
		uint32_t length;
	} cases[] = {
		{RTSAN_WR_SEND, SAN_TL_PUSH, SAN_KIND_SEND, 0, RTSAN_WC_SEND, 40},
		{RTSAN_WR_PUSH, SAN_TL_PUSH, SAN_KIND_PUSH, 0, RTSAN_WC_PUSH, 40},
		{RTSAN_WR_PUSH_IMM, SAN_TL_PUSH, SAN_KIND_PUSH_IMM, 0, RTSAN_WC_PUSH, 40},
		{RTSAN_WR_PULL, SAN_TL_PULL, 0, 0, RTSAN_WC_PULL, 40},
		{RTSAN_WR_FETCH_ADD, SAN_TL_ATOMIC, 0, SAN_ATOMIC_FETCH_ADD, RTSAN_WC_ATOMIC, 8},
		{RTSAN_WR_CMP_SWAP, SAN_TL_ATOMIC, 0, SAN_ATOMIC_CMP_SWAP, RTSAN_WC_ATOMIC, 8},
	};
	rte_be64_t args[2];
	uint8_t buf[40];

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct san_ulp_wr wr = wr_over(cases[i].op, 50 + i, buf, 40, 1);
		const struct san_tl_req *req = &fake.txns[i].req;
		struct san_ulp_wc wc;

		wr.remote_addr = 0x1122334455667788;
		wr.rkey = 0xfeed;
		wr.imm = 0xcafe;
		wr.operand = 1000;
		wr.swap = 2000;
		post(&wr);
		assert_int_equal(fake.nb_txns, i + 1);
		assert_int_equal(req->type, cases[i].type);
		assert_int_equal(req->kind, cases[i].kind);
		assert_int_equal(req->op, cases[i].atomic);
		assert_int_equal(req->solicit, SAN_SOLICIT_AUTO);
		assert_int_equal(req->length, cases[i].length);
		/* a send has no address at the peer */
		assert_int_equal(req->addr, cases[i].op == RTSAN_WR_SEND ? 0 : 0x1122334455667788);
		assert_int_equal(req->key, cases[i].op == RTSAN_WR_SEND ? 0 : 0xfeed);
		assert_int_equal(req->imm, 0xcafe);
		if (cases[i].type == SAN_TL_ATOMIC) {
			san_tl_ulp_atomic_fill(t.ulp, &fake.txns[i], args);
			assert_int_equal(rte_be_to_cpu_64(args[0]), 1000);
			assert_int_equal(rte_be_to_cpu_64(args[1]), 2000);
		}
		fake_cmpl(i, SAN_ST_OK);
		wc = test_poll_one(t.send_cq);
		assert_int_equal(wc.wr_id, 50 + i);
		assert_int_equal(wc.qp, t.qp);
		assert_int_equal(wc.op, cases[i].wc_op);
		assert_int_equal(wc.status, SAN_ST_OK);
		assert_int_equal(wc.byte_len, cases[i].length);
	}
	assert_int_equal(san_ulp_stats(t.ulp)->nb_wrs, 6);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_wcs, 6);
}

/* RT-12: the caller can force both ways. */
UNIT_CASE(san_ulp_wr_post__solicited_by_flag)
{
	struct san_ulp_wr wr = test_wr(RTSAN_WR_PUSH, 1, RTSAN_WR_SOLICITED);

	post(&wr);
	wr.flags = RTSAN_WR_UNSOLICITED;
	post(&wr);
	assert_int_equal(fake.txns[0].req.solicit, SAN_SOLICIT_ALWAYS);
	assert_int_equal(fake.txns[1].req.solicit, SAN_SOLICIT_NEVER);
	fake_done(0, 2);
}

UNIT_CASE(san_ulp_wr_post__unsignaled_success_is_silent)
{
	struct san_ulp_wr wr = test_wr(RTSAN_WR_SEND, 1, 0);
	struct san_ulp_wc wc;

	/* far more than the queues hold: each returns its entry */
	for (uint32_t i = 0; i < 100; i++) {
		post(&wr);
		fake_cmpl(i, SAN_ST_OK);
	}
	test_poll_none(t.send_cq);
	post(&wr);
	fake_cmpl(100, SAN_ST_ACCESS);
	wc = test_poll_one(t.send_cq);
	assert_int_equal(wc.status, SAN_ST_ACCESS);
	assert_int_equal(wc.byte_len, 0);
}

UNIT_CASE(san_ulp_wr_post__takes_what_the_queue_holds)
{
	struct san_ulp_wr wr[10];

	for (uint32_t i = 0; i < 10; i++)
		wr[i] = test_wr(RTSAN_WR_SEND, i, RTSAN_WR_SIGNALED);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 10, 0), 8);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 10, 0), 0);
	assert_int_equal(san_ulp_wr_post(t.ulp, 99, wr, 10, 0), 0);
	/* a completion frees an entry of the send queue, polled or not */
	fake_cmpl(0, SAN_ST_OK);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 10, 0), 1);
	san_ulp_check(t.ulp);
	fake_done(1, 8);
}

/* A full CQ stops posting, never a completion. */
UNIT_CASE_IN(san_ulp_wr_post__takes_what_the_cq_holds, NULL)
{
	struct san_ulp_wr wr[8];
	struct san_ulp_wc wc[8];

	test_ulp_open_bound(8, 8, 4);
	for (uint32_t i = 0; i < 8; i++)
		wr[i] = test_wr(RTSAN_WR_SEND, i, RTSAN_WR_SIGNALED);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 8, 0), 4);
	fake_done(0, 4);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 8, 0), 0);
	assert_int_equal(san_ulp_cq_poll(t.send_cq, wc, 3), 3);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 8, 0), 3);
	fake_done(4, 3);
}

UNIT_CASE_IN(san_ulp_wr_post__deepest_queue, NULL)
{
	struct san_ulp_wr wr;
	struct san_ulp_wc wc;

	test_ulp_open_bound(4096, 4096, 4096);
	for (uint32_t i = 0; i < 4096; i++) {
		wr = test_wr(RTSAN_WR_SEND, i, RTSAN_WR_SIGNALED);
		assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	}
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 0);
	/* unordered connections complete in any order */
	for (uint32_t i = 4096; i-- > 0;) {
		fake_cmpl(i, SAN_ST_OK);
		assert_int_equal(san_ulp_cq_poll(t.send_cq, &wc, 1), 1);
		assert_int_equal(wc.wr_id, i);
	}
}

/* RT-14: requests reach tl in the order in which they were posted. */
UNIT_CASE(san_ulp_wr_submit__waits_in_order)
{
	struct san_ulp_wr wr;

	fake.room = 2;
	for (uint32_t i = 0; i < 4; i++) {
		wr = test_wr(RTSAN_WR_PUSH, i, RTSAN_WR_SIGNALED);
		wr.remote_addr = i;
		post(&wr);
	}
	assert_int_equal(fake.nb_txns, 2);
	/* tl was called once; from then on it calls room() */
	assert_int_equal(fake.nb_refused, 1);
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_refused, 1);
	fake.room = 1;
	san_tl_ulp_room(t.ulp, SLOT);
	assert_int_equal(fake.nb_txns, 2); /* not from within the callback */
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_txns, 3);
	fake.room = 5;
	san_tl_ulp_room(t.ulp, SLOT);
	/* a post in between does not overtake */
	wr.remote_addr = 4;
	post(&wr);
	assert_int_equal(fake.nb_txns, 5);
	san_ulp_qp_pump(t.ulp, 0);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(fake.txns[i].req.addr, i);
		fake_cmpl(i, SAN_ST_OK);
	}
	san_tl_ulp_room(t.ulp, SLOT + 1); /* without a queue pair: no effect */
}

/*
 * Requests posted together, more than a run, over the ends of all rings: some are no pushes, some
 * must wait, some complete silently. They are submitted and completed in order (RT-14).
 */
UNIT_CASE_IN(san_ulp_wr_post__runs, NULL)
{
	struct san_tl_txn *done[100];
	struct san_ulp_wr wr[100];
	struct san_ulp_wc wc[100];
	uint32_t k, first;

	test_ulp_open_bound(128, 128, 128);
	for (uint32_t round = 0; round < 3; round++) {
		first = fake.nb_txns;
		fake.room = 80;
		for (uint32_t i = 0; i < 100; i++) {
			wr[i] = test_wr(i == 70 ? RTSAN_WR_PULL : RTSAN_WR_PUSH, i,
					i % 3 != 0 ? RTSAN_WR_SIGNALED : 0);
			wr[i].op = i == 75 ? RTSAN_WR_FETCH_ADD : wr[i].op;
			wr[i].remote_addr = i;
		}
		assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, wr, 100, 0), 100);
		san_ulp_check(t.ulp);
		assert_int_equal(fake.nb_txns, first + 80);
		fake.room = 100;
		san_tl_ulp_room(t.ulp, SLOT);
		san_ulp_qp_pump(t.ulp, 0);
		assert_int_equal(fake.nb_txns, first + 100);
		for (uint32_t i = 0; i < 100; i++) {
			done[i] = &fake.txns[first + i];
			assert_int_equal(done[i]->req.addr, i);
		}
		san_tl_ulp_cmpl(t.ulp, done, 100, SAN_ST_OK);
		san_ulp_check(t.ulp);
		k = san_ulp_cq_poll(t.send_cq, wc, 100);
		assert_int_equal(k, 66);
		for (uint32_t i = 0; i < k; i++)
			assert_int_equal(wc[i].wr_id, i / 2 * 3 + 1 + i % 2);
	}
}

/* RULE-6: a long pull is submitted piece by piece and completes with the last one. */
UNIT_CASE(san_ulp_wr_submit__splits_long_pulls)
{
	uint8_t buf[2500], data[2500];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, sizeof(buf), 4);
	struct san_ulp_wr next = test_wr(RTSAN_WR_SEND, 6, RTSAN_WR_SIGNALED);

	count_up(data, sizeof(data));
	memset(buf, 0, sizeof(buf));
	wr.remote_addr = 0x5000;
	fake.room = 2;
	post(&wr);
	post(&next);
	assert_int_equal(fake.nb_txns, 2);
	test_room(2);
	assert_int_equal(fake.nb_txns, 4);
	assert_int_equal(fake.txns[3].req.kind, SAN_KIND_SEND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(fake.txns[i].req.addr, 0x5000 + i * 1000);
		assert_int_equal(fake.txns[i].req.length, i < 2 ? 1000 : 500);
	}
	/* pieces and packets in any order */
	assert_int_equal(place(2, 0, data + 2000, 500), SAN_ST_OK);
	assert_int_equal(place(0, 600, data + 600, 400), SAN_ST_OK);
	assert_int_equal(place(1, 0, data + 1000, 1000), SAN_ST_OK);
	assert_int_equal(place(0, 0, data, 600), SAN_ST_OK);
	assert_memory_equal(buf, data, sizeof(buf));
	assert_int_equal(san_ulp_stats(t.ulp)->nb_placed_bytes, 2500);
	fake_cmpl(0, SAN_ST_OK);
	fake_cmpl(2, SAN_ST_OK);
	test_poll_none(t.send_cq);
	fake_cmpl(1, SAN_ST_OK);
	assert_int_equal(test_poll_one(t.send_cq).byte_len, 2500);
	fake_cmpl(3, SAN_ST_OK);
}

UNIT_CASE(san_ulp_wr_submit__pull_of_a_whole_piece)
{
	uint8_t buf[2000];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, 1000, 1);

	post(&wr);
	assert_int_equal(fake.nb_txns, 1);
	wr = wr_over(RTSAN_WR_PULL, 6, buf, 2000, 1);
	post(&wr);
	assert_int_equal(fake.nb_txns, 3);
	assert_int_equal(fake.txns[2].req.length, 1000);
	fake_done(0, 3);
}

UNIT_CASE(san_ulp_wr_cmpl__first_error_of_the_pieces)
{
	uint8_t buf[3000];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, sizeof(buf), 1);
	struct san_ulp_wc wc;

	post(&wr);
	fake_cmpl(0, SAN_ST_OK);
	fake_cmpl(1, SAN_ST_REVOKED);
	test_poll_none(t.send_cq);
	fake_cmpl(2, SAN_ST_ACCESS);
	wc = test_poll_one(t.send_cq);
	assert_int_equal(wc.status, SAN_ST_REVOKED);
	assert_int_equal(wc.byte_len, 0);
}

/* After an error no more pieces are submitted, and the work behind it continues. */
UNIT_CASE(san_ulp_wr_cmpl__error_ends_a_pull_in_pieces)
{
	uint8_t buf[5000];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, sizeof(buf), 1);
	struct san_ulp_wr next = test_wr(RTSAN_WR_SEND, 6, RTSAN_WR_SIGNALED);

	fake.room = 2;
	post(&wr);
	post(&next);
	san_ulp_qp_pump(t.ulp, 0); /* it was marked when it was bound */
	fake_cmpl(0, SAN_ST_ACCESS);
	san_ulp_check(t.ulp);
	test_poll_none(t.send_cq);
	assert_int_equal(fake.nb_unwanted, 1); /* its place among the waiting ones is released */
	fake.room = 10;
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_txns, 3);
	assert_int_equal(fake.txns[2].req.kind, SAN_KIND_SEND);
	fake_cmpl(1, SAN_ST_ACCESS);
	assert_int_equal(test_poll_one(t.send_cq).status, SAN_ST_ACCESS);
	fake_cmpl(2, SAN_ST_OK);
	assert_int_equal(test_poll_one(t.send_cq).wr_id, 6);
	assert_int_equal(fake.nb_unwanted, 1);
}

/* With nothing behind it, tl learns that the waiting piece is not needed; later work continues. */
UNIT_CASE(san_ulp_wr_cmpl__error_of_the_last_that_waits)
{
	uint8_t buf[5000];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, sizeof(buf), 1);
	struct san_ulp_wr next = test_wr(RTSAN_WR_SEND, 6, RTSAN_WR_SIGNALED);

	fake.room = 2;
	post(&wr);
	fake_cmpl(0, SAN_ST_OK);
	assert_int_equal(fake.nb_unwanted, 0);
	fake_cmpl(1, SAN_ST_ACCESS);
	assert_int_equal(fake.nb_unwanted, 1);
	assert_int_equal(test_poll_one(t.send_cq).status, SAN_ST_ACCESS);
	fake.room = 1;
	post(&next); /* room() is not called for that */
	assert_int_equal(fake.nb_txns, 3);
	fake_cmpl(2, SAN_ST_ACCESS); /* complete, and nothing waits */
	assert_int_equal(fake.nb_unwanted, 1);
	assert_int_equal(test_poll_one(t.send_cq).wr_id, 6);
}

/* A record was reserved for that piece just before: it is free for others again. */
UNIT_CASE(san_ulp_wr_cmpl__error_after_room)
{
	uint8_t buf[5000];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, sizeof(buf), 1);

	fake.room = 2;
	post(&wr);
	san_tl_ulp_room(t.ulp, SLOT);
	fake_cmpl(0, SAN_ST_ACCESS);
	assert_int_equal(fake.nb_unwanted, 1);
	fake.room = 1;
	san_ulp_qp_pump(t.ulp, 0);
	assert_int_equal(fake.nb_txns, 2);
	fake_cmpl(1, SAN_ST_OK);
	assert_int_equal(test_poll_one(t.send_cq).status, SAN_ST_ACCESS);
}

UNIT_CASE(san_ulp_wr_flush__pull_in_pieces)
{
	uint8_t buf[5000];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, sizeof(buf), 1);

	fake.room = 2;
	post(&wr);
	fake_done(0, 2);
	test_poll_none(t.send_cq);
	san_ulp_qp_unbind(t.ulp, t.qp);
	assert_int_equal(test_poll_one(t.send_cq).status, RTSAN_WC_FLUSHED);
}

UNIT_CASE(san_ulp_wr_fill__gathers_any_offset)
{
	uint8_t buf[1001], out[1001];
	struct san_ulp_wr wr;

	count_up(buf, sizeof(buf));
	wr = wr_over(RTSAN_WR_PUSH, 1, buf, sizeof(buf), 4);
	post(&wr);
	/* first in order, then a resend of the middle, then all at once */
	for (uint32_t offset = 0; offset < 1001; offset += 77) {
		uint16_t len = (uint16_t)RTE_MIN(77u, 1001 - offset);

		san_tl_ulp_push_fill(t.ulp, &fake.txns[0], offset, out + offset, len);
	}
	assert_memory_equal(out, buf, sizeof(buf));
	san_tl_ulp_push_fill(t.ulp, &fake.txns[0], 240, out, 300);
	assert_memory_equal(out, buf + 240, 300);
	san_tl_ulp_push_fill(t.ulp, &fake.txns[0], 0, out, 1001);
	assert_memory_equal(out, buf, sizeof(buf));
	fake_cmpl(0, SAN_ST_OK);
}

/* RULE-14: inline data is copied. */
UNIT_CASE(san_ulp_wr_fill__inline_by_value)
{
	struct san_ulp_wr wr = test_wr(RTSAN_WR_SEND, 1, RTSAN_WR_INLINE);
	uint8_t want[RTSAN_INLINE_MAX], out[RTSAN_INLINE_MAX];

	wr.inline_len = RTSAN_INLINE_MAX;
	wr.length = RTSAN_INLINE_MAX;
	count_up(wr.data, RTSAN_INLINE_MAX);
	memcpy(want, wr.data, sizeof(want));
	post(&wr);
	memset(&wr, 0xee, sizeof(wr));
	assert_int_equal(fake.txns[0].req.length, RTSAN_INLINE_MAX);
	san_tl_ulp_push_fill(t.ulp, &fake.txns[0], 0, out, sizeof(out));
	assert_memory_equal(out, want, sizeof(out));
	san_tl_ulp_push_fill(t.ulp, &fake.txns[0], 10, out, 20);
	assert_memory_equal(out, want + 10, 20);
	fake_cmpl(0, SAN_ST_OK);
}

/* An atomic has no payload: marked as inline, it sends none of our memory. */
UNIT_CASE(san_ulp_wr__inline_atomic)
{
	rte_be64_t args[2];
	uint64_t old = 0;
	struct san_ulp_wr wr = wr_over(RTSAN_WR_FETCH_ADD, 1, (uint8_t *)&old, sizeof(old), 1);

	wr.flags |= RTSAN_WR_INLINE;
	wr.operand = 1000;
	post(&wr);
	san_tl_ulp_atomic_fill(t.ulp, &fake.txns[0], args);
	assert_int_equal(rte_be_to_cpu_64(args[0]), 1000);
	assert_int_equal(fake.txns[0].req.length, sizeof(old));
	fake_cmpl(0, SAN_ST_OK);
}

/* A list shorter than its request sends zeros, not the memory behind it. */
UNIT_CASE(san_ulp_wr_fill__short_list)
{
	static const uint8_t zeros[8];
	uint8_t buf[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[16];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PUSH, 1, buf, sizeof(buf), 1);

	wr.length = 16;
	post(&wr);
	memset(out, 0xff, sizeof(out));
	san_tl_ulp_push_fill(t.ulp, &fake.txns[0], 0, out, 16);
	assert_memory_equal(out, buf, 8);
	assert_memory_equal(out + 8, zeros, 8);
	fake_cmpl(0, SAN_ST_OK);
}

UNIT_CASE(san_ulp_wr_post__zero_length)
{
	static const uint8_t ops[] = {RTSAN_WR_SEND, RTSAN_WR_PUSH, RTSAN_WR_PUSH_IMM,
				      RTSAN_WR_PULL};

	for (uint32_t i = 0; i < sizeof(ops); i++) {
		struct san_ulp_wr wr = test_wr(ops[i], i, RTSAN_WR_SIGNALED);

		post(&wr);
		assert_int_equal(fake.nb_txns, i + 1);
		assert_int_equal(fake.txns[i].req.length, 0);
		san_tl_ulp_push_fill(t.ulp, &fake.txns[i], 0, NULL, 0);
		fake_cmpl(i, SAN_ST_OK);
		assert_int_equal(test_poll_one(t.send_cq).byte_len, 0);
	}
}

UNIT_CASE(san_ulp_wr_place__stays_inside)
{
	uint8_t buf[2000] = {0}, data[100];
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, sizeof(buf), 1);

	memset(data, 0xaa, sizeof(data));
	post(&wr);
	/* piece 0 must not touch piece 1's bytes */
	assert_int_equal(place(0, 950, data, 51), SAN_ST_LENGTH);
	assert_int_equal(place(0, 1001, data, 1), SAN_ST_LENGTH);
	assert_int_equal(place(0, UINT32_MAX, data, 2), SAN_ST_LENGTH);
	assert_int_equal(buf[950], 0);
	assert_int_equal(place(0, 950, data, 50), SAN_ST_OK);
	assert_int_equal(buf[999], 0xaa);
	assert_int_equal(buf[1000], 0);
	fake_done(0, 2);
}

UNIT_CASE(san_ulp_wr_place__list_too_short)
{
	uint8_t buf[10] = {0}, data[20] = {0};
	struct san_ulp_wr wr = wr_over(RTSAN_WR_PULL, 5, buf, sizeof(buf), 1);

	wr.length = 20;
	post(&wr);
	assert_int_equal(place(0, 0, data, 20), SAN_ST_LENGTH);
	fake_cmpl(0, SAN_ST_LENGTH);
}

/* RT-30: big-endian on the wire, host order in memory. */
UNIT_CASE(san_ulp_wr_place__atomic_result)
{
	static const uint8_t wire[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	uint64_t result = 0;
	struct san_ulp_wr wr = wr_over(RTSAN_WR_FETCH_ADD, 5, (uint8_t *)&result, 8, 2);
	struct rte_mbuf *m = test_eal_exact(test_pool(), wire, 9);

	post(&wr);
	assert_int_equal(place(0, 0, wire, 7), SAN_ST_LENGTH);
	assert_int_equal(place(0, 0, wire, 9), SAN_ST_LENGTH);
	assert_int_equal(result, 0);
	assert_int_equal(san_tl_ulp_pull_place(t.ulp, &fake.txns[0], 0, m, 1, 8), SAN_ST_OK);
	assert_int_equal(result, 0x0102030405060708);
	/* a packet shorter than it claims */
	assert_int_equal(san_tl_ulp_pull_place(t.ulp, &fake.txns[0], 0, m, 2, 8), SAN_ST_LENGTH);
	rte_pktmbuf_free(m);
	fake_cmpl(0, SAN_ST_OK);
}

/* A run of completions: some silent, one failed before, ended by the first error. */
UNIT_CASE(san_ulp_wr_cmpl__run)
{
	struct san_tl_txn *done[4];
	struct san_ulp_wc wc[4];
	struct san_ulp_wr wr = test_wr(RTSAN_WR_PUSH, 0, RTSAN_WR_SIGNALED);

	for (uint32_t i = 0; i < 4; i++) {
		wr.wr_id = i;
		wr.flags = i == 1 ? 0 : RTSAN_WR_SIGNALED;
		post(&wr);
		done[i] = &fake.txns[i];
	}
	san_tl_ulp_cmpl(t.ulp, done, 3, SAN_ST_OK);
	san_ulp_check(t.ulp);
	assert_int_equal(san_ulp_cq_poll(t.send_cq, wc, 4), 2);
	assert_int_equal(wc[0].wr_id, 0);
	assert_int_equal(wc[1].wr_id, 2);
	san_ulp_qp_end_on_error(t.ulp, t.qp);
	post(&wr);
	fake_cmpl(3, SAN_ST_ACCESS);
	fake_cmpl(4, SAN_ST_OK); /* it was done before the peer refused the other one */
	assert_int_equal(san_ulp_cq_poll(t.send_cq, wc, 4), 2);
	assert_int_equal(wc[0].status, SAN_ST_ACCESS);
	assert_int_equal(wc[1].status, RTSAN_WC_FLUSHED);
	assert_int_equal(san_ulp_qp_next_failed(t.ulp), t.qp);
}
