/* SPDX-License-Identifier: BSD-3-Clause */

/* What a program reads: completions, counters and events. */

#include "ofi_priv.h"

#define CQ_SIZE_MIN 64

/* ---- completions ---- */

bool
san_ofi_report_grow(struct ofi_cq *cq)
{
	uint32_t i, size = cq->size != 0 ? 2 * cq->size : CQ_SIZE_MIN;
	struct fi_cq_err_entry *ring = malloc(size * sizeof(*ring));

	if (ring == NULL)
		return false;
	for (i = 0; i < cq->nb; i++)
		ring[i] = cq->ring[(cq->head + i) & (cq->size - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->head = 0;
	cq->size = size;
	return true;
}

static const int report_errnos[OFI_ERRNO] = {
	[RTSAN_WC_LOC_LENGTH] = FI_ETRUNC,
	[RTSAN_WC_RNR_RETRY_EXC] = FI_ETIMEDOUT,
	[RTSAN_WC_REM_ACCESS] = FI_EACCES,
	[RTSAN_WC_REM_LENGTH] = FI_ETRUNC,
	[RTSAN_WC_REM_REVOKED] = FI_EACCES,
	[RTSAN_WC_REM_ALIGN] = FI_EINVAL,
	[RTSAN_WC_REM_RESOURCE] = FI_EREMOTEIO,
	[RTSAN_WC_REM_REFUSED] = FI_EREMOTEIO,
	[RTSAN_WC_ABORTED] = FI_ECONNABORTED,
	[RTSAN_WC_RETRY_EXC] = FI_ETIMEDOUT,
	[RTSAN_WC_FLUSHED] = FI_ECANCELED,
};

int
san_ofi_report_errno(int prov_errno)
{
	int err = prov_errno < OFI_ERRNO ? report_errnos[prov_errno] : prov_errno - OFI_ERRNO;

	return prov_errno != 0 && err == 0 ? FI_EIO : err;
}

void
san_ofi_report_cq(struct ofi_cq *cq, const struct fi_cq_err_entry *e)
{
	struct fi_cq_err_entry *to;

	if (cq->nb == cq->size && !san_ofi_report_grow(cq)) {
		OFI_WARN(FI_LOG_CQ, "no memory: a completion is lost\n");
		return;
	}
	to = &cq->ring[(cq->head + cq->nb++) & (cq->size - 1)];
	*to = *e;
	to->err = san_ofi_report_errno(e->prov_errno);
	san_ofi_wait_wake(&cq->wait);
}

const uint64_t san_ofi_report_counted[OFI_CNTRS] = {FI_RECV, FI_SEND, FI_READ, FI_WRITE};

void
san_ofi_report_done(struct ofi_ep *ep, const struct fi_cq_err_entry *e, bool is_wanted)
{
	struct ofi_cq *cq = (e->flags & FI_RECV) != 0 ? ep->rx_cq : ep->tx_cq;
	struct ofi_cntr *cntr;
	int i = 0;

	while (i < OFI_CNTRS - 1 && (e->flags & san_ofi_report_counted[i]) == 0)
		i++;
	cntr = ep->cntrs[i];
	if (cq != NULL && (is_wanted || e->prov_errno != 0))
		san_ofi_report_cq(cq, e);
	if (cntr == NULL)
		return;
	if (e->prov_errno != 0)
		cntr->errors++;
	else
		cntr->value++;
	san_ofi_wait_wake(&cntr->wait);
}

/* ---- events ---- */

void
san_ofi_report_free(struct ofi_event *ev)
{
	if (ev != NULL && ev->info != NULL) {
		san_ofi_cm_request_drop(container_of(ev->info->handle, struct ofi_connreq, fid));
		fi_freeinfo(ev->info);
	}
	free(ev);
}

void
san_ofi_report_event(struct ofi_eq *eq, const struct ofi_event *ev, const void *data)
{
	struct ofi_event *copy = malloc(sizeof(*copy) + ev->length);

	if (copy == NULL) {
		OFI_WARN(FI_LOG_EQ, "no memory: event %u is lost\n", ev->type);
		return;
	}
	*copy = *ev;
	if (ev->length != 0)
		memcpy(copy->data, data, ev->length);
	STAILQ_INSERT_TAIL(&eq->events, copy, link);
	san_ofi_wait_wake(&eq->wait);
}

void
san_ofi_report_forget(struct ofi_eq *eq, fid_t fid)
{
	struct ofi_event *ev, *next;

	for (ev = STAILQ_FIRST(&eq->events); ev != NULL; ev = next) {
		next = STAILQ_NEXT(ev, link);
		if (ev->fid != fid || ev->is_user)
			continue;
		STAILQ_REMOVE(&eq->events, ev, ofi_event, link);
		san_ofi_report_free(ev);
	}
}

void
san_ofi_report_conn(struct ofi_ep *ep, struct ofi_event *ev, const void *data)
{
	ev->fid = &ep->fid.fid;
	if (ep->eq != NULL) /* a connection of FI_EP_RDM has none */
		san_ofi_report_event(ep->eq, ev, data);
}

void
san_ofi_report_end(struct ofi_ep *ep, uint8_t reason)
{
	struct ofi_event end = {.type = FI_SHUTDOWN};
	struct ofi_event failure = {.err = FI_ECONNABORTED, .prov_errno = reason};

	if (ep->conn != OFI_CONN_NONE)
		san_ofi_report_conn(ep, ep->conn == OFI_CONN_UP ? &end : &failure, NULL);
	ep->conn = OFI_CONN_NONE;
}
