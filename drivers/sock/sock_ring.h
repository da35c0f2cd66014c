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

/** One receiver at a time. False: a signal handler interrupted this thread's own receive. */
bool sock_lock_rx(struct sock_file *f, uint32_t *key);
void sock_unlock_rx(struct sock_file *f, uint32_t key);
bool sock_lock_tx(struct sock_file *f, uint32_t *key);
void sock_unlock_tx(struct sock_file *f, uint32_t key);

/** Take the error that the next call would return; 0: none. */
int sock_take_error(struct sock_file *f);
/** Whether a call that receives would return. */
bool sock_has_something(const struct san_sock_shm *shm);
/** Whether the daemon has ended; checked now and then, for calls that find nothing. */
bool sock_is_deserted(int fd, struct sock_file *f);
/** Wait until a call that receives would return, as a blocking read of *fd*. 0 or errno. */
int sock_wait_something(int fd, struct sock_file *f);
/**
 * Of a stream: wait for more than *seen* bytes or an end. 0 or errno. Afterwards the kernel may not
 * report it readable until sock_bell().
 */
int sock_wait_more(int fd, struct sock_file *f, uint32_t seen);
/** Wait for room to send, as a blocking write. 0 or errno; EAGAIN if it must not block. */
int sock_wait_room(int fd, struct sock_file *f, int flags);
/** A send took all room: from now on the kernel does not report it writable to waiters. */
void sock_is_filled(int fd, struct sock_file *f);
/** Whether there is room. If not, the kernel does not report it writable until there is. */
bool sock_is_writable(int fd, struct sock_file *f);
/** Under the lock to receive: if nothing is left, the kernel stops reporting it readable. */
void sock_unmirror(int fd, struct sock_file *f);
/** If nothing is left to read, the kernel must stop reporting it readable. *is_told*: it has. */
void sock_settle(int fd, struct sock_file *f, bool is_told);

/** Wait up to a second until bytes that the C library wrote to the descriptor are on their way. */
void sock_wait_aside(int fd, const struct sock_file *f);

/** Bytes of all buffers; or -errno. */
ssize_t sock_length(const struct msghdr *msg);
/**
 * Copy *len* bytes from, or to, the buffers behind their first *skip* bytes.
 *
 * @return
 *   The number of bytes copied: less if a buffer is not accessible, which is EFAULT.
 */
size_t sock_gather(void *to, const struct msghdr *msg, size_t skip, size_t len);
size_t sock_scatter(const struct msghdr *msg, size_t skip, const void *from, size_t len);

/** Convert *ip* and *port* to a name of *domain*. Returns its length. */
socklen_t sock_write_name(int domain, const uint8_t ip[16], uint16_t port,
			  struct sockaddr_storage *out);

#endif /* SOCK_RING_H */
