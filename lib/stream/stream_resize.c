/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The size of message buffers follows the sends that are sent in messages and are too long for one,
 * up to the threshold (AFC-18). The sender asks for the largest size it has seen. The receiver
 * replaces its buffers as they are returned, and reports after which message that is complete. Then
 * the sender replaces its own in the same way.
 *
 * Nothing waits here, so requests that cross cannot deadlock. The accepting side still does not
 * answer the other's request while its own is open, because both sizes would change twice for one
 * reason. The connecting side may ask again.
 */

#include <errno.h>

#include "stream_priv.h"

void
san_stream_resize_count(struct san_stream *s, const struct stream_sqe *e)
{
	struct stream_tx *tx = &s->tx;
	uint32_t want = san_stream_min(e->len, s->threshold - 1) + SAN_SM_HDR;

	tx->nb_frags++;
	if (want > tx->largest)
		tx->largest = san_stream_min(want, s->conf.msg_max);
	if (tx->nb_frags < s->conf.frags || s->rep.resize != 0 || tx->new_size != 0 ||
	    tx->largest <= s->peer_msg)
		return;
	s->rep.resize = tx->largest;
	s->due |= SAN_SM_RESIZE;
}

void
san_stream_resize_on_request(struct san_stream *s, uint32_t size)
{
	if (s->accepted && s->rep.resize != 0)
		return;
	s->rep.resize = 0; /* crossed: ours is not answered */
	size = san_stream_min(size, s->conf.msg_max);
	if (size > s->rpool.size && san_stream_pool_resize(s, &s->rpool, size) == 0)
		s->stats.nb_resizes++;
	else
		s->stats.nb_resizes_refused++;
	s->rep.resized.bytes = s->rpool.size;
	s->rep.resized.after = s->conf.first_seq - 1 + s->cr.nb_posted_ever;
	s->due |= SAN_SM_RESIZED;
}

void
san_stream_resize_on_done(struct san_stream *s, uint32_t size, uint32_t after)
{
	struct stream_tx *tx = &s->tx;

	if (s->rep.resize == 0)
		return;
	if (size > s->conf.msg_max) {
		san_stream_break(s, "has larger message buffers than were asked for");
		return;
	}
	s->rep.resize = 0;
	tx->nb_frags = 0;
	tx->largest = 0;
	if (size <= s->peer_msg)
		return; /* the peer has no memory: the old size stays */
	tx->new_size = size;
	tx->new_after = after;
}

void
san_stream_resize_run(struct san_stream *s)
{
	struct stream_tx *tx = &s->tx;
	int rc = 0;

	if (tx->new_size == 0 || san_seq_lt(s->cr.peer_lrsq, tx->new_after))
		return;
	if (s->spool.size < tx->new_size)
		rc = san_stream_pool_resize(s, &s->spool, tx->new_size);
	if (rc == -EBUSY)
		return;
	if (rc == 0) /* without memory of our own the old size stays */
		s->peer_msg = tx->new_size;
	tx->new_size = 0;
}
