/* SPDX-License-Identifier: BSD-3-Clause */

/* What libfabric finds when it loads the provider; fabrics and domains. */

#include "ofi_priv.h"

/* ---- domains ---- */

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = san_ofi_rdm_av_open,
	.cq_open = san_ofi_queue_cq_open,
	.endpoint = san_ofi_ep_open,
	.scalable_ep = OFI_NONE,
	.cntr_open = san_ofi_queue_cntr_open,
	.poll_open = OFI_NONE,
	.stx_ctx = OFI_NONE,
	.srx_ctx = san_ofi_msg_srx_open,
	.query_atomic = san_ofi_msg_query_atomic,
	.query_collective = OFI_NONE,
};

static int
domain_close(struct fid *fid)
{
	struct ofi_domain *domain = container_of(fid, struct ofi_domain, fid.fid);
	OFI_LOCKED;

	if (domain->refs != 0)
		return -FI_EBUSY;
	san_ofi_progress_ctx_put(domain->ctx);
	domain->fabric->refs--;
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = OFI_FID_OPS(domain_close, OFI_NONE, OFI_NONE);

static int
fabric_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		   void *context)
{
	struct ofi_domain *domain = calloc(1, sizeof(*domain));
	int rc;
	OFI_LOCKED;

	if (domain == NULL)
		return -FI_ENOMEM;
	domain->fabric = container_of(fabric, struct ofi_fabric, fid);
	domain->fid = (struct fid_domain){
		.fid = {FI_CLASS_DOMAIN, context, &domain_fid_ops},
		.ops = &domain_ops,
		.mr = &san_ofi_mr_ops,
	};
	rc = san_ofi_progress_ctx_get(&domain->ctx);
	if (rc != 0) {
		free(domain);
		return rc;
	}
	domain->fabric->refs++;
	*out = &domain->fid;
	return 0;
}

/* ---- fabrics ---- */

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fabric_domain_open,
	.passive_ep = san_ofi_ep_passive_open,
	.eq_open = san_ofi_queue_eq_open,
	.wait_open = OFI_NONE,
	.trywait = san_ofi_queue_trywait,
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

static struct fi_ops fabric_fid_ops = OFI_FID_OPS(fabric_close, OFI_NONE, OFI_NONE);

static int
fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct ofi_fabric *fabric;

	if (attr->name != NULL && strcmp(attr->name, OFI_NAME) != 0)
		return -FI_ENODATA;
	fabric = calloc(1, sizeof(*fabric));
	if (fabric == NULL)
		return -FI_ENOMEM;
	fabric->fid = (struct fid_fabric){
		.fid = {FI_CLASS_FABRIC, context, &fabric_fid_ops},
		.ops = &fabric_ops,
		.api_version = attr->api_version,
	};
	*out = &fabric->fid;
	return 0;
}

/* ---- the provider ---- */

FI_EXT_INI
{
	san_ofi_ctx_read_params();
	san_ofi_ctx_provider.getinfo = san_ofi_info_get;
	san_ofi_ctx_provider.fabric = fabric_open;
	return &san_ofi_ctx_provider;
}
