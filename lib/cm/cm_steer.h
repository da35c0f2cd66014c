/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_STEER_H
#define CM_STEER_H

/**
 * @file
 * Source ports by which a peer's packets reach the queue of one lcore: only the
 * receiver knows how its port spreads them, so it chooses and the peer uses what it is
 * told (design, rule 13; SYS-1). The port's hash is Toeplitz' over addresses and ports,
 * the last bits of it an index into its table of queues.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

#define SAN_STEER_KEY_MAX   64 /**< bytes */
#define SAN_STEER_KEY_MIN   40 /**< for IPv6; the last 28 are not needed for IPv4 */
#define SAN_STEER_TABLE_MAX 1024

/** How a port spreads what it receives. */
struct san_cm_steer {
	bool v4, v6; /**< it looks at the ports of UDP over these */
	uint8_t key[SAN_STEER_KEY_MAX];
	uint16_t table_size; /**< power of two */
	uint16_t table[SAN_STEER_TABLE_MAX];
};

/** What the port makes of a packet from *src* to *dst*: its queue. */
uint16_t san_cm_steer_queue(const struct san_cm_steer *s, const struct san_ip *src,
			    const struct san_ip *dst, uint16_t src_port, uint16_t dst_port);
/**
 * Different source ports that bring packets from *src* to *queue*; the search begins
 * with the *first*th of the dynamic ports. Their number: 0 if no port does, or any may.
 */
uint8_t san_cm_steer_ports(const struct san_cm_steer *s, uint16_t queue, const struct san_ip *src,
			   const struct san_ip *dst, uint16_t dst_port, uint32_t first,
			   uint16_t ports[SAN_WIRE_CM_PORTS]);

#endif /* CM_STEER_H */
