/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * fi_read(), fi_write(), atomics, and their variants. Atomics are FI_SUM, fetching or not, and
 * FI_CSWAP, on one integer of 64 bits.
 */

#include <string.h>

#include "ofi_priv.h"

static ssize_t
rma_message(struct fid_ep *ep, enum ofi_type type, const struct fi_msg_rma *msg, uint64_t flags)
{
	size_t i, length = 0;

	for (i = 0; i < msg->iov_count; i++)
		length += msg->msg_iov[i].iov_len;
	if (msg->rma_iov_count != 1 || msg->rma_iov[0].len != length)
		return -FI_EINVAL;
	return san_ofi_msg_post(ep,
				OFI_ARGS(OFI_MSG_ARGS(msg), .type = type, .flags = flags,
					 .addr = msg->rma_iov[0].addr, .key = msg->rma_iov[0].key));
}

/* ---- reads ---- */

static ssize_t
rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	  uint64_t addr, uint64_t key, void *context)
{
	return san_ofi_msg_post(ep,
				OFI_ARGS(.type = OFI_READ, .iov = iov, .desc = desc,
					 .count = count, .to = from, .addr = addr, .key = key,
					 .context = context));
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
	return rma_message(ep, OFI_READ, msg, flags);
}

/* ---- writes ---- */

static ssize_t
rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	   uint64_t addr, uint64_t key, void *context)
{
	return san_ofi_msg_post(ep,
				OFI_ARGS(.type = OFI_WRITE, .iov = iov, .desc = desc,
					 .count = count, .to = to, .addr = addr, .key = key,
					 .context = context));
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
	return rma_message(ep, OFI_WRITE, msg, flags);
}

static ssize_t
rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t addr,
	   uint64_t key)
{
	return san_ofi_msg_post_one(ep, buf, len, NULL,
				    OFI_ARGS(.type = OFI_WRITE, .call = OFI_CALL_INJECT,
					     .to = to, .addr = addr, .key = key));
}

static ssize_t
rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	      fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	return san_ofi_msg_post_one(ep, buf, len, desc,
				    OFI_ARGS(.type = OFI_WRITE, .flags = FI_REMOTE_CQ_DATA,
					     .data = data, .to = to, .addr = addr, .key = key,
					     .context = context));
}

static ssize_t
rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
	       uint64_t addr, uint64_t key)
{
	return san_ofi_msg_post_one(ep, buf, len, NULL,
				    OFI_ARGS(.type = OFI_WRITE, .call = OFI_CALL_INJECT,
					     .flags = FI_REMOTE_CQ_DATA, .data = data, .to = to,
					     .addr = addr, .key = key));
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

/** What a call has besides its message. */
struct atomic_call {
	uint64_t kind; /**< 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC */
	enum ofi_call call;
	uint64_t flags;
	const struct fi_ioc *compare, *result; /**< see ATOMIC_ONE */
};

/** The only integer of an array; NULL is refused. */
#define ATOMIC_ONE(array, nb) ((nb) == 1 && (array)[0].count == 1 ? (array) : NULL)

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
atomic_post(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct atomic_call c)
{
	const struct fi_ioc *from = ATOMIC_ONE(msg->msg_iov, msg->iov_count);
	const struct fi_rma_ioc *at = ATOMIC_ONE(msg->rma_iov, msg->rma_iov_count);
	struct iovec iov = {.iov_len = sizeof(uint64_t)};
	struct ofi_op_args args = {.type = OFI_ATOMIC, .call = c.call, .flags = c.flags};
	struct fi_atomic_attr attr;
	int rc = san_ofi_rma_query_atomic(NULL, msg->datatype, msg->op, &attr, c.kind);

	if (rc != 0)
		return rc;
	if (from == NULL || at == NULL || (c.kind != 0 && c.result == NULL) ||
	    (c.kind == FI_COMPARE_ATOMIC && c.compare == NULL))
		return -FI_EINVAL;
	args.atomic = msg->op == FI_SUM ? OFI_FETCH_ADD : OFI_CMP_SWAP;
	args.to = msg->addr;
	args.addr = at->addr;
	args.key = at->key;
	args.context = msg->context;
	memcpy(&args.operand, from->addr, sizeof(args.operand));
	if (c.kind == FI_COMPARE_ATOMIC)
		memcpy(&args.compare, c.compare->addr, sizeof(args.compare));
	if (c.kind != 0) {
		iov.iov_base = c.result->addr;
		args.iov = &iov;
		args.count = 1;
	}
	return san_ofi_msg_post(ep, &args);
}

/* ---- without a result ---- */

static ssize_t
atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return atomic_post(ep, msg, (struct atomic_call){.call = OFI_CALL_MSG, .flags = flags});
}

static ssize_t
atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
	      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_rma_ioc at = {addr, 1, key};
	const struct fi_msg_atomic msg = {iov, desc, count, to, &at, 1, datatype, op, context, 0};

	return atomic_post(ep, &msg, (struct atomic_call){0});
}

static ssize_t
atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t to,
	     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};

	return atomic_writev(ep, &iov, &desc, 1, to, addr, key, datatype, op, context);
}

static ssize_t
atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t to, uint64_t addr,
	      uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	const struct fi_rma_ioc at = {addr, 1, key};
	const struct fi_msg_atomic msg = {&iov, NULL, 1, to, &at, 1, datatype, op, NULL, 0};

	return atomic_post(ep, &msg, (struct atomic_call){.call = OFI_CALL_INJECT});
}

/* ---- with the old value ---- */

static ssize_t
atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
		    void **result_desc, size_t nb_result, uint64_t flags)
{
	struct atomic_call c = {.kind = FI_FETCH_ATOMIC, .call = OFI_CALL_MSG, .flags = flags};

	(void)result_desc;
	c.result = ATOMIC_ONE(resultv, nb_result);
	return atomic_post(ep, msg, c);
}

static ssize_t
atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		  struct fi_ioc *resultv, void **result_desc, size_t nb_result, fi_addr_t to,
		  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		  void *context)
{
	const struct fi_rma_ioc at = {addr, 1, key};
	const struct fi_msg_atomic msg = {iov, desc, count, to, &at, 1, datatype, op, context, 0};
	struct atomic_call c = {.kind = FI_FETCH_ATOMIC, .result = ATOMIC_ONE(resultv, nb_result)};

	(void)result_desc;
	return atomic_post(ep, &msg, c);
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

/* ---- with a comparison ---- */

static ssize_t
atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
		    const struct fi_ioc *comparev, void **compare_desc, size_t nb_compare,
		    struct fi_ioc *resultv, void **result_desc, size_t nb_result, uint64_t flags)
{
	struct atomic_call c = {.kind = FI_COMPARE_ATOMIC, .call = OFI_CALL_MSG, .flags = flags};

	(void)compare_desc, (void)result_desc;
	c.compare = ATOMIC_ONE(comparev, nb_compare);
	c.result = ATOMIC_ONE(resultv, nb_result);
	return atomic_post(ep, msg, c);
}

static ssize_t
atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		  const struct fi_ioc *comparev, void **compare_desc, size_t nb_compare,
		  struct fi_ioc *resultv, void **result_desc, size_t nb_result, fi_addr_t to,
		  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		  void *context)
{
	const struct fi_rma_ioc at = {addr, 1, key};
	const struct fi_msg_atomic msg = {iov, desc, count, to, &at, 1, datatype, op, context, 0};
	struct atomic_call c = {.kind = FI_COMPARE_ATOMIC};

	(void)compare_desc, (void)result_desc;
	c.compare = ATOMIC_ONE(comparev, nb_compare);
	c.result = ATOMIC_ONE(resultv, nb_result);
	return atomic_post(ep, &msg, c);
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
