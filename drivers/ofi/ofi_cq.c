/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion queues: a ring that grows, so that it never overruns. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

#define CQ_SIZE_MIN 64
#define CQ_SIZE_MAX 4096 /* to begin with */

static const size_t cq_entry_size[] = {
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

/* ---- the ring ---- */

static bool
cq_grow(struct ofi_cq *cq)
{
	struct fi_cq_err_entry *ring = malloc(2 * cq->size * sizeof(*ring));
	uint32_t i;

	if (ring == NULL)
		return false;
	for (i = 0; i < cq->nb; i++)
		ring[i] = cq->ring[(cq->head + i) & (cq->size - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->head = 0;
	cq->size *= 2;
	return true;
}

void
san_ofi_cq_put(struct ofi_cq *cq, const struct fi_cq_err_entry *e)
{
	if (cq->nb == cq->size && !cq_grow(cq)) {
		OFI_WARN(FI_LOG_CQ, "no memory: a completion is lost\n");
		return;
	}
	cq->ring[(cq->head + cq->nb++) & (cq->size - 1)] = *e;
	san_ofi_wait_wake(&cq->wait);
}

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
	size_t size = cq_entry_size[cq->format], n;
	const struct fi_cq_err_entry *e;

	for (n = 0; n < count; n++) {
		e = cq_first(cq);
		if (e == NULL || e->err != 0)
			break;
		memcpy((uint8_t *)buf + n * size, e, size);
		if (from != NULL)
			from[n] = (fi_addr_t)e->err_data_size - 1; /* see ofi_tag.c */
		cq_drop_first(cq);
	}
	if (n != 0)
		return (ssize_t)n;
	return cq_first(cq) != NULL && cq_first(cq)->err != 0 ? -FI_EAVAIL : -FI_EAGAIN;
}

/* ---- reading ---- */

static ssize_t
cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *from)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	ssize_t n;

	san_ofi_ctx_lock();
	if (cq->nb < count || count == 0)
		san_ofi_progress(cq->domain->ctx);
	n = cq_take(cq, buf, count, from);
	san_ofi_ctx_unlock();
	return n;
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
	int64_t now, end = san_ofi_wait_now_ms() + timeout;
	int rc = 0;
	ssize_t n;

	(void)cond;
	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	san_ofi_ctx_lock();
	for (;;) {
		san_ofi_progress(cq->domain->ctx);
		n = cq_take(cq, buf, count, from);
		now = san_ofi_wait_now_ms();
		if (n != -FI_EAGAIN || rc != 0 || cq->is_signaled || (timeout >= 0 && now >= end))
			break;
		if (cq->domain->ctx->is_lost) {
			n = -FI_EIO;
			break;
		}
		if (san_ofi_wait_arm(&cq->wait) == 0)
			rc = san_ofi_wait_sleep(&cq->wait, timeout < 0 ? -1 : (int)(end - now));
	}
	cq->is_signaled = false;
	san_ofi_wait_leave(&cq->wait);
	san_ofi_ctx_unlock();
	return n;
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
	ssize_t n = 1;

	(void)flags;
	san_ofi_ctx_lock();
	if (cq_first(cq) == NULL || cq_first(cq)->err == 0) {
		n = -FI_EAGAIN;
	} else {
		memcpy(buf, cq_first(cq), size);
		cq_drop_first(cq);
	}
	san_ofi_ctx_unlock();
	return n;
}

static int
cq_signal(struct fid_cq *fid)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);

	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	san_ofi_ctx_lock();
	cq->is_signaled = true;
	san_ofi_wait_wake(&cq->wait);
	san_ofi_ctx_unlock();
	return 0;
}

static const char *
cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	const char *text = rtsan_status_text((uint8_t)prov_errno);

	(void)fid, (void)err_data;
	if (prov_errno >= OFI_ERRNO) /* the peer's provider has refused it */
		text = fi_strerror(prov_errno - OFI_ERRNO);
	if (buf != NULL && len != 0)
		snprintf(buf, len, "%s", text);
	return text;
}

int
san_ofi_cq_trywait(struct ofi_cq *cq)
{
	san_ofi_progress(cq->domain->ctx);
	return cq->nb != 0 ? -FI_EAGAIN : san_ofi_wait_arm(&cq->wait);
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

/* ---- open, close ---- */

static int
cq_close(struct fid *fid)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);

	san_ofi_ctx_lock();
	if (cq->refs != 0) {
		san_ofi_ctx_unlock();
		return -FI_EBUSY;
	}
	san_ofi_wait_fini(&cq->wait);
	cq->domain->refs--;
	san_ofi_ctx_unlock();
	free(cq->ring);
	free(cq);
	return 0;
}

static int
cq_control(struct fid *fid, int command, void *arg)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);

	return san_ofi_wait_control(&cq->wait, command, arg);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = san_ofi_none_bind,
	.control = cq_control,
	.ops_open = san_ofi_none_ops_open,
};

int
san_ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
		void *context)
{
	struct ofi_cq *cq;
	int rc;

	if (attr->format > FI_CQ_FORMAT_TAGGED || (attr->flags & ~FI_AFFINITY) != 0)
		return -FI_EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return -FI_ENOMEM;
	cq->domain = container_of(domain, struct ofi_domain, fid);
	cq->format = attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format : FI_CQ_FORMAT_CONTEXT;
	for (cq->size = CQ_SIZE_MIN; cq->size < attr->size && cq->size < CQ_SIZE_MAX;)
		cq->size *= 2;
	cq->ring = malloc(cq->size * sizeof(*cq->ring));
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &cq_ops;
	san_ofi_ctx_lock();
	rc = cq->ring != NULL ?
		san_ofi_wait_init(&cq->wait, cq->domain->ctx, attr->wait_obj, false) :
		-FI_ENOMEM;
	if (rc == 0)
		cq->domain->refs++;
	san_ofi_ctx_unlock();
	if (rc != 0) {
		free(cq->ring);
		free(cq);
		return rc;
	}
	*out = &cq->fid;
	return 0;
}
