/* SPDX-License-Identifier: BSD-3-Clause */

/* Endpoints: their parts, their beginning and end. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_rdm.h"

#define EP_LINGER_MS 1000 /* time for injected data to be sent when an endpoint is closed */

/* ---- completions ---- */

void
san_ofi_ep_report(struct ofi_ep *ep, const struct fi_cq_err_entry *e, bool is_wanted)
{
	bool receives = (e->flags & FI_RECV) != 0;
	struct ofi_cq *cq = receives ? ep->rx_cq : ep->tx_cq;
	enum ofi_cntr_kind kind = receives ? OFI_CNTR_RECV :
		(e->flags & FI_SEND) != 0  ? OFI_CNTR_SEND :
		(e->flags & FI_READ) != 0  ? OFI_CNTR_READ :
					     OFI_CNTR_WRITE;

	if (cq != NULL && (is_wanted || e->err != 0))
		san_ofi_cq_put(cq, e);
	if (ep->cntrs[kind] != NULL)
		san_ofi_cntr_add(ep->cntrs[kind], e->err != 0);
}

/* ---- end ---- */

/*
 * Cancel operations. Those with work requests in the transport end with its last completion, unless
 * *all* of them end now.
 */
static void
ep_cancel_ops(struct ofi_ep *ep, bool all)
{
	struct ofi_op *op, *next;

	STAILQ_INIT(&ep->sends);
	STAILQ_INIT(&ep->answers);
	for (op = LIST_FIRST(&ep->ops); op != NULL; op = next) {
		next = LIST_NEXT(op, link);
		if (op->nb_wr == 0 || all) {
			san_ofi_op_cancel(op);
			continue;
		}
		if (op->err == 0 && (!op->is_posted || op->needs_answer)) {
			op->err = FI_ECANCELED;
			op->prov_errno = RTSAN_WC_FLUSHED;
		}
		if (op->needs_answer)
			ep->requests[op->id] = NULL;
		op->needs_answer = false;
		op->is_posted = true;
	}
}

static void
ep_cancel_recvs(struct ofi_ep *ep)
{
	if (ep->rxq == &ep->own_rxq)
		san_ofi_rxq_flush(ep->rxq, ep);
}

void
san_ofi_ep_end(struct ofi_ep *ep)
{
	if (ep->state == OFI_EP_ENDED)
		return;
	ep->state = OFI_EP_ENDED;
	ep_cancel_ops(ep, ep->domain->ctx->is_lost);
	ep_cancel_recvs(ep);
}

void
san_ofi_ep_break(struct ofi_ep *ep, const char *why)
{
	OFI_WARN(FI_LOG_EP_DATA, "endpoint %p: %s\n", (void *)ep, why);
	if (ep->state == OFI_EP_ENDED)
		return;
	ep->is_shut = true;
	rtsan_disconnect(ep->qp);
	san_ofi_cm_report_end(ep, RTSAN_R_REFUSED);
	san_ofi_ep_end(ep);
}

/* ---- beginning ---- */

static int
ep_create_pool(struct ofi_ep *ep)
{
	uint32_t i;
	int rc = rtsan_mr_alloc(ep->domain->ctx->san, OFI_NB_RX * OFI_BUF_SIZE, 0, &ep->rx_mr);

	if (rc != 0)
		return san_ofi_ctx_fail(rc, "receives of an endpoint");
	for (i = 0; i < OFI_NB_RX; i++) {
		ep->rx[i].data = (uint8_t *)rtsan_mr_addr(ep->rx_mr) + i * OFI_BUF_SIZE;
		ep->rx[i].class = OFI_CLASS_NONE; /* private data has these credits */
		STAILQ_INSERT_TAIL(&ep->consumed, &ep->rx[i], link);
	}
	san_ofi_rx_repost(ep);
	return 0;
}

int
san_ofi_ep_enable(struct ofi_ep *ep)
{
	struct rtsan_qp_attr attr = {
		.sq_depth = OFI_SQ_DEPTH,
		.rq_depth = OFI_RQ_DEPTH,
		.context = ep,
	};
	int rc;

	if (ep->eq == NULL && ep->rdm == NULL && ep->owner == NULL)
		return -FI_ENOEQ;
	/* counters do not report errors, and one queue at least makes progress */
	if (((ep->caps & (FI_SEND | FI_READ | FI_WRITE)) != 0 && ep->tx_cq == NULL) ||
	    ((ep->caps & FI_RECV) != 0 && ep->rx_cq == NULL) ||
	    (ep->tx_cq == NULL && ep->rx_cq == NULL))
		return -FI_ENOCQ;
	if (ep->state != OFI_EP_NEW)
		return 0;
	if (ep->rdm != NULL)
		return san_ofi_rdm_enable(ep);
	rc = san_ofi_ctx_lane_get(ep->domain->ctx, &ep->lane);
	if (rc != 0)
		return rc;
	attr.send_cq = attr.recv_cq = ep->lane->cq;
	rc = rtsan_qp_create(ep->domain->ctx->san, &attr, &ep->qp);
	rc = rc == 0 ? ep_create_pool(ep) : san_ofi_ctx_fail(rc, "endpoint");
	if (rc != 0) {
		if (ep->qp != NULL)
			rtsan_qp_destroy(ep->qp);
		san_ofi_ctx_lane_put(ep->lane);
		ep->qp = NULL;
		ep->lane = NULL;
		return rc;
	}
	ep->state = OFI_EP_ENABLED;
	LIST_INSERT_HEAD(&ep->domain->ctx->eps, ep, link);
	return 0;
}

/* ---- binding ---- */

static int
ep_bind_cq(struct ofi_ep *ep, struct ofi_cq *cq, uint64_t flags)
{
	if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0)
		return -FI_EBADFLAGS;
	if (((flags & FI_TRANSMIT) != 0 && ep->tx_cq != NULL) ||
	    ((flags & FI_RECV) != 0 && ep->rx_cq != NULL))
		return -FI_EINVAL;
	if ((flags & FI_TRANSMIT) != 0) {
		ep->tx_cq = cq;
		ep->tx_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
		cq->refs++;
	}
	if ((flags & FI_RECV) != 0) {
		ep->rx_cq = cq;
		ep->rx_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
		cq->refs++;
	}
	return 0;
}

static int
ep_bind_cntr(struct ofi_ep *ep, struct ofi_cntr *cntr, uint64_t flags)
{
	static const uint64_t bits[OFI_CNTRS] = {
		[OFI_CNTR_SEND] = FI_SEND,
		[OFI_CNTR_RECV] = FI_RECV,
		[OFI_CNTR_READ] = FI_READ,
		[OFI_CNTR_WRITE] = FI_WRITE,
	};
	const uint64_t local = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
	const uint64_t remote = FI_REMOTE_READ | FI_REMOTE_WRITE;
	int i;

	if ((flags & ~(local | remote)) != 0)
		return -FI_EBADFLAGS;
	/* the transport does not notify the target; some ask for that too, without FI_RMA_EVENT */
	if ((flags & local) == 0)
		return -FI_ENOSYS;
	for (i = 0; i < OFI_CNTRS; i++)
		if ((flags & bits[i]) != 0 && ep->cntrs[i] != NULL)
			return -FI_EINVAL;
	for (i = 0; i < OFI_CNTRS; i++) {
		if ((flags & bits[i]) == 0)
			continue;
		ep->cntrs[i] = cntr;
		cntr->refs++;
	}
	return 0;
}

static int
ep_bind_one(struct ofi_ep *ep, struct fid *bfid, uint64_t flags)
{
	switch (bfid->fclass) {
	case FI_CLASS_EQ:
		if (ep->eq != NULL)
			return -FI_EINVAL;
		ep->eq = container_of(bfid, struct ofi_eq, fid.fid);
		ep->eq->refs++;
		return 0;
	case FI_CLASS_CQ:
		return ep_bind_cq(ep, container_of(bfid, struct ofi_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return ep_bind_cntr(ep, container_of(bfid, struct ofi_cntr, fid.fid), flags);
	case FI_CLASS_AV:
		if (ep->rdm == NULL || ep->rdm->av != NULL)
			return -FI_EINVAL;
		ep->rdm->av = container_of(bfid, struct ofi_av, fid.fid);
		ep->rdm->av->refs++;
		return 0;
	case FI_CLASS_SRX_CTX:
		if (ep->rxq != &ep->own_rxq || ep->rdm != NULL)
			return -FI_EINVAL;
		ep->rxq = container_of(bfid, struct ofi_rxq, fid.fid);
		ep->rxq->refs++;
		return 0;
	default:
		return -FI_EINVAL;
	}
}

static int
ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	int rc;

	san_ofi_ctx_lock();
	rc = ep->state == OFI_EP_NEW ? ep_bind_one(ep, bfid, flags) : -FI_EOPBADSTATE;
	san_ofi_ctx_unlock();
	return rc;
}

static void
ep_unbind(struct ofi_ep *ep)
{
	int i;

	if (ep->eq != NULL) {
		san_ofi_eq_forget(ep->eq, &ep->fid.fid);
		ep->eq->refs--;
	}
	if (ep->tx_cq != NULL)
		ep->tx_cq->refs--;
	if (ep->rx_cq != NULL)
		ep->rx_cq->refs--;
	for (i = 0; i < OFI_CNTRS; i++)
		if (ep->cntrs[i] != NULL)
			ep->cntrs[i]->refs--;
	if (ep->rxq != &ep->own_rxq)
		ep->rxq->refs--;
}

/* ---- open, close ---- */

/* Another round while the endpoint closes. False: time is over. */
static bool
ep_linger_on(struct ofi_ep *ep, int64_t end_ms)
{
	san_ofi_progress_events(ep->domain->ctx);
	san_ofi_progress(ep->domain->ctx);
	san_ofi_ctx_unlock();
	sched_yield();
	san_ofi_ctx_lock();
	return san_ofi_wait_now_ms() < end_ms;
}

/* What the program believes to be sent is sent first, and answers to the peer. */
void
san_ofi_ep_drain(struct ofi_ep *ep, int64_t end)
{
	while (ep->state != OFI_EP_ENDED && !LIST_EMPTY(&ep->ops) && ep_linger_on(ep, end))
		;
}

int
san_ofi_ep_linger(struct ofi_ep *ep, int64_t end)
{
	int rc;

	san_ofi_ep_drain(ep, end);
	if (ep->state != OFI_EP_CONNECTED)
		return 0;
	/* wait for the end of the connection, with which everything completes */
	rc = ep->is_shut ? 0 : san_ofi_tx_finish(ep);
	while (rc == 0 && ep->conn == OFI_CONN_UP && ep_linger_on(ep, end))
		;
	return rc;
}

int
san_ofi_ep_shutdown(struct ofi_ep *ep)
{
	if (ep->state == OFI_EP_ENDED)
		return 0; /* the peer was faster */
	if (ep->state != OFI_EP_CONNECTED || ep->is_shut)
		return -FI_ENOTCONN;
	return san_ofi_ep_linger(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
}

static void
ep_release(struct ofi_ep *ep)
{
	struct ofi_ctx *ctx = ep->domain->ctx;
	struct ofi_buf *buf;

	if (ep->is_dirty)
		STAILQ_REMOVE(&ctx->dirty, ep, ofi_ep, dirty);
	if (ep->is_starving)
		STAILQ_REMOVE(&ep->rxq->starving, ep, ofi_ep, starving);
	if (ep->state == OFI_EP_NEW)
		return;
	LIST_REMOVE(ep, link);
	rtsan_qp_destroy(ep->qp);
	ep->state = OFI_EP_ENDED;
	ep_cancel_ops(ep, true); /* first: receives that are in use are older than posted ones */
	ep_cancel_recvs(ep);
	while ((buf = LIST_FIRST(&ep->bufs)) != NULL) {
		LIST_REMOVE(buf, link);
		san_ofi_ctx_buf_put(ctx, buf);
	}
	rtsan_mr_dereg(ep->rx_mr);
	san_ofi_ctx_lane_put(ep->lane);
}

static void
ep_free(struct ofi_ep *ep)
{
	if (ep->rdm == NULL)
		ep_release(ep);
	ep_unbind(ep);
	ep->domain->refs--;
	free(ep->rdm);
	free(ep);
}

static int
ep_close(struct fid *fid)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	san_ofi_ctx_lock();
	if (ep->rdm != NULL)
		san_ofi_rdm_close(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
	else
		san_ofi_ep_linger(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
	if (ep->connreq != NULL)
		san_ofi_pep_request_drop(ep->connreq);
	ep_free(ep);
	san_ofi_ctx_unlock();
	return 0;
}

/* One direction's default flags, which *flags* names. */
static int
ep_control_flags(struct ofi_ep *ep, bool is_set, uint64_t *flags)
{
	const uint64_t both = FI_TRANSMIT | FI_RECV;
	uint64_t way = flags != NULL ? *flags & both : 0;
	uint64_t *own = way == FI_TRANSMIT ? &ep->tx_flags : &ep->rx_flags;

	if (way == 0 || way == both)
		return -FI_EINVAL;
	if (is_set)
		*own = *flags & ~both;
	else
		*flags = *own;
	return 0;
}

static int
ep_control(struct fid *fid, int command, void *arg)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	int rc = -FI_ENOSYS;

	san_ofi_ctx_lock();
	if (command == FI_ENABLE)
		rc = san_ofi_ep_enable(ep);
	else if (command == FI_GETOPSFLAG || command == FI_SETOPSFLAG)
		rc = ep_control_flags(ep, command == FI_SETOPSFLAG, arg);
	san_ofi_ctx_unlock();
	return rc;
}

static ssize_t
ep_cancel(fid_t fid, void *context)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	int rc;

	san_ofi_ctx_lock();
	rc = san_ofi_rxq_cancel(ep->rxq, ep, context);
	if (rc == -FI_ENOENT && ep->rdm != NULL)
		rc = san_ofi_rxq_cancel(&ep->rdm->tagged, ep, context);
	san_ofi_ctx_unlock();
	return rc;
}

static int
ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	return san_ofi_rxq_getopt(container_of(fid, struct ofi_ep, fid.fid)->rxq, level, name,
				  value, len);
}

static int
ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	return san_ofi_rxq_setopt(container_of(fid, struct ofi_ep, fid.fid)->rxq, level, name,
				  value, len);
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = san_ofi_none_tx_ctx,
	.rx_ctx = san_ofi_none_rx_ctx,
	.rx_size_left = san_ofi_none_size_left,
	.tx_size_left = san_ofi_none_size_left,
};

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = san_ofi_none_ops_open,
};

static int
ep_set_info(struct ofi_ep *ep, const struct fi_info *info)
{
	size_t rx_size = OFI_RX_SIZE;
	struct ofi_connreq *req;

	if (info->ep_attr != NULL && info->ep_attr->type != FI_EP_MSG &&
	    info->ep_attr->type != FI_EP_RDM)
		return -FI_EINVAL;
	ep->caps = info->caps;
	ep->tx_size = OFI_TX_SIZE;
	if (info->tx_attr != NULL) {
		ep->tx_flags = info->tx_attr->op_flags;
		if (info->tx_attr->size != 0)
			ep->tx_size = (uint32_t)info->tx_attr->size;
	}
	if (info->rx_attr != NULL) {
		ep->rx_flags = info->rx_attr->op_flags;
		if (info->rx_attr->size != 0)
			rx_size = info->rx_attr->size;
	}
	if (ep->tx_size > OFI_REQUESTS || rx_size > OFI_RX_MAX)
		return -FI_EINVAL;
	san_ofi_rxq_init(&ep->own_rxq, ep->domain, (uint32_t)rx_size);
	if (info->src_addr != NULL)
		san_ofi_addr_read(&ep->local, info->src_addr, info->src_addrlen);
	if (info->dest_addr != NULL)
		san_ofi_addr_read(&ep->peer, info->dest_addr, info->dest_addrlen);
	if (info->ep_attr != NULL && info->ep_attr->type == FI_EP_RDM)
		return san_ofi_rdm_init(ep);
	if (info->handle == NULL)
		return 0;
	if (info->handle->fclass == FI_CLASS_PEP) { /* it takes over the address */
		ep->local = container_of(info->handle, struct ofi_pep, fid.fid)->local;
		return 0;
	}
	if (info->handle->fclass != FI_CLASS_CONNREQ)
		return -FI_EINVAL;
	req = container_of(info->handle, struct ofi_connreq, fid);
	if (req->is_taken)
		return -FI_EBUSY;
	req->is_taken = true;
	ep->connreq = req;
	return 0;
}

static struct ofi_ep *
ep_alloc(struct ofi_domain *domain)
{
	struct ofi_ep *ep = calloc(1, sizeof(*ep));

	if (ep == NULL)
		return NULL;
	ep->domain = domain;
	ep->from = FI_ADDR_NOTAVAIL;
	ep->rxq = &ep->own_rxq;
	STAILQ_INIT(&ep->consumed);
	STAILQ_INIT(&ep->held);
	STAILQ_INIT(&ep->early);
	STAILQ_INIT(&ep->fetches);
	STAILQ_INIT(&ep->sends);
	STAILQ_INIT(&ep->answers);
	LIST_INIT(&ep->ops);
	LIST_INIT(&ep->bufs);
	return ep;
}

struct ofi_ep *
san_ofi_ep_conn_open(struct ofi_ep *owner)
{
	struct ofi_ep *conn = ep_alloc(owner->domain);
	int i;

	if (conn == NULL)
		return NULL;
	conn->owner = owner;
	conn->local = owner->local;
	conn->tx_size = owner->tx_size;
	conn->tx_selective = owner->tx_selective;
	conn->rx_selective = owner->rx_selective;
	san_ofi_rxq_init(&conn->own_rxq, conn->domain, 0);
	conn->tx_cq = owner->tx_cq;
	conn->rx_cq = owner->rx_cq;
	if (conn->tx_cq != NULL)
		conn->tx_cq->refs++;
	if (conn->rx_cq != NULL)
		conn->rx_cq->refs++;
	for (i = 0; i < OFI_CNTRS; i++) {
		conn->cntrs[i] = owner->cntrs[i];
		if (conn->cntrs[i] != NULL)
			conn->cntrs[i]->refs++;
	}
	conn->domain->refs++;
	LIST_INSERT_HEAD(&owner->rdm->conns, conn, conn_link);
	return conn;
}

void
san_ofi_ep_conn_close(struct ofi_ep *conn)
{
	LIST_REMOVE(conn, conn_link);
	ep_free(conn);
}

int
san_ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct ofi_ep *ep = ep_alloc(container_of(domain, struct ofi_domain, fid));
	int rc;

	if (ep == NULL)
		return -FI_ENOMEM;
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &san_ofi_cm_ops;
	ep->fid.msg = &san_ofi_msg_ops;
	ep->fid.rma = &san_ofi_rma_ops;
	ep->fid.tagged = &san_ofi_none_tagged;
	ep->fid.atomic = &san_ofi_atomic_ops;
	rc = ep_set_info(ep, info);
	if (rc != 0) {
		free(ep);
		return rc;
	}
	san_ofi_ctx_lock();
	ep->domain->refs++;
	san_ofi_ctx_unlock();
	*out = &ep->fid;
	return 0;
}
