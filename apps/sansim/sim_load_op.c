/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests: drawing, posting and completion; receives: posting and filling. */

#include "sim_world.h"

#define SLOT_BITS  16
#define POLL_BATCH 32
#define BAD_KEY    0x5a5a5a5a
#define RETRY_NS   (20 * SAN_NS_PER_US)

/* ---- drawing ---- */

static uint8_t
draw_kind(struct sim_world *w)
{
	const uint32_t *weights = w->conf.load.weights;
	uint32_t i, sum = 0, pick;

	for (i = 0; i < SIM_KINDS; i++)
		sum += weights[i];
	pick = san_prng_below(&w->load->prng, sum);
	for (i = 0; pick >= weights[i]; i++)
		pick -= weights[i];
	return (uint8_t)(RTSAN_WR_SEND + i);
}

/* Log-uniform: each order of magnitude is equally frequent. */
static uint32_t
draw_size(struct sim_world *w)
{
	uint32_t lo = w->conf.load.size_min, hi = w->conf.load.size_max;
	uint32_t octaves = 0, from;

	if (lo == hi)
		return lo;
	while (octaves < 31 && (uint64_t)lo << (octaves + 1) <= hi)
		octaves++;
	from = lo << san_prng_below(&w->load->prng, octaves + 1);
	return RTE_MIN(hi, from + san_prng_below(&w->load->prng, from));
}

static struct sim_op *
draw_op(struct sim_world *w, struct sim_side *s)
{
	struct sim_load *ld = w->load;
	uint16_t slot = s->free[--s->nb_free];
	struct sim_op *op = &s->ops[slot];

	*op = (struct sim_op){
		.seq = s->nb_posted++,
		.posted_ns = w->now_ns,
		.life = san_sim_load_peer(w, s)->life,
		.slot = slot,
		.posted = true,
		.op = s->stream ? RTSAN_WR_SEND : draw_kind(w),
	};
	op->len = san_wr_is_atomic(op->op) ? SAN_ULP_ATOMIC_LEN : draw_size(w);
	if (op->op == RTSAN_WR_SEND && !s->stream)
		op->len = RTE_MAX(op->len, (uint32_t)SIM_HEADER);
	op->slice = san_prng_below(&ld->prng, ld->block_bytes - ld->slot_bytes);
	op->bad = op->op != RTSAN_WR_SEND && w->conf.load.bad_ppm != 0 &&
		san_prng_below(&ld->prng, SIM_PPM) < w->conf.load.bad_ppm;
	return op;
}

/* ---- posting ---- */

/* Split the data into one to three elements at random places. */
static void
fill_parts(struct sim_world *w, struct san_ulp_wr *wr, uint8_t *at, uint32_t len)
{
	uint32_t parts = 1 + san_prng_below(&w->load->prng, 3);

	while (len > 0) {
		bool last = --parts == 0 || len == 1;
		uint32_t n = last ? len : 1 + san_prng_below(&w->load->prng, len - 1);

		wr->sge[wr->nb_sge++] = (struct rtsan_sge){.addr = at, .length = n};
		at += n;
		len -= n;
		if (last)
			return;
	}
}

static void
fill_wr(struct sim_world *w, struct sim_side *s, struct sim_op *op, struct san_ulp_wr *wr)
{
	static const uint8_t solicit[] = {
		[SIM_SOLICIT_ALWAYS] = RTSAN_WR_SOLICITED,
		[SIM_SOLICIT_NEVER] = RTSAN_WR_UNSOLICITED,
	};
	const struct sim_side *peer = san_sim_load_peer(w, s);
	uint64_t base = (uint64_t)(peer->id + 1) << 36; /* of the target's regions */

	*wr = (struct san_ulp_wr){
		.wr_id = op->seq << SLOT_BITS | op->slot,
		.op = op->op,
		.flags = RTSAN_WR_SIGNALED | solicit[w->conf.load.solicit],
		.length = op->len,
		.remote_addr = base +
			(uint64_t)(san_sim_load_slot(w, peer, op->slot) - peer->region),
		.rkey = peer->rkey,
		.imm = (uint32_t)op->seq,
	};
	switch (op->op) {
	case RTSAN_WR_SEND:
		if (!s->stream) {
			op->header[0] = op->seq;
			op->header[1] = (uint64_t)op->slice << 32 | op->len;
			wr->sge[wr->nb_sge++] =
				(struct rtsan_sge){.addr = op->header, .length = SIM_HEADER};
		}
		fill_parts(w, wr, w->load->block + op->slice,
			   op->len - (s->stream ? 0 : SIM_HEADER));
		break;
	case RTSAN_WR_PULL:
		wr->remote_addr = op->slice;
		wr->rkey = w->hosts[peer->host].rkey_block;
		memset(san_sim_load_own(w, s, op->slot) + op->len, SIM_GUARD_BYTE, SIM_GUARD);
		fill_parts(w, wr, san_sim_load_own(w, s, op->slot), op->len);
		break;
	case RTSAN_WR_FETCH_ADD:
	case RTSAN_WR_CMP_SWAP:
		wr->remote_addr = base;
		wr->rkey = peer->rkey_atomic;
		wr->operand = op->op == RTSAN_WR_FETCH_ADD ? 1 : UINT64_MAX; /* never matches */
		wr->sge[wr->nb_sge++] =
			(struct rtsan_sge){.addr = &op->result, .length = sizeof(op->result)};
		break;
	default:
		fill_parts(w, wr, w->load->block + op->slice, op->len);
		break;
	}
	if (op->bad)
		wr->rkey ^= BAD_KEY;
}

static bool
may_post(const struct sim_world *w, const struct sim_side *s)
{
	const struct sim_load *ld = w->load;

	if (ld->ending || !s->initiates || s->state != SIM_SIDE_UP || s->flushed)
		return false;
	return w->now_ns >= s->start_ns && w->now_ns < s->stop_ns && s->nb_free > 0 &&
		(w->conf.load.ops == 0 || s->nb_posted < w->conf.load.ops);
}

void
san_sim_load_op_post(struct sim_world *w, struct sim_side *s)
{
	struct sim_host *h = &w->hosts[s->host];
	uint64_t clock_ns = san_sim_host_clock(h, w->now_ns);
	struct san_ulp_wr wr;
	struct sim_op *op;

	while (may_post(w, s)) {
		if (s->nb_done == s->nb_posted)
			s->last_ns = w->now_ns;
		op = draw_op(w, s);
		fill_wr(w, s, op, &wr);
		w->load->nb_pending += s->innocent;
		w->stats.nb_ops++;
		san_sim_check_note(w, SIM_NOTE_POSTED, s, op, NULL);
		if (san_core_post(h->core, s->qp, &wr, 1, clock_ns) == 1) {
			if (s->stream)
				san_sim_load_stream_sent(w, s, op->slice, op->len);
			continue;
		}
		if (!s->stream)
			san_sim_fail_side(w, s, "complete", "a request is not taken");
		/* a stream still queues data after it was copied and completed */
		op->posted = false;
		s->free[s->nb_free++] = op->slot;
		s->nb_posted--;
		w->load->nb_pending -= s->innocent;
		w->stats.nb_ops--;
		san_sim_world_at(w, w->now_ns + RETRY_NS, SIM_EV_LOAD, s->id, SIM_LOAD_POST, NULL);
		break;
	}
}

/* ---- receives ---- */

void
san_sim_load_op_take_recv(struct sim_world *w, struct sim_side *s, const struct san_ulp_recv *r)
{
	struct sim_host *h = &w->hosts[s->host];

	if (san_core_post_recv(h->core, s->qp, r, 1, san_sim_host_clock(h, w->now_ns)) != 1)
		san_sim_fail_side(w, s, "complete", "a receive is not taken");
	else
		s->nb_recvs++;
}

void
san_sim_load_op_post_recv(struct sim_world *w, struct sim_side *s, uint32_t slot, uint32_t epoch)
{
	struct san_ulp_recv r = {.wr_id = slot};

	if (epoch != s->recv_epoch || s->state == SIM_SIDE_IDLE || s->state == SIM_SIDE_OVER ||
	    w->hosts[s->host].lie == SIM_LIE_REFUSE)
		return; /* all are posted again with the next connection */
	if (s->stream) {
		san_sim_load_stream_receive(w, s);
		return;
	}
	if (s->recv != NULL) {
		r.nb_sge = 1;
		r.sge[0].addr = san_sim_load_recv(w, s, slot);
		r.sge[0].length = san_sim_load_recv_bytes(w);
	}
	san_sim_load_op_take_recv(w, s, &r);
}

void
san_sim_load_op_post_recvs(struct sim_world *w, struct sim_side *s)
{
	uint32_t i;

	/* after a failed attempt to connect either all receives are still posted or none */
	if (s->region == NULL || s->nb_recvs != 0)
		return;
	s->recv_epoch++;
	for (i = 0; i < w->conf.load.depth; i++)
		san_sim_load_op_post_recv(w, s, i, s->recv_epoch);
}

bool
san_sim_load_op_recv_later(struct sim_world *w, const struct sim_side *s, uint32_t slot)
{
	uint64_t delay = w->conf.load.recv_delay_ns;

	if (delay == 0)
		return false;
	delay = 1 + san_prng_u64(&w->load->prng) % delay;
	san_sim_world_at(w, w->now_ns + delay, SIM_EV_LOAD, s->id, SIM_LOAD_RECV,
			 (void *)(uintptr_t)((uint64_t)s->recv_epoch << SLOT_BITS | slot));
	return true;
}

static void
load_op_on_recv(struct sim_world *w, struct sim_side *s, const struct san_ulp_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;

	if (s->stream) {
		san_sim_load_stream_on_recv(w, s, wc);
		return;
	}
	s->nb_recvs--;
	if (wc->status == RTSAN_WC_FLUSHED)
		return;
	san_sim_check_note(w, SIM_NOTE_RECEIVED, s, NULL, wc);
	if (!san_sim_load_op_recv_later(w, s, slot))
		san_sim_load_op_post_recv(w, s, slot, s->recv_epoch);
}

/* ---- completions ---- */

static void
on_done(struct sim_world *w, struct sim_side *s, const struct san_ulp_wc *wc)
{
	uint32_t slot = wc->wr_id & ((1u << SLOT_BITS) - 1);
	uint64_t at_ns = w->now_ns - w->load_ns;
	bool is_measured = w->conf.load.ops != 0 ||
		(at_ns >= w->conf.run.warmup_ns && at_ns <= w->conf.run.duration_ns);
	struct sim_op *op;

	if (wc->op == RTSAN_WC_STREAM_WAIT) {
		san_sim_load_stream_on_wait(w, s, wc);
		return;
	}
	if (!s->initiates || slot >= w->conf.load.depth || !s->ops[slot].posted ||
	    s->ops[slot].seq != wc->wr_id >> SLOT_BITS) {
		san_sim_fail_side(w, s, "complete", "completion of %#lx, which is not posted",
				  (unsigned long)wc->wr_id);
		return;
	}
	op = &s->ops[slot];
	san_sim_check_note(w, SIM_NOTE_COMPLETED, s, op, wc);
	if (wc->status == SAN_ST_OK && is_measured) {
		s->bytes_done += op->len;
		san_hist_add(&w->load->hist, w->now_ns - op->posted_ns);
	}
	/* completions precede the event of the end; what is posted now is flushed at once */
	s->flushed |= wc->status >= RTSAN_WC_RETRY_EXC;
	if (wc->status != SAN_ST_OK) {
		s->nb_failed++;
		w->stats.nb_ops_failed++;
	}
	if (s->innocent && w->now_ns - s->last_ns > w->longest_silence_ns) {
		w->longest_silence_ns = w->now_ns - s->last_ns;
		w->silent_side = s->id;
	}
	s->nb_done++;
	s->last_ns = w->now_ns;
	w->load->last_done_ns = w->now_ns;
	w->load->nb_pending -= s->innocent;
	/* prepare the target's slot for the next request */
	if (op->op == RTSAN_WR_PUSH || op->op == RTSAN_WR_PUSH_IMM)
		memset(san_sim_load_slot(w, san_sim_load_peer(w, s), slot), SIM_POISON_BYTE,
		       op->len);
	op->posted = false;
	s->free[s->nb_free++] = (uint16_t)slot;
}

void
san_sim_load_op_completions(struct sim_world *w, struct sim_host *h)
{
	struct san_ulp_wc wc[POLL_BATCH];
	uint32_t i, n;

	while ((n = san_ulp_cq_poll(h->recv_cq, wc, POLL_BATCH)) != 0)
		for (i = 0; i < n && !w->failed; i++)
			load_op_on_recv(w, h->side_of_qp[SAN_QPN_INDEX(wc[i].qp)], &wc[i]);
	while ((n = san_ulp_cq_poll(h->send_cq, wc, POLL_BATCH)) != 0) {
		for (i = 0; i < n && !w->failed; i++)
			on_done(w, h->side_of_qp[SAN_QPN_INDEX(wc[i].qp)], &wc[i]);
		for (i = 0; i < n && !w->failed; i++)
			san_sim_load_op_post(w, h->side_of_qp[SAN_QPN_INDEX(wc[i].qp)]);
	}
}
