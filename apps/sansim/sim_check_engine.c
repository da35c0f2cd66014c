/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Invariants of an engine's state.
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

#include <inttypes.h>
#include <stdlib.h>

#include <rte_common.h>

#include "san_assert.h"
#include "sim_world.h"

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
	const struct san_tl_rxn *r = TAILQ_FIRST(&tc->grants); /* the others are granted after it */
	uint32_t piece = RTE_MIN(tl->conf.budget_bytes / 8, tl->conf.grant_bytes / 2);
	uint32_t least_left = RTE_MIN(piece, PIECE_BYTES);

	if (w->conf.load.weights[RTSAN_WR_PULL - RTSAN_WR_SEND] != 0 ||
	    w->conf.load.streams_ppm != 0)
		least_left = 1;
	if (r != NULL && r->granted != 0 && r->length - r->granted < least_left)
		san_sim_world_fail(w, "grant", "host %u: all but %u bytes of %u granted", h->id,
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
		san_sim_world_fail(w, "grant",
				   "host %u: %u bytes expired of one peer; the bound is %" PRIu64,
				   h->id, peer->expired, bound);
	if (peer->paths[true].room > path || peer->paths[false].room > path)
		san_sim_world_fail(w, "grant",
				   "host %u: a path has room for %u and %u bytes beyond "
				   "the budget; it holds %" PRIu64,
				   h->id, peer->paths[true].room, peer->paths[false].room, path);
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
		TAILQ_FOREACH(r, &tc->rxns, all_link) {
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

void
san_sim_check_grant_round(struct sim_world *w, struct sim_host *h)
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
		san_sim_world_fail(w, "grant",
				   "host %u: %" PRIu64
				   " bytes granted, %u counted; the budget is %u",
				   h->id, sum, tl->budget_used, tl->conf.budget_bytes);
	if (path > tl->conf.path_bytes)
		san_sim_world_fail(w, "grant",
				   "host %u: %" PRIu64
				   " bytes granted beyond the budget, at most %u",
				   h->id, path, tl->conf.path_bytes);
	if (expired > tl->expired_used)
		san_sim_world_fail(w, "grant", "host %u: %" PRIu64 " bytes expired, %u counted",
				   h->id, expired, tl->expired_used);
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
		san_sim_world_fail(w, "pcb", "host %u: connection %u has %u messages, limit %u",
				   h->id, c->slot, tl->conns[c->slot].nb_msgs, c->pcb.msg_limit);
	/* retransmissions need no room, and a smaller window takes nothing back (RULE-7) */
	if (b->cid == c->cid && c->pcb.inflight > b->inflight && c->nb_rtx == b->nb_rtx &&
	    c->pcb.inflight > vwin)
		san_sim_world_fail(w, "pcb", "host %u: connection %u has %u packets in flight, "
					     "virtual window %u",
				   h->id, c->slot, c->pcb.inflight, vwin);
}

void
san_sim_check_pcb_round(struct sim_world *w, struct sim_host *h)
{
	const struct san_pdl *pdl = san_core_pdl(h->core);
	struct sim_before *b = h->before;
	uint32_t slot, share, nb_active = 0;

	if (pdl->inflight > pdl->conf.budget_pkts)
		san_sim_world_fail(w, "pcb", "host %u: %u packets in flight, budget %u", h->id,
				   pdl->inflight, pdl->conf.budget_pkts);
	if (w->conf.run.check_every != 1)
		return;
	if (b == NULL)
		b = h->before = calloc(pdl->conf.max_conns, sizeof(*b));
	if (b == NULL)
		return;
	/* connections that stayed active: shares were at most those among them */
	for (slot = 0; slot < pdl->conf.max_conns; slot++)
		nb_active += pdl->conns[slot].state != SAN_CONN_FREE && pdl->conns[slot].active &&
			b[slot].active && b[slot].cid == pdl->conns[slot].cid;
	share = pdl->conf.budget_pkts / RTE_MAX(1u, nb_active);
	for (slot = 0; slot < pdl->conf.max_conns; slot++) {
		const struct san_pdl_conn *c = &pdl->conns[slot];

		if (c->state == SAN_CONN_OPEN)
			check_pcb_conn(w, h, c, &b[slot], share);
		b[slot] = (struct sim_before){
			.nb_rtx = c->nb_rtx,
			.cid = c->cid,
			.inflight = c->pcb.inflight,
			.active = c->active,
		};
	}
}
