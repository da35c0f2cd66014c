/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The sender: a queue of sends that the application has posted. The entry *cur* is being handed to
 * the provider. Entries before *cur* are handed over but not complete: writes of several sends may
 * be in progress at once, and complete in order. Small sends are copied into messages and complete
 * at once. Small sends that are posted together share a message. (AFC-3, AFC-21, AFC-22, AFC-25,
 * AFC-26)
 */

#include "stream_priv.h"

#define COPY_STEP 65536 /* bytes copied at a time */

/* ---- memory of an entry ---- */

static const struct rtsan_sge *
stream_send_sges(const struct stream_sqe *e)
{
	return e->inlined ? &e->inl : e->sge;
}

/* Without the urgent byte. */
static uint32_t
stream_send_left(const struct stream_sqe *e)
{
	return e->len - e->oob - e->off;
}

/* The list of what is left. */
static uint8_t
stream_send_slice(const struct stream_sqe *e, struct rtsan_sge *out)
{
	return san_stream_slice(stream_send_sges(e), e->nb_sge, e->off, stream_send_left(e), out);
}

static void
stream_send_copy_in(struct san_stream *s, uint8_t *to, const struct stream_sqe *e, uint32_t off,
		    uint32_t bytes)
{
	san_stream_copy(s, stream_send_sges(e), e->nb_sge, off, bytes, to, false);
}

/* ---- completion of an entry ---- */

static void
stream_send_finish_entry(struct san_stream *s, struct stream_sqe *e, uint8_t status)
{
	SAN_ASSERT(e->nb_io == 0 && !e->done);
	san_stream_dereg(s, e->keys, &e->nb_keys);
	e->status = status;
	e->done = true;
}

/* *cur* has been handed over completely, or is given up. */
static void
stream_send_next(struct san_stream *s)
{
	s->tx.cur++;
	s->tx.scans = 0;
	s->tx.nb_initial = 0;
}

static void
handed_over(struct san_stream *s, struct stream_sqe *e)
{
	if (e->nb_io == 0)
		stream_send_finish_entry(s, e, 0);
	stream_send_next(s);
}

/* Remove entries that are complete and reported from the queue. */
static void
stream_send_retire_done(struct san_stream *s)
{
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e;

	while (tx->head != tx->cur && tx->head != tx->notified) {
		e = san_stream_sqe(s, tx->head);
		if (!e->done)
			return;
		if (e->copied || e->copying)
			tx->buf_head += e->len;
		tx->head++;
	}
}

/* ---- calls of the application ---- */

bool
san_stream_send_post(struct san_stream *s, const struct san_ulp_wr *wr)
{
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e = san_stream_sqe(s, tx->tail);

	stream_send_retire_done(s);
	if (tx->tail - tx->head == s->conf.sq_depth)
		return false;
	*e = (struct stream_sqe){
		.wr_id = wr->wr_id,
		.len = wr->op == RTSAN_WR_SEND ? wr->length : 0,
		.nb_sge = (wr->flags & RTSAN_WR_INLINE) != 0 ? 1 : wr->nb_sge,
		.inlined = (wr->flags & RTSAN_WR_INLINE) != 0,
		.signaled = (wr->flags & RTSAN_WR_SIGNALED) != 0,
		.fin = wr->op == SAN_WR_SHUTDOWN,
		.oob = wr->op == RTSAN_WR_SEND && (wr->flags & RTSAN_WR_OOB) != 0 && wr->length > 0,
	};
	if (e->inlined) {
		memcpy(e->data, wr->data, wr->inline_len);
		e->inl = (struct rtsan_sge){.addr = e->data, .length = wr->inline_len};
	} else {
		memcpy(e->sge, wr->sge, sizeof(e->sge));
	}
	if (tx->fin_posted || s->over)
		e->status = s->over ? s->over_status : RTSAN_WC_SHUTDOWN;
	else
		tx->post_pos += stream_send_left(e);
	tx->fin_posted |= e->fin;
	if (e->status == 0 && e->oob) {
		s->rep.urgent = tx->post_pos;
		s->due |= SAN_SM_URGENT;
	}
	if (!e->fin && e->len < s->threshold)
		san_stream_mode_see(s, STREAM_SEE_SEND);
	tx->tail++;
	return true;
}

/*
 * Reserve room in the send buffer for a copy. False: there is no room now, or the buffer cannot be
 * allocated and the send has failed (AFC-20).
 */
static bool
copy_begin(struct san_stream *s, struct stream_sqe *e)
{
	struct stream_tx *tx = &s->tx;

	if (s->conf.send_buffer - (tx->buf_tail - tx->buf_head) < e->len || e->copied ||
	    e->inlined || e->cancelled || e->off > 0 || s->budget == 0)
		return false;
	if (tx->buffer == NULL)
		tx->buffer = s->ops->alloc(s->arg, s->conf.send_buffer);
	if (tx->buffer == NULL) {
		s->stats.nb_no_buffers++;
		stream_send_finish_entry(s, e, RTSAN_WC_NO_BUFFERS);
		return false;
	}
	e->copying = true;
	e->copy_at = tx->buf_tail;
	tx->buf_tail += e->len;
	return true;
}

/*
 * Copy the send into the send buffer, so that it completes now (AFC-26). False: nothing is copied,
 * or only a part so far.
 */
static bool
sqe_copy_to_buffer(struct san_stream *s, struct stream_sqe *e)
{
	uint32_t size = s->conf.send_buffer, at, to_end, n;
	uint8_t *buffer;

	if (!e->copying && !copy_begin(s, e))
		return false;
	buffer = s->tx.buffer;
	for (; e->nb_copied < e->len && s->budget > 0; e->nb_copied += n) {
		at = (e->copy_at + e->nb_copied) & (size - 1);
		n = san_stream_min(e->len - e->nb_copied, COPY_STEP);
		n = san_stream_min(n, size - at);
		stream_send_copy_in(s, buffer + at, e, e->nb_copied, n);
	}
	if (e->nb_copied < e->len)
		return false;
	at = e->copy_at & (size - 1);
	to_end = san_stream_min(size - at, e->len);
	memset(e->sge, 0, sizeof(e->sge));
	e->sge[0] = (struct rtsan_sge){.addr = buffer + at, .length = to_end};
	e->sge[1] = (struct rtsan_sge){.addr = buffer, .length = e->len - to_end};
	e->nb_sge = to_end < e->len ? 2 : 1;
	e->copying = false;
	e->copied = true;
	return true;
}

/* Copy sends that must wait into the send buffer, if there is one (AFC-14). */
static void
copy_waiting(struct san_stream *s)
{
	struct stream_tx *tx = &s->tx;
	uint32_t at;

	if (s->conf.send_buffer == 0)
		return;
	for (at = tx->cur; at != tx->tail; at++) {
		struct stream_sqe *e = san_stream_sqe(s, at);

		if (e->done || e->status != 0 || e->fin || e->copied || e->inlined)
			continue;
		if (e->way != STREAM_WAY_NEW || e->nb_keys > 0 || e->registered ||
		    !sqe_copy_to_buffer(s, e))
			return;
	}
}

void
san_stream_send_cancel(struct san_stream *s)
{
	struct stream_sqe *e;
	uint32_t at;

	for (at = s->tx.cur; at != s->tx.tail; at++) {
		e = san_stream_sqe(s, at);
		if (e->done || e->copied || e->copying || e->fin) /* an end is not cancelled */
			continue;
		/* An announced urgent byte must be sent, but its completion need not wait. */
		if (e->oob && e->status == 0) {
			e->let_go = e->inlined;
			continue;
		}
		e->cancelled = true;
		if (e->way == STREAM_WAY_OFFERED || e->way == STREAM_WAY_NOTICED)
			s->due |= SAN_SM_WITHDRAW;
	}
}

void
san_stream_send_over(struct san_stream *s)
{
	struct stream_tx *tx = &s->tx;
	uint32_t at;

	for (at = tx->head; at != tx->tail; at++) {
		struct stream_sqe *e = san_stream_sqe(s, at);

		e->nb_io = 0; /* the provider has completed all requests */
		if (!e->done)
			stream_send_finish_entry(s, e, e->status != 0 ? e->status : s->over_status);
	}
	tx->cur = tx->tail;
	tx->adv_head = tx->adv_tail;
}

bool
san_stream_send_is_idle(const struct san_stream *s)
{
	return s->hello_rcvd && s->tx.cur == s->tx.tail && san_stream_credit_left(s) > 1 &&
		san_stream_credit_has_room(s);
}

/* ---- direct transfer ---- */

void
san_stream_send_end_write(struct san_stream *s)
{
	struct stream_tx *tx = &s->tx;

	tx->wdone[tx->wdone_tail % STREAM_WDONES].bytes = tx->adv_off;
	tx->wdone_tail++;
	tx->adv_off = 0;
	tx->adv_head++;
}

/* Post one write: the part where *e* and the advertised piece overlap. */
static int
stream_send_write_piece(struct san_stream *s, struct stream_sqe *e, const struct stream_adv *a)
{
	struct stream_tx *tx = &s->tx;
	const struct san_sm_seg *seg = a->where.seg;
	uint16_t done = tx->wdone_tail % STREAM_WDONES;
	uint16_t place = (uint16_t)(tx->cur & (s->conf.sq_depth - 1));
	uint32_t off = tx->adv_off, bytes;
	struct san_ulp_wr wr;
	int rc;

	while (off >= seg->len)
		off -= seg++->len;
	bytes = san_stream_min(seg->len - off, stream_send_left(e));
	san_stream_wr_init(&wr, RTSAN_WR_PUSH, san_stream_cookie(STREAM_REQ_WRITE, done, place),
			   bytes);
	wr.remote_addr = seg->addr + off;
	wr.rkey = seg->key;
	wr.nb_sge = san_stream_slice(stream_send_sges(e), e->nb_sge, e->off, bytes, wr.sge);
	rc = s->ops->post(s->arg, &wr);
	if (rc != 0)
		return rc;
	e->off += bytes;
	e->nb_io++;
	/*
	 * With an ordered provider writes are not counted. The report may be sent, and the slot
	 * reused, before the writes complete, because the peer gets the report after the data.
	 */
	tx->wdone[done].nb_io += !s->caps.ordered;
	tx->adv_off += bytes;
	s->stats.tx.write += bytes;
	return 0;
}

/* Write into the oldest known set of buffers. False: not all of it can be written now. */
static bool
write_set(struct san_stream *s, struct stream_sqe *e, uint64_t now_ns)
{
	struct stream_tx *tx = &s->tx;
	const struct stream_adv *a = &tx->adv[tx->adv_head % STREAM_ADVS];

	if (tx->adv_off == 0) {
		if (tx->wdone_tail - tx->wdone_head == STREAM_WDONES)
			return false;
		tx->wdone[tx->wdone_tail % STREAM_WDONES] = (struct stream_wdone){.id = a->id};
	}
	if (!e->classed)
		san_stream_mode_learn(s, a->after ? SAN_SM_SMALL_LARGE : SAN_SM_LARGE_RECV, now_ns);
	e->classed = true;
	tx->scans = 0;
	tx->nb_initial = 0;
	while (tx->adv_off < a->room && stream_send_left(e) > 0)
		if (stream_send_write_piece(s, e, a) != 0)
			return false;
	san_stream_send_end_write(s);
	return true;
}

void
san_stream_send_on_written(struct san_stream *s, uint16_t at, uint16_t wdone, uint8_t status)
{
	struct stream_sqe *e = san_stream_sqe(s, at);

	SAN_ASSERT(e->nb_io > 0 && (s->caps.ordered || s->tx.wdone[wdone].nb_io > 0));
	s->tx.wdone[wdone].nb_io -= !s->caps.ordered;
	if (--e->nb_io == 0 && e->off == e->len && status == 0 && s->fault == NULL && !e->done)
		stream_send_finish_entry(s, e, 0);
}

/*
 * Register the rest of the send, either as a source of our writes or for reads by the peer. Memory
 * has only one of these rights at a time (AFC-24). False: it cannot be registered.
 */
static bool
stream_send_prepare(struct san_stream *s, struct stream_sqe *e, uint8_t way)
{
	struct rtsan_sge part[RTSAN_SGE_MAX];
	uint32_t no_keys[RTSAN_SGE_MAX];
	uint64_t no_addrs[RTSAN_SGE_MAX];
	uint8_t nb = stream_send_slice(e, part);

	if (way == STREAM_WAY_OFFERED) {
		if (e->nb_keys == 0 &&
		    san_stream_reg(s, part, nb, SAN_STREAM_PULL, e->addrs, e->keys) == 0)
			e->nb_keys = nb;
		return e->nb_keys > 0;
	}
	san_stream_dereg(s, e->keys, &e->nb_keys);
	if (!e->registered)
		e->registered =
			san_stream_reg(s, part, nb, SAN_STREAM_LOCAL, no_addrs, no_keys) == 0;
	return e->registered;
}

/*
 * The memory cannot be registered: fail the send. If part of it was sent, or it was reported as
 * successful, send the rest in messages. (AFC-20)
 */
static void
stream_send_fail_entry(struct san_stream *s, struct stream_sqe *e)
{
	if (e->off > 0 || e->copied) {
		e->way = STREAM_WAY_MESSAGES;
		return;
	}
	s->stats.nb_no_buffers++;
	stream_send_finish_entry(s, e, RTSAN_WC_NO_BUFFERS);
}

/* Returns false if more of *cur* may be possible at once. */
static bool
go_direct(struct san_stream *s, struct stream_sqe *e, uint64_t now_ns)
{
	if (e->way == STREAM_WAY_OFFERED || stream_send_left(e) == 0)
		return true;
	if (e->way != STREAM_WAY_NOTICED && stream_send_left(e) < s->threshold &&
	    s->tx.adv_off == 0)
		return true; /* a message has room for it */
	if (s->conf.send_buffer > 0 && e->way == STREAM_WAY_NEW && e->nb_keys == 0 &&
	    !e->registered)
		sqe_copy_to_buffer(s, e);
	if (e->done || e->copying)
		return true;
	if (!san_stream_adv_any(s)) {
		if (e->way != STREAM_WAY_NEW)
			return true;
		e->plan = san_stream_mode_way(s, now_ns);
		if (e->plan == STREAM_WAY_MESSAGES)
			e->way = e->plan;
		else if (e->plan == STREAM_WAY_NEW)
			san_stream_msg_stall(s, STREAM_STALL_SET);
		else if (!stream_send_prepare(s, e, e->plan))
			stream_send_fail_entry(s, e);
		return true;
	}
	if (stream_send_prepare(s, e, STREAM_WAY_NEW))
		return !write_set(s, e, now_ns);
	stream_send_fail_entry(s, e);
	return true;
}

/*
 * If the application cancelled the send, complete it with the bytes sent so far. True: it is
 * complete.
 */
static bool
stream_send_give_up(struct san_stream *s, struct stream_sqe *e)
{
	if (!e->cancelled || e->way == STREAM_WAY_OFFERED || e->way == STREAM_WAY_NOTICED ||
	    e->nb_io > 0)
		return false;
	if (stream_send_left(e) == 0 && !e->oob)
		return false; /* all of it has been sent */
	if (s->tx.adv_off > 0)
		san_stream_send_end_write(s);
	stream_send_finish_entry(s, e, RTSAN_WC_CANCELLED);
	return true;
}

void
san_stream_send_run(struct san_stream *s, uint64_t now_ns)
{
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e;

	stream_send_retire_done(s);
	while (s->fault == NULL && tx->cur != tx->tail) {
		e = san_stream_sqe(s, tx->cur);
		if (!e->done && e->status != 0)
			stream_send_finish_entry(s, e, e->status);
		if (e->done || stream_send_give_up(s, e)) {
			stream_send_next(s);
			continue;
		}
		if (!s->hello_rcvd || e->fin)
			break;
		if (!go_direct(s, e, now_ns) || e->done)
			continue;
		if (stream_send_left(e) > 0 || e->oob)
			break;
		handed_over(s, e);
	}
	copy_waiting(s);
}

/* ---- messages ---- */

/*
 * True if a small send waits. A program that sends and then receives is about to post a large
 * receive: its advertisement then travels with the send (AFC-11).
 */
static bool
stream_send_gathers(struct san_stream *s, uint64_t now_ns)
{
	struct stream_tx *tx = &s->tx;

	if (s->conf.gather_ns == 0 || s->rx.pattern != STREAM_PATTERN_SEND_RECV ||
	    s->rx.mode != SAN_SM_LARGE_RECV || s->rx.fin || s->rx.cur != s->rx.tail ||
	    tx->tail - tx->cur > 1) {
		tx->gather_until = 0;
		return false;
	}
	if (tx->gather_until == 0)
		tx->gather_until = now_ns + s->conf.gather_ns;
	return now_ns < tx->gather_until;
}

enum stream_want
san_stream_send_want(struct san_stream *s, uint64_t now_ns)
{
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e = san_stream_sqe(s, tx->cur);

	if (!s->hello_rcvd || s->over || tx->cur == tx->tail || e->done)
		return STREAM_WANT_NOTHING;
	if (e->fin)
		return STREAM_WANT_FIN;
	if (stream_send_left(e) == 0)
		return e->oob ? STREAM_WANT_URGENT : STREAM_WANT_NOTHING;
	if (tx->adv_off > 0)
		return STREAM_WANT_NOTHING; /* being written */
	if (e->way == STREAM_WAY_MESSAGES)
		return STREAM_WANT_DATA;
	if (e->way != STREAM_WAY_NEW)
		return STREAM_WANT_NOTHING;
	if (stream_send_left(e) < s->threshold)
		return stream_send_gathers(s, now_ns) ? STREAM_WANT_NOTHING : STREAM_WANT_DATA;
	/* if a buffer is known, no message is sent: write when the provider has room */
	return e->plan != STREAM_WAY_NEW && !san_stream_adv_any(s) ? STREAM_WANT_INITIAL :
								     STREAM_WANT_NOTHING;
}

/*
 * Maximum payload bytes of one message. It is less than a large send, so that it fits into any set
 * of buffers, also behind an initial portion (AFC-12, AFC-23).
 */
static uint32_t
payload_room(const struct san_stream *s, const struct san_sm *m, uint32_t size)
{
	return san_stream_min(size - san_wire_stream_len(m), s->threshold - 1 - s->tx.nb_initial);
}

static void
fill_data(struct san_stream *s, struct san_sm *m, uint8_t *buf, uint32_t size)
{
	struct stream_tx *tx = &s->tx;
	uint32_t room = payload_room(s, m, size);
	uint8_t *payload = buf + san_wire_stream_len(m);
	struct stream_sqe *e;
	uint32_t bytes;

	for (; tx->cur != tx->tail; handed_over(s, e)) {
		e = san_stream_sqe(s, tx->cur);
		if (e->done || e->status != 0 || e->cancelled)
			break;
		if (e->fin) {
			m->flags |= SAN_SM_FIN;
			tx->fin_sent = true;
			continue;
		}
		if (m->len == room)
			break;
		if (e->way == STREAM_WAY_NEW && stream_send_left(e) >= s->threshold)
			break;
		if (e->way == STREAM_WAY_MESSAGES)
			m->flags |= SAN_SM_LARGE;
		if (!e->counted && stream_send_left(e) > room)
			san_stream_resize_count(s, e);
		e->counted = true;
		bytes = san_stream_min(stream_send_left(e), room - m->len);
		stream_send_copy_in(s, payload + m->len, e, e->off, bytes);
		e->off += bytes;
		m->len = (uint16_t)(m->len + bytes);
		if (stream_send_left(e) > 0 || e->oob)
			break;
	}
	tx->gather_until = 0;
}

static void
fill_initial(struct san_stream *s, struct san_sm *m, uint8_t *buf, uint32_t size)
{
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e = san_stream_sqe(s, tx->cur);
	struct san_sm_where *where = &m->offer;
	struct rtsan_sge part[RTSAN_SGE_MAX];
	uint32_t bytes;
	uint8_t i;

	e->way = e->plan;
	m->flags |= SAN_SM_INITIAL | (e->way == STREAM_WAY_OFFERED ? SAN_SM_OFFER : SAN_SM_NOTICE);
	where->nb_seg = SAN_SM_SEGS;
	bytes = san_stream_min(payload_room(s, m, size), s->threshold / 2);
	if (e->way == STREAM_WAY_OFFERED) { /* the peer reads the rest, behind *bytes* */
		where->nb_seg = stream_send_slice(e, part);
		for (i = 0; i < where->nb_seg; i++)
			where->seg[i] =
				(struct san_sm_seg){e->addrs[i], part[i].length, e->keys[i]};
		san_stream_skip(where, bytes);
		s->stats.nb_offers++;
	}
	stream_send_copy_in(s, buf + san_wire_stream_len(m), e, e->off, bytes);
	e->off += bytes;
	if (++tx->send_id == 0)
		tx->send_id = 1;
	m->send_id = tx->send_id;
	m->rest = stream_send_left(e);
	m->len = (uint16_t)bytes;
	tx->nb_initial = bytes;
	tx->scans = 0;
}

void
san_stream_send_fill(struct san_stream *s, enum stream_want want, struct san_sm *m, uint8_t *buf,
		     uint32_t size)
{
	struct stream_sqe *e = san_stream_sqe(s, s->tx.cur);

	if (want == STREAM_WANT_INITIAL) {
		fill_initial(s, m, buf, size);
	} else if (want == STREAM_WANT_URGENT) {
		m->flags |= SAN_SM_URGENT_BYTE;
		m->len = 1;
		stream_send_copy_in(s, buf + san_wire_stream_len(m), e, e->off++, 1);
		e->oob = false;
		handed_over(s, e);
	} else {
		fill_data(s, m, buf, size);
	}
	s->stats.tx.message += m->len;
}

void
san_stream_send_small(struct san_stream *s, uint32_t id, uint64_t now_ns)
{
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e = san_stream_sqe(s, tx->cur);

	if (id == 0) {
		tx->small_posted = true;
		return;
	}
	/* ignore a late answer: the send has switched to messages */
	if (tx->cur == tx->tail || e->way != STREAM_WAY_NOTICED || id != tx->send_id)
		return;
	e->way = STREAM_WAY_MESSAGES;
	tx->nb_initial = 0;
	san_stream_mode_learn(s, SAN_SM_SMALL_RECV, now_ns);
}

/* ---- no buffer is posted (AFC-13) ---- */

/* True if *cur* waits for an advertisement. */
bool
san_stream_send_waits(struct san_stream *s)
{
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e = san_stream_sqe(s, tx->cur);

	if (!s->hello_rcvd || s->over || tx->cur == tx->tail || e->done || e->fin ||
	    stream_send_left(e) == 0 || e->copying || san_stream_adv_any(s))
		return false;
	return e->way == STREAM_WAY_NOTICED ||
		(e->way == STREAM_WAY_NEW && stream_send_left(e) >= s->threshold &&
		 e->plan == STREAM_WAY_NEW);
}

void
san_stream_send_scan(struct san_stream *s, uint64_t now_ns)
{
	struct stream_tx *tx = &s->tx;

	if (!san_stream_send_waits(s) || ++tx->scans < s->conf.scans)
		return;
	san_stream_sqe(s, tx->cur)->way = STREAM_WAY_MESSAGES;
	s->stats.nb_fallbacks++;
	san_stream_mode_leave(s, SAN_STREAM_WHY_SCAN, now_ns);
}
