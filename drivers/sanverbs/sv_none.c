/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Functions that the devices of the library do not have. Without these definitions the program's
 * objects would reach the real libraries, which do not know them.
 */

#include <rdma/rdma_cma.h>

#include "sv_priv.h"

#define HAS_NOT(context, value, name, ...)                 \
	do {                                               \
		if (san_sv_device(context) == NULL)        \
			return SV_NEXT(name, __VA_ARGS__); \
		errno = EOPNOTSUPP;                        \
		return value;                              \
	} while (0)

int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	     int access)
{
	HAS_NOT(mr->context, IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr, mr, flags, pd, addr, length,
		access);
}

struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		  int access)
{
	HAS_NOT(pd->context, NULL, ibv_reg_dmabuf_mr, pd, offset, length, iova, fd, access);
}

int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	HAS_NOT(qp->context, EOPNOTSUPP, ibv_query_ece, qp, ece);
}

int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	HAS_NOT(qp->context, EOPNOTSUPP, ibv_set_ece, qp, ece);
}

int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	HAS_NOT(qp->context, 0, ibv_query_qp_data_in_order, qp, op, flags);
}

/* ---- librdmacm ---- */

#define CM_HAS_NOT(name, ...)                              \
	do {                                               \
		if (san_sv_devices() == 0)                 \
			return SV_NEXT(name, __VA_ARGS__); \
		errno = EOPNOTSUPP;                        \
		return -1;                                 \
	} while (0)

int
rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	CM_HAS_NOT(rdma_create_srq_ex, id, attr);
}

int
rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	CM_HAS_NOT(rdma_set_local_ece, id, ece);
}

int
rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	CM_HAS_NOT(rdma_get_remote_ece, id, ece);
}

int
rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t length)
{
	if (san_sv_devices() == 0)
		return SV_NEXT(rdma_reject_ece, id, data, length);
	return rdma_reject(id, data, length);
}
