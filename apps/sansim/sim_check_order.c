/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Exactly once, and in order where the transport promises it (RT-14, RT-15, RT-30): what a target
 * receives, what an initiator is notified of, and what atomics have changed.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "sim_world.h"

enum {
	SEQ_RECEIVABLE = 0x1, /* a send or a push with immediate */
	SEQ_RECEIVED = 0x2,
	SEQ_OK = 0x4,
	SEQ_OVER = 0x8, /* completed with an error, or lost with its process */
};

static void
on_posted(struct sim_world *w, struct sim_order *o, const struct sim_op *op)
{
	if (op->seq >= o->nb_seqs) {
		uint64_t n = RTE_MAX(2 * o->nb_seqs, 64ul);
		uint8_t *seqs = realloc(o->seqs, n);

		if (seqs == NULL) {
			san_sim_world_fail(w, "sansim", "out of memory");
			return;
		}
		memset(&seqs[o->nb_seqs], 0, n - o->nb_seqs);
		o->seqs = seqs;
		o->nb_seqs = n;
	}
	o->seqs[op->seq] = op->op == RTSAN_WR_SEND || op->op == RTSAN_WR_PUSH_IMM ?
		SEQ_RECEIVABLE :
		0;
	o->adds_doubtful += op->op == RTSAN_WR_FETCH_ADD && !op->bad; /* not with a wrong key */
}

static void
on_old_value(struct sim_world *w, struct sim_order *o, const struct sim_side *s,
	     const struct sim_op *op)
{
	bool add = op->op == RTSAN_WR_FETCH_ADD;

	if (op->seq < o->adds_from)
		return; /* of a process that died after its answer */
	if (s->ordered && op->result < o->next_old)
		san_sim_world_fail(w, "order",
				   "side %u: atomic %" PRIu64 " saw %" PRIu64 " after %" PRIu64,
				   s->id, op->seq, op->result, o->next_old - 1);
	if (op->result + add > o->adds_ok + o->adds_doubtful)
		san_sim_world_fail(w, "order",
				   "side %u: atomic %" PRIu64 " saw %" PRIu64 " of %" PRIu64
				   " additions",
				   s->id, op->seq, op->result,
				   o->adds_ok + o->adds_doubtful);
	o->next_old = RTE_MAX(o->next_old, op->result + add);
	o->adds_ok += add;
	o->adds_doubtful -= add;
}

static void
on_completed(struct sim_world *w, struct sim_order *o, const struct sim_note *n)
{
	const struct sim_side *s = n->side;
	uint64_t seq = n->op->seq;

	if (s->ordered && seq < o->nb_done)
		san_sim_world_fail(w, "order",
				   "side %u: request %" PRIu64 " completed after %" PRIu64, s->id,
				   seq, o->nb_done - 1);
	o->nb_done = RTE_MAX(o->nb_done, seq + 1);
	o->seqs[seq] |= n->wc->status == SAN_ST_OK ? SEQ_OK : SEQ_OVER;
	if (n->wc->status == SAN_ST_OK &&
	    (n->op->op == RTSAN_WR_FETCH_ADD || n->op->op == RTSAN_WR_CMP_SWAP))
		on_old_value(w, o, s, n->op);
}

static void
on_received(struct sim_world *w, struct sim_order *o, const struct sim_note *n)
{
	const struct sim_side *s = n->side;
	uint64_t seq = n->wc->imm; /* of the initiator */

	if (n->wc->op != RTSAN_WC_RECV_PUSH_IMM)
		memcpy(&seq, n->data, sizeof(seq));
	if (seq >= o->nb_seqs || (o->seqs[seq] & SEQ_RECEIVABLE) == 0) {
		san_sim_world_fail(w, "order", "side %u: received %" PRIu64 ", which was not sent",
				   s->id, seq);
		return;
	}
	if ((o->seqs[seq] & SEQ_RECEIVED) != 0)
		san_sim_world_fail(w, "order", "side %u: received %" PRIu64 " twice", s->id, seq);
	if (s->ordered && seq < o->nb_received)
		san_sim_world_fail(w, "order", "side %u: received %" PRIu64 " after %" PRIu64,
				   s->id, seq, o->nb_received - 1);
	o->nb_received = RTE_MAX(o->nb_received, seq + 1);
	o->seqs[seq] |= SEQ_RECEIVED;
}

void
san_sim_check_order_note(struct sim_world *w, const struct sim_note *n)
{
	struct sim_side *other = san_sim_load_peer(w, n->side);
	struct sim_order *own = &n->side->order, *peer = &other->order;

	if (n->side->stream)
		return; /* bytes of a stream are checked in sim_load_stream.c */
	switch (n->type) {
	case SIM_NOTE_POSTED:
		on_posted(w, own, n->op);
		break;
	case SIM_NOTE_COMPLETED:
		on_completed(w, own, n);
		break;
	case SIM_NOTE_LOST:
		own->seqs[n->op->seq] |= SEQ_OVER;
		break;
	case SIM_NOTE_RECEIVED:
		on_received(w, peer, n);
		break;
	case SIM_NOTE_RESTARTED:
		/* its counter is 0 again, and what the old process received is unknown */
		peer->excused = other->nb_posted;
		peer->adds_from = peer->excused;
		peer->adds_ok = 0;
		peer->adds_doubtful = 0;
		peer->next_old = 0;
		break;
	default:
		break;
	}
}

static void
settled_side(struct sim_world *w, const struct sim_side *s)
{
	const struct sim_order *o = &s->order;
	const struct sim_side *target = san_sim_load_peer(w, s);
	uint64_t seq, value = *target->counter;

	for (seq = o->excused; seq < s->nb_posted; seq++)
		if ((o->seqs[seq] & (SEQ_RECEIVABLE | SEQ_RECEIVED | SEQ_OK)) ==
		    (SEQ_RECEIVABLE | SEQ_OK))
			san_sim_world_fail(w, "order",
					   "side %u: %" PRIu64 " succeeded and was not received",
					   s->id, seq);
	if (value < o->adds_ok || value > o->adds_ok + o->adds_doubtful)
		san_sim_world_fail(w, "order",
				   "side %u: counter %" PRIu64 ", additions %" PRIu64
				   ", perhaps %" PRIu64 " more",
				   s->id, value,
				   o->adds_ok, o->adds_doubtful);
}

void
san_sim_check_order_settled(struct sim_world *w)
{
	const struct sim_side *s;
	uint32_t i;

	for (i = 0; i < w->load->nb_sides; i++) {
		s = &w->load->sides[i];
		if (s->initiates && !s->stream && s->innocent)
			settled_side(w, s);
	}
}
