/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Limits on the number of messages. Each header states the two limits as absolute numbers, never as
 * changes, so a late header does no harm.
 *
 * Credit (AFC-14): credit = PR - (LSSQ - LRSQ), the posted receives less the messages that had not
 * arrived when they were counted. The last one is for an update (AFC-16): with one left on both
 * sides, each can still send the other an update.
 *
 * Room (AFC-27): the messages with payload that the peer's application has not read are fewer than
 * the buffers that the peer has reserved for them. Without this limit unread data would use up the
 * receives, and with them the credit for advertisements, answers and the data of the other
 * direction.
 *
 * DESIGN NOTES
 *
 * An update is sent only if it is worth at least T2 messages (AFC-15), or as much room. Both counts
 * start again with each message sent, so T2 messages have arrived between two updates. Only an
 * update of credit may use the last credit: then the other side, if it was out of credit too, has
 * more than T2 again and can answer. If an update of room used it, both sides could be left
 * without.
 */

#include "stream_priv.h"

/*
 * Room whose return is worth a message of its own. It is at most what is left besides lent and
 * peeked buffers: an application that waits for more before it reads would wait forever.
 */
static uint32_t
room_step(const struct san_stream *s)
{
	uint32_t kept = s->rx.nb_lent + (s->rx.peeks ? s->rx.nb_unread : 0);
	uint32_t half = s->conf.nb_store / 2u, beside = s->conf.nb_store - kept;
	uint32_t step = half > s->conf.t2 ? half : s->conf.t2;

	if (step > beside)
		step = beside;
	return step > 0 ? step : 1;
}

/*
 * Credit of the peer after a header sent now, if nothing is in flight. Messages that wait for
 * earlier ones are not in LRSQ: the peer counts them as in flight, too.
 */
static int32_t
credit_of_peer(const struct san_stream *s)
{
	return (int32_t)s->cr.nb_posted - (int32_t)s->cr.nb_held;
}

void
san_stream_credit_init(struct san_stream *s)
{
	struct stream_credit *cr = &s->cr;
	uint32_t i;

	cr->lssq = cr->lrsq = cr->peer_lrsq = cr->peer_seq = s->conf.first_seq - 1;
	cr->other = s->conf.nb_recv;
	for (i = 0; i <= cr->held_mask; i++)
		cr->held[i] = STREAM_NONE;
}

uint32_t
san_stream_credit_left(const struct san_stream *s)
{
	int32_t under_way = san_seq_diff(s->cr.lssq, s->cr.peer_lrsq);
	int32_t left = (int32_t)s->cr.peer_pr - under_way;

	return left > 0 ? (uint32_t)left : 0;
}

void
san_stream_credit_on_msg(struct san_stream *s, const struct san_sm *m)
{
	struct stream_credit *cr = &s->cr;

	if (san_seq_lt(m->seq, cr->peer_seq))
		return; /* an older header that was reordered */
	if (san_seq_gt(m->lrsq, cr->lssq) || san_seq_gt(m->nb_freed, cr->nb_payload) ||
	    san_seq_lt(m->lrsq, cr->peer_lrsq) || san_seq_lt(m->nb_freed, cr->peer_freed)) {
		san_stream_break(s, "counts messages that were not sent");
		return;
	}
	cr->peer_seq = m->seq;
	cr->peer_pr = m->pr;
	cr->peer_lrsq = m->lrsq;
	cr->peer_freed = m->nb_freed;
}

void
san_stream_credit_say(struct san_stream *s, struct san_sm *m)
{
	struct stream_credit *cr = &s->cr;

	m->seq = ++cr->lssq;
	m->pr = cr->nb_posted;
	m->lrsq = cr->lrsq;
	m->nb_freed = cr->freed_reported = cr->nb_freed;
	m->nb_rcvd = s->rx.nb_rcvd;
	cr->other = credit_of_peer(s);
}

bool
san_stream_credit_must_update(const struct san_stream *s)
{
	return s->cr.other < s->conf.t1 && credit_of_peer(s) - s->cr.other > s->conf.t2;
}

bool
san_stream_credit_may_update(const struct san_stream *s)
{
	return san_stream_credit_must_update(s) ||
		s->cr.nb_freed - s->cr.freed_reported >= room_step(s);
}

bool
san_stream_credit_has_room(const struct san_stream *s)
{
	return s->cr.nb_payload - s->cr.peer_freed < s->peer_store;
}
