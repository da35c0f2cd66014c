/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_ATTACH_H
#define SOCK_ATTACH_H

/**
 * @file
 * The connection of the process to the daemon. The process attaches when its first socket is to be
 * carried, and again after fork(). (UDP-1)
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "shmq.h"

struct fd_sock;

/**
 * Attach to the daemon.
 *
 * @return
 *   0; -ECONNREFUSED, -EACCES and the like: no daemon serves this process. The next attempt is made
 *   some seconds later.
 */
int san_sock_attach(void);
/** In the child, after fork(): drop the parent's connection. */
void san_sock_attach_end(void);
/** Whether *fd* is the connection to the daemon. */
bool san_sock_attach_is_daemons(int fd);
/**
 * Make a request about socket *fd*, see enum shmq_type. *got*: the descriptor of the answer, if one
 * may come. After an error the text of *rep* has the reason.
 */
int san_sock_attach_ask(enum shmq_type type, int fd, struct shmq_req *req, struct shmq_rep *rep,
			int *got);
/** Notify the lcore: the rings of *f* have something for it. */
void san_sock_attach_doorbell(const struct fd_sock *f);
/** Whether the lcore shares the CPUs of programs, so that a waiting thread should yield to it. */
bool san_sock_attach_yields(void);
/** Whether the port carries TCP sockets: SHMQ_NO_TCP. */
bool san_sock_attach_carries_tcp(void);
/** Whether *ip* is an address of the port. */
bool san_sock_attach_is_ports(const uint8_t ip[16]);
/**
 * NULL: the port leads to *ip*, which is no own address, and the kernel's routes agree. Otherwise
 * the reason, as the end of a sentence that begins with the address.
 */
const char *san_sock_attach_why_not_reached(const uint8_t ip[16]);

#endif /* SOCK_ATTACH_H */
