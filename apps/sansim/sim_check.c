/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Invariants of a run, and when each is checked. A checker gets notes of what the programs see,
 * examines a host after its round, or judges the end of a run. It reports with
 * san_sim_world_fail(), which keeps the first failure, and changes nothing else.
 */

#include <inttypes.h>

#include <rte_hash.h>
#include <rte_mempool.h>

#include "san_assert.h"
#include "sim_world.h"

/*
 * ---- exactly once, and in order where the transport promises it (RT-14, RT-15, RT-30) ----
 *
 * What a target receives, what an initiator is notified of, and what atomics have changed.
 */

enum {
	SEQ_RECEIVABLE = 0x1, /* a send or a push with immediate */
	SEQ_RECEIVED = 0x2,
	SEQ_OK = 0x4, /* neither completed with an error, nor lost with its process */
};

static void
check_order_posted(struct sim_world *w, struct sim_order *o, const struct sim_op *op)
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
	o->seqs[op->seq] = san_wr_takes_recv(op->op) ? SEQ_RECEIVABLE : 0;
	o->adds_doubtful += op->op == RTSAN_WR_FETCH_ADD && !op->bad; /* not with a wrong key */
}

static void
check_old_value(struct sim_world *w, struct sim_side *s, const struct sim_op *op)
{
	bool add = op->op == RTSAN_WR_FETCH_ADD;
	struct sim_order *o = &s->order;
	uint64_t all = o->adds_ok + o->adds_doubtful;

	if (op->seq < o->adds_from)
		return; /* of a process that died after its answer */
	if (s->ordered && op->result < o->next_old)
		san_sim_fail_side(w, s, "order",
				  "atomic %" PRIu64 " saw %" PRIu64 " after %" PRIu64, op->seq,
				  op->result, o->next_old - 1);
	if (op->result + add > all)
		san_sim_fail_side(w, s, "order",
				  "atomic %" PRIu64 " saw %" PRIu64 " of %" PRIu64 " additions",
				  op->seq, op->result, all);
	o->next_old = RTE_MAX(o->next_old, op->result + add);
	o->adds_ok += add;
	o->adds_doubtful -= add;
}

static void
check_order_completed(struct sim_world *w, struct sim_side *s, const struct sim_op *op, bool ok)
{
	struct sim_order *o = &s->order;

	if (s->ordered && op->seq < o->nb_done)
		san_sim_fail_side(w, s, "order", "request %" PRIu64 " completed after %" PRIu64,
				  op->seq, o->nb_done - 1);
	o->nb_done = RTE_MAX(o->nb_done, op->seq + 1);
	o->seqs[op->seq] |= ok ? SEQ_OK : 0;
	if (ok && san_wr_is_atomic(op->op))
		check_old_value(w, s, op);
}

static void
check_order_received(struct sim_world *w, const struct sim_side *s, const struct san_ulp_wc *wc)
{
	struct sim_order *o = &san_sim_load_peer(w, s)->order;
	uint64_t seq = wc->imm; /* of the initiator */

	if (wc->op != RTSAN_WC_RECV_PUSH_IMM)
		memcpy(&seq, san_sim_load_recv(w, s, wc->wr_id), sizeof(seq));
	if (seq >= o->nb_seqs || (o->seqs[seq] & SEQ_RECEIVABLE) == 0) {
		san_sim_fail_side(w, s, "order", "received %" PRIu64 ", which was not sent", seq);
		return;
	}
	if ((o->seqs[seq] & SEQ_RECEIVED) != 0)
		san_sim_fail_side(w, s, "order", "received %" PRIu64 " twice", seq);
	if (s->ordered && seq < o->nb_received)
		san_sim_fail_side(w, s, "order", "received %" PRIu64 " after %" PRIu64, seq,
				  o->nb_received - 1);
	o->nb_received = RTE_MAX(o->nb_received, seq + 1);
	o->seqs[seq] |= SEQ_RECEIVED;
}

/* The target's counter is 0 again, and what the old process received is unknown. */
static void
check_order_restarted(struct sim_side *from)
{
	struct sim_order *o = &from->order;

	o->excused = o->adds_from = from->nb_posted;
	o->adds_ok = o->adds_doubtful = o->next_old = 0;
}

static void
check_order_settled(struct sim_world *w, const struct sim_side *s)
{
	const struct sim_order *o = &s->order;
	const struct sim_side *target = san_sim_load_peer(w, s);
	uint64_t seq, value;

	if (!s->initiates || s->stream || !s->innocent)
		return;
	value = target->counter;
	for (seq = o->excused; seq < s->nb_posted; seq++)
		if ((o->seqs[seq] & (SEQ_RECEIVABLE | SEQ_RECEIVED | SEQ_OK)) ==
		    (SEQ_RECEIVABLE | SEQ_OK))
			san_sim_fail_side(w, s, "order",
					  "%" PRIu64 " succeeded and was not received", seq);
	if (value < o->adds_ok || value > o->adds_ok + o->adds_doubtful)
		san_sim_fail_side(w, s, "order",
				  "counter %" PRIu64 ", additions %" PRIu64 " and perhaps %" PRIu64,
				  value, o->adds_ok, o->adds_doubtful);
}

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
	san_sim_fail_side(w, s, "bytes", "%s of %u bytes: byte %u is %#x instead of %#x", what, len,
			  i, got[i], want[i]);
}

static void
check_bytes_send(struct sim_world *w, const struct sim_side *s, const struct san_ulp_wc *wc)
{
	const uint8_t *data = san_sim_load_recv(w, s, wc->wr_id);
	uint64_t header[SIM_HEADER / 8];
	uint32_t slice, len;

	if (wc->byte_len < SIM_HEADER) {
		san_sim_fail_side(w, s, "bytes", "a send of %u bytes", wc->byte_len);
		return;
	}
	memcpy(header, data, sizeof(header));
	slice = (uint32_t)(header[1] >> 32);
	len = (uint32_t)header[1];
	if (len != wc->byte_len || slice > w->load->block_bytes - w->load->slot_bytes)
		san_sim_fail_side(w, s, "bytes", "a send of %u bytes says %u", wc->byte_len, len);
	else
		check_bytes_equal(w, s, "send", data + SIM_HEADER, slice, len - SIM_HEADER);
}

static void
check_bytes_received(struct sim_world *w, const struct sim_side *s, const struct san_ulp_wc *wc)
{
	const struct sim_side *from = san_sim_load_peer(w, s);
	const struct sim_op *op;

	if (wc->status != SAN_ST_OK)
		return;
	if (wc->op == RTSAN_WC_RECV) {
		check_bytes_send(w, s, wc);
		return;
	}
	/* a push with immediate is complete at the target before its initiator knows */
	for (op = from->ops; op < from->ops + w->conf.load.depth; op++)
		if (op->posted && (uint32_t)op->seq == wc->imm && op->life == s->life)
			check_bytes_equal(w, s, "push with immediate",
					  san_sim_load_slot(w, s, op->slot), op->slice, op->len);
}

static bool
is_push(const struct sim_op *op)
{
	return op->op == RTSAN_WR_PUSH || op->op == RTSAN_WR_PUSH_IMM;
}

/* Check the bytes of a request that succeeded. */
static void
check_bytes_completed(struct sim_world *w, const struct sim_side *s, const struct sim_op *op)
{
	const struct sim_side *peer = san_sim_load_peer(w, s);

	if (op->op == RTSAN_WR_PULL)
		check_bytes_equal(w, s, "pull", san_sim_load_own(w, s, op->slot), op->slice,
				  op->len);
	if (is_push(op) && op->life == peer->life)
		check_bytes_equal(w, s, "push", san_sim_load_slot(w, peer, op->slot), op->slice,
				  op->len);
}

/*
 * ---- every request completes once (RT-7, RT-23, RT-27) ----
 *
 * With success, or with a justified error. The end of a connection must be justified, too.
 * sim_load_op.c detects double completions when it polls.
 */

static bool
has_reason(struct sim_world *w, const struct sim_side *s, const struct sim_op *op, uint8_t status)
{
	bool ended = op->life != san_sim_load_peer(w, s)->life;

	switch (status) {
	case SAN_ST_OK:
		return !op->bad;
	case SAN_ST_ACCESS:
		return op->bad || ended;
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
check_complete_status(struct sim_world *w, struct sim_side *s, const struct sim_op *op,
		      uint8_t status)
{
	if (!has_reason(w, s, op, status))
		san_sim_fail_side(w, s, "complete", "%s %" PRIu64 "%s completed with %s",
				  san_sim_conf_kinds[op->op - RTSAN_WR_SEND], op->seq,
				  op->bad ? " of a wrong key" : "", san_ulp_status_name(status));
	s->nb_flushed += status >= RTSAN_WC_RETRY_EXC;
}

static void
check_complete_down(struct sim_world *w, struct sim_side *s)
{
	s->nb_flushed = 0;
	if (s->initiates && s->nb_done != s->nb_posted)
		san_sim_fail_side(w, s, "complete", "ended before %" PRIu64 " requests",
				  s->nb_posted - s->nb_done);
	/* receives posted now may still read what the peer of a stream sent */
	if (s->nb_recvs != 0 && !s->stream)
		san_sim_fail_side(w, s, "complete", "%u receives were not flushed", s->nb_recvs);
}

static void
check_complete_settled(struct sim_world *w, const struct sim_side *s)
{
	if (s->initiates && s->innocent && s->nb_done != s->nb_posted)
		san_sim_fail_side(w, s, "complete", "%" PRIu64 " of %" PRIu64 " requests completed",
				  s->nb_done, s->nb_posted);
	if (s->nb_flushed != 0)
		san_sim_fail_side(w, s, "complete", "flushed, but never disconnected");
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
		san_sim_fail_side(w, target, "place", "bytes around slot %u written %s", slot,
				  when);
	if (!is_all(p + used, w->load->slot_bytes - used, SIM_POISON_BYTE))
		san_sim_fail_side(w, target, "place", "bytes of slot %u written %s", slot, when);
}

static void
check_place_completed(struct sim_world *w, const struct sim_side *s, const struct sim_op *op)
{
	const struct sim_side *peer = san_sim_load_peer(w, s);
	/* an aborted request may be placed in part while the keys are valid */
	bool placed = op->life == peer->life && !op->bad;

	if (op->op == RTSAN_WR_PULL &&
	    !is_all(san_sim_load_own(w, s, op->slot) + op->len, SIM_GUARD, SIM_GUARD_BYTE))
		san_sim_fail_side(w, s, "place", "pull %" PRIu64 ": bytes behind it written",
				  op->seq);
	if (is_push(op))
		check_place_slot(w, peer, op->slot, placed ? op->len : 0,
				 placed ? "beyond the request" : "without a right to");
}

/*
 * ---- grants ----
 *
 * RT-13: bytes that a target has granted and not placed in order stay within its budget, except for
 * what long paths hold. No path has room for more than it can hold (RT-41).
 *
 * RT-35: expired bytes of a host stay within its bound, plus what it may have been granted before
 * it reached the bound, plus one grant per connection. They are counted from the records, not taken
 * from the protocol's counters.
 *
 * A grant leaves no remainder too small to be worth another grant, except with pulls or streams. If
 * the budget consisted of such small grants, the headers and retransmissions of so many connections
 * would double the load.
 */

#define BURST_PKTS  8
#define PIECE_BYTES (32u << 10) /* a remainder of this size is worth a grant */

/* Sums over the connections of one peer host. */
struct path_sums {
	uint64_t due;    /* bytes */
	uint64_t rtt_ns; /* the longest */
};

static void
check_crumbs(struct sim_world *w, const struct sim_host *h, const struct san_tl_conn *tc)
{
	const struct san_tl *tl = san_core_tl(h->core);
	/* the others are granted after it */
	const struct san_tl_rxn *r = TAILQ_FIRST(&tc->queues->grants);
	uint32_t piece = RTE_MIN(tl->conf.budget_bytes / 8, tl->conf.grant_bytes / 2);
	uint32_t least_left = RTE_MIN(piece, PIECE_BYTES);

	if (w->conf.load.weights[RTSAN_WR_PULL - RTSAN_WR_SEND] != 0 ||
	    w->conf.load.streams_ppm != 0)
		least_left = 1;
	if (r != NULL && r->granted != 0 && r->length - r->granted < least_left)
		san_sim_fail_host(w, h, "grant", "all but %u bytes of %u granted",
				  r->length - r->granted, r->length);
}

/*
 * The most that a path with this round-trip time has room for: what it can hold, or nothing if that
 * fits into the budget; the rest would be in a queue. The limit of all paths comes after that
 * comparison: of a long path it leaves half, however little that is (RT-41).
 */
static uint64_t
path_most(const struct sim_world *w, const struct san_tl *tl, uint64_t rtt_ns)
{
	uint64_t ns = rtt_ns + w->conf.host.poll_ns, most;

	/* one packet more or less per round trip matters on the shortest paths */
	most = w->conf.edge.rate_mbps * ns / 8000 * 2 + BURST_PKTS * w->conf.host.mtu;
	/* packets that arrive together after a fault look like any rate */
	if (w->conf.nb_faults != 0)
		most = UINT64_MAX;
	if (most <= tl->budget_bytes / 4 * 3) /* two hosts that wait get at most half of it each */
		return 0;
	return RTE_MIN(most, tl->conf.path_bytes / 2);
}

static void
check_peer(struct sim_world *w, const struct sim_host *h, const struct san_tl_host *peer,
	   const struct path_sums *seen)
{
	const struct san_tl *tl = san_core_tl(h->core);
	const struct san_tl_conf *conf = &tl->conf;
	uint64_t path = path_most(w, tl, seen->rtt_ns);
	uint64_t bound = (uint64_t)conf->expired_bytes + conf->budget_bytes + path +
		(uint64_t)peer->nb_conns * conf->grant_bytes;

	if (peer->expired > bound)
		san_sim_fail_host(w, h, "grant",
				  "%u bytes expired of one peer; the bound is %" PRIu64,
				  peer->expired, bound);
	if (peer->paths[true].room > path || peer->paths[false].room > path)
		san_sim_fail_host(w, h, "grant",
				  "a path that holds %" PRIu64 " has room for %u and %u bytes "
				  "beyond the budget",
				  path, peer->paths[true].room, peer->paths[false].room);
}

/* Collect the sums for each peer host. Returns all expired bytes. */
static uint64_t
check_grant_host(struct sim_world *w, const struct sim_host *h, struct path_sums *peers)
{
	const struct san_tl *tl = san_core_tl(h->core);
	const struct san_tl_conn *tc;
	const struct san_tl_rxn *r;
	struct path_sums *seen;
	uint64_t expired = 0;
	uint32_t slot, bytes;
	bool in_turn;

	for (slot = 0; slot < tl->conf.max_conns; slot++) {
		tc = &tl->conns[slot];
		if (!tc->open)
			continue;
		check_crumbs(w, h, tc);
		seen = &peers[tc->host - tl->hosts];
		seen->rtt_ns = RTE_MAX(seen->rtt_ns, tl->pdl->conns[slot].rtt.base_ns);
		TAILQ_FOREACH(r, &tc->queues->rxns, all_link) {
			/* those that may still arrive, also again: all but those placed in order */
			in_turn = !tc->peer.ordered || r->rsn == tc->rx_base;
			bytes = r->granted - (in_turn ? r->received : 0);
			if (!r->solicited || r->state == SAN_RXN_REFUSED ||
			    r->state == SAN_RXN_ABORTED)
				bytes = 0;
			seen->due += bytes - RTE_MIN(bytes, r->charge.expired);
			expired += r->charge.expired;
		}
	}
	return expired;
}

static void
check_grant_round(struct sim_world *w, struct sim_host *h)
{
	const struct san_tl *tl = san_core_tl(h->core);
	struct path_sums *peers = calloc(tl->conf.max_conns, sizeof(*peers));
	uint64_t sum = 0, path = 0, expired, room;
	uint32_t i;

	SAN_VERIFY(peers != NULL);
	expired = check_grant_host(w, h, peers);
	for (i = 0; i < tl->conf.max_conns; i++) {
		check_peer(w, h, &tl->hosts[i], &peers[i]);
		room = RTE_MIN(peers[i].due, tl->hosts[i].paths[true].room);
		path += room;
		sum += peers[i].due - room;
	}
	free(peers);
	if (sum > tl->conf.budget_bytes || tl->budget_used > tl->conf.budget_bytes)
		san_sim_fail_host(w, h, "grant",
				  "%" PRIu64 " bytes granted, %u counted; the budget is %u", sum,
				  tl->budget_used, tl->conf.budget_bytes);
	if (path > tl->conf.path_bytes)
		san_sim_fail_host(w, h, "grant",
				  "%" PRIu64 " bytes granted beyond the budget, at most %u", path,
				  tl->conf.path_bytes);
	if (expired > tl->expired_used)
		san_sim_fail_host(w, h, "grant", "%" PRIu64 " bytes expired, %u counted", expired,
				  tl->expired_used);
}

/*
 * ---- PCB-2, PCB-3, PCB-4 ----
 *
 * Packets in flight are within the first window, the connection's share of the host's budget, and
 * that budget; messages are within their limit. The share is recomputed from the active
 * connections, where every round is checked.
 */

static void
check_pcb_conn(struct sim_world *w, const struct sim_host *h, const struct san_pdl_conn *c,
	       const struct sim_before *b, uint32_t share)
{
	const struct san_tl *tl = san_core_tl(h->core);
	uint32_t vwin = RTE_MAX(1u, RTE_MIN(c->pcb.first_win - 1u, share));

	if (tl->conns[c->slot].open && tl->conns[c->slot].nb_msgs > c->pcb.msg_limit)
		san_sim_fail_host(w, h, "pcb", "connection %u has %u messages, limit %u", c->slot,
				  tl->conns[c->slot].nb_msgs, c->pcb.msg_limit);
	/* retransmissions need no room, and a smaller window takes nothing back (RULE-7) */
	if (b->cid == c->cid && c->pcb.inflight > b->inflight && c->nb_rtx == b->nb_rtx &&
	    c->pcb.inflight > vwin)
		san_sim_fail_host(w, h, "pcb",
				  "connection %u has %u packets in flight, virtual window %u",
				  c->slot, c->pcb.inflight, vwin);
}

/* The packet at the start of a window, if it is in flight; else 0. */
static uint64_t
oldest_of(const struct san_pdl_conn *c, enum san_win win)
{
	const struct san_pdl_txw *tx = &c->tx[win];

	if (c->state == SAN_CONN_FREE || c->txb == NULL || tx->base == tx->next)
		return 0;
	return san_bitmap_test(&c->txb->flight[win], tx->base) ? UINT64_C(1) << 32 | tx->base : 0;
}

/* True if a packet was in flight all the time since the last round. */
static bool
stayed_active(const struct san_pdl_conn *c, const struct sim_before *b)
{
	uint64_t req = oldest_of(c, SAN_WIN_REQ), data = oldest_of(c, SAN_WIN_DATA);

	return c->cid == b->cid && c->nb_rtx == b->nb_rtx &&
		((req != 0 && req == b->oldest[SAN_WIN_REQ]) ||
		 (data != 0 && data == b->oldest[SAN_WIN_DATA]));
}

void
san_sim_check_pcb_round(struct sim_world *w, struct sim_host *h)
{
	const struct san_pdl *pdl = san_core_pdl(h->core);
	struct sim_before *b = h->before;
	uint32_t slot, share, nb_active = 0;

	if (pdl->inflight > pdl->conf.budget_pkts)
		san_sim_fail_host(w, h, "pcb", "%u packets in flight, budget %u", pdl->inflight,
				  pdl->conf.budget_pkts);
	if (w->conf.run.check_every != 1)
		return;
	if (b == NULL)
		b = h->before = calloc(pdl->conf.max_conns, sizeof(*b));
	if (b == NULL)
		return;
	/* shares were at most those among the connections that stayed active */
	for (slot = 0; slot < pdl->conf.max_conns; slot++)
		nb_active += stayed_active(&pdl->conns[slot], &b[slot]);
	share = pdl->conf.budget_pkts / RTE_MAX(1u, nb_active);
	for (slot = 0; slot < pdl->conf.max_conns; slot++) {
		const struct san_pdl_conn *c = &pdl->conns[slot];

		if (c->state == SAN_CONN_OPEN)
			check_pcb_conn(w, h, c, &b[slot], share);
		b[slot] = (struct sim_before){
			.nb_rtx = c->nb_rtx,
			.cid = c->cid,
			.inflight = c->pcb.inflight,
			.oldest = {oldest_of(c, SAN_WIN_REQ), oldest_of(c, SAN_WIN_DATA)},
		};
	}
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
			san_sim_fail_side(w, s, "progress",
					  "of %" PRIu64 " requests none is done for %" PRIu64 " ms",
					  s->nb_posted - s->nb_done,
					  (uint64_t)((w->now_ns - since) / SAN_NS_PER_MS));
	}
}

/* ---- all of them ---- */

void
san_sim_check_note(struct sim_world *w, enum sim_note note, struct sim_side *s,
		   const struct sim_op *op, const struct san_ulp_wc *wc)
{
	if (!s->innocent)
		return;
	switch (note) {
	case SIM_NOTE_POSTED:
		if (!s->stream) /* bytes of a stream are checked in sim_load_stream.c */
			check_order_posted(w, &s->order, op);
		break;
	case SIM_NOTE_COMPLETED:
		if (!s->stream)
			check_order_completed(w, s, op, wc->status == SAN_ST_OK);
		if (wc->status == SAN_ST_OK)
			check_bytes_completed(w, s, op);
		check_complete_status(w, s, op, wc->status);
		check_place_completed(w, s, op);
		break;
	case SIM_NOTE_RECEIVED:
		check_order_received(w, s, wc);
		check_bytes_received(w, s, wc);
		break;
	case SIM_NOTE_BROKEN:
		if (!san_sim_fault_may_break(w, s))
			san_sim_fail_side(w, s, "complete", "its connection broke without cause");
		break;
	case SIM_NOTE_DOWN:
		check_complete_down(w, s);
		break;
	case SIM_NOTE_RESTARTED:
		s->nb_flushed = 0;
		check_order_restarted(san_sim_load_peer(w, s));
		break;
	}
}

void
san_sim_check_round(struct sim_world *w, struct sim_host *h)
{
	uint32_t every = w->conf.run.check_every;

	if (every == 0 || h->nb_rounds % every != 0)
		return;
	check_grant_round(w, h);
	san_sim_check_pcb_round(w, h);
	/* the layers' own checks abort, and a failure is reported before that */
	if (!w->failed)
		san_core_check(h->core);
}

void
san_sim_check_settled(struct sim_world *w)
{
	uint32_t i, jain;

	if (w->failed)
		return;
	for (i = 0; i < w->load->nb_sides; i++) {
		check_order_settled(w, &w->load->sides[i]);
		check_complete_settled(w, &w->load->sides[i]);
	}
	if (w->conf.run.silence_max_ns != 0 && w->longest_silence_ns > w->conf.run.silence_max_ns)
		san_sim_world_fail(w, "progress", "side %u stood still for %" PRIu64 " us",
				   w->silent_side,
				   (uint64_t)(w->longest_silence_ns / SAN_NS_PER_US));
	jain = san_sim_report_jain(w);
	if (w->conf.run.jain_min_ppm != 0 && jain < w->conf.run.jain_min_ppm)
		san_sim_world_fail(w, "fair", "Jain's index is %u millionths, asked for are %u",
				   jain, w->conf.run.jain_min_ppm);
}

void
san_sim_check_end(struct sim_world *w)
{
	uint32_t i, k;

	if (w->failed)
		return;
	for (i = 0; i < w->load->nb_sides; i++)
		for (k = 0; w->load->sides[i].region != NULL && k < w->conf.load.depth; k++)
			check_place_slot(w, &w->load->sides[i], k, 0, "after the end");
	for (i = 0; i < w->nb_hosts; i++) {
		struct sim_host *h = &w->hosts[i];

		if (h->core != NULL && san_core_leaks(h->core) != 0)
			san_sim_fail_host(w, h, "leak", "%" PRIu64 " things in use at the end",
					  san_core_leaks(h->core));
		if (h->pool != w->net.pool)
			check_leak_pool(w, "a host", h->pool);
	}
	if (rte_hash_count(w->cam) != 0)
		san_sim_world_fail(w, "leak", "%d entries in the CAM at the end",
				   rte_hash_count(w->cam));
	check_leak_pool(w, "the network", w->net.pool);
}
