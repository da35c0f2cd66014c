/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_STEER_H
#define CM_STEER_H

/**
 * @file
 * Source ports with which a peer's packets reach the queue of one lcore. Only the receiver knows
 * how its port spreads packets, so it chooses the ports and the peer uses them (RULE-13;
 * SYS-1). The port computes the Toeplitz hash of addresses and ports; the low bits index its table
 * of queues.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define SAN_STEER_KEY_MAX   64 /**< bytes */
#define SAN_STEER_KEY_MIN   40 /**< for IPv6; IPv4 needs 28 fewer */
#define SAN_STEER_TABLE_MAX 1024

/** How a port spreads received packets. */
struct san_cm_steer {
	bool v4, v6; /**< the hash includes UDP ports over IPv4, IPv6 */
	uint8_t key[SAN_STEER_KEY_MAX];
	uint16_t table_size; /**< power of two */
	uint16_t table[SAN_STEER_TABLE_MAX];
};

/**
 * Find source ports that bring packets from *src* to *queue*, starting at the *first*th dynamic
 * port. Returns their number: 0 if no port does, or if the hash ignores ports.
 */
uint8_t san_cm_steer_udp_ports(const struct san_cm_steer *s, uint16_t queue,
			       const struct san_ip *src, const struct san_ip *dst,
			       uint16_t dst_port, uint32_t first,
			       uint16_t ports[SAN_WIRE_CM_PORTS]);

#endif /* CM_STEER_H */
