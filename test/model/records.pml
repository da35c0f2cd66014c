/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The initiator's records (RT-18, RT-35): received is not acknowledged, so peers that report
 * "received" for ever could keep every record. Two lying hosts with two connections each and an
 * innocent one share the records of a host.
 *
 * What mirrors what
 *
 *   may_take, take   tl_want.c: the first record of a connection, reserved while there are as
 *                    many, or a spare one within the share of the peer's host
 *   give             tl_finish.c: the record of an acknowledged request is free
 *   expire           tl_want.c: a record without progress goes to a connection that waits
 *
 * What is abstracted, and why that is sound
 *
 *   Packets. An acknowledgement may come at any time, also after the record has expired.
 *   Time. A record may expire as soon as another connection waits, or never in time to matter.
 *   Rings and wide blocks are bounded in the same way.
 *
 * Properties
 *
 *   account   free records, and those that are taken, are all there are
 *   once      a record belongs to one request: an old acknowledgement frees no other's
 *   reserved  a connection with a reservation finds a record for its first request
 *   share     a host that has a spare record never takes the last one
 *   end       the innocent host's requests complete, whatever the others do
 *
 * Options: RESERVED: connections with a reservation. RECORDS, REQUESTS: sizes. BREAK_x: one rule is
 * left out: SHARE, EXPIRY, RESERVE, OLD (an acknowledgement is taken for that of the newest request with the record).
 */

#ifndef RESERVED
#define RESERVED 0
#endif
#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef REQUESTS
#define REQUESTS 2 /* of each connection */
#endif
#define SHARES	  2 /* 8 in the code */
#define CONNS	  5
#define INNOCENT  4
#define HOST(c)	  ((c) / 2)
#define UNUSED(c) ((c) < RESERVED && own[c] == 0)
#ifdef BREAK_RESERVE
#define SPARE free
#else
#define SPARE (free - unused)
#endif
#ifdef BREAK_SHARE
#define IN_SHARE(c) true
#else
#define IN_SHARE(c) (spare[HOST(c)] * SHARES < SPARE)
#endif

#define may_take(c) (UNUSED(c) || (free > 0 && SPARE > 0 && IN_SHARE(c)))

byte free = RECORDS, unused = RESERVED;
byte holder[RECORDS];	/* connection + 1; 0: free */
byte nr[RECORDS];	/* of its request */
bit is_extra[RECORDS];	/* not the reserved one of its connection */
byte own[CONNS], spare[3], posted[CONNS], done;
bit waits;		/* the innocent one has a request without a record */
chan acks = [1] of { byte, byte, byte }; /* old ones, on their way */

inline check()
{
	assert(free + own[0] + own[1] + own[2] + own[3] + own[4] == RECORDS); /* property: account */
	assert(free >= unused); /* property: reserved */
	assert(spare[0] <= 1 || spare[0] < RECORDS - RESERVED); /* property: share */
	assert(spare[1] <= 1 || spare[1] < RECORDS - RESERVED) /* property: share */
}

inline take(c)
{
	r = 0;
	do
	:: holder[r] != 0 -> r++
	:: else -> break
	od;
	is_extra[r] = !UNUSED(c);
	unused = unused - (UNUSED(c) -> 1 : 0);
	spare[HOST(c)] = spare[HOST(c)] + is_extra[r];
	own[c]++;
	free--;
	posted[c]++;
	holder[r] = c + 1;
	nr[r] = posted[c];
	check()
}

inline give(c, r)
{
	spare[HOST(c)] = spare[HOST(c)] - is_extra[r];
	is_extra[r] = 0;
	own[c]--;
	free++;
	unused = unused + (UNUSED(c) -> 1 : 0);
	holder[r] = 0;
	nr[r] = 0;
	check()
}

proctype liar(byte c)
{
	byte r;

end:	do
	:: atomic { posted[c] < REQUESTS && may_take(c) -> d_step { take(c); r = 0 } }
	od
}

proctype innocent(byte c)
{
	byte r;

end:	do
	:: atomic { posted[c] < REQUESTS && may_take(c) -> d_step { take(c); r = 0; waits = 0 } }
	:: atomic { posted[c] < REQUESTS && !may_take(c) && !waits -> waits = 1 }
	:: atomic { own[c] > 0 -> d_step {
		r = 0;
		do
		:: holder[r] != c + 1 -> r++
		:: else -> break
		od;
		give(c, r);
		r = 0;
		done++ } }
	od
}

/* What befalls the records of liars. */
proctype pool()
{
	byte r, c, n;

end:	do
#ifndef BREAK_EXPIRY
	:: atomic { waits && free + own[INNOCENT] < RECORDS && nfull(acks) ->
		select (r : 0 .. RECORDS - 1);
		if
		:: holder[r] != 0 && holder[r] != INNOCENT + 1 -> d_step {
			acks ! r, holder[r], nr[r];
			c = holder[r] - 1;
			give(c, r);
			c = 0 }
		:: else
		fi;
		r = 0 }
#endif
	:: atomic { acks ? r, c, n -> d_step {
		if
#ifdef BREAK_OLD
		:: holder[r] != 0 ->
#else
		:: holder[r] == c && nr[r] == n -> /* never: it has expired */
#endif
			assert(holder[r] == c && nr[r] == n); /* property: once */
			c = holder[r] - 1;
			give(c, r)
		:: else
		fi;
		r = 0;
		c = 0;
		n = 0 } }
	od
}

init
{
	atomic { run liar(0); run liar(1); run liar(2); run liar(3); run innocent(INNOCENT); run pool() }
	atomic { timeout ->
		assert(done == REQUESTS && own[INNOCENT] == 0) /* property: end */
	}
}
