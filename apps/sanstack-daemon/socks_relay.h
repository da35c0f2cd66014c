/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_RELAY_H
#define DAEMON_SOCKS_RELAY_H

/**
 * @file
 * A program may accept a token without the library, or by a call that the library does not see
 * (io_uring, a system call of its own). It has a connection of the kernel's then, to the daemon:
 * bytes pass between that and the stream. (UDP-11)
 */

#include <stdint.h>

struct sock_entry;

/** From now on; nobody can claim the token any more. */
void socks_relay_begin(struct sock_entry *s);
/** Move what there is. When to look again, if there is no event before. */
uint64_t socks_relay_step(struct sock_entry *s, uint64_t now_ns);

#endif /* DAEMON_SOCKS_RELAY_H */
