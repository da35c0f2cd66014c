/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The hash is linear: it is the exclusive or of the hash of the given part (addresses and
 * destination port) and the hash of the source port. So the long part is computed once, and each
 * port is tried with 16 bits. (RULE-13)
 */

#include <rte_byteorder.h>
#include <rte_thash.h>

#include "cm_priv.h"

#define PORT_FIRST 49152 /* first dynamic port */
#define NB_PORTS   16384
#define V4_OFF     12 /* offset of an IPv4 address in struct san_ip */

uint8_t
san_cm_steer_udp_ports(const struct san_cm_steer *s, uint16_t queue, const struct san_ip *src,
		       const struct san_ip *dst, uint16_t dst_port, uint32_t first,
		       uint16_t ports[SAN_WIRE_CM_PORTS])
{
	uint32_t off = san_wire_ip_is_v4(src) ? V4_OFF : 0;
	uint32_t len = (uint32_t)sizeof(src->b) - off;
	uint32_t in[2 * sizeof(src->b) / 4 + 1]; /* addresses, then both ports */
	uint32_t nb = 2 * len / 4, rest, h, i;
	uint8_t n = 0;

	if (!(san_wire_ip_is_v4(src) ? s->v4 : s->v6))
		return 0;
	memcpy(in, src->b + off, len);
	memcpy(in + nb / 2, dst->b + off, len);
	for (i = 0; i < nb; i++)
		in[i] = rte_be_to_cpu_32(in[i]);
	in[nb] = dst_port;
	rest = rte_softrss(in, nb + 1, s->key);
	memset(in, 0, sizeof(in));
	for (i = 0; i < NB_PORTS && n < SAN_WIRE_CM_PORTS; i++) {
		uint16_t udp_port = (uint16_t)(PORT_FIRST + (first + i) % NB_PORTS);

		in[nb] = (uint32_t)udp_port << 16;
		h = rest ^ rte_softrss(in, nb + 1, s->key);
		if (s->table[h & (s->table_size - 1u)] == queue)
			ports[n++] = udp_port;
	}
	return n;
}
