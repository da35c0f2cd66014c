/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * fi_send(), fi_recv(), their variants, tagged or not, and queues of receives that endpoints share.
 * Every call fills one record, struct ofi_op_args or struct fi_msg, and takes one path.
 */

#include <stdlib.h>

#include "ofi_priv.h"

/* ---- sends ---- */

/* The connection of an endpoint FI_EP_RDM; while there is none, each call makes progress. */
static struct ofi_ep *
msg_conn(struct ofi_ep *ep, fi_addr_t to, int *rc)
{
	const struct ofi_rdm *rdm = ep->rdm;
	struct ofi_ep *conn = to < rdm->nb_peers ? rdm->peers[to].conn : NULL;

	if (conn != NULL && conn->state == OFI_EP_CONNECTED && !conn->is_shut)
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
san_ofi_msg_post(struct fid_ep *fid, struct ofi_op_args *args)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc = 0;
	OFI_LOCKED;

	if (args->call == OFI_CALL_INJECT)
		args->flags |= FI_INJECT;
	else if (!ep->tx_selective)
		args->flags |= FI_COMPLETION;
	if (args->call == OFI_CALL_PLAIN)
		args->flags |= ep->tx_flags;
	if (ep->rdm != NULL)
		ep = msg_conn(ep, args->to, &rc);
	if (rc == 0)
		rc = san_ofi_op_post(ep, args);
	if (rc == 0)
		san_ofi_tx_push(ep);
	return rc;
}

ssize_t
san_ofi_msg_post_one(struct fid_ep *ep, const void *buf, size_t len, void *desc,
		     struct ofi_op_args *args)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	args->iov = &iov;
	args->desc = &desc;
	args->count = 1;
	return san_ofi_msg_post(ep, args);
}

static ssize_t
msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	  void *context)
{
	return san_ofi_msg_post(ep,
				OFI_ARGS(.iov = iov, .desc = desc, .count = count, .to = to,
					 .context = context));
}

static ssize_t
msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	return san_ofi_msg_post_one(ep, buf, len, desc, OFI_ARGS(.to = to, .context = context));
}

static ssize_t
msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return san_ofi_msg_post(ep, OFI_ARGS(OFI_MSG_ARGS(msg), .flags = flags & ~FI_TAGGED));
}

static ssize_t
msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	     fi_addr_t to, void *context)
{
	return san_ofi_msg_post_one(ep, buf, len, desc,
				    OFI_ARGS(.flags = FI_REMOTE_CQ_DATA, .data = data, .to = to,
					     .context = context));
}

static ssize_t
msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	return san_ofi_msg_post_one(ep, buf, len, NULL,
				    OFI_ARGS(.call = OFI_CALL_INJECT, .to = to));
}

static ssize_t
msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	return san_ofi_msg_post_one(ep, buf, len, NULL,
				    OFI_ARGS(.call = OFI_CALL_INJECT, .flags = FI_REMOTE_CQ_DATA,
					     .data = data, .to = to));
}

static ssize_t
tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	     uint64_t tag, void *context)
{
	return san_ofi_msg_post(ep,
				OFI_ARGS(.flags = FI_TAGGED, .iov = iov, .desc = desc,
					 .count = count, .to = to, .addr = tag,
					 .context = context));
}

static ssize_t
tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag,
	    void *context)
{
	return san_ofi_msg_post_one(ep, buf, len, desc,
				    OFI_ARGS(.flags = FI_TAGGED, .to = to, .addr = tag,
					     .context = context));
}

static ssize_t
tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return san_ofi_msg_post(ep,
				OFI_ARGS(OFI_MSG_ARGS(msg), .flags = flags | FI_TAGGED,
					 .addr = msg->tag));
}

static ssize_t
tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	return san_ofi_msg_post_one(ep, buf, len, NULL,
				    OFI_ARGS(.call = OFI_CALL_INJECT, .flags = FI_TAGGED, .to = to,
					     .addr = tag));
}

static ssize_t
tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
		fi_addr_t to, uint64_t tag, void *context)
{
	return san_ofi_msg_post_one(ep, buf, len, desc,
				    OFI_ARGS(.flags = FI_TAGGED | FI_REMOTE_CQ_DATA, .data = data,
					     .to = to, .addr = tag, .context = context));
}

static ssize_t
tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
		  uint64_t tag)
{
	return san_ofi_msg_post_one(ep, buf, len, NULL,
				    OFI_ARGS(.call = OFI_CALL_INJECT,
					     .flags = FI_TAGGED | FI_REMOTE_CQ_DATA, .data = data,
					     .to = to, .addr = tag));
}

/* ---- receives, of endpoints and shared ---- */

static ssize_t
msg_post_recv(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	bool is_shared = fid->fid.fclass == FI_CLASS_SRX_CTX;
	struct ofi_ep *ep = is_shared ? NULL : container_of(fid, struct ofi_ep, fid);
	struct ofi_rxq *q = san_ofi_rxq_of(&fid->fid);
	OFI_LOCKED;

	if ((flags & FI_PEEK) != 0) /* a program may look until a message is there */
		san_ofi_progress(q->domain->ctx);
	if (!is_shared && ep->state == OFI_EP_NEW)
		return -FI_EOPBADSTATE;
	if (!is_shared && q != &ep->own_rxq)
		return -FI_EINVAL;
	if ((flags & FI_TAGGED) != 0)
		q = &ep->rdm->tagged;
	return san_ofi_deliver_post(q, ep, msg, flags);
}

static ssize_t
msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	const struct fi_msg_tagged any = {
		msg->msg_iov, msg->desc, msg->iov_count, msg->addr, 0, ~0ull, msg->context, 0};

	return msg_post_recv(ep, &any, flags & ~(FI_TAGGED | FI_PEEK));
}

static ssize_t
msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	  void *context)
{
	const struct fi_msg msg = {iov, desc, count, from, context, 0};

	return msg_recvmsg(ep, &msg, san_ofi_rxq_of(&ep->fid)->flags);
}

static ssize_t
msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	const struct iovec iov = {buf, len};

	return msg_recvv(ep, &iov, &desc, 1, from, context);
}

static ssize_t
tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return msg_post_recv(ep, msg, (flags & ~FI_MULTI_RECV) | FI_TAGGED);
}

static ssize_t
tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	     uint64_t tag, uint64_t ignore, void *context)
{
	const struct fi_msg_tagged msg = {iov, desc, count, from, tag, ignore, context, 0};

	return tagged_recvmsg(ep, &msg, san_ofi_rxq_of(&ep->fid)->flags);
}

static ssize_t
tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag,
	    uint64_t ignore, void *context)
{
	const struct iovec iov = {buf, len};

	return tagged_recvv(ep, &iov, &desc, 1, from, tag, ignore, context);
}

/* ---- tables ---- */

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

static struct fi_ops_msg srx_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
};

/* ---- receives that endpoints share ---- */

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

static struct fi_ops srx_fid_ops = OFI_FID_OPS(srx_close, srx_bind, srx_control);

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
		.cm = OFI_NO_OPS,
		.msg = &srx_msg_ops,
		.tagged = OFI_NO_OPS,
	};
	q->domain->refs++;
	*out = &q->fid;
	return 0;
}
