/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The choice of the next grant (RT-13, RT-35; RULE-6).
 *
 * Hosts take turns, and within a host its connections do: a host with a thousand connections has
 * one share. All slow hosts (tl_admit.c) share one grant at a time, and other hosts do not wait for
 * them.
 *
 * The policy is round-robin or shortest remaining first. It chooses between connections. Within a
 * connection SSN order decides (RT-16).
 */

#include "tl_priv.h"

#define GRANT_MIN_BYTES (32u << 10) /* least grant, unless less is requested: each costs a packet */
#define SRPT_LOOK       64          /* connections that the search compares at most */
/* tries in a row that grant nothing: at most four connections hold a quarter of the budget each */
#define MISSES_MAX 8

static uint32_t
admit_remaining(const struct san_tl_queues *q)
{
	const struct san_tl_rxn *r = TAILQ_FIRST(&q->grants);

	return r->length - r->granted;
}

/* The connection of a list of hosts whose turn it is; NULL: none waits. */
static struct san_tl_conn *
pick_of(struct san_tl *tl, const struct san_tl_host_list *line, bool missed)
{
	const struct san_tl_host *h = TAILQ_FIRST(line);
	const struct san_tl_queues *q, *best;
	uint32_t n = 0;

	if (h == NULL)
		return NULL;
	best = TAILQ_FIRST(&h->admit);
	/* After a miss, hosts take turns: the shortest must not block the others. */
	if (tl->conf.policy == SAN_GRANT_RR || missed)
		return &tl->conns[best->slot];
	for (; h != NULL; h = TAILQ_NEXT(h, link)) {
		TAILQ_FOREACH(q, &h->admit, admit_link) {
			if (admit_remaining(q) < admit_remaining(best))
				best = q;
			if (++n == SRPT_LOOK)
				return &tl->conns[best->slot];
		}
	}
	return &tl->conns[best->slot];
}

static uint32_t
mtu_of(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	return RTE_MAX(tl->pdl->conns[tc->slot].mtu_max, 1);
}

/* Longest grant: at least a packet, because less could not be used. */
static uint32_t
step_most(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	return RTE_MAX(tl->conf.grant_bytes, mtu_of(tl, tc));
}

/*
 * Least room that is worth a grant. Budget returns packet by packet. If each part were granted at
 * once, there would be as many grants as data packets. For the same reason a grant leaves either
 * nothing of its request or at least this much. Otherwise the budget would hold hundreds of small
 * remainders, whose headers and probes would be as large as their data.
 */
static uint32_t
least_room(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	uint32_t left = admit_remaining(tc->queues);
	uint32_t piece = RTE_MIN(tl->budget_bytes / 8, step_most(tl, tc) / 2);

	piece = RTE_MIN(piece, GRANT_MIN_BYTES);
	return left / 2 < piece ? left : piece;
}

/*
 * Bytes that the head of the queue of *tc* may be granted now; 0: it must wait. They are whole
 * packets, unless they end the transaction.
 */
static uint32_t
admit_step_of(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	uint32_t mtu = mtu_of(tl, tc), least = least_room(tl, tc);
	uint32_t left = admit_remaining(tc->queues);
	uint32_t step = RTE_MIN(RTE_MIN(left, step_most(tl, tc)), san_tl_admit_grant_room(tl, tc));
	uint32_t most = tl->budget_bytes / 4 + tc->host->paths[true].room;

	if (san_tl_admit_any_granted(tl) && tl->nb_admit > 1)
		step = RTE_MIN(step, san_tl_admit_room_in(most, tc->charged));
	if (san_tl_admit_any_granted(tl) && step < least)
		return 0;
	if (step < left && least < left)
		step = RTE_MIN(step, left - least);
	if (step == left || (!san_tl_admit_any_granted(tl) && step < mtu))
		return step;
	return step - step % mtu;
}

/* The connection whose turn it is; NULL: none, or only slow hosts wait for their one grant. */
static inline struct san_tl_conn *
admit_pick(struct san_tl *tl, uint32_t misses)
{
	struct san_tl_conn *tc = NULL;

	if (unlikely(misses == 0 && tl->slow_used == 0 && !TAILQ_EMPTY(&tl->admit[1])))
		tc = pick_of(tl, &tl->admit[1], false);
	return tc != NULL ? tc : pick_of(tl, &tl->admit[0], misses != 0);
}

/* Bytes of the budget that must return before *tc* gets a grant; 0: it may get one now. */
static inline uint32_t
admit_lacks(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	/* Only a long path may have room when the budget is full. */
	if (tl->path_room != 0 || !san_tl_admit_any_granted(tl))
		return 0;
	return san_tl_admit_room_in(least_room(tl, tc), san_tl_admit_budget_room(tl));
}

uint32_t
san_tl_admit_quiet(struct san_tl *tl)
{
	const struct san_tl_conn *tc = admit_pick(tl, 0);

	return tc != NULL ? RTE_MAX(admit_lacks(tl, tc), 1u) - 1 : UINT32_MAX;
}

void
san_tl_admit_run(struct san_tl *tl, uint64_t now_ns)
{
	const struct san_tl_host *h;
	struct san_tl_conn *tc;
	uint32_t misses = 0, step;
	bool granted;

	while (tl->nb_admit > misses && misses < MISSES_MAX) {
		tc = admit_pick(tl, misses);
		if (tc == NULL || admit_lacks(tl, tc) != 0)
			break;
		step = admit_step_of(tl, tc);
		/* in both cases the connection goes to the end of the list */
		san_tl_admit_list(tl, tc, false);
		granted = step != 0 && san_tl_solicit_grant_one(tl, tc, step, now_ns);
		san_tl_admit_update(tl, tc);
		if (tc->host->in_admit) { /* so does its host */
			TAILQ_REMOVE(&tl->admit[tc->host->slow], tc->host, link);
			TAILQ_INSERT_TAIL(&tl->admit[tc->host->slow], tc->host, link);
		}
		/* a connection that has left the list waits for a receive: this is not a miss */
		misses = granted ? 0 : misses + tc->in_admit;
	}
	/*
	 * Waiting connections are woken when an unused grant expires, if not sooner. The timer of
	 * some connection serves all of them.
	 */
	h = TAILQ_FIRST(&tl->admit[0]);
	if (h == NULL)
		h = TAILQ_FIRST(&tl->admit[1]);
	if (h != NULL)
		san_tl_admit_set_expiry(tl, &tl->conns[TAILQ_FIRST(&h->admit)->slot], now_ns);
}
