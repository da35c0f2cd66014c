/* SPDX-License-Identifier: BSD-3-Clause */

#include "wire_pack.h"
#include "wire_priv.h"

/* Check one message within the *left* bytes at *off*. *len*: its length. */
static enum san_drop
check_msg(const struct rte_mbuf *m, uint32_t off, uint32_t left, uint32_t *len)
{
	static const uint8_t zero[3];
	struct wire_msg copy;
	uint8_t bytes[sizeof(zero)];
	const struct wire_msg *x;
	uint32_t length, pad;

	if (left < offsetof(struct wire_msg, key))
		return SAN_DROP_FIELD;
	x = rte_pktmbuf_read(m, off, offsetof(struct wire_msg, key), &copy);
	if (x->rsvd != 0)
		return SAN_DROP_RESERVED;
	if (x->kind > SAN_KIND_PUSH_IMM)
		return SAN_DROP_FIELD;
	length = rte_be_to_cpu_16(x->length);
	*len = san_wire_pack_len(x->kind, length);
	if (*len > left)
		return SAN_DROP_FIELD;
	pad = -length & 3;
	if (pad != 0 && memcmp(rte_pktmbuf_read(m, off + *len - pad, pad, bytes), zero, pad) != 0)
		return SAN_DROP_RESERVED;
	return SAN_DROP_NONE;
}

enum san_drop
san_wire_pack_check(const struct rte_mbuf *m, const struct san_wire_pkt *p)
{
	uint32_t off = p->payload_off, left = p->payload_len;
	uint32_t i, len;

	for (i = 0; i < p->length; i++) {
		enum san_drop drop = check_msg(m, off, left, &len);

		if (drop != SAN_DROP_NONE)
			return drop;
		off += len;
		left -= len;
	}
	return left == 0 ? SAN_DROP_NONE : SAN_DROP_FIELD;
}
