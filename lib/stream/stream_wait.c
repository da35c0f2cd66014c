/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests of an application besides data: to wait for an event, to cancel work, to end its
 * direction, the urgent byte. An event completes only listed waits, so without a wait no thread is
 * woken and no system call is made (AFC-19). A submitted wait is listed before the events are
 * checked, in the same thread, so none is missed.
 */

#include "stream_priv.h"

static void
stream_wait_ctl_done(struct san_stream *s, uint64_t wr_id, uint8_t op, uint8_t status,
		     uint32_t imm, uint32_t byte_len)
{
	SAN_ASSERT(s->done_tail - s->done_head < STREAM_DONES);
	s->dones[s->done_tail++ % STREAM_DONES] = (struct san_ulp_wc){
		.wr_id = wr_id,
		.imm = imm,
		.byte_len = byte_len,
		.has_imm = true,
		.op = op,
		.status = status,
	};
}

bool
san_stream_wait_for_data(const struct san_stream *s)
{
	uint32_t i;

	for (i = 0; i < s->nb_waits; i++)
		if ((s->wait[i].events & RTSAN_STREAM_READABLE) != 0)
			return true;
	return false;
}

void
san_stream_wait_run(struct san_stream *s)
{
	uint32_t i = 0, ev = 0;

	if (s->nb_waits == 0)
		return;
	if (s->rx.nb_unread > 0 || s->rx.fin || s->over)
		ev |= RTSAN_STREAM_READABLE;
	if (san_stream_send_is_idle(s) || s->over)
		ev |= RTSAN_STREAM_WRITABLE;
	if (s->urg.announced)
		ev |= RTSAN_STREAM_URGENT;
	if (s->over)
		ev |= RTSAN_STREAM_ENDED;
	while (i < s->nb_waits) {
		struct stream_wait *w = &s->wait[i];
		uint32_t hit = ev & (w->events | RTSAN_STREAM_ENDED);

		if (hit == 0) {
			i++;
			continue;
		}
		stream_wait_ctl_done(s, w->wr_id, RTSAN_WC_STREAM_WAIT, 0, hit, s->rx.unread_bytes);
		s->rx.notified |= (hit & RTSAN_STREAM_READABLE) != 0;
		/* in the order of posting */
		memmove(w, w + 1, (--s->nb_waits - i) * sizeof(*w));
	}
}

static void
post_cancel(struct san_stream *s, const struct san_ulp_wr *wr)
{
	uint32_t i;

	if ((wr->imm & RTSAN_STREAM_RECVS) != 0)
		san_stream_recv_cancel(s);
	if ((wr->imm & RTSAN_STREAM_SENDS) != 0)
		san_stream_send_cancel(s);
	if ((wr->imm & RTSAN_STREAM_WAITS) != 0) {
		for (i = 0; i < s->nb_waits; i++)
			stream_wait_ctl_done(s, s->wait[i].wr_id, RTSAN_WC_STREAM_WAIT,
					     RTSAN_WC_CANCELLED, 0, 0);
		s->nb_waits = 0;
	}
	stream_wait_ctl_done(s, wr->wr_id, RTSAN_WC_STREAM_CANCEL, 0, wr->imm, 0);
}

static uint8_t
set_option(struct san_stream *s, uint32_t option, uint64_t value)
{
	switch (option) {
	case SAN_STREAM_OPT_MODE:
		if (value != SAN_STREAM_ADAPTIVE && value >= SAN_SM_MODES)
			return RTSAN_WC_INVALID;
		/* What the peer reported about a fixed mode is lost: learn from the start. */
		if (value != SAN_STREAM_ADAPTIVE)
			s->tx.mode = (uint8_t)value;
		else if (s->conf.mode != SAN_STREAM_ADAPTIVE)
			s->tx.mode = SAN_SM_DISCOVERY;
		s->conf.mode = (uint8_t)value;
		s->tx.nb_cls = 0;
		return 0;
	case SAN_STREAM_OPT_READ:
		if (value > RTSAN_STREAM_READ_ALWAYS)
			return RTSAN_WC_INVALID;
		s->conf.read = (uint8_t)value;
		return 0;
	case SAN_STREAM_OPT_HOLD_NS:
		s->conf.hold_ns = value;
		return 0;
	case SAN_STREAM_OPT_GATHER_NS:
		s->conf.gather_ns = value;
		return 0;
	default:
		return RTSAN_WC_INVALID;
	}
}

bool
san_stream_wait_ctl_post(struct san_stream *s, const struct san_ulp_wr *wr)
{
	struct stream_urgent *u = &s->urg;
	uint8_t status;

	/* Each one completes once; a cancel also completes all waits. */
	if (s->done_tail - s->done_head + s->nb_waits + 2 > STREAM_DONES)
		return false;
	switch (wr->op) {
	case SAN_WR_WAIT:
		if (s->nb_waits < SAN_STREAM_WAIT_MAX)
			s->wait[s->nb_waits++] = (struct stream_wait){wr->wr_id, wr->imm};
		else
			stream_wait_ctl_done(s, wr->wr_id, RTSAN_WC_STREAM_WAIT,
					     RTSAN_WC_NO_BUFFERS, 0, 0);
		break;
	case SAN_WR_CANCEL:
		post_cancel(s, wr);
		break;
	case SAN_WR_URGENT:
		status = !u->announced ? RTSAN_WC_INVALID : u->there ? 0 :
								       RTSAN_WC_AGAIN;
		stream_wait_ctl_done(s, wr->wr_id, RTSAN_WC_STREAM_URGENT, status, u->byte,
				     status == 0);
		if (status == 0)
			u->announced = u->there = false;
		break;
	case SAN_WR_GIVE_BACK:
		status = san_stream_recv_give_back(s, wr->imm) ? 0 : RTSAN_WC_INVALID;
		stream_wait_ctl_done(s, wr->wr_id, RTSAN_WC_STREAM_GIVE_BACK, status, wr->imm, 0);
		break;
	default:
		status = set_option(s, wr->imm, wr->remote_addr);
		stream_wait_ctl_done(s, wr->wr_id, RTSAN_WC_STREAM_OPTION, status, wr->imm, 0);
		break;
	}
	return true;
}
