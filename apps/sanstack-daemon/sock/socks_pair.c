/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The socket pair of a carried socket, whose other end the program has (UDP-7). It preserves
 * message boundaries. The daemon sends bytes that wake readers. The program sends the messages of
 * sock_shm.h that wait for room, and data that was written without the library.
 */

#include <inttypes.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "socks_priv.h"

#define READ_MAX 32 /* messages of one pair per turn */

int
san_socks_pair_make(struct app_sock *s, int *shadow)
{
	/*
	 * Limits of unread messages. One wake byte suffices, except for edge-triggered polling,
	 * which needs as many as the kernel would queue datagrams.
	 */
	const int wakes = 100000, full = (SAN_SOCK_FULL + 64) / 2; /* the kernel doubles it */
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t len;
	uint64_t random[2];
	struct stat st;
	int fds[2], n, rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
		return -errno;
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &wakes, sizeof(wakes));
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &full, sizeof(full));
	rc = san_shmq_peek_init(fds[0]);
	/* an abstract address of our end, by which a program recognizes an inherited socket */
	arc4random_buf(random, sizeof(random)); /* random, so that nothing else can bind it first */
	n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1,
		     SAN_SOCK_PEER "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	if (rc == 0 && bind(fds[0], (const struct sockaddr *)&addr, len) != 0)
		rc = -errno;
	if (rc != 0) {
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	s->pair = fds[0];
	*shadow = fds[1];
	len = sizeof(s->shadow);
	if (fstat(*shadow, &st) == 0 &&
	    getsockopt(*shadow, SOL_SOCKET, SO_COOKIE, &s->shadow, &len) == 0)
		s->inode = st.st_ino;
	return 0;
}

/* Check that there is room for the message. One that waits for room needs the current state. */
static bool
may_read(struct app_sock *s, bool is_full)
{
	uint32_t size = s->kind == SOCKS_STREAM ? SAN_SOCK_STREAM_TX_BYTES : SAN_SOCK_TX_BYTES;

	if (s->kind == SOCKS_LISTENER)
		return true;
	if (is_full)
		return san_sock_shm_need_not_wait(s->mem.mem, size);
	return (s->kind != SOCKS_STREAM || san_socks_call(s, LCORE_MAY_APPEND, NULL) != 0) &&
		san_sock_shm_has_room(s->mem.mem, size);
}

bool
san_socks_pair_read(struct app_sock *s)
{
	const struct helper_msg discard = {.op = HELPER_DISCARD, .sock = san_socks_name(s)};
	const struct helper_dgram d = {.sock = san_socks_name(s), .handle = s->kernel};
	static uint8_t data[SAN_SOCK_APPEND];
	uint8_t head[SAN_SOCK_NUDGE]; /* of a message that waits for room, no more is copied */
	struct helper *h = NULL;
	bool has_fds, is_full;
	ssize_t len, n;
	int i, rc;

	for (i = 0; i < READ_MAX && !s->is_discarding; i++) {
		rc = san_shmq_peek(s->pair, head, sizeof(head), &has_fds, NULL);
		len = san_shmq_recv_bytes(s->pair, NULL, 0, MSG_PEEK | MSG_TRUNC);
		if ((rc != 0 && rc != -EPROTO) || len < 0)
			return false;
		is_full = (size_t)len >= sizeof(head) && san_sock_shm_is_full(head, (size_t)len);
		s->is_waited_for |= s->kind == SOCKS_LISTENER;
		if (is_full && s->kind != SOCKS_LISTENER)
			san_socks_call(s, LCORE_DOORBELL, NULL);
		if (!may_read(s, is_full) ||
		    (has_fds && (h = san_helper_of(s->owner, false)) == NULL))
			return true;
		/*
		 * Data that was written without the library. Removing it makes the pair writable,
		 * so forward it first to keep the order.
		 */
		if (!is_full && s->kind != SOCKS_LISTENER) {
			n = san_shmq_recv_bytes(s->pair, data, sizeof(data), MSG_PEEK);
			if (n > 0 && s->kind == SOCKS_STREAM)
				san_socks_call(s, LCORE_APPEND, &(struct iovec){data, (size_t)n});
			else if (n >= 0 && s->kind == SOCKS_DGRAM && s->kernel >= 0)
				san_helper_send(s->helper, &d, data, (size_t)n);
		}
		if (!has_fds) {
			san_shmq_skip(s->pair);
			continue;
		}
		/* the helper removes it and closes the descriptors */
		s->is_discarding = san_helper_ask(h, &discard, s->pair) == 0;
		if (!s->is_discarding) {
			s->is_over = true; /* the message would be forwarded again */
			return false;
		}
	}
	return !s->is_discarding;
}
