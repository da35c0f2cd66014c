/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_common.h>

#include "wire_priv.h"

#define OP_INDEX(op) ((op)-WIRE_OP_FIRST)

const struct wire_op san_wire_ops[] = {
	[OP_INDEX(SAN_OP_PUSH_SLCTD_REQ)] = {
		.ext_len = sizeof(struct wire_slctd_req),
		.flags = SAN_F_KIND,
	},
	[OP_INDEX(SAN_OP_PULL_REQ)] = {
		.ext_len = sizeof(struct wire_remote),
	},
	[OP_INDEX(SAN_OP_ATOMIC_REQ)] = {
		.ext_len = sizeof(struct wire_atomic_req),
		.payload = SAN_WIRE_ATOMIC_LEN,
	},
	[OP_INDEX(SAN_OP_PUSH_GRNT)] = {
		.ext_len = sizeof(struct wire_grnt),
	},
	[OP_INDEX(SAN_OP_PUSH_SLCTD_DATA)] = {
		.ext_len = sizeof(struct wire_slctd_data),
		.flags = SAN_F_LAST | SAN_F_KIND | SAN_F_PIECE,
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_PUSH_UNSLCTD_DATA)] = {
		.ext_len = sizeof(struct wire_unslctd_data),
		.flags = SAN_F_LAST | SAN_F_KIND | SAN_F_PIECE,
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_PULL_DATA)] = {
		.ext_len = sizeof(struct wire_result),
		.flags = SAN_F_LAST | SAN_F_PIECE,
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_ACK)] = {
		.ext_len = sizeof(struct wire_ack),
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_NACK)] = {
		.ext_len = sizeof(struct wire_nack),
		.flags = SAN_F_WIN_DATA | SAN_F_UNPACK,
	},
	[OP_INDEX(SAN_OP_RESYNC)] = {
		.ext_len = sizeof(struct wire_resync),
		.flags = SAN_F_WIN_DATA,
	},
	[OP_INDEX(SAN_OP_CM)] = {
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_PROBE)] = {
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_PUSH_PACKED)] = {
		.ext_len = sizeof(struct wire_packed),
		.flags = SAN_F_PIECE,
		.payload = WIRE_ANY_LEN,
	},
};
static_assert(RTE_DIM(san_wire_ops) == WIRE_NB_OPS, "every packet type");

uint16_t
san_wire_op_hdr_len(uint8_t op, bool v6)
{
	const struct wire_op *desc = san_wire_op_get(op);
	uint16_t front = v6 ? sizeof(struct wire_front_v6) : sizeof(struct wire_front_v4);

	if (desc == NULL)
		return op == SAN_OP_CNP ? front + sizeof(struct wire_cnp) : 0;
	return front + sizeof(struct wire_rt) + desc->ext_len;
}
