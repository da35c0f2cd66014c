/* SPDX-License-Identifier: BSD-3-Clause */

/* Long messages, at the sender: their memory is registered, and the peer reads it. */

#include <stdlib.h>

#include "ofi_rdm.h"

/* No region or no memory is left: others end, if there are any. */
static int
offer_fail(const struct ofi_ctx *ctx, int rc)
{
	return (rc == -FI_ENOSPC || rc == -FI_ENOMEM) && ctx->nb_offers > 1 ? -FI_EAGAIN : rc;
}

int
san_ofi_offer_make(struct ofi_op *op)
{
	struct ofi_domain *domain = op->ep->domain;
	struct ofi_offer *offer = calloc(1, sizeof(*offer));
	struct ofi_place *place;
	uint8_t i;
	int rc;

	if (offer == NULL)
		return -FI_ENOMEM;
	op->offer = offer;
	domain->ctx->nb_offers++;
	offer->length = op->length;
	for (i = 0; i < op->nb_iov; i++) {
		if (op->iov[i].iov_len == 0)
			continue;
		rc = san_ofi_mr_open(domain, &op->iov[i], FI_REMOTE_READ, &offer->mrs[offer->nb]);
		if (rc != 0)
			return offer_fail(domain->ctx, rc);
		place = &offer->places[offer->nb];
		place->addr = (uintptr_t)op->iov[i].iov_base;
		place->key = offer->mrs[offer->nb++]->fid.key;
		place->length = op->iov[i].iov_len;
	}
	op->iov[0].iov_base = offer->places;
	op->iov[0].iov_len = offer->nb * sizeof(*place);
	op->nb_iov = 1;
	op->length = op->iov[0].iov_len;
	op->is_direct = true; /* not complete before it has been read */
	return 0;
}

void
san_ofi_offer_withdraw(struct ofi_op *op)
{
	struct ofi_offer *offer = op->offer;
	uint8_t i;

	for (i = 0; i < offer->nb; i++)
		san_ofi_mr_free(offer->mrs[i]);
	op->ep->domain->ctx->nb_offers--;
	free(offer);
}
