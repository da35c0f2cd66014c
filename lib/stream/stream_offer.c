/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Large sends that start with an initial portion. A message carries what fits, the number of
 * further bytes (a notice, AFC-5) and, in an offer, where they can be read (AFC-8). At most one is
 * undecided per direction, and nothing follows it until it is decided: so the next data always
 * belongs after it.
 *
 * The receiver answers
 * - a notice by advertising buffers, and an offer by reading into them, as the application posts
 *   them;
 * - either one by "send the rest in messages", if the application posts a small buffer for it, or
 *   waits for more data; it returns an offer with that, and reports how far it has read.
 *
 * An offer belongs to the receiver until it is returned (AFC-28), so only the receiver detects that
 * no buffer is posted for it (AFC-13); after a notice the sender detects that. A sender whose
 * application cancels the send requests the return of either, and nothing follows before the
 * answer.
 */

#include "stream_priv.h"

/* ---- receiver ---- */

void
san_stream_offer_on_msg(struct san_stream *s, const struct san_sm *m)
{
	struct stream_rx *rx = &s->rx;
	uint64_t room = 0;
	uint8_t i;

	if (rx->way == STREAM_RX_OFFER) {
		san_stream_break(s, "sends behind an offer that was not given back");
		return;
	}
	for (i = 0; i < m->offer.nb_seg; i++)
		room += m->offer.seg[i].len;
	if (m->rest == 0 || ((m->flags & SAN_SM_OFFER) != 0 && room != m->rest)) {
		san_stream_break(s, "offers other than what is left");
		return;
	}
	rx->send_id = m->send_id;
	rx->rest = m->rest;
	rx->cls = SAN_SM_MODES;
	rx->scans = 0;
	rx->withdrawn = false;
	rx->way = STREAM_RX_NOTICE;
	/* Advertised buffers will be written (AFC-10). */
	if ((m->flags & SAN_SM_OFFER) == 0 || rx->nb_advs > 0)
		return;
	rx->way = STREAM_RX_OFFER;
	rx->offer = m->offer;
	rx->offer_off = 0;
}

void
san_stream_offer_rest_void(struct san_stream *s)
{
	s->rx.way = STREAM_RX_NONE;
	s->rx.rest = 0;
	s->rx.begun = s->rx.notified = false;
}

void
san_stream_offer_rest_came(struct san_stream *s, uint32_t bytes)
{
	struct stream_rx *rx = &s->rx;

	rx->rest -= san_stream_min(bytes, rx->rest);
	if (rx->rest > 0)
		return;
	if (rx->way == STREAM_RX_OFFER)
		san_stream_offer_give_back(s, rx->cls);
	else
		san_stream_offer_rest_void(s);
}

void
san_stream_offer_give_back(struct san_stream *s, uint8_t cls)
{
	struct stream_rx *rx = &s->rx;

	s->rep.rdone.id = rx->send_id;
	s->rep.rdone.bytes = rx->way == STREAM_RX_OFFER ? rx->offer_off : 0;
	s->rep.rdone.mode = cls == SAN_SM_MODES ? SAN_SM_DISCOVERY : cls;
	s->due |= SAN_SM_RDONE;
	san_stream_offer_rest_void(s);
}

void
san_stream_offer_answer_small(struct san_stream *s)
{
	struct stream_rx *rx = &s->rx;

	if (rx->way == STREAM_RX_OFFER) {
		san_stream_offer_give_back(s, SAN_SM_SMALL_RECV);
		return;
	}
	s->rep.small_id = rx->way == STREAM_RX_NOTICE ? rx->send_id : 0;
	s->due |= SAN_SM_SMALL;
	san_stream_offer_rest_void(s);
}

/* One request: the part where *q* and the offered piece overlap. */
static int
read_piece(struct san_stream *s, struct stream_rqe *q, uint32_t bytes)
{
	struct stream_rx *rx = &s->rx;
	const struct san_sm_seg *seg = rx->offer.seg;
	uint32_t off = rx->offer_off, at = q->filled + q->nb_io_bytes;
	uint16_t place = (uint16_t)(rx->cur & (s->conf.rq_depth - 1));
	struct san_ulp_wr wr;
	int rc;

	while (off >= seg->len)
		off -= seg++->len;
	bytes = san_stream_min(bytes, seg->len - off);
	san_stream_wr_init(&wr, RTSAN_WR_PULL, san_stream_cookie(STREAM_REQ_READ, 0, place), bytes);
	wr.remote_addr = seg->addr + off;
	wr.rkey = seg->key;
	wr.nb_sge = san_stream_slice(q->sge, q->nb_sge, at, bytes, wr.sge);
	rc = s->ops->post(s->arg, &wr);
	if (rc != 0)
		return rc;
	q->nb_io++;
	q->nb_io_bytes += bytes;
	rx->offer_off += bytes;
	return 0;
}

bool
san_stream_offer_read(struct san_stream *s, struct stream_rqe *q)
{
	struct stream_rx *rx = &s->rx;
	uint32_t left = san_stream_min(san_stream_recv_room_left(q), rx->rest) - q->nb_io_bytes;

	if (rx->cls == SAN_SM_MODES) /* of the first buffer for the rest (AFC-22) */
		rx->cls = q->after ? SAN_SM_SMALL_LARGE : SAN_SM_LARGE_RECV;
	rx->scans = 0;
	while (left > 0) {
		uint32_t before = q->nb_io_bytes;

		if (read_piece(s, q, left) != 0)
			return false;
		left -= q->nb_io_bytes - before;
	}
	return true;
}

void
san_stream_offer_on_read(struct san_stream *s, struct stream_rqe *q, uint8_t status)
{
	uint32_t bytes;

	SAN_ASSERT(q->nb_io > 0);
	if (--q->nb_io > 0)
		return;
	bytes = q->nb_io_bytes;
	q->nb_io_bytes = 0;
	if (status != 0 || s->fault != NULL)
		return;
	q->filled += bytes;
	s->stats.rx.read += bytes;
	san_stream_offer_rest_came(s, bytes);
	if (s->rx.withdrawn && s->rx.way == STREAM_RX_OFFER)
		san_stream_offer_give_back(s, SAN_SM_MODES);
	if (q->filled == q->room ||
	    ((q->flags & RTSAN_RECV_WAITALL) == 0 && s->rx.way == STREAM_RX_NONE))
		san_stream_recv_complete(s, q, 0);
}

/* ---- sender ---- */

void
san_stream_offer_returned(struct san_stream *s, const struct san_sm *m, uint64_t now_ns)
{
	uint32_t bytes = m->rep.rdone.bytes;
	uint8_t cls = m->rep.rdone.mode;
	struct stream_tx *tx = &s->tx;
	struct stream_sqe *e = san_stream_sqe(s, tx->cur);
	bool waits = tx->cur != tx->tail && m->rep.rdone.id == tx->send_id &&
		(e->way == STREAM_WAY_OFFERED || (e->way == STREAM_WAY_NOTICED && e->cancelled));

	if (!waits && bytes == 0)
		return; /* late: the answer crossed our request */
	if (!waits || bytes > e->len - e->oob - e->off) {
		san_stream_break(s, "gives back an offer that it does not have");
		return;
	}
	san_stream_dereg(s, e->keys, &e->nb_keys);
	e->off += bytes;
	tx->nb_initial = 0;
	s->stats.tx.read += bytes;
	e->way = STREAM_WAY_MESSAGES;
	if (cls != SAN_SM_DISCOVERY) {
		san_stream_mode_learn(s, cls, now_ns);
	} else if (!e->cancelled) { /* no buffer was posted (AFC-13) */
		s->stats.nb_fallbacks++;
		san_stream_mode_leave(s, SAN_STREAM_WHY_SCAN, now_ns);
	}
}
