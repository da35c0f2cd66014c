/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_UDP_H
#define SOCK_UDP_H

/**
 * @file
 * Datagrams of a carried socket. Results and errno are those of the kernel's calls. Moving
 * datagrams takes no system call, unless one side must wait or be woken. (UDP-3, UDP-8)
 */

#include <poll.h>
#include <sys/socket.h>

#include "sock_fd.h"

ssize_t san_sock_udp_send(int fd, struct fd_sock *f, const struct msghdr *msg, int flags);
/** Sets in *msg* what recvmsg(2) sets. */
ssize_t san_sock_udp_recv(int fd, struct fd_sock *f, struct msghdr *msg, int flags);
/**
 * POLLIN and so on: those of *events*, and those that are always reported. *is_notified*: the
 * kernel reports the descriptor readable.
 */
short san_sock_udp_poll(int fd, struct fd_sock *f, short events, bool is_notified);
/** Bytes of the next datagram (FIONREAD). */
int san_sock_udp_next(struct fd_sock *f);

/** Time of the last datagram that was received: SIOCGSTAMP, SIOCGSTAMPNS. 0, or -1 and errno. */
int san_sock_udp_stamp(const struct fd_sock *f, bool in_ns, void *arg);

#endif /* SOCK_UDP_H */
