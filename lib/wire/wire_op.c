/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_common.h>

#include "wire_priv.h"

#define OP_INDEX(op) ((op)-WIRE_OP_FIRST)

const struct wire_op san_wire_ops[] = {
	[OP_INDEX(SAN_OP_PUSH_SLCTD_REQ)] = {
		.name = "PUSH_SLCTD_REQ",
		.ext_len = sizeof(struct wire_slctd_req),
		.flags = SAN_F_KIND,
	},
	[OP_INDEX(SAN_OP_PULL_REQ)] = {
		.name = "PULL_REQ",
		.ext_len = sizeof(struct wire_remote),
	},
	[OP_INDEX(SAN_OP_ATOMIC_REQ)] = {
		.name = "ATOMIC_REQ",
		.ext_len = sizeof(struct wire_atomic_req),
		.payload = SAN_WIRE_ATOMIC_LEN,
	},
	[OP_INDEX(SAN_OP_PUSH_GRNT)] = {
		.name = "PUSH_GRNT",
		.ext_len = sizeof(struct wire_grnt),
	},
	[OP_INDEX(SAN_OP_PUSH_SLCTD_DATA)] = {
		.name = "PUSH_SLCTD_DATA",
		.ext_len = sizeof(struct wire_slctd_data),
		.flags = SAN_F_LAST | SAN_F_KIND | SAN_F_PIECE,
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_PUSH_UNSLCTD_DATA)] = {
		.name = "PUSH_UNSLCTD_DATA",
		.ext_len = sizeof(struct wire_unslctd_data),
		.flags = SAN_F_LAST | SAN_F_KIND | SAN_F_PIECE,
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_PULL_DATA)] = {
		.name = "PULL_DATA",
		.ext_len = sizeof(struct wire_pull_data),
		.flags = SAN_F_LAST | SAN_F_PIECE,
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_ACK)] = {
		.name = "ACK",
		.ext_len = sizeof(struct wire_ack),
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_NACK)] = {
		.name = "NACK",
		.ext_len = sizeof(struct wire_nack),
		.flags = SAN_F_WIN_DATA | SAN_F_UNPACK,
	},
	[OP_INDEX(SAN_OP_RESYNC)] = {
		.name = "RESYNC",
		.ext_len = sizeof(struct wire_resync),
		.flags = SAN_F_WIN_DATA,
	},
	[OP_INDEX(SAN_OP_CM)] = {
		.name = "CM",
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_PROBE)] = {
		.name = "PROBE",
		.payload = WIRE_ANY_LEN,
	},
	[OP_INDEX(SAN_OP_PUSH_PACKED)] = {
		.name = "PUSH_PACKED",
		.ext_len = sizeof(struct wire_packed),
		.flags = SAN_F_PIECE,
		.payload = WIRE_ANY_LEN,
	},
};
static_assert(RTE_DIM(san_wire_ops) == WIRE_NB_OPS, "every packet type");

static const char *const status_names[] = {
	[SAN_ST_OK] = "ok",
	[SAN_ST_RNR] = "rnr",
	[SAN_ST_ACCESS] = "access",
	[SAN_ST_LENGTH] = "length",
	[SAN_ST_REVOKED] = "revoked",
	[SAN_ST_ALIGN] = "align",
	[SAN_ST_RESOURCE] = "resource",
	[SAN_ST_REFUSED] = "refused",
	[SAN_ST_ABORTED] = "aborted",
};
static_assert(RTE_DIM(status_names) == SAN_ST_MAX, "every status");

static const char *const cm_reason_names[] = {
	[RTSAN_R_NONE] = "none",
	[RTSAN_R_NO_LISTENER] = "no_listener",
	[RTSAN_R_REFUSED] = "refused",
	[RTSAN_R_RESOURCES] = "resources",
	[RTSAN_R_PKEY] = "pkey",
	[RTSAN_R_PARAMETER] = "parameter",
	[RTSAN_R_VERSION] = "version",
	[RTSAN_R_BACKLOG] = "backlog",
	[RTSAN_R_TIMEOUT] = "timeout",
	[RTSAN_R_STALE] = "stale",
	[RTSAN_R_PATH_MTU] = "path_mtu",
};
static_assert(RTE_DIM(cm_reason_names) == SAN_CM_R_MAX, "every reason");

uint16_t
san_wire_op_hdr_len(uint8_t op, bool v6)
{
	const struct wire_op *desc = san_wire_op_get(op);
	uint16_t front = v6 ? sizeof(struct wire_front_v6) : sizeof(struct wire_front_v4);

	if (desc == NULL)
		return op == SAN_OP_CNP ? front + sizeof(struct wire_cnp) : 0;
	return front + sizeof(struct wire_rt) + desc->ext_len;
}

const char *
san_wire_op_name(uint8_t op)
{
	const struct wire_op *desc = san_wire_op_get(op);

	if (desc == NULL)
		return op == SAN_OP_CNP ? "CNP" : "unknown";
	return desc->name;
}

const char *
san_wire_op_status_name(uint8_t status)
{
	return status < SAN_ST_MAX && status_names[status] != NULL ? status_names[status] :
								     "unknown";
}

const char *
san_wire_op_cm_reason_name(uint8_t reason)
{
	return reason < SAN_CM_R_MAX ? cm_reason_names[reason] : "unknown";
}
