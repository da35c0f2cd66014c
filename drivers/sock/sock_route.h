/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_ROUTE_H
#define SOCK_ROUTE_H

/** @file What the kernel's routes say of who is to carry a datagram. (UDP-4) */

#include <stdbool.h>
#include <stdint.h>

#include "shmq.h"

/**
 * Does the kernel leave what is sent to *ip* to the port?
 *
 * @param is_on_link
 *   The port has it on its own link, and not behind a router.
 */
bool sock_route_is_ports(const struct shmq_ctl *ctl, const uint8_t ip[16], bool is_on_link);

#endif /* SOCK_ROUTE_H */
