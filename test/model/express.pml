/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The express and the general path of a receiver are two ways into one state (RT-42). Requests of
 * an ordered connection: the second one has two packets. Packets are lost, repeated and overtaken,
 * and the express path is switched on and off.
 *
 * What mirrors what
 *
 *   express       express.c: san_express_rx(); pdl_rx.c: san_pdl_rx_express(),
 *                 san_pdl_rx_express_take(); tl_target.c: san_tl_target_express()
 *   general       pdl_win.c: what is new; tl_target.c: san_tl_target_rx_push()
 *   replay        tl_target.c: target_replay_held(); tl_target_order.c: base_next()
 *   revoke        pdl_win.c: san_pdl_win_rx_revoke(); tl_rxn_held.c: san_tl_rxn_held_timer()
 *   odd           pdl.h: SAN_ODD_BASE, SAN_ODD_AHEAD
 *
 * What is abstracted, and why that is sound
 *
 *   Network. Any packet may arrive at any time, any number of times: that is loss, repetition,
 *     reordering and resending.
 *   Headers, bytes, acknowledgements: tests compare them (test/property/prop_express.c).
 *
 * Properties
 *
 *   same      whatever path a packet takes, the window and what is delivered are those of the
 *             set of packets that arrived
 *   odd       the bits are clear if, and only if, nothing is held and no request is partly there
 *   end       all requests are delivered at last
 *
 * Options: BREAK_ODD: express looks neither at the bits nor at packets beyond a gap. NO_ODD, NO_HIGH:
 * it looks at one of them only, which suffices here.
 */

#define PKTS	 5
#define REQUESTS 4
#define RSN(p)	 ((p) < 2 -> (p) : (p) - 1)    /* packets 1 and 2 are of request 1 */
#define FIRST(r) ((r) < 2 -> (r) : (r) + 1)
#define LAST(r)	 ((r) < 1 -> (r) : (r) + 1)
#define IS_ONE(p) ((p) != 1 && (p) != 2)

byte base, high;     /* receive window */
byte rsn;	     /* requests delivered */
byte nb_held, part;  /* packets of later requests; of the one at the base */
bit came[PKTS];	     /* bits of the window, also below the base */
bit on = 1;
bit odd;

inline check()
{
	n = 0;
	do
	:: n < PKTS && came[n] -> n++
	:: else -> break
	od;
	assert(base == n); /* property: same */
	assert(rsn == (n == PKTS -> REQUESTS : RSN(n))); /* property: same */
	n = PKTS;
	do
	:: n > base && !came[n - 1] -> n--
	:: else -> break
	od;
	assert(high == n); /* property: same */
	assert(odd == (nb_held + part != 0)); /* property: odd */
	n = 0
}

/* the base moves on, and what was held is in its turn */
inline replay()
{
	do
	:: base < PKTS && came[base] -> base++
	:: else -> break
	od;
	do
	:: rsn < REQUESTS && came[FIRST(rsn)] && came[LAST(rsn)] ->
		rsn++;
		part = 0;
		n = (rsn == REQUESTS -> PKTS : FIRST(rsn));
		if
		:: rsn < REQUESTS -> /* of the new base: no longer held */
			part = came[n] + (LAST(rsn) != n && came[LAST(rsn)] -> 1 : 0);
			nb_held = nb_held - part
		:: else
		fi
	:: else -> break
	od;
	odd = (nb_held + part != 0)
}

inline general(p)
{
	came[p] = 1;
	high = (p >= high -> p + 1 : high);
	if
	:: RSN(p) == rsn -> part++
	:: else -> nb_held++
	fi;
	replay()
}

inline express(p)
{
	came[p] = 1;
	base++;
	high++;
	rsn++
}

#if defined(BREAK_ODD) || defined(NO_ODD)
#define ODD_OK true
#else
#define ODD_OK (odd == 0)
#endif
#if defined(BREAK_ODD) || defined(NO_HIGH)
#define HIGH_OK true
#else
#define HIGH_OK (high == base)
#endif
#define takes_express(p) (on && ODD_OK && HIGH_OK && (p) == base && RSN(p) == rsn && IS_ONE(p))

proctype network()
{
	byte p, n;

end:	do
	:: atomic { base < PKTS ->
		select (p : 0 .. PKTS - 1);
		if
		:: came[p] /* once more: it changes nothing */
		:: !came[p] && takes_express(p) -> d_step { express(p); check() }
		:: !came[p] && !takes_express(p) -> d_step { general(p); check() }
		fi;
		p = 0 }
	:: atomic { base < PKTS -> on = !on }
	/* what is held too long is dropped, and comes again */
	:: atomic { nb_held > 0 ->
		select (p : 0 .. PKTS - 1);
		if
		:: came[p] && RSN(p) > rsn && p >= base -> d_step {
			came[p] = 0;
			nb_held--;
			do
			:: high > base && !came[high - 1] -> high--
			:: else -> break
			od;
			odd = (nb_held + part != 0);
			check() }
		:: else
		fi;
		p = 0 }
	od
}

init
{
	run network();
	timeout;
	assert(rsn == REQUESTS && base == PKTS && nb_held == 0 && part == 0) /* property: end */
}
