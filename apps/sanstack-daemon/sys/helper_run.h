/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_RUN_H
#define DAEMON_HELPER_RUN_H

/**
 * @file
 * The process of a helper. It makes the system calls on the descriptors that its user's programs
 * passed, and knows nothing of ports, applications or packets. (SYS-6)
 */

#include <stdbool.h>

#include "helper_msg.h"

/**
 * Begin to serve.
 *
 * @param control
 *   Questions and answers: helper_msg.h.
 * @param data
 *   Datagrams.
 * @return
 *   A descriptor that is readable when san_helper_run_turn() has something to do. Who ends helping
 *   without ending the process closes it, and the two channels.
 */
int san_helper_run_begin(int control, int data);
/**
 * Serve what there is.
 *
 * @param waits
 *   Wait until there is something.
 * @return
 *   False: the daemon has ended, or has asked the helper to end.
 */
bool san_helper_run_turn(bool waits);

/* ---- helper_facts.c: properties of a descriptor that a program passed (SYS-6) ---- */

/** Examine any descriptor. A property that it does not have is 0 or -1. */
void san_helper_facts_read(int fd, struct helper_facts *facts);
/** The value of a socket option; -1: there is none. */
int san_helper_facts_int(int fd, int level, int name);
/**
 * Bind a UDP socket to its port explicitly. connect(AF_UNSPEC) releases a port that the kernel
 * chose, but not one that bind() named, so only close() releases it afterwards. (SYS-7)
 *
 * @return
 *   0; -EADDRINUSE: another socket got the port meanwhile; or -errno.
 */
int san_helper_facts_hold_name(int fd);

/**
 * Filter what the kernel's socket of a carried one may still receive (UDP-4): drop what the port
 * receives as well. With *local_only* drop also what arrives at any device other than loopback. 0
 * or -errno.
 */
int san_sock_filter_port(int fd, const struct helper_filter *what);

#endif /* DAEMON_HELPER_RUN_H */
