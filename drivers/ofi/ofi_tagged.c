/* SPDX-License-Identifier: BSD-3-Clause */

/* fi_tsend(), fi_trecv() and their kin. */

#include "ofi_rdm.h"

/* ---- sends ---- */

static ssize_t
tagged_post(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
	    struct ofi_op_args args)
{
	args.kind = OFI_OP_SEND;
	args.flags |= FI_TAGGED;
	args.iov = iov;
	args.desc = desc;
	args.count = count;
	return san_ofi_msg_post(fid, &args);
}

static ssize_t
tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	     uint64_t tag, void *context)
{
	const struct ofi_op_args args = {
		.flags = san_ofi_msg_flags(ep), .to = to, .context = context, .addr = tag};

	return tagged_post(ep, iov, desc, count, args);
}

static ssize_t
tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag,
	    void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return tagged_sendv(ep, &iov, &desc, 1, to, tag, context);
}

static ssize_t
tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	const struct ofi_op_args args = {
		.flags = san_ofi_msg_own_flags(ep, flags),
		.to = msg->addr,
		.context = msg->context,
		.data = msg->data,
		.addr = msg->tag,
	};

	return tagged_post(ep, msg->msg_iov, msg->desc, msg->iov_count, args);
}

static ssize_t
tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct ofi_op_args args = {.flags = FI_INJECT, .to = to, .addr = tag};

	return tagged_post(ep, &iov, NULL, 1, args);
}

static ssize_t
tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
		fi_addr_t to, uint64_t tag, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct ofi_op_args args = {
		.flags = san_ofi_msg_flags(ep) | FI_REMOTE_CQ_DATA,
		.to = to,
		.context = context,
		.data = data,
		.addr = tag,
	};

	return tagged_post(ep, &iov, &desc, 1, args);
}

static ssize_t
tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
		  uint64_t tag)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct ofi_op_args args = {
		.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .to = to, .data = data, .addr = tag};

	return tagged_post(ep, &iov, NULL, 1, args);
}

/* ---- receives ---- */

static ssize_t
tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	const struct fi_msg plain = {
		.msg_iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.context = msg->context,
	};
	int rc = -FI_EOPBADSTATE;

	san_ofi_ctx_lock();
	if (ep->state != OFI_EP_NEW)
		rc = san_ofi_tag_post(ep, &plain, msg->tag, msg->ignore,
				      (flags & ~FI_MULTI_RECV) | FI_TAGGED);
	san_ofi_ctx_unlock();
	return rc;
}

static ssize_t
tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	     uint64_t tag, uint64_t ignore, void *context)
{
	const struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = from,
		.tag = tag,
		.ignore = ignore,
		.context = context,
	};

	return tagged_recvmsg(ep, &msg, container_of(ep, struct ofi_ep, fid)->rx_flags);
}

static ssize_t
tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag,
	    uint64_t ignore, void *context)
{
	const struct iovec iov = {buf, len};

	return tagged_recvv(ep, &iov, &desc, 1, from, tag, ignore, context);
}

struct fi_ops_tagged san_ofi_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
