/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages of endpoints FI_EP_RDM: which receive they go to, and those that wait for one. */

#include <stdlib.h>
#include <string.h>

#include "ofi_priv.h"

#define TAG_IN_POOL    (OFI_NB_MSG / 2) /* messages of a peer that wait uncopied */
#define TAG_COPIED_MAX (256ul << 20)    /* bytes of copies; then peers wait */

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

/* ---- messages ---- */

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

	STAILQ_FOREACH(r, &q->posted, link)
		if (tag_matches(r, conn, hdr->addr))
			break;
	if (r == NULL)
		return tag_keep(rdm, conn, rx, is_tagged);
	san_ofi_deliver(conn, q, r, rx->data, rx->length);
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
		san_ofi_deliver_fill(&e, u->conn, (const struct ofi_hdr *)tag_bytes(u));
	e.op_context = like->context;
	if (u != NULL && (flags & FI_DISCARD) != 0) {
		san_ofi_deliver_answer(u->conn, (const struct ofi_hdr *)tag_bytes(u), 0);
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
		san_ofi_deliver(conn, q, r, tag_bytes(u), u->length);
		tag_drop(rdm, list, u);
		san_ofi_conn_repost(conn);
		san_ofi_tx_push(conn);
		/* it is freed with its last message */
		more = (flags & FI_MULTI_RECV) != 0 && tag_last(q) == r;
		u = more ? tag_find(list, r, NULL) : NULL;
	}
	return 0;
}
