/* SPDX-License-Identifier: BSD-3-Clause */

/* fi_send(), fi_recv() and their variants. */

#include "ofi_rdm.h"

/* ---- sends ---- */

uint64_t
san_ofi_msg_own_flags(struct fid_ep *fid, uint64_t flags)
{
	return flags | (container_of(fid, struct ofi_ep, fid)->tx_selective ? 0 : FI_COMPLETION);
}

uint64_t
san_ofi_msg_flags(struct fid_ep *fid)
{
	return san_ofi_msg_own_flags(fid, container_of(fid, struct ofi_ep, fid)->tx_flags);
}

ssize_t
san_ofi_msg_post(struct fid_ep *fid, const struct ofi_op_args *args)
{
	ssize_t rc;

	san_ofi_ctx_lock();
	rc = san_ofi_op_post(container_of(fid, struct ofi_ep, fid), args);
	san_ofi_ctx_unlock();
	return rc;
}

static ssize_t
msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t addr,
	  void *context)
{
	const struct ofi_op_args args = {
		.kind = OFI_OP_SEND,
		.flags = san_ofi_msg_flags(ep),
		.to = addr,
		.iov = iov,
		.desc = desc,
		.count = count,
		.context = context,
	};

	return san_ofi_msg_post(ep, &args);
}

static ssize_t
msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return msg_sendv(ep, &iov, &desc, 1, addr, context);
}

static ssize_t
msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	const struct ofi_op_args args = {
		.kind = OFI_OP_SEND,
		.flags = san_ofi_msg_own_flags(ep, flags & ~FI_TAGGED),
		.to = msg->addr,
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.count = msg->iov_count,
		.context = msg->context,
		.data = msg->data,
	};

	return san_ofi_msg_post(ep, &args);
}

static ssize_t
msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	     fi_addr_t addr, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct ofi_op_args args = {
		.kind = OFI_OP_SEND,
		.flags = FI_REMOTE_CQ_DATA | san_ofi_msg_flags(ep),
		.to = addr,
		.iov = &iov,
		.desc = &desc,
		.count = 1,
		.context = context,
		.data = data,
	};

	return san_ofi_msg_post(ep, &args);
}

/* An inject has no completion, whatever the endpoint's defaults are. */
static ssize_t
msg_inject_flags(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t data,
		 uint64_t flags)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct ofi_op_args args = {
		.kind = OFI_OP_SEND,
		.flags = FI_INJECT | flags,
		.to = to,
		.iov = &iov,
		.count = 1,
		.data = data,
	};

	return san_ofi_msg_post(ep, &args);
}

static ssize_t
msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t addr)
{
	return msg_inject_flags(ep, buf, len, addr, 0, 0);
}

static ssize_t
msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t addr)
{
	return msg_inject_flags(ep, buf, len, addr, data, FI_REMOTE_CQ_DATA);
}

/* ---- receives ---- */

static ssize_t
msg_post_recv(struct ofi_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	int rc;

	san_ofi_ctx_lock();
	if (ep->state == OFI_EP_NEW)
		rc = -FI_EOPBADSTATE;
	else if (ep->rdm != NULL)
		rc = san_ofi_tag_post(ep, msg, 0, ~0ull, flags & ~FI_TAGGED);
	else if (ep->rxq != &ep->own_rxq)
		rc = -FI_EINVAL;
	else if (ep->state == OFI_EP_ENDED && STAILQ_EMPTY(&ep->held))
		rc = -FI_ENOTCONN;
	else
		rc = san_ofi_rxq_post(ep->rxq, msg, flags);
	if (rc == 0 && ep->is_starving) {
		san_ofi_rx_feed(ep);
		san_ofi_rx_repost(ep);
		san_ofi_tx_push(ep);
	}
	san_ofi_ctx_unlock();
	return rc;
}

static ssize_t
msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	return msg_post_recv(container_of(fid, struct ofi_ep, fid), msg, flags);
}

static ssize_t
msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t addr,
	  void *context)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	const struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = addr, .context = context};

	return msg_post_recv(ep, &msg, ep->rx_flags);
}

static ssize_t
msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	const struct iovec iov = {buf, len};

	return msg_recvv(ep, &iov, &desc, 1, addr, context);
}

struct fi_ops_msg san_ofi_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

/* ---- shared receives ---- */

static ssize_t
msg_srx_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ofi_rxq *q = container_of(fid, struct ofi_rxq, fid);
	struct ofi_ep *ep;
	int rc;

	san_ofi_ctx_lock();
	rc = san_ofi_rxq_post(q, msg, flags);
	/* one with FI_MULTI_RECV may have room for the messages of several endpoints */
	while (rc == 0 && !STAILQ_EMPTY(&q->posted) &&
	       (ep = STAILQ_FIRST(&q->starving)) != NULL) {
		san_ofi_rx_feed(ep);
		san_ofi_rx_repost(ep);
		san_ofi_tx_push(ep);
	}
	san_ofi_ctx_unlock();
	return rc;
}

static ssize_t
msg_srx_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t addr,
	      void *context)
{
	const struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .context = context};

	(void)addr;
	return msg_srx_recvmsg(ep, &msg, container_of(ep, struct ofi_rxq, fid)->flags);
}

static ssize_t
msg_srx_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	const struct iovec iov = {buf, len};

	return msg_srx_recvv(ep, &iov, &desc, 1, addr, context);
}

struct fi_ops_msg san_ofi_msg_srx_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_srx_recv,
	.recvv = msg_srx_recvv,
	.recvmsg = msg_srx_recvmsg,
};
