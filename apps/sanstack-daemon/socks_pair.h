/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_PAIR_H
#define DAEMON_SOCKS_PAIR_H

/**
 * @file
 * The pair of sockets whose other end stands in a program for a carried socket (UDP-7). It keeps
 * messages apart. Ours are bytes that wake who waits to read. A program's are what sock_shm.h
 * says of room; and what was written by who did not know yet, or never, for what it stands.
 */

#include "socks.h"

/** 0 or -errno: then there is none. */
int socks_pair_make(int *ours, int *theirs);
/** The inode of an end that socks_pair_make() made, and its cookie. */
uint64_t socks_pair_ids(int end, uint64_t *cookie);
/** The lcore is to look at the rings of *s*. */
void socks_ring(struct sock_entry *s);
/**
 * Read what the program's end was sent, if there is room in the ring: datagrams go by the kernel's
 * socket, which has the same name; bytes of streams behind what is in the ring.
 *
 * @return
 *   There is more, or may be, for which it is too early.
 */
bool socks_pair_read(struct sock_entry *s);

#endif /* DAEMON_SOCKS_PAIR_H */
