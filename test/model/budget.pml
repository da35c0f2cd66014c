/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The incast budget with pushes and pulls in both directions (RT-13, RT-26): nobody waits
 * for ever, although nothing expires. Two hosts, two ordered connections; each host posts two
 * requests on each.
 *
 * What mirrors what
 *
 *   pull_room(), any_granted()    tl_admit.c: same names
 *   may_grant()   tl_admit.c: san_tl_admit_may_grant(); tl_admit_run.c: admit_step_of(), san_tl_admit_run()
 *   issue         tl_initiator.c: san_tl_initiator_submit(); tl_want.c: want_reason_of()
 *   grant         tl_solicit.c: san_tl_solicit_grant_one(): the lowest push that wants one
 *   arrive        tl_target.c: san_tl_target_rx_push(); tl_initiator.c: data in the order of RSNs
 *   held          tl_target.c: put_or_hold(): there, but charged until it is in its turn
 *   in_turn       tl_target_order.c: base_next(); tl_target.c: target_replay_held()
 *   pulled        tl_pull.c: san_tl_pull_execute(): in its turn; tl_initiator.c:
 *                 san_tl_initiator_rx_pull_data()
 *   expire         tl_admit.c: charge_expire_longest()
 *   charge, back, fit   tl_path.c: san_tl_path_add(), fit_room(): what of it is in the budget
 *
 * What is abstracted, and why that is sound
 *
 *   Packets, loss, windows. What was granted or asked for may arrive at any time from then
 *     on; that it can is the matter of solicit.pml and doc/deadlock.md.
 *   Bytes. One unit is one packet.
 *   Lapsing, but for SEND. It only gives room back: without it less is possible. The
 *     account of what expired may be full, so nothing may rest on it. With SEND only the
 *     connection of the send expires: no other has to.
 *   Receives, but for SEND; records, aborts: nothing here waits for them.
 *   What a path holds (RT-41): with PATHS, rooms may become that or nothing at any moment, MOVES
 *     times in all. Why they do is not asked. One unit is room enough to be right or wrong.
 *
 * Properties
 *
 *   budget       never more than the budget, granted and pulled
 *   end          every request is finished at last, whatever order things happen in
 *   others       SEND: all but what stands behind the send are, before its receive is there
 *
 * Options: MIXED: on the second connection the pull comes first. PUSHES: no pulls on it.
 * SEND: on one connection a send comes first, and its receive is posted when nothing else
 * can happen; what is granted behind it is refused until then. LEN, BUDGET, EXPIRED: sizes.
 * PATHS: paths have room beyond the budget. BREAK_SHRINK: it goes before what is charged to it.
 * BREAK_RESERVE: pulls may have all. BREAK_ANY: what is pulled counts as granted.
 * BREAK_EXPIRE: nothing may expire.
 */

#ifndef LEN
#define LEN 2
#endif
#ifndef BUDGET
#define BUDGET 4
#endif

#ifndef MOVES
#define MOVES 2
#endif

#ifdef BREAK_EXPIRE
#define EXPIRED 0
#else
#define EXPIRED BUDGET
#endif

#define PUSH 0
#define PULL 1
#define SENT 2 /* without a grant; finished when its receive is there */

/* of request i of a stream */
#if defined(MIXED)
#define kind(s, i) ((s) % 2 == (i) -> PUSH : PULL)
#elif defined(SEND)
#define kind(s, i) ((i) == 1 -> ((s) == 1 -> PUSH : PULL) : ((s) == 1 -> SENT : PUSH))
#elif defined(PUSHES)
#define kind(s, i) ((s) % 2 == 0 && (i) == 1 -> PULL : PUSH)
#else
#define kind(s, i) ((i) == 0 -> PUSH : PULL)
#endif

/* stream: what one host asks the other over one connection; 0, 1 of host 0 and 2, 3 of host 1 */
#define HOST(s)	 ((s) / 2)
#define PEER(s)	 (1 - HOST(s))
#define OTHER(s) ((s) ^ 1)	 /* the same host, the other connection */

typedef stream {
	unsigned issued : 2;
	unsigned base : 2;     /* requests that are finished */
	bit granted0;	       /* the first is a push, and granted fully */
	unsigned granted : 3;  /* of the next push */
	unsigned share : 3;    /* granted, not placed in its turn: of the peer's budget */
	unsigned expired : 3;   /* the same, and no longer of its budget */
	unsigned arrived : 3;  /* of the push at the base, or behind a pull there */
	unsigned charge0 : 3;  /* of pulls: of the own budget */
	unsigned charge1 : 3;
};

/* of a host, by what it pulls and what it grants */
typedef path {
	byte charged;
	bit room;
	bit want;
};

stream t[4];
path p[4];	/* PULLED and GRANTED of host 0, of host 1 */
byte used[2], pulled[2], expired[2];
bit posted; /* the receive of the send */

#define PULLED(h)  (2 * (h))
#define GRANTED(h) (2 * (h) + 1)
#define low(a, b)  ((a) < (b) -> (a) : (b))
#define QUARTER	   (BUDGET / 4)
#define ROOM(h)	   (BUDGET - used[h])
#define RESERVE	   (QUARTER > 0 -> QUARTER : 1)
#ifdef BREAK_RESERVE
#define pull_room(h) ROOM(h)
#else
#define pull_room(h) low(BUDGET - RESERVE - pulled[h], ROOM(h))
#endif
#ifdef BREAK_ANY
#define any_granted(h) (used[h] != 0)
#else
#define any_granted(h) (used[h] != pulled[h])
#endif

#ifdef PATHS
byte moves;
#endif
#define over(i)	 (p[i].charged > p[i].room -> p[i].charged - p[i].room : 0)
#define left(i)	 (p[i].charged < p[i].room -> p[i].room - p[i].charged : 0)

/* does the push of the lowest SSN want a grant? */
#define wants0(s) (kind(s, 0) == PUSH && !t[s].granted0 && t[s].issued > 0)
#define wants1(s) (!wants0(s) && kind(s, 1) == PUSH && t[s].issued > 1 && t[s].base < 2 && \
		   t[s].granted < LEN)
#define wants(s)  (wants0(s) || wants1(s))
#define may_grant(s) \
	(wants(s) && ROOM(PEER(s)) + left(GRANTED(PEER(s))) > 0 && t[s].expired == 0 && \
	 (!any_granted(PEER(s)) || !wants(OTHER(s)) || \
	  t[s].share < QUARTER + p[GRANTED(PEER(s))].room))

/* pulls of a stream that are under way */
#define has_pull(s) (kind(s, 0) == PULL && t[s].issued == 1 && t[s].base == 0)

inline check()
{
	assert(used[0] <= BUDGET && used[1] <= BUDGET); /* property: budget */
	assert(pulled[0] <= used[0] && pulled[1] <= used[1]); /* property: budget */
	assert(expired[0] <= EXPIRED && expired[1] <= EXPIRED) /* property: budget */
}

/* what of it is in the budget */
inline account(h)
{
	pulled[h] = over(PULLED(h));
	used[h] = pulled[h] + over(GRANTED(h))
}

inline charge(h, i, n)
{
	p[i].charged = p[i].charged + n;
	account(h)
}

inline back(h, i, n)
{
	p[i].charged = p[i].charged - (n);
#ifdef PATHS
	/* room that is too much goes with what comes back */
	if
	:: p[i].room && !p[i].want && (n) > 0 -> p[i].room = 0
	:: else
	fi;
#endif
	account(h)
}

inline fit(h, i)
{
	p[i].want = 1 - p[i].want;
	if
	:: p[i].want -> p[i].room = 1
#ifdef BREAK_SHRINK
	:: !p[i].want -> p[i].room = 0
#else
	:: !p[i].want && p[i].charged == 0 -> p[i].room = 0
#endif
	:: else
	fi;
	account(h)
}

inline finish(s)
{
	t[s].base++;
	t[s].arrived = 0
}

/* the first request is over: what is held behind it is placed */
inline in_turn(s)
{
	t[s].base++;
	t[s].share = t[s].share - t[s].arrived;
	back(PEER(s), GRANTED(PEER(s)), t[s].arrived);
	if
	:: kind(s, 1) == PUSH && t[s].arrived == LEN -> finish(s)
	:: else
	fi
}

proctype run_stream(byte s)
{
	byte n;

end:	do
	/* requests go in order; a pull only with room, but the first one always */
	:: atomic { t[s].issued < 2 && kind(s, t[s].issued) != PULL -> t[s].issued++ }
	:: atomic { t[s].issued < 2 && kind(s, t[s].issued) == PULL &&
		    (!has_pull(s) || LEN <= pull_room(HOST(s)) + left(PULLED(HOST(s)))) -> d_step {
		n = low(LEN, pull_room(HOST(s)) + left(PULLED(HOST(s))));
		if
		:: t[s].issued == 0 -> t[s].charge0 = n
		:: else -> t[s].charge1 = n
		fi;
		charge(HOST(s), PULLED(HOST(s)), n);
		n = 0;
		t[s].issued++;
		check() } }
	:: atomic { may_grant(s) -> d_step {
		charge(PEER(s), GRANTED(PEER(s)), 1);
		t[s].share++;
		t[s].granted++;
		if
		:: wants0(s) && t[s].granted == LEN -> t[s].granted0 = 1; t[s].granted = 0
		:: else
		fi;
		check() } }
	/* granted data, that of the lower push first; the lower request is there */
	:: atomic { t[s].share > 0 && t[s].base < 2 && kind(s, t[s].base) == PUSH &&
		    t[s].base < t[s].issued -> d_step {
		t[s].share--;
		back(PEER(s), GRANTED(PEER(s)), 1);
		t[s].arrived++;
		if
		:: t[s].arrived == LEN -> finish(s)
		:: else
		fi;
		check() } }
	/* that of the second push comes before a pull in front of it is done, and is held */
	:: atomic { t[s].share > t[s].arrived && t[s].base == 0 && kind(s, 0) == PULL &&
		    kind(s, 1) == PUSH -> d_step {
		t[s].arrived++;
		check() } }
	/* a pull is executed in its turn; what came behind it is at the base then */
	:: atomic { t[s].base == 0 && t[s].issued > 0 && kind(s, 0) == PULL -> d_step {
		back(HOST(s), PULLED(HOST(s)), t[s].charge0);
		t[s].charge0 = 0;
		in_turn(s);
		check() } }
	:: atomic { t[s].base == 1 && t[s].issued == 2 && kind(s, 1) == PULL -> d_step {
		back(HOST(s), PULLED(HOST(s)), t[s].charge1);
		t[s].charge1 = 0;
		finish(s);
		check() } }
#ifdef SEND
	/* what stands behind the send is refused, and comes again when that is done */
	:: atomic { t[s].share > 0 && t[s].base == 0 && kind(s, 0) == SENT &&
		    expired[PEER(s)] < EXPIRED -> d_step {
		t[s].share--;
		back(PEER(s), GRANTED(PEER(s)), 1);
		t[s].expired++;
		expired[PEER(s)]++;
		check() } }
	:: atomic { posted && t[s].base == 0 && t[s].issued > 0 && kind(s, 0) == SENT -> d_step {
		in_turn(s);
		check() } }
	/* of what was granted, that which expired comes first */
	:: atomic { t[s].expired > 0 && t[s].base == 1 && kind(s, 0) == SENT -> d_step {
		t[s].expired--;
		expired[PEER(s)]--;
		t[s].arrived++;
		if
		:: t[s].arrived == LEN -> finish(s)
		:: else
		fi;
		check() } }
#endif
	od
}

#ifdef PATHS
proctype run_paths()
{
end:	do
	:: atomic { moves < MOVES -> d_step { moves++; fit(0, 0); check() } }
	:: atomic { moves < MOVES -> d_step { moves++; fit(0, 1); check() } }
	:: atomic { moves < MOVES -> d_step { moves++; fit(1, 2); check() } }
	:: atomic { moves < MOVES -> d_step { moves++; fit(1, 3); check() } }
	od
}
#endif

init
{
	byte s;

	atomic {
		for (s : 0 .. 3) {
			run run_stream(s)
		}
		s = 0
#ifdef PATHS
		run run_paths()
#endif
	}
#ifdef SEND
	atomic { timeout ->
		assert(t[0].base == 2 && t[2].base == 2 && t[3].base == 2); /* property: others */
		assert(t[1].base == 0); /* property: others */
		posted = 1
	}
#endif
	atomic { timeout ->
		assert(t[0].base == 2 && t[1].base == 2); /* property: end */
		assert(t[2].base == 2 && t[3].base == 2); /* property: end */
		assert(used[0] == 0 && used[1] == 0) /* property: end */
	}
}
