/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A socket gets another owner, the daemon instead of the kernel, while other threads call: each call
 * is served whole by one of them, and none waits for what the other one has. (UDP-10)
 *
 * What mirrors what (lib/sansock)
 *
 *   pin, unpin    sock_owner.c: san_sock_owner_pin(), san_sock_owner_unpin()
 *   begin, end    sock_owner.c: san_sock_owner_change_begin(), san_sock_owner_change_end(), san_sock_owner_chosen()
 *   change        sock_carry.c: carry_by_daemon(): the daemon has it, then the numbers are replaced
 *   gate          sock_switch_io.c: gate_make(), gate_wait(), begin_receive()
 *   send, option  a call that does not wait; recv: one that does
 *
 * What is abstracted, and why that is sound
 *
 *   Time. A change that finds the socket pinned gives up at any moment, as after 20 ms.
 *   Datagrams. One comes once the socket has a name, to whoever owns it then; it wakes who waits
 *     there. A second one is no other case.
 *   The daemon's answer. It may say no: then the kernel keeps the socket.
 *
 * Properties
 *
 *   owner     the owner does not change under a call
 *   number    the number means the owner by which the call is served
 *   end       every call ends: in particular recv, wherever the datagram came
 *
 * Options: NAMED: it has a name, which the kernel serves, and a thread waits there already.
 * BREAK_COUNT: begin looks at the pins once, and does not hold them off. BREAK_AGAIN: pin does not
 * look again at who owns it. BREAK_GATE: who makes the gate does not look again whether it is
 * chosen.
 */

#define KERNEL 0
#define DAEMON 1

byte owner = KERNEL;  /* f->carried */
byte number = KERNEL; /* what the descriptor is */
byte pins;
bool changing;
bool chosen;      /* f->is_chosen */
bool gate, is_open; /* there is one; whoever waits there goes on */
bool got[2];      /* a datagram is there, by owner */
bool sent;

#ifdef BREAK_AGAIN
#define AGAIN true
#else
#define AGAIN (owner == KERNEL)
#endif

/* *who*: by whom this call is served. */
inline pin(who)
{
	do
	:: owner == DAEMON -> who = DAEMON; break
	:: else ->
		if
		:: atomic { !changing -> pins++ }
			if
			:: AGAIN -> who = KERNEL; break
			:: else -> pins--
			fi
		:: changing -> skip /* a step later */
		fi
	od
}

inline unpin(who)
{
	if
	:: who == KERNEL -> pins--
	:: else
	fi
}

/* A call that does not wait. */
proctype option()
{
	byte who;

	pin(who);
	assert(number == who); /* property: number */
	assert(owner == who);  /* property: owner */
	unpin(who)
}

proctype receive()
{
	byte who;
	bool waits;

again:
	pin(who);
	waits = false;
	if
	:: who == KERNEL && !chosen ->
		gate = true;
		if
#ifndef BREAK_GATE
		:: chosen -> is_open = true
#endif
		:: else
		fi;
		pins--;
		is_open;
		waits = true
	:: else
	fi;
	if
	:: waits -> goto again
	:: else
	fi;
	assert(number == who); /* property: number */
	got[who];
	assert(owner == who); /* property: owner */
	unpin(who)
}

/* The first send, or bind: it gets its name. */
proctype carry()
{
	bool mine = false;

	if
#ifdef BREAK_COUNT
	:: atomic { pins == 0 -> mine = true }
#else
	:: atomic { pins == 0 && !changing -> changing = true; mine = true }
#endif
	:: pins != 0 /* it gives up */
	fi;
	if
	:: mine ->
		if
		:: number = DAEMON;
			owner = DAEMON
		:: skip /* the daemon does not want it */
		fi;
		changing = false
	:: else
	fi;
	chosen = true;
	if
	:: gate -> is_open = true
	:: else
	fi;
	/* it has sent, and is answered */
	got[owner] = true;
	sent = true
}

init {
#ifdef NAMED
	chosen = true;
#endif
	atomic {
		run receive();
		run option();
		run carry()
	}
	timeout; /* nobody can go on */
	assert(_nr_pr == 1) /* property: end */
}
