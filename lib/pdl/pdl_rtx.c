/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Retransmission engine (RT-7, RT-17, RT-20, RT-22; RULE-2, RULE-10, RULE-16).
 *
 * Four bitmaps of the txblock hold the state of each outstanding PSN:
 *   flight  sent, and no ACK reports it yet. Grants and RESYNC are never set: no limit counts them
 *   rcvd    reported received by the newest ACK; a later ACK may withdraw the report
 *   lost    must be resent
 *   acked   acknowledged: final. The bit stays until the base passes it
 *
 * A connection has three timers here, all on its one wheel timer:
 *   gap_deadline_ns  a missing packet is old enough to be resent
 *   tlp_deadline_ns  no ACK brought progress: send a tail-loss probe, TAILS_MAX in a row at most
 *   rtx_deadline_ns  an entry may have timed out: scan all outstanding entries
 *
 * In two cases silence does not mean loss. First, this lcore did not run. Then the answers are in
 * its receive queue, and its timers wait for a grace period (san_pdl_rtx_rx_gap()). The time that
 * it did not run counts little of a peer's silence (san_pdl_rtx_is_excused()). Second, the
 * peer is silent: nothing was heard for an RTO or longer. Then each timeout resends only the lowest
 * QUIET_MAX missing packets of each window, and only these count retries. All other packets keep
 * their state. The first packet heard restarts their timers, and the ACKs that follow report what
 * is missing. So a silent peer costs a few packets per timeout, not a window. A dead peer is given
 * up as early as without this rule.
 */

#include "pdl_priv.h"

#define TAILS_MAX    4 /* tail-loss probes in a row, each after twice the silence */
#define FAST_RTX_MAX 3 /* fast retransmits of a PSN between two timeouts */
/* After a spurious fast retransmit, this many losses must be real before gaps are trusted again. */
#define REORDER_WAIT 32
/*
 * Missing packets of a window that a timeout resends while the peer is silent. They are more than
 * one, because a burst of losses can drop several.
 */
#define QUIET_MAX  16
#define AWAY_SHARE 16 /* one part of an absence counts all the same: dead peers are found */

/* ---- states of an entry ---- */

/* An outstanding packet has left the network: take it out of the in-flight sum of PCB-2. */
static void
pdl_rtx_unflight(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn)
{
	if (!san_bitmap_test(&c->txb->flight[win], psn))
		return;
	san_bitmap_clear(&c->txb->flight[win], psn);
	san_pdl_pcb_leave(pdl, c, 1);
}

void
san_pdl_rtx_lose(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn)
{
	struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);

	if (san_bitmap_test(&c->txb->lost[win], psn))
		return;
	pdl_rtx_unflight(pdl, c, win, psn);
	e->state &= (uint8_t)~SAN_ENT_DEFER;
	san_bitmap_set(&c->txb->lost[win], psn);
	c->tx[win].nb_lost++;
	c->tx[win].nb_lost_free += !san_pdl_is_counted(e->op);
}

void
san_pdl_rtx_find(struct san_pdl_conn *c, enum san_win win, uint32_t psn)
{
	const struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);

	if (!san_bitmap_test(&c->txb->lost[win], psn))
		return;
	san_bitmap_clear(&c->txb->lost[win], psn);
	c->tx[win].nb_lost--;
	c->tx[win].nb_lost_free -= !san_pdl_is_counted(e->op);
}

/*
 * *e* has arrived, after it was resent or marked for it. If it arrived sooner than the copy could,
 * the resend was spurious: the original was only reordered. Other packets probably are, too, so
 * missing packets wait longer from now on.
 */
static void
rtx_learn_reordering(struct san_pdl_conn *c, const struct san_pdl_entry *e, enum san_win win,
		     uint32_t psn, uint64_t now_ns)
{
	uint32_t age = (uint32_t)now_ns - e->sent_ts;

	if (san_bitmap_test(&c->txb->lost[win], psn) || age < c->rtt.base_ns)
		c->rtt.nb_reorder_wait = REORDER_WAIT;
	else if (c->rtt.nb_reorder_wait != 0)
		c->rtt.nb_reorder_wait--;
}

void
san_pdl_rtx_retire(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		   uint64_t bits, uint64_t now_ns)
{
	const struct san_pdl_entry *e;
	uint64_t flight = san_bitmap_get64(&c->txb->flight[win], psn) & bits;
	uint32_t n = (uint32_t)__builtin_popcountll(bits);
	struct san_pdl_entry *to = &pdl->acked[pdl->nb_acked];
	uint32_t p;

	san_bitmap_andnot64(&c->txb->flight[win], psn, flight);
	san_pdl_pcb_leave(pdl, c, (uint32_t)__builtin_popcountll(flight));
	SAN_VERIFY(pdl->nb_acked + n <= RTE_DIM(pdl->acked));
	pdl->nb_acked += n;
	for (; bits != 0; bits &= bits - 1) {
		p = psn + (uint32_t)__builtin_ctzll(bits);
		e = san_pdl_win_tx_entry(c->txb, win, p);
		if (unlikely(e->state & SAN_ENT_FAST_RTX) &&
		    !san_bitmap_test(&c->txb->rcvd[win], p))
			rtx_learn_reordering(c, e, win, p, now_ns);
		if (unlikely(c->tx[win].nb_lost != 0))
			san_pdl_rtx_find(c, win, p);
		*to++ = *e;
	}
}

static uint64_t
first_due_ns(struct san_pdl *pdl, const struct san_pdl_conn *c, uint64_t now_ns)
{
	if (pdl->visit.conn != c || pdl->visit.now_ns != now_ns) {
		pdl->visit.conn = c;
		pdl->visit.now_ns = now_ns;
		pdl->visit.due_ns = now_ns + san_pdl_rtt_timeout(pdl, c, 0);
	}
	return pdl->visit.due_ns;
}

/* Scan for timeouts at *due_ns* at the latest. */
static inline void
scan_at(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t due_ns)
{
	c->rtx_deadline_ns = san_time_min(c->rtx_deadline_ns, due_ns);
	san_pdl_arm_for(pdl, c, due_ns);
}

/* Start the timeout of *e* now. */
static void
start_timeout(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e, uint64_t now_ns)
{
	uint64_t due_ns = e->retries == 0 ? first_due_ns(pdl, c, now_ns) :
					    now_ns + san_pdl_rtt_timeout(pdl, c, e->retries);

	e->due = san_pdl_tick(due_ns);
	scan_at(pdl, c, due_ns);
}

bool
san_pdl_rtx_hint(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		 uint64_t now_ns)
{
	struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);

	/*
	 * An ACK cannot report a RESYNC that was not sent yet. It reports the data that the RESYNC
	 * replaces, and was sent before the target dropped that data.
	 */
	if (e->op == SAN_OP_RESYNC && (e->state & SAN_ENT_SENT) == 0)
		return false;
	if ((e->state & SAN_ENT_FAST_RTX) != 0)
		rtx_learn_reordering(c, e, win, psn, now_ns);
	/* a scan skips lost entries, so this one may be overdue */
	if (san_bitmap_test(&c->txb->lost[win], psn))
		start_timeout(pdl, c, e, now_ns);
	pdl_rtx_unflight(pdl, c, win, psn);
	san_pdl_rtx_find(c, win, psn);
	e->state &= (uint8_t)~SAN_ENT_DEFER;
	san_bitmap_set(&c->txb->rcvd[win], psn);
	return true;
}

void
san_pdl_rtx_unhint(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn)
{
	san_bitmap_clear(&c->txb->rcvd[win], psn);
	san_pdl_rtx_lose(pdl, c, win, psn);
}

/*
 * Age at which *e* counts as lost. It doubles with each fast retransmit, because the copy may have
 * met the same burst of losses.
 */
static uint64_t
old_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c, const struct san_pdl_entry *e)
{
	uint32_t n = e->state & SAN_ENT_FAST_RTX;

	return n == 0 ? san_pdl_rtt_gap_ns(pdl, c) : san_pdl_rtt_answer_ns(pdl, c) << (n - 1);
}

/* Restart the timer of the tail-loss probe. */
static void
watch_tail(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (c->rtt.srtt_ns == 0)
		return;
	c->tlp_deadline_ns = now_ns + (san_pdl_rtt_tail_ns(pdl, c) << c->nb_tails);
	san_pdl_arm_for(pdl, c, c->tlp_deadline_ns);
}

void
san_pdl_rtx_sent(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e,
		 uint64_t now_ns)
{
	e->sent_ts = (uint32_t)now_ns;
	/* A tail-loss probe does not postpone the timeout: RT-7 limits the sum of the timeouts. */
	if ((e->state & SAN_ENT_TAIL) == 0 || san_seq_le(e->due, san_pdl_tick(now_ns)))
		start_timeout(pdl, c, e, now_ns);
	e->state = (uint8_t)((e->state & ~(SAN_ENT_TAIL | SAN_ENT_SILENT)) | SAN_ENT_SENT);
	if ((e->state & SAN_ENT_FAST_RTX) != 0) { /* the copy may be lost, too */
		uint64_t again_ns = now_ns + old_ns(pdl, c, e);

		c->gap_deadline_ns = san_time_min(c->gap_deadline_ns, again_ns);
		san_pdl_arm_for(pdl, c, again_ns);
	}
	if (c->nb_tails < TAILS_MAX)
		watch_tail(pdl, c, now_ns);
}

void
san_pdl_rtx_sent_first(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn, uint16_t n,
		       uint64_t now_ns)
{
	uint64_t due_ns = first_due_ns(pdl, c, now_ns);
	uint32_t due = san_pdl_tick(due_ns);
	struct san_pdl_entry *e;
	uint16_t i;

	for (i = 0; i < n; i++) {
		e = san_pdl_win_tx_entry(c->txb, SAN_WIN_DATA, psn + i);
		e->sent_ts = (uint32_t)now_ns;
		e->due = due;
		e->state = SAN_ENT_SENT;
	}
	scan_at(pdl, c, due_ns);
	if (c->nb_tails < TAILS_MAX)
		watch_tail(pdl, c, now_ns);
}

void
san_pdl_rtx_progress(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	c->rtt.backoff = 0;
	pdl->visit.conn = NULL; /* the cached timeout is too long now */
	c->probe_exp = 0;
	c->nb_tails = 0;
	c->tlp_deadline_ns = SAN_TIME_NEVER;
	if (san_pdl_has_outstanding(c))
		watch_tail(pdl, c, now_ns);
}

/* ---- fast retransmit (RULE-10) ---- */

static void
rtx_lose_fast(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e, uint64_t now_ns)
{
	e->state++; /* SAN_ENT_FAST_RTX is a counter in the low bits */
	c->nb_fast_rtx++;
	pdl->stats.nb_fast_rtx++;
	san_pdl_rtx_lose(pdl, c, e->win, e->psn);
	san_pdl_pmtu_on_loss(pdl, c, e, now_ns);
}

static bool
rtx_may_be_fast(const struct san_pdl_entry *e)
{
	return (e->state & SAN_ENT_FAST_RTX) < FAST_RTX_MAX && (e->state & SAN_ENT_DEFER) == 0;
}

/*
 * Mark lost the missing PSNs below *end*: a PSN far enough above them was received. A PSN that is
 * too young sets the timer.
 */
static uint32_t
rtx_gaps_by_psn(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t end,
		uint64_t now_ns)
{
	const struct san_pdl_txw *w = &c->tx[win];
	uint32_t psn, n = 0;

	for (psn = san_pdl_win_tx_unreported(w, c->txb, win, w->base); san_seq_lt(psn, end);
	     psn = san_pdl_win_tx_unreported(w, c->txb, win, psn + 1)) {
		struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);
		uint32_t age = (uint32_t)now_ns - e->sent_ts;

		if (!rtx_may_be_fast(e))
			continue;
		if (age >= old_ns(pdl, c, e)) {
			rtx_lose_fast(pdl, c, e, now_ns);
			n++;
		} else {
			c->gap_deadline_ns =
				san_time_min(c->gap_deadline_ns, now_ns + old_ns(pdl, c, e) - age);
		}
	}
	return n;
}

/*
 * Mark lost by time the missing PSNs from *psn* on, above which nothing far enough was received.
 * The packet that the newest ACK echoes was sent long after them and has arrived. After a tail-loss
 * probe this finds the whole tail at once, which the distance cannot. The scan ends at the first
 * packet that is too young, because later PSNs are rarely older.
 */
static uint32_t
rtx_gaps_by_echo(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		 uint64_t now_ns)
{
	const struct san_pdl_txw *w = &c->tx[win];
	uint64_t young_ns = san_pdl_rtt_gap_ns(pdl, c);
	uint32_t n = 0;

	for (psn = san_pdl_win_tx_unreported(w, c->txb, win, psn); psn != w->next;
	     psn = san_pdl_win_tx_unreported(w, c->txb, win, psn + 1)) {
		struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);
		int32_t older = san_seq_diff(c->last_echo, e->sent_ts);

		if (older < 0 || (uint32_t)older < young_ns)
			break;
		if (!rtx_may_be_fast(e) || (uint32_t)older < old_ns(pdl, c, e))
			continue;
		rtx_lose_fast(pdl, c, e, now_ns);
		n++;
	}
	return n;
}

uint32_t
san_pdl_rtx_gaps(struct san_pdl *pdl, struct san_pdl_conn *c, bool echo_valid, uint64_t now_ns)
{
	uint32_t win, n = 0;

	c->gap_deadline_ns = SAN_TIME_NEVER;
	for (win = 0; win < SAN_WIN_MAX; win++) {
		const struct san_pdl_txw *w = &c->tx[win];
		uint32_t end;

		if (w->base == w->next)
			continue;
		/*
		 * high - 1 is the highest PSN received. If it is also the last PSN sent, no later
		 * one can reach the distance.
		 */
		end = w->high - (w->high == w->next ? 1 : pdl->conf.ooo_distance);
		if (san_seq_lt(w->base, end))
			n += rtx_gaps_by_psn(pdl, c, win, end, now_ns);
		else
			end = w->base;
		if (echo_valid)
			n += rtx_gaps_by_echo(pdl, c, win, end, now_ns);
	}
	if (c->gap_deadline_ns != SAN_TIME_NEVER)
		san_pdl_arm_for(pdl, c, c->gap_deadline_ns);
	return n;
}

/* ---- tail-loss probe ---- */

static void
probe_tail(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	bool found = false;
	uint32_t win;

	c->tlp_deadline_ns = SAN_TIME_NEVER;
	if (c->nb_tails >= TAILS_MAX || c->txb == NULL || san_pdl_has_lost(c))
		return;
	for (win = 0; win < SAN_WIN_MAX; win++) {
		const struct san_pdl_txw *w = &c->tx[win];
		uint32_t psn = san_pdl_win_tx_unreported(w, c->txb, win, w->base);
		struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);

		if (psn == w->next || (e->state & SAN_ENT_DEFER) != 0)
			continue;
		/* the timeout expires before an answer to the probe could arrive */
		if (san_pdl_tick_ns(e->due, now_ns) < now_ns + c->rtt.srtt_ns)
			continue;
		e->state |= SAN_ENT_TAIL;
		san_pdl_rtx_lose(pdl, c, win, psn);
		san_pdl_pmtu_on_loss(pdl, c, e, now_ns);
		found = true;
		c->nb_tlp++;
		pdl->stats.nb_tlp++;
	}
	c->nb_tails += found;
	if (found)
		san_pdl_sched_kick(pdl, c);
}

/* ---- timeouts (RT-7) ---- */

struct scan {
	uint64_t now_ns;
	uint64_t next_ns;  /* earliest due of the remaining entries */
	uint64_t heard_ns; /* least age of a sent packet that the last received one could answer */
	bool timed_out, lost;
};

static void
set_due(struct san_pdl_entry *e, uint64_t due_ns, struct scan *s)
{
	e->due = san_pdl_tick(due_ns);
	s->next_ns = san_time_min(s->next_ns, due_ns);
}

/*
 * True if the peer has reported, since *e* was sent, that it has no memory for a PSN so far above
 * the base. Then *e* waits, like other packets that are refused for lack of resources.
 */
static bool
is_too_far(const struct san_pdl_conn *c, const struct san_pdl_entry *e, uint64_t now_ns)
{
	return e->psn - c->tx[e->win].base >= SAN_BITMAP_NARROW && c->oow_tick != 0 &&
		san_pdl_tick(now_ns) - c->oow_tick <= san_pdl_tick((uint32_t)now_ns - e->sent_ts);
}

/* Length of the silence of the peer, counted from the first retry or PROBE. */
static uint32_t
rtx_stalled_ms(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	uint32_t now_ms = (uint32_t)(now_ns / SAN_NS_PER_MS);
	uint32_t last_rx_ms = (uint32_t)(c->last_rx_ns / SAN_NS_PER_MS);

	/* If the stall did not begin between the two times, it belongs to an earlier silence. */
	if (c->stalled_ms - last_rx_ms - 1 >= now_ms - last_rx_ms) {
		c->stalled_ms = now_ms;
		c->rtt.away_ms = (uint32_t)(pdl->away_ns / SAN_NS_PER_MS);
	}
	return now_ms - c->stalled_ms;
}

bool
san_pdl_rtx_is_excused(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t patience_ns,
		       uint64_t now_ns)
{
	uint32_t stalled_ms = rtx_stalled_ms(pdl, c, now_ns);
	uint32_t away_ms = (uint32_t)(pdl->away_ns / SAN_NS_PER_MS) - c->rtt.away_ms;

	away_ms -= away_ms / AWAY_SHARE;
	return away_ms > stalled_ms / 2 && stalled_ms - away_ms < patience_ns / SAN_NS_PER_MS;
}

/* Count a retry; false if retries, or the time of a carried socket (UDP-12), are exhausted. */
static bool
rtx_retry_entry(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e,
		uint64_t now_ns)
{
	uint32_t stalled_ms = rtx_stalled_ms(pdl, c, now_ns);
	/* about the sum of the timeouts */
	uint64_t patience_ns = pdl->conf.max_retries * pdl->conf.rto_max_ns / 2;
	bool is_over = e->retries >= pdl->conf.max_retries &&
		!san_pdl_rtx_is_excused(pdl, c, patience_ns, now_ns);

	if (c->user_timeout != 0)
		is_over = stalled_ms >= c->user_timeout * SAN_PDL_USER_TIMEOUT_MS;
	if (is_over) {
		if (is_too_far(c, e, now_ns))
			return true;
		pdl->stats.nb_conns_failed += !c->failed;
		c->failed = true;
		c->too_narrow = san_pdl_pmtu_is_to_blame(c, e, now_ns);
		return false;
	}
	e->retries = RTE_MIN(e->retries + 1, pdl->conf.max_retries);
	c->rtt.backoff = RTE_MAX(c->rtt.backoff, e->retries);
	return true;
}

/*
 * *e* is reported received but not acknowledged. Ask by PROBE instead of resending it. A retry
 * counts only in silence: a PROBE is unanswered, and no ACK has arrived for an RTO (RULE-2). The
 * interval doubles, because a ULP may need a long time.
 */
static void
expire_held(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e, struct scan *s)
{
	uint64_t rto_ns = c->rtt.rto_ns;
	uint64_t wait_ns;

	if ((e->state & SAN_ENT_PROBED) != 0 && c->nb_probes > 0 &&
	    s->now_ns >= c->last_ack_ns + rto_ns && !rtx_retry_entry(pdl, c, e, s->now_ns))
		return;
	e->state |= SAN_ENT_PROBED;
	if (!c->probe_due && s->now_ns >= c->probe_ns + rto_ns) {
		san_pdl_ack_probe_now(pdl, c);
		c->probe_exp = RTE_MIN(c->probe_exp + 1, 30);
	}
	wait_ns = san_pdl_rtt_timeout(pdl, c, RTE_MAX(e->retries, c->probe_exp));
	set_due(e, s->now_ns + wait_ns, s);
}

/* True if no packet has arrived since an answer to *e* could have arrived. */
static bool
is_silent(const struct san_pdl_entry *e, const struct scan *s)
{
	return (uint32_t)s->now_ns - e->sent_ts < s->heard_ns;
}

static void
rtx_expire_entry(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e, bool is_low,
		 struct scan *s)
{
	if (san_bitmap_test(&c->txb->rcvd[e->win], e->psn)) {
		expire_held(pdl, c, e, s);
		return;
	}
	if ((e->state & SAN_ENT_DEFER) == 0) {
		if (is_silent(e, s))
			san_pdl_odd_put(&c->odd, SAN_ODD_SILENT, true);
		if (!is_low && is_silent(e, s)) {
			/* no longer in flight (PCB-2), but not marked lost either */
			pdl_rtx_unflight(pdl, c, e->win, e->psn);
			e->state = (uint8_t)((e->state & ~SAN_ENT_FAST_RTX) | SAN_ENT_SILENT);
			/* sent_ts has 32 bits: limit the age so that it cannot wrap */
			if ((uint32_t)s->now_ns - e->sent_ts > SAN_NS_PER_S)
				e->sent_ts = (uint32_t)(s->now_ns - SAN_NS_PER_S);
			set_due(e, s->now_ns + san_pdl_rtt_timeout(pdl, c, e->retries), s);
			return;
		}
		if (!rtx_retry_entry(pdl, c, e, s->now_ns))
			return;
		e->state &= (uint8_t)~SAN_ENT_FAST_RTX;
		c->nb_rto++;
		pdl->stats.nb_rto++;
		s->timed_out = true;
		san_pdl_pmtu_on_loss(pdl, c, e, s->now_ns);
	}
	s->lost = true;
	san_pdl_rtx_lose(pdl, c, e->win, e->psn);
}

static void
scan_window(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, struct scan *s)
{
	const struct san_pdl_txw *w = &c->tx[win];
	uint32_t now = (uint32_t)(s->now_ns >> SAN_PDL_TICK_SHIFT);
	uint32_t nb_missing = 0;
	bool missing;
	uint32_t psn;

	for (psn = w->base; psn != w->next && !c->failed; psn++) {
		struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);

		if (san_bitmap_test(&c->txb->acked[win], psn))
			continue;
		missing = !san_bitmap_test(&c->txb->rcvd[win], psn) && !(e->state & SAN_ENT_DEFER);
		if (san_seq_gt(e->due, now))
			s->next_ns = san_time_min(s->next_ns, san_pdl_tick_ns(e->due, s->now_ns));
		else if (san_bitmap_test(&c->txb->lost[win], psn))
			; /* it is overdue and waits to be resent, which starts its timer */
		else
			rtx_expire_entry(pdl, c, e, nb_missing < QUIET_MAX, s);
		nb_missing += missing;
	}
}

static void
scan_timeouts(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct scan s = {
		.now_ns = now_ns,
		.next_ns = SAN_TIME_NEVER,
		.heard_ns = now_ns - c->last_rx_ns + san_pdl_rtt_answer_ns(pdl, c),
	};
	struct san_pdl_cc *cc = &c->cc;
	uint32_t win;

	for (win = 0; c->txb != NULL && win < SAN_WIN_MAX; win++)
		scan_window(pdl, c, win, &s);
	c->rtx_deadline_ns = s.next_ns;
	if (s.timed_out) {
		/* Packets of one window time out one by one. Together they cut the window once. */
		if (san_pdl_cc_may_cut(cc, c->rtt.rto_ns, now_ns)) {
			if (cc->ops->on_timeout != NULL)
				cc->ops->on_timeout(cc, &pdl->conf.cc_conf, now_ns);
			pdl->stats.nb_cc_cuts++;
		}
		san_pdl_plb_timeout(pdl, c, now_ns);
	}
	/* fewer packets are in flight now, so packets that were lost earlier may be resent */
	if (s.lost || san_pdl_has_lost(c))
		san_pdl_sched_kick(pdl, c);
}

void
san_pdl_rtx_silence_ends(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	uint32_t win, psn;

	san_pdl_odd_put(&c->odd, SAN_ODD_SILENT, false);
	c->rtt.backoff = 0;
	pdl->visit.conn = NULL; /* the cached timeout is too long now */
	for (win = 0; c->txb != NULL && win < SAN_WIN_MAX; win++) {
		for (psn = c->tx[win].base; psn != c->tx[win].next; psn++) {
			struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, win, psn);

			if (san_bitmap_test(&c->txb->acked[win], psn) ||
			    (e->state & SAN_ENT_SILENT) == 0)
				continue;
			e->state &= (uint8_t)~SAN_ENT_SILENT;
			if (!san_bitmap_test(&c->txb->lost[win], psn))
				start_timeout(pdl, c, e, now_ns);
		}
	}
	san_pdl_sched_kick(pdl, c);
}

void
san_pdl_rtx_rx_gap(struct san_pdl *pdl, uint64_t gap_ns, uint64_t now_ns)
{
	uint64_t end_ns = now_ns + pdl->conf.rto_min_ns;

	pdl->rx_gap_ns = gap_ns;
	/*
	 * A grace period does not follow another until timers have fired. Otherwise an lcore that
	 * is always late would never resend.
	 */
	if (unlikely(gap_ns >= pdl->conf.rto_min_ns / 2) && pdl->grace_ns == 0)
		pdl->grace_ns = RTE_ALIGN_CEIL(end_ns, 1u << SAN_WHEEL_SHIFT); /* as timers fire */
}

void
san_pdl_rtx_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (c->state != SAN_CONN_OPEN && c->state != SAN_CONN_CLOSING)
		return;
	san_pdl_ack_on_timer(pdl, c, now_ns);
	if (c->failed)
		return;
	if (c->pace_wait && now_ns >= c->pace_ns) {
		c->pace_wait = false;
		san_pdl_sched_kick(pdl, c);
	}
	if (now_ns < pdl->grace_ns)
		return;
	if (now_ns >= c->gap_deadline_ns) {
		uint32_t n = san_pdl_rtx_gaps(pdl, c, false, now_ns);

		c->nb_timer_lost += n; /* congestion control gets them with the next ACK */
		if (n != 0)
			san_pdl_sched_kick(pdl, c);
	}
	if (now_ns >= c->tlp_deadline_ns)
		probe_tail(pdl, c, now_ns);
	if (now_ns >= c->rtx_deadline_ns)
		scan_timeouts(pdl, c, now_ns);
	san_pdl_pmtu_on_timer(pdl, c, now_ns);
	san_pdl_pcb_wake(pdl);
}

/* ---- requests of the transaction sublayer ---- */

static void
turn_into_resync(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e, uint8_t code)
{
	/* Update all counters before *op* changes, because they depend on it. */
	pdl_rtx_unflight(pdl, c, SAN_WIN_DATA, e->psn);
	san_pdl_rtx_find(c, SAN_WIN_DATA, e->psn);
	san_bitmap_clear(&c->txb->rcvd[SAN_WIN_DATA], e->psn);
	e->op = SAN_OP_RESYNC;
	e->flags = SAN_F_WIN_DATA;
	e->status = code;
	e->len = 0;
	e->retries = 0;
	e->state = 0;
	san_pdl_rtx_lose(pdl, c, SAN_WIN_DATA, e->psn);
}

uint32_t
san_pdl_rtx_cancel(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t rsn, bool onward,
		   uint8_t code)
{
	const struct san_pdl_txw *w = &c->tx[SAN_WIN_DATA];
	uint32_t psn, n = 0;

	for (psn = w->base; psn != w->next; psn++) {
		struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, SAN_WIN_DATA, psn);

		if (san_bitmap_test(&c->txb->acked[SAN_WIN_DATA], psn))
			continue;
		if (e->op != SAN_OP_PUSH_SLCTD_DATA && e->op != SAN_OP_PUSH_UNSLCTD_DATA &&
		    e->op != SAN_OP_PUSH_PACKED)
			continue;
		if (e->rsn != rsn && !(onward && san_seq_gt(e->rsn, rsn)))
			continue;
		turn_into_resync(pdl, c, e, code);
		n++;
	}
	pdl->stats.nb_withdrawn += n;
	if (n != 0)
		san_pdl_sched_kick(pdl, c);
	san_pdl_pcb_wake(pdl);
	return n;
}

void
san_pdl_rtx_defer(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		  uint64_t delay_ns, uint64_t now_ns)
{
	struct san_pdl_entry *e;

	if (!san_pdl_rtx_is_outstanding(c, win, psn))
		return;
	e = san_pdl_win_tx_entry(c->txb, win, psn);
	pdl_rtx_unflight(pdl, c, win, psn);
	san_pdl_rtx_find(c, win, psn);
	san_bitmap_clear(&c->txb->rcvd[win], psn);
	e->state = (uint8_t)((e->state & ~SAN_ENT_TAIL) | SAN_ENT_DEFER | SAN_ENT_REFUSED);
	e->retries = 0; /* the peer is alive and knows of the packet */
	e->due = san_pdl_tick(now_ns + delay_ns);
	c->rtx_deadline_ns = san_time_min(c->rtx_deadline_ns, now_ns + delay_ns);
	san_pdl_arm_for(pdl, c, c->rtx_deadline_ns);
	san_pdl_pcb_wake(pdl);
}

bool
san_pdl_rtx_is_outstanding(const struct san_pdl_conn *c, enum san_win win, uint32_t psn)
{
	const struct san_pdl_txw *w = &c->tx[win];

	return san_seq_ge(psn, w->base) && san_seq_lt(psn, w->next) &&
		!san_bitmap_test(&c->txb->acked[win], psn);
}
