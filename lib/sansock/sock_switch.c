/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Intercepted functions (UDP-1). Each checks whether its descriptor is a carried socket. If not, it
 * calls the C library's function with the same arguments.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sock_attach.h"
#include "sock_carry.h"
#include "sock_epoll.h"
#include "sock_lock.h"
#include "sock_opt.h"
#include "sock_priv.h"
#include "sock_real.h"
#include "sock_switch.h"
#include "sock_tcp.h"

/* ---- create, name, close ---- */

EXPORT int
socket(int domain, int type, int protocol)
{
	int fd = REAL(socket, domain, type, protocol);

	if (fd < 0)
		return fd;
	san_sock_fd_forget(fd);
	if (san_sock_conf_is_idle() || san_sock_box_is_closed())
		return fd;
	if ((domain == AF_INET || domain == AF_INET6) &&
	    (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_DGRAM &&
	    (protocol == 0 || protocol == IPPROTO_UDP))
		san_sock_fd_track(fd, domain, true);
	else if ((domain == AF_INET || domain == AF_INET6) &&
		 (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM)
		san_sock_fd_track(fd, domain, false);
	return fd;
}

/*
 * A socket was accepted as descriptor *new*. Forget a former socket of this number, whose close was
 * not intercepted. If the connection is a token, it becomes a stream.
 */
static int
sock_switch_name_accepted(int new, struct sockaddr *sa, socklen_t *len, socklen_t room)
{
	if (new < 0)
		return new;
	san_sock_fd_forget(new);
	if (!san_sock_conf_is_idle() && !san_sock_box_is_closed())
		san_sock_tcp_conn_accepted(new, sa, len, room);
	san_sock_stdio_at(new);
	return new;
}

/* The room for a name. Read it before the call, which overwrites it. */
static socklen_t
sock_switch_room_of(const struct sockaddr *sa, const socklen_t *len)
{
	return sa == NULL || san_sock_touch_is_bad(len, sizeof(*len)) ? 0 : *len;
}

/*
 * True if *fd* is a carried UDP socket. errno is set here, because the kernel would set another one
 * for the stand-in. A listener gets streams from now on.
 */
static bool
is_no_listener(int fd)
{
	struct fd_sock *f = san_sock_fd_get(fd);
	bool is = f != NULL && f->is_udp && atomic_load(&f->carried);

	if (f == NULL)
		return false;
	if (!f->is_udp)
		san_sock_tcp_conn_wait(fd, f);
	san_sock_fd_put(f);
	if (is)
		errno = EOPNOTSUPP;
	return is;
}

EXPORT int
accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	socklen_t room = sock_switch_room_of(sa, len);

	if (is_no_listener(fd))
		return -1;
	return sock_switch_name_accepted(REAL(accept, fd, sa, len), sa, len, room);
}

EXPORT int
accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	socklen_t room = sock_switch_room_of(sa, len);

	if (is_no_listener(fd))
		return -1;
	return sock_switch_name_accepted(REAL(accept4, fd, sa, len, flags), sa, len, room);
}

EXPORT int
listen(int fd, int backlog)
{
	struct fd_sock *f = san_sock_fd_get(fd);
	int rc;

	if (f != NULL && atomic_load(&f->carried)) {
		rc = san_sock_real_fail(f->is_udp ? EOPNOTSUPP : EINVAL);
	} else {
		rc = REAL(listen, fd, backlog);
		if (rc == 0 && f != NULL && !f->is_udp)
			san_sock_tcp_conn_listen(fd, f);
	}
	if (f != NULL)
		san_sock_fd_put(f);
	return rc;
}

EXPORT int
socketpair(int domain, int type, int protocol, int fds[2])
{
	int rc = REAL(socketpair, domain, type, protocol, fds);

	if (rc == 0) {
		san_sock_fd_forget(fds[0]);
		san_sock_fd_forget(fds[1]);
	}
	return rc;
}

EXPORT int
bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct fd_sock *f = san_sock_fd_get(fd);
	int rc;

	if (f == NULL)
		return REAL(bind, fd, sa, len);
	if (atomic_load(&f->carried)) { /* it has a name */
		rc = san_sock_real_fail(san_sock_touch_is_bad(sa, len) ? EFAULT : EINVAL);
	} else if (san_sock_carry_is_refused(fd, f, sa, NULL)) {
		rc = san_sock_real_fail(EPERM);
	} else {
		rc = san_sock_carry_bind(fd, sa, len);
		if (rc == 0)
			san_sock_carry(fd, f, NULL);
	}
	san_sock_fd_put(f);
	return rc;
}

EXPORT int
connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct fd_sock *f = san_sock_fd_get(fd);
	struct sockaddr_storage local;
	int rc;

	if (f == NULL)
		return REAL(connect, fd, sa, len);
	if (san_sock_carry_is_refused(fd, f, NULL, sa)) {
		rc = san_sock_real_fail(EPERM);
	} else if (atomic_load(&f->carried)) {
		rc = san_sock_opt_connect(fd, f, sa, len);
	} else if (!f->is_udp && (rc = san_sock_tcp_conn_connect(fd, f, sa, len)) != -EINPROGRESS) {
		rc = rc != 0 ? san_sock_real_fail(-rc) : 0;
	} else {
		rc = REAL(connect, fd, sa, len);
		/* also a connect() that fails may have bound the socket */
		if (f->is_udp && !san_sock_box_is_closed() &&
		    (rc == 0 || san_sock_carry_bound_to(fd, &local) != NULL))
			san_sock_carry(fd, f, NULL);
		else if (rc == 0)
			atomic_store(&f->stays, true);
	}
	san_sock_fd_put(f);
	san_sock_stdio_at(fd);
	return rc;
}

static int
switch_name(int fd, bool is_peer, int (*real)(int, struct sockaddr *, socklen_t *),
	    struct sockaddr *sa, socklen_t *len)
{
	struct fd_sock *pinned, *f = san_sock_switch_carried(fd, &pinned);
	int rc;

	if (f == NULL)
		return BY_KERNEL(pinned, real(fd, sa, len));
	rc = san_sock_opt_name(fd, f, is_peer, sa, len);
	san_sock_fd_put(f);
	return rc;
}

EXPORT int
getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	return switch_name(fd, false, REAL_FN(getsockname), sa, len);
}

EXPORT int
getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	return switch_name(fd, true, REAL_FN(getpeername), sa, len);
}

EXPORT int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct fd_sock *pinned, *f = san_sock_switch_carried(fd, &pinned);
	int rc;

	if (f == NULL)
		return BY_KERNEL(pinned, REAL(getsockopt, fd, level, name, value, len));
	rc = san_sock_opt_get(fd, f, level, name, value, len);
	san_sock_fd_put(f);
	return rc;
}

EXPORT int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct fd_sock *pinned, *f = san_sock_switch_carried(fd, &pinned);
	const char *text;
	bool is_kernels;
	int rc;

	if (f != NULL) {
		rc = san_sock_opt_set(fd, f, level, name, value, len);
		san_sock_fd_put(f);
		return rc;
	}
	is_kernels = pinned != NULL &&
		san_sock_opt_kind_is_kernels(fd, pinned, level, name, value, len, &text);
	rc = REAL(setsockopt, fd, level, name, value, len);
	if (rc == 0 && is_kernels)
		san_sock_carry_stay(pinned, text);
	else if (rc == 0 && pinned != NULL)
		san_sock_opt_note(pinned, level, name, value, len);
	san_sock_owner_unpin(pinned);
	return rc;
}

EXPORT int
sockatmark(int fd)
{
	int is = 0;

	/* out-of-band bytes are not carried: see MSG_OOB */
	return ioctl(fd, SIOCATMARK, &is) == 0 ? is : -1;
}

EXPORT int
shutdown(int fd, int how)
{
	struct fd_sock *pinned, *f = san_sock_switch_carried(fd, &pinned);
	int rc;

	if (f != NULL) {
		rc = san_sock_opt_shutdown(fd, f, how);
		san_sock_fd_put(f);
		return rc;
	}
	rc = REAL(shutdown, fd, how);
	/* the kernel shuts the socket down even if it returns ENOTCONN */
	if (pinned != NULL && pinned->is_udp && (rc == 0 || errno == ENOTCONN))
		san_sock_owner_chosen(pinned);
	san_sock_owner_unpin(pinned);
	return rc;
}

/*
 * Pin the file at *fd*, whose descriptors are about to change, until san_sock_owner_unpin(). NULL:
 * it is not a socket that the library follows.
 */
static struct fd_sock *
pin_at(int fd)
{
	struct fd_sock *f = san_sock_fd_get(fd);

	if (f != NULL)
		san_sock_owner_pin_any(f);
	return f;
}

EXPORT int
close(int fd)
{
	struct fd_sock *f;
	int rc;

	if (san_sock_own_is(fd))
		return san_sock_real_fail(EBADF);
	f = pin_at(fd);
	if (f != NULL)
		san_sock_fd_hold(f);
	san_sock_fd_forget(fd);
	rc = BY_KERNEL(f, REAL(close, fd));
	if (f != NULL && rc == 0 && !f->is_udp) {
		san_sock_tcp_conn_closed(f);
		if (atomic_load(&f->carried))
			san_sock_tcp_linger(f);
	}
	if (f != NULL)
		san_sock_fd_put(f);
	return rc;
}

EXPORT int
close_range(unsigned int first, unsigned int last, int flags)
{
	if ((flags & (int)CLOSE_RANGE_CLOEXEC) != 0)
		return REAL(close_range, first, last, flags);
	san_sock_fd_forget_range(first, last);
	return san_sock_own_close_others(first, last, flags);
}

EXPORT void
closefrom(int first)
{
	/* the C library's function also works on a kernel without close_range(2) */
	if (close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX, 0) != 0)
		REAL(closefrom, first);
}

/* *to* is about to become a duplicate of *from*, if that is open. */
static void
sock_switch_make_way(int from, int to)
{
	int was = errno;

	san_sock_own_make_way(to);
	/* after that the kernel could not remove it from its epoll set */
	if (from != to && san_sock_fd_is_us() && REAL(fcntl, from, F_GETFD) >= 0)
		san_sock_eset_leave(to);
	errno = was;
}

/* Complete a call that made *to* a duplicate of *from*; both were pinned. */
static int
made_same(int from, int rc, struct fd_sock *at_from, struct fd_sock *at_to)
{
	if (rc >= 0) {
		san_sock_eset_expose(from);
		san_sock_fd_dup(from, rc);
		san_sock_stdio_at(rc);
	}
	san_sock_owner_unpin(at_from);
	san_sock_owner_unpin(at_to);
	return rc;
}

EXPORT int
dup(int fd)
{
	struct fd_sock *pinned = pin_at(fd);

	return made_same(fd, REAL(dup, fd), pinned, NULL);
}

EXPORT int
dup2(int fd, int to)
{
	struct fd_sock *at_fd = pin_at(fd), *at_to = pin_at(to);

	sock_switch_make_way(fd, to);
	return made_same(fd, REAL(dup2, fd, to), at_fd, at_to);
}

EXPORT int
dup3(int fd, int to, int flags)
{
	struct fd_sock *at_fd = pin_at(fd), *at_to = pin_at(to);

	sock_switch_make_way(fd, to);
	return made_same(fd, REAL(dup3, fd, to, flags), at_fd, at_to);
}

EXPORT int
fcntl(int fd, int cmd, ...)
{
	struct fd_sock *pinned, *f;
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		pinned = pin_at(fd);
		return made_same(fd, REAL(fcntl, fd, cmd, arg), pinned, NULL);
	}
	f = san_sock_switch_carried(fd, &pinned);
	if (f == NULL)
		return BY_KERNEL(pinned, REAL(fcntl, fd, cmd, arg));
	rc = san_sock_opt_fcntl(fd, f, cmd, arg);
	san_sock_fd_put(f);
	return rc;
}

EXPORT_AS(fcntl, fcntl64);

EXPORT int
ioctl(int fd, unsigned long request, ...)
{
	struct fd_sock *pinned, *f = san_sock_switch_carried(fd, &pinned);
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (f == NULL)
		return BY_KERNEL(pinned, REAL(ioctl, fd, request, arg));
	rc = san_sock_opt_ioctl(fd, f, request, arg);
	san_sock_fd_put(f);
	return rc;
}

/* ---- memory ---- */

EXPORT int
munmap(void *p, size_t len)
{
	int rc = REAL(munmap, p, len);

	san_sock_touch_forget();
	return rc;
}

EXPORT int
mprotect(void *p, size_t len, int prot)
{
	int rc = REAL(mprotect, p, len, prot);

	san_sock_touch_forget();
	return rc;
}

EXPORT void *
mremap(void *p, size_t len, size_t new, int flags, ...)
{
	va_list ap;
	void *to;

	va_start(ap, flags);
	to = va_arg(ap, void *);
	va_end(ap);
	to = REAL(mremap, p, len, new, flags, to);
	san_sock_touch_forget();
	return to;
}

/* ---- the process ---- */

/*
 * The process is about to confine itself. Prepare what needs system calls that it may forbid: the
 * doorbells, and sets that the kernel watches. Sockets that are not carried stay the kernel's.
 */
static void
close_box(void)
{
	struct fd_sock *f;
	int fd;

	for (fd = 0; fd < SOCK_FDS; fd++) {
		san_sock_eset_expose(fd);
		f = san_sock_fd_get(fd);
		if (f == NULL)
			continue;
		if (atomic_load(&f->carried)) {
			san_sock_attach();
		} else {
			san_sock_carry_stay(f, "the program confines itself");
			atomic_store(&f->is_kernels, true);
			san_sock_owner_chosen(f);
		}
		san_sock_fd_put(f);
	}
	san_sock_lock_attach();
	(void)REAL_FN(poll);
	(void)REAL_FN(read);
	(void)REAL_FN(write);
}

bool
san_sock_switch_confines(long number, const long a[6])
{
	/* without a filter seccomp() only asks what the kernel knows */
	bool does = number == SYS_prctl ? a[0] == PR_SET_SECCOMP :
					  number == SYS_seccomp &&
			(a[0] == SECCOMP_SET_MODE_STRICT ||
			 (a[0] == SECCOMP_SET_MODE_FILTER && a[2] != 0));

	return does && san_sock_fd_is_us();
}

long
san_sock_switch_confine(long number, const long a[6])
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

static __attribute__((constructor)) void
sock_switch_begin(void)
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
	san_sock_fork_begin();
	if (san_sock_conf_is_idle())
		return;
	san_sock_carry_adopt_all();
	san_sock_stdio_begin();
}
