/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_HOOKS_H
#define SOCK_HOOKS_H

/**
 * @file
 * What the kernel would have asked somebody else: a security module, Landlock, a control group's
 * hooks for connect() and sendto(). They are asked all the same, or the socket is the kernel's.
 * (UDP-9, SYS-7)
 */

#include <stdbool.h>
#include <sys/socket.h>

struct san_sock_rec;
struct sock_file;

/**
 * May this program connect TCP socket *f* to *sa*? No packet goes. False: it may not, or nobody can
 * be asked: the kernel's connect() will say which.
 */
bool sock_hooks_connect(const struct sock_file *f, const struct sockaddr *sa, socklen_t len);
/** May it send to *to*, the address in *rec*? Asked once for each, roughly. 0 or errno. */
int sock_hooks_send(const struct sock_file *f, const struct san_sock_rec *rec,
		    const struct sockaddr *to, socklen_t len);
#endif /* SOCK_HOOKS_H */
