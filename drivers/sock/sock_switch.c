/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The functions that programs call (UDP-1). Each asks whether its descriptor is one of ours: if
 * not, it is the C library's that answers, with what it got.
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
#include <sys/syscall.h>
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
#include "sock_own.h"
#include "sock_real.h"
#include "sock_stdio.h"
#include "sock_switch.h"
#include "sock_tcp.h"
#include "sock_udp.h"

/* ---- come, are named, and go ---- */

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
 * The number that it got may have been that of a socket that was closed unheard. And what came may
 * be a stream in truth.
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

/* What there is room for, before it is overwritten. */
static socklen_t
room_of(const struct sockaddr *sa, const socklen_t *len)
{
	return sa == NULL || sock_is_bad(len, sizeof(*len)) ? 0 : *len;
}

EXPORT int
accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	socklen_t room = room_of(sa, len);

	return accepted(REAL(accept)(fd, sa, len), sa, len, room);
}

EXPORT int
accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	socklen_t room = room_of(sa, len);

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
		errno = EINVAL; /* it has a name */
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
	int rc;

	if (f == NULL)
		return REAL(connect)(fd, sa, len);
	if (sock_is_refused(fd, f, NULL, sa)) {
		errno = EPERM;
		rc = -1;
	} else if (atomic_load(&f->carried)) {
		rc = sock_opt_connect(fd, f, sa, len);
	} else if (!f->is_udp && sock_tcp_connect(fd, f, sa, len)) {
		rc = 0;
	} else {
		rc = REAL(connect)(fd, sa, len);
		if (rc == 0)
			sock_carry(fd, f, NULL);
	}
	sock_put(f);
	sock_stdio_at(fd);
	return rc;
}

EXPORT int
getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct sock_file *f = carried(fd);
	int rc;

	if (f == NULL)
		return REAL(getsockname)(fd, sa, len);
	rc = sock_opt_name(fd, f, false, sa, len);
	sock_put(f);
	return rc;
}

EXPORT int
getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct sock_file *f = carried(fd);
	int rc;

	if (f == NULL)
		return REAL(getpeername)(fd, sa, len);
	rc = sock_opt_name(fd, f, true, sa, len);
	sock_put(f);
	return rc;
}

EXPORT int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct sock_file *f = carried(fd);
	int rc;

	if (f == NULL)
		return REAL(getsockopt)(fd, level, name, value, len);
	rc = sock_opt_get(fd, f, level, name, value, len);
	sock_put(f);
	return rc;
}

EXPORT int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct sock_file *f = sock_get(fd);
	int rc;

	if (f == NULL)
		return REAL(setsockopt)(fd, level, name, value, len);
	if (atomic_load_explicit(&f->carried, memory_order_acquire)) {
		rc = sock_opt_set(fd, f, level, name, value, len);
	} else {
		rc = REAL(setsockopt)(fd, level, name, value, len);
		if (rc == 0 && sock_hooks_is_kernels(level, name))
			atomic_store(&f->stays, true);
		else if (rc == 0)
			sock_opt_early(f, level, name, value, len);
	}
	sock_put(f);
	return rc;
}

EXPORT int
shutdown(int fd, int how)
{
	struct sock_file *f = carried(fd);
	int rc;

	if (f == NULL)
		return REAL(shutdown)(fd, how);
	rc = sock_opt_shutdown(fd, f, how);
	sock_put(f);
	return rc;
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
	f = carried(fd);
	sock_forget(fd);
	rc = REAL(close)(fd);
	if (f != NULL && rc == 0 && !f->is_udp)
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
	/* the C library's knows what to do on a kernel that has no ranges */
	if (close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX, 0) != 0)
		REAL(closefrom)
	(first);
}

static void
same(int from, int to)
{
	sock_epoll_expose(from);
	sock_dup(from, to);
	sock_stdio_at(to);
}

/* *to* is about to be what *from* is, if that is anything. */
static void
make_way(int from, int to)
{
	int was = errno;

	sock_own_make_way(to);
	/* once it is something else the kernel can't be told that it left its set */
	if (from != to && sock_is_us() && REAL(fcntl)(from, F_GETFD) >= 0)
		sock_epoll_leave(to);
	errno = was;
}

EXPORT int
dup(int fd)
{
	int to = REAL(dup)(fd);

	if (to >= 0)
		same(fd, to);
	return to;
}

EXPORT int
dup2(int fd, int to)
{
	int rc;

	make_way(fd, to);
	rc = REAL(dup2)(fd, to);
	if (rc >= 0)
		same(fd, to);
	return rc;
}

EXPORT int
dup3(int fd, int to, int flags)
{
	int rc;

	make_way(fd, to);
	rc = REAL(dup3)(fd, to, flags);
	if (rc >= 0)
		same(fd, to);
	return rc;
}

static int
control(int fd, int cmd, void *arg)
{
	struct sock_file *f = carried(fd);
	int rc;

	if (f != NULL) {
		rc = sock_opt_fcntl(fd, f, cmd, arg);
		sock_put(f);
		return rc;
	}
	rc = REAL(fcntl)(fd, cmd, arg);
	if (rc >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))
		same(fd, rc);
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
	struct sock_file *f = carried(fd);
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (f == NULL)
		return REAL(ioctl)(fd, request, arg);
	rc = sock_opt_ioctl(fd, f, request, arg);
	sock_put(f);
	return rc;
}

/* ---- receive ---- */

static ssize_t
take(int fd, struct sock_file *f, struct msghdr *msg, int flags)
{
	return f->is_udp ? sock_udp_recv(fd, f, msg, flags) : sock_tcp_recv(fd, f, msg, flags);
}

/* Descriptors came: carried sockets may be among them. */
static void
adopt(struct msghdr *msg)
{
	struct cmsghdr *c;
	size_t i, nb;
	int fd;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		nb = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < nb; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			sock_adopt(fd);
		}
	}
}

EXPORT ssize_t
recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sock_file *f = carried(fd);
	ssize_t n;

	if (f == NULL) {
		n = BY_KERNEL(fd, REAL(recvmsg)(fd, msg, flags));
		if (n >= 0 && msg->msg_controllen != 0 && !sock_conf_is_idle() &&
		    !sock_is_daemons(fd))
			adopt(msg);
		return n;
	}
	if (msg == NULL) {
		errno = EFAULT;
		n = -1;
	} else {
		n = take(fd, f, msg, flags);
	}
	sock_put(f);
	return n;
}

static ssize_t
receive(int fd, struct sock_file *f, const struct iovec *iov, size_t nb_iov, int flags,
	struct sockaddr *sa, socklen_t *len)
{
	struct msghdr msg = {
		.msg_name = sa,
		.msg_namelen = sa != NULL && len != NULL ? *len : 0,
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = nb_iov,
	};
	ssize_t n = take(fd, f, &msg, flags);

	if (n >= 0 && sa != NULL && len != NULL)
		*len = msg.msg_namelen;
	sock_put(f);
	return n;
}

EXPORT ssize_t
recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *sa, socklen_t *len)
{
	struct sock_file *f = carried(fd);
	const struct iovec iov = {buf, size};

	return f == NULL ? BY_KERNEL(fd, REAL(recvfrom)(fd, buf, size, flags, sa, len)) :
			   receive(fd, f, &iov, 1, flags, sa, len);
}

EXPORT ssize_t
recv(int fd, void *buf, size_t size, int flags)
{
	struct sock_file *f = carried(fd);
	const struct iovec iov = {buf, size};

	return f == NULL ? BY_KERNEL(fd, REAL(recv)(fd, buf, size, flags)) :
			   receive(fd, f, &iov, 1, flags, NULL, NULL);
}

EXPORT ssize_t
read(int fd, void *buf, size_t size)
{
	struct sock_file *f = carried(fd);
	const struct iovec iov = {buf, size};

	if (f == NULL || size == 0) { /* of nothing it takes nothing, unlike recv() */
		if (f != NULL)
			sock_put(f);
		return BY_KERNEL(fd, REAL(read)(fd, buf, size));
	}
	return receive(fd, f, &iov, 1, 0, NULL, NULL);
}

EXPORT ssize_t
readv(int fd, const struct iovec *iov, int nb_iov)
{
	struct sock_file *f = carried(fd);

	return f == NULL ? BY_KERNEL(fd, REAL(readv)(fd, iov, nb_iov)) :
			   receive(fd, f, iov, (size_t)nb_iov, 0, NULL, NULL);
}

/* Their checks for buffers that are too small are the compiler's, with what it knows of them. */
EXPORT ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
EXPORT ssize_t
__recv_chk(int fd, void *buf, size_t size, size_t room, int flags)
{
	if (size > room)
		__builtin_trap();
	return recv(fd, buf, size, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
			      struct sockaddr *sa, socklen_t *len);
EXPORT ssize_t
__recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags, struct sockaddr *sa,
	       socklen_t *len)
{
	if (size > room)
		__builtin_trap();
	return recvfrom(fd, buf, size, flags, sa, len);
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
EXPORT ssize_t
__read_chk(int fd, void *buf, size_t size, size_t room)
{
	if (size > room)
		__builtin_trap();
	return read(fd, buf, size);
}

EXPORT int
recvmmsg(int fd, struct mmsghdr *msgs, unsigned int nb, int flags, struct timespec *timeout)
{
	struct sock_file *f = carried(fd);
	struct timespec until, now;
	unsigned int i;
	ssize_t n = 0;

	if (f == NULL)
		return BY_KERNEL(fd, REAL(recvmmsg)(fd, msgs, nb, flags, timeout));
	if (timeout != NULL) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		timespecadd(&until, timeout, &until);
	}
	for (i = 0; i < nb; i++) {
		/* the time is looked at between datagrams, as in the kernel */
		if (i != 0 && timeout != NULL && clock_gettime(CLOCK_MONOTONIC, &now) == 0 &&
		    timespeccmp(&now, &until, >=))
			break;
		n = take(fd, f, &msgs[i].msg_hdr, flags & ~MSG_WAITFORONE);
		if (n < 0)
			break;
		msgs[i].msg_len = (unsigned int)n;
		if ((flags & MSG_WAITFORONE) != 0)
			flags |= MSG_DONTWAIT;
	}
	sock_put(f);
	return i != 0 || nb == 0 ? (int)i : -1;
}

/* ---- send ---- */

/* Is it the kernel's? One that sends before it has a name gets one, and may come to be carried. */
static bool
is_kernels(int fd, struct sock_file *f, const struct sockaddr *to)
{
	if (atomic_load_explicit(&f->carried, memory_order_acquire))
		return false;
	if (to != NULL && sock_is_refused(fd, f, NULL, to)) {
		errno = EPERM;
		return false;
	}
	sock_carry_first(fd, f, to);
	return !atomic_load(&f->carried);
}

/* It has sent *n* as the kernel's. */
static ssize_t
by_kernel(struct sock_file *f, ssize_t n)
{
	sock_put(f);
	return n;
}

/* As one that is carried, or is refused. */
static ssize_t
give(int fd, struct sock_file *f, const struct msghdr *msg, int flags)
{
	ssize_t n = -1;

	if (atomic_load_explicit(&f->carried, memory_order_acquire))
		n = f->is_udp ? sock_udp_send(fd, f, msg, flags) :
				sock_tcp_send(fd, f, msg, flags);
	sock_put(f);
	return n;
}

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sock_file *f = sender(fd);

	if (f == NULL) {
		if (!sock_is_bad(msg, sizeof(*msg)) && msg->msg_controllen != 0)
			sock_epoll_sent(msg);
		return REAL(sendmsg)(fd, msg, flags);
	}
	if (sock_is_bad(msg, sizeof(*msg))) {
		sock_put(f);
		errno = EFAULT;
		return -1;
	}
	if (is_kernels(fd, f, sock_goes_to(msg)))
		return by_kernel(f, REAL(sendmsg)(fd, msg, flags));
	return give(fd, f, msg, flags);
}

EXPORT ssize_t
sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *sa, socklen_t len)
{
	struct iovec iov = {(void *)buf, size};
	const struct msghdr msg = {
		.msg_name = (void *)sa,
		.msg_namelen = sa != NULL ? len : 0,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	struct sock_file *f = sender(fd);

	if (f == NULL)
		return REAL(sendto)(fd, buf, size, flags, sa, len);
	if (is_kernels(fd, f, sock_goes_to(&msg)))
		return by_kernel(f, REAL(sendto)(fd, buf, size, flags, sa, len));
	return give(fd, f, &msg, flags);
}

EXPORT ssize_t
send(int fd, const void *buf, size_t size, int flags)
{
	struct iovec iov = {(void *)buf, size};
	const struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct sock_file *f = sender(fd);

	if (f == NULL)
		return REAL(send)(fd, buf, size, flags);
	if (is_kernels(fd, f, NULL))
		return by_kernel(f, REAL(send)(fd, buf, size, flags));
	return give(fd, f, &msg, flags);
}

EXPORT ssize_t
write(int fd, const void *buf, size_t size)
{
	struct iovec iov = {(void *)buf, size};
	const struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct sock_file *f = sender(fd);

	if (f == NULL)
		return REAL(write)(fd, buf, size);
	if (is_kernels(fd, f, NULL))
		return by_kernel(f, REAL(write)(fd, buf, size));
	return give(fd, f, &msg, 0);
}

EXPORT ssize_t
writev(int fd, const struct iovec *iov, int nb_iov)
{
	const struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)nb_iov};
	struct sock_file *f = sender(fd);

	if (f == NULL)
		return REAL(writev)(fd, iov, nb_iov);
	if (is_kernels(fd, f, NULL))
		return by_kernel(f, REAL(writev)(fd, iov, nb_iov));
	return give(fd, f, &msg, 0);
}

static int
send_each(int fd, struct mmsghdr *msgs, unsigned int nb, int flags)
{
	unsigned int i;
	ssize_t n;

	for (i = 0; i < nb; i++) {
		n = sendmsg(fd, &msgs[i].msg_hdr, flags);
		if (n < 0)
			break;
		msgs[i].msg_len = (unsigned int)n;
	}
	return i != 0 || nb == 0 ? (int)i : -1;
}

EXPORT int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int nb, int flags)
{
	struct sock_file *f = sender(fd);

	if (f == NULL)
		return REAL(sendmmsg)(fd, msgs, nb, flags);
	if (nb != 0 && !sock_is_bad(msgs, nb) && is_kernels(fd, f, sock_goes_to(&msgs[0].msg_hdr)))
		return (int)by_kernel(f, REAL(sendmmsg)(fd, msgs, nb, flags));
	sock_put(f);
	return send_each(fd, msgs, nb, flags);
}

/* ---- calls by number: libuv makes some so ---- */

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
	switch (number) {
	case SYS_read:
		return read((int)a[0], (void *)a[1], (size_t)a[2]);
	case SYS_write:
		return write((int)a[0], (const void *)a[1], (size_t)a[2]);
	case SYS_close:
		return close((int)a[0]);
	case SYS_epoll_ctl:
		return epoll_ctl((int)a[0], (int)a[1], (int)a[2], (struct epoll_event *)a[3]);
	case SYS_epoll_pwait:
		return epoll_pwait((int)a[0], (struct epoll_event *)a[1], (int)a[2], (int)a[3],
				   (const sigset_t *)a[4]);
	case SYS_close_range:
		return close_range((unsigned int)a[0], (unsigned int)a[1], (int)a[2]);
	case SYS_dup3:
		return dup3((int)a[0], (int)a[1], (int)a[2]);
	case SYS_sendto:
		return sendto((int)a[0], (const void *)a[1], (size_t)a[2], (int)a[3],
			      (const struct sockaddr *)a[4], (socklen_t)a[5]);
	case SYS_recvfrom:
		return recvfrom((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3],
				(struct sockaddr *)a[4], (socklen_t *)a[5]);
	case SYS_sendmsg:
		return sendmsg((int)a[0], (const struct msghdr *)a[1], (int)a[2]);
	case SYS_recvmsg:
		return recvmsg((int)a[0], (struct msghdr *)a[1], (int)a[2]);
	case SYS_sendmmsg:
		return sendmmsg((int)a[0], (struct mmsghdr *)a[1], (unsigned int)a[2], (int)a[3]);
	case SYS_recvmmsg:
		return recvmmsg((int)a[0], (struct mmsghdr *)a[1], (unsigned int)a[2], (int)a[3],
				(struct timespec *)a[4]);
	case SYS_io_uring_setup:
		/* what is asked for there we do not hear: libuv then asks here */
		if (!sock_conf_is_idle()) {
			errno = ENOSYS;
			return -1;
		}
		/* fall through */
	default:
		return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
}

/* ---- the process ---- */

static void
begin_child(void)
{
	sock_fd_begin();
	sock_lock_detach();
	sock_epoll_begin_child();
	sock_fd_recount(sock_epoll_hold);
	sock_detach();
}

static __attribute__((constructor)) void
begin(void)
{
	sock_fd_begin();
	pthread_atfork(sock_epoll_share, NULL, begin_child);
	if (sock_conf_is_idle())
		return;
	sock_adopt_all();
	sock_stdio_begin();
}
