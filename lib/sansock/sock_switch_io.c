/* SPDX-License-Identifier: BSD-3-Clause */

/* Intercepted functions that receive and send. (UDP-1) */

#include <limits.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sock_priv.h"

/* ---- the gate of a socket without a name: see sock_owner.c ---- */

static int
gate_make(int fd, struct fd_sock *f)
{
	int ends[2], none = -1;

	if (atomic_load(&f->gate[0]) >= 0) {
		san_sock_opt_times(fd, atomic_load(&f->gate[0]));
		return 0;
	}
	if (REAL(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	san_sock_opt_times(fd, ends[0]);
	ends[0] = san_sock_own(ends[0], &f->gate[0]);
	ends[1] = san_sock_own(ends[1], &f->gate[1]);
	if (!atomic_compare_exchange_strong(&f->gate[0], &none, ends[0])) {
		san_sock_own_close(ends[0]);
		san_sock_own_close(ends[1]);
		return 0;
	}
	atomic_store(&f->gate[1], ends[1]);
	if (atomic_load(&f->is_chosen)) /* meanwhile: by a thread that saw no gate */
		san_sock_owner_chosen(f);
	return 0;
}

/*
 * Unpin **pinned*, which has no name yet, and wait until its owner is chosen, or until SO_RCVTIMEO
 * of *fd* expires. 0: look the owner up again; or errno. -1: it stays pinned and the kernel must be
 * asked, because *fd* does not block or there is no gate. Out of line, since calls seldom need it.
 */
static __attribute__((noinline)) int
gate_wait(int fd, struct fd_sock **pinned)
{
	HELD struct fd_sock *f = NULL;
	struct sockaddr_storage ss;
	bool is_named;
	char byte;

	if ((REAL(fcntl, fd, F_GETFL) & O_NONBLOCK) != 0)
		return -1;
	is_named = san_sock_carry_bound_to(fd, &ss) != NULL;
	if (!is_named && gate_make(fd, *pinned) != 0)
		return -1;
	f = *pinned;
	san_sock_fd_hold(f);
	san_sock_owner_unpin(pinned);
	/* the kernel handles SO_RCVTIMEO, signals and cancellation */
	if (!is_named)
		return REAL(recv, atomic_load(&f->gate[0]), &byte, 1, 0) < 0 ? errno : 0;
	/* a thread is about to choose the owner, or another process has bound it */
	san_sock_owner_await_choice(f);
	if (!atomic_load(&f->is_chosen))
		san_sock_carry(fd, f, NULL);
	return 0;
}

/* ---- receive ---- */

/*
 * Find the carried socket at *fd*, or NULL and what is pinned: see san_sock_switch_carried(). A
 * call that would wait in the kernel for a socket without a name waits here until the owner is
 * chosen. 0, or -1 and errno.
 */
static int
begin_receive(int fd, int flags, struct fd_sock **f, struct fd_sock **pinned)
{
	int err;

	for (;;) {
		*f = san_sock_fd_get(fd);
		*pinned = NULL;
		if (__builtin_expect(*f == NULL, 1))
			return 0;
		san_sock_carry_again(fd, *f);
		*f = san_sock_switch_pin(*f, pinned);
		if (*pinned == NULL || !(*pinned)->is_udp || (flags & MSG_DONTWAIT) != 0 ||
		    atomic_load_explicit(&(*pinned)->is_chosen, memory_order_relaxed))
			return 0;
		err = gate_wait(fd, pinned);
		if (err < 0)
			return 0;
		if (err > 0)
			return san_sock_real_fail(err);
	}
}

/* SERVE() for a call that receives. */
#define RECEIVE(fd, flags, kernel, carried) \
	SERVE_AFTER(begin_receive(fd, flags, &f, &pin_), kernel, carried)

static ssize_t
io_take(int fd, struct fd_sock *f, struct msghdr *msg, int flags)
{
	ssize_t n = f->is_udp ? san_sock_udp_recv(fd, f, msg, flags) :
				san_sock_tcp_recv(fd, f, msg, flags);

	/* if the daemon has ended, the call begins anew with the socket's next owner */
	return n < 0 && errno == ENETDOWN && san_sock_carry_return(fd, f) ?
		recvmsg(fd, msg, flags) :
		n;
}

/* Call *fn* for each descriptor that *msg* passes. */
static void
each_passed_fd(const struct msghdr *msg, void (*fn)(int fd))
{
	struct msghdr m = *msg; /* CMSG_NXTHDR() takes a pointer to a mutable one */
	struct cmsghdr *c;
	size_t at;
	int fd;

	for (c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (at = CMSG_LEN(0); at + sizeof(fd) <= c->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, (const char *)c + at, sizeof(fd));
			fn(fd);
		}
	}
}

static ssize_t
take_message(int fd, struct fd_sock *f, struct msghdr *msg, int flags)
{
	if (!san_sock_touch_is_bad_out(msg, sizeof(*msg)))
		return io_take(fd, f, msg, flags);
	return san_sock_real_fail(EFAULT);
}

EXPORT ssize_t
recvmsg(int fd, struct msghdr *msg, int flags)
{
	PINNED struct fd_sock *pinned = NULL;
	HELD struct fd_sock *f = NULL;
	ssize_t n;

	if (begin_receive(fd, flags, &f, &pinned) != 0)
		return -1;
	if (f != NULL)
		return take_message(fd, f, msg, flags);
	n = REAL(recvmsg, fd, msg, flags);
	if (n >= 0 && msg->msg_controllen != 0 && !san_sock_conf_is_idle() &&
	    !san_sock_attach_is_daemons(fd))
		each_passed_fd(msg, san_sock_carry_adopt);
	return n;
}

static ssize_t
io_receive(int fd, struct fd_sock *f, const struct iovec *iov, size_t nb_iov, int flags,
	   struct sockaddr *sa, socklen_t *len)
{
	struct msghdr msg = {
		.msg_name = sa,
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = nb_iov,
	};
	ssize_t n;

	if (sa != NULL && san_sock_touch_is_bad_out(len, sizeof(*len)))
		return san_sock_real_fail(EFAULT);
	msg.msg_namelen = sa != NULL ? *len : 0;
	n = io_take(fd, f, &msg, flags);
	if (n >= 0 && sa != NULL)
		*len = msg.msg_namelen;
	return n;
}

EXPORT ssize_t
recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *sa, socklen_t *len)
{
	const struct iovec iov = {buf, size};

	return RECEIVE(fd, flags, REAL(recvfrom, fd, buf, size, flags, sa, len),
		       io_receive(fd, f, &iov, 1, flags, sa, len));
}

/* It is recvfrom() without a name in the C library, too. */
EXPORT ssize_t
recv(int fd, void *buf, size_t size, int flags)
{
	return recvfrom(fd, buf, size, flags, NULL, NULL);
}

/*
 * A vector without a byte does not reach the socket: the kernel's file layer returns 0, or the
 * error of a bad vector. write() of nothing does, and sends an empty datagram.
 */
static bool
is_nothing(const struct iovec *iov, int nb)
{
	size_t any = 0;
	int i;

	if (nb <= 0 || san_sock_touch_is_bad(iov, (size_t)nb * sizeof(*iov)))
		return true;
	for (i = 0; i < nb; i++)
		any |= iov[i].iov_len;
	return any == 0;
}

EXPORT ssize_t
read(int fd, void *buf, size_t size)
{
	const struct iovec iov = {buf, size};

	/* read() of 0 bytes reads nothing, unlike recv() */
	return size == 0 ? REAL(read, fd, buf, size) :
			   RECEIVE(fd, 0, REAL(read, fd, buf, size),
				   io_receive(fd, f, &iov, 1, 0, NULL, NULL));
}

EXPORT ssize_t
readv(int fd, const struct iovec *iov, int nb_iov)
{
	return is_nothing(iov, nb_iov) ?
		REAL(readv, fd, iov, nb_iov) :
		RECEIVE(fd, 0, REAL(readv, fd, iov, nb_iov),
			io_receive(fd, f, iov, (size_t)nb_iov, 0, NULL, NULL));
}

/* At offset -1 it reads the next bytes of a socket. The kernel refuses other offsets. */
EXPORT ssize_t
preadv2(int fd, const struct iovec *iov, int nb_iov, off_t at, int flags)
{
	int how = (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0;

	return at != -1 || (flags & ~(RWF_NOWAIT | RWF_HIPRI)) != 0 || is_nothing(iov, nb_iov) ?
		REAL(preadv2, fd, iov, nb_iov, at, flags) :
		RECEIVE(fd, how, REAL(preadv2, fd, iov, nb_iov, at, flags),
			io_receive(fd, f, iov, (size_t)nb_iov, how, NULL, NULL));
}

EXPORT_AS(preadv2, preadv64v2);

EXPORT_CHK(ssize_t, read, (int fd, void *buf, size_t size, size_t room), size > room,
	   read(fd, buf, size))
EXPORT_CHK(ssize_t, recv, (int fd, void *buf, size_t size, size_t room, int flags), size > room,
	   recv(fd, buf, size, flags))
EXPORT_CHK(ssize_t, recvfrom,
	   (int fd, void *buf, size_t size, size_t room, int flags, struct sockaddr *sa,
	    socklen_t *len),
	   size > room, recvfrom(fd, buf, size, flags, sa, len))

EXPORT int
recvmmsg(int fd, struct mmsghdr *msgs, unsigned int nb, int flags, struct timespec *timeout)
{
	PINNED struct fd_sock *pinned = NULL;
	HELD struct fd_sock *f = NULL;
	int64_t until_ns;
	unsigned int i;
	ssize_t n = 0;

	if (begin_receive(fd, flags, &f, &pinned) != 0)
		return -1;
	if (f == NULL)
		return REAL(recvmmsg, fd, msgs, nb, flags, timeout);
	if (timeout != NULL && san_sock_touch_is_bad_out(timeout, sizeof(*timeout)))
		return san_sock_real_fail(EFAULT);
	if (san_sock_wait_is_bad_time(timeout))
		return san_sock_real_fail(EINVAL);
	until_ns = san_sock_time_until(timeout);
	nb = nb < IOV_MAX ? nb : IOV_MAX;
	for (i = 0; i < nb; i++) {
		/* the timeout is checked between datagrams, as in the kernel */
		if (i != 0 && timeout != NULL && san_sock_time_ns(CLOCK_MONOTONIC) >= until_ns)
			break;
		n = take_message(fd, f, &msgs[i].msg_hdr, flags & ~MSG_WAITFORONE);
		if (n < 0)
			break;
		msgs[i].msg_len = (unsigned int)n;
		if ((flags & MSG_WAITFORONE) != 0)
			flags |= MSG_DONTWAIT;
	}
	/* the kernel keeps an error behind datagrams for the next call */
	if (i != 0 && n < 0 && errno != EAGAIN && errno != EINTR)
		atomic_store(&f->shm->error, (uint32_t)errno);
	if (timeout != NULL && i != 0)
		*timeout = san_sock_time_left(until_ns);
	return i != 0 || nb == 0 ? (int)i : -1;
}

/* ---- send ---- */

/* The destination in *msg*, or NULL. For a name that is too short the kernel returns EINVAL. */
static const struct sockaddr *
destination(const struct msghdr *msg)
{
	return msg->msg_namelen < sizeof(struct sockaddr) ? NULL : msg->msg_name;
}

/*
 * Find the carried socket at *fd*, or NULL and what is pinned: see san_sock_switch_carried(). A
 * socket that sends before it has a name gets one, and may become carried by that. 0; or -1 and
 * errno: a rule refuses *to*.
 */
static int
begin_send(int fd, const struct sockaddr *to, struct fd_sock **f, struct fd_sock **pinned)
{
	struct fd_sock *at = san_sock_fd_get(fd);

	*f = *pinned = NULL;
	if (__builtin_expect(at == NULL, 1))
		return 0;
	san_sock_carry_again(fd, at);
	if (at->is_udp && !atomic_load_explicit(&at->carried, memory_order_acquire) &&
	    !atomic_load_explicit(&at->is_kernels, memory_order_relaxed)) {
		if (to != NULL && san_sock_carry_is_refused(fd, at, NULL, to)) {
			san_sock_fd_put(at);
			return san_sock_real_fail(EPERM);
		}
		san_sock_carry_first(fd, at, to);
	}
	*f = san_sock_switch_pin(at, pinned);
	return 0;
}

static ssize_t
io_give(int fd, struct fd_sock *f, const struct msghdr *msg, int flags)
{
	ssize_t n = f->is_udp ? san_sock_udp_send(fd, f, msg, flags) :
				san_sock_tcp_send(fd, f, msg, flags);

	return n < 0 && errno == ENETDOWN && san_sock_carry_return(fd, f) ?
		sendmsg(fd, msg, flags) :
		n;
}

/* SERVE() for a call that sends to *to*. */
#define SEND(fd, to, kernel, carried) \
	SERVE_AFTER(begin_send(fd, to, &f, &pin_), kernel, carried)

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	bool is_bad = san_sock_touch_is_bad(msg, sizeof(*msg));
	PINNED struct fd_sock *pinned = NULL;
	HELD struct fd_sock *f = NULL;
	ssize_t n;

	if (begin_send(fd, is_bad ? NULL : destination(msg), &f, &pinned) != 0)
		return -1;
	if (f != NULL)
		return is_bad ? san_sock_real_fail(EFAULT) : io_give(fd, f, msg, flags);
	n = REAL(sendmsg, fd, msg, flags);
	/* the kernel has read *msg*, so it is accessible */
	if (n >= 0 && msg->msg_controllen != 0 && !san_sock_conf_is_idle())
		each_passed_fd(msg, san_sock_eset_expose);
	return n;
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

	return SEND(fd, destination(&msg), REAL(sendto, fd, buf, size, flags, sa, len),
		    io_give(fd, f, &msg, flags));
}

EXPORT ssize_t
send(int fd, const void *buf, size_t size, int flags)
{
	return sendto(fd, buf, size, flags, NULL, 0);
}

EXPORT ssize_t
write(int fd, const void *buf, size_t size)
{
	struct iovec iov = {(void *)buf, size};
	const struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return SEND(fd, NULL, REAL(write, fd, buf, size), io_give(fd, f, &msg, 0));
}

EXPORT ssize_t
writev(int fd, const struct iovec *iov, int nb_iov)
{
	const struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)nb_iov};

	return is_nothing(iov, nb_iov) ?
		REAL(writev, fd, iov, nb_iov) :
		SEND(fd, NULL, REAL(writev, fd, iov, nb_iov), io_give(fd, f, &msg, 0));
}

EXPORT ssize_t
pwritev2(int fd, const struct iovec *iov, int nb_iov, off_t at, int flags)
{
	const struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)nb_iov};
	int how = (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0;

	return at != -1 || (flags & ~(RWF_NOWAIT | RWF_HIPRI)) != 0 || is_nothing(iov, nb_iov) ?
		REAL(pwritev2, fd, iov, nb_iov, at, flags) :
		SEND(fd, NULL, REAL(pwritev2, fd, iov, nb_iov, at, flags),
		     io_give(fd, f, &msg, how));
}

EXPORT_AS(pwritev2, pwritev64v2);

EXPORT int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int nb, int flags)
{
	bool is_bad = nb == 0 || san_sock_touch_is_bad(msgs, sizeof(*msgs));
	PINNED struct fd_sock *pinned = NULL;
	HELD struct fd_sock *f = NULL;
	unsigned int i;
	ssize_t n;

	if (begin_send(fd, is_bad ? NULL : destination(&msgs[0].msg_hdr), &f, &pinned) != 0)
		return -1;
	if (f == NULL &&
	    (pinned == NULL || atomic_load_explicit(&pinned->is_kernels, memory_order_relaxed)))
		return REAL(sendmmsg, fd, msgs, nb, flags);
	/* a rule may refuse each of them, so they are sent one by one */
	san_sock_owner_unpin(&pinned);
	nb = nb < IOV_MAX ? nb : IOV_MAX;
	for (i = 0; i < nb; i++) {
		if (san_sock_touch_is_bad_out(&msgs[i], sizeof(msgs[i]))) {
			errno = EFAULT;
			break;
		}
		n = sendmsg(fd, &msgs[i].msg_hdr, flags);
		if (n < 0)
			break;
		msgs[i].msg_len = (unsigned int)n;
	}
	return i != 0 || nb == 0 ? (int)i : -1;
}

/* ---- close ---- */

EXPORT int
close(int fd)
{
	PINNED struct fd_sock *pinned = NULL;
	HELD struct fd_sock *f = NULL;
	int rc;

	if (san_sock_own_is(fd))
		return san_sock_real_fail(EBADF);
	f = pinned = san_sock_owner_pin_at(fd);
	if (f != NULL)
		san_sock_fd_hold(f);
	san_sock_fd_forget(fd);
	rc = REAL(close, fd);
	san_sock_owner_unpin(&pinned);
	if (f != NULL && rc == 0 && !f->is_udp) {
		san_sock_tcp_closed(f);
		if (atomic_load(&f->carried))
			san_sock_tcp_linger(f);
	}
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

/* ---- sendfile, splice: to or from a carried socket, the bytes go through a buffer ---- */

/* Send a file's bytes and advance its offset by the number of bytes sent. */
static ssize_t
copy_file(int fd, int from, off_t *offset, size_t size)
{
	POOLED struct sock_room room = san_sock_room_take(SAN_SOCK_DGRAM);
	off_t at = offset != NULL ? *offset : lseek(from, 0, SEEK_CUR);
	ssize_t n;

	if (at < 0)
		return san_sock_real_fail(offset != NULL || errno == ESPIPE ? EINVAL : errno);
	if (room.mem == NULL)
		return -1;
	n = pread(from, room.mem, size < room.bytes ? size : room.bytes, at);
	if (n > 0)
		n = send(fd, room.mem, (size_t)n, 0);
	if (n > 0 && offset != NULL)
		*offset += n;
	else if (n > 0)
		lseek(from, at + n, SEEK_SET);
	return n;
}

EXPORT ssize_t
sendfile(int fd, int from, off_t *offset, size_t size)
{
	return SERVE(fd, REAL(sendfile, fd, from, offset, size), copy_file(fd, from, offset, size));
}

EXPORT_AS(sendfile, sendfile64);

/* ---- splice ---- */

/* Whether it is ready, or becomes so while the call may wait. 0 or -1. */
static int
wait_for(int fd, short events, bool may_wait)
{
	struct pollfd p = {.fd = fd, .events = events};
	bool waits = may_wait && (REAL(fcntl, fd, F_GETFL) & O_NONBLOCK) == 0;
	int n = poll(&p, 1, waits ? -1 : 0);

	return n == 0 ? san_sock_real_fail(EAGAIN) : n < 0 ? -1 :
							     0;
}

/* Send all of *n* bytes: they cannot be put back. */
static ssize_t
send_all(int fd, const uint8_t *buf, ssize_t n)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	ssize_t k, done;

	for (done = 0; done < n; done += k) {
		k = send(fd, buf + done, (size_t)(n - done), 0);
		if (k < 0 && (errno != EAGAIN || poll(&p, 1, -1) < 0))
			return done > 0 ? done : -1;
		k = k < 0 ? 0 : k;
	}
	return n;
}

/* Receive no more than fits into the pipe: one page does if it is writable and not empty. */
static ssize_t
to_pipe(int fd, int pipe, void *mem, size_t size, bool may_wait)
{
	int used = 0;
	size_t most;
	ssize_t n;

	REAL(ioctl, pipe, FIONREAD, &used);
	most = (size_t)(used == 0 ? REAL(fcntl, pipe, F_GETPIPE_SZ) : sysconf(_SC_PAGESIZE));
	n = recv(fd, mem, most < size ? most : size, may_wait ? 0 : MSG_DONTWAIT);
	return n <= 0 ? n : REAL(write, pipe, mem, (size_t)n);
}

EXPORT ssize_t
splice(int from, loff_t *from_at, int to, loff_t *to_at, size_t size, unsigned int flags)
{
	PINNED struct fd_sock *pin_from;
	PINNED struct fd_sock *pin_to;
	HELD struct fd_sock *in = san_sock_switch_carried(from, &pin_from);
	HELD struct fd_sock *out = san_sock_switch_carried(to, &pin_to);
	bool may_wait = (flags & SPLICE_F_NONBLOCK) == 0;
	POOLED struct sock_room room = {NULL, 0};
	struct stat st;
	ssize_t n;

	if (in == NULL && out == NULL)
		return REAL(splice, from, from_at, to, to_at, size, flags);
	if ((in != NULL && out != NULL) || fstat(in != NULL ? to : from, &st) != 0 ||
	    !S_ISFIFO(st.st_mode))
		return san_sock_real_fail(EINVAL);
	if (from_at != NULL || to_at != NULL)
		return san_sock_real_fail(ESPIPE);
	if (size == 0)
		return 0;
	/* if another thread fills the socket after this, the call waits for more room */
	if (wait_for(to, POLLOUT, may_wait) != 0 ||
	    (out != NULL && wait_for(from, POLLIN, may_wait) != 0))
		return -1;
	room = san_sock_room_take(SAN_SOCK_DGRAM);
	if (room.mem == NULL)
		return -1;
	size = size < room.bytes ? size : room.bytes;
	if (in != NULL)
		return to_pipe(from, to, room.mem, size, may_wait);
	n = REAL(read, from, room.mem, size);
	return n <= 0 ? n : send_all(to, room.mem, n);
}
