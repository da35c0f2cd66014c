/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_RELAY_H
#define DAEMON_SOCKS_RELAY_H

/**
 * @file
 * A program may accept a token without the library, or with a call that the library does not see
 * (io_uring, a direct system call). Then it has a connection of the kernel to the daemon, and the
 * daemon moves bytes between that and the stream. (UDP-11)
 */

#include <stdint.h>

struct app_sock;

/** Start to relay. The token can't be claimed any more. */
void san_socks_relay_begin(struct app_sock *s);
/** Move pending bytes. Returns when to call again, unless an event comes before. */
uint64_t san_socks_relay_step(struct app_sock *s, uint64_t now_ns);

#endif /* DAEMON_SOCKS_RELAY_H */
