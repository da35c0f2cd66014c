/* SPDX-License-Identifier: BSD-3-Clause */

/* Posted receives, of one endpoint or shared by several. */

#include "ofi_priv.h"

void
san_ofi_rxq_init(struct ofi_rxq *q, struct ofi_domain *domain, const struct fi_rx_attr *attr)
{
	size_t max = attr != NULL && attr->size != 0 ? attr->size : OFI_RX_SIZE;

	q->domain = domain;
	q->max = max < OFI_RX_MAX ? (uint32_t)max : OFI_RX_MAX;
	q->flags = attr != NULL ? attr->op_flags : 0;
	q->min_multi = OFI_MULTI_RECV;
	STAILQ_INIT(&q->posted);
	STAILQ_INIT(&q->waiting);
}

/* ---- posting, taking ---- */

int
san_ofi_rxq_post(struct ofi_rxq *q, const struct ofi_recv *like, const struct fi_msg_tagged *msg,
		 struct ofi_recv **out)
{
	struct ofi_recv *r;
	size_t i;

	if (msg->iov_count > OFI_IOV || (msg->iov_count != 1 && (like->flags & FI_MULTI_RECV) != 0))
		return -FI_EINVAL;
	if (q->nb >= q->max)
		return -FI_EAGAIN;
	r = malloc(sizeof(*r)); /* calloc() is slower */
	if (r == NULL)
		return -FI_ENOMEM;
	*r = *like;
	r->nb_iov = (uint8_t)msg->iov_count;
	for (i = 0; i < msg->iov_count; i++) {
		r->iov[i] = msg->msg_iov[i];
		r->length += msg->msg_iov[i].iov_len;
	}
	STAILQ_INSERT_TAIL(&q->posted, r, link);
	q->nb++;
	*out = r;
	return 0;
}

static void
rxq_remove(struct ofi_rxq *q, struct ofi_recv *r)
{
	STAILQ_REMOVE(&q->posted, r, ofi_recv, link);
	r->is_taken = true;
	q->nb--;
}

/* A buffer for many messages stays as long as it has room for another one. */
size_t
san_ofi_rxq_use(struct ofi_rxq *q, struct ofi_recv *r, size_t length)
{
	size_t room = r->length - r->used, base = r->used;

	r->nb_active++;
	r->used += length < room ? length : room;
	if ((r->flags & FI_MULTI_RECV) == 0 || r->length - r->used < q->min_multi)
		rxq_remove(q, r);
	return base;
}

void
san_ofi_rxq_done(struct ofi_ep *ep, struct ofi_recv *r, struct fi_cq_err_entry *e)
{
	r->nb_active--;
	if ((r->flags & FI_MULTI_RECV) != 0 && r->is_taken && r->nb_active == 0)
		e->flags |= FI_MULTI_RECV;
	/* the endpoint says whether that is selective, not the queue that it may share */
	san_ofi_report_done(ep, e,
			    !ep->rx_selective || (r->flags & FI_COMPLETION) != 0 ||
				    (e->flags & FI_MULTI_RECV) != 0);
	if (r->is_taken && r->nb_active == 0)
		free(r);
}

/* ---- cancelling ---- */

/* If it is in use, the end of its last message frees it, and returns a buffer for many. */
static void
rxq_cancel(struct ofi_rxq *q, struct ofi_ep *ep, struct ofi_recv *r)
{
	const struct fi_cq_err_entry e = {
		.op_context = r->context,
		.flags = FI_RECV | ((r->flags & FI_TAGGED) != 0 ? FI_TAGGED : FI_MSG) |
			(r->flags & FI_MULTI_RECV),
		.tag = r->tag,
		.prov_errno = RTSAN_WC_FLUSHED,
	};

	rxq_remove(q, r);
	if (r->nb_active != 0)
		return;
	if (ep != NULL)
		san_ofi_report_done(ep, &e, true);
	else if (q->cq != NULL)
		san_ofi_report_cq(q->cq, &e);
	free(r);
}

void
san_ofi_rxq_flush(struct ofi_rxq *q, struct ofi_ep *ep)
{
	while (!STAILQ_EMPTY(&q->posted))
		rxq_cancel(q, ep, STAILQ_FIRST(&q->posted));
}

static int
rxq_cancel_by_context(struct ofi_rxq *q, struct ofi_ep *ep, void *context)
{
	struct ofi_recv *r;

	STAILQ_FOREACH(r, &q->posted, link)
		if (r->context == context)
			break;
	if (r == NULL)
		return -FI_ENOENT;
	rxq_cancel(q, ep, r);
	return 0;
}

/* ---- calls, of endpoints and of shared queues ---- */

/* A passive endpoint has no receives, but their options. */
struct ofi_rxq *
san_ofi_rxq_of(fid_t fid)
{
	static struct ofi_rxq none = {.min_multi = OFI_MULTI_RECV};

	return fid->fclass == FI_CLASS_EP   ? container_of(fid, struct ofi_ep, fid.fid)->rxq :
		fid->fclass == FI_CLASS_PEP ? &none :
					      container_of(fid, struct ofi_rxq, fid.fid);
}

static ssize_t
rxq_ep_cancel(fid_t fid, void *context)
{
	bool is_ep = fid->fclass == FI_CLASS_EP;
	struct ofi_ep *ep = is_ep ? container_of(fid, struct ofi_ep, fid.fid) : NULL;
	int rc;
	OFI_LOCKED;

	if (fid->fclass == FI_CLASS_PEP)
		return -FI_ENOSYS;
	rc = rxq_cancel_by_context(san_ofi_rxq_of(fid), ep, context);
	if (rc == -FI_ENOENT && is_ep && ep->rdm != NULL)
		rc = rxq_cancel_by_context(&ep->rdm->tagged, ep, context);
	return rc;
}

static int
rxq_ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV ||
	    fid->fclass == FI_CLASS_PEP)
		return -FI_ENOPROTOOPT;
	if (len != sizeof(size_t))
		return -FI_EINVAL;
	memcpy(&san_ofi_rxq_of(fid)->min_multi, value, sizeof(size_t));
	return 0;
}

static int
rxq_ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	const size_t cm_data = OFI_CM_DATA;
	bool is_multi = name == FI_OPT_MIN_MULTI_RECV;
	const size_t *from = is_multi ? &san_ofi_rxq_of(fid)->min_multi : &cm_data;
	size_t room = *len;

	if (level != FI_OPT_ENDPOINT || (!is_multi && name != FI_OPT_CM_DATA_SIZE))
		return -FI_ENOPROTOOPT;
	*len = sizeof(size_t);
	if (room < sizeof(size_t))
		return -FI_ETOOSMALL;
	memcpy(value, from, sizeof(size_t));
	return 0;
}

struct fi_ops_ep san_ofi_rxq_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = rxq_ep_cancel,
	.getopt = rxq_ep_getopt,
	.setopt = rxq_ep_setopt,
	.tx_ctx = OFI_NONE,
	.rx_ctx = OFI_NONE,
	.rx_size_left = OFI_NONE,
	.tx_size_left = OFI_NONE,
};
