/* SPDX-License-Identifier: BSD-3-Clause */

/* Operations of the program, and answers to the peer's requests, from the call to the end. */

#include "ofi_priv.h"

const struct ofi_op_type san_ofi_op_types[OFI_TYPES] = {
	[OFI_MSG] = {OFI_HDR_MSG, OFI_CLASS_MSG, FI_SEND | FI_MSG},
	[OFI_WRITE] = {OFI_HDR_MEM, OFI_CLASS_RMA, FI_WRITE | FI_RMA},
	[OFI_READ] = {OFI_HDR_MEM, OFI_CLASS_RMA, FI_READ | FI_RMA},
	[OFI_ATOMIC] = {sizeof(struct ofi_hdr), OFI_CLASS_RMA, FI_ATOMIC},
	[OFI_DATA] = {OFI_HDR_SHORT, OFI_CLASS_RMA, 0},
	[OFI_ACK] = {OFI_HDR_SHORT, OFI_CLASS_RMA, 0},
	[OFI_READ_DATA] = {OFI_HDR_SHORT, OFI_CLASS_RMA, 0},
	[OFI_CREDIT] = {OFI_HDR_SHORT, OFI_CLASS_NONE, 0},
};

/* ---- memory in pieces ---- */

size_t
san_ofi_op_slice(const struct iovec *from, size_t nb_from, size_t offset, size_t length,
		 struct iovec to[OFI_IOV], uint8_t *places)
{
	size_t i, n, nb = 0;

	for (i = 0; i < nb_from && length != 0; i++) {
		if (offset >= from[i].iov_len) {
			offset -= from[i].iov_len;
			continue;
		}
		n = from[i].iov_len - offset;
		if (n > length)
			n = length;
		if (places != NULL)
			places[nb] = (uint8_t)i;
		to[nb].iov_base = (uint8_t *)from[i].iov_base + offset;
		to[nb++].iov_len = n;
		offset = 0;
		length -= n;
	}
	return nb;
}

void
san_ofi_op_copy(const struct iovec *of, size_t nb_of, size_t offset, size_t length, void *bytes,
		bool is_filled)
{
	struct iovec iov[OFI_IOV];
	size_t i, nb = san_ofi_op_slice(of, nb_of, offset, length, iov, NULL);
	uint8_t *at = bytes;

	for (i = 0; i < nb; at += iov[i++].iov_len)
		memcpy(is_filled ? iov[i].iov_base : at, is_filled ? at : iov[i].iov_base,
		       iov[i].iov_len);
}

/* ---- end ---- */

static void
op_free(struct ofi_op *op)
{
	struct ofi_ctx *ctx = op->ep->domain->ctx;
	uint8_t i;

	if (op->offer != NULL) {
		for (i = 0; i < op->offer->nb; i++)
			san_ofi_mr_free(op->offer->mrs[i]);
		ctx->nb_offers--;
		free(op->offer);
	}
	if (op->buf != NULL)
		LIST_INSERT_HEAD(&ctx->bufs, op->buf, link);
	LIST_REMOVE(op, link);
	LIST_INSERT_HEAD(&ctx->ops, op, link);
}

static void
op_report(struct ofi_op *op)
{
	struct fi_cq_err_entry e = {
		.op_context = op->args.context,
		.flags = san_ofi_op_types[op->args.type].flags,
		.prov_errno = op->prov_errno,
	};

	if (op->is_reported)
		return;
	op->is_reported = true;
	if ((op->args.flags & FI_TAGGED) != 0)
		e.flags = FI_SEND | FI_TAGGED;
	if (op->args.type == OFI_ATOMIC)
		e.flags |= op->nb_iov != 0 ? FI_READ : FI_WRITE;
	san_ofi_report_done(op->ep, &e, (op->args.flags & FI_COMPLETION) != 0);
}

static void
op_finish(struct ofi_op *op)
{
	struct ofi_fetch *fetch = op->fetch;
	int prov_errno = op->prov_errno;
	struct ofi_ep *ep = op->ep;

	if (san_ofi_op_is_own(op)) {
		op_report(op);
		ep->nb_ops--;
		if (op->has_begun)
			ep->nb_begun--;
	} else {
		ep->nb_answers--;
	}
	op_free(op);
	if (fetch != NULL)
		fetch->on_read(fetch, prov_errno);
}

void
san_ofi_op_check(struct ofi_op *op)
{
	if (!op->is_posted)
		return;
	if (san_ofi_op_is_own(op) && op->args.type <= OFI_WRITE && !op->is_direct &&
	    op->prov_errno == 0 && (op->args.flags & FI_INJECT_COMPLETE) != 0)
		op_report(op);
	if (op->nb_wr == 0 && !op->needs_answer)
		op_finish(op);
}

void
san_ofi_op_cancel_all(struct ofi_ep *ep, bool all)
{
	struct ofi_op *op, *next;

	STAILQ_INIT(&ep->sends);
	STAILQ_INIT(&ep->answers);
	for (op = LIST_FIRST(&ep->ops); op != NULL; op = next) {
		next = LIST_NEXT(op, link);
		if (op->prov_errno == 0 && (all || !op->is_posted || op->needs_answer))
			op->prov_errno = RTSAN_WC_FLUSHED;
		if (op->needs_answer)
			ep->requests[op->args.id] = NULL;
		op->needs_answer = false;
		op->is_posted = true;
		if (op->nb_wr == 0 || all)
			op_finish(op);
	}
	/* last: receives that are in use are older than posted ones */
	if (ep->rxq == &ep->own_rxq)
		san_ofi_rxq_flush(ep->rxq, ep);
}

void
san_ofi_op_end_all(struct ofi_ep *ep)
{
	if (ep->state == OFI_EP_ENDED)
		return;
	ep->state = OFI_EP_ENDED;
	san_ofi_op_cancel_all(ep, ep->domain->ctx->is_lost);
}

void
san_ofi_op_break(struct ofi_ep *ep, const char *why)
{
	OFI_WARN(FI_LOG_EP_DATA, "endpoint %p: %s\n", (void *)ep, why);
	if (ep->state == OFI_EP_ENDED)
		return;
	ep->is_shut = true;
	rtsan_disconnect(ep->qp);
	san_ofi_report_end(ep, RTSAN_R_REFUSED);
	san_ofi_op_end_all(ep);
}

/* ---- begin ---- */

/* Register the memory of a long message, which the peer reads. 0 or -errno. */
static int
op_offer_make(struct ofi_op *op)
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
		rc = san_ofi_mr_open(domain, &op->iov[i], FI_REMOTE_READ, false,
				     &offer->mrs[offer->nb]);
		/* no region or no memory is left: others end, if there are any */
		if ((rc == -FI_ENOSPC || rc == -FI_ENOMEM) && domain->ctx->nb_offers > 1)
			return -FI_EAGAIN;
		if (rc != 0)
			return rc;
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

static struct ofi_op *
op_alloc(struct ofi_ep *ep, const struct ofi_op_args *args)
{
	struct ofi_ctx *ctx = ep->domain->ctx;
	struct ofi_op *op = LIST_FIRST(&ctx->ops);
	const struct ofi_mr *mr;
	size_t i;

	if (op != NULL)
		LIST_REMOVE(op, link);
	else
		op = malloc(sizeof(*op));
	if (op == NULL)
		return NULL;
	memset(op, 0, sizeof(*op));
	op->ep = ep;
	op->args = *args;
	if (args->type == 0)
		op->args.type = OFI_MSG;
	op->nb_iov = (uint8_t)args->count;
	for (i = 0; i < args->count; i++) {
		op->iov[i] = args->iov[i];
		mr = args->desc != NULL ? args->desc[i] : NULL;
		op->lkey[i] = mr != NULL && mr->mr != NULL ? rtsan_mr_lkey(mr->mr) : 0;
		op->length += args->iov[i].iov_len;
	}
	op->is_native = op->args.type != OFI_MSG && op->args.type <= OFI_ATOMIC &&
		(op->args.key & OFI_MR_NATIVE) != 0;
	LIST_INSERT_HEAD(&ep->ops, op, link);
	return op;
}

/* A number by which the peer answers. There are as many as there may be operations. */
static void
op_need_answer(struct ofi_op *op)
{
	struct ofi_ep *ep = op->ep;

	while (ep->requests[ep->next_request % OFI_NUMBERS] != NULL)
		ep->next_request++;
	op->args.id = ep->next_request++ % OFI_NUMBERS;
	ep->requests[op->args.id] = op;
	op->needs_answer = true;
}

/* Copy the bytes now, behind the place of a header. */
static int
op_inject(struct ofi_op *op)
{
	if (op->length > OFI_INJECT)
		return -FI_EINVAL;
	op->buf = san_ofi_ctx_buf_get(op->ep->domain->ctx);
	if (op->buf == NULL)
		return -FI_EAGAIN;
	san_ofi_op_copy(op->iov, op->nb_iov, 0, op->length, op->buf->data + sizeof(struct ofi_hdr),
			false);
	return 0;
}

int
san_ofi_op_post(struct ofi_ep *ep, const struct ofi_op_args *args)
{
	struct ofi_op *op;
	int rc = 0;

	if (ep->state != OFI_EP_CONNECTED || ep->is_shut)
		return -FI_ENOTCONN;
	if (args->count > OFI_IOV)
		return -FI_EINVAL;
	if (ep->nb_ops >= ep->tx_size)
		return -FI_EAGAIN;
	op = op_alloc(ep, args);
	if (op == NULL)
		return -FI_ENOMEM;
	op->needs_data = op->is_native && (args->flags & FI_REMOTE_CQ_DATA) != 0;
	if (op->length > OFI_LENGTH)
		rc = -FI_EMSGSIZE;
	else if ((args->flags & FI_INJECT) != 0 && args->type != OFI_ATOMIC) /* has its operands */
		rc = op_inject(op);
	else if (op->args.type == OFI_MSG && op->length > OFI_EAGER)
		rc = op_offer_make(op);
	if (rc != 0) {
		op_free(op);
		return rc;
	}
	if (op->args.type == OFI_MSG ?
		    (args->flags & FI_DELIVERY_COMPLETE) != 0 || op->offer != NULL :
		    !op->is_native)
		op_need_answer(op);
	ep->nb_ops++;
	STAILQ_INSERT_TAIL(&ep->sends, op, queue);
	return 0;
}

/* It goes with the answers: no send that waits is in its way. */
int
san_ofi_op_fetch(struct ofi_ep *conn, struct ofi_fetch *fetch, const struct ofi_op_args *args)
{
	struct ofi_op *op = op_alloc(conn, args);

	if (op == NULL)
		return -FI_ENOMEM;
	op->fetch = fetch;
	if (!op->is_native)
		op_need_answer(op);
	conn->nb_answers++;
	STAILQ_INSERT_TAIL(&conn->answers, op, queue);
	san_ofi_ctx_mark(conn);
	return 0;
}

struct ofi_op *
san_ofi_op_answer(struct ofi_ep *ep, const struct ofi_op_args *args)
{
	struct ofi_op *op;

	if (ep->state == OFI_EP_ENDED)
		return NULL;
	/* a peer may reuse the place of a request before we see that its answer was sent */
	if (args->type != OFI_CREDIT && ep->nb_answers >= 2 * OFI_NUMBERS) {
		san_ofi_op_break(ep, "too many requests");
		return NULL;
	}
	op = op_alloc(ep, args);
	if (op == NULL) {
		san_ofi_op_break(ep, "no memory for an answer");
		return NULL;
	}
	ep->nb_answers++;
	STAILQ_INSERT_TAIL(&ep->answers, op, queue);
	return op;
}
