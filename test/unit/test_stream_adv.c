/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Advertised receives: which are advertised and when, which advertisements are stale, what crosses
 * them, and how they are withdrawn. (AFC-7, AFC-10, AFC-12, AFC-13, AFC-20, AFC-21, AFC-23, AFC-24,
 * AFC-28)
 */

#include "test_stream.h"

/* ---- which sets are advertised ---- */

/* Each posted set, with its place and size, before anything is sent (AFC-7). */
ST_LARGE(build__each_posted_set)
{
	const struct san_sm *m;

	st_recv(to, LARGE);
	st_recv_settle(to, 2 * LARGE);
	m = st_msg(to, SAN_SM_ADV);
	assert_int_equal(st_of(to)->nb_msgs, 1);
	assert_int_equal(m->nb_adv, 2);
	assert_int_equal(m->adv[0].where.seg[0].len, LARGE);
	assert_int_equal(m->adv[1].where.seg[0].len, 2 * LARGE);
	assert_false(m->adv[0].after);
	assert_int_equal(st_view(from).nb_advs, 2);
	st_send(from, LARGE);
	st_send_settle(from, 2 * LARGE);
	assert_int_equal(st_received(to), LARGE);
	assert_int_equal(st_received(to), 2 * LARGE);
	assert_int_equal(st_said_data(from), 0);
}

/*
 * A set that just fits the rest of a send is the last one. If the rest came in messages after all,
 * one of them could continue in the next set, but the sender counts one set for each message
 * (AFC-12).
 */
ST_RAW(build__none_behind_a_small_one)
{
	st_recv(to, 5000);
	st_recv(to, 100);
	st_recv(to, LARGE);
	raw_put(raw_large_msg(0));
	assert_int_equal(st_msg(to, SAN_SM_ADV)->nb_adv, 1);
	st_forget_msgs();
	RAW_PUT(raw_large_msg(SAN_SM_INITIAL | SAN_SM_NOTICE), sm.len = 1000, sm.send_id = 1,
		sm.rest = 4100);
	assert_int_equal(st_msg(to, SAN_SM_ADV)->nb_adv, 1);
	st_forget_msgs();
	RAW_PUT(raw_large_msg(SAN_SM_LARGE), sm.len = 1200);
	assert_int_equal(st_received(to), 2200);
	assert_int_equal(st_said(to, SAN_SM_ADV), 0);
	RAW_PUT(raw_large_msg(SAN_SM_LARGE), sm.len = 1300);
	assert_int_equal(st_received(to), 100);
	assert_int_equal(st_received(to), 1200);
}

/* Withdrawn by the sender it belongs to the application; with WAITALL not before it is full. */
ST_RAW(withdrawn__waits_for_all)
{
	st_recv_flags(to, 10000, RTSAN_RECV_WAITALL);
	raw_put(raw_large_msg(0));
	RAW_PUT(raw_large_msg(SAN_SM_INITIAL | SAN_SM_NOTICE), sm.len = 1000, sm.send_id = 1,
		sm.rest = 20000);
	raw_put(raw_large_msg(SAN_SM_WITHDRAW));
	RAW_PUT(raw_large_msg(SAN_SM_CANCELLED),
		sm.rep.cancelled = st_msg(to, SAN_SM_CANCEL)->rep.cancel);
	assert_int_equal(to->nb_regs, 1); /* advertised again, behind the data in it */
	assert_false(st_has(to, RTSAN_WC_RECV));
	pair_ctl(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
	raw_run();
	RAW_PUT(raw_large_msg(SAN_SM_CANCELLED),
		sm.rep.cancelled = st_of(to)->msg[st_of(to)->nb_msgs - 1].rep.cancel);
	assert_int_equal(st_received(to), 1000);
}

/* Nothing is advertised behind a WAITALL receive: where the next set begins is unknown. */
ST_LARGE(build__waitall_is_the_last)
{
	st_recv_flags(to, LARGE, RTSAN_RECV_WAITALL);
	st_recv_settle(to, LARGE);
	assert_int_equal(st_msg(to, SAN_SM_ADV)->nb_adv, 1);
	assert_int_equal(st_view(from).nb_advs, 1);
	st_send(from, LARGE / 2);
	st_send_settle(from, LARGE);
	assert_int_equal(st_received(to), LARGE);
	assert_int_equal(st_received(to), LARGE / 2);
}

/* Only what a large send can fill is advertised: no small one, no peek, no loan (AFC-22). */
ST_TEST(build__only_what_is_large)
{
	static const struct {
		uint32_t len;
		uint8_t flags;
		uint32_t nb;
	} rows[] = {
		{4096, 0, 1},
		{4095, 0, 0},
		{LARGE, RTSAN_RECV_PEEK, 0},
		{LARGE, RTSAN_RECV_WAITALL, 1},
		{LARGE, RTSAN_RECV_DONTWAIT, 0},
		{0, RTSAN_RECV_LOAN, 0},
	};

	UNIT_EACH(row, rows) {
		st_setup_large();
		st_recv_flags(to, row->len, row->flags);
		st_settle();
		assert_int_equal(st_said(to, SAN_SM_ADV), row->nb);
	}
}

/* All pieces of a set are written (AFC-21). */
ST_OPEN(build__pieces)
{
	struct st_side *side = st_of(to);
	struct san_ulp_recv r = {.wr_id = 0, .nb_sge = 4};

	for (uint32_t i = 0; i < 4; i++)
		r.sge[i] = (struct rtsan_sge){.addr = side->dst + 20000 * (3 - i), .length = 10000};
	assert_int_equal(san_stream_recv_post(to->s, &r, 1), 1);
	st_send_settle(from, 40000);
	assert_int_equal(st_sent(from), 40000);
	for (uint32_t i = 0; i < 4; i++)
		assert_memory_equal(r.sge[i].addr, st_of(from)->src + 10000 * i, 10000);
	assert_int_equal(st_stats(from).tx.write + st_stats(from).tx.message, 40000);
	assert_true(st_stats(from).tx.write > 30000);
}

/* No more than the peer can store (AFC-7). */
ST_LARGE(build__no_more_than_agreed)
{
	for (uint32_t i = 0; i < 40; i++)
		st_recv(to, 8 * KB);
	st_settle();
	assert_int_equal(st_view(from).nb_advs, STREAM_ADVS);
	for (uint32_t i = 0; i < 40; i++)
		st_send(from, 8 * KB);
	st_settle();
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(st_received(to), 8 * KB);
	assert_int_equal(st_said_data(from), 0);
}

/* A set whose memory cannot be registered: the data comes in messages (AFC-20). */
ST_OPEN(build__no_memory)
{
	to->max_regs = 0;
	st_recv_settle(to, LARGE);
	st_send(from, LARGE);
	st_finish(LARGE);
	assert_int_equal(st_stats(from).tx.message, LARGE);
	assert_int_equal(st_said(to, SAN_SM_ADV), 0);
}

/* ---- stale ones (AFC-12) ---- */

/*
 * *to* has sent S data messages when advertisements with count R arrive. Those that a message in
 * flight fills are discarded, and each message fills one (AFC-12).
 */
ST_TEST(hear__stale)
{
	static const struct {
		uint32_t sent, rcvd;
		uint32_t matched; /* messages for which earlier advertisements were discarded */
		bool kept;
	} rows[] = {
		{0, 0, 0, true},
		{1, 1, 0, true},
		{1, 0, 0, false},
		{1, 0, 1, true},
		{3, 1, 0, false},
		{3, 1, 1, false},
		{3, 1, 2, true},
		{3, 2, 0, false},
		{3, 2, 1, true},
		{3, 3, 0, true},
		{2, 0, 1, false},
		{2, 0, 2, true},
	};
	uint32_t before;

	UNIT_EACH(row, rows) {
		st_setup_raw();
		for (uint32_t k = 0; k < row->sent; k++)
			raw_send(100);
		for (uint32_t k = 0; k <= row->matched; k++) {
			before = st_view(to).nb_advs;
			RAW_PUT(raw_adv(k + 1, 8 * KB), sm.nb_rcvd = row->rcvd);
		}
		assert_int_equal(st_view(to).nb_advs - before, row->kept);
		assert_int_equal(st_stats(to).nb_advertisements_stale, row->matched + !row->kept);
	}
}

/* A later data message uses up the oldest known advertisement (AFC-12). */
ST_RAW(spend__oldest)
{
	raw_put(raw_adv(1, 8 * KB));
	raw_put(raw_adv(2, 8 * KB));
	assert_int_equal(st_view(to).nb_advs, 2);
	raw_send(100);
	assert_int_equal(st_view(to).nb_advs, 1);
	raw_send(8 * KB);
	assert_int_equal(st_msg(to, SAN_SM_WDONE)->wdone[0].id, 2);
}

/* One message per set, even if there is room left in it (AFC-12). */
ST_LARGE(spend__one_message_each)
{
	st_recv_settle(to, LARGE);
	st_send_settle(from, 100);
	st_send_settle(from, 100);
	assert_int_equal(st_received(to), 100);
	assert_false(st_has(to, RTSAN_WC_RECV));
	assert_int_equal(st_view(to).nb_unread_bytes, 100);
	/* and its advertisement is used up */
	assert_int_equal(st_view(from).nb_advs, 0);
	assert_int_equal(to->nb_regs, 0);
}

/* Both applications at full speed: messages in flight fill sets being advertised (AFC-12). */
ST_LARGE(spend__under_way)
{
	for (uint32_t i = 0; i < 20; i++) {
		/* neither has received a message of the other */
		st_send(from, 100);
		st_send(from, LARGE);
		st_recv(to, LARGE);
		st_recv(to, LARGE);
		pair_pump(&pair);
		st_settle_got(100);
		assert_int_equal(st_received(to), LARGE);
		assert_int_equal(st_sent(from), 100);
		assert_int_equal(st_sent(from), LARGE);
	}
	assert_int_equal(st_view(from).mode, SAN_SM_LARGE_RECV);
	assert_int_equal(st_stats(from).nb_advertisements_stale, 20);
}

/* ---- crossing (AFC-10, AFC-23) ---- */

/*
 * An offer and an advertisement cross: the data is written, and the offer is void. Its initial
 * portion lies in front of the set, counted neither in S nor in R, and the write begins behind it.
 */
ST_TEST(adv_crossed_data__offer_is_void)
{
	const struct san_sm *offer;

	conf[0].read = RTSAN_STREAM_READ_ALWAYS;
	st_start_large();
	st_recv(to, LARGE);
	st_send(from, LARGE);
	pair_pump(&pair); /* both are in flight */
	assert_int_equal(from->nb_regs, 1);
	st_settle();
	offer = st_msg(from, SAN_SM_OFFER);
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
	assert_int_equal(st_stats(from).nb_offers_void, 1);
	assert_int_equal(st_received(to), LARGE);
	assert_int_equal(st_msg(from, SAN_SM_WDONE)->wdone[0].bytes, LARGE - offer->len);
	assert_int_equal(st_msg(from, SAN_SM_WDONE)->nb_rcvd, 0);
	assert_int_equal(st_said(to, SAN_SM_RDONE), 0);
	assert_int_equal(from->nb_regs + to->nb_regs, 0);
	/* the next one is not taken for stale */
	st_recv_settle(to, LARGE);
	assert_int_equal(st_view(from).nb_advs, 1);
}

/* The same with a notice, whose peer had advertised for the transfer before (AFC-23). */
ST_TEST(adv_crossed_data__notice)
{
	conf[0].mode = SAN_SM_LARGE_RECV;
	st_start();
	st_large(LARGE);
	pair_ctl(from, 1, SAN_WR_OPTION, SAN_STREAM_OPT_MODE, SAN_SM_DISCOVERY);
	st_forget_msgs();
	st_recv(to, LARGE);
	st_send(from, LARGE);
	pair_pump(&pair);
	st_settle();
	assert_int_equal(st_said(from, SAN_SM_NOTICE), 1);
	assert_int_equal(st_said(to, SAN_SM_ADV), 1);
	assert_int_equal(st_received(to), LARGE);
	assert_int_equal(st_msg(from, SAN_SM_WDONE)->wdone[0].bytes,
			 LARGE - st_msg(from, SAN_SM_NOTICE)->len);
}

/* Offered memory cannot be registered for writing: messages are used then (AFC-20, AFC-23). */
ST_TEST(adv_crossed_data__no_memory_to_write_from)
{
	conf[0].read = RTSAN_STREAM_READ_ALWAYS;
	st_start_large();
	from->no_local = true;
	st_recv(to, LARGE);
	st_send(from, LARGE);
	pair_pump(&pair);
	st_finish(LARGE);
	assert_int_equal(st_stats(from).nb_offers_void, 1);
	assert_int_equal(st_said(from, SAN_SM_WDONE), 0);
	assert_int_equal(from->nb_regs + to->nb_regs, 0);
}

/* A notice that crossed is cancelled: both sides agree on the number of bytes (AFC-28). */
ST_TEST(adv_crossed_data__given_up)
{
	uint32_t sent;

	conf[0].mode = SAN_SM_LARGE_RECV;
	st_start();
	st_large(LARGE);
	pair_ctl(from, 1, SAN_WR_OPTION, SAN_STREAM_OPT_MODE, SAN_SM_DISCOVERY);
	st_recv(to, LARGE);
	st_send(from, LARGE);
	pair_pump(&pair);
	pair_ctl(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	pair_pump(&pair);
	assert_int_equal(from->nb_req, 2); /* both are in flight before it knows of the set */
	pair_step(from);
	pair_step(from);
	st_settle();
	sent = st_sent(from);
	assert_int_equal(sent, LARGE);
	assert_int_equal(st_received(to), sent);
	assert_int_equal(to->nb_regs, 0);
}

/* Data-available arrived before an advertisement: none is sent, the receiver reads (AFC-10). */
ST_TEST(may_advertise__not_behind_an_offer)
{
	conf[0].read = RTSAN_STREAM_READ_ALWAYS;
	st_start_large();
	st_send_settle(from, LARGE);
	st_recv(to, LARGE);
	st_recv(to, LARGE);
	pair_pump(&pair);
	assert_int_equal(to->req[0].op, RTSAN_WR_PULL);
	assert_int_equal(to->nb_req, 1);
	st_settle_got(LARGE);
	assert_int_equal(st_stats(from).nb_offers_void, 0);
}

/* Nor while the provider has no room for the read (AFC-10). */
ST_TEST(may_advertise__not_before_the_read)
{
	conf[0].read = RTSAN_STREAM_READ_ALWAYS;
	st_start_large();
	st_send_settle(from, LARGE);
	to->max_req = 0;
	st_recv(to, LARGE);
	pair_pump(&pair);
	pair_pump(&pair);
	assert_int_equal(to->nb_regs, 0);
	to->max_req = PAIR_REQS;
	st_settle_got(LARGE);
	assert_int_equal(st_said(to, SAN_SM_ADV), 0);
}

/* ---- filling (AFC-21, AFC-24, AFC-25) ---- */

/* Each set exactly, with one write per set; the last one is short (AFC-21). */
ST_LARGE(wrote__exact_fill_and_short_last)
{
	st_recv(to, 10000);
	st_recv(to, 20000);
	st_recv_settle(to, 50000);
	st_send_settle(from, 40000);
	assert_int_equal(st_received(to), 10000);
	assert_int_equal(st_received(to), 20000);
	assert_int_equal(st_received(to), 10000);
	assert_int_equal(st_sent(from), 40000);
	assert_int_equal(st_said_data(from), 0);
}

/* It continues as further sets are posted, and the sender completes with the last (AFC-21). */
ST_LARGE(wrote__goes_on_as_sets_are_posted)
{
	st_send(from, 5 * LARGE);
	for (uint32_t i = 0; i < 5; i++) {
		assert_false(st_has(from, RTSAN_WC_SEND));
		st_get(LARGE);
	}
	assert_int_equal(st_sent(from), 5 * LARGE);
	assert_int_equal(st_said_data(from), 0);
}

/* Registered before it is advertised, and deregistered after the done message (AFC-24). */
ST_LARGE(end__keys_are_dead)
{
	uint32_t key;

	st_recv(to, LARGE);
	assert_int_equal(to->nb_regs, 0);
	pair_pump(&pair);
	assert_int_equal(to->nb_regs, 1);
	st_settle();
	key = st_msg(to, SAN_SM_ADV)->adv[0].where.seg[0].key;
	assert_int_equal(pair_find(to, key)->right, SAN_STREAM_PUSH);
	st_send_settle(from, LARGE);
	assert_null(pair_find(to, key));
	assert_int_equal(from->nb_regs + to->nb_regs, 0);
}

/* ---- withdrawn (AFC-28) ---- */

/* A cancelled receive that is advertised completes when the peer has answered. */
ST_LARGE(withdraw__waits_for_the_answer)
{
	st_recv_settle(to, LARGE);
	pair_ctl(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
	pair_pump(&pair);
	pair_pump(&pair);
	assert_false(st_has(to, RTSAN_WC_RECV));
	assert_int_equal(to->nb_regs, 1);
	st_settle();
	assert_int_equal(st_said(to, SAN_SM_CANCEL), 1);
	assert_int_equal(st_said(from, SAN_SM_CANCELLED), 1);
	assert_int_equal(st_received_as(to, RTSAN_WC_CANCELLED), 0);
	assert_int_equal(to->nb_regs, 0);
	assert_int_equal(st_view(from).nb_advs, 0);
	st_large(LARGE);
}

/* The write was in flight: the bytes are there, and the receive completes with them (AFC-28). */
ST_LARGE(withdraw__crosses_a_write)
{
	st_recv_settle(to, LARGE);
	st_send(from, LARGE);
	pair_ctl(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
	pair_pump(&pair);
	st_settle_got(LARGE);
	assert_int_equal(st_sent(from), LARGE);
	assert_int_equal(to->nb_regs, 0);
}

/* During a withdrawal no others are sent: the old ones return first (AFC-28). */
ST_LARGE(withdraw__others_wait)
{
	st_recv_settle(to, LARGE);
	pair_ctl(to, 1, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, 0);
	st_recv(to, LARGE);
	pair_pump(&pair);
	pair_pump(&pair);
	assert_int_equal(to->nb_regs, 1);
	st_settle();
	assert_int_equal(st_received_as(to, RTSAN_WC_CANCELLED), 0);
	st_send(from, LARGE);
	st_finish(LARGE);
}

/* ---- invalid messages of a peer ---- */

ST_RAW(hear__counts_what_was_not_sent)
{
	RAW_PUT(raw_adv(1, 8 * KB), sm.nb_rcvd = 1);
	assert_non_null(san_stream_fault(to->s));
}

/* More than 4 GiB in all. */
ST_RAW(hear__too_long)
{
	RAW_PUT(raw_adv(1, UINT32_MAX), sm.adv[0].where.nb_seg = 2,
		sm.adv[0].where.seg[1] = sm.adv[0].where.seg[0]);
	assert_non_null(san_stream_fault(to->s));
}

ST_RAW(hear__more_than_agreed)
{
	uint32_t i;

	for (i = 0; i < STREAM_ADVS; i++)
		raw_put(raw_adv(i + 1, 8 * KB));
	assert_null(san_stream_fault(to->s));
	raw_put(raw_adv(i + 1, 8 * KB));
	assert_non_null(san_stream_fault(to->s));
}

/* A set that crosses a notice is filled at least by an initial portion. */
ST_RAW(hear__smaller_than_a_message)
{
	raw_send(LARGE);
	RAW_PUT(raw_adv(1, 100), sm.lrsq = st_msg(to, SAN_SM_NOTICE)->seq - 1);
	assert_non_null(san_stream_fault(to->s));
}

/* Only what was advertised may be written, in order, and not more. */
ST_TEST(wrote__not_advertised)
{
	static const struct {
		uint32_t id_off, bytes;
	} rows[] = {{1, LARGE}, {0, LARGE + 1}};

	UNIT_EACH(row, rows) {
		st_setup_raw();
		raw_put(raw_large_msg(0));
		raw_recv(LARGE);
		RAW_PUT(raw_msg(SAN_SM_WDONE), sm.nb_wdone = 1,
			sm.wdone[0].id = st_msg(to, SAN_SM_ADV)->adv[0].id + row->id_off,
			sm.wdone[0].bytes = row->bytes);
		assert_non_null(san_stream_fault(to->s));
	}
}
