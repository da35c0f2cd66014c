/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shmq.h"

#define FIRST_PID 1

/** A message with room for what comes with it: descriptors, and credentials. */
struct shmq_msg {
	struct msghdr m;
	struct iovec iov;
	union {
		char buf[CMSG_SPACE(SHMQ_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
};

/* *room*: bytes for what comes with it. */
static void
shmq_msg_init(struct shmq_msg *b, const void *msg, size_t size, size_t room)
{
	b->iov = (struct iovec){.iov_base = (void *)(uintptr_t)msg, .iov_len = size};
	b->m = (struct msghdr){
		.msg_iov = &b->iov,
		.msg_iovlen = 1,
		.msg_control = room != 0 ? b->control.buf : NULL,
		.msg_controllen = room,
	};
}

/* A message to send, with *len* bytes at *data* of kind *type*. */
static void
shmq_msg_init_with(struct shmq_msg *b, const void *msg, size_t size, int type, const void *data,
		   size_t len)
{
	struct cmsghdr *c;

	shmq_msg_init(b, msg, size, CMSG_SPACE(len));
	memset(b->control.buf, 0, CMSG_SPACE(len));
	c = CMSG_FIRSTHDR(&b->m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
}

int
san_shmq_send_many(int sock, const void *msg, size_t size, const int *fds, uint32_t nb, bool wait)
{
	struct shmq_msg b;
	ssize_t n;

	if (nb != 0)
		shmq_msg_init_with(&b, msg, size, SCM_RIGHTS, fds, nb * sizeof(int));
	else
		shmq_msg_init(&b, msg, size, 0);
	do
		n = sendmsg(sock, &b.m, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size ? 0 : n < 0 ? -errno :
						-EPROTO;
}

int
san_shmq_send(int sock, const void *msg, size_t size, int fd, bool wait)
{
	return san_shmq_send_many(sock, msg, size, &fd, fd >= 0, wait);
}

static int
shmq_send_as(int sock, const void *msg, size_t size, pid_t pid)
{
	const struct ucred cred = {.pid = pid, .uid = getuid(), .gid = getgid()};
	struct shmq_msg b;

	shmq_msg_init_with(&b, msg, size, SCM_CREDENTIALS, &cred, sizeof(cred));
	return sendmsg(sock, &b.m, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -errno;
}

int
san_shmq_send_proof(int sock, const void *msg, size_t size)
{
	int rc = shmq_send_as(sock, msg, size, FIRST_PID);

	/* explicitly: the kernel adds none before the other end has set SO_PASSCRED */
	return rc == -EPERM ? shmq_send_as(sock, msg, size, getpid()) : rc;
}

bool
san_shmq_is_root(const struct ucred *from)
{
	return from->uid == 0 && from->pid == FIRST_PID;
}

/* Store all descriptors of a message; returns their number. */
static uint32_t
take_fds(struct msghdr *m, int fds[SHMQ_FDS])
{
	struct cmsghdr *c;
	uint32_t nb, n = 0;

	for (c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		nb = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(&fds[n], CMSG_DATA(c), nb * sizeof(int));
		n += nb;
	}
	return n;
}

/* After san_shmq_peek_init() a message carries credentials; the end of the connection does not. */
static bool
has_ucred(struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);

	return c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS;
}

/* A peer that has closed with unread messages causes one error, ahead of those that it sent. */
static ssize_t
shmq_recvmsg(int sock, struct msghdr *m, int flags)
{
	bool is_reset = false;
	ssize_t n;

	do {
		n = recvmsg(sock, m, flags | MSG_CMSG_CLOEXEC);
		is_reset = n < 0 && errno == ECONNRESET && !is_reset;
	} while (n < 0 && (errno == EINTR || is_reset));
	return n;
}

int
san_shmq_recv_fds(int sock, void *msg, size_t size, int fds[SHMQ_FDS], uint32_t *nb_fds,
		  uint32_t max, bool wait)
{
	struct shmq_msg b;
	ssize_t n;

	*nb_fds = 0;
	/* room for all descriptors: the kernel would close the others here, which may take long */
	shmq_msg_init(&b, msg, size, sizeof(b.control.buf));
	n = shmq_recvmsg(sock, &b.m, wait ? 0 : MSG_DONTWAIT);
	if (n < 0)
		return errno == ECONNRESET ? -ENOTCONN : -errno;
	*nb_fds = take_fds(&b.m, fds);
	if (n == (ssize_t)size && *nb_fds <= max && (b.m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return 0;
	return n == 0 && !has_ucred(&b.m) ? -ENOTCONN : -EPROTO;
}

int
san_shmq_peek(int sock, void *msg, size_t size, bool *has_fds, struct ucred *from)
{
	struct shmq_msg b;
	ssize_t n;

	*has_fds = false;
	/* the credentials of san_shmq_peek_init() fill it, so that no descriptor fits */
	shmq_msg_init(&b, msg, size, CMSG_SPACE(sizeof(struct ucred)));
	n = shmq_recvmsg(sock, &b.m, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0)
		return errno == ECONNRESET ? -ENOTCONN : -errno;
	*has_fds = (b.m.msg_flags & MSG_CTRUNC) != 0;
	if (from != NULL)
		*from = (struct ucred){.uid = (uid_t)-1};
	if (from != NULL && has_ucred(&b.m))
		memcpy(from, CMSG_DATA(CMSG_FIRSTHDR(&b.m)), sizeof(*from));
	if (n == (ssize_t)size && (b.m.msg_flags & MSG_TRUNC) == 0)
		return 0;
	return n == 0 && !*has_fds && !has_ucred(&b.m) ? -ENOTCONN : -EPROTO;
}

int
san_shmq_peek_init(int sock)
{
	const int on = 1;

	return setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 ? 0 : -errno;
}

ssize_t
san_shmq_recv_bytes(int sock, void *bytes, size_t size, int flags)
{
	struct shmq_msg b;

	shmq_msg_init(&b, bytes, size, 0);
	return shmq_recvmsg(sock, &b.m, flags | MSG_DONTWAIT);
}

void
san_shmq_skip(int sock)
{
	san_shmq_recv_bytes(sock, NULL, 0, MSG_TRUNC);
}

void
san_shmq_hang_up(int sock)
{
	shutdown(sock, SHUT_RDWR);
	san_shmq_peek_init(sock);
}

int
san_shmq_recv(int sock, void *msg, size_t size, int *fd, bool wait)
{
	int fds[SHMQ_FDS] = {-1};
	uint32_t nb_fds;
	int rc = san_shmq_recv_fds(sock, msg, size, fds, &nb_fds, 1, wait);

	*fd = rc == 0 ? fds[0] : -1;
	while (rc != 0 && nb_fds > 0)
		close(fds[--nb_fds]);
	return rc;
}

/* ---- wake-ups ---- */

#define PAIR_BYTES 4096 /* one byte is enough to wake */

int
san_shmq_pair(int *ours, int *theirs)
{
	const int bytes = PAIR_BYTES;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
		return -errno;
	/*
	 * Otherwise the application could put a lingering socket in there, and closing our end
	 * would close it.
	 */
	shutdown(fds[0], SHUT_RD);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*ours = fds[0];
	*theirs = fds[1];
	return 0;
}

void
san_shmq_pair_wake(int ours)
{
	send(ours, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int
san_shmq_pair_drain(int theirs)
{
	char bytes[64];
	ssize_t n;

	do
		n = recv(theirs, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 && errno == EAGAIN ? 0 : -EIO;
}
