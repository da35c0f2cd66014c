/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The hash is linear: it is the exclusive or of the hash of the given part (addresses and
 * destination port) and the hash of the source port. So the long part is computed once, and each
 * port is tried with 16 bits. (RULE-13)
 */

#include <string.h>

#include "cm_priv.h"

#define PORT_FIRST 49152 /* first dynamic port */
#define NB_PORTS   16384
#define V4_OFF     12 /* offset of an IPv4 address in struct san_ip */
#define PORT_BITS  16

/* 32 bits of the key, from bit *bit* on. */
static uint32_t
steer_key_window(const uint8_t *key, uint32_t bit)
{
	const uint8_t *k = key + bit / 8;
	uint64_t w = (uint64_t)k[0] << 32 | (uint32_t)k[1] << 24 | (uint32_t)k[2] << 16 |
		(uint32_t)k[3] << 8 | k[4];

	return (uint32_t)(w >> (8 - bit % 8));
}

/* Hash of *len* bytes that start at bit *at* of the input. */
static uint32_t
steer_toeplitz(const uint8_t *key, uint32_t at, const uint8_t *data, uint32_t len)
{
	uint32_t i, h = 0;

	for (i = 0; i < len * 8; i++)
		if (data[i / 8] & 0x80 >> i % 8)
			h ^= steer_key_window(key, at + i);
	return h;
}

static uint32_t
steer_hash_udp_port(const uint8_t *key, uint32_t at, uint16_t udp_port)
{
	const uint8_t b[2] = {(uint8_t)(udp_port >> 8), (uint8_t)udp_port};

	return steer_toeplitz(key, at, b, sizeof(b));
}

uint8_t
san_cm_steer_udp_ports(const struct san_cm_steer *s, uint16_t queue, const struct san_ip *src,
		       const struct san_ip *dst, uint16_t dst_port, uint32_t first,
		       uint16_t ports[SAN_WIRE_CM_PORTS])
{
	uint32_t off = san_wire_ip_is_v4(src) ? V4_OFF : 0;
	uint32_t len = (uint32_t)sizeof(src->b) - off;
	uint32_t at = 2 * 8 * len, rest, h, i; /* *at*: bit offset of the source port */
	uint8_t n = 0;

	if (!(san_wire_ip_is_v4(src) ? s->v4 : s->v6))
		return 0;
	rest = steer_toeplitz(s->key, 0, src->b + off, len) ^
		steer_toeplitz(s->key, 8 * len, dst->b + off, len) ^
		steer_hash_udp_port(s->key, at + PORT_BITS, dst_port);
	for (i = 0; i < NB_PORTS && n < SAN_WIRE_CM_PORTS; i++) {
		uint16_t udp_port = (uint16_t)(PORT_FIRST + (first + i) % NB_PORTS);

		h = rest ^ steer_hash_udp_port(s->key, at, udp_port);
		if (s->table[h & (s->table_size - 1u)] == queue)
			ports[n++] = udp_port;
	}
	return n;
}
