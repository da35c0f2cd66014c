/* SPDX-License-Identifier: BSD-3-Clause */

/* Pins and changes of the owner: sock_priv.h describes both. */

#include "sock_priv.h"

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

uint32_t
san_sock_owner_change_wait(const struct fd_sock *f)
{
	uint32_t pins;

	while (((pins = atomic_load(&f->pins)) & CHANGING) != 0)
		owner_sleep_step();
	return pins;
}

/* ---- pins ---- */

bool
san_sock_owner_pin(struct fd_sock *f)
{
	uint32_t pins;

	while (!atomic_load_explicit(&f->carried, memory_order_acquire)) {
		pins = san_sock_owner_change_wait(f);
		if (atomic_compare_exchange_weak(&f->pins, &pins, pins + 1)) {
			/* the owner may have changed between the two checks */
			if (!atomic_load(&f->carried))
				return true;
			atomic_fetch_sub(&f->pins, 1);
		}
	}
	return false;
}

void
san_sock_owner_unpin(struct fd_sock **f)
{
	if (*f == NULL)
		return;
	san_sock_owner_count_down(&(*f)->pins);
	san_sock_fd_put(*f);
	*f = NULL;
}

void
san_sock_owner_count_down(_Atomic uint32_t *count)
{
	uint32_t nb = atomic_load(count);

	while ((nb & ~CHANGING) != 0 && !atomic_compare_exchange_weak(count, &nb, nb - 1))
		;
}

struct fd_sock *
san_sock_owner_pin_at(int fd)
{
	struct fd_sock *f = san_sock_fd_get(fd);
	uint32_t pins;

	if (f == NULL)
		return NULL;
	do
		pins = san_sock_owner_change_wait(f);
	while (!atomic_compare_exchange_weak(&f->pins, &pins, pins + 1));
	return f;
}

/* ---- changes ---- */

/* Set *word* from 0 to CHANGING. False if it was not 0 during all *steps*. */
static bool
owner_take_word(_Atomic uint32_t *word, int steps)
{
	uint32_t none = 0;

	while (!atomic_compare_exchange_strong(word, &none, CHANGING)) {
		if (steps-- == 0)
			return false;
		owner_sleep_step();
		none = 0;
	}
	return true;
}

bool
san_sock_owner_change_begin(struct sock_change *change, struct fd_sock *f)
{
	uint32_t nb;

	change->f = f;
	san_sock_lock_begin_quiet(&change->quiet);
	/* other handlers of fork() run after san_sock_owner_change_hold() and may change sockets */
	do
		while (((nb = atomic_load(&changes)) & CHANGING) != 0 &&
		       atomic_load(&forker) != san_sock_lock_thread())
			owner_sleep_step();
	while (!atomic_compare_exchange_weak(&changes, &nb, nb + 1));
	if (owner_take_word(&f->pins, PIN_STEPS))
		return true;
	atomic_fetch_sub(&changes, 1);
	san_sock_lock_end_quiet(&change->quiet);
	return false;
}

void
san_sock_owner_chosen(struct fd_sock *f)
{
	atomic_store(&f->is_chosen, true);
	san_sock_own_close(atomic_exchange(&f->gate[1], -1));
}

void
san_sock_owner_await_choice(const struct fd_sock *f)
{
	int i;

	for (i = 0; i < PIN_STEPS && !atomic_load(&f->is_chosen); i++)
		owner_sleep_step();
}

void
san_sock_owner_change_end(struct sock_change *change)
{
	atomic_fetch_and(&change->f->pins, ~CHANGING);
	atomic_fetch_sub(&changes, 1);
	san_sock_lock_end_quiet(&change->quiet);
}

/* Waits for one second at most. A longer change waits for a daemon that does not answer. */
void
san_sock_owner_change_hold(void)
{
	if (!owner_take_word(&changes, ALL_STEPS))
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
