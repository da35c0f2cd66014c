/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a submitted request may have to wait for, and which connection is next when that is released
 * (RT-13, RT-26; RULE-6).
 *
 *   own     one of the connection's own transactions must finish: it has N of them, or
 *           its pulls have expired
 *   record  a record of the initiator, and room for it in a ring. A connection with
 *           nothing outstanding has room. For max_wide of them at once a record is
 *           reserved, so that connections with many records cannot block them. Others
 *           wait in a list of their own
 *   budget  for one more pull; a connection always has its first one
 *
 * Records and budget go to the connection that has waited longest. A released record is promised to
 * it: otherwise the releasing connection would take it again. A connection with nothing outstanding
 * and a promised record counts as if it had something outstanding. Of the connections that wait for
 * budget, only the first may try, when its pull fits.
 *
 * A connection takes its record before it waits for budget. Otherwise two connections could take
 * from each other in turn forever. No connection is on both lists. One that waits for something of
 * its own is on neither: it would keep others from what they could use.
 */

#include "tl_priv.h"

#define PATH_LOOK 8 /* connections of the list that are checked at most */

/* What *req* has to wait for, enum san_tl_want; 0: nothing. */
static uint8_t
want_reason_of(const struct san_tl *tl, const struct san_tl_conn *tc, const struct san_tl_req *req)
{
	const struct san_tl_conn *first = TAILQ_FIRST(&tl->want_budget);

	if (tc->rsn_next - tc->rsn_base >= tc->peer.n_tx)
		return SAN_WANT_OWN;
	if (tc->nb_txns == 0)
		return san_tl_has_first(tl) || (tc->want & SAN_WANT_PROMISED) ? 0 :
										SAN_WANT_FIRST;
	if ((!(tc->want & SAN_WANT_PROMISED) && san_tl_nb_common(tl) == 0) ||
	    !san_tl_has_ring(tl, tc))
		return SAN_WANT_RECORD;
	if (req->type != SAN_TL_PULL || tc->nb_pulls == 0)
		return 0;
	if (tc->expired_pulled != 0 || req->length > san_tl_admit_pull_most(tl))
		return SAN_WANT_OWN;
	/* Room of its path counts only if no other connection waits for it (RT-41). */
	if (req->length <= san_tl_path_left(tl, &tc->host->paths[false]))
		return 0;
	if ((first != NULL && first != tc) || req->length > san_tl_admit_pull_room(tl, tc))
		return SAN_WANT_BUDGET;
	return 0;
}

/* The list of those that wait for *why*; NULL: there is none. */
static struct san_tl_conns *
want_line_of(struct san_tl *tl, uint8_t why)
{
	if (why & SAN_WANT_RECORD)
		return &tl->want_record;
	if (why & SAN_WANT_FIRST)
		return &tl->want_first;
	return why & SAN_WANT_BUDGET ? &tl->want_budget : NULL;
}

/* Leave lists and give up promises, except for *keep*. */
static void
want_leave_line(struct san_tl *tl, struct san_tl_conn *tc, uint8_t keep)
{
	uint8_t left = tc->want & (uint8_t)~keep;
	struct san_tl_conns *line = want_line_of(tl, left);

	if (line != NULL) {
		TAILQ_REMOVE(line, tc, want_link);
		tl->nb_waiting--;
	}
	if (left & SAN_WANT_PROMISED) {
		tl->nb_promised--;
		tl->nb_busy -= tc->nb_txns == 0;
	}
	tc->want &= keep;
}

static void
want_promise_turn(struct san_tl *tl, struct san_tl_conn *tc)
{
	if (tc->want & SAN_WANT_PROMISED)
		return;
	tl->nb_promised++;
	tl->nb_busy += tc->nb_txns == 0;
	tc->want |= SAN_WANT_PROMISED;
}

static void
want_call_conn(struct san_tl *tl, const struct san_tl_conn *tc)
{
	san_tl_ulp_room(tl->conf.ulp, tc->slot);
}

bool
san_tl_want(struct san_tl *tl, struct san_tl_conn *tc, const struct san_tl_req *req,
	    uint64_t now_ns)
{
	uint8_t why = want_reason_of(tl, tc, req);
	uint8_t had = tc->want;
	struct san_tl_conns *line;

	if (likely((why | had) == 0))
		return false;
	want_leave_line(tl, tc, why == SAN_WANT_BUDGET ? why | SAN_WANT_PROMISED : why);
	tc->want_bytes = req->length;
	line = want_line_of(tl, why);
	if (line != NULL && !(tc->want & why)) {
		TAILQ_INSERT_TAIL(line, tc, want_link);
		tl->nb_waiting++;
	}
	tc->want |= why;
	if (why == SAN_WANT_BUDGET) {
		want_promise_turn(tl, tc);
		/*
		 * Budget returns when data arrives, which wakes, or by expiry, which needs a timer.
		 */
		san_tl_admit_set_expiry(tl, tc, now_ns);
	}
	/* others may use what it gave up */
	if (why != 0 && had != tc->want)
		san_tl_wake(tl);
	return why != 0;
}

void
san_tl_want_end(struct san_tl *tl, uint16_t slot)
{
	want_leave_line(tl, &tl->conns[slot], 0);
	san_tl_wake(tl);
}

void
san_tl_want_wake_own(struct san_tl *tl, struct san_tl_conn *tc)
{
	if (!(tc->want & SAN_WANT_OWN) && !((tc->want & SAN_WANT_RECORD) && tc->nb_txns == 0) &&
	    !((tc->want & SAN_WANT_BUDGET) && tc->nb_pulls == 0))
		return;
	want_leave_line(tl, tc, SAN_WANT_PROMISED);
	want_call_conn(tl, tc);
}

/* Call those near the front of the budget list whose path has room outside the budget. */
static void
wake_paths(struct san_tl *tl)
{
	struct san_tl_conn *tc;
	uint32_t n = 0;

	TAILQ_FOREACH(tc, &tl->want_budget, want_link) {
		if (tc->want_bytes <= san_tl_path_left(tl, &tc->host->paths[false]))
			want_call_conn(tl, tc);
		if (++n == PATH_LOOK)
			return;
	}
}

void
san_tl_want_wake_waiting(struct san_tl *tl)
{
	struct san_tl_conn *tc;

	while ((tc = TAILQ_FIRST(&tl->want_budget)) != NULL && tc->expired_pulled != 0) {
		want_leave_line(tl, tc, 0);
		tc->want = SAN_WANT_OWN;
	}
	/* The connection keeps its place. Otherwise others would overtake it. */
	if (tc != NULL && tc->want_bytes <= san_tl_admit_pull_room(tl, tc))
		want_call_conn(tl, tc);
	if (unlikely(tl->path_room != 0))
		wake_paths(tl);
	/* these before connections with something outstanding, which continue anyway */
	while ((tc = TAILQ_FIRST(&tl->want_first)) != NULL && san_tl_has_first(tl)) {
		want_leave_line(tl, tc, 0);
		want_promise_turn(tl, tc);
		want_call_conn(tl, tc);
	}
	while ((tc = TAILQ_FIRST(&tl->want_record)) != NULL && san_tl_nb_common(tl) != 0 &&
	       san_tl_txn_ring_take(tl, tc)) {
		want_leave_line(tl, tc, 0);
		want_promise_turn(tl, tc);
		want_call_conn(tl, tc);
	}
}
