/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory regions. Where the transport can register a program's memory, it does; a daemon moves it,
 * which is too slow for a message. Else a region is an entry of a table, from which the provider
 * serves the peers' requests.
 */

#include <sys/random.h>

#include "ofi_priv.h"

#define MR_TABLE_MIN 64

uint32_t
san_ofi_mr_find(const struct ofi_domain *domain, uint64_t key, uint64_t addr, size_t length,
		uint64_t access)
{
	const struct ofi_ctx *ctx = domain->ctx;
	uint32_t place = (uint32_t)key;
	const struct ofi_mr *mr = place < ctx->nb_mrs ? ctx->mrs[place] : NULL;

	if (mr == NULL || mr->fid.key != key || mr->domain != domain)
		return FI_EACCES;
	if (addr < mr->addr || length > mr->length || addr - mr->addr > mr->length - length)
		return FI_EACCES;
	return (mr->access & access) == access ? 0 : FI_EACCES;
}

static int
mr_table_add(struct ofi_ctx *ctx, struct ofi_mr *mr)
{
	uint32_t random, i, at, nb = ctx->nb_mrs != 0 ? 2 * ctx->nb_mrs : MR_TABLE_MIN;
	struct ofi_mr **mrs;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -FI_EIO;
	for (i = 0; i < ctx->nb_mrs; i++)
		if (ctx->mrs[(ctx->next_mr + i) % ctx->nb_mrs] == NULL)
			break;
	at = i < ctx->nb_mrs ? (ctx->next_mr + i) % ctx->nb_mrs : ctx->nb_mrs;
	if (at == ctx->nb_mrs) {
		mrs = realloc(ctx->mrs, nb * sizeof(*mrs));
		if (mrs == NULL)
			return -FI_ENOMEM;
		memset(&mrs[ctx->nb_mrs], 0, (nb - ctx->nb_mrs) * sizeof(*mrs));
		ctx->mrs = mrs;
		ctx->nb_mrs = nb;
	}
	ctx->mrs[at] = mr;
	ctx->next_mr = at + 1;
	mr->fid.key = (uint64_t)(random >> 1) << 32 | at;
	return 0;
}

int
san_ofi_mr_open(struct ofi_domain *domain, const struct iovec *iov, uint64_t access,
		bool is_lasting, struct ofi_mr **out)
{
	uint32_t rights = ((access & FI_REMOTE_READ) != 0 ? RTSAN_REMOTE_PULL : 0) |
		((access & FI_REMOTE_WRITE) != 0 ? RTSAN_REMOTE_PUSH | RTSAN_REMOTE_ATOMIC : 0);
	struct ofi_mr *mr = calloc(1, sizeof(*mr));
	struct ofi_ctx *ctx = domain->ctx;
	int rc = -EOPNOTSUPP;

	if (mr == NULL)
		return -FI_ENOMEM;
	mr->domain = domain;
	mr->addr = (uintptr_t)iov->iov_base;
	mr->length = iov->iov_len;
	mr->access = access;
	if (mr->length != 0 && (ctx->caps.has_mr_reg || is_lasting))
		rc = rtsan_mr_reg(ctx->san, iov->iov_base, mr->length, rights, &mr->mr);
	if (rc == 0)
		mr->fid.key = OFI_MR_NATIVE | rtsan_mr_rkey(mr->mr);
	else if (rc == -EOPNOTSUPP || (rc == -ENOSPC && !ctx->caps.has_mr_reg))
		rc = mr_table_add(ctx, mr); /* a daemon cannot have it */
	else
		san_ofi_ctx_fail(rc, "fi_mr_reg");
	if (rc != 0) {
		free(mr);
		return rc;
	}
	*out = mr;
	return 0;
}

int
san_ofi_mr_free(struct ofi_mr *mr)
{
	int rc = 0;

	if (mr->mr != NULL)
		rc = rtsan_mr_dereg(mr->mr);
	else
		mr->domain->ctx->mrs[(uint32_t)mr->fid.key] = NULL;
	if (rc == -EBUSY)
		return rc;
	free(mr); /* also if the daemon has ended */
	return 0;
}

/* ---- calls ---- */

static int
mr_close(struct fid *fid)
{
	struct ofi_mr *mr = container_of(fid, struct ofi_mr, fid.fid);
	struct ofi_domain *domain = mr->domain;
	int rc;
	OFI_LOCKED;

	rc = san_ofi_mr_free(mr);
	if (rc == 0)
		domain->refs--;
	return rc;
}

static struct fi_ops mr_fid_ops = OFI_FID_OPS(mr_close, OFI_NONE, OFI_NONE);

static int
mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **out)
{
	struct ofi_domain *domain = container_of(fid, struct ofi_domain, fid.fid);
	struct ofi_mr *mr;
	int rc;
	OFI_LOCKED;

	if (fid->fclass != FI_CLASS_DOMAIN || attr->iov_count != 1 || flags != 0)
		return flags != 0 ? -FI_EBADFLAGS : -FI_EINVAL;
	if (attr->iface != FI_HMEM_SYSTEM)
		return -FI_ENOSYS;
	rc = san_ofi_mr_open(domain, &attr->mr_iov[0], attr->access, true, &mr);
	if (rc != 0)
		return rc;
	domain->refs++;
	mr->fid.fid = (struct fid){FI_CLASS_MR, attr->context, &mr_fid_ops};
	mr->fid.mem_desc = mr;
	*out = &mr->fid;
	return 0;
}

static int
mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
	uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = count, .access = access, .context = context};

	(void)offset, (void)key; /* ours are virtual addresses and keys of the provider */
	return mr_regattr(fid, &attr, flags, mr);
}

static int
mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key,
       uint64_t flags, struct fid_mr **mr, void *context)
{
	return mr_regv(fid, &(struct iovec){(void *)(uintptr_t)buf, len}, 1, access, offset, key,
		       flags, mr, context);
}

struct fi_ops_mr san_ofi_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
