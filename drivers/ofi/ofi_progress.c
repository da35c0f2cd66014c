/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A round of progress: completions of the transport, then sends and receives that they allow. And
 * the context of the process. It is opened when the first object needs it and closed with the last
 * one. A child after fork() opens its own, because rings belong to one process.
 *
 * A thread drives the engine while the program does not call the library (OFI-1). It exists
 * where the program's own polling drives the port (poll=caller): packets are answered and sleepers
 * are woken by it. While the program polls, it only sees that and sleeps.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ofi_priv.h"

#define BURST        32
#define EVENT_EVERY  64      /* rounds between looks at events */
#define DRIVE_MIN_NS 50000   /* between looks while packets come or a thread sleeps */
#define DRIVE_MAX_NS 1000000 /* else; a peer waits that long for an answer */
#define DRIVE_ROUNDS 64      /* at a time: a program that calls waits for them */

static struct ofi_ctx *drive_ctx;
static pid_t drive_pid;

/* ---- completions ---- */

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
		san_ofi_op_end_all(ep);
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
	san_ofi_deliver_on_recv(ep, rx);
}

bool
san_ofi_progress_retry(struct ofi_ctx *ctx)
{
	bool retries = false;
	struct ofi_ep *ep;

	LIST_FOREACH(ep, &ctx->eps, link)
		if (ep->needs_room && ep->state == OFI_EP_CONNECTED) {
			san_ofi_ctx_mark(ep);
			retries = true;
		}
	san_ofi_deliver_dirty(ctx);
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
	san_ofi_deliver_dirty(ctx);
	return sum;
}

/* ---- events of connections ---- */

/* The connection is not made: nothing that is posted will be sent. */
static void
progress_failed(struct ofi_ep *ep, int err, uint8_t reason, const void *data, size_t length)
{
	struct ofi_event ev = {.err = err, .prov_errno = reason, .length = length};

	ep->conn = OFI_CONN_NONE;
	san_ofi_report_conn(ep, &ev, data);
	san_ofi_op_end_all(ep);
}

static void
progress_established(struct ofi_ep *ep, const struct rtsan_event *ev)
{
	struct ofi_event connected = {.type = FI_CONNECTED};
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
		progress_failed(ep, FI_ECONNREFUSED, RTSAN_R_VERSION, NULL, 0);
		return;
	}
	if (!ep->is_accepted)
		san_ofi_cm_origin(ev, &ep->origin);
	ep->credit[OFI_CLASS_MSG] += hdr.nb_msg;
	ep->credit[OFI_CLASS_RMA] += hdr.nb_rma;
	if (ep->state == OFI_EP_CONNECTING)
		ep->state = OFI_EP_CONNECTED;
	ep->conn = OFI_CONN_UP;
	connected.length = hdr.length;
	san_ofi_report_conn(ep, &connected, san_ofi_cm_data(ev));
	while ((rx = STAILQ_FIRST(&ep->early)) != NULL) {
		STAILQ_REMOVE_HEAD(&ep->early, link);
		san_ofi_deliver_on_recv(ep, rx);
	}
	san_ofi_ctx_mark(ep);
}

static void
progress_on_conn(const struct rtsan_event *ev)
{
	struct ofi_ep *ep = rtsan_qp_context(ev->qp);
	struct ofi_cm_hdr hdr = {0};

	OFI_INFO(FI_LOG_EP_CTRL, "endpoint %p: event %u, %s\n", (void *)ep, ev->type,
		 rtsan_reason_text(ev->reason));
	if (ev->type == RTSAN_EV_ESTABLISHED) {
		if (ep->conn == OFI_CONN_BEGUN)
			progress_established(ep, ev);
	} else if (ev->type == RTSAN_EV_REJECTED) {
		progress_failed(ep, FI_ECONNREFUSED, ev->reason, san_ofi_cm_data(ev),
				san_ofi_cm_read(ev, &hdr) ? hdr.length : 0);
	} else if (ev->type == RTSAN_EV_UNREACHABLE) {
		progress_failed(ep, FI_ETIMEDOUT, ev->reason, NULL, 0);
	} else {
		san_ofi_report_end(ep, ev->reason);
		san_ofi_op_end_all(ep);
	}
	if (ep->owner != NULL)
		san_ofi_rdm_on_event(ep, ev);
}

static struct ofi_connreq *
progress_add_request(struct ofi_pep *pep, const struct rtsan_event *ev)
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

static void
progress_on_request(struct ofi_ctx *ctx, const struct rtsan_event *ev)
{
	struct ofi_event event = {.type = FI_CONNREQ};
	struct ofi_connreq *req = NULL;
	struct ofi_pep *pep;

	if (san_ofi_rdm_on_request(ctx, ev))
		return;
	LIST_FOREACH(pep, &ctx->peps, link)
		if (pep->listener == ev->listener)
			break;
	if (pep != NULL && !pep->is_closed)
		req = progress_add_request(pep, ev);
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
		san_ofi_cm_request_reject(req, NULL, 0);
		return;
	}
	event.info->handle = &req->fid;
	san_ofi_report_event(pep->eq, &event, san_ofi_cm_data(ev));
}

/* The daemon or the port has ended, and with it all connections. */
static void
progress_lose(struct ofi_ctx *ctx)
{
	struct ofi_ep *ep;

	while (progress_lanes(ctx) != 0) /* completions from before can be polled */
		;
	ctx->is_lost = true;
	OFI_WARN(FI_LOG_CORE, "%s: %s\n", san_ofi_ctx_spec(), rtsan_error());
	LIST_FOREACH(ep, &ctx->eps, link) {
		san_ofi_report_end(ep, RTSAN_R_NONE);
		san_ofi_op_end_all(ep);
	}
	san_ofi_rdm_end_all(ctx);
	san_ofi_wait_wake_all(ctx);
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
		if (ev.type == RTSAN_EV_CONNECT_REQUEST)
			progress_on_request(ctx, &ev);
		else
			progress_on_conn(&ev);
	}
	/* some may have found no send buffer, or no room for receives */
	LIST_FOREACH(ep, &ctx->eps, link)
		if (!STAILQ_EMPTY(&ep->sends) || !STAILQ_EMPTY(&ep->answers) ||
		    !STAILQ_EMPTY(&ep->consumed))
			san_ofi_ctx_mark(ep);
	san_ofi_deliver_dirty(ctx);
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

/* ---- the thread ---- */

/* Nanoseconds until it looks again. */
static long
drive_look(struct ofi_ctx *ctx, long slept_ns)
{
	const struct ofi_wait *w;
	bool is_busy = false;
	long next_ns;
	uint32_t i;

	if (pthread_mutex_trylock(&san_ofi_ctx_lock) != 0)
		return DRIVE_MAX_NS; /* the program is in a call */
	if (ctx->nb_rounds == ctx->drive.rounds) {
		for (i = 0; i < DRIVE_ROUNDS && rtsan_progress(ctx->san) > 0; i++)
			is_busy = true;
		san_ofi_progress(ctx);
		san_ofi_progress_events(ctx);
	}
	ctx->drive.rounds = ctx->nb_rounds;
	LIST_FOREACH(w, &ctx->waits, link)
		is_busy |= w->armed;
	next_ns = is_busy ? DRIVE_MIN_NS : 2 * slept_ns;
	pthread_mutex_unlock(&san_ofi_ctx_lock);
	return next_ns < DRIVE_MAX_NS ? next_ns : DRIVE_MAX_NS;
}

static void *
drive_run(void *arg)
{
	struct ofi_ctx *ctx = arg;
	struct pollfd p = {.fd = ctx->drive.fd, .events = POLLIN};
	struct timespec nap = {.tv_nsec = DRIVE_MAX_NS};
	eventfd_t n;

	while (!__atomic_load_n(&ctx->drive.is_ended, __ATOMIC_ACQUIRE)) {
		if (ppoll(&p, 1, &nap, NULL) == 1)
			eventfd_read(ctx->drive.fd, &n);
		nap.tv_nsec = drive_look(ctx, nap.tv_nsec);
	}
	return NULL;
}

static int
drive_start(struct ofi_ctx *ctx)
{
	sigset_t all, before;
	int rc;

	ctx->drive.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->drive.fd < 0)
		return -errno;
	sigfillset(&all); /* signals are for the program's threads */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&ctx->drive.thread, NULL, drive_run, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		close(ctx->drive.fd);
	ctx->is_driven = rc == 0;
	return rc;
}

/* ---- the context ---- */

static int
drive_open(struct ofi_ctx **out)
{
	struct ofi_ctx *ctx = calloc(1, sizeof(*ctx));
	int rc;

	if (ctx == NULL)
		return -FI_ENOMEM;
	rc = rtsan_open(san_ofi_ctx_spec(), &ctx->san);
	if (rc != 0) {
		free(ctx);
		return san_ofi_ctx_fail(rc, san_ofi_ctx_spec());
	}
	rtsan_query(ctx->san, &ctx->caps, sizeof(ctx->caps));
	san_ofi_ctx_note_addrs(ctx->san);
	STAILQ_INIT(&ctx->dirty); /* other lists are empty if they are zero */
	rc = rtsan_event_fd(ctx->san) == -ENOTSUP ? drive_start(ctx) : 0;
	if (rc != 0) {
		rtsan_close(ctx->san);
		free(ctx);
		return rc;
	}
	*out = ctx;
	return 0;
}

int
san_ofi_progress_ctx_get(struct ofi_ctx **out)
{
	int rc;

	if (drive_ctx == NULL || drive_pid != getpid()) {
		drive_ctx = NULL; /* after fork() the old one is the parent's */
		rc = drive_open(&drive_ctx);
		if (rc != 0)
			return rc;
		drive_pid = getpid();
	}
	drive_ctx->refs++;
	*out = drive_ctx;
	return 0;
}

void
san_ofi_progress_ctx_put(struct ofi_ctx *ctx)
{
	if (--ctx->refs != 0)
		return;
	if (ctx == drive_ctx)
		drive_ctx = NULL;
	if (ctx->is_driven) {
		__atomic_store_n(&ctx->drive.is_ended, true, __ATOMIC_RELEASE);
		eventfd_write(ctx->drive.fd, 1);
		pthread_join(ctx->drive.thread, NULL); /* it never waits for the lock */
		close(ctx->drive.fd);
	}
	san_ofi_cm_end_all(ctx);
	rtsan_close(ctx->san);
	san_ofi_ctx_free(ctx);
}
