/* SPDX-License-Identifier: BSD-3-Clause */

/* Endpoints: the calls for their parts, names and connections. */

#include <sched.h>
#include <stdlib.h>

#include "ofi_priv.h"

#define EP_LINGER_MS 1000 /* time for injected data to be sent when an endpoint is closed */

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

/* ---- connections ---- */

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
static void
ep_drain(struct ofi_ep *ep, int64_t end)
{
	while (ep->state != OFI_EP_ENDED && !LIST_EMPTY(&ep->ops) && ep_linger_on(ep, end))
		;
}

static int
ep_linger(struct ofi_ep *ep, int64_t end)
{
	int rc;

	ep_drain(ep, end);
	if (ep->state != OFI_EP_CONNECTED)
		return 0;
	/* wait for the end of the connection, with which everything completes */
	rc = ep->is_shut ? 0 : san_ofi_tx_finish(ep);
	while (rc == 0 && ep->conn == OFI_CONN_UP && ep_linger_on(ep, end))
		;
	return rc;
}

static int
ep_connect(struct fid_ep *fid, const void *addr, const void *param, size_t paramlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc = 0;

	san_ofi_ctx_lock();
	if (ep->connreq != NULL || ep->is_accepted || paramlen > OFI_CM_DATA)
		rc = -FI_EINVAL;
	else if (addr != NULL) /* its length is that of its family */
		rc = san_ofi_addr_read(&ep->peer, addr, sizeof(ep->peer));
	else if (ep->peer.sa.sa_family == 0)
		rc = -FI_EINVAL;
	if (rc == 0 && san_ofi_addr_token(&ep->peer) != 0) {
		san_ofi_cm_warn(&ep->peer, "it is FI_EP_RDM, this endpoint is FI_EP_MSG" OFI_KINDS);
		rc = -FI_ECONNREFUSED;
	}
	if (rc == 0)
		rc = san_ofi_conn_connect(ep, OFI_SERVICE(san_ofi_addr_port(&ep->peer)), param,
					  paramlen);
	san_ofi_ctx_unlock();
	return rc;
}

static int
ep_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	struct ofi_connreq *req;
	int rc = -FI_EINVAL;

	san_ofi_ctx_lock();
	req = ep->connreq;
	if (req != NULL && !req->is_done && paramlen <= OFI_CM_DATA)
		rc = san_ofi_conn_accept(ep, req->request, &req->hdr, param, paramlen);
	if (rc == 0) {
		ep->peer = req->peer;
		ep->origin = req->origin;
		ep->connreq = NULL;
		san_ofi_cm_request_free(req);
	}
	san_ofi_ctx_unlock();
	return rc;
}

static int
ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc = 0;

	if (flags != 0)
		return -FI_EBADFLAGS;
	san_ofi_ctx_lock();
	if (ep->state == OFI_EP_CONNECTED && !ep->is_shut)
		rc = ep_linger(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
	else if (ep->state != OFI_EP_ENDED) /* else the peer was faster */
		rc = -FI_ENOTCONN;
	san_ofi_ctx_unlock();
	return rc;
}

static int
ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	int rc = -FI_EOPBADSTATE;

	san_ofi_ctx_lock();
	if (ep->state < (ep->rdm != NULL ? OFI_EP_ENABLED : OFI_EP_CONNECTING))
		rc = san_ofi_addr_read(&ep->local, addr, addrlen);
	san_ofi_ctx_unlock();
	return rc;
}

static int
ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	int rc;

	san_ofi_ctx_lock();
	rc = san_ofi_ctx_addr(ep->local.sa.sa_family, &ep->local);
	if (rc == 0 && ep->rdm != NULL)
		san_ofi_rdm_name(ep);
	if (rc == 0)
		rc = san_ofi_addr_copy(&ep->local, addr, addrlen);
	san_ofi_ctx_unlock();
	return rc;
}

static int
ep_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc = -FI_ENOTCONN;

	san_ofi_ctx_lock();
	if (ep->state == OFI_EP_CONNECTED)
		rc = san_ofi_addr_copy(&ep->peer, addr, addrlen);
	san_ofi_ctx_unlock();
	return rc;
}

static struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.listen = OFI_NONE,
	.accept = ep_accept,
	.reject = OFI_NONE,
	.shutdown = ep_shutdown,
};

static struct fi_ops_cm ep_rdm_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = OFI_NONE,
	.connect = OFI_NONE,
	.listen = OFI_NONE,
	.accept = OFI_NONE,
	.reject = OFI_NONE,
	.shutdown = OFI_NONE,
};

/* ---- options ---- */

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
		rc = san_ofi_conn_enable(ep);
	else if (command == FI_GETOPSFLAG || command == FI_SETOPSFLAG)
		rc = ep_control_flags(ep, command == FI_SETOPSFLAG, arg);
	if (command == FI_ENABLE && rc == 0 && ep->rdm != NULL && ep->state == OFI_EP_NEW)
		rc = san_ofi_rdm_enable(ep);
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
	const struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	return san_ofi_rxq_getopt(ep->rxq, level, name, value, len);
}

static int
ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	return san_ofi_rxq_setopt(ep->rxq, level, name, value, len);
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = OFI_NONE,
	.rx_ctx = OFI_NONE,
	.rx_size_left = OFI_NONE,
	.tx_size_left = OFI_NONE,
};

/* ---- open, close ---- */

static void
ep_close_rdm(struct ofi_ep *ep, int64_t end_ms)
{
	struct ofi_rdm *rdm = ep->rdm;
	struct ofi_ep *conn;

	if (ep->state != OFI_EP_NEW) {
		LIST_REMOVE(rdm, link); /* nothing is reaped, nothing new comes */
		LIST_REMOVE(rdm, av_link);
		rtsan_listener_destroy(rdm->listener);
	}
	LIST_FOREACH(conn, &rdm->conns, conn_link)
		ep_drain(conn, end_ms);
	LIST_FOREACH(conn, &rdm->conns, conn_link) /* all at once */
		if (conn->state == OFI_EP_CONNECTED && !conn->is_shut)
			san_ofi_tx_finish(conn);
	LIST_FOREACH(conn, &rdm->conns, conn_link)
		ep_linger(conn, end_ms);
	san_ofi_tag_drop_all(rdm);
	while ((conn = LIST_FIRST(&rdm->conns)) != NULL)
		san_ofi_conn_close(conn);
	san_ofi_rxq_flush(&ep->own_rxq, ep);
	san_ofi_rxq_flush(&rdm->tagged, ep);
	if (rdm->av != NULL)
		rdm->av->refs--;
	free(rdm->peers);
}

static int
ep_close(struct fid *fid)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	san_ofi_ctx_lock();
	if (ep->rdm != NULL)
		ep_close_rdm(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
	else
		ep_linger(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
	if (ep->connreq != NULL)
		san_ofi_cm_request_drop(ep->connreq);
	san_ofi_conn_free(ep);
	san_ofi_ctx_unlock();
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = OFI_NONE,
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

int
san_ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct ofi_ep *ep = san_ofi_conn_alloc(container_of(domain, struct ofi_domain, fid));
	int rc;

	if (ep == NULL)
		return -FI_ENOMEM;
	ep->fid = (struct fid_ep){
		.fid = {FI_CLASS_EP, context, &ep_fid_ops},
		.ops = &ep_ops,
		.cm = &ep_cm_ops,
		.msg = &san_ofi_msg_ops,
		.rma = &san_ofi_rma_ops,
		.tagged = &san_ofi_msg_no_tagged_ops,
		.atomic = &san_ofi_rma_atomic_ops,
	};
	rc = ep_set_info(ep, info);
	if (rc != 0) {
		free(ep);
		return rc;
	}
	if (ep->rdm != NULL) {
		ep->fid.cm = &ep_rdm_cm_ops;
		ep->fid.tagged = &san_ofi_msg_tagged_ops;
	}
	san_ofi_ctx_lock();
	ep->domain->refs++;
	san_ofi_ctx_unlock();
	*out = &ep->fid;
	return 0;
}
