/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Message credits of a stream session (AFC-14 ... AFC-18, AFC-27): two sides, each sends to
 * the other, and no message is ever sent that finds no buffer.
 *
 * What mirrors what
 *
 *   send_msg()     stream_credit.c: what each header says, and what is told by it
 *   on_header()    stream_credit.c: credit := PR - (LSSQ - LRSQ), of the newest header only
 *   credit_due     stream_credit.c: AFC-15
 *   freed_due      stream_credit.c: room in the store was not told of
 *   may_send       stream.c: two credits, and room in the other side's store
 *   rx             stream.c: a message is taken, its buffer is posted again
 *   read           the program takes a message out of the store: its room is free again
 *   ask, on_resize   stream_resize.c: RESIZE, RESIZED; san_stream_resize_on_done()
 *
 * What is abstracted, and why that is sound
 *
 *   Bytes. A message is one unit of the stream; or, if it is big, still one: only that it
 *     does not fit an old buffer counts.
 *   Transport. It delivers, in order, into receives in the order in which they were posted.
 *     With OVERTAKE sequence numbers are given out of that order, as threads do that
 *     share a stream: any message under way may come first (AFC-17).
 *   Time. Every step may happen at any time from then on, or be late; that includes the
 *     program's reading. So T1 is tried as a rule and not as a matter of speed.
 *   Parts. What else a message carries is the matter of stream_adv.pml; there messages
 *     need no credit, and this model is why they may.
 *   Sequence numbers are mod 16 and begin shortly before they wrap; at most NB_RECV are
 *     under way.
 *
 * Properties
 *
 *   credit       a message always finds a receive; OtherSidesSendCredit is never too high
 *   store        no more than STORE messages are unread
 *   order        units come in the order of the stream, each once
 *   size         no message is longer than the buffer that it finds
 *   lost         when all is quiet, each side's credit is what the other side believes
 *   end          everything is sent and read at last, whatever order things happen in
 *   progress     every run ends: updates do not call forth updates for ever
 *
 * Options: LAZY: a buffer is posted again later than its message was taken. OVERTAKE: above, not
 * with LAZY.
 * DEAF: the program of side 1 never reads, and side 0 gets everything all the same. RESIZE: both
 * sides ask for larger buffers; SHORT: side 0 has no memory for them. NB_DATA, NB_RECV, STORE,
 * T1, T2: sizes. BREAK_x: one rule is left out; meson.build says which property notices it.
 */

#ifndef NB_DATA
#define NB_DATA 4
#endif
#ifndef NB_RECV
#define NB_RECV 4 /* T2 + 2 */
#endif
#ifndef STORE
#define STORE 2
#endif
#ifndef T1
#define T1 2
#endif
#ifndef T2
#define T2 2
#endif
#define FIRST 14

#define PLAIN	0
#define ASK	1
#define ANSWER	2

#ifdef DEAF
#define reads(s) ((s) == 0)
#else
#define reads(s) true
#endif

typedef side {
	/* what it sends */
	unsigned sent : 3;	 /* units */
	unsigned peer_freed : 3;
	unsigned credit : 3;
	unsigned lssq : 4;
	unsigned heard : 4;	 /* number of the newest header that was processed */
	/* what it receives */
	unsigned posted : 3;
	unsigned lrsq : 4;
	unsigned ossc : 3;	 /* OtherSidesSendCredit */
	unsigned got : 3;	 /* units, in order */
	unsigned freed : 3;
	unsigned told : 3;	 /* of freed */
#ifdef LAZY
	unsigned taken : 3;	 /* buffers to be posted again */
#endif
#ifdef OVERTAKE
	unsigned early : 4;	 /* bit i: lrsq + 2 + i is there */
	unsigned early_unit : 4; /* and is a unit */
	unsigned high : 4;	 /* the highest that came */
#endif
#ifdef RESIZE
	bit wants;		 /* a request is still to be sent */
	bit asked;		 /* one is under way */
	bit answer;		 /* one must be answered */
	bit settling;		 /* larger buffers are granted: what is under way comes first */
	bit may_big;
	unsigned after : 4;	 /* the last message for an old buffer */
	unsigned old : 3;	 /* posted buffers of the old size: those that are used first */
	bit larger;		 /* from now on larger ones are posted */
#endif
};

side v[2];
/* number, PR, LRSQ, freed; unit, or 0; big; kind; after + 1, or 0 */
chan q[2] = [NB_RECV] of { byte, byte, byte, byte, byte, bit, byte, byte };
byte seq, pr, lr, fr, unit, big, kind, after, x; /* of one step: forget() */

inline forget()
{
	seq = 0;
	pr = 0;
	lr = 0;
	fr = 0;
	unit = 0;
	big = 0;
	kind = 0;
	after = 0;
	x = 0
}

#define S	v[s]
#define NEXT(n) (((n) + 1) & 15)
#define DIFF(a, b) (((a) - (b)) & 15)
#define OUT(s)	len(q[s])

/*
 * What came ahead of a gap has its buffer back, but until the gap is closed the other side must
 * count it as under way. So it has that much less than PR.
 */
#if defined(OVERTAKE) && !defined(BREAK_HELD)
#define held ((S.early & 1) + ((S.early >> 1) & 1) + ((S.early >> 2) & 1))
#else
#define held 0
#endif
#define given (S.posted - held)

#ifdef BREAK_T1 /* nothing is due before the other side has none */
#define credit_due (S.ossc < 1 && given > S.ossc + T2)
#else
#define credit_due (S.ossc < T1 && given > S.ossc + T2)
#endif
#ifdef BREAK_FREED /* room is told of only when other messages go */
#define freed_due false
#else
#define freed_due (S.freed - S.told >= T2)
#endif
#ifdef BREAK_PING /* an update for each message */
#define update_due (S.ossc < given)
#else
#define update_due (credit_due || freed_due)
#endif
/*
 * Who tells of free room with the last credit must give credit, too: otherwise both sides may
 * do it at once while their buffers are not posted, and then neither can say that they are.
 */
#ifdef BREAK_GIVES
#define may_update (S.credit >= 1 && update_due)
#else
#define may_update (update_due && (S.credit >= 2 || (S.credit == 1 && given > S.ossc)))
#endif
#ifdef BREAK_LAST /* the last credit is for everything */
#define may_send (S.credit >= 1)
#else
#define may_send (S.credit >= 2)
#endif
#ifdef BREAK_STORE /* as many as there are buffers */
#define store_has_room true
#else
#define store_has_room (S.sent - S.peer_freed < STORE)
#endif

#ifdef BREAK_GAP /* the highest, whatever is missing before it */
#define told_lrsq S.high
#else
#define told_lrsq S.lrsq
#endif

#ifdef RESIZE
#define quiet (!S.settling)
#define big_now (S.may_big && S.lssq != S.after && DIFF(S.lssq, S.after) < 8)
#else
#define quiet true
#define big_now false
#endif

inline check()
{
	assert(v[0].credit + OUT(0) <= v[1].posted); /* property: credit */
	assert(v[1].credit + OUT(1) <= v[0].posted); /* property: credit */
	assert(v[0].got - v[0].freed <= STORE); /* property: store */
	assert(v[1].got - v[1].freed <= STORE) /* property: store */
}

inline send_msg(u, b, what, aft)
{
	assert(S.credit > 0); /* property: credit */
	S.lssq = NEXT(S.lssq);
	S.credit--;
	S.ossc = given;
	S.told = S.freed;
	q[s] ! S.lssq, S.posted, told_lrsq, S.freed, u, b, what, aft;
	check()
}

/* ---- credit, by the newest header ---- */

inline on_header()
{
	if
#ifdef BREAK_NEWEST /* whatever was processed last counts */
	:: true ->
#else
	:: DIFF(seq, S.heard) < 8 ->
#endif
		S.heard = seq;
#ifdef BREAK_ADD /* as if nothing were under way */
		S.credit = pr;
#else
		x = DIFF(S.lssq, lr);
		S.credit = (pr > x -> pr - x : 0);
#endif
		S.peer_freed = fr
	:: else
	fi
}

/* ---- what came ---- */

inline in_order()
{
	if
	:: unit != 0 ->
		assert(unit == S.got + 1); /* property: order */
		S.got++
	:: else
	fi
}

#ifdef OVERTAKE
inline on_number()
{
	if
	:: seq == NEXT(S.lrsq) ->
		in_order();
		S.lrsq = seq;
		do
		:: S.early & 1 ->
			S.got = S.got + (S.early_unit & 1);
			S.lrsq = NEXT(S.lrsq);
			S.early = S.early >> 1;
			S.early_unit = S.early_unit >> 1
		:: else -> break
		od;
		S.early = S.early >> 1;
		S.early_unit = S.early_unit >> 1
	:: else ->
		x = DIFF(seq, S.lrsq) - 2;
		assert(x < 4 && !(S.early & (1 << x))); /* property: order */
		S.early = S.early | (1 << x);
#ifdef BREAK_HOLD /* handed on as it comes */
		in_order()
#else
		S.early_unit = S.early_unit | ((unit != 0) << x)
#endif
	fi;
	if
	:: DIFF(seq, S.high) < 8 -> S.high = seq
	:: else
	fi
}
#else
inline on_number()
{
	assert(seq == NEXT(S.lrsq)); /* property: order */
	S.lrsq = seq;
	in_order()
}
#endif

inline post_again()
{
#ifdef RESIZE
	if
	:: !S.larger -> S.old++
	:: else
	fi;
#endif
	S.posted++
}

inline on_buffer()
{
	assert(S.posted > 0); /* property: credit */
	assert(S.ossc > 0); /* property: credit */
	S.posted--;
	S.ossc--;
#ifdef RESIZE
	assert(!big || S.old == 0); /* property: size */
	if
	:: S.old > 0 -> S.old--
	:: else
	fi;
#endif
#ifdef LAZY
	S.taken++
#else
	post_again()
#endif
}

/* ---- larger buffers; side 0 has accepted the connection ---- */

#ifdef RESIZE
inline on_resize()
{
	if
	:: kind == ASK ->
		assert(!S.answer); /* property: end */
		if
#ifdef BREAK_CROSS /* both answer */
		:: false -> skip
#else
		:: S.asked && s == 0 -> skip /* ours counts */
#endif
#ifdef BREAK_VOID /* it still waits for an answer to its own */
		:: s == 1 -> S.answer = 1
#else
		:: S.asked && s == 1 -> S.asked = 0; S.wants = 1; S.answer = 1
#endif
		:: else -> S.answer = 1
		fi
	:: kind == ANSWER ->
		assert(S.asked); /* property: end */
		S.asked = 0;
		if
		:: after != 0 -> S.settling = 1; S.after = (after - 1) & 15
		:: else
		fi
	:: else
	fi
}

/* what crosses is told from what came before by its order: the answer goes first */
#ifdef BREAK_OWES
#define may_ask true
#else
#define may_ask (!S.answer)
#endif
#ifdef SHORT
#define has_memory (s == 1)
#else
#define has_memory true
#endif
#ifdef BREAK_AFTER /* whatever is sent from now on */
#define last_old S.lrsq
#else
#define last_old (S.lrsq + S.posted)
#endif

inline answer_resize()
{
	S.answer = 0;
	if
	:: has_memory ->
		assert(!S.larger); /* property: end */
		S.larger = 1;
		send_msg(0, 0, ANSWER, (last_old & 15) + 1)
	:: else -> send_msg(0, 0, ANSWER, 0)
	fi
}
#else
#define on_resize() skip
#endif

/* ---- the steps ---- */

inline rx()
{
	on_buffer();
	on_number();
	on_header();
	on_resize();
	check();
	forget()
}

#define MSG pr, lr, fr, unit, big, kind, after

/* the message that is *n* ahead */
#define comes(n) \
	atomic { q[1 - s] ?? eval((S.lrsq + n) & 15), MSG -> d_step { \
		seq = (S.lrsq + n) & 15; \
		rx() } }

proctype steps(byte s)
{
end:	do
	:: atomic { S.sent < NB_DATA && may_send && store_has_room && quiet -> d_step {
		S.sent++;
		send_msg(S.sent, big_now, PLAIN, 0) } }
	:: atomic { may_update && quiet -> d_step { send_msg(0, 0, PLAIN, 0) } }
	:: comes(1)
#ifdef OVERTAKE
	:: comes(2)
	:: comes(3)
	:: comes(4)
#endif
	:: atomic { reads(s) && S.freed < S.got -> d_step { S.freed++ } }
#ifdef LAZY
	:: atomic { S.taken > 0 -> d_step { S.taken--; post_again(); check() } }
#endif
#ifdef RESIZE
	:: atomic { S.wants && !S.asked && may_ask && may_send && quiet -> d_step {
		S.wants = 0;
		S.asked = 1;
		send_msg(0, 0, ASK, 0) } }
	:: atomic { S.answer && may_send && quiet -> d_step { answer_resize(); forget() } }
	/* pending messages are complete: now the own ones */
	:: atomic { S.settling && OUT(s) == 0 -> d_step { S.settling = 0; S.may_big = 1 } }
#endif
	od
}

init
{
	byte s;

	atomic {
		for (s : 0 .. 1) {
			S.lssq = FIRST;
			S.heard = FIRST;
			S.lrsq = FIRST;
			S.credit = NB_RECV;
			S.posted = NB_RECV;
			S.ossc = NB_RECV;
#ifdef OVERTAKE
			S.high = FIRST;
#endif
#ifdef RESIZE
			S.old = NB_RECV;
			S.wants = 1;
#endif
		}
		s = 0;
		run steps(0);
		run steps(1)
	}
	atomic { timeout ->
		assert(v[1].sent == NB_DATA && v[0].got == NB_DATA); /* property: end */
		assert(v[0].freed == NB_DATA); /* property: end */
#ifdef DEAF
		assert(v[0].sent == STORE && v[1].got == STORE); /* property: end */
#else
		assert(v[0].sent == NB_DATA && v[1].freed == NB_DATA); /* property: end */
#endif
		assert(v[0].credit == v[1].ossc && v[1].credit == v[0].ossc); /* property: lost */
#ifdef RESIZE
		assert(!v[0].asked && !v[1].asked && !v[0].wants && !v[1].wants); /* property: end */
		assert(v[0].larger == v[1].may_big && v[1].larger == v[0].may_big); /* property: end */
#ifdef SHORT
		assert(v[0].may_big && !v[1].may_big) /* property: end */
#else
		assert(v[0].may_big && v[1].may_big) /* property: end */
#endif
#endif
	}
}
