/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_EPOLL_H
#define SOCK_EPOLL_H

/**
 * @file
 * epoll sets that have carried sockets. The kernel has them all, so sets can be inherited, nested
 * and shared as ever; but a thread that waits alone looks at the sockets itself before it asks the
 * kernel. (UDP-6, UDP-8, AFC-19)
 */

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "sock_fd.h"

/** epoll_ctl() of *f*, which is carried. */
int sock_epoll_ctl(int epfd, int op, int fd, struct sock_file *f, struct epoll_event *ev);
/**
 * epoll_wait().
 *
 * @param timeout_ns
 *   Below 0: for ever.
 * @return
 *   Its result; -2: there is nothing of ours in it, go on with the kernel's.
 */
int sock_epoll_wait(int epfd, struct epoll_event *ev, int max, int64_t timeout_ns,
		    const sigset_t *mask);
/** *epfd* was made here. */
void sock_epoll_made(int epfd);
/** The kernel is to wait for *fd*, if that is a set: as for any other descriptor. */
void sock_epoll_expose(int fd);
/** Likewise those among the descriptors that *msg* has. */
void sock_epoll_sent(const struct msghdr *msg);
/** *fd* is about to be something else: in a set of ours it is none any more. */
void sock_epoll_leave(int fd);
/** Before a fork(), and in the child after it. */
void sock_epoll_share(void);
void sock_epoll_begin_child(void);
/** Hold each socket that is in a set of ours. */
void sock_epoll_hold(void);

#endif /* SOCK_EPOLL_H */
