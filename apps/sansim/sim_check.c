/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Invariants of a run, and when each is checked. A checker gets notes of what the programs see,
 * examines a host after its round, or judges the end of a run. It reports with
 * san_sim_world_fail(), which keeps the first failure, and changes nothing else.
 */

#include <inttypes.h>
#include <string.h>

#include <rte_common.h>
#include <rte_hash.h>
#include <rte_mempool.h>

#include "sim_world.h"

/* ---- a successful request has placed every byte where it should be (RT-10, RT-11) ---- */

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
check_bytes_note(struct sim_world *w, const struct sim_note *n)
{
	const struct sim_op *op = n->op;
	const struct sim_side *peer = san_sim_load_peer(w, n->side);

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

/*
 * ---- every request completes once (RT-7, RT-23, RT-27) ----
 *
 * With success, or with a justified error. The end of a connection must be justified, too. sim_load_op.c detects double completions when it
 * polls.
 */

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
check_complete_note(struct sim_world *w, const struct sim_note *n)
{
	switch (n->type) {
	case SIM_NOTE_COMPLETED:
		if (!has_reason(w, n))
			san_sim_world_fail(
				w, "complete", "side %u: %s %" PRIu64 "%s completed with %s",
				n->side->id, san_sim_conf_kind_name(n->op->op - RTSAN_WR_SEND),
				n->op->seq, n->op->bad ? " of a wrong key" : "",
				san_ulp_status_name(n->wc->status));
		n->side->nb_flushed += n->wc->status >= RTSAN_WC_RETRY_EXC;
		break;
	case SIM_NOTE_BROKEN:
		if (!san_sim_fault_may_break(w, n->side))
			san_sim_world_fail(w, "complete",
					   "side %u: its connection broke without cause",
					   n->side->id);
		break;
	case SIM_NOTE_DOWN:
		n->side->nb_flushed = 0;
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
		n->side->nb_flushed = 0;
		break;
	default:
		break;
	}
}

static void
check_complete_settled(struct sim_world *w)
{
	uint32_t i;

	for (i = 0; i < w->load->nb_sides; i++) {
		const struct sim_side *s = &w->load->sides[i];

		if (s->initiates && s->innocent && s->nb_done != s->nb_posted)
			san_sim_world_fail(w, "complete",
					   "side %u: %" PRIu64 " of %" PRIu64 " requests completed",
					   i, s->nb_done, s->nb_posted);
		if (s->nb_flushed != 0)
			san_sim_world_fail(w, "complete",
					   "side %u: flushed, but never disconnected", i);
	}
}

/*
 * ---- data is placed only where a request names it ----
 *
 * And not after its key was revoked, its connection ended, or it completed. Each slot of a target
 * lies between guards, and holds poison while no request uses it.
 */

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
check_place_note(struct sim_world *w, const struct sim_note *n)
{
	const struct sim_side *peer = san_sim_load_peer(w, n->side);
	const struct sim_op *op = n->op;
	bool placed;

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
check_place_end(struct sim_world *w)
{
	uint32_t i, k;

	for (i = 0; i < w->load->nb_sides; i++)
		for (k = 0; w->load->sides[i].region != NULL && k < w->conf.load.depth; k++)
			check_place_slot(w, &w->load->sides[i], k, 0, "after the end");
}

/* ---- nothing is left after the end: no connection, record, CAM entry, region or mbuf ---- */

/* Count used mbufs, without the empty ones that cores keep for their next packets. */
static void
check_leak_pool(struct sim_world *w, const char *whose, struct rte_mempool *pool)
{
	unsigned int used = rte_mempool_in_use_count(pool);
	uint32_t i;

	for (i = 0; i < w->nb_hosts; i++)
		if (w->hosts[i].core != NULL && w->hosts[i].pool == pool)
			used -= san_core_nb_spare(w->hosts[i].core);
	if (used != 0)
		san_sim_world_fail(w, "leak", "%s: %u of %u mbufs in use at the end", whose, used,
				   pool->size);
}

static void
check_leak_end(struct sim_world *w)
{
	uint32_t i;

	for (i = 0; i < w->nb_hosts; i++) {
		struct sim_host *h = &w->hosts[i];

		if (h->core != NULL && san_core_leaks(h->core) != 0)
			san_sim_world_fail(w, "leak",
					   "host %u: %" PRIu64 " things in use at the end", i,
					   san_core_leaks(h->core));
		if (h->pool != w->net.pool)
			check_leak_pool(w, "a host", h->pool);
	}
	if (rte_hash_count(w->cam) != 0)
		san_sim_world_fail(w, "leak", "%d entries in the CAM at the end",
				   rte_hash_count(w->cam));
	check_leak_pool(w, "the network", w->net.pool);
}

/* ---- RT-26: a connection with open requests makes progress while its path works ---- */

void
san_sim_check_sample(struct sim_world *w)
{
	uint32_t i;

	if (w->nb_blocking != 0)
		return;
	for (i = 0; i < w->load->nb_sides; i++) {
		const struct sim_side *s = &w->load->sides[i];
		uint64_t since = RTE_MAX(s->last_ns, w->unblocked_ns);

		if (s->innocent && s->nb_posted != s->nb_done && s->state == SIM_SIDE_UP &&
		    w->now_ns > since + w->conf.run.stall_ns)
			san_sim_world_fail(w, "progress",
					   "side %u: of %" PRIu64
					   " requests none is done for %" PRIu64 " ms",
					   i, s->nb_posted - s->nb_done,
					   (uint64_t)((w->now_ns - since) / SAN_NS_PER_MS));
	}
}

static void
check_progress_settled(struct sim_world *w)
{
	if (w->conf.run.silence_max_ns != 0 && w->longest_silence_ns > w->conf.run.silence_max_ns)
		san_sim_world_fail(w, "progress", "side %u stood still for %" PRIu64 " us",
				   w->silent_side,
				   (uint64_t)(w->longest_silence_ns / SAN_NS_PER_US));
}

/* Jain's index over the connections' bytes during the measurement. */
static void
check_fair_settled(struct sim_world *w)
{
	uint32_t jain = san_sim_report_jain(w);

	if (w->conf.run.jain_min_ppm != 0 && jain < w->conf.run.jain_min_ppm)
		san_sim_world_fail(w, "fair", "Jain's index is %u millionths, asked for are %u",
				   jain, w->conf.run.jain_min_ppm);
}

/* ---- all of them ---- */

void
san_sim_check_note(struct sim_world *w, const struct sim_note *n)
{
	if (!n->side->innocent)
		return;
	san_sim_check_order_note(w, n);
	check_bytes_note(w, n);
	check_complete_note(w, n);
	check_place_note(w, n);
}

void
san_sim_check_round(struct sim_world *w, struct sim_host *h)
{
	uint32_t every = w->conf.run.check_every;

	if (every == 0 || h->nb_rounds % every != 0)
		return;
	san_sim_check_grant_round(w, h);
	san_sim_check_pcb_round(w, h);
	/* the layers' own checks abort, and a failure is reported before that */
	if (!w->failed)
		san_core_check(h->core);
}

void
san_sim_check_settled(struct sim_world *w)
{
	if (w->failed)
		return;
	san_sim_check_order_settled(w);
	check_complete_settled(w);
	check_progress_settled(w);
	check_fair_settled(w);
}

void
san_sim_check_end(struct sim_world *w)
{
	if (w->failed)
		return;
	check_place_end(w);
	check_leak_end(w);
}
