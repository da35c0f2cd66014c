/* SPDX-License-Identifier: BSD-3-Clause */

/* syscall(3): a number does what the intercepted function of that name does. (UDP-1, UDP-11) */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sock_priv.h"
#include "sock_real.h"
#include "sock_switch.h"

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
	long a[6];
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	/* requests by a ring would not be seen; libuv then falls back to ordinary calls */
	if (number == SYS_io_uring_setup && !san_sock_conf_is_idle())
		return san_sock_real_fail(ENOSYS);
	if (san_sock_fork_copies(number, a))
		return san_sock_fork_by_number(number, a);
	if (san_sock_switch_confines(number, a))
		return san_sock_switch_confine(number, a);
	return number_of_call(number, a);
}
