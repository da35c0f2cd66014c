/* SPDX-License-Identifier: BSD-3-Clause */

/* Views of a session for operators, and its invariants. */

#include "stream_priv.h"

/** Modes of a sender of a stream */
#define MODES(X)                                                                           \
	X(DISCOVERY, "discovery", "It has not learned yet which path is the best.")        \
	X(SMALL_RECV, "small", "All data goes in messages.")                               \
	X(LARGE_RECV, "large", "Receivers advertise buffers, into which data is written.") \
	X(SMALL_LARGE, "small-large", "A small receive comes first, then a large one.")

#define MODE_NAME(mode, name, help)   [SAN_SM_##mode] = name,
#define CAUSE_NAME(cause, name, help) name,

static const char *const mode_names[SAN_SM_MODES] = {MODES(MODE_NAME)};
static const char *const why_names[SAN_STREAM_WHYS] = {SAN_STREAM_CAUSES(CAUSE_NAME)};

const char *
san_stream_show_mode_name(uint8_t mode)
{
	return mode < SAN_SM_MODES ? mode_names[mode] : "unknown";
}

const char *
san_stream_show_why_name(uint8_t why)
{
	return why < SAN_STREAM_WHYS ? why_names[why] : "unknown";
}

void
san_stream_show_view(const struct san_stream *s, struct san_stream_view *out)
{
	uint32_t i, nb = san_stream_min(s->nb_change, SAN_STREAM_EVENTS);

	*out = (struct san_stream_view){
		.mode = s->tx.mode,
		.peer_mode = s->rx.mode,
		.threshold = s->threshold,
		.msg_size = s->rpool.size,
		.peer_msg_size = s->peer_msg,
		.credit = s->open ? san_stream_credit_left(s) : 0,
		.peer_credit = s->cr.other > 0 ? (uint32_t)s->cr.other : 0,
		.nb_unread_bytes = s->rx.unread_bytes,
		.nb_sends = s->tx.tail - s->tx.notified,
		.nb_recvs = s->rx.tail - s->rx.head,
		.nb_advs = s->tx.adv_tail - s->tx.adv_head,
		.nb_change = nb,
		.stats = s->stats,
	};
	for (i = 0; i < nb; i++)
		out->change[i] = s->change[(s->nb_change - nb + i) % SAN_STREAM_EVENTS];
}

bool
san_stream_show_names_key(const struct san_stream *s, uint32_t key)
{
	uint32_t at;

	for (at = s->tx.head; at != s->tx.tail; at++) {
		const struct stream_sqe *e = &s->tx.sq[at & (s->conf.sq_depth - 1)];

		if (!e->done && !e->inlined && san_wr_sges_name_key(e->sge, e->nb_sge, key))
			return true;
	}
	for (at = s->rx.cur; at != s->rx.tail; at++) {
		const struct stream_rqe *q = &s->rx.rq[at & (s->conf.rq_depth - 1)];

		if (san_wr_sges_name_key(q->sge, q->nb_sge, key))
			return true;
	}
	return false;
}

/* ---- invariants ---- */

static void
stream_show_check_pool(const struct stream_pool *p)
{
	uint32_t nb_free = 0, nb_old = 0;
	uint16_t i;

	for (i = 0; i < p->nb; i++) {
		nb_free += p->bufs[i].state == STREAM_BUF_FREE;
		nb_old += p->bufs[i].size != p->size;
	}
	SAN_VERIFY(nb_free == p->nb_free);
	SAN_VERIFY(nb_old == (p->old_mem != NULL ? p->nb_old : 0));
}

static void
check_buffers(const struct san_stream *s)
{
	uint32_t posted = 0, held = 0, unread = 0, lent = 0, bytes = 0;
	uint16_t i;

	for (i = 0; i < s->rpool.nb; i++) {
		const struct stream_buf *b = &s->rpool.bufs[i];

		posted += b->state == STREAM_BUF_POSTED;
		held += b->state == STREAM_BUF_HELD;
		lent += b->state == STREAM_BUF_LENT;
		unread += b->state == STREAM_BUF_UNREAD;
		bytes += b->state == STREAM_BUF_UNREAD ? b->len : 0;
	}
	SAN_VERIFY(posted == s->cr.nb_posted && posted <= s->conf.nb_recv);
	SAN_VERIFY(held == s->cr.nb_held);
	SAN_VERIFY(unread == s->rx.nb_unread && bytes == s->rx.unread_bytes);
	SAN_VERIFY(lent == s->rx.nb_lent);
	SAN_VERIFY(s->fault != NULL || unread + lent == s->cr.nb_payload_rcvd - s->cr.nb_freed);
}

static void
check_recvs(const struct san_stream *s)
{
	const struct stream_rx *rx = &s->rx;
	uint32_t at, nb = 0, room = 0;
	bool first_is_set = true;

	for (at = rx->cur; at != rx->tail; at++) {
		const struct stream_rqe *q = &rx->rq[at & (s->conf.rq_depth - 1)];

		SAN_VERIFY(q->filled + q->nb_io_bytes <= q->room);
		SAN_VERIFY(q->nb_io == 0 || at == rx->cur);
		if (q->is_adv) {
			SAN_VERIFY(first_is_set); /* no gap: sets are filled in order */
			SAN_VERIFY(rx->nb_unread == 0 && rx->way != STREAM_RX_OFFER);
			nb++;
			room += q->adv_bytes;
		} else {
			first_is_set = false;
		}
	}
	SAN_VERIFY(nb == rx->nb_advs && room == rx->adv_room);
	SAN_VERIFY(rx->way != STREAM_RX_NONE || rx->rest == 0);
}

void
san_stream_show_check(const struct san_stream *s)
{
	const struct stream_tx *tx = &s->tx;

	stream_show_check_pool(&s->rpool);
	stream_show_check_pool(&s->spool);
	check_buffers(s);
	check_recvs(s);
	SAN_VERIFY(tx->tail - tx->head <= s->conf.sq_depth);
	SAN_VERIFY(tx->cur - tx->head <= tx->tail - tx->head);
	SAN_VERIFY(tx->notified - tx->head <= tx->tail - tx->head);
	SAN_VERIFY(tx->adv_tail - tx->adv_head <= STREAM_ADVS);
	SAN_VERIFY(tx->wdone_tail - tx->wdone_head <= STREAM_WDONES);
	SAN_VERIFY(tx->buf_tail - tx->buf_head <= s->conf.send_buffer);
	SAN_VERIFY(s->cr.nb_payload - s->cr.peer_freed <= s->peer_store || !s->hello_rcvd);
	SAN_VERIFY(san_seq_le(tx->matched, tx->nb_data));
}
