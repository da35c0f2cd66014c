/* SPDX-License-Identifier: BSD-3-Clause */

/* Domains. All share the context of the process. */

#include <stdlib.h>

#include "ofi_rdm.h"

/*
 * The two of the transport, on 8 bytes. FI_SUM works with and without FI_FETCH_ATOMIC, FI_CSWAP
 * with FI_COMPARE_ATOMIC only.
 */
int
san_ofi_domain_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			    struct fi_atomic_attr *attr, uint64_t flags)
{
	const uint64_t both = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
	bool compares = (flags & FI_COMPARE_ATOMIC) != 0;

	(void)domain;
	if ((flags & FI_TAGGED) != 0) /* to a tagged receive */
		return -FI_EOPNOTSUPP;
	if ((flags & ~both) != 0 || flags == both)
		return -FI_EBADFLAGS;
	if (datatype != FI_INT64 && datatype != FI_UINT64)
		return -FI_EOPNOTSUPP;
	if (op != (compares ? FI_CSWAP : FI_SUM))
		return -FI_EOPNOTSUPP;
	attr->count = 1;
	attr->size = sizeof(uint64_t);
	return 0;
}

/* ---- not supported ---- */

static int
domain_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		   void *context)
{
	(void)domain, (void)info, (void)ep, (void)context;
	return -FI_ENOSYS;
}

static int
domain_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset)
{
	(void)domain, (void)attr, (void)pollset;
	return -FI_ENOSYS;
}

static int
domain_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
	       void *context)
{
	(void)domain, (void)attr, (void)stx, (void)context;
	return -FI_ENOSYS;
}

static int
domain_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			struct fi_collective_attr *attr, uint64_t flags)
{
	(void)domain, (void)coll, (void)attr, (void)flags;
	return -FI_ENOSYS;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = san_ofi_av_open,
	.cq_open = san_ofi_cq_open,
	.endpoint = san_ofi_ep_open,
	.scalable_ep = domain_scalable_ep,
	.cntr_open = san_ofi_cntr_open,
	.poll_open = domain_poll_open,
	.stx_ctx = domain_stx_ctx,
	.srx_ctx = san_ofi_rxq_open,
	.query_atomic = san_ofi_domain_query_atomic,
	.query_collective = domain_query_collective,
};

/* ---- open, close ---- */

static int
domain_close(struct fid *fid)
{
	struct ofi_domain *domain = container_of(fid, struct ofi_domain, fid.fid);

	san_ofi_ctx_lock();
	if (domain->refs != 0) {
		san_ofi_ctx_unlock();
		return -FI_EBUSY;
	}
	san_ofi_ctx_put(domain->ctx);
	domain->fabric->refs--;
	san_ofi_ctx_unlock();
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = san_ofi_none_bind,
	.control = san_ofi_none_control,
	.ops_open = san_ofi_none_ops_open,
};

int
san_ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		    void *context)
{
	struct ofi_domain *domain = calloc(1, sizeof(*domain));
	int rc;

	(void)info;
	if (domain == NULL)
		return -FI_ENOMEM;
	domain->fabric = container_of(fabric, struct ofi_fabric, fid);
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &domain_fid_ops;
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &san_ofi_mr_ops;
	san_ofi_ctx_lock();
	rc = san_ofi_ctx_get(&domain->ctx);
	if (rc == 0)
		domain->fabric->refs++;
	san_ofi_ctx_unlock();
	if (rc != 0) {
		free(domain);
		return rc;
	}
	*out = &domain->fid;
	return 0;
}
