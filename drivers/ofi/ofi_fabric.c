/* SPDX-License-Identifier: BSD-3-Clause */

/* Fabrics, and fi_trywait(). */

#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

static int
fabric_trywait_one(struct fid *fid)
{
	struct ofi_eq *eq;
	struct ofi_cntr *cntr;

	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return san_ofi_cq_trywait(container_of(fid, struct ofi_cq, fid.fid));
	case FI_CLASS_EQ:
		eq = container_of(fid, struct ofi_eq, fid.fid);
		san_ofi_progress_events(eq->wait.ctx);
		return STAILQ_EMPTY(&eq->events) ? san_ofi_wait_arm(&eq->wait) : -FI_EAGAIN;
	case FI_CLASS_CNTR:
		cntr = container_of(fid, struct ofi_cntr, fid.fid);
		san_ofi_progress(cntr->domain->ctx);
		return cntr->value + cntr->errors == cntr->seen ? san_ofi_wait_arm(&cntr->wait) :
								  -FI_EAGAIN;
	default:
		return -FI_EINVAL;
	}
}

static int
fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int i, rc = 0;

	(void)fabric;
	san_ofi_ctx_lock();
	for (i = 0; i < count && rc == 0; i++)
		rc = fabric_trywait_one(fids[i]);
	san_ofi_ctx_unlock();
	return rc;
}

static int
fabric_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **wait)
{
	(void)fabric, (void)attr, (void)wait;
	return -FI_ENOSYS;
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = san_ofi_domain_open,
	.passive_ep = san_ofi_pep_open,
	.eq_open = san_ofi_eq_open,
	.wait_open = fabric_wait_open,
	.trywait = fabric_trywait,
};

static int
fabric_close(struct fid *fid)
{
	struct ofi_fabric *fabric = container_of(fid, struct ofi_fabric, fid.fid);

	if (fabric->refs != 0)
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = san_ofi_none_bind,
	.control = san_ofi_none_control,
	.ops_open = san_ofi_none_ops_open,
};

int
san_ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct ofi_fabric *fabric;

	if (attr->name != NULL && strcmp(attr->name, OFI_NAME) != 0)
		return -FI_ENODATA;
	fabric = calloc(1, sizeof(*fabric));
	if (fabric == NULL)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fabric_fid_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	*out = &fabric->fid;
	return 0;
}
