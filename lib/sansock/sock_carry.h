/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_CARRY_H
#define SOCK_CARRY_H

/** @file Turns sockets of the kernel into carried ones, and back. (UDP-1, UDP-2) */

#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "shmq.h"
#include "sock_fd.h"

/**
 * *fd* has just been bound or connected: carry it if a rule says so. After an error it stays with
 * the kernel.
 *
 * @param to
 *   Where it is about to send, if that is known before its peer is; or NULL.
 */
void san_sock_carry(int fd, struct fd_sock *f, const struct sockaddr *to);
/**
 * *fd* is about to send, to *to* or (NULL) to its peer. If it is not bound yet, bind it and carry
 * it if a rule says so, before the datagram is sent. Later destinations do not count: a socket is
 * carried as a whole or not at all.
 */
void san_sock_carry_first(int fd, struct fd_sock *f, const struct sockaddr *to);
/** The destination in *msg*, or NULL. For a name that is too short the kernel returns EINVAL. */
static inline const struct sockaddr *
san_sock_carry_goes_to(const struct msghdr *msg)
{
	return msg->msg_namelen < sizeof(struct sockaddr) ? NULL : msg->msg_name;
}
/**
 * The kernel's bind(). If the name is in use, its program may just have closed it while the daemon
 * still has the socket: then it is tried again for a while.
 */
int san_sock_carry_bind(int fd, const struct sockaddr *sa, socklen_t len);
/** Most SETTLE or CLOSED requests until the daemon has released this process's sockets: 2 s. */
#define SOCK_SETTLE_STEPS 1000
/** Make request *type*. True, after a pause: not everything has been released yet. */
bool san_sock_carry_is_ending(enum shmq_type type);
/** The process has received or inherited *fd*: if it is a carried socket, use it as one. */
void san_sock_carry_adopt(int fd);
/** Do so for all descriptors that the process starts with. */
void san_sock_carry_adopt_all(void);
/** The local name of the kernel's *fd*, in *ss*; NULL: it has no port. */
const struct sockaddr *san_sock_carry_bound_to(int fd, struct sockaddr_storage *ss);
/** Whether a rule refuses to bind *fd*, or to send or connect to *remote* (NULL: its peer). */
bool san_sock_carry_is_refused(int fd, const struct fd_sock *f, const struct sockaddr *local,
			       const struct sockaddr *remote);
/** Map the memory of the carried socket whose stand-in is *shadow*, for *f*. 0 or -errno. */
int san_sock_carry_map(struct fd_sock *f, int shadow);
/** Replace the kernel's socket by *shadow* at all descriptors of *f*. */
void san_sock_carry_replace(struct fd_sock *f, int shadow);
bool san_sock_carry_is_v6only(int fd, const struct fd_sock *f);
/**
 * The daemon that served the UDP socket *f* at *fd* has ended: from now on the kernel serves it, or
 * a new daemon. Datagrams in flight are lost, as UDP may lose them. (UDP-10)
 *
 * @return
 *   False: nothing has changed. True: the file that is at *fd* now serves the call, not *f*.
 */
bool san_sock_carry_return(int fd, struct fd_sock *f);
/**
 * Return the carried *f* to the kernel, because its program uses *why*. Unread datagrams are lost.
 *
 * @return
 *   False: nothing has changed, because *f* is a stream or the kernel lacks the port's device.
 *   True: the file that is at *fd* now is the kernel's for good; *f* is not used any more.
 */
bool san_sock_carry_give_back(int fd, struct fd_sock *f, const char *why);
static inline bool
san_sock_carry_can_give_back(const struct fd_sock *f)
{
	return f->is_udp && f->shm->if_index != 0;
}
/** connect() to AF_UNSPEC: reset the stream and make *fd* a new TCP socket. 0 or -1. */
int san_sock_carry_disconnect(int fd, struct fd_sock *f);
/** Leave *f*, which the kernel serves, to it for good, because its program uses *why*. */
void san_sock_carry_stay(struct fd_sock *f, const char *why);
/** Whether san_sock_carry_return() would return it now. */
bool san_sock_carry_may_return(const struct fd_sock *f);
/** A socket that was returned is in use: offer it to a new daemon, once in a second at most. */
void san_sock_carry_again(int fd, struct fd_sock *f);
/** The kernel's socket behind a carried one, valid as long as *f*; -1: not available now. */
int san_sock_carry_kernel(int fd, struct fd_sock *f);
/** The kernel's socket has a new name or other options: update the daemon. */
void san_sock_carry_sync(int fd, struct fd_sock *f);
/** *f* was added to an epoll set, modified there, or (events NULL) removed. */
void san_sock_carry_set(struct fd_sock *f, int epfd, int fd, const struct epoll_event *ev);
/**
 * From now on the kernel reports when it is readable, for a waiter that asked for *events*.
 * *is_new*: for the first time.
 */
void san_sock_carry_arm(struct fd_sock *f, uint32_t events, bool is_new);

#endif /* SOCK_CARRY_H */
