/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_STDIO_H
#define SOCK_STDIO_H

/**
 * @file
 * The C library's own streams, which read and write by calls of its own that nobody hears: of
 * carried sockets they do it by ours. (UDP-1)
 */

/** The process begins: what standard streams of carried sockets need is there from now on. */
void sock_stdio_begin(void);
/** *fd* is something else than it was: if it is a carried socket, so is its standard stream. */
void sock_stdio_at(int fd);

#endif /* SOCK_STDIO_H */
