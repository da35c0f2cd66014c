/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Large sends that begin with an initial portion: both answers, reads, and how an offer is
 * withdrawn. (AFC-3, AFC-5, AFC-8, AFC-13, AFC-21, AFC-24, AFC-28)
 */

#include "test_stream.h"

static void
setup_pull(void)
{
	st_setup_open();
	st_learn(st_after, SAN_SM_SMALL_LARGE);
}

#define ST_PULL(name) UNIT_CASE_OWN(name, setup_pull, st_teardown)

/* The beginning of a large send of *len* bytes; *offer*: the rest may be read. */
static struct san_sm
raw_begin(bool offer, uint32_t len)
{
	struct san_sm m = raw_msg(SAN_SM_INITIAL | (offer ? SAN_SM_OFFER : SAN_SM_NOTICE));

	m.mode = offer ? SAN_SM_SMALL_LARGE : SAN_SM_DISCOVERY;
	m.send_id = 5;
	m.len = 1000;
	m.rest = len - m.len;
	m.offer.nb_seg = 1;
	m.offer.seg[0] = (struct san_sm_seg){.addr = 0x1000, .len = m.rest, .key = 9};
	return m;
}

/* ---- notices (AFC-5) ---- */

/* The first message has the initial portion and the size of the rest (AFC-3, AFC-5). */
ST_OPEN(notice__says_how_much)
{
	const struct san_sm *m;

	st_send_settle(from, LARGE);
	assert_int_equal(st_of(from)->nb_msgs, 1);
	m = st_msg(from, SAN_SM_NOTICE | SAN_SM_INITIAL);
	assert_in_range(m->len, 1000, 4095);
	assert_int_equal(m->len + m->rest, LARGE);
	/* and nothing follows before the answer */
	st_send_settle(from, 100);
	assert_int_equal(st_of(from)->nb_msgs, 1);
	st_read(to, LARGE + 100, LARGE);
}

/* Answer: the place of the buffer, posted before or after the notice (AFC-5, AFC-22). */
ST_OPEN(notice__buffer_posted_before)
{
	st_large(LARGE);
	assert_false(st_msg(to, SAN_SM_ADV)->adv[0].after);
	assert_int_equal(st_msg(to, SAN_SM_ADV)->adv[0].where.seg[0].len,
			 st_msg(from, SAN_SM_NOTICE)->rest);
}

ST_OPEN(notice__buffer_posted_after)
{
	st_after(LARGE);
	assert_true(st_msg(to, SAN_SM_ADV)->adv[0].after);
}

/* Posted after the initial portion was read by itself (AFC-22). */
ST_OPEN(notice__initial_portion_was_consumed)
{
	uint32_t initial;

	st_send_settle(from, LARGE);
	initial = st_view(to).nb_unread_bytes;
	/* small ones, but none for the rest */
	st_get(100);
	st_recv_flags(to, LARGE - 100, RTSAN_RECV_WAITALL);
	st_settle_got(LARGE - 100);
	assert_true(st_msg(to, SAN_SM_ADV)->adv[0].after);
	assert_int_equal(st_stats(from).tx.write, LARGE - initial);
}

/* Answer: too small, the rest in messages (AFC-5). */
ST_OPEN(notice__buffer_too_small)
{
	st_send_settle(from, LARGE);
	st_read(to, LARGE, 2000);
	assert_int_equal(st_said(to, SAN_SM_SMALL), 1);
	assert_int_equal(st_msg(to, SAN_SM_SMALL)->rep.small_id,
			 st_msg(from, SAN_SM_NOTICE)->send_id);
	assert_int_equal(st_said(to, SAN_SM_ADV), 0);
	assert_int_equal(st_stats(from).tx.message, LARGE);
	assert_int_equal(st_stats(from).nb_fallbacks, 0);
}

/* An application that waits for more data has no buffer for it. */
ST_OPEN(notice__program_waits)
{
	struct san_ulp_wc wc = {0};

	st_send_settle(from, LARGE);
	st_read(to, st_view(to).nb_unread_bytes, 100);
	st_ctl_settle(to, 1, SAN_WR_WAIT, RTSAN_STREAM_READABLE, 0);
	assert_true(st_take(to, RTSAN_WC_STREAM_WAIT, &wc));
	assert_int_equal(st_said(to, SAN_SM_SMALL), 1);
}

/* Two scans without a buffer: the rest is sent in messages, as far as there is room (AFC-13). */
ST_OPEN(notice__nobody_posts)
{
	st_send(from, LARGE);
	st_wait(conf[0].scan_ns * 2 - 1);
	assert_int_equal(st_said_data(from), 1);
	st_wait(1);
	assert_int_equal(st_stats(from).nb_fallbacks, 1);
	assert_int_equal(st_said_data(from), conf[1].nb_store);
	st_read(to, LARGE, LARGE);
	assert_int_equal(st_sent(from), LARGE);
}

/* The answer was in flight when the sender stopped waiting: it is late, and has no effect. */
ST_RAW(notice__answered_too_late)
{
	raw_send(LARGE);
	pair.now_ns += conf[1].scan_ns;
	san_stream_tick(to->s, pair.now_ns);
	raw_run();
	pair.now_ns += conf[1].scan_ns;
	san_stream_tick(to->s, pair.now_ns);
	raw_run();
	assert_int_equal(st_stats(to).nb_fallbacks, 1);
	RAW_PUT(raw_msg(SAN_SM_SMALL), sm.rep.small_id = st_msg(to, SAN_SM_NOTICE)->send_id);
	assert_null(san_stream_fault(to->s));
	raw_put(raw_msg(0));
	assert_int_equal(st_sent(to), LARGE);
}

/* `scans` is configurable (AFC-13). */
ST_TEST(notice__as_many_scans_as_asked_for)
{
	conf[0].scans = 5;
	st_start();
	st_send(from, LARGE);
	st_wait(conf[0].scan_ns * 5 - 1);
	assert_int_equal(st_stats(from).nb_fallbacks, 0);
	st_wait(1);
	assert_int_equal(st_stats(from).nb_fallbacks, 1);
}

/* A buffer restarts the count (AFC-13). */
ST_OPEN(notice__scans_in_a_row)
{
	st_send(from, 5 * LARGE);
	for (uint32_t i = 0; i < 5; i++) {
		st_wait(conf[0].scan_ns);
		st_get(LARGE);
	}
	assert_int_equal(st_stats(from).nb_fallbacks, 0);
}

/* Large receive mode without a buffer or a wait: discovery, the rest in messages (AFC-13). */
ST_LARGE(large_mode__nobody_posts)
{
	st_send(from, LARGE);
	st_wait(conf[0].scan_ns * 2 - 1);
	assert_int_equal(st_of(from)->nb_msgs, 0);
	assert_int_equal(st_stats(from).nb_stalls_set, 1);
	st_wait(1);
	assert_int_equal(st_view(from).mode, SAN_SM_DISCOVERY);
	assert_int_equal(st_view(from).change[1].why, SAN_STREAM_WHY_SCAN);
	assert_true(st_said_data(from) > 1);
	st_read(to, LARGE, LARGE);
}

/* ---- offers (AFC-8) ---- */

/* Registered before it is offered, only for reading, and deregistered after RDONE (AFC-24). */
ST_PULL(offer__keys_are_dead)
{
	uint32_t key;

	st_send(from, LARGE);
	pair_pump(&pair);
	assert_int_equal(from->nb_regs, 1);
	st_settle();
	key = st_msg(from, SAN_SM_OFFER)->offer.seg[0].key;
	assert_int_equal(pair_find(from, key)->right, SAN_STREAM_PULL);
	st_recv(to, LARGE);
	st_finish(LARGE);
	assert_null(pair_find(from, key));
	assert_int_equal(from->nb_regs + to->nb_regs, 0);
}

/* Reads fill each set exactly and continue as sets are posted; the last is short (AFC-21). */
ST_PULL(offer__several_sets)
{
	st_listen();
	st_send_settle(from, LARGE);
	st_heard();
	st_get(10000);
	assert_false(st_has(from, RTSAN_WC_SEND));
	st_recv(to, 20000);
	st_recv_settle(to, LARGE);
	assert_int_equal(st_received(to), 20000);
	assert_int_equal(st_received(to), LARGE - 30000);
	assert_int_equal(st_sent(from), LARGE);
	assert_int_equal(st_msg(to, SAN_SM_RDONE)->rep.rdone.mode, SAN_SM_SMALL_LARGE);
	assert_int_equal(st_stats(to).rx.read, LARGE - st_msg(from, SAN_SM_OFFER)->len);
}

/* Of a send in pieces, into a receive in pieces. */
ST_TEST(offer__pieces)
{
	struct st_side *a = st_of(from), *b = st_of(to);
	struct san_ulp_wr wr = {.op = RTSAN_WR_SEND, .flags = RTSAN_WR_SIGNALED, .nb_sge = 3};
	struct san_ulp_recv r = {.nb_sge = 2};

	conf[0].mode = SAN_SM_SMALL_LARGE;
	st_start();
	for (uint32_t i = 0; i < 3; i++)
		wr.sge[i] = (struct rtsan_sge){
			.addr = a->src + 50000 * i,
			.length = 500 + 9750 * i,
		};
	wr.length = 500 + 10250 + 20000;
	assert_int_equal(san_stream_post_send(from->s, &wr, 1), 1);
	st_settle();
	r.sge[0] = (struct rtsan_sge){.addr = b->dst, .length = 15000};
	r.sge[1] = (struct rtsan_sge){.addr = b->dst + 15000, .length = 15750};
	assert_int_equal(san_stream_recv_post(to->s, &r, 1), 1);
	st_settle();
	assert_int_equal(st_sent(from), wr.length);
	assert_memory_equal(b->dst, a->src, 500);
	assert_memory_equal(b->dst + 500, a->src + 50000, 10250);
	assert_memory_equal(b->dst + 10750, a->src + 100000, 20000);
}

/* Too small a buffer: the offer is returned, the rest comes in messages (AFC-5). */
ST_PULL(offer__buffer_too_small)
{
	st_send_settle(from, LARGE);
	st_read(to, LARGE, 2000);
	assert_int_equal(st_said(to, SAN_SM_RDONE), 1);
	assert_int_equal(st_msg(to, SAN_SM_RDONE)->rep.rdone.mode, SAN_SM_SMALL_RECV);
	assert_int_equal(st_msg(to, SAN_SM_RDONE)->rep.rdone.bytes, 0);
	assert_int_equal(st_sent(from), LARGE);
}

/* Half of it is read, then a small buffer: the part that was read is not sent again. */
ST_PULL(offer__part_was_read)
{
	st_send_settle(from, LARGE);
	st_get(LARGE / 2);
	st_read(to, LARGE / 2, 2000);
	assert_int_equal(st_msg(to, SAN_SM_RDONE)->rep.rdone.bytes,
			 LARGE / 2 - st_msg(from, SAN_SM_OFFER)->len);
	assert_int_equal(st_sent(from), LARGE);
}

/* No buffer: the receiver returns it after its scans; the sender does not (AFC-13, AFC-28). */
ST_PULL(offer__nobody_posts)
{
	st_send(from, LARGE);
	st_wait(conf[1].scan_ns * 2 - 1);
	assert_int_equal(st_said(to, SAN_SM_RDONE), 0);
	assert_int_equal(from->nb_regs, 1);
	st_wait(1);
	assert_int_equal(st_said(to, SAN_SM_RDONE), 1);
	assert_int_equal(from->nb_regs, 0);
	assert_int_equal(st_stats(from).nb_fallbacks, 1);
	assert_int_equal(st_view(from).mode, SAN_SM_DISCOVERY);
	st_read(to, LARGE, LARGE);
	assert_int_equal(st_sent(from), LARGE);
}

/* The application cancels an offered send: it stays offered until the peer has answered. */
ST_PULL(withdraw__offered)
{
	st_send_settle(from, LARGE);
	pair_ctl(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	pair_pump(&pair);
	pair_pump(&pair);
	assert_false(st_has(from, RTSAN_WC_SEND));
	assert_int_equal(from->nb_regs, 1); /* (AFC-28) */
	st_settle();
	assert_int_equal(st_said(from, SAN_SM_WITHDRAW), 1);
	assert_int_equal(st_said(to, SAN_SM_RDONE), 1);
	assert_int_equal(st_sent_as(from, RTSAN_WC_CANCELLED), st_msg(from, SAN_SM_OFFER)->len);
	assert_int_equal(from->nb_regs, 0);
	assert_int_equal(st_stats(from).nb_fallbacks, 0);
	st_recv_settle(to, LARGE);
	assert_int_equal(st_received(to), st_msg(from, SAN_SM_OFFER)->len);
}

/* The same after a notice. */
ST_OPEN(withdraw__noticed)
{
	uint32_t initial;

	st_send_settle(from, LARGE);
	initial = st_msg(from, SAN_SM_NOTICE)->len;
	pair_ctl(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	pair_pump(&pair);
	pair_pump(&pair);
	assert_false(st_has(from, RTSAN_WC_SEND));
	st_settle();
	assert_int_equal(st_sent_as(from, RTSAN_WC_CANCELLED), initial);
	/* and the stream continues behind it */
	st_of(from)->src_used = initial;
	st_send_settle(from, 100);
	st_read(to, initial, LARGE);
	st_read(to, 100, 100);
}

/* It was being read: the receiver has those bytes, and both sides report that (AFC-28). */
ST_PULL(withdraw__while_it_is_read)
{
	struct pair_req read;

	st_send_settle(from, LARGE);
	st_recv(to, LARGE);
	pair_pump(&pair);
	assert_int_equal(to->nb_req, 1);
	read = to->req[0];
	to->nb_req = 0;
	st_ctl_settle(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	assert_int_equal(st_said(to, SAN_SM_RDONE), 0);
	assert_int_equal(from->nb_regs, 1);
	to->req[to->nb_req++] = read;
	st_settle_got(LARGE);
	assert_int_equal(st_sent(from), LARGE);
	assert_int_equal(from->nb_regs, 0);
}

/* Only a part of it was read: the rest is cancelled. */
ST_PULL(withdraw__while_a_part_is_read)
{
	st_send_settle(from, LARGE);
	st_recv_flags(to, LARGE / 2, RTSAN_RECV_WAITALL);
	pair_pump(&pair);
	pair_ctl(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	pair_pump(&pair);
	pair_step(from);
	assert_false(st_has(to, RTSAN_WC_RECV));
	st_settle_got(LARGE / 2);
	assert_int_equal(st_sent_as(from, RTSAN_WC_CANCELLED), LARGE / 2);
	assert_int_equal(from->nb_regs, 0);
}

/* The answer crosses the withdrawal: it is not withdrawn twice. */
ST_PULL(withdraw__answered_already)
{
	st_send_settle(from, LARGE);
	st_recv(to, LARGE);
	pair_pump(&pair);
	pair_step(to);
	pair_ctl(from, 1, SAN_WR_CANCEL, RTSAN_STREAM_SENDS, 0);
	pair_pump(&pair); /* RDONE and WITHDRAW are in flight */
	st_settle_got(LARGE);
	assert_int_equal(st_sent(from), LARGE);
	assert_int_equal(st_said(to, SAN_SM_RDONE), 1);
}

/* ---- invalid messages of a peer ---- */

ST_RAW(hear__behind_an_offer)
{
	raw_put(raw_begin(true, LARGE));
	assert_null(san_stream_fault(to->s));
	raw_put(raw_begin(true, LARGE));
	assert_non_null(san_stream_fault(to->s));
}

ST_RAW(hear__fin_behind_an_offer)
{
	raw_put(raw_begin(true, LARGE));
	raw_put(raw_msg(SAN_SM_FIN));
	assert_non_null(san_stream_fault(to->s));
}

ST_TEST(hear__other_than_what_is_left)
{
	static const struct {
		bool offer;
		uint32_t rest, room;
	} rows[] = {{false, 0, 1}, {true, 0, 1}, {true, 5000, 4999}, {true, 5000, 5001}};

	UNIT_EACH(row, rows) {
		st_setup_raw();
		RAW_PUT(raw_begin(row->offer, LARGE), sm.rest = row->rest,
			sm.offer.seg[0].len = row->room);
		assert_non_null(san_stream_fault(to->s));
	}
}

/* Only what was offered can be returned, and not more than that. */
ST_TEST(returned__not_offered)
{
	static const struct {
		uint32_t id_off;
		bool all, more, fault;
	} rows[] = {
		{0, true, false, false},
		{0, true, true, true},
		{1, true, false, true},
		{1, false, false, false}, /* late: it crossed our withdrawal */
	};
	const struct san_sm *offer;

	UNIT_EACH(row, rows) {
		st_setup();
		conf[1].mode = SAN_SM_SMALL_LARGE;
		raw_start();
		raw_send(LARGE);
		offer = st_msg(to, SAN_SM_OFFER);
		RAW_PUT(raw_msg(SAN_SM_RDONE), sm.rep.rdone.id = offer->send_id + row->id_off,
			sm.rep.rdone.bytes = row->all ? offer->rest + row->more : 0,
			sm.rep.rdone.mode = SAN_SM_SMALL_LARGE);
		assert_int_equal(san_stream_fault(to->s) != NULL, row->fault);
	}
}

/* A failed read is the peer's fault: it offered unreadable memory. */
ST_RAW(on_read__fails)
{
	raw.status = 1;
	raw_put(raw_begin(true, LARGE));
	raw_recv(LARGE);
	assert_int_equal(raw.nb_access, 1);
	assert_non_null(san_stream_fault(to->s));
	assert_false(st_has(to, RTSAN_WC_RECV));
	pair_end_now(to, RTSAN_WC_FLUSHED);
	/* data received before is delivered */
	assert_int_equal(st_received_as(to, 0), 1000);
}

/* The second piece can be read, the first could not: nothing was received. */
ST_RAW(on_read__first_piece_fails)
{
	struct san_sm m = raw_begin(true, LARGE);

	m.offer.nb_seg = 2;
	m.offer.seg[1] = m.offer.seg[0];
	m.offer.seg[0].len = 1000;
	m.offer.seg[1].len -= 1000;
	raw_put(m);
	st_recv(to, LARGE);
	pair_pump_one(to);
	assert_int_equal(to->nb_req, 2);
	for (uint32_t i = 0; i < 2; i++)
		pair_done(to, to->req[i].cookie, i == 0, 0);
	to->nb_req = 0;
	pair_pump_one(to);
	assert_non_null(san_stream_fault(to->s));
	assert_false(st_has(to, RTSAN_WC_RECV));
}

/*
 * A message behind an initial portion may meet the same set: together they fit into the smallest
 * possible one (AFC-12, AFC-23).
 */
ST_TEST(notice__message_behind_it)
{
	const struct st_side *side = st_of(from);

	conf[0].msg_size = conf[0].msg_max = 8192;
	conf[1].msg_size = conf[1].msg_max = 8192;
	st_start();
	st_send(from, LARGE);
	st_wait(conf[0].scan_ns * 2);
	assert_int_equal(st_stats(from).nb_fallbacks, 1);
	assert_true(side->msg[0].len > 2000);
	for (uint32_t i = 1; i < side->nb_msgs; i++)
		assert_true(side->msg[0].len + side->msg[i].len < pair_ops.caps.threshold);
	st_read(to, LARGE, LARGE);
}
