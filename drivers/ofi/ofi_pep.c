/* SPDX-License-Identifier: BSD-3-Clause */

/* Passive endpoints: they listen, and hand out connection requests. */

#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

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

	san_ofi_ctx_lock();
	rc = pep->eq == NULL ? -FI_ENOEQ : pep->listener != NULL ? -FI_EOPBADSTATE :
								   0;
	/* peers get an own address, also if the program binds to any */
	if (rc == 0)
		rc = san_ofi_ctx_addr(pep->local.sa.sa_family, &pep->local);
	if (rc == 0 && !pep_adopt(pep)) {
		rc = san_ofi_cm_listen(pep->ctx, &pep->local, OFI_SERVICE(0), pep->backlog,
				       &pep->listener);
		if (rc != 0)
			san_ofi_ctx_fail(rc, "fi_listen");
	}
	san_ofi_ctx_unlock();
	return rc;
}

static int
pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid);
	struct ofi_connreq *req;
	int rc;

	if (handle == NULL || handle->fclass != FI_CLASS_CONNREQ || paramlen > OFI_CM_DATA)
		return -FI_EINVAL;
	req = container_of(handle, struct ofi_connreq, fid);
	san_ofi_ctx_lock();
	rc = req->pep == pep && !req->is_done ? san_ofi_cm_request_reject(req, param, paramlen) :
						-FI_EINVAL;
	san_ofi_ctx_unlock();
	return rc;
}

static int
pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	int rc = -FI_EOPBADSTATE;

	san_ofi_ctx_lock();
	if (pep->listener == NULL)
		rc = san_ofi_addr_read(&pep->local, addr, addrlen);
	san_ofi_ctx_unlock();
	return rc;
}

static int
pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	int rc;

	san_ofi_ctx_lock();
	rc = san_ofi_ctx_addr(pep->local.sa.sa_family, &pep->local);
	if (rc == 0)
		rc = san_ofi_addr_copy(&pep->local, addr, addrlen);
	san_ofi_ctx_unlock();
	return rc;
}

static struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_setname,
	.getname = pep_getname,
	.getpeer = OFI_NONE,
	.connect = OFI_NONE,
	.listen = pep_listen,
	.accept = OFI_NONE,
	.reject = pep_reject,
	.shutdown = OFI_NONE,
};

static int
pep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	static const struct ofi_rxq defaults = {.min_multi = OFI_MULTI_RECV};

	(void)fid;
	return san_ofi_rxq_getopt(&defaults, level, name, value, len);
}

static int
pep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid, (void)level, (void)name, (void)value, (void)len;
	return -FI_ENOPROTOOPT;
}

static struct fi_ops_ep pep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = OFI_NONE,
	.getopt = pep_getopt,
	.setopt = pep_setopt,
	.tx_ctx = OFI_NONE,
	.rx_ctx = OFI_NONE,
	.rx_size_left = OFI_NONE,
	.tx_size_left = OFI_NONE,
};

/* ---- open, close ---- */

static int
pep_close(struct fid *fid)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	struct ofi_ctx *ctx = pep->ctx;

	san_ofi_ctx_lock();
	if (pep->eq != NULL) {
		san_ofi_report_forget(pep->eq, &pep->fid.fid);
		pep->eq->refs--;
	}
	pep->fabric->refs--;
	pep->is_closed = true;
	if (LIST_EMPTY(&pep->requests))
		san_ofi_cm_pep_free(pep);
	san_ofi_drive_put(ctx);
	san_ofi_ctx_unlock();
	return 0;
}

static int
pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);

	(void)flags;
	if (bfid->fclass != FI_CLASS_EQ || pep->eq != NULL)
		return -FI_EINVAL;
	san_ofi_ctx_lock();
	pep->eq = container_of(bfid, struct ofi_eq, fid.fid);
	pep->eq->refs++;
	san_ofi_ctx_unlock();
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

static struct fi_ops pep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = pep_close,
	.bind = pep_bind,
	.control = pep_control,
	.ops_open = OFI_NONE,
};

int
san_ofi_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **out,
		 void *context)
{
	struct ofi_pep *pep = calloc(1, sizeof(*pep));
	int rc;

	if (pep == NULL)
		return -FI_ENOMEM;
	pep->fabric = container_of(fabric, struct ofi_fabric, fid);
	pep->backlog = OFI_BACKLOG;
	pep->fid = (struct fid_pep){
		{FI_CLASS_PEP, context, &pep_fid_ops}, &pep_ops, &pep_cm_ops};
	pep->info = fi_dupinfo(info);
	rc = pep->info == NULL ? -FI_ENOMEM : 0;
	if (rc == 0 && info->src_addr != NULL)
		rc = san_ofi_addr_read(&pep->local, info->src_addr, info->src_addrlen);
	san_ofi_ctx_lock();
	if (rc == 0)
		rc = san_ofi_drive_get(&pep->ctx);
	if (rc == 0) {
		pep->fabric->refs++;
		LIST_INSERT_HEAD(&pep->ctx->peps, pep, link);
	}
	san_ofi_ctx_unlock();
	if (rc != 0) {
		fi_freeinfo(pep->info);
		free(pep);
		return rc;
	}
	*out = &pep->fid;
	return 0;
}
