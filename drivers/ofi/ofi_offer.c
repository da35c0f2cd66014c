/* SPDX-License-Identifier: BSD-3-Clause */

/* Long messages, at the sender: their memory is registered, and the peer reads it. */

#include <stdlib.h>
#include <string.h>

#include "ofi_rdm.h"

int
san_ofi_offer_make(struct ofi_op *op)
{
	struct ofi_domain *domain = op->ep->domain;
	struct ofi_offer *offer = calloc(1, sizeof(*offer));
	struct ofi_place place;
	int rc = 0;
	uint8_t i;

	if (offer == NULL)
		return -FI_ENOMEM;
	op->buf = san_ofi_ctx_buf_get(domain->ctx);
	if (op->buf == NULL) {
		free(offer);
		return -FI_EAGAIN;
	}
	op->offer = offer;
	offer->length = op->length;
	for (i = 0; i < op->nb_iov && rc == 0; i++) {
		if (op->iov[i].iov_len == 0)
			continue;
		rc = san_ofi_mr_open(domain, &op->iov[i], FI_REMOTE_READ, &offer->mrs[offer->nb]);
		if (rc != 0)
			break;
		place.addr = (uintptr_t)op->iov[i].iov_base;
		place.key = offer->mrs[offer->nb]->fid.key;
		place.length = op->iov[i].iov_len;
		memcpy(op->buf->data + sizeof(struct ofi_hdr) + offer->nb++ * sizeof(place),
		       &place, sizeof(place));
	}
	op->nb_iov = 0;
	op->length = offer->nb * sizeof(place);
	op->is_direct = true; /* not complete before it has been read */
	/* all regions are in use: others end */
	return rc == -FI_ENOSPC && op->ep->nb_ops != 0 ? -FI_EAGAIN : rc;
}

void
san_ofi_offer_withdraw(struct ofi_op *op)
{
	uint8_t i;

	for (i = 0; i < op->offer->nb; i++)
		san_ofi_mr_free(op->offer->mrs[i]);
	free(op->offer);
}
