/* SPDX-License-Identifier: BSD-3-Clause */

/* Children, by whatever function the program makes them. (UDP-1) */

#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sock_attach.h"
#include "sock_epoll.h"
#include "sock_lock.h"
#include "sock_priv.h"
#include "sock_real.h"
#include "sock_switch.h"

static void
begin_fork(void)
{
	san_sock_owner_change_hold();
	san_sock_eset_share();
}

static void
begin_child(void)
{
	san_sock_owner_change_begin_child();
	san_sock_fd_begin();
	san_sock_lock_detach();
	san_sock_room_begin_child();
	san_sock_eset_begin_child();
	san_sock_fd_recount(san_sock_eset_hold);
	san_sock_attach_end();
}

void
san_sock_fork_begin(void)
{
	pthread_atfork(begin_fork, san_sock_owner_change_release, begin_child);
}

/* The process has been copied: *pid* is what the call has returned. */
static void
end_fork(long pid)
{
	if (pid == 0)
		begin_child();
	else
		san_sock_owner_change_release();
}

bool
san_sock_fork_copies(long number, const long a[6])
{
	const struct clone_args *args = (const void *)a[0];

#ifdef SYS_fork
	if (number == SYS_fork)
		return true;
#endif
	if (number == SYS_clone)
		return ((unsigned long)a[0] & CLONE_VM) == 0;
	return number == SYS_clone3 && !san_sock_touch_is_bad(args, CLONE_ARGS_SIZE_VER0) &&
		(args->flags & CLONE_VM) == 0;
}

long
san_sock_fork_by_number(long number, const long a[6])
{
	long pid;

	begin_fork();
	pid = REAL(syscall, number, a[0], a[1], a[2], a[3], a[4], a[5]);
	end_fork(pid);
	return pid;
}

EXPORT pid_t
_Fork(void)
{
	pid_t pid;

	begin_fork();
	pid = REAL(_Fork);
	end_fork(pid);
	return pid;
}

struct child {
	int (*main)(void *);
	void *arg;
};

static int
run_child(void *arg)
{
	struct child c = *(struct child *)arg;

	begin_child();
	return c.main(c.arg);
}

EXPORT int
clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	struct child c = {fn, arg};
	bool copies = (flags & CLONE_VM) == 0;
	void *more[3];
	va_list ap;
	int i, pid;

	va_start(ap, arg);
	for (i = 0; i < 3; i++)
		more[i] = va_arg(ap, void *);
	va_end(ap);
	if (!copies)
		return REAL(clone, fn, stack, flags, arg, more[0], more[1], more[2]);
	begin_fork();
	pid = REAL(clone, run_child, stack, flags, &c, more[0], more[1], more[2]);
	san_sock_owner_change_release();
	return pid;
}
