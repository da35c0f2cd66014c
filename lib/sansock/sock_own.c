/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "sock_priv.h"

#define HIGH_FD 700 /* programs expect low numbers */

/* For each descriptor of the library, where its number is kept. Unused pages take no memory. */
static _Atomic(_Atomic int *) holders[SOCK_FDS];
static _Atomic int highest = -1;

static void
sock_own_set_bit(int fd, _Atomic int *holder)
{
	int high = atomic_load(&highest);

	if ((unsigned int)fd >= SOCK_FDS)
		return;
	atomic_store(&holders[fd], holder);
	while (holder != NULL && fd > high && !atomic_compare_exchange_weak(&highest, &high, fd))
		;
}

/* By syscall(): close() is a cancellation point. */
static void
sock_own_hang_up(int fd)
{
	REAL(syscall, SYS_close, fd);
}

int
san_sock_own(int fd, _Atomic int *holder)
{
	int high = fd < 0 ? -1 : REAL(fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high >= 0) {
		sock_own_hang_up(fd);
		fd = high;
	}
	sock_own_set_bit(fd, holder);
	return fd;
}

int
san_sock_own_dup(int fd, _Atomic int *holder)
{
	int high = REAL(fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
	struct rlimit limit;

	/* keep an eighth of the numbers for the program */
	if (high >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    (rlim_t)high >= limit.rlim_cur - limit.rlim_cur / 8) {
		sock_own_hang_up(high);
		high = -1;
	}
	sock_own_set_bit(high, holder);
	return high;
}

void
san_sock_own_close(int fd)
{
	if (fd < 0)
		return;
	sock_own_set_bit(fd, NULL);
	sock_own_hang_up(fd);
}

bool
san_sock_own_is(int fd)
{
	return fd >= 0 && fd <= atomic_load_explicit(&highest, memory_order_relaxed) &&
		atomic_load(&holders[fd]) != NULL;
}

void
san_sock_own_lost(int fd)
{
	_Atomic int *holder;

	if (!san_sock_own_is(fd))
		return;
	holder = atomic_exchange(&holders[fd], NULL);
	if (holder != NULL)
		atomic_compare_exchange_strong(holder, &fd, -1);
}

void
san_sock_own_vacate(int fd)
{
	_Atomic int *holder = san_sock_own_is(fd) ? atomic_load(&holders[fd]) : NULL;
	int was = fd, to, err = errno;

	if (holder == NULL)
		return;
	to = REAL(fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
	sock_own_set_bit(fd, NULL);
	sock_own_set_bit(to, holder);
	/* without a free number the descriptor is lost, and the holder has -1 */
	if (!atomic_compare_exchange_strong(holder, &was, to))
		san_sock_own_close(to);
	errno = err;
}

int
san_sock_own_close_others(unsigned int first, unsigned int last, int flags)
{
	unsigned int fd, at = first;
	int rc = 0;

	for (fd = first; fd <= last && (int)fd <= atomic_load(&highest) && rc == 0; fd++) {
		if (!san_sock_own_is((int)fd))
			continue;
		if (fd > at)
			rc = REAL(close_range, at, fd - 1, flags);
		at = fd + 1;
	}
	/* also an invalid range: the kernel returns the error */
	return rc != 0 || (at > last && at != first) ? rc : REAL(close_range, at, last, flags);
}
