/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_STDIO_H
#define SOCK_STDIO_H

/**
 * @file
 * The C library's streams read and write by calls that cannot be intercepted. Streams of carried
 * sockets use the library's functions instead. (UDP-1)
 */

/** The process starts: prepare standard streams for carried sockets. */
void san_sock_stdio_begin(void);
/** *fd* has changed: if it is a carried socket now, so is its standard stream. */
void san_sock_stdio_at(int fd);

#endif /* SOCK_STDIO_H */
