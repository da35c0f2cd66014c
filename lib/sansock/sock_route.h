/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_ROUTE_H
#define SOCK_ROUTE_H

/** @file Asks the kernel's routes whether the port is to send a datagram. (UDP-4) */

#include <stdbool.h>
#include <stdint.h>

#include "shmq.h"

/**
 * Whether the kernel's routes leave *ip* to the port.
 *
 * @param is_on_link
 *   *ip* is on the port's own link, and not behind a router.
 */
bool san_sock_route_is_ports(const struct shmq_ctl *ctl, const uint8_t ip[16], bool is_on_link);

#endif /* SOCK_ROUTE_H */
