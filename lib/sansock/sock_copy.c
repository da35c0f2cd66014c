/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Intercepted functions that move bytes between descriptors within the kernel. To or from a carried
 * socket, the bytes go through a buffer. (UDP-1)
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sock_priv.h"

/* Send a file's bytes and advance its offset by the number of bytes sent. */
static ssize_t
copy_file(int fd, int from, off_t *offset, size_t size)
{
	off_t at = offset != NULL ? *offset : lseek(from, 0, SEEK_CUR);
	struct sock_room room;
	ssize_t n;

	if (at < 0)
		return san_sock_real_fail(errno == ESPIPE ? EINVAL : errno);
	san_sock_room_take(&room, SAN_SOCK_DGRAM);
	if (room.mem == NULL)
		return san_sock_real_fail(ENOMEM);
	pthread_cleanup_push(san_sock_room_give, &room);
	n = pread(from, room.mem, size < room.bytes ? size : room.bytes, at);
	if (n > 0)
		n = send(fd, room.mem, (size_t)n, 0);
	pthread_cleanup_pop(1);
	if (n > 0 && offset != NULL)
		*offset += n;
	else if (n > 0)
		lseek(from, at + n, SEEK_SET);
	return n;
}

EXPORT ssize_t
sendfile(int fd, int from, off_t *offset, size_t size)
{
	struct fd_sock *pinned, *f = san_sock_switch_carried(fd, &pinned);

	if (f == NULL)
		return BY_KERNEL(pinned, REAL(sendfile, fd, from, offset, size));
	san_sock_fd_put(f);
	return copy_file(fd, from, offset, size);
}

EXPORT_AS(sendfile, sendfile64);

/* ---- splice ---- */

static bool
sock_copy_fd_blocks(int fd)
{
	return (REAL(fcntl, fd, F_GETFL) & O_NONBLOCK) == 0;
}

/* Whether it is ready, or becomes so while the call may wait. 0 or -1. */
static int
sock_copy_wait_for(int fd, short events, bool may_wait)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n = poll(&p, 1, may_wait ? -1 : 0);

	return n == 0 ? san_sock_real_fail(EAGAIN) : n < 0 ? -1 :
							     0;
}

/* Send all of *n* bytes: they cannot be put back. */
static ssize_t
send_all(int fd, const uint8_t *buf, ssize_t n)
{
	ssize_t k, done;

	for (done = 0; done < n; done += k) {
		k = send(fd, buf + done, (size_t)(n - done), 0);
		if (k < 0 && (errno != EAGAIN || sock_copy_wait_for(fd, POLLOUT, true) != 0))
			return done > 0 ? done : -1;
		k = k < 0 ? 0 : k;
	}
	return n;
}

/*
 * Reads the pipe only when the socket has room. If another thread fills that room meanwhile, the
 * call waits for more.
 */
static ssize_t
from_pipe(int pipe, int fd, const struct fd_sock *f, size_t size, bool may_wait)
{
	struct sock_room room;
	ssize_t n;

	if (sock_copy_wait_for(fd, POLLOUT, may_wait && atomic_load(&f->shm->nonblock) == 0) != 0 ||
	    sock_copy_wait_for(pipe, POLLIN, may_wait && sock_copy_fd_blocks(pipe)) != 0)
		return -1;
	san_sock_room_take(&room, SAN_SOCK_DGRAM);
	if (room.mem == NULL)
		return san_sock_real_fail(ENOMEM);
	pthread_cleanup_push(san_sock_room_give, &room);
	n = REAL(read, pipe, room.mem, size < room.bytes ? size : room.bytes);
	if (n > 0)
		n = send_all(fd, room.mem, n);
	pthread_cleanup_pop(1);
	return n;
}

static ssize_t
to_pipe(int fd, int pipe, size_t size, bool may_wait)
{
	struct sock_room room;
	int used = 0;
	size_t most;
	ssize_t n;

	if (sock_copy_wait_for(pipe, POLLOUT, may_wait && sock_copy_fd_blocks(pipe)) != 0)
		return -1;
	san_sock_room_take(&room, SAN_SOCK_DGRAM);
	if (room.mem == NULL)
		return san_sock_real_fail(ENOMEM);
	pthread_cleanup_push(san_sock_room_give, &room);
	/* one page surely fits into a pipe that is writable and not empty */
	REAL(ioctl, pipe, FIONREAD, &used);
	most = (size_t)(used == 0 ? REAL(fcntl, pipe, F_GETPIPE_SZ) : sysconf(_SC_PAGESIZE));
	most = most < size ? most : size;
	n = recv(fd, room.mem, most < room.bytes ? most : room.bytes, may_wait ? 0 : MSG_DONTWAIT);
	if (n > 0)
		n = REAL(write, pipe, room.mem, (size_t)n);
	pthread_cleanup_pop(1);
	return n;
}

EXPORT ssize_t
splice(int from, loff_t *from_at, int to, loff_t *to_at, size_t size, unsigned int flags)
{
	struct fd_sock *pins[2], *in = san_sock_switch_carried(from, &pins[0]),
				 *out = san_sock_switch_carried(to, &pins[1]);
	bool may_wait = (flags & SPLICE_F_NONBLOCK) == 0;
	struct stat st;
	ssize_t n;

	if (in == NULL && out == NULL) {
		__attribute__((cleanup(san_sock_switch_unpin_at))) struct fd_sock *also = pins[1];

		return BY_KERNEL(pins[0], REAL(splice, from, from_at, to, to_at, size, flags));
	}
	if ((in != NULL && out != NULL) || fstat(in != NULL ? to : from, &st) != 0 ||
	    !S_ISFIFO(st.st_mode))
		n = san_sock_real_fail(EINVAL);
	else if (from_at != NULL || to_at != NULL)
		n = san_sock_real_fail(ESPIPE);
	else if (size == 0)
		n = 0;
	else if (in != NULL)
		n = to_pipe(from, to, size, may_wait);
	else
		n = from_pipe(from, to, out, size, may_wait);
	if (in != NULL)
		san_sock_fd_put(in);
	if (out != NULL)
		san_sock_fd_put(out);
	san_sock_owner_unpin(pins[0]);
	san_sock_owner_unpin(pins[1]);
	return n;
}
