/* SPDX-License-Identifier: BSD-3-Clause */

/* Payload: a successful request has placed every byte where it should be (RT-10, RT-11). */

#include <inttypes.h>
#include <string.h>

#include "sim_check.h"

static void
check_bytes_equal(struct sim_world *w, const struct sim_side *s, const char *what,
		  const uint8_t *got, uint32_t slice, uint32_t len)
{
	const uint8_t *want = w->load->block + slice;
	uint32_t i = 0;

	if (memcmp(got, want, len) == 0)
		return;
	while (got[i] == want[i])
		i++;
	san_sim_world_fail(w, "bytes", "side %u: %s of %u bytes: byte %u is %#x instead of %#x",
			   s->id, what, len, i, got[i], want[i]);
}

static void
on_send(struct sim_world *w, const struct sim_note *n)
{
	uint64_t header[SIM_HEADER / 8];
	uint32_t slice, len;

	if (n->wc->byte_len < SIM_HEADER) {
		san_sim_world_fail(w, "bytes", "side %u: a send of %u bytes", n->side->id,
				   n->wc->byte_len);
		return;
	}
	memcpy(header, n->data, sizeof(header));
	slice = (uint32_t)(header[1] >> 32);
	len = (uint32_t)header[1];
	if (len != n->wc->byte_len || slice > w->load->block_bytes - w->load->slot_bytes)
		san_sim_world_fail(w, "bytes", "side %u: a send of %u bytes says %u", n->side->id,
				   n->wc->byte_len, len);
	else
		check_bytes_equal(w, n->side, "send", n->data + SIM_HEADER, slice,
				  len - SIM_HEADER);
}

/* A push with immediate is complete at the target before its initiator knows. */
static void
on_push_imm(struct sim_world *w, const struct sim_note *n)
{
	const struct sim_side *from = san_sim_load_peer(w, n->side);
	uint32_t i;

	for (i = 0; i < w->conf.load.depth; i++) {
		const struct sim_op *op = &from->ops[i];

		if (op->state == SIM_OP_POSTED && (uint32_t)op->seq == n->wc->imm &&
		    op->life == n->side->life)
			check_bytes_equal(w, n->side, "push with immediate",
					  san_sim_load_slot(w, n->side, i), op->slice, op->len);
	}
}

static void
bytes_note(struct sim_world *w, void *state, const struct sim_note *n)
{
	const struct sim_op *op = n->op;
	const struct sim_side *peer = san_sim_load_peer(w, n->side);

	(void)state;
	if (n->type == SIM_NOTE_RECEIVED && n->wc->status == SAN_ST_OK) {
		if (n->wc->op == RTSAN_WC_RECV)
			on_send(w, n);
		else
			on_push_imm(w, n);
	}
	if (n->type != SIM_NOTE_COMPLETED || n->wc->status != SAN_ST_OK)
		return;
	if (op->op == RTSAN_WR_PULL)
		check_bytes_equal(w, n->side, "pull", san_sim_load_own(w, n->side, op->slot),
				  op->slice, op->len);
	if ((op->op == RTSAN_WR_PUSH || op->op == RTSAN_WR_PUSH_IMM) && op->life == peer->life)
		check_bytes_equal(w, n->side, "push", san_sim_load_slot(w, peer, op->slot),
				  op->slice, op->len);
}

const struct sim_checker sim_check_bytes = {
	.note = bytes_note,
};
