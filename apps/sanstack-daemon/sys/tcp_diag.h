/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_TCP_DIAG_H
#define DAEMON_TCP_DIAG_H

/**
 * @file
 * The kernel's TCP sockets over IPv4 in the daemon's network namespace, by sock_diag(7). (SYS-7)
 *
 * Thread rule: the main thread.
 */

#include <netinet/in.h>
#include <stdint.h>

struct tcp_diag {
	uint64_t cookie; /**< SO_COOKIE: the kernel never gives it to another socket */
	uint32_t inode;  /**< 0: a connection that is not accepted yet */
};

/** Open the channel to the kernel. Call before the sandbox forbids it. 0 or -errno. */
int san_tcp_diag_open(void);
/**
 * Find the socket at *local* that is connected to *peer*. If there is none, find the listener that
 * would accept a connection from there. The time does not depend on the number of sockets.
 *
 * @return
 *   0; -ENOENT: neither exists; or -errno, without the channel or the kernel's module tcp_diag.
 */
int san_tcp_diag_find(const struct sockaddr_in *local, const struct sockaddr_in *peer,
		      struct tcp_diag *out);

#endif /* DAEMON_TCP_DIAG_H */
