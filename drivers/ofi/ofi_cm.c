/* SPDX-License-Identifier: BSD-3-Clause */

/* Connection management: private data, who the peer is, and requests that wait for an answer. */

#include <sys/random.h>

#include "ofi_priv.h"

#define CM_PORT_FIRST 32768 /* of those that are drawn, as the kernel's */
#define CM_PORTS      28232
#define CM_TRIES      64

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
	if (san_ofi_ctx_has_user(ev->uid))
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

void
san_ofi_cm_warn(const union ofi_addr *peer, const char *why)
{
	char text[RTSAN_ADDRESS_MAX];

	san_ofi_addr_text(peer, text);
	OFI_WARN(FI_LOG_EP_CTRL, "%s port %u: %s\n", text, san_ofi_addr_port(peer), why);
}

/* ---- requests ---- */

int
san_ofi_cm_listen(struct ofi_ctx *ctx, union ofi_addr *local, uint64_t service, uint16_t backlog,
		  struct rtsan_listener **out)
{
	uint16_t own = san_ofi_addr_port(local), port = own;
	uint32_t random;
	int rc, i = 0;

	do {
		if (own == 0 && getrandom(&random, sizeof(random), 0) == sizeof(random))
			port = (uint16_t)(CM_PORT_FIRST + random % CM_PORTS);
		rc = rtsan_listen(ctx->san, service | port, 0, backlog, out);
	} while (own == 0 && rc == -FI_EADDRINUSE && ++i < CM_TRIES);
	if (rc == 0)
		san_ofi_addr_set_port(local, port);
	return rc;
}

void
san_ofi_cm_pep_free(struct ofi_pep *pep)
{
	rtsan_listener_destroy(pep->listener);
	LIST_REMOVE(pep, link);
	fi_freeinfo(pep->info);
	free(pep);
}

void
san_ofi_cm_request_free(struct ofi_connreq *req)
{
	struct ofi_pep *pep = req->pep;

	LIST_REMOVE(req, link);
	free(req);
	if (pep->is_closed && LIST_EMPTY(&pep->requests))
		san_ofi_cm_pep_free(pep);
}

int
san_ofi_cm_request_reject(struct ofi_connreq *req, const void *param, size_t paramlen)
{
	uint8_t data[RTSAN_PRIVATE_MAX];
	uint16_t len = san_ofi_cm_fill(data, 0, param, paramlen);
	int rc = rtsan_reject(req->pep->ctx->san, req->request, data, len);

	req->is_done = true;
	if (!req->is_taken)
		san_ofi_cm_request_free(req);
	return rc;
}

void
san_ofi_cm_request_drop(struct ofi_connreq *req)
{
	if (!req->is_done)
		rtsan_reject(req->pep->ctx->san, req->request, NULL, 0);
	san_ofi_cm_request_free(req);
}

void
san_ofi_cm_end_all(struct ofi_ctx *ctx)
{
	struct ofi_pep *pep;

	/* they are closed and have requests, of which the last one takes the endpoint with it */
	while ((pep = LIST_FIRST(&ctx->peps)) != NULL)
		san_ofi_cm_request_free(LIST_FIRST(&pep->requests));
}
