/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Functions that the devices of the library do not have. Without these definitions the program's
 * objects would reach the real libraries, which do not know them.
 */

#include "sv_cm.h"

/** Such a function: on an object that is *ours* it fails with *value*. *args*: its arguments. */
#define HAS_NOT(type, name, params, ours, value, ...)  \
	type name params                               \
	{                                              \
		SV_ELSE_NEXT(ours, name, __VA_ARGS__); \
		errno = EOPNOTSUPP;                    \
		return value;                          \
	}

HAS_NOT(int, ibv_rereg_mr,
	(struct ibv_mr * mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access),
	san_sv_device(mr->context), IBV_REREG_MR_ERR_INPUT, mr, flags, pd, addr, length, access)
HAS_NOT(struct ibv_mr *, ibv_reg_dmabuf_mr,
	(struct ibv_pd * pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access),
	san_sv_device(pd->context), NULL, pd, offset, length, iova, fd, access)
HAS_NOT(int, ibv_query_ece, (struct ibv_qp * qp, struct ibv_ece *ece),
	san_sv_device(qp->context), EOPNOTSUPP, qp, ece)
HAS_NOT(int, ibv_set_ece, (struct ibv_qp * qp, struct ibv_ece *ece),
	san_sv_device(qp->context), EOPNOTSUPP, qp, ece)
HAS_NOT(int, ibv_query_qp_data_in_order,
	(struct ibv_qp * qp, enum ibv_wr_opcode op, uint32_t flags),
	san_sv_device(qp->context), 0, qp, op, flags)
HAS_NOT(int, rdma_create_srq_ex, (struct rdma_cm_id * id, struct ibv_srq_init_attr_ex *attr),
	san_sv_devices() != 0, -1, id, attr)
HAS_NOT(int, rdma_set_local_ece, (struct rdma_cm_id * id, struct ibv_ece *ece),
	san_sv_devices() != 0, -1, id, ece)
HAS_NOT(int, rdma_get_remote_ece, (struct rdma_cm_id * id, struct ibv_ece *ece),
	san_sv_devices() != 0, -1, id, ece)

int
rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t length)
{
	SV_CM_ELSE_NEXT(rdma_reject_ece, id, data, length);
	return rdma_reject(id, data, length);
}
