/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "closer.h"
#include "sock_shm.h"
#include "socks_pair.h"
#include "socks_priv.h"

#define READ_MAX 32 /* messages of one before the next one's */

/* Our end has a name, by which a program knows what it inherited (an abstract one). */
static int
name_pair(int pair)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	uint64_t random[2];
	int n;

	arc4random_buf(random, sizeof(random)); /* that nobody can be first */
	n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1,
		     SAN_SOCK_PEER "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	return bind(pair, (const struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0 ?
		0 :
		-errno;
}

int
socks_pair_make(int *ours, int *theirs)
{
	/* of bytes that wake one is enough, or for edges as many as the kernel has datagrams */
	const int wakes = 100000, full = (SAN_SOCK_FULL + 64) / 2; /* the kernel doubles it */
	const int on = 1;
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
		return -errno;
	*ours = fds[0];
	*theirs = fds[1];
	setsockopt(*ours, SOL_SOCKET, SO_SNDBUF, &wakes, sizeof(wakes));
	setsockopt(*theirs, SOL_SOCKET, SO_SNDBUF, &full, sizeof(full));
	/* so a message without bytes says who sent it, and the end does not */
	setsockopt(*ours, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	rc = name_pair(*ours);
	if (rc == 0)
		return 0;
	close(*ours);
	close(*theirs);
	*ours = *theirs = -1;
	return rc;
}

/*
 * What was written to the program's end of the pair, up to *size* bytes; its length, or -1: nothing
 * more. Sockets may come with it that linger when they are closed, so they are not closed here.
 */
static ssize_t
take(const struct sock_entry *s, void *data, size_t size)
{
	union {
		char buf[CMSG_SPACE(SHMQ_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {data, size};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(s->pair, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	struct cmsghdr *c;
	size_t at;
	int fd;

	for (c = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL; c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_type != SCM_RIGHTS)
			continue;
		for (at = CMSG_LEN(0); at < c->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, (const char *)c + at, sizeof(fd));
			closer_put(fd, s->uid);
		}
	}
	return n == 0 && msg.msg_controllen == 0 ? -1 : n;
}

/* Is there room for the next message? For one that waits for it: now, not a moment ago. */
static bool
may_read(struct sock_entry *s, bool is_full)
{
	if (closer_waiting(s->uid) >= CLOSER_EACH)
		return false;
	if (s->kind == SOCKS_LISTENER)
		return true;
	if (s->kind == SOCKS_STREAM && !is_full && !socks_tcp_aside(s, NULL, 0))
		return false;
	return san_sock_has_room(s->mem.mem,
				 s->kind == SOCKS_STREAM ? SAN_SOCK_STREAM_TX_BYTES :
							   SAN_SOCK_TX_BYTES);
}

/* Is it what waits for room? Of that no more than its head is ever copied. False: there is none. */
static bool
peek(const struct sock_entry *s, bool *is_full)
{
	uint8_t head[SAN_SOCK_NUDGE];
	ssize_t n = recv(s->pair, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);

	*is_full = n >= (ssize_t)sizeof(head) && san_sock_is_full(head, (size_t)n);
	return n >= 0;
}

bool
socks_pair_read(struct sock_entry *s)
{
	static uint8_t data[SAN_SOCK_ASIDE];
	bool is_full;
	ssize_t n;
	int i;

	for (i = 0; i < READ_MAX; i++) {
		if (!peek(s, &is_full))
			return false;
		if (!may_read(s, is_full))
			return true;
		/* its program sees it taken when it goes: what it writes then goes behind it */
		if (s->kind == SOCKS_STREAM && !is_full &&
		    (n = recv(s->pair, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT)) > 0)
			socks_tcp_aside(s, data, (size_t)n);
		n = take(s, data, is_full ? SAN_SOCK_NUDGE : sizeof(data));
		if (n < 0)
			return false;
		if (s->kind == SOCKS_DGRAM && !is_full)
			/* lost, as datagrams may be, if it does not go now */
			send(s->kernel, data, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	return true;
}
