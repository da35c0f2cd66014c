/* SPDX-License-Identifier: BSD-3-Clause */

/* A round of progress: completions of the transport, then sends and receives that they allow. */

#include <string.h>

#include "ofi_rdm.h"

#define BURST       32
#define EVENT_EVERY 64 /* rounds between looks at events */

/* Work requests name an operation (inline: bit 0), a receive (bit 1) or a send buffer. */
static void
progress_wc(const struct rtsan_wc *wc)
{
	struct ofi_ep *ep = rtsan_qp_context(wc->qp);
	struct ofi_rx *rx;

	if ((wc->wr_id & OFI_WR_RX) == 0) {
		san_ofi_tx_on_wc(ep, wc);
		return;
	}
	if (wc->status != RTSAN_WC_SUCCESS) {
		san_ofi_ep_end(ep);
		return;
	}
	rx = (struct ofi_rx *)(uintptr_t)(wc->wr_id & ~(uint64_t)OFI_WR_RX);
	rx->length = wc->byte_len;
	if (ep->state == OFI_EP_CONNECTING && !ep->is_accepted) {
		STAILQ_INSERT_TAIL(&ep->early, rx, link); /* the event says whether it is meant */
		return;
	}
	if (ep->state == OFI_EP_CONNECTING)
		ep->state = OFI_EP_CONNECTED; /* the event has not been read yet */
	san_ofi_rx_on_recv(ep, rx);
}

void
san_ofi_progress_mark(struct ofi_ep *ep)
{
	if (ep->is_dirty)
		return;
	ep->is_dirty = true;
	STAILQ_INSERT_TAIL(&ep->domain->ctx->dirty, ep, dirty);
}

static void
progress_dirty(struct ofi_ctx *ctx)
{
	struct ofi_ep *ep;

	while ((ep = STAILQ_FIRST(&ctx->dirty)) != NULL) {
		STAILQ_REMOVE_HEAD(&ctx->dirty, dirty);
		ep->is_dirty = false;
		ep->needs_room = false;
		if (!STAILQ_EMPTY(&ep->held) && !ep->is_starving)
			san_ofi_rx_feed(ep);
		san_ofi_rx_repost(ep);
		san_ofi_tx_push(ep);
	}
}

void
san_ofi_progress_need_room(struct ofi_ep *ep)
{
	struct ofi_wait *w;

	ep->needs_room = true;
	LIST_FOREACH(w, &ep->domain->ctx->waits, link)
		san_ofi_wait_wake(w);
}

bool
san_ofi_progress_retry(struct ofi_ctx *ctx)
{
	bool retries = false;
	struct ofi_ep *ep;

	LIST_FOREACH(ep, &ctx->eps, link)
		if (ep->needs_room && ep->state == OFI_EP_CONNECTED) {
			san_ofi_progress_mark(ep);
			retries = true;
		}
	progress_dirty(ctx);
	return retries;
}

/* Number of completions. */
static uint32_t
progress_lanes(struct ofi_ctx *ctx)
{
	struct rtsan_wc wc[BURST];
	struct ofi_lane *lane;
	uint32_t sum = 0;
	int i, n;

	if (ctx->is_lost)
		return 0;
	SLIST_FOREACH(lane, &ctx->lanes, link) {
		n = rtsan_cq_poll(lane->cq, wc, BURST);
		for (i = 0; i < n; i++)
			progress_wc(&wc[i]);
		sum += (uint32_t)n;
	}
	progress_dirty(ctx);
	return sum;
}

/* The daemon or the port has ended, and with it all connections. */
static void
progress_lose(struct ofi_ctx *ctx)
{
	struct ofi_wait *w;
	struct ofi_ep *ep;

	while (progress_lanes(ctx) != 0) /* completions from before can be polled */
		;
	ctx->is_lost = true;
	OFI_WARN(FI_LOG_CORE, "%s: %s\n", san_ofi_init_spec(), rtsan_error());
	LIST_FOREACH(ep, &ctx->eps, link) {
		san_ofi_cm_report_end(ep, RTSAN_R_NONE);
		san_ofi_ep_end(ep);
	}
	san_ofi_rdm_end_all(ctx);
	LIST_FOREACH(w, &ctx->waits, link)
		san_ofi_wait_wake(w);
}

void
san_ofi_progress_events(struct ofi_ctx *ctx)
{
	struct rtsan_event ev;
	struct ofi_ep *ep;
	int rc;

	if (ctx->is_lost)
		return;
	while ((rc = rtsan_event_poll(ctx->san, &ev)) == 1) {
		/* all work of a connection that has ended is complete: take that first */
		while (ev.type == RTSAN_EV_DISCONNECTED && progress_lanes(ctx) != 0)
			;
		if (ev.type == RTSAN_EV_CONNECT_REQUEST && !san_ofi_rdm_on_request(ctx, &ev))
			san_ofi_pep_on_request(ctx, &ev);
		else if (ev.type != RTSAN_EV_CONNECT_REQUEST)
			san_ofi_cm_on_event(&ev);
	}
	/* some may have found no send buffer, or no room for receives */
	LIST_FOREACH(ep, &ctx->eps, link)
		if (!STAILQ_EMPTY(&ep->sends) || !STAILQ_EMPTY(&ep->answers) ||
		    !STAILQ_EMPTY(&ep->consumed))
			san_ofi_progress_mark(ep);
	progress_dirty(ctx);
	if (rc < 0)
		progress_lose(ctx);
	san_ofi_rdm_reap(ctx);
}

void
san_ofi_progress(struct ofi_ctx *ctx)
{
	progress_lanes(ctx);
	if (++ctx->nb_rounds % EVENT_EVERY == 0)
		san_ofi_progress_events(ctx);
}

void
san_ofi_progress_all(struct ofi_ctx *ctx)
{
	progress_lanes(ctx);
	san_ofi_progress_events(ctx);
}
