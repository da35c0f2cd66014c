/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_HOOKS_H
#define SOCK_HOOKS_H

/**
 * @file
 * Checks that the kernel would make by calling others: security modules, Landlock, hooks of control
 * groups for connect() and sendto(). They are called for carried sockets, too; a connection for
 * which that is impossible is left to the kernel. (UDP-9, SYS-7)
 */

#include <stdbool.h>
#include <sys/socket.h>

struct san_sock_rec;
struct fd_sock;

/**
 * Whether the program may connect the TCP socket *f* to *sa*. No packet is sent. False: it may not,
 * or the check is not possible; the kernel's connect() decides.
 */
bool san_sock_hooks_connect(const struct fd_sock *f, const struct sockaddr *sa, socklen_t len);
/** Whether *f* may send to *to*, as in *rec*; checked once per address. 0 or errno. */
int san_sock_hooks_send(const struct fd_sock *f, const struct san_sock_rec *rec,
			const struct sockaddr *to, socklen_t len);
#endif /* SOCK_HOOKS_H */
