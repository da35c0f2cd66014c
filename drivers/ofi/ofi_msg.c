/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * fi_send(), fi_recv(), their variants, tagged or not, and queues of receives that endpoints share.
 * Every call fills one record, struct ofi_op_args or struct fi_msg, and takes one path.
 */

#include <stdlib.h>

#include "ofi_priv.h"

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

/* The connection of an endpoint FI_EP_RDM; while there is none, each call makes progress. */
static struct ofi_ep *
msg_conn(struct ofi_ep *ep, fi_addr_t to, int *rc)
{
	struct ofi_ep *conn = san_ofi_rdm_conn(ep->rdm, to);

	if (conn != NULL)
		return conn;
	if (ep->state == OFI_EP_NEW) {
		*rc = -FI_EOPBADSTATE;
		return NULL;
	}
	san_ofi_progress(ep->domain->ctx);
	san_ofi_progress_events(ep->domain->ctx);
	return san_ofi_rdm_reach(ep->rdm, to, rc);
}

ssize_t
san_ofi_msg_post(struct fid_ep *fid, const struct ofi_op_args *args)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc = 0;
	OFI_LOCKED;

	if (ep->rdm != NULL)
		ep = msg_conn(ep, args->to, &rc);
	if (rc == 0)
		rc = san_ofi_op_post(ep, args);
	if (rc == 0)
		san_ofi_tx_push(ep);
	return rc;
}

ssize_t
san_ofi_msg_post_iov(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		     struct ofi_op_args *args)
{
	args->iov = iov;
	args->desc = desc;
	args->count = count;
	return san_ofi_msg_post(ep, args);
}

ssize_t
san_ofi_msg_post_one(struct fid_ep *ep, const void *buf, size_t len, void *desc,
		     struct ofi_op_args *args)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return san_ofi_msg_post_iov(ep, &iov, &desc, 1, args);
}

static ssize_t
msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	  void *context)
{
	struct ofi_op_args args = {.flags = san_ofi_msg_flags(ep), .to = to, .context = context};

	return san_ofi_msg_post_iov(ep, iov, desc, count, &args);
}

static ssize_t
msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	struct ofi_op_args args = {.flags = san_ofi_msg_flags(ep), .to = to, .context = context};

	return san_ofi_msg_post_one(ep, buf, len, desc, &args);
}

static ssize_t
msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct ofi_op_args args = {.to = msg->addr, .context = msg->context, .data = msg->data};

	args.flags = san_ofi_msg_own_flags(ep, flags & ~FI_TAGGED);
	return san_ofi_msg_post_iov(ep, msg->msg_iov, msg->desc, msg->iov_count, &args);
}

static ssize_t
msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	     fi_addr_t to, void *context)
{
	struct ofi_op_args args = {.flags = san_ofi_msg_flags(ep), .to = to, .context = context};

	args.flags |= FI_REMOTE_CQ_DATA;
	args.data = data;
	return san_ofi_msg_post_one(ep, buf, len, desc, &args);
}

/* An inject has no completion, whatever the endpoint's defaults are. */
static ssize_t
msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	struct ofi_op_args args = {.flags = FI_INJECT, .to = to};

	return san_ofi_msg_post_one(ep, buf, len, NULL, &args);
}

static ssize_t
msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	struct ofi_op_args args = {.flags = FI_INJECT | FI_REMOTE_CQ_DATA, .to = to, .data = data};

	return san_ofi_msg_post_one(ep, buf, len, NULL, &args);
}

/* ---- receives ---- */

/* Give messages that wait to a receive that is new. */
static void
msg_feed(struct ofi_ep *ep)
{
	san_ofi_deliver_feed(ep);
	san_ofi_conn_repost(ep);
	san_ofi_tx_push(ep);
}

static ssize_t
msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc;
	OFI_LOCKED;

	if (ep->state == OFI_EP_NEW)
		return -FI_EOPBADSTATE;
	if (ep->rdm != NULL)
		return san_ofi_deliver_post(ep, msg, 0, ~0ull, flags & ~FI_TAGGED);
	if (ep->rxq != &ep->own_rxq)
		return -FI_EINVAL;
	if (ep->state == OFI_EP_ENDED && STAILQ_EMPTY(&ep->held))
		return -FI_ENOTCONN;
	rc = san_ofi_rxq_post(ep->rxq, msg, flags);
	if (rc == 0 && ep->is_starving)
		msg_feed(ep);
	return rc;
}

static ssize_t
msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	  void *context)
{
	const struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .addr = from, .context = context};

	return msg_recvmsg(ep, &msg, container_of(ep, struct ofi_ep, fid)->rx_flags);
}

static ssize_t
msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	const struct iovec iov = {buf, len};

	return msg_recvv(ep, &iov, &desc, 1, from, context);
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

/* ---- tagged messages ---- */

static ssize_t
tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	     uint64_t tag, void *context)
{
	struct ofi_op_args args = {.flags = san_ofi_msg_flags(ep), .to = to, .context = context};

	args.flags |= FI_TAGGED;
	args.addr = tag;
	return san_ofi_msg_post_iov(ep, iov, desc, count, &args);
}

static ssize_t
tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag,
	    void *context)
{
	struct ofi_op_args args = {.flags = san_ofi_msg_flags(ep), .to = to, .context = context};

	args.flags |= FI_TAGGED;
	args.addr = tag;
	return san_ofi_msg_post_one(ep, buf, len, desc, &args);
}

static ssize_t
tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ofi_op_args args = {.to = msg->addr, .context = msg->context, .data = msg->data};

	args.flags = FI_TAGGED | san_ofi_msg_own_flags(ep, flags);
	args.addr = msg->tag;
	return san_ofi_msg_post_iov(ep, msg->msg_iov, msg->desc, msg->iov_count, &args);
}

static ssize_t
tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	struct ofi_op_args args = {.flags = FI_TAGGED | FI_INJECT, .to = to, .addr = tag};

	return san_ofi_msg_post_one(ep, buf, len, NULL, &args);
}

static ssize_t
tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
		fi_addr_t to, uint64_t tag, void *context)
{
	struct ofi_op_args args = {.flags = san_ofi_msg_flags(ep), .to = to, .context = context};

	args.flags |= FI_TAGGED | FI_REMOTE_CQ_DATA;
	args.data = data;
	args.addr = tag;
	return san_ofi_msg_post_one(ep, buf, len, desc, &args);
}

static ssize_t
tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
		  uint64_t tag)
{
	struct ofi_op_args args = {.to = to, .data = data, .addr = tag};

	args.flags = FI_TAGGED | FI_INJECT | FI_REMOTE_CQ_DATA;
	return san_ofi_msg_post_one(ep, buf, len, NULL, &args);
}

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
	OFI_LOCKED;

	if ((flags & FI_PEEK) != 0) /* a program may look until a message is there */
		san_ofi_progress(ep->domain->ctx);
	if (ep->state == OFI_EP_NEW)
		return -FI_EOPBADSTATE;
	return san_ofi_deliver_post(ep, &plain, msg->tag, msg->ignore,
				    (flags & ~FI_MULTI_RECV) | FI_TAGGED);
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

struct fi_ops_tagged san_ofi_msg_tagged_ops = {
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

struct fi_ops_tagged san_ofi_msg_no_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = OFI_NONE,
	.recvv = OFI_NONE,
	.recvmsg = OFI_NONE,
	.send = OFI_NONE,
	.sendv = OFI_NONE,
	.sendmsg = OFI_NONE,
	.inject = OFI_NONE,
	.senddata = OFI_NONE,
	.injectdata = OFI_NONE,
};

/* ---- receives that endpoints share ---- */

static ssize_t
srx_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ofi_rxq *q = container_of(fid, struct ofi_rxq, fid);
	struct ofi_ep *ep;
	int rc;
	OFI_LOCKED;

	rc = san_ofi_rxq_post(q, msg, flags);
	/* one with FI_MULTI_RECV may have room for the messages of several endpoints */
	while (rc == 0 && !STAILQ_EMPTY(&q->posted) &&
	       (ep = STAILQ_FIRST(&q->starving)) != NULL)
		msg_feed(ep);
	return rc;
}

static ssize_t
srx_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t addr,
	  void *context)
{
	const struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count, .context = context};

	(void)addr;
	return srx_recvmsg(ep, &msg, container_of(ep, struct ofi_rxq, fid)->flags);
}

static ssize_t
srx_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	const struct iovec iov = {buf, len};

	return srx_recvv(ep, &iov, &desc, 1, addr, context);
}

static struct fi_ops_msg srx_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = srx_recv,
	.recvv = srx_recvv,
	.recvmsg = srx_recvmsg,
};

static struct fi_ops_cm srx_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = OFI_NONE,
	.getname = OFI_NONE,
	.getpeer = OFI_NONE,
	.connect = OFI_NONE,
	.listen = OFI_NONE,
	.accept = OFI_NONE,
	.reject = OFI_NONE,
	.shutdown = OFI_NONE,
};

static int
srx_close(struct fid *fid)
{
	struct ofi_rxq *q = container_of(fid, struct ofi_rxq, fid.fid);
	OFI_LOCKED;

	if (q->refs != 0)
		return -FI_EBUSY;
	san_ofi_rxq_flush(q, NULL);
	if (q->cq != NULL)
		q->cq->wait.refs--;
	q->domain->refs--;
	free(q);
	return 0;
}

static int
srx_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_rxq *q = container_of(fid, struct ofi_rxq, fid.fid);

	(void)flags;
	if (bfid->fclass != FI_CLASS_CQ || q->cq != NULL)
		return -FI_EINVAL;
	q->cq = container_of(bfid, struct ofi_cq, fid.fid);
	q->cq->wait.refs++;
	return 0;
}

static int
srx_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = srx_bind,
	.control = srx_control,
	.ops_open = OFI_NONE,
};

int
san_ofi_msg_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **out,
		     void *context)
{
	struct ofi_rxq *q = calloc(1, sizeof(*q));
	size_t size = attr != NULL && attr->size != 0 ? attr->size : OFI_RX_SIZE;
	OFI_LOCKED;

	if (q == NULL)
		return -FI_ENOMEM;
	san_ofi_rxq_init(q, container_of(domain, struct ofi_domain, fid),
			 (uint32_t)(size < OFI_RX_MAX ? size : OFI_RX_MAX));
	q->flags = attr != NULL ? attr->op_flags : 0;
	q->fid = (struct fid_ep){
		.fid = {.fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &srx_fid_ops},
		.ops = &san_ofi_rxq_ep_ops,
		.cm = &srx_cm_ops,
		.msg = &srx_msg_ops,
		.tagged = &san_ofi_msg_no_tagged_ops,
	};
	q->domain->refs++;
	*out = &q->fid;
	return 0;
}
