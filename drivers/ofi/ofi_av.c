/* SPDX-License-Identifier: BSD-3-Clause */

/* Address vectors: a table, whose places are the addresses of either type. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

#define AV_SIZE 64

/* The place of *a*, or else the first free one. 0 or -FI_ENOMEM. */
static int
av_place(struct ofi_av *av, const union ofi_addr *a, fi_addr_t *at)
{
	size_t i, nb = av->nb != 0 ? 2 * av->nb : AV_SIZE;
	struct ofi_av_place *places;

	*at = av->nb;
	for (i = 0; i < av->nb; i++)
		if (av->places[i].uses == 0 && i < *at)
			*at = i;
		else if (av->places[i].uses != 0 &&
			 memcmp(&av->places[i].addr, a, sizeof(*a)) == 0) {
			*at = i;
			return 0;
		}
	if (*at < av->nb)
		return 0;
	places = realloc(av->places, nb * sizeof(*places));
	if (places == NULL)
		return -FI_ENOMEM;
	memset(&places[av->nb], 0, (nb - av->nb) * sizeof(*places));
	av->places = places;
	av->nb = nb;
	return 0;
}

/* A peer has one number, however often it is inserted: receives are matched by that. */
static int
av_add(struct ofi_av *av, const union ofi_addr *a, fi_addr_t *at)
{
	struct ofi_rdm *rdm;
	int rc = av_place(av, a, at);

	if (rc != 0 || av->places[*at].uses++ != 0)
		return rc;
	av->places[*at].addr = *a;
	LIST_FOREACH(rdm, &av->rdms, av_link)
		san_ofi_rdm_on_insert(rdm, *at, a);
	return 0;
}

static int
av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out, uint64_t flags,
	  void *context)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	int *errors = (flags & FI_SYNC_ERR) != 0 ? context : NULL;
	const uint8_t *from = addr;
	union ofi_addr a = {0};
	fi_addr_t at;
	int rc, n = 0;
	size_t i;
	OFI_LOCKED;

	if ((flags & ~(FI_MORE | FI_SYNC_ERR)) != 0)
		return -FI_EBADFLAGS;
	for (i = 0; i < count; i++) {
		rc = san_ofi_addr_read(&a, from, sizeof(a)); /* its length is that of its family */
		from += san_ofi_addr_len(&a);
		if (rc == 0)
			rc = av_add(av, &a, &at);
		if (out != NULL)
			out[i] = rc == 0 ? at : FI_ADDR_NOTAVAIL;
		if (errors != NULL)
			errors[i] = -rc;
		n += rc == 0;
	}
	return n;
}

static int
av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *out,
	     uint64_t flags, void *context)
{
	union ofi_addr a;
	int rc = san_ofi_addr_resolve(&a, node, service, false, AF_UNSPEC);

	return rc == 0 ? av_insert(fid, &a, 1, out, flags, context) : rc;
}

static int
av_remove(struct fid_av *fid, fi_addr_t *at, size_t count, uint64_t flags)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	struct ofi_rdm *rdm;
	int rc = 0;
	size_t i;
	OFI_LOCKED;

	if (flags != 0)
		return -FI_EBADFLAGS;
	for (i = 0; i < count; i++) {
		if (san_ofi_av_find(av, at[i]) == NULL) {
			rc = -FI_EINVAL;
			continue;
		}
		if (--av->places[at[i]].uses != 0)
			continue;
		LIST_FOREACH(rdm, &av->rdms, av_link)
			san_ofi_rdm_on_remove(rdm, at[i]);
	}
	return rc;
}

static int
av_lookup(struct fid_av *fid, fi_addr_t at, void *addr, size_t *addrlen)
{
	const struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	const union ofi_addr *a;
	OFI_LOCKED;

	a = san_ofi_av_find(av, at);
	if (a == NULL)
		return -FI_EINVAL;
	san_ofi_addr_copy(a, addr, addrlen); /* cut, if there is no room */
	return 0;
}

static const char *
av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	char ip[RTSAN_ADDRESS_MAX], text[RTSAN_ADDRESS_MAX + 16];
	union ofi_addr a;
	int n;

	(void)fid;
	if (san_ofi_addr_read(&a, addr, sizeof(a)) != 0)
		return NULL;
	san_ofi_addr_text(&a, ip);
	n = snprintf(text, sizeof(text), a.sa.sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u", ip,
		     san_ofi_addr_port(&a));
	if (*len != 0)
		snprintf(buf, *len, "%s", text);
	*len = (size_t)n + 1;
	return buf;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = OFI_NONE,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
};

/* ---- open, close ---- */

static int
av_close(struct fid *fid)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid.fid);
	OFI_LOCKED;

	if (av->refs != 0)
		return -FI_EBUSY;
	av->domain->refs--;
	free(av->places);
	free(av);
	return 0;
}

static struct fi_ops av_fid_ops = OFI_FID_OPS(av_close, OFI_NONE, OFI_NONE);

int
san_ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out,
		void *context)
{
	struct ofi_av *av;
	OFI_LOCKED;

	if ((attr->flags & ~FI_SYMMETRIC) != 0 || attr->name != NULL || attr->rx_ctx_bits != 0)
		return -FI_ENOSYS; /* neither asynchronous nor shared by processes */
	av = calloc(1, sizeof(*av));
	if (av == NULL)
		return -FI_ENOMEM;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->domain = container_of(domain, struct ofi_domain, fid);
	av->fid = (struct fid_av){{FI_CLASS_AV, context, &av_fid_ops}, &av_ops};
	av->domain->refs++;
	*out = &av->fid;
	return 0;
}
