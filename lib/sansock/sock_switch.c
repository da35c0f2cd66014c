/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Intercepted functions (UDP-1). Each checks whether its descriptor is a carried socket. If not, it
 * calls the C library's function with the same arguments.
 */

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <linux/sockios.h>

#include "sock_priv.h"

#define HEADS_V4 52 /* bytes of the headers of IP and TCP, with timestamps */
#define HEADS_V6 72

/* ---- create and name ---- */

EXPORT int
socket(int domain, int type, int protocol)
{
	int fd = REAL(socket, domain, type, protocol);
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return fd;
	san_sock_fd_forget(fd);
	if (san_sock_conf_is_idle() || san_sock_box_is_closed() ||
	    (domain != AF_INET && domain != AF_INET6))
		return fd;
	if (kind == SOCK_STREAM ||
	    (kind == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP)))
		san_sock_fd_track(fd, domain, kind == SOCK_DGRAM, NULL);
	return fd;
}

/*
 * A socket was accepted as descriptor *new*. Forget a former socket of this number, whose close was
 * not intercepted. If the connection is a token, it becomes a stream.
 */
static int
end_accept(int new, struct sockaddr *sa, socklen_t *len, socklen_t room)
{
	if (new < 0)
		return new;
	san_sock_fd_forget(new);
	if (!san_sock_conf_is_idle() && !san_sock_box_is_closed())
		san_sock_tcp_accepted(new, sa, len, room);
	san_sock_stdio_at(new);
	return new;
}

/* The room for a name. Read it before the call, which overwrites it. */
static socklen_t
name_room(const struct sockaddr *sa, const socklen_t *len)
{
	return sa == NULL || san_sock_touch_is_bad(len, sizeof(*len)) ? 0 : *len;
}

/*
 * A listener is about to accept, so it gets streams from now on. False: EOPNOTSUPP of a carried UDP
 * socket, of which the kernel would return another error for the stand-in.
 */
static bool
begin_accept(int fd)
{
	HELD struct fd_sock *f = san_sock_fd_get(fd);

	if (f != NULL && !f->is_udp)
		san_sock_tcp_wait(fd, f);
	return f == NULL || !f->is_udp || !atomic_load(&f->carried);
}

EXPORT int
accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	socklen_t room = name_room(sa, len);

	return begin_accept(fd) ? end_accept(REAL(accept, fd, sa, len), sa, len, room) :
				  san_sock_real_fail(EOPNOTSUPP);
}

EXPORT int
accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	socklen_t room = name_room(sa, len);

	return begin_accept(fd) ? end_accept(REAL(accept4, fd, sa, len, flags), sa, len, room) :
				  san_sock_real_fail(EOPNOTSUPP);
}

EXPORT int
listen(int fd, int backlog)
{
	HELD struct fd_sock *f = san_sock_fd_get(fd);
	int rc;

	if (f != NULL && atomic_load(&f->carried))
		return san_sock_real_fail(f->is_udp ? EOPNOTSUPP : EINVAL);
	rc = REAL(listen, fd, backlog);
	if (rc == 0 && f != NULL && !f->is_udp)
		san_sock_tcp_listen(fd, f);
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
	HELD struct fd_sock *f = san_sock_fd_get(fd);
	int rc;

	if (f == NULL)
		return REAL(bind, fd, sa, len);
	if (atomic_load(&f->carried)) /* it has a name */
		return san_sock_real_fail(san_sock_touch_is_bad(sa, len) ? EFAULT : EINVAL);
	if (san_sock_carry_is_refused(fd, f, sa, NULL))
		return san_sock_real_fail(EPERM);
	rc = san_sock_carry_bind(fd, sa, len);
	if (rc == 0)
		san_sock_carry(fd, f, NULL);
	return rc;
}

static int
carried_connect(int fd, struct fd_sock *f, const struct sockaddr *sa, socklen_t len)
{
	int rc;

	if (len < sizeof(sa->sa_family))
		return san_sock_real_fail(EINVAL);
	if (san_sock_touch_is_bad(sa, len))
		return san_sock_real_fail(EFAULT);
	if (!f->is_udp && sa->sa_family == AF_UNSPEC && san_sock_carry_disconnect(fd, f) == 0)
		return 0;
	if (!f->is_udp)
		return san_sock_real_fail(EISCONN);
	rc = KERNEL_OF(fd, f, connect, sa, len);
	if (rc == 0)
		san_sock_carry_sync(fd, f);
	return rc;
}

EXPORT int
connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	HELD struct fd_sock *f = san_sock_fd_get(fd);
	struct sockaddr_storage local;
	int rc;

	if (f == NULL)
		return REAL(connect, fd, sa, len);
	if (san_sock_carry_is_refused(fd, f, NULL, sa)) {
		rc = san_sock_real_fail(EPERM);
	} else if (atomic_load(&f->carried)) {
		rc = carried_connect(fd, f, sa, len);
	} else if (!f->is_udp && (rc = san_sock_tcp_connect(fd, f, sa, len)) != -EINPROGRESS) {
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
	san_sock_stdio_at(fd);
	return rc;
}

EXPORT int
getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	return SERVE(fd, REAL(getsockname, fd, sa, len),
		     f->is_udp ? KERNEL_OF(fd, f, getsockname, sa, len) :
				 san_sock_tcp_name(f, false, sa, len));
}

EXPORT int
getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	return SERVE(fd, REAL(getpeername, fd, sa, len),
		     f->is_udp ? KERNEL_OF(fd, f, getpeername, sa, len) :
				 san_sock_tcp_name(f, true, sa, len));
}

/* ---- options ---- */

static int
give_int(int v, void *value, socklen_t *len)
{
	if (*len > sizeof(v))
		*len = sizeof(v);
	if (san_sock_touch_is_bad_out(value, *len))
		return san_sock_real_fail(EFAULT);
	memcpy(value, &v, *len);
	return 0;
}

/* Segment size that TCP would use on the port, with timestamps. */
static uint32_t
max_segment(const struct fd_sock *f)
{
	return f->shm->mtu - (f->shm->local.family == AF_INET ? HEADS_V4 : HEADS_V6);
}

static int
carried_get(int fd, struct fd_sock *f, int level, int name, void *value, socklen_t *len)
{
	uint32_t bit = san_sock_opt_bit(f, level, name, false);
	struct tcp_info info;
	int rc;

	if (san_sock_touch_is_bad_out(len, sizeof(*len)))
		return san_sock_real_fail(EFAULT);
	if ((int)*len < 0)
		return san_sock_real_fail(EINVAL);
	if (bit != 0)
		return give_int((atomic_load(&f->shm->options) & bit) != 0, value, len);
	/* not the kernel's: the daemon passes its errors on, and one must not be returned twice */
	if (level == SOL_SOCKET && name == SO_ERROR)
		return give_int(san_sock_ring_take_error(f), value, len);
	if (f->is_udp && level == SOL_SOCKET && name == SO_GET_FILTER) {
		*len = 0; /* the kernel's socket has the daemon's filter; the program has none */
		return 0;
	}
	if (!f->is_udp && level == SOL_SOCKET && name == SO_PEERNAME)
		return san_sock_tcp_name(f, true, value, len);
	if (!f->is_udp && level == IPPROTO_TCP && name == TCP_MAXSEG)
		return give_int((int)max_segment(f), value, len);
	rc = KERNEL_OF(fd, f, getsockopt, level, name, value, len);
	if (rc != 0 || f->is_udp || level != IPPROTO_TCP || name != TCP_INFO)
		return rc;
	/* the kernel's socket is not connected: return the stream's state instead */
	info = (struct tcp_info){
		.tcpi_state = (uint8_t)san_sock_tcp_state(f),
		.tcpi_snd_mss = max_segment(f),
		.tcpi_rcv_mss = max_segment(f),
		.tcpi_advmss = max_segment(f),
		.tcpi_pmtu = f->shm->mtu,
	};
	memset(value, 0, *len);
	memcpy(value, &info, *len < sizeof(info) ? *len : sizeof(info));
	return 0;
}

EXPORT int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return SERVE(fd, REAL(getsockopt, fd, level, name, value, len),
		     carried_get(fd, f, level, name, value, len));
}

/* Set one of enum san_sock_option as the kernel does: an IPv4 option may have one byte, or none. */
static int
set_bit(struct fd_sock *f, uint32_t bit, int level, const void *value, socklen_t len)
{
	int v = 0;

	if (len < sizeof(v) && level != IPPROTO_IP)
		return san_sock_real_fail(EINVAL);
	if (san_sock_touch_is_bad(value, len < sizeof(v) ? len : sizeof(v)))
		return san_sock_real_fail(EFAULT);
	memcpy(&v, value, len >= sizeof(v) ? sizeof(v) : len != 0);
	if (v != 0)
		atomic_fetch_or(&f->shm->options, bit);
	else
		atomic_fetch_and(&f->shm->options, ~bit);
	return 0;
}

static int
carried_set(int fd, struct fd_sock *f, int level, int name, const void *value, socklen_t len)
{
	uint32_t bit = san_sock_opt_bit(f, level, name, false);
	int rc, kernel;
	char text[SOCK_OPT_TEXT];
	uint8_t group[16];
	bool leaves;

	if (bit != 0)
		return set_bit(f, bit, level, value, len);
	if (len != 0 && san_sock_touch_is_bad(value, len))
		return san_sock_real_fail(EFAULT);
	kernel = san_sock_carry_kernel(fd, f);
	if (kernel < 0)
		return -1;
	if (f->is_udp && level == SOL_SOCKET && name == SO_DETACH_FILTER)
		/* the filter is the daemon's */
		return san_sock_real_fail(len < sizeof(int) ? EINVAL : ENOENT);
	/* only valid before connect(): the kernel's socket, not connected, would accept them */
	if (!f->is_udp && level == IPPROTO_TCP &&
	    (name == TCP_FASTOPEN || name == TCP_FASTOPEN_CONNECT ||
	     name == TCP_FASTOPEN_NO_COOKIE))
		return san_sock_real_fail(EINVAL);
	/* or refuse it as a kernel without the option does: programs are prepared for that */
	if (san_sock_opt_is_kernels(kernel, f, level, name, value, len, text)) {
		if (!san_sock_carry_can_give_back(f)) {
			san_sock_conf_info("an option of a carried socket is refused", text);
			return san_sock_real_fail(ENOPROTOOPT);
		}
		/* a refused option must change nothing; a filter would replace the daemon's */
		if ((level != SOL_SOCKET ||
		     (name != SO_ATTACH_FILTER && name != SO_ATTACH_BPF &&
		      name != SO_LOCK_FILTER)) &&
		    REAL(setsockopt, kernel, level, name, value, len) != 0)
			return -1;
		return san_sock_carry_give_back(fd, f, text) ? -2 :
							       san_sock_real_fail(ENOPROTOOPT);
	}
	rc = REAL(setsockopt, kernel, level, name, value, len);
	if (rc == 0 && san_sock_opt_group(level, name, value, len, group, &leaves)) {
		if (san_sock_opt_follow_group(fd, group, leaves) == 0 || leaves) {
			/* for san_sock_carry_return() */
			san_sock_opt_note(f, level, name, value, len);
			return 0;
		}
		/* the port would not receive the group: undo it, with errno for lack of room */
		name = name == MCAST_JOIN_GROUP   ? MCAST_LEAVE_GROUP :
			name == IP_ADD_MEMBERSHIP ? IP_DROP_MEMBERSHIP :
						    IPV6_LEAVE_GROUP;
		REAL(setsockopt, kernel, level, name, value, len);
		return san_sock_real_fail(ENOBUFS);
	}
	if (rc == 0 && level == SOL_SOCKET &&
	    (name == SO_RCVTIMEO || name == SO_SNDTIMEO || name == SO_RCVTIMEO_NEW ||
	     name == SO_SNDTIMEO_NEW)) /* calls wait by these */
		san_sock_opt_times(kernel, fd);
	else if (rc == 0 && f->is_udp)
		san_sock_carry_sync(fd, f);
	else if (rc == 0 && (level == SOL_SOCKET || level == IPPROTO_TCP))
		san_sock_opt_stream(kernel, f);
	return rc;
}

EXPORT int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	PINNED struct fd_sock *pinned;
	HELD struct fd_sock *f = san_sock_switch_carried(fd, &pinned);
	char text[SOCK_OPT_TEXT];
	bool is_kernels;
	int rc;

	if (f != NULL) {
		rc = carried_set(fd, f, level, name, value, len);
		return rc != -2 ? rc : setsockopt(fd, level, name, value, len);
	}
	is_kernels = pinned != NULL &&
		san_sock_opt_is_kernels(fd, pinned, level, name, value, len, text);
	rc = REAL(setsockopt, fd, level, name, value, len);
	if (rc == 0 && is_kernels)
		san_sock_carry_stay(pinned, text);
	else if (rc == 0 && pinned != NULL)
		san_sock_opt_note(pinned, level, name, value, len);
	return rc;
}

EXPORT int
sockatmark(int fd)
{
	int is = 0;

	/* out-of-band bytes are not carried: see MSG_OOB */
	return ioctl(fd, SIOCATMARK, &is) == 0 ? is : -1;
}

static int
carried_shutdown(int fd, struct fd_sock *f, int how)
{
	int kernel, rc, err;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return san_sock_real_fail(EINVAL);
	if (!f->is_udp)
		return san_sock_tcp_shutdown(fd, f, how);
	kernel = san_sock_carry_kernel(fd, f);
	if (kernel < 0)
		return -1;
	/* not for SHUT_RD: the kernel's socket would be readable for ever */
	rc = how == SHUT_RD ? 0 : REAL(shutdown, kernel, SHUT_WR);
	if (rc == 0 && f->shm->peer.family == 0)
		rc = san_sock_real_fail(ENOTCONN); /* as the kernel, which shuts it down, too */
	err = errno;
	atomic_fetch_or(&f->shm->shut, (uint32_t)how + 1);
	san_sock_attach_doorbell(f); /* wakes threads that wait to read */
	errno = err;
	return rc;
}

EXPORT int
shutdown(int fd, int how)
{
	PINNED struct fd_sock *pinned;
	HELD struct fd_sock *f = san_sock_switch_carried(fd, &pinned);
	int rc;

	if (f != NULL)
		return carried_shutdown(fd, f, how);
	rc = REAL(shutdown, fd, how);
	/* the kernel shuts the socket down even if it returns ENOTCONN */
	if (pinned != NULL && pinned->is_udp && (rc == 0 || errno == ENOTCONN))
		san_sock_owner_chosen(pinned);
	return rc;
}

/* ---- descriptors ---- */

/* *to* is about to become a duplicate of *from*, if that is open. */
static void
begin_dup(int from, int to)
{
	KEEP_ERRNO;

	/* a child of vfork() has descriptors of its own, but our memory */
	if (!san_sock_fd_is_us())
		return;
	san_sock_own_vacate(to);
	/* after that the kernel could not remove it from its epoll set */
	if (from != to && REAL(fcntl, from, F_GETFD) >= 0)
		san_sock_eset_leave(to);
}

/* Complete a call that made *rc* a duplicate of *from*; both were pinned. */
static int
end_dup(int from, int rc)
{
	if (rc >= 0) {
		san_sock_eset_expose(from);
		san_sock_fd_dup(from, rc);
		san_sock_stdio_at(rc);
	}
	return rc;
}

EXPORT int
dup(int fd)
{
	PINNED struct fd_sock *pinned = san_sock_owner_pin_at(fd);

	return end_dup(fd, REAL(dup, fd));
}

EXPORT int
dup2(int fd, int to)
{
	PINNED struct fd_sock *at_fd = san_sock_owner_pin_at(fd);
	PINNED struct fd_sock *at_to = san_sock_owner_pin_at(to);

	begin_dup(fd, to);
	return end_dup(fd, REAL(dup2, fd, to));
}

EXPORT int
dup3(int fd, int to, int flags)
{
	PINNED struct fd_sock *at_fd = san_sock_owner_pin_at(fd);
	PINNED struct fd_sock *at_to = san_sock_owner_pin_at(to);

	begin_dup(fd, to);
	return end_dup(fd, REAL(dup3, fd, to, flags));
}

EXPORT int
fcntl(int fd, int cmd, ...)
{
	PINNED struct fd_sock *pinned = NULL;
	HELD struct fd_sock *f = NULL;
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		pinned = san_sock_owner_pin_at(fd);
		return end_dup(fd, REAL(fcntl, fd, cmd, arg));
	}
	f = san_sock_switch_carried(fd, &pinned);
	rc = REAL(fcntl, fd, cmd, arg);
	if (f == NULL || cmd != F_SETFL || rc != 0)
		return rc;
	atomic_store(&f->shm->nonblock, ((intptr_t)arg & O_NONBLOCK) != 0);
	if (((intptr_t)arg & O_ASYNC) != 0)
		san_sock_ring_arm(f, EPOLLET, true); /* each burst brings a signal */
	return rc;
}

EXPORT_AS(fcntl, fcntl64);

static int
carried_ioctl(int fd, struct fd_sock *f, unsigned long request, void *arg)
{
	int rc;

	if (request == FIONREAD || (request == TIOCOUTQ && !f->is_udp)) {
		if (san_sock_touch_is_bad_out(arg, sizeof(int)))
			return san_sock_real_fail(EFAULT);
		*(int *)arg = request == TIOCOUTQ ? san_sock_tcp_unsent(f) :
			f->is_udp                 ? san_sock_udp_next(f) :
						    san_sock_tcp_unread(f);
		return 0;
	}
	if (f->is_udp && (request == SIOCGSTAMP || request == SIOCGSTAMPNS))
		return san_sock_udp_stamp(f, request == SIOCGSTAMPNS, arg);
	/* what concerns the descriptor */
	if (request == FIONBIO || request == FIOASYNC || request == FIOCLEX ||
	    request == FIONCLEX || request == FIOSETOWN || request == FIOGETOWN ||
	    request == SIOCSPGRP || request == SIOCGPGRP) {
		rc = REAL(ioctl, fd, request, arg);
		if (rc == 0 && request == FIONBIO)
			atomic_store(&f->shm->nonblock, *(const int *)arg != 0);
		if (rc == 0 && request == FIOASYNC && *(const int *)arg != 0)
			san_sock_ring_arm(f, EPOLLET, true); /* each burst brings a signal */
		return rc;
	}
	return KERNEL_OF(fd, f, ioctl, request, arg);
}

EXPORT int
ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	return SERVE(fd, REAL(ioctl, fd, request, arg), carried_ioctl(fd, f, request, arg));
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
