/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_TCP_H
#define SOCK_TCP_H

/**
 * @file
 * TCP sockets that are carried as streams. Results and errno are those of the kernel's calls.
 * Moving bytes takes no system call, unless one side must wait or be woken. (UDP-1, UDP-8, AFC-1,
 * AFC-19)
 */

#include <poll.h>
#include <sys/socket.h>

#include "sock_fd.h"

/**
 * Connect *fd* as a stream, if a rule and the peer carry it. Called before the kernel connects it.
 *
 * @return
 *   0: it is connected. -EINPROGRESS: call the kernel's connect(). -EADDRNOTAVAIL: another stream
 *   has the same pair of addresses and ports.
 */
int san_sock_tcp_conn_connect(int fd, struct fd_sock *f, const struct sockaddr *sa, socklen_t len);
/** A descriptor of *f* was closed: learn how long connections to its peer are. */
void san_sock_tcp_conn_closed(const struct fd_sock *f);
/** The kernel's *fd* listens: register it at the daemon if a rule carries it. */
void san_sock_tcp_conn_listen(int fd, struct fd_sock *f);
/**
 * The program waits for connections of listener *f*, or accepts one: from now on the daemon offers
 * it streams. A program that waits without the library never gets any.
 */
void san_sock_tcp_conn_wait(int fd, struct fd_sock *f);
/**
 * *fd* was accepted from a listener of the kernel. If it is a token, replace it by the stream, and
 * set *sa* to the stream's peer. *room*: bytes of *sa*.
 */
void san_sock_tcp_conn_accepted(int fd, struct sockaddr *sa, socklen_t *len, socklen_t room);

ssize_t san_sock_tcp_send(int fd, struct fd_sock *f, const struct msghdr *msg, int flags);
ssize_t san_sock_tcp_recv(int fd, struct fd_sock *f, struct msghdr *msg, int flags);
/** See san_sock_udp_poll(). */
short san_sock_tcp_poll(int fd, struct fd_sock *f, short events, bool is_notified);
int san_sock_tcp_shutdown(int fd, struct fd_sock *f, int how);
/** A descriptor was closed: if it was the last one and has SO_LINGER, wait until all is sent. */
void san_sock_tcp_linger(struct fd_sock *f);
/** getsockname() and getpeername(): the kernel's socket does not have these names. */
int san_sock_tcp_name(const struct fd_sock *f, bool peer, struct sockaddr *sa, socklen_t *len);
/** The same, also when it is not connected any more. */
int san_sock_tcp_name_of(const struct fd_sock *f, bool peer, struct sockaddr *sa, socklen_t *len);
/** State as in the kernel: TCP_ESTABLISHED and so on. */
int san_sock_tcp_state(const struct fd_sock *f);
/** Bytes that are not read yet (FIONREAD), and bytes that are not sent yet. */
int san_sock_tcp_unread(const struct fd_sock *f);
int san_sock_tcp_unsent(const struct fd_sock *f);

#endif /* SOCK_TCP_H */
