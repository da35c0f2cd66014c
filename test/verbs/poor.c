/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Loaded before a program: its RDMA device can do less. By environment, each a number: POOR_SGE,
 * POOR_INLINE, POOR_WR, POOR_RD_ATOM, POOR_CQE, POOR_MR; POOR_ATOMIC: 0, there are none. What is
 * asked for beyond that is refused, as a device of that kind would. And with POOR_COUNT it says at
 * the end how often memory was registered for the peer to write to, and to read from. (SYS-4)
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#undef ibv_reg_mr

static int nb_mrs, nb_writes, nb_reads;

static int
limit(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? atoi(text) : otherwise;
}

/* The device's own. The provider is loaded after us, and its libraries for itself alone. */
static void *
next(const char *name)
{
	const char *file = name[0] == 'r' ? "librdmacm.so.1" : "libibverbs.so.1";
	void *library = dlopen(file, RTLD_NOW), *found;

	found = library != NULL ? dlsym(library, name) : NULL;
	if (found == NULL)
		abort();
	return found;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int (*real)(struct ibv_context *, struct ibv_device_attr *) = next("ibv_query_device");
	int rc = real(context, attr);

	attr->max_sge = limit("POOR_SGE", attr->max_sge);
	attr->max_qp_wr = limit("POOR_WR", attr->max_qp_wr);
	attr->max_cqe = limit("POOR_CQE", attr->max_cqe);
	attr->max_mr = limit("POOR_MR", attr->max_mr);
	attr->max_qp_rd_atom = limit("POOR_RD_ATOM", attr->max_qp_rd_atom);
	attr->max_qp_init_rd_atom = limit("POOR_RD_ATOM", attr->max_qp_init_rd_atom);
	if (limit("POOR_ATOMIC", 1) == 0)
		attr->atomic_cap = IBV_ATOMIC_NONE;
	return rc;
}

static bool
is_too_much(const struct ibv_qp_cap *cap)
{
	return cap->max_send_sge > (uint32_t)limit("POOR_SGE", 1 << 20) ||
		cap->max_recv_sge > (uint32_t)limit("POOR_SGE", 1 << 20) ||
		cap->max_inline_data > (uint32_t)limit("POOR_INLINE", 1 << 20) ||
		cap->max_send_wr > (uint32_t)limit("POOR_WR", 1 << 20) ||
		cap->max_recv_wr > (uint32_t)limit("POOR_WR", 1 << 20);
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *(*real)(struct ibv_pd *, struct ibv_qp_init_attr *) = next("ibv_create_qp");

	if (is_too_much(&attr->cap)) {
		errno = EINVAL;
		return NULL;
	}
	return real(pd, attr);
}

static int (*real_post)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

/* Soft-RoCE takes more than it was asked for. */
static int
post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint32_t most = (uint32_t)limit("POOR_INLINE", 1 << 20);

	for (struct ibv_send_wr *w = wr; w != NULL; w = w->next)
		if ((w->send_flags & IBV_SEND_INLINE) != 0 && w->num_sge > 0 &&
		    w->sg_list[0].length > most) {
			*bad = wr;
			return EINVAL;
		}
	return real_post(qp, wr, bad);
}

int
rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int (*real)(struct rdma_cm_id *, struct ibv_pd *, struct ibv_qp_init_attr *) =
		next("rdma_create_qp");
	int rc;

	if (is_too_much(&attr->cap)) {
		errno = EINVAL;
		return -1;
	}
	rc = real(id, pd, attr);
	if (rc == 0 && real_post == NULL) {
		real_post = id->qp->context->ops.post_send;
		id->qp->context->ops.post_send = post_send;
	}
	return rc;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	      struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *(*real)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int) =
		next("ibv_create_cq");

	if (cqe > limit("POOR_CQE", 1 << 30)) {
		errno = EINVAL;
		return NULL;
	}
	return real(context, cqe, cq_context, channel, vector);
}

int
ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int (*real)(struct ibv_cq *, int) = next("ibv_resize_cq");

	return cqe > limit("POOR_CQE", 1 << 30) ? EINVAL : real(cq, cqe);
}

static bool
has_no_mr(int access)
{
	if ((access & IBV_ACCESS_REMOTE_WRITE) != 0)
		__atomic_add_fetch(&nb_writes, 1, __ATOMIC_RELAXED);
	if ((access & IBV_ACCESS_REMOTE_READ) != 0)
		__atomic_add_fetch(&nb_reads, 1, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&nb_mrs, 1, __ATOMIC_RELAXED) <= limit("POOR_MR", 1 << 30))
		return false;
	__atomic_sub_fetch(&nb_mrs, 1, __ATOMIC_RELAXED);
	errno = ENOMEM;
	return true;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, int) = next("ibv_reg_mr");

	return has_no_mr(access) ? NULL : real(pd, addr, length, access);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, uint64_t, unsigned int) =
		next("ibv_reg_mr_iova2");

	return has_no_mr((int)access) ? NULL : real(pd, addr, length, iova, access);
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*real)(struct ibv_mr *) = next("ibv_dereg_mr");

	__atomic_sub_fetch(&nb_mrs, 1, __ATOMIC_RELAXED);
	return real(mr);
}

/* Reads and atomics that a connection may have under way. */
static bool
is_too_deep(const struct rdma_conn_param *param)
{
	int most = limit("POOR_RD_ATOM", 255);

	return param != NULL &&
		(param->responder_resources > most || param->initiator_depth > most);
}

int
rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*real)(struct rdma_cm_id *, struct rdma_conn_param *) = next("rdma_connect");

	if (is_too_deep(param)) {
		errno = EINVAL;
		return -1;
	}
	return real(id, param);
}

int
rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*real)(struct rdma_cm_id *, struct rdma_conn_param *) = next("rdma_accept");

	if (is_too_deep(param)) {
		errno = EINVAL;
		return -1;
	}
	return real(id, param);
}

static void __attribute__((destructor))
tell(void)
{
	if (limit("POOR_COUNT", 0) != 0)
		printf("shared: %d to write, %d to read\n", nb_writes, nb_reads);
}
