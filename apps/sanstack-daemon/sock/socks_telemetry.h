/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_TELEMETRY_H
#define DAEMON_SOCKS_TELEMETRY_H

/** @file Telemetry of carried sockets, and of those that stay with the kernel. */

#include <stdint.h>

#include <rte_telemetry.h>

struct app_port;
struct san_view_set;

/** Fields of the answers below. */
extern const struct san_view_set san_socks_telemetry_sum_set, san_socks_telemetry_list_set;

/** Record why the kernel's socket of *inode* is not carried. Only the latest ones are kept. */
void san_socks_telemetry_refused(uint64_t inode, const char *why);

/* Each fills the dict *d*. */

/** Number of sockets, and what they use. */
int san_socks_telemetry_sum(struct rte_tel_data *d, const struct app_port *port, uint32_t from);
/** List the sockets from number *from* on, as many as fit. */
int san_socks_telemetry_list(struct rte_tel_data *d, const struct app_port *port, uint32_t from);
/** List the reasons by inode. */
int san_socks_telemetry_reasons(struct rte_tel_data *d, const struct app_port *port, uint32_t from);

#endif /* DAEMON_SOCKS_TELEMETRY_H */
