/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every request completes once, with success or with a justified error (RT-7, RT-23, RT-27). The
 * end of a connection must be justified, too. sim_load_op.c detects double completions when it
 * polls.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "sim_check.h"

/* Per side: requests that completed because the connection ended. */
static int
complete_begin(struct sim_world *w, void **state)
{
	*state = calloc(w->load->nb_sides, sizeof(uint64_t));
	return *state == NULL ? -ENOMEM : 0;
}

static bool
has_reason(struct sim_world *w, const struct sim_note *n)
{
	bool ended = n->op->life != san_sim_load_peer(w, n->side)->life;

	switch (n->wc->status) {
	case SAN_ST_OK:
		return !n->op->bad;
	case SAN_ST_ACCESS:
		return n->op->bad || ended;
	case SAN_ST_REVOKED:
		return ended;
	case SAN_ST_RNR:
		return w->conf.load.recv_delay_ns != 0;
	case RTSAN_WC_FLUSHED:
	case RTSAN_WC_RETRY_EXC:
		return true; /* the connection must end, for a valid reason */
	default:
		return false;
	}
}

static void
complete_note(struct sim_world *w, void *state, const struct sim_note *n)
{
	uint64_t *ended = &((uint64_t *)state)[n->side->id];

	switch (n->type) {
	case SIM_NOTE_COMPLETED:
		if (!has_reason(w, n))
			san_sim_world_fail(
				w, "complete", "side %u: %s %" PRIu64 "%s completed with %s",
				n->side->id, san_sim_conf_kind_name(n->op->op - RTSAN_WR_SEND),
				n->op->seq, n->op->bad ? " of a wrong key" : "",
				san_ulp_status_name(n->wc->status));
		*ended += n->wc->status >= RTSAN_WC_RETRY_EXC;
		break;
	case SIM_NOTE_BROKEN:
		if (!san_sim_fault_may_break(w, n->side))
			san_sim_world_fail(w, "complete",
					   "side %u: its connection broke without cause",
					   n->side->id);
		break;
	case SIM_NOTE_DOWN:
		*ended = 0;
		if (n->side->initiates && n->side->nb_done != n->side->nb_posted)
			san_sim_world_fail(w, "complete",
					   "side %u: ended before %" PRIu64 " requests",
					   n->side->id, n->side->nb_posted - n->side->nb_done);
		/* receives posted now may still read what the peer of a stream sent */
		if (n->side->nb_recvs != 0 && !n->side->stream)
			san_sim_world_fail(w, "complete", "side %u: %u receives were not flushed",
					   n->side->id, n->side->nb_recvs);
		break;
	case SIM_NOTE_RESTARTED:
		*ended = 0;
		break;
	default:
		break;
	}
}

static void
complete_settled(struct sim_world *w, void *state)
{
	const uint64_t *ended = state;
	uint32_t i;

	for (i = 0; i < w->load->nb_sides; i++) {
		const struct sim_side *s = &w->load->sides[i];

		if (s->initiates && s->innocent && s->nb_done != s->nb_posted)
			san_sim_world_fail(w, "complete",
					   "side %u: %" PRIu64 " of %" PRIu64 " requests completed",
					   i, s->nb_done, s->nb_posted);
		if (ended[i] != 0)
			san_sim_world_fail(w, "complete",
					   "side %u: flushed, but never disconnected", i);
	}
}

const struct sim_checker sim_check_complete = {
	.begin = complete_begin,
	.note = complete_note,
	.settled = complete_settled,
};
