/* SPDX-License-Identifier: BSD-3-Clause */

/* fi_read(), fi_write() and their variants. */

#include "ofi_priv.h"

static ssize_t
rma_message(struct fid_ep *fid, enum ofi_kind kind, const struct fi_msg_rma *msg, uint64_t flags)
{
	const struct ofi_op_args args = {
		.kind = kind,
		.flags = san_ofi_msg_own_flags(fid, flags),
		.to = msg->addr,
		.context = msg->context,
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.count = msg->iov_count,
		.data = msg->data,
		.addr = msg->rma_iov != NULL ? msg->rma_iov[0].addr : 0,
		.key = msg->rma_iov != NULL ? msg->rma_iov[0].key : 0,
	};
	size_t i, length = 0;

	for (i = 0; i < msg->iov_count; i++)
		length += msg->msg_iov[i].iov_len;
	if (msg->rma_iov_count != 1 || msg->rma_iov[0].len != length)
		return -FI_EINVAL;
	return san_ofi_msg_post(fid, &args);
}

static ssize_t
rma_post_iov(struct fid_ep *ep, enum ofi_kind kind, const struct iovec *iov, void **desc,
	     size_t count, fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	const struct ofi_op_args args = {
		.kind = kind,
		.flags = san_ofi_msg_flags(ep),
		.to = to,
		.context = context,
		.iov = iov,
		.desc = desc,
		.count = count,
		.addr = addr,
		.key = key,
	};

	return san_ofi_msg_post(ep, &args);
}

/* ---- reads ---- */

static ssize_t
rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	  uint64_t addr, uint64_t key, void *context)
{
	return rma_post_iov(ep, OFI_OP_READ, iov, desc, count, from, addr, key, context);
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
	return rma_post_iov(ep, OFI_OP_WRITE, iov, desc, count, to, addr, key, context);
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
rma_write_flags(struct fid_ep *ep, const struct iovec *iov, void **desc, uint64_t data,
		uint64_t addr, uint64_t key, struct ofi_op_args args)
{
	args.kind = OFI_OP_WRITE;
	args.iov = iov;
	args.desc = desc;
	args.count = 1;
	args.data = data;
	args.addr = addr;
	args.key = key;
	return san_ofi_msg_post(ep, &args);
}

static ssize_t
rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t addr,
	   uint64_t key)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return rma_write_flags(ep, &iov, NULL, 0, addr, key,
			       (struct ofi_op_args){.flags = FI_INJECT, .to = to});
}

static ssize_t
rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	      fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return rma_write_flags(ep, &iov, &desc, data, addr, key,
			       (struct ofi_op_args){
				       .flags = san_ofi_msg_flags(ep) | FI_REMOTE_CQ_DATA,
				       .to = to,
				       .context = context,
			       });
}

static ssize_t
rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
	       uint64_t addr, uint64_t key)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return rma_write_flags(ep, &iov, NULL, data, addr, key,
			       (struct ofi_op_args){
				       .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
				       .to = to,
			       });
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
