/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A message and its receive. A short message has its bytes with it. A long one names places in the
 * sender's memory: the receiver reads them, straight to where they belong, and answers. Messages of
 * FI_EP_MSG go to receives in order, those of FI_EP_RDM to the first one that matches.
 */

#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

#define DELIVER_PLACES(l) ((l) / sizeof(struct ofi_place))
#define TAG_IN_POOL       (OFI_NB_MSG / 2) /* messages of a peer that wait uncopied */
#define TAG_COPIED_MAX    (256ul << 20)    /* bytes of copies; then peers wait */

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
deliver_answer(struct ofi_ep *ep, const struct ofi_hdr *hdr, int err)
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

	deliver_fill(&e, ep, hdr);
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
	deliver_answer(ep, hdr, e.err);
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
deliver(struct ofi_ep *ep, struct ofi_rxq *q, struct ofi_recv *r, const uint8_t *bytes,
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

/* ---- in order (FI_EP_MSG) ---- */

/* A long message whose sender is no longer there takes no receive that others could use. */
static bool
deliver_is_lost(const struct ofi_ep *ep, const struct ofi_rx *rx)
{
	return ep->state == OFI_EP_ENDED && ep->rxq != &ep->own_rxq &&
		(((const struct ofi_hdr *)rx->data)->flags & OFI_PLACES) != 0;
}

void
san_ofi_deliver_feed(struct ofi_ep *ep)
{
	struct ofi_recv *r;
	struct ofi_rx *rx;

	if (ep->is_starving) {
		STAILQ_REMOVE(&ep->rxq->starving, ep, ofi_ep, starving);
		ep->is_starving = false;
	}
	while ((rx = STAILQ_FIRST(&ep->held)) != NULL && ep->nb_fetches < OFI_REQUESTS) {
		if (!deliver_is_lost(ep, rx)) {
			r = STAILQ_FIRST(&ep->rxq->posted);
			if (r == NULL) {
				ep->is_starving = true;
				STAILQ_INSERT_TAIL(&ep->rxq->starving, ep, starving);
				return;
			}
			deliver(ep, ep->rxq, r, rx->data, rx->length);
		}
		STAILQ_REMOVE_HEAD(&ep->held, link);
		san_ofi_conn_consume(ep, rx, OFI_CLASS_MSG);
	}
}

/* ---- by tag (FI_EP_RDM) ---- */

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
		san_ofi_op_break(conn, "no memory for a message");
		return true;
	}
	*u = (struct ofi_umsg){.conn = conn, .rx = copies ? NULL : rx, .length = rx->length};
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

static bool
tag_on_message(struct ofi_ep *conn, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = (const struct ofi_hdr *)rx->data;
	bool is_tagged = (hdr->flags & OFI_TAGGED) != 0;
	struct ofi_rdm *rdm = conn->owner->rdm;
	struct ofi_rxq *q = tag_queue(rdm, is_tagged);
	struct ofi_recv *r;

	STAILQ_FOREACH(r, &q->posted, link)
		if (tag_matches(r, conn, hdr->addr))
			break;
	if (r == NULL)
		return tag_keep(rdm, conn, rx, is_tagged);
	deliver(conn, q, r, rx->data, rx->length);
	return true;
}

static void
tag_drop(struct ofi_rdm *rdm, struct ofi_umsgs *list, struct ofi_umsg *u)
{
	STAILQ_REMOVE(list, u, ofi_umsg, link);
	u->conn->nb_held--;
	if (u->rx != NULL) {
		u->conn->nb_in_pool--;
		san_ofi_conn_consume(u->conn, u->rx, OFI_CLASS_MSG);
	} else {
		rdm->copied -= u->length;
	}
	free(u);
}

void
san_ofi_deliver_drop_all(struct ofi_rdm *rdm)
{
	int i;

	for (i = 0; i < 2; i++)
		while (!STAILQ_EMPTY(&rdm->umsgs[i]))
			tag_drop(rdm, &rdm->umsgs[i], STAILQ_FIRST(&rdm->umsgs[i]));
}

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

/* FI_PEEK, and FI_CLAIM with FI_DISCARD: report a message that is there. */
static int
tag_look(struct ofi_rdm *rdm, const struct ofi_recv *like, uint64_t flags)
{
	struct fi_cq_err_entry e = {.flags = FI_RECV | FI_TAGGED, .tag = like->tag};
	bool claims = (flags & FI_PEEK) == 0;
	struct ofi_umsg *u;

	if ((flags & (FI_PEEK | FI_CLAIM)) == 0 || ((flags & FI_CLAIM) != 0 && !like->context))
		return -FI_EINVAL;
	u = tag_find(&rdm->umsgs[1], like, claims ? like->context : NULL);
	if (claims && u == NULL)
		return -FI_EINVAL;
	if (u == NULL)
		e.err = FI_ENOMSG;
	else
		deliver_fill(&e, u->conn, (const struct ofi_hdr *)tag_bytes(u));
	e.op_context = like->context;
	if (u != NULL && (flags & FI_DISCARD) != 0) {
		deliver_answer(u->conn, (const struct ofi_hdr *)tag_bytes(u), 0);
		tag_drop(rdm, &rdm->umsgs[1], u);
	} else if (u != NULL && (flags & FI_CLAIM) != 0) {
		u->claim = like->context;
	}
	if (rdm->ep->rx_cq != NULL)
		san_ofi_report_cq(rdm->ep->rx_cq, &e);
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
san_ofi_deliver_post(struct ofi_ep *ep, const struct fi_msg *msg, uint64_t tag, uint64_t ignore,
		     uint64_t flags)
{
	bool is_tagged = (flags & FI_TAGGED) != 0, more;
	const void *claim = (flags & FI_CLAIM) != 0 ? msg->context : NULL;
	struct ofi_rdm *rdm = ep->rdm;
	struct ofi_umsgs *list = &rdm->umsgs[is_tagged];
	struct ofi_rxq *q = tag_queue(rdm, is_tagged);
	struct ofi_recv like = {.context = msg->context, .tag = tag, .ignore = ignore}, *r;
	struct ofi_umsg *u;
	struct ofi_ep *conn;
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
		conn = u->conn;
		deliver(conn, q, r, tag_bytes(u), u->length);
		tag_drop(rdm, list, u);
		san_ofi_conn_repost(conn);
		san_ofi_tx_push(conn);
		/* it is freed with its last message */
		more = (flags & FI_MULTI_RECV) != 0 && tag_last(q) == r;
		u = more ? tag_find(list, r, NULL) : NULL;
	}
	return 0;
}

/* ---- all ---- */

void
san_ofi_deliver_on_message(struct ofi_ep *ep, struct ofi_rx *rx)
{
	const struct ofi_hdr *hdr = (const struct ofi_hdr *)rx->data;

	if (!deliver_is_sound(ep, hdr, rx->length - OFI_HDR_MSG)) {
		san_ofi_op_break(ep, "a message of a wrong length, or too many long ones");
		return;
	}
	ep->nb_offers += (hdr->flags & OFI_PLACES) != 0;
	if (ep->owner == NULL) {
		STAILQ_INSERT_TAIL(&ep->held, rx, link);
		if (!ep->is_starving)
			san_ofi_deliver_feed(ep);
	} else if (tag_on_message(ep, rx)) {
		san_ofi_conn_consume(ep, rx, OFI_CLASS_MSG);
	}
}
