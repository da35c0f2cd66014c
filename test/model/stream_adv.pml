/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Where a stream's data goes (AFC-5 ... AFC-13, AFC-21 ... AFC-23, AFC-28): notices, offers and
 * advertisements that cross. One direction of one stream; what the other side does is the same.
 *
 * What mirrors what
 *
 *   begin, data, notice, direct    stream_mode.c: how a send goes, by mode and by what is
 *                  advertised
 *   on_adv(), spend()    stream_adv.c: the stale check, and a data message's advertisement
 *   fallback, withdraw   stream_mode.c: the scan
 *   post, deliver()      stream.c: a receive of the program, and what is in the store
 *   drop(), on_cancelled()    stream_adv.c: receives that their program takes back
 *   answer, read         stream_adv.c, stream_mode.c: what is done for a large send that waits
 *
 * What is abstracted, and why that is sound
 *
 *   Sizes. A small send is one unit, a large one two: its initial portion, and the rest. A
 *     small receive has room for one, a large one for two.
 *   Modes. Which one a sender learns depends on what it has seen; here each send may begin in
 *     any, so whatever is learnt is among it. READ: without it there is no remote read.
 *   Time. Scans may come at any time. A write is placed when its done message comes: what is
 *     asked of its memory is asked at both times.
 *   Credit. A message waits until there is room under way, nobody waits to receive one;
 *     stream.pml shows that credit comes.
 *   Header fields. R is in each ADV; of LRSQ only what is asked of it: did the other side have
 *     the notice when it sent this?
 *
 * Properties
 *
 *   order        units come in the order of the stream, each once, each into the oldest receive
 *   stale        nothing is written into a receive that is not waiting for it, and the sender
 *                has no more advertisements than there are receives
 *   owned        nothing is read that the sender has back
 *   end          everything arrives, and the sender has all of its memory back
 *
 * Options: NB_SENDS; READ; WAITS: the program posts a receive only when a whole send is there.
 * CANCEL: it may take receives back, so often. BREAK_x: one rule is left out; meson.build says
 * which property notices it.
 */

#ifndef NB_SENDS
#define NB_SENDS 3
#endif
#define NB_SETS 2

#define DISCOVERY  0
#define SMALL_RECV 1
#define LARGE_RECV 2
#define SMALL_LARGE 3

/* to the receiver */
#define DATA	 0
#define NOTICE	 1
#define OFFER	 2
#define WDONE	 3
#define WITHDRAW 4
#define MODE	 5
#define CANCELLED 6
/* to the sender */
#define ADV   0
#define RDONE 1
#define SMALL 2
#define CANCEL_ADV 3

/* of the current send */
#define IDLE	  0
#define READY	  1
#define WAIT	  2
#define WITHDRAWN 3
#define LEFT	  4 /* the rest goes in a message */

/* kind; unit, or the send; advertisement; where a write begins: 0, 1, or 2 for where it was told */
chan ab = [3] of { byte, byte, byte, byte };
/* kind; advertisement, or the send; R, or units; the send whose notice has come */
chan ba = [3] of { byte, byte, byte, byte };

/* sender */
byte nr;    /* of the current send, from 1 on */
byte phase, unit, mode, told;
bit large, offered;
bit kept;   /* its initial portion is in a receive that was taken back */
byte s, used; /* S, and the last message that is counted against a receive */
chan advs = [NB_SETS] of { byte, byte }; /* unused: number, the send whose notice had come */

/* receiver */
typedef set {
	unsigned id : 4;
	bit large;
	bit adv;
	bit front;  /* holds an initial portion */
};
set head, second;
byte nb_sets, next_id, r, heard, came, placed;
byte notice; /* the last send of which an initial portion came */
bit waits;   /* its rest is waited for, and nothing was answered */
bit by_read;
bit says_rdone;
byte rdone_nr;
#ifdef CANCEL
byte nb_cancels;
bit cancels;	/* and waits for the answer */
bit withdrawn;	/* what crossed is an offer, and was wanted back */
#endif
bit crossed;	/* the last initial portion found an advertised receive, and nothing came since */
chan store = [2 * NB_SENDS] of { byte }; /* 1: an initial portion */
byte kind, u, id, off, rr, n, k, first; /* of one step: forget() */

inline forget()
{
	kind = 0;
	u = 0;
	id = 0;
	off = 0;
	rr = 0;
	n = 0;
	k = 0;
	first = 0
}

#define is_waiting(i)                                              \
	((nb_sets > 0 && head.id == (i) && head.adv) ||            \
	 (nb_sets > 1 && second.id == (i) && second.adv))

/* ---- sender ---- */

/* a data message goes: it ends in the oldest receive that is advertised */
inline spend()
{
	s++;
	if
	:: len(advs) > 0 -> advs ? id, n; used = s
	:: else
	fi
}

inline send_data()
{
	unit++;
	ab ! DATA, unit, 0, 0;
#ifdef BREAK_SPEND /* it takes no advertisement */
	s++
#else
	spend()
#endif
}

inline on_adv()
{
	first = (used > rr -> used : rr);
	if
#ifdef BREAK_STALE /* whatever is under way */
	:: false -> skip
#else
	:: s > first -> used = first + 1
#endif
#ifdef BREAK_ONCE /* a message counts against every receive */
	:: s > rr -> skip
#endif
	:: else ->
		assert(len(advs) < NB_SETS); /* property: stale */
		advs ! id, n
	fi
}

/* into the oldest advertised receive: behind the initial portion, if it did not know of it */
inline write_rest()
{
	advs ? id, n;
	assert(is_waiting(id)); /* property: stale */
	unit++;
#ifdef BREAK_BEHIND /* always */
	ab ! WDONE, unit, id, 1;
#else
	ab ! WDONE, unit, id, (n == nr || kept -> 2 : 1);
#endif
	phase = IDLE
}

#define is_upto(i, last) ((i) <= (last))
#ifdef BREAK_KEPT /* as if its initial portion were in the next one */
#define has_initial(n) false
#else
#define has_initial(n) ((phase == WAIT || phase == WITHDRAWN) && n != nr)
#endif

/* one that is taken back, with what there is of the current send; another goes to the end */
inline drop(last)
{
	if
	:: len(advs) > 0 ->
		advs ? id, n;
		if
		:: is_upto(id, last) -> kept = kept || has_initial(n)
		:: else -> advs ! id, n
		fi
	:: else
	fi
}

proctype sender()
{
end:	do
	/* begin: another send, of whatever size, in whatever mode */
	:: atomic { phase == IDLE && nr < NB_SENDS ->
		if
		:: large = 0
		:: large = 1
		fi;
		if
		:: mode = DISCOVERY
		:: mode = SMALL_RECV
		:: mode = LARGE_RECV
#ifdef READ
		:: mode = SMALL_LARGE
#endif
		fi;
		nr++;
		phase = READY }
	:: atomic { phase == READY && told != mode && (told == LARGE_RECV || mode == LARGE_RECV) &&
		    nfull(ab) -> d_step {
		told = mode;
		ab ! MODE, mode, 0, 0 } }
	:: atomic { phase == READY && !large && nfull(ab) -> d_step {
		send_data();
		phase = IDLE;
		forget() } }
	:: atomic { phase == READY && large && mode == SMALL_RECV && nfull(ab) -> d_step {
		send_data();
		phase = LEFT;
		forget() } }
	/* what is advertised is written to, whatever the mode (AFC-10) */
	:: atomic { phase == READY && large && len(advs) > 0 && nfull(ab) -> d_step {
		advs ? id, n;
		assert(is_waiting(id)); /* property: stale */
		unit++;
		ab ! WDONE, unit, id, 0;
		unit++;
		phase = IDLE;
		forget() } }
	:: atomic { phase == READY && large && len(advs) == 0 && mode == DISCOVERY &&
		    nfull(ab) -> d_step {
		unit++;
		ab ! NOTICE, unit, nr, 0;
		offered = 0;
		kept = 0;
		phase = WAIT } }
	:: atomic { phase == READY && large && len(advs) == 0 && mode == SMALL_LARGE &&
		    nfull(ab) -> d_step {
		unit++;
		ab ! OFFER, unit, nr, 0;
		offered = 1;
		kept = 0;
		phase = WAIT } }
	/* the scan: nothing was advertised for too long */
#ifndef BREAK_SCAN
	:: atomic { phase == READY && large && mode == LARGE_RECV -> mode = DISCOVERY }
	:: atomic { phase == WAIT && !offered -> phase = LEFT }
	:: atomic { phase == WAIT && offered && nfull(ab) -> d_step {
#ifdef BREAK_WITHDRAW /* without asking for it back */
		offered = 0;
		phase = LEFT
#else
		ab ! WITHDRAW, nr, 0, 0;
		phase = WITHDRAWN
#endif
		} }
#endif
	:: atomic { (phase == WAIT || phase == WITHDRAWN) && len(advs) > 0 &&
		    nfull(ab) -> d_step {
		write_rest();
		offered = 0;
		forget() } }
	:: atomic { phase == LEFT && nfull(ab) -> d_step { send_data(); phase = IDLE; forget() } }
	/* what comes */
	:: atomic { ba ? ADV, id, rr, n -> d_step { on_adv(); forget() } }
	:: atomic { ba ? RDONE, k, rr, n -> d_step {
		if
		:: k == nr && offered && rr == 1 -> unit++; offered = 0; phase = IDLE
		:: k == nr && offered && rr == 0 -> offered = 0; phase = LEFT
		:: else
		fi;
		forget() } }
	:: atomic { ba ? SMALL, k, rr, n -> d_step {
		if
		:: k == nr && phase == WAIT -> phase = LEFT
		:: else
		fi;
		forget() } }
#ifdef CANCEL
	/* all up to this one; the answer goes before any message that is not counted there */
	:: atomic { nfull(ab) && ba ? [CANCEL_ADV, _, _, _] -> d_step {
		ba ? CANCEL_ADV, k, rr, n;
		drop(k); /* twice: there are two at most, and one that stays has gone to the end */
		drop(k);
		ab ! CANCELLED, 0, k, 0;
		forget() } }
#endif
	od
}

/* ---- receiver ---- */

inline pop()
{
	nb_sets--;
	head.id = second.id;
	head.large = second.large;
	head.adv = second.adv;
	head.front = second.front;
	second.id = 0;
	second.large = 0;
	second.adv = 0;
	second.front = 0;
}

/* the oldest thing in the store goes into the oldest receive */
inline deliver()
{
	do
	:: nb_sets > 0 && len(store) > 0 ->
		assert(!head.adv); /* property: order */
		store ? k;
		placed++;
		if
		:: k == 1 && head.large -> head.front = 1
		:: else -> pop()
		fi
	:: else -> break
	od;
	skip
}

inline on_data()
{
	came++;
	assert(u == came); /* property: order */
	r++;
	waits = 0;
	crossed = 0;
	if
	:: nb_sets > 0 -> placed++; pop()
	:: else -> store ! 0; deliver()
	fi
}

inline on_initial()
{
	came++;
	assert(u == came); /* property: order */
	notice = id;
	waits = 1;
	crossed = 0;
#ifdef CANCEL
	withdrawn = 0;
#endif
	by_read = (kind == OFFER);
	if
	:: nb_sets > 0 ->
		placed++;
		if
#ifdef BREAK_CROSS /* and the other side is answered all the same */
		:: head.adv -> head.front = 1
#else
		:: head.adv -> head.front = 1; waits = 0; crossed = 1 /* it will be written to */
#endif
		:: !head.adv && head.large -> head.front = 1
		:: else -> pop()
		fi
	:: else -> store ! 1
	fi
}

inline on_wdone()
{
	assert(u == came + 1 && len(store) == 0); /* property: order */
	assert(nb_sets > 0 && head.id == id && head.adv); /* property: stale */
	assert(off == 2 || off == head.front); /* property: order */
	n = (off == 0 -> 2 : 1);
	came = came + n;
	placed = placed + n;
	crossed = 0;
	pop()
}

inline post(big)
{
	next_id++;
	if
	:: nb_sets == 0 -> head.id = next_id; head.large = big
	:: else -> second.id = next_id; second.large = big
	fi;
	nb_sets++;
	deliver()
}

#ifdef CANCEL
#define is_taken_back(last) (nb_sets > 0 && head.adv && is_upto(head.id, last))

/*
 * The initial portion that went there stays there. If nothing else is advertised, its send waits
 * as if there had been no advertisement.
 */
inline on_cancelled()
{
	cancels = 0;
	do
	:: is_taken_back(id) -> pop()
	:: else -> break
	od;
	if
#ifdef BREAK_REVIVE /* what is void stays void */
	:: true -> skip
#else
	:: crossed && !(nb_sets > 0 && head.adv) ->
		crossed = 0;
		waits = !withdrawn;
		says_rdone = withdrawn;
		rdone_nr = notice
	:: else
#endif
	fi
}
#endif

#ifdef WAITS
#define may_post (len(store) > waits)
#else
#define may_post true
#endif

/* only what is next in line, or else bytes would overtake */
#ifdef BREAK_LINE
#define in_line true
#else
#define in_line head.adv
#endif
/* not while a large send waits, nor behind what the rest of one comes into */
#ifdef BREAK_OFFER
#define may_advertise (nb_sets > 0)
#else
#define may_advertise (nb_sets > 0 && !waits && !head.front)
#endif

proctype receiver()
{
end:	do
	:: atomic { nb_sets < NB_SETS && may_post -> d_step { post(0); forget() } }
	:: atomic { nb_sets < NB_SETS && may_post -> d_step { post(1); forget() } }
	/* large receive mode: each receive is advertised */
	:: atomic { heard == LARGE_RECV && may_advertise && head.large && !head.adv &&
		    nfull(ba) -> d_step {
		head.adv = 1;
		ba ! ADV, head.id, r, notice } }
	:: atomic { heard == LARGE_RECV && may_advertise && nb_sets > 1 && in_line &&
		    second.large && !second.adv && nfull(ba) -> d_step {
		second.adv = 1;
		ba ! ADV, second.id, r, notice } }
	/* a large send waits, and here is where its rest can go */
	:: atomic { waits && !by_read && nb_sets > 0 && head.large && nfull(ba) -> d_step {
		waits = 0;
		head.adv = 1;
		ba ! ADV, head.id, r, notice } }
	:: atomic { waits && !by_read && nb_sets > 0 && !head.large && nfull(ba) -> d_step {
		waits = 0;
		ba ! SMALL, notice, 0, 0 } }
	:: atomic { waits && by_read && nb_sets > 0 && nfull(ba) -> d_step {
		assert(offered && nr == notice); /* property: owned */
		waits = 0;
		came++;
		placed++;
		pop();
		ba ! RDONE, notice, 1, 0 } }
	:: atomic { says_rdone && nfull(ba) -> d_step {
		says_rdone = 0;
		ba ! RDONE, rdone_nr, 0, 0 } }
#ifdef CANCEL
	/* one that nobody knows of goes at once */
	:: atomic { nb_cancels < CANCEL && nb_sets == 1 && !head.adv && !head.front -> d_step {
		nb_cancels++;
		pop() } }
	:: atomic { nb_cancels < CANCEL && nb_sets > 0 && head.adv && !cancels &&
		    nfull(ba) -> d_step {
		nb_cancels++;
		ba ! CANCEL_ADV, head.id, 0, 0;
#ifdef BREAK_CANCEL /* and so does the one that the other side knows */
		pop()
#else
		cancels = 1
#endif
		} }
	:: atomic { nb_cancels < CANCEL && nb_sets == 2 && second.adv && !cancels &&
		    nfull(ba) -> d_step {
		nb_cancels++;
		cancels = 1;
		ba ! CANCEL_ADV, second.id, 0, 0 } }
#endif
	/* what comes */
	:: atomic { ab ? kind, u, id, off -> d_step {
		if
		:: kind == DATA -> on_data()
		:: kind == NOTICE || kind == OFFER -> on_initial()
		:: kind == WDONE -> on_wdone()
		:: kind == MODE -> heard = u
		:: kind == WITHDRAW ->
			if
			:: waits && by_read && notice == u ->
				waits = 0;
				says_rdone = 1;
				rdone_nr = u
#ifdef CANCEL
			:: crossed && by_read && notice == u -> withdrawn = 1
#endif
			:: else /* it was read, or is written */
			fi
#ifdef CANCEL
		:: kind == CANCELLED -> on_cancelled()
#endif
		fi;
		forget() } }
	od
}

init
{
	atomic { run sender(); run receiver() }
	atomic { timeout ->
		assert(nr == NB_SENDS && phase == IDLE && !offered); /* property: end */
		assert(came == unit && placed == came && len(store) == 0) /* property: end */
	}
}
