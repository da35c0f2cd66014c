/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_ATTACH_H
#define SOCK_ATTACH_H

/**
 * @file
 * The process and the daemon: attached when the first socket is to be carried, and again after
 * fork(). (UDP-1)
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "shmq.h"

struct sock_file;

/**
 * 0; -ECONNREFUSED, -EACCES and the like: there is no daemon for us, which is not asked again for a
 * while.
 */
int sock_attach(void);
/** In the child, after fork(): what the parent had is its own. */
void sock_detach(void);
/** Is *fd* our connection to the daemon? */
bool sock_is_daemons(int fd);
/**
 * A request about socket *fd*, see enum shmq_type; *got*: the descriptor that came, if any may. If
 * it fails, the text of *rep* says why.
 */
int sock_ask(enum shmq_type type, int fd, struct shmq_req *req, struct shmq_rep *rep, int *got);
/** The daemon has something to look at in the rings of *f*. */
void sock_bell(const struct sock_file *f);
/** Does it work on our CPUs, so that who waits lets it? */
bool sock_yields(void);
/** Is *ip* an address of the port's? */
bool sock_is_ports(const uint8_t ip[16]);
/** Does the port lead to *ip*, which is not our own, and does the kernel leave it to the port? */
bool sock_is_reached(const uint8_t ip[16]);
/** NULL: it does; or why not, behind the address. */
const char *sock_why_not_reached(const uint8_t ip[16]);

#endif /* SOCK_ATTACH_H */
