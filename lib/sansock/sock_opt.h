/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_OPT_H
#define SOCK_OPT_H

/**
 * @file
 * Options and names of carried sockets. For most of them the kernel's socket is asked. (UDP-1,
 * UDP-2)
 */

#include <sys/socket.h>

#include "sock_fd.h"

/**
 * Whether this value makes *f* the kernel's. It does not if the kernel's socket, *kernel*, has it
 * already. *text* is set to the option's name.
 */
bool san_sock_opt_kind_is_kernels(int kernel, const struct fd_sock *f, int level, int name,
				  const void *value, socklen_t len, const char **text);
int san_sock_opt_get(int fd, struct fd_sock *f, int level, int name, void *value, socklen_t *len);
int san_sock_opt_set(int fd, struct fd_sock *f, int level, int name, const void *value,
		     socklen_t len);
/** Remember an option that was set for the kernel's socket before it is carried. */
void san_sock_opt_note(struct fd_sock *f, int level, int name, const void *value, socklen_t len);
/** Bits of enum san_sock_option that the kernel's socket has on. */
uint32_t san_sock_opt_bits(int fd);
/** Give the kernel's socket the options that the program has set; remove the daemon's filter. */
void san_sock_opt_restore(int kernel, const struct fd_sock *f);
/** Join the groups that were joined before the socket was carried. */
void san_sock_opt_inherit(int fd, struct fd_sock *f);
/** Copy the timeouts of the kernel's socket to *shadow*, by which calls wait. */
void san_sock_opt_times(int fd, int shadow);
/** Copy SO_LINGER and the timeouts (UDP-12) of the kernel's socket to the stream *f*. */
void san_sock_opt_stream(int kernel, struct fd_sock *f);
int san_sock_opt_connect(int fd, struct fd_sock *f, const struct sockaddr *sa, socklen_t len);
int san_sock_opt_name(int fd, struct fd_sock *f, bool peer, struct sockaddr *sa, socklen_t *len);
int san_sock_opt_shutdown(int fd, struct fd_sock *f, int how);
int san_sock_opt_ioctl(int fd, struct fd_sock *f, unsigned long request, void *arg);
int san_sock_opt_fcntl(int fd, struct fd_sock *f, int cmd, void *arg);

#endif /* SOCK_OPT_H */
