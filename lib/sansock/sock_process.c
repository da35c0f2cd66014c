/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The process begins, makes children by whatever function, confines itself, and makes calls by
 * their numbers: syscall(3) does what the intercepted function of that name does. (UDP-1, UDP-11)
 */

#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "sock_priv.h"

/* ---- children ---- */

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

/* The process has been copied: *pid* is what the call has returned. */
static void
end_fork(long pid)
{
	if (pid == 0)
		begin_child();
	else
		san_sock_owner_change_release();
}

/* True if this call of syscall() makes a child with a memory of its own. */
static bool
call_copies(long number, const long a[6])
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

/* ---- a filter of system calls ---- */

/*
 * The process is about to confine itself. Prepare what needs system calls that it may forbid: the
 * doorbells, and sets that the kernel watches. Sockets that are not carried stay the kernel's.
 */
static void
close_box(void)
{
	int fd;

	for (fd = 0; fd < SOCK_FDS; fd++) {
		HELD struct fd_sock *f = san_sock_fd_get(fd);

		san_sock_eset_expose(fd);
		if (f != NULL && atomic_load(&f->carried)) {
			san_sock_attach();
		} else if (f != NULL) {
			san_sock_carry_stay(f, "the program confines itself");
			atomic_store(&f->is_kernels, true);
		}
	}
	san_sock_lock_attach();
	(void)REAL_FN(poll);
	(void)REAL_FN(read);
	(void)REAL_FN(write);
}

/* True if this call of syscall() confines the process: see sock_real.c. */
static bool
call_confines(long number, const long a[6])
{
	/* without a filter seccomp() only asks what the kernel knows */
	bool does = number == SYS_prctl ? a[0] == PR_SET_SECCOMP :
					  number == SYS_seccomp &&
			(a[0] == SECCOMP_SET_MODE_STRICT ||
			 (a[0] == SECCOMP_SET_MODE_FILTER && a[2] != 0));

	return does && san_sock_fd_is_us();
}

static long
confine(long number, const long a[6])
{
	bool was = san_sock_box_is_closed();
	long rc;

	if (!was && !san_sock_conf_is_idle())
		close_box();
	atomic_store(&sock_box_is_closed, true);
	rc = REAL(syscall, number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (rc < 0 && !was)
		atomic_store(&sock_box_is_closed, false);
	return rc;
}

/* ---- calls by number ---- */

#define INT(i)  ((int)a[i])
#define UINT(i) ((unsigned int)a[i])
#define PTR(i)  ((void *)a[i])
#define SIZE(i) ((size_t)a[i])
#define LEN(i)  ((socklen_t)a[i])
/* A number and what it calls. */
#define CALL(name, ...)  \
	case SYS_##name: \
		return (long)name(__VA_ARGS__)

/* A call with a time, which the C library reads; the kernel returns the error of a bad one. */
#define TIMED(name, i, type, ...)                                                  \
	case SYS_##name:                                                           \
		if (PTR(i) != NULL && san_sock_touch_is_bad(PTR(i), sizeof(type))) \
			break;                                                     \
		return (long)name(__VA_ARGS__)

/* The kernel's pselect6() takes a mask and its size by one pointer. */
struct mask {
	const sigset_t *set;
	size_t bytes;
};

static long
number_of_call(long number, const long a[6])
{
	const struct mask *mask;

	switch (number) {
		CALL(socket, INT(0), INT(1), INT(2));
		CALL(socketpair, INT(0), INT(1), INT(2), PTR(3));
		CALL(bind, INT(0), PTR(1), LEN(2));
		CALL(connect, INT(0), PTR(1), LEN(2));
		CALL(listen, INT(0), INT(1));
		CALL(accept, INT(0), PTR(1), PTR(2));
		CALL(accept4, INT(0), PTR(1), PTR(2), INT(3));
		CALL(getsockname, INT(0), PTR(1), PTR(2));
		CALL(getpeername, INT(0), PTR(1), PTR(2));
		CALL(getsockopt, INT(0), INT(1), INT(2), PTR(3), PTR(4));
		CALL(setsockopt, INT(0), INT(1), INT(2), PTR(3), LEN(4));
		CALL(shutdown, INT(0), INT(1));
		CALL(close, INT(0));
		CALL(close_range, UINT(0), UINT(1), INT(2));
		CALL(dup, INT(0));
		CALL(dup3, INT(0), INT(1), INT(2));
		CALL(fcntl, INT(0), INT(1), PTR(2));
		CALL(ioctl, INT(0), (unsigned long)a[1], PTR(2));
		CALL(munmap, PTR(0), SIZE(1));
		CALL(mremap, PTR(0), SIZE(1), SIZE(2), INT(3), PTR(4));
		CALL(mprotect, PTR(0), SIZE(1), INT(2));
		CALL(read, INT(0), PTR(1), SIZE(2));
		CALL(readv, INT(0), PTR(1), INT(2));
		CALL(preadv2, INT(0), PTR(1), INT(2), a[3], INT(5));
		CALL(recvfrom, INT(0), PTR(1), SIZE(2), INT(3), PTR(4), PTR(5));
		CALL(recvmsg, INT(0), PTR(1), INT(2));
		CALL(recvmmsg, INT(0), PTR(1), UINT(2), INT(3), PTR(4));
		CALL(write, INT(0), PTR(1), SIZE(2));
		CALL(writev, INT(0), PTR(1), INT(2));
		CALL(pwritev2, INT(0), PTR(1), INT(2), a[3], INT(5));
		CALL(sendto, INT(0), PTR(1), SIZE(2), INT(3), PTR(4), LEN(5));
		CALL(sendmsg, INT(0), PTR(1), INT(2));
		CALL(sendmmsg, INT(0), PTR(1), UINT(2), INT(3));
		CALL(sendfile, INT(0), INT(1), PTR(2), SIZE(3));
		CALL(splice, INT(0), PTR(1), INT(2), PTR(3), SIZE(4), UINT(5));
#ifdef SYS_poll /* older numbers, which newer architectures do not have */
		CALL(dup2, INT(0), INT(1));
		CALL(poll, PTR(0), (nfds_t)a[1], INT(2));
		TIMED(select, 4, struct timeval, INT(0), PTR(1), PTR(2), PTR(3), PTR(4));
		CALL(epoll_create, INT(0));
		CALL(epoll_wait, INT(0), PTR(1), INT(2), INT(3));
#endif
		TIMED(ppoll, 2, struct timespec, PTR(0), (nfds_t)a[1], PTR(2), PTR(3));
		CALL(epoll_create1, INT(0));
		CALL(epoll_ctl, INT(0), INT(1), INT(2), PTR(3));
		CALL(epoll_pwait, INT(0), PTR(1), INT(2), INT(3), PTR(4));
		CALL(epoll_pwait2, INT(0), PTR(1), INT(2), PTR(3), PTR(4));
	case SYS_pselect6:
		mask = PTR(5);
		if ((mask == NULL || !san_sock_touch_is_bad(mask, sizeof(*mask))) &&
		    (PTR(4) == NULL || !san_sock_touch_is_bad(PTR(4), sizeof(struct timespec))))
			return pselect(INT(0), PTR(1), PTR(2), PTR(3), PTR(4),
				       mask != NULL ? mask->set : NULL);
		break;
	default:
		break;
	}
	return REAL(syscall, number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

EXPORT long
syscall(long number, ...)
{
	long a[6], pid;
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	/* requests by a ring would not be seen; libuv then falls back to ordinary calls */
	if (number == SYS_io_uring_setup && !san_sock_conf_is_idle())
		return san_sock_real_fail(ENOSYS);
	if (call_copies(number, a)) {
		begin_fork();
		pid = REAL(syscall, number, a[0], a[1], a[2], a[3], a[4], a[5]);
		end_fork(pid);
		return pid;
	}
	if (call_confines(number, a))
		return confine(number, a);
	return number_of_call(number, a);
}

EXPORT int
prctl(int option, ...)
{
	long a[6] = {option};
	va_list ap;
	int i;

	va_start(ap, option);
	for (i = 1; i < 5; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return (int)syscall(SYS_prctl, a[0], a[1], a[2], a[3], a[4]);
}

/* ---- the start ---- */

static __attribute__((constructor)) void
process_begin(void)
{
	/*
	 * Look these functions up now. Allocators call them under their own locks, which must be
	 * taken before the loader's lock.
	 */
	(void)REAL_FN(munmap);
	(void)REAL_FN(mprotect);
	(void)REAL_FN(mremap);
	(void)REAL_FN(syscall);
	san_sock_fd_begin();
	pthread_atfork(begin_fork, san_sock_owner_change_release, begin_child);
	if (san_sock_conf_is_idle())
		return;
	san_sock_carry_adopt_all();
	san_sock_stdio_begin();
}
