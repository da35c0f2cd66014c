/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The C library's robust mutexes do this, too, but there are pointers in them, which it follows:
 * who passes a socket to a more privileged program could have it write anywhere. Here is a word:
 * which thread has the lock, and how often anybody had it (modulo 2^9), so that nobody gives back
 * what has been taken from him meanwhile.
 *
 * Who died is known of threads in our own namespace of process ids. Others, and those that keep
 * the lock, or of which somebody wrote so, are waited for as long as ROUNDS says. Rounds are
 * counted and not time: after a machine has stood still it has its turn before it is too late.
 */

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sock_lock.h"
#include "sock_real.h"

#define OWNER    0x003fffffu /* thread; ids are below 2^22 */
#define TURN     0x00400000u
#define TURNS    0x7fc00000u
#define WAITED   0x80000000u /* who gives it back wakes one */
#define ROUND_NS 20000000
#define ROUNDS   50
#define PATIENCE 60 /* times as much; at once over if it is we who have it */

#define NO_SPACE 1 /* nobody could tell us: no namespace's number is that low */

/* Also in a signal handler: it is there without an allocation, as we are loaded at the start. */
#define IN_PLACE __attribute__((tls_model("initial-exec")))

/* Of the process, and of the thread, when they were first asked for. */
static _Atomic uint32_t our_space;
static IN_PLACE _Thread_local uint32_t our_thread;
/* Calls of this thread that have a lock or are about to; more than one: by signal handlers. */
static IN_PLACE _Thread_local volatile uint32_t nb_calls;

enum fate {
	DEAD,
	ALIVE,
	UNKNOWN,
};

static uint32_t
thread(void)
{
	if (our_thread == 0)
		our_thread = (uint32_t)syscall(SYS_gettid) & OWNER;
	return our_thread;
}

static uint32_t
space(void)
{
	uint32_t is = atomic_load_explicit(&our_space, memory_order_relaxed);
	struct stat st;

	if (is == 0) {
		is = stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : NO_SPACE;
		atomic_store_explicit(&our_space, is, memory_order_relaxed);
	}
	return is;
}

uint32_t
sock_lock_thread(void)
{
	return thread();
}

void
sock_lock_attach(void)
{
	thread();
	space();
}

void
sock_lock_detach(void)
{
	our_thread = 0;
	atomic_store(&our_space, 0);
}

static enum fate
fate_of(const struct san_sock_lock *l, uint32_t word)
{
	struct pollfd end = {.events = POLLIN};
	uint32_t owner = word & OWNER;
	bool is_over;

	if (space() == NO_SPACE || atomic_load(&l->space) != space())
		return UNKNOWN;
	if (syscall(SYS_tkill, owner, 0) != 0 && errno == ESRCH)
		return DEAD;
	/* one that nobody has waited for yet */
	end.fd = (int)syscall(SYS_pidfd_open, owner, 0);
	if (end.fd < 0)
		return ALIVE;
	is_over = REAL(poll)(&end, 1, 0) == 1;
	REAL(close)
	(end.fd);
	return is_over ? DEAD : ALIVE;
}

/* Sleep for a round, unless it is given back. True: the round is over. */
static bool
wait_for(struct san_sock_lock *l, uint32_t word)
{
	static const struct timespec round = {.tv_nsec = ROUND_NS};

	if ((word & WAITED) == 0 && !atomic_compare_exchange_strong(&l->word, &word, word | WAITED))
		return false;
	return syscall(SYS_futex, &l->word, FUTEX_WAIT, word | WAITED, &round, NULL, 0) != 0 &&
		errno != EAGAIN && errno != EINTR;
}

/* From *word*, whoever has it by that. */
static bool
have(struct san_sock_lock *l, uint32_t word, bool waited, uint32_t *key)
{
	*key = ((word + TURN) & TURNS) | thread();
	/* others may wait as we did */
	if (!atomic_compare_exchange_strong(&l->word, &word,
					    *key | (word & WAITED) | (waited ? WAITED : 0)))
		return false;
	atomic_store_explicit(&l->space, space(), memory_order_relaxed);
	return true;
}

static int
lock(struct san_sock_lock *l, bool takes, uint32_t *key)
{
	uint32_t word, rounds = 0;
	bool waited = false;
	enum fate fate;

	for (;;) {
		word = atomic_load_explicit(&l->word, memory_order_relaxed);
		if ((word & OWNER) == 0) {
			if (have(l, word, waited, key))
				return 0;
			continue;
		}
		if (nb_calls > 1 && (word & OWNER) == thread())
			return -EDEADLK;
		waited = true;
		if (!wait_for(l, word))
			continue;
		rounds++;
		word |= WAITED;
		fate = fate_of(l, word);
		if (fate == ALIVE && rounds >= ROUNDS && !takes)
			return -EDEADLK;
		if ((fate == DEAD || rounds >= ROUNDS) && have(l, word, true, key))
			return SOCK_LOCK_TAKEN;
	}
}

int
sock_lock(struct san_sock_lock *l, bool takes, uint32_t *key)
{
	int rc, was = errno;

	nb_calls++;
	rc = lock(l, takes, key);
	if (rc < 0)
		nb_calls--;
	errno = was;
	return rc;
}

bool
sock_lock_wait(struct san_sock_lock *l, uint32_t *key)
{
	int i;

	/* who has it may be kept from going on, on a busy machine */
	for (i = 0; i < PATIENCE; i++)
		if (sock_lock(l, false, key) >= 0)
			return true;
	return false;
}

void
sock_unlock(struct san_sock_lock *l, uint32_t key)
{
	uint32_t word = key;
	int was = errno;

	/* unless it was taken from us */
	while ((word & ~WAITED) == key &&
	       !atomic_compare_exchange_weak(&l->word, &word, word & TURNS))
		;
	if ((word & ~WAITED) == key && (word & WAITED) != 0)
		syscall(SYS_futex, &l->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	nb_calls--;
	errno = was;
}
