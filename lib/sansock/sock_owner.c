/* SPDX-License-Identifier: BSD-3-Clause */

/* Pins, changes of the owner, and gates: sock_owner.h describes all three. */

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "sock_carry.h"
#include "sock_lock.h"
#include "sock_opt.h"
#include "sock_owner.h"
#include "sock_priv.h"
#include "sock_real.h"

#define CHANGING  (1u << 31) /* bit of *pins* and *changes*: a change is in progress */
#define STEP_NS   100000
#define PIN_STEPS 200   /* 20 ms: by then, calls that do not wait have ended */
#define ALL_STEPS 10000 /* 1 s */

/* Number of changes in progress, or CHANGING during fork(): then only *forker* may begin one. */
static _Atomic uint32_t changes;
static _Atomic uint32_t forker;

static void
owner_sleep_step(void)
{
	static const struct timespec ts = {.tv_nsec = STEP_NS};

	REAL(syscall, SYS_nanosleep, &ts, NULL); /* no cancellation point */
}

/* ---- pins ---- */

bool
san_sock_owner_pin(struct fd_sock *f)
{
	uint32_t pins = atomic_load_explicit(&f->pins, memory_order_relaxed);

	while (!atomic_load_explicit(&f->carried, memory_order_acquire)) {
		if ((pins & CHANGING) != 0) {
			owner_sleep_step();
			pins = atomic_load_explicit(&f->pins, memory_order_relaxed);
		} else if (atomic_compare_exchange_weak(&f->pins, &pins, pins + 1)) {
			/* the owner may have changed between the two checks */
			if (!atomic_load(&f->carried))
				return true;
			atomic_fetch_sub(&f->pins, 1);
		}
	}
	return false;
}

void
san_sock_owner_unpin(struct fd_sock *f)
{
	if (f == NULL)
		return;
	san_sock_owner_count_down(&f->pins);
	san_sock_fd_put(f);
}

void
san_sock_owner_count_down(_Atomic uint32_t *count)
{
	uint32_t nb = atomic_load(count);

	while ((nb & ~CHANGING) != 0 && !atomic_compare_exchange_weak(count, &nb, nb - 1))
		;
}

void
san_sock_owner_change_wait(const struct fd_sock *f)
{
	while ((atomic_load(&f->pins) & CHANGING) != 0)
		owner_sleep_step();
}

void
san_sock_owner_pin_any(struct fd_sock *f)
{
	uint32_t pins = atomic_load(&f->pins);

	do {
		while ((pins & CHANGING) != 0) {
			owner_sleep_step();
			pins = atomic_load(&f->pins);
		}
	} while (!atomic_compare_exchange_weak(&f->pins, &pins, pins + 1));
}

/* ---- changes ---- */

/* Set *word* from 0 to *to*. False if it was not 0 during all *steps*. */
static bool
owner_take_word(_Atomic uint32_t *word, uint32_t to, int steps)
{
	uint32_t none = 0;

	while (!atomic_compare_exchange_strong(word, &none, to)) {
		if (steps-- == 0)
			return false;
		owner_sleep_step();
		none = 0;
	}
	return true;
}

static void
begin_one(void)
{
	uint32_t nb = atomic_load(&changes);

	do {
		/*
		 * other handlers of fork() run after san_sock_owner_change_hold() and may change
		 * sockets
		 */
		while ((nb & CHANGING) != 0 && atomic_load(&forker) != san_sock_lock_thread()) {
			owner_sleep_step();
			nb = atomic_load(&changes);
		}
	} while (!atomic_compare_exchange_weak(&changes, &nb, nb + 1));
}

static void
change_resume(const struct sock_change *change)
{
	pthread_sigmask(SIG_SETMASK, &change->signals, NULL);
	pthread_setcancelstate(change->cancel, NULL);
}

bool
san_sock_owner_change_begin(struct sock_change *change, struct fd_sock *f)
{
	sigset_t all;

	change->f = f;
	/* a signal handler that calls the library would wait for the thread that it interrupts */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &change->cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &change->signals);
	begin_one();
	if (owner_take_word(&f->pins, CHANGING, PIN_STEPS))
		return true;
	atomic_fetch_sub(&changes, 1);
	change_resume(change);
	return false;
}

/* Wake the threads that wait at the gate. */
static void
open_gate(struct fd_sock *f)
{
	san_sock_own_close(atomic_exchange(&f->gate[1], -1));
}

void
san_sock_owner_chosen(struct fd_sock *f)
{
	atomic_store(&f->is_chosen, true);
	open_gate(f);
}

void
san_sock_owner_change_end(struct sock_change *change)
{
	atomic_fetch_and(&change->f->pins, ~CHANGING);
	atomic_fetch_sub(&changes, 1);
	change_resume(change);
}

/* Waits for one second at most. A longer change waits for a daemon that does not answer. */
void
san_sock_owner_change_hold(void)
{
	if (!owner_take_word(&changes, CHANGING, ALL_STEPS))
		atomic_fetch_or(&changes, CHANGING);
	atomic_store(&forker, san_sock_lock_thread());
}

void
san_sock_owner_change_release(void)
{
	atomic_store(&forker, 0);
	atomic_fetch_and(&changes, ~CHANGING);
}

void
san_sock_owner_change_begin_child(void)
{
	atomic_store(&forker, 0);
	atomic_store(&changes, 0);
}

/* ---- the gate ---- */

static int
make_gate(int fd, struct fd_sock *f)
{
	int ends[2], none = -1;

	if (atomic_load(&f->gate[0]) >= 0) {
		san_sock_opt_times(fd, atomic_load(&f->gate[0]));
		return 0;
	}
	if (REAL(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	san_sock_opt_times(fd, ends[0]);
	ends[0] = san_sock_own(ends[0], &f->gate[0]);
	ends[1] = san_sock_own(ends[1], &f->gate[1]);
	if (!atomic_compare_exchange_strong(&f->gate[0], &none, ends[0])) {
		san_sock_own_close(ends[0]);
		san_sock_own_close(ends[1]);
		return 0;
	}
	atomic_store(&f->gate[1], ends[1]);
	if (atomic_load(&f->is_chosen)) /* meanwhile: by a thread that saw no gate */
		open_gate(f);
	return 0;
}

static void
owner_put_file(void *f)
{
	san_sock_fd_put(f);
}

int
san_sock_owner_gate_wait(int fd, struct fd_sock *f)
{
	struct sockaddr_storage ss;
	ssize_t n;
	char byte;
	int i, err;

	if ((REAL(fcntl, fd, F_GETFL) & O_NONBLOCK) != 0)
		return -1;
	if (san_sock_carry_bound_to(fd, &ss) != NULL) {
		/* a thread is about to choose the owner, or another process has bound it */
		san_sock_owner_count_down(&f->pins);
		for (i = 0; i < PIN_STEPS && !atomic_load(&f->is_chosen); i++)
			owner_sleep_step();
		if (!atomic_load(&f->is_chosen))
			san_sock_carry(fd, f, NULL);
		san_sock_fd_put(f);
		return 0;
	}
	if (make_gate(fd, f) != 0)
		return -1;
	san_sock_owner_count_down(&f->pins);
	/* the kernel handles SO_RCVTIMEO, signals and cancellation */
	pthread_cleanup_push(owner_put_file, f);
	n = REAL(recv, atomic_load(&f->gate[0]), &byte, 1, 0);
	err = n < 0 ? errno : 0;
	pthread_cleanup_pop(1);
	return err;
}
