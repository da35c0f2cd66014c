/* SPDX-License-Identifier: BSD-3-Clause */

/* Counters of completions. */

#include <stdlib.h>

#include "ofi_priv.h"

void
san_ofi_cntr_add(struct ofi_cntr *cntr, bool is_error)
{
	if (is_error)
		cntr->errors++;
	else
		cntr->value++;
	san_ofi_wait_wake(&cntr->wait);
}

/* Value, or the number of errors, after a round of progress. */
static uint64_t
cntr_get(struct fid_cntr *fid, bool errors)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid);
	uint64_t value;

	san_ofi_ctx_lock();
	san_ofi_progress(cntr->domain->ctx);
	value = errors ? cntr->errors : cntr->value;
	cntr->seen = cntr->value + cntr->errors;
	san_ofi_ctx_unlock();
	return value;
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

	san_ofi_ctx_lock();
	*to = add ? *to + value : value;
	san_ofi_wait_wake(&cntr->wait);
	san_ofi_ctx_unlock();
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
	int64_t now, end = san_ofi_wait_now_ms() + timeout;
	uint64_t errors;
	int rc = 0;

	if (cntr->wait.obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	san_ofi_ctx_lock();
	errors = cntr->errors;
	for (;;) {
		san_ofi_progress(cntr->domain->ctx);
		now = san_ofi_wait_now_ms();
		if (cntr->value >= threshold)
			rc = 0;
		else if (cntr->errors != errors)
			rc = -FI_EAVAIL;
		else if (timeout >= 0 && now >= end)
			rc = -FI_ETIMEDOUT;
		else if (cntr->domain->ctx->is_lost)
			rc = -FI_EIO;
		else if (rc == 0) {
			if (san_ofi_wait_arm(&cntr->wait) == 0)
				rc = san_ofi_wait_sleep(&cntr->wait,
							timeout < 0 ? -1 : (int)(end - now));
			continue;
		}
		break;
	}
	san_ofi_wait_leave(&cntr->wait);
	san_ofi_ctx_unlock();
	return rc;
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

static int
cntr_close(struct fid *fid)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid.fid);

	san_ofi_ctx_lock();
	if (cntr->refs != 0) {
		san_ofi_ctx_unlock();
		return -FI_EBUSY;
	}
	san_ofi_wait_fini(&cntr->wait);
	cntr->domain->refs--;
	san_ofi_ctx_unlock();
	free(cntr);
	return 0;
}

static int
cntr_control(struct fid *fid, int command, void *arg)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid.fid);

	return san_ofi_wait_control(&cntr->wait, command, arg);
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = san_ofi_none_bind,
	.control = cntr_control,
	.ops_open = san_ofi_none_ops_open,
};

int
san_ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **out,
		  void *context)
{
	struct ofi_cntr *cntr;
	int rc;

	if (attr != NULL && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags != 0))
		return -FI_EINVAL;
	cntr = calloc(1, sizeof(*cntr));
	if (cntr == NULL)
		return -FI_ENOMEM;
	cntr->domain = container_of(domain, struct ofi_domain, fid);
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &cntr_fid_ops;
	cntr->fid.ops = &cntr_ops;
	san_ofi_ctx_lock();
	rc = san_ofi_wait_init(&cntr->wait, cntr->domain->ctx,
			       attr != NULL ? attr->wait_obj : FI_WAIT_UNSPEC, false);
	if (rc == 0)
		cntr->domain->refs++;
	san_ofi_ctx_unlock();
	if (rc != 0) {
		free(cntr);
		return rc;
	}
	*out = &cntr->fid;
	return 0;
}
