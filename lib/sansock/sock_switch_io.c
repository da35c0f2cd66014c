/* SPDX-License-Identifier: BSD-3-Clause */

/* Intercepted functions that receive and send. (UDP-1) */

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/uio.h>
#include <bsd/sys/time.h>
#include <time.h>
#include <unistd.h>

#include "sock_attach.h"
#include "sock_carry.h"
#include "sock_epoll.h"
#include "sock_priv.h"
#include "sock_real.h"
#include "sock_switch.h"
#include "sock_tcp.h"
#include "sock_udp.h"

/* ---- receive ---- */

/*
 * Find the carried socket at *fd*, or NULL and what is pinned: see san_sock_switch_carried(). A
 * call that would wait in the kernel for a socket without a name waits here until the owner is
 * chosen. 0, or -1 and errno.
 */
static int
sock_io_receiver(int fd, int flags, struct fd_sock **f, struct fd_sock **pinned)
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
		err = san_sock_owner_gate_wait(fd, *pinned);
		if (err < 0)
			return 0;
		if (err > 0)
			return san_sock_real_fail(err);
	}
}

static ssize_t
sock_io_take(int fd, struct fd_sock *f, struct msghdr *msg, int flags)
{
	ssize_t n = f->is_udp ? san_sock_udp_recv(fd, f, msg, flags) :
				san_sock_tcp_recv(fd, f, msg, flags);

	/* if the daemon has ended, the call begins anew with the socket's next owner */
	return n < 0 && errno == ENETDOWN && san_sock_carry_return(fd, f) ?
		recvmsg(fd, msg, flags) :
		n;
}

/* Carried sockets may be among the received descriptors. */
static void
sock_io_adopt_fds(struct msghdr *msg)
{
	struct cmsghdr *c;
	size_t at;
	int fd;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (at = CMSG_LEN(0); at + sizeof(fd) <= c->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, (const char *)c + at, sizeof(fd));
			san_sock_carry_adopt(fd);
		}
	}
}

static ssize_t
take_message(int fd, struct fd_sock *f, struct msghdr *msg, int flags)
{
	if (!san_sock_touch_is_bad_out(msg, sizeof(*msg)))
		return sock_io_take(fd, f, msg, flags);
	return san_sock_real_fail(EFAULT);
}

EXPORT ssize_t
recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct fd_sock *f, *pinned;
	ssize_t n;

	if (sock_io_receiver(fd, flags, &f, &pinned) != 0)
		return -1;
	if (f == NULL) {
		n = BY_KERNEL(pinned, REAL(recvmsg, fd, msg, flags));
		if (n >= 0 && msg->msg_controllen != 0 && !san_sock_conf_is_idle() &&
		    !san_sock_attach_is_daemons(fd))
			sock_io_adopt_fds(msg);
		return n;
	}
	n = take_message(fd, f, msg, flags);
	san_sock_fd_put(f);
	return n;
}

static ssize_t
sock_io_receive(int fd, struct fd_sock *f, const struct iovec *iov, size_t nb_iov, int flags,
		struct sockaddr *sa, socklen_t *len)
{
	struct msghdr msg = {
		.msg_name = sa,
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = nb_iov,
	};
	ssize_t n = -1;

	if (sa != NULL && san_sock_touch_is_bad_out(len, sizeof(*len))) {
		errno = EFAULT;
	} else {
		msg.msg_namelen = sa != NULL ? *len : 0;
		n = sock_io_take(fd, f, &msg, flags);
	}
	if (n >= 0 && sa != NULL)
		*len = msg.msg_namelen;
	san_sock_fd_put(f);
	return n;
}

EXPORT ssize_t
recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *sa, socklen_t *len)
{
	const struct iovec iov = {buf, size};
	struct fd_sock *f, *pinned;

	if (sock_io_receiver(fd, flags, &f, &pinned) != 0)
		return -1;
	return f == NULL ? BY_KERNEL(pinned, REAL(recvfrom, fd, buf, size, flags, sa, len)) :
			   sock_io_receive(fd, f, &iov, 1, flags, sa, len);
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
	struct fd_sock *f, *pinned;

	if (sock_io_receiver(fd, size == 0 ? MSG_DONTWAIT : 0, &f, &pinned) != 0)
		return -1;
	if (f == NULL || size == 0) { /* read() of 0 bytes reads nothing, unlike recv() */
		if (f != NULL)
			san_sock_fd_put(f);
		return BY_KERNEL(pinned, REAL(read, fd, buf, size));
	}
	return sock_io_receive(fd, f, &iov, 1, 0, NULL, NULL);
}

EXPORT ssize_t
readv(int fd, const struct iovec *iov, int nb_iov)
{
	struct fd_sock *f, *pinned;

	if (is_nothing(iov, nb_iov))
		return REAL(readv, fd, iov, nb_iov);
	if (sock_io_receiver(fd, 0, &f, &pinned) != 0)
		return -1;
	return f == NULL ? BY_KERNEL(pinned, REAL(readv, fd, iov, nb_iov)) :
			   sock_io_receive(fd, f, iov, (size_t)nb_iov, 0, NULL, NULL);
}

/* At offset -1 it reads the next bytes of a socket. The kernel refuses other offsets. */
EXPORT ssize_t
preadv2(int fd, const struct iovec *iov, int nb_iov, off_t at, int flags)
{
	struct fd_sock *f, *pinned;

	if (is_nothing(iov, nb_iov))
		return REAL(preadv2, fd, iov, nb_iov, at, flags);
	if (sock_io_receiver(fd, (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0, &f, &pinned) != 0)
		return -1;
	if (f != NULL && at == -1 && (flags & ~(RWF_NOWAIT | RWF_HIPRI)) == 0)
		return sock_io_receive(fd, f, iov, (size_t)nb_iov,
				       (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0, NULL, NULL);
	if (f != NULL)
		san_sock_fd_put(f);
	return BY_KERNEL(pinned, REAL(preadv2, fd, iov, nb_iov, at, flags));
}

EXPORT_AS(preadv2, preadv64v2);

/* Checks for buffers whose size the compiler knows. */
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
	struct timespec until, now;
	struct fd_sock *f, *pinned;
	unsigned int i;
	ssize_t n = 0;
	int err = 0;

	if (sock_io_receiver(fd, flags, &f, &pinned) != 0)
		return -1;
	if (f == NULL)
		return BY_KERNEL(pinned, REAL(recvmmsg, fd, msgs, nb, flags, timeout));
	if (timeout != NULL && san_sock_touch_is_bad_out(timeout, sizeof(*timeout)))
		err = EFAULT;
	else if (timeout != NULL &&
		 (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1000000000))
		err = EINVAL;
	if (err != 0) {
		san_sock_fd_put(f);
		return san_sock_real_fail(err);
	}
	if (timeout != NULL) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		timespecadd(&until, timeout, &until);
	}
	nb = nb < IOV_MAX ? nb : IOV_MAX;
	for (i = 0; i < nb; i++) {
		/* the timeout is checked between datagrams, as in the kernel */
		if (i != 0 && timeout != NULL && clock_gettime(CLOCK_MONOTONIC, &now) == 0 &&
		    timespeccmp(&now, &until, >=))
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
	san_sock_fd_put(f);
	if (timeout != NULL && i != 0) { /* what is left */
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (timespeccmp(&now, &until, >=))
			timespecclear(timeout);
		else
			timespecsub(&until, &now, timeout);
	}
	return i != 0 || nb == 0 ? (int)i : -1;
}

/* ---- send ---- */

/*
 * Find the carried socket at *fd*, or NULL and what is pinned: see san_sock_switch_carried(). A
 * socket that sends before it has a name gets one, and may become carried by that. 0; or -1 and
 * errno: a rule refuses *to*.
 */
static int
sock_io_sender(int fd, const struct sockaddr *to, struct fd_sock **f, struct fd_sock **pinned)
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
sock_io_give(int fd, struct fd_sock *f, const struct msghdr *msg, int flags)
{
	ssize_t n = f->is_udp ? san_sock_udp_send(fd, f, msg, flags) :
				san_sock_tcp_send(fd, f, msg, flags);

	if (n < 0 && errno == ENETDOWN && san_sock_carry_return(fd, f))
		n = sendmsg(fd, msg, flags);
	san_sock_fd_put(f);
	return n;
}

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	bool is_bad = san_sock_touch_is_bad(msg, sizeof(*msg));
	struct fd_sock *f, *pinned;
	ssize_t n;

	if (sock_io_sender(fd, is_bad ? NULL : san_sock_carry_goes_to(msg), &f, &pinned) != 0)
		return -1;
	if (f == NULL) {
		n = BY_KERNEL(pinned, REAL(sendmsg, fd, msg, flags));
		/* the kernel has read *msg*, so it is accessible */
		if (n >= 0 && msg->msg_controllen != 0 && !san_sock_conf_is_idle())
			san_sock_eset_sent(msg);
		return n;
	}
	if (is_bad) {
		san_sock_fd_put(f);
		return san_sock_real_fail(EFAULT);
	}
	return sock_io_give(fd, f, msg, flags);
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
	struct fd_sock *f, *pinned;

	if (sock_io_sender(fd, san_sock_carry_goes_to(&msg), &f, &pinned) != 0)
		return -1;
	return f == NULL ? BY_KERNEL(pinned, REAL(sendto, fd, buf, size, flags, sa, len)) :
			   sock_io_give(fd, f, &msg, flags);
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
	struct fd_sock *f, *pinned;

	if (sock_io_sender(fd, NULL, &f, &pinned) != 0)
		return -1;
	return f == NULL ? BY_KERNEL(pinned, REAL(write, fd, buf, size)) :
			   sock_io_give(fd, f, &msg, 0);
}

EXPORT ssize_t
writev(int fd, const struct iovec *iov, int nb_iov)
{
	const struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)nb_iov};
	struct fd_sock *f, *pinned;

	if (is_nothing(iov, nb_iov))
		return REAL(writev, fd, iov, nb_iov);
	if (sock_io_sender(fd, NULL, &f, &pinned) != 0)
		return -1;
	return f == NULL ? BY_KERNEL(pinned, REAL(writev, fd, iov, nb_iov)) :
			   sock_io_give(fd, f, &msg, 0);
}

EXPORT ssize_t
pwritev2(int fd, const struct iovec *iov, int nb_iov, off_t at, int flags)
{
	const struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)nb_iov};
	struct fd_sock *f, *pinned;

	if (at != -1 || is_nothing(iov, nb_iov))
		return REAL(pwritev2, fd, iov, nb_iov, at, flags);
	if (sock_io_sender(fd, NULL, &f, &pinned) != 0)
		return -1;
	if (f != NULL && (flags & ~(RWF_NOWAIT | RWF_HIPRI)) == 0)
		return sock_io_give(fd, f, &msg, (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0);
	if (f != NULL)
		san_sock_fd_put(f);
	return BY_KERNEL(pinned, REAL(pwritev2, fd, iov, nb_iov, at, flags));
}

EXPORT_AS(pwritev2, pwritev64v2);

static int
send_each(int fd, struct mmsghdr *msgs, unsigned int nb, int flags)
{
	unsigned int i;
	ssize_t n;

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

EXPORT int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int nb, int flags)
{
	bool is_bad = nb == 0 || san_sock_touch_is_bad(msgs, sizeof(*msgs));
	struct fd_sock *f, *pinned;

	if (sock_io_sender(fd, is_bad ? NULL : san_sock_carry_goes_to(&msgs[0].msg_hdr), &f,
			   &pinned) != 0)
		return -1;
	/* a rule may refuse each of them, so they are sent one by one */
	if (pinned == NULL || atomic_load_explicit(&pinned->is_kernels, memory_order_relaxed))
		if (f == NULL)
			return BY_KERNEL(pinned, REAL(sendmmsg, fd, msgs, nb, flags));
	san_sock_owner_unpin(pinned);
	if (f != NULL)
		san_sock_fd_put(f);
	return send_each(fd, msgs, nb, flags);
}
