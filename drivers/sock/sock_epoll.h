/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_EPOLL_H
#define SOCK_EPOLL_H

/**
 * @file
 * epoll sets that have carried sockets. The kernel has them all, so sets can be inherited, nested
 * and shared as ever; but a thread that waits alone looks at the sockets itself before it asks the
 * kernel, and when it sleeps, one of them wakes it for all. (UDP-6, UDP-8, AFC-19)
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
/** The kernel is to wait for *fd*, if that is a set: as for any other descriptor. */
void sock_epoll_expose(int fd);
/** *to* is what *from* is. */
void sock_epoll_dup(int from, int to);
/** Other processes are about to have our sockets: from now on all who wait for them are told. */
void sock_epoll_share(void);
/** Likewise, if carried sockets are among the descriptors that *msg* has. */
void sock_epoll_sent(const struct msghdr *msg);
/** In the child, after fork(). */
void sock_epoll_begin_child(void);
/** What the kernel was told of *f* was taken: it may have been what wakes another thread. */
void sock_epoll_taken(struct sock_file *f);

#endif /* SOCK_EPOLL_H */
