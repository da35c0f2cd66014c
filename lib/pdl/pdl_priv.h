/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PDL_PRIV_H
#define PDL_PRIV_H

/**
 * @file
 * What the files of lib/pdl share and nobody else sees.
 */

#include "pdl.h"
#include "san_assert.h"
#include "san_seq.h"

/* ---- small helpers ---- */

/** Arm the connection's timer if *when_ns* is earlier than what it is armed for. */
static inline void
san_pdl_arm_for(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t when_ns)
{
	if (!san_timer_is_armed(&c->timer) || when_ns < c->timer.deadline_ns)
		san_wheel_arm(&pdl->wheel, &c->timer, when_ns);
}

/** Entry time units, rounded up: never early. */
static inline uint32_t
san_pdl_tick(uint64_t ns)
{
	return (uint32_t)((ns + (1u << SAN_PDL_TICK_SHIFT) - 1) >> SAN_PDL_TICK_SHIFT);
}

/** The time that *due* means, within 36 minutes of *now_ns*. */
static inline uint64_t
san_pdl_tick_ns(uint32_t due, uint64_t now_ns)
{
	uint64_t now = now_ns >> SAN_PDL_TICK_SHIFT;
	int64_t diff = san_seq_diff(due, (uint32_t)now);

	return (uint64_t)((int64_t)now + diff) << SAN_PDL_TICK_SHIFT;
}

/** Grants and RESYNC need window room only (design, rule 7). */
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
	return san_pdl_txw_outstanding(&c->tx[SAN_WIN_REQ]) +
		san_pdl_txw_outstanding(&c->tx[SAN_WIN_DATA]) !=
		0;
}

/** Is what it has outstanding in a block of the pool? */
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

/** Does it owe anything that san_pdl_ack_fill() writes? */
static inline bool
san_pdl_ack_owes(const struct san_pdl_conn *c)
{
	return c->ack.now || c->probe_due || c->cnp_due || c->pmtu_due;
}

/* ---- pdl_conn.c ---- */

/** *words* are no window's any more. */
void san_pdl_rxwords_return(struct san_pdl *pdl, struct san_pdl_rxwords *words);

/* ---- pdl_ack.c ---- */

/** Owes nothing any more: it goes. */
void san_pdl_ack_unlist(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Owe an ACK; *must*: a reverse packet can't stand for it. */
void san_pdl_ack_owe(struct san_pdl *pdl, struct san_pdl_conn *c, bool must);
/** A packet asked for an ACK: now, or soon, if a packet of ours is likely to carry it (RT-8). */
void san_pdl_ack_asked(struct san_pdl *pdl, struct san_pdl_conn *c);
/** A packet of ours goes: does it follow one that asked for an ACK? */
void san_pdl_ack_answer(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** *n* packets took their place in a window, or moved on in it: coalesce (RT-8). */
void san_pdl_ack_coalesce(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t n,
			  uint64_t now_ns);
/** A reverse packet carries the bases: cancel what it makes needless. */
void san_pdl_ack_piggyback(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** Remember the packet, behind *nb_unreported* others, for the echo of the next ACK (RT-25). */
void san_pdl_ack_echo(const struct san_pdl *pdl, struct san_pdl_conn *c,
		      const struct san_wire_pkt *p, uint32_t nb_unreported, uint64_t now_ns);
/** The coalescing timer may have expired. */
void san_pdl_ack_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** ACK fields of a received packet (RT-6); *ack* NULL: only the piggybacked ones. */
void san_pdl_ack_apply(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		       const struct san_wire_ack *ack, uint64_t now_ns);
/** A CNP is owed for a CE-marked packet, at most one per 50 us. */
void san_pdl_ack_cnp(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** Put it on the list of those that owe an ACK, PROBE or CNP. */
void san_pdl_ack_list(struct san_pdl *pdl, struct san_pdl_conn *c);

/* ---- pdl_rtx.c ---- */

/** An outstanding packet is gone from the network: it leaves PCB-2's sum. */
void san_pdl_rtx_unflight(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win,
			  uint32_t psn);
/** It must go again. */
void san_pdl_rtx_lose(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn);
/** It need not go again after all. */
void san_pdl_rtx_find(struct san_pdl_conn *c, enum san_win win, uint32_t psn);
/** PSNs from *psn* on whose *bits* are set are acknowledged, finally; into pdl->acked (RT-20). */
void san_pdl_rtx_retire(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
			uint64_t bits, uint64_t now_ns);
/** Reported received by the newest ACK: true if that is news. */
bool san_pdl_rtx_hint(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		      uint64_t now_ns);
/** No longer reported received: goes again (design, rule 2). */
void san_pdl_rtx_unhint(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win,
			uint32_t psn);
/** Find holes old enough to resend, in both windows; returns how many (RT-22). */
uint32_t san_pdl_rtx_holes(struct san_pdl *pdl, struct san_pdl_conn *c, bool echo_valid,
			   uint64_t now_ns);
/** An ACK brought news: tail-loss probe and backoff start anew. */
void san_pdl_rtx_progress(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** The peer was heard, for the first time since something timed out: new timeouts, new packets. */
void san_pdl_rtx_heard(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** Entry *e* goes now, for the first time or again: its timers start. */
void san_pdl_rtx_sent(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e,
		      uint64_t now_ns);
/** Likewise *n* of the data window, from *psn* on, for the first time. */
void san_pdl_rtx_sent_first(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn, uint16_t n,
			    uint64_t now_ns);

/* ---- pdl_rtt.c ---- */

void san_pdl_rtt_init(struct san_pdl_rtt *r, const struct san_pdl_conf *conf);
/** One round trip; *level* is the congestion level, which raises the RTO (RT-9). */
void san_pdl_rtt_sample(struct san_pdl_rtt *r, const struct san_pdl_conf *conf, uint64_t rtt_ns,
			uint32_t level);
/** How long a packet that timed out *retries* times may take now, jitter included (RT-7). */
uint64_t san_pdl_rtt_timeout(struct san_pdl *pdl, const struct san_pdl_conn *c, uint8_t retries);
/** Time within which a packet is answered, if it and the answer arrive. */
uint64_t san_pdl_rtt_answer_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** Age from which a hole counts as lost. */
uint64_t san_pdl_rtt_hole_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** Silence after which the tail is probed. */
uint64_t san_pdl_rtt_tail_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** A packet took *delay_ns*, and nothing was guessed in that: the path takes no more. */
void san_pdl_rtt_base(struct san_pdl_rtt *r, uint64_t delay_ns);
/**
 * A fabric delay as congestion control is to see it: without what a packet takes on
 * slow links, and, on a path that alone is about as long as the target, without what
 * the path takes.
 */
uint64_t san_pdl_rtt_weigh(const struct san_pdl_conf *conf, struct san_pdl_conn *c,
			   uint64_t delay_ns, uint64_t now_ns);
/**
 * Round trip and fabric delay from the echo of an ACK (RT-25). False: no new
 * sample in it.
 */
bool san_pdl_rtt_echo(const struct san_pdl_conf *conf, struct san_pdl_conn *c, uint32_t tx_time,
		      const struct san_wire_ack *ack, uint64_t now_ns, uint64_t *rtt_ns,
		      uint64_t *delay_ns);

/* ---- pdl_plb.c ---- */

/** *delay_ns* 0: the ACK had no sample, only CE marks. */
void san_pdl_plb_sample(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t delay_ns,
			bool ce_marked, uint64_t now_ns);
/** A packet timed out: nothing comes back on this path. */
void san_pdl_plb_timeout(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** A packet came that had come before; what is new sets c->nb_copies to 0. */
void san_pdl_plb_copy(struct san_pdl *pdl, struct san_pdl_conn *c);

/* ---- pdl_pmtu.c ---- */

/** IP bytes that a path must take (RT-31); no path of IPv6 takes less than 1280. */
#define SAN_MTU_SURE 1280

/** Open: *mtu* payload bytes is what both ends take. */
void san_pdl_pmtu_init(const struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t mtu);
/** Payload of the long PROBE. */
uint16_t san_pdl_pmtu_probe_len(const struct san_pdl_conn *c);
/** A packet of *len* bytes went, at least c->mtu_watch: search for more, if it is time to. */
void san_pdl_pmtu_on_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t len,
			  uint64_t now_ns);
/** c->pmtu.watch is set, and pdl->acked may hold a long packet. */
void san_pdl_pmtu_on_acked(const struct san_pdl *pdl, struct san_pdl_conn *c);
/** An ACK says that a PROBE of *len* bytes came. */
void san_pdl_pmtu_answer(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t len,
			 uint64_t now_ns);
void san_pdl_pmtu_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** End of the search, if there is one; the next one not before *again_ns*. */
void san_pdl_pmtu_stop(struct san_pdl_conn *c, uint64_t again_ns);
/** *e* is lost: if that may be for its length, find out, and use shorter packets if it is. */
void san_pdl_pmtu_on_loss(struct san_pdl *pdl, struct san_pdl_conn *c,
			  const struct san_pdl_entry *e, uint64_t now_ns);
/** Retries are exhausted: long, and the peer was heard since it went last? */
bool san_pdl_pmtu_is_to_blame(const struct san_pdl_conn *c, const struct san_pdl_entry *e,
			      uint64_t now_ns);

/* ---- pdl_pcb.c ---- */

/** Packets of host budget it may take now; 0 queues it (PCB-4). */
uint32_t san_pdl_pcb_budget(struct san_pdl *pdl, struct san_pdl_conn *c);
void san_pdl_pcb_enter(struct san_pdl *pdl, struct san_pdl_conn *c);
void san_pdl_pcb_leave(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t n);
/** A visit is over: give back what it did not use, decide whether it is active. */
void san_pdl_pcb_end(struct san_pdl *pdl, struct san_pdl_conn *c, bool more);
/** Hand freed budget to those that wait for it, longest first. */
void san_pdl_pcb_wake(struct san_pdl *pdl);
/** Everything of the connection returns: it is being deleted. */
/** It won't send any more: give up what it waits for. */
void san_pdl_pcb_withdraw(struct san_pdl *pdl, struct san_pdl_conn *c);
void san_pdl_pcb_fini(struct san_pdl *pdl, struct san_pdl_conn *c);
/** A txblock for the connection, if it has none. */
void san_pdl_pcb_take_block(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Return its txblock when nothing is outstanding. */
void san_pdl_pcb_return_block(struct san_pdl *pdl, struct san_pdl_conn *c);

/* ---- pdl_sched.c ---- */

/** Pacing: may a counted packet go? If not, the timer is armed. */
bool san_pdl_sched_paced(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
/** *n* counted packets go, with *bytes* of payload: when may the next? */
void san_pdl_sched_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t n, uint32_t bytes,
			uint64_t now_ns);
/** It has nothing to send any more, ever. */
void san_pdl_sched_remove(struct san_pdl *pdl, struct san_pdl_conn *c);

#endif /* PDL_PRIV_H */
