/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the peer sends: messages go to posted receives, requests to memory are served, answers
 * complete operations. Each has filled a receive of the pool.
 */

#include <string.h>

#include "ofi_priv.h"
#include "san_time.h"

#define GUESSES         64   /* of a connection */
#define GUESSES_AN_HOUR 1000 /* of an origin; half of them at once */
#define HOUR_MS         3600000u
#define EACH_MS         (2 * HOUR_MS / GUESSES_AN_HOUR)

static const struct ofi_hdr *
rx_hdr(const struct ofi_rx *rx)
{
	return (const struct ofi_hdr *)rx->data;
}

/* ---- requests for memory ---- */

/* The entry of *from*, or the one to replace: that which has spent the least. */
static struct ofi_guesser *
rx_find_guesser(struct ofi_ctx *ctx, const struct ofi_origin *from)
{
	struct ofi_guesser *g, *least = ctx->guessers;

	for (g = ctx->guessers; g < ctx->guessers + OFI_GUESSERS; g++) {
		if (memcmp(&g->from, from, sizeof(*from)) == 0)
			return g;
		if (g->spent_ms < least->spent_ms)
			least = g;
	}
	*least = (struct ofi_guesser){.from = *from};
	return least;
}

/*
 * A peer cannot find keys by trying: the limits are those of the transport's own regions, and so
 * are their effects (lib/ulp/ulp_guess.c).
 */
static uint32_t
rx_find_memory(struct ofi_ep *ep, uint64_t key, uint64_t addr, size_t length, uint64_t access)
{
	uint64_t now_ms = (uint64_t)san_ofi_wait_now_ms() + HOUR_MS;
	struct ofi_ctx *ctx = ep->domain->ctx;
	bool may = ep->is_known ||
		rx_find_guesser(ctx, &ep->origin)->spent_ms + EACH_MS <= now_ms;

	if (may && san_ofi_mr_find(ep->domain, key, addr, length, access) == 0) {
		ep->is_known = true;
		return 0;
	}
	may = san_rate_take(&rx_find_guesser(ctx, &ep->origin)->spent_ms, EACH_MS,
			    GUESSES_AN_HOUR / 2, now_ms);
	if (++ep->nb_guesses >= GUESSES || (!may && ep->is_known))
		san_ofi_op_break(ep, "too many requests for memory that it may not use");
	return FI_EACCES;
}

/* Report a write with CQ data to the program. */
static void
rx_on_data(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct fi_cq_err_entry e = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.data = rx_hdr(rx)->data,
		.err_data_size = (size_t)ep->from + 1, /* see ofi_deliver.c */
	};

	if (ep->rx_cq != NULL)
		san_ofi_report_cq(ep->rx_cq, &e);
}

static void
rx_on_write(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx_hdr(rx);
	size_t length = rx->length - OFI_HDR_MEM;

	if ((hdr->flags & OFI_FIRST) != 0)
		ep->write_status = 0;
	if (ep->write_status == 0)
		ep->write_status =
			rx_find_memory(ep, hdr->key, hdr->addr, length, FI_REMOTE_WRITE);
	if (ep->write_status == 0)
		memcpy((void *)(uintptr_t)hdr->addr, rx->data + OFI_HDR_MEM, length);
	if ((hdr->flags & OFI_LAST) == 0)
		return;
	if ((hdr->flags & OFI_CQ_DATA) != 0 && ep->write_status == 0)
		rx_on_data(ep, rx);
	san_ofi_op_ack(ep, hdr->id, ep->write_status, 0);
}

/* The memory is looked up again for each part of the answer, because a region may be closed. */
static void
rx_on_read(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx_hdr(rx);
	uint32_t status = rx_find_memory(ep, hdr->key, hdr->addr, hdr->length, FI_REMOTE_READ);
	struct ofi_op *op = san_ofi_op_answer(ep, OFI_READ_DATA, hdr->id);

	if (op == NULL)
		return;
	op->status = status;
	op->addr = hdr->addr;
	op->key = hdr->key;
	op->length = hdr->length;
	op->nb_iov = 1;
	op->iov[0].iov_base = (void *)(uintptr_t)hdr->addr;
	op->iov[0].iov_len = hdr->length;
}

static void
rx_on_atomic(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx_hdr(rx);
	uint64_t *at = (uint64_t *)(uintptr_t)hdr->addr, old = hdr->compare;
	bool fetches = hdr->length != 0;
	uint32_t status = rx_find_memory(ep, hdr->key, hdr->addr, sizeof(*at),
					 FI_REMOTE_WRITE | (fetches ? FI_REMOTE_READ : 0));

	if (status == 0 && hdr->addr % sizeof(*at) != 0)
		status = FI_EINVAL;
	if (status == 0 && hdr->status != OFI_FETCH_ADD && hdr->status != OFI_CMP_SWAP)
		status = FI_EINVAL;
	if (status == 0 && hdr->status == OFI_FETCH_ADD)
		old = __atomic_fetch_add(at, hdr->operand, __ATOMIC_SEQ_CST);
	else if (status == 0)
		__atomic_compare_exchange_n(at, &old, hdr->operand, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	san_ofi_op_ack(ep, hdr->id, status, fetches ? old : 0);
}

/* ---- answers ---- */

/* The operation that the peer answers, or NULL. */
static struct ofi_op *
rx_request(const struct ofi_ep *ep, uint32_t id)
{
	return id < OFI_NUMBERS ? ep->requests[id] : NULL;
}

static void
rx_end_request(struct ofi_op *op, uint32_t status)
{
	if (status >= FI_ERRNO_MAX) /* a value of the peer */
		status = FI_EIO;
	if (status != 0 && op->prov_errno == 0)
		op->prov_errno = OFI_ERRNO + (int)status;
	op->ep->requests[op->id] = NULL;
	op->needs_answer = false;
	san_ofi_op_check(op);
}

static void
rx_on_ack(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx_hdr(rx);
	struct ofi_op *op = rx_request(ep, hdr->id);
	uint32_t status = hdr->status;
	uint64_t old = hdr->data;

	if (op == NULL || op->type == OFI_READ) {
		san_ofi_op_break(ep, "an answer without a request");
		return;
	}
	if (op->offer != NULL && (op->flags & FI_DELIVERY_COMPLETE) == 0 && status == FI_ETRUNC)
		status = 0; /* the program has not asked whether there was room */
	if (op->type == OFI_ATOMIC && status == 0)
		san_ofi_op_copy(op->iov, op->nb_iov, 0, sizeof(old), &old, true);
	rx_end_request(op, status);
}

static void
rx_on_read_data(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx_hdr(rx);
	struct ofi_op *op = rx_request(ep, hdr->id);
	size_t length = rx->length - OFI_HDR_SHORT;

	if (op == NULL || op->type != OFI_READ || length > op->length - op->answered) {
		san_ofi_op_break(ep, "an answer without a read");
		return;
	}
	san_ofi_op_copy(op->iov, op->nb_iov, op->answered, length, rx->data + OFI_HDR_SHORT, true);
	op->answered += length;
	if ((hdr->flags & OFI_LAST) == 0)
		return;
	if (hdr->status == 0 && op->answered != op->length)
		san_ofi_op_break(ep, "a read has too little data");
	else
		rx_end_request(op, hdr->status);
}

/* ---- all ---- */

static void (*const rx_on[OFI_TYPES])(struct ofi_ep *ep, struct ofi_rx *rx) = {
	[OFI_MSG] = san_ofi_deliver_on_message,
	[OFI_WRITE] = rx_on_write,
	[OFI_READ] = rx_on_read,
	[OFI_ATOMIC] = rx_on_atomic,
	[OFI_DATA] = rx_on_data,
	[OFI_ACK] = rx_on_ack,
	[OFI_READ_DATA] = rx_on_read_data,
};

void
san_ofi_rx_on_recv(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx_hdr(rx);
	const struct ofi_op_type *type = &san_ofi_op_types[hdr->type % OFI_TYPES];
	int i;

	if (ep->state == OFI_EP_ENDED)
		return; /* broken, and the peer does not know yet */
	san_ofi_ctx_mark(ep);
	if (rx->length < OFI_HDR_SHORT || hdr->type >= OFI_TYPES || type->hdr_size == 0 ||
	    rx->length < type->hdr_size) {
		san_ofi_op_break(ep, "a message of unknown kind");
		return;
	}
	for (i = 0; i < OFI_CLASSES; i++)
		ep->credit[i] += hdr->credit[i];
	if (ep->credit[OFI_CLASS_MSG] > OFI_NB_MSG || ep->credit[OFI_CLASS_RMA] > OFI_NB_RMA) {
		san_ofi_op_break(ep, "more credits than receives");
		return;
	}
	if (rx_on[hdr->type] != NULL) /* else only the header counts */
		rx_on[hdr->type](ep, rx);
	if (hdr->type != OFI_MSG) /* messages may be held */
		san_ofi_conn_consume(ep, rx, type->class);
}
