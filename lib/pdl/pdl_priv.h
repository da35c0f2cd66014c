/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Definitions shared by the files of lib/pdl only. */

#include "pdl.h"
#include "san_assert.h"
#include "san_seq.h"

/* ---- small helpers ---- */

/** Arm the connection's timer unless it is armed for *when_ns* or earlier. */
static inline void
san_pdl_arm_for(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t when_ns)
{
	if (!san_wheel_timer_is_armed(&c->timer) || when_ns < c->timer.deadline_ns)
		san_wheel_arm(&pdl->wheel, &c->timer, when_ns);
}

/** Convert to the time units of entries, rounded up so that nothing is due too soon. */
static inline uint32_t
san_pdl_tick(uint64_t ns)
{
	return (uint32_t)((ns + (1u << SAN_PDL_TICK_SHIFT) - 1) >> SAN_PDL_TICK_SHIFT);
}

/** Convert *due* back to time; it must be within 36 minutes of *now_ns*. */
static inline uint64_t
san_pdl_tick_ns(uint32_t due, uint64_t now_ns)
{
	uint64_t now = now_ns >> SAN_PDL_TICK_SHIFT;
	int64_t diff = san_seq_diff(due, (uint32_t)now);

	return (uint64_t)((int64_t)now + diff) << SAN_PDL_TICK_SHIFT;
}

/** Grants and RESYNC need window room only (RULE-7). */
static inline bool
san_pdl_is_counted(uint8_t op)
{
	return op != SAN_OP_PUSH_GRNT && op != SAN_OP_RESYNC;
}

static inline bool
san_pdl_has_lost(const struct san_pdl_conn *c)
{
	return c->tx[SAN_WIN_REQ].nb_lost + c->tx[SAN_WIN_DATA].nb_lost != 0;
}

static inline bool
san_pdl_has_outstanding(const struct san_pdl_conn *c)
{
	return san_pdl_win_tx_outstanding(&c->tx[SAN_WIN_REQ]) +
		san_pdl_win_tx_outstanding(&c->tx[SAN_WIN_DATA]) !=
		0;
}

/** True if a block of the pool holds its outstanding packets. */
static inline bool
san_pdl_is_wide(const struct san_pdl_conn *c)
{
	return c->txb != NULL && c->txb != &c->narrow.b;
}

static inline struct san_pdl_wide *
san_pdl_wide_of(const struct san_pdl_conn *c)
{
	return container_of(c->txb, struct san_pdl_wide, b);
}

/** End of coalescing; NEVER if it waits for no timer, but on a list. */
static inline uint64_t
san_pdl_ack_timer_ns(const struct san_pdl_conn *c)
{
	return c->ack.now || c->ack.held ? SAN_TIME_NEVER : c->ack.deadline_ns;
}

/** True if it owes a packet that san_pdl_ack_fill() writes. */
static inline bool
san_pdl_ack_owes(const struct san_pdl_conn *c)
{
	return c->ack.now || c->probe_due || c->cnp_due || c->pmtu_due;
}

/* ---- pdl.c ---- */

/** Return *words*, which no window uses any more, to the pool. */
void san_pdl_rxwords_return(struct san_pdl *pdl, struct san_pdl_rxwords *words);

/* ---- pdl_ack.c ---- */

/** Take the connection off the ACK lists before it is deleted. */
void san_pdl_ack_unlist(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Owe an ACK; *must*: a reverse packet cannot replace it. */
void san_pdl_ack_owe(struct san_pdl *pdl, struct san_pdl_conn *c, bool must);
/**
 * A packet asked for an ACK: owe it now, or hold it if a packet of ours will likely carry it
 * (RT-8).
 */
void san_pdl_ack_on_request(struct san_pdl *pdl, struct san_pdl_conn *c);
/** A packet of ours is sent: learn whether it soon follows a packet that asked for an ACK. */
void san_pdl_ack_answer(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/**
 * *n* packets were received or acknowledged in a window: coalesce their ACK (RT-8). If the first
 * one *asks* for an ACK, a list will have it, and no timer is needed.
 */
static inline void
san_pdl_ack_coalesce(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t n, bool asks,
		     uint64_t now_ns)
{
	/* As one by one: the first packet starts the timer, unless it owes the ACK itself. */
	if (c->ack.deadline_ns == SAN_TIME_NEVER &&
	    c->ack.nb_unreported + 1 < pdl->conf.ack_every) {
		c->ack.deadline_ns = now_ns + pdl->conf.ack_delay_ns;
		if (!asks)
			san_pdl_arm_for(pdl, c, c->ack.deadline_ns);
	}
	c->ack.nb_unreported += n;
	if (c->ack.nb_unreported >= pdl->conf.ack_every)
		san_pdl_ack_owe(pdl, c, false);
}
/** A reverse packet carries the bases: cancel an owed ACK that it makes needless. */
void san_pdl_ack_piggyback(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** Remember the packet for the echo of the next ACK (RT-25). *nb_unreported* packets precede it. */
void san_pdl_ack_echo(const struct san_pdl *pdl, struct san_pdl_conn *c,
		      const struct san_wire_pkt *p, uint32_t nb_unreported, uint64_t now_ns);
/** The coalescing timer may have expired. */
void san_pdl_ack_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** Apply the ACK fields of a received packet (RT-6); *ack* NULL: only the piggybacked ones. */
void san_pdl_ack_apply(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		       const struct san_wire_ack *ack, uint64_t now_ns);
/** Owe a CNP for a CE-marked packet, at most one per 50 us. */
void san_pdl_ack_cnp(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** Put the connection on the list of those that owe an ACK, PROBE or CNP. */
void san_pdl_ack_list(struct san_pdl *pdl, struct san_pdl_conn *c);

/* ---- pdl_rtx.c ---- */

/** Mark a PSN lost: it must be resent. */
void san_pdl_rtx_lose(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn);
/** Undo san_pdl_rtx_lose(): the PSN need not be resent. */
void san_pdl_rtx_find(struct san_pdl_conn *c, enum san_win win, uint32_t psn);
/**
 * Acknowledge, finally, the PSNs from *psn* on whose *bits* are set; appends them to pdl->acked
 * (RT-20).
 */
void san_pdl_rtx_retire(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
			uint64_t bits, uint64_t now_ns);
/** The newest ACK reports *psn* received; returns true if that is new. */
bool san_pdl_rtx_hint(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		      uint64_t now_ns);
/** The newest ACK no longer reports *psn* received: it is resent (RULE-2). */
void san_pdl_rtx_unhint(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win,
			uint32_t psn);
/** Find missing packets old enough to resend, in both windows; returns how many (RT-22). */
uint32_t san_pdl_rtx_gaps(struct san_pdl *pdl, struct san_pdl_conn *c, bool echo_valid,
			  uint64_t now_ns);
/** An ACK brought news: restart tail-loss probe and backoff. */
void san_pdl_rtx_progress(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** The first packet of the peer since a timeout in silence: restart timeouts, allow new packets. */
void san_pdl_rtx_silence_ends(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** Entry *e* is sent now, for the first time or again: start its timers. */
void san_pdl_rtx_sent(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e,
		      uint64_t now_ns);
/** Likewise for *n* packets of the data window from *psn* on, sent for the first time. */
void san_pdl_rtx_sent_first(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn, uint16_t n,
			    uint64_t now_ns);

/* ---- pdl_rtt.c ---- */

/**
 * Add a round-trip sample, *since_ns* after the one before; *level* is the congestion level, which
 * raises the RTO (RT-9).
 */
void san_pdl_rtt_sample(struct san_pdl_rtt *r, const struct san_pdl_conf *conf, uint64_t rtt_ns,
			uint32_t level, uint32_t since_ns);
/** Timeout of a packet that timed out *retries* times, jitter included (RT-7). */
uint64_t san_pdl_rtt_timeout(struct san_pdl *pdl, const struct san_pdl_conn *c, uint8_t retries);
/** Time within which the answer to a packet arrives, unless one of them is lost. */
uint64_t san_pdl_rtt_answer_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** Age at which a missing packet counts as lost. */
uint64_t san_pdl_rtt_gap_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** Silence after which a tail-loss probe is sent. */
uint64_t san_pdl_rtt_tail_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** A packet took *delay_ns*, measured without guesses: the path without a queue takes no more. */
void san_pdl_rtt_base(const struct san_pdl_conf *conf, struct san_pdl_conn *c, uint64_t delay_ns);
/**
 * The part of a fabric delay that congestion control uses. Transmission time on slow links is
 * subtracted, and on a path whose delay alone is near the target also the delay of the path.
 */
uint64_t san_pdl_rtt_weigh(const struct san_pdl_conf *conf, struct san_pdl_conn *c,
			   uint64_t delay_ns, uint64_t now_ns);
/**
 * Compute round trip and fabric delay from the echo of an ACK (RT-25). False: the ACK has no new
 * sample.
 */
bool san_pdl_rtt_echo(const struct san_pdl_conf *conf, struct san_pdl_conn *c, uint32_t tx_time,
		      const struct san_wire_ack *ack, uint64_t now_ns, uint64_t *rtt_ns,
		      uint64_t *delay_ns);

/* ---- pdl_plb.c ---- */

/** Add a sample of the path; *delay_ns* 0: the ACK had only CE marks. */
void san_pdl_plb_sample(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t delay_ns,
			bool ce_marked, uint64_t now_ns);
/** A packet timed out: the path may not return anything. */
void san_pdl_plb_timeout(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** A duplicate came. A new packet sets c->nb_copies to 0. */
void san_pdl_plb_copy(struct san_pdl *pdl, struct san_pdl_conn *c);

/* ---- pdl_pmtu.c ---- */

/** IP bytes that every path must carry (RT-31); an IPv6 path carries at least 1280. */
#define SAN_MTU_SURE 1280

/** The connection opens: both ends accept packets of *mtu* payload bytes. */
void san_pdl_pmtu_init(const struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t mtu);
/** Payload bytes of the long PROBE. */
uint16_t san_pdl_pmtu_probe_len(const struct san_pdl_conn *c);
/** A packet of *len* bytes, at least c->mtu_watch, was sent: start a search if one is due. */
void san_pdl_pmtu_on_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t len,
			  uint64_t now_ns);
/** Check pdl->acked for a long packet. Called while c->pmtu.watch is set. */
void san_pdl_pmtu_on_acked(const struct san_pdl *pdl, struct san_pdl_conn *c);
/** An ACK reports that a PROBE of *len* bytes arrived. */
void san_pdl_pmtu_answer(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t len,
			 uint64_t now_ns);
void san_pdl_pmtu_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** End the search, if there is one; the next one starts not before *again_ns*. */
void san_pdl_pmtu_stop(struct san_pdl_conn *c, uint64_t again_ns);
/** *e* is lost: find out whether its length is the reason, and if so use shorter packets. */
void san_pdl_pmtu_on_loss(struct san_pdl *pdl, struct san_pdl_conn *c,
			  const struct san_pdl_entry *e, uint64_t now_ns);
/** Retries of *e* are exhausted: true if it is long and the peer has sent an ACK since. */
bool san_pdl_pmtu_is_to_blame(const struct san_pdl_conn *c, const struct san_pdl_entry *e,
			      uint64_t now_ns);

/* ---- pdl_pcb.c ---- */

/** Packets of host budget that the connection may take now; if 0, it is queued (PCB-4). */
uint32_t san_pdl_pcb_budget(struct san_pdl *pdl, struct san_pdl_conn *c);
void san_pdl_pcb_enter(struct san_pdl *pdl, struct san_pdl_conn *c);
void san_pdl_pcb_leave(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t n);
/** The connection has packets to send: it gets a share of the budget, which lowers all limits. */
void san_pdl_pcb_begin(struct san_pdl *pdl, struct san_pdl_conn *c);
/** After a visit or a report: give up what the connection no longer uses, so that others get it. */
void san_pdl_pcb_rest(struct san_pdl *pdl, struct san_pdl_conn *c);
/** A visit is over: return its token as well. */
void san_pdl_pcb_end(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Give freed budget to the connections that wait for it, longest first. */
void san_pdl_pcb_wake(struct san_pdl *pdl);
/** The connection sends no more: give up the budget it waits for. */
void san_pdl_pcb_withdraw(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Give the connection a wide txblock, or its narrow one if the pool is empty. */
void san_pdl_pcb_take_block(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Return its txblock if nothing is outstanding. */
void san_pdl_pcb_return_block(struct san_pdl *pdl, struct san_pdl_conn *c);

/* ---- pdl_sched.c ---- */

/** Pacing: true if a counted packet may be sent; if not, the timer is armed. */
bool san_pdl_sched_paced(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** *n* counted packets with *bytes* of payload are sent: compute when the next one may follow. */
void san_pdl_sched_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t n, uint32_t bytes,
			uint64_t now_ns);
/** Take the connection off the ready list. */
void san_pdl_sched_remove(struct san_pdl *pdl, struct san_pdl_conn *c);
