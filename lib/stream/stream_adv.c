/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Advertisements: the receiver reports where the buffers of its application are, and the sender
 * writes into them (AFC-5, AFC-7). Sets are advertised in the order in which they will be filled,
 * starting with the first incomplete one, and only while no data is unread. So the next byte of the
 * stream belongs into the first advertised set.
 *
 * Messages in flight may fill a set before the sender receives its advertisement (AFC-12). Each
 * data message uses up one set, even if it leaves room in it, so both sides can count. The
 * advertisement contains R, the number of data messages received. Of the S messages sent, each
 * above R uses up the oldest set that no earlier message has used up; *matched* is the last such
 * message. A data message that is sent later uses up the oldest known set. Sets that are used up
 * are dropped here.
 *
 * An initial portion is not counted. It is placed at the start of the first set, which stays open,
 * and the written data follows. If the set was advertised before the portion arrived, the sender
 * starts writing after it (AFC-23).
 */

#include "stream_priv.h"

#define ADV_BYTES 80 /* most bytes of an advertisement in a message */

/* ---- our sets ---- */

static bool
may_advertise(const struct san_stream *s)
{
	uint32_t max = san_stream_min(s->peer_advs, STREAM_ADVS);

	return s->hello_rcvd && !s->rx.fin && s->rx.nb_unread == 0 && s->rx.nb_advs < max &&
		s->rx.way != STREAM_RX_OFFER && /* after an offer we read (AFC-10) */
		!s->rx.withdrawing;             /* the old sets are returned first */
}

struct stream_rqe *
san_stream_adv_next(struct san_stream *s)
{
	struct stream_rx *rx = &s->rx;
	struct stream_rqe *q, *prev;
	uint32_t need = s->threshold;

	if (!may_advertise(s))
		return NULL;
	if (san_seq_lt(rx->adv_next, rx->cur))
		rx->adv_next = rx->cur;
	if (rx->adv_next == rx->tail)
		return NULL;
	if (rx->way == STREAM_RX_NOTICE) {
		if (rx->adv_room >= rx->rest)
			return NULL;
		need = san_stream_min(rx->rest - rx->adv_room, need);
	} else if (rx->mode != SAN_SM_LARGE_RECV) {
		return NULL;
	}
	/*
	 * No set follows one that may be left open, because the place of the next byte is unknown.
	 * The same holds for a set in which a message may not fit: the message would continue in
	 * the next set (AFC-12).
	 */
	if (rx->adv_next != rx->cur) {
		prev = san_stream_rqe(s, rx->adv_next - 1);
		if (!prev->is_adv || (prev->flags & RTSAN_RECV_WAITALL) != 0 ||
		    prev->room < s->threshold)
			return NULL;
	}
	q = san_stream_rqe(s, rx->adv_next);
	if (!san_stream_recv_is_set(q) || q->is_adv || q->nb_io > 0)
		return NULL;
	return san_stream_recv_room_left(q) >= need ? q : NULL;
}

/* False: its memory cannot be registered. */
static bool
adv_fill_one(struct san_stream *s, struct stream_rqe *q, struct san_sm_adv *adv)
{
	struct stream_rx *rx = &s->rx;
	struct rtsan_sge part[RTSAN_SGE_MAX];
	uint64_t addrs[RTSAN_SGE_MAX];
	uint32_t room = san_stream_recv_room_left(q);
	uint8_t i, nb = san_stream_slice(q->sge, q->nb_sge, q->filled, room, part);

	if (san_stream_reg(s, part, nb, SAN_STREAM_PUSH, addrs, q->keys) != 0)
		return false;
	q->nb_keys = nb;
	q->is_adv = true;
	q->adv_id = ++rx->adv_id;
	q->adv_bytes = room;
	rx->nb_advs++;
	rx->adv_room += q->adv_bytes;
	rx->adv_next++;
	rx->posture_reported = false;
	adv->id = q->adv_id;
	adv->after = q->after;
	adv->where.nb_seg = nb;
	for (i = 0; i < nb; i++)
		adv->where.seg[i] = (struct san_sm_seg){addrs[i], part[i].length, q->keys[i]};
	s->stats.nb_advertisements++;
	return true;
}

void
san_stream_adv_build(struct san_stream *s, struct san_sm *m, uint32_t room)
{
	struct stream_rqe *q;

	while (m->nb_adv < SAN_SM_ADVS && san_wire_stream_len(m) + ADV_BYTES <= room &&
	       (q = san_stream_adv_next(s)) != NULL) {
		if (adv_fill_one(s, q, &m->adv[m->nb_adv])) {
			m->flags |= SAN_SM_ADV;
			m->nb_adv++;
			continue;
		}
		q->unreachable = true; /* messages fill it (AFC-20) */
		if (s->rx.nb_advs == 0)
			san_stream_offer_answer_small(s);
	}
}

void
san_stream_adv_end(struct san_stream *s, struct stream_rqe *q)
{
	if (!q->is_adv)
		return;
	san_stream_dereg(s, q->keys, &q->nb_keys);
	q->is_adv = false;
	s->rx.nb_advs--;
	s->rx.adv_room -= q->adv_bytes;
	if (s->rx.nb_advs == 0)
		s->rx.adv_next = s->rx.cur;
}

void
san_stream_adv_withdraw(struct san_stream *s)
{
	if (s->rx.nb_advs == 0 || s->rx.withdrawing)
		return;
	s->rx.withdrawing = true;
	s->rep.cancel = s->rx.adv_id;
	s->due |= SAN_SM_CANCEL;
}

void
san_stream_adv_returned(struct san_stream *s, uint32_t id)
{
	uint32_t at;

	s->rx.withdrawing = false;
	for (at = s->rx.cur; at != s->rx.tail; at++) {
		struct stream_rqe *q = san_stream_rqe(s, at);

		if (q->is_adv && san_seq_le(q->adv_id, id))
			san_stream_adv_end(s, q);
	}
}

void
san_stream_adv_wrote(struct san_stream *s, uint32_t id, uint32_t bytes)
{
	struct stream_rqe *q = san_stream_recv_first(s);

	if (s->orphan)
		return; /* the receive ended before: the data is not needed */
	if (q == NULL || !q->is_adv || q->adv_id != id || bytes > san_stream_recv_room_left(q)) {
		san_stream_break(s, "wrote into a buffer that was not advertised");
		return;
	}
	q->filled += bytes;
	s->stats.rx.write += bytes;
	san_stream_adv_end(s, q);
	san_stream_offer_rest_came(s, bytes);
	/* A set larger than the rest completes short (AFC-21). */
	if (q->filled == q->room || (q->flags & RTSAN_RECV_WAITALL) == 0)
		san_stream_recv_complete(s, q, 0);
}

/* ---- the peer's sets ---- */

/* The advertisement crossed our notice or offer. */
static void
adv_crossed_data(struct san_stream *s, struct stream_adv *a)
{
	struct stream_sqe *e = san_stream_sqe(s, s->tx.cur);

	if (s->tx.nb_initial >= a->room) {
		san_stream_break(s, "advertises a buffer smaller than a message");
		return;
	}
	/* The initial portion occupies its first bytes. */
	a->room -= s->tx.nb_initial;
	san_stream_skip(&a->where, s->tx.nb_initial);
	s->tx.nb_initial = 0;
	if (e->way != STREAM_WAY_OFFERED)
		return;
	/* We write into the advertised set; our own offer is void (AFC-10). */
	san_stream_dereg(s, e->keys, &e->nb_keys);
	e->way = STREAM_WAY_NOTICED;
	s->stats.nb_offers_void++;
}

static void
adv_on_adv(struct san_stream *s, const struct san_sm *m, const struct san_sm_adv *adv)
{
	struct stream_tx *tx = &s->tx;
	uint32_t used = san_seq_max(m->nb_rcvd, tx->matched);
	bool has_initial = tx->nb_initial > 0 && san_seq_lt(m->lrsq, tx->notice_seq);
	struct stream_adv *a;
	uint64_t room = 0;
	uint8_t i;

	if (used != tx->nb_data) {
		tx->matched = used + 1;
		s->stats.nb_advertisements_stale++;
		/* A message after the initial portion: the portion was in the same set. */
		if (has_initial && san_seq_gt(tx->matched, tx->notice_data))
			tx->nb_initial = 0;
		return;
	}
	for (i = 0; i < adv->where.nb_seg; i++)
		room += adv->where.seg[i].len;
	if (tx->adv_tail - tx->adv_head == STREAM_ADVS || room > UINT32_MAX) {
		san_stream_break(s, "advertises more than agreed");
		return;
	}
	a = &tx->adv[tx->adv_tail++ % STREAM_ADVS];
	*a = (struct stream_adv){
		.where = adv->where,
		.id = adv->id,
		.room = (uint32_t)room,
		.after = adv->after,
	};
	if (has_initial)
		adv_crossed_data(s, a);
}

void
san_stream_adv_on_msg(struct san_stream *s, const struct san_sm *m)
{
	uint8_t i;

	if (san_seq_gt(m->nb_rcvd, s->tx.nb_data)) {
		san_stream_break(s, "counts data that was not sent");
		return;
	}
	s->tx.small_posted = false;
	for (i = 0; i < m->nb_adv && s->fault == NULL; i++)
		adv_on_adv(s, m, &m->adv[i]);
}

void
san_stream_adv_spend(struct san_stream *s)
{
	struct stream_tx *tx = &s->tx;

	tx->nb_data++;
	if (!san_stream_adv_any(s))
		return;
	SAN_ASSERT(tx->adv_off == 0);
	tx->adv_head++;
	tx->matched = tx->nb_data;
}

void
san_stream_adv_forget(struct san_stream *s, uint32_t id)
{
	struct stream_tx *tx = &s->tx;

	if (tx->adv_off > 0) /* the bytes written so far count */
		san_stream_send_end_write(s);
	while (san_stream_adv_any(s) && san_seq_le(tx->adv[tx->adv_head % STREAM_ADVS].id, id))
		tx->adv_head++;
	s->rep.cancelled = id;
	s->due |= SAN_SM_CANCELLED;
}
