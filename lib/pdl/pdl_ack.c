/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ACKs in both directions (RT-4 .. RT-6, RT-8, RT-25, RT-33; RULE-1, RULE-2, RULE-11).
 *
 * Sending: some packets are reported at once (AckReq, duplicate, gap, overrun, every ack_every
 * packets), the others when the coalescing timer expires. A connection that owes an ACK is on a
 * list once, so it sends at most one ACK per burst. A reverse packet in the same loop replaces the
 * ACK on two conditions. First, the two bases are the whole report: no gap, no CE mark. Second, a
 * dedicated ACK was sent within the last round trip, or fewer than STAND_INS packets have replaced
 * one since. The connection then stays on the list, owes nothing, and is skipped.
 *
 * Holding: a request and its answer should be two packets, not four. The time that the program
 * takes to answer is learned per connection: it rises fast and falls slowly, so that nearly all
 * answers are within twice of it. After several answers within the coalescing time, the next ACK is
 * held for that long. If an answer does not come in time, many timely ones are needed before an ACK
 * is held again: two ends that both wait for an ACK must not both hold theirs.
 *
 * Receiving: the fields of each window are handled alone. Bases and acknowledged bits are final and
 * ORed, also those of a late ACK. Received bits are a hint that only an ACK with a newer serial
 * number replaces.
 */

#include <string.h>

#include "pdl_priv.h"

#define CNP_INTERVAL_NS (50 * SAN_NS_PER_US)
#define DOUBTS          32 /* nb_doubts after an ACK was held in vain */
#define HOLD_MAX_NS     (400 * SAN_NS_PER_US)
#define STAND_INS       8                    /* packets in a row that may replace an ACK */
#define TURN_RISE       2                    /* a longer turn-round weighs 1/2 */
#define TURN_FALL       32                   /* a shorter one 1/32 */
#define PROMPT_MAX_NS   (16 * SAN_NS_PER_US) /* a longer wait spoils a sample of the path */

/* ---- owed ACKs ---- */

/* Take the connection off the held list; returns true if it was on it. */
static bool
ack_unhold_conn(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (!c->ack.held)
		return false;
	c->ack.held = false;
	TAILQ_REMOVE(&pdl->held_acks, c, ack_link);
	return true;
}

void
san_pdl_ack_list(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	if (c->ack.listed || (c->state != SAN_CONN_OPEN && c->state != SAN_CONN_CLOSING))
		return;
	c->ack.now |= ack_unhold_conn(pdl, c);
	c->ack.listed = true;
	TAILQ_INSERT_TAIL(&pdl->acks, c, ack_link);
}

void
san_pdl_ack_unlist(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	ack_unhold_conn(pdl, c);
	if (c->ack.listed)
		TAILQ_REMOVE(&pdl->acks, c, ack_link);
	c->ack.listed = false;
}

void
san_pdl_ack_owe(struct san_pdl *pdl, struct san_pdl_conn *c, bool must)
{
	if (must && c->ack.held) /* for example a duplicate: the peer has not waited for the ACK */
		c->ack.nb_doubts = DOUBTS;
	c->ack.now = true;
	c->ack.must |= must;
	san_pdl_ack_list(pdl, c);
}

/* Longest hold of an ACK: the coalescing time, and no peer may take it for a loss. */
static uint64_t
hold_max_ns(const struct san_pdl *pdl)
{
	return RTE_MIN(RTE_MIN(pdl->conf.ack_delay_ns, pdl->conf.rto_min_ns / 3), HOLD_MAX_NS);
}

/* Time for which an ACK is held: a third of a round trip, or twice the learned turn-round. */
static uint64_t
hold_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	uint64_t turns_ns = 2ull * c->ack.turn * SAN_PDL_TURN_NS;

	return RTE_MIN(RTE_MAX(c->rtt.srtt_ns / 3, turns_ns), hold_max_ns(pdl));
}

void
san_pdl_ack_on_request(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	struct san_pdl_ackst *a = &c->ack;

	a->asked = true;
	if (a->held)
		return;
	if (a->nb_doubts != 0 || a->listed ||
	    a->deadline_ns == SAN_TIME_NEVER || c->rx[SAN_WIN_DATA].size <= pdl->conf.ack_every) {
		san_pdl_ack_owe(pdl, c, false);
		return;
	}
	a->held = true;
	TAILQ_INSERT_TAIL(&pdl->held_acks, c, ack_link);
}

void
san_pdl_ack_answer(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct san_pdl_ackst *a = &c->ack;
	uint32_t turn_ns, turn;

	if (!a->asked)
		return;
	a->asked = false;
	turn_ns = (uint32_t)now_ns - a->echo_rx;
	if (turn_ns > hold_max_ns(pdl)) {
		a->nb_doubts = RTE_MAX((uint8_t)a->nb_doubts, SAN_PDL_DOUBTS);
		return;
	}
	a->nb_doubts -= a->nb_doubts != 0;
	turn = turn_ns / SAN_PDL_TURN_NS;
	a->turn += turn > a->turn ? (turn - a->turn + 1) / TURN_RISE :
				    -((a->turn - turn + TURN_FALL - 1) / TURN_FALL);
}

/* End of the hold, counted from the first unreported packet. */
static uint64_t
held_until_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	return c->ack.deadline_ns - pdl->conf.ack_delay_ns + hold_ns(pdl, c);
}

uint64_t
san_pdl_ack_deadline_ns(const struct san_pdl *pdl)
{
	const struct san_pdl_conn *c = TAILQ_FIRST(&pdl->held_acks);

	return c != NULL ? held_until_ns(pdl, c) : SAN_TIME_NEVER;
}

void
san_pdl_ack_release(struct san_pdl *pdl, uint64_t now_ns)
{
	struct san_pdl_conn *c;

	/* The list is not sorted: a hold may be longer, by as much as that of the first one. */
	while ((c = TAILQ_FIRST(&pdl->held_acks)) != NULL && now_ns >= held_until_ns(pdl, c)) {
		ack_unhold_conn(pdl, c);
		c->ack.nb_doubts = DOUBTS;
		san_pdl_ack_owe(pdl, c, false);
	}
}

void
san_pdl_ack_probe_now(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	c->probe_due = true;
	san_pdl_ack_list(pdl, c);
}

void
san_pdl_ack_cnp(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (c->cnp_ns != 0 && now_ns < c->cnp_ns + CNP_INTERVAL_NS)
		return;
	c->cnp_ns = now_ns;
	c->cnp_due = true;
	san_pdl_ack_list(pdl, c);
}

void
san_pdl_ack_echo(const struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		 uint32_t nb_unreported, uint64_t now_ns)
{
	/* echo the packet that was sent last: a reordered one has an older state of the path */
	if (c->ack.echo_valid && nb_unreported > 0 &&
	    san_seq_lt(p->tx_time, c->ack.echo_tx))
		return;
	c->ack.echo_valid = true;
	c->ack.echo_tx = p->tx_time;
	/*
	 * Echo the earliest possible time of arrival: waiting for this lcore is no delay of the
	 * network.
	 */
	c->ack.echo_rx = (uint32_t)(now_ns - pdl->rx_gap_ns);
}

static void
ack_settle_conn(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	struct san_pdl_ackst *a = &c->ack;

	ack_unhold_conn(pdl, c);
	a->nb_unreported = 0;
	a->now = false;
	a->must = false;
	a->deadline_ns = SAN_TIME_NEVER;
}

/*
 * True if a packet of ours can replace the ACK: the two bases are the whole report, and the last
 * dedicated ACK is recent (RT-25). With one packet in a round trip none is recent; then a few
 * packets in a row may replace an ACK.
 */
static bool
may_stand_for(const struct san_pdl *pdl, const struct san_pdl_conn *c, uint64_t now_ns)
{
	const struct san_pdl_ackst *a = &c->ack;
	uint64_t apart_ns = RTE_MAX(c->rtt.srtt_ns, pdl->conf.ack_delay_ns);

	if (a->must || a->oow != 0 || a->ce || san_pdl_win_rx_has_gap(&c->rx[SAN_WIN_REQ]) ||
	    san_pdl_win_rx_has_gap(&c->rx[SAN_WIN_DATA]))
		return false;
	return c->rtt.srtt_ns != 0 &&
		(now_ns < a->last_ns + apart_ns ||
		 (a->nb_stood < STAND_INS && pdl->rx_level == 0));
}

void
san_pdl_ack_piggyback(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (!c->ack.now && c->ack.deadline_ns == SAN_TIME_NEVER)
		return;
	if (may_stand_for(pdl, c, now_ns)) {
		ack_settle_conn(pdl, c);
		c->ack.nb_stood += c->ack.nb_stood < STAND_INS;
		pdl->stats.nb_acks_piggybacked++;
	} else if (c->ack.held) {
		san_pdl_ack_owe(pdl, c, false); /* the answer was sent without it */
	}
}

void
san_pdl_ack_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (now_ns < c->ack.deadline_ns)
		return;
	c->ack.deadline_ns = SAN_TIME_NEVER;
	if (c->ack.held)
		c->ack.nb_doubts = DOUBTS;
	san_pdl_ack_owe(pdl, c, false);
}

struct san_pdl_conn *
san_pdl_ack_next(struct san_pdl *pdl)
{
	struct san_pdl_conn *c;

	while ((c = TAILQ_FIRST(&pdl->acks)) != NULL) {
		TAILQ_REMOVE(&pdl->acks, c, ack_link);
		c->ack.listed = false;
		if (san_pdl_ack_owes(c))
			return c;
	}
	return NULL;
}

/* ---- filling ---- */

static uint8_t
words_of(const struct san_pdl_rxw *w)
{
	return (uint8_t)((w->high - w->base + 63) / 64);
}

static void
fill_bitmaps(const struct san_pdl_conn *c, struct san_wire_ack *ack)
{
	const struct san_pdl_rxw *req = &c->rx[SAN_WIN_REQ];
	const struct san_pdl_rxw *data = &c->rx[SAN_WIN_DATA];
	uint32_t i;

	ack->nb_req = words_of(req);
	ack->nb_data = words_of(data);
	for (i = 0; i < ack->nb_req; i++)
		ack->req[i] = san_bitmap_get64(&req->acked, req->base + 64 * i);
	for (i = 0; i < ack->nb_data; i++) {
		ack->data_acked[i] = san_bitmap_get64(&data->acked, data->base + 64 * i);
		ack->data_rcvd[i] = san_bitmap_get64(&data->rcvd, data->base + 64 * i);
	}
}

/*
 * The fill level of the reorder buffer for this peer, 0 .. 1000. It is full at the share at which
 * packets of the peer are refused. A peer that leaves room is not slowed down by others that do not
 * (RT-35).
 */
static uint16_t
level_for(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	if (likely(pdl->rx_level == 0))
		return 0;
	return (uint16_t)RTE_MIN(pdl->uses[c->host].nb_held * 1000ULL / RTE_MAX(pdl->rx_free, 1u),
				 1000ULL);
}

static void
fill_ack(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_wire_ack *ack, uint64_t now_ns)
{
	struct san_pdl_ackst *a = &c->ack;

	ack->serial = ++a->serial;
	ack->echo_tx = a->echo_valid ? a->echo_tx : 0;
	ack->echo_rx = a->echo_valid ? a->echo_rx : 0;
	ack->ecn_count = a->ce_count;
	ack->rx_level = level_for(pdl, c);
	ack->first_win = c->rx_first_win;
	ack->oow = a->oow;
	fill_bitmaps(c, ack);
	a->oow = 0;
	a->ce = false;
	a->probe_len = 0;
	a->nb_stood = 0;
	a->last_ns = now_ns;
	ack_settle_conn(pdl, c);
	pdl->stats.nb_acks_tx++;
}

void
san_pdl_ack_fill(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_wire_pkt *p,
		 struct san_wire_ack *ack, uint64_t now_ns)
{
	memset(p, 0, sizeof(*p));
	if (c->cnp_due) {
		p->op = SAN_OP_CNP;
		c->cnp_due = false;
		pdl->stats.nb_cnp_tx++;
	} else if (c->pmtu_due) {
		p->op = SAN_OP_PROBE;
		p->payload_len = san_pdl_pmtu_probe_len(c);
		c->pmtu_due = false;
		pdl->stats.nb_probes++;
	} else if (c->probe_due) {
		p->op = SAN_OP_PROBE;
		c->probe_due = false;
		c->probe_ns = now_ns;
		if (c->nb_probes < UINT8_MAX)
			c->nb_probes++;
		pdl->stats.nb_probes++;
	} else {
		p->op = SAN_OP_ACK;
		p->rsn = c->ack.probe_len;
		fill_ack(pdl, c, ack, now_ns);
	}
	p->psn = c->tx[SAN_WIN_DATA].next;
	san_pdl_tx_header(pdl, c, p, now_ns);
	if (san_pdl_ack_owes(c))
		san_pdl_ack_list(pdl, c);
}

/* ---- applying (RT-6) ---- */

/* Report of an ACK for one window, and what it changed. */
struct report {
	uint32_t ebsn;
	const uint64_t *acked; /* bit i: ebsn + i */
	const uint64_t *rcvd;  /* NULL: hints stay as they are */
	uint32_t nb_words;
	uint32_t nb_new;     /* out: packets newly received or acknowledged */
	uint32_t nb_retired; /* out */
	uint64_t now_ns;
	bool revoked; /* out: a hint was revoked */
};

static void
ack_retire_bits(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		uint64_t bits, struct report *r)
{
	uint64_t known = san_bitmap_get64(&c->txb->rcvd[win], psn);

	r->nb_new += (uint32_t)__builtin_popcountll(bits & ~known);
	r->nb_retired += (uint32_t)__builtin_popcountll(bits);
	san_pdl_rtx_retire(pdl, c, win, psn, bits, r->now_ns);
	san_bitmap_or64(&c->txb->acked[win], psn, bits);
}

/* Set the hints of the 64 PSNs from *psn* on to *word*, as far as *mask* is set. */
static void
apply_hints(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
	    uint64_t word, uint64_t mask, struct report *r)
{
	uint64_t old = san_bitmap_get64(&c->txb->rcvd[win], psn);
	uint64_t add, cleared;

	mask &= ~san_bitmap_get64(&c->txb->acked[win], psn);
	for (add = word & ~old & mask; add != 0; add &= add - 1) {
		uint32_t p = psn + (uint32_t)__builtin_ctzll(add);

		if (san_pdl_rtx_hint(pdl, c, win, p, r->now_ns))
			r->nb_new++;
	}
	for (cleared = old & ~word & mask; cleared != 0; cleared &= cleared - 1) {
		san_pdl_rtx_unhint(pdl, c, win, psn + (uint32_t)__builtin_ctzll(cleared));
		r->revoked = true;
	}
}

static void
apply_words(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, struct report *r)
{
	struct san_pdl_txw *w = &c->tx[win];
	uint32_t left = w->next - r->ebsn;  /* bits from NSN on mean nothing */
	uint32_t reach = w->high - r->ebsn; /* no hint is set at or above *high* */
	uint32_t i, off;

	for (i = 0, off = 0; off < left && (i < r->nb_words || (r->rcvd != NULL && off < reach));
	     i++, off += 64) {
		uint64_t mask = san_bitmap_mask64(left - off);
		uint64_t acked = i < r->nb_words ? r->acked[i] & mask : 0;
		uint64_t rcvd = i < r->nb_words && r->rcvd != NULL ? r->rcvd[i] & mask : 0;
		uint64_t news = acked & ~san_bitmap_get64(&c->txb->acked[win], r->ebsn + off);

		if ((acked | rcvd) != 0) {
			uint32_t top = off + 64 - (uint32_t)__builtin_clzll(acked | rcvd);

			w->high = san_seq_max(w->high, r->ebsn + top);
		}
		if (news != 0)
			ack_retire_bits(pdl, c, win, r->ebsn + off, news, r);
		if (r->rcvd != NULL)
			apply_hints(pdl, c, win, r->ebsn + off, rcvd, mask, r);
	}
}

/* Returns false, and changes nothing, if eBSN is beyond NSN. */
static bool
apply_window(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, struct report *r)
{
	struct san_pdl_txw *w = &c->tx[win];
	uint64_t news;
	uint32_t psn, n;

	if (san_seq_lt(r->ebsn, w->base))
		return true; /* an older report */
	if (r->ebsn - w->base > w->next - w->base)
		return false;
	if (w->base == w->next)
		return true;
	n = r->ebsn - w->base;
	/* The usual report: nothing above the base was received before, nor is now. */
	if (likely(w->high == w->base && r->nb_words == 0 && n <= 64)) {
		if (n != 0)
			san_pdl_rtx_retire(pdl, c, win, w->base, san_bitmap_mask64(n), r->now_ns);
		r->nb_new = r->nb_retired = n;
		w->base = w->high = r->ebsn;
		return true;
	}
	for (psn = w->base; san_seq_lt(psn, r->ebsn); psn += 64) {
		news = ~san_bitmap_get64(&c->txb->acked[win], psn) &
			san_bitmap_mask64(r->ebsn - psn);
		if (news != 0)
			ack_retire_bits(pdl, c, win, psn, news, r);
	}
	w->high = san_seq_max(w->high, r->ebsn);
	apply_words(pdl, c, win, r);
	san_pdl_win_tx_slide(w, c->txb, win);
	return true;
}

/*
 * Apply the fields of a dedicated ACK that belong to no window. True if it is the newest ACK so
 * far.
 */
static bool
apply_newest(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_ack *ack,
	     struct san_pdl_cc_sample *s)
{
	if (c->peer_serial_valid && san_seq_le(ack->serial, c->peer_serial))
		return false;
	c->peer_serial_valid = true;
	c->peer_serial = ack->serial;
	c->nb_probes = 0;
	c->last_ack_ns = s->now_ns;
	c->pcb.first_win = RTE_MAX(ack->first_win, SAN_WIN_MIN);
	s->nb_ce = (uint16_t)(ack->ecn_count - c->peer_ecn);
	c->peer_ecn = ack->ecn_count;
	c->peer_level = ack->rx_level;
	if (ack->oow != 0) {
		c->oow_tick = RTE_MAX(san_pdl_tick(s->now_ns), 1u);
		pdl->stats.nb_out_of_window++;
	}
	return true;
}

static void
apply_echo(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t tx_time,
	   const struct san_wire_ack *ack, struct san_pdl_cc_sample *s)
{
	const struct san_pdl_conf *conf = &pdl->conf;
	uint64_t rtt_ns, prompt_ns = RTE_MIN(2 * conf->ack_delay_ns, PROMPT_MAX_NS);
	uint32_t since_ns = ack->echo_tx - c->last_echo;

	if (!san_pdl_rtt_echo(conf, c, tx_time, ack, s->now_ns, &rtt_ns, &s->delay_ns))
		return;
	san_pdl_rtt_sample(&c->rtt, conf, rtt_ns, c->cc.level, since_ns);
	/*
	 * The ACK may have waited for this lcore. That time is part of the round trip, but no delay
	 * of the network. If either side was held up, the rest may be far too small for the base.
	 */
	if (rtt_ns < s->delay_ns + prompt_ns && pdl->rx_gap_ns <= prompt_ns)
		san_pdl_rtt_base(conf, c, s->delay_ns);
	s->delay_ns = s->delay_ns > pdl->rx_gap_ns ? s->delay_ns - pdl->rx_gap_ns : 1;
	s->delay_ns = san_pdl_rtt_weigh(conf, c, s->delay_ns, s->now_ns);
}

static void
feed_cc(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_cc_sample *s)
{
	const struct san_pdl_conf *conf = &pdl->conf;
	struct san_pdl_cc *cc = &c->cc;
	uint32_t cuts = cc->nb_cuts;

	/* Before the first sample: long enough that packets of one flight cause one cut. */
	s->rtt_ns = c->rtt.srtt_ns != 0 ? c->rtt.srtt_ns : conf->rto_init_ns;
	s->rx_level = c->peer_level;
	cc->ops->on_ack(cc, &conf->cc_conf, s);
	if (s->nb_lost != 0 && cc->ops->on_loss != NULL)
		cc->ops->on_loss(cc, &conf->cc_conf, s->rtt_ns, s->now_ns);
	pdl->stats.nb_cc_cuts += cc->nb_cuts - cuts;
	if (s->delay_ns != 0 || s->nb_ce != 0)
		san_pdl_plb_sample(pdl, c, s->delay_ns, s->nb_ce != 0, s->now_ns);
}

static void
ack_conclude_report(struct san_pdl *pdl, struct san_pdl_conn *c, const struct report *r,
		    bool newest, struct san_pdl_cc_sample *s)
{
	uint32_t news;

	s->nb_acked = r[SAN_WIN_REQ].nb_new + r[SAN_WIN_DATA].nb_new;
	news = s->nb_acked + r[SAN_WIN_REQ].nb_retired + r[SAN_WIN_DATA].nb_retired;
	if (unlikely(c->pmtu.watch))
		san_pdl_pmtu_on_acked(pdl, c);
	if (news != 0)
		san_pdl_rtx_progress(pdl, c, s->now_ns);
	if (s->nb_acked != 0 || s->delay_ns != 0)
		s->nb_lost = san_pdl_rtx_gaps(pdl, c, s->delay_ns != 0, s->now_ns);
	if (newest || s->nb_acked != 0) {
		s->nb_lost += c->nb_timer_lost;
		c->nb_timer_lost = 0;
		feed_cc(pdl, c, s);
	}
	/* The room made by this report matters only to what found none before. */
	if ((news != 0 && (c->limited || san_pdl_has_lost(c))) || s->nb_lost != 0 ||
	    r[SAN_WIN_DATA].revoked)
		san_pdl_sched_kick(pdl, c);
	san_pdl_pcb_rest(pdl, c);
}

static __rte_noinline void
ack_apply_report(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		 const struct san_wire_ack *ack, uint64_t now_ns)
{
	struct report r[SAN_WIN_MAX] = {
		[SAN_WIN_REQ] = {.ebsn = p->req_ebsn, .now_ns = now_ns},
		[SAN_WIN_DATA] = {.ebsn = p->data_ebsn, .now_ns = now_ns},
	};
	struct san_pdl_cc_sample s = {.now_ns = now_ns};
	bool ok = true, newest = false;
	uint32_t win;

	s.limited = 2 * (uint64_t)c->pcb.inflight * SAN_CC_ONE >= san_pdl_cc_window(&c->cc);
	if (ack != NULL) {
		newest = apply_newest(pdl, c, ack, &s);
		if (p->rsn != 0)
			san_pdl_pmtu_answer(pdl, c, p->rsn, now_ns);
		if (newest)
			apply_echo(pdl, c, p->tx_time, ack, &s);
		r[SAN_WIN_REQ].acked = ack->req;
		r[SAN_WIN_REQ].nb_words = ack->nb_req;
		r[SAN_WIN_DATA].acked = ack->data_acked;
		r[SAN_WIN_DATA].rcvd = newest ? ack->data_rcvd : NULL;
		r[SAN_WIN_DATA].nb_words = ack->nb_data;
		pdl->stats.nb_acks_rx++;
	}
	for (win = 0; win < SAN_WIN_MAX; win++)
		ok &= apply_window(pdl, c, win, &r[win]);
	if (!ok)
		pdl->drops[SAN_DROP_ACK_BEYOND]++;
	ack_conclude_report(pdl, c, r, newest, &s);
}

void
san_pdl_ack_apply(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		  const struct san_wire_ack *ack, uint64_t now_ns)
{
	/* Most packets of a one-way stream report nothing new. */
	if (ack != NULL || p->req_ebsn != c->tx[SAN_WIN_REQ].base ||
	    p->data_ebsn != c->tx[SAN_WIN_DATA].base)
		ack_apply_report(pdl, c, p, ack, now_ns);
}
