/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * For programs that call libibverbs: two queue pairs of the process, connected to each other.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define DEPTH 64
#define PAGE  4096
#define ALL   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

#define CHECK(condition)                                                                    \
	do {                                                                                \
		if (!(condition)) {                                                         \
			fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, \
				strerror(errno));                                           \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq; /* of queue pairs created next; NULL: none */
static struct ibv_qp *qp[2];

/* ---- a pair of queue pairs ---- */

static inline void
open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list != NULL && list[0] != NULL);
	CHECK(strcmp(ibv_get_device_name(list[0]), "san0") == 0);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	CHECK(context != NULL);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0);
	CHECK(pd != NULL && cq != NULL);
}

static inline struct ibv_qp_init_attr
init_attr(void)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {DEPTH, DEPTH, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static inline struct ibv_qp *
create(void)
{
	struct ibv_qp_init_attr init = init_attr();
	struct ibv_qp *q = ibv_create_qp(pd, &init);

	CHECK(q != NULL && q->state == IBV_QPS_RESET);
	return q;
}

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

static inline int
to_init(struct ibv_qp *q)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL};

	return ibv_modify_qp(q, &attr, TO_INIT);
}

#define TO_RTR                                                                          \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                 \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static inline int
to_rtr(struct ibv_qp *q, uint32_t dest, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1},
	};

	CHECK(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
	return ibv_modify_qp(q, &attr, mask);
}

static inline int
to_rts(struct ibv_qp *q)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	return ibv_modify_qp(q, &attr, TO_RTS);
}

static inline int
to_state(struct ibv_qp *q, enum ibv_qp_state state)
{
	return ibv_modify_qp(q, &(struct ibv_qp_attr){.qp_state = state}, IBV_QP_STATE);
}

static inline void
connect_pair(void)
{
	qp[0] = create();
	qp[1] = create();
	for (int i = 0; i < 2; i++)
		CHECK(to_init(qp[i]) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(to_rtr(qp[i], qp[1 - i]->qp_num, TO_RTR) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(to_rts(qp[i]) == 0);
}

static inline void
open_pair(void)
{
	open_first();
	connect_pair();
}

static inline struct ibv_wc
completion(void)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		sched_yield();
	CHECK(n == 1);
	return wc;
}

static inline int
post_recv(struct ibv_qp *q, uint64_t wr_id, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {.addr = mr != NULL ? (uintptr_t)mr->addr : 0,
			      .length = mr != NULL ? (uint32_t)mr->length : 0,
			      .lkey = mr != NULL ? mr->lkey : 0};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = mr != NULL}, *bad;

	return ibv_post_recv(q, &wr, &bad);
}

/* One-sided, between regions of this process. Returns the status. */
static inline enum ibv_wc_status
transfer(enum ibv_wr_opcode opcode, const struct ibv_mr *own, void *from,
	 const struct ibv_mr *other, void *to, uint32_t length)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = length, .lkey = own->lkey};
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = (uintptr_t)to, .rkey = other->rkey},
	};
	struct ibv_send_wr *bad;

	CHECK(ibv_post_send(qp[0], &wr, &bad) == 0);
	return completion().status;
}

static inline struct ibv_mr *
reg(void *addr, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, length, access);

	CHECK(mr != NULL);
	return mr;
}
