/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_FACTS_H
#define DAEMON_HELPER_FACTS_H

/** @file Properties of a descriptor that a program passed. For helpers only. (SYS-6) */

#include "helper_msg.h"

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

#endif /* DAEMON_HELPER_FACTS_H */
