/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * fi_read(), fi_write(), atomics, and their variants. Atomics are FI_SUM, fetching or not, and
 * FI_CSWAP, on one integer of 64 bits.
 */

#include <string.h>

#include "ofi_priv.h"

static ssize_t
rma_message(struct fid_ep *ep, enum ofi_kind kind, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ofi_op_args args = {.kind = kind, .to = msg->addr, .context = msg->context};
	size_t i, length = 0;

	for (i = 0; i < msg->iov_count; i++)
		length += msg->msg_iov[i].iov_len;
	if (msg->rma_iov_count != 1 || msg->rma_iov[0].len != length)
		return -FI_EINVAL;
	args.flags = san_ofi_msg_own_flags(ep, flags);
	args.data = msg->data;
	args.addr = msg->rma_iov[0].addr;
	args.key = msg->rma_iov[0].key;
	return san_ofi_msg_post_iov(ep, msg->msg_iov, msg->desc, msg->iov_count, &args);
}

/* ---- reads ---- */

static ssize_t
rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	  uint64_t addr, uint64_t key, void *context)
{
	struct ofi_op_args args = {.kind = OFI_OP_READ, .to = from, .addr = addr, .key = key};

	args.flags = san_ofi_msg_flags(ep);
	args.context = context;
	return san_ofi_msg_post_iov(ep, iov, desc, count, &args);
}

static ssize_t
rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t addr,
	 uint64_t key, void *context)
{
	const struct iovec iov = {buf, len};

	return rma_readv(ep, &iov, &desc, 1, from, addr, key, context);
}

static ssize_t
rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_message(ep, OFI_OP_READ, msg, flags);
}

/* ---- writes ---- */

static ssize_t
rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	   uint64_t addr, uint64_t key, void *context)
{
	struct ofi_op_args args = {.kind = OFI_OP_WRITE, .to = to, .addr = addr, .key = key};

	args.flags = san_ofi_msg_flags(ep);
	args.context = context;
	return san_ofi_msg_post_iov(ep, iov, desc, count, &args);
}

static ssize_t
rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr,
	  uint64_t key, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return rma_writev(ep, &iov, &desc, 1, to, addr, key, context);
}

static ssize_t
rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_message(ep, OFI_OP_WRITE, msg, flags);
}

static ssize_t
rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t addr,
	   uint64_t key)
{
	struct ofi_op_args args = {.kind = OFI_OP_WRITE, .to = to, .addr = addr, .key = key};

	args.flags = FI_INJECT;
	return san_ofi_msg_post_one(ep, buf, len, NULL, &args);
}

static ssize_t
rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	      fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	struct ofi_op_args args = {.kind = OFI_OP_WRITE, .to = to, .addr = addr, .key = key};

	args.flags = san_ofi_msg_flags(ep) | FI_REMOTE_CQ_DATA;
	args.context = context;
	args.data = data;
	return san_ofi_msg_post_one(ep, buf, len, desc, &args);
}

static ssize_t
rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
	       uint64_t addr, uint64_t key)
{
	struct ofi_op_args args = {.kind = OFI_OP_WRITE, .to = to, .addr = addr, .key = key};

	args.flags = FI_INJECT | FI_REMOTE_CQ_DATA;
	args.data = data;
	return san_ofi_msg_post_one(ep, buf, len, NULL, &args);
}

struct fi_ops_rma san_ofi_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};

/* ---- atomics ---- */

/** What the calls have in common. */
struct atomic_call {
	uint64_t kind; /**< 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC */
	const struct fi_ioc *from, *compare;
	struct fi_ioc *result;
	size_t nb_from, nb_compare, nb_result;
	enum fi_datatype datatype;
	enum fi_op op;
	struct ofi_op_args args;
};

/*
 * The two of the transport, on 8 bytes. FI_SUM works with and without FI_FETCH_ATOMIC, FI_CSWAP
 * with FI_COMPARE_ATOMIC only.
 */
int
san_ofi_rma_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			 struct fi_atomic_attr *attr, uint64_t flags)
{
	const uint64_t both = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
	bool compares = (flags & FI_COMPARE_ATOMIC) != 0;

	(void)domain;
	if ((flags & FI_TAGGED) != 0) /* to a tagged receive */
		return -FI_EOPNOTSUPP;
	if ((flags & ~both) != 0 || flags == both)
		return -FI_EBADFLAGS;
	if (datatype != FI_INT64 && datatype != FI_UINT64)
		return -FI_EOPNOTSUPP;
	if (op != (compares ? FI_CSWAP : FI_SUM))
		return -FI_EOPNOTSUPP;
	attr->count = 1;
	attr->size = sizeof(uint64_t);
	return 0;
}

static ssize_t
atomic_post(struct fid_ep *ep, struct atomic_call *c)
{
	struct iovec iov = {.iov_len = sizeof(uint64_t)};
	struct ofi_op_args *args = &c->args;
	struct fi_atomic_attr attr;
	int rc = san_ofi_rma_query_atomic(NULL, c->datatype, c->op, &attr, c->kind);

	if (rc != 0)
		return rc;
	if (c->nb_from != 1 || c->from[0].count != 1 ||
	    (c->kind != 0 && (c->nb_result != 1 || c->result[0].count != 1)) ||
	    (c->kind == FI_COMPARE_ATOMIC && (c->nb_compare != 1 || c->compare[0].count != 1)))
		return -FI_EINVAL;
	args->kind = OFI_OP_ATOMIC;
	args->flags &= ~FI_INJECT; /* the operands are copied in any case */
	args->atomic = c->op == FI_SUM ? OFI_FETCH_ADD : OFI_CMP_SWAP;
	memcpy(&args->operand, c->from[0].addr, sizeof(args->operand));
	if (c->kind == FI_COMPARE_ATOMIC)
		memcpy(&args->compare, c->compare[0].addr, sizeof(args->compare));
	if (c->kind != 0) {
		iov.iov_base = c->result[0].addr;
		args->iov = &iov;
		args->count = 1;
	}
	return san_ofi_msg_post(ep, args);
}

/* A call by arrays; *c* has these. */
static ssize_t
atomic_post_arrays(struct fid_ep *ep, struct atomic_call *c, fi_addr_t to, uint64_t addr,
		   uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	c->args.to = to;
	c->args.addr = addr;
	c->args.key = key;
	c->datatype = datatype;
	c->op = op;
	c->args.context = context;
	c->args.flags = san_ofi_msg_flags(ep);
	return atomic_post(ep, c);
}

static ssize_t
atomic_post_msg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct atomic_call *c,
		uint64_t flags)
{
	const struct fi_rma_ioc none = {0};
	const struct fi_rma_ioc *at = msg->rma_iov_count == 1 ? msg->rma_iov : &none;

	c->from = msg->msg_iov;
	c->nb_from = at->count == 1 ? msg->iov_count : 0; /* 0 is refused */
	c->args.to = msg->addr;
	c->args.addr = at->addr;
	c->args.key = at->key;
	c->datatype = msg->datatype;
	c->op = msg->op;
	c->args.context = msg->context;
	c->args.flags = san_ofi_msg_own_flags(ep, flags);
	return atomic_post(ep, c);
}

/* ---- without a result ---- */

static ssize_t
atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
	      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct atomic_call c = {.from = iov, .nb_from = count};

	(void)desc;
	return atomic_post_arrays(ep, &c, to, addr, key, datatype, op, context);
}

static ssize_t
atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t to,
	     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};

	return atomic_writev(ep, &iov, &desc, 1, to, addr, key, datatype, op, context);
}

static ssize_t
atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return atomic_post_msg(ep, msg, &(struct atomic_call){0}, flags);
}

static ssize_t
atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t to, uint64_t addr,
	      uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	struct atomic_call c = {.from = &iov, .nb_from = 1, .datatype = datatype, .op = op};

	c.args = (struct ofi_op_args){.to = to, .addr = addr, .key = key};
	return atomic_post(ep, &c);
}

/* ---- with the old value ---- */

static ssize_t
atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		  struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t to,
		  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		  void *context)
{
	struct atomic_call c = {
		.kind = FI_FETCH_ATOMIC,
		.from = iov,
		.nb_from = count,
		.result = resultv,
		.nb_result = result_count,
	};

	(void)desc, (void)result_desc;
	return atomic_post_arrays(ep, &c, to, addr, key, datatype, op, context);
}

static ssize_t
atomic_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
		 void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key,
		 enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	struct fi_ioc resultv = {result, count};

	return atomic_readwritev(ep, &iov, &desc, 1, &resultv, &result_desc, 1, to, addr, key,
				 datatype, op, context);
}

static ssize_t
atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
		    void **result_desc, size_t result_count, uint64_t flags)
{
	struct atomic_call c = {
		.kind = FI_FETCH_ATOMIC,
		.result = resultv,
		.nb_result = result_count,
	};

	(void)result_desc;
	return atomic_post_msg(ep, msg, &c, flags);
}

/* ---- with a comparison ---- */

static ssize_t
atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		  const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
		  struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t to,
		  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		  void *context)
{
	struct atomic_call c = {
		.kind = FI_COMPARE_ATOMIC,
		.from = iov,
		.nb_from = count,
		.compare = comparev,
		.nb_compare = compare_count,
		.result = resultv,
		.nb_result = result_count,
	};

	(void)desc, (void)compare_desc, (void)result_desc;
	return atomic_post_arrays(ep, &c, to, addr, key, datatype, op, context);
}

static ssize_t
atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
		 void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t addr,
		 uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	const struct fi_ioc comparev = {(void *)(uintptr_t)compare, count};
	struct fi_ioc resultv = {result, count};

	return atomic_compwritev(ep, &iov, &desc, 1, &comparev, &compare_desc, 1, &resultv,
				 &result_desc, 1, to, addr, key, datatype, op, context);
}

static ssize_t
atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
		    const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
		    struct fi_ioc *resultv, void **result_desc, size_t result_count, uint64_t flags)
{
	struct atomic_call c = {
		.kind = FI_COMPARE_ATOMIC,
		.compare = comparev,
		.nb_compare = compare_count,
		.result = resultv,
		.nb_result = result_count,
	};

	(void)compare_desc, (void)result_desc;
	return atomic_post_msg(ep, msg, &c, flags);
}

/* ---- what is valid ---- */

static int
atomic_is_valid(enum fi_datatype datatype, enum fi_op op, size_t *count, uint64_t kind)
{
	struct fi_atomic_attr attr = {0};
	int rc = san_ofi_rma_query_atomic(NULL, datatype, op, &attr, kind);

	if (rc == 0)
		*count = attr.count;
	return rc;
}

static int
atomic_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void)ep;
	return atomic_is_valid(datatype, op, count, 0);
}

static int
atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void)ep;
	return atomic_is_valid(datatype, op, count, FI_FETCH_ATOMIC);
}

static int
atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void)ep;
	return atomic_is_valid(datatype, op, count, FI_COMPARE_ATOMIC);
}

struct fi_ops_atomic san_ofi_rma_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};
