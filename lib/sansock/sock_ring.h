/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_RING_H
#define SOCK_RING_H

/**
 * @file
 * Common to datagrams and streams: locks of the rings, waiting for data or room, lists of buffers,
 * addresses. (UDP-8, AFC-19)
 */

#include <stdbool.h>
#include <sys/socket.h>

#include "sock_fd.h"
#include "sock_lock.h"

/** One receiver at a time. False: a signal handler interrupted this thread's own receive. */
bool san_sock_ring_lock_rx(struct fd_sock *f, uint32_t *key);

/** Take the error that the next call would return; 0: none. */
int san_sock_ring_take_error(struct fd_sock *f);
/** Whether a call that receives would return. */
bool san_sock_ring_has_something(const struct san_sock_shm *shm);
/**
 * Whether the daemon has ended. It is checked once a second, so calls that never wait need it, too.
 */
bool san_sock_ring_is_deserted(int fd, struct fd_sock *f);
/** Wait until a call that receives would return, as a blocking read of *fd*. 0 or errno. */
int san_sock_ring_wait_something(int fd, struct fd_sock *f);
/**
 * Of a stream: wait for more than *seen* bytes or an end. 0 or errno. Afterwards the kernel may not
 * report it readable until san_sock_attach_doorbell().
 */
int san_sock_ring_wait_more(int fd, struct fd_sock *f, uint32_t seen);
/** Wait for room to send, as a blocking write. 0 or errno; EAGAIN if it must not block. */
int san_sock_ring_wait_room(int fd, struct fd_sock *f, int flags);
/** A send took all room: from now on the kernel does not report it writable to waiters. */
void san_sock_ring_note_filled(int fd, struct fd_sock *f);
/** Whether there is room. If not, the kernel does not report it writable until there is. */
bool san_sock_ring_is_writable(int fd, struct fd_sock *f);
/** Under the lock to receive: if nothing is left, the kernel stops reporting it readable. */
void san_sock_ring_unmirror(int fd, struct fd_sock *f);
/**
 * If nothing is left to read, the kernel must stop reporting it readable. *is_notified*: it
 * has.
 */
void san_sock_ring_settle(int fd, struct fd_sock *f, bool is_notified);

/** Wait up to a second until bytes that the C library wrote to the descriptor are on their way. */
void san_sock_ring_wait_pair(int fd, const struct fd_sock *f);

/** Whether the kernel refuses control message *c* of *msg* for its length. */
static inline bool
san_sock_ring_is_cmsg_bad(const struct msghdr *msg, const struct cmsghdr *c)
{
	return c->cmsg_len < sizeof(*c) ||
		c->cmsg_len > (size_t)((const uint8_t *)msg->msg_control +
				       msg->msg_controllen - (const uint8_t *)c);
}

/** Bytes of all buffers; or -errno. */
ssize_t san_sock_ring_length(const struct msghdr *msg);
/**
 * Copy *len* bytes from, or to, the buffers behind their first *skip* bytes.
 *
 * @return
 *   The number of bytes copied: less if a buffer is not accessible, which is EFAULT.
 */
size_t san_sock_ring_gather(void *to, const struct msghdr *msg, size_t skip, size_t len);
size_t san_sock_ring_scatter(const struct msghdr *msg, size_t skip, const void *from, size_t len);

/** Convert *ip* and *port* to a name of *domain*. Returns its length. */
socklen_t san_sock_ring_write_name(int domain, const uint8_t ip[16], uint16_t service,
				   struct sockaddr_storage *out);

#endif /* SOCK_RING_H */
