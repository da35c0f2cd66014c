/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Intercepted functions (UDP-1). Each checks whether its descriptor is a carried socket. If not, it
 * calls the C library's function with the same arguments.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <bsd/sys/time.h>
#include <time.h>
#include <unistd.h>

#include "sock_attach.h"
#include "sock_carry.h"
#include "sock_conf.h"
#include "sock_epoll.h"
#include "sock_fd.h"
#include "sock_hooks.h"
#include "sock_lock.h"
#include "sock_opt.h"
#include "sock_opt_kind.h"
#include "sock_own.h"
#include "sock_real.h"
#include "sock_room.h"
#include "sock_stdio.h"
#include "sock_switch.h"
#include "sock_tcp.h"
#include "sock_touch.h"
#include "sock_udp.h"

/* ---- create, name, close ---- */

EXPORT int
socket(int domain, int type, int protocol)
{
	int fd = REAL(socket)(domain, type, protocol);

	if (fd < 0)
		return fd;
	sock_forget(fd);
	if (sock_conf_is_idle())
		return fd;
	if ((domain == AF_INET || domain == AF_INET6) &&
	    (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_DGRAM &&
	    (protocol == 0 || protocol == IPPROTO_UDP))
		sock_track(fd, domain, true);
	else if ((domain == AF_INET || domain == AF_INET6) &&
		 (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM)
		sock_track(fd, domain, false);
	return fd;
}

/*
 * The new number may have been that of a socket whose close was not seen. The connection may be the
 * token of a stream.
 */
static int
accepted(int new, struct sockaddr *sa, socklen_t *len, socklen_t room)
{
	if (new < 0)
		return new;
	sock_forget(new);
	if (!sock_conf_is_idle())
		sock_tcp_accepted(new, sa, len, room);
	sock_stdio_at(new);
	return new;
}

/* Room for a name, read before it is overwritten. */
static socklen_t
room_of(const struct sockaddr *sa, const socklen_t *len)
{
	return sa == NULL || sock_is_bad(len, sizeof(*len)) ? 0 : *len;
}

/* Whether it is a carried UDP socket: for its stand-in the kernel's error would differ. */
static bool
is_no_listener(int fd)
{
	struct sock_file *f = carried_now(fd);
	bool is = f != NULL && f->is_udp;

	if (f != NULL)
		sock_put(f);
	if (is)
		errno = EOPNOTSUPP;
	return is;
}

EXPORT int
accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	socklen_t room = room_of(sa, len);

	if (is_no_listener(fd))
		return -1;
	return accepted(REAL(accept)(fd, sa, len), sa, len, room);
}

EXPORT int
accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	socklen_t room = room_of(sa, len);

	if (is_no_listener(fd))
		return -1;
	return accepted(REAL(accept4)(fd, sa, len, flags), sa, len, room);
}

EXPORT int
listen(int fd, int backlog)
{
	struct sock_file *f = sock_get(fd);
	int rc;

	if (f != NULL && atomic_load(&f->carried)) {
		errno = f->is_udp ? EOPNOTSUPP : EINVAL;
		rc = -1;
	} else {
		rc = REAL(listen)(fd, backlog);
		if (rc == 0 && f != NULL && !f->is_udp)
			sock_tcp_listen(fd, f);
	}
	if (f != NULL)
		sock_put(f);
	return rc;
}

EXPORT int
socketpair(int domain, int type, int protocol, int fds[2])
{
	int rc = REAL(socketpair)(domain, type, protocol, fds);

	if (rc == 0) {
		sock_forget(fds[0]);
		sock_forget(fds[1]);
	}
	return rc;
}

EXPORT int
bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct sock_file *f = sock_get(fd);
	int rc;

	if (f == NULL)
		return REAL(bind)(fd, sa, len);
	if (atomic_load(&f->carried)) {
		errno = sock_is_bad(sa, len) ? EFAULT : EINVAL; /* it has a name */
		rc = -1;
	} else if (sock_is_refused(fd, f, sa, NULL)) {
		errno = EPERM;
		rc = -1;
	} else {
		rc = sock_bind(fd, sa, len);
		if (rc == 0)
			sock_carry(fd, f, NULL);
	}
	sock_put(f);
	return rc;
}

EXPORT int
connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct sock_file *f = sock_get(fd);
	struct sockaddr_storage local;
	int rc;

	if (f == NULL)
		return REAL(connect)(fd, sa, len);
	if (sock_is_refused(fd, f, NULL, sa)) {
		errno = EPERM;
		rc = -1;
	} else if (atomic_load(&f->carried)) {
		rc = sock_opt_connect(fd, f, sa, len);
	} else if (!f->is_udp && (rc = sock_tcp_connect(fd, f, sa, len)) != -EINPROGRESS) {
		errno = rc != 0 ? -rc : errno;
		rc = rc != 0 ? -1 : 0;
	} else {
		rc = REAL(connect)(fd, sa, len);
		/* a failed connect() may leave a local name, too */
		if (f->is_udp && (rc == 0 || sock_bound_to(fd, &local) != NULL))
			sock_carry(fd, f, NULL);
		else if (rc == 0)
			atomic_store(&f->stays, true);
	}
	sock_put(f);
	sock_stdio_at(fd);
	return rc;
}

EXPORT int
getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct sock_file *pinned, *f = carried(fd, &pinned);
	int rc;

	if (f == NULL)
		return BY_KERNEL(pinned, REAL(getsockname)(fd, sa, len));
	rc = sock_opt_name(fd, f, false, sa, len);
	sock_put(f);
	return rc;
}

EXPORT int
getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct sock_file *pinned, *f = carried(fd, &pinned);
	int rc;

	if (f == NULL)
		return BY_KERNEL(pinned, REAL(getpeername)(fd, sa, len));
	rc = sock_opt_name(fd, f, true, sa, len);
	sock_put(f);
	return rc;
}

EXPORT int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct sock_file *pinned, *f = carried(fd, &pinned);
	int rc;

	if (f == NULL)
		return BY_KERNEL(pinned, REAL(getsockopt)(fd, level, name, value, len));
	rc = sock_opt_get(fd, f, level, name, value, len);
	sock_put(f);
	return rc;
}

EXPORT int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct sock_file *pinned, *f = carried(fd, &pinned);
	const char *text;
	bool is_kernels;
	int rc;

	if (f != NULL) {
		rc = sock_opt_set(fd, f, level, name, value, len);
		sock_put(f);
		return rc;
	}
	is_kernels = pinned != NULL &&
		sock_opt_is_kernels(fd, pinned, level, name, value, len, &text);
	rc = REAL(setsockopt)(fd, level, name, value, len);
	if (rc == 0 && is_kernels)
		sock_stay(pinned, text);
	else if (rc == 0 && pinned != NULL)
		sock_opt_early(pinned, level, name, value, len);
	sock_unpin(pinned);
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
	struct sock_file *pinned, *f = carried(fd, &pinned);
	int rc;

	if (f != NULL) {
		rc = sock_opt_shutdown(fd, f, how);
		sock_put(f);
		return rc;
	}
	rc = REAL(shutdown)(fd, how);
	/* the kernel returns ENOTCONN, and shuts it down */
	if (pinned != NULL && pinned->is_udp && (rc == 0 || errno == ENOTCONN))
		sock_owner_chosen(pinned);
	sock_unpin(pinned);
	return rc;
}

/* Pin the file at *fd*, whose descriptors are about to change, until sock_unpin(); or NULL. */
static struct sock_file *
pin_at(int fd)
{
	struct sock_file *f = sock_get(fd);

	if (f != NULL)
		sock_pin_any(f);
	return f;
}

EXPORT int
close(int fd)
{
	struct sock_file *f;
	int rc;

	if (sock_is_own(fd)) {
		errno = EBADF;
		return -1;
	}
	f = pin_at(fd);
	if (f != NULL)
		sock_hold(f);
	sock_forget(fd);
	rc = BY_KERNEL(f, REAL(close)(fd));
	if (f != NULL && rc == 0 && !f->is_udp && atomic_load(&f->carried))
		sock_tcp_linger(f);
	if (f != NULL)
		sock_put(f);
	return rc;
}

EXPORT int
close_range(unsigned int first, unsigned int last, int flags)
{
	if ((flags & (int)CLOSE_RANGE_CLOEXEC) != 0)
		return REAL(close_range)(first, last, flags);
	sock_forget_range(first, last);
	return sock_own_close_others(first, last, flags);
}

EXPORT void
closefrom(int first)
{
	/* the C library's function also works on a kernel without close_range(2) */
	if (close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX, 0) != 0)
		REAL(closefrom)
	(first);
}

/* The kernel has made *to* a duplicate of *from*. */
static void
same(int from, int to)
{
	sock_epoll_expose(from);
	sock_dup(from, to);
	sock_stdio_at(to);
}

/* *to* is about to become a duplicate of *from*, if that is open. */
static void
make_way(int from, int to)
{
	int was = errno;

	sock_own_make_way(to);
	/* afterwards the kernel could not remove it from its epoll set */
	if (from != to && sock_is_us() && REAL(fcntl)(from, F_GETFD) >= 0)
		sock_epoll_leave(to);
	errno = was;
}

/* Complete a call that made *to* a duplicate of *from*; both were pinned. */
static int
made_same(int from, int rc, struct sock_file *at_from, struct sock_file *at_to)
{
	if (rc >= 0)
		same(from, rc);
	sock_unpin(at_from);
	sock_unpin(at_to);
	return rc;
}

EXPORT int
dup(int fd)
{
	struct sock_file *pinned = pin_at(fd);

	return made_same(fd, REAL(dup)(fd), pinned, NULL);
}

EXPORT int
dup2(int fd, int to)
{
	struct sock_file *at_fd = pin_at(fd), *at_to = pin_at(to);

	make_way(fd, to);
	return made_same(fd, REAL(dup2)(fd, to), at_fd, at_to);
}

EXPORT int
dup3(int fd, int to, int flags)
{
	struct sock_file *at_fd = pin_at(fd), *at_to = pin_at(to);

	make_way(fd, to);
	return made_same(fd, REAL(dup3)(fd, to, flags), at_fd, at_to);
}

static int
control(int fd, int cmd, void *arg)
{
	struct sock_file *pinned, *f;
	int rc;

	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		pinned = pin_at(fd);
		return made_same(fd, REAL(fcntl)(fd, cmd, arg), pinned, NULL);
	}
	f = carried(fd, &pinned);
	if (f == NULL)
		return BY_KERNEL(pinned, REAL(fcntl)(fd, cmd, arg));
	rc = sock_opt_fcntl(fd, f, cmd, arg);
	sock_put(f);
	return rc;
}

EXPORT int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return control(fd, cmd, arg);
}

EXPORT int
fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return control(fd, cmd, arg);
}

EXPORT int
ioctl(int fd, unsigned long request, ...)
{
	struct sock_file *pinned, *f = carried(fd, &pinned);
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (f == NULL)
		return BY_KERNEL(pinned, REAL(ioctl)(fd, request, arg));
	rc = sock_opt_ioctl(fd, f, request, arg);
	sock_put(f);
	return rc;
}

/* ---- memory ---- */

EXPORT int
munmap(void *p, size_t len)
{
	int rc = REAL(munmap)(p, len);

	sock_touch_forget();
	return rc;
}

EXPORT int
mprotect(void *p, size_t len, int prot)
{
	int rc = REAL(mprotect)(p, len, prot);

	sock_touch_forget();
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
	to = REAL(mremap)(p, len, new, flags, to);
	sock_touch_forget();
	return to;
}

/* ---- the process ---- */

static void
begin_fork(void)
{
	sock_change_hold();
	sock_epoll_share();
}

static void
begin_child(void)
{
	sock_change_begin_child();
	sock_fd_begin();
	sock_lock_detach();
	sock_room_begin_child();
	sock_epoll_begin_child();
	sock_fd_recount(sock_epoll_hold);
	sock_detach();
}

static __attribute__((constructor)) void
begin(void)
{
	/* looked up now: allocators call these under their locks, before the loader's */
	(void)REAL(munmap);
	(void)REAL(mprotect);
	(void)REAL(mremap);
	(void)REAL(syscall);
	sock_fd_begin();
	pthread_atfork(begin_fork, sock_change_release, begin_child);
	if (sock_conf_is_idle())
		return;
	sock_adopt_all();
	sock_stdio_begin();
}
