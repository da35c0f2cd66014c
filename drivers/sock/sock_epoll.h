/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_EPOLL_H
#define SOCK_EPOLL_H

/**
 * @file
 * epoll sets with carried sockets. The kernel has all of these sets, so they can be inherited,
 * nested and shared as usual. A thread that alone waits for a set checks its sockets before it asks
 * the kernel. (UDP-6, UDP-8, AFC-19)
 */

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "sock_fd.h"

/** epoll_ctl() for the carried socket *f*. */
int sock_epoll_ctl(int epfd, int op, int fd, struct sock_file *f, struct epoll_event *ev);
/**
 * epoll_wait().
 *
 * @param timeout_ns
 *   Below 0: no limit.
 * @return
 *   The result; -2: the set is the kernel's, call its function.
 */
int sock_epoll_wait(int epfd, struct epoll_event *ev, int max, int64_t timeout_ns,
		    const sigset_t *mask);
/** The process has created the set *epfd*. */
void sock_epoll_made(int epfd);
/** If *fd* is a set, give it to the kernel: the kernel will wait for it as for any descriptor. */
void sock_epoll_expose(int fd);
/** Do so for the descriptors that *msg* sends. */
void sock_epoll_sent(const struct msghdr *msg);
/** *fd* is about to be replaced: remove it from its set. */
void sock_epoll_leave(int fd);
/** Before fork(), and in the child after it. */
void sock_epoll_share(void);
void sock_epoll_begin_child(void);
/** Take a reference to each socket in a set of this process. */
void sock_epoll_hold(void);

#endif /* SOCK_EPOLL_H */
