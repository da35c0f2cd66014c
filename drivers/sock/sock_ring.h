/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_RING_H
#define SOCK_RING_H

/**
 * @file
 * What is the same for datagrams and for streams: locks of the rings, sleep until there is
 * something or room, lists of buffers, addresses. (UDP-8, AFC-19)
 */

#include <stdbool.h>
#include <sys/socket.h>

#include "sock_fd.h"

/** To receive, one at a time. False: this thread does already, or nobody can. */
bool sock_lock_rx(struct sock_file *f, uint32_t *key);
void sock_unlock_rx(struct sock_file *f, uint32_t key);
bool sock_lock_tx(struct sock_file *f, uint32_t *key);
void sock_unlock_tx(struct sock_file *f, uint32_t key);

/** The error that the next call returns, which is this one; 0: none. */
int sock_take_error(struct sock_file *f);
/** Would a call that receives return? */
bool sock_has_something(const struct san_sock_shm *shm);
/** It would not. Has the daemon gone? That is looked at now and then; then it has something. */
bool sock_is_deserted(int fd, struct sock_file *f);
/** Until it would, as a read of *fd* that blocks. 0 or errno. */
int sock_wait_something(int fd, struct sock_file *f);
/**
 * Of a stream: until there are more than *seen* bytes, or an end. Likewise. The kernel may not say
 * readable then, until sock_bell().
 */
int sock_wait_more(int fd, struct sock_file *f, uint32_t seen);
/** Until there is room to send, as a write that blocks. 0 or errno: EAGAIN if it does not block. */
int sock_wait_room(int fd, struct sock_file *f, int flags);
/** What was sent took all room that there was: the kernel, if somebody asks it, does not say so. */
void sock_is_filled(int fd, struct sock_file *f);
/** Is there? If not, the kernel does not say so either until there is. */
bool sock_is_writable(int fd, struct sock_file *f);
/** Under the lock to receive: if nothing is left, the kernel does not say readable any more. */
void sock_unmirror(int fd, struct sock_file *f);
/** The kernel must not go on saying readable to who has nothing to read. */
void sock_settle(int fd, struct sock_file *f, bool is_told);

/** Wait, a second at most, for what the C library wrote to the descriptor to be on its way. */
void sock_wait_aside(int fd, const struct sock_file *f);

/** Bytes of all buffers, or -errno. */
ssize_t sock_length(const struct msghdr *msg);
/**
 * Copy *len* bytes from, or to, the buffers behind their first *skip* bytes.
 *
 * @return
 *   How many: less if a buffer is no memory, which the kernel calls EFAULT.
 */
size_t sock_gather(void *to, const struct msghdr *msg, size_t skip, size_t len);
size_t sock_scatter(const struct msghdr *msg, size_t skip, const void *from, size_t len);

/** *ip* as a socket of *domain* knows it. */
socklen_t sock_write_name(int domain, const uint8_t ip[16], uint16_t port,
			  struct sockaddr_storage *out);

#endif /* SOCK_RING_H */
