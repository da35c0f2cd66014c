/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connection set-up and teardown (RT-1, RT-24), as lib/cm does it: one connecting
 * side, one accepting side, a network that loses, repeats, delays and reorders.
 *
 * What mirrors what
 *
 *   connecting()   cm_fsm.c: san_cm_fsm_connect(), san_cm_fsm_disconnect(), act_drain(),
 *                  act_dreq(), san_cm_fsm_on_timer(); the ends in its table; cm_keepalive.c;
 *                  data of pdl
 *   accepting()    the same for one record of the other side. cm_fsm.c: san_cm_fsm_accept_peer(),
 *                  san_cm_fsm_reject(), act_forget(), act_refuse_again()
 *   attempt()      what names an attempt and no acceptor yet. cm_rx.c: rx_req(),
 *                  add_request(), cm_rx_answer(), answer_rej(),
 *                  rx_reset() at the accepting side; cm_fsm.c: act_cookie(), act_rejected()
 *   pair()         what names both. cm_rx.c: find_conn(), rx_rep(), cm_rx_conn_msg(),
 *                  rx_reset(), san_cm_rx_implicit_rtu(), san_cm_rx_answer_reset();
 *                  cm_fsm.c: act_ready(), act_rtu_again(), act_withdrawn(),
 *                  act_open(), and the ends in its table
 *   acc_end()      san_cm_conn_free(): a ghost stays. core_conn.c polls the events after
 *                  every call, so TIMEWAIT of a live slot lasts no time
 *
 * What is abstracted, and why that is sound
 *
 *   Network. A message once in the air stays there: it may arrive at any time, in any
 *     order, any number of times, or never. That contains every loss, repetition, delay
 *     and reordering. An arrival that changes nothing is left out: it is no step.
 *   Retries. A message may be sent again any number of times, and given up at any time.
 *     That contains every max_retries and every timer; that the tries are counted is a
 *     matter of test_cm_fsm. RESOLVING is REQ_SENT whose REQ is not yet in the air.
 *   quiet. From some moment on, any moment, nothing arrives any more and no ULP does
 *     anything; only timers run. What ends well then ends well without luck: no message
 *     is needed for it. Keep-alive is a timer, too: of an open connection whose peer
 *     would not answer a PROBE. Before that moment it may also be wrong, at any time.
 *     (With keepalive_ms = 0 nothing but data finds a peer that is gone.)
 *   Tags. Random 32 bit, here numbers that do not repeat: 1 .. NA, and of the accepting
 *     side's two slots 1 .. NI and NI + 1 .. 2 NI. The xid of an attempt goes with the tag.
 *     A CID is a slot; after its reuse it may be the same or another: then a wrong tag is
 *     dropped silently, or the answer is that of an unknown CID. Both may happen.
 *   Cookies. Any cookie may be found too old at any time; a valid one may come back after
 *     any time. A ghost that expires is not modelled: it outlives every cookie given
 *     before (timewait_ns), so after it the REQ gets a COOKIE as at any time. Nobody
 *     forges: what a cookie costs an attacker is test_cm_flood's.
 *   Data. One packet per direction and connection that stays in the air and outstanding,
 *     so a RESET may count at any time. An ACK or a PROBE opens a REP_SENT as data does.
 *   Messages to nobody. What can do nothing any more, because whom its tag names is gone
 *     and tags do not repeat, is taken out of the air (tidy()). Data is left there: only
 *     the tag protects from it. BREAK_TAG shows that it is still found.
 *   Both sides may connect at once: those are two connections that share nothing.
 *
 * Properties
 *
 *   agreed       who opens, opens with a peer that agreed to just this pair of tags, and
 *                neither side with another of the same attempt
 *   once         an attempt is established at most once on each side, and shown to the
 *                ULP again only after its record was forgotten
 *   old          no packet of another incarnation is accepted; RESET and REJ end only
 *                what the other side does not have any more
 *   end          after the network has gone quiet both sides end in IDLE, or in
 *                ESTABLISHED together; so nothing stays half-open, and teardown
 *                releases both
 *   progress     every run ends: no non-progress cycle (nothing is a progress state)
 *   no deadlock  invalid end states; every step is reached but those marked never
 *
 * Options: RESTART: each side may once lose everything it has, as a new process would.
 * BOTH: both ULPs disconnect, and nothing is said to be dead that is not: all ends in
 * IDLE. BREAK_x: one rule is left out; meson.build says which property notices it.
 */

#ifndef NA
#define NA 2 /* attempts, one after the other */
#endif
#ifndef NI
#define NI 2 /* incarnations of each slot of the accepting side */
#endif
#define NP (2 * NI)

/* states; those of the connecting side first */
#define IDLE	    0
#define REQ_SENT    1
#define COOKIE_SENT 2 /* REQ_COOKIE_SENT */
#define WAIT_ACCEPT 1
#define REP_SENT    2
#define ESTABLISHED 3
#define DRAINING    4
#define DREQ_SENT   5
#define GHOST	    6
#define is_live(s)  ((s) != IDLE && (s) != GHOST)
#define is_open(s)  ((s) == ESTABLISHED || (s) == DRAINING)

/* of an attempt: what is in the air, and (last three) what must not happen twice */
#define REQ	    1
#define REQ_COOKIE  2
#define COOKIE	    4
#define REJ_REQ	    8  /* refuses a REQ */
#define RESET_ACC   16 /* RESET to the accepting side */
#define ASKED	    32 /* the ULP was asked and the record is known */
#define CON_OPENED  64
#define ACC_OPENED  128

/* of a pair: what is in the air, each way */
#define REP	    1 /* to the connecting side */
#define RTU	    1 /* to the accepting side */
#define REJ_REP	    2
#define DREQ	    4
#define DREP	    8
#define DATA	    16
#define AGREED	    32 /* (to_con) the connecting side has opened with this pair */

typedef record {
	unsigned state : 3;
	unsigned tag : 3; /* 0: none */
	unsigned peer : 2;
	unsigned used : 2; /* incarnations so far */
	bit refused;
};

unsigned con : 3;  /* state of the connecting side */
unsigned ctag : 2; /* its tag: the number of the attempt */
unsigned cpeer : 3; /* the acceptor's tag, 0: not yet known */
record acc[2];

byte air[NA + 1];
byte to_con[NA * NP], to_acc[NA * NP];
byte reset_con; /* RESET to the connecting side, by the tag that it echoes */
bit quiet;
#ifdef RESTART
bit con_restarted, acc_restarted;
#endif
hidden byte old;

#define PAIR(x, p) (((x) - 1) * NP + (p) - 1)
#define SLOT(p)	   (((p) - 1) / NI)
#define TO_CON(x, p) to_con[PAIR(x, p)]
#define TO_ACC(x, p) to_acc[PAIR(x, p)]
#define put(where, what) where = where | (what)

#define con_has(x) (ctag == (x) && con != IDLE)
#define acc_has(p) (acc[SLOT(p)].tag == (p))
#define acc_knows(x) \
	((acc[0].state != IDLE && acc[0].peer == (x)) || \
	 (acc[1].state != IDLE && acc[1].peer == (x)))

/* would the other side answer a PROBE? */
#define acc_answers (cpeer != 0 && acc_has(cpeer) && acc[SLOT(cpeer)].state >= REP_SENT)
#define con_answers(s) (ctag == acc[s].peer && con >= ESTABLISHED && cpeer == acc[s].tag)

#ifdef BOTH
#define may_close true
#define may_seem_dead false
#else
#define may_close !quiet
#define may_seem_dead !quiet
#endif

/* keep-alive; packet delivery may fail later, too, but nothing makes it */
#ifdef BREAK_KEEPALIVE /* silence means nothing */
#define con_gone (may_seem_dead && con >= ESTABLISHED)
#define acc_gone(s) (may_seem_dead && acc[s].tag != 0 && acc[s].state >= ESTABLISHED)
#else
#define con_gone \
	((may_seem_dead && con >= ESTABLISHED) || (con == ESTABLISHED && !acc_answers))
#define acc_gone(s) \
	((may_seem_dead && acc[s].tag != 0 && acc[s].state >= ESTABLISHED) || \
	 (acc[s].state == ESTABLISHED && !con_answers(s)))
#endif

inline tidy(x, p)
{
	if
	:: !con_has(x) -> TO_CON(x, p) = TO_CON(x, p) & ~DREP
	:: else
	fi;
	if
	:: !acc_has(p) ->
		TO_ACC(x, p) = TO_ACC(x, p) & (DREQ | DATA)
	:: else
	fi;
	if
	:: !con_has(x) && !acc_has(p) ->
		TO_ACC(x, p) = TO_ACC(x, p) & DATA;
		TO_CON(x, p) = TO_CON(x, p) & DATA
	:: else
	fi
}

inline con_end()
{
	air[ctag] = air[ctag] & ~(REQ | COOKIE | REJ_REQ);
	con = IDLE;
	cpeer = 0;
	tidy(ctag, 1);
	tidy(ctag, 2);
#if NP > 2
	tidy(ctag, 3);
	tidy(ctag, 4)
#endif
}

inline acc_leave(s, next)
{
	old = acc[s].tag;
	acc[s].state = next;
	acc[s].tag = 0;
	acc[s].refused = 0;
	if
	:: old != 0 -> tidy(acc[s].peer, old)
	:: else
	fi
}

inline acc_forget(s)
{
	air[acc[s].peer] = air[acc[s].peer] & ~ASKED;
	acc_leave(s, IDLE);
	acc[s].peer = 0
}

#ifdef BREAK_GHOST /* a late REQ is not known again */
#define acc_end(s) acc_leave(s, IDLE)
#else
#define acc_end(s) acc_leave(s, GHOST)
#endif

/* open_conn(), accepting side */
inline acc_open(s)
{
	assert(TO_CON(acc[s].peer, acc[s].tag) & AGREED); /* property: agreed */
	assert(!(air[acc[s].peer] & ACC_OPENED)); /* property: once */
	put(air[acc[s].peer], ACC_OPENED);
	acc[s].state = ESTABLISHED
}

/* san_cm_conn_add(): the record of a ghost is overwritten */
#define can_add(s) (!is_live(acc[s].state) && acc[s].used < NI)
inline acc_add(s, x)
{
	if
	:: acc[s].state == GHOST -> air[acc[s].peer] = air[acc[s].peer] & ~ASKED
	:: else
	fi;
	assert(!(air[x] & ASKED)); /* property: once */
	put(air[x], ASKED);
	acc[s].tag = s * NI + 1 + acc[s].used;
	acc[s].used++;
	acc[s].peer = x;
	acc[s].state = WAIT_ACCEPT
}

active proctype connecting()
{
end:	do
	:: atomic { !quiet && con == IDLE && ctag < NA -> d_step {
		ctag++;
		con = REQ_SENT } }
	/* send() and its retries */
	:: atomic { !quiet && con == REQ_SENT && !(air[ctag] & REQ) -> d_step {
		put(air[ctag], REQ) } }
	:: atomic { !quiet && con == COOKIE_SENT && !(air[ctag] & REQ_COOKIE) -> d_step {
		put(air[ctag], REQ_COOKIE) } }
	:: atomic { !quiet && con == DREQ_SENT && !(TO_ACC(ctag, cpeer) & DREQ) -> d_step {
		put(TO_ACC(ctag, cpeer), DREQ) } }
	:: atomic { !quiet && is_open(con) && !(TO_ACC(ctag, cpeer) & DATA) -> d_step {
		put(TO_ACC(ctag, cpeer), DATA) } }
	/* UNREACHABLE, or the ULP does not want to any more */
	:: atomic { con == REQ_SENT || con == COOKIE_SENT -> d_step {
		con_end() } }
	/* CLOSED: nobody answered */
	:: atomic { con == DREQ_SENT -> d_step {
#ifdef BREAK_CHURN /* a disconnect that nobody answers is taken back */
		con = ESTABLISHED
#else
		con_end()
#endif
		} }
	:: atomic { may_close && con == ESTABLISHED -> d_step {
		con = DRAINING } }
	/* drained, drained long enough, or a hard disconnect */
	:: atomic { con == DRAINING || (may_close && con == ESTABLISHED) -> d_step {
		con = DREQ_SENT } }
	/* FAILED: its farewell is lost, or not */
	:: atomic { con_gone -> d_step {
		con_end() } }
	:: atomic { !quiet && con_gone -> d_step {
		put(TO_ACC(ctag, cpeer), DREQ);
		con_end() } }
#ifdef RESTART
	:: atomic { !quiet && !con_restarted && con != IDLE -> d_step {
		con_restarted = 1;
		con_end();
#ifdef BREAK_RESTART /* the new process uses the tag of the old */
		ctag--
#endif
		} }
#endif
	od
}

#define A_ acc[s]
#define A_OUT TO_CON(acc[s].peer, acc[s].tag)

proctype accepting(bit s)
{
end:	do
	:: atomic { !quiet && A_.state == WAIT_ACCEPT -> d_step {
#ifdef BREAK_EARLY /* open as soon as accepted */
		acc_open(s)
#else
		A_.state = REP_SENT
#endif
		} }
	:: atomic { !quiet && A_.state == WAIT_ACCEPT -> d_step {
		acc_end(s);
		A_.refused = 1 } }
	:: atomic { A_.state == WAIT_ACCEPT -> d_step {
		acc_forget(s) } }
	/* send() and its retries */
	:: atomic { !quiet && A_.state == REP_SENT && !(A_OUT & REP) -> d_step {
		put(A_OUT, REP) } }
	:: atomic { !quiet && A_.state == DREQ_SENT && !(A_OUT & DREQ) -> d_step {
		put(A_OUT, DREQ) } }
	:: atomic { !quiet && is_open(A_.state) && !(A_OUT & DATA) -> d_step {
		put(A_OUT, DATA) } }
	/* act_reject(), act_refuse_again() */
	:: atomic { !quiet && A_.refused && !(air[A_.peer] & REJ_REQ) &&
		    con_has(A_.peer) && con == COOKIE_SENT -> d_step {
		put(air[A_.peer], REJ_REQ) } }
	/* FAILED, CLOSED: nobody answered */
#ifndef BREAK_REP_FOREVER /* REP is repeated without end */
	:: atomic { A_.state == REP_SENT -> d_step {
		acc_end(s) } }
#endif
	:: atomic { !quiet && A_.state == REP_SENT -> d_step {
		put(A_OUT, DREQ);
		acc_end(s) } }
#ifndef BREAK_DREQ_FOREVER /* so is DREQ */
	:: atomic { A_.state == DREQ_SENT -> d_step {
		acc_end(s) } }
#endif
	:: atomic { may_close && A_.state == ESTABLISHED -> d_step {
		A_.state = DRAINING } }
	:: atomic { A_.state == DRAINING ||
		    (may_close && (A_.state == ESTABLISHED || A_.state == REP_SENT)) -> d_step {
		A_.state = DREQ_SENT } }
	/* FAILED */
	:: atomic { acc_gone(s) -> d_step {
		acc_end(s) } }
	:: atomic { !quiet && acc_gone(s) -> d_step {
		put(A_OUT, DREQ);
		acc_end(s) } }
#ifdef RESTART
	:: atomic { !quiet && !acc_restarted && is_live(A_.state) -> d_step {
		acc_restarted = 1;
		acc_forget(0);
		acc_forget(1) } }
#endif
	od
}

/* rx_reset(), accepting side: the packet that it answers is outstanding */
#define resets(s) \
	((air[x] & RESET_ACC) && acc[s].peer == x && acc[s].tag != 0 && acc[s].state >= ESTABLISHED)

proctype attempt(byte x)
{
end:	do
	:: atomic { !quiet && (air[x] & (REQ | REQ_COOKIE)) && !(air[x] & COOKIE) &&
		    con_has(x) && con == REQ_SENT -> d_step {
		put(air[x], COOKIE) } }
	:: atomic { !quiet && (air[x] & REQ_COOKIE) && !acc_knows(x) && can_add(0) -> d_step {
		acc_add(0, x) } }
	:: atomic { !quiet && (air[x] & REQ_COOKIE) && !acc_knows(x) && can_add(1) -> d_step {
		acc_add(1, x) } }
	/* no listener, backlog full, no slot */
	:: atomic { !quiet && (air[x] & (REQ | REQ_COOKIE)) && !acc_knows(x) &&
		    !(air[x] & REJ_REQ) && con_has(x) && con < ESTABLISHED -> d_step {
		put(air[x], REJ_REQ) } }
	/* act_cookie() */
	:: atomic { !quiet && (air[x] & COOKIE) && con_has(x) && con == REQ_SENT -> d_step {
		con = COOKIE_SENT } }
	/* act_rejected() */
	:: atomic { !quiet && (air[x] & REJ_REQ) && con_has(x) && con < ESTABLISHED -> d_step {
		con_end() } }
	/* DISCONNECTED, CLOSED: by a RESET */
	:: atomic { !quiet && resets(0) -> d_step {
		assert(!con_has(x)); /* property: old */
		acc_end(0) } }
	:: atomic { !quiet && resets(1) -> d_step {
		assert(!con_has(x)); /* property: old */
		acc_end(1) } }
	od
}

/* find_conn() takes it */
#ifdef BREAK_PEER /* the sender's tag is not compared */
#define con_takes con_has(x)
#else
#define con_takes (con_has(x) && (cpeer == 0 || cpeer == p))
#endif

#ifdef BREAK_TAG /* data is taken by whoever has the CID */
#define con_takes_data is_live(con)
#define acc_takes_data is_live(acc[SLOT(p)].state)
#else
#define con_takes_data con_has(x)
#define acc_takes_data acc_has(p)
#endif

#ifdef BREAK_RESET /* any RESET of the peer's host counts */
#define resets_con (reset_con != 0)
#else
#define resets_con (reset_con & (1 << p))
#endif

#define ACC acc[SLOT(p)].state
#define in_con(m) (!quiet && (TO_CON(x, p) & (m)))
#define in_acc(m) (!quiet && (TO_ACC(x, p) & (m)))

proctype pair(byte x; byte p)
{
end:	do
	/* to the connecting side: act_ready() */
	:: atomic { in_con(REP) && con_takes && con == COOKIE_SENT -> d_step {
		assert(!(air[x] & CON_OPENED)); /* property: once */
		assert(!(air[x] & ACC_OPENED)); /* property: agreed */
		put(air[x], CON_OPENED);
		put(TO_CON(x, p), AGREED);
		con = ESTABLISHED;
		cpeer = p } }
	/* rx_rep(): such an offer we do not take */
	:: atomic { in_con(REP) && con_takes && con == COOKIE_SENT -> d_step {
		con_end();
		put(TO_ACC(x, p), REJ_REP) } }
	/* act_rtu_again(); the first time, too */
	:: atomic { in_con(REP) && con_takes && is_open(con) && acc_has(p) &&
		    !(TO_ACC(x, p) & RTU) -> d_step {
		put(TO_ACC(x, p), RTU) } }
	/* cm_rx_conn_msg(): we no longer know it */
	:: atomic { in_con(REP) && !con_takes && acc_has(p) && !(TO_ACC(x, p) & REJ_REP) -> d_step {
		put(TO_ACC(x, p), REJ_REP) } }
	/* act_withdrawn(), DISCONNECTED, CLOSED; their DREP is the next step's */
	:: atomic { in_con(DREQ) && con_takes && con == COOKIE_SENT -> d_step {
		con_end() } }
	:: atomic { in_con(DREQ) && con_takes && con == ESTABLISHED -> d_step {
		assert(cpeer == p); /* property: old */
		con_end() } }
	:: atomic { in_con(DREQ) && con_takes && (con == DRAINING || con == DREQ_SENT) -> d_step {
		assert(cpeer == p); /* property: old */
		con_end() } }
	:: atomic { in_con(DREQ) && !con_takes && acc_has(p) && !(TO_ACC(x, p) & DREP) -> d_step {
		put(TO_ACC(x, p), DREP) } }
	:: atomic { in_con(DREP) && con_takes && con == DREQ_SENT -> d_step {
		con_end() } }
	/* rx_reset() */
	:: atomic { !quiet && resets_con && cpeer == p && con >= ESTABLISHED -> d_step {
		assert(!acc_has(p)); /* property: old */
		con_end() } }
	/* data: san_cm_rx_answer_reset(); taken, it changes nothing here */
	:: atomic { in_con(DATA) && !con_takes_data && !(air[x] & RESET_ACC) -> d_step {
		put(air[x], RESET_ACC) } }
	:: atomic { in_con(DATA) && con_takes_data && is_open(con) && (ctag != x || cpeer != p) ->
		d_step { assert(false) } } /* never; property: old */

	/* to the accepting side: act_open() */
	:: atomic { in_acc(RTU) && acc_has(p) && ACC == REP_SENT -> d_step {
		acc_open(SLOT(p)) } }
	:: atomic { in_acc(REJ_REP) && acc_has(p) && ACC == REP_SENT -> d_step {
		assert(!(con_has(x) && cpeer == p)); /* property: old */
		acc_end(SLOT(p)) } }
	/* DISCONNECTED, CLOSED */
	:: atomic { in_acc(DREQ) && acc_has(p) &&
		    (ACC == REP_SENT || ACC == ESTABLISHED) -> d_step {
		acc_end(SLOT(p)) } }
	:: atomic { in_acc(DREQ) && acc_has(p) && (ACC == DRAINING || ACC == DREQ_SENT) -> d_step {
		acc_end(SLOT(p)) } }
	:: atomic { in_acc(DREQ) && !acc_has(p) && con_has(x) && !(TO_CON(x, p) & DREP) -> d_step {
		put(TO_CON(x, p), DREP) } }
	:: atomic { in_acc(DREP) && acc_has(p) && ACC == DREQ_SENT -> d_step {
		acc_end(SLOT(p)) } }
	/* data: san_cm_rx_implicit_rtu(), san_cm_rx_answer_reset() */
	:: atomic { in_acc(DATA) && acc_takes_data && ACC == REP_SENT -> d_step {
		acc_open(SLOT(p)) } }
	:: atomic { in_acc(DATA) && !acc_takes_data && !(reset_con & (1 << p)) -> d_step {
		put(reset_con, 1 << p) } }
	:: atomic { in_acc(DATA) && acc_takes_data && is_open(ACC) &&
		    (!acc_has(p) || acc[SLOT(p)].peer != x) ->
		d_step { assert(false) } } /* never; property: old */
	od
}

#define both_idle (con == IDLE && !is_live(acc[0].state) && !is_live(acc[1].state))
#define together \
	(con == ESTABLISHED && acc_has(cpeer) && acc[SLOT(cpeer)].peer == ctag && \
	 acc[SLOT(cpeer)].state == ESTABLISHED && !is_live(acc[1 - SLOT(cpeer)].state))

init
{
	byte x, p;

	atomic {
		run accepting(0);
		run accepting(1);
		for (x : 1 .. NA) {
			run attempt(x);
			for (p : 1 .. NP) {
				run pair(x, p)
			}
		}
		x = 0;
		p = 0
	}
	quiet = 1;
	atomic { timeout ->
		if
		:: both_idle -> true
#ifndef BOTH
		:: together -> true
#endif
		:: else -> assert(false) /* never; property: end */
		fi
	}
}
