/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The C library's robust mutexes serve the same purpose, but they contain pointers that it follows:
 * a program that passes a socket to a more privileged one could make that write anywhere. This lock
 * is one word. It has the number of the owning thread, and how often the lock was taken (modulo
 * 2^9). The count keeps a thread from releasing a lock that was taken from it.
 *
 * The death of an owner can be detected if it is in our PID namespace. For other owners, and for
 * those that keep the lock, ROUNDS limits the wait. It counts rounds and not time: after the
 * machine was suspended, the owner still gets time to release the lock.
 */

#include <linux/futex.h>
#include <sys/stat.h>

#include "sock_priv.h"

#define OWNER     0x003fffffu /* thread ID; they are below 2^22 */
#define TURN      0x00400000u
#define TURNS     0x7fc00000u
#define WAITED    0x80000000u /* a thread waits: to release the lock wakes one */
#define ROUND_NS  20000000
#define ROUNDS    50
#define WAITS_MAX 60 /* times ROUNDS that san_sock_lock_wait() waits */

#define NO_SPACE 1 /* the namespace is not known; real numbers are higher */

/* Usable in signal handlers: it needs no allocation, because the library is loaded at the start. */
#define IN_PLACE __attribute__((tls_model("initial-exec")))

/* Of the process and of the thread, found on first use. */
static _Atomic uint32_t our_space;
static IN_PLACE _Thread_local uint32_t our_thread;
/* Calls of this thread that hold or want a lock; above 1 only by signal handlers. */
static IN_PLACE _Thread_local volatile uint32_t nb_calls;

enum fate {
	DEAD,
	ALIVE,
	UNKNOWN,
};

uint32_t
san_sock_lock_thread(void)
{
	pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

	if (our_thread == 0 && san_sock_box_is_closed()) {
		/* the C library knows the number without a system call */
		pthread_mutex_lock(&m);
		our_thread = (uint32_t)m.__data.__owner & OWNER;
	} else if (our_thread == 0) {
		our_thread = (uint32_t)REAL(syscall, SYS_gettid) & OWNER;
	}
	return our_thread;
}

static uint32_t
sock_lock_pid_space(void)
{
	uint32_t is = atomic_load_explicit(&our_space, memory_order_relaxed);
	struct stat st;

	if (is == 0) {
		is = !san_sock_box_is_closed() && stat("/proc/self/ns/pid", &st) == 0 ?
			(uint32_t)st.st_ino :
			NO_SPACE;
		atomic_store_explicit(&our_space, is, memory_order_relaxed);
	}
	return is;
}

void
san_sock_lock_attach(void)
{
	san_sock_lock_thread();
	sock_lock_pid_space();
}

void
san_sock_lock_detach(void)
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

	if (san_sock_box_is_closed() || sock_lock_pid_space() == NO_SPACE ||
	    atomic_load(&l->space) != sock_lock_pid_space())
		return UNKNOWN;
	if (REAL(syscall, SYS_tkill, owner, 0) != 0 && errno == ESRCH)
		return DEAD;
	/* it may be a zombie, which still has a number */
	end.fd = (int)REAL(syscall, SYS_pidfd_open, owner, 0);
	if (end.fd < 0)
		return ALIVE;
	is_over = REAL(poll, &end, 1, 0) == 1;
	REAL(close, end.fd);
	return is_over ? DEAD : ALIVE;
}

/* Sleep for a round, unless the lock is released. True: the round is over. */
static bool
sock_lock_wait_for(struct san_sock_lock *l, uint32_t word)
{
	static const struct timespec round = {.tv_nsec = ROUND_NS};

	if ((word & WAITED) == 0 && !atomic_compare_exchange_strong(&l->word, &word, word | WAITED))
		return false;
	return REAL(syscall, SYS_futex, &l->word, FUTEX_WAIT, word | WAITED, &round, NULL, 0) !=
		0 &&
		errno != EAGAIN && errno != EINTR;
}

/* Take the lock from state *word*, also from another owner. */
static bool
sock_lock_have(struct san_sock_lock *l, uint32_t word, bool waited, uint32_t *key)
{
	*key = ((word + TURN) & TURNS) | san_sock_lock_thread();
	/* other threads may wait, too */
	if (!atomic_compare_exchange_strong(&l->word, &word,
					    *key | (word & WAITED) | (waited ? WAITED : 0)))
		return false;
	atomic_store_explicit(&l->space, sock_lock_pid_space(), memory_order_relaxed);
	return true;
}

static int
sock_lock_take(struct san_sock_lock *l, bool takes, uint32_t *key)
{
	uint32_t word, rounds = 0;
	bool waited = false;
	enum fate fate;

	for (;;) {
		word = atomic_load_explicit(&l->word, memory_order_relaxed);
		if ((word & OWNER) == 0) {
			if (sock_lock_have(l, word, waited, key))
				return 0;
			continue;
		}
		if (nb_calls > 1 && (word & OWNER) == san_sock_lock_thread())
			return -EDEADLK;
		waited = true;
		if (!sock_lock_wait_for(l, word))
			continue;
		rounds++;
		word |= WAITED;
		fate = fate_of(l, word);
		if (fate == ALIVE && rounds >= ROUNDS && !takes)
			return -EDEADLK;
		if ((fate == DEAD || rounds >= ROUNDS) && sock_lock_have(l, word, true, key))
			return SOCK_LOCK_TAKEN;
	}
}

int
san_sock_lock(struct san_sock_lock *l, bool takes, uint32_t *key)
{
	KEEP_ERRNO;
	int rc;

	nb_calls++;
	rc = sock_lock_take(l, takes, key);
	nb_calls -= rc < 0;
	return rc;
}

bool
san_sock_lock_wait(struct san_sock_lock *l, uint32_t *key)
{
	int i;

	/* the owner may not get a CPU, on a busy machine */
	for (i = 0; i < WAITS_MAX; i++)
		if (san_sock_lock(l, false, key) >= 0)
			return true;
	return false;
}

void
san_sock_lock_unlock(struct san_sock_lock *l, uint32_t key)
{
	uint32_t word = key;
	KEEP_ERRNO;

	/* unless another thread has taken it */
	while ((word & ~WAITED) == key &&
	       !atomic_compare_exchange_weak(&l->word, &word, word & TURNS))
		;
	if ((word & ~WAITED) == key && (word & WAITED) != 0)
		REAL(syscall, SYS_futex, &l->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	nb_calls--;
}

void
san_sock_lock_begin_quiet(struct sock_quiet *was)
{
	sigset_t all;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was->cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &was->signals);
}

void
san_sock_lock_end_quiet(const struct sock_quiet *was)
{
	pthread_sigmask(SIG_SETMASK, &was->signals, NULL);
	pthread_setcancelstate(was->cancel, NULL);
}
