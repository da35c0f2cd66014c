/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the peer sends: messages go to posted receives, requests to memory are served, answers
 * complete operations. Each has filled a receive of the pool.
 *
 * A short message has its bytes with it. A long one names places in the sender's memory: the
 * receiver reads them, straight to where they belong, and answers. A message goes to the first
 * receive that matches; without tags, as for FI_EP_MSG, all do.
 */

#include "ofi_priv.h"
#include "san_time.h"

#define DELIVER_PLACES(l) ((l) / sizeof(struct ofi_place))
#define MATCH_IN_POOL     (OFI_NB_MSG / 2) /* messages of a peer that wait uncopied */
#define MATCH_COPIED_MAX  (256ul << 20)    /* bytes of copies; then peers wait */

#define GUESSES         64   /* of a connection */
#define GUESSES_AN_HOUR 1000 /* of an origin; half of them at once */
#define HOUR_MS         3600000u
#define EACH_MS         (2 * HOUR_MS / GUESSES_AN_HOUR)

/* ---- completions ---- */

/* The source is in *err_data_size*, plus 1: entries without an error have no other use for it. */
static void
deliver_fill(struct fi_cq_err_entry *e, const struct ofi_ep *ep, const struct ofi_hdr *hdr)
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

static void
deliver_ack(struct ofi_ep *ep, const struct ofi_hdr *hdr, uint32_t status, uint64_t data)
{
	const struct ofi_op_args args = {
		.type = OFI_ACK, .id = hdr->id, .status = status, .data = data};

	san_ofi_op_answer(ep, &args);
}

static void
deliver_answer(struct ofi_ep *ep, const struct ofi_hdr *hdr, int err)
{
	ep->nb_offers -= (hdr->flags & OFI_PLACES) != 0;
	if ((hdr->flags & OFI_WANT_ACK) == 0 || ep->state == OFI_EP_ENDED)
		return;
	deliver_ack(ep, hdr, (uint32_t)err, 0);
	san_ofi_ctx_mark(ep);
}

static void
deliver_complete(struct ofi_ep *ep, struct ofi_recv *r, size_t base, const struct ofi_hdr *hdr,
		 int prov_errno)
{
	struct fi_cq_err_entry e = {.op_context = r->context};
	size_t room = r->length - base;

	deliver_fill(&e, ep, hdr);
	if ((r->flags & FI_MULTI_RECV) != 0)
		e.buf = (uint8_t *)r->iov[0].iov_base + base;
	if (prov_errno == 0 && hdr->length > room) {
		e.len = room;
		e.olen = hdr->length - room;
		prov_errno = RTSAN_WC_LOC_LENGTH;
	}
	e.prov_errno = prov_errno;
	if (prov_errno != 0)
		e.err_data_size = 0;
	san_ofi_rxq_done(ep, r, &e);
	deliver_answer(ep, hdr, san_ofi_report_errno(prov_errno));
}

/* ---- messages that need more than one step ---- */

static void
deliver_fetch_complete(struct ofi_fetch *f)
{
	deliver_complete(f->ep, f->recv, f->base, &f->hdr, f->prov_errno);
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
deliver_fetch_next(struct ofi_fetch *f, int prov_errno)
{
	struct iovec iov[OFI_IOV];
	struct ofi_op_args args = {.type = OFI_READ, .iov = iov};
	const struct ofi_place *p = &f->places[f->next];
	size_t length;
	int rc;

	if (prov_errno == 0 && f->ep->state == OFI_EP_ENDED)
		prov_errno = RTSAN_WC_FLUSHED;
	f->prov_errno = prov_errno;
	if (prov_errno != 0 || f->next == f->nb || f->at == f->end) {
		deliver_fetch_end(f);
		return;
	}
	length = p->length < f->end - f->at ? p->length : f->end - f->at;
	args.addr = p->addr;
	args.key = p->key;
	args.count = san_ofi_op_slice(f->recv->iov, f->recv->nb_iov, f->base + f->at, length, iov,
				      NULL);
	f->next++;
	f->at += length;
	rc = san_ofi_op_fetch(f->ep, f, &args);
	if (rc != 0) {
		f->prov_errno = OFI_ERRNO - rc;
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
		deliver_complete(ep, r, base, hdr, OFI_ERRNO + FI_ENOMEM);
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
	deliver_fetch_next(f, 0);
}

/* ---- messages ---- */

static bool
deliver_is_sound(const struct ofi_ep *ep, const struct ofi_hdr *hdr, size_t payload)
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

static void
deliver(struct ofi_rxq *q, struct ofi_recv *r, const struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx->hdr;
	size_t base = san_ofi_rxq_use(q, r, hdr->length), room = r->length - base;
	size_t length = rx->length - OFI_HDR_MSG;
	bool is_long = (hdr->flags & OFI_PLACES) != 0;

	if (!is_long)
		san_ofi_op_copy(r->iov, r->nb_iov, base, length < room ? length : room,
				rx->data + OFI_HDR_MSG, true);
	if (is_long || !STAILQ_EMPTY(&rx->ep->fetches))
		deliver_fetch(rx->ep, r, base, hdr, length);
	else
		deliver_complete(rx->ep, r, base, hdr, 0);
}

/* ---- matching ---- */

static bool
match_fits(const struct ofi_recv *r, const struct ofi_rx *rx)
{
	return ((r->tag ^ rx->hdr->addr) & ~r->ignore) == 0 &&
		(r->from == FI_ADDR_UNSPEC || r->from == rx->ep->from);
}

/* The first receive that fits, unless too many messages of FI_EP_MSG are incomplete. */
static struct ofi_recv *
match_recv(const struct ofi_rxq *q, const struct ofi_rx *rx)
{
	struct ofi_recv *r;

	if (rx->ep->nb_fetches >= OFI_REQUESTS)
		return NULL;
	STAILQ_FOREACH(r, &q->posted, link)
		if (match_fits(r, rx))
			break;
	return r;
}

/* The first message that waits for what *like* describes, or what *claim* has claimed. */
static struct ofi_rx *
match_waiting(const struct ofi_rxq *q, const struct ofi_recv *like, const void *claim)
{
	struct ofi_rx *rx;

	STAILQ_FOREACH(rx, &q->waiting, link)
		if (rx->claim == claim && (claim != NULL || match_fits(like, rx)))
			break;
	return rx;
}

/* A message without a receive stays in the pool, or is copied if its peer has many (FI_EP_RDM). */
static void
match_keep(struct ofi_rxq *q, struct ofi_rx *rx)
{
	struct ofi_ep *ep = rx->ep;
	struct ofi_rx *copy = NULL;

	if (ep->owner != NULL && ep->nb_in_pool >= MATCH_IN_POOL &&
	    ep->owner->rdm->copied < MATCH_COPIED_MAX)
		copy = malloc(sizeof(*copy) + rx->length);
	ep->nb_held++;
	if (copy == NULL) {
		ep->nb_in_pool++;
		STAILQ_INSERT_TAIL(&q->waiting, rx, link);
		return;
	}
	*copy = *rx;
	copy->is_copy = true;
	copy->data = memcpy(copy + 1, rx->data, rx->length);
	ep->owner->rdm->copied += rx->length;
	STAILQ_INSERT_TAIL(&q->waiting, copy, link);
	san_ofi_conn_consume(ep, rx, OFI_CLASS_MSG);
}

static void
match_drop(struct ofi_rxq *q, struct ofi_rx *rx)
{
	STAILQ_REMOVE(&q->waiting, rx, ofi_rx, link);
	rx->ep->nb_held--;
	rx->claim = NULL;
	if (rx->is_copy) {
		rx->ep->owner->rdm->copied -= rx->length;
		free(rx);
	} else {
		rx->ep->nb_in_pool--;
		san_ofi_conn_consume(rx->ep, rx, OFI_CLASS_MSG);
	}
}

void
san_ofi_deliver_drop_all(struct ofi_rxq *q, const struct ofi_ep *ep)
{
	struct ofi_rx *rx, *next;

	for (rx = STAILQ_FIRST(&q->waiting); rx != NULL; rx = next) {
		next = STAILQ_NEXT(rx, link);
		if (rx->ep == ep || rx->ep->owner == ep)
			match_drop(q, rx);
	}
}

/*
 * Give messages that wait, from *rx* on, to receives like *like*. A long message whose sender is no
 * longer there takes no receive that others could use.
 */
static void
match_feed(struct ofi_rxq *q, const struct ofi_recv *like, struct ofi_rx *rx)
{
	bool is_shared = q->fid.fid.fclass == FI_CLASS_SRX_CTX;
	struct ofi_recv *r;
	struct ofi_rx *next;

	for (; rx != NULL && !STAILQ_EMPTY(&q->posted); rx = next) {
		next = STAILQ_NEXT(rx, link);
		r = rx->claim == NULL && match_fits(like, rx) ? match_recv(q, rx) : NULL;
		if (is_shared && rx->ep->state == OFI_EP_ENDED &&
		    (rx->hdr->flags & OFI_PLACES) != 0) {
			match_drop(q, rx);
		} else if (r != NULL) {
			deliver(q, r, rx);
			match_drop(q, rx);
			if ((like->flags & FI_MULTI_RECV) == 0)
				break;
		}
	}
}

/* FI_PEEK, and FI_CLAIM with FI_DISCARD: report a tagged message that is there. */
static int
match_look(struct ofi_ep *ep, const struct ofi_recv *like)
{
	struct fi_cq_err_entry e = {.flags = FI_RECV | FI_TAGGED, .tag = like->tag};
	bool claims = (like->flags & FI_PEEK) == 0;
	struct ofi_rxq *q = &ep->rdm->tagged;
	struct ofi_rx *rx;

	if ((like->flags & (FI_PEEK | FI_CLAIM)) == 0 ||
	    ((like->flags & FI_CLAIM) != 0 && like->context == NULL))
		return -FI_EINVAL;
	rx = match_waiting(q, like, claims ? like->context : NULL);
	if (claims && rx == NULL)
		return -FI_EINVAL;
	if (rx == NULL)
		e.prov_errno = OFI_ERRNO + FI_ENOMSG;
	else
		deliver_fill(&e, rx->ep, rx->hdr);
	e.op_context = like->context;
	if (rx != NULL && (like->flags & FI_DISCARD) != 0) {
		deliver_answer(rx->ep, rx->hdr, 0);
		match_drop(q, rx);
	} else if (rx != NULL && (like->flags & FI_CLAIM) != 0) {
		rx->claim = like->context;
	}
	if (ep->rx_cq != NULL)
		san_ofi_report_cq(ep->rx_cq, &e);
	return 0;
}

int
san_ofi_deliver_post(struct ofi_rxq *q, struct ofi_ep *ep, const struct fi_msg_tagged *msg,
		     uint64_t flags)
{
	struct ofi_recv like = {
		.context = msg->context, .flags = flags, .tag = msg->tag, .ignore = msg->ignore};
	bool claims = (flags & FI_CLAIM) != 0;
	struct ofi_recv *r;
	struct ofi_rx *rx;
	int rc;

	like.from = ep != NULL && (ep->caps & FI_DIRECTED_RECV) != 0 ? msg->addr : FI_ADDR_UNSPEC;
	if ((flags & FI_TAGGED) != 0 && (flags & (FI_PEEK | FI_DISCARD)) != 0)
		return match_look(ep, &like);
	rx = match_waiting(q, &like, claims ? msg->context : NULL);
	if (claims && (msg->context == NULL || rx == NULL))
		return -FI_EINVAL;
	if (rx == NULL && ep != NULL && ep->state == OFI_EP_ENDED)
		return -FI_ENOTCONN;
	rc = san_ofi_rxq_post(q, &like, msg, &r);
	if (rc != 0 || rx == NULL)
		return rc;
	if (claims) {
		deliver(q, r, rx);
		match_drop(q, rx);
	} else {
		match_feed(q, &like, rx);
	}
	san_ofi_deliver_dirty(q->domain->ctx);
	return 0;
}

void
san_ofi_deliver_dirty(struct ofi_ctx *ctx)
{
	static const struct ofi_recv any = {
		.flags = FI_MULTI_RECV, .ignore = ~0ull, .from = FI_ADDR_UNSPEC};
	struct ofi_ep *ep;

	while ((ep = STAILQ_FIRST(&ctx->dirty)) != NULL) {
		STAILQ_REMOVE_HEAD(&ctx->dirty, dirty);
		ep->is_dirty = false;
		ep->needs_room = false;
		if (ep->nb_held != 0 && ep->owner == NULL) /* fewer may be incomplete now */
			match_feed(ep->rxq, &any, STAILQ_FIRST(&ep->rxq->waiting));
		san_ofi_conn_repost(ep);
		san_ofi_tx_push(ep);
	}
}

static void
deliver_on_message(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx->hdr;
	struct ofi_recv *r = NULL;
	struct ofi_rxq *q;

	if (!deliver_is_sound(ep, hdr, rx->length - OFI_HDR_MSG)) {
		san_ofi_op_break(ep, "a message of a wrong length, or too many long ones");
		return;
	}
	ep->nb_offers += (hdr->flags & OFI_PLACES) != 0;
	q = (hdr->flags & OFI_TAGGED) != 0 ? &ep->owner->rdm->tagged : ep->rxq;
	if (ep->owner != NULL || ep->nb_held == 0) /* those of FI_EP_MSG stay in order */
		r = match_recv(q, rx);
	if (r == NULL) {
		match_keep(q, rx);
	} else {
		deliver(q, r, rx);
		san_ofi_conn_consume(ep, rx, OFI_CLASS_MSG);
	}
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
	bool may = ep->is_known || rx_find_guesser(ctx, &ep->origin)->spent_ms + EACH_MS <= now_ms;

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
		.data = rx->hdr->data,
		.err_data_size = (size_t)ep->from + 1, /* see deliver_fill() */
	};

	if (ep->rx_cq != NULL)
		san_ofi_report_cq(ep->rx_cq, &e);
}

static void
rx_on_write(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx->hdr;
	size_t length = rx->length - OFI_HDR_MEM;

	if ((hdr->flags & OFI_FIRST) != 0)
		ep->write_status = 0;
	if (ep->write_status == 0)
		ep->write_status = rx_find_memory(ep, hdr->key, hdr->addr, length, FI_REMOTE_WRITE);
	if (ep->write_status == 0)
		memcpy((void *)(uintptr_t)hdr->addr, rx->data + OFI_HDR_MEM, length);
	if ((hdr->flags & OFI_LAST) == 0)
		return;
	if ((hdr->flags & OFI_CQ_DATA) != 0 && ep->write_status == 0)
		rx_on_data(ep, rx);
	deliver_ack(ep, hdr, ep->write_status, 0);
}

/* The memory is looked up again for each part of the answer, because a region may be closed. */
static void
rx_on_read(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx->hdr;
	const struct iovec iov = {(void *)(uintptr_t)hdr->addr, hdr->length};
	struct ofi_op_args args = {
		.type = OFI_READ_DATA, .id = hdr->id, .iov = &iov, .count = 1, .key = hdr->key};

	args.addr = hdr->addr;
	args.status = rx_find_memory(ep, hdr->key, hdr->addr, hdr->length, FI_REMOTE_READ);
	san_ofi_op_answer(ep, &args);
}

static void
rx_on_atomic(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx->hdr;
	uint64_t *at = (uint64_t *)(uintptr_t)hdr->addr, old = hdr->compare;
	bool adds = hdr->status == OFI_FETCH_ADD, swaps = hdr->status == OFI_CMP_SWAP;
	bool fetches = hdr->length != 0;
	uint32_t status = rx_find_memory(ep, hdr->key, hdr->addr, sizeof(*at),
					 FI_REMOTE_WRITE | (fetches ? FI_REMOTE_READ : 0));

	if (status == 0 && ((!adds && !swaps) || hdr->addr % sizeof(*at) != 0))
		status = FI_EINVAL;
	if (status == 0 && adds)
		old = __atomic_fetch_add(at, hdr->operand, __ATOMIC_SEQ_CST);
	else if (status == 0)
		__atomic_compare_exchange_n(at, &old, hdr->operand, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	deliver_ack(ep, hdr, status, fetches ? old : 0);
}

/* ---- answers ---- */

static void
rx_end_request(struct ofi_op *op, uint32_t status)
{
	if (status >= FI_ERRNO_MAX) /* a value of the peer */
		status = FI_EIO;
	if (status != 0 && op->prov_errno == 0)
		op->prov_errno = OFI_ERRNO + (int)status;
	op->ep->requests[op->args.id] = NULL;
	op->needs_answer = false;
	san_ofi_op_check(op);
}

static void
rx_on_ack(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx->hdr;
	struct ofi_op *op = hdr->id < OFI_NUMBERS ? ep->requests[hdr->id] : NULL;
	uint32_t status = hdr->status;
	uint64_t old = hdr->data;

	if (op == NULL || op->args.type == OFI_READ) {
		san_ofi_op_break(ep, "an answer without a request");
		return;
	}
	if (op->offer != NULL && (op->args.flags & FI_DELIVERY_COMPLETE) == 0 &&
	    status == FI_ETRUNC)
		status = 0; /* the program has not asked whether there was room */
	if (op->args.type == OFI_ATOMIC && status == 0)
		san_ofi_op_copy(op->iov, op->nb_iov, 0, sizeof(old), &old, true);
	rx_end_request(op, status);
}

static void
rx_on_read_data(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx->hdr;
	struct ofi_op *op = hdr->id < OFI_NUMBERS ? ep->requests[hdr->id] : NULL;
	size_t length = rx->length - OFI_HDR_SHORT;

	if (op == NULL || op->args.type != OFI_READ || length > op->length - op->answered) {
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
	[OFI_MSG] = deliver_on_message,
	[OFI_WRITE] = rx_on_write,
	[OFI_READ] = rx_on_read,
	[OFI_ATOMIC] = rx_on_atomic,
	[OFI_DATA] = rx_on_data,
	[OFI_ACK] = rx_on_ack,
	[OFI_READ_DATA] = rx_on_read_data,
};

void
san_ofi_deliver_on_recv(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = rx->hdr;
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
