/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_TCP_H
#define SOCK_TCP_H

/**
 * @file
 * TCP sockets that are carried as streams. Results and errno are those of the kernel's calls of
 * the same kind. No system call for bytes, unless there is somebody to wait for or to wake.
 * (UDP-1, UDP-8, AFC-1, AFC-19)
 */

#include <poll.h>
#include <sys/socket.h>

#include "sock_fd.h"

/**
 * Before the kernel connects *fd*: if a rule and the peer carry it, it is connected now.
 *
 * @return
 *   0: it is. -EINPROGRESS: go on with the kernel's connect(). -EADDRNOTAVAIL: another stream has
 *   the same two addresses and ports.
 */
int sock_tcp_connect(int fd, struct sock_file *f, const struct sockaddr *sa, socklen_t len);
/** The kernel's *fd* listens: if a rule says so, its daemon is told. */
void sock_tcp_listen(int fd, struct sock_file *f);
/**
 * A listener of the kernel gave *fd*. If that is a stream it is carried from now on, and *sa* is
 * whom it is from.
 */
void sock_tcp_accepted(int fd, struct sockaddr *sa, socklen_t *len, socklen_t room);

ssize_t sock_tcp_send(int fd, struct sock_file *f, const struct msghdr *msg, int flags);
ssize_t sock_tcp_recv(int fd, struct sock_file *f, struct msghdr *msg, int flags);
/** See sock_udp_poll(). */
short sock_tcp_poll(int fd, struct sock_file *f, short events, bool is_told);
int sock_tcp_shutdown(int fd, struct sock_file *f, int how);
/** A descriptor of it was closed: if it was the last and has SO_LINGER, wait until all is sent. */
void sock_tcp_linger(struct sock_file *f);
/** Names that the kernel's socket does not have. */
int sock_tcp_name(const struct sock_file *f, bool peer, struct sockaddr *sa, socklen_t *len);
/** ... also of one that is not connected any more. */
int sock_tcp_name_of(const struct sock_file *f, bool peer, struct sockaddr *sa, socklen_t *len);
/** As the kernel names it: TCP_ESTABLISHED and so on. */
int sock_tcp_state(const struct sock_file *f);
/** FIONREAD, and bytes that are not sent yet. */
int sock_tcp_unread(const struct sock_file *f);
int sock_tcp_unsent(const struct sock_file *f);

#endif /* SOCK_TCP_H */
