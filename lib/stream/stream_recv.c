/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The receiver: a list of unread data, each piece in its message buffer, and a queue of receives
 * that the application has posted. The payload of a message is appended to the list. Then the
 * receives take data from the list: all of it if the peer knows of a buffer, otherwise as much as
 * the copy budget allows. (AFC-1, AFC-21, AFC-27)
 */

#include "stream_priv.h"

#define RECV_MAX (1u << 30) /* maximum bytes of one receive */

/* ---- unread data ---- */

static struct stream_buf *
first_piece(struct san_stream *s)
{
	return s->rx.nb_unread > 0 ? &s->rpool.bufs[s->rx.unread_head] : NULL;
}

void
san_stream_recv_drop(struct san_stream *s)
{
	struct stream_rx *rx = &s->rx;
	uint16_t at = rx->unread_head;

	rx->unread_bytes -= s->rpool.bufs[at].len;
	rx->unread_head = s->rpool.bufs[at].next;
	rx->nb_unread--;
	san_stream_pool_put(s, &s->rpool, at);
	s->cr.nb_freed++;
}

void
san_stream_recv_payload(struct san_stream *s, uint16_t at, const struct san_sm *m)
{
	struct stream_rx *rx = &s->rx;
	struct stream_buf *b = &s->rpool.bufs[at];

	if (s->orphan) { /* no application will read it */
		san_stream_pool_put(s, &s->rpool, at);
		s->cr.nb_freed++;
		return;
	}
	b->state = STREAM_BUF_UNREAD;
	b->piece = 0;
	if ((m->flags & SAN_SM_INITIAL) != 0)
		b->piece |= STREAM_PIECE_INITIAL;
	else
		rx->nb_rcvd++;
	if ((m->flags & SAN_SM_LARGE) != 0) {
		b->piece |= STREAM_PIECE_LARGE;
		/* The sender did not wait any longer (AFC-13). */
		if (rx->way == STREAM_RX_NOTICE)
			san_stream_offer_rest_void(s);
	}
	if (rx->mark)
		b->piece |= STREAM_PIECE_MARK;
	rx->mark = false;
	if (rx->nb_unread > 0)
		s->rpool.bufs[rx->unread_tail].next = at;
	else
		rx->unread_head = at;
	rx->unread_tail = at;
	rx->nb_unread++;
	rx->unread_bytes += b->len;
	s->stats.rx.message += b->len;
}

/* ---- completion ---- */

void
san_stream_recv_complete(struct san_stream *s, struct stream_rqe *q, uint8_t status)
{
	SAN_ASSERT(q == san_stream_recv_first(s) && q->nb_io == 0);
	san_stream_spend(s, STREAM_STEP_BYTES);
	san_stream_adv_end(s, q);
	q->status = status;
	s->rx.notified |= s->rx.begun;
	if (status == 0 && q->filled > 0 && q->room >= s->threshold)
		san_stream_mode_see(s, STREAM_SEE_DATA);
	s->rx.cur++;
}

/* ---- matching ---- */

/* True if *q* can take the rest of a large send. */
static bool
stream_recv_fits(const struct san_stream *s, const struct stream_rqe *q)
{
	uint32_t need = san_stream_min(s->rx.rest, s->threshold);

	return san_stream_recv_is_set(q) && san_stream_recv_room_left(q) >= need;
}

/* Append what is unread in *b*, as far as there is room; returns the number of bytes. */
static uint32_t
stream_recv_copy_out(struct san_stream *s, struct stream_rqe *q, const struct stream_buf *b)
{
	uint32_t bytes = san_stream_min(b->len, san_stream_recv_room_left(q));

	san_stream_copy(s, q->sge, q->nb_sge, q->filled, bytes, b->data + b->off, true);
	q->filled += bytes;
	s->rx.begun |= (b->piece & STREAM_PIECE_INITIAL) != 0;
	return bytes;
}

/*
 * Data of a large send arrived in messages for a large buffer: report it, because another mode
 * would be better (AFC-22).
 */
static void
note_large(struct san_stream *s, const struct stream_rqe *q, const struct stream_buf *b)
{
	struct stream_rx *rx = &s->rx;

	if ((b->piece & STREAM_PIECE_LARGE) == 0 || rx->mode != SAN_SM_SMALL_RECV ||
	    rx->redisc_reported || q->room < s->threshold || !san_stream_recv_is_set(q))
		return;
	rx->redisc_reported = true;
	s->due |= SAN_SM_REDISCOVER;
}

/*
 * True if the copy budget is used up and the next piece may wait. If the sender knows of a buffer,
 * the piece must not wait: the next message may concern that buffer, and all data before it must be
 * in place. In that case only the last message is unread.
 */
static bool
is_spent(const struct san_stream *s)
{
	return s->budget == 0 && s->rx.nb_advs == 0;
}

/*
 * Copy the first unread piece, or as much as fits. True if *q* stays open for the rest of the same
 * send.
 */
static bool
stream_recv_take_piece(struct san_stream *s, struct stream_rqe *q)
{
	struct stream_rx *rx = &s->rx;
	struct stream_buf *b = first_piece(s);
	bool initial = (b->piece & STREAM_PIECE_INITIAL) != 0;
	uint32_t bytes;

	note_large(s, q, b);
	bytes = stream_recv_copy_out(s, q, b);
	b->piece &= (uint8_t)~STREAM_PIECE_MARK;
	b->off += bytes;
	b->len -= bytes;
	rx->unread_bytes -= bytes;
	if (q->is_adv && initial) {
		q->adv_bytes -= bytes;
		rx->adv_room -= bytes;
	} else if (q->is_adv) {
		san_stream_adv_end(s, q); /* this message ends the advertisement (AFC-12) */
	}
	if (b->len > 0)
		return false;
	san_stream_recv_drop(s);
	/*
	 * An initial portion with data behind it belongs to an earlier send, whose rest arrived in
	 * messages.
	 */
	if (!initial || rx->nb_unread > 0)
		return false;
	return q->is_adv || (rx->way != STREAM_RX_NONE && stream_recv_fits(s, q));
}

static void
take_unread(struct san_stream *s, struct stream_rqe *q)
{
	bool open = false, marked = false;
	struct stream_buf *b;

	while (san_stream_recv_room_left(q) > 0 && !open && (b = first_piece(s)) != NULL) {
		/*
		 * A receive ends before the urgent byte (AFC-1), unless the sender expects that its
		 * message fills the advertised set.
		 */
		marked = (b->piece & STREAM_PIECE_MARK) != 0 && q->filled > 0 && !q->is_adv;
		if (marked)
			break;
		if (is_spent(s))
			return;
		open = stream_recv_take_piece(s, q);
	}
	if (san_stream_recv_room_left(q) == 0 || marked ||
	    (!open && (q->flags & RTSAN_RECV_WAITALL) == 0))
		san_stream_recv_complete(s, q, 0);
}

/*
 * True if more data may arrive before the application reads. A large send that waits is then asked
 * to continue in messages.
 */
static bool
more_may_come(struct san_stream *s)
{
	if (s->rx.fin || s->over || s->cr.nb_payload_rcvd - s->cr.nb_freed >= s->conf.nb_store)
		return false;
	if (s->rx.way != STREAM_RX_NONE)
		san_stream_offer_answer_small(s);
	return true;
}

/*
 * PEEK: copy unread data, from the place where the last call stopped: no receive takes data before
 * the peek is complete.
 */
static void
stream_recv_peek_data(struct san_stream *s, struct stream_rqe *q)
{
	uint32_t left = s->rx.nb_unread, skip = q->filled;
	uint16_t at = s->rx.unread_head;
	bool marked = false;

	for (; left > 0 && san_stream_recv_room_left(q) > 0; left--) {
		const struct stream_buf *b = &s->rpool.bufs[at];

		if (skip > 0) {
			skip -= b->len;
			at = b->next;
			continue;
		}
		marked = (b->piece & STREAM_PIECE_MARK) != 0 && q->filled > 0;
		if (marked)
			break;
		if (is_spent(s))
			return;
		stream_recv_copy_out(s, q, b);
		at = b->next;
	}
	if (san_stream_recv_room_left(q) > 0 && !marked && (q->flags & RTSAN_RECV_WAITALL) != 0 &&
	    (q->flags & RTSAN_RECV_DONTWAIT) == 0 && more_may_come(s))
		return;
	san_stream_recv_complete(s, q, 0);
}

/* LOAN: lend the buffer itself. It counts as unread until it is returned. */
static void
stream_recv_lend_data(struct san_stream *s, struct stream_rqe *q)
{
	struct stream_rx *rx = &s->rx;
	uint16_t at = rx->unread_head;
	struct stream_buf *b = &s->rpool.bufs[at];

	b->state = STREAM_BUF_LENT;
	q->filled = b->len;
	rx->begun |= (b->piece & STREAM_PIECE_INITIAL) != 0;
	q->loan = at + 1u;
	rx->unread_bytes -= b->len;
	rx->unread_head = b->next;
	rx->nb_unread--;
	rx->nb_lent++;
	san_stream_recv_complete(s, q, 0);
}

/*
 * No data is unread: decide how the rest of a large send gets into *q*, or why it cannot. True:
 * match again.
 */
static bool
take_rest(struct san_stream *s, struct stream_rqe *q)
{
	struct stream_rx *rx = &s->rx;

	if (stream_recv_fits(s, q)) {
		if (rx->way == STREAM_RX_OFFER)
			san_stream_offer_read(s, q);
		return false; /* the next message answers the notice */
	}
	if (q->filled > 0 && (q->flags & RTSAN_RECV_WAITALL) == 0) {
		san_stream_recv_complete(s, q, 0);
		return true;
	}
	san_stream_offer_answer_small(s);
	return true;
}

/* True if something has changed: match again. */
static bool
stream_recv_match_data(struct san_stream *s, struct stream_rqe *q)
{
	struct stream_rx *rx = &s->rx;
	bool ended = rx->fin || s->over;

	if (q->nb_io > 0) { /* the provider may have room now for the read of the rest */
		if (!rx->withdrawn && !s->over)
			san_stream_offer_read(s, q);
		return false;
	}
	if (q->cancelled && !q->is_adv) {
		san_stream_recv_complete(s, q, q->filled > 0 ? 0 : RTSAN_WC_CANCELLED);
	} else if (rx->nb_unread > 0) {
		if ((q->flags & RTSAN_RECV_PEEK) != 0)
			stream_recv_peek_data(s, q);
		else if ((q->flags & RTSAN_RECV_LOAN) != 0)
			stream_recv_lend_data(s, q);
		else
			take_unread(s, q);
		/* *q* is still open: read the rest of an offer now, not at the next scan */
		return q != san_stream_recv_first(s) || rx->nb_unread == 0;
	} else if (ended) {
		san_stream_recv_complete(s, q, q->filled > 0 || rx->fin ? 0 : s->over_status);
	} else if (rx->way != STREAM_RX_NONE && !q->is_adv && take_rest(s, q)) {
		return true;
	} else if (rx->way == STREAM_RX_NONE && !q->is_adv && q->filled > 0 &&
		   (q->flags & RTSAN_RECV_WAITALL) == 0) {
		san_stream_recv_complete(s, q, 0); /* it is open, but no more data arrives */
	} else if ((q->flags & RTSAN_RECV_DONTWAIT) != 0) {
		san_stream_recv_complete(s, q, q->filled > 0 ? 0 : RTSAN_WC_AGAIN);
	} else {
		return false;
	}
	return true;
}

/* In large receive mode the sender waits for buffers: report if none will come (AFC-22). */
static void
stream_recv_report_posture(struct san_stream *s, const struct stream_rqe *q, uint64_t now_ns)
{
	struct stream_rx *rx = &s->rx;
	bool small = q != NULL ? !san_stream_recv_is_set(q) || q->room < s->threshold :
				 san_stream_wait_for_data(s);

	if (rx->mode != SAN_SM_LARGE_RECV || rx->way != STREAM_RX_NONE || rx->fin || !small ||
	    rx->posture_reported || !s->hello_rcvd) {
		rx->posture_due = 0;
		return;
	}
	if (rx->posture_due == 0)
		rx->posture_due = now_ns + s->conf.hold_ns;
	if (now_ns < rx->posture_due)
		return;
	rx->posture_due = 0;
	rx->posture_reported = true;
	san_stream_offer_answer_small(s);
}

void
san_stream_recv_run(struct san_stream *s, uint64_t now_ns)
{
	struct stream_rx *rx = &s->rx;
	struct stream_rqe *q;

	while ((q = san_stream_recv_first(s)) != NULL && s->fault == NULL && !is_spent(s) &&
	       stream_recv_match_data(s, q))
		;
	q = san_stream_recv_first(s);
	rx->peeks = q != NULL && (q->flags & RTSAN_RECV_PEEK) != 0;
	/* An application that waits for data has no buffer for the rest. */
	if (q == NULL && rx->way != STREAM_RX_NONE && rx->nb_unread == 0 &&
	    san_stream_wait_for_data(s))
		san_stream_offer_answer_small(s);
	stream_recv_report_posture(s, q, now_ns);
}

/* ---- calls of the application ---- */

uint32_t
san_stream_recv_post(struct san_stream *s, const struct san_ulp_recv *r, uint32_t n)
{
	struct stream_rx *rx = &s->rx;
	uint32_t i;
	uint8_t k;

	for (i = 0; i < n && rx->tail - rx->head < s->conf.rq_depth; i++) {
		struct stream_rqe *q = san_stream_rqe(s, rx->tail);

		*q = (struct stream_rqe){
			.wr_id = r[i].wr_id,
			.nb_sge = r[i].nb_sge,
			.flags = r[i].flags,
			.after = rx->way != STREAM_RX_NONE && rx->notified,
		};
		for (k = 0; k < r[i].nb_sge; k++) {
			q->sge[k] = r[i].sge[k];
			q->sge[k].length = san_stream_min(q->sge[k].length, RECV_MAX - q->room);
			q->room += q->sge[k].length;
		}
		if (q->room >= s->threshold && san_stream_recv_is_set(q))
			san_stream_mode_see(s, STREAM_SEE_RECV);
		rx->tail++;
	}
	return i;
}

void
san_stream_recv_cancel(struct san_stream *s)
{
	uint32_t at;

	for (at = s->rx.cur; at != s->rx.tail; at++)
		san_stream_rqe(s, at)->cancelled = true;
	san_stream_adv_withdraw(s);
}

bool
san_stream_recv_give_back(struct san_stream *s, uint32_t loan)
{
	if (san_stream_recv_loan(s, loan) == NULL)
		return false;
	s->rx.nb_lent--;
	san_stream_pool_put(s, &s->rpool, (uint16_t)(loan - 1));
	s->cr.nb_freed++;
	return true;
}

const void *
san_stream_recv_loan(const struct san_stream *s, uint32_t loan)
{
	const struct stream_buf *b = loan - 1 < s->rpool.nb ? &s->rpool.bufs[loan - 1] : NULL;

	return b != NULL && b->state == STREAM_BUF_LENT ? b->data + b->off : NULL;
}

bool
san_stream_recv_has_lent(const struct san_stream *s)
{
	return s->rx.nb_lent != 0;
}

void
san_stream_recv_withdrawn(struct san_stream *s)
{
	struct stream_rx *rx = &s->rx;
	struct stream_rqe *q = san_stream_recv_first(s);

	if (rx->way == STREAM_RX_NONE)
		return; /* answered already */
	if (q != NULL && q->nb_io > 0) {
		rx->withdrawn = true; /* when the active reads are complete */
		return;
	}
	san_stream_offer_give_back(s, SAN_SM_MODES);
	/* When the set is returned, the application gets the bytes before it at once. */
	if (q != NULL && q->is_adv && q->filled > 0) {
		q->cancelled |= (q->flags & RTSAN_RECV_WAITALL) == 0;
		san_stream_adv_withdraw(s);
	}
}

void
san_stream_recv_scan(struct san_stream *s)
{
	struct stream_rx *rx = &s->rx;

	if (rx->way == STREAM_RX_OFFER && san_stream_recv_first(s) == NULL &&
	    ++rx->scans >= s->conf.scans)
		san_stream_offer_give_back(s, SAN_SM_MODES);
}
