/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion queues, counters and event queues: what programs read, and sleep on. A completion
 * queue is a ring that grows, so that it never overruns, whatever size a program asks for.
 */

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "ofi_priv.h"

/* ---- sleeping ---- */

/* 0; 1: there are completions or events; or -errno. */
static int
queue_arm_transport(struct ofi_wait *w)
{
	struct ofi_lane *lane;
	int rc = 0;

	if (w->ctx->is_driven) {
		eventfd_write(w->ctx->drive.fd, 1); /* it looks more often meanwhile */
		return 0;
	}
	if (san_ofi_wait_has_events(w))
		rc = rtsan_event_arm(w->ctx->san);
	if (rc == 1 && !w->for_events)
		san_ofi_progress_events(w->ctx);
	if (rc != 0 || w->for_events)
		return rc;
	SLIST_FOREACH(lane, &w->ctx->lanes, link) {
		rc = rtsan_cq_arm(lane->cq);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Before a sleep. 0; -FI_EAGAIN: there was progress, look again; or -errno. */
static int
queue_arm(struct ofi_wait *w)
{
	eventfd_t n;
	int rc;

	if (w->obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	if (san_ofi_progress_retry(w->ctx))
		return -FI_EAGAIN;
	eventfd_read(w->evfd, &n);
	rc = queue_arm_transport(w);
	if (rc == 1) /* some queues are disarmed now, for other waiters as well */
		san_ofi_wait_wake_all(w->ctx);
	if (rc != 0)
		return rc == 1 ? -FI_EAGAIN : rc;
	w->armed = true;
	return 0;
}

/** A call that may sleep. */
struct queue_nap {
	struct ofi_wait *w;
	int timeout_ms; /**< -1: no limit */
	int64_t end_ms; /**< 0: it has not slept yet */
	int rc;         /**< why it sleeps no more */
};

/*
 * Sleep once, because there is nothing to read: the lock is held before and after. True: look
 * again. False, in *rc*: -FI_ETIMEDOUT; -FI_EIO: nothing will come; -FI_EAGAIN: a signal came, and
 * the program gets what is there now.
 */
static bool
queue_nap(struct queue_nap *nap)
{
	struct ofi_wait *w = nap->w;
	struct pollfd p = {.fd = w->epfd, .events = POLLIN};
	int64_t now_ms = san_ofi_wait_now_ms(), left_ms;

	if (nap->end_ms == 0)
		nap->end_ms = now_ms + nap->timeout_ms;
	left_ms = nap->end_ms - now_ms;
	if (nap->timeout_ms >= 0 && left_ms <= 0)
		nap->rc = -FI_ETIMEDOUT;
	else if (nap->rc == 0 && w->ctx->is_lost)
		nap->rc = -FI_EIO;
	if (nap->rc != 0)
		return false;
	if (queue_arm(w) != 0)
		return true;
	w->sleepers++;
	pthread_mutex_unlock(&san_ofi_ctx_lock);
	if (poll(&p, 1, nap->timeout_ms < 0 ? -1 : (int)left_ms) < 0)
		nap->rc = -FI_EAGAIN;
	pthread_mutex_lock(&san_ofi_ctx_lock);
	w->sleepers--;
	w->armed = false;
	return true;
}

/* A thread that may have slept returns to the program: others that sleep have to arm anew. */
static void
queue_nap_end(struct queue_nap *nap)
{
	if (nap->w->sleepers != 0)
		eventfd_write(nap->w->evfd, 1);
}

static struct ofi_wait *
queue_wait(struct fid *fid)
{
	return fid->fclass == FI_CLASS_CQ    ? &container_of(fid, struct ofi_cq, fid.fid)->wait :
		fid->fclass == FI_CLASS_CNTR ? &container_of(fid, struct ofi_cntr, fid.fid)->wait :
					       &container_of(fid, struct ofi_eq, fid.fid)->wait;
}

static int
queue_control(struct fid *fid, int command, void *arg)
{
	const struct ofi_wait *w = queue_wait(fid);

	if (arg == NULL)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = w->obj;
		return 0;
	}
	if (command != FI_GETWAIT)
		return -FI_ENOSYS;
	if (w->obj != FI_WAIT_FD)
		return -FI_ENODATA;
	*(int *)arg = w->epfd;
	return 0;
}

/* ---- open, close ---- */

/* Begin an object that is part of one with *parent_refs*, or free it. 0 or -errno. */
static int
queue_open(struct fid *fid, struct ofi_ctx *ctx, enum fi_wait_obj obj, uint32_t *parent_refs)
{
	struct ofi_wait *w = queue_wait(fid);
	int rc = san_ofi_wait_init(w, ctx, obj, fid->fclass == FI_CLASS_EQ);

	if (rc != 0) {
		free(fid); /* it begins the object */
		return rc;
	}
	w->parent_refs = parent_refs;
	(*parent_refs)++;
	return 0;
}

static int
queue_close(struct fid *fid)
{
	struct ofi_wait *w = queue_wait(fid);
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid.fid);
	struct ofi_event *ev;
	OFI_LOCKED;

	if (w->refs != 0)
		return -FI_EBUSY;
	(*w->parent_refs)--;
	san_ofi_wait_fini(w);
	if (fid->fclass == FI_CLASS_EQ) {
		while ((ev = STAILQ_FIRST(&eq->events)) != NULL) {
			STAILQ_REMOVE_HEAD(&eq->events, link);
			san_ofi_report_free(ev);
		}
		san_ofi_report_free(eq->shown);
		san_ofi_progress_ctx_put(w->ctx);
	}
	if (fid->fclass == FI_CLASS_CQ)
		free(container_of(fid, struct ofi_cq, fid.fid)->ring);
	free(fid);
	return 0;
}

static struct fi_ops queue_fid_ops = OFI_FID_OPS(queue_close, OFI_NONE, queue_control);

/* ---- completion queues ---- */

static const struct fi_cq_err_entry *
cq_first(const struct ofi_cq *cq)
{
	return cq->nb != 0 ? &cq->ring[cq->head] : NULL;
}

static void
cq_drop_first(struct ofi_cq *cq)
{
	cq->head = (cq->head + 1) & (cq->size - 1);
	cq->nb--;
}

/* All formats are beginnings of fi_cq_err_entry. */
static ssize_t
cq_take(struct ofi_cq *cq, void *buf, size_t count, fi_addr_t *from)
{
	static const size_t sizes[] = {
		[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
		[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
		[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
		[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
	};
	size_t size = sizes[cq->format], n;
	const struct fi_cq_err_entry *e;

	for (n = 0; n < count; n++) {
		e = cq_first(cq);
		if (e == NULL || e->err != 0)
			break;
		memcpy((uint8_t *)buf + n * size, e, size);
		if (from != NULL)
			from[n] = (fi_addr_t)e->err_data_size - 1; /* see ofi_deliver.c */
		cq_drop_first(cq);
	}
	if (n != 0)
		return (ssize_t)n;
	return cq_first(cq) != NULL && cq_first(cq)->err != 0 ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t
cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *from)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	OFI_LOCKED;

	if (cq->nb < count || count == 0)
		san_ofi_progress(cq->wait.ctx);
	return cq_take(cq, buf, count, from);
}

static ssize_t
cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t
cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *from, const void *cond,
	     int timeout)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	struct queue_nap nap = {.w = &cq->wait, .timeout_ms = timeout};
	ssize_t n;
	OFI_LOCKED;

	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	do {
		san_ofi_progress(cq->wait.ctx);
		n = cq_take(cq, buf, count, from);
	} while (n == -FI_EAGAIN && !cq->is_signaled && queue_nap(&nap));
	cq->is_signaled = false;
	queue_nap_end(&nap);
	return nap.rc == -FI_EIO ? nap.rc : n;
}

static ssize_t
cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static ssize_t
cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	size_t size = FI_VERSION_GE(cq->domain->fabric->fid.api_version, FI_VERSION(1, 5)) ?
		sizeof(*buf) :
		offsetof(struct fi_cq_err_entry, err_data_size);
	OFI_LOCKED;

	if (cq_first(cq) == NULL || cq_first(cq)->err == 0)
		return -FI_EAGAIN;
	memcpy(buf, cq_first(cq), size);
	cq_drop_first(cq);
	return 1;
}

static int
cq_signal(struct fid_cq *fid)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	OFI_LOCKED;

	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	cq->is_signaled = true;
	san_ofi_wait_wake(&cq->wait);
	return 0;
}

static const char *
cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	const char *text = rtsan_status_text((uint8_t)prov_errno);

	if (prov_errno >= OFI_ERRNO) /* the peer's provider has refused it */
		text = fi_strerror(prov_errno - OFI_ERRNO);
	if (buf != NULL && len != 0)
		snprintf(buf, len, "%s", text);
	return text;
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

int
san_ofi_queue_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
		      void *context)
{
	struct ofi_domain *parent = container_of(domain, struct ofi_domain, fid);
	struct fi_cq_err_entry *ring;
	struct ofi_cq *cq;
	int rc;
	OFI_LOCKED;

	if (attr->format > FI_CQ_FORMAT_TAGGED || (attr->flags & ~FI_AFFINITY) != 0)
		return -FI_EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return -FI_ENOMEM;
	cq->domain = parent;
	cq->format = attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->fid = (struct fid_cq){{FI_CLASS_CQ, context, &queue_fid_ops}, &cq_ops};
	/* now, because the first completion could not say that there is no memory */
	if (!san_ofi_report_grow(cq)) {
		free(cq);
		return -FI_ENOMEM;
	}
	ring = cq->ring;
	rc = queue_open(&cq->fid.fid, parent->ctx, attr->wait_obj, &parent->refs);
	if (rc == 0)
		*out = &cq->fid;
	else
		free(ring);
	return rc;
}

/* ---- counters ---- */

/* Value, or the number of errors, after a round of progress. */
static uint64_t
cntr_get(struct fid_cntr *fid, bool errors)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid);
	OFI_LOCKED;

	san_ofi_progress(cntr->wait.ctx);
	cntr->seen = cntr->value + cntr->errors;
	return errors ? cntr->errors : cntr->value;
}

static uint64_t
cntr_read(struct fid_cntr *fid)
{
	return cntr_get(fid, false);
}

static uint64_t
cntr_readerr(struct fid_cntr *fid)
{
	return cntr_get(fid, true);
}

/* Set to *value*, or add it. */
static int
cntr_change(struct fid_cntr *fid, bool errors, bool add, uint64_t value)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid);
	uint64_t *to = errors ? &cntr->errors : &cntr->value;
	OFI_LOCKED;

	*to = add ? *to + value : value;
	san_ofi_wait_wake(&cntr->wait);
	return 0;
}

static int
cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, false, true, value);
}

static int
cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, false, false, value);
}

static int
cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, true, true, value);
}

static int
cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, true, false, value);
}

static int
cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid);
	struct queue_nap nap = {.w = &cntr->wait, .timeout_ms = timeout};
	uint64_t errors;
	OFI_LOCKED;

	if (cntr->wait.obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	errors = cntr->errors;
	do
		san_ofi_progress(cntr->wait.ctx);
	while (cntr->value < threshold && cntr->errors == errors && queue_nap(&nap));
	queue_nap_end(&nap);
	return cntr->value >= threshold ? 0 : cntr->errors != errors ? -FI_EAVAIL :
								       nap.rc;
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int
san_ofi_queue_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			struct fid_cntr **out, void *context)
{
	struct ofi_domain *parent = container_of(domain, struct ofi_domain, fid);
	struct ofi_cntr *cntr;
	int rc;
	OFI_LOCKED;

	if (attr != NULL && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags != 0))
		return -FI_EINVAL;
	cntr = calloc(1, sizeof(*cntr));
	if (cntr == NULL)
		return -FI_ENOMEM;
	cntr->fid = (struct fid_cntr){{FI_CLASS_CNTR, context, &queue_fid_ops}, &cntr_ops};
	rc = queue_open(&cntr->fid.fid, parent->ctx,
			attr != NULL ? attr->wait_obj : FI_WAIT_UNSPEC, &parent->refs);
	if (rc == 0)
		*out = &cntr->fid;
	return rc;
}

/* ---- event queues ---- */

/* Copy an event to a program's buffer. Bytes, or -FI_ETOOSMALL. */
static ssize_t
eq_copy(const struct ofi_event *ev, void *buf, size_t len)
{
	const struct fi_eq_cm_entry entry = {.fid = ev->fid, .info = ev->info};
	size_t head = ev->is_user ? 0 : sizeof(entry), length = ev->length;

	if (len < (ev->is_user ? length : head)) /* the peer's data may be cut */
		return -FI_ETOOSMALL;
	if (length > len - head)
		length = len - head;
	memcpy(buf, &entry, head);
	memcpy((uint8_t *)buf + head, ev->data, length);
	return (ssize_t)(head + length);
}

static ssize_t
eq_take(struct ofi_eq *eq, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	struct ofi_event *ev = STAILQ_FIRST(&eq->events);
	ssize_t n;

	san_ofi_report_free(eq->shown);
	eq->shown = NULL;
	if (ev == NULL)
		return -FI_EAGAIN;
	if (ev->err != 0)
		return -FI_EAVAIL;
	n = eq_copy(ev, buf, len);
	if (n < 0)
		return n;
	*type = ev->type;
	if ((flags & FI_PEEK) == 0) {
		STAILQ_REMOVE_HEAD(&eq->events, link);
		ev->info = NULL; /* the program's */
		san_ofi_report_free(ev);
	}
	return n;
}

static ssize_t
eq_read(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	OFI_LOCKED;

	if (STAILQ_EMPTY(&eq->events))
		san_ofi_progress_events(eq->wait.ctx);
	return eq_take(eq, type, buf, len, flags);
}

static ssize_t
eq_sread(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, int timeout, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	struct queue_nap nap = {.w = &eq->wait, .timeout_ms = timeout};
	ssize_t n;
	OFI_LOCKED;

	if (eq->wait.obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	do {
		san_ofi_progress_events(eq->wait.ctx);
		n = eq_take(eq, type, buf, len, flags);
	} while (n == -FI_EAGAIN && queue_nap(&nap));
	queue_nap_end(&nap);
	return nap.rc == -FI_EIO ? nap.rc : n;
}

static ssize_t
eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	struct ofi_event *ev;
	size_t room = buf->err_data_size;
	OFI_LOCKED;

	ev = STAILQ_FIRST(&eq->events);
	if (ev == NULL || ev->err == 0)
		return -FI_EAGAIN;
	buf->fid = ev->fid;
	buf->context = ev->fid != NULL ? ev->fid->context : NULL;
	buf->data = 0;
	buf->err = ev->err;
	buf->prov_errno = ev->prov_errno;
	buf->err_data_size = ev->length;
	if (room == 0 || FI_VERSION_LT(eq->fabric->fid.api_version, FI_VERSION(1, 5))) {
		buf->err_data = ev->data;
	} else {
		buf->err_data_size = room < ev->length ? room : ev->length;
		memcpy(buf->err_data, ev->data, buf->err_data_size);
	}
	if ((flags & FI_PEEK) == 0) {
		STAILQ_REMOVE_HEAD(&eq->events, link);
		san_ofi_report_free(eq->shown);
		eq->shown = ev;
	}
	return sizeof(*buf);
}

static ssize_t
eq_write(struct fid_eq *fid, uint32_t type, const void *buf, size_t len, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	const struct ofi_event ev = {.type = type, .is_user = true, .length = len};
	OFI_LOCKED;

	san_ofi_report_event(eq, &ev, buf);
	return (ssize_t)len;
}

static const char *
eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	const char *text = rtsan_reason_text((uint8_t)prov_errno);

	if (buf != NULL && len != 0)
		snprintf(buf, len, "%s", text);
	return text;
}

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int
san_ofi_queue_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
		      void *context)
{
	struct ofi_eq *eq = calloc(1, sizeof(*eq));
	struct ofi_ctx *ctx;
	int rc;
	OFI_LOCKED;

	if (eq == NULL)
		return -FI_ENOMEM;
	eq->fabric = container_of(fabric, struct ofi_fabric, fid);
	eq->fid = (struct fid_eq){{FI_CLASS_EQ, context, &queue_fid_ops}, &eq_ops};
	STAILQ_INIT(&eq->events);
	rc = san_ofi_progress_ctx_get(&ctx);
	if (rc != 0) {
		free(eq);
		return rc;
	}
	rc = queue_open(&eq->fid.fid, ctx, attr != NULL ? attr->wait_obj : FI_WAIT_NONE,
			&eq->fabric->refs);
	if (rc == 0)
		*out = &eq->fid;
	else
		san_ofi_progress_ctx_put(ctx);
	return rc;
}

/* ---- fi_trywait() ---- */

/* Make progress. True: there is something to read. */
static bool
queue_has_news(struct fid *fid)
{
	struct ofi_wait *w = queue_wait(fid);
	const struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid.fid);

	if (fid->fclass == FI_CLASS_EQ) {
		san_ofi_progress_events(w->ctx);
		return !STAILQ_EMPTY(&container_of(fid, struct ofi_eq, fid.fid)->events);
	}
	san_ofi_progress(w->ctx);
	if (fid->fclass == FI_CLASS_CQ)
		return container_of(fid, struct ofi_cq, fid.fid)->nb != 0;
	return cntr->value + cntr->errors != cntr->seen;
}

int
san_ofi_queue_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int i, rc = 0;
	OFI_LOCKED;

	for (i = 0; i < count && rc == 0; i++) {
		if (fids[i]->fclass != FI_CLASS_CQ && fids[i]->fclass != FI_CLASS_EQ &&
		    fids[i]->fclass != FI_CLASS_CNTR)
			return -FI_EINVAL;
		rc = queue_has_news(fids[i]) ? -FI_EAGAIN : queue_arm(queue_wait(fids[i]));
	}
	return rc;
}
