/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Long paths (RT-41). The incast budget is the amount that a switch port can queue. It would also
 * limit the rate of a path whose round trip is longer than the time to send the budget: 512 KiB per
 * millisecond are 4 Gb/s. But bytes on a long cable are in no queue, so they need not be counted in
 * the budget.
 *
 *   product   the highest recent rate of a path, times its round trip without a queue
 *   headroom  added to the product, so that the rate can grow
 *   room      product and headroom, less the path's part of the budget, proportional to its
 *             rate: this many bytes are charged to the path, not to the budget
 *
 * A path whose product fits into the budget has no room, so short paths queue no more than before.
 * No host can use the room of another.
 *
 * The headroom is half the product while the rate grows: a path is full after 16 round trips. Then
 * it is a quarter of the product, at most half the budget, because all of it may be in a queue.
 *
 * A peer that feigns a long round trip gets more room, in proportion to what it sends; it could
 * send that without a grant as well. All rooms together are at most path_bytes, and one host gets
 * at most what is left.
 *
 * Pulls from a host have a room of their own.
 */

#include "tl_priv.h"

#define RATE_SHIFT     20                           /* rates are in bytes per 2^20 ns */
#define GREW(new, old) ((new) > (old) + (old) / 16) /* grew by more than chance in a round trip */
#define RATE_NS        20000                        /* shortest time for which a rate is measured */

uint32_t
san_tl_path_left(const struct san_tl *tl, const struct san_tl_path *p)
{
	uint32_t most = RTE_MIN(p->room, tl->conf.path_bytes - tl->path_used);

	return most > p->charged ? most - p->charged : 0;
}

/*
 * *p* has changed: update path_used. *before* is what it had in the budget. Returns the change in
 * the budget.
 */
static int64_t
tl_path_move_sum(struct san_tl *tl, const struct san_tl_path *p, int64_t added, uint32_t before)
{
	int64_t of_budget = (int64_t)san_tl_path_over(p) - before;

	tl->path_used = (uint32_t)(tl->path_used + added - of_budget);
	tl->stats.path_high = RTE_MAX(tl->stats.path_high, tl->path_used);
	return of_budget;
}

static void
set_room(struct san_tl *tl, struct san_tl_path *p, uint32_t room)
{
	tl->path_room += (int64_t)room - p->room;
	p->room = room;
}

/** san_tl_path_add() of a path that has room beside the budget. */
static __rte_noinline int64_t
add_in_room(struct san_tl *tl, struct san_tl_path *p, int64_t bytes)
{
	uint32_t before = san_tl_path_over(p), left = tl->conf.path_bytes - tl->path_used;

	/* Other paths may have taken what this one had room for. */
	if (bytes > 0 && p->room > (uint64_t)p->charged + left)
		set_room(tl, p, p->charged + left);
	p->charged = (uint32_t)(p->charged + bytes);
	/* Excess room shrinks by the bytes that return, so the budget is never exceeded. */
	if (bytes < 0 && p->room > p->want)
		set_room(tl, p, p->room - (uint32_t)RTE_MIN(-bytes, (int64_t)p->room - p->want));
	return tl_path_move_sum(tl, p, bytes, before);
}

int64_t
san_tl_path_add(struct san_tl *tl, const struct san_tl_charge *ch, int64_t bytes)
{
	struct san_tl_path *p = san_tl_path_of(tl, ch->slot, ch->granted);

	if (unlikely(p->room != 0))
		return add_in_room(tl, p, bytes);
	p->charged = (uint32_t)(p->charged + bytes);
	return bytes;
}

/* Usable budget: connections get at most a quarter each while others wait. */
static uint64_t
tl_path_usable(const struct san_tl *tl, bool granted)
{
	if (!granted)
		return san_tl_admit_pull_part(tl->budget_bytes);
	return tl->nb_admit < 2 || tl->nb_admit > 3 ?
		tl->budget_bytes :
		(uint64_t)tl->budget_bytes / 4 * tl->nb_admit;
}

/* Bytes per 2^20 ns: this sample, or a better recent one. */
static uint32_t
tl_path_best_bytes(uint32_t rate, uint64_t bytes, uint64_t ns)
{
	uint64_t sample = (bytes << RATE_SHIFT) / ns;

	return (uint32_t)RTE_MIN(RTE_MAX(sample, rate - rate / 8), (uint64_t)UINT32_MAX);
}

/* After a rate was measured: number of bytes that should be on the path, outside the budget. */
static uint32_t
tl_path_wanted(struct san_tl *tl, struct san_tl_path *p, bool granted, uint64_t now_ns)
{
	uint64_t ns = now_ns - p->since_ns, bytes, share;
	uint32_t old = p->rate;

	p->rate = tl_path_best_bytes(old, p->arrived, ns);
	tl->rate = RTE_MAX(tl_path_best_bytes(tl->rate, tl->use - p->since_use, ns), p->rate);
	/*
	 * The first round trip was measured during the setup, and may include the queue of many
	 * setups.
	 */
	if (old == 0 || p->rate == 0)
		return 0;
	bytes = (p->rate * p->rtt_ns) >> RATE_SHIFT;
	bytes += GREW(p->rate, old) ? bytes / 2 :
				      RTE_MIN(bytes / 4, (uint64_t)tl->budget_bytes / 2);
	share = tl_path_usable(tl, granted) * p->rate / tl->rate;
	return (uint32_t)(bytes > share ? RTE_MIN(bytes - share, tl->conf.path_bytes / 2ull) : 0);
}

static void
fit_room(struct san_tl *tl, struct san_tl_path *p, bool granted)
{
	uint32_t before = san_tl_path_over(p);
	uint32_t grow = tl->conf.path_bytes - tl->path_used;
	int64_t of_budget;

	if (p->want > p->room)
		set_room(tl, p, p->room + RTE_MIN(p->want - p->room, grow));
	else if (p->charged < p->room)
		set_room(tl, p, RTE_MAX(p->want, p->charged));
	of_budget = tl_path_move_sum(tl, p, 0, before);
	tl->budget_used = (uint32_t)(tl->budget_used + of_budget);
	if (!granted)
		tl->pulled_used = (uint32_t)(tl->pulled_used + of_budget);
}

void
san_tl_path_use(struct san_tl *tl, const struct san_tl_charge *ch, uint32_t bytes, uint64_t now_ns)
{
	struct san_tl_path *p = san_tl_path_of(tl, ch->slot, ch->granted);
	uint64_t rtt_ns = tl->pdl->conns[ch->slot].rtt.base_ns;

	p->arrived += bytes;
	/*
	 * The shortest round trip counts: a connection that measured a queue must not lengthen the
	 * path.
	 */
	if (rtt_ns != 0)
		p->rtt_ns = p->rtt_ns != 0 ? RTE_MIN(p->rtt_ns, rtt_ns) : rtt_ns;
	if (likely(now_ns < p->since_ns + RTE_MAX(p->rtt_ns, RATE_NS)) || p->rtt_ns == 0 ||
	    p->arrived == 0)
		return;
	if (p->since_ns != 0) {
		p->want = tl_path_wanted(tl, p, ch->granted, now_ns);
		fit_room(tl, p, ch->granted);
	}
	p->arrived = 0;
	p->rtt_ns = 0;
	p->since_ns = now_ns;
	p->since_use = tl->use;
}

void
san_tl_path_end(struct san_tl *tl, struct san_tl_path *p)
{
	SAN_VERIFY(p->charged == 0);
	set_room(tl, p, 0);
}
