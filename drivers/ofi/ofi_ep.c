/* SPDX-License-Identifier: BSD-3-Clause */

/* Endpoints: their parts, names and connections. Passive ones hand out connection requests. */

#include <sched.h>

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
		cq->wait.refs++;
	}
	if ((flags & FI_RECV) != 0) {
		ep->rx_cq = cq;
		ep->rx_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
		cq->wait.refs++;
	}
	return 0;
}

static int
ep_bind_cntr(struct ofi_ep *ep, struct ofi_cntr *cntr, uint64_t flags)
{
	const uint64_t *bits = san_ofi_report_counted;
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
		cntr->wait.refs++;
	}
	return 0;
}

static int
ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	OFI_LOCKED;

	if (ep->state != OFI_EP_NEW)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_EQ:
		if (ep->eq != NULL)
			return -FI_EINVAL;
		ep->eq = container_of(bfid, struct ofi_eq, fid.fid);
		ep->eq->wait.refs++;
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

/* ---- connections ---- */

/* Another round while the endpoint closes. False: time is over. */
static bool
ep_linger_on(struct ofi_ep *ep, int64_t end_ms)
{
	san_ofi_progress_events(ep->domain->ctx);
	san_ofi_progress(ep->domain->ctx);
	pthread_mutex_unlock(&san_ofi_ctx_lock);
	sched_yield();
	pthread_mutex_lock(&san_ofi_ctx_lock);
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
	OFI_LOCKED;

	if (ep->rdm != NULL || ep->connreq != NULL || ep->is_accepted || paramlen > OFI_CM_DATA)
		return ep->rdm != NULL ? -FI_ENOSYS : -FI_EINVAL;
	/* the length of *addr* is that of its family */
	if (addr != NULL ? san_ofi_addr_read(&ep->peer, addr, sizeof(ep->peer)) != 0 :
			   ep->peer.sa.sa_family == 0)
		return -FI_EINVAL;
	if (san_ofi_addr_token(&ep->peer) != 0) {
		san_ofi_cm_warn(&ep->peer, "it is FI_EP_RDM, this endpoint is FI_EP_MSG" OFI_KINDS);
		return -FI_ECONNREFUSED;
	}
	return san_ofi_conn_begin(ep, OFI_SERVICE(san_ofi_addr_port(&ep->peer)), NULL, param,
				  paramlen);
}

static int
ep_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	struct ofi_connreq *req;
	int rc;
	OFI_LOCKED;

	req = ep->connreq;
	if (req == NULL || req->is_done || paramlen > OFI_CM_DATA)
		return -FI_EINVAL;
	rc = san_ofi_conn_begin(ep, req->request, &req->hdr, param, paramlen);
	if (rc != 0)
		return rc;
	ep->peer = req->peer;
	ep->origin = req->origin;
	ep->connreq = NULL;
	san_ofi_cm_request_free(req);
	return 0;
}

static int
ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	OFI_LOCKED;

	if (flags != 0)
		return -FI_EBADFLAGS;
	if (ep->state == OFI_EP_ENDED)
		return 0; /* the peer was faster */
	if (ep->state != OFI_EP_CONNECTED || ep->is_shut)
		return -FI_ENOTCONN;
	return ep_linger(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
}

/* Endpoints and passive ones have names. */
static int
ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	bool is_passive = fid->fclass == FI_CLASS_PEP;
	OFI_LOCKED;

	if (is_passive ? pep->listener != NULL :
			 ep->state >= (ep->rdm != NULL ? OFI_EP_ENABLED : OFI_EP_CONNECTING))
		return -FI_EOPBADSTATE;
	return san_ofi_addr_read(is_passive ? &pep->local : &ep->local, addr, addrlen);
}

static int
ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	bool is_passive = fid->fclass == FI_CLASS_PEP;
	union ofi_addr *name = is_passive ? &pep->local : &ep->local;
	OFI_LOCKED;

	if (san_ofi_ctx_addr(name->sa.sa_family, name) != 0)
		return -FI_EADDRNOTAVAIL;
	if (!is_passive && ep->rdm != NULL)
		san_ofi_rdm_name(ep);
	return san_ofi_addr_copy(name, addr, addrlen);
}

static int
ep_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	OFI_LOCKED;

	if (ep->state != OFI_EP_CONNECTED)
		return -FI_ENOTCONN;
	return san_ofi_addr_copy(&ep->peer, addr, addrlen);
}

/* Take over what a closed passive endpoint has left at the port: the transport has one listener. */
static bool
pep_adopt(struct ofi_pep *pep)
{
	uint16_t port = san_ofi_addr_port(&pep->local);
	struct ofi_connreq *req;
	struct ofi_pep *old;

	LIST_FOREACH(old, &pep->ctx->peps, link)
		if (port != 0 && old->is_closed && san_ofi_addr_port(&old->local) == port)
			break;
	if (old == NULL)
		return false;
	pep->listener = old->listener;
	old->listener = NULL;
	while ((req = LIST_FIRST(&old->requests)) != NULL) {
		LIST_REMOVE(req, link);
		LIST_INSERT_HEAD(&pep->requests, req, link);
		req->pep = pep;
	}
	san_ofi_cm_pep_free(old);
	return true;
}

static int
pep_listen(struct fid_pep *fid)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid);
	int rc;
	OFI_LOCKED;

	if (pep->eq == NULL)
		return -FI_ENOEQ;
	if (pep->listener != NULL)
		return -FI_EOPBADSTATE;
	/* peers get an own address, also if the program binds to any */
	rc = san_ofi_ctx_addr(pep->local.sa.sa_family, &pep->local);
	if (rc != 0 || pep_adopt(pep))
		return rc;
	rc = san_ofi_cm_listen(pep->ctx, &pep->local, OFI_SERVICE(0), pep->backlog, &pep->listener);
	return rc == 0 ? 0 : san_ofi_ctx_fail(rc, "fi_listen");
}

static int
pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	struct ofi_connreq *req = container_of(handle, struct ofi_connreq, fid);
	OFI_LOCKED;

	if (handle == NULL || handle->fclass != FI_CLASS_CONNREQ || paramlen > OFI_CM_DATA ||
	    req->pep != container_of(fid, struct ofi_pep, fid) || req->is_done)
		return -FI_EINVAL;
	return san_ofi_cm_request_reject(req, param, paramlen);
}

/* For both: the types of their arguments say which calls are of passive endpoints. */
static struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.listen = pep_listen,
	.accept = ep_accept,
	.reject = pep_reject,
	.shutdown = ep_shutdown,
};

/* ---- options ---- */

static int
ep_control(struct fid *fid, int command, void *arg)
{
	const uint64_t both = FI_TRANSMIT | FI_RECV;
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	uint64_t *flags = arg, *own;
	OFI_LOCKED;

	if (command == FI_ENABLE)
		return ep->rdm != NULL ? san_ofi_rdm_enable(ep) : san_ofi_conn_enable(ep);
	if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG)
		return -FI_ENOSYS;
	/* the default flags of one direction, which *arg* names */
	if (flags == NULL || (*flags & both) == 0 || (*flags & both) == both)
		return -FI_EINVAL;
	own = (*flags & FI_TRANSMIT) != 0 ? &ep->tx_flags : &ep->own_rxq.flags;
	if (command == FI_SETOPSFLAG)
		*own = *flags & ~both;
	else
		*flags = *own;
	return 0;
}

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
	san_ofi_deliver_drop_all(&ep->own_rxq, ep);
	san_ofi_deliver_drop_all(&rdm->tagged, ep);
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
	int i;
	OFI_LOCKED;

	if (ep->rdm != NULL) {
		ep_close_rdm(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
	} else {
		ep_linger(ep, san_ofi_wait_now_ms() + EP_LINGER_MS);
		san_ofi_deliver_drop_all(ep->rxq, ep);
		san_ofi_conn_release(ep);
	}
	if (ep->connreq != NULL)
		san_ofi_cm_request_drop(ep->connreq);
	if (ep->eq != NULL) {
		san_ofi_report_forget(ep->eq, &ep->fid.fid);
		ep->eq->wait.refs--;
	}
	if (ep->tx_cq != NULL)
		ep->tx_cq->wait.refs--;
	if (ep->rx_cq != NULL)
		ep->rx_cq->wait.refs--;
	for (i = 0; i < OFI_CNTRS; i++)
		if (ep->cntrs[i] != NULL)
			ep->cntrs[i]->wait.refs--;
	if (ep->rxq != &ep->own_rxq)
		ep->rxq->refs--;
	ep->domain->refs--;
	free(ep->rdm);
	free(ep);
	return 0;
}

static struct fi_ops ep_fid_ops = OFI_FID_OPS(ep_close, ep_bind, ep_control);

static int
ep_set_info(struct ofi_ep *ep, const struct fi_info *info)
{
	const struct fi_info all = san_ofi_info_complete(info);
	enum fi_ep_type type = all.ep_attr->type;
	struct ofi_connreq *req;

	if ((type != FI_EP_UNSPEC && type != FI_EP_MSG && type != FI_EP_RDM) ||
	    all.tx_attr->size > OFI_REQUESTS || all.rx_attr->size > OFI_RX_MAX)
		return -FI_EINVAL;
	ep->caps = info->caps;
	ep->tx_flags = all.tx_attr->op_flags;
	ep->tx_size = all.tx_attr->size != 0 ? (uint32_t)all.tx_attr->size : OFI_TX_SIZE;
	san_ofi_rxq_init(&ep->own_rxq, ep->domain, all.rx_attr);
	if (info->src_addr != NULL)
		san_ofi_addr_read(&ep->local, info->src_addr, info->src_addrlen);
	if (info->dest_addr != NULL)
		san_ofi_addr_read(&ep->peer, info->dest_addr, info->dest_addrlen);
	if (type == FI_EP_RDM)
		return san_ofi_rdm_init(ep, all.rx_attr);
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
	OFI_LOCKED;

	if (ep == NULL)
		return -FI_ENOMEM;
	rc = ep_set_info(ep, info);
	if (rc != 0) {
		free(ep);
		return rc;
	}
	ep->fid = (struct fid_ep){
		.fid = {FI_CLASS_EP, context, &ep_fid_ops},
		.ops = &san_ofi_rxq_ep_ops,
		.cm = &ep_cm_ops,
		.msg = &san_ofi_msg_ops,
		.rma = &san_ofi_msg_rma_ops,
		.tagged = ep->rdm != NULL ? &san_ofi_msg_tagged_ops : OFI_NO_OPS,
		.atomic = &san_ofi_msg_atomic_ops,
	};
	ep->domain->refs++;
	*out = &ep->fid;
	return 0;
}

/* ---- passive endpoints ---- */

static int
pep_close(struct fid *fid)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	struct ofi_ctx *ctx = pep->ctx;
	OFI_LOCKED;

	if (pep->eq != NULL) {
		san_ofi_report_forget(pep->eq, &pep->fid.fid);
		pep->eq->wait.refs--;
	}
	pep->fabric->refs--;
	pep->is_closed = true;
	if (LIST_EMPTY(&pep->requests))
		san_ofi_cm_pep_free(pep);
	san_ofi_progress_ctx_put(ctx);
	return 0;
}

static int
pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	OFI_LOCKED;

	if (bfid->fclass != FI_CLASS_EQ || pep->eq != NULL)
		return -FI_EINVAL;
	pep->eq = container_of(bfid, struct ofi_eq, fid.fid);
	pep->eq->wait.refs++;
	return 0;
}

static int
pep_control(struct fid *fid, int command, void *arg)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	int backlog;

	if (command != FI_BACKLOG || arg == NULL)
		return -FI_ENOSYS;
	memcpy(&backlog, arg, sizeof(backlog));
	if (backlog < 1 || backlog > UINT16_MAX)
		return -FI_EINVAL;
	pep->backlog = (uint16_t)backlog;
	return 0;
}

static struct fi_ops pep_fid_ops = OFI_FID_OPS(pep_close, pep_bind, pep_control);

int
san_ofi_ep_passive_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **out,
			void *context)
{
	struct ofi_pep *pep = calloc(1, sizeof(*pep));
	int rc = -FI_ENOMEM;
	OFI_LOCKED;

	if (pep == NULL)
		return rc;
	pep->fabric = container_of(fabric, struct ofi_fabric, fid);
	pep->backlog = OFI_BACKLOG;
	pep->fid = (struct fid_pep){
		{FI_CLASS_PEP, context, &pep_fid_ops}, &san_ofi_rxq_ep_ops, &ep_cm_ops};
	pep->info = fi_dupinfo(info);
	if (pep->info != NULL)
		rc = info->src_addr == NULL ?
			0 :
			san_ofi_addr_read(&pep->local, info->src_addr, info->src_addrlen);
	if (rc == 0)
		rc = san_ofi_progress_ctx_get(&pep->ctx);
	if (rc != 0) {
		fi_freeinfo(pep->info);
		free(pep);
		return rc;
	}
	pep->fabric->refs++;
	LIST_INSERT_HEAD(&pep->ctx->peps, pep, link);
	*out = &pep->fid;
	return 0;
}
