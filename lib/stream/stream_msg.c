/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sending and receiving messages. Reports of a session are kept in flags until the next message,
 * which carries all of them, and data if there is some. So few messages carry only reports (AFC-11,
 * AFC-15). The parts of a message are processed in the order of msg_process(): first the reports on
 * direct transfers, then its own payload.
 */

#include "stream_priv.h"

#define PARTS_ROOM 160 /* bytes left by advertisements for an offer and some payload */

void
san_stream_msg_stall(struct san_stream *s, enum stream_stall why)
{
	struct stream_tx *tx = &s->tx;

	if (why == tx->stall)
		return;
	tx->stall = (uint8_t)why;
	s->stats.nb_stalls_credit += why == STREAM_STALL_CREDIT;
	s->stats.nb_stalls_store += why == STREAM_STALL_STORE;
	s->stats.nb_stalls_buffers += why == STREAM_STALL_BUFFERS;
	s->stats.nb_stalls_set += why == STREAM_STALL_SET;
}

/* ---- sending ---- */

static bool
wdone_ready(const struct san_stream *s)
{
	const struct stream_tx *tx = &s->tx;

	/*
	 * An ordered provider places the data before this message arrives. Otherwise wait for the
	 * results of the writes (AFC-25).
	 */
	return tx->wdone_head != tx->wdone_tail &&
		(s->caps.ordered || tx->wdone[tx->wdone_head % STREAM_WDONES].nb_io == 0);
}

/*
 * True if advertisements wait for a data message, because the application is about to send one
 * (AFC-11).
 */
static bool
adv_due(struct san_stream *s, uint64_t now_ns)
{
	struct stream_rx *rx = &s->rx;
	bool hold = rx->pattern == STREAM_PATTERN_RECV_SEND && rx->way == STREAM_RX_NONE;

	if (san_stream_adv_next(s) == NULL) {
		rx->adv_due = 0;
		return false;
	}
	if (rx->adv_due == 0)
		rx->adv_due = now_ns + (hold ? s->conf.hold_ns : 0);
	return now_ns >= rx->adv_due;
}

/* What is due and may be said now: that sets are returned, only after the data written before. */
static uint32_t
due_now(const struct san_stream *s)
{
	return s->tx.wdone_head == s->tx.wdone_tail ? s->due : s->due & ~SAN_SM_CANCELLED;
}

static void
put_parts(struct san_stream *s, struct san_sm *m)
{
	const struct stream_wdone *w;
	uint32_t due;

	while (m->nb_wdone < SAN_SM_WDONES && wdone_ready(s)) {
		w = &s->tx.wdone[s->tx.wdone_head++ % STREAM_WDONES];
		m->flags |= SAN_SM_WDONE;
		m->wdone[m->nb_wdone].id = w->id;
		m->wdone[m->nb_wdone++].bytes = w->bytes;
	}
	due = due_now(s);
	s->due &= ~due;
	m->flags |= due;
	m->rep = s->rep; /* the flags decide which of these are sent */
}

static void
msg_build(struct san_stream *s, enum stream_want want, struct san_sm *m, struct stream_buf *b)
{
	uint32_t size = san_stream_min(b->size, s->peer_msg);
	uint32_t nb_advs = s->rx.nb_advs;

	put_parts(s, m);
	san_stream_adv_build(s, m, size - PARTS_ROOM);
	if (want != STREAM_WANT_NOTHING && s->tx.wdone_head == s->tx.wdone_tail)
		san_stream_send_fill(s, want, m, b->data, size);
	if (m->len > 0)
		s->stats.nb_advertisements_piggybacked += s->rx.nb_advs - nb_advs;
}

static void
msg_count_sent(struct san_stream *s, const struct san_sm *m)
{
	s->tx.mode_reported = m->mode;
	s->stats.nb_tx_messages++;
	s->stats.nb_updates += (m->flags & SAN_SM_UPDATE) != 0;
	if ((m->flags & SAN_SM_INITIAL) != 0) {
		s->tx.notice_seq = m->seq;
		s->tx.notice_data = s->tx.nb_data;
	}
	if (m->len == 0)
		return;
	s->cr.nb_payload++;
	if ((m->flags & (SAN_SM_INITIAL | SAN_SM_URGENT_BYTE)) == 0)
		san_stream_adv_spend(s);
}

/* False: the provider has no room. The message is then the first one to be posted later. */
static bool
msg_post_wrs(struct san_stream *s)
{
	uint32_t len = s->stuck_len;
	uint16_t at = s->stuck;
	struct san_ulp_wr wr;

	san_stream_wr_init(&wr, RTSAN_WR_SEND, san_stream_cookie(STREAM_REQ_SEND, 0, at), len);
	wr.nb_sge = 1;
	wr.sge[0] = (struct rtsan_sge){.addr = s->spool.bufs[at].data, .length = len};
	if (s->ops->post(s->arg, &wr) != 0)
		return false;
	s->stuck = STREAM_NONE;
	return true;
}

/* True if the peer's limits allow *want*, or, with one credit left, any message. */
static bool
may_send(struct san_stream *s, enum stream_want *want, bool update, uint64_t now_ns)
{
	uint32_t credit = san_stream_credit_left(s);
	bool says;

	if (*want != STREAM_WANT_NOTHING && *want != STREAM_WANT_FIN &&
	    !san_stream_credit_has_room(s)) {
		san_stream_msg_stall(s, STREAM_STALL_STORE);
		*want = STREAM_WANT_NOTHING;
	}
	says = adv_due(s, now_ns) || wdone_ready(s) || due_now(s) != 0 ||
		(s->tx.mode == SAN_SM_LARGE_RECV && s->tx.mode_reported != SAN_SM_LARGE_RECV) ||
		*want != STREAM_WANT_NOTHING;
	if (credit > 1 && says)
		return true;
	if (says)
		san_stream_msg_stall(s, STREAM_STALL_CREDIT);
	return credit > 1 ? update : credit == 1 && san_stream_credit_must_update(s);
}

/* Build the message in that buffer, and post it. */
static bool
msg_send_one(struct san_stream *s, uint16_t at, enum stream_want want, bool update)
{
	struct stream_buf *b = &s->spool.bufs[at];
	struct san_sm m = {.mode = s->tx.mode};

	san_stream_spend(s, STREAM_STEP_BYTES);
	b->state = STREAM_BUF_POSTED;
	if (!s->hello_sent) {
		m.flags = SAN_SM_HELLO | (s->accepted ? SAN_SM_ACCEPTOR : 0);
		m.hello.nb_store = s->conf.nb_store;
		m.hello.nb_adv = STREAM_ADVS;
		m.hello.msg_size = s->rpool.size;
		m.hello.threshold = s->threshold;
		m.hello.can_read = s->caps.can_read;
		s->hello_sent = true;
	} else if (san_stream_credit_left(s) > 1) {
		msg_build(s, want, &m, b);
	}
	if (m.len > 0)
		san_stream_msg_stall(s, STREAM_STALL_NONE);
	if (update && m.len == 0)
		m.flags |= SAN_SM_UPDATE;
	san_stream_credit_say(s, &m);
	msg_count_sent(s, &m);
	san_wire_stream_put(&m, b->data);
	s->stuck = at;
	s->stuck_len = san_wire_stream_len(&m) + m.len;
	return msg_post_wrs(s);
}

bool
san_stream_msg_send(struct san_stream *s, uint64_t now_ns)
{
	bool update = s->hello_rcvd && san_stream_credit_may_update(s);
	enum stream_want want;
	uint16_t at;

	if (!s->open || s->over || s->fault != NULL ||
	    (s->stuck != STREAM_NONE && !msg_post_wrs(s)))
		return false;
	want = san_stream_send_want(s, now_ns);
	/* Payload must not overtake data whose write is in progress. */
	if (s->tx.wdone_head != s->tx.wdone_tail && !wdone_ready(s))
		want = STREAM_WANT_NOTHING;
	if (s->hello_sent && (!s->hello_rcvd || !may_send(s, &want, update, now_ns)))
		return false;
	at = san_stream_pool_get(&s->spool);
	if (at == STREAM_NONE) {
		san_stream_msg_stall(s, STREAM_STALL_BUFFERS);
		return false;
	}
	return msg_send_one(s, at, want, update);
}

/* ---- receiving ---- */

static bool
msg_check_hello(struct san_stream *s, const struct san_sm *m)
{
	if ((m->flags & SAN_SM_HELLO) == 0 || s->hello_rcvd) {
		san_stream_break(s, "does not begin with a hello");
		return false;
	}
	if (m->hello.msg_size < SAN_STREAM_MSG_MIN || m->hello.nb_store < 2 ||
	    m->hello.nb_adv == 0 || m->pr < 2 ||
	    ((m->flags & SAN_SM_ACCEPTOR) != 0) == s->accepted) {
		san_stream_break(s, "sends invalid values in its hello");
		return false;
	}
	s->hello_rcvd = true;
	s->peer_store = m->hello.nb_store;
	s->peer_advs = m->hello.nb_adv;
	s->peer_msg = m->hello.msg_size;
	s->peer_can_read = m->hello.can_read;
	if (m->hello.threshold > s->threshold)
		s->threshold = m->hello.threshold;
	return true;
}

/* Process the parts that concern our sending and buffers. */
static void
process_parts(struct san_stream *s, const struct san_sm *m, uint64_t now_ns)
{
	uint8_t i;

	for (i = 0; i < m->nb_wdone && s->fault == NULL; i++)
		san_stream_adv_wrote(s, m->wdone[i].id, m->wdone[i].bytes);
	if ((m->flags & SAN_SM_CANCELLED) != 0)
		san_stream_adv_returned(s, m->rep.cancelled);
	if ((m->flags & SAN_SM_RDONE) != 0)
		san_stream_offer_returned(s, m, now_ns);
	if ((m->flags & SAN_SM_SMALL) != 0)
		san_stream_send_small(s, m->rep.small_id, now_ns);
	if ((m->flags & SAN_SM_ADV) != 0)
		san_stream_adv_on_msg(s, m);
	if ((m->flags & SAN_SM_CANCEL) != 0)
		san_stream_adv_forget(s, m->rep.cancel);
	if ((m->flags & SAN_SM_RESIZED) != 0)
		san_stream_resize_on_done(s, m->rep.resized.bytes, m->rep.resized.after);
	if ((m->flags & SAN_SM_RESIZE) != 0)
		san_stream_resize_on_request(s, m->rep.resize);
	if ((m->flags & SAN_SM_REDISCOVER) != 0 && s->tx.mode == SAN_SM_SMALL_RECV)
		san_stream_mode_leave(s, SAN_STREAM_WHY_LARGE, now_ns);
	if ((m->flags & SAN_SM_WITHDRAW) != 0)
		san_stream_recv_withdrawn(s);
	if ((m->flags & SAN_SM_URGENT) != 0) {
		s->urg.announced = true;
		s->urg.there = false;
	}
}

/* False: the buffer is not needed any more. */
static bool
process_payload(struct san_stream *s, uint16_t at, const struct san_sm *m)
{
	struct stream_buf *b = &s->rpool.bufs[at];

	if ((m->flags & (SAN_SM_NOTICE | SAN_SM_OFFER)) != 0)
		san_stream_offer_on_msg(s, m);
	if (m->len == 0)
		return false;
	s->stats.nb_rx_data++;
	s->cr.nb_payload_rcvd++;
	if (s->rx.fin || s->cr.nb_payload_rcvd - s->cr.nb_freed > s->conf.nb_store) {
		san_stream_break(s, "sends behind its end, or more than there is room for");
		return false;
	}
	if ((m->flags & SAN_SM_URGENT_BYTE) == 0) {
		san_stream_recv_payload(s, at, m);
		return true;
	}
	s->urg.byte = b->data[b->off];
	s->urg.announced = s->urg.there = true;
	s->rx.mark = true;
	s->cr.nb_freed++;
	return false;
}

/* Process a message in its turn. */
static void
msg_process(struct san_stream *s, uint16_t at, const struct san_sm *m, uint32_t payload,
	    uint64_t now_ns)
{
	struct stream_buf *b = &s->rpool.bufs[at];
	struct stream_rx *rx = &s->rx;

	s->cr.lrsq = m->seq;
	s->stats.nb_rx_messages++;
	if ((!s->hello_rcvd || (m->flags & SAN_SM_HELLO) != 0) && !msg_check_hello(s, m)) {
		san_stream_pool_put(s, &s->rpool, at);
		return;
	}
	if (m->mode != rx->mode) {
		rx->mode = m->mode;
		rx->redisc_reported = rx->posture_reported = false;
	}
	process_parts(s, m, now_ns);
	b->off = payload;
	b->len = m->len;
	if (s->fault != NULL || !process_payload(s, at, m))
		san_stream_pool_put(s, &s->rpool, at);
	if ((m->flags & SAN_SM_FIN) != 0) {
		if (rx->way == STREAM_RX_OFFER)
			san_stream_break(s, "ends behind an offer that was not given back");
		rx->fin = true;
		san_stream_offer_rest_void(s);
	}
	/* Do this before the next message: a message fills one advertised set, not two (AFC-12). */
	san_stream_recv_run(s, now_ns);
}

/* Hold a message that arrived before others (AFC-17). */
static void
msg_hold_late(struct san_stream *s, uint16_t at, uint32_t len, uint32_t seq)
{
	uint16_t *place = &s->cr.held[seq & s->cr.held_mask];

	if (*place != STREAM_NONE) {
		san_stream_break(s, "uses a message's number twice");
		san_stream_pool_put(s, &s->rpool, at);
		return;
	}
	s->rpool.bufs[at].state = STREAM_BUF_HELD;
	s->rpool.bufs[at].len = len;
	*place = at;
	s->cr.nb_held++;
	s->stats.nb_messages_held++;
}

/* Take the held message that is next, if there is one. */
static uint16_t
msg_unhold_next(struct san_stream *s)
{
	uint16_t *place = &s->cr.held[(s->cr.lrsq + 1) & s->cr.held_mask], at = *place;

	*place = STREAM_NONE;
	s->cr.nb_held -= at != STREAM_NONE;
	return at;
}

void
san_stream_msg_receive(struct san_stream *s, uint16_t at, uint32_t len, uint64_t now_ns)
{
	struct stream_buf *b = &s->rpool.bufs[at];
	uint32_t payload;
	struct san_sm m;
	int32_t ahead;

	if (len > b->size || san_wire_stream_get(b->data, len, &m, &payload) != 0) {
		san_stream_break(s, "sends what is no message of a session");
		san_stream_pool_put(s, &s->rpool, at);
		return;
	}
	ahead = san_seq_diff(m.seq, s->cr.lrsq + 1);
	if (ahead < 0 || ahead >= s->rpool.nb) {
		san_stream_break(s, "numbers messages out of bounds");
		san_stream_pool_put(s, &s->rpool, at);
		return;
	}
	san_stream_credit_on_msg(s, &m);
	if (ahead > 0) {
		msg_hold_late(s, at, len, m.seq);
		return;
	}
	msg_process(s, at, &m, payload, now_ns);
	while (s->cr.nb_held > 0 && s->fault == NULL && (at = msg_unhold_next(s)) != STREAM_NONE) {
		san_wire_stream_get(s->rpool.bufs[at].data, s->rpool.bufs[at].len, &m, &payload);
		msg_process(s, at, &m, payload, now_ns);
	}
}
