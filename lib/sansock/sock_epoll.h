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
int san_sock_eset_ctl(int epfd, int op, int fd, struct fd_sock *f, struct epoll_event *ev);
/**
 * epoll_wait().
 *
 * @param timeout_ns
 *   Below 0: no limit.
 * @return
 *   The result; -2: the set is the kernel's, call its function.
 */
int san_sock_epoll_wait(int epfd, struct epoll_event *ev, int max, int64_t timeout_ns,
			const sigset_t *mask);
/** The process has created the set *epfd*. */
void san_sock_eset_made(int epfd);
/** If *fd* is a set, give it to the kernel: the kernel will wait for it as for any descriptor. */
void san_sock_eset_expose(int fd);
/** Do so for the descriptors that *msg* sends. */
void san_sock_eset_sent(const struct msghdr *msg);
/** *fd* is about to be replaced: remove it from its set. */
void san_sock_eset_leave(int fd);
/** Before fork(), and in the child after it. */
void san_sock_eset_share(void);
void san_sock_eset_begin_child(void);
/** Take a reference to each socket in a set of this process. */
void san_sock_eset_hold(void);

#endif /* SOCK_EPOLL_H */
