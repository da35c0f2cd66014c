/* SPDX-License-Identifier: BSD-3-Clause */

/* Atomics: FI_SUM, fetching or not, and FI_CSWAP, on one integer of 64 bits. */

#include <string.h>

#include "ofi_priv.h"

/** What the calls have in common. */
struct atomic_call {
	struct fid_ep *ep;
	uint64_t kind; /**< 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC */
	const struct fi_ioc *from, *compare;
	struct fi_ioc *result;
	size_t nb_from, nb_compare, nb_result;
	fi_addr_t to;
	uint64_t addr, key;
	enum fi_datatype datatype;
	enum fi_op op;
	void *context;
	uint64_t flags;
};

static int
atomic_check(const struct atomic_call *c)
{
	struct fi_atomic_attr attr;
	int rc = san_ofi_domain_query_atomic(NULL, c->datatype, c->op, &attr, c->kind);

	if (rc != 0)
		return rc;
	if (c->nb_from != 1 || c->from[0].count != 1)
		return -FI_EINVAL;
	if (c->kind != 0 && (c->nb_result != 1 || c->result[0].count != 1))
		return -FI_EINVAL;
	if (c->kind == FI_COMPARE_ATOMIC && (c->nb_compare != 1 || c->compare[0].count != 1))
		return -FI_EINVAL;
	return 0;
}

static ssize_t
atomic_post(const struct atomic_call *c)
{
	struct iovec iov = {.iov_len = sizeof(uint64_t)};
	struct ofi_op_args args = {
		.kind = OFI_OP_ATOMIC,
		.flags = c->flags & ~FI_INJECT, /* the operands are copied in any case */
		.to = c->to,
		.context = c->context,
		.addr = c->addr,
		.key = c->key,
		.atomic = c->op == FI_SUM ? OFI_FETCH_ADD : OFI_CMP_SWAP,
	};
	ssize_t rc = atomic_check(c);

	if (rc != 0)
		return rc;
	memcpy(&args.operand, c->from[0].addr, sizeof(args.operand));
	if (c->kind == FI_COMPARE_ATOMIC)
		memcpy(&args.compare, c->compare[0].addr, sizeof(args.compare));
	if (c->kind != 0) {
		iov.iov_base = c->result[0].addr;
		args.iov = &iov;
		args.count = 1;
	}
	return san_ofi_msg_post(c->ep, &args);
}

static struct atomic_call
atomic_of_msg(struct fid_ep *ep, uint64_t kind, const struct fi_msg_atomic *msg, uint64_t flags)
{
	const struct fi_rma_ioc none = {0};
	const struct fi_rma_ioc *at = msg->rma_iov_count == 1 ? msg->rma_iov : &none;

	return (struct atomic_call){
		.ep = ep,
		.kind = kind,
		.from = msg->msg_iov,
		.nb_from = at->count == 1 ? msg->iov_count : 0, /* 0 is refused */
		.to = msg->addr,
		.addr = at->addr,
		.key = at->key,
		.datatype = msg->datatype,
		.op = msg->op,
		.context = msg->context,
		.flags = san_ofi_msg_own_flags(ep, flags),
	};
}

/* ---- without a result ---- */

static ssize_t
atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
	      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct atomic_call c = {
		.ep = ep,
		.from = iov,
		.nb_from = count,
		.to = to,
		.addr = addr,
		.key = key,
		.datatype = datatype,
		.op = op,
		.context = context,
		.flags = san_ofi_msg_flags(ep),
	};

	(void)desc;
	return atomic_post(&c);
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
	const struct atomic_call c = atomic_of_msg(ep, 0, msg, flags);

	return atomic_post(&c);
}

static ssize_t
atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t to, uint64_t addr,
	      uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	const struct atomic_call c = {
		.ep = ep,
		.from = &iov,
		.nb_from = 1,
		.to = to,
		.addr = addr,
		.key = key,
		.datatype = datatype,
		.op = op,
	};

	return atomic_post(&c);
}

/* ---- with the old value ---- */

static ssize_t
atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		  struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t to,
		  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		  void *context)
{
	const struct atomic_call c = {
		.ep = ep,
		.kind = FI_FETCH_ATOMIC,
		.from = iov,
		.nb_from = count,
		.result = resultv,
		.nb_result = result_count,
		.to = to,
		.addr = addr,
		.key = key,
		.datatype = datatype,
		.op = op,
		.context = context,
		.flags = san_ofi_msg_flags(ep),
	};

	(void)desc, (void)result_desc;
	return atomic_post(&c);
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
	struct atomic_call c = atomic_of_msg(ep, FI_FETCH_ATOMIC, msg, flags);

	(void)result_desc;
	c.result = resultv;
	c.nb_result = result_count;
	return atomic_post(&c);
}

/* ---- with a comparison ---- */

static ssize_t
atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		  const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
		  struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t to,
		  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		  void *context)
{
	const struct atomic_call c = {
		.ep = ep,
		.kind = FI_COMPARE_ATOMIC,
		.from = iov,
		.nb_from = count,
		.compare = comparev,
		.nb_compare = compare_count,
		.result = resultv,
		.nb_result = result_count,
		.to = to,
		.addr = addr,
		.key = key,
		.datatype = datatype,
		.op = op,
		.context = context,
		.flags = san_ofi_msg_flags(ep),
	};

	(void)desc, (void)compare_desc, (void)result_desc;
	return atomic_post(&c);
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
	struct atomic_call c = atomic_of_msg(ep, FI_COMPARE_ATOMIC, msg, flags);

	(void)compare_desc, (void)result_desc;
	c.compare = comparev;
	c.nb_compare = compare_count;
	c.result = resultv;
	c.nb_result = result_count;
	return atomic_post(&c);
}

/* ---- what is valid ---- */

static int
atomic_is_valid(enum fi_datatype datatype, enum fi_op op, size_t *count, uint64_t kind)
{
	struct fi_atomic_attr attr = {0};
	int rc = san_ofi_domain_query_atomic(NULL, datatype, op, &attr, kind);

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

struct fi_ops_atomic san_ofi_atomic_ops = {
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
