/* SPDX-License-Identifier: BSD-3-Clause */

/* Passive endpoints: they listen, and hand out connection requests. */

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ofi_priv.h"

#define PEP_PORT_FIRST 32768 /* of those that are drawn, as the kernel's */
#define PEP_PORTS      28232
#define PEP_TRIES      64

/* ---- requests ---- */

static void
pep_free(struct ofi_pep *pep)
{
	if (pep->listener != NULL)
		rtsan_listener_destroy(pep->listener);
	LIST_REMOVE(pep, link);
	fi_freeinfo(pep->info);
	free(pep);
}

void
san_ofi_pep_request_free(struct ofi_connreq *req)
{
	struct ofi_pep *pep = req->pep;

	LIST_REMOVE(req, link);
	free(req);
	if (pep->is_closed && LIST_EMPTY(&pep->requests))
		pep_free(pep);
}

static int
pep_reject_request(struct ofi_connreq *req, const void *param, size_t paramlen)
{
	uint8_t data[RTSAN_PRIVATE_MAX];
	uint16_t len = san_ofi_cm_fill(data, 0, param, paramlen);
	int rc = rtsan_reject(req->pep->ctx->san, req->request, data, len);

	req->is_done = true;
	if (!req->is_taken)
		san_ofi_pep_request_free(req);
	return rc;
}

void
san_ofi_pep_request_drop(struct ofi_connreq *req)
{
	if (!req->is_done)
		rtsan_reject(req->pep->ctx->san, req->request, NULL, 0);
	san_ofi_pep_request_free(req);
}

/* Take over what a closed passive endpoint has left at *port*: the transport has one listener. */
static bool
pep_adopt(struct ofi_pep *pep, uint16_t port)
{
	struct ofi_connreq *req;
	struct ofi_pep *old;

	LIST_FOREACH(old, &pep->ctx->peps, link)
		if (old->is_closed && san_ofi_addr_port(&old->local) == port)
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
	pep_free(old);
	return true;
}

void
san_ofi_pep_end_all(struct ofi_ctx *ctx)
{
	struct ofi_connreq *req;
	struct ofi_pep *pep;

	while ((pep = LIST_FIRST(&ctx->peps)) != NULL) {
		while ((req = LIST_FIRST(&pep->requests)) != NULL) {
			LIST_REMOVE(req, link);
			free(req);
		}
		pep_free(pep);
	}
}

static struct ofi_connreq *
pep_add_request(struct ofi_pep *pep, const struct rtsan_event *ev)
{
	struct ofi_connreq *req = calloc(1, sizeof(*req));

	if (req == NULL)
		return NULL;
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->pep = pep;
	req->request = ev->request;
	if (!san_ofi_cm_read(ev, &req->hdr) || !san_ofi_cm_is_user(ev, false) ||
	    san_ofi_cm_origin(ev, &req->origin) != 0 ||
	    san_ofi_addr_parse(&req->peer, ev->peer, req->hdr.port) != 0) {
		OFI_INFO(FI_LOG_EP_CTRL, "%s: a request of another program, or another user\n",
			 ev->peer);
		free(req);
		return NULL;
	}
	LIST_INSERT_HEAD(&pep->requests, req, link);
	return req;
}

void
san_ofi_pep_on_request(struct ofi_ctx *ctx, const struct rtsan_event *ev)
{
	struct ofi_event event = {.type = FI_CONNREQ};
	struct ofi_connreq *req = NULL;
	struct ofi_pep *pep;

	LIST_FOREACH(pep, &ctx->peps, link)
		if (pep->listener == ev->listener)
			break;
	if (pep != NULL && !pep->is_closed)
		req = pep_add_request(pep, ev);
	if (req == NULL) {
		rtsan_reject(ctx->san, ev->request, NULL, 0);
		return;
	}
	event.fid = &pep->fid.fid;
	event.info = fi_dupinfo(pep->info);
	event.length = req->hdr.length;
	if (event.info == NULL ||
	    san_ofi_info_set_addrs(event.info, &pep->local, &req->peer) != 0) {
		fi_freeinfo(event.info);
		pep_reject_request(req, NULL, 0);
		return;
	}
	event.info->handle = &req->fid;
	san_ofi_eq_put(pep->eq, &event, san_ofi_cm_data(ev));
}

/* ---- calls ---- */

uint16_t
san_ofi_pep_draw_port(void)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), 0) < 0)
		return 0;
	return (uint16_t)(PEP_PORT_FIRST + random % PEP_PORTS);
}

static int
pep_listen_at(struct ofi_pep *pep, uint16_t port)
{
	int rc = rtsan_listen(pep->ctx->san, OFI_SERVICE(port), 0, pep->backlog, &pep->listener);

	if (rc == 0)
		san_ofi_addr_set_port(&pep->local, port);
	return rc;
}

static int
pep_listen_locked(struct ofi_pep *pep)
{
	uint16_t port;
	int rc, i;

	if (pep->eq == NULL)
		return -FI_ENOEQ;
	if (pep->listener != NULL)
		return -FI_EOPBADSTATE;
	/* peers get an own address, also if the program binds to any */
	rc = san_ofi_ctx_addr(pep->local.sa.sa_family, &pep->local);
	if (rc != 0)
		return rc;
	port = san_ofi_addr_port(&pep->local);
	if (port != 0)
		rc = pep_adopt(pep, port) ? 0 : pep_listen_at(pep, port);
	else
		for (i = 0, rc = -FI_EADDRINUSE; i < PEP_TRIES && rc == -FI_EADDRINUSE; i++)
			rc = pep_listen_at(pep, san_ofi_pep_draw_port());
	return rc == 0 ? 0 : san_ofi_ctx_fail(rc, "fi_listen");
}

static int
pep_listen(struct fid_pep *fid)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid);
	int rc;

	san_ofi_ctx_lock();
	rc = pep_listen_locked(pep);
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
	rc = req->pep == pep && !req->is_done ? pep_reject_request(req, param, paramlen) :
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
	.getpeer = san_ofi_none_getpeer,
	.connect = san_ofi_none_connect,
	.listen = pep_listen,
	.accept = san_ofi_none_accept,
	.reject = pep_reject,
	.shutdown = san_ofi_none_shutdown,
};

static ssize_t
pep_cancel(fid_t fid, void *context)
{
	(void)fid, (void)context;
	return -FI_ENOSYS;
}

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
	.cancel = pep_cancel,
	.getopt = pep_getopt,
	.setopt = pep_setopt,
	.tx_ctx = san_ofi_none_tx_ctx,
	.rx_ctx = san_ofi_none_rx_ctx,
	.rx_size_left = san_ofi_none_size_left,
	.tx_size_left = san_ofi_none_size_left,
};

/* ---- open, close ---- */

static int
pep_close(struct fid *fid)
{
	struct ofi_pep *pep = container_of(fid, struct ofi_pep, fid.fid);
	struct ofi_ctx *ctx = pep->ctx;

	san_ofi_ctx_lock();
	if (pep->eq != NULL) {
		san_ofi_eq_forget(pep->eq, &pep->fid.fid);
		pep->eq->refs--;
	}
	pep->fabric->refs--;
	pep->is_closed = true;
	if (LIST_EMPTY(&pep->requests))
		pep_free(pep);
	san_ofi_ctx_put(ctx);
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
	.ops_open = san_ofi_none_ops_open,
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
	LIST_INIT(&pep->requests);
	pep->fid.fid.fclass = FI_CLASS_PEP;
	pep->fid.fid.context = context;
	pep->fid.fid.ops = &pep_fid_ops;
	pep->fid.ops = &pep_ops;
	pep->fid.cm = &pep_cm_ops;
	pep->info = fi_dupinfo(info);
	rc = pep->info == NULL ? -FI_ENOMEM : 0;
	if (rc == 0 && info->src_addr != NULL)
		rc = san_ofi_addr_read(&pep->local, info->src_addr, info->src_addrlen);
	san_ofi_ctx_lock();
	if (rc == 0)
		rc = san_ofi_ctx_get(&pep->ctx);
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
