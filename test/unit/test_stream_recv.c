/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Receives: any size of buffer, peeks, loans, WAITALL; unread data; cancelled receives. (AFC-1,
 * AFC-9, AFC-21, AFC-27, AFC-28)
 */

#include "test_stream.h"

/* Any size of receive for any size of send (AFC-1). */
ST_OPEN(take__any_size)
{
	static const uint32_t sizes[] = {1, 7, 100, 1508, 1509, 4095, 4096, 9000, 70000};
	uint32_t n = sizeof(sizes) / sizeof(sizes[0]);

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 2; k < n; k++) {
			st_send_settle(from, sizes[i]);
			st_read(to, sizes[i], sizes[k]);
			assert_int_equal(st_sent(from), sizes[i]);
		}
	}
}

/* A receive completes with the data that is there, even of several sends. */
ST_OPEN(take__what_is_there)
{
	st_send_settle(from, 100);
	st_send_settle(from, 200);
	st_recv_settle(to, 1000);
	assert_int_equal(st_received(to), 300);
}

/* A peek leaves the data, and copies no more than its size (AFC-1). */
ST_OPEN(stream_recv_peek_data__leaves_it)
{
	st_send_settle(from, 100);
	st_send_settle(from, 200);
	for (uint32_t i = 0; i < 2; i++) {
		st_recv_flags(to, 250, RTSAN_RECV_PEEK);
		st_settle_got(250);
	}
	assert_int_equal(st_view(to).nb_unread_bytes, 300);
	st_read(to, 300, 1000);
}

/* It waits if there is no data. */
ST_OPEN(stream_recv_peek_data__waits)
{
	st_recv_flags(to, 250, RTSAN_RECV_PEEK);
	st_settle();
	assert_false(st_has(to, RTSAN_WC_RECV));
	st_send_settle(from, 10);
	assert_int_equal(st_received(to), 10);
	st_read(to, 10, 10);
}

/* A list with more bytes than a receive can take is cut; the sum does not overflow. */
ST_OPEN(take__more_than_there_is)
{
	struct san_ulp_recv r = {.nb_sge = 2};

	r.sge[0] = (struct rtsan_sge){.addr = st_of(to)->dst, .length = 1u << 31};
	r.sge[1] = (struct rtsan_sge){.addr = st_of(to)->dst, .length = 1u << 31};
	st_of(to)->recv[0].buf = st_of(to)->dst;
	st_of(to)->recv[0].flags = 0;
	st_of(to)->recv_tail = 1;
	assert_int_equal(san_stream_recv_post(to->s, &r, 1), 1);
	st_send_settle(from, 100);
	assert_int_equal(st_received(to), 100);
}

/* All bytes, or the end. */
ST_OPEN(waitall__until_it_is_full)
{
	st_recv_flags(to, 3000, RTSAN_RECV_WAITALL);
	st_send_settle(from, 1000);
	st_send_settle(from, 1000);
	assert_false(st_has(to, RTSAN_WC_RECV));
	st_send_settle(from, 1500);
	assert_int_equal(st_received(to), 3000);
	st_recv_flags(to, 3000, RTSAN_RECV_WAITALL);
	st_ctl_settle(from, 1, SAN_WR_SHUTDOWN, 0, 0);
	assert_int_equal(st_received(to), 500);
}

/* A peek, too: for later data, for the end, and for a large send without a buffer. */
ST_OPEN(waitall__peek)
{
	st_recv_flags(to, 300, RTSAN_RECV_PEEK | RTSAN_RECV_WAITALL);
	st_send_settle(from, 100);
	st_send_settle(from, 100);
	assert_false(st_has(to, RTSAN_WC_RECV));
	st_send_settle(from, 150);
	assert_int_equal(st_received(to), 300);
	st_recv_flags(to, 350 + 10 * ST_INNER, RTSAN_RECV_PEEK | RTSAN_RECV_WAITALL);
	st_send_settle(from, 10 * ST_INNER);
	assert_int_equal(st_received(to), 350 + 10 * ST_INNER);
	st_read(to, 350 + 10 * ST_INNER, 350 + 10 * ST_INNER);
	st_send(from, 10);
	st_recv_flags(to, 300, RTSAN_RECV_PEEK | RTSAN_RECV_WAITALL);
	st_settle();
	assert_false(st_has(to, RTSAN_WC_RECV));
	st_ctl_settle(from, 1, SAN_WR_SHUTDOWN, 0, 0);
	assert_int_equal(st_received(to), 10);
}

/* But not for data that has no room before some is read. */
ST_OPEN(waitall__peek_of_too_much)
{
	uint32_t nb = conf[1].nb_store;

	st_recv_flags(to, nb * 10 + 1, RTSAN_RECV_PEEK | RTSAN_RECV_WAITALL);
	for (uint32_t i = 0; i < nb; i++) {
		assert_false(st_has(to, RTSAN_WC_RECV));
		st_send_settle(from, 10);
	}
	assert_int_equal(st_received(to), nb * 10);
}

/* The same over large sends, in each mode. */
ST_TEST(waitall__of_several_large)
{
	for (uint32_t mode = SAN_SM_DISCOVERY; mode < SAN_SM_MODES; mode++) {
		st_setup();
		conf[0].mode = (uint8_t)mode;
		st_start();
		st_recv_flags(to, 3 * LARGE, RTSAN_RECV_WAITALL);
		st_send_settle(from, LARGE);
		st_send_settle(from, LARGE);
		assert_false(st_has(to, RTSAN_WC_RECV));
		st_send_settle(from, 2 * LARGE);
		assert_int_equal(st_received(to), 3 * LARGE);
		st_read(to, LARGE, LARGE);
	}
}

ST_OPEN(dontwait__there_or_not)
{
	st_recv_flags(to, 100, RTSAN_RECV_DONTWAIT);
	st_settle();
	assert_int_equal(st_received_as(to, RTSAN_WC_AGAIN), 0);
	st_send_settle(from, 60);
	st_recv_flags(to, 100, RTSAN_RECV_DONTWAIT);
	st_settle_got(60);
}

/* The message buffer itself; its room stays in use until it is given back (AFC-27). */
ST_TEST(stream_recv_lend_data__until_it_comes_back)
{
	struct san_ulp_wc wc = {0};

	conf[1].nb_store = 4;
	conf[1].nb_recv = 4;
	st_start();
	for (uint32_t i = 0; i < 6; i++)
		st_send_settle(from, 1000);
	for (uint32_t i = 0; i < 4; i++) {
		st_recv_flags(to, 0, RTSAN_RECV_LOAN);
		st_settle();
	}
	assert_int_equal(st_said_data(from), 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(st_take(to, RTSAN_WC_RECV, &wc));
		assert_true(wc.has_imm);
		assert_int_equal(wc.byte_len, 1000);
		assert_memory_equal(san_stream_recv_loan(to->s, wc.imm),
				    st_of(from)->src + 1000 * i, 1000);
		assert_true(san_stream_recv_give_back(to->s, wc.imm));
		assert_false(san_stream_recv_give_back(to->s, wc.imm));
		assert_null(san_stream_recv_loan(to->s, wc.imm));
	}
	st_of(to)->at = 4000;
	st_of(to)->recv_head = 4;
	st_settle();
	st_read(to, 2000, 2000);
	assert_false(san_stream_recv_give_back(to->s, 0));
	assert_false(san_stream_recv_give_back(to->s, UINT32_MAX));
}

/* ---- a program that does not read (AFC-27) ---- */

/* The peer's data stops; messages without data, and the other direction, continue. */
ST_TEST(unread__holds_up_nothing_else)
{
	conf[0].nb_recv = conf[1].nb_recv = 8;
	conf[0].nb_store = conf[1].nb_store = 8;
	st_start();
	for (uint32_t i = 0; i < 100; i++)
		st_send_settle(from, 1400);
	assert_int_equal(st_view(to).nb_unread_bytes, 8 * 1400);
	/* small and large, with advertisements and done messages */
	for (uint32_t i = 0; i < 20; i++) {
		st_recv_settle(from, LARGE);
		st_send_settle(to, LARGE);
		assert_int_equal(st_received(from), LARGE);
		assert_int_equal(st_sent(to), LARGE);
		st_send_settle(to, 500);
		st_read(from, 500, 500);
		assert_int_equal(st_sent(to), 500);
	}
	assert_int_equal(st_view(to).nb_unread_bytes, 8 * 1400);
	assert_true(to->recv_tail - to->recv_head == 8); /* posted again at once */
	st_read(to, 100 * 1400, 5000);
}

/* Unread data is copied in steps, so that others get turns, into one receive or many. */
ST_OPEN(take__bit_by_bit)
{
	for (uint32_t i = 0; i < 20; i++)
		st_send(from, ST_INNER);
	st_settle();
	pair.budget = 5 * ST_INNER;
	st_recv_flags(to, 20 * ST_INNER, RTSAN_RECV_PEEK);
	st_recv(to, 15 * ST_INNER);
	for (uint32_t i = 0; i < 5; i++)
		st_recv(to, ST_INNER);
	assert_true(pair_pump_one(to));
	assert_false(st_has(to, RTSAN_WC_RECV));
	assert_true(pair_pump_one(to));
	assert_true(pair_pump_one(to));
	assert_false(st_has(to, RTSAN_WC_RECV));
	assert_int_equal(st_view(to).nb_unread_bytes, 20 * ST_INNER);
	assert_true(pair_pump_one(to));
	assert_int_equal(st_received(to), 20 * ST_INNER);
	assert_true(st_view(to).nb_unread_bytes > 10 * ST_INNER);
	st_settle_got(15 * ST_INNER);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(st_received(to), ST_INNER);
}

/* But data for an advertised buffer is in it before the next message. */
ST_LARGE(take__at_once_if_advertised)
{
	st_recv(to, LARGE);
	st_recv(to, LARGE);
	st_recv_settle(to, LARGE);
	st_send(from, 2 * ST_INNER);
	st_send(from, LARGE);
	pair_pump_one(from);
	pair.budget = 1;
	pair_pump_one(to);
	while (pair_step(from))
		;
	assert_null(san_stream_fault(to->s));
	assert_int_equal(st_received(to), ST_INNER);
	assert_int_equal(st_received(to), ST_INNER);
	assert_int_equal(st_received(to), LARGE);
}

/* ---- ends ---- */

/* One direction ends, the other one does not (AFC-1). */
ST_OPEN(fin__one_direction)
{
	st_send(from, 100);
	st_ctl_settle(from, 1, SAN_WR_SHUTDOWN, 0, 0);
	assert_true(to->s->rx.fin);
	st_recv(to, 1000);
	st_recv(to, 1000);
	st_recv_flags(to, 1000, RTSAN_RECV_PEEK);
	st_settle_got(100);
	assert_int_equal(st_received(to), 0);
	assert_int_equal(st_received(to), 0);
	for (uint32_t i = 0; i < 3; i++) {
		st_send_settle(to, LARGE);
		st_read(from, LARGE, LARGE);
		assert_int_equal(st_sent(to), LARGE);
	}
	assert_false(from->s->rx.fin);
	pair_ctl(to, 1, SAN_WR_SHUTDOWN, 0, 0);
	st_recv_settle(from, 10);
	assert_int_equal(st_received(from), 0);
	assert_true(san_stream_is_drained(from->s) && san_stream_is_drained(to->s));
}

/* ---- cancelled (AFC-28) ---- */

ST_OPEN(cancel__waiting)
{
	st_recv(to, 100);
	st_recv(to, 100);
	st_ctl_settle(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
	assert_int_equal(st_received_as(to, RTSAN_WC_CANCELLED), 0);
	assert_int_equal(st_received_as(to, RTSAN_WC_CANCELLED), 0);
	st_send_settle(from, 50);
	st_read(to, 50, 50);
}

/* Data received before is not lost: the receive completes with it. */
ST_OPEN(cancel__with_what_came)
{
	st_recv_flags(to, 3000, RTSAN_RECV_WAITALL);
	st_send_settle(from, 1000);
	st_ctl_settle(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
	assert_int_equal(st_received(to), 1000);
}

/* While the session reads into it, the memory stays with the session. */
ST_TEST(cancel__while_it_is_read_into)
{
	conf[0].mode = SAN_SM_SMALL_LARGE;
	st_start();
	st_send_settle(from, LARGE);
	st_recv(to, LARGE);
	pair_pump(&pair);
	assert_int_equal(to->req[0].op, RTSAN_WR_PULL);
	pair_ctl(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
	pair_pump(&pair);
	assert_false(st_has(to, RTSAN_WC_RECV));
	st_settle_got(LARGE);
}
