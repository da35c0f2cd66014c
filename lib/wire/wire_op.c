/* SPDX-License-Identifier: BSD-3-Clause */

#include "wire_priv.h"

#define OP(name, ext_len, flags, payload) \
	[SAN_OP_##name - WIRE_OP_FIRST] = {ext_len, flags, payload}
#define DATA_FLAGS (SAN_F_LAST | SAN_F_KIND | SAN_F_PIECE)

const struct wire_op san_wire_ops[] = {
	OP(PUSH_SLCTD_REQ, sizeof(struct wire_push), SAN_F_KIND, 0),
	OP(PULL_REQ, sizeof(struct wire_remote), 0, 0),
	OP(ATOMIC_REQ, sizeof(struct wire_atomic_req), 0, SAN_WIRE_ATOMIC_LEN),
	OP(PUSH_GRNT, sizeof(struct wire_grnt), 0, 0),
	OP(PUSH_SLCTD_DATA, sizeof(struct wire_slctd_data), DATA_FLAGS, WIRE_ANY_LEN),
	OP(PUSH_UNSLCTD_DATA, sizeof(struct wire_push), DATA_FLAGS, WIRE_ANY_LEN),
	OP(PULL_DATA, sizeof(struct wire_result), SAN_F_LAST | SAN_F_PIECE, WIRE_ANY_LEN),
	OP(ACK, sizeof(struct wire_ack), 0, WIRE_ANY_LEN),
	OP(NACK, sizeof(struct wire_nack), SAN_F_WIN_DATA | SAN_F_UNPACK, 0),
	OP(RESYNC, sizeof(struct wire_code), SAN_F_WIN_DATA, 0),
	OP(CM, 0, 0, WIRE_ANY_LEN),
	OP(PROBE, 0, 0, WIRE_ANY_LEN),
	OP(PUSH_PACKED, sizeof(struct wire_code), SAN_F_PIECE, WIRE_ANY_LEN),
};
static_assert(RTE_DIM(san_wire_ops) == WIRE_NB_OPS, "every packet type");

uint16_t
san_wire_op_hdr_len(uint8_t op, bool v6)
{
	const struct wire_op *desc = san_wire_op_get(op);
	uint16_t front = v6 ? sizeof(struct wire_front_v6) : sizeof(struct wire_front_v4);

	if (desc == NULL)
		return op == SAN_OP_CNP ? front + WIRE_CNP_LEN : 0;
	return front + sizeof(struct wire_rt) + desc->ext_len;
}
