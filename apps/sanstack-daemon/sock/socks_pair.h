/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_PAIR_H
#define DAEMON_SOCKS_PAIR_H

/**
 * @file
 * The socket pair of a carried socket, whose other end the program has (UDP-7). It preserves
 * message boundaries. The daemon sends bytes that wake readers. The program sends the messages of
 * sock_shm.h that wait for room, and data that was written without the library.
 */

#include "socks.h"

/** 0 or -errno; nothing is left open on error. */
int san_socks_pair_make(int *ours, int *theirs);
/** The inode and the cookie of an end that san_socks_pair_make() made. */
uint64_t san_socks_pair_ids(int end, uint64_t *cookie);
/** Notify the lcore of the rings of *s*. */
void san_socks_pair_doorbell(struct app_sock *s);
/**
 * Read the pair, as far as the ring has room. Datagrams are sent by the kernel's socket, which has
 * the same address. Bytes of streams are appended to those in the ring.
 *
 * @return
 *   True: there may be more, try again later.
 */
bool san_socks_pair_read(struct app_sock *s);

#endif /* DAEMON_SOCKS_PAIR_H */
