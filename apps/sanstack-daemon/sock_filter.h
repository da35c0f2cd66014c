/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCK_FILTER_H
#define DAEMON_SOCK_FILTER_H

/**
 * @file
 * What the kernel's socket, in whose place a program has a carried one, may receive: what does not
 * come by the port, for otherwise it would be there twice (UDP-4).
 */

#include "helper_msg.h"

/**
 * Nothing that the port has as well; with *local_only* nothing of other devices than the loopback
 * device either. 0, or -errno.
 */
int sock_filter_port(int fd, const struct helper_filter *what);

#endif /* DAEMON_SOCK_FILTER_H */
