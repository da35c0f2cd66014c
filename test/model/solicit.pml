/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Solicited pushes (RT-10, RT-13, RT-16): PUSH_SLCTD_REQ -> PUSH_GRNT -> PUSH_SLCTD_DATA
 * -> ACK. Two ordered connections, each with up to two pushes, ask one target for more
 * than its budget.
 *
 * What mirrors what
 *
 *   initiator()    tl_initiator.c: san_tl_initiator_next_request(), san_tl_initiator_next_push(),
 *                  ordered_push(), san_tl_initiator_rx_grant(); tl_finish.c: san_tl_finish_acked(),
 *                  san_tl_finish_settle(), san_tl_finish_txn(); tl_nack_rx.c: san_tl_nack_txn_abort(),
 *                  san_tl_nack_next_abort(); pdl_rtx.c: what is lost goes again
 *   target()       tl_target.c: target_rx_solicit(), request_over(), san_tl_target_rx_push(),
 *                  push_over(), target_rxn_matches(); tl_nack_rx.c: san_tl_nack_rx_resync(), abort_record();
 *                  tl_solicit.c: san_tl_solicit_next_grant(), san_tl_solicit_grant_refuse();
 *                  tl_rxn.c: san_tl_rxn_grant_wake(); pdl_win.c: what is new
 *   ssn_join() .. grant_one()    tl_solicit.c: san_tl_solicit_ssn_join(), join_queue(), has_receive(),
 *                  san_tl_solicit_grant_one(); tl_rxn.c: san_tl_rxn_ssn_leave()
 *   may_grant() .. release()     tl_admit_run.c: admit_step_of(), san_tl_admit_run(); tl_admit.c:
 *                  san_tl_admit_may_grant(), charge_expire_longest(), san_tl_admit_charge_done(),
 *                  san_tl_admit_charge_release()
 *   run_base(), finish_push()    tl_target.c: target_replay_held(), put_packet(), target_complete_push(),
 *                  finish_push(); tl_target_order.c: base_next()
 *   push_req() .. push_abort()   ulp_place.c, same names; tl_rxn.c: san_tl_rxn_unreserve(),
 *                  san_tl_rxn_push_undo()
 *
 * What is abstracted, and why that is sound
 *
 *   Bytes. One unit is one packet, the MTU is 1: step_of() grants whole packets anyway.
 *   PSNs. A packet is what its PSN says: the request of a push, its unit n, its abort.
 *     Resent, it is the same packet; the window takes it once (is_new()). Windows are
 *     wider than what is sent here; that they suffice with less is doc/deadlock.md's.
 *   Network. What was sent once, and not lost at first, stays in the air: it may arrive
 *     at any time, in any order, again and again. What was lost at first must be sent
 *     again to be in the air. Losing that, too, leads to a state that is there already.
 *     An arrival that changes nothing, a duplicate that the window drops or data that is
 *     refused, is left out: it is no step.
 *   ACKs. Acknowledged bits are final and ORed, so an ACK that is late says less than
 *     the next. Each bit reaches the initiator at any time from its setting on. The tl
 *     acts only on the last of a push's bits, so they come together. Received bits
 *     only hold back resending, and what is resent needlessly changes nothing.
 *   Grants have PSNs, too, but the maximum wins whatever comes twice.
 *   Time. A grant may expire at any moment, in any order; a wait for a receive may last
 *     too long at any moment.
 *   Left out: pulls (budget.pml), SRPT (round-robin only), lack of records, RNR of data, unordered
 *     connections, PCB-3, congestion. Nothing here waits for any of them.
 *   calm. From some moment on, any moment, no ULP aborts or posts any more. What then
 *     comes to its end does so without their help.
 *
 * Properties
 *
 *   budget       granted and not placed, as the packets are, is what both accounts say;
 *                the first is at most the budget, the second at most its bound, always
 *   fair         who has expired grants gets no more; nobody has more than a quarter
 *                while others wait
 *   ssn          grants are decided in the order of the SSNs, and no SSN is left out
 *   granted      data beyond what was granted is never accepted
 *   once         each unit is placed once; a push is finished when all of it is placed,
 *                completed once, in the order of the RSNs, and not before it is finished
 *   end          every push is completed in the end, and the accounts are empty
 *   wake         (SENDS) no send waits for a receive while one is free
 *   progress     every run ends: no non-progress cycle (nothing is a progress state)
 *   no deadlock  invalid end states; every step is reached but those marked never
 *
 * Options: GREEDY: the second connection sends what was not granted. SILENT: it never
 * sends what was, and the first must complete all the same. SENDS=n: its pushes are sends,
 * and the ULP posts n receives. LENn, BUDGET, EXPIRED, STEP: sizes. BREAK_x: one rule is left
 * out; meson.build says which property notices it.
 *
 * SILENT with a budget of less than four packets fails: a quarter is then no packet,
 * so one silent connection with something charged keeps all others waiting.
 */

#ifndef LEN0
#define LEN0 2
#endif
#ifndef LEN1
#define LEN1 1
#endif
#ifndef LEN2
#define LEN2 2
#endif
#ifndef LEN3
#define LEN3 0
#endif
#ifndef BUDGET
#define BUDGET 2
#endif
#ifndef EXPIRED
#define EXPIRED 1
#endif
#ifndef STEP
#define STEP 2
#endif

#if LEN0 > 2 || LEN1 > 2 || LEN2 > 2 || LEN3 > 2
#define LONG /* somebody sends three units: more there can't be */
#endif

/* push q: connection and RSN, which is its SSN, too; the packets that it has */
#define CONN(q) ((q) / 2)
#define RSN(q)	((q) % 2)
#define LEN(q)	((q) == 0 -> LEN0 : ((q) == 1 -> LEN1 : ((q) == 2 -> LEN2 : LEN3)))
#define QUARTER (BUDGET / 4)
#define ALL(n)	((1 << (n)) - 1)
#define count(v) (((v) & 1) + (((v) >> 1) & 1) + (((v) >> 2) & 1))

/* of an initiator's push: enum san_txn_state */
#define POSTED	 0
#define SENDING	 1
#define SENT	 2
#define ABORTING 3
#define DONE	 4 /* waits for its turn to be reported */
#define GONE	 5

/* of a target's record: enum san_rxn_state */
#define NONE	0
#define LIVE	1 /* AHEAD, ACTIVE */
#define REFUSED 2

/* of a packet that there is once */
#define UNSENT 0
#define LOST   1
#define AIR    2

typedef push {
	/* initiator */
	unsigned state : 3;
	unsigned granted : 2;
	unsigned sent : 2;
	bit req_acked;
	/* the network */
	unsigned req : 2;
	unsigned abort : 2;
	unsigned data : 3;	/* by unit, in the air */
	unsigned grants : 4;	/* by offset, in the air; 0: the refusal */
	unsigned grants_tx : 4; /* those that have a PSN */
	/* target */
	bit got_req;
	bit got_abort;
	unsigned got : 3; /* units, by PSN */
	unsigned rec : 2;
	unsigned placed : 3;
	unsigned upto : 2; /* granted up to here */
	unsigned charged : 2;
	unsigned expired : 2;
	bit out;      /* a grant is decided and has no PSN */
	bit reserved; /* a receive is set aside */
};

typedef conn {
	unsigned rsn_base : 2; /* initiator: oldest unfinished */
	unsigned rx_base : 2;  /* target: lowest unfinished */
	unsigned ssn_queued : 2;
	bit early;	     /* SSN 1 is in the CAM */
	unsigned first : 2;  /* queue of requests: RSN + 1 */
	unsigned second : 2;
	bit wait; /* its head waits for a receive */
	bit in_admit;
};

push p[4];
conn c[2];
byte admit[2]; /* round-robin: connection + 1 */
byte nb_admit, used, expired_used;
bit calm;
#ifdef SENDS
byte posts;
byte posted, aside; /* receives: not taken yet, of which set aside */
#endif
hidden byte misses, step, k, n, z;

#define ROOM	       (BUDGET - used)
#define charged_of(i)  (p[2 * (i)].charged + p[2 * (i) + 1].charged)
#define expired_of(i)   (p[2 * (i)].expired + p[2 * (i) + 1].expired)
#define head(i)	       (2 * (i) + c[i].first - 1)
#define is_finished(q) (RSN(q) < c[CONN(q)].rx_base)
#define in_turn(q)     (RSN(q) == c[CONN(q)].rx_base)
#ifdef BREAK_MORE /* grants more to who did not use its grants */
#define may_grant(i)   (c[i].first != 0 && !c[i].wait)
#else
#define may_grant(i)   (c[i].first != 0 && !c[i].wait && expired_of(i) == 0)
#endif
#define is_send(q)     (CONN(q) == 1)

inline lower(v, most)
{
	if
	:: v > (most) -> v = (most)
	:: else
	fi
}

/* ---- invariants, after every step of the target ---- */

#define SUM(what)     (what(0) + what(1) + what(2) + what(3))
#define charged_by(q) p[q].charged
#define expired_by(q)  p[q].expired
#define owed_by(q)    (p[q].rec == LIVE -> p[q].upto - count(p[q].placed) : 0)

inline check()
{
	assert(used <= BUDGET); /* property: budget */
	assert(expired_used <= EXPIRED); /* property: budget */
	assert(SUM(charged_by) == used); /* property: budget */
	assert(SUM(expired_by) == expired_used); /* property: budget */
	assert(SUM(owed_by) == used + expired_used); /* property: budget */
#ifdef SENDS
	assert(!c[1].wait || posted <= aside) /* property: wake */
#endif
}

/* ---- ulp_place.c: receives of sends; tl_solicit.c: who waits for one ---- */

#ifdef SENDS
inline has_receive(i, q)
{
	if
	:: is_send(q) && p[q].upto == 0 && posted > aside -> aside++; p[q].reserved = 1
	:: is_send(q) && p[q].upto == 0 && posted <= aside -> c[i].wait = 1; step = 0
	:: else
	fi
}

inline unreserve(q)
{
	if
	:: p[q].reserved ->
		aside--;
		p[q].reserved = 0;
#ifndef BREAK_WAKE /* who waits is looked at only when a receive is posted */
		grant_wake(CONN(q))
#endif
	:: else
	fi
}

/* the first packet takes what was set aside */
inline push_req(q)
{
	if
	:: p[q].got != 0 && p[q].reserved ->
		assert(posted > 0); /* property: wake */
		aside--;
		p[q].reserved = 0;
		posted--
	:: else
	fi
}

/* and an abort gives it back */
inline push_abort(q)
{
	if
	:: is_send(q) && p[q].rec == LIVE && p[q].placed != 0 ->
		posted++;
#ifndef BREAK_WAKE
		grant_wake(CONN(q))
#endif
	:: else
	fi
}

inline grant_wake(i)
{
	if
	:: c[i].wait && posted > aside -> c[i].wait = 0; admit_update(i)
	:: else
	fi
}
#else
#define has_receive(i, q) skip
#define unreserve(q)	  skip
#define push_req(q)	  skip
#define push_abort(q)	  skip
#endif

/* ---- tl_admit.c ---- */

inline admit_list(i, in)
{
	if
	:: c[i].in_admit && !(in) ->
		c[i].in_admit = 0;
		nb_admit--;
		if
		:: admit[0] == (i) + 1 -> admit[0] = admit[1]
		:: else
		fi;
		admit[1] = 0
	:: !c[i].in_admit && (in) ->
		c[i].in_admit = 1;
		admit[nb_admit] = (i) + 1;
		nb_admit++
	:: else
	fi
}

inline admit_update(i)
{
	admit_list(i, may_grant(i))
}

inline step_of(i)
{
	n = head(i);
	step = LEN(n) - p[n].upto;
	lower(step, STEP);
#ifndef BREAK_BUDGET /* grants beyond the budget */
	lower(step, ROOM);
#endif
#ifndef BREAK_QUARTER /* grants all to one */
	if
	:: used != 0 && nb_admit > 1 && charged_of(i) >= QUARTER -> step = 0
	:: used != 0 && nb_admit > 1 && charged_of(i) < QUARTER ->
		lower(step, QUARTER - charged_of(i))
	:: else
	fi
#endif
}

inline unqueue(q)
{
	if
	:: c[CONN(q)].first == RSN(q) + 1 ->
		c[CONN(q)].first = c[CONN(q)].second;
		c[CONN(q)].second = 0;
		c[CONN(q)].wait = 0
	:: c[CONN(q)].first != RSN(q) + 1 && c[CONN(q)].second == RSN(q) + 1 ->
		c[CONN(q)].second = 0
	:: else
	fi
}

/* step is 0 afterwards if it could not be */
inline grant_one(i)
{
	n = head(i);
	has_receive(i, n);
	if
	:: step != 0 ->
		assert(expired_of(i) == 0); /* property: fair */
		z = charged_of(i) + step;
		assert(used == 0 || nb_admit == 0 || z <= QUARTER); /* property: fair */
		assert(RSN(n) == 0 || p[n - 1].got_req); /* property: ssn */
		z = (RSN(n) == 0 || p[n - 1].rec != LIVE || p[n - 1].upto == LEN(n - 1));
		assert(z); /* property: ssn */
		p[n].upto = p[n].upto + step;
		p[n].charged = p[n].charged + step;
		used = used + step;
		p[n].out = 1;
		if
		:: p[n].upto == LEN(n) -> unqueue(n)
		:: else
		fi
	:: else
	fi
}

inline admit_run()
{
	misses = 0;
	do
	:: nb_admit > misses && (used == 0 || ROOM >= QUARTER) ->
		k = admit[0] - 1;
		step_of(k);
		admit_list(k, 0);
		if
		:: step != 0 -> grant_one(k)
		:: else
		fi;
		admit_update(k);
		if
		:: step != 0 -> misses = 0
		:: else -> misses = misses + c[k].in_admit
		fi
	:: else -> break
	od;
	check()
}

inline expire(q)
{
	z = p[q].charged;
#ifndef BREAK_EXPIRED /* expired grants have no bound */
	lower(z, EXPIRED - expired_used);
#endif
	p[q].expired = p[q].expired + z;
	expired_used = expired_used + z;
	p[q].charged = p[q].charged - z;
	used = used - z;
	admit_update(CONN(q))
}

/* so many units are placed: of those that expired first */
inline charge_done(q, units)
{
	z = units;
	lower(z, p[q].expired);
	p[q].expired = p[q].expired - z;
	expired_used = expired_used - z;
	z = (units) - z;
	p[q].charged = p[q].charged - z;
	used = used - z;
	admit_update(CONN(q))
}

inline release(q)
{
	used = used - p[q].charged;
	p[q].charged = 0;
	expired_used = expired_used - p[q].expired;
	p[q].expired = 0;
	admit_update(CONN(q))
}

/* ---- tl_solicit.c ---- */

inline join_queue(q)
{
	if
	:: p[q].rec == LIVE ->
		if
		:: c[CONN(q)].first == 0 -> c[CONN(q)].first = RSN(q) + 1
		:: else -> c[CONN(q)].second = RSN(q) + 1
		fi;
		admit_update(CONN(q))
	:: else /* over already: only its number counts */
	fi
}

inline ssn_join(q)
{
#ifdef BREAK_SSN /* first come, first served */
	join_queue(q)
#else
	if
	:: RSN(q) != c[CONN(q)].ssn_queued -> c[CONN(q)].early = 1
	:: else ->
		join_queue(q);
		c[CONN(q)].ssn_queued++;
		if
		:: c[CONN(q)].early ->
			c[CONN(q)].early = 0;
			join_queue(q + 1);
			c[CONN(q)].ssn_queued++
		:: else
		fi
	fi
#endif
}

/* ---- tl_target.c ---- */

inline finish_push(q)
{
#ifndef BREAK_RELEASE /* what was granted and will not come stays charged */
	release(q);
#endif
	unreserve(q);
	p[q].rec = NONE;
	p[q].out = 0;
	c[CONN(q)].rx_base++
}

#ifdef BREAK_LAST /* LAST is all that is waited for */
#define is_complete(q) (p[q].got & (1 << (LEN(q) - 1)))
#else
#define is_complete(q) (p[q].got == ALL(LEN(q)))
#endif

/* the base: what it holds is placed; it is finished if that is all, or if it was refused */
inline run_base(q)
{
	if
	:: p[q].rec == LIVE && in_turn(q) ->
		push_req(q);
		charge_done(q, count(p[q].got) - count(p[q].placed));
		p[q].placed = p[q].got;
		if
		:: is_complete(q) ->
			assert(p[q].placed == ALL(LEN(q))); /* property: once */
			finish_push(q)
		:: else
		fi
	:: p[q].rec == REFUSED && in_turn(q) && !p[q].out -> finish_push(q)
	:: else
	fi
}

inline run_bases(q)
{
	run_base(q);
	if
	:: RSN(q) == 0 -> run_base(q + 1)
	:: else
	fi
}

inline rx_data(q, o)
{
	if
	:: !is_finished(q) ->
		assert(o < p[q].upto); /* property: granted */
		assert(!(p[q].got & (1 << o))); /* property: once */
		p[q].got = p[q].got | (1 << o);
		run_bases(q);
		admit_run()
	:: else -> p[q].got = p[q].got | (1 << o)
	fi
}

/* ---- initiator: completion ---- */

inline report(q)
{
	assert(RSN(q) == c[CONN(q)].rsn_base); /* property: once */
	/* or its SSN would be missed for ever: resent, it is only a RESYNC now */
	assert(p[q].got_req); /* property: ssn */
	p[q].state = GONE;
	c[CONN(q)].rsn_base++
}

inline txn_finish(q)
{
	p[q].state = DONE;
#ifdef BREAK_ORDER /* reported as it comes */
	report(q)
#else
	if
	:: RSN(q) == c[CONN(q)].rsn_base ->
		report(q);
		if
		:: RSN(q) == 0 && p[q + 1].state == DONE -> report(q + 1)
		:: else
		fi
	:: else
	fi
#endif
}

/* ---- the steps ---- */

#define P p[q]
#define C c[CONN(q)]

/* ordered_push(): nothing lower has data or an abort that must still go */
#define data_turn \
	(RSN(q) == 0 || p[q - 1].state == SENT || p[q - 1].state >= DONE || \
	 (p[q - 1].state == ABORTING && p[q - 1].abort != UNSENT))

#ifdef SILENT
#define may_send (data_turn && CONN(q) == 0)
#else
#define may_send data_turn
#endif
#ifdef GREEDY
#define limit (CONN(q) == 1 -> LEN(q) : P.granted)
#else
#define limit P.granted
#endif
#ifdef BREAK_ABORT /* an abort is over although the request may not have arrived */
#define req_over true
#else
#define req_over P.req_acked
#endif

proctype initiator(byte q)
{
end:	do
	/* sent for the first time: it is lost, or not */
	:: atomic { P.req == UNSENT && (RSN(q) == 0 || p[q - 1].req != UNSENT) ->
		if
		:: P.req = AIR
		:: P.req = LOST
		fi;
		if
		:: P.state == POSTED -> P.state = SENDING
		:: else
		fi }
	:: atomic { P.state == SENDING && P.sent < limit && may_send ->
		if
		:: P.data = P.data | (1 << P.sent)
		:: true
		fi;
		P.sent++;
		if
		:: P.sent == LEN(q) -> P.state = SENT
		:: else
		fi }
	:: atomic { P.state == ABORTING && P.req != UNSENT && P.abort == UNSENT &&
		    RSN(q) == C.rsn_base ->
		if
		:: P.abort = AIR
		:: P.abort = LOST
		fi }
	/* and again, under the same PSN */
	:: atomic { P.req == LOST -> d_step { P.req = AIR } }
	:: atomic { P.abort == LOST -> d_step { P.abort = AIR } }
	:: atomic { P.sent > 0 && !(P.data & 1) -> d_step { P.data = P.data | 1 } }
	:: atomic { P.sent > 1 && !(P.data & 2) -> d_step { P.data = P.data | 2 } }
#ifdef LONG
	:: atomic { P.sent > 2 && !(P.data & 4) -> d_step { P.data = P.data | 4 } }
#endif
	/* san_tl_nack_txn_abort(): one that was sent to its end is not called back */
	:: atomic { !calm && P.state <= SENDING -> d_step { P.state = ABORTING } }
	/* ACKs */
	:: atomic { P.got_req && !P.req_acked -> d_step { P.req_acked = 1 } }
	:: atomic { P.state == SENT && is_finished(q) -> d_step {
		assert(P.placed == ALL(LEN(q))); /* property: once */
		txn_finish(q) } }
	:: atomic { P.state == ABORTING && P.got_abort && P.got == ALL(P.sent) &&
		    req_over -> d_step {
		txn_finish(q) } }
	/* san_tl_initiator_rx_grant() */
	:: atomic { P.state == SENDING && (P.grants & 2) && P.granted < 1 -> d_step {
		P.granted = 1 } }
	:: atomic { P.state == SENDING && (P.grants & 4) && P.granted < 2 -> d_step {
		P.granted = 2 } }
#ifdef LONG
	:: atomic { P.state == SENDING && (P.grants & 8) && P.granted < 3 -> d_step {
		P.granted = 3 } }
#endif
#ifdef SENDS
	:: atomic { P.state == SENDING && (P.grants & 1) -> d_step {
		assert(P.sent == 0 && P.granted == 0); /* property: once */
		txn_finish(q) } }
#endif
	od
}

#ifdef BREAK_DUP /* a packet is taken as often as it comes */
#define is_new(o) (P.rec == LIVE)
#else
#define is_new(o) (!(P.got & (1 << o)))
#endif
#ifdef BREAK_MATCH /* data is not compared with what was granted */
#define matches(o) (P.rec == LIVE)
#else
#define matches(o) (P.rec == LIVE && o < P.upto)
#endif
#define takes(o) ((P.data & (1 << o)) && is_new(o) && (is_finished(q) || matches(o)))


proctype target(byte q)
{
end:	do
	/* target_rx_solicit(); of one that was given up, request_over() */
	:: atomic { P.req == AIR && !P.got_req -> d_step {
		P.got_req = 1;
		if
		:: !is_finished(q) -> P.rec = LIVE
		:: else
		fi;
		ssn_join(q);
		admit_run() } }
	:: atomic { takes(0) -> d_step { rx_data(q, 0) } }
	:: atomic { takes(1) -> d_step { rx_data(q, 1) } }
#ifdef LONG
	:: atomic { takes(2) -> d_step { rx_data(q, 2) } }
#endif
	/* RESYNC(abort); of one that was refused meanwhile, only its PSN */
	:: atomic { P.abort == AIR && !P.got_abort -> d_step {
		P.got_abort = 1;
		assert(is_finished(q) || in_turn(q)); /* property: once */
		if
		:: in_turn(q) ->
			push_abort(q);
			unqueue(q);
			admit_update(CONN(q));
			finish_push(q);
			if
			:: RSN(q) == 0 -> run_base(q + 1)
			:: else
			fi
		:: else
		fi;
		admit_run() } }
	/* a grant gets its PSN; the first copy is lost, or not; and again */
	:: atomic { P.out && P.rec == LIVE ->
		if
		:: P.grants = P.grants | (1 << P.upto)
		:: true
		fi;
		P.grants_tx = P.grants_tx | (1 << P.upto);
		P.out = 0 }
#ifndef BREAK_GRANT /* a lost grant is not sent again */
	:: atomic { P.state == SENDING && (P.grants_tx & ~P.grants) != 0 -> d_step {
		P.grants = P.grants_tx } }
#endif
#ifndef BREAK_EXPIRE /* a grant never expires */
	:: atomic { P.charged != 0 && expired_used < EXPIRED -> d_step {
		expire(q);
		admit_run() } }
#endif
#ifdef BREAK_UNEXPIRE /* what expired returns when there is room */
	:: atomic { P.expired != 0 && ROOM >= P.expired -> d_step {
		P.charged = P.charged + P.expired;
		used = used + P.expired;
		expired_used = expired_used - P.expired;
		P.expired = 0 } }
#endif
#ifdef SENDS
	/* san_tl_solicit_grant_refuse(): it waited longer than the initiator wants to */
	:: atomic { C.wait && head(CONN(q)) == q -> d_step {
		P.rec = REFUSED;
		unqueue(q);
		P.out = 1;
		admit_update(CONN(q));
		admit_run() } }
	:: atomic { P.out && P.rec == REFUSED ->
		if
		:: P.grants = P.grants | 1
		:: true
		fi;
		d_step {
		P.grants_tx = P.grants_tx | 1;
		P.out = 0;
		run_bases(q);
		check() } }
	/* san_tl_on_recv_posted() */
	:: atomic { !calm && posts < SENDS && q == 2 -> d_step {
		posts++;
		posted++;
		grant_wake(1);
		admit_run() } }
#endif
	od
}

init
{
	byte q;

	atomic {
		for (q : 0 .. 3) {
			if
			:: LEN(q) != 0 -> run initiator(q); run target(q)
			:: else -> p[q].state = GONE
			fi
		}
		q = 0
	}
	calm = 1;
	atomic { timeout ->
#ifdef SILENT
		assert(p[0].state == GONE && p[1].state == GONE) /* property: end */
#else
		assert(p[0].state == GONE && p[1].state == GONE); /* property: end */
		assert(p[2].state == GONE && p[3].state == GONE); /* property: end */
		assert(used == 0 && expired_used == 0) /* property: end */
#endif
	}
}
