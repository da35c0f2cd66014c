/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A message and its receive. A short message has its bytes with it. A long one names places in the
 * sender's memory: the receiver reads them, straight to where they belong, and answers.
 */

#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

#define DELIVER_PLACES(l) ((l) / sizeof(struct ofi_place))

/* ---- completions ---- */

/* The source is in *err_data_size*, plus 1: entries without an error have no other use for it. */
void
san_ofi_deliver_fill(struct fi_cq_err_entry *e, const struct ofi_ep *ep, const struct ofi_hdr *hdr)
{
	bool is_tagged = (hdr->flags & OFI_TAGGED) != 0;

	e->flags = FI_RECV | (is_tagged ? FI_TAGGED : FI_MSG);
	e->len = hdr->length;
	e->tag = is_tagged ? hdr->addr : 0;
	if ((hdr->flags & OFI_CQ_DATA) != 0) {
		e->flags |= FI_REMOTE_CQ_DATA;
		e->data = hdr->data;
	}
	e->err_data_size = (size_t)ep->from + 1;
}

void
san_ofi_deliver_answer(struct ofi_ep *ep, const struct ofi_hdr *hdr, int err)
{
	bool is_offer = (hdr->flags & OFI_PLACES) != 0;

	ep->nb_offers -= is_offer;
	if ((hdr->flags & OFI_WANT_ACK) == 0 || ep->state == OFI_EP_ENDED)
		return;
	san_ofi_op_ack(ep, hdr->id, (uint32_t)err, 0);
	san_ofi_ctx_mark(ep);
}

static void
deliver_complete(struct ofi_ep *ep, struct ofi_recv *r, size_t base, const struct ofi_hdr *hdr,
		 int err, int prov_errno)
{
	struct fi_cq_err_entry e = {.op_context = r->context, .err = err};
	size_t room = r->length - base;

	san_ofi_deliver_fill(&e, ep, hdr);
	if ((r->flags & FI_MULTI_RECV) != 0)
		e.buf = (uint8_t *)r->iov[0].iov_base + base;
	if (err == 0 && hdr->length > room) {
		e.len = room;
		e.olen = hdr->length - room;
		e.err = FI_ETRUNC;
		prov_errno = RTSAN_WC_LOC_LENGTH;
	}
	e.prov_errno = prov_errno;
	if (e.err != 0)
		e.err_data_size = 0;
	san_ofi_rxq_done(ep, r, &e);
	san_ofi_deliver_answer(ep, hdr, e.err);
}

/* ---- messages that need more than one step ---- */

static void
deliver_fetch_complete(struct ofi_fetch *f)
{
	deliver_complete(f->ep, f->recv, f->base, &f->hdr, f->err, f->prov_errno);
	free(f);
}

static void
deliver_fetch_end(struct ofi_fetch *f)
{
	struct ofi_ep *ep = f->ep;

	if (ep->owner != NULL) {
		deliver_fetch_complete(f);
		return;
	}
	f->is_whole = true;
	while ((f = STAILQ_FIRST(&ep->fetches)) != NULL && f->is_whole) {
		STAILQ_REMOVE_HEAD(&ep->fetches, link);
		ep->nb_fetches--;
		deliver_fetch_complete(f);
	}
	san_ofi_ctx_mark(ep); /* others may begin */
}

/* Read the next part of the message, or end: it has been read, or cannot be. */
static void
deliver_fetch_next(struct ofi_fetch *f, int err, int prov_errno)
{
	struct iovec iov[OFI_IOV];
	struct ofi_op_args args = {.iov = iov};
	const struct ofi_place *p = &f->places[f->next];
	size_t length;
	int rc;

	f->err = err;
	f->prov_errno = prov_errno;
	if (f->err == 0 && f->ep->state == OFI_EP_ENDED) {
		f->err = FI_ECANCELED;
		f->prov_errno = RTSAN_WC_FLUSHED;
	}
	if (f->err != 0 || f->next == f->nb || f->at == f->end) {
		deliver_fetch_end(f);
		return;
	}
	length = p->length < f->end - f->at ? p->length : f->end - f->at;
	args.addr = p->addr;
	args.key = p->key;
	args.count = san_ofi_op_slice(f->recv->iov, f->recv->nb_iov, f->base + f->at, length, iov);
	f->next++;
	f->at += length;
	rc = san_ofi_op_fetch(f->ep, f, &args);
	if (rc != 0) {
		f->err = -rc;
		deliver_fetch_end(f);
	}
}

static void
deliver_fetch(struct ofi_ep *ep, struct ofi_recv *r, size_t base, const struct ofi_hdr *hdr,
	      size_t payload)
{
	struct ofi_fetch *f = malloc(sizeof(*f));
	size_t room = r->length - base;

	if (f == NULL) {
		san_ofi_op_break(ep, "no memory for a message");
		deliver_complete(ep, r, base, hdr, FI_ENOMEM, 0);
		return;
	}
	*f = (struct ofi_fetch){
		.on_read = deliver_fetch_next,
		.ep = ep,
		.recv = r,
		.base = base,
		.end = hdr->length < room ? hdr->length : room,
	};
	memcpy(&f->hdr, hdr, OFI_HDR_MSG);
	if (ep->owner == NULL) {
		STAILQ_INSERT_TAIL(&ep->fetches, f, link);
		ep->nb_fetches++;
	}
	if ((hdr->flags & OFI_PLACES) == 0) {
		deliver_fetch_end(f);
		return;
	}
	f->nb = (uint8_t)DELIVER_PLACES(payload);
	memcpy(f->places, (const uint8_t *)hdr + OFI_HDR_MSG, payload);
	deliver_fetch_next(f, 0, 0);
}

/* ---- messages ---- */

bool
san_ofi_deliver_is_sound(const struct ofi_ep *ep, const struct ofi_hdr *hdr, size_t payload)
{
	const struct ofi_place *places =
		(const struct ofi_place *)((const uint8_t *)hdr + OFI_HDR_MSG);
	uint64_t left = hdr->length;
	size_t i;

	if ((hdr->flags & OFI_TAGGED) != 0 && ep->owner == NULL)
		return false;
	if ((hdr->flags & OFI_PLACES) == 0)
		return hdr->length == payload;
	if (payload % sizeof(*places) != 0 || DELIVER_PLACES(payload) > OFI_IOV ||
	    (hdr->flags & OFI_WANT_ACK) == 0 || ep->nb_offers >= OFI_REQUESTS)
		return false;
	for (i = 0; i < DELIVER_PLACES(payload); i++) {
		if (places[i].length == 0 || places[i].length > left)
			return false;
		left -= places[i].length;
	}
	return left == 0;
}

void
san_ofi_deliver(struct ofi_ep *ep, struct ofi_rxq *q, struct ofi_recv *r, const uint8_t *bytes,
		size_t length)
{
	const struct ofi_hdr *hdr = (const struct ofi_hdr *)bytes;
	size_t base = san_ofi_rxq_use(q, r, hdr->length), room = r->length - base;
	bool is_long = (hdr->flags & OFI_PLACES) != 0;

	length -= OFI_HDR_MSG;
	if (!is_long)
		san_ofi_op_scatter(r->iov, r->nb_iov, base, bytes + OFI_HDR_MSG,
				   length < room ? length : room);
	if (is_long || !STAILQ_EMPTY(&ep->fetches))
		deliver_fetch(ep, r, base, hdr, length);
	else
		deliver_complete(ep, r, base, hdr, 0, 0);
}
