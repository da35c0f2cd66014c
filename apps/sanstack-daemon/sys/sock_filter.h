/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCK_FILTER_H
#define DAEMON_SOCK_FILTER_H

/**
 * @file
 * What the kernel's socket of a carried one may still receive: only what does not arrive at the
 * port, because it would be received twice otherwise. (UDP-4)
 */

#include "helper_msg.h"

/**
 * Drop what the port receives as well. With *local_only* drop also what arrives at any device other
 * than loopback. 0 or -errno.
 */
int san_sock_filter_port(int fd, const struct helper_filter *what);

#endif /* DAEMON_SOCK_FILTER_H */
