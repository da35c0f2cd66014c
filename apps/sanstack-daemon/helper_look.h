/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_LOOK_H
#define DAEMON_HELPER_LOOK_H

/** @file What the kernel says of a descriptor that a program passed. In a helper only. (SYS-6) */

#include "helper_msg.h"

/** Any descriptor: what it has not is 0, or -1. */
void helper_look(int fd, struct helper_facts *facts);
/** An option of a socket; -1: it has none. */
int helper_int(int fd, int level, int name);
/**
 * Make a bound UDP socket keep its port whatever its program does but close it: one that the kernel
 * chose is given back by connect(AF_UNSPEC), one that bind() named is not. (SYS-7)
 *
 * @return
 *   0; -EADDRINUSE: another socket got the port meanwhile; or -errno.
 */
int helper_hold_name(int fd);

#endif /* DAEMON_HELPER_LOOK_H */
