/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory of the sublayer, opening and closing of connections, and dispatch of received packets, of
 * packets to send, and of timers.
 *
 * Timers of a connection, all on tl_deadline_ns of its pdl connection: the delay of an RNR; a
 * solicited send that waits for a receive; a pull that the ULP was not ready for; packets held for
 * too long; the expiry of an unused grant, while a connection waits for budget.
 */

#include <errno.h>
#include <string.h>

#include "tl_priv.h"

#define CLAIMS 3 /* per connection: see tl_rxn.c */

/* ---- construction ---- */

const char *const san_tl_policy_words[SAN_GRANT_MAX] = {
	[SAN_GRANT_RR] = "rr",
	[SAN_GRANT_SRPT] = "srpt",
};

void
san_tl_conf_default(struct san_tl_conf *conf)
{
	*conf = (struct san_tl_conf){
		.max_conns = 1024,
		.max_wide = 1024,
		.max_unordered = 1024,
		.max_refused = 4096,
		.max_txns = 16384,
		.max_rxns = 16384,
		.budget_bytes = 512u << 10, /* less than a port of a common switch can queue */
		.path_bytes = 1u << 30,     /* half of it for one host: 100 Gb/s for 40 ms */
		.expired_bytes = 1u << 20,
		.grant_bytes = 64u << 10,
		.solicit_len = 8u << 10,
		.solicit_level = 192,
		.policy = SAN_GRANT_RR,
		.max_held = 2048,
		.max_held_conn = 512,
		.rnr_delay_us = 100,
		.nacks_per_ms = 500, /* a twentieth of what 10 Gb/s carry */
	};
}

static bool
tl_conf_is_valid(const struct san_tl_conf *conf)
{
	return conf->max_conns >= 1 && conf->max_conns <= SAN_CONNS_MAX && conf->max_wide >= 1 &&
		conf->max_refused >= 1 && conf->max_txns >= 1 &&
		conf->budget_bytes >= 1 && conf->budget_bytes <= INT32_MAX &&
		conf->path_bytes <= INT32_MAX && conf->expired_bytes <= INT32_MAX &&
		conf->grant_bytes >= 1 && conf->nacks_per_ms >= 1 &&
		conf->policy < SAN_GRANT_MAX && conf->cam != NULL;
}

static int
alloc_pools(struct san_tl *tl)
{
	const struct san_tl_conf *conf = &tl->conf;
	uint32_t nb_rings = san_holders_nb_parts(conf->max_conns, conf->max_wide);
	struct san_mem *mem = conf->mem;

	tl->conns = san_mem_calloc(mem, conf->max_conns, sizeof(*tl->conns));
	tl->txns = san_mem_aligned(mem, (size_t)conf->max_txns * sizeof(*tl->txns));
	tl->extras = san_mem_calloc(mem, conf->max_txns, sizeof(*tl->extras));
	tl->rxns = san_mem_calloc(mem, conf->max_rxns, sizeof(*tl->rxns));
	tl->queues = san_mem_calloc(mem, conf->max_rxns, sizeof(*tl->queues));
	tl->rings = san_mem_calloc(mem, (size_t)nb_rings * SAN_TL_N_MAX, sizeof(*tl->rings));
	tl->memos = san_mem_calloc(mem, conf->max_unordered + 1, sizeof(*tl->memos));
	tl->refused = san_mem_calloc(mem, conf->max_refused, sizeof(*tl->refused));
	if (tl->conns == NULL || tl->extras == NULL ||
	    san_pool_create(&tl->free_txns, mem, tl->txns, conf->max_txns, sizeof(*tl->txns)) ||
	    san_pool_create(&tl->free_rxns, mem, tl->rxns, conf->max_rxns, sizeof(*tl->rxns)) ||
	    san_pool_create(&tl->free_queues, mem, tl->queues, conf->max_rxns,
			    sizeof(*tl->queues)) ||
	    san_pool_create(&tl->free_rings, mem, tl->rings, nb_rings,
			    SAN_TL_N_MAX * sizeof(*tl->rings)) ||
	    san_pool_create(&tl->free_memos, mem, tl->memos, conf->max_unordered,
			    sizeof(*tl->memos)) ||
	    san_pool_create(&tl->free_refused, mem, tl->refused, conf->max_refused,
			    sizeof(*tl->refused)))
		return -ENOMEM;
	return 0;
}

int
san_tl_create(const struct san_tl_conf *conf, struct san_pdl *pdl, struct san_death_row *death,
	      struct san_tl **out)
{
	struct san_tl *tl;
	uint32_t slot;

	if (!tl_conf_is_valid(conf))
		return -EINVAL;
	tl = san_mem_calloc(conf->mem, 1, sizeof(*tl));
	if (tl == NULL)
		return -ENOMEM;
	tl->conf = *conf;
	tl->conf.max_wide = RTE_MIN(conf->max_wide, conf->max_conns);
	tl->conf.max_unordered = RTE_MIN(conf->max_unordered, conf->max_conns);
	tl->conf.max_refused = RTE_MIN(conf->max_refused, conf->max_conns);
	/* The claims need this many, however few records were configured. */
	tl->conf.max_txns = conf->max_txns + tl->conf.max_wide;
	tl->conf.max_rxns = RTE_MAX(conf->max_rxns, CLAIMS * tl->conf.max_wide);
	if (conf->lend != NULL) {
		tl->conf.budget_bytes = conf->lend->total_bytes;
		/* The limit for a host is for all lcores together. */
		tl->conf.expired_bytes = (uint32_t)((uint64_t)conf->expired_bytes *
						    conf->lend->share_bytes /
						    conf->lend->total_bytes);
	}
	tl->conf.grant_bytes = RTE_MIN(conf->grant_bytes, tl->conf.budget_bytes);
	tl->pdl = pdl;
	tl->death = death;
	tl->cam = (struct san_cam){.hash = conf->cam, .engine = conf->engine};
	TAILQ_INIT(&tl->admit[0]);
	TAILQ_INIT(&tl->admit[1]);
	TAILQ_INIT(&tl->pull_wait);
	TAILQ_INIT(&tl->used_rxns);
	TAILQ_INIT(&tl->used_refused);
	TAILQ_INIT(&tl->want_record);
	TAILQ_INIT(&tl->want_first);
	TAILQ_INIT(&tl->want_budget);
	TAILQ_INIT(&tl->want_hosts);
	TAILQ_INIT(&tl->charges[0]);
	TAILQ_INIT(&tl->charges[1]);
	if (alloc_pools(tl) != 0 || san_tl_host_init(tl) != 0) {
		san_tl_destroy(tl);
		return -ENOMEM;
	}
	san_tl_lend_join(tl);
	for (slot = 0; slot < conf->max_conns; slot++)
		tl->conns[slot] = (struct san_tl_conn){.slot = (uint16_t)slot,
						       .queues = &tl->no_queues};
	*out = tl;
	return 0;
}

void
san_tl_destroy(struct san_tl *tl)
{
	struct san_mem *mem;

	if (tl == NULL)
		return;
	mem = tl->conf.mem;
	san_tl_lend_leave(tl);
	san_mem_end(mem, tl->buckets);
	san_mem_end(mem, tl->hosts);
	san_pool_destroy(&tl->free_refused, mem);
	san_mem_end(mem, tl->refused);
	san_pool_destroy(&tl->free_memos, mem);
	san_mem_end(mem, tl->memos);
	san_pool_destroy(&tl->free_rings, mem);
	san_mem_end(mem, tl->rings);
	san_pool_destroy(&tl->free_queues, mem);
	san_mem_end(mem, tl->queues);
	san_pool_destroy(&tl->free_rxns, mem);
	san_mem_end(mem, tl->rxns);
	san_pool_destroy(&tl->free_txns, mem);
	san_mem_end(mem, tl->extras);
	san_mem_end(mem, tl->txns);
	san_mem_end(mem, tl->conns);
	san_mem_end(mem, tl);
}

/* ---- connections ---- */

bool
san_tl_may_prepare(const struct san_tl *tl, bool ordered)
{
	return ordered || tl->free_memos.nb != 0;
}

void
san_tl_conn_prepare(struct san_tl *tl, uint16_t slot, bool ordered)
{
	struct san_tl_conn *tc = &tl->conns[slot];

	SAN_VERIFY(!tc->open && tc->memo == NULL && san_tl_may_prepare(tl, ordered));
	if (ordered)
		return;
	tc->memo = san_pool_take(&tl->free_memos);
	TAILQ_INIT(&tc->memo->ready);
	TAILQ_INIT(&tc->memo->wait);
	tc->memo->wait_due_ns = SAN_TIME_NEVER;
}

/* Release what the connection remembers of finished RSNs. */
static void
tl_forget_conn(struct san_tl *tl, struct san_tl_conn *tc)
{
	if (tc->memo != NULL) {
		memset(tc->memo, 0, sizeof(*tc->memo));
		san_pool_give(&tl->free_memos, tc->memo);
		tc->memo = NULL;
	}
	if (tc->refused != NULL)
		san_tl_nack_refused_forget(tl, tc);
}

void
san_tl_conn_open(struct san_tl *tl, uint16_t slot, const struct san_tl_peer *peer)
{
	struct san_pdl_conn *c = &tl->pdl->conns[slot];
	struct san_tl_conn *tc = &tl->conns[slot];
	uint32_t tx = peer->first_rsn_tx, rx = peer->first_rsn_rx;

	SAN_VERIFY(!tc->open && (tc->memo == NULL) == peer->ordered);
	*tc = (struct san_tl_conn){
		.peer = *peer,
		.slot = slot,
		.open = true,
		.memo = tc->memo,
		.txns = &tc->one,
		.rsn_base = tx,
		.rsn_next = tx,
		.ssn_base = tx,
		.ssn_next = tx,
		.adm_rsn = tx,
		.req_rsn = tx,
		.data_rsn = tx,
		.msg_rsn = tx,
		.rx_base = rx,
		.rx_ssn = rx,
		.ssn_queued = rx,
		.queues = &tl->no_queues,
	};
	tc->peer.n_tx = RTE_MIN(RTE_MAX(peer->n_tx, 1), SAN_TL_N_MAX);
	tc->peer.n_rx = RTE_MIN(RTE_MAX(peer->n_rx, 1), SAN_TL_N_MAX);
	tc->peer.relaxed = peer->relaxed && peer->ordered;
	tc->peer.ends = peer->ends && peer->ordered;
	TAILQ_INIT(&tc->aborts);
	san_tl_host_join(tl, tc);
	c->cmpl_out = rx;
	c->cmpl_in = tx;
	c->rnr_round_out = 0;
	c->tl_deadline_ns = SAN_TIME_NEVER;
}

void
san_tl_conn_close(struct san_tl *tl, uint16_t slot, uint8_t status, uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[slot];

	if (!tc->open) {
		tl_forget_conn(tl, tc);
		return;
	}
	tc->draining = true;
	san_tl_finish_close(tl, tc, status);
	san_tl_rxn_close_all(tl, tc);
	tl_forget_conn(tl, tc);
	san_tl_host_leave(tl, tc);
	tc->open = false;
	tl->pdl->conns[slot].tl_deadline_ns = SAN_TIME_NEVER;
	/* what it held is available to others now */
	san_tl_wake(tl);
	san_tl_admit_run(tl, now_ns);
}

bool
san_tl_has_own_work(const struct san_tl *tl, uint16_t slot)
{
	const struct san_tl_conn *tc = &tl->conns[slot];

	return tc->open && tc->rsn_base != tc->rsn_next;
}

bool
san_tl_is_drained(const struct san_tl *tl, uint16_t slot)
{
	const struct san_tl_conn *tc = &tl->conns[slot];

	return !tc->open || (tc->rsn_base == tc->rsn_next && tc->nb_rxns == 0);
}

/* ---- packets in ---- */

enum san_drop
san_tl_rx(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m, uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	enum san_drop drop;

	tl->now_ns = now_ns;
	if (unlikely(!tc->open))
		return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_STATE, now_ns);
	if (unlikely(san_wire_pkt(m)->w.flags & SAN_F_PIECE)) {
		m = san_tl_piece_rx(tl, c, m, now_ns, &drop);
		if (m == NULL)
			return drop;
	}
	switch (san_wire_pkt(m)->w.op) {
	case SAN_OP_PUSH_PACKED:
		if (unlikely(!tc->peer.pack)) /* not negotiated (RT-34) */
			return san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_OPCODE, now_ns);
		/* fallthrough */
	case SAN_OP_PUSH_UNSLCTD_DATA:
	case SAN_OP_PUSH_SLCTD_DATA:
		drop = san_tl_target_rx_push(tl, c, m, now_ns);
		break;
	case SAN_OP_PUSH_SLCTD_REQ:
	case SAN_OP_PULL_REQ:
	case SAN_OP_ATOMIC_REQ:
		drop = san_tl_target_rx_request(tl, c, m, now_ns);
		break;
	case SAN_OP_PUSH_GRNT:
		drop = san_tl_initiator_rx_grant(tl, c, m, now_ns);
		san_pdl_sched_kick(tl->pdl, c);
		break;
	case SAN_OP_PULL_DATA:
		drop = san_tl_initiator_rx_pull_data(tl, c, m, now_ns);
		san_pdl_sched_kick(tl->pdl, c);
		break;
	case SAN_OP_RESYNC:
		drop = san_tl_nack_rx_resync(tl, c, m, now_ns);
		san_tl_target_run_base(tl, tc, now_ns);
		san_pdl_sched_kick(tl->pdl, c);
		break;
	case SAN_OP_NACK:
		drop = san_tl_nack_rx(tl, c, &san_wire_pkt(m)->w, now_ns);
		san_tl_death_add(tl->death, m);
		san_pdl_sched_kick(tl->pdl, c);
		break;
	default:
		drop = san_tl_settle(tl, c, m, SAN_RX_REFUSED, SAN_DROP_OPCODE, now_ns);
		break;
	}
	if (tl->nb_admit != 0)
		san_tl_admit_run(tl, now_ns);
	return drop;
}

/* ---- packets out ---- */

bool
san_tl_tx_next(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_room *room,
	       struct san_pdl_entry *e, uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];
	uint32_t i;

	if (!tc->open)
		return false;
	/* These need only window room (RULE-7). */
	if (room->nb_data != 0 &&
	    (san_tl_nack_next_abort(tl, tc, e) || san_tl_solicit_next_grant(tl, tc, e))) {
		room->nb_data--;
		/* its grant is refused, so the base may move */
		if (unlikely(e->op == SAN_OP_PUSH_GRNT && e->status != SAN_ST_OK &&
			     tc->cur != NULL && tc->cur->rsn == e->rsn))
			san_tl_target_run_base(tl, tc, now_ns);
		return true;
	}
	if (room->nb_credit == 0)
		return false;
	if (tc->adm_rsn != tc->rsn_next)
		san_tl_initiator_admit(tl, c);
	if (san_tl_initiator_next_request(tl, c, room, e))
		return true;
	for (i = 0; room->nb_data != 0 && i < 2; i++) {
		bool pull = tc->turn;

		tc->turn = !pull;
		if (pull ? san_tl_pull_next(tl, c, e) : san_tl_initiator_next_push(tl, c, e)) {
			room->nb_data--;
			room->nb_credit--;
			return true;
		}
	}
	return false;
}

void
san_tl_tx_fill(struct san_tl *tl, struct san_pdl_conn *c, const struct san_pdl_entry *e,
	       struct rte_mbuf *m, struct san_wire_pkt *p)
{
	const struct san_tl_conn *tc = &tl->conns[c->slot];

	p->op = e->op;
	p->flags = e->flags;
	p->rsn = e->rsn;
	p->round = 0;
	if (unlikely(!tc->open)) { /* being released: the content of the PSN is freed */
		san_tl_initiator_fill_empty(e, p);
		return;
	}
	switch (e->op) {
	case SAN_OP_RESYNC:
		p->status = e->status;
		break;
	case SAN_OP_PUSH_GRNT:
		p->ssn = e->aux;
		p->offset = e->offset;
		p->status = e->status;
		break;
	case SAN_OP_PULL_DATA:
		san_tl_pull_fill(tl, e, m, p);
		break;
	case SAN_OP_PUSH_SLCTD_DATA:
	case SAN_OP_PUSH_UNSLCTD_DATA:
		san_tl_initiator_push_fill(tl, c, tc, e, m, p);
		break;
	case SAN_OP_PUSH_PACKED:
		san_tl_pack_fill(tl, c, tc, e, m, p);
		break;
	default:
		san_tl_initiator_request_fill(tl, tc, e, m, p);
		break;
	}
}

/* ---- time ---- */

void
san_tl_on_timer(struct san_tl *tl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[c->slot];

	if (!tc->open || now_ns < c->tl_deadline_ns)
		return;
	c->tl_deadline_ns = SAN_TIME_NEVER;
	san_tl_nack_rnr_timer(tl, tc, now_ns);
	san_tl_deadline(tl, tc, san_tl_nack_rnr_due_ns(tc));
	san_tl_solicit_grant_timer(tl, tc, now_ns);
	san_tl_rxn_held_timer(tl, tc, now_ns);
	san_tl_target_retry_pulls(tl, tc, now_ns);
	if (tc->want & SAN_WANT_BUDGET)
		san_tl_admit_set_expiry(tl, tc, now_ns);
	/* Expired grants make room for waiting connections in the tick that follows. */
}

void
san_tl_tick(struct san_tl *tl, uint64_t now_ns)
{
	san_tl_admit_expire(tl, now_ns);
	if (unlikely(tl->nb_scarce != tl->seen_scarce))
		san_tl_rxn_end_stale(tl, now_ns);
	if (unlikely(tl->nb_short != 0))
		san_tl_want_end_stale(tl, now_ns);
	if (tl->conf.lend != NULL)
		san_tl_lend_tick(tl, san_tl_admit_waits_for_budget(tl));
	san_tl_wake(tl);
	san_tl_target_wake_pulls(tl, now_ns);
	if (tl->nb_admit != 0)
		san_tl_admit_run(tl, now_ns);
}

void
san_tl_on_recv_posted(struct san_tl *tl, uint16_t slot, uint64_t now_ns)
{
	struct san_tl_conn *tc = &tl->conns[slot];

	if (!tc->open || !tc->grant_wait)
		return;
	san_tl_rxn_grant_wake(tl, tc);
	san_tl_admit_run(tl, now_ns);
}

/* ---- handover: see core.c ---- */

void
san_tl_park(struct san_tl *tl, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < tl->conf.max_conns; i++)
		if (tl->conns[i].open)
			san_tl_rxn_held_drop_all(tl, &tl->conns[i], SAN_DROP_HANDOVER, now_ns);
	san_tl_reorder_park(&tl->cam, tl->conf.mem);
}

int
san_tl_park_resume(struct san_tl *tl, const struct san_tl_conf *conf)
{
	tl->conf.cam = conf->cam;
	tl->conf.lend = conf->lend;
	return san_tl_reorder_resume(&tl->cam, tl->conf.mem, conf->cam);
}

/* ---- check ---- */

static void
check_charges(const struct san_tl *tl)
{
	const struct san_tl_charge *ch;
	uint64_t charged[2] = {0};
	int granted;

	for (granted = 0; granted < 2; granted++) {
		TAILQ_FOREACH(ch, &tl->charges[granted], link) {
			SAN_VERIFY(ch->listed && ch->charged != 0 && ch->granted == granted);
			charged[granted] += ch->charged;
		}
	}
	SAN_VERIFY(charged[0] + charged[1] == (uint64_t)tl->budget_used + tl->path_used);
	SAN_VERIFY(tl->path_used <= tl->conf.path_bytes);
	SAN_VERIFY(tl->limit_bytes <= tl->budget_bytes);
	SAN_VERIFY(tl->budget_bytes <= tl->conf.budget_bytes);
	SAN_VERIFY(tl->budget_used <= tl->budget_bytes);
	SAN_VERIFY(tl->pulled_used == 0 || tl->pulled_used < tl->budget_bytes);
	SAN_VERIFY(tl->pulled_used <= charged[0] && tl->slow_used <= charged[1]);
}

void
san_tl_check(const struct san_tl *tl)
{
	uint32_t nb_txns = 0, nb_rxns = 0, nb_held = 0, nb_cam = 0, nb_admit = 0, nb_busy = 0;
	uint32_t nb_heads[2] = {0}, nb_pullers = 0, nb_rings = 0, nb_memos = 0, nb_refused = 0;
	uint32_t nb_waiting = 0, nb_short = 0, nb_queues = 0, slot;

	for (slot = 0; slot < tl->conf.max_conns; slot++) {
		const struct san_tl_conn *tc = &tl->conns[slot];

		SAN_VERIFY(tc->slot == slot);
		nb_busy += tc->nb_txns != 0 || (tc->want & SAN_WANT_PROMISED);
		nb_waiting += (tc->want & SAN_WANT_LISTED) != 0;
		nb_short += (tc->want & SAN_WANT_RECORDS) != 0;
		nb_memos += tc->memo != NULL;
		nb_refused += tc->refused != NULL;
		if (!tc->open) {
			SAN_VERIFY(tc->cur == NULL && tc->nb_pulling == 0);
			SAN_VERIFY(tc->queues == &tl->no_queues);
			SAN_VERIFY(tc->nb_txns == 0 && tc->nb_rxns == 0 && tc->nb_held == 0);
			continue;
		}
		if (tc->cur != NULL)
			nb_heads[tc->cur->solicited]++;
		nb_pullers += tc->nb_pulling != 0;
		nb_rings += tc->txn_mask != 0;
		san_tl_initiator_check(tl, tc);
		san_tl_rxn_check(tl, tc);
		nb_txns += tc->nb_txns;
		nb_rxns += tc->nb_rxns;
		nb_queues += tc->nb_rxns != 0;
		nb_held += tc->nb_held;
		nb_cam += tc->nb_cam_grant + tc->nb_cam_cmpl + tc->nb_ahead + tc->nb_solicit;
		nb_admit += tc->in_admit;
	}
	check_charges(tl);
	san_tl_host_check(tl);
	SAN_VERIFY(nb_txns + tl->free_txns.nb == tl->conf.max_txns);
	SAN_VERIFY(nb_busy == tl->nb_busy && nb_waiting == tl->nb_waiting);
	SAN_VERIFY(san_tl_nb_idle(tl) + tl->nb_promised <= tl->free_txns.nb);
	SAN_VERIFY(nb_short == tl->nb_short);
	SAN_VERIFY(nb_rings + tl->free_rings.nb == tl->free_rings.max);
	SAN_VERIFY(nb_memos + tl->free_memos.nb == tl->conf.max_unordered);
	SAN_VERIFY(nb_queues + tl->free_queues.nb == tl->conf.max_rxns);
	SAN_VERIFY(nb_refused + tl->free_refused.nb == tl->free_refused.max);
	SAN_VERIFY(nb_rxns + tl->free_rxns.nb == tl->conf.max_rxns);
	SAN_VERIFY(nb_held == tl->nb_held && nb_held <= tl->conf.max_held + SAN_TL_PIECES_MAX);
	SAN_VERIFY(nb_cam == tl->cam.nb_used);
	/* RT-26: heads of line find their records. */
	SAN_VERIFY(nb_heads[0] == tl->nb_heads[0] && nb_heads[1] == tl->nb_heads[1]);
	SAN_VERIFY(nb_pullers == tl->nb_pullers && tl->free_rxns.nb >= san_tl_rxn_nb_claims(tl));
	SAN_VERIFY(nb_admit == tl->nb_admit);
}
