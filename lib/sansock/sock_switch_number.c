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

#include "sock_conf.h"
#include "sock_real.h"
#include "sock_switch.h"

#define INT(i)  ((int)a[i])
#define PTR(i)  ((void *)a[i])
#define SIZE(i) ((size_t)a[i])
#define LEN(i)  ((socklen_t)a[i])
#define OTHERS  (-2) /* the number belongs to another group */

/* The kernel's pselect6() takes a mask and its size by one pointer. */
struct mask {
	const sigset_t *set;
	size_t bytes;
};

static long
number_by_kernel(long number, const long a[6])
{
	return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long
number_of_name_call(long number, const long a[6])
{
	switch (number) {
	case SYS_socket:
		return socket(INT(0), INT(1), INT(2));
	case SYS_socketpair:
		return socketpair(INT(0), INT(1), INT(2), PTR(3));
	case SYS_bind:
		return bind(INT(0), PTR(1), LEN(2));
	case SYS_connect:
		return connect(INT(0), PTR(1), LEN(2));
	case SYS_listen:
		return listen(INT(0), INT(1));
	case SYS_accept:
		return accept(INT(0), PTR(1), PTR(2));
	case SYS_accept4:
		return accept4(INT(0), PTR(1), PTR(2), INT(3));
	case SYS_getsockname:
		return getsockname(INT(0), PTR(1), PTR(2));
	case SYS_getpeername:
		return getpeername(INT(0), PTR(1), PTR(2));
	case SYS_getsockopt:
		return getsockopt(INT(0), INT(1), INT(2), PTR(3), PTR(4));
	case SYS_setsockopt:
		return setsockopt(INT(0), INT(1), INT(2), PTR(3), LEN(4));
	case SYS_shutdown:
		return shutdown(INT(0), INT(1));
	default:
		return OTHERS;
	}
}

static long
number_of_fd_call(long number, const long a[6])
{
	switch (number) {
	case SYS_close:
		return close(INT(0));
	case SYS_close_range:
		return close_range((unsigned int)a[0], (unsigned int)a[1], INT(2));
	case SYS_dup:
		return dup(INT(0));
#ifdef SYS_dup2
	case SYS_dup2:
		return dup2(INT(0), INT(1));
#endif
	case SYS_dup3:
		return dup3(INT(0), INT(1), INT(2));
	case SYS_fcntl:
		return fcntl(INT(0), INT(1), PTR(2));
	case SYS_ioctl:
		return ioctl(INT(0), (unsigned long)a[1], PTR(2));
	case SYS_munmap:
		return munmap(PTR(0), SIZE(1));
	case SYS_mremap:
		return (long)mremap(PTR(0), SIZE(1), SIZE(2), INT(3), PTR(4));
	case SYS_mprotect:
		return mprotect(PTR(0), SIZE(1), INT(2));
	default:
		return OTHERS;
	}
}

static long
number_of_io_call(long number, const long a[6])
{
	switch (number) {
	case SYS_read:
		return read(INT(0), PTR(1), SIZE(2));
	case SYS_readv:
		return readv(INT(0), PTR(1), INT(2));
	case SYS_preadv2:
		return preadv2(INT(0), PTR(1), INT(2), a[3], INT(5));
	case SYS_recvfrom:
		return recvfrom(INT(0), PTR(1), SIZE(2), INT(3), PTR(4), PTR(5));
	case SYS_recvmsg:
		return recvmsg(INT(0), PTR(1), INT(2));
	case SYS_recvmmsg:
		return recvmmsg(INT(0), PTR(1), (unsigned int)a[2], INT(3), PTR(4));
	case SYS_write:
		return write(INT(0), PTR(1), SIZE(2));
	case SYS_writev:
		return writev(INT(0), PTR(1), INT(2));
	case SYS_pwritev2:
		return pwritev2(INT(0), PTR(1), INT(2), a[3], INT(5));
	case SYS_sendto:
		return sendto(INT(0), PTR(1), SIZE(2), INT(3), PTR(4), LEN(5));
	case SYS_sendmsg:
		return sendmsg(INT(0), PTR(1), INT(2));
	case SYS_sendmmsg:
		return sendmmsg(INT(0), PTR(1), (unsigned int)a[2], INT(3));
	case SYS_sendfile:
		return sendfile(INT(0), INT(1), PTR(2), SIZE(3));
	case SYS_splice:
		return splice(INT(0), PTR(1), INT(2), PTR(3), SIZE(4), (unsigned int)a[5]);
	default:
		return OTHERS;
	}
}

static long
number_of_wait_call(long number, const long a[6])
{
	const struct mask *mask;

	switch (number) {
#ifdef SYS_poll
	case SYS_poll:
		return poll(PTR(0), (nfds_t)a[1], INT(2));
	case SYS_select:
		return select(INT(0), PTR(1), PTR(2), PTR(3), PTR(4));
	case SYS_epoll_create:
		return epoll_create(INT(0));
	case SYS_epoll_wait:
		return epoll_wait(INT(0), PTR(1), INT(2), INT(3));
#endif
	case SYS_ppoll:
		return ppoll(PTR(0), (nfds_t)a[1], PTR(2), PTR(3));
	case SYS_pselect6:
		mask = PTR(5);
		if (mask != NULL && san_sock_touch_is_bad(mask, sizeof(*mask)))
			return number_by_kernel(number, a);
		return pselect(INT(0), PTR(1), PTR(2), PTR(3), PTR(4),
			       mask != NULL ? mask->set : NULL);
	case SYS_epoll_create1:
		return epoll_create1(INT(0));
	case SYS_epoll_ctl:
		return epoll_ctl(INT(0), INT(1), INT(2), PTR(3));
	case SYS_epoll_pwait:
		return epoll_pwait(INT(0), PTR(1), INT(2), INT(3), PTR(4));
	case SYS_epoll_pwait2:
		return epoll_pwait2(INT(0), PTR(1), INT(2), PTR(3), PTR(4));
	default:
		return OTHERS;
	}
}

EXPORT long
syscall(long number, ...)
{
	long a[6], rc;
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	/* requests by a ring would not be seen; libuv then falls back to ordinary calls */
	if (number == SYS_io_uring_setup && !san_sock_conf_is_idle()) {
		errno = ENOSYS;
		return -1;
	}
	rc = number_of_io_call(number, a);
	if (rc == OTHERS)
		rc = number_of_wait_call(number, a);
	if (rc == OTHERS)
		rc = number_of_name_call(number, a);
	if (rc == OTHERS)
		rc = number_of_fd_call(number, a);
	return rc == OTHERS ? number_by_kernel(number, a) : rc;
}
