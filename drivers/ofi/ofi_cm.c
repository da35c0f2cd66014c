/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections of endpoints. */

#include <string.h>

#include "ofi_rdm.h"

/* ---- private data ---- */

uint16_t
san_ofi_cm_fill(uint8_t to[RTSAN_PRIVATE_MAX], uint16_t port, const void *data, size_t length)
{
	struct ofi_cm_hdr hdr = {
		.magic = OFI_CM_MAGIC,
		.version = OFI_CM_VERSION,
		.port = port,
		.nb_msg = OFI_NB_MSG,
		.nb_rma = OFI_NB_RMA,
		.buf_size = OFI_BUF_SIZE,
	};

	if (data == NULL)
		length = 0;
	hdr.length = (uint8_t)length;
	memcpy(to, &hdr, sizeof(hdr));
	if (length != 0)
		memcpy(to + sizeof(hdr), data, length);
	return (uint16_t)(sizeof(hdr) + length);
}

bool
san_ofi_cm_read(const struct rtsan_event *ev, struct ofi_cm_hdr *hdr)
{
	if (ev->private_len < sizeof(*hdr))
		return false;
	memcpy(hdr, ev->private_data, sizeof(*hdr));
	/* a transport may have padded the data */
	return hdr->magic == OFI_CM_MAGIC && hdr->version == OFI_CM_VERSION &&
		hdr->length <= ev->private_len - sizeof(*hdr) && hdr->buf_size >= OFI_BUF_SIZE &&
		hdr->nb_msg != 0 && hdr->nb_msg <= OFI_NB_MSG && hdr->nb_rma != 0 &&
		hdr->nb_rma <= OFI_NB_RMA;
}

/* ---- who the peer is ---- */

bool
san_ofi_cm_is_user(const struct rtsan_event *ev, bool needs_proof)
{
	if (san_ofi_init_has_user(ev->uid))
		return true;
	if (ev->user != RTSAN_USER_NONE && !ev->own_user)
		return false;
	return !needs_proof || ev->user == RTSAN_USER_PROVED;
}

int
san_ofi_cm_origin(const struct rtsan_event *ev, struct ofi_origin *to)
{
	union ofi_addr host;

	if (san_ofi_addr_parse(&host, ev->peer, 0) != 0)
		return -FI_EINVAL;
	memset(to, 0, sizeof(*to));
	if (host.sa.sa_family == AF_INET6) /* a host may use all addresses of its network */
		memcpy(to->ip, &host.in6.sin6_addr, sizeof(to->ip) / 2);
	else
		memcpy(&to->ip[sizeof(to->ip) - sizeof(host.in.sin_addr)], &host.in.sin_addr,
		       sizeof(host.in.sin_addr));
	to->uid = ev->user == RTSAN_USER_PROVED ? ev->uid : RTSAN_UID_NONE;
	return 0;
}

/* ---- events ---- */

static void
cm_report(struct ofi_ep *ep, uint32_t type, const void *data, size_t length)
{
	const struct ofi_event ev = {.type = type, .fid = &ep->fid.fid, .length = length};

	if (ep->eq != NULL) /* a connection of FI_EP_RDM has none */
		san_ofi_eq_put(ep->eq, &ev, data);
}

static void
cm_report_error(struct ofi_ep *ep, int err, uint8_t reason, const void *data, size_t length)
{
	const struct ofi_event ev = {
		.fid = &ep->fid.fid, .err = err, .prov_errno = reason, .length = length};

	ep->conn = OFI_CONN_NONE;
	if (ep->eq != NULL)
		san_ofi_eq_put(ep->eq, &ev, data);
}

void
san_ofi_cm_report_end(struct ofi_ep *ep, uint8_t reason)
{
	if (ep->conn == OFI_CONN_UP)
		cm_report(ep, FI_SHUTDOWN, NULL, 0);
	else if (ep->conn == OFI_CONN_BEGUN)
		cm_report_error(ep, FI_ECONNABORTED, reason, NULL, 0);
	ep->conn = OFI_CONN_NONE;
}

static void
cm_take_credits(struct ofi_ep *ep, const struct ofi_cm_hdr *hdr)
{
	ep->credit[OFI_CLASS_MSG] += hdr->nb_msg;
	ep->credit[OFI_CLASS_RMA] += hdr->nb_rma;
}

static void
cm_on_established(struct ofi_ep *ep, const struct rtsan_event *ev)
{
	struct ofi_cm_hdr hdr = {0};
	struct ofi_rx *rx;

	/* a peer that has accepted must be of this provider, and the one that was meant */
	if (!ep->is_accepted &&
	    (!san_ofi_cm_read(ev, &hdr) ||
	     !(ep->owner != NULL ? san_ofi_rdm_is_proved(ep, ev) :
				   san_ofi_cm_is_user(ev, false)))) {
		OFI_WARN(FI_LOG_EP_CTRL,
			 "%s: the peer is no provider of this version, of another user, or not "
			 "the endpoint of this name\n",
			 ev->peer);
		rtsan_disconnect(ep->qp);
		cm_report_error(ep, FI_ECONNREFUSED, RTSAN_R_VERSION, NULL, 0);
		san_ofi_ep_end(ep);
		return;
	}
	cm_take_credits(ep, &hdr);
	if (!ep->is_accepted)
		san_ofi_cm_origin(ev, &ep->origin);
	if (ep->state == OFI_EP_CONNECTING)
		ep->state = OFI_EP_CONNECTED;
	ep->conn = OFI_CONN_UP;
	cm_report(ep, FI_CONNECTED, san_ofi_cm_data(ev), hdr.length);
	while ((rx = STAILQ_FIRST(&ep->early)) != NULL) {
		STAILQ_REMOVE_HEAD(&ep->early, link);
		san_ofi_rx_on_recv(ep, rx);
	}
	san_ofi_progress_mark(ep);
}

void
san_ofi_cm_on_event(const struct rtsan_event *ev)
{
	struct ofi_ep *ep = rtsan_qp_context(ev->qp);
	struct ofi_cm_hdr hdr = {0};

	OFI_INFO(FI_LOG_EP_CTRL, "endpoint %p: event %u, %s\n", (void *)ep, ev->type,
		 rtsan_reason_text(ev->reason));
	if (ev->type == RTSAN_EV_ESTABLISHED) {
		if (ep->conn == OFI_CONN_BEGUN)
			cm_on_established(ep, ev);
	} else {
		if (ev->type == RTSAN_EV_REJECTED)
			cm_report_error(ep, FI_ECONNREFUSED, ev->reason, san_ofi_cm_data(ev),
					san_ofi_cm_read(ev, &hdr) ? hdr.length : 0);
		else if (ev->type == RTSAN_EV_UNREACHABLE)
			cm_report_error(ep, FI_ETIMEDOUT, ev->reason, NULL, 0);
		else
			san_ofi_cm_report_end(ep, ev->reason);
		san_ofi_ep_end(ep);
	}
	if (ep->owner != NULL)
		san_ofi_rdm_on_event(ep, ev);
}

/* ---- calls ---- */

void
san_ofi_cm_warn(const union ofi_addr *peer, const char *why)
{
	char text[RTSAN_ADDRESS_MAX];

	san_ofi_addr_text(peer, text);
	OFI_WARN(FI_LOG_EP_CTRL, "%s port %u: %s\n", text, san_ofi_addr_port(peer), why);
}

int
san_ofi_cm_connect(struct ofi_ep *ep, uint64_t service, const void *param, size_t paramlen)
{
	char text[RTSAN_ADDRESS_MAX];
	uint8_t data[RTSAN_PRIVATE_MAX];
	struct rtsan_conn_param conn = {.private_data = data};
	int rc = san_ofi_ep_enable(ep);

	if (rc != 0)
		return rc;
	if (ep->state != OFI_EP_ENABLED)
		return -FI_EISCONN;
	/* an own address of the peer's family, if the program has not chosen one */
	rc = san_ofi_ctx_addr(ep->peer.sa.sa_family, &ep->local);
	if (rc != 0)
		return rc;
	conn.private_len =
		san_ofi_cm_fill(data, san_ofi_addr_port(&ep->local), param, paramlen);
	san_ofi_addr_text(&ep->peer, text);
	rc = rtsan_connect(ep->qp, text, service, &conn);
	if (rc != 0)
		return san_ofi_ctx_fail(rc, text);
	ep->state = OFI_EP_CONNECTING;
	ep->conn = OFI_CONN_BEGUN;
	return 0;
}

static int
cm_connect(struct fid_ep *fid, const void *addr, const void *param, size_t paramlen)
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
		rc = san_ofi_cm_connect(ep, OFI_SERVICE(san_ofi_addr_port(&ep->peer)), param,
					paramlen);
	san_ofi_ctx_unlock();
	return rc;
}

int
san_ofi_cm_accept(struct ofi_ep *ep, uint64_t request, const struct ofi_cm_hdr *hdr,
		  const void *param, size_t paramlen)
{
	uint8_t data[RTSAN_PRIVATE_MAX];
	struct rtsan_conn_param conn = {.private_data = data};
	int rc;

	rc = san_ofi_ep_enable(ep);
	if (rc != 0)
		return rc;
	if (ep->state != OFI_EP_ENABLED)
		return -FI_EISCONN;
	conn.private_len =
		san_ofi_cm_fill(data, san_ofi_addr_port(&ep->local), param, paramlen);
	rc = rtsan_accept(ep->domain->ctx->san, request, ep->qp, &conn);
	if (rc != 0)
		return san_ofi_ctx_fail(rc, "fi_accept");
	cm_take_credits(ep, hdr);
	ep->is_accepted = true;
	ep->state = OFI_EP_CONNECTING;
	ep->conn = OFI_CONN_BEGUN;
	return 0;
}

static int
cm_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	struct ofi_connreq *req;
	int rc = -FI_EINVAL;

	san_ofi_ctx_lock();
	req = ep->connreq;
	if (req != NULL && !req->is_done && paramlen <= OFI_CM_DATA)
		rc = san_ofi_cm_accept(ep, req->request, &req->hdr, param, paramlen);
	if (rc == 0) {
		ep->peer = req->peer;
		ep->origin = req->origin;
		ep->connreq = NULL;
		san_ofi_pep_request_free(req);
	}
	san_ofi_ctx_unlock();
	return rc;
}

static int
cm_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc;

	if (flags != 0)
		return -FI_EBADFLAGS;
	san_ofi_ctx_lock();
	rc = san_ofi_ep_shutdown(ep);
	san_ofi_ctx_unlock();
	return rc;
}

static int
cm_setname(fid_t fid, void *addr, size_t addrlen)
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
cm_getname(fid_t fid, void *addr, size_t *addrlen)
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
cm_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc = -FI_ENOTCONN;

	san_ofi_ctx_lock();
	if (ep->state == OFI_EP_CONNECTED)
		rc = san_ofi_addr_copy(&ep->peer, addr, addrlen);
	san_ofi_ctx_unlock();
	return rc;
}

struct fi_ops_cm san_ofi_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cm_setname,
	.getname = cm_getname,
	.getpeer = cm_getpeer,
	.connect = cm_connect,
	.listen = san_ofi_none_listen,
	.accept = cm_accept,
	.reject = san_ofi_none_reject,
	.shutdown = cm_shutdown,
};

struct fi_ops_cm san_ofi_cm_rdm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cm_setname,
	.getname = cm_getname,
	.getpeer = san_ofi_none_getpeer,
	.connect = san_ofi_none_connect,
	.listen = san_ofi_none_listen,
	.accept = san_ofi_none_accept,
	.reject = san_ofi_none_reject,
	.shutdown = san_ofi_none_shutdown,
};
