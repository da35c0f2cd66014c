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
 *   share   records and rings are there, but its peer host has its share (RT-35): a
 *           host that never acknowledges stops only what is sent to itself
 *   budget  for one more pull; a connection always has its first one
 *
 * Records and budget go to the connection that has waited longest. A released record is promised to
 * it: otherwise the releasing connection would take it again. A connection with nothing outstanding
 * and a promised record counts as if it had something outstanding. Of the connections that wait for
 * budget, only the first may try, when its pull fits.
 *
 * While connections wait for records, all are swept for progress. One that has records and makes
 * none for SAN_HOLD_MAX_NS ends: its peer reports packets as received for ever, or does nothing.
 *
 * A connection takes its record before it waits for budget. Otherwise two connections could take
 * from each other in turn forever. No connection is on both lists. One that waits for something of
 * its own is on neither: it would keep others from what they could use.
 */

#include "tl_priv.h"

#define PATH_LOOK  8                    /* connections of the list that are checked at most */
#define HOST_LOOK  8                    /* hosts that are checked at most */
#define SWEEP_LOOK 64                   /* connections of a sweep ... */
#define SWEEP_NS   (10 * SAN_NS_PER_MS) /* ... each */

/* What *tc* has to wait for before it gets one more record, enum san_tl_want; 0: nothing. */
static uint8_t
want_records_of(const struct san_tl *tl, const struct san_tl_conn *tc)
{
	bool is_promised = (tc->want & SAN_WANT_PROMISED) != 0;

	if (tc->nb_txns == 0) {
		if (is_promised || san_tl_has_first(tl, tc->host))
			return 0;
		return san_tl_nb_idle(tl) + san_tl_nb_common(tl) != 0 ? SAN_WANT_SHARE :
									SAN_WANT_FIRST;
	}
	if (!san_tl_has_ring(tl, tc))
		return tl->free_rings.nb != 0 ? SAN_WANT_SHARE : SAN_WANT_RECORD;
	if (is_promised || san_tl_nb_spare(tl, tc->host) != 0)
		return 0;
	return san_tl_nb_common(tl) != 0 ? SAN_WANT_SHARE : SAN_WANT_RECORD;
}

/* What *req* has to wait for, enum san_tl_want; 0: nothing. */
static uint8_t
want_reason_of(const struct san_tl *tl, const struct san_tl_conn *tc, const struct san_tl_req *req)
{
	const struct san_tl_conn *first = TAILQ_FIRST(&tl->want_budget);
	uint8_t why;

	if (tc->rsn_next - tc->rsn_base >= tc->peer.n_tx)
		return SAN_WANT_OWN;
	why = want_records_of(tl, tc);
	if (why != 0 || tc->nb_txns == 0)
		return why;
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

/* The list of those that wait for *why* like *tc*; NULL: there is none. */
static struct san_tl_conns *
want_line_of(struct san_tl *tl, struct san_tl_conn *tc, uint8_t why)
{
	if (why & SAN_WANT_SHARE)
		return &tc->host->want;
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
	struct san_tl_conns *line = want_line_of(tl, tc, left);

	if (line != NULL) {
		TAILQ_REMOVE(line, tc, want_link);
		tl->nb_waiting--;
		tl->nb_short -= (left & SAN_WANT_RECORDS) != 0;
	}
	if ((left & SAN_WANT_SHARE) && TAILQ_EMPTY(line))
		TAILQ_REMOVE(&tl->want_hosts, tc->host, want_link);
	if (left & SAN_WANT_PROMISED) {
		tl->nb_promised--;
		tc->host->nb_txns--;
		if (tc->nb_txns == 0)
			san_tl_set_busy(tl, tc, false);
	}
	tc->want &= keep;
}

static void
want_enter_line(struct san_tl *tl, struct san_tl_conn *tc, uint8_t why)
{
	struct san_tl_conns *line = want_line_of(tl, tc, why);

	tc->want |= why;
	if (line == NULL)
		return;
	if ((why & SAN_WANT_SHARE) && TAILQ_EMPTY(line))
		TAILQ_INSERT_TAIL(&tl->want_hosts, tc->host, want_link);
	TAILQ_INSERT_TAIL(line, tc, want_link);
	tl->nb_waiting++;
	tl->nb_short += (why & SAN_WANT_RECORDS) != 0;
}

static void
want_promise_turn(struct san_tl *tl, struct san_tl_conn *tc)
{
	if (tc->want & SAN_WANT_PROMISED)
		return;
	tl->nb_promised++;
	tc->host->nb_txns++;
	if (tc->nb_txns == 0)
		san_tl_set_busy(tl, tc, true);
	tc->want |= SAN_WANT_PROMISED;
}

bool
san_tl_want(struct san_tl *tl, struct san_tl_conn *tc, const struct san_tl_req *req,
	    uint64_t now_ns)
{
	uint8_t why = want_reason_of(tl, tc, req);
	uint8_t had = tc->want;

	if (likely((why | had) == 0))
		return false;
	want_leave_line(tl, tc, why == SAN_WANT_BUDGET ? why | SAN_WANT_PROMISED : why);
	tc->want_bytes = req->length;
	if (!(tc->want & why))
		want_enter_line(tl, tc, why);
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
	if (!(tc->want & SAN_WANT_OWN) &&
	    !((tc->want & (SAN_WANT_RECORD | SAN_WANT_SHARE)) && tc->nb_txns == 0) &&
	    !((tc->want & SAN_WANT_BUDGET) && tc->nb_pulls == 0))
		return;
	want_leave_line(tl, tc, SAN_WANT_PROMISED);
	san_tl_ulp_room(tl->conf.ulp, tc->slot);
}

/* Call those near the front of the budget list whose path has room outside the budget. */
static void
wake_paths(struct san_tl *tl)
{
	struct san_tl_conn *tc;
	uint32_t n = 0;

	TAILQ_FOREACH(tc, &tl->want_budget, want_link) {
		if (tc->want_bytes <= san_tl_path_left(tl, &tc->host->paths[false]))
			san_tl_ulp_room(tl->conf.ulp, tc->slot);
		if (++n == PATH_LOOK)
			return;
	}
}

/* Promise records to connections of *line* as far as there are some, in order. */
static void
wake_line(struct san_tl *tl, struct san_tl_conns *line)
{
	struct san_tl_conn *tc;
	uint8_t why;

	while ((tc = TAILQ_FIRST(line)) != NULL) {
		why = want_records_of(tl, tc);
		if (why != 0 && (why != SAN_WANT_SHARE || (tc->want & SAN_WANT_SHARE)))
			return;
		want_leave_line(tl, tc, 0);
		if (why != 0) { /* others of this line need not wait for its host */
			want_enter_line(tl, tc, why);
			continue;
		}
		if (tc->nb_txns != 0)
			san_tl_txn_ring_take(tl, tc);
		want_promise_turn(tl, tc);
		san_tl_ulp_room(tl->conf.ulp, tc->slot);
	}
}

void
san_tl_want_wake_waiting(struct san_tl *tl)
{
	struct san_tl_conn *tc;
	struct san_tl_host *h;
	uint32_t n;

	while ((tc = TAILQ_FIRST(&tl->want_budget)) != NULL && tc->expired_pulled != 0) {
		want_leave_line(tl, tc, 0);
		tc->want = SAN_WANT_OWN;
	}
	/* The connection keeps its place. Otherwise others would overtake it. */
	if (tc != NULL && tc->want_bytes <= san_tl_admit_pull_room(tl, tc))
		san_tl_ulp_room(tl->conf.ulp, tc->slot);
	if (unlikely(tl->path_room != 0))
		wake_paths(tl);
	/* these before connections with something outstanding, which continue anyway */
	wake_line(tl, &tl->want_first);
	wake_line(tl, &tl->want_record);
	/* hosts that had their share, in turn */
	for (n = 0; n < HOST_LOOK && (h = TAILQ_FIRST(&tl->want_hosts)) != NULL; n++) {
		TAILQ_REMOVE(&tl->want_hosts, h, want_link);
		TAILQ_INSERT_TAIL(&tl->want_hosts, h, want_link);
		wake_line(tl, &h->want);
	}
}

void
san_tl_want_end_stale(struct san_tl *tl, uint64_t now_ns)
{
	uint32_t now_ms = (uint32_t)(now_ns / SAN_NS_PER_MS) | 1; /* 0 is none */
	const struct san_pdl_conn *c;
	struct san_tl_conn *tc;
	uint32_t i, mark;

	if (now_ns < tl->sweep_ns)
		return;
	tl->sweep_ns = now_ns + SWEEP_NS;
	for (i = 0; i < RTE_MIN(SWEEP_LOOK, tl->conf.max_conns); i++) {
		tc = &tl->conns[tl->sweep_slot++ % tl->conf.max_conns];
		c = san_tl_pdl_conn(tl, tc);
		/* any progress changes it: an ACK, or a request that found room */
		mark = c->tx[SAN_WIN_REQ].base + c->tx[SAN_WIN_DATA].base +
			(uint32_t)tc->nb_issued;
		if (!tc->open || tc->nb_txns == 0 || tc->stale_ms == 0 || tc->stale_mark != mark) {
			tc->stale_mark = mark;
			tc->stale_ms = now_ms;
		} else if (now_ms - tc->stale_ms >= SAN_HOLD_MAX_NS / SAN_NS_PER_MS) {
			san_pdl_conn_fail(tl->pdl, san_tl_pdl_conn(tl, tc));
		}
	}
}
