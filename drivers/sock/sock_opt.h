/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_OPT_H
#define SOCK_OPT_H

/**
 * @file
 * Options and names of carried sockets: nearly all are the kernel socket's, which answers for
 * itself. (UDP-1, UDP-2)
 */

#include <sys/socket.h>

#include "sock_fd.h"

int sock_opt_get(int fd, struct sock_file *f, int level, int name, void *value, socklen_t *len);
int sock_opt_set(int fd, struct sock_file *f, int level, int name, const void *value,
		 socklen_t len);
/** Set for the kernel's socket, which may come to be carried. */
void sock_opt_early(struct sock_file *f, int level, int name, const void *value, socklen_t len);
/** What of enum san_sock_option the kernel's socket has. */
uint32_t sock_opt_bits(int fd);
/** The kernel's socket again has the options that its program gave it, and no filter. */
void sock_opt_restore(int kernel, const struct sock_file *f);
/** Groups that were joined early are those of what is carried now. */
void sock_opt_inherit(int fd, struct sock_file *f);
/** Time-outs of the kernel's socket are those of *shadow*, by which a call waits. */
void sock_opt_times(int fd, int shadow);
/** SO_LINGER and the patience (UDP-12) of the kernel's socket are those of the stream *f*. */
void sock_opt_stream(int kernel, struct sock_file *f);
int sock_opt_connect(int fd, struct sock_file *f, const struct sockaddr *sa, socklen_t len);
int sock_opt_name(int fd, struct sock_file *f, bool peer, struct sockaddr *sa, socklen_t *len);
int sock_opt_shutdown(int fd, struct sock_file *f, int how);
int sock_opt_ioctl(int fd, struct sock_file *f, unsigned long request, void *arg);
int sock_opt_fcntl(int fd, struct sock_file *f, int cmd, void *arg);

#endif /* SOCK_OPT_H */
