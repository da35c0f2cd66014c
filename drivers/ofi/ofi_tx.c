/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sending. Operations wait in order until credits, send buffers and places in the send queue
 * allow their next part. Answers have a queue of their own, so that no message that waits for a
 * receive is in their way.
 */

#include <errno.h>

#include "ofi_priv.h"

/** Payload begins there in a send buffer; a shorter header lies right before it. */
#define TX_AT       sizeof(struct ofi_hdr)
#define TX_PART_MAX (OFI_BUF_SIZE - TX_AT)
#define TX_COPY_MAX 1024 /* up to that a copy costs less than one more element */

/** The next message of an operation. */
struct tx_part {
	struct ofi_hdr hdr;
	size_t hdr_size, length;
	enum ofi_class class;
};

static bool
tx_has_payload(const struct ofi_op *op)
{
	enum ofi_type type = op->args.type;

	return type == OFI_MSG || type == OFI_WRITE || type == OFI_READ_DATA;
}

static bool
tx_is_done(const struct ofi_op *op)
{
	if (!op->has_begun || op->needs_data)
		return false;
	return (!op->is_native && !tx_has_payload(op)) || op->posted == op->length;
}

static void
tx_fill(struct ofi_op *op, struct tx_part *p)
{
	uint8_t type = op->needs_data ? OFI_DATA : op->args.type; /* behind what was executed */
	size_t left = 0;

	/* check again: the region may have been closed since the peer requested the read */
	if (op->args.type == OFI_READ_DATA && op->args.status == 0)
		op->args.status = san_ofi_mr_find(op->ep->domain, op->args.key, op->args.addr,
						  op->length, FI_REMOTE_READ);
	if (type != OFI_DATA && tx_has_payload(op) && op->args.status == 0)
		left = op->length - op->posted;
	p->length = left < TX_PART_MAX ? left : TX_PART_MAX;
	p->hdr_size = san_ofi_op_types[type].hdr_size;
	p->class = san_ofi_op_types[type].class;
	p->hdr = (struct ofi_hdr){
		.type = type,
		.id = op->args.id,
		.length = (uint32_t)op->length,
		.status = type == OFI_ATOMIC ? op->args.atomic : op->args.status,
		.data = op->args.data,
		.addr = op->args.addr + op->posted,
		.key = op->args.key,
		.operand = op->args.operand,
		.compare = op->args.compare,
	};
	if (op->posted == 0)
		p->hdr.flags |= OFI_FIRST;
	if (p->length == left)
		p->hdr.flags |= OFI_LAST;
	if ((op->args.flags & FI_REMOTE_CQ_DATA) != 0)
		p->hdr.flags |= OFI_CQ_DATA;
	if (op->args.type == OFI_MSG && op->needs_answer)
		p->hdr.flags |= OFI_WANT_ACK;
	if (type == OFI_MSG && (op->args.flags & FI_TAGGED) != 0)
		p->hdr.flags |= OFI_TAGGED;
	if (op->offer != NULL) {
		p->hdr.flags |= OFI_PLACES;
		p->hdr.length = (uint32_t)op->offer->length;
	}
}

/* ---- posting ---- */

/* 1: posted; 0: no room; or -errno. */
static int
tx_post(struct ofi_op *op, struct rtsan_send_wr *wr, struct ofi_buf *buf)
{
	struct ofi_ep *ep = op->ep;
	int rc;

	wr->flags |= RTSAN_WR_SIGNALED;
	wr->wr_id = buf != NULL ? (uintptr_t)buf : (uintptr_t)op | OFI_WR_OP;
	rc = rtsan_post_send(ep->qp, wr, 1);
	if (rc == 1) {
		op->nb_wr++;
		ep->nb_wr++;
		if (buf != NULL) {
			buf->op = op;
			LIST_INSERT_HEAD(&ep->bufs, buf, link);
		}
		if (buf == op->buf)
			op->buf = NULL;
		return 1;
	}
	if (buf != NULL && buf != op->buf)
		LIST_INSERT_HEAD(&ep->domain->ctx->bufs, buf, link);
	if (rc == 0 && ep->nb_wr == 0) /* else a completion makes room */
		san_ofi_ctx_need_room(ep);
	return rc;
}

static int
tx_post_inline(struct ofi_op *op, struct rtsan_send_wr *wr, const struct tx_part *p)
{
	uint8_t bytes[RTSAN_INLINE_MAX];
	const struct rtsan_sge sge = {bytes, (uint32_t)(p->hdr_size + p->length), 0};

	memcpy(bytes, &p->hdr, p->hdr_size);
	if (op->buf != NULL) /* injected */
		memcpy(bytes + p->hdr_size, op->buf->data + TX_AT + op->posted, p->length);
	else
		san_ofi_op_copy(op->iov, op->nb_iov, op->posted, p->length, bytes + p->hdr_size,
				false);
	wr->sge = &sge;
	wr->nb_sge = sge.length != 0;
	wr->flags = RTSAN_WR_INLINE;
	return tx_post(op, wr, NULL);
}

static int
tx_post_copied(struct ofi_op *op, struct rtsan_send_wr *wr, const struct tx_part *p)
{
	struct ofi_buf *buf = op->buf;
	struct rtsan_sge sge;

	if (buf == NULL) {
		buf = san_ofi_ctx_buf_get(op->ep->domain->ctx);
		if (buf == NULL)
			return 0;
		san_ofi_op_copy(op->iov, op->nb_iov, op->posted, p->length, buf->data + TX_AT,
				false);
	}
	sge.addr = buf->data + TX_AT - p->hdr_size;
	sge.length = (uint32_t)(p->hdr_size + p->length);
	sge.lkey = buf->lkey;
	memcpy(sge.addr, &p->hdr, p->hdr_size);
	wr->sge = &sge;
	wr->nb_sge = 1;
	return tx_post(op, wr, buf);
}

/*
 * Name *length* bytes of the program's memory. Number of elements; 0: more than *max*, or they have
 * to be copied.
 */
static uint8_t
tx_name(const struct ofi_op *op, size_t length, struct rtsan_sge *sge, uint32_t max)
{
	bool needs_key = !op->ep->domain->ctx->caps.has_mr_reg;
	struct iovec iov[OFI_IOV];
	uint8_t places[OFI_IOV];
	size_t i, nb = san_ofi_op_slice(op->iov, op->nb_iov, op->posted, length, iov, places);

	if (nb > max || op->buf != NULL)
		return 0;
	for (i = 0; i < nb; i++) {
		if (needs_key && op->lkey[places[i]] == 0)
			return 0;
		sge[i] = (struct rtsan_sge){
			iov[i].iov_base, (uint32_t)iov[i].iov_len, op->lkey[places[i]]};
	}
	return (uint8_t)nb;
}

/* Post a part without a copy: the transport reads the program's memory. */
static int
tx_post_direct(struct ofi_op *op, struct rtsan_send_wr *wr, const struct tx_part *p,
	       struct rtsan_sge sge[OFI_IOV], uint8_t nb)
{
	struct ofi_buf *buf = san_ofi_ctx_buf_get(op->ep->domain->ctx);

	if (buf == NULL)
		return 0;
	memcpy(buf->data, &p->hdr, p->hdr_size);
	sge[0] = (struct rtsan_sge){buf->data, (uint32_t)p->hdr_size, buf->lkey};
	wr->sge = sge;
	wr->nb_sge = (uint8_t)(nb + 1);
	op->is_direct = true;
	return tx_post(op, wr, buf);
}

/* True: a part of *length* bytes has been posted. */
static bool
tx_advance(struct ofi_op *op, int rc, size_t length)
{
	if (rc < 0 && rc != -ENOTCONN)
		san_ofi_op_break(op->ep, rtsan_error());
	if (rc != 1)
		return false;
	op->posted += length;
	if (!op->has_begun && san_ofi_op_is_own(op))
		op->ep->nb_begun++;
	op->has_begun = true;
	return true;
}

/* ---- messages ---- */

/* Post the next message of *op*. False: not now. */
static bool
tx_message(struct ofi_op *op)
{
	const struct rtsan_caps *caps = &op->ep->domain->ctx->caps;
	struct rtsan_send_wr wr = {.opcode = RTSAN_WR_SEND};
	struct ofi_ep *ep = op->ep;
	struct rtsan_sge sge[OFI_IOV];
	struct tx_part p;
	uint8_t nb = 0;
	int i, rc;

	tx_fill(op, &p);
	if (p.class != OFI_CLASS_NONE && ep->credit[p.class] == 0)
		return false;
	for (i = 0; i < OFI_CLASSES; i++)
		p.hdr.credit[i] = (uint8_t)ep->due[i]; /* no more than the pool has */
	if (p.length > TX_COPY_MAX && op->args.type != OFI_READ_DATA)
		nb = tx_name(op, p.length, &sge[1], caps->max_sge - 1);
	if (p.hdr_size + p.length <= caps->max_inline)
		rc = tx_post_inline(op, &wr, &p);
	else if (nb != 0)
		rc = tx_post_direct(op, &wr, &p, sge, nb);
	else
		rc = tx_post_copied(op, &wr, &p);
	if (!tx_advance(op, rc, p.length))
		return false;
	if (op->args.status != 0) /* the refusal is the last part, sent only now */
		op->length = op->posted;
	for (i = 0; i < OFI_CLASSES; i++)
		ep->due[i] -= p.hdr.credit[i];
	if (p.class != OFI_CLASS_NONE)
		ep->credit[p.class]--;
	if (p.hdr.type == OFI_DATA)
		op->needs_data = false;
	return true;
}

/* ---- what the transport executes ---- */

/* The program's memory, or a send buffer from or to which bytes are copied. */
static bool
tx_native_memory(struct ofi_op *op)
{
	bool reads = op->args.type == OFI_READ;
	struct rtsan_send_wr wr = {
		.opcode = reads ? RTSAN_WR_PULL : RTSAN_WR_PUSH,
		.remote_addr = op->args.addr + op->posted,
		.rkey = (uint32_t)op->args.key,
	};
	const struct rtsan_caps *caps = &op->ep->domain->ctx->caps;
	size_t rest = op->length - op->posted;
	size_t left = rest < caps->max_msg ? rest : caps->max_msg;
	struct tx_part p = {.length = left < TX_PART_MAX ? left : TX_PART_MAX};
	struct rtsan_sge sge[OFI_IOV];
	struct ofi_buf *buf;

	if (!reads && left <= caps->max_inline)
		return tx_advance(op, tx_post_inline(op, &wr, &p), left);
	wr.nb_sge = tx_name(op, left, sge, caps->max_sge);
	if (wr.nb_sge != 0) {
		wr.sge = sge;
		op->is_direct = true;
		return tx_advance(op, tx_post(op, &wr, NULL), left);
	}
	if (!reads)
		return tx_advance(op, tx_post_copied(op, &wr, &p), p.length);
	buf = san_ofi_ctx_buf_get(op->ep->domain->ctx);
	if (buf == NULL)
		return false;
	buf->offset = op->posted;
	buf->length = p.length;
	sge[0] = (struct rtsan_sge){buf->data, (uint32_t)p.length, buf->lkey};
	wr.sge = sge;
	wr.nb_sge = p.length != 0;
	return tx_advance(op, tx_post(op, &wr, buf), p.length);
}

static bool
tx_native_atomic(struct ofi_op *op)
{
	bool adds = op->args.atomic == OFI_FETCH_ADD;
	struct rtsan_send_wr wr = {
		.opcode = adds ? RTSAN_WR_FETCH_ADD : RTSAN_WR_CMP_SWAP,
		.remote_addr = op->args.addr,
		.rkey = (uint32_t)op->args.key,
		.operand = adds ? op->args.operand : op->args.compare,
		.swap = op->args.operand,
		.nb_sge = 1,
	};
	struct ofi_buf *buf = san_ofi_ctx_buf_get(op->ep->domain->ctx);
	struct rtsan_sge sge;

	if (buf == NULL)
		return false;
	buf->offset = 0;
	buf->length = op->length; /* 0: the program does not fetch the old value */
	sge = (struct rtsan_sge){buf->data, sizeof(uint64_t), buf->lkey};
	wr.sge = &sge;
	return tx_advance(op, tx_post(op, &wr, buf), op->length);
}

/* ---- queues ---- */

/*
 * Post the next part of *op*. CQ data follows a write once the transport has executed it, so a
 * refused write is not reported to the peer. The completion of the write marks the endpoint.
 */
static bool
tx_next(struct ofi_op *op)
{
	if (op->ep->nb_wr >= OFI_SQ_DEPTH)
		return false;
	if (!op->is_native)
		return tx_message(op);
	if (!op->has_begun || op->posted != op->length)
		return op->args.type == OFI_ATOMIC ? tx_native_atomic(op) : tx_native_memory(op);
	if (op->nb_wr != 0)
		return false;
	if (op->prov_errno == 0)
		return tx_message(op);
	op->needs_data = false;
	return true;
}

static void
tx_queue_push(struct ofi_ep *ep, struct ofi_queue *q)
{
	struct ofi_op *op;

	while ((op = STAILQ_FIRST(q)) != NULL) {
		if ((op->args.flags & FI_FENCE) != 0 && !op->has_begun && ep->nb_begun != 0)
			return;
		while (!tx_is_done(op))
			if (!tx_next(op))
				return;
		STAILQ_REMOVE_HEAD(q, queue);
		op->is_posted = true;
		san_ofi_op_check(op);
	}
}

static void
tx_send_credits(struct ofi_ep *ep)
{
	struct ofi_op *op = san_ofi_op_answer(ep, &(struct ofi_op_args){.type = OFI_CREDIT});

	if (op == NULL)
		return;
	STAILQ_REMOVE(&ep->answers, op, ofi_op, queue);
	op->is_posted = true;
	if ((ep->nb_wr >= OFI_SQ_DEPTH || !tx_message(op)) && ep->state == OFI_EP_CONNECTED)
		san_ofi_op_check(op); /* tried again with the next completion */
}

/*
 * Send a last message, which carries the acknowledgement of the peer's last messages. Without it
 * these may complete as flushed at the peer, although they have arrived.
 */
int
san_ofi_tx_finish(struct ofi_ep *ep)
{
	tx_send_credits(ep);
	ep->is_shut = true;
	return rtsan_disconnect(ep->qp);
}

void
san_ofi_tx_push(struct ofi_ep *ep)
{
	if (ep->state != OFI_EP_CONNECTED || ep->is_shut)
		return;
	tx_queue_push(ep, &ep->answers);
	if (ep->state == OFI_EP_CONNECTED)
		tx_queue_push(ep, &ep->sends);
	/* credits alone, if no message has carried them, before the peer has too few */
	if (ep->state == OFI_EP_CONNECTED &&
	    (ep->due[OFI_CLASS_MSG] >= OFI_DUE(OFI_NB_MSG) ||
	     ep->due[OFI_CLASS_RMA] >= OFI_DUE(OFI_NB_RMA)))
		tx_send_credits(ep);
}

/* ---- completions ---- */

void
san_ofi_tx_on_wc(struct ofi_ep *ep, const struct rtsan_wc *wc)
{
	bool is_op = (wc->wr_id & OFI_WR_OP) != 0;
	uintptr_t p = (uintptr_t)(wc->wr_id & ~(uint64_t)OFI_WR_OP);
	struct ofi_buf *buf = is_op ? NULL : (struct ofi_buf *)p;
	struct ofi_op *op = is_op ? (struct ofi_op *)p : buf->op;

	op->nb_wr--;
	ep->nb_wr--;
	if (op->prov_errno == 0)
		op->prov_errno = wc->status; /* 0: success */
	if (buf != NULL) {
		if (wc->status == RTSAN_WC_SUCCESS && buf->length != 0)
			san_ofi_op_copy(op->iov, op->nb_iov, buf->offset, buf->length, buf->data,
					true);
		LIST_REMOVE(buf, link);
		LIST_INSERT_HEAD(&ep->domain->ctx->bufs, buf, link);
	}
	san_ofi_op_check(op);
	san_ofi_ctx_mark(ep);
}
