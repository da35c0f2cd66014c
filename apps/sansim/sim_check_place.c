/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Data is placed only where a request names it, and not after its key was revoked, its connection
 * ended, or it completed. Each slot of a target lies between guards, and holds poison while no
 * request uses it.
 */

#include <inttypes.h>
#include <string.h>

#include "sim_check.h"

static bool
is_all(const uint8_t *p, size_t n, uint8_t value)
{
	return n == 0 || (p[0] == value && memcmp(p, p + 1, n - 1) == 0);
}

static void
check_place_slot(struct sim_world *w, const struct sim_side *target, uint32_t slot, uint32_t used,
		 const char *when)
{
	const uint8_t *p = san_sim_load_slot(w, target, slot);

	if (!is_all(p - SIM_GUARD, SIM_GUARD, SIM_GUARD_BYTE) ||
	    !is_all(p + w->load->slot_bytes, SIM_GUARD, SIM_GUARD_BYTE))
		san_sim_world_fail(w, "place", "side %u: bytes around slot %u written %s",
				   target->id, slot, when);
	if (!is_all(p + used, w->load->slot_bytes - used, SIM_POISON_BYTE))
		san_sim_world_fail(w, "place", "side %u: bytes of slot %u written %s", target->id,
				   slot, when);
}

static void
place_note(struct sim_world *w, void *state, const struct sim_note *n)
{
	const struct sim_side *peer = san_sim_load_peer(w, n->side);
	const struct sim_op *op = n->op;
	bool placed;

	(void)state;
	if (n->type != SIM_NOTE_COMPLETED)
		return;
	if (op->op == RTSAN_WR_PULL &&
	    !is_all(san_sim_load_own(w, n->side, op->slot) + op->len, SIM_GUARD, SIM_GUARD_BYTE))
		san_sim_world_fail(w, "place", "side %u: pull %" PRIu64 ": bytes behind it written",
				   n->side->id, op->seq);
	if (op->op != RTSAN_WR_PUSH && op->op != RTSAN_WR_PUSH_IMM)
		return;
	/* an aborted request may be placed in part while the keys are valid */
	placed = op->life == peer->life && !op->bad;
	check_place_slot(w, peer, op->slot, placed ? op->len : 0,
			 placed ? "beyond the request" : "without a right to");
}

static void
place_end(struct sim_world *w, void *state)
{
	uint32_t i, k;

	(void)state;
	for (i = 0; i < w->load->nb_sides; i++)
		for (k = 0; w->load->sides[i].region != NULL && k < w->conf.load.depth; k++)
			check_place_slot(w, &w->load->sides[i], k, 0, "after the end");
}

const struct sim_checker sim_check_place = {
	.note = place_note,
	.end = place_end,
};
