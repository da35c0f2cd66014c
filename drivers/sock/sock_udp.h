/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_UDP_H
#define SOCK_UDP_H

/**
 * @file
 * Datagrams of a carried socket. Results and errno are those of the kernel's calls of the same
 * kind. No system call, unless there is somebody to wait for or to wake. (UDP-3, UDP-8)
 */

#include <poll.h>
#include <sys/socket.h>

#include "sock_fd.h"

ssize_t sock_udp_send(int fd, struct sock_file *f, const struct msghdr *msg, int flags);
/** Fills what recvmsg(2) fills. */
ssize_t sock_udp_recv(int fd, struct sock_file *f, struct msghdr *msg, int flags);
/**
 * POLLIN and so on, of those in *events* and of those that are always told. *is_told*: the kernel
 * says that there is something.
 */
short sock_udp_poll(int fd, struct sock_file *f, short events, bool is_told);
/** Bytes of the next datagram: FIONREAD. */
int sock_udp_next(struct sock_file *f);

/** SIOCGSTAMP: when the last datagram came that was received. 0 or -1 and errno. */
int sock_udp_stamp(const struct sock_file *f, bool in_ns, void *arg);

#endif /* SOCK_UDP_H */
