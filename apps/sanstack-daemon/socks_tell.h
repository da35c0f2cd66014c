/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_TELL_H
#define DAEMON_SOCKS_TELL_H

/** @file What telemetry tells of carried sockets, and of those that stay with the kernel. */

#include <stdint.h>

#include <rte_telemetry.h>

struct app_port;

/** Why the kernel's socket of *inode* is not carried, as was asked. Only the last ones are kept. */
void socks_tell_refused(uint64_t inode, const char *why);

/** How many, and what they take. */
int socks_tell_sum(struct rte_tel_data *d, const struct app_port *port, uint32_t from);
/** Each from *from* on, as many as an answer has room for. */
int socks_tell_list(struct rte_tel_data *d, const struct app_port *port, uint32_t from);
/** Reasons by inode. */
int socks_tell_reasons(struct rte_tel_data *d, const struct app_port *port, uint32_t from);

#endif /* DAEMON_SOCKS_TELL_H */
