/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages of endpoints FI_EP_RDM: which receive they go to, those that wait for one, and long
 * ones, which the receiver reads from the sender's memory.
 */

#include <stdlib.h>
#include <string.h>

#include "ofi_rdm.h"

#define TAG_IN_POOL    (OFI_NB_MSG / 2) /* messages of a peer that wait uncopied */
#define TAG_COPIED_MAX (256ul << 20)    /* bytes of copies; then peers wait */
#define TAG_PLACES(l)  ((l) / sizeof(struct ofi_place))

/** A long message that is being read. */
struct ofi_fetch {
	struct ofi_ep *conn;
	struct ofi_rxq *q;
	struct ofi_recv *recv;
	size_t base; /**< in the receive */
	size_t at;   /**< bytes that were asked for */
	size_t end;  /**< of those that have room */
	struct ofi_hdr hdr;
	struct ofi_place places[OFI_IOV];
	uint8_t nb, next;
	int err, prov_errno;
};

static const uint8_t *
tag_bytes(const struct ofi_umsg *u)
{
	return u->rx != NULL ? u->rx->data : u->copy;
}

static struct ofi_rxq *
tag_queue(struct ofi_rdm *rdm, bool is_tagged)
{
	return is_tagged ? &rdm->tagged : &rdm->ep->own_rxq;
}

static bool
tag_matches(const struct ofi_recv *r, const struct ofi_ep *conn, uint64_t tag)
{
	return ((r->tag ^ tag) & ~r->ignore) == 0 &&
		(r->from == FI_ADDR_UNSPEC || r->from == conn->from);
}

/* ---- completions ---- */

/* The source is in *err_data_size*, plus 1: entries without an error have no other use for it. */
static void
tag_fill(struct fi_cq_err_entry *e, const struct ofi_ep *conn, const struct ofi_hdr *hdr)
{
	bool is_tagged = (hdr->flags & OFI_TAGGED) != 0;

	e->flags = FI_RECV | (is_tagged ? FI_TAGGED : FI_MSG);
	e->len = hdr->length;
	e->tag = is_tagged ? hdr->addr : 0;
	if ((hdr->flags & OFI_CQ_DATA) != 0) {
		e->flags |= FI_REMOTE_CQ_DATA;
		e->data = hdr->data;
	}
	e->err_data_size = (size_t)conn->from + 1;
}

static void
tag_answer(struct ofi_ep *conn, const struct ofi_hdr *hdr, int err)
{
	bool is_offer = (hdr->flags & OFI_PLACES) != 0;

	conn->nb_offers -= is_offer;
	if ((hdr->flags & OFI_WANT_ACK) == 0 || conn->state == OFI_EP_ENDED)
		return;
	if (is_offer && err == FI_ETRUNC)
		err = 0; /* the sender has not asked whether there was room */
	san_ofi_rx_answer(conn, hdr->id, (uint32_t)err, 0);
	san_ofi_progress_mark(conn);
}

static void
tag_complete(struct ofi_ep *conn, struct ofi_rxq *q, struct ofi_recv *r, size_t base,
	     const struct ofi_hdr *hdr, int err, int prov_errno)
{
	struct fi_cq_err_entry e = {.op_context = r->context, .err = err};
	size_t room = r->length - base;

	tag_fill(&e, conn, hdr);
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
	tag_answer(conn, hdr, e.err);
	san_ofi_rxq_done(q, conn, r, &e);
}

/* ---- long messages, at the receiver ---- */

static void
tag_fetch_end(struct ofi_fetch *f)
{
	tag_complete(f->conn, f->q, f->recv, f->base, &f->hdr, f->err, f->prov_errno);
	free(f);
}

/* Read the next part of the message, or end. */
static void
tag_fetch_next(struct ofi_fetch *f)
{
	struct iovec iov[OFI_IOV];
	struct ofi_op_args args = {.iov = iov};
	const struct ofi_place *p = &f->places[f->next];
	size_t length;
	int rc;

	if (f->err == 0 && f->conn->state == OFI_EP_ENDED) {
		f->err = FI_ECANCELED;
		f->prov_errno = RTSAN_WC_FLUSHED;
	}
	if (f->err != 0 || f->next == f->nb || f->at == f->end) {
		tag_fetch_end(f);
		return;
	}
	length = p->length < f->end - f->at ? p->length : f->end - f->at;
	args.addr = p->addr;
	args.key = p->key;
	args.count = san_ofi_rx_slice(f->recv, f->base + f->at, length, iov);
	f->next++;
	f->at += length;
	rc = san_ofi_op_fetch(f->conn, f, &args);
	if (rc != 0) {
		f->err = -rc;
		tag_fetch_end(f);
	}
}

void
san_ofi_tag_on_read(struct ofi_fetch *f, int err, int prov_errno)
{
	f->err = err;
	f->prov_errno = prov_errno;
	tag_fetch_next(f);
}

static void
tag_fetch(struct ofi_ep *conn, struct ofi_rxq *q, struct ofi_recv *r, size_t base,
	  const uint8_t *bytes, size_t length)
{
	struct ofi_fetch *f = calloc(1, sizeof(*f));
	const struct ofi_hdr *hdr = (const struct ofi_hdr *)bytes;
	size_t room = r->length - base;

	if (f == NULL) {
		tag_complete(conn, q, r, base, hdr, FI_ENOMEM, 0);
		return;
	}
	memcpy(&f->hdr, hdr, OFI_HDR_RDM);
	memcpy(f->places, bytes + OFI_HDR_RDM, length - OFI_HDR_RDM);
	f->conn = conn;
	f->q = q;
	f->recv = r;
	f->base = base;
	f->end = hdr->length < room ? hdr->length : room;
	f->nb = (uint8_t)TAG_PLACES(length - OFI_HDR_RDM);
	tag_fetch_next(f);
}

/* ---- long messages, at the sender ---- */

int
san_ofi_tag_offer(struct ofi_op *op)
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
san_ofi_tag_withdraw(struct ofi_op *op)
{
	uint8_t i;

	for (i = 0; i < op->offer->nb; i++)
		san_ofi_mr_free(op->offer->mrs[i]);
	free(op->offer);
}

/* ---- messages ---- */

/* Give a message to a receive. */
static void
tag_deliver(struct ofi_ep *conn, struct ofi_rxq *q, struct ofi_recv *r, const uint8_t *bytes,
	    size_t length)
{
	const struct ofi_hdr *hdr = (const struct ofi_hdr *)bytes;
	size_t base = san_ofi_rxq_use(q, r, hdr->length), room = r->length - base;

	if ((hdr->flags & OFI_PLACES) != 0) {
		tag_fetch(conn, q, r, base, bytes, length);
		return;
	}
	length -= OFI_HDR_RDM;
	san_ofi_rx_place(r, base, bytes + OFI_HDR_RDM, length < room ? length : room);
	tag_complete(conn, q, r, base, hdr, 0, 0);
}

static bool
tag_is_sound(const struct ofi_ep *conn, const struct ofi_hdr *hdr, size_t payload)
{
	const struct ofi_place *places =
		(const struct ofi_place *)((const uint8_t *)hdr + OFI_HDR_RDM);
	uint64_t left = hdr->length;
	size_t i;

	if ((hdr->flags & OFI_PLACES) == 0)
		return hdr->length == payload;
	if (payload % sizeof(*places) != 0 || TAG_PLACES(payload) > OFI_IOV ||
	    (hdr->flags & OFI_WANT_ACK) == 0 || conn->nb_offers >= OFI_RDM_REQUESTS)
		return false;
	for (i = 0; i < TAG_PLACES(payload) && places[i].length <= left; i++)
		left -= places[i].length;
	return i == TAG_PLACES(payload) && left == 0;
}

/* A message without a receive: it stays where it is, or is copied if its peer has many. */
static bool
tag_keep(struct ofi_rdm *rdm, struct ofi_ep *conn, struct ofi_rx *rx, bool is_tagged)
{
	bool copies = conn->nb_in_pool >= TAG_IN_POOL && rdm->copied < TAG_COPIED_MAX;
	struct ofi_umsg *u = NULL;

	if (copies)
		u = malloc(sizeof(*u) + rx->length);
	if (u == NULL) {
		copies = false;
		u = malloc(sizeof(*u));
	}
	if (u == NULL) {
		san_ofi_ep_break(conn, "no memory for a message");
		return true;
	}
	u->conn = conn;
	u->rx = copies ? NULL : rx;
	u->length = rx->length;
	u->claim = NULL;
	conn->nb_held++;
	if (copies) {
		memcpy(u->copy, rx->data, rx->length);
		rdm->copied += rx->length;
	} else {
		conn->nb_in_pool++;
	}
	STAILQ_INSERT_TAIL(&rdm->umsgs[is_tagged], u, link);
	return copies;
}

bool
san_ofi_tag_on_message(struct ofi_ep *conn, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = (const struct ofi_hdr *)rx->data;
	bool is_tagged = (hdr->flags & OFI_TAGGED) != 0;
	struct ofi_rdm *rdm = conn->owner->rdm;
	struct ofi_rxq *q = tag_queue(rdm, is_tagged);
	struct ofi_recv *r;

	if (!tag_is_sound(conn, hdr, rx->length - OFI_HDR_RDM)) {
		san_ofi_ep_break(conn, "a message of a wrong length, or too many long ones");
		return true;
	}
	conn->nb_offers += (hdr->flags & OFI_PLACES) != 0;
	STAILQ_FOREACH(r, &q->posted, link)
		if (tag_matches(r, conn, hdr->addr))
			break;
	if (r == NULL)
		return tag_keep(rdm, conn, rx, is_tagged);
	tag_deliver(conn, q, r, rx->data, rx->length);
	return true;
}

static void
tag_drop(struct ofi_rdm *rdm, struct ofi_umsgs *list, struct ofi_umsg *u)
{
	STAILQ_REMOVE(list, u, ofi_umsg, link);
	u->conn->nb_held--;
	if (u->rx != NULL) {
		u->conn->nb_in_pool--;
		san_ofi_rx_release(u->conn, u->rx);
	} else {
		rdm->copied -= u->length;
	}
	free(u);
}

void
san_ofi_tag_drop_all(struct ofi_rdm *rdm)
{
	int i;

	for (i = 0; i < 2; i++)
		while (!STAILQ_EMPTY(&rdm->umsgs[i]))
			tag_drop(rdm, &rdm->umsgs[i], STAILQ_FIRST(&rdm->umsgs[i]));
}

/* ---- receives ---- */

/* The first message that waits for what *r* describes, or what *claim* has claimed. */
static struct ofi_umsg *
tag_find(const struct ofi_umsgs *list, const struct ofi_recv *r, const void *claim)
{
	struct ofi_umsg *u;

	STAILQ_FOREACH(u, list, link)
		if (u->claim == claim &&
		    (claim != NULL ||
		     tag_matches(r, u->conn, ((const struct ofi_hdr *)tag_bytes(u))->addr)))
			break;
	return u;
}

static void
tag_take(struct ofi_rdm *rdm, struct ofi_rxq *q, struct ofi_umsgs *list, struct ofi_recv *r,
	 struct ofi_umsg *u)
{
	struct ofi_ep *conn = u->conn;

	tag_deliver(conn, q, r, tag_bytes(u), u->length);
	tag_drop(rdm, list, u);
	san_ofi_rx_repost(conn);
	san_ofi_tx_push(conn);
}

/* FI_PEEK, and FI_CLAIM with FI_DISCARD: report a message. */
static void
tag_report(struct ofi_rdm *rdm, const struct ofi_recv *r, struct ofi_umsg *u, uint64_t flags)
{
	struct fi_cq_err_entry e = {.flags = FI_RECV | FI_TAGGED, .tag = r->tag};

	if (u == NULL)
		e.err = FI_ENOMSG;
	else
		tag_fill(&e, u->conn, (const struct ofi_hdr *)tag_bytes(u));
	e.op_context = r->context;
	if (u != NULL && (flags & FI_DISCARD) != 0) {
		tag_answer(u->conn, (const struct ofi_hdr *)tag_bytes(u), 0);
		tag_drop(rdm, &rdm->umsgs[1], u);
	} else if (u != NULL && (flags & FI_CLAIM) != 0) {
		u->claim = r->context;
	}
	if (rdm->ep->rx_cq != NULL)
		san_ofi_cq_put(rdm->ep->rx_cq, &e);
}

/* Flags of tagged receives that look for a message which is there. */
static int
tag_look(struct ofi_rdm *rdm, const struct ofi_recv *like, uint64_t flags)
{
	bool claims = (flags & FI_PEEK) == 0;
	struct ofi_umsg *u;

	if ((flags & (FI_PEEK | FI_CLAIM)) == 0 || ((flags & FI_CLAIM) != 0 && !like->context))
		return -FI_EINVAL;
	if (!claims)
		san_ofi_progress(rdm->ep->domain->ctx);
	u = tag_find(&rdm->umsgs[1], like, claims ? like->context : NULL);
	if (claims && u == NULL)
		return -FI_EINVAL;
	tag_report(rdm, like, u, flags);
	return 0;
}

/* The receive that was posted last, or NULL. */
static struct ofi_recv *
tag_last(const struct ofi_rxq *q)
{
	return STAILQ_EMPTY(&q->posted) ?
		NULL :
		container_of(q->posted.stqh_last, struct ofi_recv, link.stqe_next);
}

int
san_ofi_tag_post(struct ofi_ep *ep, const struct fi_msg *msg, uint64_t tag, uint64_t ignore,
		 uint64_t flags)
{
	bool is_tagged = (flags & FI_TAGGED) != 0, more;
	const void *claim = (flags & FI_CLAIM) != 0 ? msg->context : NULL;
	struct ofi_rdm *rdm = ep->rdm;
	struct ofi_umsgs *list = &rdm->umsgs[is_tagged];
	struct ofi_rxq *q = tag_queue(rdm, is_tagged);
	struct ofi_recv like = {.context = msg->context, .tag = tag, .ignore = ignore}, *r;
	struct ofi_umsg *u;
	int rc;

	like.from = rdm->is_directed ? msg->addr : FI_ADDR_UNSPEC;
	if (is_tagged && (flags & (FI_PEEK | FI_DISCARD)) != 0)
		return tag_look(rdm, &like, flags);
	u = tag_find(list, &like, claim);
	if ((flags & FI_CLAIM) != 0 && (claim == NULL || u == NULL))
		return -FI_EINVAL;
	if (ep->state == OFI_EP_ENDED && u == NULL)
		return -FI_ENOTCONN;
	rc = san_ofi_rxq_post(q, msg, flags);
	if (rc != 0)
		return rc;
	r = tag_last(q);
	r->tag = tag;
	r->ignore = ignore;
	r->from = like.from;
	while (u != NULL) {
		tag_take(rdm, q, list, r, u);
		/* it is freed with its last message */
		more = (flags & FI_MULTI_RECV) != 0 && tag_last(q) == r;
		u = more ? tag_find(list, r, NULL) : NULL;
	}
	return 0;
}
