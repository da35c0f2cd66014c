/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_CARRY_H
#define SOCK_CARRY_H

/** @file A socket of the kernel's becomes a carried one. (UDP-1, UDP-2) */

#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "shmq.h"
#include "sock_fd.h"

/**
 * *fd* has just got a name from the kernel, of itself or of its peer: if a rule says so, it is
 * carried from now on. What goes wrong leaves it as it is. *to*: where it is about to send, if
 * that is known before its peer is; or NULL.
 */
void sock_carry(int fd, struct sock_file *f, const struct sockaddr *to);
/**
 * It is about to send, to *to* or (NULL) to its peer. If it has had no name until now: likewise,
 * before that has gone. Where it sends later does not count: it is carried as a whole, or not.
 */
void sock_carry_first(int fd, struct sock_file *f, const struct sockaddr *to);
/** Where *msg* goes, if it says so. Of a name that is too short the kernel will say EINVAL. */
static inline const struct sockaddr *
sock_goes_to(const struct msghdr *msg)
{
	return msg->msg_namelen < sizeof(struct sockaddr) ? NULL : msg->msg_name;
}
/**
 * The kernel's bind(). If somebody has that name, it may be one who has just closed it, and whose
 * socket the daemon still has.
 */
int sock_bind(int fd, const struct sockaddr *sa, socklen_t len);
/** The daemon is asked that often, SETTLE or CLOSED, until it has ended what it has of us: 2 s. */
#define SOCK_SETTLE_STEPS 1000
/** Ask with *type*; true, after a pause: not everything has ended yet. */
bool sock_is_ending(enum shmq_type type);
/** *fd* came from somebody else: if it is a carried socket, it is one here, too. */
void sock_adopt(int fd);
/** All that the process began with. */
void sock_adopt_all(void);
/** What the kernel's *fd* is bound to, in *ss*; NULL: to no port. */
const struct sockaddr *sock_bound_to(int fd, struct sockaddr_storage *ss);
/** Does a rule refuse that it is bound, or sends or connects to *remote*? NULL: to its peer. */
bool sock_is_refused(int fd, const struct sock_file *f, const struct sockaddr *local,
		     const struct sockaddr *remote);
/** Map what is carried as *shadow*, which is to stand for *f*. 0 or -errno. */
int sock_carry_map(struct sock_file *f, int shadow);
/** From now on *shadow* stands wherever the kernel's socket stood. */
void sock_carry_replace(struct sock_file *f, int shadow);
bool sock_is_v6only(int fd, const struct sock_file *f);
/**
 * The daemon that served the UDP socket *f*, which *fd* was, has gone: the kernel serves it from
 * now on, or a new daemon does. What was on its way is lost, as UDP may lose it. (UDP-10)
 *
 * @return
 *   False: nothing has changed. True: what is at *fd* now serves the call; *f* does not any more.
 */
bool sock_return(int fd, struct sock_file *f);
/**
 * The kernel serves *f*, which is carried, from now on, because its program wants *why*. Datagrams
 * that it has not read are lost.
 *
 * @return
 *   False: it can't be, and nothing has changed: it is a stream, or the kernel does not have the
 *   port's device. True: what is at *fd* now is the kernel's for good; *f* is not used any more.
 */
bool sock_give_back(int fd, struct sock_file *f, const char *why);
static inline bool
sock_can_give_back(const struct sock_file *f)
{
	return f->is_udp && f->shm->if_index != 0;
}
/** connect() to no address: the stream is reset, and *fd* is a new TCP socket. 0 or -1. */
int sock_disconnect(int fd, struct sock_file *f);
/** *f*, which is the kernel's, stays so, because its program wants *why*. */
void sock_stay(struct sock_file *f, const char *why);
/** Would it, now? */
bool sock_may_return(const struct sock_file *f);
/** One that was returned, and is used: a new daemon may take it. Tries once in a second at most. */
void sock_carry_again(int fd, struct sock_file *f);
/** The kernel's own socket behind a carried one, for as long as *f* is; -1: not now. */
int sock_kernel(int fd, struct sock_file *f);
/** The kernel's was named anew, or has other options. */
void sock_sync(int fd, struct sock_file *f);
/** It was added to an epoll set, changed there, or (events NULL) taken out. */
void sock_carry_set(struct sock_file *f, int epfd, int fd, const struct epoll_event *ev);
/**
 * From now on the kernel is told when it is readable, as somebody wants who asked for *events*;
 * *is_new*: for the first time.
 */
void sock_arm(struct sock_file *f, uint32_t events, bool is_new);

#endif /* SOCK_CARRY_H */
