/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_OPT_KIND_H
#define SOCK_OPT_KIND_H

/**
 * @file
 * Which options only the kernel has. A socket that gets one before it is carried stays with the
 * kernel. A carried UDP socket goes back to the kernel if that has the port's device. A stream, or
 * a socket of a port without such a device, refuses the option (ENOPROTOOPT). (UDP-9)
 */

#include <stdbool.h>
#include <sys/socket.h>

#include "sock_fd.h"

/**
 * Whether this value makes *f* the kernel's. It does not if the kernel's socket, *kernel*, has it
 * already.
 *
 * @param[out] text
 *   The option's name.
 */
bool san_sock_opt_kind_is_kernels(int kernel, const struct fd_sock *f, int level, int name,
				  const void *value, socklen_t len, const char **text);

#endif /* SOCK_OPT_KIND_H */
